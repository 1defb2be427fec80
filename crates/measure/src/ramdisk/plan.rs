//! How much may be written, and where: checked and bounded before anything is touched.
//!
//! By default the amount is a small part of what is available and stays well below the limits of
//! the own groups. A requested size may exceed a group's limit, which is how such a limit is found
//! out, but always leaves the floor to others.

use super::worker::WriteOrder;
use crate::pressure::PageContent;
use crate::{Error, ErrorKind, Result};
use machine::{Root, cgroup, kernel, memory};
use model::Bytes;
use model::bytes::MIB;
use model::ramdisk::{GroupLimit, RamDiskObservation, Round};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::helper::HiddenCommand;

/// The default size: enough to leave the memory that was free and warm, and written in seconds
/// even where the host must find each page.
const USUAL_BYTES: u64 = 1 << 30;
/// But not more than this part of what is available.
const AVAILABLE_SHARE: u64 = 8;
/// And not more than this part of what a group or the file system has left.
const ROOM_SHARE: u64 = 2;
/// Less says nothing.
const LEAST_BYTES: u64 = 16 * MIB;
/// Noise is learnt from at least 4 runs; one more may be cut.
const REPEATS: u32 = 5;
const OPERATION: &str = "write to memory";

/// Where is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePlace {
    /// A file of shared memory, which is the kernel's own RAM disk.
    SharedMemory,
    /// A file without a name on the RAM disk that holds this directory.
    Directory(PathBuf),
}

/// What will be done.
#[derive(Clone, Debug, PartialEq)]
pub struct RamDiskPlan {
    /// Where.
    pub place: WritePlace,
    /// What is written.
    pub content: PageContent,
    /// The passes, in order, the first of them [`Round::First`].
    pub rounds: Vec<Round>,
    /// How often each remedy is repeated, by turns with memory without it, to know the noise.
    pub repeats: u32,
    /// How much each pass writes; only one of them is held at a time.
    pub bytes: u64,
    /// It ends when less than this is available to the machine.
    pub floor_bytes: u64,
    /// The most time for all passes together.
    pub budget: Duration,
    /// The group whose limit is exceeded by it, and what it has left, where that was asked for.
    pub beyond: Option<(String, Bytes)>,
    /// The hidden command that calls [`super::run_writer`].
    pub helper: HiddenCommand,
}

impl RamDiskPlan {
    /// The plan for the RAM disk at `directory`, or for shared memory; of `size` bytes, or of as
    /// many as can be had without danger to others.
    ///
    /// # Errors
    /// `Usage` for a size that says nothing and for what is no directory on a RAM disk;
    /// `Impossible` where there is not so much memory or space.
    pub fn new(
        root: &Root,
        directory: Option<&Path>,
        size: Option<Bytes>,
        budget: Duration,
        helper: HiddenCommand,
    ) -> Result<Self> {
        let space = directory.map(space_at).transpose()?;
        let room = Room::read(root)?;
        let bytes = match size {
            Some(size) => room.bear(size.0, space)?,
            None => room.usual(space)?,
        };
        let beyond = room.group.filter(|(_, left)| left.0 < bytes);
        Ok(Self {
            place: directory
                .map_or(WritePlace::SharedMemory, |at| WritePlace::Directory(at.to_owned())),
            content: PageContent::Random,
            rounds: vec![Round::First, Round::Again, Round::Rewrite, Round::Huge],
            repeats: REPEATS,
            bytes,
            floor_bytes: room.floor,
            budget,
            beyond,
            helper,
        })
    }

    /// What it takes, in a sentence or two, to be said before it starts.
    #[must_use]
    pub fn stated(&self) -> String {
        let (size, seconds) = (Bytes(self.bytes), self.budget.as_secs());
        let place = self.place_in_words();
        let mut text = format!(
            "takes {size} of memory ({place}) for at most {seconds} s and gives it back; ends when {} are left to others",
            Bytes(self.floor_bytes)
        );
        if let Some((group, left)) = &self.beyond {
            text.push_str(&format!(
                ". That is more than the {left} that the group {group} has left: its members may be pushed out to swap, and where there is none the process that writes is killed"
            ));
        }
        text
    }

    fn place_in_words(&self) -> String {
        match &self.place {
            WritePlace::SharedMemory => "shared memory".to_owned(),
            WritePlace::Directory(path) => format!("a file without a name in {}", path.display()),
        }
    }

    /// The order for a pass of `bytes` within `budget`.
    pub(super) fn order(&self, round: Round, bytes: u64, budget: Duration) -> WriteOrder {
        WriteOrder {
            round,
            place: self.place.clone(),
            content: self.content,
            bytes,
            floor_bytes: self.floor_bytes,
            budget,
        }
    }

