//! What the threads of a driver share: the engine, its buffers, and the requests that are open.
//!
//! Each input is handled under one lock. What the engine wants done is given to the pools before
//! the lock is released, so that operations begin in the order of the engine. If the engine panics,
//! every request that is open and that comes later fails.

use super::DriverOptions;
use super::caller_read::FileReader;
use super::pool::{DeviceOperation, MERGED_MAX, OperationGroup, Pool, QueuedOperation};
use crate::volume::VolumeResult;
use model::engine::{
    BufferId, BufferRange, Device, Engine, ErrorNumber, Event, Input, IoResult, Operation,
    OperationId, Output, Request, RequestId,
};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use sys::buffer_pool::{BufferPool, ExclusivePart};

/// Outputs of one input that need no more memory.
const OUTPUTS: usize = 1024;

/// A part of what a caller reads or writes, of the size of one request.
pub(super) enum RequestData<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

impl RequestData<'_> {
    fn len(&self) -> u32 {
        match self {
            Self::Read(piece) => piece.len() as u32,
            Self::Write(piece) => piece.len() as u32,
        }
    }
}

/// A part of what a caller reads or writes, with the slot of its request.
struct Piece<'a> {
    slot: usize,
    offset: u64,
    data: RequestData<'a>,
}

/// How far a detach is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detachment {
    NotEnded,
    Ended { is_proved: bool },
}

/// A read of the medium that a caller has begun and is to end.
struct CallerRead {
    id: OperationId,
    reader: FileReader,
    part: ExclusivePart,
    pool: Arc<Pool>,
}

/// What follows from inputs, once the lock is released.
#[derive(Default)]
struct Consequences {
    events: Vec<Event>,
    /// The first read of the medium is begun for the caller, who ends it.
    may_read: bool,
    begun: Option<CallerRead>,
    /// What the caller does itself, if there is one.
    own: Option<OwnOperations>,
}

/// The first operations on the volume that a request wants: its caller has to wait for them in any
/// case, and waking another thread up would take longer than a quick disk does.
#[derive(Default)]
struct OwnOperations {
    jobs: Vec<QueuedOperation>,
    group: Option<OperationGroup>,
}

impl Consequences {
    /// Of inputs that a caller brings.
    fn of_caller(may_read: bool) -> Self {
        Self { may_read, own: Some(OwnOperations::default()), ..Self::default() }
    }
}

impl OwnOperations {
    /// Adds an operation, or gives it back if it is no part of the same request to the disk.
    fn take(&mut self, job: QueuedOperation) -> Option<QueuedOperation> {
        let belongs = match &mut self.group {
            Some(group) => group.takes(&job.work),
            None => {
                self.group = Some(OperationGroup::of(&job.work));
                true
            }
        };
        if !belongs {
            return Some(job);
        }
        self.jobs.push(job);
        None
    }
}

/// What is under the lock.
pub(super) struct DriverState {
    engine: Box<dyn Engine + Send>,
    buffers: BufferPool,
    pools: Vec<Arc<Pool>>,
    outputs: Vec<Output>,
    /// What the pools are to be given.
    given_out: Vec<(Device, QueuedOperation)>,
    slots: Vec<Slot>,
    /// Slots that no request has.
    idle: Vec<usize>,
    next_id: u64,
    /// Ranges that open requests change.
    changing: Vec<(RequestId, Range<u64>)>,
    pub(super) detachment: Detachment,
    is_broken: bool,
}

/// The place of one open request, with its buffer.
struct Slot {
    buffer: BufferId,
    request: Option<RequestId>,
    result: Option<IoResult>,
}

impl DriverState {
    /// `own` are the buffers of the requests.
    pub(super) fn new(
        engine: Box<dyn Engine + Send>,
        buffers: BufferPool,
        own: Vec<BufferId>,
        pools: Vec<Arc<Pool>>,
    ) -> Self {
        let slot = |buffer| Slot { buffer, request: None, result: None };
        let slots: Vec<_> = own.into_iter().map(slot).collect();
        Self {
            engine,
            buffers,
            pools,
            outputs: Vec::with_capacity(OUTPUTS),
            given_out: Vec::with_capacity(OUTPUTS),
            idle: (0..slots.len()).collect(),
            changing: Vec::with_capacity(slots.len()),
            slots,
            next_id: 0,
            detachment: Detachment::NotEnded,
            is_broken: false,
        }
    }

