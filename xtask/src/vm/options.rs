//! What was typed after `cargo xtask vm`, checked as far as that needs no file and no program.
//!
//! Each option has a limit where a wrong one would hurt this machine: memory, time, names that
//! reach a shell.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

use super::arch::Arch;
use super::disk::{self, DiskSpec};

/// Less does not boot Debian's kernel with room for a command.
const MEMORY_MIN: u64 = 192 << 20;
/// The emulator keeps it all in this machine's memory.
const MEMORY_MAX: u64 = 64 << 30;

/// A day: a guest that was forgotten ends by itself.
const TIMEOUT_S_MAX: u64 = 86_400;

/// A command for a guest, and the guest.
///
/// Runs COMMAND as root in a small throw-away machine (Debian, emulated unless KVM works), with its
/// output and exit status; 124: the time is over, 125: this program failed. One word is a shell
/// script, several are a program. If COMMAND names terrace, it is built and is on PATH.
#[derive(Args, Clone, Debug, PartialEq)]
pub(super) struct VmOptions {
    /// Only make the guest image
    #[arg(long, conflicts_with = "clean")]
    pub(super) build: bool,

    /// Remove the guest images
    #[arg(long)]
    pub(super) clean: bool,

    /// The processor; that of this machine is the quickest
    ///
    /// Programs for another one need the standard library of its target for rustc, and Debian's C
    /// compiler for it.
    #[arg(long, value_enum, default_value_t = Arch::NATIVE)]
    pub(super) arch: Arch,

    /// A disk, in the guest /dev/vm/NAME; NAME:file=PATH keeps what is written
    ///
    /// model=hdd|usb|sd: one request at a time, each with a modelled time; change it with read_ms
    /// write_ms jump_read_ms jump_write_ms read_bps write_bps seek_min_ms seek_max_ms turn_ms.
    /// burst_bytes and burst_bps: writes are faster at first; room for more comes back while idle.
    /// erase_bytes: a write that jumps copies what the erase block holds; a read across the end of
    /// one takes cross_read_ms more. real_bytes=SIZE: a fake, which has only so much;
    /// beyond=forgets|wraps, forgets unless it is set: what is written behind that is dropped and
    /// read as zeros, or replaces what is at the start.
    /// bus=virtio|usb|scsi|nvme; rot=0|1 (what the guest's kernel believes). `vm-ctl unplug NAME`,
    /// called in the guest, pulls a disk on usb or scsi, `vm-ctl plug NAME` puts it in again.
    /// cache=volatile: what was not flushed is in memory, and `vm-ctl cut` (the power fails) keeps
    /// a part of it.
    #[arg(long = "disk", value_name = "NAME:SIZE[,KEY=VALUE...]", value_parser = DiskSpec::parse)]
    pub(super) disks: Vec<DiskSpec>,

    /// Then boot again with the same disks, and run this shell script
    ///
    /// Also after `vm-ctl cut`, but not if the time was over. The exit status is the first that is
    /// not 0.
    #[arg(long, value_name = "COMMAND")]
    pub(super) then: Option<String>,

    /// What a power cut leaves of unflushed writes is drawn from this
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,

    /// Memory of the guest
    #[arg(long = "mem", value_name = "SIZE", default_value = "512M", value_parser = memory)]
    pub(super) memory_bytes: u64,

    /// Seconds for the command
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = timeout)]
    pub(super) timeout: Duration,

    /// Load this module first
    #[arg(long = "module", value_name = "NAME", value_parser = plain)]
    pub(super) modules: Vec<String>,

    /// Set a variable, or pass it on
    #[arg(long = "env", value_name = "K[=V]", value_parser = variable)]
    pub(super) environment: Vec<(String, Option<String>)>,

    /// Copy DIR to /bench, where the command starts
    #[arg(long = "dir", value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,

    /// Put what is left in /out into DIR, also when the time is over
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// The kernel's messages of the last boot
    #[arg(long, value_name = "FILE")]
    pub(super) console: Option<PathBuf>,

    /// What reached each disk, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) stats: Option<PathBuf>,

    /// Each request that reached a disk: disk, kind, offset, bytes, when it came, modelled time
    ///
    /// Both in microseconds, one request a line.
    #[arg(long, value_name = "FILE")]
    pub(super) requests: Option<PathBuf>,

    /// Copy a program onto PATH
    #[arg(long = "bin", value_name = "PATH")]
    pub(super) programs: Vec<PathBuf>,

    /// Build the tests of CRATE and copy them to /tests
    #[arg(long, value_name = "CRATE", value_parser = plain)]
    pub(super) tests: Vec<String>,

    /// One more Debian package in the image (makes an image of its own)
    #[arg(long = "package", value_name = "NAME", value_parser = plain)]
    pub(super) packages: Vec<String>,

    /// More kernel command line
    #[arg(long, value_name = "TEXT")]
    pub(super) append: Vec<String>,

    /// Boot with systemd as process 1, which then runs COMMAND and powers off
    ///
    /// The status comes when systemd has stopped and unmounted all. There is no udev.
    #[arg(long)]
    pub(super) systemd: bool,

    /// A shell script that runs in each boot before systemd does: disks and units
    #[arg(long, value_name = "SCRIPT", requires = "systemd")]
    pub(super) before: Option<String>,

    /// The command, behind --
    #[arg(last = true, required_unless_present_any = ["build", "clean"])]
    pub(super) command: Vec<String>,
}

