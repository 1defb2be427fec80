//! The snapshot as a file: what is written is read, whatever it is; what is cut, changed or
//! made to hurt is refused with a line and never panics.
//!
//! With `TERRACE_SEEDS` set to a directory the seeds are written there for the fuzzer.

#![allow(clippy::unwrap_used, reason = "a test program")]
#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant, also of one")]

use place::ErrorKind;
use place::read_plan::FileIdentity;
use place::workingset::snapshot::{
    CachedFile, ProcessSnapshot, Snapshot, decode, encode, read, reseal, write,
};
use proptest::prelude::*;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use testkit::{Random, TempDir};

const HEADER: &[u8] = b"terrace snapshot 1\n";

fn pages() -> impl Strategy<Value = Vec<Range<u64>>> {
    let far = prop_oneof![9 => 1u64..1000, 1 => 1u64..1 << 40];
    prop::collection::vec((far, 1u64..1000), 0..20).prop_map(|steps| {
        let mut at = 0;
        let mut ranges = Vec::new();
        for (gap, length) in steps {
            let start = at + gap * 4096;
            at = start + length * 4096;
            ranges.push(start..at);
        }
        ranges
    })
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(1u8..=255, 1..60).prop_map(|bytes| OsString::from_vec(bytes).into())
}

fn files() -> impl Strategy<Value = Vec<CachedFile>> {
    let file = (path(), any::<(u64, u64, i64)>(), pages()).prop_map(|(path, numbers, cached)| {
        let (device, bytes, changed_ns) = numbers;
        let identity = FileIdentity { device, inode: 0, bytes, changed_ns };
        CachedFile { path, identity, cached }
    });
    // Each is another one.
    prop::collection::vec(file, 0..20).prop_map(|mut files| {
        for (inode, file) in (0..).zip(&mut files) {
            file.identity.inode = inode;
        }
        files
    })
}

fn processes() -> impl Strategy<Value = Vec<ProcessSnapshot>> {
    let fields = (any::<(u64, String)>(), prop::option::of(path()), pages());
    let process = fields.prop_map(|((start_ticks, name), executable, present)| ProcessSnapshot {
        pid: 0,
        start_ticks,
        name,
        executable,
        present,
    });
    prop::collection::vec(process, 0..8).prop_map(|mut processes| {
        for (pid, process) in (0..).zip(&mut processes) {
            process.pid = pid;
        }
        processes
    })
}

fn snapshots() -> impl Strategy<Value = Snapshot> {
    let machine = any::<(i64, Option<u64>, u64)>();
    (machine, files(), processes()).prop_map(|(machine, files, processes)| {
        let (at_ns, cached_bytes, found_bytes) = machine;
        Snapshot { at_ns, files, processes, cached_bytes, found_bytes, ..Snapshot::default() }
    })
}

/// A plain one, with some of everything.
fn sample() -> Snapshot {
    let file = |number: u64| CachedFile {
        path: format!("/usr/lib/file-{number}").into(),
        identity: FileIdentity {
            device: 65_024,
            inode: 1_000_000 + number * 7,
            bytes: number * 5000,
            changed_ns: 1_700_000_000_000_000_000 + number as i64,
        },
        cached: vec![0..4096 * (number + 1), 1 << 30..(1 << 30) + 8192],
    };
    let process = ProcessSnapshot {
        pid: 12,
        start_ticks: 345,
        name: "postgres".to_owned(),
        executable: Some("/usr/bin/postgres".into()),
        present: vec![0x7f00_0000_0000..0x7f00_0010_0000],
    };
    Snapshot {
        at_ns: 1,
        files: (0..20).map(file).collect(),
        processes: vec![process],
        cached_bytes: Some(9_100_000_000),
        found_bytes: 8_200_000_000,
        notes: Vec::new(),
    }
}

/// A file with these lines.
fn with_lines(lines: &[u8]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    file.extend(zstd::bulk::compress(lines, 3).unwrap());
    file.extend([0; 4]);
    reseal(&mut file);
    file
}

