//! The cache: what it owns, how it is made, and where each input goes. What it does with one is in
//! the files of their names, which all add to the same type.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use model::engine::{
    BufferId, BufferRange, Buffers, ChangeProof, Device, Engine, Event, Input, IoResult, Operation,
    OperationId, Output, REQUESTS_MAX, Request, RequestId, Witness,
};
use policy::RecentKeys;
use policy::admission::ShortRuns;
use policy::eviction::{LogQueue, LogS3Fifo};

use crate::counters::Counters;
use crate::detach::DetachStep;
use crate::format::{BLOCK_BYTES, Geometry};
use crate::frames::Frames;
use crate::health::{Health, MediumState};
use crate::journal::{self, Base};
use crate::log::{OpenSegment, Segment};
use crate::marks::JournalWork;
use crate::read::{FILL_FRAMES_MAX, ReadState};
use crate::reclaim::Reclaim;
use crate::regions::Regions;
use crate::sample::Samples;
use crate::seal::{Cipher, Codec, Master, Salt, TAG_BYTES};
use crate::setup::{
    Cold, FollowedWitness, Limits, Rules, Setup, Start, Written, judge, medium_id, proof,
};
use crate::slab::Slab;
use crate::write::WriteState;

/// Buffers of a segment each: two are open, two are being written.
const SEGMENT_BUFFERS: usize = 4;

/// Salts of earlier attaches that are known at a time. Segments of further ones are dropped.
pub(crate) const CIPHERS_MAX: usize = 64;

/// Operations under way that belong to no request and have no buffer of their own for I/O: journal,
/// header, summary, a flush of each device, and segments that are written.
const OWN_OPERATIONS: usize = 16;

/// What an operation was for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// A frame of a read, on the medium.
    HitRead { read: usize, slot: u32, key: u32, sequence: u64, sealed: BufferRange },
    /// A read of the backing device.
    BackingRead { read: usize },
    /// A write or discard of the backing device.
    BackingWrite { write: usize },
    /// A flush of the backing device, asked for or our own.
    BackingFlush { request: Option<RequestId>, flush: u64 },
    /// A segment is written.
    SegmentWrite { segment: u16, buffer: BufferId },
    /// The medium is flushed.
    MediumFlush,
    /// A frame of a segment that is reclaimed.
    ReclaimRead { sealed: BufferRange },
    /// The header is read to see whether it is this medium.
    HeaderRead,
    /// The header is written.
    HeaderWrite,
    /// Then flushed.
    HeaderFlush,
    /// The summary of a segment is read.
    SummaryRead { segment: u16 },
    /// A frame that was found is compared: it is read from the disk.
    SampleDisk,
    /// Then from the medium.
    SampleMedium { sealed: BufferRange },
    /// The journal is written or flushed.
    Journal,
}

impl Pending {
    fn is_of_medium(self) -> bool {
        match self {
            Self::HitRead { .. }
            | Self::SegmentWrite { .. }
            | Self::MediumFlush
            | Self::ReclaimRead { .. }
            | Self::HeaderRead
            | Self::HeaderWrite
            | Self::HeaderFlush
            | Self::SummaryRead { .. }
            | Self::SampleMedium { .. } => true,
            Self::BackingRead { .. }
            | Self::BackingWrite { .. }
            | Self::BackingFlush { .. }
            | Self::SampleDisk
            | Self::Journal => false,
        }
    }
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnderWay {
    stamp: u64,
    sent_ns: u64,
    pub(crate) pending: Pending,
}

/// What the cache is doing beside requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for the journal and for the header of the medium.
    Starting,
    /// It reads summaries; this segment is next.
    Recovering(u32),
    /// It serves and fills.
    Running,
    /// It writes what is left.
    Detaching(DetachStep),
    /// It is closed.
    Detached,
}

/// Where outputs go, and the memory that data are in.
pub(crate) struct Io<'i> {
    pub(crate) buffers: &'i mut dyn Buffers,
    pub(crate) outputs: &'i mut Vec<Output>,
}

