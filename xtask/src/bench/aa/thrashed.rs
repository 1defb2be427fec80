//! Quick surveys pinned to one processor while copies on another thrash the caches that both
//! share: no survey may call the cache sizes of sysfs or CPUID wrong for it.
//!
//! A size of the C library that the hardware cannot have is wrong all the same, and is counted
//! apart.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::Finding;
use model::survey::Survey;

use super::{LIMIT, one, parse};
use crate::bench::peer::Peer;
use crate::bench::record::{Comparison, Target};
use crate::error::Error;
use crate::process;

/// The finding that is counted.
const ID: &str = "cache_size_differs";

/// The survey's processor and that of the copies.
const PROCESSORS: [&str; 2] = ["0", "1"];

/// Larger than L2 of every processor known here, and within L3.
const COPIES: [&str; 5] = ["measure", "memcpy", "memcpy", "--size", "8m"];

/// How often the worker checks whether to stop.
const POLL: Duration = Duration::from_millis(20);

/// What is run: for the record.
pub(super) const SHOWN: [&str; 3] = ["survey", "--quick", "--json"];

/// Makes `runs` surveys and counts the findings about cache sizes.
pub(super) fn measure(terrace: &Peer, runs: usize) -> Result<Vec<Comparison>, Error> {
    let _worker = Worker::start(terrace)?;
    let (mut hardware, mut library) = (0, 0);
    for number in 1..=runs {
        let survey = survey(terrace)?;
        let wrong = wrong_sources(&survey);
        let is_hardware = wrong.iter().any(|text| blames_hardware(text));
        hardware += usize::from(is_hardware);
        library += usize::from(!is_hardware && !wrong.is_empty());
        eprintln!("survey beside copies: {number} of {runs}: {wrong:?}");
    }
    Ok(vec![
        one(
            "beside copies: surveys that call sysfs or CPUID wrong about a cache",
            hardware as f64,
            Some(Target::AtMost(0.0)),
        )?,
        one("beside copies: surveys that call only the C library wrong", library as f64, None)?,
    ])
}

fn survey(terrace: &Peer) -> Result<Survey, Error> {
    let mut command = pinned(terrace, PROCESSORS[0]);
    command.args(["survey", "--no-keep", "--quick", "--json"]);
    let finished = process::run(command, LIMIT)?.success()?;
    parse(&finished.stdout)
}

fn pinned(terrace: &Peer, processor: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", processor]).arg(&terrace.program);
    command.env("LC_ALL", "C");
    command
}

/// The part of each finding about a cache's size that names the wrong sources.
fn wrong_sources(survey: &Survey) -> Vec<String> {
    let findings = survey.findings.iter();
    findings.filter(|finding| finding.id == ID).map(named_as_wrong).collect()
}

/// "sysfs (32 MiB) and CPUID (32 MiB) are" of "...: sysfs (32 MiB) and CPUID (32 MiB) are wrong".
fn named_as_wrong(finding: &Finding) -> String {
    let before = finding.claim.split(" wrong").next().unwrap_or_default();
    let sources = before.rsplit(": ").next().unwrap_or_default();
    sources.to_owned()
}

fn blames_hardware(sources: &str) -> bool {
    sources.contains("sysfs") || sources.contains("CPUID")
}

/// Copies without end on the other processor, until dropped.
struct Worker {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(terrace: &Peer) -> Result<Self, Error> {
        if process::find("taskset").is_none() {
            return Err(Error::Program {
                program: "taskset".to_owned(),
                what: "not on PATH".to_owned(),
            });
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (terrace, over) = (terrace.clone(), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let mut command = pinned(&terrace, PROCESSORS[1]);
                command.args(COPIES).stdin(Stdio::null());
                command.stdout(Stdio::null()).stderr(Stdio::null());
                match command.spawn() {
                    Ok(child) => wait(child, &over),
                    Err(_) => return,
                }
            }
        });
        Ok(Self { is_over, thread: Some(thread) })
    }
}

/// Waits for the end of `child`, or ends it.
fn wait(mut child: Child, is_over: &AtomicBool) {
    while matches!(child.try_wait(), Ok(None)) {
        if is_over.load(Ordering::Relaxed) {
            let _ = child.kill();
        }
        thread::sleep(POLL);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Grade;

    #[test]
    fn the_c_library_is_counted_apart_from_the_hardware() {
        let sources = |claim: &str| {
            named_as_wrong(&Finding {
                id: ID.to_owned(),
                claim: claim.to_owned(),
                tier: None,
                evidence: Vec::new(),
                grade: Grade::Measured,
                remedy: None,
                confirm: None,
            })
        };
        let hardware = sources(
            "By its latency the L2 cache holds 4 MiB but not 5 MiB now: sysfs (1 MiB) and CPUID (1 MiB) are wrong.",
        );
        let library = sources(
            "By its latency the L3 cache holds 24 MiB but not 32 MiB now: the C library (320 MiB) is wrong, sysfs (32 MiB) and CPUID (32 MiB) are near enough.",
        );
        assert!(blames_hardware(&hardware), "{hardware}");
        assert!(!blames_hardware(&library), "{library}");
        assert_eq!(library, "the C library (320 MiB) is");
    }
}
