//! What a survey finds on machines that are made odd for it, and that the finding
//! goes when the remedy is applied. Needs root: control groups, a swap file, a loop
//! device of its own. The surveys run one at a time, since they would be each
//! other's noise.
// Helpers of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::{TERRACE, run};
use testkit::{Cgroup, Mounted, SwapArea, skip};

/// Others on this machine may take the disk or the processors meanwhile; then no rate is flat.
const ATTEMPTS: usize = 3;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The JSON of a quick survey by `command`, which may run it inside a group.
fn survey(mut command: Command, path: Option<&Path>) -> Value {
    command.args(["survey", "--no-keep", "--quick"]);
    finish(command, path)
}

/// The JSON of a whole survey: a slow device needs its time for error bars.
fn whole_survey(mut command: Command, path: &Path) -> Value {
    command.args(["survey", "--no-keep"]);
    finish(command, Some(path))
}

fn finish(mut command: Command, path: Option<&Path>) -> Value {
    command.arg("--json");
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

/// The first survey of a few for which `is_it` holds; what each other one found is printed.
#[track_caller]
fn until(ask: impl Fn() -> Value, is_it: impl Fn(&Value) -> bool) -> Value {
    for attempt in 1..=ATTEMPTS {
        let seen = ask();
        if is_it(&seen) {
            return seen;
        }
        println!(
            "attempt {attempt}: {:#} {:#}",
            seen["findings"], seen["unchecked"]
        );
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
    let _alone = alone();
    let group = match Cgroup::v1_cpu(30_000, 100_000) {
        Ok(group) => group,
        Err(need) => return skip(need),
    };
    let limited = survey(group.command(TERRACE), None);
    let found = findings(&limited, "processor_throttled");
    assert_eq!(found.len(), 1, "{}", limited["findings"]);
    let name = group.path().file_name().unwrap().to_string_lossy();
    assert!(found[0].to_string().contains(&*name), "{}", found[0]);
    let free = survey(plain(), None);
    assert_eq!(findings(&free, "processor_throttled").len(), 0);
}

#[test]
fn a_memory_limit_shrinks_the_buffers_and_kills_no_process() {
    let _alone = alone();
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
    assert!(
        faults["result"]["limited_by"]
            .to_string()
            .contains("terrace-test")
    );
}

#[test]
fn a_machine_without_swap_has_a_finding_until_there_is_some() {
    let _alone = alone();
    let areas = std::fs::read_to_string("/proc/swaps").unwrap();
    if areas.lines().count() > 1 {
        return skip("a machine without swap");
    }
    let without = survey(plain(), None);
    assert_eq!(findings(&without, "no_swap").len(), 1);
    assert!(tier(&without, "swap").is_none());
    let _swap = match SwapArea::on(64 << 20) {
        Ok(swap) => swap,
        Err(need) => return skip(need),
    };
    let with = survey(plain(), None);
    assert_eq!(findings(&with, "no_swap").len(), 0);
    let tier = tier(&with, "swap").unwrap();
    assert!(tier["capacity_bytes"].as_u64().unwrap() > 60 << 20);
    // Root reads the area itself; the page cache would answer in a microsecond.
    let latency = tier["latency_ns"]["median"].as_f64().unwrap();
    assert!(latency > 2_000.0, "{tier}");
}

#[test]
fn a_swap_file_that_is_only_reserved_has_no_latency() {
    let _alone = alone();
    let area = match SwapArea::reserved(64 << 20) {
        Ok(area) => area,
        Err(need) => return skip(need),
    };
    let seen = survey(plain(), None);
    let tiers = seen["tiers"].as_array().unwrap();
    let path = area.path().display().to_string();
    let name = |tier: &&Value| tier["name"].as_str().unwrap().ends_with(&path);
    let tier = tiers.iter().find(name).unwrap();
    assert!(tier["latency_ns"].is_null(), "{tier}");
    assert!(tier["reason"].to_string().contains("reserved"), "{tier}");
}

#[test]
fn a_wrong_rotational_flag_is_found_until_it_is_corrected() {
    let _alone = alone();
    let mounted = match Mounted::ext4(700 << 20) {
        Ok(mounted) => mounted,
        Err(need) => return skip(need),
    };
    let flag = mounted.queue_setting("rotational");
    for (value, expected) in [("1", 1), ("0", 0)] {
        std::fs::write(&flag, value).unwrap();
        let name = mounted.device_name();
        let about_it = |seen: &Value| {
            let found = findings(seen, "device_flag_at_odds").into_iter();
            found
                .filter(|finding| finding.to_string().contains(&name))
                .count()
        };
        until(
            || survey(plain(), Some(mounted.path())),
            |seen| about_it(seen) == expected,
        );
    }
}

#[test]
fn a_volume_that_is_held_to_a_rate_is_recognised_until_it_is_not() {
    let _alone = alone();
    let mounted = match Mounted::ext4(1500 << 20) {
        Ok(mounted) => mounted,
        Err(need) => return skip(need),
    };
    let name = mounted.device_name();
    let number = std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    let group = match Cgroup::v1_read_rate(number.trim(), 100 << 20) {
        Ok(group) => group,
        Err(need) => return skip(need),
    };
    let id = "volume_limit_bandwidth";
    let held = until(
        || whole_survey(group.command(TERRACE), mounted.path()),
        |held| findings(held, id).len() == 1,
    );
    let claim = findings(&held, id)[0]["claim"].to_string();
    assert!(claim.contains(&name), "{claim}");
    until(
        || whole_survey(plain(), mounted.path()),
        |free| findings(free, id).is_empty() && !unchecked(free, id),
    );
}
