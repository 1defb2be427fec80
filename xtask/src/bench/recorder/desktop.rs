//! How many bytes a recording takes beside what an ordinary desktop does, made here: 160 processes
//! that mostly sleep, of which a few draw for a while, play sound, open pages, start programs and
//! look through files. What each does, and when, comes from its number alone.
//!
//! Five minutes are recorded; an hour is twelve times as much. That is more than an hour takes:
//! what is written once counts twelve times.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::LIMIT;
use super::crowd::end_with_parent;
use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::error::Error;
use crate::process::Running;

const SETTLE: Duration = Duration::from_secs(3);
const RECORDED: Duration = Duration::from_secs(300);
const HOUR: Duration = Duration::from_secs(3600);
const SAMPLES_PER_S: f64 = 10.0;

/// Processes of each kind.
const MEMBERS: &[(&str, u64)] =
    &[("idle", 150), ("draws", 4), ("plays", 1), ("browses", 3), ("starts", 1), ("searches", 1)];
/// Threads of an idle one, which wake up now and then.
const IDLE_THREADS: u64 = 3;

/// Measures the bytes of a sample, and of an hour.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let Session { terrace, directory, record, .. } = session;
    let failed = |error: std::io::Error| Error::Failed(format!("desktop: {error}"));
    let own = std::env::current_exe().map_err(failed)?;
    let files = directory.file("desktop");
    fs::create_dir_all(&files).map_err(failed)?;
    let mut command = Command::new(own);
    command.args(["desktop", &files]);
    let desktop = Running::silent(command).map_err(failed)?;
    std::thread::sleep(SETTLE);
    let file = directory.file("desktop.trec");
    let seconds = format!("{}s", RECORDED.as_secs());
    let finished = terrace
        .run(&["record", "--for", &seconds, "--force", "-o", &file], RECORDED + LIMIT)
        .map(drop);
    drop(desktop);
    finished?;
    let bytes = fs::metadata(&file).map_err(failed)?.len() as f64;
    record.command(format!("terrace record --for {seconds} -o desktop.trec"));
    let per_sample = bytes / (RECORDED.as_secs_f64() * SAMPLES_PER_S);
    let hour_mb = bytes * (HOUR.as_secs_f64() / RECORDED.as_secs_f64()) / 1e6;
    let add = |record: &mut crate::bench::record::Record, what: &str, unit, value, most| {
        record.add_alone(what, unit, Series::new("terrace", &[value]), Some(Target::AtMost(most)))
    };
    add(record, "a sample with who, beside a made desktop", "B", per_sample, 220.0)?;
    let what = format!("an hour beside a made desktop, from {seconds}");
    add(record, &what, "MB", hour_mb, 8.0)
}

/// What the desktop does, with its files in `directory`; ends when it is killed, and all with it.
pub(crate) fn desktop(directory: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("desktop: {error}"));
    let own = std::env::current_exe().map_err(failed)?;
    let mut members = Vec::new();
    let kinds = MEMBERS.iter().flat_map(|(kind, count)| (0..*count).map(move |_| kind));
    for (number, kind) in kinds.enumerate() {
        let mut command = Command::new(&own);
        command.args(["desktop-member", kind, &number.to_string()]).arg(directory);
        members.push(Running::silent(command).map_err(failed)?);
    }
    std::thread::sleep(HOUR);
    drop(members);
    Ok(())
}

/// One process of a desktop; ends with its parent.
pub(crate) fn member(kind: &str, number: u64, directory: &Path) -> Result<(), Error> {
    end_with_parent()?;
    let mut chance = Chance(number + 1);
    match kind {
        "draws" => draw(&mut chance),
        "plays" => repeat(|| pause_after(Duration::from_micros(150), 20)),
        "browses" => repeat(|| browse(&mut chance, number, directory)),
        "starts" => repeat(|| {
            for _ in 0..3 {
                // What it starts does nothing; that it starts and ends is the work.
                let _ = Command::new("/bin/true").status();
            }
            std::thread::sleep(Duration::from_secs(2));
        }),
        "searches" => repeat(|| {
            search(directory);
            std::thread::sleep(Duration::from_secs(20));
        }),
        _ => {
            for thread in 1..IDLE_THREADS {
                let mut chance = Chance(number * IDLE_THREADS + thread + 1000);
                std::thread::spawn(move || idle(&mut chance));
            }
            idle(&mut chance)
        }
    }
}

/// Numbers that look like chance, the same in each run.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// A number from `least` to `most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        // Constants of Knuth's generator, MMIX; its high bits are the good ones.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }
}

fn repeat(mut work: impl FnMut()) -> ! {
    loop {
        work();
    }
}

fn work(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn pause_after(time: Duration, pause_ms: u64) {
    work(time);
    std::thread::sleep(Duration::from_millis(pause_ms));
}

/// Wakes up every few seconds.
fn idle(chance: &mut Chance) -> ! {
    repeat(|| pause_after(Duration::from_micros(50), chance.between(1_000, 5_000)))
}

/// Frames for four seconds, then next to nothing for a while.
fn draw(chance: &mut Chance) -> ! {
    repeat(|| {
        for _ in 0..240 {
            pause_after(Duration::from_millis(2), 14);
        }
        for _ in 0..chance.between(10, 20) {
            pause_after(Duration::from_micros(100), 1_000);
        }
    })
}

/// Opens a page: memory, work in slices, something kept in a file.
fn browse(chance: &mut Chance, number: u64, directory: &Path) {
    let mut page = vec![0_u8; 16 << 20];
    for byte in page.iter_mut().step_by(4096) {
        *byte = 1;
    }
    for _ in 0..25 {
        pause_after(Duration::from_millis(4), 4);
    }
    let path = directory.join(format!("page-{number}"));
    // A full disk makes this desktop a quieter one, and no wrong one.
    let _ = fs::write(&path, &page[..128 << 10]).and_then(|()| fs::read(&path));
    drop(page);
    std::thread::sleep(Duration::from_millis(chance.between(3_000, 8_000)));
}

/// Writes a hundred small files and reads them.
fn search(directory: &Path) {
    for number in 0..100 {
        let path = directory.join(format!("found-{number}"));
        // As above.
        let _ = fs::write(&path, [number; 16 << 10]).and_then(|()| fs::read(&path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_the_same_in_each_run_and_within_its_bounds() {
        let draw = || {
            let mut chance = Chance(7);
            (0..1000).map(|_| chance.between(3, 8)).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        assert!((3..=8).all(|number| drawn.contains(&number)));
        assert!(drawn.iter().all(|number| (3..=8).contains(number)));
    }
}
