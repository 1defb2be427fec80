//! DAMON, the kernel's monitor of which memory is used: schemes that push out what nobody used
//! for a while, whether or not memory is short (`/sys/kernel/mm/damon/admin`, Linux 5.18).

use crate::root::Root;
use std::time::Duration;

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";
/// The scheme's action that writes pages out and frees them.
const PAGEOUT: &str = "pageout";

/// How long memory must lie unused before a running scheme pushes it out, by the scheme that does
/// so earliest; `None` where none runs, or where it is not told.
#[must_use]
pub fn pages_out_after(root: &Root) -> Option<Duration> {
    let numbered = |directory: &str| -> Vec<String> {
        let names = root.names(directory).into_iter();
        let names = names.filter(|name| name.parse::<u32>().is_ok());
        names.map(|name| format!("{directory}/{name}")).collect()
    };
    let running = |thread: &String| root.word(format!("{thread}/state")).as_deref() == Some("on");
    let contexts = numbered(KDAMONDS)
        .into_iter()
        .filter(running)
        .flat_map(|thread| numbered(&format!("{thread}/contexts")));
    let schemes = contexts.flat_map(|context| {
        let interval_us = format!("{context}/monitoring_attrs/intervals/aggr_us");
        let interval_us: Option<u64> = root.number(interval_us);
        let schemes = numbered(&format!("{context}/schemes")).into_iter();
        schemes.map(move |scheme| (scheme, interval_us))
    });
    let unused = schemes.filter_map(|(scheme, interval_us)| {
        let action = root.word(format!("{scheme}/action"))?;
        let intervals: u64 = root.number(format!("{scheme}/access_pattern/age/min"))?;
        let unused = Duration::from_micros(interval_us?.saturating_mul(intervals));
        (action == PAGEOUT).then_some(unused)
    });
    unused.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// A thread with two schemes.
    fn tree(state: &str, actions: [&str; 2]) -> FakeRoot {
        let thread = format!("{KDAMONDS}/0");
        let context = format!("{thread}/contexts/0");
        let mut tree = FakeRoot::bare()
            .file(&format!("{KDAMONDS}/nr_kdamonds"), "1\n")
            .file(&format!("{thread}/state"), format!("{state}\n"))
            .file(
                &format!("{context}/monitoring_attrs/intervals/aggr_us"),
                "5000000\n",
            );
        for (index, (action, age)) in actions.iter().zip(["24", "12"]).enumerate() {
            let scheme = format!("{context}/schemes/{index}");
            tree = tree
                .file(&format!("{scheme}/action"), format!("{action}\n"))
                .file(
                    &format!("{scheme}/access_pattern/age/min"),
                    format!("{age}\n"),
                );
        }
        tree
    }

    fn after_s(tree: &FakeRoot) -> Option<u64> {
        pages_out_after(&Root::at(tree.path())).map(|unused| unused.as_secs())
    }

    #[test]
    fn the_earliest_scheme_that_pushes_out_counts() {
        assert_eq!(after_s(&tree("on", ["pageout", "pageout"])), Some(60));
        assert_eq!(after_s(&tree("on", ["pageout", "stat"])), Some(120));
    }

    #[test]
    fn others_and_those_that_do_not_run_do_not() {
        assert_eq!(after_s(&tree("off", ["pageout", "pageout"])), None);
        assert_eq!(after_s(&tree("on", ["stat", "lru_deprio"])), None);
        assert_eq!(after_s(&FakeRoot::bare()), None);
        let age = format!("{KDAMONDS}/0/contexts/0/schemes/1/access_pattern/age/min");
        let odd = tree("on", ["stat", "pageout"]).file(&age, "many\n");
        assert_eq!(after_s(&odd), None);
    }
}
