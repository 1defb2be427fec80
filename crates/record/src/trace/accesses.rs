//! Single accesses (`bpf/accesses.h`), taken out of the kernel and put into batches.
//!
//! Too many are sampled by their place, in the kernel: the share of a class is halved where its
//! events come too fast or were lost, and all shares are halved when half of the bytes that are
//! left have been used. So a recording of any length stays within its bytes. A share never grows
//! again, and what the kernel had let through before a share became smaller is left out here: each
//! batch has one share. What is beyond all bytes is counted as lost.

use super::in_kernel::objects;
use crate::accesses::{
    AccessBatch, AccessCounts, AccessShifts, DeviceRequest, MAX_SHIFT, PageEvent, PageEventKind,
    RequestKind,
};
use crate::device_number;
use model::recording::Span;
use std::collections::HashMap;
use sys::bpf::{Numbers, Records, Words};
use sys::clock::now_ns;

/// Classes of events: requests, moves, touches.
pub const CLASSES: usize = 3;
/// Kinds of events of pages have numbers from here on, in the order of [`PageEventKind::ALL`].
const FIRST_PAGE_KIND: u32 = 16;
/// The room for events that were not taken yet: 87,000, a tenth of a second of too many.
pub const RING_BYTES: u32 = 4 << 20;
/// More events of a class in a second are sampled: as many take a hundredth of a processor here.
const EVENTS_PER_S_MAX: u64 = 50_000;
/// Every read of a file is a touch, so they are sampled from the start.
const TOUCHED_SHIFT: u8 = 4;
/// A batch is complete when it has so many events or is so old.
const BATCH_EVENTS: usize = 16_384;
const BATCH_NS: u64 = 10_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// No event of a chunk takes more, and no chunk beside its events.
const EVENT_BYTES_MAX: u64 = 48;
const CHUNK_BYTES_MAX: u64 = 128;
/// With room for fewer events nothing is kept any more.
const EVENTS_MIN: u64 = 256;

/// The maps that the programs fill.
#[derive(Debug)]
pub struct AccessMaps {
    pub records: Records,
    /// By class, all bits of the share.
    pub masks: Numbers,
    pub losses: Words<CLASSES>,
}

/// Records accesses, as many as fit.
#[derive(Debug)]
pub struct AccessRecorder {
    maps: AccessMaps,
    shifts: [u8; CLASSES],
    /// What the kernel had lost by the last batch, and what was lost here since.
    lost_before: [u64; CLASSES],
    lost_here: [u64; CLASSES],
    pending: AccessBatch,
    /// Where in it the last touch of each thread is.
    touched_by: HashMap<u32, usize>,
    /// When the recording began, by the steady clock.
    started_ns: u64,
    /// Events of the current second by class, since when, and what had been lost before it.
    of_second: [u64; CLASSES],
    second_ns: u64,
    lost_by_second: [u64; CLASSES],
    budget: ByteBudget,
    totals: AccessTotals,
    spans: Vec<Span>,
}

/// What became of all accesses of a recording: events of the shares that were kept, and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AccessTotals {
    kept: u64,
    lost: u64,
}

/// The bytes that may be used.
#[derive(Clone, Copy, Debug)]
struct ByteBudget {
    limit: u64,
    used: u64,
    /// How often half of what was left has been used.
    halvings: u32,
}

impl ByteBudget {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// How many events fit in any case.
    fn events(&self) -> u64 {
        let events = self.left().saturating_sub(CHUNK_BYTES_MAX) / EVENT_BYTES_MAX;
        if events < EVENTS_MIN { 0 } else { events }
    }

    /// Counts bytes; whether half of what was left at the last halving is used now.
    fn use_bytes(&mut self, bytes: u64) -> bool {
        self.used = self.used.saturating_add(bytes);
        let is_half = self.left() < self.limit >> (self.halvings + 1).min(63);
        self.halvings += u32::from(is_half);
        is_half
    }
}

/// One event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Request(DeviceRequest),
    /// With the thread that caused it.
    Page(PageEvent, u32),
}

impl Access {
    fn class(&self) -> usize {
        match self {
            Self::Request(_) => 0,
            Self::Page(event, _) if event.kind == PageEventKind::Touched => 2,
            Self::Page(..) => 1,
        }
    }

    fn is_followed(&self, shift: u8) -> bool {
        match self {
            Self::Request(request) => request.is_followed(shift),
            Self::Page(event, _) => event.followed(shift).next().is_some(),
        }
    }
}

