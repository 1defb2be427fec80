//! Which groups there are, which have a limit of their own, and which of those were held back.
//!
//! 1. A walk lists the groups of every hierarchy. Groups that had others in them are listed each
//!    time, since that is where new ones appear; the rest are looked at in every fifth walk.
//! 2. A group that is new, and each in its turn, is asked for its limits.
//! 3. A look asks each limited group how often it was held back. One whose count moved gets a
//!    number, and so series; beyond the bounds it is summed up among the others.
//!
//! A directory whose inode is another one is a group that was made anew at the same path, as when
//! a service is restarted: the one before has ended.
//!
//! Nothing is held open: a machine can have more groups than a process may have files.

use super::LimitedPaths;
use super::counts::{self, HeldBack, IoTraffic, KINDS};
use super::finder::{FinderNews, GroupTotals, ReachedGroup};
use machine::cgroup::{self, CgroupVersion, Hierarchy, LimitKind};
use machine::{ErrorKind, Root};
use model::recording::limited_directory;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Groups that had no others in them are asked again in each so many walks, the limits of each
/// group in so many.
const WALKS_PER_LEAF: u32 = 5;
const WALKS_PER_CHECK: u32 = 15;
/// Who makes a group sets its limits a moment later: a new one is asked in so many walks.
const EARLY_CHECKS: u32 = 3;
/// Groups that are watched at most, with and without a limit: some 8 MiB. Picked.
const MOST_GROUPS: usize = 16_384;
/// Groups with series at a time, and in one recording: each has up to 30 of at most 32,768 series.
const MOST_ACTIVE: usize = 64;
const MOST_NUMBERED: u32 = 512;
/// A group that was not held back for so long gives its place to another.
const RETIRED: Duration = Duration::from_secs(600);

/// The device and the inode of a group's directory.
type Identity = (u64, u64);

/// A group, with or without a limit.
#[derive(Debug)]
struct KnownGroup {
    hierarchy: usize,
    identity: Identity,
    has_subgroups: bool,
    /// The walk that met it last, and the one that met it first.
    last_walk: u32,
    first_walk: u32,
    /// Spreads the checks of limits over the walks.
    turn: u32,
    limited: Option<LimitedGroup>,
}

/// What is known of a group with a limit of its own.
#[derive(Debug, Default)]
struct LimitedGroup {
    kinds: Vec<LimitKind>,
    /// The texts of its counters from which its series will count.
    first: HashMap<&'static str, Vec<u8>>,
    /// By kind, when last looked at.
    held: [HeldBack; KINDS],
    traffic: IoTraffic,
    number: Option<u32>,
    /// When its count moved last.
    moved: Option<Instant>,
    is_among_others: bool,
    is_unreadable: bool,
}

/// All groups of the machine.
#[derive(Debug)]
pub(super) struct GroupSearch {
    root: Root,
    hierarchies: Vec<Hierarchy>,
    known: HashMap<PathBuf, KnownGroup>,
    paths: LimitedPaths,
    walks: u32,
    numbers: u32,
    active: usize,
    totals: GroupTotals,
    buffer: Vec<u8>,
}

impl GroupSearch {
    /// No group is known yet; `paths` will hold those with a limit.
    pub fn new(root: Root, hierarchies: Vec<Hierarchy>, paths: LimitedPaths) -> Self {
        Self {
            root,
            hierarchies,
            known: HashMap::new(),
            paths,
            walks: 0,
            numbers: 0,
            active: 0,
            totals: GroupTotals::default(),
            buffer: Vec::new(),
        }
    }

    /// Lists the groups, and forgets those that are gone.
    pub fn walk(&mut self, tell: &mut impl FnMut(FinderNews)) {
        self.walks += 1;
        self.totals.unwatched = 0;
        for number in 0..self.hierarchies.len() {
            let mut waiting = vec![self.hierarchies[number].mount_point.clone()];
            while let Some(directory) = waiting.pop() {
                if !self.meet(number, &directory, tell) {
                    continue;
                }
                let below = cgroup::subgroups(&self.root, &directory).unwrap_or_default();
                if let Some(known) = self.known.get_mut(&directory) {
                    known.has_subgroups = !below.is_empty();
                }
                waiting.extend(below.iter().map(|name| directory.join(name)));
            }
        }
        self.forget(tell);
        let mut limited = Vec::new();
        for (directory, known) in self.known.iter().filter(|(_, known)| known.limited.is_some()) {
            limited.push((known.hierarchy, directory));
        }
        self.totals.limited = limited.len() as u64;
        let hierarchies = &self.hierarchies;
        let paths = limited.into_iter().filter_map(|(hierarchy, directory)| {
            let hierarchy = &hierarchies[hierarchy];
            Some((hierarchy.version, hierarchy.kinds.first()?, hierarchy.path_of(directory)?))
        });
        self.paths.replace(paths.map(|(version, kind, path)| match version {
            CgroupVersion::V1 => (kind.controller(), path),
            CgroupVersion::V2 => ("", path),
        }));
    }

