//! Files that were made to harm: the seeds of the fuzz target, changed in many ways
//! with their checksums made right again, and files that promise more than they hold. Seeds hold
//! every kind of chunk, what processes used as well.
//!
//! Nothing may panic, and what is read stays within the limits. With `TERRACE_SEEDS` set to
//! a directory the seeds are written there for the fuzzer.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{
    Facts, Process, ProcessRow, Recording, RecordingOutcome, SeriesKind, Span, Task, Tick, Who,
};
use record::export::{Csv, Exporter, Json, OpenMetrics, Perfetto};
use record::file;
use record::{
    ABSENT, AccessBatch, DeviceRequest, PageEvent, PageEventKind, Registry, RequestKind, Row,
    redact,
};
use testkit::{MadeWho, Random};

const FILE_HEADER: usize = 16;
const HEADER: usize = 32;
const SAMPLES: u8 = 3;
const IDENTITIES: u8 = 8;
const GROWTHS: u8 = 9;

/// A recording with every kind of chunk and every code of a column.
fn packed(rows: u64, columns: u32) -> Vec<u8> {
    let mut registry = Registry::new();
    for column in 0..columns {
        registry.id(&format!("s.{column}"), "count", SeriesKind::Counter, "/proc/x");
    }
    let mut random = Random(3);
    let mut row = Row::default();
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    let mut made = MadeWho::new(rows);
    for number in 0..rows {
        for column in 0..columns {
            match column % 4 {
                0 => row.count(column, number * 512),
                1 if number.is_multiple_of(9) => row.count(column, random.below(1 << 20)),
                2 if number.is_multiple_of(5) => row.set(column, ABSENT),
                2 => row.count(column, number),
                _ => {}
            }
        }
        let due_ns = number * 100_000_000;
        let at_ns = due_ns + random.below(1 << 20);
        let tick = Tick { due_ns, at_ns };
        if number < 2 {
            writer.accesses(&accesses(due_ns)).unwrap();
        }
        if number < 12 {
            writer.who(&made.sample(at_ns)).unwrap();
        }
        writer.sample(tick, registry.schemas(), &row).unwrap();
    }
    let span = Span { kind: "mark".to_owned(), text: "half".to_owned(), start_ns: 1, end_ns: 2 };
    writer.span(&span).unwrap();
    writer.tasks(&[Task::default()]).unwrap();
    let outcome = RecordingOutcome::default();
    writer.finish(&Facts::default(), &outcome).unwrap()
}

/// Some requests and pages of a tenth of a second from `from_ns` on.
fn accesses(from_ns: u64) -> AccessBatch {
    let request = |number: u64| DeviceRequest {
        at_ns: from_ns + number * 1_000_000,
        latency_ns: 8_000_000,
        device: (8, 0),
        sector: number * 7919 % 1000 * 8,
        sectors: 8,
        kind: RequestKind::ALL[number as usize % 3],
    };
    let page = |number: u64| PageEvent {
        at_ns: from_ns + number * 1_000_000,
        device: (8, 1),
        inode: number % 3,
        index: number * 31,
        pages: 4,
        kind: PageEventKind::ALL[number as usize % 4],
    };
    AccessBatch {
        from_ns,
        to_ns: from_ns + 100_000_000,
        requests: (0..30).map(request).collect(),
        pages: (0..30).map(page).collect(),
        ..AccessBatch::default()
    }
}

/// Where each chunk starts.
fn chunks(file: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = FILE_HEADER;
    while at + HEADER <= file.len() {
        starts.push(at);
        at += HEADER + number(&file[at + 4..]);
    }
    starts
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
}

/// The same file with its payloads as they are, so that a changed byte is a changed number.
fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut plain = file[..FILE_HEADER].to_vec();
    for at in chunks(file) {
        let length = number(&file[at + 4..]);
        let raw_length = number(&file[at + 8..]);
        let payload = &file[at + HEADER..at + HEADER + length];
        let raw = match file[at + 1] {
            0 => payload.to_vec(),
            _ => zstd::bulk::decompress(payload, raw_length).unwrap(),
        };
        let start = plain.len();
        plain.extend_from_slice(&file[at..at + HEADER]);
        plain[start + 1] = 0;
        plain[start + 4..start + 8].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        plain.extend_from_slice(&raw);
    }
    file::reseal(&mut plain);
    plain
}

