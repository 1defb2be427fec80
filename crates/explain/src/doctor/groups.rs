//! Rows of control groups of both versions, and of the right to mount: what a command can be given
//! for itself.

use super::needs::{PermitText, SYS_ADMIN, SourceNeeds};
use model::doctor::SourceId;

pub(super) const ROWS: &[SourceNeeds] = &[
    SourceNeeds {
        root: true,
        mount: Some((
            PermitText {
                line: "mount -t cgroup2 none /sys/fs/cgroup",
                risk: "Root of a container that can write there can change its own limits.",
            },
            "--cgroupns=private --volume=/sys/fs/cgroup:/sys/fs/cgroup:rw",
        )),
        kernel: "a kernel with CONFIG_CGROUPS",
        commands: &["run", "record", "hog", "measure iolat"],
        then: "a command is not counted apart from its neighbours, and limits of groups are not \
               among the suspects",
        ..SourceNeeds::plain(SourceId::GroupsV2, "control groups, version 2")
    },
    SourceNeeds {
        kernel: "a kernel with CONFIG_CGROUPS",
        commands: &["record", "run", "explain"],
        then: "limits of groups of version 1 are not among the suspects",
        ..SourceNeeds::plain(SourceId::GroupsV1, "control groups, version 1")
    },
    SourceNeeds {
        capabilities: &[SYS_ADMIN],
        root: true,
        first_user_namespace: true,
        calls: "fsopen fsconfig fsmount move_mount",
        kernel: "Linux 5.2 or newer",
        commands: &["ramdisk create", "ramdisk adopt", "boost attach"],
        then: "no RAM disk is mounted and no cache is attached: `only root may mount`",
        ..SourceNeeds::plain(SourceId::Mounts, "mounting file systems")
    },
];
