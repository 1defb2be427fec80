//! Whether others want the processors at this moment.
//!
//! From /proc/loadavg, where the kernel counts tasks that run or want to: /proc/stat says the same
//! behind a line for each interrupt, which is long on large machines.

use crate::cpu;
use crate::root::{ProcFile, Root};
use sys::Result;

/// How many tasks want the processors, the calling thread not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// No other task.
    None,
    /// Fewer than there are processors.
    Some,
    /// At least as many as there are processors.
    Full,
}

/// The open file that says so; cheap to ask often.
#[derive(Debug)]
pub struct DemandReader {
    loadavg: ProcFile,
    processors: usize,
}

impl DemandReader {
    /// Opens it.
    ///
    /// # Errors
    /// `NotFound` where /proc is missing.
    pub fn open(root: &Root) -> Result<Self> {
        Ok(Self {
            loadavg: ProcFile::open(root, "/proc/loadavg")?,
            processors: cpu::online_count(root).max(1),
        })
    }

    /// How many processors there are.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The demand at this moment; `None` if the kernel does not say.
    pub fn now(&mut self) -> Option<Demand> {
        let others = running(self.loadavg.text()?)?.saturating_sub(1);
        Some(match others {
            0 => Demand::None,
            _ if others < self.processors => Demand::Some,
            _ => Demand::Full,
        })
    }
}

/// Threads that run or want to: the first number of the fourth field.
fn running(text: &str) -> Option<usize> {
    let (running, _all) = text.split_whitespace().nth(3)?.split_once('/')?;
    running.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use testkit::FakeRoot;

    #[test]
    fn who_asks_does_not_count() {
        let demand = |running: usize| {
            let tree = FakeRoot::bare()
                .file("/proc/loadavg", format!("0.10 0.20 0.30 {running}/321 4567\n"))
                .file("/sys/devices/system/cpu/online", "0-1\n");
            let mut reader = DemandReader::open(&Root::at(tree.path())).unwrap();
            assert_eq!(reader.processors(), 2);
            reader.now().unwrap()
        };
        let seen = [0, 1, 2, 3, 4].map(demand);
        let expected = [Demand::None, Demand::None, Demand::Some, Demand::Full, Demand::Full];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_spinning_thread_for_each_processor_is_full_demand() {
        let mut reader = DemandReader::open(&Root::system()).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..reader.processors() {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            let demand = reader.now();
            over.store(true, Ordering::Relaxed);
            assert_eq!(demand, Some(Demand::Full));
        });
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "([0-9. /]{0,30})?\\PC{0,60}") {
            let _ = running(&text);
        }
    }
}
