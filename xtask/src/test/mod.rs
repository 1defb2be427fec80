//! `cargo xtask test`: the one command that says whether a change is good.
//!
//! Steps in lanes, each step printed with its time. The lanes of a stage run beside each other, the
//! steps of a lane one after the other; the first that fails ends its lane, and the run after the
//! stage. The runners' own lines go straight through. What a step needs and is not there is said in
//! one line: on a fresh machine the run shall say what it could not see, not look greener or redder
//! than it is.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::error::Error;
use crate::vm::{self, Arch};
use crate::{attack, tidy, workspace};

mod disk;
mod leftovers;
pub(crate) mod needs;
pub(crate) mod other_arch;
mod readme;
mod suite;

/// How a step ended that did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Could not run here, and why.
    Skipped(String),
}

/// One step of the run.
struct Step {
    name: &'static str,
    /// Whether `--fast` leaves it out.
    is_slow: bool,
    run: fn(&Path) -> Result<Outcome, Error>,
}

/// Steps one after the other.
type Lane = &'static [Step];

const STAGES: &[&[Lane]] = &[
    // Packages come over the network while the compiler works.
    &[
        &[Step { name: "needs", is_slow: true, run: needs::install }],
        &[
            Step {
                name: "format",
                is_slow: false,
                run: |root| cargo(root, &["fmt", "--all", "--check"], &[]),
            },
            Step { name: "clippy", is_slow: false, run: |root| cargo(root, CLIPPY, &[]) },
            Step { name: "tidy", is_slow: false, run: |_| tidy::run().map(|()| Outcome::Done) },
            Step { name: "readme", is_slow: false, run: readme::check },
        ],
    ],
    &[&[Step { name: "tests", is_slow: false, run: suite::run }]],
    // With the binary that the tests have built, which no step of the other lane replaces.
    &[
        &[Step {
            name: "attack",
            is_slow: true,
            run: |root| attack::step(root).map(|()| Outcome::Done),
        }],
        &[
            Step {
                name: "documentation",
                is_slow: true,
                run: |root| cargo(root, DOCUMENTATION, &[("RUSTDOCFLAGS", "-D warnings")]),
            },
            Step { name: "aarch64", is_slow: true, run: aarch64 },
        ],
    ],
];

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];

const DOCUMENTATION: &[&str] = &["doc", "--no-deps", "--workspace", "--locked"];

/// Runs the steps in the workspace above the current directory; `fast` leaves out the slow ones.
///
/// # Errors
/// [`Error::Failed`] with the name of the step that failed, and whether the disk was full.
pub(crate) fn run(fast: bool) -> Result<(), Error> {
    let root = workspace::current_root()?;
    let disk = disk::Watch::start(&root)?;
    run_stages(&root, STAGES, fast).map_err(|error| match disk.full() {
        Some(full) => Error::Failed(format!("{error}; {full}")),
        None => error,
    })
}

fn run_stages(root: &Path, stages: &[&[Lane]], fast: bool) -> Result<(), Error> {
    let started = Instant::now();
    let mut steps = 0;
    for lanes in stages {
        let ended: Vec<Result<usize, Error>> = thread::scope(|scope| {
            let run = |lane: &&'static [Step]| {
                let lane = *lane;
                scope.spawn(move || run_lane(root, lane, fast))
            };
            let threads: Vec<_> = lanes.iter().map(run).collect();
            let panicked = |_| Err(Error::Failed("test: a step panicked".to_owned()));
            threads.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect()
        });
        for count in ended {
            steps += count?;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("test: {steps} steps passed in {seconds:.1} s");
    Ok(())
}

/// Runs the steps of a lane; how many.
fn run_lane(root: &Path, lane: &[Step], fast: bool) -> Result<usize, Error> {
    let mut count = 0;
    for Step { name, run, .. } in lane.iter().filter(|step| !(fast && step.is_slow)) {
        println!("== {name}");
        let started = Instant::now();
        let outcome = run(root)
            .map_err(|error| Error::Failed(format!("test: step {name} failed: {error}")))?;
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Outcome::Done => println!("== {name}: ok, {seconds:.1} s"),
            Outcome::Skipped(why) => println!("== {name}: skipped: {why}"),
        }
        count += 1;
    }
    Ok(count)
}

