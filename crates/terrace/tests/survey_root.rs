//! What a survey finds on machines that are made odd for it, and that the finding goes when the
//! remedy is applied. Needs root: control groups, swap files, loop devices of its own.
//!
//! All tests share four surveys ([`surveys`]). Three begin together: the one of a held volume
//! spends its first 20 s on memory, and the other two, which need no exact rates, have ended by
//! then. The one of a machine with swap follows. A check of rates that others disturbed is made
//! again, alone.
// Helpers of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use support::{TERRACE, run};
use testkit::{Cgroup, Mounted, SwapArea, skip};

/// Others on this machine may take the disk or the processors meanwhile; then no rate is flat.
const ATTEMPTS: usize = 3;

/// The limit of the group in which a survey's buffers shrink.
const MEMORY_LIMIT: u64 = 300 << 20;

/// The JSON of a quick survey by `command`, which may run it inside a group, of the volume at
/// `path` and of memory; without `path` of memory alone.
fn survey(mut command: Command, path: Option<&Path>) -> Value {
    command.args(["survey", "--quick"]);
    finish(command, path)
}

/// The JSON of a whole survey: a slow device needs its time for error bars.
fn whole_survey(mut command: Command, path: &Path) -> Value {
    command.arg("survey");
    finish(command, Some(path))
}

fn finish(mut command: Command, path: Option<&Path>) -> Value {
    command.args(["--no-keep", "--json"]);
    // The directories that every survey looks at are on the same volume, which is measured once.
    let here = path.unwrap_or(Path::new("/dev/shm"));
    command.current_dir(here).env("HOME", here).env("TMPDIR", here);
    if let Some(path) = path {
        command.arg("--path").arg(path);
    }
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn plain() -> Command {
    Command::new(TERRACE)
}

/// A survey of a disk made for it; its findings may be about that disk.
struct DiskSurvey {
    survey: Value,
    device: String,
    /// Whether the machine had swap when it was made.
    has_swap: bool,
}

impl DiskSurvey {
    /// A quick survey by `command` of a disk whose flag is `rotational`.
    fn make(command: Command, rotational: &str) -> Result<Self, String> {
        let mounted = Mounted::ext4(700 << 20)?;
        std::fs::write(mounted.queue_setting("rotational"), rotational).unwrap();
        let areas = std::fs::read_to_string("/proc/swaps").unwrap();
        Ok(Self {
            has_swap: areas.lines().count() > 1,
            survey: survey(command, Some(mounted.path())),
            device: mounted.device_name(),
        })
    }

    /// A whole survey of a disk that a group may read at a limited rate.
    fn of_held_volume() -> Result<Self, String> {
        let mounted = Mounted::ext4(700 << 20)?;
        let device = mounted.device_name();
        let number = std::fs::read_to_string(format!("/sys/block/{device}/dev")).unwrap();
        let group = Cgroup::v1_read_rate(number.trim(), 100 << 20)?;
        let survey = whole_survey(group.command(TERRACE), mounted.path());
        Ok(Self { survey, device, has_swap: false })
    }

    fn findings(&self, id: &str) -> usize {
        let found = findings(&self.survey, id).into_iter();
        found.filter(|finding| finding.to_string().contains(&self.device)).count()
    }
}

/// A survey in a group that may use 30 % of a processor.
struct CpuLimitedSurvey {
    survey: Value,
    group: String,
}

impl CpuLimitedSurvey {
    fn make() -> Result<Self, String> {
        let group = Cgroup::v1_cpu(30_000, 100_000)?;
        let name = group.path().file_name().unwrap().to_string_lossy().into_owned();
        Ok(Self { survey: survey(group.command(TERRACE), None), group: name })
    }
}

/// The machine with a swap file, a reserved one, and a disk whose flag is wrong.
struct OddSurvey {
    disk: DiskSurvey,
    swap: PathBuf,
    reserved: PathBuf,
}

impl OddSurvey {
    fn make() -> Result<Self, String> {
        let swap = SwapArea::on(64 << 20)?;
        let reserved = SwapArea::reserved(64 << 20)?;
        Ok(Self {
            disk: DiskSurvey::make(plain(), "1")?,
            swap: swap.path().to_owned(),
            reserved: reserved.path().to_owned(),
        })
    }

    /// The tier of a swap area.
    fn tier(&self, area: &Path) -> &Value {
        let tiers = self.disk.survey["tiers"].as_array().unwrap();
        let area = area.display().to_string();
        let name = |tier: &&Value| tier["name"].as_str().unwrap().ends_with(&area);
        tiers.iter().find(name).unwrap()
    }
}

/// The surveys that the tests share; each is absent with what it needs.
struct Surveys {
    /// The machine as it is, with a disk whose flag is right, in a group with a memory limit.
    usual: Result<DiskSurvey, String>,
    cpu_limited: Result<CpuLimitedSurvey, String>,
    held: Result<DiskSurvey, String>,
    odd: Result<OddSurvey, String>,
}

fn surveys() -> &'static Surveys {
    static SURVEYS: OnceLock<Surveys> = OnceLock::new();
    SURVEYS.get_or_init(|| {
        let usual = || {
            let group = Cgroup::v1_memory(MEMORY_LIMIT)?;
            DiskSurvey::make(group.command(TERRACE), "0")
        };
        let (usual, cpu_limited, held) = thread::scope(|scope| {
            let usual = scope.spawn(usual);
            let cpu_limited = scope.spawn(CpuLimitedSurvey::make);
            let held = DiskSurvey::of_held_volume();
            (usual.join().unwrap(), cpu_limited.join().unwrap(), held)
        });
        Surveys { usual, cpu_limited, held, odd: OddSurvey::make() }
    })
}

