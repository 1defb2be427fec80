//! Whether samples are lost while something swaps: in a group that is too small for it, at
//! the highest rate.

use std::fs;
use std::process::Command;

use super::running;
use super::{LIMIT, explained_json};
use crate::bench::Session;
use crate::bench::directory::WorkDirectory;
use crate::bench::record::{Series, Target};
use crate::error::Error;
use crate::process;

/// Where version 1 keeps its memory groups.
const GROUP: &str = "/sys/fs/cgroup/memory/terrace-bench";

/// Writes through 192 MiB again and again, three times what the group may have.
const SWAPPER: &str = "echo $$ > \"$0/cgroup.procs\"; exec perl -e \
    '$m = pack(\"L\", rand(2**32)) x (48 << 20); for (;;) { for ($i = 0; $i < 192 << 20; $i += 4096) { substr($m, $i, 4) = pack(\"L\", rand(2**32)) } }'";

/// Counts the samples that were due and not taken.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { request, terrace, directory, record, .. } = session;
    let Some(_pressure) = Pressure::make(directory) else {
        let why = "pressure: needs root, swap files and a version 1 memory controller: left out";
        record.notes.push(why.to_owned());
        return Ok(());
    };
    let (mut missed, mut swapped) = (Vec::new(), Vec::new());
    for _ in 0..request.alternations {
        let mut command = Command::new("sh");
        command.args(["-c", SWAPPER, GROUP]);
        let swapper = running::start("perl", command)?;
        let file = directory.file("pressure.trec");
        let before = swapped_out();
        let args = ["record", "--for", "20s", "--rate", "100", "--force", "-o", &file];
        terrace.run(&args, LIMIT)?;
        swapped.push((swapped_out() - before) as f64);
        drop(swapper);
        let explained = explained_json(terrace, &file)?;
        missed.push(explained["watching"]["missed"].as_f64().unwrap_or(f64::NAN));
    }
    record.command("terrace record --for 20s --rate 100 -o pressure.trec".to_owned());
    let series = |values: &[f64]| Series::new("terrace", values);
    let most = Some(Target::AtMost(0.0));
    record.add_alone("samples lost of 2,000 while swapping", "samples", series(&missed), most)?;
    record.add_alone("pages swapped out meanwhile", "pages", series(&swapped), None)
}

fn swapped_out() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("pswpout "));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// A swap file and a group; gone on drop.
struct Pressure {
    swap: String,
}

impl Pressure {
    fn make(directory: &WorkDirectory) -> Option<Self> {
        let swap = directory.file("swap");
        fs::write(&swap, vec![0; 512 << 20]).ok()?;
        for (program, args) in
            [("chmod", vec!["600", &swap]), ("mkswap", vec![&swap]), ("swapon", vec![&swap])]
        {
            let mut command = Command::new(program);
            command.args(args);
            process::run(command, LIMIT).ok()?.success().ok()?;
        }
        let stage = Self { swap };
        fs::create_dir(GROUP).ok()?;
        fs::write(format!("{GROUP}/memory.limit_in_bytes"), "67108864").ok()?;
        Some(stage)
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        let _ = fs::remove_dir(GROUP);
        let _ = Command::new("swapoff").arg(&self.swap).status();
    }
}
