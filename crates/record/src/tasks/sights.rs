//! What can be measured of delays on this machine, by this user, and what would open the rest.
//!
//! A refusal is not an error of the recorder: it becomes a reason and, if there is one, a remedy.

use model::recording::SourceState;
use std::fs;
use sys::ErrorKind;
use sys::taskstats::Connection;

/// A process that is as old as the machine: its delays show whether delay accounting was on from
/// the start.
pub(super) const WITNESS: u32 = 1;

/// The setting that switches delay accounting for threads that begin after it.
pub(crate) const DELAY_SWITCH: &str = "/proc/sys/kernel/task_delayacct";

/// A listener to the ends of threads, and the sight of them.
pub(super) fn listen() -> (Option<Connection>, SourceState) {
    // If it cannot be read, 64 processors are assumed: the kernel cuts the list.
    let cpus = fs::read_to_string("/sys/devices/system/cpu/possible")
        .unwrap_or_else(|_| "0-63".to_owned());
    let opened = Connection::open().and_then(|mut connection| {
        connection.listen(&cpus)?;
        Ok(connection)
    });
    match opened {
        Ok(connection) => (Some(connection), SourceState::Open),
        Err(error) => (None, closed(&error)),
    }
}

/// Whether threads that begin now are charged for block I/O, and the sight of it.
pub(super) fn delay_accounting(since_boot: bool) -> (bool, SourceState) {
    delays_of(fs::read_to_string(DELAY_SWITCH).ok().as_deref(), since_boot)
}

fn delays_of(switch: Option<&str>, since_boot: bool) -> (bool, SourceState) {
    match switch.map(str::trim) {
        Some("0") => {
            let why = "kernel.task_delayacct is 0: the kernel counts no waits for block I/O";
            let remedy = "`terrace run --apply ...`, or `sysctl kernel.task_delayacct=1`";
            (false, SourceState::closed(why, Some(remedy)))
        }
        Some(_) => (true, SourceState::Open),
        // Before Linux 5.14 it has no switch and is on unless the boot loader said no.
        None if since_boot => (true, SourceState::Open),
        None => {
            let why = "this kernel does not count waits for block I/O, or does not say so";
            (false, SourceState::closed(why, None))
        }
    }
}

fn closed(error: &sys::Error) -> SourceState {
    match error.kind {
        ErrorKind::Denied => {
            SourceState::closed("only root may listen to the ends of threads", Some("sudo"))
        }
        ErrorKind::Invalid => SourceState::closed(
            "the kernel tells a PID or user namespace nothing about the ends of threads",
            Some("run it on the host, outside the container"),
        ),
        ErrorKind::NotFound => SourceState::closed("this kernel has no task accounting", None),
        _ => SourceState::closed(error.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_decides_and_without_one_the_witness() {
        let state = |switch, since_boot| {
            let (charging, sight) = delays_of(switch, since_boot);
            assert_eq!(charging, sight.is_open());
            charging
        };
        assert!(!state(Some("0\n"), true));
        assert!(state(Some("1\n"), false));
        assert!(state(None, true));
        assert!(!state(None, false));
    }

    #[test]
    fn reasons_have_a_remedy_where_there_is_one() {
        let sight = |number| {
            let source = std::io::Error::from_raw_os_error(number);
            match closed(&sys::Error::new("listen", source)) {
                SourceState::Closed { why, remedy } => (why, remedy),
                other => panic!("{other:?}"),
            }
        };
        // EPERM, EINVAL and ENOENT.
        assert!(sight(1).0.contains("root") && sight(1).1.is_some());
        assert!(sight(22).0.contains("namespace") && sight(22).1.is_some());
        assert_eq!(sight(2).1, None);
    }
}