/// The `shared` survey, or the first of a few new ones, for which `is_it` holds; what each other
/// one found is printed. New ones are made one at a time.
#[track_caller]
fn until(
    shared: &DiskSurvey,
    make: impl Fn() -> Result<DiskSurvey, String>,
    is_it: impl Fn(&DiskSurvey) -> bool,
) {
    static ALONE: Mutex<()> = Mutex::new(());
    let holds = |attempt: usize, seen: &DiskSurvey| {
        let holds = is_it(seen);
        if !holds {
            let survey = &seen.survey;
            println!("attempt {attempt}: {:#} {:#}", survey["findings"], survey["unchecked"]);
        }
        holds
    };
    let again = |attempt| {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        holds(attempt, &make().unwrap())
    };
    assert!(holds(1, shared) || (2..=ATTEMPTS).any(again), "not in {ATTEMPTS} attempts");
}

/// The findings with this id, and whether the check was made at all.
fn findings<'s>(survey: &'s Value, id: &str) -> Vec<&'s Value> {
    let found = survey["findings"].as_array().unwrap();
    found.iter().filter(|finding| finding["id"] == id).collect()
}

fn unchecked(survey: &Value, id: &str) -> bool {
    let unchecked = survey["unchecked"].as_array().unwrap();
    unchecked.iter().any(|check| check["id"] == id)
}

fn tier<'s>(survey: &'s Value, kind: &str) -> Option<&'s Value> {
    let tiers = survey["tiers"].as_array().unwrap();
    tiers.iter().find(|tier| tier["kind"] == kind)
}

#[test]
fn a_cpu_limit_is_named_and_gone_without_it() {
    let limited = match &surveys().cpu_limited {
        Ok(limited) => limited,
        Err(need) => return skip(need),
    };
    let found = findings(&limited.survey, "processor_throttled");
    assert_eq!(found.len(), 1, "{}", limited.survey["findings"]);
    assert!(found[0].to_string().contains(&limited.group), "{}", found[0]);
    match &surveys().usual {
        Ok(free) => assert_eq!(findings(&free.survey, "processor_throttled").len(), 0),
        Err(need) => skip(need),
    }
}

#[test]
fn a_memory_limit_shrinks_the_buffers_and_kills_no_process() {
    let limited = match &surveys().usual {
        Ok(usual) => &usual.survey,
        Err(need) => return skip(need),
    };
    let method = tier(limited, "ram").unwrap()["method"].as_str().unwrap();
    assert!(method.contains(" MiB, "), "{method}");
    assert!(!method.contains("256 MiB"), "{method}");
    assert!(limited["cost"]["max_resident_bytes"].as_u64().unwrap() < MEMORY_LIMIT);

    let group = Cgroup::v1_memory(MEMORY_LIMIT).unwrap();
    let mut command = group.command(TERRACE);
    command.args(["measure", "memcpy", "memcpy", "--size", "1g"]);
    run(command).refused(3, "only ");
    let mut command = group.command(TERRACE);
    command.args(["measure", "faults", "--wait", "0s", "--over", "0", "--json"]);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let faults: Value = serde_json::from_str(&ran.out).unwrap();
    let limit = faults["result"]["limit_bytes"].as_u64().unwrap();
    assert!(limit <= 75 << 20, "{limit}");
    assert!(faults["result"]["limited_by"].to_string().contains("terrace-test"));
}

#[test]
fn a_machine_without_swap_has_a_finding_until_there_is_some() {
    let (without, with) = match (&surveys().usual, &surveys().odd) {
        (Ok(usual), Ok(odd)) => (usual, odd),
        (Err(need), _) | (_, Err(need)) => return skip(need),
    };
    if without.has_swap {
        return skip("a machine without swap");
    }
    assert_eq!(findings(&without.survey, "no_swap").len(), 1);
    assert!(tier(&without.survey, "swap").is_none());
    assert_eq!(findings(&with.disk.survey, "no_swap").len(), 0);
    let tier = with.tier(&with.swap);
    assert!(tier["capacity_bytes"].as_u64().unwrap() > 60 << 20);
    // Root reads the area itself; the page cache would answer in a microsecond.
    let latency = tier["latency_ns"]["median"].as_f64().unwrap();
    assert!(latency > 2_000.0, "{tier}");
}

#[test]
fn a_swap_file_that_is_only_reserved_has_no_latency() {
    let seen = match &surveys().odd {
        Ok(odd) => odd,
        Err(need) => return skip(need),
    };
    let tier = seen.tier(&seen.reserved);
    assert!(tier["latency_ns"].is_null(), "{tier}");
    assert!(tier["reason"].to_string().contains("reserved"), "{tier}");
}

#[test]
fn a_wrong_rotational_flag_is_found_until_it_is_corrected() {
    let (right, wrong) = match (&surveys().usual, &surveys().odd) {
        (Ok(usual), Ok(odd)) => (usual, &odd.disk),
        (Err(need), _) | (_, Err(need)) => return skip(need),
    };
    for (shared, flag, expected) in [(wrong, "1", 1), (right, "0", 0)] {
        until(
            shared,
            || DiskSurvey::make(plain(), flag),
            |seen| seen.findings("device_flag_at_odds") == expected,
        );
    }
}

#[test]
fn a_volume_that_is_held_to_a_rate_is_recognised_until_it_is_not() {
    let id = "volume_limit_bandwidth";
    let (held, free) = match (&surveys().held, &surveys().usual) {
        (Ok(held), Ok(usual)) => (held, usual),
        (Err(need), _) | (_, Err(need)) => return skip(need),
    };
    until(held, DiskSurvey::of_held_volume, |held| held.findings(id) == 1);
    until(
        free,
        || DiskSurvey::make(plain(), "0"),
        |free| findings(&free.survey, id).is_empty() && !unchecked(&free.survey, id),
    );
}
