//! A set of anonymous memory in swap: evicted by hogs, restored, touched at random, compared.
//! The content must not depend on the way of restoring: every byte is compared afterwards.

use serde_json::json;
use testkit::WorkingSet;

use crate::system::{self, Swap};
use crate::{Outcome, write_result};

/// Each way once, on a swap area made for it.
pub(crate) fn scene(mib: &str, layout: &str, hog: &str, ways: &[&str]) -> Outcome<()> {
    // A huge page would put 512 neighbours into neighbouring slots whatever the layout.
    system::write("/sys/kernel/mm/transparent_hugepage/enabled", "never")?;
    for way in ways {
        one(mib, layout, hog, way)?;
    }
    Ok(())
}

fn one(mib: &str, layout: &str, hog: &str, way: &str) -> Outcome<()> {
    let mib = mib.parse().map_err(system::failed(mib))?;
    let swap = Swap::on(system::SWAP)?;
    let mut toucher = WorkingSet::start("terrace", mib, layout)?;
    let swapped = system::push_out(toucher.pid(), mib << 8, hog)?;
    rehearse()?;
    let (moving_s, report) = system::bring_back(way, &[toucher.pid()], &["--only", "anonymous"])?;
    let [touch_ns, wrong_words, faults] = toucher.touch()?;
    let wrong_pages = toucher.wrong_pages()?;
    drop(toucher);
    drop(swap);
    let touch_s = touch_ns as f64 / 1e9;
    write_result(&json!({
        "way": way,
        "total_s": moving_s + touch_s,
        "moving_s": moving_s,
        "touch_s": touch_s,
        "swapped_pages": swapped,
        "major_faults": faults,
        "wrong_pages": wrong_words + wrong_pages,
        "report": report,
    }))
}

/// A small set there and back. The hogs pushed programs out as well, and the emulator translates a
/// program when it runs for the first time: neither is what is measured.
fn rehearse() -> Outcome<()> {
    let mut small = WorkingSet::start("terrace", 1, "contiguous")?;
    let pid = small.pid();
    system::run(&["terrace", "warm", "evict", &pid.to_string()])?;
    system::bring_back("restore", &[pid], &["--only", "anonymous"])?;
    small.touch().map(drop)
}
