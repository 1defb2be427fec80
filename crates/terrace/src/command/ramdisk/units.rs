//! The texts of the units that `ramdisk install` writes. Pure.
//!
//! ```text
//! the disk of the store -> PATH.mount -> terrace-ramdisk-PATH.service -> local-fs.target -> users
//! ```
//!
//! An arrow is an order: to the right at a start, to the left at the end. So all ordinary services
//! start after the restore, and have ended before the last save, which ends before the store's disk
//! is unmounted.
//!
//! A RAM disk that covers a directory, or is atomic, has no unit of a mount: `create` makes it, and
//! leaves a directory as it is that has changed after the last save.

use crate::command::systemd::{
    Unit, command_line, fstab_field, literal, path_word, unit_path, word,
};
use place::ramdisk::record::RamdiskOptions;
use std::path::Path;
use std::time::Duration;

/// The first line of a unit that this program made; only such a one is replaced or removed.
pub(super) const MARK: &str =
    "# Made by `terrace ramdisk install`; `terrace ramdisk uninstall` removes it.";

/// How long a thaw may take after the end of the service, as during it.
const THAW_SECONDS: u64 = 60;

/// What the units are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitPlan<'a> {
    /// This program.
    pub(super) program: &'a Path,
    /// Where the RAM disk is mounted.
    pub(super) point: &'a Path,
    /// The options of its mount.
    pub(super) options: &'a str,
    /// Whether /etc/fstab mounts it.
    pub(super) is_in_fstab: bool,
    /// The directory of the store.
    pub(super) store: &'a Path,
    /// From one save to the next.
    pub(super) every: Duration,
    /// How many generations stay.
    pub(super) keep: u16,
    /// Commands around each save.
    pub(super) freeze: Option<(&'a str, &'a str)>,
    /// Units that do not start without the RAM disk.
    pub(super) users: &'a [String],
    /// If no unit of a mount can make it: what `create` makes it with.
    pub(super) created: Option<CreatedRamdisk>,
}

/// A RAM disk that `create` makes at each boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CreatedRamdisk {
    pub(super) options: RamdiskOptions,
    /// Whether it covers a directory that was moved onto it.
    pub(super) is_adopted: bool,
    /// Whether it is btrfs on zram.
    pub(super) is_atomic: bool,
}

/// The names of the units of a RAM disk: the mount, the service, the save before sleep, and what
/// covers a directory in place of the mount.
pub(super) fn names(point: &Path) -> [String; 4] {
    let escaped = unit_path(point);
    [
        format!("{escaped}.mount"),
        format!("terrace-ramdisk-{escaped}.service"),
        format!("terrace-ramdisk-{escaped}-sleep.service"),
        format!("terrace-ramdisk-{escaped}-create.service"),
    ]
}

/// The units.
pub(super) fn units(plan: &UnitPlan<'_>) -> Vec<Unit> {
    let [mount, service, sleep, create] = names(plan.point);
    let mut units = Vec::new();
    let mounts = if let Some(created) = &plan.created {
        let text = create_text(plan, created);
        units.push(Unit { text, name: create.clone(), wanted_in: Vec::new() });
        format!("Requires={create}\nAfter={create} {mount}")
    } else {
        if !plan.is_in_fstab {
            units.push(Unit { text: mount_text(plan), name: mount.clone(), wanted_in: Vec::new() });
        }
        format!("BindsTo={mount}\nAfter={mount}")
    };
    let users = plan.users.iter().map(|user| format!("{user}.requires"));
    units.push(Unit {
        text: service_text(plan, &mounts),
        name: service.clone(),
        wanted_in: std::iter::once("local-fs.target.wants".to_owned()).chain(users).collect(),
    });
    units.push(Unit {
        text: sleep_text(plan, &service),
        name: sleep,
        wanted_in: vec!["sleep.target.wants".to_owned()],
    });
    units
}

/// The line of /etc/fstab in place of the unit of the mount.
pub(super) fn fstab_line(plan: &UnitPlan<'_>) -> String {
    let point = fstab_field(&plan.point.to_string_lossy());
    format!("tmpfs {point} tmpfs {} 0 0", plan.options)
}

fn mount_text(plan: &UnitPlan<'_>) -> String {
    let point = plan.point.display().to_string();
    format!(
        "{MARK}
[Unit]
Description=RAM disk {}

[Mount]
What=tmpfs
Where={}
Type=tmpfs
Options={}
",
        literal(&point),
        literal(&point),
        literal(plan.options)
    )
}

