//! Workers beside a save: the time of a round of their work while it runs, divided by that just
//! before and after it. The save is the first one of `terrace ramdisk keep`, which gives way to
//! others, or that of `terrace ramdisk save`, which a person waits for.

use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use super::{Scene, make_large};
use crate::bench::Session;
use crate::bench::copy::shell;
use crate::bench::record::{Series, Target};
use crate::bench::warm::beside::workers::{Span, Within, Workers, mean_round_s};
use crate::error::Error;
use crate::process::Running;

/// 256 MiB in two files: a save of half a second with an idle processor.
const FILES: u64 = 2;
/// Saves of an alternation.
const SAVES: usize = 3;
/// Alone, before a save and again after it.
const ALONE: Duration = Duration::from_secs(1);
/// What is left to the disk after the store was removed.
const SETTLE: Duration = Duration::from_millis(300);

/// A number of workers beside a command, and what was seen.
struct Row {
    what: String,
    command: &'static str,
    workers: (usize, Within),
    target: Option<Target>,
    beside_s: Vec<f64>,
    alone_s: Vec<f64>,
    save_s: Vec<f64>,
}

/// Measures the part.
///
/// # Errors
/// When Terrace fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("large");
    make_large(&tree, FILES)?;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let mut rows = rows(processors);
    for alternation in 0..session.request.alternations {
        eprintln!("workers beside a save: {} of {}", alternation + 1, session.request.alternations);
        let first = alternation % rows.len();
        rows.rotate_left(first);
        for row in &mut rows {
            saves(&scene, &tree, row)?;
        }
        rows.rotate_right(first);
    }
    for row in &rows {
        session.record.command(format!("terrace ramdisk {} DIR --persist STORE", row.command));
        let pair = (Series::new("beside", &row.beside_s), Series::new("alone", &row.alone_s));
        let what = format!("{}: a worker's round", row.what);
        session.record.add_against(&what, "s", pair, row.target)?;
        let what = format!("{}: the save's time", row.what);
        session.record.add_alone(&what, "s", Series::new("terrace", &row.save_s), None)?;
    }
    Ok(())
}

fn rows(processors: usize) -> Vec<Row> {
    let most = Some(Target::AtMost(1.05));
    let row = |command: &'static str, workers: (usize, Within), target: Option<Target>| {
        let busy = if workers.0 < processors { "all processors but one" } else { "all processors" };
        let place = if workers.1 == Within::Cache { "in their caches" } else { "in memory" };
        Row {
            what: format!("256 MiB saved by {command}, {busy} busy {place}"),
            command,
            workers,
            target,
            beside_s: Vec::new(),
            alone_s: Vec::new(),
            save_s: Vec::new(),
        }
    };
    let mut rows = Vec::new();
    for within in [Within::Cache, Within::Memory] {
        rows.push(row("keep", (processors, within), most));
        if processors > 1 {
            rows.push(row("keep", (processors - 1, within), most));
            rows.push(row("save", (processors - 1, within), None));
        }
    }
    rows
}

/// Several saves beside the workers of `row`.
fn saves(scene: &Scene, tree: &str, row: &mut Row) -> Result<(), Error> {
    let (clock, over) = (Instant::now(), AtomicBool::new(false));
    let (windows, rounds) = thread::scope(|scope| {
        let workers = Workers::start(row.workers, scope, &over, clock);
        let windows: Result<Vec<Span>, Error> =
            (0..SAVES).map(|_| save(scene, tree, row.command, clock)).collect();
        (windows, workers.rounds())
    });
    for window in windows? {
        let alone_s = ALONE.as_secs_f64();
        let before = Span { start_s: window.start_s - alone_s, end_s: window.start_s };
        let after = Span { start_s: window.end_s, end_s: window.end_s + alone_s };
        let means = mean_round_s(&rounds, &[window]).zip(mean_round_s(&rounds, &[before, after]));
        let (beside_s, alone_s) = means.ok_or_else(|| Error::Malformed {
            what: "the rounds of the workers",
            why: "none is wholly within a save: it is too short here".to_owned(),
        })?;
        row.beside_s.push(beside_s);
        row.alone_s.push(alone_s);
        row.save_s.push(window.end_s - window.start_s);
    }
    Ok(())
}

/// One save to a new store, between two times alone; when it ran.
fn save(scene: &Scene, tree: &str, command: &str, clock: Instant) -> Result<Span, Error> {
    let (store, point) = (scene.on_disk("store"), &scene.disk.point);
    shell(&format!("rm -rf '{store}'; sync -f '{point}'"))?;
    thread::sleep(SETTLE + ALONE);
    let failed = |error: std::io::Error| Error::Failed(format!("ramdisk {command}: {error}"));
    let mut line = Command::new(&scene.terrace.program);
    line.args(["ramdisk", command, tree, "--persist", &store]);
    line.stdout(Stdio::null()).stderr(Stdio::piped());
    let start_s = clock.elapsed().as_secs_f64();
    let mut running = Running::start(line).map_err(failed)?;
    let output = running.child.stderr.take();
    // `keep` says that it has saved, and goes on; `save` ends.
    let mut lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
    let said = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("saves every")));
    if command == "save" && !running.child.wait().map_err(failed)?.success() {
        return Err(Error::Failed("ramdisk save failed".to_owned()));
    }
    let end_s = clock.elapsed().as_secs_f64();
    if command == "keep" && said.is_none() {
        return Err(Error::Failed("ramdisk keep ended early".to_owned()));
    }
    drop(running);
    thread::sleep(ALONE);
    Ok(Span { start_s, end_s })
}
