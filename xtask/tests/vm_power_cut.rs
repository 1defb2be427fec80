//! `cargo xtask vm` with disks that lose what was not flushed: a power cut, the second boot after
//! it, and a disk that is put in again.
//!
//! Skipped where QEMU or the guest image is missing, as in `vm.rs`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use testkit::TempDir;

/// What is written to each disk after the part that is synced.
const UNSYNCED: u64 = 256 << 10;

/// Durable are the first 256 KiB of each disk and a file of ext4 (S); what comes after is not (U).
const WRITES: &str = "
set -e
bytes() { tr '\\0' \"$1\" </dev/zero; }
mkfs.ext4 -q -F /dev/vm/fs
mount /dev/vm/fs /mnt
for disk in raw stick flash; do
    to=\"of=/dev/vm/$disk iflag=fullblock status=none\"
    bytes S | dd $to bs=64k count=4 oflag=direct conv=fsync
    bytes U | dd $to bs=4k seek=64 count=64 oflag=direct
done
bytes S | head -c 300000 >/mnt/synced
sync /mnt/synced /mnt
bytes U | head -c 300000 >/mnt/unsynced
vm-ctl cut
echo the power is still there";

const READS: &str = "
set -e
part() { dd if=/dev/vm/$1 iflag=direct status=none bs=4k skip=$2 count=$3; }
for disk in raw stick flash; do
    echo $disk.synced $(part $disk 0 64 | tr -cd S | wc -c)
    echo $disk.unsynced $(part $disk 64 64 | tr -cd U | wc -c)
    echo $disk.sum $(part $disk 64 64 | md5sum)
done
mount /dev/vm/fs /mnt
echo fs.synced $(tr -cd S </mnt/synced | wc -c)
umount /mnt
e2fsck -fn /dev/vm/fs >/dev/null
echo fs.checked $?";

fn vm(args: &[&str]) -> Output {
    let folder = TempDir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--timeout", "120"]).args(args).env("TMPDIR", folder.path());
    let output = command.output().unwrap();
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    output
}

/// What the second boot finds, by name.
fn found_after_cut(seed: &str) -> BTreeMap<String, String> {
    let output = vm(&[
        "--disk=fs:64M,cache=volatile",
        "--disk=raw:4M,cache=volatile",
        "--disk=stick:4M,cache=volatile,bus=usb",
        "--disk=flash:4M,cache=volatile,bus=nvme",
        "--seed",
        seed,
        "--then",
        READS,
        "--",
        WRITES,
    ]);
    let [said, complained] =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}{complained}");
    assert!(!said.contains("still there"), "{said}");
    assert_eq!(complained.matches("power cut").count(), 4, "{complained}");
    support::said(&said)
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_of_the_rest_what_the_seed_says() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let found = found_after_cut("1");
    let number = |name: &str| found[name].parse::<u64>().unwrap();
    for disk in ["raw", "stick", "flash"] {
        assert_eq!(number(&format!("{disk}.synced")), 256 << 10, "{found:?}");
        let kept = number(&format!("{disk}.unsynced"));
        assert!(kept > 0 && kept < UNSYNCED && kept % 512 == 0, "{found:?}");
    }
    assert_eq!(number("fs.synced"), 300_000, "{found:?}");
    assert_eq!(number("fs.checked"), 0, "{found:?}");
    // Of the disk that no file system writes to at times of its own.
    let same = |other: &BTreeMap<String, String>| other["raw.sum"] == found["raw.sum"];
    assert!(same(&found_after_cut("1")));
    assert!(!same(&found_after_cut("2")));
}

#[test]
fn without_a_cut_nothing_is_lost_and_a_disk_comes_back() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let script = "
        tr '\\0' U </dev/zero | dd of=/dev/vm/d bs=4k count=8 iflag=fullblock oflag=direct status=none
        vm-ctl plug d 2>/dev/null && echo it was not unplugged
        vm-ctl unplug d || echo not unplugged
        [ -b \"$(readlink -f /dev/vm/d)\" ] && echo still there
        vm-ctl plug d || echo not plugged
        echo $(tr -cd U </dev/vm/d | wc -c)
        exit 3";
    let then = "echo $(tr -cd U </dev/vm/d | wc -c); exit 4";
    let disk = "--disk=d:4M,cache=volatile,bus=usb";
    let output = vm(&[disk, "--then", then, "--", script]);
    let [said, complained] =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!((said.as_str(), complained.as_str()), ("32768\n32768\n", ""));
    assert_eq!(output.status.code(), Some(3));
}
