//! The clock of the day: what it shows, and whether somebody set it while a recording ran,
//! which keeps to the steady clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The clock was set if it moved against the steady one by more than this.
const CLOCK_JUMP_NS: i128 = 1_000_000_000;
const SECOND_NS: f64 = 1e9;

/// The clock of the day as it was when last looked at.
#[derive(Debug)]
pub(super) struct DayClock {
    /// What it showed, less the steady clock.
    offset_ns: i128,
}

impl DayClock {
    /// As it is now.
    pub fn now() -> Self {
        Self {
            offset_ns: i128::from(now_ns()) - i128::from(sys::clock::now_ns()),
        }
    }

    /// Looks again; the words for a clock that was set in between.
    pub fn jump(&mut self) -> Option<String> {
        let before = std::mem::replace(self, Self::now());
        jump(self.offset_ns - before.offset_ns)
    }
}

/// Nanoseconds since 1970; 0 before that.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// The words for a clock of the day that moved so far against the steady one; `None` for the
/// small steps that keep it right.
fn jump(moved_ns: i128) -> Option<String> {
    if moved_ns.abs() <= CLOCK_JUMP_NS {
        return None;
    }
    let way = if moved_ns > 0 { "forward" } else { "back" };
    let seconds = moved_ns.abs() as f64 / SECOND_NS;
    Some(format!("the clock was set {way} by {seconds:.1} s"))
}

#[cfg(test)]
mod tests {
    use super::jump;

    #[test]
    fn only_a_clock_that_was_set_is_noted() {
        assert_eq!(jump(0), None);
        assert_eq!(jump(-1_000_000_000), None);
        let words = |moved_ns| jump(moved_ns).unwrap();
        assert_eq!(
            words(3_600_000_000_000),
            "the clock was set forward by 3600.0 s"
        );
        assert_eq!(words(-1_500_000_000), "the clock was set back by 1.5 s");
    }
}
