//! What is refused before anything starts: plans without sense, and more memory than there
//! is, for which the kernel would kill others.

use super::HogPlan;
use crate::{Error, ErrorKind, Result};
use machine::memory::{self, Usable};
use machine::{Root, pressure};
use model::Bytes;

/// A hog's process beside what it hogs.
const PROCESS_BYTES: u64 = 4 << 20;
/// A group with less could not even start a process.
const LEAST_GROUP_BYTES: u64 = 8 << 20;
const OPERATION: &str = "start the hogs";

impl HogPlan {
    /// Whether it makes sense and this machine bears it.
    ///
    /// # Errors
    /// `Usage` for a plan that makes no sense; `Impossible` for one that would bring the
    /// out-of-memory killer on others (unless forced), and for a wish for pressure that this
    /// kernel does not account.
    pub fn check(&self, root: &Root) -> Result<()> {
        if let Some(why) = self.nonsense() {
            return Err(Error::new(ErrorKind::Usage, OPERATION, why));
        }
        if self.until_pressure_percent.is_some() && pressure::read(root, "memory").is_none() {
            let why = "this kernel does not account pressure (/proc/pressure/memory)";
            return Err(Error::new(ErrorKind::Impossible, OPERATION, why));
        }
        match self.refusal(root) {
            Some(why) if !self.force => Err(Error::new(ErrorKind::Impossible, OPERATION, why)),
            _ => Ok(()),
        }
    }

    fn nonsense(&self) -> Option<String> {
        let percent = self.until_pressure_percent.unwrap_or(1);
        let group = self.group_limit.map_or(u64::MAX, |limit| limit.0);
        if self.size.0 == 0 || self.count == 0 || self.repeat == 0 {
            Some("size, count and repeat are at least 1".to_owned())
        } else if !(1..=100).contains(&percent) {
            Some("pressure is a share of time, from 1 to 100 %".to_owned())
        } else if group < LEAST_GROUP_BYTES {
            let least = Bytes(LEAST_GROUP_BYTES);
            Some(format!("a group needs at least {least} to hold a process"))
        } else if self.touch == super::HogTouch::Loop && self.hold.is_zero() {
            Some("memory is touched in a loop while it is held, and it is not held".to_owned())
        } else {
            None
        }
    }

    /// All that the hogs of one round take together.
    fn wanted(&self) -> Bytes {
        let each = self.size.0.saturating_add(PROCESS_BYTES);
        Bytes(each.saturating_mul(u64::from(self.count)))
    }

    /// Why others might be killed for this plan; `None` if there is room.
    fn refusal(&self, root: &Root) -> Option<String> {
        let wanted = self.wanted();
        let Some(room) = self.room(root) else {
            return Some("the kernel does not say how much memory is available".to_owned());
        };
        (wanted > room.bytes).then(|| {
            format!(
                "they take {wanted}, and {} of memory and swap can be had (bound: {}); somebody \
                 would be killed for it",
                room.bytes, room.bound_by
            )
        })
    }

    /// What may be taken without danger.
    fn room(&self, root: &Root) -> Option<Usable> {
        let memory = memory::read(root);
        let mut room = memory::obtainable(root)?;
        if room.bound_by == "machine" {
            room.bytes.0 = room.bytes.0.saturating_sub(memory::left_to_others(memory.total).0);
        }
        let own = self.group_limit.map(|limit| Usable {
            bytes: Bytes(limit.0.saturating_add(memory.swap_free.map_or(0, |free| free.0))),
            bound_by: "their own group".to_owned(),
        });
        [Some(room), own].into_iter().flatten().min_by_key(|room| room.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::HogTouch;
    use super::*;
    use sys::helper::HiddenCommand;
    use testkit::FakeRoot;

    fn plan() -> HogPlan {
        let helper = HiddenCommand::new(["none"]);
        HogPlan { count: 2, repeat: 25, ..HogPlan::new(Bytes(1 << 30), helper) }
    }

    /// A machine with this many MiB available and free in swap, of 2,000 MiB.
    fn machine(available: u64, swap: u64) -> FakeRoot {
        let kib = |mib: u64| mib * 1024;
        let text = format!(
            "MemTotal: {} kB\nMemAvailable: {} kB\nSwapFree: {} kB\n",
            kib(2000),
            kib(available),
            kib(swap)
        );
        FakeRoot::bare().file("/proc/meminfo", text)
    }

    #[test]
    fn what_would_not_fit_is_refused_with_the_figure() {
        let check = |tree: FakeRoot, plan: &HogPlan| plan.check(&Root::at(tree.path()));
        // 2 GiB and two processes are 2,056 MiB; 125 MiB are left to others.
        assert!(check(machine(1185, 1000), &plan()).is_ok());
        let error = check(machine(1175, 1000), &plan()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Impossible);
        let text = error.to_string();
        assert!(text.contains("2.01 GiB") && text.contains("2 GiB of memory"), "{text}");
        let forced = HogPlan { force: true, ..plan() };
        assert!(check(machine(1175, 1000), &forced).is_ok());
    }

    #[test]
    fn an_own_group_bounds_what_stays_in_memory() {
        let in_group = |limit: u64| HogPlan { group_limit: Some(Bytes(limit << 20)), ..plan() };
        let tree = machine(1500, 1000);
        let root = Root::at(tree.path());
        assert!(in_group(1100).check(&root).is_ok());
        let error = in_group(1000).check(&root).unwrap_err().to_string();
        assert!(error.contains("their own group"), "{error}");
        assert_eq!(in_group(4).check(&root).unwrap_err().kind, ErrorKind::Usage);
    }

    #[test]
    fn nonsense_is_refused_even_by_force() {
        let tree = machine(4000, 4000);
        let root = Root::at(tree.path());
        let nonsense = [
            HogPlan { count: 0, ..plan() },
            HogPlan { repeat: 0, ..plan() },
            HogPlan { size: Bytes(0), ..plan() },
            HogPlan { until_pressure_percent: Some(101), ..plan() },
            HogPlan { touch: HogTouch::Loop, ..plan() },
        ];
        for plan in nonsense {
            let forced = HogPlan { force: true, ..plan };
            assert_eq!(forced.check(&root).unwrap_err().kind, ErrorKind::Usage, "{forced:?}");
        }
        let until = HogPlan { until_pressure_percent: Some(20), ..plan() };
        assert_eq!(until.check(&root).unwrap_err().kind, ErrorKind::Impossible);
    }
}
