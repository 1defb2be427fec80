//! Anonymous memory comes back from a real swap area, whole and under its guard. Needs root,
//! room for swap on the disk, and memory groups of version 1.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use machine::Root;
use model::{Bytes, Control};
use place::background::StopReason;
use place::workingset::restore::RestoreMethod;
use place::workingset::restore::{self, RestoreReport, RestoreRequest};
use std::num::NonZero;
use std::process::{Child, Command};
use support::{SET_BYTES, Toucher, alone, number, request};

/// The test that the toucher is started by.
const TOUCHER: &str = "the_toucher";

#[test]
fn the_toucher() {
    support::serve();
}

/// A toucher in swap, or the test is skipped.
macro_rules! toucher {
    () => {
        match Toucher::swapped_out(TOUCHER, SET_BYTES, &[]) {
            Ok(toucher) => toucher,
            Err(need) => return testkit::skip(need),
        }
    };
}

fn restored(request: &RestoreRequest, progress: &mut dyn FnMut(u32)) -> RestoreReport {
    restored_at(&Root::system(), request, progress)
}

/// Plans and restores; calls `progress` with the number of each batch.
fn restored_at(
    root: &Root,
    request: &RestoreRequest,
    progress: &mut dyn FnMut(u32),
) -> RestoreReport {
    let plan = restore::plan(root, request).unwrap();
    let mut batch = 0;
    let report = restore::carry_out(root, request, plan, &mut |_| {
        batch += 1;
        progress(batch);
        Control::Continue
    });
    report.unwrap()
}

fn pages() -> u64 {
    SET_BYTES / sys::process::page_bytes() as u64
}

#[test]
fn each_way_brings_every_page_back_whole() {
    let _alone = alone();
    let mut toucher = toucher!();
    let ways = [
        None,
        Some(RestoreMethod::RemoteRead),
        Some(RestoreMethod::RemoteReaders(4)),
        Some(RestoreMethod::WillNeed),
    ];
    for method in ways {
        toucher.push_out();
        let report = restored(&RestoreRequest { method, ..request(toucher.pid()) }, &mut |_| {});
        assert_eq!(report.stop, StopReason::Done);
        let asked: u64 = report.parts.iter().map(|part| part.pages).sum();
        let present: u64 = report.parts.iter().map(|part| part.present_pages).sum();
        assert!(asked >= pages(), "{asked} pages were in swap");
        // A machine that takes cold pages by itself may have taken a few of them again.
        let few = asked / 100;
        assert!(present + few >= asked, "{method:?}: {present} of {asked}");
        let touched = toucher.touch();
        assert_eq!(touched.wrong_pages, 0, "{method:?}");
        assert!(touched.major_faults <= few, "{method:?}: {touched:?}");
    }
    // What would have been without: the test of the test.
    toucher.push_out();
    let touched = toucher.touch();
    assert_eq!(touched.wrong_pages, 0);
    assert!(touched.major_faults > pages() / 64, "{touched:?}");
}

/// A program that does nothing but run; ended on drop.
struct Spinner(Child);

