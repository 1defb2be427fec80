//! Removes what tests that were killed left mounted: their FUSE files and directories, and what is
//! above them (loop devices, file systems, swap areas).

use crate::fuse_mount::{SOURCE_PREFIX, unmount};
use crate::temp_dir::process_of;
use std::path::Path;
use sys::loop_device::LoopDevice;

/// Removes the disks of tests that were killed: their mounts name a process that is gone.
/// The connection ends first, by force: a process that waits for an answer gets an error then.
pub(crate) fn remove_leftovers() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for (point, server) in mounts.lines().filter_map(orphaned) {
        // Before the path is used, because the kernel then calls the file deleted.
        let devices = loop_devices_over(Path::new(point));
        let _ = sys::mount::force(Path::new(point));
        for device in devices {
            let _ = sys::swap_area::off(device.path());
            for above in points_of(&mounts, device.path()) {
                // A thread of the killed test may still be on its way out of it.
                let _ = unmount(Path::new(above));
            }
            let _ = device.detach();
        }
        let _ = unmount(Path::new(point));
        if let Some(directory) = directory_of(Path::new(point), server) {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// The loop devices over a file or over files in a directory.
fn loop_devices_over(path: &Path) -> Vec<LoopDevice> {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_over = |entry: &std::fs::DirEntry| {
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end()).starts_with(path))
    };
    let names = devices.filter(is_over).map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_prefix("loop")?.parse().ok());
    numbers.map(LoopDevice::numbered).collect()
}

/// Where a device is mounted, last mounted first, in the text of a mountinfo.
fn points_of<'a>(mounts: &'a str, device: &Path) -> Vec<&'a str> {
    let point = |line: &'a str| {
        let (mount, kind) = line.split_once(" - ")?;
        let source = kind.split(' ').nth(1)?;
        (Path::new(source) == device).then(|| mount.split(' ').nth(4)).flatten()
    };
    mounts.lines().rev().filter_map(point).collect()
}

/// Whether a process has ended. One that was killed while a thread of its own waited for its server
/// stays as a zombie until the connection is ended: that thread keeps `/dev/fuse` open.
pub(crate) fn is_gone(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']))
}

/// The directory that a mount point is in, if it is one that the process `server` made for a test:
/// any other may hold what is not the test's own.
fn directory_of(point: &Path, server: u32) -> Option<&Path> {
    point.parent().filter(|directory| process_of(directory) == Some(server))
}

/// The mount point in a line of mountinfo, and the number of its server, if it is one of ours and
/// its server is gone.
fn orphaned(line: &str) -> Option<(&str, u32)> {
    let (mount, kind) = line.split_once(" - ")?;
    let source = kind.strip_prefix("fuse ")?.split(' ').next()?;
    let server: u32 = source.strip_prefix(SOURCE_PREFIX)?.parse().ok()?;
    let point = mount.split(' ').nth(4)?;
    is_gone(server).then_some((point, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_of_the_test_that_is_gone_is_removed() {
        let directory = |point| directory_of(Path::new(point), 7);
        let own = "/x/terrace-test-7-0-18ab";
        assert_eq!(directory("/x/terrace-test-7-0-18ab/disk"), Some(Path::new(own)));
        for other in ["/home/x/disk", "/x/terrace-test-70-0-18ab/disk", "/disk", "/"] {
            assert_eq!(directory(other), None, "{other}");
        }
    }

    #[test]
    fn only_mounts_of_a_test_that_is_gone_are_leftovers() {
        let line = |source: &str| {
            format!("90 29 0:45 / /tmp/x/disk rw,relatime - fuse {source} rw,user_id=0")
        };
        let living = format!("terrace-test-{}", std::process::id());
        let gone = line("terrace-test-4294967295");
        assert_eq!(orphaned(&gone), Some(("/tmp/x/disk", u32::MAX)));
        assert_eq!(orphaned(&line(&living)), None);
        assert_eq!(orphaned(&line("sshfs")), None);
        assert_eq!(orphaned("odd"), None);
        let table = "1 2 7:0 / /a rw - ext4 /dev/loop1 rw\n1 2 7:0 / /b rw - ext4 /dev/loop1 rw\n";
        assert_eq!(points_of(table, Path::new("/dev/loop1")), ["/b", "/a"]);
        assert!(points_of(table, Path::new("/dev/loop10")).is_empty());
    }
}