/// A flash read cache in front of a volume. It is driven as `model::engine` says.
#[derive(Debug)]
pub struct Cache {
    pub(crate) geometry: Geometry,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) start: Start,
    pub(crate) phase: Phase,
    pub(crate) health: Health,
    pub(crate) counters: Counters,
    pub(crate) frames: Frames,
    pub(crate) regions: Regions,
    pub(crate) segments: Box<[Segment]>,
    /// Segments without content.
    pub(crate) free: VecDeque<u16>,
    /// Full segments of the small and of the main queue, the oldest first.
    pub(crate) queues: [VecDeque<u16>; 2],
    /// The segments that are being filled.
    pub(crate) open: [Option<OpenSegment>; 2],
    pub(crate) reclaim: Option<Reclaim>,
    pub(crate) policy: LogS3Fifo,
    /// Keys that missed once.
    pub(crate) second: RecentKeys,
    pub(crate) runs: ShortRuns,
    /// Where the last read ended.
    pub(crate) read_end: u64,
    /// Frames are read from the medium in multiples of it.
    pub(crate) medium_read_bytes: u32,
    pub(crate) master: Master,
    /// The salt of this attach first.
    pub(crate) ciphers: Vec<(Salt, Cipher)>,
    pub(crate) next_sequence: u64,
    pub(crate) journal: JournalWork,
    pub(crate) witnesses: Vec<FollowedWitness>,
    /// A detach may be proved: what is listed at its end shows each change afterwards.
    pub(crate) can_prove: bool,
    pub(crate) codec: Codec,
    /// A frame as it is stored.
    pub(crate) packed: Vec<u8>,
    /// A frame as it is on the volume.
    pub(crate) plain: Vec<u8>,
    /// What a fill read.
    pub(crate) scratch: Vec<u8>,
    pub(crate) reads: Slab<ReadState>,
    pub(crate) writes: Slab<WriteState>,
    /// Writes that wait for a mark.
    pub(crate) waiting: Vec<usize>,
    pub(crate) operations: Slab<UnderWay>,
    stamp: u64,
    pub(crate) now_ns: u64,
    /// Bytes that may be written to the medium now.
    pub(crate) budget: u64,
    pub(crate) segment_buffers: Vec<BufferId>,
    pub(crate) io_buffers: Vec<BufferId>,
    pub(crate) summary_buffer: BufferId,
    pub(crate) header_buffer: BufferId,
    /// A summary is being read.
    pub(crate) is_recovery_read: bool,
    /// Frames that were found and may not be served.
    pub(crate) dropped: u64,
    pub(crate) samples: Samples,
    /// An attach that the medium knows and the journal does not.
    pub(crate) later_attach: Option<u32>,
    /// Bytes that were moved since segments were last free.
    pub(crate) moved_bytes: u64,
    /// The detach does not wait for the medium any more.
    pub(crate) is_abandoned: bool,
    /// A flush of the disk that no request asked for is under way.
    pub(crate) is_own_flush_sent: bool,
    is_started: bool,
}

impl Cache {
    /// Attaches: judges the journal, takes all buffers, and allocates all memory. `journal` is the
    /// whole journal as it is on its disk, empty for a new one; the driver gives the file at least
    /// [`journal_bytes`](crate::journal_bytes) before the first input, and writes nothing to it.
    ///
    /// # Errors
    /// Why no cache can be made of these sizes, as a sentence.
    pub fn attach(
        setup: &Setup,
        journal: &[u8],
        buffers: &mut dyn Buffers,
    ) -> Result<Self, String> {
        Self::with_rules(setup, journal, buffers, Rules::KEPT)
    }

