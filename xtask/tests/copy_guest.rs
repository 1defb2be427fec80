//! `terrace copy` in a guest: the power fails while six disks with write caches are copied to, a
//! stick is pulled out midway, waited for and ejected, one with FAT gets what FAT cannot hold, a
//! fake stick gets more than it keeps, and files that are scattered on a disk with a head are read.
//!
//! A cut keeps of each disk another part of what was not flushed, so one boot tries six disks at
//! six stages of a copy. Skipped as `vm.rs` is.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program;
use testkit::{Random, TempDir};

const CUT: &str = include_str!("copy_guest/cut.sh");
const AFTER: &str = include_str!("copy_guest/after.sh");
const DISKS: u64 = 6;
const FAKE_BYTES: u64 = 64 << 20;
/// Sizes of files, from empty to some that go to the ring.
const SIZES: [usize; 6] = [0, 700, 4096, 70_000, 300_000, 1_200_000];
const FILES: usize = 48;
/// Files that are there in all copies when the power fails.
const MOMENT: &str = "120";

#[test]
fn after_a_power_cut_and_a_pulled_stick_what_has_a_name_is_whole_and_the_same_command_ends() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    make_tree(&folder.join("tree"));
    std::fs::write(folder.join("cut.sh"), CUT).unwrap();
    std::fs::write(folder.join("after.sh"), AFTER).unwrap();
    let has_fat = Command::new("mkfs.vfat").arg("--help").output().is_ok();
    let found = found_in_a_guest(folder.path(), has_fat);
    let number = |name: String| found.get(&name).and_then(|value| value.parse::<i64>().ok());
    let mut named = Vec::new();
    for disk in 1..=DISKS {
        let of = |what: &str| number(format!("d{disk}.{what}"));
        assert_eq!(of("broken"), Some(0), "disk {disk}: {found:?}");
        // A tree appears at once; into a directory that exists files come one by one.
        let files = of("named").unwrap();
        assert!(disk % 2 == 0 || [0, FILES as i64].contains(&files), "disk {disk}: {found:?}");
        named.push(files);
        assert_eq!(of("status"), Some(0), "disk {disk}: {found:?}");
        assert_eq!(of("equal"), Some(1), "disk {disk}: {found:?}");
        assert_eq!(of("hidden"), Some(0), "disk {disk}: {found:?}");
        assert_eq!(of("checked"), Some(0), "disk {disk}: {found:?}");
    }
    assert!(named.contains(&0), "no copy was under way: {found:?}");
    let stick = |what: &str| number(format!("stick.{what}"));
    assert_eq!(stick("status"), Some(1), "{found:?}");
    assert!(found["stick.said"].contains("run the same command again"), "{found:?}");
    assert!(stick("fsck").is_some_and(|status| status <= 1), "{found:?}");
    assert_eq!((stick("again"), stick("equal")), (Some(0), Some(1)), "{found:?}");
    // One copy at a time on a stick, and one that a process holds is not ejected.
    let is = |name: &str| number(name.to_owned());
    assert_eq!((is("queue.first"), is("queue.second")), (Some(0), Some(0)), "{found:?}");
    assert_eq!((is("queue.waited"), is("queue.named")), (Some(1), Some(1)), "{found:?}");
    assert_eq!((is("eject.held"), is("eject.mounted")), (Some(1), Some(1)), "{found:?}");
    assert_eq!(is("eject.named"), Some(1), "{found:?}");
    assert_eq!((is("eject.status"), is("eject.safe")), (Some(0), Some(1)), "{found:?}");
    assert_eq!(is("eject.left"), Some(0), "{found:?}");
    if has_fat {
        assert_fat(&found);
        assert_fake(&found);
    } else {
        testkit::skip("mkfs.vfat, for a stick with FAT");
    }
}