/// One chunk with this payload behind the file's header.
fn one_chunk(kind: u8, is_zstd: bool, raw_length: u32, payload: &[u8]) -> Vec<u8> {
    let mut file = packed(0, 0)[..FILE_HEADER].to_vec();
    let mut header = [0; HEADER];
    header[0] = kind;
    header[1] = u8::from(is_zstd);
    header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[8..12].copy_from_slice(&raw_length.to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(payload);
    file::reseal(&mut file);
    file
}

fn seeds() -> Vec<Vec<u8>> {
    let packed = [packed(3, 5), packed(130, 12)];
    let mut seeds: Vec<Vec<u8>> = packed.iter().map(|file| unpacked(file)).collect();
    seeds.extend(packed);
    seeds
}

/// What a program does with a file of a stranger.
fn use_it(file: &[u8]) -> Option<Recording> {
    let mut recording = file::read(file).ok()?;
    redact::redact(&mut recording);
    for exporter in [&Csv as &dyn Exporter, &Json, &Perfetto, &OpenMetrics] {
        exporter.export(&recording, &mut std::io::sink()).unwrap();
    }
    let middle_ns = recording.wall_ns() / 2;
    let outline = file::Outline::read(std::io::Cursor::new(file));
    let part = outline.and_then(|outline| outline.part(middle_ns, middle_ns));
    drop(part);
    let accesses = file::AccessReader::new(std::io::Cursor::new(file));
    accesses.into_iter().flatten().for_each(drop);
    Some(recording)
}

/// Changes a file in one of the ways that files go wrong.
fn change(file: &mut Vec<u8>, random: &mut Random) {
    let index = random.below(file.len() as u64) as usize;
    match random.below(6) {
        0 => file[index] = random.next_u64() as u8,
        1 => file[index] ^= 1 << random.below(8),
        2 => file.truncate(index.max(FILE_HEADER)),
        3 => file.insert(index, random.next_u64() as u8),
        4 => drop(file.remove(index)),
        _ => {
            let starts = chunks(file);
            let from = starts[random.below(starts.len() as u64) as usize];
            let to = (from + HEADER + number(&file[from + 4..])).min(file.len());
            let chunk = file[from..to].to_vec();
            file.splice(to..to, chunk);
        }
    }
    if file.len() <= FILE_HEADER + HEADER {
        *file = seeds().swap_remove(0);
    }
}

/// What every user of rows may rely on.
fn check_who(who: &Who) {
    assert!((0..).zip(&who.processes).all(|(id, process)| process.id == id));
    assert!((0..).zip(&who.files).all(|(id, file)| file.id == id));
    let is_process = |id: u32| (id as usize) < who.processes.len();
    let is_row = |row: &ProcessRow| is_process(row.process) && row.from_ns <= row.to_ns;
    assert!(who.rows.iter().all(is_row));
    assert!(who.rows.is_sorted_by_key(|row| row.to_ns));
    for row in &who.file_rows {
        assert!(is_process(row.process) && (row.file as usize) < who.files.len());
        assert!(row.from_ns <= row.to_ns);
    }
    assert!(who.file_rows.is_sorted_by_key(|row| row.to_ns));
    assert!(who.samples.iter().all(|row| is_process(row.process) && row.from_ns <= row.to_ns));
    assert!(who.samples.is_sorted_by_key(|row| row.to_ns));
    assert!(who.requests.iter().all(|row| is_process(row.process) && row.from_ns <= row.to_ns));
    assert!(who.requests.is_sorted_by_key(|row| row.to_ns));
}

/// Each byte of the two chunks is changed, so that every field of them is wrong once.
#[test]
fn every_changed_byte_of_who_is_damage_or_another_number() {
    let seed = unpacked(&packed(3, 0));
    let whole = file::read(&seed[..]).unwrap();
    assert!(whole.who.rows.len() >= 30);
    let (mut damaged, mut other) = (0, 0);
    for at in chunks(&seed).into_iter().filter(|at| matches!(seed[*at], IDENTITIES | GROWTHS)) {
        let end = at + HEADER + number(&seed[at + 4..]);
        for index in at + HEADER..end {
            for value in [0, 1, 0x7f, 0x80, 0xff, seed[index] ^ 0x10] {
                let mut changed = seed.clone();
                changed[index] = value;
                file::reseal(&mut changed);
                let read = file::read(&changed[..]).unwrap();
                check_who(&read.who);
                damaged += usize::from(!read.damage.is_empty());
                other += usize::from(read.damage.is_empty() && read.who != whole.who);
            }
        }
    }
    assert!(damaged > 500 && other > 500, "{damaged} {other}");
}

#[test]
fn numbers_alone_take_no_memory_and_no_time() {
    // 131,072 instants, and no byte of them; as many groups, columns, rows, identities as fit.
    let most = [0xff; 9];
    for payload in [&[0x80, 0x80, 8][..], &[0x80, 0x80, 9], &most, &[0, 14, 0x80, 0x80, 2, 0x80]] {
        let file = one_chunk(GROWTHS, false, payload.len() as u32, payload);
        assert!(file::read(&file[..]).unwrap().damage[0].contains("makes no sense"));
    }
    for payload in [&[0, 0xff, 0xff, 0xff, 0xff, 7][..], &most, &[1, 0xff]] {
        let file = one_chunk(IDENTITIES, false, payload.len() as u32, payload);
        assert!(file::read(&file[..]).unwrap().damage[0].contains("makes no sense"));
    }
    // A process that is not the next one; rows of a process that is not there.
    let file = one_chunk(IDENTITIES, false, 10, &[1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(file::read(&file[..]).unwrap().damage[0].contains("out of order"));
    let rows = [1, 0, 14, 1, 1, 0, 0, 1, 0, 1, 0, 4, 0, 0];
    let file = one_chunk(GROWTHS, false, rows.len() as u32, &rows);
    let damage = file::read(&file[..]).unwrap().damage;
    assert!(damage[0].contains("not there"), "{damage:?}");
}

/// 16 MiB of the smallest identities, from some kilobytes: no more are kept than fit.
#[test]
fn identities_without_number_are_bounded() {
    let count = 2_000_000_u32;
    let mut raw = vec![0, 0x80, 0x89, 0x7a];
    raw.extend(std::iter::repeat_n([2, 0, 0, 2, 0, 0, 0], count as usize).flatten());
    raw.extend([0, 0]);
    let packed = zstd::bulk::compress(&raw, 3).unwrap();
    let file = one_chunk(IDENTITIES, true, raw.len() as u32, &packed);
    let recording = file::read(&file[..]).unwrap();
    assert_eq!(recording.damage.len(), 2, "{:?}", recording.damage);
    assert!(recording.damage[0].contains("processes are counted as others"));
    let kept_bytes = (recording.who.processes.len() - 1) * size_of::<Process>();
    assert!(kept_bytes <= file::MAX_BYTES / 3, "{kept_bytes}");
}

#[test]
fn changed_seeds_never_panic() {
    let seeds = seeds();
    if let Some(directory) = std::env::var_os("TERRACE_SEEDS") {
        let directory = std::path::PathBuf::from(directory);
        std::fs::create_dir_all(&directory).unwrap();
        for (index, seed) in seeds.iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{index}.trec")), seed).unwrap();
        }
    }
    let mut random = Random(42);
    let (mut read, mut damaged, mut with_who) = (0, 0, 0);
    for seed in &seeds {
        assert_eq!(use_it(seed).unwrap().damage, Vec::<String>::new());
        for _ in 0..500 {
            let mut file = seed.clone();
            for _ in 0..=random.below(3) {
                change(&mut file, &mut random);
            }
            file::reseal(&mut file);
            if let Some(recording) = use_it(&file) {
                read += 1;
                damaged += usize::from(!recording.damage.is_empty());
                assert!(recording.ticks.is_sorted_by_key(|tick| tick.at_ns));
                let samples = recording.ticks.len() as u32;
                let mut steps = recording.series.iter().flat_map(|series| &series.steps);
                assert!(steps.all(|step| step.sample < samples));
                check_who(&recording.who);
                with_who += usize::from(!recording.who.rows.is_empty());
            }
        }
    }
    // Both must happen, or the changes test nothing.
    assert!(read > 500 && damaged > 50, "{read} read, {damaged} damaged");
    assert!(with_who > 100, "{with_who}");
}

#[test]
fn a_payload_cannot_grow_beyond_what_it_declares() {
    let zeros = zstd::bulk::compress(&vec![b'\n'; 8 << 20], 3).unwrap();
    for declared in [zeros.len() as u32, 1 << 20, (8 << 20) - 1, u32::MAX] {
        let file = one_chunk(SAMPLES, true, declared, &zeros);
        let recording = file::read(&file[..]).unwrap();
        assert!(recording.damage[0].contains("damaged"), "{declared}");
    }
    // As declared: read, and found to be lines without anything on them.
    let file = one_chunk(4, true, 8 << 20, &zeros);
    assert_eq!(file::read(&file[..]).unwrap().spans, []);
}

#[test]
fn a_length_alone_takes_no_memory() {
    let mut file = one_chunk(SAMPLES, false, 16 << 20, &[0; 64]);
    file[FILE_HEADER + 4..FILE_HEADER + 8].copy_from_slice(&(16u32 << 20).to_le_bytes());
    let recording = file::read(&file[..]).unwrap();
    assert!(recording.damage[0].contains("ends in it"));
}