/// The lines of a file.
fn lines_of(file: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(&file[HEADER.len()..file.len() - 4]).unwrap()
}

/// The file was written by version 0.1. Another version of zstd may pack differently: then this
/// file must still be read, and a second one beside it is compared.
#[test]
fn the_bytes_on_disk_are_those_of_version_0_1() {
    let snapshot = Snapshot {
        at_ns: 1_700_000_000_000_000_000,
        files: vec![CachedFile {
            path: "/usr/lib/libc.so.6".into(),
            identity: FileIdentity {
                device: 2049,
                inode: 42,
                bytes: 2_000_000,
                changed_ns: 1_600_000_000_000_000_000,
            },
            cached: vec![0..8192, 32_768..36_864],
        }],
        processes: vec![ProcessSnapshot {
            pid: 7,
            start_ticks: 123,
            name: "sh".to_owned(),
            executable: Some("/bin/sh".into()),
            present: vec![4096..12_288],
        }],
        cached_bytes: Some(1 << 30),
        found_bytes: 12_288,
        notes: Vec::new(),
    };
    let bytes = encode(&snapshot).unwrap();
    if let Some(path) = std::env::var_os("TERRACE_FIXTURE") {
        std::fs::write(path, &bytes).unwrap();
    }
    let fixture = include_bytes!("fixtures/version-0-1.snapshot");
    assert_eq!(bytes, fixture);
    assert_eq!(decode(fixture).unwrap(), snapshot);
}

proptest! {
    #[test]
    fn what_is_written_is_read(snapshot in snapshots()) {
        let bytes = encode(&snapshot).unwrap();
        prop_assert_eq!(decode(&bytes).unwrap(), snapshot);
    }

    #[test]
    fn any_bytes_and_any_lines_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        prop_assert!(decode(&with_lines(&bytes)).is_err());
    }
}

#[test]
fn ranges_beyond_one_line_come_back_as_one_file() {
    let mut snapshot = sample();
    let many: Vec<_> = (0..200_000).map(|at| at * 8192..at * 8192 + 4096).collect();
    snapshot.files[3].cached.clone_from(&many);
    snapshot.processes[0].present = many;
    let bytes = encode(&snapshot).unwrap();
    assert_eq!(decode(&bytes).unwrap(), snapshot);
    assert!(lines_of(&bytes).split(|byte| *byte == b'\n').count() > 26);
}

#[test]
fn ranges_that_are_no_pages_are_not_written() {
    for bad in [vec![0..4095], vec![4096..8192, 0..4096], vec![4096..4096]] {
        let mut snapshot = sample();
        snapshot.files[0].cached = bad;
        assert_eq!(encode(&snapshot).unwrap_err().kind, ErrorKind::Failed);
    }
}

#[test]
fn one_that_was_cut_at_any_byte_is_refused() {
    let bytes = encode(&sample()).unwrap();
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "{length}");
    }
    assert_eq!(decode(&bytes).unwrap(), sample());
}

#[test]
fn any_flipped_bit_is_seen() {
    let bytes = encode(&sample()).unwrap();
    for index in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[index / 8] ^= 1 << (index % 8);
        assert!(decode(&flipped).is_err(), "bit {index}");
    }
}

#[test]
fn other_files_and_newer_snapshots_are_distinguished() {
    let why = |bytes: &[u8]| decode(bytes).unwrap_err();
    assert_eq!(why(b""), "it is not a snapshot of Terrace");
    assert_eq!(why(b"terrace snapshot x\n"), "it is not a snapshot of Terrace");
    assert!(why(b"terrace snapshot 2\nwhatever").contains("newer"));
    assert_eq!(why(HEADER), "it is damaged");
}

