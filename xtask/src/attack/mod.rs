//! `cargo xtask attack`: attacks the binary as a hostile file, user, disk or signal would.
//!
//! 1. The named cases, each once: every weakness that was ever found, injection, faults, kills,
//!    limits. Those that disturb nothing run side by side.
//! 2. Mutants of all families in turn, on every processor, until the time is used.
//!
//! A mutant repeats from seed, family and index; the input of one that succeeded is kept below
//! `target/attack/` with the command that repeats it. No case changes a setting and leaves it so.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use testkit::Random;

use crate::error::Error;
use crate::workspace;

mod accesses;
mod arguments;
mod cases;
mod escalation;
mod faults;
mod files;
mod http;
mod import;
mod injection;
mod judge;
mod kill;
mod limits;
mod memory;
mod mutate;
mod options;
mod recording;
mod snapshot;
mod stage;
mod status;
mod survey;
mod trace;
mod trec;
mod who;

use cases::{CASES, Case};
pub use options::AttackOptions;
use stage::{AttackStage, Held, Stop};

/// Where inputs of attacks that succeeded are kept, below the directory of the build.
const KEPT: &str = "attack";
/// More failures of mutants than these say nothing new.
const BAD_MAX: u64 = 20;
/// The seed of the step of `cargo xtask test`, which is the same attack each time; others search.
const STEP_SEED: u64 = 17;
/// Cases that run side by side: most of them wait most of their time.
const CASES_TOGETHER: usize = 4;
/// How many workers run mutants at most: each may take a GiB.
const WORKERS_MAX: usize = 8;

/// One kind of mutants.
struct Family {
    name: &'static str,
    attack: Attack,
}

type Attack = fn(&AttackStage, &mut Random, &Path) -> Held;

const fn family(name: &'static str, attack: Attack) -> Family {
    Family { name, attack }
}

/// Every family has the same share of the mutants.
const FAMILIES: &[Family] = &[
    family("recording", recording::attack_file),
    family("ring", recording::attack_ring),
    family("snapshot", snapshot::attack),
    family("import", import::attack),
    family("trace", trace::attack),
    family("survey", survey::attack),
    family("arguments", arguments::attack),
    family("http", http::attack),
];

/// What came of the named cases and the mutants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    held: u32,
    skipped: u32,
    /// Failed at first and held when repeated: a machine under load, or a race to look into.
    disturbed: u32,
    failed: Vec<&'static str>,
    mutants: u64,
    bad: u64,
}

impl Tally {
    /// One line that needs no manual.
    fn summary(&self, seed: u64) -> String {
        format!(
            "attack: {} cases held ({} only when repeated), {} skipped, {} failed; {} mutants, \
             {} bad; seed {seed}",
            self.held,
            self.disturbed,
            self.skipped,
            self.failed.len(),
            self.mutants,
            self.bad
        )
    }
}

/// Builds the binary and attacks it.
///
/// # Errors
/// [`Error::Failed`] if an attack succeeded.
pub fn run(options: &AttackOptions) -> Result<(), Error> {
    if options.list {
        list();
        return Ok(());
    }
    let root = workspace::current_root()?;
    build(&root)?;
    attack(&root, options)
}

/// The step of `cargo xtask test`, with the binary that the tests have built.
///
/// # Errors
/// [`Error::Failed`] if an attack succeeded.
pub(crate) fn step(root: &Path) -> Result<(), Error> {
    attack(root, &AttackOptions::of_step(STEP_SEED))
}

fn names() -> Vec<&'static str> {
    let cases = CASES.iter().map(|case| case.name);
    cases.chain(FAMILIES.iter().map(|family| family.name)).collect()
}

fn list() {
    for case in CASES {
        println!("{:28} {}", case.name, case.attack);
    }
    for family in FAMILIES {
        println!("{:28} mutants of this family", family.name);
    }
}

