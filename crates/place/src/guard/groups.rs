//! What the control groups of targets may still take: the tightest of the own group and all
//! above it. Groups without a limit are not read again.

use crate::workingset::targets::Target;
use machine::Root;
use machine::cgroup::{self, Controller, Place};
use machine::mounts;
use model::Bytes;

/// The limited groups of some targets.
#[derive(Debug, Default)]
pub(super) struct Groups {
    limited: Vec<Limited>,
    /// For each target the index of its group, if that or one above has a limit.
    of_target: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Limited {
    place: Place,
    room: Bytes,
}

impl Groups {
    /// Finds those of `targets`.
    pub(super) fn of(root: &Root, targets: &[Target]) -> Self {
        let mounts = mounts::read(root);
        let mut groups = Self::default();
        let mut known: Vec<(Place, Option<usize>)> = Vec::new();
        for target in targets {
            let membership = root.read(format!("/proc/{}/cgroup", target.pid));
            let place = membership
                .ok()
                .and_then(|text| cgroup::locate(&mounts, &text, Controller::Memory));
            let Some(place) = place else {
                groups.of_target.push(None);
                continue;
            };
            let seen = known.iter().find(|(other, _)| *other == place);
            let index = seen.map_or_else(|| groups.add(root, &place), |(_, index)| *index);
            groups.of_target.push(index);
            known.push((place, index));
        }
        groups
    }

    /// The index of a group that is new; `None` if nothing limits it.
    fn add(&mut self, root: &Root, place: &Place) -> Option<usize> {
        let room = room(root, place)?;
        let place = place.clone();
        self.limited.push(Limited { place, room });
        Some(self.limited.len() - 1)
    }

    /// Reads them again.
    pub(super) fn read(&mut self, root: &Root) {
        for group in &mut self.limited {
            // One that is gone, or has no limit any more, holds nobody back.
            group.room = room(root, &group.place).unwrap_or(Bytes(u64::MAX));
        }
    }

    /// What may be brought for a target; `None` if nothing limits it.
    pub(super) fn room(&self, target: u32) -> Option<Bytes> {
        let index = (*self.of_target.get(target as usize)?)?;
        Some(self.limited[index].room)
    }
}

fn room(root: &Root, place: &Place) -> Option<Bytes> {
    cgroup::memory_limits_at(root, place)
        .iter()
        .filter_map(cgroup::MemoryLimit::room)
        .min()
}
