//! Accesses in a recording: what is written is read back, whatever else is in the file; a file that
//! is cut or was made to harm gives whole batches or an error; an event takes few bytes.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{Facts, RecordingOutcome};
use proptest::prelude::*;
use record::file::{self, AccessReader};
use record::{
    AccessBatch, AccessCounts, AccessShifts, DeviceRequest, PageEvent, PageEventKind, RequestKind,
};
use std::io::Cursor;
use testkit::{Random, ZipfKeys};

const FILE_HEADER: usize = 16;
const HEADER: usize = 32;
const ACCESSES: u8 = 10;
const SECOND_NS: u64 = 1_000_000_000;

fn recording(batches: &[AccessBatch]) -> Vec<u8> {
    let mut writer = file::Writer::new(Vec::new(), &Facts::default()).unwrap();
    for batch in batches {
        writer.accesses(batch).unwrap();
    }
    writer.finish(&Facts::default(), &RecordingOutcome::default()).unwrap()
}

/// All batches before the first error, and whether there was one.
fn read(file: &[u8]) -> (Vec<AccessBatch>, bool) {
    let Ok(reader) = AccessReader::new(Cursor::new(file)) else {
        return (Vec::new(), true);
    };
    let mut is_damaged = false;
    let whole = reader.filter_map(|batch| {
        is_damaged |= batch.is_err();
        batch.ok()
    });
    (whole.collect(), is_damaged)
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
}

/// Where each chunk of accesses starts and ends.
fn access_chunks(file: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = FILE_HEADER;
    while at + HEADER <= file.len() {
        let end = at + HEADER + number(&file[at + 4..]);
        found.extend((file[at] == ACCESSES).then_some((at, end)));
        at = end;
    }
    found
}

/// Random pages of a file of 1.2 GB that come and go, a few runs, and the requests for them.
fn busy(events: usize, seed: u64) -> AccessBatch {
    let mut random = Random(seed);
    let pages_of_file = 300_000_u64;
    let mut keys = ZipfKeys::new(pages_of_file as usize, 0.9, seed);
    let mut made = AccessBatch { to_ns: SECOND_NS, ..AccessBatch::default() };
    let mut at_us = 0;
    while made.pages.len() < events {
        at_us += random.below(100);
        let at_ns = at_us * 1000;
        let index = keys.next_key() % pages_of_file;
        let added = PageEvent {
            at_ns,
            device: (8, 1),
            inode: 131_077,
            index,
            pages: 1,
            kind: PageEventKind::Added,
        };
        let evicted =
            PageEvent { index: random.below(pages_of_file), kind: PageEventKind::Evicted, ..added };
        made.pages.extend([added, evicted]);
        made.requests.push(DeviceRequest {
            at_ns: at_ns + 60_000,
            latency_ns: (8000 + random.below(4096)) * 1000,
            device: (8, 0),
            sector: (1 << 30) + index * 8,
            sectors: 8,
            kind: RequestKind::Read,
        });
    }
    made.to_ns = at_us * 1000 + SECOND_NS;
    made
}

/// The batches one after the other, each from where the one before ends.
fn in_turn<const COUNT: usize>(mut batches: [AccessBatch; COUNT]) -> [AccessBatch; COUNT] {
    let mut from_ns = 0;
    for batch in &mut batches {
        batch.from_ns += from_ns;
        batch.to_ns += from_ns;
        batch.requests.iter_mut().for_each(|request| request.at_ns += from_ns);
        batch.pages.iter_mut().for_each(|event| event.at_ns += from_ns);
        from_ns = batch.to_ns;
    }
    batches
}

#[test]
fn an_event_of_pages_takes_less_than_six_bytes() {
    let whole = busy(16_384, 7);
    let of_pages = AccessBatch { requests: Vec::new(), ..whole.clone() };
    let empty = recording(&[]).len();
    let page_bytes = (recording(&[of_pages]).len() - empty) as f64 / 16_384.0;
    let all_bytes =
        (recording(std::slice::from_ref(&whole)).len() - empty) as f64 / whole.len() as f64;
    println!("{page_bytes:.2} bytes an event of pages, {all_bytes:.2} with requests");
    assert!(page_bytes < 6.0 && all_bytes < 6.0, "{page_bytes} {all_bytes}");
}

#[test]
fn what_is_cut_gives_the_whole_batches_before() {
    let batches = in_turn([busy(20, 1), AccessBatch::default(), busy(20, 2)]);
    let bytes = recording(&batches);
    assert_eq!(read(&bytes), (batches.to_vec(), false));
    for length in 0..bytes.len() {
        let (whole, _) = read(&bytes[..length]);
        assert!(batches.starts_with(&whole), "cut at {length}");
    }
    assert!(file::read(&bytes[..]).unwrap().damage.is_empty());
}

#[test]
fn every_changed_byte_is_damage_or_another_number() {
    let bytes = recording(&[busy(6, 3)]);
    // Few bytes are not packed, so each of them is a number.
    let (start, end) = access_chunks(&bytes)[0];
    assert_eq!(bytes[start + 1], 0, "not compressed");
    let (mut damaged, mut other) = (0, 0);
    for index in start + HEADER..end {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[index] ^ 0x10] {
            let mut changed = bytes.clone();
            changed[index] = value;
            assert!(changed == bytes || read(&changed).1, "a wrong checksum");
            file::reseal(&mut changed);
            match read(&changed) {
                (_, true) => damaged += 1,
                (whole, false) => other += usize::from(whole != [busy(6, 3)]),
            }
            assert!(file::read(&changed[..]).unwrap().damage.is_empty(), "read apart");
        }
    }
    assert!(damaged > 50 && other > 50, "{damaged} {other}");
}

