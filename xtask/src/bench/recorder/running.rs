//! A recorder that runs: started in the background, its processor time read while it
//! runs, asked to end as a service manager does.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Recorders write their last chunk within this time; any other is killed.
const GRACE: Duration = Duration::from_secs(10);

/// A process of ours in the background; killed on drop.
pub(super) struct Running {
    name: String,
    child: Child,
}

impl Running {
    /// Starts `command`, silent.
    pub(super) fn start(name: &str, mut command: Command) -> Result<Self, Error> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Error::Program {
                program: name.to_owned(),
                what: format!("cannot start: {error}"),
            })?;
        Ok(Self { name: name.to_owned(), child })
    }

    /// The share of a core, in percent, that it and the processes called one of `daemons`
    /// used between `settle` and `window` later.
    pub(super) fn core_percent(
        &mut self,
        daemons: &[&str],
        settle: Duration,
        window: Duration,
    ) -> Result<f64, Error> {
        sleep(settle);
        let mut pids = vec![self.child.id()];
        pids.extend(named(daemons));
        let cpu = |pids: &[u32]| pids.iter().filter_map(|pid| cpu_ns(*pid)).sum::<u64>();
        let (before, started) = (cpu(&pids), Instant::now());
        sleep(window);
        let (after, elapsed) = (cpu(&pids), started.elapsed());
        if self.child.try_wait().ok().flatten().is_some() || after < before {
            return Err(Error::Program {
                program: self.name.clone(),
                what: "ended while it was measured".to_owned(),
            });
        }
        Ok((after - before) as f64 / elapsed.as_nanos() as f64 * 100.0)
    }

    /// Asks it to end, waits for it.
    pub(super) fn stop(mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if self.child.try_wait().ok().flatten().is_some() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Time on a processor of all threads that live, in nanoseconds; `None` if it is gone.
fn cpu_ns(pid: u32) -> Option<u64> {
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
            let mut running = Running::start("sh", command).unwrap();
            let window = Duration::from_millis(400);
            let share = running.core_percent(&[], Duration::from_millis(50), window);
            running.stop();
            share.unwrap()
        };
        assert!(share("while :; do :; done") > share("exec sleep 60"));
        assert!(cpu_ns(u32::MAX).is_none());
    }
}
