//! `terrace ramdisk keep` with 100,000 files: processor time and memory. It saves every two seconds
//! here; what a save takes is scaled to one in five minutes, and what it takes between saves is
//! added.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Scene, change_some, make_tree};
use crate::bench::Session;
use crate::bench::copy::shell;
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;
use crate::process::Running;

const EVERY: Duration = Duration::from_secs(2);
const SAVES: u32 = 5;
const IDLE: Duration = Duration::from_secs(4);
/// Between two saves unless asked otherwise.
const SCALED_EVERY_S: f64 = 300.0;
/// A second has so many of the kernel's units of processor time.
const TICKS_A_SECOND: f64 = 100.0;

/// A service that has saved for the first time.
struct Keeper(Running);

impl Keeper {
    fn start(scene: &Scene, tree: &str, every: &str) -> Result<Self, Error> {
        let mut command = Command::new(&scene.terrace.program);
        command.args(["ramdisk", "keep", tree, "--persist", &scene.on_disk("store")]);
        command.args(["--every", every]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::start(command).map_err(|error| failed(&error.to_string()))?;
        let output = running.child.stderr.take().ok_or_else(|| failed("it has no output"))?;
        let mut text = String::new();
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        if lines.any(|line| {
            text.push_str(&line);
            line.contains("saves every")
        }) {
            // What it says later is read, and forgotten.
            std::thread::spawn(move || lines.count());
            return Ok(Self(running));
        }
        Err(failed(&text))
    }

    /// Processor time since its start, of all threads, in steps of 10 ms.
    fn processor_s(&self) -> Result<f64, Error> {
        let text = self.read("stat")?;
        let fields: Vec<&str> =
            text.rsplit(") ").next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        let both = ticks(11).zip(ticks(12)).ok_or_else(|| failed("it has no processor time"))?;
        Ok((both.0 + both.1) / TICKS_A_SECOND)
    }

    /// The same of the threads that run now, without steps.
    fn own_processor_s(&self) -> Result<f64, Error> {
        let mut all_ns = 0.0;
        let tasks = format!("/proc/{}/task", self.0.pid());
        let names = fs::read_dir(&tasks).map_err(Error::io("read", Path::new(&tasks)))?;
        for name in names.flatten() {
            let text = fs::read_to_string(name.path().join("schedstat")).unwrap_or_default();
            let first = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
            all_ns += first.unwrap_or(0.0);
        }
        Ok(all_ns / 1e9)
    }

    /// The most memory that it had.
    fn peak_bytes(&self) -> Result<f64, Error> {
        let text = self.read("status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.ok_or_else(|| failed("it has no memory"))? * 1024.0)
    }

    fn read(&self, name: &str) -> Result<String, Error> {
        let path = format!("/proc/{}/{name}", self.0.pid());
        fs::read_to_string(&path).map_err(Error::io("read", Path::new(&path)))
    }
}

/// Measures the part.
///
/// # Errors
/// When Terrace or a file of the kernel fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("one");
    make_tree(&tree)?;
    session.record.command("terrace ramdisk keep DIR --persist STORE --every 2s".to_owned());
    let rows = ["nothing changed", "1 % changed"];
    let seed = std::cell::Cell::new(1);
    let mut programs: Vec<Turn<'_>> = Vec::new();
    for row in rows {
        let (scene, tree, seed) = (&scene, &tree, &seed);
        programs.push(Box::new(move || {
            shell(&format!("rm -rf '{}'", scene.on_disk("store")))?;
            let change = || {
                seed.set(seed.get() + 1);
                if row == rows[0] { Ok(()) } else { change_some(tree, seed.get()) }
            };
            figures(scene, tree, &change)
        }));
    }
    let what = "keep with 100,000 files";
    let all = turns::rotate(what, session.request.alternations, &mut programs)?;
    drop(programs);
    for (row, figures) in rows.iter().zip(&all) {
        let kept = [
            ("of a core, a save in 5 minutes", "%", Some(Target::AtMost(0.2))),
            ("peak memory", "MiB", Some(Target::AtMost(32.0))),
            ("processor time of a save", "s", None),
            ("of a core, between saves", "%", None),
        ];
        for ((figure, unit, target), values) in kept.into_iter().zip(figures) {
            let row = format!("{what}, {row}: {figure}");
            session.record.add_alone(&row, unit, Series::new("terrace", values), target)?;
        }
    }
    Ok(())
}

/// Share of a core in percent with a save in five minutes, peak memory in MiB, processor seconds of
/// a save, and the share between saves.
fn figures(
    scene: &Scene,
    tree: &str,
    change: &dyn Fn() -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let idle = Keeper::start(scene, tree, "1h")?;
    let (before_s, begun) = (idle.own_processor_s()?, Instant::now());
    std::thread::sleep(IDLE);
    let idle_share = (idle.own_processor_s()? - before_s) / begun.elapsed().as_secs_f64();
    drop(idle);
    let keeper = Keeper::start(scene, tree, "2s")?;
    let (before_s, begun) = (keeper.processor_s()?, Instant::now());
    for save in 1..=SAVES {
        change()?;
        std::thread::sleep((EVERY * save).saturating_sub(begun.elapsed()));
    }
    let used_s = keeper.processor_s()? - before_s;
    let between_s = idle_share * begun.elapsed().as_secs_f64();
    let save_s = ((used_s - between_s) / f64::from(SAVES)).max(0.0);
    let share = save_s / SCALED_EVERY_S + idle_share;
    let peak_mib = keeper.peak_bytes()? / f64::from(1 << 20);
    Ok(vec![100.0 * share, peak_mib, save_s, 100.0 * idle_share])
}

fn failed(what: &str) -> Error {
    Error::Program { program: "terrace ramdisk keep".to_owned(), what: what.to_owned() }
}