impl AccessRecorder {
    /// Nothing is kept before [`AccessRecorder::begin`].
    pub fn new(maps: AccessMaps) -> Self {
        Self {
            maps,
            shifts: [0, 0, TOUCHED_SHIFT],
            lost_before: [0; CLASSES],
            lost_here: [0; CLASSES],
            pending: AccessBatch::default(),
            touched_by: HashMap::new(),
            started_ns: 0,
            of_second: [0; CLASSES],
            second_ns: 0,
            lost_by_second: [0; CLASSES],
            budget: ByteBudget { limit: 0, used: 0, halvings: 0 },
            totals: AccessTotals::default(),
            spans: Vec::new(),
        }
    }

    /// Begins a recording of at most `bytes` bytes of accesses at `started_ns` of the steady clock.
    pub fn begin(&mut self, started_ns: u64, bytes: u64) {
        self.put_masks();
        self.maps.records.drain(|_| {});
        self.lost_before = self.maps.losses.get(0).unwrap_or_default();
        self.lost_by_second = self.lost_before;
        self.started_ns = started_ns;
        self.second_ns = started_ns;
        self.budget.limit = bytes;
    }

    /// Takes what the kernel has until now, and gives the batches that are complete; with `all`
    /// also the last one.
    pub fn take(&mut self, all: bool) -> Vec<AccessBatch> {
        if self.budget.limit == 0 {
            return Vec::new();
        }
        let (started_ns, room) = (self.started_ns, self.budget.events());
        let Self { maps, pending, touched_by, of_second, lost_here, shifts, .. } = self;
        let mut halvings = 0;
        maps.records.drain(|record| {
            let Some(access) = parse(record, started_ns) else {
                return;
            };
            let class = access.class();
            of_second[class] += 1;
            if !access.is_followed(shifts[class]) {
                return;
            }
            while pending.len() as u64 >= room && room > 0 && halvings < MAX_SHIFT {
                // Better fewer places than a gap in the time of all.
                halvings += 1;
                *shifts = shifts.map(|shift| (shift + 1).min(MAX_SHIFT));
                *of_second = of_second.map(|events| events / 2);
                touched_by.clear();
                thin(pending, *shifts);
            }
            if pending.len() as u64 >= room {
                lost_here[class] += 1;
                return;
            }
            if !access.is_followed(shifts[class]) {
                return;
            }
            match access {
                Access::Request(request) => pending.requests.push(request),
                Access::Page(event, thread) => {
                    end_step_before(&mut pending.pages, touched_by, &event, thread);
                    pending.pages.push(event);
                }
            }
        });
        let at_ns = now_ns();
        self.pending.to_ns = at_ns.saturating_sub(started_ns);
        if halvings > 0 {
            self.use_shares("they come too fast");
        }
        let age_ns = self.pending.to_ns.saturating_sub(self.pending.from_ns);
        let is_complete = all || self.pending.len() >= batch_events(room) || age_ns >= BATCH_NS;
        let batches = if is_complete { self.complete() } else { Vec::new() };
        if at_ns.saturating_sub(self.second_ns) >= SECOND_NS {
            self.end_second(at_ns);
        }
        batches
    }

    /// Counts a batch that was written, and its bytes.
    pub fn written(&mut self, batch: &AccessBatch, bytes: u64) {
        self.totals.kept += batch.len() as u64;
        if self.budget.use_bytes(bytes) {
            let why =
                format!("{} KiB of {} are used", self.budget.used >> 10, self.budget.limit >> 10);
            self.halve([1; CLASSES], &why);
        }
    }

    /// What happened to the shares since the last call.
    pub fn spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// What became of all accesses until now, in words.
    pub fn summary(&self) -> String {
        let [kept, lost] = [self.totals.kept, self.totals.lost].map(model::text::count);
        format!("{kept} accesses were kept and {lost} lost; {}", self.shares_in_words())
    }

    fn shares_in_words(&self) -> String {
        let share = |shift: u8| match shift {
            0 => "all".to_owned(),
            _ => format!("one in {}", 1_u64 << shift),
        };
        let [requests, moves, touched] = self.shifts.map(share);
        format!(
            "of requests {requests}, of pages that come and go {moves}, of pages asked for {touched}"
        )
    }

    fn shares(&self) -> AccessShifts {
        let [requests, moves, touched] = self.shifts;
        AccessShifts { requests, moves, touched }
    }

    /// Ends the batch: in order of time, in as many pieces as chunks are needed.
    fn complete(&mut self) -> Vec<AccessBatch> {
        let to_ns = self.pending.to_ns;
        let next = AccessBatch { from_ns: to_ns, to_ns, ..AccessBatch::default() };
        let mut whole = std::mem::replace(&mut self.pending, next);
        self.touched_by.clear();
        whole.shifts = self.shares();
        let lost = self.maps.losses.get(0).unwrap_or(self.lost_before);
        let mut counts = std::mem::take(&mut self.lost_here);
        for (class, count) in counts.iter_mut().enumerate() {
            *count += lost[class].saturating_sub(self.lost_before[class]);
        }
        self.lost_before = lost;
        let [requests, moves, touched] = counts;
        whole.lost = AccessCounts { requests, moves, touched };
        self.totals.lost += counts.iter().sum::<u64>();
        whole.requests.sort_by_key(|request| request.at_ns);
        whole.pages.sort_by_key(|event| event.at_ns);
        pieces(whole)
    }