    /// Attaches with some safety rules broken: for the simulation alone.
    ///
    /// # Errors
    /// As [`Cache::attach`].
    #[doc(hidden)]
    pub fn with_rules(
        setup: &Setup,
        journal: &[u8],
        buffers: &mut dyn Buffers,
        rules: Rules,
    ) -> Result<Self, String> {
        setup.geometry.check()?;
        let (start, base, next_record) = begun(setup, journal, rules);
        let geometry = setup.geometry;
        let Limits { frames_max, run_frames_max, budget_bytes_per_day, .. } = setup.limits;
        let segments = NonZeroU32::new(geometry.segments).ok_or("a cache has segments")?;
        let master = Master::new(&setup.key, &base.cache_id, &setup.volume_id);
        let mut ciphers = Vec::with_capacity(CIPHERS_MAX);
        ciphers.push((setup.salt, master.cipher(&setup.salt)));
        let mut regions = Regions::new(geometry.regions());
        (0..regions.count())
            .filter(|region| journal::bit(&base.marked, *region))
            .for_each(|region| regions.set_durable(region));
        let own = OwnBuffers::take(&geometry, &setup.limits, buffers)?;
        let attach = base.attach + 1;
        let frame = geometry.frame_bytes as usize;
        let codec = Codec::new(geometry.frame_bytes).map_err(|error| error.to_string())?;
        let work = JournalWork::new(base, next_record, start != Start::Warm, own.journal);
        Ok(Self {
            geometry,
            limits: setup.limits,
            rules,
            start,
            phase: Phase::Starting,
            health: Health::new(setup.may_format, medium_id(setup, journal)),
            counters: Counters::default(),
            frames: Frames::new(frames_max),
            regions,
            segments: vec![Segment::FREE; geometry.segments as usize].into_boxed_slice(),
            free: VecDeque::with_capacity(geometry.segments as usize),
            queues: [(); 2].map(|()| VecDeque::with_capacity(geometry.segments as usize)),
            open: [None, None],
            reclaim: None,
            policy: LogS3Fifo::new(segments, frames_max),
            second: RecentKeys::new(frames_max.saturating_mul(2)),
            runs: ShortRuns::new(run_frames_max),
            read_end: u64::MAX,
            medium_read_bytes: BLOCK_BYTES,
            master,
            ciphers,
            next_sequence: u64::from(attach) << 32,
            journal: work,
            witnesses: followed(setup),
            can_prove: proof(setup) == ChangeProof::Always,
            codec,
            packed: vec![0; frame + TAG_BYTES],
            plain: vec![0; frame],
            scratch: vec![0; io_bytes(&geometry) as usize],
            // A read that was answered from the disk waits for the medium that did not answer.
            reads: Slab::new(REQUESTS_MAX + setup.limits.io_buffers as usize),
            writes: Slab::new(REQUESTS_MAX),
            waiting: Vec::with_capacity(REQUESTS_MAX),
            operations: Slab::new(REQUESTS_MAX + setup.limits.io_buffers as usize + OWN_OPERATIONS),
            stamp: 0,
            now_ns: 0,
            budget: budget_bytes_per_day,
            segment_buffers: own.segments,
            io_buffers: own.io,
            summary_buffer: own.summary,
            header_buffer: own.header,
            is_recovery_read: false,
            dropped: 0,
            samples: Samples::new(setup.limits.sampled_frames, &setup.salt),
            later_attach: None,
            moved_bytes: 0,
            is_abandoned: false,
            is_own_flush_sent: false,
            is_started: false,
        })
    }

    /// The sizes of the buffers that an attach takes, with how many of each.
    #[must_use]
    pub fn buffers(geometry: &Geometry, limits: &Limits) -> [(u32, u32); 5] {
        [
            (journal::base_bytes(geometry), 1),
            (BLOCK_BYTES, 2),
            (geometry.segment_bytes, SEGMENT_BUFFERS as u32),
            (io_bytes(geometry), limits.io_buffers),
            (geometry.summary_bytes(), 1),
        ]
    }

    /// Takes the ranges that identify the content as they are now, for a volume that shows a change
    /// only so ([`ChangeProof::AfterDetach`]). The driver reads them when every request has ended,
    /// and gives [`Input::Detach`] next. None at all says that a person answers for it that nothing
    /// writes the volume before the next attach. Too many prove nothing.
    pub fn take_last_witnesses(&mut self, witnesses: Vec<Witness>) {
        self.can_prove = witnesses.len() <= journal::WITNESSES_MAX;
        self.witnesses.clear();
        self.witnesses.extend(witnesses.into_iter().map(FollowedWitness::of));
    }

