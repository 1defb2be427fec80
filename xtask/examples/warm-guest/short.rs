//! Memory gets short again during a restore: a bystander works in a set of its own all the
//! time, and a hog comes in the middle.
//!
//! Two rounds. In the first nothing disturbs the restore: the bystander's work beside it is
//! compared with its work alone, before and after. In the second a hog takes memory while the
//! restore is under way; a witness looks every few milliseconds for the first sign that the guard
//! promises to heed.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::WorkingSet;

use crate::system::{self, PAGE, Running, Swap, counted, failed};
use crate::{Outcome, write_result};

/// What the bystander works in.
const BYSTANDER_MIB: u64 = 16;
/// Between two rounds of its work, each over all pages.
const REST: Duration = Duration::from_millis(10);
/// Between two looks of the witness.
const LOOK: Duration = Duration::from_millis(5);
/// The hog comes when so much of the set is back.
const SHARE_BACK: f64 = 0.2;
/// The guard's floor: a 16th of the memory.
const FLOOR_PART: u64 = 16;

/// A set of `mib` brought back beside a bystander, then with a hog of `hog` besides.
pub(crate) fn scene(mib: &str, hog: &str) -> Outcome<()> {
    system::write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    let killed_before = oom_kills()?;
    let mut bystander = WorkingSet::start("terrace", BYSTANDER_MIB, "contiguous")?;
    let mib = mib.parse().map_err(failed(mib))?;
    undisturbed(&mut bystander, mib, hog)?;
    short_again(&mut bystander, mib, hog)?;
    write_result(&json!({ "way": "all", "oom_kills": oom_kills()? - killed_before }))
}

/// A set in swap.
struct Out {
    toucher: WorkingSet,
    _swap: Swap,
}

impl Out {
    fn pushed(mib: u64, hog: &str) -> Outcome<Self> {
        let swap = Swap::on(system::SWAP)?;
        let toucher = WorkingSet::start("terrace", mib, "scattered")?;
        system::push_out(toucher.pid(), mib << 8, hog)?;
        Ok(Self { toucher, _swap: swap })
    }

    fn restore(&self) -> Outcome<Running> {
        let pid = self.toucher.pid().to_string();
        let mut command = Command::new("terrace");
        command.args(["warm", "restore", "--pid", &pid, "--only", "anonymous", "--json"]);
        Running::start(command.stdout(Stdio::piped()))
    }
}

/// The bystander's pace while nothing else happens, and beside the restore.
fn undisturbed(bystander: &mut WorkingSet, mib: u64, hog: &str) -> Outcome<()> {
    let mut out = Out::pushed(mib, hog)?;
    // What the hogs took of its own comes back first.
    bystander.touch()?;
    let before = rounds(bystander, |elapsed| elapsed < Duration::from_secs(3))?;
    let mut restore = out.restore()?;
    let beside = rounds(bystander, |_| restore.runs())?;
    let report = report(restore)?;
    let after = rounds(bystander, |elapsed| elapsed < Duration::from_secs(3))?;
    let wrong = out.toucher.wrong_pages()?;
    write_result(&json!({
        "way": "undisturbed",
        "slowed": mean(&beside) / ((mean(&before) + mean(&after)) / 2.0),
        "alone_round_s": [mean(&before), mean(&after)],
        "beside_round_s": mean(&beside),
        "rounds_beside": beside.len(),
        "wrong_pages": wrong,
        "report": report,
    }))
}

/// Seconds of each round of the bystander's work while `goes_on`; at least one. It rests between
/// them, as a program does that waits for a person.
fn rounds(
    bystander: &mut WorkingSet,
    mut goes_on: impl FnMut(Duration) -> bool,
) -> Outcome<Vec<f64>> {
    let (started, mut rounds) = (Instant::now(), Vec::new());
    while rounds.is_empty() || goes_on(started.elapsed()) {
        let touched = bystander.touch()?;
        if touched[1] != 0 {
            return Err(format!("the bystander touched {touched:?}"));
        }
        rounds.push(touched[0] as f64 / 1e9);
        thread::sleep(REST);
    }
    Ok(rounds)
}

/// From the first sign of shortness to the end of the restore.
fn short_again(bystander: &mut WorkingSet, mib: u64, hog: &str) -> Outcome<()> {
    let mut out = Out::pushed(mib, hog)?;
    bystander.touch()?;
    let floor = system::meminfo_bytes("MemTotal:")? / FLOOR_PART;
    let mut restore = out.restore()?;
    let wanted = (mib << 8) as f64 * (1.0 - SHARE_BACK);
    while system::swapped_pages(out.toucher.pid())? as f64 > wanted {
        thread::sleep(LOOK);
    }
    let mut command = Command::new("terrace");
    command.args(["hog", "--size", hog, "--count", "2", "--repeat", "1", "--json"]);
    let mut hogs = Running::start(command.stdout(Stdio::null()))?;
    let reclaims = direct_reclaims()?;
    let (mut sign, mut swapped) = (None, 0);
    while restore.runs() {
        let available = system::meminfo_bytes("MemAvailable:")?;
        if sign.is_none() && (available <= floor || direct_reclaims()? > reclaims) {
            sign = Some(Instant::now());
            swapped = system::swapped_pages(out.toucher.pid())?;
        }
        thread::sleep(LOOK);
    }
    let stopped_s = sign.map(|sign| sign.elapsed().as_secs_f64());
    let report = report(restore)?;
    let hogs_ended = hogs.0.wait().map_err(failed("terrace hog"))?;
    // The rest, before every byte of it is looked at: what does not come takes 13 ms a page.
    let _ = system::bring_back("restore", &[out.toucher.pid()], &["--only", "anonymous"]);
    let wrong = out.toucher.wrong_pages()?;
    write_result(&json!({
        "way": "short",
        "stopped_s": stopped_s,
        "stop": report["result"]["done"]["stop"],
        "left_mib": (swapped * PAGE) >> 20,
        "hogs_ended_well": hogs_ended.success(),
        "wrong_pages": wrong,
        "report": report,
    }))
}

/// What a restore reported; that it stopped early is no failure.
fn report(mut restore: Running) -> Outcome<Value> {
    serde_json::from_slice(&restore.output()?.stdout).map_err(failed("the report"))
}

fn oom_kills() -> Outcome<u64> {
    counted(|name| name == "oom_kill")
}

fn direct_reclaims() -> Outcome<u64> {
    counted(|name| name.starts_with("allocstall"))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
