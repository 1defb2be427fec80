//! CPU time that the hypervisor gave to others while this machine wanted it ("steal").
//!
//! In ticks of the kernel's counter, mostly 10 ms: an increase during a trial proves a
//! disturbance, no increase does not disprove a short one.

use crate::root::{ProcFile, Root};
use sys::Result;

/// The position of "steal" after the label of a `cpu` line: user nice system idle iowait irq
/// softirq steal.
const STEAL_FIELD: usize = 7;

/// The stolen ticks of one CPU since boot, or of all for `None`; `None` if the kernel does
/// not say.
#[must_use]
pub fn steal_ticks(root: &Root, cpu: Option<usize>) -> Option<u64> {
    parse(&root.read("/proc/stat").ok()?, cpu)
}

/// The same from the text of /proc/stat.
#[must_use]
pub fn parse(text: &str, cpu: Option<usize>) -> Option<u64> {
    text.lines().find_map(|line| {
        let (label, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
        let is_it = match cpu {
            None => label.is_empty(),
            Some(number) => label.parse() == Ok(number),
        };
        is_it.then(|| fields.split_whitespace().nth(STEAL_FIELD)?.parse().ok()).flatten()
    })
}

/// /proc/stat held open, for readings around every trial.
#[derive(Debug)]
pub struct StealReader(ProcFile);

impl StealReader {
    /// Opens /proc/stat.
    ///
    /// # Errors
    /// `NotFound` where /proc is missing.
    pub fn open(root: &Root) -> Result<Self> {
        ProcFile::open(root, "/proc/stat").map(Self)
    }

    /// As [`steal_ticks`].
    pub fn read(&mut self, cpu: Option<usize>) -> Option<u64> {
        parse(self.0.text()?, cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
cpu  1 2 3 4 5 6 7 88 9 10
cpu0 1 2 3 4 5 6 7 8 9 10
cpu10 1 2 3 4 5 6 7 80 9 10
intr 5 6 7
";

    #[test]
    fn each_cpu_has_its_own_line() {
        assert_eq!(parse(TEXT, None), Some(88));
        assert_eq!(parse(TEXT, Some(0)), Some(8));
        assert_eq!(parse(TEXT, Some(10)), Some(80));
        assert_eq!(parse(TEXT, Some(1)), None);
        assert_eq!(parse("cpu  1 2 3 4\n", None), None, "before Linux 2.6.11");
    }

    #[test]
    fn this_machine_tells_the_same_both_ways() {
        let root = Root::system();
        let mut reader = StealReader::open(&root).unwrap();
        let before = reader.read(None);
        let between = steal_ticks(&root, None);
        let after = reader.read(None);
        assert!(before.is_some() && before <= between && between <= after);
        assert_eq!(reader.read(Some(9999)), None);
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "(cpu)?\\PC{0,120}", cpu in prop::option::of(0usize..4)) {
            let _ = parse(&text, cpu);
        }
    }
}
