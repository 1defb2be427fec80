//! Recovery: the index is built from the summaries, one segment after the other, while the disk is
//! served. Nothing that was found is served before the end: a summary that the journal cannot know
//! of shows that the journal is older than it was, and then nothing counts.
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
            if self.drive_samples(io) {
                self.end_recovery(io);
            }
            return;
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
        // This attach has written nothing yet: an authentic one is of a later attach.
        let is_later = head.sequence >> 32 >= u64::from(base.attach);
        let is_possible = is_later || head.sequence >= base.threshold || head.sequence == listed;
        if !is_possible && self.rules.check_sequences {
            return;
        }
        let known = self.ciphers.len();
        let Some(cipher) = self.cipher_of(&head.salt) else { return };
        let geometry = self.geometry;
        let key = &self.ciphers[usize::from(cipher)].1;
        let Some(entries) = format::open_summary(bytes, &geometry, key, head) else {
            // What is not authentic takes no room of another one's salt.
            self.ciphers.truncate(known);
            return;
        };
        if is_later && self.rules.check_sequences {
            let attach = ((head.sequence >> 32) as u32).min(u32::MAX / 4);
            self.later_attach = self.later_attach.max(Some(attach));
            return;
        }
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
            if entry.key >= geometry.frames() || !geometry.has(entry.key, entry.extent) {
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
        if let Some(later) = self.later_attach {
            self.forget_all();
            // The number of this attach was used before: it becomes one that was not, and is
            // recorded before any segment is written.
            self.journal.base.attach = later + 1;
            self.journal.is_attached = false;
            self.next_sequence = u64::from(later + 1) << 32;
            report(Event::JournalRolledBack, io);
        } else if self.samples.differs.is_some() {
            self.forget_all();
        }
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
        // The new threshold separates what comes from this attach on from what was found.
        self.journal.wants_base = true;
        let frames = u64::from(self.frames.live());
        report(Event::Recovered { frames, dropped: self.dropped }, io);
    }

    /// Drops all that was found. The next base lists none of it.
    fn forget_all(&mut self) {
        self.dropped += u64::from(self.frames.live());
        for number in 0..self.segments.len() {
            let mut list = std::mem::replace(&mut self.segments[number], Segment::FREE).list;
            self.frames.free_list(&mut list);
        }
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
        extent: entry.extent,
        is_compressed: entry.is_compressed,
    })
}
