//! The daemon that the peer `pmlogger` asks: a `pmcd` of this suite's own, with the agent
//! for Linux alone, that listens in the suite's directory and ends with it.
//!
//! The system's own `pmcd`, should one run, is neither used nor disturbed, and no service
//! is switched on. What is logged is what a recording of ours holds of the whole machine,
//! without metrics that pmlogger computes: it reports each of those as a fault.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::LIMIT;
use super::running;
use crate::bench::directory::WorkDirectory;
use crate::error::Error;
use crate::process::{self, Running};

/// Where Debian and Fedora keep the daemon and its tools.
const PROGRAMS: &str = "/usr/lib/pcp/bin";

/// Where they keep names and agents.
const STATE: &str = "/var/lib/pcp";

/// pmcd listens to a port as well; this one is not the usual, and only of this machine.
const PORT: &str = "44399";

/// It listens within this, or something is wrong.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// What is logged, at the rate that the command line gives.
const LOGGED: &str = "log mandatory on default {
    kernel.all.cpu
    kernel.percpu.cpu
    kernel.all.pressure
    mem.util
    mem.vmstat
    disk.dev.read
    disk.dev.write
    disk.dev.read_bytes
    disk.dev.write_bytes
    disk.dev.read_merge
    disk.dev.write_merge
    disk.dev.read_rawactive
    disk.dev.write_rawactive
    disk.dev.avactive
    disk.dev.aveq
    disk.dev.flush
    disk.dev.discard
}
";

/// A daemon that runs; killed on drop, and its agent ends with it.
pub(super) struct Pmcd {
    _running: Running,
}

impl Pmcd {
    /// Starts it, and waits until it listens.
    pub(super) fn start(directory: &WorkDirectory) -> Result<Self, Error> {
        let agents = format!(
            "pmcd 2 dso pmcd_init {STATE}/pmdas/pmcd/pmda_pmcd.so\n\
             linux 60 pipe binary {STATE}/pmdas/linux/pmdalinux\n"
        );
        directory.write("pmcd.conf", agents)?;
        directory.write("pmlogger.conf", LOGGED)?;
        let mut merge = Command::new(format!("{PROGRAMS}/pmnsmerge"));
        // Another part of the suite may have merged them before.
        merge.arg("-f");
        merge.args(["root_linux", "root_pmcd"].map(|names| format!("{STATE}/pmns/{names}")));
        merge.arg(directory.file("names"));
        process::run(merge, LIMIT)?.success()?;
        let socket = directory.file("pmcd.socket");
        // One of an earlier daemon would pass for a daemon that listens.
        let _ = fs::remove_file(&socket);
        let mut daemon = Command::new(format!("{PROGRAMS}/pmcd"));
        daemon
            .args(["-f", "-A", "-U", "root", "-i", "127.0.0.1", "-p", PORT])
            .args(["-s", &socket, "-n", &directory.file("names")])
            .args(["-c", &directory.file("pmcd.conf"), "-l", &directory.file("pmcd.log")])
            .args(["-x", "/dev/null"])
            .env("PCP_RUN_DIR", directory.path())
            .current_dir(directory.path());
        let running = running::start("pmcd", daemon)?;
        let started = Instant::now();
        while !Path::new(&socket).exists() {
            if started.elapsed() > STARTS_WITHIN {
                let log = fs::read_to_string(directory.file("pmcd.log")).unwrap_or_default();
                let last = log.lines().rfind(|line| !line.is_empty());
                let why = last.unwrap_or("it says nothing").to_owned();
                return Err(Error::Failed(format!("pmcd does not listen: {why}")));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(Self { _running: running })
    }
}

/// The arguments of a `pmlogger` that asks it at 10 Hz.
pub(super) fn pmlogger_args(directory: &WorkDirectory) -> Vec<String> {
    let daemon = format!("local:{}", directory.file("pmcd.socket"));
    let (config, log) = (directory.file("pmlogger.conf"), directory.file("pmlogger.log"));
    // It never writes to an archive that is there; it puts the time of day for the %.
    let archive = directory.file("pmlogger-%H%M%S");
    let words =
        ["-h", &daemon, "-c", &config, "-l", &log, "-t", "100msec", "-T", "60sec", &archive];
    words.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pmlogger_of_this_daemon_logs() {
        let Some(pmlogger) = process::find("pmlogger") else {
            println!("skipped: needs pmlogger (pcp)");
            return;
        };
        if !testkit::is_root() {
            return testkit::skip("root, for a daemon that sees all that is logged");
        }
        let parent = testkit::TempDir::new();
        let directory = WorkDirectory::make(parent.path(), "pcp").unwrap();
        let _pmcd = match Pmcd::start(&directory) {
            Ok(pmcd) => pmcd,
            Err(error) => return println!("skipped: needs a pmcd: {error}"),
        };
        let mut command = Command::new(pmlogger);
        let args = pmlogger_args(&directory);
        let short = args.iter().map(|word| word.replace("60sec", "1sec"));
        command.args(short);
        process::run(command, LIMIT).unwrap().success().unwrap();
        let archives = fs::read_dir(directory.path()).unwrap();
        let names = archives.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let volume = names.into_iter().find(|name| name.ends_with(".0")).unwrap();
        let log = fs::read_to_string(directory.file("pmlogger.log")).unwrap();
        assert!(fs::metadata(directory.file(&volume)).unwrap().len() > 4096, "{log}");
        // A metric that it computes would be told of as a fault, sample by sample.
        assert!(log.len() < 4096, "{log}");
    }
}
