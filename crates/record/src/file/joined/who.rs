//! The processes and files of all segments: those that are the same become one.
//!
//! A process is the same in two segments if its number, its start and its name are: a number and a
//! start alone can come again after the machine was started anew. Entries of several processes are
//! the same if they are alike in everything; files if device, inode and path are.

use crate::file::reader::{Budget, WhoStore};
use model::recording::{FileIdentity, Process, Who};
use std::collections::HashMap;

/// Joins what segments have of processes and files.
#[derive(Debug)]
pub(super) struct JoinedWho {
    store: WhoStore,
    processes: HashMap<ProcessKey, u32>,
    files: HashMap<FileKey, u32>,
    /// The ids in the whole of the processes and files of the segment that is added.
    ids: (Vec<u32>, Vec<u32>),
}

/// What two entries of one process have in common.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ProcessKey {
    pid: u32,
    started_ns: u64,
    name: String,
    /// Parent, user and group, of several processes.
    many: Option<(u32, u32, String)>,
}

type FileKey = ((u32, u32), u64, Option<String>);

impl ProcessKey {
    fn of(process: &Process) -> Self {
        let Process { pid, parent, user, started_ns, .. } = *process;
        let many = process.is_many.then(|| (parent, user, process.group.clone()));
        Self { pid, started_ns, name: process.name.clone(), many }
    }
}

impl JoinedWho {
    /// Nothing yet; rows take at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            store: WhoStore::new(limit),
            processes: HashMap::new(),
            files: HashMap::new(),
            ids: (Vec::new(), Vec::new()),
        }
    }

    /// What is added from now on is of the next segment.
    pub(super) fn next(&mut self) {
        self.ids = (Vec::new(), Vec::new());
    }

    /// Adds what a segment has grown by, whose times count from `offset_ns`, and takes its rows out
    /// of it.
    pub(super) fn grow(
        &mut self,
        part: &mut Who,
        offset_ns: u64,
        whole: &mut Who,
        budget: &mut Budget,
    ) {
        for process in &part.processes[self.ids.0.len()..] {
            let id = self.process(process, whole, budget);
            self.ids.0.push(id);
        }
        for file in &part.files[self.ids.1.len()..] {
            let id = self.file(file, whole, budget);
            self.ids.1.push(id);
        }
        let (processes, files) = &self.ids;
        let place = |process: &mut u32, from_ns: &mut u64, to_ns: &mut u64| {
            *process = processes[*process as usize];
            *from_ns = from_ns.saturating_add(offset_ns);
            *to_ns = to_ns.saturating_add(offset_ns);
        };
        let mut news = Who {
            rows: std::mem::take(&mut part.rows),
            file_rows: std::mem::take(&mut part.file_rows),
            samples: std::mem::take(&mut part.samples),
            requests: std::mem::take(&mut part.requests),
            ..Who::default()
        };
        for row in &mut news.rows {
            place(&mut row.process, &mut row.from_ns, &mut row.to_ns);
        }
        for row in &mut news.file_rows {
            place(&mut row.process, &mut row.from_ns, &mut row.to_ns);
            row.file = files[row.file as usize];
        }
        for row in &mut news.samples {
            place(&mut row.process, &mut row.from_ns, &mut row.to_ns);
        }
        for row in &mut news.requests {
            place(&mut row.process, &mut row.from_ns, &mut row.to_ns);
        }
        self.store.rows(whole, news);
    }

    /// Gives all rows the same length, and says how many names are missing.
    pub(super) fn finish(&self, whole: &mut Who) -> Vec<String> {
        self.store.finish(whole)
    }

    fn process(&mut self, process: &Process, whole: &mut Who, budget: &mut Budget) -> u32 {
        let key = ProcessKey::of(process);
        if let Some(id) = self.processes.get(&key) {
            return *id;
        }
        // The key has the texts again.
        let bytes = size_of::<ProcessKey>() + 2 * (process.name.len() + process.group.len());
        let made = |id| Process { id, ..process.clone() };
        let Some(id) = self.store.keep_process(whole, budget, bytes, made) else {
            return self.store.other_process(whole);
        };
        self.processes.insert(key, id);
        id
    }

    fn file(&mut self, file: &FileIdentity, whole: &mut Who, budget: &mut Budget) -> u32 {
        let key = (file.device, file.inode, file.path.clone());
        if let Some(id) = self.files.get(&key) {
            return *id;
        }
        let bytes = size_of::<FileKey>() + 2 * file.path.as_ref().map_or(0, String::len);
        let made = |id| FileIdentity { id, ..file.clone() };
        let Some(id) = self.store.keep_file(whole, budget, bytes, made) else {
            return self.store.other_file(whole);
        };
        self.files.insert(key, id);
        id
    }
}