    /// The frame of what will be seen.
    pub(super) fn nothing_seen(&self, root: &Root) -> RamDiskObservation {
        let groups = cgroup::memory_limits(root).into_iter().enumerate();
        let limits = groups.filter_map(|(level, limit)| {
            Some(GroupLimit {
                level: u32::try_from(level).ok()?,
                limit_bytes: [limit.limit, limit.high].into_iter().flatten().min()?.0,
                used_bytes: limit.usage.map(|usage| usage.0),
                path: limit.path,
            })
        });
        let virtualization = kernel::virtualization(root);
        RamDiskObservation {
            place: self.place_in_words(),
            asked_bytes: self.bytes,
            page_bytes: sys::process::page_bytes() as u64,
            passes: Vec::new(),
            repeats: Vec::new(),
            limits: limits.collect(),
            killed: false,
            is_guest: Some(virtualization.is_some_and(|what| what.contains("guest"))),
            swap_areas: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The free bytes of the RAM disk that holds `directory`.
fn space_at(directory: &Path) -> Result<u64> {
    let usage = |why: &str| Error::new(ErrorKind::Usage, "write to", why).at(directory);
    let system = sys::file::file_system_of(directory)
        .map_err(|error| usage(&sys::plain_reason(&error.source)))?;
    if !directory.is_dir() {
        return Err(usage("it is no directory"));
    }
    match system.name {
        Some("tmpfs") => Ok(system.free_bytes),
        Some(name) => Err(usage(&format!("it lies on {name}, not on a RAM disk (tmpfs)"))),
        None => Err(usage("it lies on no RAM disk (tmpfs)")),
    }
}

/// What can be had.
struct Room {
    available: u64,
    floor: u64,
    /// The group with the least left, and what that is.
    group: Option<(String, Bytes)>,
}

impl Room {
    fn read(root: &Root) -> Result<Self> {
        let memory = memory::read(root);
        let (Some(available), Some(total)) = (memory.available, memory.total) else {
            let why = "the kernel does not say how much memory is available";
            return Err(Error::new(ErrorKind::Impossible, OPERATION, why));
        };
        let limits = cgroup::memory_limits(root).into_iter();
        let left = limits.filter_map(|limit| Some((limit.path.clone(), limit.room()?)));
        Ok(Self {
            available: available.0,
            floor: memory::left_to_others(Some(total)).0,
            group: left.min_by_key(|(_, left)| left.0),
        })
    }

    /// The default size: too little for others to notice.
    fn usual(&self, space: Option<u64>) -> Result<u64> {
        let of_group = self.group.as_ref().map(|(_, left)| left.0 / ROOM_SHARE);
        let bounds =
            [Some(self.available / AVAILABLE_SHARE), of_group, space.map(|free| free / ROOM_SHARE)];
        let bytes = bounds.into_iter().flatten().fold(USUAL_BYTES, u64::min) / MIB * MIB;
        if bytes < LEAST_BYTES {
            let why = format!(
                "{} could be taken safely, and less than {} says nothing; --size N takes more",
                Bytes(bytes),
                Bytes(LEAST_BYTES)
            );
            return Err(Error::new(ErrorKind::Impossible, OPERATION, why));
        }
        Ok(bytes)
    }

    /// `size`, if it endangers no process outside of the own groups.
    fn bear(&self, size: u64, space: Option<u64>) -> Result<u64> {
        if size < LEAST_BYTES {
            let why = format!("less than {} says nothing", Bytes(LEAST_BYTES));
            return Err(Error::new(ErrorKind::Usage, OPERATION, why));
        }
        // Beyond the limit of a group it goes to swap, or nowhere.
        let held = self.group.as_ref().map_or(size, |(_, left)| left.0.min(size));
        let impossible = |why: String| Err(Error::new(ErrorKind::Impossible, OPERATION, why));
        if held.saturating_add(self.floor) > self.available {
            return impossible(format!(
                "{} of memory are available, of which {} are left to others",
                Bytes(self.available),
                Bytes(self.floor)
            ));
        }
        match space {
            Some(free) if free < size => {
                impossible(format!("the RAM disk has {} free", Bytes(free)))
            }
            _ => Ok(size / MIB * MIB),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(available_mib: u64, group_mib: Option<u64>) -> Room {
        Room {
            available: available_mib * MIB,
            floor: 100 * MIB,
            group: group_mib.map(|mib| ("/app".to_owned(), Bytes(mib * MIB))),
        }
    }

    #[test]
    fn the_usual_amount_is_a_small_part_of_each_bound() {
        let usual = |room: Room, space: Option<u64>| room.usual(space).map(|bytes| bytes / MIB);
        assert_eq!(usual(room(64_000, None), None).unwrap(), 1024);
        assert_eq!(usual(room(800, None), None).unwrap(), 100);
        assert_eq!(usual(room(64_000, Some(300)), None).unwrap(), 150);
        assert_eq!(usual(room(64_000, None), Some(50 * MIB)).unwrap(), 25);
        let error = usual(room(64_000, Some(31)), None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Impossible);
        assert!(error.to_string().contains("--size"), "{error}");
    }

    #[test]
    fn a_size_may_exceed_a_group_and_never_the_floor() {
        let bear = |room: Room, mib: u64, space: Option<u64>| room.bear(mib * MIB, space);
        assert_eq!(bear(room(1000, None), 900, None).unwrap(), 900 * MIB);
        let kind = |answer: Result<u64>| answer.unwrap_err().kind;
        assert_eq!(kind(bear(room(1000, None), 901, None)), ErrorKind::Impossible);
        assert_eq!(bear(room(1000, Some(64)), 5000, None).unwrap(), 5000 * MIB);
        assert_eq!(kind(bear(room(1000, None), 15, None)), ErrorKind::Usage);
        assert_eq!(kind(bear(room(1000, None), 32, Some(20 * MIB))), ErrorKind::Impossible);
    }

    #[test]
    fn what_is_no_ram_disk_is_refused() {
        let error = space_at(Path::new("/proc")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains("not on a RAM disk"), "{error}");
        assert_eq!(space_at(Path::new("/nonexistent")).unwrap_err().kind, ErrorKind::Usage);
    }
}