    /// Halves the share of what came too fast or was lost.
    fn end_second(&mut self, at_ns: u64) {
        let elapsed_ns = at_ns.saturating_sub(self.second_ns).max(1);
        let lost = self.maps.losses.get(0).unwrap_or(self.lost_by_second);
        let mut halvings = [0; CLASSES];
        for class in 0..CLASSES {
            // What was lost came too: where most is, what arrives says nothing of the rate.
            let missed = lost[class].saturating_sub(self.lost_by_second[class]);
            let events = u128::from(self.of_second[class].saturating_add(missed));
            let per_s = (events * u128::from(SECOND_NS) / u128::from(elapsed_ns)) as u64;
            // Two is halved once, four twice.
            halvings[class] = per_s.div_ceil(EVENTS_PER_S_MAX).max(1).next_power_of_two().ilog2();
            if missed > 0 {
                halvings[class] = halvings[class].max(1);
            }
        }
        self.of_second = [0; CLASSES];
        self.second_ns = at_ns;
        self.lost_by_second = lost;
        if halvings != [0; CLASSES] {
            self.halve(halvings, "they come too fast");
        }
    }

    /// Halves shares, so many times each. The batch that waits gets the smaller ones.
    fn halve(&mut self, halvings: [u32; CLASSES], why: &str) {
        for (shift, times) in self.shifts.iter_mut().zip(halvings) {
            *shift = shift.saturating_add(u8::try_from(times).unwrap_or(MAX_SHIFT)).min(MAX_SHIFT);
        }
        self.touched_by.clear();
        thin(&mut self.pending, self.shifts);
        self.use_shares(why);
    }

    /// Gives the kernel the shares as they are now, and notes why they are so.
    fn use_shares(&mut self, why: &str) {
        self.put_masks();
        let at_ns = self.pending.to_ns;
        let text = format!("as {why}, accesses are sampled: {}", self.shares_in_words());
        self.spans.push(Span { kind: "accesses".to_owned(), text, start_ns: at_ns, end_ns: at_ns });
    }

    fn put_masks(&mut self) {
        for (class, shift) in (0..).zip(self.shifts) {
            // Where the kernel takes no share, more comes out of it than is kept.
            let _ = self.maps.masks.put(class, (1 << shift) - 1);
        }
    }
}

/// Leaves out what is not of the shares.
fn thin(batch: &mut AccessBatch, [requests, moves, touched]: [u8; CLASSES]) {
    batch.requests.retain(|request| request.is_followed(requests));
    batch.pages.retain(|event| {
        let is_touch = event.kind == PageEventKind::Touched;
        event.followed(if is_touch { touched } else { moves }).next().is_some()
    });
}

/// How many events make a batch complete where `room` fit: half of them, so that what comes until
/// the next look fits too.
fn batch_events(room: u64) -> usize {
    BATCH_EVENTS.min((room / 2) as usize).max(1)
}

/// A long read asks in steps, each up to the end of the read: what the step before really took
/// ends where this one begins.
fn end_step_before(
    pages: &mut [PageEvent],
    touched_by: &mut HashMap<u32, usize>,
    event: &PageEvent,
    thread: u32,
) {
    if event.kind != PageEventKind::Touched {
        return;
    }
    let before = touched_by.insert(thread, pages.len());
    let end = |event: &PageEvent| event.index.wrapping_add(u64::from(event.pages));
    let is_step = |before: &PageEvent| {
        let is_of_file = (before.device, before.inode) == (event.device, event.inode);
        is_of_file && end(before) == end(event) && before.index < event.index
    };
    let step = before.and_then(|place| pages.get_mut(place)).filter(|before| is_step(before));
    if let Some(step) = step {
        // Less than the pages of the step.
        step.pages = (event.index - step.index) as u32;
    }
}

