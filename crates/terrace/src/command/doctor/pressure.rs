//! Stalls by resource, control groups of version 1, and the right to mount: what says whether
//! others suffer, and who may make a RAM disk.

use super::{attempt, idle, refused, works};
use machine::cgroup::{CgroupVersion, Controller, own_group};
use machine::{Root, pressure};
use model::doctor::{SourceAttempt, SourceId};
use sys::mount::{FileSystemOptions, MountRestrictions};

/// The resources that the kernel counts stalls of.
const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

pub(super) fn examine(root: &Root) -> [(SourceId, SourceAttempt); 3] {
    [
        (SourceId::Pressure, stalls(root)),
        (SourceId::GroupsV1, groups_v1(root)),
        (SourceId::Mounts, mounts()),
    ]
}

/// Reads all three, as a recorder does.
fn stalls(root: &Root) -> SourceAttempt {
    let path = |resource: &str| format!("/proc/pressure/{resource}");
    for resource in RESOURCES {
        if let Err(error) = root.read(path(resource)) {
            return refused(&error);
        }
    }
    let read = RESOURCES.into_iter().filter(|resource| pressure::read(root, resource).is_some());
    let names: Vec<&str> = read.collect();
    works(format!("stalls of {}", names.join(", ")))
}

/// Hierarchies of version 1 are not needed where there are none.
fn groups_v1(root: &Root) -> SourceAttempt {
    const CONTROLLERS: [(Controller, &str); 4] = [
        (Controller::Memory, "memory"),
        (Controller::Cpu, "cpu"),
        (Controller::CpuAccounting, "cpuacct"),
        (Controller::Io, "blkio"),
    ];
    let mut seen = Vec::new();
    for (controller, name) in CONTROLLERS {
        let place = own_group(root, controller).filter(|it| it.version == CgroupVersion::V1);
        let Some(own) = place.and_then(|place| place.groups().into_iter().next()) else {
            continue;
        };
        match root.read(own.directory.join("cgroup.procs")) {
            Ok(_) => seen.push(name),
            Err(error) => return refused(&error),
        }
    }
    if seen.is_empty() {
        return idle("no hierarchy of version 1 is mounted");
    }
    works(format!("the own groups of {}", seen.join(", ")))
}

/// A tmpfs gets no mount point and goes at once.
fn mounts() -> SourceAttempt {
    let mounted = FileSystemOptions::new("tmpfs")
        .and_then(|options| options.mount(MountRestrictions::default()));
    attempt(mounted, |_| "a tmpfs was made and ended without a mount point".to_owned())
}
