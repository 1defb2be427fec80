//! Any manifest is read as it was written, a damaged one is refused, and no path leads out of the
//! top.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use sys::file_stat::{FileStat, InodeKind};

fn time() -> impl Strategy<Value = FileTime> {
    (any::<i64>(), 0..1_000_000_000_i64)
        .prop_map(|(seconds, nanoseconds)| FileTime { seconds, nanoseconds })
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>().prop_filter("not in names", |byte| !matches!(byte, 0 | b'/')), 1..20)
        .prop_filter("a name", |name| name != b"." && name != b"..")
}

fn stat(kind: InodeKind) -> impl Strategy<Value = FileStat> {
    (0..=0o7777_u32, any::<[u32; 3]>(), any::<u64>(), any::<u32>(), [time(), time(), time()])
        .prop_map(move |(mode, [user, group, links], inode, bytes, times)| FileStat {
            kind,
            mode,
            user,
            group,
            device: 0,
            inode,
            links,
            bytes: bytes.into(),
            allocated_bytes: 0,
            accessed: times[0],
            modified: times[1],
            changed: times[2],
            created: None,
            special_device: u64::from(kind == InodeKind::CharacterDevice) * 259,
            mount: None,
        })
}

fn pieces() -> impl Strategy<Value = Vec<StoredPiece>> {
    vec((0..9_u64, 1..70_000_u32, 0..3_u64, any::<u64>(), any::<bool>()), 0..6).prop_map(|all| {
        let mut pieces: Vec<StoredPiece> = Vec::new();
        for (gap, bytes, data, hash, follows) in all {
            let before = pieces.last().copied();
            let offset = before.filter(|_| follows).map(|b| b.offset + u64::from(b.bytes));
            let at = before.map_or(0, |before| before.end()) + if follows { 0 } else { gap };
            let data = before.filter(|_| follows).map_or(data, |before| before.data);
            pieces.push(StoredPiece { at, bytes, data, offset: offset.unwrap_or(gap * 77), hash });
        }
        pieces
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let kinds = prop_oneof![
        Just(InodeKind::File),
        Just(InodeKind::Directory),
        Just(InodeKind::Link),
        Just(InodeKind::CharacterDevice),
        Just(InodeKind::Pipe)
    ];
    let attributes = vec((name(), vec(any::<u8>(), 0..9)), 0..3);
    (kinds.prop_flat_map(stat), vec(name(), 1..4), any::<bool>(), name(), attributes, pieces())
        .prop_map(|(mut stat, path, is_settled, target, attributes, pieces)| {
            let is_file = stat.kind == InodeKind::File;
            let pieces = if is_file { pieces } else { Vec::new() };
            stat.bytes += pieces.last().map_or(0, StoredPiece::end);
            let extended = attributes.into_iter().map(|(n, v)| (OsString::from_vec(n), v));
            Entry {
                path: path.join(&b'/'),
                stat,
                is_settled,
                link_target: (stat.kind == InodeKind::Link).then_some(target),
                extended: extended.collect(),
                pieces,
            }
        })
}

fn manifest(lines: &[Line]) -> Manifest {
    Manifest {
        store: 0xfeed,
        generation: 42,
        base: 41,
        saved: FileTime { seconds: 1_764_115_200, nanoseconds: 5 },
        from: DirectoryIdentity::of_fields("boot", 7, 1, None),
        data: [(3, 4096), (42, 1)].into(),
        wrote: DayBytes { day: 20_417, bytes: 77 },
        lines: lines.iter().flat_map(|line| line.to_text().into_bytes()).collect(),
    }
}

#[test]
fn bytes_of_a_day_begin_anew_on_the_next() {
    let noon = 20_417 * 86_400 + 43_200;
    let wrote = DayBytes::default().plus(5, noon - 1).plus(7, noon);
    assert_eq!((wrote.day, wrote.at(noon + 43_199)), (20_417, 12));
    assert_eq!((wrote.at(noon + 43_200), wrote.plus(3, noon + 86_400).bytes), (0, 3));
}

#[test]
fn a_manifest_of_the_first_stores_says_nothing_of_what_was_written() {
    let written = String::from_utf8(manifest(&[]).to_text()).unwrap();
    let mut older = written.split("wrote\t").next().unwrap().as_bytes().to_vec();
    seal(&mut older);
    assert_eq!(Manifest::from_text(&older).unwrap().wrote, DayBytes::default());
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in vec(entry(), 0..8), gone in vec(name(), 0..3)) {
        let mut lines: Vec<Line> = entries.into_iter().map(Line::Put).collect();
        lines.extend(gone.into_iter().map(Line::Remove));
        let written = manifest(&lines);
        let read = Manifest::from_text(&written.to_text()).unwrap();
        prop_assert_eq!(&read, &written);
        let again: Vec<Line> = read
            .lines
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Line::of(line).unwrap())
            .collect();
        prop_assert_eq!(again, lines);
    }

    #[test]
    fn a_manifest_with_a_changed_or_missing_byte_is_refused(
        entry in entry(), at in any::<prop::sample::Index>(), by in 1..=255_u8, is_cut in any::<bool>()
    ) {
        let mut text = manifest(&[Line::Put(entry)]).to_text();
        let at = at.index(text.len());
        if is_cut {
            text.truncate(at);
        } else {
            text[at] ^= by;
        }
        prop_assert!(Manifest::from_text(&text).is_err());
    }

    /// As the fuzz target does, from a seed: bytes are changed, and the last line is right again.
    #[test]
    fn a_changed_manifest_with_a_right_last_line_is_refused_or_written_the_same(
        entries in vec(entry(), 1..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        copied in any::<prop::sample::Index>(),
    ) {
        let lines: Vec<Line> = entries.into_iter().map(Line::Put).collect();
        let whole = manifest(&lines).to_text();
        let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        let mut text = whole[..last].to_vec();
        for (at, byte) in changes {
            // Half of them by a letter that a manifest has.
            let at = at.index(text.len());
            let byte = if byte % 2 == 0 { byte } else { text[copied.index(text.len())] };
            text[at] = byte;
        }
        seal(&mut text);
        if let Ok(read) = Manifest::from_text(&text) {
            prop_assert_eq!(Manifest::from_text(&read.to_text()), Ok(read));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in vec(any::<u8>(), 0..200)) {
        let _ = Line::of(&text);
        prop_assert!(Manifest::from_text(&text).is_err());
    }
}

#[test]
fn a_path_that_leads_out_is_refused() {
    for path in ["..", "a/../b", "/a", "a//b", "a/", "."] {
        let line =
            format!("+\t{path}\tf\t644\t0\t0\t1\t7\t0.000000000\t0.000000000\t0.000000000\ts\t0\n");
        assert_eq!(Line::of(line.as_bytes()), None, "{path}");
    }
}

#[test]
fn a_newer_version_is_named() {
    let text = manifest(&[]).to_text();
    let newer = String::from_utf8(text).unwrap().replacen("ramdisk\t1", "ramdisk\t2", 1);
    let why = Manifest::from_text(newer.as_bytes()).unwrap_err();
    assert!(why.contains("newer Terrace (format 2"), "{why}");
}