impl Spinner {
    fn start() -> Self {
        let mut shell = Command::new("sh");
        Self(shell.args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn beside_a_busy_processor_it_takes_its_share_and_no_more() {
    /// Of all processors; see `restore/share.rs`.
    const SHARE: f64 = 0.2;
    /// What follows the last batch that is counted is not paused for.
    const SLACK: f64 = 1.3;
    let _alone = alone();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    // Of more, one reader takes no more than its share anyway.
    if !(2..=3).contains(&processors) {
        return testkit::skip("2 or 3 processors");
    }
    let mut toucher = match Toucher::swapped_out(TOUCHER, 4 * SET_BYTES, &[]) {
        Ok(toucher) => toucher,
        Err(need) => return testkit::skip(need),
    };
    let _busy = Spinner::start();
    // After each batch: the time, and the processor time of all threads.
    let mut seen = Vec::new();
    let report = restored(&request(toucher.pid()), &mut |_| {
        let usage = sys::usage::process().unwrap();
        seen.push((sys::clock::now_ns(), usage.cpu_ns()));
    });
    assert_eq!(report.stop, StopReason::Done);
    let ((start_ns, used_before_ns), (end_ns, used_ns)) = (seen[0], seen[seen.len() - 1]);
    let share = (used_ns - used_before_ns) as f64 / (end_ns - start_ns) as f64 / processors as f64;
    assert!(report.paused_ns > 0);
    assert!(share < SHARE * SLACK, "{share} in {} batches", seen.len());
    assert_eq!(toucher.touch().wrong_pages, 0);
    toucher.push_out();
    let mut hurried = request(toucher.pid());
    hurried.limits.hurry = true;
    assert_eq!(restored(&hurried, &mut |_| {}).paused_ns, 0);
}

#[test]
fn a_process_that_ends_on_the_way_is_no_failure() {
    let _alone = alone();
    let mut toucher = toucher!();
    let request = request(toucher.pid());
    let report = restored(&request, &mut |batch| {
        if batch == 1 {
            toucher.kill();
        }
    });
    assert_eq!(report.stop, StopReason::SourceGone);
    let part = &report.parts[0];
    assert_eq!((part.present_pages, part.gone_pages), (0, part.pages));
}

#[test]
fn a_process_that_becomes_another_program_is_no_failure() {
    let _alone = alone();
    let mut toucher = toucher!();
    let request = request(toucher.pid());
    let report = restored(&request, &mut |batch| {
        if batch == 1 {
            toucher.exec();
        }
    });
    let part = &report.parts[0];
    assert_eq!(part.gone_pages, part.pages, "{report:?}");
}

#[test]
fn swap_that_is_switched_off_on_the_way_ends_it() {
    let _alone = alone();
    let mut toucher = toucher!();
    // A batch takes half of the room in the group at most: one is not all, however fast the disk
    // is.
    let limit = SET_BYTES + SET_BYTES / 4;
    let limit_file = toucher.group.path().join("memory.limit_in_bytes");
    std::fs::write(limit_file, limit.to_string()).unwrap();
    let mut swap = toucher.swap.take();
    let request = request(toucher.pid());
    let report = restored(&request, &mut |batch| {
        if batch == 1 {
            drop(swap.take());
        }
    });
    assert_eq!(report.stop, StopReason::SourceGone);
    assert_eq!(toucher.touch().wrong_pages, 0);
}

#[test]
fn a_group_is_filled_up_to_its_limit_and_never_made_to_reclaim() {
    let _alone = alone();
    let toucher = toucher!();
    let group = toucher.group.path();
    let limit = SET_BYTES / 2;
    std::fs::write(group.join("memory.limit_in_bytes"), limit.to_string()).unwrap();
    let met_before = number(group, "memory.failcnt");
    let report = restored(&request(toucher.pid()), &mut |_| {});
    assert_eq!(report.stop, StopReason::GroupLimit);
    assert_eq!(number(group, "memory.failcnt"), met_before);
    let used = number(group, "memory.usage_in_bytes");
    assert!(used > limit / 2 && used <= limit, "{used} of {limit}");
    let part = &report.parts[0];
    assert_eq!(part.present_pages, part.pages, "nothing was thrown out");
}

#[test]
fn a_budget_of_bytes_is_kept() {
    let _alone = alone();
    let toucher = toucher!();
    let mut request = request(toucher.pid());
    request.limits.bytes = Some(Bytes(SET_BYTES / 4));
    let report = restored(&request, &mut |_| {});
    assert_eq!(report.stop, StopReason::Budget);
    let bytes: u64 = report.parts.iter().map(|part| part.bytes).sum();
    assert_eq!(bytes, SET_BYTES / 4);
}

#[test]
fn who_is_named_first_comes_first() {
    let _alone = alone();
    let one = toucher!();
    let other = toucher!();
    for first in [one.pid(), other.pid()] {
        one.push_out();
        other.push_out();
        let mut request = request(one.pid());
        request.selection =
            place::workingset::targets::Selection::Processes(vec![one.pid(), other.pid()]);
        request.first = vec![first];
        request.limits.bytes = Some(Bytes(SET_BYTES / 2));
        restored(&request, &mut |_| {});
        let present = |toucher: &Toucher| {
            let path = format!("/proc/{}/status", toucher.pid());
            let status = std::fs::read_to_string(path).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            let kib = line.unwrap().trim().trim_end_matches(" kB");
            kib.parse::<u64>().unwrap() * 1024
        };
        let (named, unnamed) = if first == one.pid() {
            (present(&one), present(&other))
        } else {
            (present(&other), present(&one))
        };
        assert!(named >= SET_BYTES / 2 - (1 << 20), "{named} bytes");
        assert!(unnamed < SET_BYTES / 4, "{unnamed} bytes");
    }
}
