//! How long tasks stalled because a resource was short, summed since boot (PSI).
//!
//! Totals, not the kernel's own averages: a caller subtracts two readings.

use crate::root::Root;
use serde::Serialize;

/// Totals of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some_us: u64,
    /// Time in which all tasks that were not idle waited; absent for the CPU before Linux 5.13.
    pub full_us: Option<u64>,
}

/// The totals of `cpu`, `memory` or `io`; `None` where the kernel does not account them.
#[must_use]
pub fn read(root: &Root, resource: &str) -> Option<Pressure> {
    parse(&root.read(format!("/proc/pressure/{resource}")).ok()?)
}

/// The same from the text.
#[must_use]
pub fn parse(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(kind))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
    };
    Some(Pressure { some_us: total("some")?, full_us: total("full") })
}

/// Whether anybody waited in the last ten seconds, of which the kernel counts all but the last two:
/// `None` if the text does not say.
#[must_use]
pub fn lately(text: &str) -> Option<bool> {
    let rest = text.strip_prefix("some avg10=")?;
    let share: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(share > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_the_last_ten_seconds_is_read() {
        assert_eq!(lately("some avg10=0.00 avg60=0.51 total=8\n"), Some(false));
        assert_eq!(lately("some avg10=0.01 avg60=0.51 total=8\n"), Some(true));
        assert_eq!(lately("full avg10=0.01\n"), None);
    }

    #[test]
    fn totals_of_both_kinds() {
        let text = "some avg10=0.00 avg60=0.51 avg300=0.47 total=8946184\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        let expected = Pressure { some_us: 8_946_184, full_us: Some(7) };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("some total=5\n"), Some(Pressure { some_us: 5, full_us: None }));
        assert_eq!(parse(""), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses(text in "(some )?\\PC{0,120}") {
            let _ = parse(&text);
        }
    }
}
