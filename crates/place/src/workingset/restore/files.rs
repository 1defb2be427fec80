//! Shared memory, files and metadata: what is planned of them, and their reading under the
//! same guard.
//!
//! Files are read from inside of the group of a process that uses them, so that they are
//! charged where they are used; by this process where that is its own group, and for files of a
//! snapshot.

use super::anonymous::GROUP_MARGIN_BYTES;
use super::planning::{Work, in_order_ns, try_area, try_device};
use super::{Course, Done, Part, PartKind, Plan, Request};
use crate::guard::Stop;
use crate::workingset::access::Access;
use crate::workingset::charge::{self, Work as Pieces};
use crate::workingset::files::{self, Identity, NamedFile};
use crate::workingset::read::{self, Read};
use crate::workingset::speed::{Purpose, Speed};
use crate::workingset::targets::Target;
use crate::workingset::{metadata, ranges, shared, snapshot};
use crate::{Kind, Result};
use machine::cgroup::{self, Controller};
use machine::mounts::{self, Mount};
use machine::{Root, swap};
use model::{Bytes, Control};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use sys::clock::now_ns;

/// A file with the ranges that are wanted of it.
type Wanted = (PathBuf, Identity, Vec<Range<u64>>);

/// A control group that uses files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    directory: PathBuf,
    /// A target in it, which stands for all of them.
    target: u32,
    /// Whether this process is in it as well, so that what it reads is charged there.
    is_own: bool,
}

/// Files of one disk that one group uses.
#[derive(Debug)]
pub(super) struct Reading {
    source: String,
    /// `None` for files of a snapshot, which nobody may use.
    group: Option<Group>,
    pieces: Pieces,
    speed: Option<usize>,
}

/// The groups of targets, each asked for once: one process uses many files.
struct Groups<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    targets: &'a [Target],
    /// This process's own.
    own: Option<PathBuf>,
    by_target: HashMap<u32, Option<Group>>,
    /// The first target met in each.
    first: HashMap<PathBuf, u32>,
}

impl<'a> Groups<'a> {
    fn new(root: &'a Root, mounts: &'a [Mount], targets: &'a [Target]) -> Self {
        Self {
            root,
            mounts,
            targets,
            own: group_of(root, mounts, "self"),
            by_target: HashMap::new(),
            first: HashMap::new(),
        }
    }

    /// The group of the target with this index.
    fn of(&mut self, target: u32) -> Option<Group> {
        if let Some(known) = self.by_target.get(&target) {
            return known.clone();
        }
        let pid = self.targets[target as usize].pid;
        let directory = group_of(self.root, self.mounts, pid);
        let group = directory.map(|directory| Group {
            target: *self.first.entry(directory.clone()).or_insert(target),
            is_own: self.own.as_ref() == Some(&directory),
            directory,
        });
        self.by_target.insert(target, group.clone());
        group
    }
}

/// Finds shared memory in swap. That it may not be seen is a note.
pub(super) fn plan_shared(root: &Root, request: &Request, plan: &mut Plan) {
    let objects = match shared::find(root, plan.work.targets()) {
        Ok(objects) => objects,
        Err(error) => {
            plan.notes
                .push(format!("shared memory is left out: {error}"));
            return;
        }
    };
    let ranges = || objects.iter().flat_map(|object| &object.swapped);
    let bytes: u64 = ranges().map(|range| range.end - range.start).sum();
    if bytes > 0 {
        let areas = swap::areas(root);
        // Which of several areas it lies in cannot be seen: shared memory has no slots to look at.
        let only = areas.first().filter(|_| areas.len() == 1);
        let speed = only.and_then(|area| {
            // Its slots are hidden, so where it begins is not known.
            let purpose = Purpose {
                bytes,
                start: None,
                in_order: request.estimate,
            };
            try_area(root, area, purpose, plan)
        });
        let pages = bytes / sys::process::page_bytes() as u64;
        let random_ns = speed.and_then(|index| plan.speeds[index].random_read_ns);
        plan.parts.push(Part {
            kind: PartKind::Shared,
            source: only.map_or_else(|| "swap".to_owned(), |area| area.path.display().to_string()),
            bytes,
            runs: ranges().count() as u64,
            estimated_ns: speed
                .and_then(|at| in_order_ns(&plan.speeds[at], ranges().count() as u64, bytes)),
            by_demand_ns: random_ns.map(|ns| ns.saturating_mul(pages)),
            skipped: None,
        });
        plan.work.shared_speed = speed;
    }
    plan.work.shared = objects;
}

