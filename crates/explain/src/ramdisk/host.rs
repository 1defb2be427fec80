//! The host, which no counter of a guest shows: only the shape of the touches does, and only
//! where nobody else accounts for the lost time.
//!
//! A host that finds memory when it is touched makes some touches 3 to 60 times slower, and the
//! same memory touched again is fast. A host that swaps makes them as slow as a disk, 0.1 to
//! 30 ms. One that backs memory by huge pages is slow once for each 2 MiB, and that is no disk.

use super::ramdisk_view::{RamDiskView, TOUCHES};
use crate::verdict::{Verdict, clear};
use crate::wording::{percent, times};
use model::duration::show_ns;
use model::explanation::Cause;
use model::histogram::Bar;
use model::ramdisk::{Pass, Reason, SLOW};
use model::{Evidence, Finding, Grade};

/// A touch as long as this waited for a device.
const DISK_NS: f64 = 100_000.0;
/// And one as long as this was not only the zeroing of a huge page by the host.
const LONGEST_ZEROING_NS: f64 = 1_000_000.0;
/// The least share of slow touches that is a mode and no tail.
const MODE_SHARE: f64 = 0.05;
/// The least share of touches as long as a disk's; a processor taken away makes fewer.
const DISK_SHARE: f64 = 0.01;
/// New memory must be so many times slower than memory given back a moment ago.
const VANISHED: f64 = 1.4;
/// The part of the lost time that such touches must account for.
const MOST: f64 = 0.5;
/// Pages in a huge page.
const HUGE_PAGES: f64 = 512.0;

/// What it can be the cause by; a number that clears it clears both.
pub(super) const REASONS: [Reason; 2] = [Reason::BackedLazily, Reason::HostOvercommitted];

/// What the shape tells.
enum Shape {
    Lazy,
    Disk,
    Neither,
}

/// Finds the host to be the cause, clears it of both reasons, or says why it cannot be judged;
/// `causes` are those that counters show.
pub(super) fn check(view: &RamDiskView, causes: &[(Reason, Cause)]) -> Verdict<(Reason, Cause)> {
    let is_of_processor =
        |reason: Reason| matches!(reason, Reason::CpuContention | Reason::CpuStolen);
    if causes.iter().any(|(reason, _)| !is_of_processor(*reason)) {
        let why = "a cause that counters show accounts for the time; the host cannot be distinguished from it";
        return Err(why.into());
    }
    let first = view.first.ok_or("nothing was written")?;
    if !view.is_lost() || view.seen.is_guest == Some(false) {
        let slow = first.share_from(view.usual_ns.unwrap_or(0.0) * SLOW);
        return clear(Some(Evidence::new("slow touches", slow, "ratio", TOUCHES)));
    }
    view.seen.is_guest.ok_or("whether there is one is not known")?;
    if view.lost_ns() <= first.elsewhere_ns() as f64 {
        let why =
            "others had the processor for longer than was lost otherwise, which blurs its shape";
        return Err(why.into());
    }
    let (reason, finding) = match shape(view, first) {
        Shape::Lazy => (Reason::BackedLazily, lazy(view, first)),
        Shape::Disk => (Reason::HostOvercommitted, disk(view, first)),
        Shape::Neither => {
            let why = "the slow touches do not have its shape, which does not clear it";
            return Err(why.into());
        }
    };
    Ok((reason, Cause::new(Some(view.lost_ns() as u64), finding)))
}

fn shape(view: &RamDiskView, first: &Pass) -> Shape {
    let usual_ns = view.usual_ns.unwrap_or(0.0);
    let (mut long, mut long_ns, mut longest) = (0u64, 0.0, 0u64);
    for bar in first.bars.iter().filter(|bar| bar.from_ns >= DISK_NS) {
        long += bar.count;
        long_ns += bar.count as f64 * middle(bar);
        longest += if bar.from_ns >= LONGEST_ZEROING_NS { bar.count } else { 0 };
    }
    // Who lost the processor was away for long as well.
    let own_ns = long_ns - first.elsewhere_ns() as f64;
    let long_share = long as f64 / first.touches.max(1) as f64;
    let mostly_long = own_ns >= view.lost_ns() * MOST;
    if mostly_long && long_share >= DISK_SHARE {
        return Shape::Disk;
    }
    let Some(again) = view.again else {
        return Shape::Neither;
    };
    let mean = |pass: &Pass| pass.mean_ns().unwrap_or(0.0);
    let vanished = mean(first) >= mean(again) * VANISHED;
    let bound = usual_ns * SLOW;
    let gone = first.share_from(bound) - again.share_from(bound);
    let by_huge_pages = mostly_long && long_share <= 1.5 / HUGE_PAGES && longest * 2 < long;
    if vanished && (gone >= MODE_SHARE || by_huge_pages) {
        return Shape::Lazy;
    }
    Shape::Neither
}

fn middle(bar: &Bar) -> f64 {
    (bar.from_ns * bar.to_ns).sqrt()
}

fn lazy(view: &RamDiskView, first: &Pass) -> Finding {
    let slow = first.share_from(view.usual_ns.unwrap_or(0.0) * SLOW);
    let again = view.again.and_then(Pass::mean_ns).unwrap_or(0.0);
    let each = first.mean_ns().unwrap_or(0.0);
    let claim = format!(
        "The host finds memory only when it is touched: {} of the touches were slow, no counter \
         of this machine moved, and right after the same memory took {} a page instead of {} ({} \
         times less).",
        percent(slow),
        show_ns(again),
        show_ns(each),
        times(each / again.max(1.0)),
    );
    let mut evidence = view.touch_evidence();
    evidence.push(Evidence::new("slow touches", slow, "ratio", TOUCHES));
    evidence.push(Evidence::new("a page again, mean", again, "ns", TOUCHES));
    Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Touch the memory before it is needed and keep it: write a file as large as the RAM disk \
         is to be, and leave it or fill it anew. Risk: that memory is missing elsewhere; what is \
         freed the host may take back.",
    )
}

fn disk(view: &RamDiskView, first: &Pass) -> Finding {
    let share = first.share_from(DISK_NS);
    let claim = format!(
        "The host swaps or has less memory than it promised: {} of the touches took 0.1 ms or \
         more, as a disk does, and no counter of this machine moved.",
        percent(share)
    );
    let mut evidence = view.touch_evidence();
    evidence.push(Evidence::new("touches of 0.1 ms or more", share, "ratio", TOUCHES));
    Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Ask whoever runs the host for memory that is reserved, or take a smaller RAM disk. \
         Nothing inside of this machine can prove it.",
    )
}
