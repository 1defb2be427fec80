//! Memory came from another node than the processor that asked for it.
//!
//! The nodes count where pages were given, for the whole machine; what the distance cost is
//! an estimate, as nothing counts the accesses.

use super::run_view::{part_of, ratio};
use super::{RunVerdict, RunView};
use crate::verdict::NoFinding;
use crate::wording::{count, percent};
use model::explanation::Cause;
use model::{Evidence, Finding, Grade};

/// The least share of pages from another node. Picked: a machine that works well gives a
/// few in a hundred.
const LEAST_REMOTE: f64 = 0.2;

/// The least number of pages: 64 MiB.
const LEAST_PAGES: u64 = 16_384;

/// What remote memory adds to the time of a program that mostly waits for memory. Picked:
/// remote reads take 1.5 to 2 times as long, and not all time is waiting.
const COST_SHARE: f64 = 0.3;

/// The counters of all nodes begin with this, and end with one of the next.
const NODES: &str = "numa.node";
const LOCAL_NODE: &str = ".local_node";
const OTHER_NODE: &str = ".other_node";
const MISS: &str = ".numa_miss";

pub(super) fn check(run: &RunView) -> RunVerdict {
    let (first, last) = run.samples();
    let nodes = run
        .starting_with(NODES)
        .filter(|series| series.schema.name.ends_with(LOCAL_NODE))
        .filter(|series| series.growth(first, last).is_some());
    if nodes.count() < 2 {
        return Err(NoFinding::Nothing);
    }
    let local = run.growth_between(NODES, LOCAL_NODE).unwrap_or(0);
    let remote = run.growth_between(NODES, OTHER_NODE).ok_or(NoFinding::Nothing)?;
    let share = ratio(remote as f64, local.saturating_add(remote) as f64);
    let measured = pages(run, "numa other_node", remote, OTHER_NODE);
    let ns = part_of(run.run_ns(), share * COST_SHARE);
    if share < LEAST_REMOTE || remote < LEAST_PAGES || !run.hurts(ns) {
        return Err(NoFinding::Cleared(measured));
    }
    let claim = format!(
        "{} of new pages ({}) lie on another node than the processor that asked",
        percent(share),
        count(remote),
    );
    let local = pages(run, "numa local_node", local, LOCAL_NODE);
    let missed =
        run.growth_between(NODES, MISS).map(|missed| pages(run, "numa_miss", missed, MISS));
    let evidence = [measured, local].into_iter().chain(missed);
    let finding = Finding::new(Grade::Inferred, claim, evidence)
        .remedy(
            "Bind the program and its memory to one node (numactl). Risk: it then has only that \
             node's processors and memory.",
        )
        .confirm("terrace measure memlat");
    Ok(Cause::new(Some(ns), finding))
}

/// A count of all nodes as evidence.
fn pages(run: &RunView, name: &str, pages: u64, suffix: &str) -> Evidence {
    Evidence::new(name, pages as f64, "pages", "numastat").seen_in(run.names_between(NODES, suffix))
}
