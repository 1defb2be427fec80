//! Which processes and files lost memory while the hogs ran: processes by their bytes in swap,
//! files in use by their bytes in the page cache.
//!
//! Both are read once before the hogs and after each round. The largest loss of any round counts,
//! since lost pages may be read back later. The files are chosen at the start: those that live
//! processes have mapped or open, the largest first, on local disks. Files of a FUSE program or a
//! server are never touched: it may not answer.

use super::MemoryLoss;
use crate::Budget;
use machine::process_memory::{self, ProcessMemory};
use machine::reach::Reach;
use machine::{Root, maps};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files at most.
const MOST_FILES: usize = 1000;
/// The most time for finding them.
const SEARCH: Duration = Duration::from_secs(2);
/// Processes and files in the report, at most.
const MOST_REPORTED: usize = 1000;

/// What each process and file had at first, and its largest loss so far.
#[derive(Debug)]
pub(super) struct Losses {
    processes: HashMap<(u32, u64), Process>,
    files: Vec<UsedFile>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Process {
    name: String,
    before_bytes: u64,
    lost_bytes: u64,
}

#[derive(Debug)]
struct UsedFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    before_bytes: u64,
    lost_bytes: u64,
}

impl Losses {
    /// Reads what there is before the hogs.
    pub fn start(root: &Root) -> Self {
        let own = std::process::id();
        let all: Vec<ProcessMemory> =
            process_memory::all(root).into_iter().filter(|process| process.pid != own).collect();
        let mut notes = Vec::new();
        let files = used_files(root, &all, &mut notes);
        let remember = |process: ProcessMemory| {
            let kept = Process { name: process.name, before_bytes: process.swap.0, lost_bytes: 0 };
            ((process.pid, process.start_ticks), kept)
        };
        Self { processes: all.into_iter().map(remember).collect(), files, notes }
    }

    /// Reads what there is now, and keeps the larger losses.
    pub fn update(&mut self, root: &Root) {
        for now in process_memory::all(root) {
            if let Some(process) = self.processes.get_mut(&(now.pid, now.start_ticks)) {
                let lost = now.swap.0.saturating_sub(process.before_bytes);
                process.lost_bytes = process.lost_bytes.max(lost);
            }
        }
        let mut reach = Reach::new(root);
        for file in &mut self.files {
            if let Some(now) = cached_bytes(&mut reach, &file.path, file.identity) {
                let lost = file.before_bytes.saturating_sub(now);
                file.lost_bytes = file.lost_bytes.max(lost);
            }
        }
    }

    /// The processes and files that lost something, most first, and what could not be seen.
    pub fn report(self) -> (Vec<MemoryLoss>, Vec<String>) {
        let processes = self.processes.into_iter().map(|((pid, _), process)| MemoryLoss {
            whose: process.name,
            pid: Some(pid),
            to_swap_bytes: process.lost_bytes,
            from_cache_bytes: 0,
        });
        let files = self.files.into_iter().map(|file| MemoryLoss {
            whose: file.path.display().to_string(),
            pid: None,
            to_swap_bytes: 0,
            from_cache_bytes: file.lost_bytes,
        });
        let lost = |who: &MemoryLoss| who.to_swap_bytes + who.from_cache_bytes;
        let mut losers: Vec<MemoryLoss> =
            processes.chain(files).filter(|who| lost(who) > 0).collect();
        // Of equal losses by name, so that two runs report alike.
        losers.sort_by(|a, b| lost(b).cmp(&lost(a)).then_with(|| a.whose.cmp(&b.whose)));
        losers.truncate(MOST_REPORTED);
        let mut notes = self.notes;
        notes.push(
            "shared memory that went to swap belongs to no process in these counters".to_owned(),
        );
        (losers, notes)
    }
}

/// The files that `processes` use, largest first, with their bytes in the page cache.
fn used_files(root: &Root, processes: &[ProcessMemory], notes: &mut Vec<String>) -> Vec<UsedFile> {
    let mut reach = Reach::new(root);
    let search = Search::over(root, processes, &mut reach);
    notes.extend(reach.note());
    let mut candidates: Vec<(u64, (u64, u64), PathBuf)> = search.found;
    candidates.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
    let beyond = candidates.len().saturating_sub(MOST_FILES);
    candidates.truncate(MOST_FILES);
    let mut refused = 0;
    let mut files = Vec::new();
    for (_, identity, path) in candidates {
        match cached_bytes(&mut reach, &path, identity) {
            Some(before_bytes) => {
                files.push(UsedFile { path, identity, before_bytes, lost_bytes: 0 })
            }
            None => refused += 1,
        }
    }
    let mut note = |count: usize, what: &str| {
        if count > 0 {
            notes.push(format!("{what}: {count}"));
        }
    };
    note(beyond, "smaller files in use, not looked at");
    let cachestat = "files in use whose pages in the cache this user may not count (cachestat)";
    note(refused, cachestat);
    note(search.closed, "processes that do not show this user their files");
    if search.cut_short {
        notes.push("the search for files in use was cut short after 2 s".to_owned());
    }
    files
}

