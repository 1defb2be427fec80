//! 4 KiB written to a file of the RAM disk, 2000 times a second and without a sync, while the RAM
//! disk is saved: the time of a write from the moment when it was due. Beside it rsync, and alone.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use testkit::Random;

use super::{LARGE_FILES, LIMIT, Scene, make_large};
use crate::bench::Session;
use crate::bench::copy::shell;
use crate::bench::record::{Series, Target};
use crate::bench::turns::{self, Turn};
use crate::error::Error;
use crate::process::{self, Limits};

const BLOCK_BYTES: usize = 4096;
/// 16 MiB.
const BLOCKS: u64 = 4096;
/// Two thousand a second: a save of a second and a half has 3000, of which three are beyond the
/// 99.9th percentile.
const INTERVAL: Duration = Duration::from_micros(500);
/// How long it writes alone: about as long as a save.
const ALONE: Duration = Duration::from_secs(2);
/// Of a file that changes while it is read: `terrace ramdisk save` names it and ends with 1, rsync
/// with 23 or 24.
const CHANGED_MEANWHILE: [i32; 4] = [0, 1, 23, 24];

/// Measures the part.
///
/// # Errors
/// When a program is missing or fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let scene = Scene::new(session)?;
    let tree = scene.in_memory("large");
    make_large(&tree, LARGE_FILES)?;
    let written = format!("{tree}/written");
    let scene = &scene;
    let mut names = vec!["alone", "terrace"];
    let mut save = Command::new(&scene.terrace.program);
    save.args(["ramdisk", "save", &tree, "--persist", &scene.on_disk("store")]);
    let mut commands = vec![save];
    if let Some(peer) = &scene.rsync {
        names.push("rsync");
        commands.push(scene.rsync_command(peer, &tree));
    }
    let mut programs: Vec<Turn<'_>> = vec![Box::new(|| {
        let writes = Writes::start(&written)?;
        std::thread::sleep(ALONE);
        writes.end()
    })];
    for command in &mut commands {
        let written = &written;
        programs.push(Box::new(move || beside(scene, command, written)));
    }
    let what = "4 KiB writes to the RAM disk";
    let all = turns::rotate(what, session.request.alternations, &mut programs)?;
    drop(programs);
    session.record.command("terrace ramdisk save DIR --persist STORE".to_owned());
    for (name, figures) in names.iter().zip(&all) {
        let target = (*name == "terrace").then_some(Target::AtMost(50.0));
        let row = match *name {
            "alone" => format!("{what}, alone"),
            name => format!("{what}, during a save of 1 GiB by {name}"),
        };
        for (figure, target, values) in
            [("p99.9", target, &figures[0]), ("longest", None, &figures[1])]
        {
            let series = Series::new(name, values);
            session.record.add_alone(&format!("{row}: {figure}"), "ms", series, target)?;
        }
    }
    Ok(())
}

/// The figures of writes during a command and the sync after it, to a disk that is quiet before.
fn beside(scene: &Scene, command: &mut Command, written: &str) -> Result<Vec<f64>, Error> {
    let point = &scene.disk.point;
    shell(&format!("rm -rf '{point}/store' '{point}/rsync'; sync -f '{point}'"))?;
    let mut started = Command::new(command.get_program());
    started.args(command.get_args());
    let writes = Writes::start(written)?;
    let ended = process::observe(started, Limits { time: LIMIT, memory_bytes: None })
        .map_err(|error| Error::Failed(format!("{command:?}: {error}")))?;
    if !ended.status().is_some_and(|status| CHANGED_MEANWHILE.contains(&status)) {
        return Err(Error::Failed(format!("{command:?}: {}", ended.text())));
    }
    shell(&format!("sync -f '{point}'"))?;
    writes.end()
}

/// A thread that writes a block at random each half millisecond.
struct Writes {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<Duration>>>,
}

impl Writes {
    fn start(path: &str) -> Result<Self, Error> {
        let opened = File::options().create(true).truncate(false).write(true).open(path);
        let file = opened.map_err(Error::io("open", Path::new(path)))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (block, mut all) = (vec![7; BLOCK_BYTES], Vec::new());
            let (mut random, mut due) = (Random(1), Instant::now());
            while !seen.load(Ordering::Relaxed) {
                // One that is late does not put off those after it.
                due += INTERVAL;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                file.write_all_at(&block, random.below(BLOCKS) * BLOCK_BYTES as u64)?;
                all.push(due.elapsed());
            }
            Ok(all)
        });
        Ok(Self { is_over, thread })
    }

    /// The 99.9th percentile and the longest, in milliseconds.
    fn end(self) -> Result<Vec<f64>, Error> {
        self.is_over.store(true, Ordering::Relaxed);
        let failed = |error| Error::Failed(format!("the writes to the RAM disk: {error}"));
        let ended = self.thread.join().unwrap_or_else(|_| Ok(Vec::new()));
        let mut all = ended.map_err(failed)?;
        all.sort();
        let figures = [all.get(all.len() * 999 / 1000), all.last()];
        let found: Vec<f64> =
            figures.into_iter().flatten().map(|time| time.as_secs_f64() * 1e3).collect();
        if found.len() == 2 { Ok(found) } else { Err(Error::Failed("no write ended".to_owned())) }
    }
}
