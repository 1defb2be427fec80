//! Rows of block devices, of the ways in which files and devices are read, and of those in which a
//! cache is served.

use super::needs::{ClosingSetting, DAC_READ_SEARCH, PermitText, SYS_ADMIN, SourceNeeds};
use model::doctor::SourceId;

pub(super) const ROWS: &[SourceNeeds] = &[
    SourceNeeds {
        kernel: "a kernel with CONFIG_BLOCK and CONFIG_PROC_FS",
        commands: &["record", "explain", "top", "measure iolat"],
        then: "no disk is among the suspects, and no figure says which device served a read",
        ..SourceNeeds::plain(SourceId::DiskCounters, "counters of disks (/proc/diskstats)")
    },
    SourceNeeds {
        capabilities: &[DAC_READ_SEARCH],
        device: Some("/dev/DISK"),
        kernel: "a kernel with CONFIG_BLOCK",
        commands: &["survey", "measure iolat", "boost qualify"],
        then: "disks are only measured through files, where a cache of the host may answer",
        ..SourceNeeds::plain(SourceId::BlockDevices, "disks, opened for reading")
    },
    SourceNeeds {
        setting: Some(ClosingSetting {
            name: "kernel.io_uring_disabled",
            closed: &["1", "2"],
            except: None,
        }),
        open_setting: Some(PermitText {
            line: "sudo sysctl kernel.io_uring_disabled=0",
            risk: "Flaws of io_uring have let users become root before.",
        }),
        calls: "io_uring_setup io_uring_enter io_uring_register",
        kernel: "Linux 5.6 or newer, with CONFIG_IO_URING",
        commands: &["copy", "measure iolat", "survey", "ramdisk restore"],
        then: "requests are made by threads: fewer are in flight, and copies may be slower",
        ..SourceNeeds::plain(SourceId::IoUring, "queues of requests (io_uring)")
    },
    SourceNeeds {
        device: Some("/dev/fuse"),
        capabilities: &[SYS_ADMIN],
        root: true,
        first_user_namespace: true,
        module: Some(PermitText {
            line: "sudo modprobe fuse",
            risk: "Users can then serve file systems, where fusermount is installed.",
        }),
        kernel: "Linux 6.9 or newer, with CONFIG_FUSE_FS",
        commands: &["boost attach"],
        then: "a cache is not attached by way of a file",
        ..SourceNeeds::plain(SourceId::Fuse, "file systems in user space (FUSE)")
    },
    SourceNeeds {
        device: Some("/dev/loop-control"),
        root: true,
        module: Some(PermitText {
            line: "sudo modprobe loop",
            risk: "Nearly none: only root can attach files.",
        }),
        kernel: "a kernel with CONFIG_BLK_DEV_LOOP",
        commands: &["boost attach"],
        then: "a cache is not attached by way of a file",
        ..SourceNeeds::plain(SourceId::LoopDevices, "loop devices")
    },
    SourceNeeds {
        capabilities: &[SYS_ADMIN],
        root: true,
        first_user_namespace: true,
        module: Some(PermitText {
            line: "sudo modprobe nbd",
            risk: "Nearly none: only root can connect devices.",
        }),
        kernel: "a kernel with CONFIG_BLK_DEV_NBD",
        commands: &["boost attach"],
        then: "a cache is attached by FUSE and a loop device instead",
        ..SourceNeeds::plain(SourceId::Nbd, "network block devices (NBD)")
    },
];
