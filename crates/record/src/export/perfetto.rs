//! A recording as a trace of Perfetto: one counter track for each series, below a track for each
//! group of them, the same for the first processes of each figure, and a slice for each mark or
//! interval.
//!
//! The trace is a stream of protocol-buffer packets. The five messages that are needed are written
//! here, with the numbers of `protos/perfetto/trace`. Counters are written as they were read; the
//! trace viewer can draw their rate. The format has no event for a value that goes away: the track
//! keeps its last one.

mod who;

use super::{Exporter, finish};
use crate::Result;
use crate::file::put_varint;
use model::recording::{Recording, Series, Span};
use std::collections::BTreeMap;
use std::io::{self, Write};

// Trace, TracePacket.
const PACKET: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;
// TrackDescriptor.
const UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const PARENT: u32 = 5;
const COUNTER: u32 = 8;
// CounterDescriptor.
const UNIT: u32 = 3;
const UNIT_NAME: u32 = 6;
// TrackEvent.
const KIND: u32 = 9;
const TRACK: u32 = 11;
const EVENT_NAME: u32 = 23;
const COUNTER_VALUE: u32 = 30;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTED: u64 = 4;

/// The track of marks and intervals. Series follow from [`FIRST_SERIES`], groups from
/// [`FIRST_GROUP`]: a recording has at most 32,768 series.
const SPANS_TRACK: u64 = 1;
const FIRST_SERIES: u64 = 1 << 20;
const FIRST_GROUP: u64 = 1 << 30;

/// The trace. Times are nanoseconds since the start of the recording.
#[derive(Clone, Copy, Debug)]
pub struct Perfetto;

impl Exporter for Perfetto {
    fn export(&self, recording: &Recording, sink: &mut dyn Write) -> Result<()> {
        finish(write(recording, sink), sink)
    }
}

fn write(recording: &Recording, sink: &mut dyn Write) -> io::Result<()> {
    let mut put = |packet: Message| -> io::Result<()> {
        let mut trace = Message::default();
        trace.message(PACKET, &packet);
        sink.write_all(&trace.0)
    };
    for packet in tracks(recording) {
        put(packet)?;
    }
    let mut rest: Vec<_> =
        recording.series.iter().map(|series| series.steps.iter().peekable()).collect();
    for (sample, tick) in (0..).zip(&recording.ticks) {
        for (track, steps) in (FIRST_SERIES..).zip(&mut rest) {
            let Some(step) = steps.next_if(|step| step.sample == sample) else {
                continue;
            };
            let Some(value) = step.value else { continue };
            let mut event = event(COUNTED, track);
            // A protocol buffer's int64 is the two's complement as an unsigned number.
            event.number(COUNTER_VALUE, value.cast_unsigned());
            put(at(tick.at_ns, &event))?;
        }
    }
    for span in &recording.spans {
        for packet in slice(span) {
            put(packet)?;
        }
    }
    who::write(&recording.who, put)
}

/// The descriptions of all tracks.
fn tracks(recording: &Recording) -> Vec<Message> {
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    for series in &recording.series {
        let next = FIRST_GROUP + groups.len() as u64;
        groups.entry(group(series)).or_insert(next);
    }
    let mut packets = vec![described(SPANS_TRACK, "marks and intervals", None, None)];
    for (name, track) in &groups {
        packets.push(described(*track, name, None, None));
    }
    for (track, series) in (FIRST_SERIES..).zip(&recording.series) {
        let parent = groups.get(group(series)).copied();
        let name = series.schema.name.as_str();
        packets.push(described(track, name, parent, Some(&series.schema.unit)));
    }
    packets
}

/// What a series is shown below: `vmstat` of `vmstat.pgfault`, `disk.vda` of
/// `disk.vda.reads`.
fn group(series: &Series) -> &str {
    let name = series.schema.name.as_str();
    name.rsplit_once('.').map_or(name, |(group, _)| group)
}

fn described(track: u64, name: &str, parent: Option<u64>, unit: Option<&str>) -> Message {
    let mut descriptor = Message::default();
    descriptor.number(UUID, track);
    descriptor.bytes(TRACK_NAME, name.as_bytes());
    if let Some(parent) = parent {
        descriptor.number(PARENT, parent);
    }
    if let Some(unit) = unit {
        let mut counter = Message::default();
        match unit {
            "ns" => counter.number(UNIT, 1),
            "count" => counter.number(UNIT, 2),
            "bytes" => counter.number(UNIT, 3),
            other => counter.bytes(UNIT_NAME, other.as_bytes()),
        }
        descriptor.message(COUNTER, &counter);
    }
    let mut packet = Message::default();
    packet.number(SEQUENCE, 1);
    packet.message(TRACK_DESCRIPTOR, &descriptor);
    packet
}

fn slice(span: &Span) -> Vec<Message> {
    let is_instant = span.end_ns <= span.start_ns;
    let mut begin = event(if is_instant { INSTANT } else { SLICE_BEGIN }, SPANS_TRACK);
    let name = match span.text.as_str() {
        "" => span.kind.clone(),
        text => format!("{}: {text}", span.kind),
    };
    begin.bytes(EVENT_NAME, name.as_bytes());
    let mut packets = vec![at(span.start_ns, &begin)];
    if !is_instant {
        packets.push(at(span.end_ns, &event(SLICE_END, SPANS_TRACK)));
    }
    packets
}