    /// The pool of a device is this one now; the former one.
    pub(super) fn set_pool(&mut self, device: Device, pool: Arc<Pool>) -> Arc<Pool> {
        std::mem::replace(&mut self.pools[device as usize], pool)
    }

    /// How many requests the engine has.
    #[cfg(test)]
    pub(super) fn open_requests(&self) -> usize {
        self.slots.iter().filter(|slot| slot.request.is_some()).count()
    }

    pub(super) fn close_pools(&self) {
        self.pools.iter().for_each(|pool| pool.close());
    }

    /// Begins a read of the medium for the caller whose request wants it; `None` for any other
    /// operation, or if a thread of the pool must do it.
    fn begin_read(
        &mut self,
        id: OperationId,
        device: Device,
        operation: &Operation,
    ) -> Option<CallerRead> {
        let Operation::Read { offset, data } = *operation else { return None };
        if device != Device::Cache {
            return None;
        }
        let pool = Arc::clone(&self.pools[device as usize]);
        let reader = pool.begin_read(offset, data.len as usize)?;
        Some(CallerRead { id, reader, part: self.buffers.exclude(data), pool })
    }

    /// An operation with a lease of its memory.
    fn leased(&mut self, operation: Operation) -> DeviceOperation {
        match operation {
            Operation::Read { offset, data } => {
                DeviceOperation::Read { offset, part: self.buffers.exclude(data) }
            }
            Operation::Write { offset, data } => {
                DeviceOperation::Write { offset, part: self.buffers.share(data) }
            }
            Operation::Flush => DeviceOperation::Flush,
            Operation::Discard { offset, len } => {
                DeviceOperation::Discard(offset..offset.saturating_add(len))
            }
            Operation::WriteZeroes { offset, len } => {
                DeviceOperation::WriteZeroes(offset..offset.saturating_add(len))
            }
            Operation::Revoke => DeviceOperation::Revoke,
        }
    }

    /// Gives operations to the pools that their devices have now: those of one device together.
    fn give_to_pools(&mut self) {
        let mut given = std::mem::take(&mut self.given_out);
        for (device, pool) in Device::ALL.into_iter().zip(&self.pools) {
            let of_device = given.extract_if(.., |(of, _)| *of == device);
            let mut jobs = of_device.map(|(_, job)| job).peekable();
            if jobs.peek().is_some() {
                pool.add(jobs);
            }
        }
        self.given_out = given;
    }

    /// Ends the lease of an operation; what it was read by, if a caller began it.
    fn take_back(&mut self, work: DeviceOperation) -> Option<FileReader> {
        match work {
            DeviceOperation::Begun { reader, part } => {
                self.buffers.end_exclusive(part);
                return Some(reader);
            }
            DeviceOperation::Read { part, .. } => self.buffers.end_exclusive(part),
            DeviceOperation::Write { part, .. } => self.buffers.end_shared(part),
            DeviceOperation::Flush
            | DeviceOperation::Discard(_)
            | DeviceOperation::WriteZeroes(_)
            | DeviceOperation::Revoke => {}
        }
        None
    }
}

/// What all threads have.
pub(super) struct SharedDriver {
    pub(super) options: DriverOptions,
    core: Mutex<DriverState>,
    /// One for each slot: its request has ended.
    ended: Vec<Condvar>,
    /// A slot is idle again, or a change has ended.
    room: Condvar,
    pub(super) detached: Condvar,
    report: Box<dyn Fn(Event) + Send + Sync>,
    started: Instant,
    pub(super) is_ended: AtomicBool,
}

