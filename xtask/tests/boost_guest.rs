//! `terrace boost qualify` in a guest, on sticks of `bus=usb` with their usual file systems: sound
//! ones with FAT, exFAT and ext4, one whose rate falls after a burst, fakes whose next file begins
//! far behind what they have, a full one, a read-only one, and one that is pulled out.
//!
//! The guest is emulated, so only what the models bound is judged. Skipped as `vm.rs` is, and
//! without mkfs.vfat and mkfs.exfat.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use support::Found;
use testkit::TempDir;

const SCRIPT: &str = include_str!("boost_guest/qualify.sh");
const MIB: u64 = 1 << 20;
/// What the fakes really have, of 256 MiB.
const REAL: u64 = 32 * MIB;
/// Where the number of the cluster is stored from which FAT looks for a free one.
const NEXT_CLUSTER: u64 = 512 + 492;
/// A stick that writes quickly, so that a test ends soon, and reads as sticks do.
const STICK: &str = "model=usb,bus=usb,write_bps=40000000,write_ms=0.1,jump_write_ms=0.1";
const BURST_BYTES: u64 = 12 * MIB;
const LASTING_BYTES_PER_S: f64 = 4e6;

/// Nothing was measured, for one reason that it says.
#[track_caller]
fn is_refused(found: &Found, name: &str, reason: &str) {
    found.is(&format!("{name}.status"), "3");
    found.is(&format!("{name}.lines"), "1");
    found.is(&format!("{name}.left"), found.0[&format!("{name}.there")].as_str());
    assert!(found.0[&format!("{name}.said")].contains(reason), "{name}: {:#?}", found.0);
}

#[test]
fn sticks_with_fat_are_measured_fakes_are_refused_and_a_pulled_one_is_said() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    let fake = ["mkfs.vfat", "-F", "32", "-s", "8"];
    let is_made = image(&folder.join("vfat"), 48 * MIB, &["mkfs.vfat", "-F", "32", "-s", "1"])
        && image(&folder.join("exfat"), 48 * MIB, &["mkfs.exfat"])
        && ["wraps", "forgets"].iter().all(|name| image(&folder.join(name), 256 * MIB, &fake));
    if !is_made {
        return testkit::skip("mkfs.vfat and mkfs.exfat");
    }
    for name in ["wraps", "forgets"] {
        // About 200 MiB from the start.
        let disk = File::options().write(true).open(folder.join(name)).unwrap();
        disk.write_all_at(&50_000_u32.to_le_bytes(), NEXT_CLUSTER).unwrap();
    }
    let found = found_in_a_guest(folder.path());
    sound(&found);
    fakes(&found);
    is_refused(&found, "full", "is free there");
    is_refused(&found, "readonly", "read-only");
    // What was measured until then, and why no more.
    found.is("pulled.status", "1");
    found.is("pulled.answer", "unproven");
    found.is("pulled.lines", "1");
    found.is("pulled.left", "0");
    // What was reserved for its file is free again, in KiB.
    assert!(found.number("pulled.used") < 1024.0, "{:#?}", found.0);
}

fn sound(found: &Found) {
    for kind in ["vfat", "exfat", "ext4", "burst"] {
        found.is(&format!("{kind}.status"), "0");
        found.is(&format!("{kind}.outcome"), "proved");
        found.is(&format!("{kind}.left"), "0");
        found.is(&format!("{kind}.bus"), "usb");
        found.is(&format!("{kind}.lines"), "0");
        assert!(found.number(&format!("{kind}.aliases_read")) > 0.0, "{kind}: {:#?}", found.0);
    }
    // Making the file system took a part of it, and the whole stretch with the knee is behind it.
    let burst = found.number("burst.bytes") / BURST_BYTES as f64;
    assert!((0.4..1.3).contains(&burst), "the knee is at {burst} of the burst: {:#?}", found.0);
    let lasting = found.number("burst.lasting") / LASTING_BYTES_PER_S;
    assert!((0.7..1.3).contains(&lasting), "{lasting} of the lasting rate: {:#?}", found.0);
}

fn fakes(found: &Found) {
    for fake in ["wraps", "forgets"] {
        found.is(&format!("{fake}.status"), "0");
        found.is(&format!("{fake}.outcome"), "refused");
        found.is(&format!("{fake}.answer"), "no");
        found.is(&format!("{fake}.left"), "0");
    }
    found.is("wraps.is_restored", "true");
    found.is("wraps.equal", "1");
    found.is("forgets.damaged_place", "null");
    // The block twice, to see whether the other place follows; one that forgets has none.
    found.is("wraps.written_bytes", "8192");
    found.is("forgets.written_bytes", "4096");
}

/// An image full of photos, with a file system over them.
fn image(path: &Path, bytes: u64, make: &[&str]) -> bool {
    let file = File::create_new(path).unwrap();
    for block in 0..bytes.min(2 * REAL) / 4096 {
        let photo: Vec<u8> = (0..512_u64).flat_map(|at| (block * 512 + at).to_le_bytes()).collect();
        file.write_all_at(&photo, block * 4096).unwrap();
    }
    file.set_len(bytes).unwrap();
    let status = Command::new(make[0]).args(&make[1..]).arg(path).output();
    status.is_ok_and(|made| made.status.success())
}

fn found_in_a_guest(folder: &Path) -> Found {
    let of_files = [
        ("vfat", ""),
        ("exfat", ""),
        ("wraps", ",real_bytes=32M,beyond=wraps"),
        ("forgets", ",real_bytes=32M,beyond=forgets"),
    ];
    let mut words: Vec<String> = Vec::new();
    for (name, key) in of_files {
        let file = folder.join(name);
        words.push(format!("--disk={name}:file={},{STICK}{key}", file.display()));
    }
    words.push(format!("--disk=ext4:64M,{STICK}"));
    let burst = format!("burst_bytes={BURST_BYTES},burst_bps=40000000");
    let lasting = format!("write_bps={LASTING_BYTES_PER_S},write_ms=0,jump_write_ms=0");
    words.push(format!("--disk=burst:64M,model=usb,bus=usb,{lasting},{burst}"));
    let disks = ["--disk=pulled:128M,model=usb,bus=usb", "--disk=hdd:64M,model=hdd"];
    let modules = ["--module=vfat", "--module=exfat", "--module=nls_cp437", "--module=nls_ascii"];
    let rest = ["--mem", "512M", "--timeout", "200", "--", "sh qualify.sh"];
    words.extend([&disks[..], &modules, &rest].concat().into_iter().map(str::to_owned));
    support::run_guest(&[("qualify.sh", SCRIPT)], &words).0
}