/// A stick that forgets. Each copy is written without an error; only one that is read back knows
/// what was lost.
fn assert_fake(found: &BTreeMap<String, String>) {
    let fake = |what: &str| found[&format!("fake.{what}")].parse::<i64>().unwrap();
    let some = 1..FILES as i64;
    assert_eq!(fake("trusted"), 0, "{found:?}");
    assert!(fake("kept") < FILES as i64, "{found:?}");
    assert_eq!(fake("verified"), 1, "{found:?}");
    assert!(some.contains(&fake("named")), "{found:?}");
    // After a new mount: what has a name is whole, or went with its directory.
    assert_eq!(fake("wrong"), 0, "{found:?}");
    let lost = "what the device gives back differs from byte";
    assert!(found["fake.said"].contains("not copied: /mnt/fake/tree/d"), "{found:?}");
    assert!(found["fake.said"].contains(lost), "{found:?}");
    assert!(found["fake.said"].contains("do not trust that disk"), "{found:?}");
    let copied = format!(" {} files with", fake("named"));
    assert!(found["fake.said"].contains(&copied), "{found:?}");
}

/// What FAT cannot hold is listed before the first byte, and left out if that is asked for.
fn assert_fat(found: &BTreeMap<String, String>) {
    let fat = |what: &str| found[&format!("fat.{what}")].as_str();
    assert_eq!((fat("refused"), fat("touched")), ("3", "0"), "{found:?}");
    for words in ["/odd/a:b (", "(the name is the same as ", "/odd/huge (a file has at most "] {
        assert!(fat("said").contains(words), "{words}: {found:?}");
    }
    assert!(fat("said").contains("--skip-unfit leaves them out"), "{found:?}");
    // Links and pipes are no reason to refuse.
    assert!(!fat("said").contains("/odd/link"), "{found:?}");
    assert_eq!((fat("dry"), fat("listed")), ("0", "3"), "{found:?}");
    assert_eq!((fat("skipping"), fat("left_out")), ("1", "5"), "{found:?}");
    let page = fat("page");
    assert!(page.contains("/odd/link: there are no symbolic links"), "{found:?}");
    assert!(page.contains("/odd/pipe: there are no pipes, sockets and devices"), "{found:?}");
    assert!(page.contains("5 entries not copied, the rest is"), "{found:?}");
    let names = fat("names").to_lowercase();
    assert_eq!((names.as_str(), fat("equal")), ("readme below plain", "1"), "{found:?}");
}

fn make_tree(tree: &Path) {
    let mut random = Random(20);
    for at in 0..FILES {
        let directory = tree.join(format!("d{}", at % 5));
        std::fs::create_dir_all(&directory).unwrap();
        let seed = random.below(251) as usize;
        let size = SIZES[at % SIZES.len()];
        let data: Vec<u8> = (0..size).map(|byte| ((byte / 3 + seed) % 251) as u8).collect();
        std::fs::write(directory.join(format!("file{at}")), data).unwrap();
    }
}

/// The stick as it is sold. FAT takes its blocks from the start on, so what is beyond the true end
/// are the last files.
fn make_fat(directory: &Path) -> PathBuf {
    let image = directory.join("fake.img");
    File::create(&image).unwrap().set_len(FAKE_BYTES).unwrap();
    let made = Command::new("mkfs.vfat").args(["-F", "16"]).arg(&image).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    image
}

/// What both boots say, by name.
fn found_in_a_guest(folder: &Path, has_fat: bool) -> BTreeMap<String, String> {
    let work = TempDir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("vm").env("TMPDIR", work.path());
    for disk in 1..=DISKS {
        command.arg(format!("--disk=d{disk}:64M,cache=volatile,rot=0"));
    }
    command.arg("--disk=stick:64M,model=usb,bus=usb");
    if has_fat {
        let image = make_fat(work.path());
        command.arg(format!("--disk=fake:file={},real_bytes=4M,bus=usb", image.display()));
        command.args(["--module=vfat", "--module=nls_cp437", "--module=nls_ascii"]);
    }
    command.arg("--bin").arg(program()).arg("--dir").arg(folder);
    command.args(["--mem", "1G", "--timeout", "300", "--env", &format!("MOMENT={MOMENT}")]);
    let run = command.args(["--then", "sh after.sh", "--", "sh cut.sh"]).output().unwrap();
    let [said, complained] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(run.status.code(), Some(0), "{said}{complained}");
    assert!(complained.contains("power cut"), "{said}{complained}");
    support::said(&said)
}