    /// What offsets and lengths of reads of the medium that is there now must be multiples of. More
    /// than a block of 4 KiB counts as one, which is also what holds before this is called.
    pub fn set_medium_read_bytes(&mut self, bytes: u32) {
        self.medium_read_bytes = bytes.max(1).next_power_of_two().min(BLOCK_BYTES);
    }

    /// How it started.
    #[must_use]
    pub fn start(&self) -> Start {
        self.start
    }

    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames that it could serve.
    #[must_use]
    pub fn cached_frames(&self) -> u32 {
        self.frames.live()
    }

    /// Bytes of the volume that it could serve, in whole blocks.
    #[must_use]
    pub fn cached_bytes(&self) -> u64 {
        self.frames.live_blocks() * u64::from(BLOCK_BYTES)
    }

    /// The memory of its index.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        self.frames.bytes()
    }

    /// The memory of all that grows with the medium or the volume, without the buffers.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let segments = self.segments.len() * (size_of::<Segment>() + 3 * size_of::<u16>());
        let keys = self.second.bytes().0 + self.policy.bytes().0;
        let lists = self.journal.base.bytes();
        self.frames.bytes() + keys + self.regions.bytes() + lists + segments as u64
    }

    /// Whether this byte of the volume is cached.
    #[must_use]
    pub fn is_cached(&self, offset: u64) -> bool {
        let key = offset / u64::from(self.geometry.frame_bytes);
        let is_within = offset < self.geometry.volume_bytes;
        is_within && self.holds(key as u32, &(offset..offset + 1))
    }

    /// Whether the medium is used, and every segment was looked at.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running && self.health.medium == MediumState::On
    }

    pub(crate) fn operate(
        &mut self,
        device: Device,
        operation: Operation,
        pending: Pending,
        io: &mut Io<'_>,
    ) {
        self.stamp += 1;
        let sent = UnderWay { stamp: self.stamp, sent_ns: self.now_ns, pending };
        let at = self.operations.insert(sent);
        let id = OperationId(self.stamp << 24 | at as u64 & 0xff_ffff);
        io.outputs.push(Output::Operate { id, device, operation });
    }

    fn complete(&mut self, id: OperationId, result: IoResult, io: &mut Io<'_>) {
        let at = (id.0 & 0xff_ffff) as usize;
        if self.operations.get(at).is_none_or(|sent| sent.stamp << 24 >> 24 != id.0 >> 24) {
            return;
        }
        let Some(UnderWay { pending, .. }) = self.operations.remove(at) else { return };
        match pending {
            Pending::HitRead { .. } => self.hit_read_ended(pending, result, io),
            Pending::BackingRead { read } => self.backing_read_ended(read, result, io),
            Pending::BackingWrite { write } => self.backing_write_ended(write, result, io),
            Pending::BackingFlush { request, flush } => {
                match result {
                    Ok(()) => self.regions.end_flush(flush),
                    Err(_) => self.regions.fail_flush(flush),
                }
                if let Some(id) = request {
                    io.outputs.push(Output::Complete { id, result });
                } else {
                    self.own_flush_ended(result, io);
                }
            }
            Pending::SegmentWrite { segment, buffer } => {
                self.segment_write_ended(segment, buffer, result, io);
            }
            Pending::MediumFlush => self.medium_flush_ended(result, io),
            Pending::ReclaimRead { sealed } => self.reclaim_read_ended(sealed, result, io),
            Pending::HeaderRead => self.header_read_ended(result, io),
            Pending::HeaderWrite => self.header_write_ended(result, io),
            Pending::HeaderFlush => self.header_flush_ended(result, io),
            Pending::SummaryRead { segment } => self.summary_read_ended(segment, result, io),
            Pending::SampleDisk => self.sample_disk_ended(result, io),
            Pending::SampleMedium { sealed } => self.sample_medium_ended(sealed, result, io),
            Pending::Journal => self.journal_ended(result, io),
        }
    }

    /// Whether an operation of the medium waits for longer than this, of those that `counts` gives.
    pub(crate) fn is_medium_late(&self, ns: u64, counts: impl Fn(Pending) -> bool) -> bool {
        let sent = (0..self.operations.numbers_end()).filter_map(|at| self.operations.get(at));
        sent.filter(|sent| sent.pending.is_of_medium() && counts(sent.pending))
            .any(|sent| self.now_ns.saturating_sub(sent.sent_ns) > ns)
    }

    /// Whether nothing is under way, or nothing but operations of a medium that was given up.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut sent = (0..self.operations.numbers_end()).filter_map(|at| self.operations.get(at));
        sent.all(|sent| self.is_abandoned && sent.pending.is_of_medium())
    }

    /// The first operations. Nothing is cached before what was written earlier is durable.
    fn begin(&mut self, io: &mut Io<'_>) {
        self.is_started = true;
        self.repeat_first_flush(io);
        if self.start == Start::Warm {
            self.journal.wants_attach = true;
            self.check_medium(io);
        } else {
            self.journal.wants_root = true;
            self.journal.wants_base = true;
        }
    }

    pub(crate) fn flush_backing(&mut self, request: Option<RequestId>, io: &mut Io<'_>) {
        let flush = self.regions.begin_flush();
        let pending = Pending::BackingFlush { request, flush };
        self.operate(Device::Backing, Operation::Flush, pending, io);
    }

    fn request(&mut self, id: RequestId, request: Request, io: &mut Io<'_>) {
        match request {
            Request::Read { offset, data } => self.read(id, offset, data, io),
            Request::Write { offset, data } => {
                self.write(id, (offset, u64::from(data.len)), Written::Data(data), io);
            }
            Request::Discard { offset, len } => {
                self.write(id, (offset, len), Written::Anything, io);
            }
            Request::WriteZeroes { offset, len } => {
                self.write(id, (offset, len), Written::Zeros, io);
            }
            Request::Flush if !self.rules.flush_before_answer => {
                io.outputs.push(Output::Complete { id, result: Ok(()) });
            }
            Request::Flush => self.flush_backing(Some(id), io),
            Request::Prefetch { offset, len } => self.prefetch(id, offset, len, io),
        }
    }
}

