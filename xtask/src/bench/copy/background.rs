//! Random reads of 4 KiB past the cache on the disk that a copy uses: their 99th percentile beside
//! `terrace copy --background`, beside `ionice -c3 cp`, and alone.

use std::process::{Child, Command, Stdio};

use super::{number, shell, take_turns};
use crate::bench::Session;
use crate::bench::peer::{Peer, Version};
use crate::bench::record::{Series, Target};
use crate::bench::turns::Turn;
use crate::error::Error;

/// Longer than the reads, at the speed of this disk.
const SOURCE_FILES: u64 = 16;
const FILE_MIB: u64 = 256;
const READ_MIB: u64 = 1024;
const READ_SECONDS: u32 = 4;
/// So long a copy runs before the reads begin.
const LEAD_SECONDS: f64 = 0.5;

/// A copy that is ended with its turn.
struct Copying(Child);

impl Drop for Copying {
    fn drop(&mut self) {
        // It has ended by itself, or goes now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let fio = Peer::find(&session.request, "fio", Version::Option("--version"))?;
    let directory = session.directory.name().to_owned();
    let (source, target) = (format!("{directory}/source"), format!("{directory}/target"));
    let file = format!("{directory}/read");
    shell(&format!(
        "mkdir '{source}'; for i in $(seq {SOURCE_FILES}); do \
         head -c {FILE_MIB}M /dev/urandom > '{source}'/$i; done; \
         head -c {READ_MIB}M /dev/urandom > '{file}'; sync"
    ))?;
    let terrace = session.terrace.clone();
    let copy = format!(
        "exec '{}' copy --background --now '{source}' '{target}'",
        terrace.program.display()
    );
    let copies = [None, Some(copy), Some(format!("exec ionice -c3 cp -a '{source}' '{target}'"))];
    let line = format!(
        "'{}' --name=read --filename='{file}' --rw=randread --bs=4k --direct=1 --ioengine=sync \
         --time_based --runtime={READ_SECONDS} --minimal | tr ';' '\\n' | \
         sed -n 's/^99.000000%=//p' | head -1",
        fio.program.display()
    );
    let fio_program = fio.program.clone();
    session.record.program(terrace.clone());
    session.record.program(fio);
    for command in std::iter::once(&line).chain(copies.iter().flatten()) {
        let mut recorded = command.replace(&directory, "DIRECTORY");
        for (program, name) in [(&terrace.program, "terrace"), (&fio_program, "fio")] {
            recorded = recorded.replace(&format!("'{}'", program.display()), name);
        }
        session.record.command(recorded);
    }
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for copy in &copies {
        let (source, target, directory) = (&source, &target, &directory);
        let (line, terrace) = (&line, &terrace);
        programs.push(Box::new(move || {
            shell(&format!("rm -rf '{target}' '{directory}'/.terrace-copy.*; sync"))?;
            terrace.run(&["warm", "evict", source], super::LIMIT)?;
            let running = copy.as_deref().map(start).transpose()?;
            std::thread::sleep(std::time::Duration::from_secs_f64(LEAD_SECONDS));
            let latency_us = number(line)?;
            drop(running);
            Ok(vec![latency_us])
        }));
    }
    let what = "4 KiB reads on the same disk, p99";
    let all = take_turns(session, "background", (what, 1), programs)?;
    shell(&format!("rm -rf '{target}' '{directory}'/.terrace-copy.*"))?;
    let alone = || Series::new("alone", &all[0][0]);
    let names = ["terrace copy --background", "ionice -c3 cp"];
    let targets = [Some(Target::AtMost(2.0)), None];
    for (place, (name, target)) in names.into_iter().zip(targets).enumerate() {
        let pair = (Series::new(name, &all[place + 1][0]), alone());
        session.record.add_against(&format!("{what}, beside {name}"), "us", pair, target)?;
    }
    Ok(())
}

fn start(line: &str) -> Result<Copying, Error> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| Error::Failed(format!("{line}: {error}")))?;
    Ok(Copying(child))
}