    /// Notes that a group is there, and asks for its limits if it is its turn; returns whether it
    /// must be listed.
    fn meet(
        &mut self,
        hierarchy: usize,
        directory: &Path,
        tell: &mut impl FnMut(FinderNews),
    ) -> bool {
        let Some(identity) = identity(&self.root, directory) else {
            return false;
        };
        if self.known.get(directory).is_some_and(|known| known.identity != identity)
            && let Some(before) = self.known.remove(directory)
        {
            self.end(&before, tell);
        }
        let (count, walk) = (self.known.len(), self.walks);
        let is_new = !self.known.contains_key(directory);
        if is_new && count >= MOST_GROUPS {
            self.totals.unwatched += 1;
            return false;
        }
        let known = self.known.entry(directory.to_owned()).or_insert_with(|| KnownGroup {
            hierarchy,
            identity,
            has_subgroups: false,
            last_walk: walk,
            first_walk: walk,
            turn: (count % WALKS_PER_CHECK as usize) as u32,
            limited: None,
        });
        known.last_walk = walk;
        let is_leafs_turn = is_new || walk.is_multiple_of(WALKS_PER_LEAF);
        let is_listed = known.has_subgroups
            || is_leafs_turn && cgroup::can_have_subgroups(&self.root, directory);
        let is_early = walk - known.first_walk < EARLY_CHECKS;
        if is_early || (walk + known.turn).is_multiple_of(WALKS_PER_CHECK) {
            self.check_limits(directory);
        }
        is_listed
    }

    /// Asks a group for its limits.
    fn check_limits(&mut self, directory: &Path) {
        let Some(known) = self.known.get_mut(directory) else {
            return;
        };
        let hierarchy = &self.hierarchies[known.hierarchy];
        // The top is the machine, or all that this container may see of it.
        if directory == hierarchy.mount_point {
            return;
        }
        let kinds = hierarchy.limits(&self.root, directory);
        let before = known.limited.as_ref().map(|limited| limited.kinds.as_slice());
        let is_numbered = known.limited.as_ref().is_some_and(|limited| limited.number.is_some());
        if before.unwrap_or_default() == kinds || is_numbered {
            return;
        }
        // A group that was made after the first walk counted nothing before.
        let began = known.first_walk > 1 && before.is_none();
        let mut limited = LimitedGroup { kinds, ..LimitedGroup::default() };
        let look = Files { root: &self.root, directory, version: hierarchy.version };
        if limited.kinds.is_empty() {
            known.limited = None;
            return;
        }
        limited.begin(&look, began, &mut self.buffer);
        known.limited = Some(limited);
    }

    /// Forgets the groups that the last walk did not meet.
    fn forget(&mut self, tell: &mut impl FnMut(FinderNews)) {
        let walk = self.walks;
        let gone: Vec<_> = self.known.extract_if(|_, known| known.last_walk != walk).collect();
        gone.iter().for_each(|(_, known)| self.end(known, tell));
    }

    /// Ends the series of a group that is gone.
    fn end(&mut self, gone: &KnownGroup, tell: &mut impl FnMut(FinderNews)) {
        if let Some(number) = gone.limited.as_ref().and_then(|limited| limited.number) {
            self.active = self.active.saturating_sub(1);
            tell(FinderNews::Ended(number));
        }
    }

    /// Asks each limited group how often it was held back, and numbers those that were.
    pub fn look(&mut self, tell: &mut impl FnMut(FinderNews)) {
        let now = Instant::now();
        let mut waiting = Vec::new();
        self.totals.unreadable = 0;
        let Self { known, hierarchies, root, buffer, totals, .. } = self;
        for (directory, known) in known.iter_mut() {
            let Some(limited) = &mut known.limited else {
                continue;
            };
            let version = hierarchies[known.hierarchy].version;
            let growth = limited.look(&Files { root, directory, version }, now, buffer);
            totals.unreadable += u64::from(limited.is_unreadable);
            if growth.iter().all(|held| held.times == 0) {
                continue;
            }
            limited.moved = Some(now);
            if limited.number.is_none() {
                waiting.push((directory.clone(), growth));
            }
        }
        for (directory, growth) in waiting {
            self.number(&directory, growth, now, tell);
        }
        tell(FinderNews::Totals(self.totals));
    }

