//! The rules as such: faults, folding, room and shares. Against real file systems they are held in
//! `tests/fit.rs`.

use super::*;
use proptest::prelude::*;
use std::os::unix::ffi::OsStrExt;
use sys::attributes::FileTime;

const NEVER: FileTime = FileTime { seconds: 0, nanoseconds: 0 };

fn stat(kind: InodeKind, bytes: u64, allocated_bytes: u64, links: u32) -> FileStat {
    FileStat {
        kind,
        mode: 0o644,
        user: 1000,
        group: 1000,
        device: 1,
        inode: 2,
        links,
        bytes,
        allocated_bytes,
        accessed: NEVER,
        modified: NEVER,
        changed: NEVER,
        created: None,
        special_device: 0,
        mount: None,
    }
}

fn facts(file_system: &'static str) -> TargetFacts {
    let free = TargetFacts { free_bytes: 1 << 40, ..TargetFacts::of_type(Some(file_system)) };
    TargetFacts { allocation_bytes: Some(4096), ..free }
}

fn all_of(name: &str, stat: &FileStat, file_system: &'static str) -> Vec<Misfit> {
    let extended = [OsString::from("user.x")];
    let entry = FitEntry { name: OsStr::new(name), stat, extended: &extended };
    misfits(&entry, &facts(file_system))
}

#[test]
fn what_fat_lacks_is_said_and_ext4_lacks_nothing() {
    let gib = 1 << 30;
    let large = stat(InodeKind::File, 4 * gib, gib, 2);
    let expected = [
        Misfit::Name(NameFault::Reserved(':')),
        Misfit::TooLarge(4 * gib - 1),
        Misfit::HardLink,
        Misfit::Hole,
        Misfit::Owner,
        Misfit::Extended,
    ];
    assert_eq!(all_of("a:b", &large, "vfat"), expected);
    let of_exfat = all_of("a:b", &large, "exfat");
    assert!(of_exfat.iter().eq(expected.iter().filter(|misfit| **misfit != expected[1])));
    let at_limit = stat(InodeKind::File, 4 * gib - 1, 4 * gib, 1);
    assert_eq!(all_of("a", &at_limit, "vfat"), [Misfit::Owner, Misfit::Extended]);
    assert_eq!(all_of("a:b", &large, "ext4"), []);
    for kind in [InodeKind::Link, InodeKind::Pipe, InodeKind::BlockDevice] {
        let special = all_of("a", &stat(kind, 0, 0, 1), "vfat");
        assert_eq!(special[0].effect(), MisfitEffect::LeftOut, "{kind:?}");
    }
    assert_eq!(Misfit::TooLarge(1).effect(), MisfitEffect::Refused);
    assert_eq!(Misfit::Owner.effect(), MisfitEffect::Reduced);
}

#[test]
fn names_at_the_limits() {
    let long = |letter: &str, count| OsString::from(letter.repeat(count));
    let fault = |name: &OsStr, rules: NameRules| rules.fault(name);
    assert_eq!(fault(&long("a", 255), NameRules::UNIX), None);
    assert_eq!(fault(&long("é", 128), NameRules::UNIX), Some(NameFault::TooLong(255)));
    assert_eq!(fault(&long("é", 255), NameRules::FAT), None);
    // Two units of UTF-16 each.
    assert_eq!(fault(&long("\u{1f600}", 128), NameRules::FAT), Some(NameFault::TooLong(255)));
    let fat = |name: &str| NameRules::FAT.fault(OsStr::new(name));
    assert_eq!(fat("a."), Some(NameFault::LastDot));
    assert_eq!(fat("a "), Some(NameFault::LastSpace));
    assert_eq!(NameRules::EXFAT.fault(OsStr::new("a ")), None);
    assert_eq!(fat("a\nb"), Some(NameFault::Reserved('\n')));
    assert_eq!(fat(".a b;c"), None);
    let invalid = OsStr::from_bytes(b"a\xff");
    assert_eq!(NameRules::FAT.fault(invalid), Some(NameFault::NotUtf8));
    assert_eq!(NameRules::NTFS.fault(invalid), Some(NameFault::NotUtf8));
    assert_eq!(NameRules::UNIX.fault(invalid), None);
    assert_eq!(NameRules::NTFS.fault(OsStr::new("a:b.")), None);
}