fn event(kind: u64, track: u64) -> Message {
    let mut event = Message::default();
    event.number(KIND, kind);
    event.number(TRACK, track);
    event
}

fn at(ns: u64, event: &Message) -> Message {
    let mut packet = Message::default();
    packet.number(TIMESTAMP, ns);
    packet.number(SEQUENCE, 1);
    packet.message(TRACK_EVENT, event);
    packet
}

/// A protocol buffer while it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u32, value: u64) {
        put_varint(&mut self.0, u64::from(field) << 3);
        put_varint(&mut self.0, value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        put_varint(&mut self.0, u64::from(field) << 3 | 2);
        put_varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, inner: &Message) {
        self.bytes(field, &inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{Process, ProcessFigure, ProcessRow, Schema, Tick, Who};

    /// A protocol buffer read back: field, then its number or its bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let number = varint(&mut bytes);
            let inner = match key & 7 {
                0 => Vec::new(),
                2 => {
                    let (inner, rest) = bytes.split_at(number as usize);
                    bytes = rest;
                    inner.to_vec()
                }
                other => panic!("wire type {other}"),
            };
            found.push((key >> 3, number, inner));
        }
        found
    }

    #[test]
    fn each_change_is_an_event_on_the_track_of_its_series() {
        let mut series = Series {
            schema: Schema {
                name: "disk.vda.reads".to_owned(),
                unit: "bytes".to_owned(),
                ..Schema::default()
            },
            ..Series::default()
        };
        for (sample, value) in (0..).zip([Some(7), Some(7), None, Some(-1)]) {
            series.push(sample, value);
        }
        let recording = Recording {
            ticks: (0..4).map(|at_ns| Tick { due_ns: 0, at_ns }).collect(),
            series: vec![series],
            spans: vec![Span {
                kind: "mark".to_owned(),
                text: "half".to_owned(),
                start_ns: 2,
                end_ns: 3,
            }],
            ..Recording::default()
        };
        let mut bytes = Vec::new();
        Perfetto.export(&recording, &mut bytes).unwrap();
        let packets: Vec<_> =
            fields(&bytes).into_iter().map(|(_, _, packet)| fields(&packet)).collect();
        let described: Vec<_> = packets
            .iter()
            .filter_map(|packet| packet.iter().find(|(field, ..)| *field == 60))
            .collect();
        assert_eq!(described.len(), 3, "marks, the group, the series");
        let track = fields(&described[2].2);
        assert_eq!(track[1].2, b"disk.vda.reads");
        assert_eq!(track[2].1, fields(&described[1].2)[0].1, "its parent");
        let events: Vec<_> = packets
            .iter()
            .filter(|packet| packet[0].0 == 8)
            .map(|packet| (packet[0].1, fields(&packet[2].2)))
            .collect();
        let counted: Vec<(u64, i64)> = events
            .iter()
            .filter(|(_, event)| event[0].1 == 4)
            .map(|(at, event)| (*at, event[2].1.cast_signed()))
            .collect();
        assert_eq!(counted, [(0, 7), (3, -1)]);
        let slices: Vec<(u64, u64)> = events
            .iter()
            .filter(|(_, event)| event[1].1 == 1)
            .map(|(at, event)| (*at, event[0].1))
            .collect();
        assert_eq!(slices, [(2, 1), (3, 2)]);
    }

    #[test]
    fn the_first_processes_of_each_figure_have_a_counter() {
        let process = |id, pid| Process { id, pid, name: "cc1".to_owned(), ..Process::default() };
        let row = |process: u32, from_ns, to_ns, cpu| {
            let mut row = ProcessRow { process, from_ns, to_ns, ..ProcessRow::default() };
            row.figures[ProcessFigure::Cpu as usize] = cpu;
            row
        };
        let mut who = Who {
            processes: (0..12).map(|id| process(id, id)).collect(),
            rows: (0..12).map(|id| row(id, 0, 10, u64::from(id))).collect(),
            ..Who::default()
        };
        who.rows.extend([row(11, 10, 20, 5), row(11, 30, 40, 7)]);
        let recording = Recording { who, ..Recording::default() };
        let mut bytes = Vec::new();
        Perfetto.export(&recording, &mut bytes).unwrap();
        let packets: Vec<_> =
            fields(&bytes).into_iter().map(|(_, _, packet)| fields(&packet)).collect();
        let described: Vec<_> = packets
            .iter()
            .filter_map(|packet| packet.iter().find(|(field, ..)| *field == 60))
            .map(|(_, _, descriptor)| fields(descriptor))
            .collect();
        // Marks, the figure, ten processes; not the one with the least, nor the one with nothing.
        assert_eq!(described.len(), 12);
        assert_eq!(
            (&*described[1][1].2, &*described[2][1].2),
            (&b"processes.cpu"[..], &b"cc1 (11)"[..])
        );
        assert_eq!(described[2][2].1, described[1][0].1, "its parent");
        let track = described[2][0].1;
        let values: Vec<(u64, u64)> = packets
            .iter()
            .filter(|packet| packet[0].0 == 8)
            .map(|packet| (packet[0].1, fields(&packet[2].2)))
            .filter(|(_, event)| event[1].1 == track)
            .map(|(at, event)| (at, event[2].1))
            .collect();
        assert_eq!(values, [(0, 0), (10, 11), (20, 16), (30, 16), (40, 23)]);
    }
}