#[test]
fn changed_files_never_panic() {
    let seed = recording(&in_turn([busy(40, 4), busy(3, 5)]));
    let mut random = Random(42);
    let mut damaged = 0;
    for _ in 0..3000 {
        let mut changed = seed.clone();
        for _ in 0..=random.below(3) {
            let (start, end) = access_chunks(&seed)[random.below(2) as usize];
            let index = start + random.below((end - start) as u64) as usize;
            match random.below(3) {
                0 => changed[index.min(seed.len() - 1)] = random.next_u64() as u8,
                1 => changed[index] ^= 1 << random.below(8),
                _ => changed.truncate(index.max(FILE_HEADER + HEADER)),
            }
            changed.resize(seed.len(), 0xff);
        }
        file::reseal(&mut changed);
        let (whole, is_damaged) = read(&changed);
        damaged += usize::from(is_damaged);
        for batch in &whole {
            assert!(batch.requests.is_sorted_by_key(|request| request.at_ns));
            assert!(batch.pages.is_sorted_by_key(|event| event.at_ns));
            assert!(batch.pages.iter().all(|event| {
                (batch.from_ns..=batch.to_ns).contains(&event.at_ns)
                    && (1..=PageEvent::MAX_PAGES).contains(&event.pages)
            }));
        }
    }
    assert!(damaged > 100, "{damaged}");
}

#[test]
fn what_no_recorder_writes_is_damage() {
    let good = busy(6, 3);
    for pages in [0, PageEvent::MAX_PAGES + 1, u32::MAX] {
        let mut wrong = good.clone();
        wrong.pages[2].pages = pages;
        assert_eq!(read(&recording(&[wrong])), (Vec::new(), true), "{pages} pages");
    }
    let back = recording(&[good.clone(), good.clone()]);
    assert_eq!(read(&back), (vec![good.clone()], true), "an interval that begins before");
    // The length of the interval is the second number, of three bytes: none.
    let mut late = recording(std::slice::from_ref(&good));
    let (start, _) = access_chunks(&late)[0];
    let length = &mut late[start + HEADER + 1..][..3];
    assert!(length[0] & length[1] & 0x80 != 0 && length[2] & 0x80 == 0, "{length:?}");
    length.copy_from_slice(&[0x80, 0x80, 0]);
    file::reseal(&mut late);
    assert_eq!(read(&late), (Vec::new(), true), "times after the end");
}

#[test]
fn a_count_that_nothing_follows_is_damage() {
    // No interval, shares or losses; then 65,536 requests, of which no byte follows.
    for count in [&[0x80, 0x80, 4][..], &[0xff; 9], &[1]] {
        let raw = [&[0; 8][..], count].concat();
        let mut bytes = recording(&[]);
        let mut header = [0; HEADER];
        header[0] = ACCESSES;
        header[4..8].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        header[8..12].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&raw);
        file::reseal(&mut bytes);
        assert_eq!(read(&bytes), (Vec::new(), true));
    }
}

fn requests() -> impl Strategy<Value = Vec<DeviceRequest>> {
    let one = (any::<u32>(), any::<u32>(), 0..0xfff_u32, any::<u64>(), any::<u32>(), 0..3_usize);
    let made = one.prop_map(|(at_us, latency_us, major, sector, sectors, kind)| DeviceRequest {
        at_ns: u64::from(at_us) * 1000,
        latency_ns: u64::from(latency_us) * 1000,
        device: (major, sectors & 0xf_ffff),
        sector,
        sectors,
        kind: RequestKind::ALL[kind],
    });
    prop::collection::vec(made, 0..40)
}

fn pages() -> impl Strategy<Value = Vec<PageEvent>> {
    let one =
        (any::<u32>(), 0..3_u32, any::<u64>(), any::<u64>(), 1..=PageEvent::MAX_PAGES, 0..4_usize);
    let made = one.prop_map(|(at_us, minor, inode, index, pages, kind)| PageEvent {
        at_ns: u64::from(at_us) * 1000,
        device: (8, minor),
        inode: if minor == 0 { inode } else { inode % 3 },
        index,
        pages,
        kind: PageEventKind::ALL[kind],
    });
    prop::collection::vec(made, 0..40)
}

proptest! {
    #[test]
    fn every_batch_comes_back(
        mut requests in requests(),
        mut pages in pages(),
        shifts in (0..=22_u8, 0..=22_u8, 0..=22_u8),
        lost in any::<(u64, u64, u64)>(),
        spare_us in any::<u16>(),
    ) {
        requests.sort_by_key(|request| request.at_ns);
        pages.sort_by_key(|event| event.at_ns);
        let batch = AccessBatch {
            from_ns: 0,
            to_ns: u64::from(u32::MAX) * 1000 + u64::from(spare_us) * 1000,
            shifts: AccessShifts { requests: shifts.0, moves: shifts.1, touched: shifts.2 },
            lost: AccessCounts { requests: lost.0, moves: lost.1, touched: lost.2 },
            requests,
            pages,
        };
        prop_assert_eq!(read(&recording(std::slice::from_ref(&batch))), (vec![batch], false));
    }
}