#[test]
fn names_that_differ_by_case_collide_where_case_is_folded() {
    let full = NameRules { folding: CaseFolding::Full, ..NameRules::UNIX };
    let collide = |one: &str, two: &str, rules: &NameRules| {
        let mut names = NameCollisions::default();
        assert_eq!(names.add(OsStr::new(one), rules), None);
        names.add(OsStr::new(two), rules).is_some()
    };
    for (one, two, simple, all) in [
        ("README", "readme", true, true),
        ("ÄÖ", "äö", true, true),
        ("straße", "STRASSE", false, true),
        ("σ", "ς", true, true),
        ("a", "b", false, false),
        ("a", "a", false, false),
    ] {
        assert_eq!(collide(one, two, &NameRules::FAT), simple, "{one} {two}");
        assert_eq!(collide(one, two, &full), all, "{one} {two}");
        assert!(!collide(one, two, &NameRules::UNIX));
    }
}

#[test]
fn room_is_counted_in_blocks_and_by_shares() {
    let needed = |stats: &[FileStat], facts: &TargetFacts| {
        let mut room = RoomNeeded::default();
        stats.iter().for_each(|stat| room.add(stat, facts));
        (room.bytes, room.inodes)
    };
    let (ext4, fat) = (facts("ext4"), facts("vfat"));
    let small = stat(InodeKind::File, 5000, 8192, 1);
    assert_eq!(needed(&[small], &ext4), (8192, 1));
    let tiny = stat(InodeKind::File, 10, 4096, 1);
    assert_eq!(needed(&[tiny], &ext4), (0, 1), "it may be inside of its inode");
    assert_eq!(needed(&[tiny], &fat), (4096, 1));
    let sparse = stat(InodeKind::File, 5 << 40, 8192, 1);
    assert_eq!(needed(&[sparse], &ext4), (8192, 1));
    assert_eq!(needed(&[sparse], &fat), (5 << 40, 1));
    let linked = stat(InodeKind::File, 4 << 20, 4 << 20, 4);
    assert_eq!(needed(&[linked; 4], &ext4), (4 << 20, 1));
    assert_eq!(needed(&[linked; 4], &fat), (16 << 20, 4));
    let short = |free_bytes, free_inodes, may_compress| {
        let mut room = RoomNeeded::default();
        room.add(&small, &ext4);
        room.shortage(&TargetFacts { free_bytes, free_inodes, may_compress, ..ext4.clone() })
    };
    assert_eq!(short(8192, Some(1), false), None);
    assert_eq!(short(8191, None, false), Some(RoomShortage::Bytes { needed: 8192, free: 8191 }));
    assert_eq!(short(8191, None, true), None);
    assert_eq!(short(1 << 20, Some(0), true), Some(RoomShortage::Inodes { needed: 1, free: 0 }));
}

proptest! {
    /// No bytes of a name make it fail, and what is said of it fits it.
    #[test]
    fn any_name_is_judged(bytes in prop::collection::vec(1_u8.., 0..300)) {
        let name = OsStr::from_bytes(&bytes);
        for rules in [NameRules::UNIX, NameRules::FAT, NameRules::EXFAT, NameRules::NTFS] {
            match rules.fault(name) {
                None => prop_assert!(name.len() <= 255 * 3),
                Some(NameFault::NotUtf8) => prop_assert!(name.to_str().is_none()),
                Some(fault) => prop_assert!(!fault.to_string().chars().any(char::is_control)),
            }
            prop_assert_eq!(rules.folded(name), rules.folded(name));
        }
    }

    /// Folding again changes nothing, and either case of a name folds to the same.
    #[test]
    fn folding_is_stable(name in "\\PC{0,40}") {
        for folding in [CaseFolding::Simple, CaseFolding::Full] {
            let rules = NameRules { folding, ..NameRules::FAT };
            let once = rules.folded(OsStr::new(&name));
            prop_assert_eq!(&rules.folded(OsStr::from_bytes(&once)), &once);
        }
        let full = NameRules { folding: CaseFolding::Full, ..NameRules::UNIX };
        let upper = name.to_uppercase();
        prop_assert_eq!(full.folded(OsStr::new(&upper)), full.folded(OsStr::new(&name)));
    }

    /// Shares of one inode never add up to more than one, however they are ordered.
    #[test]
    fn shares_are_a_lower_bound(links in prop::collection::vec(1_u32..9, 1..60)) {
        let target = facts("ext4");
        let mut room = RoomNeeded::default();
        let mut exact = 0.0;
        for links in &links {
            room.add(&stat(InodeKind::File, 8192, 8192, *links), &target);
            exact += 1.0 / f64::from(*links);
        }
        prop_assert!(room.inodes as f64 <= exact + 1e-6);
        prop_assert!(room.bytes as f64 <= exact * 8192.0 + 1.0);
    }
}
