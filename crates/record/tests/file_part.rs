//! Reading a part of a recording: it must tell what a reading of all tells, and leave
//! everything that is damaged or strange to that.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{Facts, Recording, RecordingOutcome, Span, Tick};
use record::file::{self, Outline};
use record::{Registry, Row};
use std::io::Cursor;
use testkit::Random;

const PERIOD_NS: u64 = 100_000_000;
/// Places to begin at are 32 chunks apart.
const CHUNKS: u64 = 100;

/// A recording of many chunks of three samples, with a series that appears and one that goes.
fn whole() -> Vec<u8> {
    let mut registry = Registry::new();
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    let mut row = Row::default();
    let mut random = Random(3);
    for number in 0..CHUNKS * 3 {
        if number == 0 || number == 50 || number == 200 {
            let name = format!("s.{number}");
            registry.id(&name, "count", model::recording::SeriesKind::Counter, "/proc/x");
        }
        for schema in registry.schemas() {
            if random.below(3) == 0 {
                row.count(schema.id, number * 4096);
            }
        }
        if (120..260).contains(&number) {
            row.set(1, record::ABSENT);
        }
        writer.sample(tick(number), registry.schemas(), &row).unwrap();
        if number % 3 == 2 {
            let span = Span {
                kind: "mark".to_owned(),
                text: format!("row {number}"),
                start_ns: number,
                end_ns: number,
            };
            writer.span(&span).unwrap();
            writer.flush().unwrap();
        }
    }
    let outcome =
        RecordingOutcome { ended_ns: CHUNKS * 3 * PERIOD_NS, ..RecordingOutcome::default() };
    writer.finish(&Facts::default(), &outcome).unwrap()
}

fn tick(number: u64) -> Tick {
    let due_ns = number * PERIOD_NS;
    Tick { due_ns, at_ns: due_ns + number % 7 }
}

fn part(bytes: &[u8], from_ns: u64, to_ns: u64) -> Option<Recording> {
    Outline::read(Cursor::new(bytes))?.part(from_ns, to_ns)
}

/// Where the samples of `part` are in `all`, if every one of them and every value is there.
fn place(part: &Recording, all: &Recording) -> Option<usize> {
    let start = part.ticks.first()?.at_ns;
    let first = all.ticks.partition_point(|tick| tick.at_ns < start);
    let same_ticks = all.ticks[first..].starts_with(&part.ticks);
    let same_values = part.series.iter().zip(&all.series).all(|(part_of, of_all)| {
        let samples = 0..part.ticks.len() as u32;
        part_of.schema == of_all.schema
            && samples
                .into_iter()
                .all(|sample| part_of.at(sample) == of_all.at(sample + first as u32))
    });
    (same_ticks && same_values).then_some(first)
}

#[test]
fn a_part_is_what_all_has_there_and_no_more_is_read() {
    let bytes = whole();
    let all = file::read(&bytes[..]).unwrap();
    assert_eq!(all.damage, Vec::<String>::new());
    let wall_ns = all.wall_ns();
    let mut random = Random(11);
    let mut shortest = usize::MAX;
    for _ in 0..500 {
        let from_ns = random.below(wall_ns);
        let to_ns = from_ns + random.below(wall_ns / 5);
        let part = part(&bytes, from_ns, to_ns).unwrap();
        let first = place(&part, &all).unwrap();
        assert!(first == 0 || all.ticks[first].at_ns <= from_ns);
        let (last, end) = (part.ticks.last().unwrap(), all.ticks.last().unwrap());
        assert!(last.at_ns >= to_ns || last == end);
        let rest = |recording: &Recording| {
            let Recording { facts, spans, outcome, .. } = recording.clone();
            (facts, spans, outcome, recording.series.len())
        };
        assert_eq!(rest(&part), rest(&all));
        shortest = shortest.min(part.ticks.len());
    }
    assert!(shortest < all.ticks.len() / 2, "{shortest}");
}

#[test]
fn a_cut_recording_is_left_to_who_reads_all() {
    let bytes = whole();
    for length in 0..bytes.len() {
        assert!(part(&bytes[..length], 0, u64::MAX).is_none(), "{length}");
    }
    assert!(part(&bytes, 0, u64::MAX).is_some());
}

#[test]
fn a_flipped_bit_tells_nothing_false() {
    let bytes = whole();
    let all = file::read(&bytes[..]).unwrap();
    let (mut given, mut refused) = (0, 0);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        match part(&damaged, all.wall_ns() / 2, all.wall_ns() / 2 + 5 * PERIOD_NS) {
            // What was skipped may be damaged, what is told may not.
            Some(part) => {
                assert!(place(&part, &all).is_some(), "byte {at}");
                let first = part.ticks[0].at_ns;
                assert!(first <= all.wall_ns() / 2, "byte {at}");
                given += 1;
            }
            None => refused += 1,
        }
    }
    assert!(given > 0 && refused > 0, "{given} {refused}");
}

/// A row that contradicts the samples is found by a reading of all of them.
#[test]
fn a_row_that_is_not_the_one_before_it_is_damage() {
    const ROW: u8 = 7;
    const HEADER_BYTES: usize = 32;
    let bytes = whole();
    let mut at = 16;
    while bytes[at] != ROW {
        at += HEADER_BYTES + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    }
    let payload = at + HEADER_BYTES;
    let mut forged = bytes.clone();
    // Small rows are not compressed; the first byte is of a time.
    forged[payload] ^= 1;
    file::reseal(&mut forged);
    let recording = file::read(&forged[..]).unwrap();
    assert!(recording.damage[0].contains("its row"), "{:?}", recording.damage);
}