/// Brings shared memory back, object by object.
pub(super) fn bring_shared_back(
    course: &mut Course<'_>,
    work: &Work,
    speeds: &[Speed],
    parts: &mut Vec<Done>,
) -> Option<Stop> {
    let mut stop = None;
    let page_bytes = sys::process::page_bytes() as u64;
    let speed = work.shared_speed.map(|index| &speeds[index]);
    for object in work
        .shared
        .iter()
        .filter(|object| !object.swapped.is_empty())
    {
        let started_ns = now_ns();
        let mut told = 0;
        let (bytes, present) = shared::bring_back(object, &mut |progress| {
            course.advance(progress.done - told);
            told = progress.done;
            stop = course.check();
            Control::stop_if(stop.is_some())
        });
        let present_pages = present / page_bytes;
        parts.push(Done {
            kind: PartKind::Shared,
            source: object.name.clone(),
            method: None,
            bytes,
            present_pages,
            pages: bytes / page_bytes,
            gone_pages: 0,
            elapsed_ns: now_ns() - started_ns,
            avoided_faults: present_pages,
            avoided_ns: speed.and_then(|speed| Some(speed.random_read_ns? * present_pages)),
        });
        if stop.is_some() {
            break;
        }
    }
    stop
}

/// Finds what of files is not in the page cache, by group and disk.
pub(super) fn plan_files(root: &Root, request: &Request, plan: &mut Plan) -> Result<()> {
    let mounts = mounts::read(root);
    let mut access = Access::new(root);
    let mut by_group: BTreeMap<Option<Group>, Vec<Wanted>> = BTreeMap::new();
    match &request.snapshot {
        Some(snapshot) => {
            let missing = snapshot::missing(snapshot, &mut access);
            plan.notes.extend(changed(missing.changed_files));
            by_group.insert(None, missing.files);
        }
        None => {
            let mut groups = Groups::new(root, &mounts, plan.work.targets());
            let found = files::find(root, plan.work.targets(), &mut access)?;
            for file in found.into_iter().filter(|file| !file.absent.is_empty()) {
                let group = file.targets.first().and_then(|user| groups.of(*user));
                let wanted = by_group.entry(group).or_default();
                wanted.push((file.path, file.identity, file.absent));
            }
        }
    }
    for (group, wanted) in by_group {
        for (device, wanted) in by_device(wanted) {
            let pieces = files::by_position(&wanted, &mut access);
            plan_reading(
                root,
                request,
                group.clone(),
                device,
                (&wanted, pieces),
                plan,
            );
        }
    }
    plan.notes.extend(access.notes());
    Ok(())
}

/// A line for files of a snapshot that are not read.
fn changed(files: u64) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 file of the snapshot has changed or is gone".to_owned()),
        files => Some(format!(
            "{files} files of the snapshot have changed or are gone"
        )),
    }
}

fn by_device(wanted: Vec<Wanted>) -> BTreeMap<u64, Vec<Wanted>> {
    let mut devices: BTreeMap<u64, Vec<Wanted>> = BTreeMap::new();
    for file in wanted {
        devices.entry(file.1.device).or_default().push(file);
    }
    devices
}

/// The directory of the memory group of a process.
fn group_of(root: &Root, mounts: &[Mount], process: impl Display) -> Option<PathBuf> {
    let membership = root.read(format!("/proc/{process}/cgroup")).ok()?;
    let place = cgroup::locate(mounts, &membership, Controller::Memory)?;
    Some(place.groups().first()?.directory.clone())
}