impl SharedDriver {
    pub(super) fn new(
        options: DriverOptions,
        core: DriverState,
        report: Box<dyn Fn(Event) + Send + Sync>,
    ) -> Self {
        Self {
            options,
            ended: core.slots.iter().map(|_| Condvar::new()).collect(),
            core: Mutex::new(core),
            room: Condvar::new(),
            detached: Condvar::new(),
            report,
            started: Instant::now(),
            is_ended: AtomicBool::new(false),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, DriverState> {
        // The engine is called in `input` alone, which catches its panic.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Starts the threads of a pool that `device` has, or gets.
    pub(super) fn start_threads(
        self: &Arc<Self>,
        device: Device,
        pool: &Arc<Pool>,
    ) -> sys::Result<()> {
        for _ in 0..self.options.threads[device as usize].max(1) {
            let (shared, pool) = (Arc::clone(self), Arc::clone(pool));
            let started = std::thread::Builder::new()
                .name(format!("engine-{device:?}").to_lowercase())
                .spawn(move || shared.work(device, &pool));
            if let Err(source) = started {
                return Err(sys::Error::new("start a thread", source));
            }
        }
        Ok(())
    }

    /// Does operations until the pool is closed.
    fn work(&self, device: Device, pool: &Pool) {
        let mut taken = Vec::with_capacity(MERGED_MAX);
        while pool.take_next(&mut taken) {
            self.perform(pool, &mut taken, device == Device::Cache);
        }
    }

    /// Does a group of operations.
    fn perform(&self, pool: &Pool, group: &mut Vec<QueuedOperation>, grows: bool) {
        let results = pool.perform_group(group, grows);
        self.completed(pool, group.drain(..).zip(results));
    }

    /// Says to the engine how operations ended, all under one lock.
    fn completed(&self, pool: &Pool, ended: impl Iterator<Item = (QueuedOperation, IoResult)>) {
        let mut core = self.lock();
        let mut follows = Consequences::default();
        for (QueuedOperation { id, work }, result) in ended {
            if let Some(reader) = core.take_back(work) {
                pool.end_read(reader);
            }
            self.handle(&mut core, Input::Completion { id, result }, &mut follows);
        }
        self.conclude(core, follows);
    }

    /// Ends a read that this caller has begun, or leaves it to a thread if it takes long.
    fn end_read(self: &Arc<Self>, read: CallerRead) {
        let CallerRead { id, mut reader, mut part, pool } = read;
        let ended = reader.end(part.bytes_mut(), false);
        let job = QueuedOperation { id, work: DeviceOperation::Begun { reader, part } };
        if let Some(result) = ended {
            return self.completed(&pool, std::iter::once((job, result)));
        }
        let Err(job) = pool.add_late(job) else { return };
        // The medium was replaced meanwhile.
        let shared = Arc::clone(self);
        let late = move || {
            shared.perform(&pool, &mut vec![job], true);
        };
        let _ = std::thread::Builder::new().name("engine-late".to_owned()).spawn(late);
    }

    /// Has the engine handle an input, and does what follows from it.
    pub(super) fn input(&self, mut guard: MutexGuard<'_, DriverState>, input: Input) {
        let mut follows = Consequences::default();
        self.handle(&mut guard, input, &mut follows);
        self.conclude(guard, follows);
    }

    /// Has the engine handle an input; [`SharedDriver::conclude`] must follow.
    fn handle(&self, core: &mut DriverState, input: Input, follows: &mut Consequences) {
        if core.is_broken {
            return;
        }
        let handled = catch_unwind(AssertUnwindSafe(|| {
            core.engine.handle(input, &mut core.buffers, &mut core.outputs);
            let mut outputs = std::mem::take(&mut core.outputs);
            for output in outputs.drain(..) {
                match output {
                    Output::Operate { id, device, operation } => {
                        if follows.may_read && follows.begun.is_none() {
                            follows.begun = core.begin_read(id, device, &operation);
                            if follows.begun.is_some() {
                                continue;
                            }
                        }
                        let job = QueuedOperation { id, work: core.leased(operation) };
                        let left = match follows.own.as_mut() {
                            Some(own) if device == Device::Backing => own.take(job),
                            _ => Some(job),
                        };
                        core.given_out.extend(left.map(|job| (device, job)));
                    }
                    Output::Complete { id, result } => self.complete(core, id, result),
                    Output::Event(event) => follows.events.push(event),
                }
            }
            core.outputs = outputs;
        }));
        if handled.is_err() {
            self.fail_all(core);
        }
        for event in &follows.events {
            if let Event::Detached { is_proved } = *event {
                core.detachment = Detachment::Ended { is_proved };
                self.detached.notify_all();
            }
        }
    }

    /// Gives out the operations, reports what is to be known, and does what is left to the caller;
    /// the read that it has begun.
    fn conclude(
        &self,
        mut guard: MutexGuard<'_, DriverState>,
        follows: Consequences,
    ) -> Option<CallerRead> {
        guard.give_to_pools();
        let jobs = follows.own.map(|own| own.jobs).filter(|jobs| !jobs.is_empty());
        let own = jobs.map(|jobs| (jobs, Arc::clone(&guard.pools[Device::Backing as usize])));
        drop(guard);
        follows.events.into_iter().for_each(|event| (self.report)(event));
        if let Some((mut jobs, volume)) = own {
            self.perform(&volume, &mut jobs, false);
        }
        follows.begun
    }

    fn complete(&self, core: &mut DriverState, id: RequestId, result: IoResult) {
        let Some(at) = core.slots.iter().position(|slot| slot.request == Some(id)) else {
            return;
        };
        core.slots[at].request = None;
        core.slots[at].result = Some(result);
        self.ended[at].notify_one();
        if let Some(changed) = core.changing.iter().position(|(of, _)| *of == id) {
            core.changing.swap_remove(changed);
            self.room.notify_all();
        }
    }

    /// The engine is in no state to go on.
    fn fail_all(&self, core: &mut DriverState) {
        core.is_broken = true;
        core.changing.clear();
        for (at, slot) in core.slots.iter_mut().enumerate() {
            if slot.request.take().is_some() {
                slot.result = Some(Err(ErrorNumber::EIO));
                self.ended[at].notify_one();
            }
        }
        self.room.notify_all();
        self.detached.notify_all();
    }

    /// A request without data.
    pub(super) fn request(&self, request: Request) -> VolumeResult {
        let mut core = self.lock();
        let slot = loop {
            let is_free = !changes(&request).is_some_and(|range| meets(&core, &range));
            match core.idle.pop() {
                Some(slot) if is_free => break slot,
                Some(slot) => core.idle.push(slot),
                None => {}
            }
            core = self.wait_for_room(core);
        };
        let mut follows = Consequences::of_caller(false);
        self.open(&mut core, slot, request, &mut follows);
        self.conclude(core, follows);
        self.end(slot, None)
    }

    /// Reads or writes pieces that follow each other from `offset` on, as many at a time as there
    /// are idle slots.
    pub(super) fn transfer<'a, P>(
        self: &Arc<Self>,
        offset: u64,
        pieces: impl Iterator<Item = P>,
        as_piece: impl Fn(P) -> RequestData<'a>,
    ) -> VolumeResult {
        let mut at = offset;
        let mut pieces = pieces.map(as_piece).peekable();
        let mut open: Vec<Piece<'a>> = Vec::new();
        let mut result = Ok(());
        while pieces.peek().is_some() {
            while let Some(data) = pieces.peek() {
                // Only a caller that has no slot may wait: else two could for each other.
                let Some(slot) = self.slot(at, data, open.is_empty()) else { break };
                let Some(data) = pieces.next() else { break };
                let len = data.len();
                open.push(Piece { slot, offset: at, data });
                at += u64::from(len);
            }
            // While this caller reads, no other piece begins.
            let is_alone = open.len() == 1 && pieces.peek().is_none();
            if let Some(read) = self.begin(&open, is_alone) {
                self.end_read(read);
            }
            for Piece { slot, data, .. } in open.drain(..) {
                result = result.and(self.end(slot, Some(data)));
            }
        }
        result
    }

    /// An idle slot for a piece, if there is one or the caller waits.
    fn slot(&self, at: u64, piece: &RequestData<'_>, waits: bool) -> Option<usize> {
        let range = at..at + u64::from(piece.len());
        let changes = matches!(piece, RequestData::Write(_));
        let mut core = self.lock();
        loop {
            if !(changes && meets(&core, &range))
                && let Some(slot) = core.idle.pop()
            {
                // From here on, although the request is not open before its data are copied.
                if changes {
                    core.changing.push((RequestId(u64::MAX - slot as u64), range));
                }
                return Some(slot);
            }
            if !waits {
                return None;
            }
            core = self.wait_for_room(core);
        }
    }

    /// Opens the requests of pieces together; with `may_read` the caller may be given a read to
    /// end.
    fn begin(&self, pieces: &[Piece<'_>], may_read: bool) -> Option<CallerRead> {
        for Piece { slot, data, .. } in pieces {
            let RequestData::Write(bytes) = data else { continue };
            let mut core = self.lock();
            let range = BufferRange::first(core.slots[*slot].buffer, data.len());
            let mut part = core.buffers.exclude(range);
            drop(core);
            // Not under the lock: it may be long.
            part.bytes_mut().copy_from_slice(bytes);
            self.lock().buffers.end_exclusive(part);
        }
        let mut core = self.lock();
        let mut follows = Consequences::of_caller(may_read);
        for &Piece { slot, offset, ref data } in pieces {
            let range = BufferRange::first(core.slots[slot].buffer, data.len());
            let request = match data {
                RequestData::Read(_) => Request::Read { offset, data: range },
                RequestData::Write(_) => {
                    let reserved = RequestId(u64::MAX - slot as u64);
                    core.changing.retain(|(id, _)| *id != reserved);
                    Request::Write { offset, data: range }
                }
            };
            self.open(&mut core, slot, request, &mut follows);
        }
        self.conclude(core, follows)
    }

    /// Hands a request to the engine; [`SharedDriver::conclude`] must follow.
    fn open(
        &self,
        core: &mut DriverState,
        slot: usize,
        request: Request,
        follows: &mut Consequences,
    ) {
        core.next_id += 1;
        let id = RequestId(core.next_id);
        if core.is_broken {
            core.slots[slot].result = Some(Err(ErrorNumber::EIO));
            return;
        }
        core.slots[slot].request = Some(id);
        if let Some(range) = changes(&request) {
            core.changing.push((id, range));
        }
        self.handle(core, Input::Request { id, request }, follows);
    }

    /// Waits for the end of a slot's request, copies what was read, and gives the slot up.
    fn end(&self, slot: usize, piece: Option<RequestData<'_>>) -> VolumeResult {
        let mut core = self.lock();
        let result = loop {
            if let Some(result) = core.slots[slot].result.take() {
                break result;
            }
            core = self.ended[slot].wait(core).unwrap_or_else(PoisonError::into_inner);
        };
        if let (Some(RequestData::Read(bytes)), Ok(())) = (piece, result) {
            let data = BufferRange::first(core.slots[slot].buffer, bytes.len() as u32);
            let part = core.buffers.share(data);
            drop(core);
            // Not under the lock: it may be long.
            bytes.copy_from_slice(part.bytes());
            core = self.lock();
            core.buffers.end_shared(part);
        }
        core.idle.push(slot);
        self.room.notify_all();
        result
    }

    fn wait_for_room<'a>(&self, core: MutexGuard<'a, DriverState>) -> MutexGuard<'a, DriverState> {
        self.room.wait(core).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The range that a request changes.
fn changes(request: &Request) -> Option<Range<u64>> {
    match *request {
        Request::Write { offset, data } => Some(offset..offset + u64::from(data.len)),
        Request::Discard { offset, len } | Request::WriteZeroes { offset, len } => {
            Some(offset..offset + len)
        }
        Request::Read { .. } | Request::Flush | Request::Prefetch { .. } => None,
    }
}

/// Whether an open request changes a part of `range`.
fn meets(core: &DriverState, range: &Range<u64>) -> bool {
    core.changing.iter().any(|(_, of)| of.start < range.end && range.start < of.end)
}