#[test]
fn hostile_lines_are_refused() {
    let machine = r#"{"machine":{"at_ns":0,"cached_bytes":null,"found_bytes":0}}"#;
    let file = |cached: &str| {
        let identity = r#"{"device":0,"inode":0,"bytes":0,"changed_ns":0}"#;
        let text = format!(r#"{{"file":{{"path":"/a","identity":{identity},"cached":{cached}}}}}"#);
        format!("{machine}\n{text}\n").into_bytes()
    };
    assert_eq!(decode(&with_lines(&file("[1,2]"))).unwrap().files.len(), 1);
    let max = u64::MAX;
    for bad in [
        file("[1]"),
        file("[1,0]"),
        file("[-1,1]"),
        file(&format!("[{max},1]")),
        file(&format!("[1,{max}]")),
        file("[[[[[[[["),
        format!("{machine}\n{machine}\n").into_bytes(),
        // A further line of the same file must go on where the first one ends.
        [file("[0,9]"), file("[5,1]").split_off(machine.len() + 1)].concat(),
        b"\n".to_vec(),
        Vec::new(),
    ] {
        assert!(decode(&with_lines(&bad)).is_err());
    }
}

#[test]
fn a_small_file_cannot_grow_without_bound() {
    // 1 GiB of spaces, or of one endless line of numbers, in some 100 KB.
    for filler in [b" ".as_slice(), b"1,", b"\n"] {
        let mut packed = zstd::Encoder::new(HEADER.to_vec(), 3).unwrap();
        let block = filler.repeat((1 << 20) / filler.len());
        for _ in 0..1024 {
            std::io::Write::write_all(&mut packed, &block).unwrap();
        }
        let mut file = packed.finish().unwrap();
        file.extend([0; 4]);
        reseal(&mut file);
        assert!(decode(&file).is_err());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 512 << 10, "{kib} KiB");
}

#[test]
fn changed_seeds_never_panic() {
    let seeds: Vec<Vec<u8>> =
        vec![encode(&sample()).unwrap(), encode(&Snapshot::default()).unwrap()];
    if let Some(directory) = std::env::var_os("TERRACE_SEEDS") {
        let directory = PathBuf::from(directory);
        std::fs::create_dir_all(&directory).unwrap();
        for (index, seed) in seeds.iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{index}.snapshot")), seed).unwrap();
        }
    }
    let mut random = Random(42);
    let (mut read, mut refused) = (0, 0);
    for seed in &seeds {
        let plain = lines_of(seed);
        for _ in 0..3000 {
            // Now the packed bytes, now the lines before packing.
            let in_lines = random.below(2) == 0;
            let mut bytes = if in_lines { plain.clone() } else { seed.clone() };
            for _ in 0..=random.below(3) {
                let index = random.below(bytes.len() as u64) as usize;
                match random.below(4) {
                    0 => bytes[index] = random.next_u64() as u8,
                    1 => bytes[index] ^= 1 << random.below(8),
                    2 => bytes.truncate(index.max(1)),
                    _ => bytes.insert(index, b"0123456789,[]\"{}"[random.below(16) as usize]),
                }
            }
            let file = if in_lines { with_lines(&bytes) } else { bytes };
            let mut sealed = file.clone();
            reseal(&mut sealed);
            match decode(&sealed) {
                Ok(_) => read += 1,
                Err(_) => refused += 1,
            }
        }
    }
    // Both must happen, or the changes test nothing.
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn it_is_written_whole_and_for_its_owner_only() {
    let directory = TempDir::new();
    let path = directory.join("now.snapshot");
    write(&sample(), &path).unwrap();
    assert_eq!(read(&path).unwrap(), sample());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Another one takes its place; nothing else is left beside it.
    write(&Snapshot::default(), &path).unwrap();
    assert_eq!(read(&path).unwrap(), Snapshot::default());
    assert_eq!(directory.names(), ["now.snapshot"]);
}

#[test]
fn no_other_file_is_overwritten() {
    let directory = TempDir::new();
    let path = directory.join("letter");
    std::fs::write(&path, "dear Ann").unwrap();
    let error = write(&sample(), &path).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear Ann");
    let error = read(&path).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotASnapshot);
    assert!(error.to_string().ends_with("it is not a snapshot of Terrace"));
    let nowhere = directory.join("no/such/directory/now");
    assert_eq!(write(&sample(), &nowhere).unwrap_err().kind, ErrorKind::Failed);
    assert_eq!(directory.names(), ["letter"]);
}