fn plan_reading(
    root: &Root,
    request: &Request,
    group: Option<Group>,
    device: u64,
    (wanted, pieces): (&[Wanted], Vec<files::Piece>),
    plan: &mut Plan,
) {
    let lengths = pieces.iter();
    let bytes = ranges::sum(lengths.map(|piece| piece.range.end - piece.range.start));
    if bytes == 0 {
        return;
    }
    let (major, minor) = sys::block::device_numbers(device);
    let start = pieces.first().and_then(|piece| piece.physical);
    let purpose = Purpose {
        bytes,
        start,
        in_order: request.estimate,
    };
    let speed = try_device(root, (major, minor), purpose, plan);
    let name = machine::block::name_of_device(root, major, minor);
    let follows = |before: &files::Piece, after: &files::Piece| {
        let end = before
            .physical
            .map(|at| at + (before.range.end - before.range.start));
        end.is_some() && end == after.physical
    };
    let runs = pieces.chunk_by(follows).count() as u64;
    let figures = speed.map(|index| &plan.speeds[index]);
    let pages = bytes.div_ceil(sys::process::page_bytes() as u64);
    let source = name.unwrap_or_else(|| format!("{major}:{minor}"));
    plan.parts.push(Part {
        kind: PartKind::File,
        source: source.clone(),
        bytes,
        runs,
        estimated_ns: figures.and_then(|speed| in_order_ns(speed, runs, bytes)),
        by_demand_ns: figures.and_then(|speed| Some(speed.random_read_ns?.saturating_mul(pages))),
        skipped: None,
    });
    let named = |(path, identity, _): &Wanted| NamedFile {
        path: path.clone(),
        identity: *identity,
    };
    plan.work.files.push(Reading {
        source,
        group,
        pieces: Pieces {
            files: wanted.iter().map(named).collect(),
            pieces,
        },
        speed,
    });
}

/// Reads the files, group by group and disk by disk.
pub(super) fn bring_files_back(
    course: &mut Course<'_>,
    work: &Work,
    speeds: &[Speed],
    parts: &mut Vec<Done>,
) -> Result<Option<Stop>> {
    let page_bytes = sys::process::page_bytes() as u64;
    // What was brought into each group: the kernel counts it as room, for it could go again.
    let mut brought: BTreeMap<&Path, u64> = BTreeMap::new();
    for reading in &work.files {
        let started_ns = now_ns();
        let group = reading
            .group
            .as_ref()
            .map(|group| group.directory.as_path());
        let before = group.and_then(|group| brought.get(group)).copied();
        let (done, stop) = course.read(reading, before.unwrap_or(0))?;
        if let Some(group) = group {
            *brought.entry(group).or_default() += done.bytes;
        }
        if done.changed_files > 0 {
            let note = format!("{} files are left out: changed since", done.changed_files);
            course.notes.push(note);
        }
        let present_pages = done.present_bytes / page_bytes;
        let speed = reading.speed.map(|index| &speeds[index]);
        parts.push(Done {
            kind: PartKind::File,
            source: reading.source.clone(),
            method: None,
            bytes: done.bytes,
            present_pages,
            pages: done.bytes.div_ceil(page_bytes),
            gone_pages: 0,
            elapsed_ns: now_ns() - started_ns,
            avoided_faults: present_pages,
            avoided_ns: speed.and_then(|speed| Some(speed.random_read_ns? * present_pages)),
        });
        match stop {
            // The next group may have room.
            Some(Stop::GroupLimit) => course.group_left_out = true,
            Some(stop) => return Ok(Some(stop)),
            None => {}
        }
    }
    Ok(None)
}

/// Lists directories and inodes, as the last thing: it may evict nothing that is wanted more.
pub(super) fn warm_metadata(course: &mut Course<'_>) -> Result<Option<Stop>> {
    let trees = &course.request.metadata;
    if trees.is_empty() {
        return Ok(None);
    }
    let walked = metadata::warm(course.root, trees, &mut course.guard)?;
    course.notes.push(format!(
        "{} directories with {} entries were listed, {} were refused",
        walked.directories, walked.inodes, walked.refused
    ));
    Ok(course.check())
}

