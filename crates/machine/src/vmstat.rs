//! The kernel's counters of memory management, by name.
//!
//! Names come and go with kernels, so they are looked up, never assumed.

use crate::root::Root;
use std::collections::BTreeMap;

/// All counters; empty where the kernel does not say.
#[must_use]
pub fn read(root: &Root) -> BTreeMap<String, u64> {
    root.read("/proc/vmstat").map(|text| parse(&text)).unwrap_or_default()
}

/// One counter; `None` if this kernel does not have it.
#[must_use]
pub fn counter(root: &Root, name: &str) -> Option<u64> {
    crate::parse::value_of(&root.read("/proc/vmstat").ok()?, name)
}

/// The counters of a text of lines "name number"; other lines are skipped.
#[must_use]
pub fn parse(text: &str) -> BTreeMap<String, u64> {
    let counters = text.lines().filter_map(counter_of);
    counters.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// The sum of the counters of a text whose names begin with `prefix`, as one that is kept for
/// each zone; `None` if all are absent.
#[must_use]
pub fn sum_of(text: &str, prefix: &str) -> Option<u64> {
    text.lines()
        .filter(|line| line.starts_with(prefix))
        .filter_map(|line| Some(counter_of(line)?.1))
        .reduce(u64::saturating_add)
}

/// "name number"
fn counter_of(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(' ')?;
    Some((name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_lead_to_numbers() {
        let counters = parse("pgfault 12\npgmajfault 3\nodd\nnr_x y\n");
        assert_eq!(counters.get("pgfault"), Some(&12));
        assert_eq!(counters.len(), 2);
    }

    #[test]
    fn counters_of_zones_are_one_sum() {
        let text = "allocstall_dma 1\nallocstall_normal 40\nallocated 9\nallocstall_odd x\n";
        assert_eq!(sum_of(text, "allocstall"), Some(41));
        assert_eq!(sum_of(text, "stall"), None);
    }

    #[test]
    fn faults_of_this_machine_grow() {
        let root = Root::system();
        let before = counter(&root, "pgfault").unwrap();
        let memory = vec![1u8; 1 << 20];
        assert!(counter(&root, "pgfault").unwrap() >= before);
        assert_eq!(std::hint::black_box(memory).len(), 1 << 20);
        assert_eq!(counter(&root, "pgfaul"), None);
        assert!(read(&root).contains_key("pgfault"));
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,120}") {
            let _ = parse(&text);
        }
    }
}