/// A batch in pieces that fit into chunks; the last one has the losses.
fn pieces(whole: AccessBatch) -> Vec<AccessBatch> {
    let most = AccessBatch::MAX_EVENTS;
    let count = whole.requests.len().max(whole.pages.len()).div_ceil(most).max(1);
    if count == 1 {
        return vec![whole];
    }
    let mut requests = whole.requests.chunks(most);
    let mut pages = whole.pages.chunks(most);
    let mut from_ns = whole.from_ns;
    let piece = |number| {
        let requests = requests.next().unwrap_or_default().to_vec();
        let pages = pages.next().unwrap_or_default().to_vec();
        let is_last = number + 1 == count;
        let of_requests = requests.last().map_or(0, |request| request.at_ns);
        let last_ns = pages.last().map_or(0, |event| event.at_ns).max(of_requests);
        let to_ns = if is_last { whole.to_ns } else { last_ns.clamp(from_ns, whole.to_ns) };
        let lost = if is_last { whole.lost } else { AccessCounts::default() };
        let piece = AccessBatch { from_ns, to_ns, shifts: whole.shifts, lost, requests, pages };
        from_ns = to_ns;
        piece
    };
    (0..count).map(piece).collect()
}

/// Reads one record (`struct access_record`); `None` for one that is not known.
fn parse(record: &[u8], started_ns: u64) -> Option<Access> {
    // What happened while the recording began is at its begin.
    let at_ns = objects::word(record, 0)?.saturating_sub(started_ns);
    let (place, other) = (objects::word(record, 8)?, objects::word(record, 16)?);
    let device = device_number::split(objects::number(record, 24)?);
    let length = objects::number(record, 28)?;
    let kind = objects::number(record, 32)?;
    if let Some(page_kind) = kind.checked_sub(FIRST_PAGE_KIND) {
        let kind = *PageEventKind::ALL.get(page_kind as usize)?;
        if !(1..=PageEvent::MAX_PAGES).contains(&length) {
            return None;
        }
        let (inode, index, pages) = (other, place, length);
        let event = PageEvent { at_ns, device, inode, index, pages, kind };
        return Some(Access::Page(event, objects::number(record, 36)?));
    }
    let kind = match kind {
        0 => RequestKind::Read,
        1 => RequestKind::Write,
        3 => RequestKind::Discard,
        _ => return None,
    };
    let (latency_ns, sector, sectors) = (other, place, length);
    Some(Access::Request(DeviceRequest { at_ns, latency_ns, device, sector, sectors, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_of_any_length_stays_within_its_bytes() {
        let mut budget = ByteBudget { limit: 64 << 20, used: 0, halvings: 0 };
        let mut shift = 0;
        let mut seconds = 0_u64;
        while budget.events() > 0 && seconds < 1_000_000 {
            // 20,000 events of 4 bytes a second, as long as all are kept.
            let bytes = (80_000 >> shift).max(64).min(budget.left());
            shift += u32::from(budget.use_bytes(bytes));
            seconds += 1;
        }
        assert!(budget.used <= budget.limit);
        assert!(shift >= 10, "{shift}");
        let whole = budget.limit / 80_000;
        assert!(seconds > 5 * whole, "{seconds} s, without sampling {whole} s");
    }

    #[test]
    fn steps_of_one_read_do_not_overlap() {
        let touch = |index, pages, inode| PageEvent {
            at_ns: 0,
            device: (8, 1),
            inode,
            index,
            pages,
            kind: PageEventKind::Touched,
        };
        let mut pages = Vec::new();
        let mut touched_by = HashMap::new();
        // Two threads read 100 pages each; the second file is another one; then one page is read
        // again by a read of its own.
        let events = [(1, 0, 100), (2, 0, 100), (1, 31, 69), (2, 40, 60), (1, 62, 38), (1, 62, 1)];
        for (thread, index, length) in events {
            let event = touch(index, length, u64::from(thread));
            end_step_before(&mut pages, &mut touched_by, &event, thread);
            pages.push(event);
        }
        let lengths: Vec<u32> = pages.iter().map(|event| event.pages).collect();
        assert_eq!(lengths, [31, 40, 31, 60, 38, 1]);
    }

    #[test]
    fn a_batch_is_cut_into_chunks_that_keep_every_event() {
        let event = |at_ns| PageEvent {
            at_ns,
            device: (8, 1),
            inode: 2,
            index: at_ns,
            pages: 1,
            kind: PageEventKind::Added,
        };
        let most = AccessBatch::MAX_EVENTS as u64;
        let pages: Vec<PageEvent> = (0..2 * most + 5).map(event).collect();
        let lost = AccessCounts { moves: 3, ..AccessCounts::default() };
        let whole =
            AccessBatch { to_ns: 3 * most, pages: pages.clone(), lost, ..AccessBatch::default() };
        let cut = pieces(whole);
        assert_eq!(cut.len(), 3);
        assert!(cut.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        assert_eq!(cut.iter().map(|piece| piece.lost.moves).sum::<u64>(), 3);
        assert_eq!(cut[2].to_ns, 3 * most);
        let joined: Vec<PageEvent> = cut.into_iter().flat_map(|piece| piece.pages).collect();
        assert_eq!(joined, pages);
    }
}