impl VmOptions {
    /// The packages of the image besides the usual ones.
    pub(super) fn all_packages(&self) -> Vec<String> {
        let mut all = self.packages.clone();
        if self.systemd && all.iter().all(|package| package != "systemd") {
            all.push("systemd".to_owned());
        }
        all
    }

    /// What no single option shows to be wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names: Vec<&str> = self.disks.iter().map(|disk| disk.name.as_str()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map_or(Ok(()), |pair| Err(format!("two disks are called {}", pair[0])))
    }
}

/// Reads the words after `vm`.
#[cfg(test)]
pub(super) fn parse(words: &[String]) -> Result<VmOptions, String> {
    let line = crate::parse::<super::Line>("cargo xtask vm", words);
    let options = line.map_err(|error| error.to_string())?.options;
    options.check().map(|()| options)
}

fn memory(text: &str) -> Result<u64, String> {
    let bytes = disk::bytes(text)?;
    if (MEMORY_MIN..=MEMORY_MAX).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("192M to 64G".to_owned())
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| (1..=TIMEOUT_S_MAX).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("1 to {TIMEOUT_S_MAX} seconds"))
}

/// A name of a module, package or crate: nothing that a shell or another program could take
/// otherwise.
fn plain(value: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    if value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(is_allowed) {
        Ok(value.to_owned())
    } else {
        Err("not a name".to_owned())
    }
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(is_allowed) && name.starts_with(|c: char| !c.is_ascii_digit()) {
        Ok((name.to_owned(), value))
    } else {
        Err("not K or K=V".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<VmOptions, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn all_after_the_dashes_is_the_command() {
        let options = parsed("--mem 1G --timeout 5 -- terrace survey --json -- x").unwrap();
        assert_eq!(options.command, ["terrace", "survey", "--json", "--", "x"].map(str::to_owned));
        assert_eq!(options.memory_bytes, 1 << 30);
        assert_eq!(options.timeout, Duration::from_secs(5));
    }

    #[test]
    fn options_that_repeat_add_up() {
        let line = "--disk a:1M --disk b:1M,model=sd --env A=b=c --env HOME --module nbd -- true";
        let options = parsed(line).unwrap();
        let names: Vec<_> = options.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            options.environment,
            [("A".to_owned(), Some("b=c".to_owned())), ("HOME".to_owned(), None)]
        );
    }

    #[test]
    fn making_and_removing_images_need_no_command() {
        let build = parsed("--build --package postgresql").unwrap();
        assert!(build.build && !build.clean);
        assert_eq!(build.packages, ["postgresql"]);
        assert!(parsed("--clean").unwrap().clean);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_reason() {
        for (line, reason) in [
            ("--mem 512M", "required arguments were not provided"),
            ("--mem", "a value is required for '--mem"),
            ("--mem 1M -- true", "192M to 64G"),
            ("--timeout 0 -- true", "1 to 86400 seconds"),
            ("--cpus 2 -- true", "unexpected argument '--cpus'"),
            ("true", "unexpected argument 'true'"),
            ("--env 1=2 -- true", "not K or K=V"),
            ("--env a-b=2 -- true", "not K or K=V"),
            ("--module a;b -- true", "not a name"),
            ("--package -o -- true", "unexpected argument '-o'"),
            ("--disk a:1M --disk a:2M -- true", "two disks are called a"),
            ("--disk a:x -- true", "bad size"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
