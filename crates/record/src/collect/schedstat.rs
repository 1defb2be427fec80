//! Scheduler totals that are cheap enough for every look: of all CPUs together, and of the
//! main thread of the process that is watched.
//!
//! The sums over the subject's threads are the process tree's; these are single files, held
//! open, which the pre-history of a burst reads a hundred times a second.

use super::{Moment, Source};
use crate::registry::{ABSENT, Registry};
use machine::schedstat::{RunDelay, parse, parse_machine};
use machine::{ProcFile, Root};
use model::recording::SeriesKind;

/// The totals of a file, in the order of [`RunDelay`].
pub(crate) const TOTALS: [(&str, &str); 3] =
    [("run_ns", "ns"), ("queue_ns", "ns"), ("timeslices", "count")];

/// A longer file is one of hundreds of CPUs, whose reading alone would show in the sample.
const MAX_BYTES: usize = 64 << 10;

type Parse = fn(&str) -> Option<RunDelay>;

/// A file of such totals, held open.
#[derive(Debug)]
pub(crate) struct Schedstat {
    file: ProcFile,
    parse: Parse,
    columns: [Option<u32>; TOTALS.len()],
}

/// The files for these processes at the top of the subject: that of the machine, if the kernel has
/// it, and that of the first process. The process number may be used again once the process has
/// ended; the open file still belongs to the ended one.
pub(crate) fn open(root: &Root, processes: &[u32], registry: &mut Registry) -> Vec<Schedstat> {
    let mut keep = |path: &str, source: &str, prefix: &str, parse: Parse| {
        let mut file = ProcFile::open(root, path).ok()?;
        if file.bytes()?.len() > MAX_BYTES {
            return None;
        }
        let column = |(name, unit): (&str, &str)| {
            registry.id(&format!("{prefix}.{name}"), unit, SeriesKind::Counter, source)
        };
        let columns = TOTALS.map(column);
        Some(Schedstat { file, parse, columns })
    };
    let path = "/proc/schedstat";
    let machine = keep(path, path, "schedstat", parse_machine);
    let leader = processes.first().and_then(|pid| {
        let path = format!("/proc/{pid}/schedstat");
        keep(&path, "/proc/PID/schedstat", "leader", parse)
    });
    machine.into_iter().chain(leader).collect()
}

impl Schedstat {
    /// The series of its totals.
    pub fn columns(&self) -> [Option<u32>; TOTALS.len()] {
        self.columns
    }

    /// The totals now; absent once the process has ended.
    pub fn totals(&mut self) -> [Option<i64>; TOTALS.len()] {
        let now = self.file.text().and_then(self.parse);
        let number = |number: fn(&RunDelay) -> u64| i64::try_from(number(now.as_ref()?)).ok();
        [number(|now| now.on_cpu_ns), number(|now| now.waited_ns), number(|now| now.slices)]
    }
}

impl Source for Schedstat {
    fn read(&mut self, moment: &mut Moment<'_>) {
        for (column, total) in self.columns.into_iter().zip(self.totals()) {
            if let Some(column) = column {
                moment.row.set(column, total.unwrap_or(ABSENT));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    #[test]
    fn the_machine_and_the_first_process() {
        let tree = FakeRoot::bare()
            .file("/proc/schedstat", "version 17\ncpu0 0 0 0 0 0 0 70 80 9\n")
            .file("/proc/7/schedstat", "1 2 3\n");
        let mut registry = Registry::new();
        let mut opened = open(&Root::at(tree.path()), &[7, 8], &mut registry);
        let totals: Vec<_> = opened.iter_mut().map(Schedstat::totals).collect();
        let all = |numbers: [i64; 3]| numbers.map(Some);
        assert_eq!(totals, [all([70, 80, 9]), all([1, 2, 3])]);
        let last = registry.schemas().last().unwrap();
        assert_eq!(last.name, "leader.timeslices");
    }

    #[test]
    fn a_file_of_hundreds_of_cpus_is_left_alone() {
        let text = "cpu0 0 0 0 0 0 0 70 80 9\n".repeat(MAX_BYTES / 20);
        let tree = FakeRoot::bare().file("/proc/schedstat", text);
        let mut registry = Registry::new();
        assert!(open(&Root::at(tree.path()), &[], &mut registry).is_empty());
        assert!(registry.schemas().is_empty());
    }

    #[test]
    fn what_has_ended_is_absent() {
        if !std::path::Path::new("/proc/self/schedstat").exists() {
            return testkit::skip("/proc/self/schedstat");
        }
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut registry = Registry::new();
        let mut opened = open(&Root::system(), &[child.id()], &mut registry);
        let leader = opened.last_mut().unwrap();
        assert!(leader.totals().iter().all(Option::is_some));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(leader.totals(), [None; TOTALS.len()]);
    }
}