    /// Gives a group its number; adds what it counted to the others' where no number is left.
    fn number(
        &mut self,
        directory: &Path,
        growth: [HeldBack; KINDS],
        now: Instant,
        tell: &mut impl FnMut(FinderNews),
    ) {
        let is_same = |known: &KnownGroup| identity(&self.root, directory) == Some(known.identity);
        if !self.known.get(directory).is_some_and(is_same) {
            // Made anew: what is known is of the one before. The next walk begins it.
            return;
        }
        if self.active >= MOST_ACTIVE {
            self.retire(now, tell);
        }
        let has_place = self.active < MOST_ACTIVE && self.numbers < MOST_NUMBERED;
        let Some(known) = self.known.get_mut(directory) else {
            return;
        };
        let hierarchy = &self.hierarchies[known.hierarchy];
        let (Some(limited), Some(path)) = (&mut known.limited, path_below(hierarchy, directory))
        else {
            return;
        };
        if !has_place {
            self.totals.others += u64::from(!limited.is_among_others);
            limited.is_among_others = true;
            let sums = self.totals.held_others.iter_mut().zip(growth);
            sums.for_each(|(sum, growth)| sum.add(growth));
            // If it gets a number later, its series count from here.
            let files = Files { root: &self.root, directory, version: hierarchy.version };
            limited.read_first(&files, &mut self.buffer);
            return;
        }
        let mount_point = hierarchy.mount_point.to_string_lossy();
        let reached = ReachedGroup {
            number: self.numbers,
            version: hierarchy.version,
            directory: limited_directory(&mount_point, &path),
            kinds: limited.kinds.clone(),
            first: std::mem::take(&mut limited.first),
        };
        limited.number = Some(self.numbers);
        self.numbers += 1;
        self.active += 1;
        tell(FinderNews::Reached(reached));
    }

    /// Takes the number from the group that was not held back for longest, if that is long.
    fn retire(&mut self, now: Instant, tell: &mut impl FnMut(FinderNews)) {
        let numbered = self.known.iter_mut().filter_map(|(directory, known)| {
            let version = self.hierarchies[known.hierarchy].version;
            let limited = known.limited.as_mut().filter(|limited| limited.number.is_some())?;
            Some((limited.moved?, limited, directory, version))
        });
        let Some((moved, limited, directory, version)) = numbered.min_by_key(|one| one.0) else {
            return;
        };
        if now.duration_since(moved) < RETIRED {
            return;
        }
        if let Some(number) = limited.number.take() {
            limited.read_first(&Files { root: &self.root, directory, version }, &mut self.buffer);
            self.active -= 1;
            tell(FinderNews::Ended(number));
        }
    }
}

/// Which directory it is that a group has now; `None` if it is gone.
fn identity(root: &Root, directory: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(root.path(directory)).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// The path of a group below the mount point of its hierarchy.
fn path_below(hierarchy: &Hierarchy, directory: &Path) -> Option<String> {
    let below = directory.strip_prefix(&hierarchy.mount_point).ok()?;
    Some(below.to_string_lossy().into_owned())
}

/// Where the files of a group are.
struct Files<'a> {
    root: &'a Root,
    directory: &'a Path,
    version: CgroupVersion,
}

impl Files<'_> {
    /// Reads a file into the buffer; the error is the kernel's.
    fn read(&self, name: &str, buffer: &mut Vec<u8>) -> Result<(), ErrorKind> {
        let read = self.root.read_short(self.directory.join(name), buffer);
        read.map_err(|error| error.kind)
    }

    /// What those of these files that are there say.
    fn read_io(&self, names: &[&str], buffer: &mut Vec<u8>) -> counts::IoValues {
        let mut values = counts::IoValues::new();
        for name in names {
            if self.read(name, buffer).is_ok() {
                counts::read_io(name, buffer, &mut values);
            }
        }
        values
    }
}

impl LimitedGroup {
    /// Takes its counts as those that its series will count from: nothing if it `began` during
    /// the recording.
    fn begin(&mut self, files: &Files, began: bool, buffer: &mut Vec<u8>) {
        if began {
            let names = self.kinds.iter().flat_map(|kind| counts::files(files.version, *kind));
            self.first = names.map(|name| (*name, Vec::new())).collect();
        } else {
            self.read_first(files, buffer);
            self.look(files, Instant::now(), buffer);
        }
    }

    fn read_first(&mut self, files: &Files, buffer: &mut Vec<u8>) {
        self.first.clear();
        for name in self.kinds.iter().flat_map(|kind| counts::files(files.version, *kind)) {
            if files.read(name, buffer).is_ok() {
                self.first.insert(name, buffer.clone());
            }
        }
    }