/// The buffers that an attach takes.
struct OwnBuffers {
    journal: [BufferId; 2],
    segments: Vec<BufferId>,
    io: Vec<BufferId>,
    summary: BufferId,
    header: BufferId,
}

impl OwnBuffers {
    fn take(
        geometry: &Geometry,
        limits: &Limits,
        buffers: &mut dyn Buffers,
    ) -> Result<Self, String> {
        let mut take = |bytes: u32| {
            buffers.take(bytes).ok_or_else(|| format!("no buffer of {bytes} bytes is left"))
        };
        let (segment, io) = (geometry.segment_bytes, io_bytes(geometry));
        Ok(Self {
            journal: [take(journal::base_bytes(geometry))?, take(BLOCK_BYTES)?],
            segments: (0..SEGMENT_BUFFERS).map(|_| take(segment)).collect::<Result<_, _>>()?,
            io: (0..limits.io_buffers).map(|_| take(io)).collect::<Result<_, _>>()?,
            summary: take(geometry.summary_bytes())?,
            header: take(BLOCK_BYTES)?,
        })
    }
}

/// How a cache starts, what the journal lists, and the number of its next record.
fn begun(setup: &Setup, journal: &[u8], rules: Rules) -> (Start, Base, u64) {
    match judge(setup, journal, rules) {
        Ok(state) => (Start::Warm, state.base, state.next_record),
        Err(cold) => {
            // Under a new name, that no older frame is sealed for.
            let base = Base::empty(setup.geometry, setup.new_cache_id, setup.volume_id);
            (Start::Cold(cold), base, 0)
        }
    }
}

/// The ranges that identify the content, to be followed; none if that would prove nothing.
fn followed(setup: &Setup) -> Vec<FollowedWitness> {
    match proof(setup) {
        ChangeProof::Always => setup.witnesses.iter().cloned().map(FollowedWitness::of).collect(),
        ChangeProof::AfterDetach | ChangeProof::Never => Vec::new(),
    }
}

