//! What all processes together used of a quantity, by the recording's series: what is left of it
//! without those that are named is "others".

use super::quantity::Quantity;
use crate::recording::View;
use crate::recording::accounting::PROCESSORS_RUN;
use model::recording::{DeviceKind, ProcessFigure as Figure};

/// The page size of a recording that does not have it.
const USUAL_PAGE_BYTES: u64 = 4096;

/// What all processes of the machine used; `None` where no series says so.
pub fn of_machine(view: &View, quantity: Quantity) -> Option<u64> {
    let pages = |name: &str| Some(view.growth(name)?.saturating_mul(page_bytes(view)));
    match quantity {
        Quantity::Figure(Figure::Cpu) => view.growth_of_all(&PROCESSORS_RUN),
        Quantity::Figure(Figure::Queue) => view.growth("schedstat.queue_ns"),
        Quantity::Figure(Figure::ReadBytes) => disks(view, "read_bytes"),
        Quantity::Figure(Figure::WrittenBytes) => pages("vmstat.nr_dirtied"),
        Quantity::Figure(Figure::MajorFaults) => view.growth("vmstat.pgmajfault"),
        Quantity::Figure(Figure::MinorFaults) => {
            let major = view.growth("vmstat.pgmajfault")?;
            Some(view.growth("vmstat.pgfault")?.saturating_sub(major))
        }
        Quantity::Figure(Figure::Refaulted) => pages("vmstat.workingset_refault_file"),
        Quantity::Figure(Figure::SwappedIn) => pages("vmstat.pswpin"),
        // Pages come into the cache by reads from devices and by writes of programs.
        Quantity::Figure(Figure::CacheAdded) => {
            let read = disks(view, "read_bytes")?;
            Some(read.saturating_add(pages("vmstat.nr_dirtied").unwrap_or(0)))
        }
        Quantity::CacheFilled => {
            let added = of_machine(view, Quantity::Figure(Figure::CacheAdded))?;
            let again = of_machine(view, Quantity::Figure(Figure::Refaulted)).unwrap_or(0);
            Some(added.saturating_sub(again))
        }
        Quantity::DeviceBytes => {
            let (read, written) = (disks(view, "read_bytes")?, disks(view, "write_bytes")?);
            Some(read.saturating_add(written))
        }
        Quantity::MemoryGrowth => anonymous_growth(view),
        Quantity::Figure(Figure::BlockWait | Figure::Reclaim)
        | Quantity::MemoryHeld
        | Quantity::LackOfMemory => None,
        // Samples are those of the subject.
        Quantity::Sampled(_) | Quantity::SampledKernel => of_subject(view, quantity),
    }
}

/// What all processes of the subject used; `None` where no series says so.
pub fn of_subject(view: &View, quantity: Quantity) -> Option<u64> {
    let largest = |names: [&str; 2]| {
        let both = [view.sum(names[0]), view.growth(names[1])];
        both.into_iter().flatten().max()
    };
    match quantity {
        Quantity::Figure(Figure::Cpu) => largest(["trace.sched.run_ns", "tree.run_ns"]),
        Quantity::Figure(Figure::Queue) => largest(["trace.sched.queue_ns", "tree.queue_ns"]),
        Quantity::Figure(Figure::BlockWait) => {
            largest(["trace.sched.block_io_ns", "tree.block_io_ns"])
        }
        Quantity::Figure(Figure::Reclaim) => {
            let parts = ["trace.vmscan.direct_reclaim_ns", "trace.vmscan.throttled_ns"];
            let known = parts.iter().filter_map(|name| view.sum(name));
            known.reduce(u64::saturating_add)
        }
        Quantity::Figure(Figure::ReadBytes) => view.growth("tree.read_bytes"),
        Quantity::Figure(Figure::WrittenBytes) => view.growth("tree.write_bytes"),
        Quantity::Figure(Figure::MajorFaults) => view.growth("tree.major_faults"),
        Quantity::Figure(Figure::MinorFaults) => view.growth("tree.minor_faults"),
        Quantity::Sampled(part) => view.sum(&format!("trace.cpu.{}", part.id())),
        Quantity::SampledKernel => {
            let user = view.sum("trace.cpu.in.user").unwrap_or(0);
            Some(view.sum("trace.cpu.samples")?.saturating_sub(user))
        }
        _ => None,
    }
}

/// What all devices that are made of no others moved: a loop device and the disk below it move
/// the same bytes.
fn disks(view: &View, what: &str) -> Option<u64> {
    let is_disk = |name: &str| {
        let known = view.facts().devices.iter().find(|device| device.name == name);
        known.map_or(!name.starts_with("zram"), |device| device.kind == DeviceKind::Disk)
    };
    let suffix = format!(".{what}");
    let names = view.names_between("disk.", &suffix).into_iter();
    let moved = names.filter_map(|series| {
        let name = series.strip_prefix("disk.")?.strip_suffix(&suffix)?;
        is_disk(name).then(|| view.growth(series)).flatten()
    });
    moved.reduce(u64::saturating_add)
}

/// By how much all memory of processes grew, with what of it was swapped.
fn anonymous_growth(view: &View) -> Option<u64> {
    let level = |at: &dyn Fn(&str) -> Option<i64>| {
        let swapped = match (at("meminfo.SwapTotal"), at("meminfo.SwapFree")) {
            (Some(total), Some(free)) => total.saturating_sub(free),
            _ => 0,
        };
        Some(at("meminfo.AnonPages")?.saturating_add(swapped))
    };
    let start = level(&|name| view.at_start(name))?;
    let end = level(&|name| view.at_end(name))?;
    u64::try_from(end.saturating_sub(start)).ok()
}

fn page_bytes(view: &View) -> u64 {
    match view.facts().page_bytes {
        0 => USUAL_PAGE_BYTES,
        bytes => bytes,
    }
}
