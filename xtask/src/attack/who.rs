//! Chunks of who did it, as `docs/recording.md` draws them: whole ones with extreme numbers, and
//! texts that terminals and pages may take for commands.
//!
//! Changes of their bytes are made where those of all chunks are. What is made here is mostly
//! believed by a reader, so that it reaches rules, pages and exports; the case
//! `l3-small-file-many-rows` fails if it is not.

use testkit::Random;

use super::mutate::{self, EXTREMES, chance, pick};
use super::trec::{self, Chunk};

/// Columns of rows of processes, and of files.
const PROCESS_COLUMNS: u64 = 14;
const FILE_COLUMNS: u64 = 4;

/// The first column of processes is a level.
const LEVEL: u64 = 0;

/// The most rows of a chunk.
const MAX_ROWS: u64 = 1 << 15;

/// Names of processes, groups and files.
const TEXTS: &[&str] = &[
    "",
    "others",
    "postgres",
    "kworker/u8:2",
    "\u{1b}[31mred",
    "a\nb\tc",
    "<script>alert(1)</script>",
    "/",
    "/system.slice/backup.service",
    "/user.slice/user-1000.slice/../../..",
    "/docker/0123456789abcdef",
    "/home/user/\u{202e}gpj.exe",
    "////////",
    "%s%n",
];

/// Identities and growths of them, in this order.
pub(super) fn chunks(random: &mut Random) -> [Chunk; 2] {
    let processes = *pick(random, &[1, 2, 3, 20, 300]);
    let files = *pick(random, &[0, 1, 3, 50]);
    [identities(random, processes, files), growths(random, processes, files)]
}

/// Three processes, each with a name, a group and a file that end in `suffix`; the first two used
/// much in the first second.
pub(super) fn named(suffix: &str) -> [Chunk; 2] {
    let texts = ["postgres", "/system.slice/a.service", "/srv/file"];
    let [name, group, path] = texts.map(|text| format!("{text}{suffix}"));
    let mut raw = [trec::varint(0), trec::varint(3)].concat();
    for _ in 0..3 {
        raw.extend([trec::signed(7), trec::varint(1), trec::varint(1000)].concat());
        raw.extend([trec::signed(1_000_000), trec::varint(0)].concat());
        put_text(&name, &mut raw);
        put_text(&group, &mut raw);
    }
    raw.extend([trec::varint(0), trec::varint(3)].concat());
    for inode in 0..3 {
        raw.extend([8, 1, inode, 1].map(trec::varint).concat());
        put_text(&path, &mut raw);
    }
    let identities = Chunk::new(trec::IDENTITIES, raw);
    // Two instants; two processes that used a second of everything; two files that were read.
    let mut raw = [trec::varint(2), trec::signed(0), trec::signed(1_000_000_000)].concat();
    for columns in [PROCESS_COLUMNS, FILE_COLUMNS] {
        raw.extend([columns, 2, 2].map(trec::varint).concat());
        for first in [0, 1] {
            raw.extend([trec::signed(first), trec::signed(0), trec::varint(1)].concat());
        }
        raw.extend([1, 1, 2, 2].map(trec::varint).concat());
        // Neither an end nor more processes than one.
        let stored = ((1 << columns) - 1) & if columns == FILE_COLUMNS { u64::MAX } else { !0b110 };
        raw.extend([stored; 2].map(trec::varint).concat());
        for column in (0..columns).filter(|column| stored & 1 << column != 0) {
            let is_level = columns == PROCESS_COLUMNS && column == LEVEL;
            raw.push(u8::from(is_level));
            raw.extend(trec::varint(1));
            let second = if is_level { trec::signed(1 << 30) } else { trec::varint(1 << 30) };
            raw.extend(second.repeat(2));
        }
    }
    let growths = Chunk { first_ns: 0, last_ns: 1_000_000_000, ..Chunk::new(trec::GROWTHS, raw) };
    [identities, growths]
}

/// As many rows of as many processes as a chunk takes, each alike, so that both pack well.
pub(super) fn most() -> [Chunk; 2] {
    let count = MAX_ROWS;
    let mut raw = [trec::varint(0), trec::varint(count)].concat();
    raw.extend([2, 0, 0, 2, 0, 0, 0].repeat(count as usize));
    raw.extend([0, 0]);
    let identities = Chunk::new(trec::IDENTITIES, raw);
    let mut raw = [trec::varint(2), trec::signed(0), trec::signed(1)].concat();
    raw.extend([PROCESS_COLUMNS, count, count].map(trec::varint).concat());
    raw.extend([0, 0, 1]);
    raw.extend([2, 0, 1].repeat(count as usize - 1));
    raw.extend([1].repeat(count as usize));
    raw.extend([2].repeat(count as usize));
    // Processor time alone.
    raw.extend([1 << 3].repeat(count as usize));
    raw.extend([0, 1]);
    raw.extend([100].repeat(count as usize));
    raw.extend([FILE_COLUMNS as u8, 0, 0]);
    [identities, Chunk::new(trec::GROWTHS, raw)]
}