/// Makes it once, unless something is mounted there: its service may be started again. Its top has
/// the owner and the permissions that were saved.
fn create_text(plan: &UnitPlan<'_>, created: &CreatedRamdisk) -> String {
    let options = &created.options;
    let (size, every) = (options.size.0.to_string(), format!("{}s", plan.every.as_secs()));
    let mut words = vec!["create"];
    if created.is_adopted {
        words.push("--adopted");
    } else {
        // As a unit of a mount: the size is its owner's choice. Of an adopted one it would also
        // cover files that changed since.
        words.push("--force");
    }
    if created.is_atomic {
        words.push("--atomic");
    }
    words.extend(["--size", &size, "--every", &every]);
    if let Some(huge) = options.huge {
        words.extend(["--huge", huge.word()]);
    }
    if options.noswap {
        words.push("--noswap");
    }
    let plan = UnitPlan { freeze: None, ..plan.clone() };
    let (point, store) = (plan.point.display().to_string(), plan.store.display().to_string());
    let above = plan.point.parent().unwrap_or(plan.point).display().to_string();
    let kind = if created.is_adopted { ", over its directory" } else { ", made anew" };
    format!(
        "{MARK}
[Unit]
Description=RAM disk {}{kind}
DefaultDependencies=no
RequiresMountsFor={} {}
After=local-fs-pre.target systemd-remount-fs.service
Before=local-fs.target shutdown.target
Conflicts=shutdown.target
ConditionPathIsMountPoint=!{}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={}
TimeoutStartSec=infinity
",
        literal(&point),
        path_word(&store),
        path_word(&above),
        literal(&point),
        command(&plan, &words),
    )
}

fn service_text(plan: &UnitPlan<'_>, mounts: &str) -> String {
    let before: String = plan.users.iter().map(|user| format!(" {}", literal(user))).collect();
    let thaw = plan.freeze.map_or_else(String::new, |(_, thaw)| {
        let why = "# Where the shell was killed too, as by `systemctl kill`.";
        format!("{why}\nExecStopPost=-timeout {THAW_SECONDS} sh -c {}\n", word(thaw))
    });
    let every = format!("{}s", plan.every.as_secs());
    let words = ["keep", "--restore", "--every", &every];
    let (point, store) = (plan.point.display().to_string(), plan.store.display().to_string());
    format!(
        "{MARK}
[Unit]
Description=RAM disk {}, kept in {}
DefaultDependencies=no
{mounts}
RequiresMountsFor={}
After=local-fs-pre.target systemd-remount-fs.service
Before=local-fs.target{before} shutdown.target
Conflicts=shutdown.target

[Service]
Type=notify
ExecStart={}
# However much is to be restored or saved.
TimeoutStartSec=infinity
TimeoutStopSec=infinity
# The shell that thaws outlives a kill.
KillMode=process
{thaw}Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2 3

[Install]
WantedBy=local-fs.target
{}",
        literal(&point),
        literal(&store),
        path_word(&store),
        command(plan, &words),
        plan.users.iter().map(|user| format!("RequiredBy={}\n", literal(user))).collect::<String>(),
    )
}

fn sleep_text(plan: &UnitPlan<'_>, service: &str) -> String {
    format!(
        "{MARK}
[Unit]
Description=RAM disk {}, saved before sleep
Requisite={service}
After={service}
Before=sleep.target

[Service]
Type=oneshot
ExecStart={}
TimeoutStartSec=infinity

[Install]
WantedBy=sleep.target
",
        literal(&plan.point.display().to_string()),
        command(plan, &["save", "--wait"])
    )
}

/// A command line of this program with these words after `ramdisk`, and those of the plan.
fn command(plan: &UnitPlan<'_>, words: &[&str]) -> String {
    let (store, keep) = (plan.store.display().to_string(), plan.keep.to_string());
    let point = plan.point.display().to_string();
    let freeze = plan.freeze.map(|(freeze, thaw)| ["--freeze-cmd", freeze, "--thaw-cmd", thaw]);
    let (first, options) = words.split_at(1);
    let mut all = vec!["ramdisk", first[0], point.as_str(), "--persist", &store, "--keep", &keep];
    all.extend(options);
    all.extend(freeze.into_iter().flatten());
    command_line(plan.program, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_fstab_has_six_fields() {
        let plan = UnitPlan {
            program: Path::new("/usr/bin/terrace"),
            point: Path::new("/ram/a b"),
            options: "size=1g,mode=755",
            is_in_fstab: false,
            store: Path::new("/store"),
            every: Duration::from_secs(300),
            keep: 3,
            freeze: None,
            users: &[],
            created: None,
        };
        assert_eq!(fstab_line(&plan), "tmpfs /ram/a\\040b tmpfs size=1g,mode=755 0 0");
    }
}
