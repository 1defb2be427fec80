//! The processor time of a recorder that runs in the background, as the kernel charged it to all
//! of its threads.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process::Running;

/// Recorders write their last chunk within this time; any other is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Starts `command` in the background, silent.
pub(in crate::bench) fn start(name: &str, command: Command) -> Result<Running, Error> {
    Running::silent(command).map_err(|error| Error::Program {
        program: name.to_owned(),
        what: format!("cannot start: {error}"),
    })
}

/// The share of a core, in percent, that `command` and the processes called one of `daemons` used
/// between `settle` and `window` later. It is asked to end then, as a service manager does.
pub(super) fn core_percent(
    name: &str,
    command: Command,
    daemons: &[&str],
    (settle, window): (Duration, Duration),
) -> Result<f64, Error> {
    let mut running = start(name, command)?;
    sleep(settle);
    let mut pids = vec![running.pid()];
    pids.extend(named(daemons));
    let cpu = |pids: &[u32]| pids.iter().filter_map(|pid| cpu_ns(*pid)).sum::<u64>();
    let (before, started) = (cpu(&pids), Instant::now());
    sleep(window);
    let (after, elapsed) = (cpu(&pids), started.elapsed());
    if !running.is_alive() || after < before {
        return Err(Error::Program {
            program: name.to_owned(),
            what: "ended while it was measured".to_owned(),
        });
    }
    // How it ends is no part of what it cost.
    let _ = running.end(GRACE);
    Ok((after - before) as f64 / elapsed.as_nanos() as f64 * 100.0)
}

/// Time on a processor of all threads that live, in nanoseconds; `None` if it is gone.
pub(in crate::bench) fn cpu_ns(pid: u32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let sum = threads
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    Some(sum)
}

/// The processes with one of these names.
fn named(names: &[&str]) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten();
    processes
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            names.contains(&comm.trim()).then_some(pid)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_costs_more_than_a_sleeper() {
        let share = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let times = (Duration::from_millis(50), Duration::from_millis(400));
            core_percent("sh", command, &[], times).unwrap()
        };
        assert!(share("while :; do :; done") > share("exec sleep 60"));
        assert!(cpu_ns(u32::MAX).is_none());
    }
}