fn build(root: &Path) -> Result<(), Error> {
    let mut command = workspace::cargo(root);
    command.args(["build", "--locked", "--package", "terrace"]);
    let status = command.status().map_err(Error::io("run cargo in", root))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed("attack: the binary cannot be built".to_owned()))
    }
}

/// The directory of the build that this program is of; the binary is there as well.
fn build_directory() -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::io("find", Path::new("xtask")))?;
    // A test of this crate runs one directory deeper.
    let directory = own.ancestors().skip(1).find(|path| !path.ends_with("deps"));
    Ok(directory.unwrap_or(Path::new(".")).to_owned())
}

fn attack(root: &Path, options: &AttackOptions) -> Result<(), Error> {
    let started = Instant::now();
    let directory = build_directory()?;
    let binary = directory.join("terrace");
    let kept = directory.with_file_name(KEPT);
    let seed = options.seed();
    let stage = AttackStage::new(root, &binary, seed, options.rounds())
        .map_err(Error::io("attack", &binary))?;
    println!("attack: seed {seed}");
    let mut tally = Tally::default();
    run_cases(&stage, options, &mut tally);
    let families: Vec<&Family> =
        FAMILIES.iter().filter(|family| options.wants(family.name)).collect();
    if !families.is_empty() {
        let left = options.mutants_time(started.elapsed());
        run_mutants(&stage, &families, options, left, &kept, &mut tally);
    }
    println!("{}", tally.summary(seed));
    if tally.failed.is_empty() && tally.bad == 0 {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "attack: an attack succeeded: {}",
        match (tally.failed.is_empty(), tally.bad) {
            (true, bad) => format!("{bad} mutants"),
            (false, 0) => tally.failed.join(", "),
            (false, bad) => format!("{}, {bad} mutants", tally.failed.join(", ")),
        }
    )))
}

/// Runs the cases that disturb nothing side by side, then the others; repeats alone what failed.
fn run_cases(stage: &AttackStage, options: &AttackOptions, tally: &mut Tally) {
    let wanted = CASES.iter().filter(|case| options.wants(case.name));
    let (alone, together): (Vec<&Case>, Vec<&Case>) = wanted.partition(|case| case.is_alone);
    let next = AtomicUsize::new(0);
    let ended = Mutex::new((tally, Vec::new()));
    let worker = || {
        while let Some(case) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (outcome, seconds) = timed(stage, case);
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Err(Stop::Failed(why)) => ended.1.push((*case, why)),
                outcome => count(stage, case, outcome, seconds, ended.0),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..CASES_TOGETHER).for_each(|_| drop(scope.spawn(worker)));
    });
    let (tally, failed) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (case, why) in failed {
        repeat(stage, case, &why, tally);
    }
    for case in alone {
        match timed(stage, case) {
            (Err(Stop::Failed(why)), _) => repeat(stage, case, &why, tally),
            (outcome, seconds) => count(stage, case, outcome, seconds, tally),
        }
    }
}

fn timed(stage: &AttackStage, case: &Case) -> (Held, f64) {
    let started = Instant::now();
    let outcome = (case.run)(stage);
    (outcome, started.elapsed().as_secs_f64())
}

/// Repeats a case that failed: with nothing beside it, it may hold.
fn repeat(stage: &AttackStage, case: &Case, why: &str, tally: &mut Tally) {
    println!("{:28} failed, once more: {why}", case.name);
    let (outcome, seconds) = timed(stage, case);
    tally.disturbed += u32::from(outcome.is_ok());
    count(stage, case, outcome, seconds, tally);
}

/// Prints how a case ended, and counts it.
fn count(stage: &AttackStage, case: &Case, outcome: Held, seconds: f64, tally: &mut Tally) {
    match outcome {
        Ok(()) => {
            tally.held += 1;
            println!("{:28} held, {seconds:.1} s", case.name);
        }
        Err(Stop::Needs(what)) => {
            tally.skipped += 1;
            println!("{:28} skipped: needs {what}", case.name);
        }
        Err(Stop::Failed(why)) => {
            tally.failed.push(case.name);
            println!("{:28} FAILED, {seconds:.1} s: {why}", case.name);
            println!("    repeat: cargo xtask attack --seed {} {}", stage.seed, case.name);
        }
    }
}

