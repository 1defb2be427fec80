//! Frames that are cut at each byte, changed in each bit, and made to hurt, and the bytes that a
//! frame consists of.

use super::*;
use proptest::prelude::*;

const HEADER: FileHeader = FileHeader { magic: *b"\x89TEST\r\n\x1a", major: 2, minor: 1 };
const LAYOUT: Layout = Layout::new(3, 1000);

/// A frame of each payload, its kind and fields counted.
fn frames(layout: Layout, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let sealed = |(kind, payload): (u8, &Vec<u8>)| {
        let mut frame = vec![0; layout.header_bytes()];
        frame.extend_from_slice(payload);
        let head = Head { kind, flags: 1, version: 258, payload_bytes: 0 };
        layout.seal(head, |fields| fields.fill(kind), &mut frame).unwrap();
        frame
    };
    (0..).zip(payloads).map(sealed).collect()
}

/// All frames before the end or the damage.
fn read(layout: Layout, mut bytes: &[u8]) -> (Vec<Frame<'_>>, Option<Damage>) {
    let mut frames = Vec::new();
    loop {
        match layout.split(bytes) {
            Ok(Some((frame, rest))) => {
                frames.push(frame);
                bytes = rest;
            }
            Ok(None) => return (frames, None),
            Err(damage) => return (frames, Some(damage)),
        }
    }
}

#[test]
fn the_bytes_of_a_frame_are_these() {
    let frame = &frames(LAYOUT, &[vec![], b"ab".to_vec()])[1];
    assert_eq!(frame[..11], [1, 1, 2, 1, 2, 0, 0, 0, 1, 1, 1]);
    let mut covered = frame[..11].to_vec();
    covered.extend_from_slice(b"ab");
    assert_eq!(frame[11..15], crc32c::crc32c(&covered).to_le_bytes());
    assert_eq!(&frame[15..], b"ab");
}

#[test]
fn a_file_header_is_checked() {
    let bytes = HEADER.to_bytes();
    assert_eq!(HEADER.check(&bytes, "test"), Ok(()));
    let older = FileHeader { major: 1, ..HEADER };
    assert_eq!(HEADER.check(&older.to_bytes(), "test"), Ok(()));
    let error = older.check(&bytes, "test").unwrap_err();
    assert!(error.contains("format 2, this program reads up to 1"), "{error}");
    let zero = FileHeader { major: 0, ..HEADER };
    assert!(HEADER.check(&zero.to_bytes(), "test").is_err());
    for index in 0..FILE_HEADER_BYTES {
        for bit in 0..8 {
            let mut flipped = bytes;
            flipped[index] ^= 1 << bit;
            let error = HEADER.check(&flipped, "test").unwrap_err();
            let foreign = error == "it is not a test of Terrace";
            assert_eq!(foreign, index < 8, "{index}: {error}");
            assert!(reseal_file_header(&mut flipped).unwrap().is_empty());
        }
    }
}

#[test]
fn a_length_beyond_the_limit_is_damage_however_it_is_sealed() {
    let mut long = vec![0; LAYOUT.header_bytes() + 1001];
    let sealed = LAYOUT.seal(Head::default(), |_| (), &mut long);
    assert_eq!(sealed, Err(Damage::Length));
    long[4..8].copy_from_slice(&1001u32.to_le_bytes());
    LAYOUT.reseal(&mut long);
    assert_eq!(LAYOUT.split(&long), Err(Damage::Length));
    long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    LAYOUT.reseal(&mut long);
    assert_eq!(LAYOUT.split(&long), Err(Damage::Length));
    let short = &mut long[..LAYOUT.header_bytes() - 1];
    let sealed = LAYOUT.seal(Head::default(), |_| (), short);
    assert_eq!(sealed, Err(Damage::Cut));
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6)
}

proptest! {
    #[test]
    fn what_is_cut_anywhere_gives_every_whole_frame_before(
        payloads in payloads(), field_bytes in 0usize..30
    ) {
        let layout = Layout::new(field_bytes, 1000);
        let frames = frames(layout, &payloads);
        let bytes = frames.concat();
        let mut ends = vec![0];
        for frame in &frames {
            ends.push(ends[ends.len() - 1] + frame.len());
        }
        for length in 0..=bytes.len() {
            let (found, damage) = read(layout, &bytes[..length]);
            let whole = ends.iter().filter(|end| **end <= length).count() - 1;
            prop_assert_eq!(found.len(), whole);
            for (kind, (frame, payload)) in found.iter().zip(&payloads).enumerate() {
                prop_assert_eq!(frame.payload, payload);
                prop_assert_eq!(usize::from(frame.head.kind), kind);
                prop_assert_eq!(frame.fields, vec![kind as u8; field_bytes]);
            }
            let is_cut = !ends.contains(&length);
            prop_assert_eq!(damage, is_cut.then_some(Damage::Cut));
        }
    }

    #[test]
    fn a_flipped_bit_ends_the_frames_before_it(payloads in payloads()) {
        let frames = frames(LAYOUT, &payloads);
        let bytes = frames.concat();
        let mut at = 0;
        for (number, frame) in frames.iter().enumerate() {
            for index in at..at + frame.len() {
                for bit in 0..8 {
                    let mut flipped = bytes.clone();
                    flipped[index] ^= 1 << bit;
                    let (found, damage) = read(LAYOUT, &flipped);
                    prop_assert_eq!(found.len(), number);
                    prop_assert!(damage.is_some());
                }
            }
            at += frame.len();
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_resealed(
        bytes in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        read(LAYOUT, &bytes);
        let mut sealed = bytes.clone();
        LAYOUT.reseal(&mut sealed);
        let (frames, damage) = read(LAYOUT, &sealed);
        let walked: usize = frames.iter().map(|f| LAYOUT.header_bytes() + f.payload.len()).sum();
        prop_assert_eq!(walked == bytes.len(), damage.is_none());
        prop_assert_ne!(damage, Some(Damage::Checksum));
        reseal_end(&mut sealed);
        prop_assert_eq!(strip_checksum(&sealed).is_some(), sealed.len() >= 4);
    }

    #[test]
    fn a_checksum_at_the_end_covers_all_before(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut file = bytes.clone();
        append_checksum(&mut file);
        prop_assert_eq!(strip_checksum(&file), Some(&bytes[..]));
        for index in 0..file.len() {
            let mut flipped = file.clone();
            flipped[index] ^= 1;
            prop_assert_eq!(strip_checksum(&flipped), None);
        }
    }
}
