//! Recovery: the index is built from the summaries, one segment after the other, while the disk is
//! served.
//!
//! A frame counts if its summary is authentic, the journal lists its segment with this sequence or
//! could not know it yet, and its region is not marked. Writes mark regions meanwhile as always, so
//! nothing that is found later can be older than they are.

use model::engine::{Device, Event, IoResult, Operation};

use crate::attach::{CIPHERS_MAX, Cache, Io, Pending, Phase, first, queue_index, report};
use crate::format::{self, Entry, GRANULE_BYTES, Geometry, SummaryHead};
use crate::frames::Place;
use crate::log::{Segment, SegmentState};
use crate::regions::Mark;
use crate::seal::{Salt, TAG_BYTES};
use policy::eviction::LogQueue;

impl Cache {
    /// Reads the next summary, or ends the recovery.
    pub(crate) fn drive_recovery(&mut self, io: &mut Io<'_>) {
        let Phase::Recovering(next) = self.phase else { return };
        if !self.is_on() || self.is_recovery_read {
            return;
        }
        if next == self.geometry.segments {
            return self.end_recovery(io);
        }
        self.is_recovery_read = true;
        let operation = Operation::Read {
            offset: self.geometry.segment_start(next),
            data: first(self.summary_buffer, self.geometry.summary_bytes()),
        };
        let pending = Pending::SummaryRead { segment: next as u16 };
        self.operate(Device::Cache, operation, pending, io);
    }

    pub(crate) fn summary_read_ended(&mut self, segment: u16, result: IoResult, io: &mut Io<'_>) {
        self.is_recovery_read = false;
        if !matches!(self.phase, Phase::Recovering(_)) {
            return;
        }
        if result.is_err() {
            // Turned off by the third error, it goes on here when the medium returns.
            self.medium_failed(io);
            if !self.is_on() {
                return;
            }
        } else {
            self.recover_segment(segment, io);
        }
        self.phase = Phase::Recovering(u32::from(segment) + 1);
    }

    /// Adds the fresh frames of a segment whose summary was read.
    fn recover_segment(&mut self, number: u16, io: &mut Io<'_>) {
        let segment = u32::from(number);
        let range = first(self.summary_buffer, self.geometry.summary_bytes());
        let bytes = io.buffers.bytes_mut(range);
        let Some(head) = SummaryHead::read(bytes, segment) else { return };
        let base = &self.journal.base;
        let (listed, _) = base.segments[usize::from(number)];
        let is_possible = head.sequence < u64::from(base.attach) << 32
            && (head.sequence >= base.threshold || head.sequence == listed);
        if !is_possible && self.rules.check_sequences {
            return;
        }
        let Some(cipher) = self.cipher_of(&head.salt) else { return };
        let geometry = self.geometry;
        let key = &self.ciphers[usize::from(cipher)].1;
        let Some(entries) = format::open_summary(bytes, &geometry, key, head) else { return };
        let queue = if head.is_main { LogQueue::Main } else { LogQueue::Small };
        let mut found = Segment {
            state: SegmentState::Full,
            sequence: head.sequence,
            cipher,
            queue,
            count: head.count,
            ..Segment::FREE
        };
        let mut at = geometry.summary_bytes();
        for (entry, ordinal) in entries.zip(0..head.count) {
            let Some(place) = place_of(entry, at, number, ordinal, &geometry) else { break };
            at += entry.room();
            if entry.key >= geometry.frames() {
                continue;
            }
            let is_marked = self.regions.mark(geometry.region(entry.key)) != Mark::Clear;
            let is_listed = self.journal.base.is_fresh(segment, head.sequence, ordinal)
                || !self.rules.check_sequences;
            let is_new = self.frames.find(entry.key).is_none();
            if is_marked || !is_listed || !is_new {
                self.dropped += u64::from(is_new);
                continue;
            }
            if self.frames.insert(entry.key, place, &mut found.list).is_none() {
                break;
            }
        }
        self.segments[usize::from(number)] = found;
    }

    /// The place of the cipher of a salt, made if there is room for it.
    fn cipher_of(&mut self, salt: &Salt) -> Option<u8> {
        let known = self.ciphers.iter().position(|(known, _)| known == salt);
        let at = known.unwrap_or(self.ciphers.len());
        if known.is_none() {
            if at == CIPHERS_MAX {
                return None;
            }
            let cipher = self.master.cipher(salt);
            self.ciphers.push((*salt, cipher));
        }
        Some(at as u8)
    }

    /// Puts the segments into their queues, by age, and lets fills begin.
    fn end_recovery(&mut self, io: &mut Io<'_>) {
        for number in 0..self.geometry.segments as u16 {
            let segment = &self.segments[usize::from(number)];
            match segment.state {
                SegmentState::Full => {
                    self.queues[queue_index(segment.queue)].push_back(number);
                }
                _ => self.free.push_back(number),
            }
        }
        let segments = &self.segments;
        for queue in &mut self.queues {
            let age = |number: &u16| segments[usize::from(*number)].sequence;
            queue.make_contiguous().sort_unstable_by_key(age);
        }
        self.phase = Phase::Running;
        // What came from this attach on is told from what was found by a new threshold.
        self.journal.wants_base = true;
        let frames = u64::from(self.frames.live());
        report(Event::Recovered { frames, dropped: self.dropped }, io);
    }
}

/// Where an entry's frame is; `None` if it does not fit into its segment.
fn place_of(
    entry: Entry,
    at: u32,
    segment: u16,
    ordinal: u16,
    geometry: &Geometry,
) -> Option<Place> {
    let stored = usize::from(entry.stored);
    let fits = stored > TAG_BYTES
        && stored <= geometry.frame_bytes as usize + TAG_BYTES
        && at + entry.room() <= geometry.segment_bytes;
    fits.then_some(Place {
        segment,
        granule: (at / GRANULE_BYTES) as u16,
        stored: entry.stored,
        ordinal,
        is_compressed: entry.is_compressed,
    })
}
