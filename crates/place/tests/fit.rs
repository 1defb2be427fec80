//! What is said to fit against real file systems: a name without a fault can be made and is listed
//! as it is, one with a fault cannot, and names that collide are one. Needs root.

#![allow(clippy::unwrap_used, reason = "a test program")]

use place::fit::{CaseFolding, NameCollisions, OwnerRule, TargetFacts};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::directory::{Directory, SpecialFile};
use testkit::{Mounted, Tmpfs};

const MIB: u64 = 1 << 20;

/// Names at every rule, and some that are harmless.
fn names() -> Vec<OsString> {
    let texts = [
        "plain",
        "with space",
        "a:b",
        "a*b",
        "a?b",
        "a<b",
        "a>b",
        "a|b",
        "a\"b",
        "a\\b",
        "a;b+c=[d]",
        "ends.",
        "ends..",
        "...",
        " ",
        "ends ",
        " begins",
        ".hidden",
        "a\u{1}b",
        "a\nb",
        "a\u{7f}b",
        "é",
        "日本語",
        "\u{1f600}",
        "-rf",
        "~",
        "CON",
        "aux.txt",
        "ß",
    ];
    let mut names: Vec<OsString> = texts.iter().map(OsString::from).collect();
    for bytes in [b"\xff".as_slice(), b"a\xc3", b"\xed\xa0\x80"] {
        names.push(OsStr::from_bytes(bytes).to_owned());
    }
    for (letter, count) in [("a", 255), ("é", 127), ("é", 128), ("日", 85), ("日", 86), ("é", 255)]
    {
        names.push(letter.repeat(count).into());
    }
    names
}

/// Every name alone in a directory of `top`.
fn check_names(file_system: &str, top: &Directory, facts: &TargetFacts) {
    for (index, name) in names().iter().enumerate() {
        let below = top.create_subdirectory(OsStr::new(&format!("d{index}")), 0o700).unwrap();
        let made = below.create_new(name, 0o600);
        let is_held = made.is_ok() && below.names().unwrap() == [name.clone()];
        let fault = facts.names.fault(name);
        assert_eq!(is_held, fault.is_none(), "{file_system}: {name:?} {fault:?} {made:?}");
    }
}

fn check_case(file_system: &str, top: &Directory, facts: &TargetFacts) {
    let pairs = [("README", "readme"), ("Ä", "ä"), ("a", "b"), ("Straße", "STRASSE")];
    for (index, (one, two)) in pairs.into_iter().enumerate() {
        let name = format!("case{index}");
        let below = top.create_subdirectory(OsStr::new(&name), 0o700).unwrap();
        below.create_new(OsStr::new(one), 0o600).unwrap();
        let is_free = below.create_new(OsStr::new(two), 0o600).is_ok();
        let mut names = NameCollisions::default();
        names.add(OsStr::new(one), &facts.names);
        let collides = names.add(OsStr::new(two), &facts.names).is_some();
        // FAT folds what its character set has, which may be less.
        let is_certain = facts.names.folding != CaseFolding::Simple || two.is_ascii();
        assert!(collides || is_free, "{file_system}: {one} {two}: not foreseen");
        assert!(!collides || !is_free || !is_certain, "{file_system}: {one} {two}: foreseen only");
    }
}

fn check_kinds(file_system: &str, top: &Directory, facts: &TargetFacts) {
    let name = OsStr::new;
    let link = top.create_link(name("link"), name("x")).is_ok();
    let pipe = top.create_special(name("pipe"), SpecialFile::Pipe, 0o600).is_ok();
    let file = top.create_new(name("file"), 0o600).unwrap();
    let second = top.create_hard_link(name("second"), top, name("file")).is_ok();
    let extended = sys::attributes::set_extended(&file, name("user.x"), b"1").is_ok();
    assert_eq!(
        (link, pipe, second),
        (facts.has_links, facts.has_special_files, facts.has_hard_links)
    );
    assert_eq!(extended, facts.has_extended, "{file_system}");
    let owner = sys::attributes::set_owner(&file, 4242, 4242).is_ok();
    assert_eq!(owner, facts.owners.holds(4242, 4242), "{file_system}");
    file.set_len(64 * MIB).unwrap();
    file.sync_all().unwrap();
    let allocated = sys::file_stat::FileStat::of(&file).unwrap().allocated_bytes;
    assert_eq!(allocated < MIB, facts.has_holes, "{file_system}");
    drop(file);
    top.remove(name("file")).unwrap();
}

fn check(file_system: &str, path: &Path) -> TargetFacts {
    let top = Directory::open(path).unwrap();
    let facts = TargetFacts::of(&top).unwrap();
    assert!(facts.free_bytes > 0);
    check_kinds(file_system, &top, &facts);
    check_names(file_system, &top, &facts);
    check_case(file_system, &top, &facts);
    facts
}

#[test]
fn what_is_said_of_a_file_system_is_what_it_does() {
    for (file_system, options, mib) in [
        ("ext4", &["-q"] as &[&str], 128),
        ("xfs", &["-q"], 400),
        ("btrfs", &["-q"], 400),
        ("vfat", &[], 128),
        ("exfat", &[], 128),
    ] {
        match Mounted::made(file_system, options, mib * MIB) {
            Ok(mounted) => {
                let facts = check(file_system, mounted.path());
                assert_eq!(facts.file_system, Some(file_system));
                let counts_inodes = ["ext4", "xfs"].contains(&file_system);
                assert_eq!(facts.free_inodes.is_some(), counts_inodes, "{file_system}");
            }
            Err(need) => testkit::skip(need),
        }
    }
}

#[test]
fn a_directory_that_folds_case_is_one() {
    let mounted = match Mounted::made("ext4", &["-q", "-O", "casefold"], 64 * MIB) {
        Ok(mounted) => mounted,
        Err(need) => return testkit::skip(need),
    };
    let folded = mounted.path().join("folded");
    std::fs::create_dir(&folded).unwrap();
    let set = std::process::Command::new("chattr").arg("+F").arg(&folded).status();
    if !set.is_ok_and(|status| status.success()) {
        return testkit::skip("chattr +F");
    }
    let facts = TargetFacts::of(&Directory::open(&folded).unwrap()).unwrap();
    assert_eq!(facts.names.folding, CaseFolding::Full);
    check_case("ext4 with casefold", &Directory::open(&folded).unwrap(), &facts);
    let above = TargetFacts::of(&Directory::open(mounted.path()).unwrap()).unwrap();
    assert_eq!(above.names.folding, CaseFolding::None);
}

#[test]
fn a_small_file_system_says_how_much_it_holds() {
    let tmpfs = match Tmpfs::mount(MIB) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let top = Directory::open(tmpfs.path()).unwrap();
    let before = TargetFacts::of(&top).unwrap();
    assert!(before.free_bytes <= MIB && before.owners == OwnerRule::Any);
    std::fs::write(tmpfs.path().join("file"), vec![1; 600 << 10]).unwrap();
    let after = TargetFacts::of(&top).unwrap();
    assert!(after.free_bytes <= before.free_bytes - (600 << 10));
    assert!(after.free_inodes < before.free_inodes && after.free_inodes.is_some());
}