/// The generator of one mutant: the same for the same seed, family and index.
fn generator(seed: u64, family: &str, index: u64) -> Random {
    let name = family.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut mixed = Random(seed ^ name.rotate_left(32));
    Random(mixed.next_u64().wrapping_add(index.wrapping_mul(0x9e37_79b9)))
}

/// Runs mutants until `limit` has passed, or the one that was asked for.
fn run_mutants(
    stage: &AttackStage,
    families: &[&Family],
    options: &AttackOptions,
    limit: Duration,
    kept: &Path,
    tally: &mut Tally,
) {
    let deadline = Instant::now() + limit;
    let count = options.mutant.map_or(u64::MAX, |_| families.len() as u64);
    let (next, done, bad) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let lines = Mutex::new(());
    let worker = |name: String| {
        while Instant::now() < deadline && bad.load(Ordering::Relaxed) < BAD_MAX {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= count {
                return;
            }
            let family = families[(turn % families.len() as u64) as usize];
            let index = options.mutant.unwrap_or(turn / families.len() as u64);
            let outcome = run_mutant(stage, family, index, &name);
            done.fetch_add(1, Ordering::Relaxed);
            if let Err((stop, directory)) = outcome {
                bad.fetch_add(1, Ordering::Relaxed);
                let _line = lines.lock();
                report(stage, family, index, &stop, &directory, kept);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for number in 0..workers.min(WORKERS_MAX) {
            let worker = &worker;
            scope.spawn(move || worker(format!("mutant{number}")));
        }
    });
    tally.mutants += done.into_inner();
    tally.bad += bad.into_inner();
}

fn run_mutant(
    stage: &AttackStage,
    family: &Family,
    index: u64,
    name: &str,
) -> Result<(), (Stop, PathBuf)> {
    let directory = stage.scratch(name).map_err(|error| (error.into(), PathBuf::new()))?;
    let mut random = generator(stage.seed, family.name, index);
    (family.attack)(stage, &mut random, &directory).map_err(|stop| (stop, directory))
}

/// Keeps the input and says what it did, and how to repeat it.
fn report(
    stage: &AttackStage,
    family: &Family,
    index: u64,
    stop: &Stop,
    directory: &Path,
    kept: &Path,
) {
    let seed = stage.seed;
    let target = kept.join(format!("{}-{seed}-{index}", family.name));
    let [from, to] = [directory, &target].map(stage::text);
    let what = stop.to_string().replace(from, to);
    println!("{:28} BAD: {what}", format!("{} {index}", family.name));
    let _ = std::fs::remove_dir_all(&target);
    if let Err(error) = copy_all(directory, &target) {
        println!("    its input cannot be kept: {error}");
    }
    println!("    or: cargo xtask attack --seed {seed} --mutant {index} {}", family.name);
}

/// Copies the files of a directory and of those below.
fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_repeats_and_differs_from_its_neighbours() {
        assert_eq!(generator(1, "ring", 2), generator(1, "ring", 2));
        let others = [(2, "ring", 2), (1, "survey", 2), (1, "ring", 3)];
        for (seed, family, index) in others {
            assert_ne!(generator(1, "ring", 2), generator(seed, family, index));
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names = names();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_summary_is_one_line() {
        let tally =
            Tally { held: 27, skipped: 2, disturbed: 1, failed: vec![], mutants: 3412, bad: 0 };
        assert_eq!(
            tally.summary(17),
            "attack: 27 cases held (1 only when repeated), 2 skipped, 0 failed; 3412 mutants, 0 bad; \
             seed 17"
        );
    }
}
