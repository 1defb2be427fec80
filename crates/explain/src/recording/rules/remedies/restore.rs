//! Memory that an earlier pressure left in swap. Once the pressure is over it can be restored at
//! once, in the order of the disk, instead of page by page when it is used.

use super::super::RunView;
use super::super::limits::reached;
use super::super::swapped::swapped;
use super::change::room;
use crate::wording::shell_word;
use model::explanation::EvictedMemory;
use model::recording::Subject;

/// The pressure is over if at most this part of what came back was evicted meanwhile. Picked.
const MOST_OUT: u64 = 10;

/// What can be restored for this finding: of a process or a group that runs on, which swaps in and
/// not out, below no limit that it reaches, on a machine that has room.
pub(super) fn of(run: &RunView, id: &str) -> Option<EvictedMemory> {
    if id != "swapping" || run.is_machine() || reached(run).is_some() {
        return None;
    }
    let swap = swapped(run)?;
    if swap.ins == 0 || swap.outs > swap.ins / MOST_OUT {
        return None;
    }
    // As much again as came back is the least that may still be there.
    let back = swap.ins.saturating_mul(run.page_bytes());
    room(run)?.filter(|room| *room > back.saturating_mul(2))?;
    let (pid, group) = match &run.facts().subject {
        Subject::Process { pid, .. } => (Some(*pid), None),
        Subject::Group { path, .. } => (None, Some(path.clone())),
        _ => return None,
    };
    let whose = match (pid, &group) {
        (Some(pid), _) => format!("--pid {pid}"),
        (None, group) => format!("--cgroup {}", shell_word(group.as_deref().unwrap_or("/"))),
    };
    Some(EvictedMemory { pid, group, command: format!("terrace warm restore {whose}") })
}
