//! What a survey finds on machines that are made odd for it, and that the finding goes when the
//! remedy is applied. Needs root: control groups, swap files, loop devices of its own.
//!
//! A survey takes 14 s, so tests share two of them: of a plain machine, and of one with swap and a
//! wrong flag. Surveys whose rates matter run alone; those in a group that only lowers a limit run
//! beside each other.
// Helpers of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use support::{TERRACE, run};
use testkit::{Cgroup, Mounted, SwapArea, skip};

/// Others on this machine may take the disk or the processors meanwhile; then no rate is flat.
const ATTEMPTS: usize = 3;

static MACHINE: RwLock<()> = RwLock::new(());

/// No other survey of this file runs meanwhile.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Other surveys that need no exact rates may run meanwhile.
fn side_by_side() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The JSON of a quick survey by `command`, which may run it inside a group.
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
    fn make(rotational: &str) -> Result<Self, String> {
        let mounted = Mounted::ext4(700 << 20)?;
        std::fs::write(mounted.queue_setting("rotational"), rotational).unwrap();
        let areas = std::fs::read_to_string("/proc/swaps").unwrap();
        Ok(Self {
            has_swap: areas.lines().count() > 1,
            survey: survey(plain(), Some(mounted.path())),
            device: mounted.device_name(),
        })
    }

    fn findings(&self, id: &str) -> usize {
        let found = findings(&self.survey, id).into_iter();
        found.filter(|finding| finding.to_string().contains(&self.device)).count()
    }
}

/// The machine as it is, with a disk whose flag is right.
fn as_it_is() -> Result<&'static DiskSurvey, &'static String> {
    static SURVEY: OnceLock<Result<DiskSurvey, String>> = OnceLock::new();
    let make = || {
        let _alone = alone();
        DiskSurvey::make("0")
    };
    SURVEY.get_or_init(make).as_ref()
}

/// The machine with a swap file, a reserved one, and a disk whose flag is wrong.
struct OddSurvey {
    disk: DiskSurvey,
    swap: PathBuf,
    reserved: PathBuf,
}

impl OddSurvey {
    fn make() -> Result<Self, String> {
        let _alone = alone();
        let swap = SwapArea::on(64 << 20)?;
        let reserved = SwapArea::reserved(64 << 20)?;
        Ok(Self {
            disk: DiskSurvey::make("1")?,
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

fn odd() -> Result<&'static OddSurvey, &'static String> {
    static SURVEY: OnceLock<Result<OddSurvey, String>> = OnceLock::new();
    SURVEY.get_or_init(OddSurvey::make).as_ref()
}

/// The first survey of a few for which `is_it` holds, `shared` first; what each other one found is
/// printed.
#[track_caller]
fn until(
    shared: Option<&DiskSurvey>,
    ask: impl Fn() -> Result<DiskSurvey, String>,
    is_it: impl Fn(&DiskSurvey) -> bool,
) {
    for attempt in 1..=ATTEMPTS {
        let asked;
        let seen = match shared.filter(|_| attempt == 1) {
            Some(shared) => shared,
            None => {
                let _alone = alone();
                asked = ask().unwrap();
                &asked
            }
        };
        if is_it(seen) {
            return;
        }
        println!("attempt {attempt}: {:#} {:#}", seen.survey["findings"], seen.survey["unchecked"]);
    }
    panic!("not in {ATTEMPTS} attempts");
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
    {
        let _side_by_side = side_by_side();
        let group = match Cgroup::v1_cpu(30_000, 100_000) {
            Ok(group) => group,
            Err(need) => return skip(need),
        };
        let limited = survey(group.command(TERRACE), None);
        let found = findings(&limited, "processor_throttled");
        assert_eq!(found.len(), 1, "{}", limited["findings"]);
        let name = group.path().file_name().unwrap().to_string_lossy();
        assert!(found[0].to_string().contains(&*name), "{}", found[0]);
    }
    match as_it_is() {
        Ok(free) => assert_eq!(findings(&free.survey, "processor_throttled").len(), 0),
        Err(need) => skip(need),
    }
}

#[test]
fn a_memory_limit_shrinks_the_buffers_and_kills_no_process() {
    let _side_by_side = side_by_side();
    let group = match Cgroup::v1_memory(300 << 20) {
        Ok(group) => group,
        Err(need) => return skip(need),
    };
    let limited = survey(group.command(TERRACE), None);
    let method = tier(&limited, "ram").unwrap()["method"].as_str().unwrap();
    assert!(method.contains(" MiB, "), "{method}");
    assert!(!method.contains("256 MiB"), "{method}");
    assert!(limited["cost"]["max_resident_bytes"].as_u64().unwrap() < 300 << 20);

    let mut command = group.command(TERRACE);
    command.args(["measure", "memcpy", "memcpy", "--size", "1g"]);
    run(command).refused(3, "only ");
    let mut command = group.command(TERRACE);
    command.args(["measure", "faults", "--wait", "0s", "--json"]);
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let faults: Value = serde_json::from_str(&ran.out).unwrap();
    let limit = faults["result"]["limit_bytes"].as_u64().unwrap();
    assert!(limit <= 75 << 20, "{limit}");
    assert!(faults["result"]["limited_by"].to_string().contains("terrace-test"));
}

#[test]
fn a_machine_without_swap_has_a_finding_until_there_is_some() {
    let (without, with) = match as_it_is().and_then(|plain| Ok((plain, odd()?))) {
        Ok(surveys) => surveys,
        Err(need) => return skip(need),
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
    let seen = match odd() {
        Ok(seen) => seen,
        Err(need) => return skip(need),
    };
    let tier = seen.tier(&seen.reserved);
    assert!(tier["latency_ns"].is_null(), "{tier}");
    assert!(tier["reason"].to_string().contains("reserved"), "{tier}");
}

#[test]
fn a_wrong_rotational_flag_is_found_until_it_is_corrected() {
    let (right, wrong) = match as_it_is().and_then(|plain| Ok((plain, odd()?))) {
        Ok(surveys) => surveys,
        Err(need) => return skip(need),
    };
    for (shared, flag, expected) in [(&wrong.disk, "1", 1), (right, "0", 0)] {
        until(
            Some(shared),
            || DiskSurvey::make(flag),
            |seen| seen.findings("device_flag_at_odds") == expected,
        );
    }
}

#[test]
fn a_volume_that_is_held_to_a_rate_is_recognised_until_it_is_not() {
    let id = "volume_limit_bandwidth";
    {
        let mounted = match Mounted::ext4(700 << 20) {
            Ok(mounted) => mounted,
            Err(need) => return skip(need),
        };
        let device = mounted.device_name();
        let number = std::fs::read_to_string(format!("/sys/block/{device}/dev")).unwrap();
        let group = match Cgroup::v1_read_rate(number.trim(), 100 << 20) {
            Ok(group) => group,
            Err(need) => return skip(need),
        };
        let ask = || {
            Ok(DiskSurvey {
                survey: whole_survey(group.command(TERRACE), mounted.path()),
                device: device.clone(),
                has_swap: false,
            })
        };
        until(None, ask, |held| held.findings(id) == 1);
    }
    let free = match as_it_is() {
        Ok(free) => free,
        Err(need) => return skip(need),
    };
    until(
        Some(free),
        || DiskSurvey::make("0"),
        |free| findings(&free.survey, id).is_empty() && !unchecked(&free.survey, id),
    );
}
