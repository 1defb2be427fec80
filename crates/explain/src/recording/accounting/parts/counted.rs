//! Parts by counters that count something else than this time: what a wait was for by the
//! bytes that moved, how often pages came back, how long a group was held.

use super::{Part, Parts};
use crate::recording::accounting::threads::TASKSTATS;
use crate::recording::{View, limited};
use model::explanation::{TimePart, TimeSlice};
use model::{Evidence, Grade};

/// Written bytes are few beside read ones below one in so many; then the waits were for
/// reads.
const FEW: u64 = 10;

/// Without events, what a wait for block I/O was for: reads where little was written, else
/// it is not said. Writers who are held back because too much is dirty are charged block
/// I/O as well, so waits without reads are no reads.
pub(super) fn block_io(parts: &mut Parts) {
    let Some(waited) = parts.slice(TimeSlice::BlockIo).filter(|ns| *ns > 0) else {
        return;
    };
    let Some((read, written, source)) = moved(parts) else {
        return;
    };
    let view = parts.view;
    let mut evidence = vec![
        Evidence::bytes("read_bytes", read, source).seen_in(["tree.read_bytes"]),
        Evidence::bytes("write_bytes", written, source).seen_in(["tree.write_bytes"]),
    ];
    if read > 0 && written <= read / FEW {
        let (swapped, swap_counter) = swapped_in_bytes(view);
        let swapped = swapped.min(read);
        let of_waited = |part: u64| {
            let ns = u128::from(waited) * u128::from(part) / u128::from(read);
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let swap_ns = of_waited(swapped);
        if swapped > 0 {
            evidence.push(Evidence::bytes(swap_counter, swapped, view.source(swap_counter)));
        }
        let block_read = inferred(TimePart::BlockRead, waited - swap_ns, evidence.clone());
        parts.add(block_read);
        parts.add(inferred(TimePart::SwapIn, swap_ns, evidence));
    } else if read == 0 && written > 0 {
        parts.add(inferred(TimePart::BlockWrite, waited, evidence));
    }
}

fn inferred(name: TimePart, ns: u64, evidence: Vec<Evidence>) -> Part {
    Part::new(name, TimeSlice::BlockIo, ns, Grade::Inferred, evidence)
}

/// Bytes read from and written to devices by the subject, and who says so.
fn moved<'a>(parts: &Parts<'a>) -> Option<(u64, u64, &'a str)> {
    if let Some(rows) = &parts.sources.rows {
        return Some((rows.read_bytes, rows.write_bytes, TASKSTATS));
    }
    let view = parts.view;
    let read = view.growth("tree.read_bytes")?;
    let written = view.growth("tree.write_bytes")?;
    Some((read, written, view.source("tree.read_bytes")))
}

/// Bytes that came back from swap: of the group made for the subject, else of the machine.
fn swapped_in_bytes(view: &View) -> (u64, &'static str) {
    let own = "group0.memory.stat.pswpin";
    let all = "vmstat.pswpin";
    let name = if own_group(view) && view.series(own).is_some() { own } else { all };
    let pages = view.growth(name).unwrap_or(0);
    (pages.saturating_mul(view.facts().page_bytes), name)
}

/// Whether the group at level 0 holds the subject alone.
fn own_group(view: &View) -> bool {
    let mut groups = view.facts().groups.iter();
    groups.any(|group| group.level == 0 && group.made)
}

/// Pages that came back soon after they were evicted. Their number is certain, their time
/// is not, so a part that delay accounting made gets the number, and one without time is
/// added where it made none.
pub(super) fn refault(parts: &mut Parts) {
    let view = parts.view;
    let group = "group0.memory.stat.workingset_refault";
    let all = "vmstat.workingset_refault";
    let grouped = view.series(&format!("{group}_file")).is_some();
    let prefix = if grouped { group } else { all };
    let mut pages = None;
    let mut evidence = Vec::new();
    for kind in ["file", "anon"] {
        let name = format!("{prefix}_{kind}");
        if let Some(grown) = view.growth(&name) {
            pages = Some(grown.saturating_add(pages.unwrap_or(0)));
            evidence.push(Evidence::count(name.clone(), grown, view.source(&name)));
        }
    }
    let Some(pages) = pages else {
        return;
    };
    let mut found = parts.parts.iter_mut();
    if let Some(part) = found.find(|part| part.name == TimePart::Refault) {
        part.count = Some(pages);
        part.evidence.extend(evidence);
        return;
    }
    parts.add(
        Part::new(TimePart::Refault, TimeSlice::BlockIo, 0, Grade::Inferred, evidence)
            .counted(Some(pages)),
    );
}

/// Time in which a quota kept the group's threads from running: it is in their queue. The
/// tightest group is the one that held them longest; what is held is counted once for each
/// processor, so it is no more than a hint at thread time.
pub(super) fn cpu_limit(parts: &mut Parts) {
    let view = parts.view;
    let groups = view.facts().groups.iter().map(|group| group.level);
    let levels = groups.chain([0]);
    let held = levels.filter_map(|level| {
        let name = format!("group{level}.cpu.throttled_ns");
        view.growth(&name).map(|ns| (ns, level, name))
    });
    let Some((ns, level, name)) = held.max_by_key(|held| (held.0, held.1)) else {
        return;
    };
    let periods = format!("group{level}.cpu.throttled_periods");
    let times = view.growth(&periods);
    let mut evidence = vec![Evidence::time(name.clone(), ns, view.source(&name))];
    evidence.extend(times.map(|n| Evidence::count(periods.clone(), n, view.source(&periods))));
    parts.add(
        Part::new(TimePart::CpuLimit, TimeSlice::Queue, ns, Grade::Inferred, evidence)
            .counted(times),
    );
}

/// The same of every group of the machine that has a limit, together with those that had no
/// series of their own. No longer than all threads were in the queue.
pub(super) fn cpu_limits(parts: &mut Parts) {
    const OTHERS: &str = "limited.others.cpu.throttled_ns";
    let view = parts.view;
    let mut evidence = Vec::new();
    let (mut ns, mut times) = (0u64, 0u64);
    for group in limited::stopped(view) {
        let name = group.series("cpu.throttled_ns");
        if let Some(counted) = view.growth(&name).filter(|counted| *counted > 0) {
            ns = ns.saturating_add(group.stopped_ns(view));
            times = times.saturating_add(group.growth(view, "cpu.throttled_periods").unwrap_or(0));
            evidence.push(Evidence::time(name.clone(), counted, view.source(&name)));
        }
    }
    if let Some(counted) = view.growth(OTHERS).filter(|counted| *counted > 0) {
        ns = ns.saturating_add(counted);
        evidence.push(Evidence::time(OTHERS, counted, view.source(OTHERS)));
    }
    if evidence.is_empty() {
        return;
    }
    let queued = view.sum("trace.sched.queue_ns").unwrap_or(u64::MAX);
    let (part, within) = (TimePart::CpuLimit, TimeSlice::Queue);
    let part = Part::new(part, within, ns.min(queued), Grade::Inferred, evidence);
    parts.add(part.counted(Some(times)));
}