/// The regular files that processes have mapped or open, each once.
struct Search {
    /// Length, identity, path.
    found: Vec<(u64, (u64, u64), PathBuf)>,
    /// Processes that cannot be looked into.
    closed: usize,
    cut_short: bool,
}

impl Search {
    fn over(root: &Root, processes: &[ProcessMemory], reach: &mut Reach) -> Self {
        let budget = Budget::of(SEARCH);
        let mut search = Self { found: Vec::new(), closed: 0, cut_short: false };
        let (mut paths, mut identities) = (HashSet::new(), HashSet::new());
        for process in processes {
            if budget.over() {
                search.cut_short = true;
                break;
            }
            let Some(used) = paths_of(root, process.pid) else {
                search.closed += 1;
                continue;
            };
            for path in used {
                if !paths.insert(path.clone()) {
                    continue;
                }
                let Some(file) = reach.open(&path).ok().and_then(|file| file.metadata().ok())
                else {
                    continue;
                };
                let identity = (file.dev(), file.ino());
                if file.len() > 0 && identities.insert(identity) {
                    search.found.push((file.len(), identity, path));
                }
            }
        }
        search
    }
}

/// The paths that a process has mapped or open, some twice; `None` if it does not show them.
fn paths_of(root: &Root, pid: u32) -> Option<Vec<PathBuf>> {
    let mapped = maps::read(root, pid)
        .ok()?
        .into_iter()
        .filter(|mapping| mapping.kind == maps::MappingKind::File && !mapping.deleted);
    let open = std::fs::read_dir(root.path(format!("/proc/{pid}/fd")))
        .ok()?
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let paths = mapped.filter_map(|mapping| mapping.path).chain(open);
    Some(paths.filter(|path| path.is_absolute()).collect())
}

/// Bytes of the file in the page cache; `None` if the path names another file now, or the kernel
/// does not say.
fn cached_bytes(reach: &mut Reach, path: &Path, identity: (u64, u64)) -> Option<u64> {
    let file = reach.open(path).ok()?;
    let now = file.metadata().ok()?;
    if (now.dev(), now.ino()) != identity {
        return None;
    }
    let state = sys::cachestat::of(&file, 0, 0).ok()?;
    Some(state.cached * sys::process::page_bytes() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use testkit::TempDir;

    #[test]
    fn the_most_that_was_lost_counts_and_the_largest_loser_comes_first() {
        let process =
            |lost_bytes| Process { name: "victim".to_owned(), before_bytes: 10, lost_bytes };
        let file = UsedFile {
            path: "/lib/x".into(),
            identity: (1, 2),
            before_bytes: 9000,
            lost_bytes: 8192,
        };
        let losses = Losses {
            processes: HashMap::from([((1, 1), process(4096)), ((2, 1), process(0))]),
            files: vec![file],
            notes: Vec::new(),
        };
        let (losers, notes) = losses.report();
        let names: Vec<_> = losers.iter().map(|who| (who.whose.as_str(), who.pid)).collect();
        assert_eq!(names, [("/lib/x", None), ("victim", Some(1))]);
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn a_file_that_leaves_the_cache_is_named() {
        let root = Root::system();
        let directory = TempDir::new();
        let path = directory.join("held");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let held = File::open(&path).unwrap();
        held.sync_all().unwrap();
        let whole = std::fs::metadata(&path).unwrap();
        let identity = (whole.dev(), whole.ino());
        if cached_bytes(&mut Reach::new(&root), &path, identity).is_none() {
            return testkit::skip("cachestat (Linux 6.5)");
        }
        // What this process has open is found, under its own number.
        let used = paths_of(&root, std::process::id()).unwrap();
        assert!(used.contains(&path.canonicalize().unwrap()), "{used:?}");
        let before_bytes = 1 << 20;
        let mut losses = Losses {
            processes: HashMap::new(),
            files: vec![UsedFile { path, identity, before_bytes, lost_bytes: 0 }],
            notes: Vec::new(),
        };
        held.set_len(0).ok();
        File::options().write(true).open(&losses.files[0].path).unwrap().set_len(0).unwrap();
        losses.update(&root);
        assert_eq!(losses.report().0[0].from_cache_bytes, before_bytes);
    }
}