    /// What was counted since the last look, by kind.
    fn look(&mut self, files: &Files, now: Instant, buffer: &mut Vec<u8>) -> [HeldBack; KINDS] {
        let mut growth = [HeldBack::default(); KINDS];
        self.is_unreadable = false;
        for kind in &self.kinds {
            if *kind == LimitKind::Io {
                let moved = files.read_io(counts::files(files.version, *kind), buffer);
                let limits = files.read_io(counts::io_limit_files(files.version), buffer);
                growth[*kind as usize] = self.traffic.held_back(moved, &limits, now);
                continue;
            }
            let mut names = counts::files(files.version, *kind).iter();
            // What an old kernel lacks is in the next file.
            let mut read = Err(ErrorKind::NotFound);
            while let (Err(ErrorKind::NotFound), Some(name)) = (&read, names.next()) {
                read = files.read(name, buffer);
            }
            match read {
                Ok(()) => {
                    let held = counts::held_back(*kind, buffer);
                    growth[*kind as usize] = held.since(self.held[*kind as usize]);
                    self.held[*kind as usize] = held;
                }
                // A group that is gone is noticed by the next walk.
                Err(ErrorKind::NotFound) => {}
                Err(_) => self.is_unreadable = true,
            }
        }
        growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::TempDir;

    /// A machine with one hierarchy of version 2 and a group in it.
    struct Groups {
        directory: TempDir,
        search: GroupSearch,
    }

    const GROUP: &str = "/cgroup/box.service";

    impl Groups {
        fn new() -> Self {
            let directory = TempDir::new();
            let hierarchy = Hierarchy {
                version: CgroupVersion::V2,
                mount_point: PathBuf::from("/cgroup"),
                root: PathBuf::from("/"),
                kinds: vec![LimitKind::Cpu],
            };
            let root = Root::at(directory.path());
            let search = GroupSearch::new(root, vec![hierarchy], LimitedPaths::default());
            let groups = Self { directory, search };
            groups.make(0);
            groups
        }

        fn make(&self, throttled: u64) {
            let group = self.path();
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(group.join("cpu.max"), "10000 100000\n").unwrap();
            self.count(throttled);
        }

        fn count(&self, throttled: u64) {
            let text = format!("nr_periods 900\nnr_throttled {throttled}\nthrottled_usec 1\n");
            std::fs::write(self.path().join("cpu.stat"), text).unwrap();
        }

        /// Made anew in the place of the one before, which keeps its inode until then.
        fn make_anew(&self, throttled: u64) {
            let before = self.directory.join("before");
            std::fs::rename(self.path(), &before).unwrap();
            self.make(throttled);
            std::fs::remove_dir_all(before).unwrap();
        }

        fn path(&self) -> PathBuf {
            self.directory.join(&GROUP[1..])
        }

        /// The groups that ended, and those that were reached with what they count from.
        fn look(&mut self, is_walk: bool) -> (Vec<u32>, Vec<(u32, Vec<u8>)>) {
            let (mut ended, mut reached) = (Vec::new(), Vec::new());
            let mut tell = |news| match news {
                FinderNews::Ended(number) => ended.push(number),
                FinderNews::Reached(mut group) => {
                    let first = group.first.remove("cpu.stat").unwrap();
                    reached.push((group.number, first));
                }
                FinderNews::Totals(_) => {}
            };
            if is_walk {
                self.search.walk(&mut tell);
            }
            self.search.look(&mut tell);
            (ended, reached)
        }
    }

    #[test]
    fn a_group_that_is_made_anew_ends_and_begins_from_nothing() {
        let mut groups = Groups::new();
        groups.count(40);
        groups.look(true);
        groups.count(50);
        let (_, reached) = groups.look(false);
        assert!(matches!(reached.as_slice(), [(0, first)] if !first.is_empty()));
        groups.make_anew(0);
        groups.count(7);
        assert_eq!(groups.look(true), (vec![0], vec![(1, Vec::new())]));
        assert_eq!(groups.search.active, 1);
        assert_eq!(groups.look(true), (vec![], vec![]));
        std::fs::remove_dir_all(groups.path()).unwrap();
        assert_eq!(groups.look(true), (vec![1], vec![]));
        assert_eq!(groups.search.active, 0);
    }

    #[test]
    fn a_group_that_is_made_anew_has_no_base_of_the_one_before() {
        let mut groups = Groups::new();
        groups.count(40);
        groups.look(true);
        groups.make_anew(60);
        assert_eq!(groups.look(false), (vec![], vec![]), "only a walk begins it");
        groups.count(61);
        assert_eq!(groups.look(true), (vec![], vec![(0, Vec::new())]));
    }
}