fn identities(random: &mut Random, processes: u64, files: u64) -> Chunk {
    let mut raw = [trec::varint(0), trec::varint(processes)].concat();
    for _ in 0..processes {
        // All have one number: each difference to the one before is 0.
        raw.extend(trec::signed(0));
        raw.extend(trec::varint(random.below(1 << 32)));
        raw.extend(trec::varint(*pick(random, &[0, 110, 1000, 65_534, (1 << 32) - 1])));
        raw.extend(trec::signed(mutate::number(random) as i64));
        raw.extend(trec::varint(random.below(4)));
        put_text(&any_text(random), &mut raw);
        put_text(&any_text(random), &mut raw);
    }
    raw.extend([trec::varint(0), trec::varint(files)].concat());
    for _ in 0..files {
        raw.extend(trec::varint(random.below(1 << 12)));
        raw.extend(trec::varint(random.below(1 << 20)));
        raw.extend(trec::varint(mutate::number(random)));
        let has_path = chance(random, 70);
        raw.extend(trec::varint(u64::from(has_path)));
        if has_path {
            put_text(&any_text(random), &mut raw);
        }
    }
    Chunk::new(trec::IDENTITIES, raw)
}

fn any_text(random: &mut Random) -> String {
    pick(random, TEXTS).repeat(*pick(random, &[1, 1, 1, 1, 400]))
}

fn put_text(text: &str, raw: &mut Vec<u8>) {
    raw.extend(trec::varint(text.len() as u64));
    raw.extend(text.as_bytes());
}

fn growths(random: &mut Random, processes: u64, files: u64) -> Chunk {
    let instants = *pick(random, &[1, 2, 10, 100]);
    let mut raw = [trec::varint(instants), trec::signed(100_000_000)].concat();
    for _ in 1..instants {
        let change = if chance(random, 3) { *pick(random, EXTREMES) as i64 } else { 0 };
        raw.extend(trec::signed(change));
    }
    raw.extend(rows(random, PROCESS_COLUMNS, instants, processes));
    raw.extend(rows(random, FILE_COLUMNS, instants, files));
    let range = [*pick(random, EXTREMES), *pick(random, EXTREMES)];
    let [first_ns, last_ns] = if chance(random, 50) { range } else { [0, u64::MAX] };
    Chunk { kind: trec::GROWTHS, raw, first_ns, last_ns }
}

/// The rows of one kind, of `keys` processes or files in turn; all files with the first process.
fn rows(random: &mut Random, columns: u64, instants: u64, keys: u64) -> Vec<u8> {
    let lengths: Vec<u64> = (0..keys).map(|_| 1 + random.below(3)).collect();
    let mut raw = [columns, lengths.iter().sum(), keys].map(trec::varint).concat();
    for (key, length) in lengths.iter().enumerate() {
        raw.extend(trec::signed(i64::from(key > 0)));
        raw.extend(trec::signed(0));
        raw.extend(trec::varint(*length));
    }
    let mut ends = Vec::new();
    for length in &lengths {
        let end = random.below(instants);
        for row in 0..*length {
            raw.extend(trec::varint(if row == 0 { end } else { 0 }));
            ends.push(end);
        }
    }
    for end in &ends {
        raw.extend(trec::varint(1 + random.below(end + 1)));
    }
    let stored: Vec<u64> = ends.iter().map(|_| random.below(1 << columns)).collect();
    stored.iter().for_each(|bits| raw.extend(trec::varint(*bits)));
    for column in 0..columns {
        let numbers = stored.iter().filter(|bits| **bits & 1 << column != 0).count();
        if numbers == 0 {
            continue;
        }
        let is_level = columns == PROCESS_COLUMNS && column == LEVEL;
        raw.push(u8::from(is_level));
        raw.extend(trec::varint(1));
        for _ in 0..numbers {
            let number = mutate::number(random);
            let coded = if is_level { trec::signed(number as i64) } else { trec::varint(number) };
            raw.extend(coded);
        }
    }
    raw
}
