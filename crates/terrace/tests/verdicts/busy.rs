//! Who had the processors while a case ran: read here and not taken from the program under
//! test, so that a verdict that blames the neighbours is checked and not believed.

use std::fs;
use std::time::{Duration, Instant};

/// A case is disturbed where others had more of all processors than this: a quarter is half
/// of one of two, enough to make waiting for a processor the true first cause.
pub const DISTURBED: f64 = 0.25;

/// Processor time up to an instant, in the kernel's ticks.
pub struct Processors {
    /// Of programs, and what the host took. Not the kernel's own: its threads write back and
    /// reclaim for the case itself.
    programs: u64,
    all: u64,
    /// Of children that have ended, in their programs.
    own: u64,
}

impl Processors {
    /// Reads /proc/stat, and the children of this process that have ended.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let all: Vec<u64> = numbers(stat.lines().next().unwrap());
        let text = fs::read_to_string("/proc/self/stat").unwrap();
        // After the name in parentheses and the state: field 16 is the children's.
        let own = numbers(text.rsplit_once(')').unwrap().1);
        let (user, nice, steal) = (all[0], all[1], all[7]);
        Self {
            programs: user + nice + steal,
            // Guests are in user time already.
            all: all[..8].iter().sum(),
            own: own[12],
        }
    }

    /// What programs had that are no children that have ended since, as a share of all.
    pub fn others_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let programs = self.programs.saturating_sub(before.programs);
        let own = self.own.saturating_sub(before.own);
        programs.saturating_sub(own) as f64 / all as f64
    }
}

fn numbers(line: &str) -> Vec<u64> {
    let words = line.split_whitespace();
    let numbers = words.filter(|word| !word.starts_with(char::is_alphabetic));
    numbers.map(|word| word.parse().unwrap_or(0)).collect()
}

/// Waits until others leave the processors alone for a second, at most `limit`.
pub fn wait_for_quiet(limit: Duration) {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        let before = Processors::now();
        std::thread::sleep(Duration::from_secs(1));
        if Processors::now().others_since(&before) < DISTURBED {
            return;
        }
    }
}
