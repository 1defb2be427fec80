//! DAMON, the kernel's monitor of which memory is used: schemes that evict what was not used
//! for a while, short of memory or not (`/sys/kernel/mm/damon/admin`, Linux 5.18).
//!
//! It watches regions, not pages: what was just read goes with a region that lay unused.

use crate::root::Root;
use std::time::Duration;

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// How long a region of the machine's memory must be unused until a scheme that always runs
/// evicts it, by the earliest such scheme; `None` if there is no such scheme or its settings are
/// absent. Left out are schemes of single processes, and those that wait until little is free.
#[must_use]
pub fn pages_out_after(root: &Root) -> Option<Duration> {
    let running = |thread: &String| is(root, thread, "state", "on");
    let all_memory = |context: &String| is(root, context, "operations", "paddr");
    let contexts = numbered(root, KDAMONDS)
        .filter(running)
        .flat_map(|thread| numbered(root, &format!("{thread}/contexts")))
        .filter(all_memory);
    contexts
        .filter_map(|context| {
            let schemes = numbered(root, &format!("{context}/schemes"));
            let intervals = schemes.filter_map(|scheme| unused_intervals(root, &scheme));
            let interval_us: u64 =
                root.number(format!("{context}/monitoring_attrs/intervals/aggr_us"))?;
            Some(Duration::from_micros(interval_us.saturating_mul(intervals.min()?)))
        })
        .min()
}

/// The number of monitor intervals that a region is unused until this scheme evicts it.
fn unused_intervals(root: &Root, scheme: &str) -> Option<u64> {
    let always = is(root, scheme, "watermarks/metric", "none");
    let evicts = always && is(root, scheme, "action", "pageout");
    root.number(format!("{scheme}/access_pattern/age/min")).filter(|_| evicts)
}

fn is(root: &Root, directory: &str, file: &str, word: &str) -> bool {
    root.word(format!("{directory}/{file}")).as_deref() == Some(word)
}

/// The directories whose names are numbers.
fn numbered(root: &Root, directory: &str) -> impl Iterator<Item = String> + use<> {
    let parent = directory.to_owned();
    root.names(directory)
        .into_iter()
        .filter(|name| name.parse::<u32>().is_ok())
        .map(move |name| format!("{parent}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    const CONTEXT: &str = "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0";

    /// A thread with two schemes, the second of which is the earlier one.
    fn tree(actions: [&str; 2]) -> FakeRoot {
        let mut tree = FakeRoot::bare()
            .file(&format!("{KDAMONDS}/nr_kdamonds"), "1\n")
            .file(&format!("{KDAMONDS}/0/state"), "on\n")
            .file(&format!("{CONTEXT}/operations"), "paddr\n")
            .file(&interval(), "5000000\n");
        for (index, (action, age)) in actions.iter().zip(["24", "12"]).enumerate() {
            let file = |name: &str| format!("{CONTEXT}/schemes/{index}/{name}");
            tree = tree
                .file(&file("action"), format!("{action}\n"))
                .file(&file("watermarks/metric"), "none\n")
                .file(&file("access_pattern/age/min"), format!("{age}\n"));
        }
        tree
    }

    fn interval() -> String {
        format!("{CONTEXT}/monitoring_attrs/intervals/aggr_us")
    }

    fn after_s(tree: &FakeRoot) -> Option<u64> {
        pages_out_after(&Root::at(tree.path())).map(|unused| unused.as_secs())
    }

    #[test]
    fn the_earliest_scheme_that_pushes_out_counts() {
        assert_eq!(after_s(&tree(["pageout", "pageout"])), Some(60));
        assert_eq!(after_s(&tree(["pageout", "stat"])), Some(120));
        assert_eq!(after_s(&tree(["stat", "lru_deprio"])), None);
        assert_eq!(after_s(&FakeRoot::bare()), None);
    }

    #[test]
    fn only_schemes_that_are_always_on_for_all_memory_and_configured_count() {
        let scheme = |name: &str| format!("{CONTEXT}/schemes/1/{name}");
        for (file, text) in [
            (format!("{KDAMONDS}/0/state"), "off\n"),
            (format!("{CONTEXT}/operations"), "vaddr\n"),
            (interval(), "\n"),
            (scheme("watermarks/metric"), "free_mem_rate\n"),
            (scheme("access_pattern/age/min"), "many\n"),
        ] {
            let tree = tree(["stat", "pageout"]);
            assert_eq!(after_s(&tree), Some(60));
            assert_eq!(after_s(&tree.file(&file, text)), None, "{file}");
        }
    }
}