/// Bytes of a buffer for a read of the medium or for a fill.
fn io_bytes(geometry: &Geometry) -> u32 {
    FILL_FRAMES_MAX as u32 * geometry.frame_bytes + 2 * BLOCK_BYTES
}

impl Engine for Cache {
    fn handle(&mut self, input: Input, buffers: &mut dyn Buffers, outputs: &mut Vec<Output>) {
        let mut io = Io { buffers, outputs };
        if !self.is_started {
            self.begin(&mut io);
        }
        match input {
            Input::Request { id, request } => self.request(id, request, &mut io),
            Input::Completion { id, result } => self.complete(id, result, &mut io),
            Input::Tick { now_ns } => self.tick(now_ns, &mut io),
            Input::CacheReturned => self.medium_returned(&mut io),
            Input::Detach => self.begin_detach(),
        }
        self.drive_journal(&mut io);
        self.drive_recovery(&mut io);
        self.drive_reclaim(&mut io);
        self.drive_detach(&mut io);
        // A step of the detach may want a last list of fresh frames.
        self.drive_journal(&mut io);
    }
}

/// The place of a queue in arrays.
pub(crate) fn queue_index(queue: LogQueue) -> usize {
    match queue {
        LogQueue::Small => 0,
        LogQueue::Main => 1,
    }
}

/// Reports something.
pub(crate) fn report(event: Event, io: &mut Io<'_>) {
    io.outputs.push(Output::Event(event));
}

/// A range at the start of a buffer.
pub(crate) fn first(buffer: BufferId, len: u32) -> BufferRange {
    BufferRange::first(buffer, len)
}

impl Start {
    /// The reason of a cold start.
    #[must_use]
    pub fn cold(self) -> Option<Cold> {
        match self {
            Self::Warm => None,
            Self::Cold(cold) => Some(cold),
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::SimulatedBuffers;

    use super::*;

    #[test]
    fn as_many_requests_as_a_driver_may_have_open_allocate_nothing() {
        let geometry = Geometry::fit(16 << 20, 8 << 20, 1 << 20).unwrap();
        let limits = Limits { io_buffers: 4, ..Limits::fit(&geometry) };
        let mut buffers = SimulatedBuffers::default();
        for (bytes, count) in Cache::buffers(&geometry, &limits) {
            buffers.add(bytes, count);
        }
        buffers.add(512, 1);
        let (key, salt, volume_id, new_cache_id) = ([1; 32], [2; 32], [3; 16], [4; 16]);
        let witnesses = vec![Witness { offset: 0, bytes: vec![0; 512 * REQUESTS_MAX] }];
        let (may_format, proof) = (true, ChangeProof::Always);
        let setup = Setup {
            geometry,
            volume_id,
            key,
            salt,
            new_cache_id,
            witnesses,
            proof,
            may_format,
            limits,
        };
        let mut cache = Cache::attach(&setup, &[], &mut buffers).unwrap();
        let room = |cache: &Cache| {
            let slabs = [cache.reads.capacity(), cache.writes.capacity()];
            let lists = [cache.operations.capacity(), cache.waiting.capacity()];
            (slabs, lists, cache.journal.witness_room())
        };
        let before = room(&cache);
        let mut outputs = Vec::new();
        let data = BufferRange::first(buffers.take(512).unwrap(), 512);
        let mut open = 0;
        for round in 0..2 {
            for id in 0..REQUESTS_MAX as u64 {
                let offset = 512 * id;
                let request = match round {
                    0 => Request::Write { offset, data },
                    _ => Request::Read { offset, data },
                };
                let input = Input::Request { id: RequestId(open), request };
                cache.handle(input, &mut buffers, &mut outputs);
                open += 1;
            }
            assert_eq!(room(&cache), before);
            // Each round is of another kind, so that each table is filled by one alone.
            cache.writes = Slab::new(REQUESTS_MAX);
            cache.waiting.clear();
        }
    }
}
