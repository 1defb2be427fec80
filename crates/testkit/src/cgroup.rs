//! A control group of a test's own. To run a program under a limit it is of version 1 and
//! needs a host that has the controller there: a version 2 tree would have to be changed above
//! the own group first. One of version 2 has no limits, only counters. Needs root.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Tells groups of one process apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The group; on drop what still runs in it is killed and it is removed.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// A group whose members may use `bytes` bytes of memory together.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_memory(bytes: u64) -> Result<Self, String> {
        Self::v1("memory", &[("memory.limit_in_bytes", bytes.to_string())])
    }

    /// A group that may hold so many processes and threads.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_pids(most: u64) -> Result<Self, String> {
        Self::v1("pids", &[("pids.max", most.to_string())])
    }

    /// A group whose members get `quota_us` of CPU time in each period of `period_us`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_cpu(quota_us: u64, period_us: u64) -> Result<Self, String> {
        let period = ("cpu.cfs_period_us", period_us.to_string());
        Self::v1("cpu", &[period, ("cpu.cfs_quota_us", quota_us.to_string())])
    }

    /// A group whose members read at most `bytes_per_s` from the device `number` (as `7:0`).
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_read_rate(number: &str, bytes_per_s: u64) -> Result<Self, String> {
        let limit = format!("{number} {bytes_per_s}");
        Self::v1("blkio", &[("blkio.throttle.read_bps_device", limit)])
    }

    /// A group whose members write at most `bytes_per_s` to the device `number`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_write_rate(number: &str, bytes_per_s: u64) -> Result<Self, String> {
        let limit = format!("{number} {bytes_per_s}");
        Self::v1("blkio", &[("blkio.throttle.write_bps_device", limit)])
    }

    /// A group whose members stand still while `freezer.state` in it holds `FROZEN`.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v1_freezer() -> Result<Self, String> {
        Self::v1("freezer", &[])
    }

    /// A group of version 2 without a controller, which still counts CPU time and pressure.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn v2() -> Result<Self, String> {
        let parent = own_group("").ok_or("a cgroup2 tree")?;
        Self::below(&parent)
    }

    /// The group's directory, for its counters.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// A command that joins the group and then becomes `program`; arguments follow as usual.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("sh");
        // The shell moves itself, so the limit holds from the program's first instruction.
        command.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]);
        command.arg(&self.directory).arg(program);
        command
    }

    /// Starts a command of [`Cgroup::command`], and returns once the program itself runs inside.
    /// To join takes the kernel 5 to 20 ms, in which a test would meet the shell in its own group.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut child = command.spawn()?;
        let arguments = format!("/proc/{}/cmdline", child.id());
        let directory = self.directory.as_os_str().as_bytes();
        // Only the shell is given the directory. What has ended already has no arguments.
        while child.try_wait()?.is_none() {
            let arguments = std::fs::read(&arguments)?;
            let is_shell = arguments.split(|byte| *byte == 0).any(|one| one == directory);
            if !arguments.is_empty() && !is_shell {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(child)
    }

    fn v1(controller: &str, settings: &[(&str, String)]) -> Result<Self, String> {
        let parent = own_group(controller)
            .ok_or_else(|| format!("the {controller} controller in cgroup version 1"))?;
        let group = Self::below(&parent)?;
        for (name, value) in settings {
            std::fs::write(group.directory.join(name), value)
                .map_err(|error| format!("{name} to take {value}: {error}"))?;
        }
        Ok(group)
    }

    fn below(parent: &Path) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("terrace-test-{}-{count}", std::process::id()));
        std::fs::create_dir(&directory).map_err(|error| format!("a writable cgroup: {error}"))?;
        // From here on `Drop` removes it.
        Ok(Self { directory })
    }

    /// Ends what runs in this group, which only this test's own programs ever joined.
    fn end_members(&self) {
        let members = std::fs::read_to_string(self.directory.join("cgroup.procs"));
        for process in members.unwrap_or_default().lines() {
            let _ = Command::new("kill").args(["-9", process]).output();
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group can be removed only some time after its last member has ended.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            self.end_members();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The directory of this process's group for a controller of version 1; without a name the
/// one of version 2.
fn own_group(controller: &str) -> Option<PathBuf> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let fs_type = if controller.is_empty() { "cgroup2" } else { "cgroup" };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount_point = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_it = kind.next() == Some(fs_type)
            && (controller.is_empty() || has(kind.nth(1).unwrap_or_default()));
        is_it.then(|| mount.split(' ').nth(4)).flatten()
    })?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        has(controllers).then_some(group)
    })?;
    let directory = Path::new(mount_point).join(group.trim_start_matches('/'));
    Some(if directory.is_dir() { directory } else { PathBuf::from(mount_point) })
}

#[cfg(test)]
mod tests {
    use super::Cgroup;

    #[test]
    fn a_program_runs_inside_and_the_group_goes_away() {
        let group = match Cgroup::v1_memory(64 << 20) {
            Ok(group) => group,
            Err(need) => return crate::skip(need),
        };
        let output = group.command("cat").arg("/proc/self/cgroup").output().unwrap();
        let name = group.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(String::from_utf8_lossy(&output.stdout).contains(&name));
        let path = group.path().to_owned();
        drop(group);
        assert!(!path.exists());
    }

    #[test]
    fn who_was_started_is_inside_already() {
        let group = match Cgroup::v1_memory(64 << 20) {
            Ok(group) => group,
            Err(need) => return crate::skip(need),
        };
        for _ in 0..4 {
            let mut child = group.spawn(group.command("sleep").arg("1000")).unwrap();
            let members = std::fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
            let name = std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(members.trim(), child.id().to_string());
            assert_eq!(name.trim(), "sleep");
        }
        let mut ended = group.spawn(&mut group.command("true")).unwrap();
        assert!(ended.wait().unwrap().success());
        let mut absent = group.spawn(&mut group.command("/no/such/program")).unwrap();
        assert!(!absent.wait().unwrap().success());
    }

    #[test]
    fn a_quota_is_set() {
        let group = match Cgroup::v1_cpu(20_000, 100_000) {
            Ok(group) => group,
            Err(need) => return crate::skip(need),
        };
        let quota = std::fs::read_to_string(group.path().join("cpu.cfs_quota_us")).unwrap();
        assert_eq!(quota.trim(), "20000");
    }
}