/// The pieces, from the first on, that have `room` bytes together; whether these are not all.
fn fitting(work: &Pieces, room: Option<u64>) -> (Cow<'_, Pieces>, bool) {
    let length = |piece: &files::Piece| piece.range.end - piece.range.start;
    let bytes = ranges::sum(work.pieces.iter().map(length));
    let Some(mut left) = room.filter(|room| *room < bytes) else {
        return (Cow::Borrowed(work), false);
    };
    let mut some = Pieces {
        files: work.files.clone(),
        pieces: Vec::new(),
    };
    for piece in &work.pieces {
        if left == 0 {
            break;
        }
        let mut piece = piece.clone();
        piece.range.end = piece.range.end.min(piece.range.start + left);
        left -= length(&piece);
        some.pieces.push(piece);
    }
    (Cow::Owned(some), true)
}

impl Course<'_> {
    /// Reads what has room in its group, into which `brought` bytes of files came before. More
    /// would push out what was just brought.
    fn read(&mut self, reading: &Reading, brought: u64) -> Result<(Read, Option<Stop>)> {
        let mut told = 0;
        let mut stop = None;
        let group = reading.group.as_ref();
        let room = group.and_then(|group| self.guard.group_room(group.target));
        let room = room.map(|room| room.0.saturating_sub(GROUP_MARGIN_BYTES + brought));
        let (fitting, is_cut) = fitting(&reading.pieces, room);
        let cut = is_cut.then_some(Stop::GroupLimit);
        // What this process reads is charged to its own group.
        let other = group.filter(|group| !group.is_own);
        if let Some((other, helper)) = other.zip(self.request.helper.as_ref()) {
            let mut ends = |read: &Read| {
                self.advance(read.bytes - told);
                told = read.bytes;
                stop = self.cancelled().or_else(|| self.group_limit(group));
                stop = stop.or_else(|| self.guard.check_beside(Bytes(self.moved_bytes)));
                Control::stop_if(stop.is_some())
            };
            match charge::read_inside(&other.directory, helper, &fitting, &mut ends) {
                Err(error) if error.kind == Kind::Impossible => self.notes.push(format!(
                    "files are charged to this process's group: {error}"
                )),
                done => return Ok((done?, stop.or(cut))),
            }
        }
        let charged = group.filter(|group| group.is_own);
        // What the group of somebody else is not charged with is not bound by its room.
        let (pieces, cut) = match charged {
            Some(_) => (&*fitting, cut),
            None => (&reading.pieces, None),
        };
        let done = read::pieces(pieces, &mut |read| {
            self.advance(read.bytes - told);
            told = read.bytes;
            stop = self.group_limit(charged).or_else(|| self.check());
            Control::stop_if(stop.is_some())
        });
        Ok((done, stop.or(cut)))
    }

    /// Whether the group that is charged has no room any more.
    fn group_limit(&self, group: Option<&Group>) -> Option<Stop> {
        let room = self.guard.group_room(group?.target)?;
        (room.0 < GROUP_MARGIN_BYTES).then_some(Stop::GroupLimit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(ranges: &[Range<u64>]) -> Pieces {
        let piece = |range: &Range<u64>| files::Piece {
            file: 0,
            range: range.clone(),
            physical: None,
        };
        Pieces {
            files: Vec::new(),
            pieces: ranges.iter().map(piece).collect(),
        }
    }

    #[test]
    fn a_group_gets_what_it_has_room_for_from_the_first_piece_on() {
        let all = work(&[0..8, 20..24, 40..50]);
        for room in [None, Some(22), Some(100)] {
            assert_eq!(fitting(&all, room), (Cow::Borrowed(&all), false));
        }
        let some = |room| fitting(&all, Some(room)).0.into_owned();
        assert_eq!(some(21), work(&[0..8, 20..24, 40..49]));
        assert_eq!(some(12), work(&[0..8, 20..24]));
        assert_eq!(some(9), work(&[0..8, 20..21]));
        assert_eq!(some(0), work(&[]));
        assert!(fitting(&all, Some(21)).1);
    }
}
