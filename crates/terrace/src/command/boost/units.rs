//! The texts of the units that `boost install` writes. Pure.
//!
//! ```text
//! disk, state, flash -> terrace-boost-NAME.service -> PATH.mount -> local-fs.target -> users
//! ```
//!
//! An arrow is an order: to the right at a start, to the left at the end. So the file system is
//! unmounted before the cache is proved fresh, and that before its disks go. Without the flash the
//! service starts all the same, and serves from the disk.

use crate::command::systemd::{Unit, command_line, literal, path_word, unit_path};
use std::path::Path;

/// The first line of a unit that this program made; only such a one is replaced or removed.
pub(super) const MARK: &str =
    "# Made by `terrace boost install`; `terrace boost uninstall` removes it.";
/// How long a start may take: a first read of a slow disk, and requests of a killed service that
/// are under way for a minute.
const START_S: u64 = 180;
/// How long an end may take: ten seconds to unmount, a minute to prove, and what a slow disk still
/// has to write.
const STOP_S: u64 = 180;
/// Pages are locked and requests wait: others are killed first where memory is short.
const OOM_SCORE: i32 = -900;

/// What the units are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CacheUnitPlan<'a> {
    /// This program.
    pub(super) program: &'a Path,
    /// What the cache is called.
    pub(super) name: &'a str,
    /// The options of `boost serve`, without the name.
    pub(super) options: &'a [String],
    /// A path to the disk that leads to the same one after each boot.
    pub(super) backing: &'a Path,
    /// Where the file system of the cache's file is mounted.
    pub(super) flash_point: &'a Path,
    /// The directory of key and journal.
    pub(super) state: &'a Path,
    /// Where the volume is to be mounted.
    pub(super) point: Option<&'a Path>,
}

/// The name of the service of a cache.
pub(super) fn service_name(name: &str) -> String {
    format!("terrace-boost-{name}.service")
}

/// The name of the unit that mounts something there.
pub(super) fn mount_name(point: &Path) -> String {
    format!("{}.mount", unit_path(point))
}

/// The line by which the mount of a cache is known.
pub(super) fn bound_line(name: &str) -> String {
    format!("BindsTo={}", service_name(name))
}

/// The link to the block device of a cache that is served.
fn device(name: &str) -> String {
    format!("/run/terrace/boost/{name}/device")
}

/// The units.
pub(super) fn units(plan: &CacheUnitPlan<'_>) -> Vec<Unit> {
    let wanted_in = vec!["local-fs.target.wants".to_owned()];
    let service = Unit {
        name: service_name(plan.name),
        text: service_text(plan),
        wanted_in: wanted_in.clone(),
    };
    let mount = plan.point.map(|point| Unit {
        name: mount_name(point),
        text: mount_text(plan.name, point),
        wanted_in,
    });
    std::iter::once(service).chain(mount).collect()
}

/// The line of /etc/fstab in place of the unit of the mount.
pub(super) fn fstab_line(name: &str) -> String {
    let service = service_name(name);
    format!("{} DIR auto nofail,x-systemd.requires={service} 0 0", device(name))
}

/// No line of it makes a mount namespace (`ProtectSystem=` and the like): the served file and a
/// stick that comes back must be seen in there.
fn service_text(plan: &CacheUnitPlan<'_>) -> String {
    let flash = mount_name(plan.flash_point);
    let disk = format!("{}.device", unit_path(plan.backing));
    let options = plan.options.iter().map(String::as_str);
    let words = ["boost", "serve", plan.name].into_iter().chain(options);
    format!(
        "{MARK}
[Unit]
Description=flash cache {} of {}
DefaultDependencies=no
Requires={disk}
After={disk}
RequiresMountsFor={}
# Not needed: without the flash, reads go to the disk.
Wants={flash}
After={flash}
Wants=modprobe@fuse.service modprobe@loop.service
After=modprobe@fuse.service modprobe@loop.service
After=local-fs-pre.target systemd-remount-fs.service systemd-tmpfiles-setup-dev.service
Before=local-fs.target shutdown.target
Conflicts=shutdown.target

[Service]
Type=notify
# The process that serves is a child, and a signal is for it.
NotifyAccess=all
KillMode=control-group
ExecStart={}
TimeoutStartSec={START_S}
TimeoutStopSec={STOP_S}
Restart=on-failure
RestartSec=10
RestartPreventExitStatus=2 3
OOMScoreAdjust={OOM_SCORE}
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077

[Install]
WantedBy=local-fs.target
",
        plan.name,
        literal(&plan.backing.display().to_string()),
        path_word(&plan.state.display().to_string()),
        command_line(plan.program, words),
    )
}

fn mount_text(name: &str, point: &Path) -> String {
    let service = service_name(name);
    format!(
        "{MARK}
[Unit]
Description={}, read through the flash cache {name}
{}
After={service}

[Mount]
What={}
Where={}

[Install]
WantedBy=local-fs.target
",
        literal(&point.display().to_string()),
        bound_line(name),
        device(name),
        literal(&point.display().to_string()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_and_the_state_are_required_and_the_flash_is_not() {
        let options = ["--cache".to_owned(), "/media/my stick/c".to_owned()];
        let plan = CacheUnitPlan {
            program: Path::new("/usr/bin/terrace"),
            name: "fast",
            options: &options,
            backing: Path::new("/dev/disk/by-id/ata-x"),
            flash_point: Path::new("/media/my stick"),
            state: Path::new("/var/lib/terrace/boost"),
            point: Some(Path::new("/srv/archive")),
        };
        let units = units(&plan);
        let names: Vec<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(names, ["terrace-boost-fast.service", "srv-archive.mount"]);
        for (unit, line) in [
            (0, "Requires=dev-disk-by\\x2did-ata\\x2dx.device"),
            (0, "RequiresMountsFor=\"/var/lib/terrace/boost\""),
            (0, "Wants=media-my\\x20stick.mount"),
            (0, "After=media-my\\x20stick.mount"),
            (0, "ExecStart=\"/usr/bin/terrace\" boost serve fast --cache \"/media/my stick/c\""),
            (1, "BindsTo=terrace-boost-fast.service"),
            (1, "What=/run/terrace/boost/fast/device"),
        ] {
            assert!(units[unit].text.lines().any(|other| other == line), "{line}");
        }
        let first = &units[0].text;
        assert!(!first.contains("Requires=media") && !first.contains("BindsTo"), "{first}");
    }
}