fn cargo(root: &Path, args: &[&str], variables: &[(&str, &str)]) -> Result<Outcome, Error> {
    let mut command = workspace::cargo(root);
    command.args(args).envs(variables.iter().copied());
    through(&format!("cargo {}", args[0]), command)
}

/// Runs `command` with our own standard output and error: colours and progress stay what they were.
fn through(name: &str, mut command: Command) -> Result<Outcome, Error> {
    let fail = |what: String| Error::Program { program: name.to_owned(), what };
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| fail(format!("cannot start: {error}")))?;
    if status.success() { Ok(Outcome::Done) } else { Err(fail(status.to_string())) }
}

/// Type-checks the portable and the NEON loops where the target's library is installed.
fn aarch64(root: &Path) -> Result<Outcome, Error> {
    let target = Arch::Aarch64.target();
    if !vm::has_target(target) {
        return Ok(Outcome::Skipped(format!("needs target {target}")));
    }
    let args = ["check", "--locked", "--target", target, "-p", "memops", "-p", "model"];
    cargo(root, &args, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::has_target;

    fn broken(_: &Path) -> Result<Outcome, Error> {
        Err(Error::Failed("broken".to_owned()))
    }

    const OK: Step = Step { name: "fine", is_slow: false, run: |_| Ok(Outcome::Done) };
    const SLOW_AND_BROKEN: Step = Step { name: "slow", is_slow: true, run: broken };
    const UNREACHED: Step = Step {
        name: "unreached",
        is_slow: false,
        run: |_| panic!("a step ran after one that failed"),
    };

    fn run(stages: &[&[Lane]], fast: bool) -> Result<(), Error> {
        run_stages(Path::new("."), stages, fast)
    }

    #[test]
    fn the_first_failing_step_ends_its_lane_and_the_run_and_is_named() {
        for stages in [
            &[&[&[OK, SLOW_AND_BROKEN, UNREACHED] as Lane] as &[Lane]] as &[&[Lane]],
            &[&[&[OK], &[SLOW_AND_BROKEN]], &[&[UNREACHED]]],
        ] {
            let error = run(stages, false).unwrap_err();
            assert_eq!(error.to_string(), "test: step slow failed: broken");
            assert_eq!(error.exit_status(), 1);
        }
    }

    #[test]
    fn fast_leaves_out_what_is_slow() {
        run(&[&[&[OK, SLOW_AND_BROKEN], &[OK]]], true).unwrap();
    }

    #[test]
    fn lanes_of_a_stage_run_beside_each_other() {
        // Each waits for the other.
        static MET: std::sync::Barrier = std::sync::Barrier::new(2);
        const MEET: Step = Step {
            name: "meet",
            is_slow: false,
            run: |_| {
                MET.wait();
                Ok(Outcome::Done)
            },
        };
        run(&[&[&[MEET], &[MEET]]], false).unwrap();
    }

    #[test]
    fn a_program_that_fails_or_is_absent_is_an_error_that_names_it() {
        let error = through("false", Command::new("false")).unwrap_err();
        assert_eq!(error.to_string(), "false: exit status: 1");
        let error = through("absent", Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().starts_with("absent: cannot start"));
        assert_eq!(through("true", Command::new("true")).unwrap(), Outcome::Done);
    }

    #[test]
    fn the_own_target_is_installed_and_an_invented_one_is_not() {
        assert!(!has_target("pdp11-unknown-unix"));
        let own = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        assert!(has_target(&own) || cfg!(not(target_env = "gnu")));
    }
}
