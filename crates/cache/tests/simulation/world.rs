//! A cache with simulated devices, and a model that knows what each byte may be.
//!
//! Operations are done and reported in an order that the seed draws, so that reads, writes and
//! flushes overlap as they do in life. Each sector that is written gets a version of its own; a
//! read is right if each sector has a version that the volume had at some time between request and
//! completion. After a crash the volume is what its disk holds, and that must have each write that
//! was answered: after a power cut, each that a flush was answered behind.

use std::collections::{BTreeMap, BTreeSet};

use cache::{Cache, ChangeProof, Cold, Counters, Geometry, Limits, Rules, Setup, Witness};
use model::engine::{
    BufferId, BufferRange, Buffers, CacheOff, Device, Engine, ErrorNumber, Event, Input, IoResult,
    Operation, OperationId, Output, Request, RequestId,
};
use testkit::{Random, SimulatedBuffers, SimulatedDevice};

const SECTOR: u64 = 512;
/// Two blocks, so that frames are cached in part.
pub const FRAME: u32 = 8192;
const SEGMENT: u32 = 64 << 10;
const SEGMENTS: u32 = 6;
pub const VOLUME: u64 = 384 << 10;
const REQUESTS_MAX: usize = 10;
/// The largest request: more than a fill takes.
const REQUEST_SECTORS_MAX: u64 = 80;
const SECOND_NS: u64 = 1_000_000_000;
/// The superblock of the simulated volume.
const WITNESS_SECTORS: u64 = 2;

/// An operation that an engine gave out.
struct Running {
    id: OperationId,
    device: Device,
    operation: Operation,
    /// How it ended, once it was done.
    result: Option<IoResult>,
}

/// A request that was not answered yet.
struct Asked {
    request: Request,
    buffer: Option<BufferId>,
    first: u64,
    sectors: u64,
    /// For a read: the versions that each sector may have.
    allowed: Vec<Vec<u64>>,
    /// For a read: versions from this one on were written since. For a write: its version.
    version: u64,
    /// For a write: its place in the order of all. It says which of two is older.
    step: u64,
    /// For a flush: the last write to each sector that was answered before it.
    answered: Vec<u64>,
}

impl Asked {
    fn new(request: Request, first: u64, sectors: u64) -> Self {
        Self {
            request,
            buffer: None,
            first,
            sectors,
            allowed: Vec::new(),
            version: 0,
            step: 0,
            answered: Vec::new(),
        }
    }
}

/// Which errors a request may end with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excuses {
    /// Those of the backing device.
    pub backing: bool,
    /// The journal failed, and could not be made useless: writes fail.
    pub journal: bool,
}

pub struct World {
    pub random: Random,
    pub rules: Rules,
    pub engine: Option<Cache>,
    pub backing: SimulatedDevice,
    pub medium: SimulatedDevice,
    pub journal: SimulatedDevice,
    buffers: SimulatedBuffers,
    running: Vec<Running>,
    asked: BTreeMap<u64, Asked>,
    /// The versions that each sector may have now.
    allowed: Vec<Vec<u64>>,
    /// The versions that a power cut may leave, with the steps that wrote them.
    history: Vec<Vec<(u64, u64)>>,
    /// The step of the last write that was answered.
    answered: Vec<u64>,
    next_step: u64,
    next_version: u64,
    next_request: u64,
    attaches: u64,
    pub now_ns: u64,
    /// The medium answers nothing.
    pub is_slow: bool,
    /// Clients do not flush.
    pub never_flushes: bool,
    /// Clients leave alone what identifies the volume, for which the cache itself flushes.
    pub spares_witness: bool,
    /// When the superblock shows a write elsewhere.
    pub proof: ChangeProof,
    /// The power is cut at this write or flush of any device.
    pub cut_at: Option<u64>,
    pub done: u64,
    pub is_cut: bool,
    is_detached: Option<bool>,
    pub excuses: Excuses,
    /// The cache says that its medium is another one.
    pub is_foreign: bool,
    /// No device has a fault but that the power is cut: then the medium is never another one, and
    /// a journal that named a running cache is never damaged.
    pub is_sound: bool,
    /// The engine that ended last was running.
    was_running: bool,
    /// What is wrong, seen between two inputs.
    wrong: Option<String>,
    pub total: Counters,
    pub warm_frames: u64,
    pub colds: Vec<Cold>,
}

pub fn geometry() -> Geometry {
    Geometry {
        volume_bytes: VOLUME,
        frame_bytes: FRAME,
        segment_bytes: SEGMENT,
        segments: SEGMENTS,
        region_bytes: 16 << 10,
    }
}

fn limits() -> Limits {
    Limits {
        budget_bytes_per_day: 1 << 40,
        run_frames_max: 24,
        base_interval_ns: 2 * SECOND_NS,
        frames_max: 60,
        io_buffers: 6,
        sampled_frames: 2,
        ..Limits::fit(&geometry())
    }
}

/// What a sector holds in a version; zeros in the first one.
fn content(sector: u64, version: u64) -> [u8; 512] {
    let mut bytes = [version as u8; 512];
    if version == 0 {
        return bytes;
    }
    if version.is_multiple_of(3) {
        Random(version << 20 | sector).fill(&mut bytes);
    }
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..16].copy_from_slice(&sector.to_le_bytes());
    bytes
}

/// The version of a sector; `None` if it is not what any version holds.
fn version(sector: u64, bytes: &[u8]) -> Option<u64> {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[..8]);
    let version = u64::from_le_bytes(number);
    (content(sector, version) == bytes).then_some(version)
}

impl World {
    pub fn new(seed: u64, rules: Rules) -> Self {
        let mut buffers = SimulatedBuffers::default();
        for (bytes, count) in Cache::buffers(&geometry(), &limits()) {
            buffers.add(bytes, count);
        }
        buffers.add((REQUEST_SECTORS_MAX * SECTOR) as u32, REQUESTS_MAX as u32);
        let sectors = (VOLUME / SECTOR) as usize;
        Self {
            random: Random(seed),
            rules,
            engine: None,
            backing: SimulatedDevice::new(VOLUME as usize, false),
            medium: SimulatedDevice::new(((SEGMENTS + 1) * SEGMENT) as usize, true),
            journal: SimulatedDevice::new(cache::journal_bytes(&geometry()) as usize, false),
            buffers,
            running: Vec::new(),
            asked: BTreeMap::new(),
            allowed: vec![vec![0]; sectors],
            history: vec![vec![(0, 0)]; sectors],
            answered: vec![0; sectors],
            next_step: 1,
            next_version: 1,
            next_request: 1,
            attaches: 0,
            now_ns: 0,
            is_slow: false,
            never_flushes: false,
            spares_witness: false,
            proof: ChangeProof::Always,
            cut_at: None,
            done: 0,
            is_cut: false,
            is_detached: None,
            excuses: Excuses::default(),
            is_foreign: false,
            is_sound: false,
            was_running: false,
            wrong: None,
            total: Counters::default(),
            warm_frames: 0,
            colds: Vec::new(),
        }
    }

    fn superblock(&self) -> Witness {
        let bytes = self.backing.contents()[..(WITNESS_SECTORS * SECTOR) as usize].to_vec();
        Witness { offset: 0, bytes }
    }

    pub fn attach(&mut self) {
        self.attaches += 1;
        let is_foreign = std::mem::take(&mut self.is_foreign);
        if is_foreign {
            // The person says: use this one, with a new journal.
            let bytes = self.journal.contents().len();
            self.journal.replace(vec![0; bytes]);
        }
        let mut salt = [0; 32];
        let mut new_cache_id = [0; 16];
        self.random.fill(&mut salt);
        self.random.fill(&mut new_cache_id);
        let setup = Setup {
            geometry: geometry(),
            volume_id: [7; 16],
            key: [9; 32],
            salt,
            new_cache_id,
            witnesses: vec![self.superblock()],
            proof: self.proof,
            may_format: false,
            limits: limits(),
        };
        self.buffers.reset();
        let journal = self.journal.contents();
        // The driver names a medium that it makes, or says that what it made may be written over.
        let is_made = self.medium.contents()[..4096].iter().all(|byte| *byte == 0);
        let is_named = is_made && self.random.below(2) == 0;
        if is_named {
            let _ = self.medium.write(0, &setup.medium_header(&journal));
            let _ = self.medium.flush();
        }
        let may_format = is_made || is_foreign || self.random.below(4) == 0;
        let setup = Setup { may_format: may_format && !is_named, ..setup };
        let mut engine = Cache::with_rules(&setup, &journal, &mut self.buffers, self.rules)
            .expect("sizes that fit");
        if salt[0].is_multiple_of(2) {
            engine.set_medium_read_bytes(SECTOR as u32);
        }
        if let Some(cold) = engine.start().cold() {
            self.colds.push(cold);
            let is_changed = matches!(cold, Cold::Changed(_));
            if self.is_sound && self.was_running && !is_changed {
                self.wrong = Some(format!("cold after a cut: {cold}"));
            }
        }
        self.is_detached = None;
        self.engine = Some(engine);
        self.input(Input::Tick { now_ns: self.now_ns });
    }

    /// Gives an input to the engine and takes what it wants done.
    fn input(&mut self, input: Input) -> Vec<(RequestId, IoResult)> {
        let mut outputs = Vec::new();
        let Some(engine) = &mut self.engine else { return Vec::new() };
        engine.handle(input, &mut self.buffers, &mut outputs);
        let mut ended = Vec::new();
        for output in outputs {
            match output {
                Output::Operate { id, device, operation } => {
                    if let Some(range) = data_of(operation) {
                        self.buffers.begin(range);
                    }
                    self.running.push(Running { id, device, operation, result: None });
                }
                Output::Complete { id, result } => ended.push((id, result)),
                Output::Event(Event::Detached { is_proved }) => self.is_detached = Some(is_proved),
                Output::Event(Event::Recovered { frames, .. }) => self.warm_frames += frames,
                Output::Event(Event::CacheOff { why: CacheOff::AnotherMedium }) => {
                    self.is_foreign = true;
                    if self.is_sound {
                        self.wrong = Some("its own medium is taken for another one".to_owned());
                    }
                }
                Output::Event(Event::VolumeChanged { offset }) => {
                    self.wrong = Some(format!("the frame at {offset} is stale"));
                }
                Output::Event(_) => {}
            }
        }
        ended
    }

    fn send(&mut self, input: Input) -> Result<(), String> {
        for (id, result) in self.input(input) {
            self.ended(id, result)?;
        }
        self.wrong.take().map_or(Ok(()), Err)
    }

    pub fn ask_read(&mut self, first: u64, sectors: u64) -> Result<(), String> {
        let Some(buffer) = self.buffers.take((REQUEST_SECTORS_MAX * SECTOR) as u32) else {
            return Ok(());
        };
        let data = BufferRange::first(buffer, (sectors * SECTOR) as u32);
        let allowed = self.allowed[first as usize..(first + sectors) as usize].to_vec();
        let request = Request::Read { offset: first * SECTOR, data };
        let version = self.next_version;
        let asked = Asked::new(request, first, sectors);
        self.ask(Asked { buffer: Some(buffer), allowed, version, ..asked })
    }

    fn is_written(&self, first: u64, sectors: u64) -> bool {
        self.asked.values().any(|asked| {
            let writes = matches!(
                asked.request,
                Request::Write { .. } | Request::Discard { .. } | Request::WriteZeroes { .. }
            );
            writes && asked.first < first + sectors && first < asked.first + asked.sectors
        })
    }

    pub fn ask_write(&mut self, first: u64, sectors: u64) -> Result<(), String> {
        if self.is_written(first, sectors) {
            return Ok(());
        }
        let Some(buffer) = self.buffers.take((REQUEST_SECTORS_MAX * SECTOR) as u32) else {
            return Ok(());
        };
        let (step, version) = self.next_write();
        let data = BufferRange::first(buffer, (sectors * SECTOR) as u32);
        for sector in first..first + sectors {
            let at = ((sector - first) * SECTOR) as usize;
            self.buffers.bytes_mut(data)[at..at + SECTOR as usize]
                .copy_from_slice(&content(sector, version));
            self.allowed[sector as usize].push(version);
            self.history[sector as usize].push((step, version));
        }
        let request = Request::Write { offset: first * SECTOR, data };
        let asked = Asked::new(request, first, sectors);
        self.ask(Asked { buffer: Some(buffer), version, step, ..asked })
    }

    fn next_write(&mut self) -> (u64, u64) {
        self.next_step += 1;
        self.next_version += 1;
        (self.next_step - 1, self.next_version - 1)
    }

    /// Asks for zeros, or gives up the content: then each sector may have what it had, zeros or a
    /// version of junk.
    fn ask_empty(&mut self, first: u64, sectors: u64, is_discard: bool) -> Result<(), String> {
        if self.is_written(first, sectors) {
            return Ok(());
        }
        let (step, junk) = self.next_write();
        for sector in first..first + sectors {
            let history = &mut self.history[sector as usize];
            if is_discard {
                let older: BTreeSet<u64> = history.iter().map(|(_, version)| *version).collect();
                history.extend(older.into_iter().map(|version| (step, version)));
                history.push((step, junk));
                self.allowed[sector as usize].push(junk);
            }
            history.push((step, 0));
            self.allowed[sector as usize].push(0);
            for asked in self.asked.values_mut().filter(|asked| !asked.allowed.is_empty()) {
                if (asked.first..asked.first + asked.sectors).contains(&sector) {
                    asked.allowed[(sector - asked.first) as usize].push(0);
                }
            }
        }
        let (offset, len) = (first * SECTOR, sectors * SECTOR);
        let request = if is_discard {
            Request::Discard { offset, len }
        } else {
            Request::WriteZeroes { offset, len }
        };
        let version = if is_discard { junk } else { 0 };
        self.ask(Asked { version, step, ..Asked::new(request, first, sectors) })
    }

    /// Makes all that was written durable.
    pub fn flush(&mut self) -> Result<(), String> {
        self.drain()?;
        self.ask_other(Request::Flush)?;
        self.drain()
    }

    fn ask_other(&mut self, request: Request) -> Result<(), String> {
        let answered = if request == Request::Flush { self.answered.clone() } else { Vec::new() };
        self.ask(Asked { answered, ..Asked::new(request, 0, 0) })
    }

    fn ask(&mut self, asked: Asked) -> Result<(), String> {
        let id = self.next_request;
        self.next_request += 1;
        let request = asked.request;
        self.asked.insert(id, asked);
        self.send(Input::Request { id: RequestId(id), request })
    }

    /// Checks an answer.
    fn ended(&mut self, id: RequestId, result: IoResult) -> Result<(), String> {
        let asked = self.asked.remove(&id.0).ok_or("a request was answered twice")?;
        if let Some(buffer) = asked.buffer {
            self.buffers.give_back(buffer);
        }
        if let Err(number) = result {
            return self.excuse(&asked, number);
        }
        let sectors = asked.first..asked.first + asked.sectors;
        match asked.request {
            Request::Read { data, .. } => {
                let bytes = self.buffers.bytes(data);
                for (sector, held) in sectors.zip(bytes.chunks_exact(SECTOR as usize)) {
                    let allowed = &asked.allowed[(sector - asked.first) as usize];
                    let found = version(sector, held);
                    let is_right = found.is_some_and(|found| {
                        allowed.contains(&found)
                            || found >= asked.version && found < self.next_version
                    });
                    if !is_right {
                        return Err(format!(
                            "sector {sector} is version {found:?}, not {allowed:?}"
                        ));
                    }
                }
            }
            Request::Write { .. } | Request::Discard { .. } | Request::WriteZeroes { .. } => {
                for sector in sectors {
                    self.answered[sector as usize] = asked.step;
                    if !matches!(asked.request, Request::Discard { .. }) {
                        self.allowed[sector as usize] = vec![asked.version];
                    }
                }
            }
            Request::Flush => {
                for (history, answered) in self.history.iter_mut().zip(&asked.answered) {
                    history.retain(|(step, _)| step >= answered);
                }
            }
            Request::Prefetch { .. } => {}
        }
        Ok(())
    }

    /// Whether a request may fail so.
    fn excuse(&self, asked: &Asked, number: ErrorNumber) -> Result<(), String> {
        let writes = asked.step > 0;
        let is_of_backing = self.excuses.backing && [5, 28].contains(&number.0);
        let is_of_journal = self.excuses.journal && writes && number == ErrorNumber::EIO;
        if is_of_backing || is_of_journal {
            return Ok(());
        }
        Err(format!("{:?} failed: {number}", asked.request))
    }

    /// Does a running operation.
    fn perform(&mut self, at: usize) {
        let Running { device, operation, .. } = self.running[at];
        let junk = self.junk_of(operation);
        let medium = match device {
            Device::Backing => &mut self.backing,
            Device::Cache => &mut self.medium,
            Device::Journal => &mut self.journal,
        };
        let result = match operation {
            Operation::Discard { .. } => {
                junk.iter().try_for_each(|(sector, bytes)| medium.write(sector * SECTOR, bytes))
            }
            operation => medium.perform(operation, &mut self.buffers),
        };
        if !matches!(operation, Operation::Read { .. }) {
            self.done += 1;
            self.is_cut |= self.cut_at == Some(self.done);
        }
        self.running[at].result = Some(result);
    }

    /// What a discard leaves: of each sector what it had, zeros, or junk.
    fn junk_of(&mut self, operation: Operation) -> Vec<(u64, [u8; 512])> {
        let Operation::Discard { offset, len } = operation else { return Vec::new() };
        let request = Request::Discard { offset, len };
        let asked = self.asked.values().find(|asked| asked.request == request);
        let version = asked.map_or(0, |asked| asked.version);
        let mut junk = Vec::new();
        for sector in offset / SECTOR..(offset + len) / SECTOR {
            match self.random.below(3) {
                0 => {}
                1 => junk.push((sector, content(sector, 0))),
                _ => junk.push((sector, content(sector, version))),
            }
        }
        junk
    }

    fn report(&mut self, at: usize, result: IoResult) -> Result<(), String> {
        let Running { id, operation, .. } = self.running.swap_remove(at);
        if let Some(range) = data_of(operation) {
            self.buffers.end(range);
        }
        self.send(Input::Completion { id, result })
    }

    /// Does or reports one operation, by draw.
    fn progress(&mut self) -> Result<bool, String> {
        let can = |running: &Running, is_slow: bool| !is_slow || running.device != Device::Cache;
        let able: Vec<usize> =
            (0..self.running.len()).filter(|at| can(&self.running[*at], self.is_slow)).collect();
        if able.is_empty() {
            return Ok(false);
        }
        let at = able[self.random.below(able.len() as u64) as usize];
        match self.running[at].result {
            None => self.perform(at),
            Some(result) => self.report(at, result)?,
        }
        Ok(true)
    }

    pub fn tick(&mut self, ns: u64) -> Result<(), String> {
        self.now_ns += ns;
        self.send(Input::Tick { now_ns: self.now_ns })
    }

    /// Sends a request that the seed draws; most go to a third of the volume.
    fn ask_any(&mut self) -> Result<(), String> {
        let all = VOLUME / SECTOR;
        let span = if self.random.below(4) > 0 { all / 3 } else { all };
        let sectors = match self.random.below(8) {
            0 => 1 + self.random.below(REQUEST_SECTORS_MAX),
            1..=3 => 8,
            _ => 1 + self.random.below(12),
        };
        let mut first = self.random.below(span);
        if self.random.below(3) == 0 {
            first = first / 8 * 8;
        }
        if self.spares_witness {
            first = first.max(WITNESS_SECTORS);
        }
        let sectors = sectors.min(all - first);
        match self.random.below(100) {
            0..=59 => self.ask_read(first, sectors),
            60..=82 => self.ask_write(first, sectors),
            83 => self.ask_empty(first, sectors, false),
            84 => self.ask_empty(first, sectors, true),
            85..=92 => self.ask_other(Request::Flush),
            _ => {
                self.ask_other(Request::Prefetch { offset: first * SECTOR, len: sectors * SECTOR })
            }
        }
    }

    /// One step that the seed draws.
    pub fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..=29 if self.asked.len() < REQUESTS_MAX => self.ask_any(),
            30..=32 => {
                let ns = self.random.below(4 * SECOND_NS);
                self.tick(ns)
            }
            _ => self.progress().map(drop),
        }
    }

    /// Writes the superblock again and again, so that the records of the journal run out.
    pub fn storm(&mut self) -> Result<(), String> {
        for _ in 0..260 {
            let sector = self.random.below(WITNESS_SECTORS);
            self.ask_write(sector, 1)?;
            for _ in 0..14 {
                self.progress()?;
            }
            if self.random.below(24) == 0 {
                self.step()?;
            }
        }
        Ok(())
    }

    /// Steps, until the power is cut.
    pub fn steps(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            if self.is_cut {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// Goes on without new requests until nothing is under way.
    pub fn drain(&mut self) -> Result<(), String> {
        let mut waited = 0;
        while !self.is_cut {
            if self.progress()? {
                continue;
            }
            if self.asked.is_empty() && (self.running.is_empty() || self.is_slow) {
                return Ok(());
            }
            waited += 1;
            if waited > 40 {
                return Err(format!("{} requests hang", self.asked.len()));
            }
            self.tick(3 * SECOND_NS)?;
        }
        Ok(())
    }

    /// Reads the whole volume, in an order that is no run.
    pub fn verify(&mut self) -> Result<(), String> {
        self.drain()?;
        let frame = u64::from(FRAME) / SECTOR;
        let mut frames: Vec<u64> = (0..VOLUME / u64::from(FRAME)).collect();
        self.random.shuffle(&mut frames);
        for first in frames {
            if self.is_cut {
                break;
            }
            self.ask_read(first * frame, frame)?;
            if self.asked.len() >= REQUESTS_MAX {
                self.drain()?;
            }
        }
        self.drain()
    }

    /// Whether the cache serves: what is read again and again is a hit at the end.
    pub fn check_serves(&mut self) -> Result<(), String> {
        self.drain()?;
        let frame = u64::from(FRAME) / SECTOR;
        let hits = |world: &Self| world.engine.as_ref().map_or(0, |engine| engine.counters().hits);
        let before = hits(self);
        for _ in 0..8 {
            self.tick(SECOND_NS)?;
            let first = self.random.below(VOLUME / u64::from(FRAME)) * frame;
            for _ in 0..3 {
                self.ask_read(first, frame)?;
                self.drain()?;
            }
            if self.is_cut || hits(self) > before {
                return Ok(());
            }
        }
        Err("the cache serves nothing".to_owned())
    }

    /// The engine dies; with `is_power_cut` everything does. Operations under way were done or not.
    /// What was answered must still be there.
    pub fn crash(&mut self, is_power_cut: bool) -> Result<(), String> {
        for at in 0..self.running.len() {
            if self.running[at].result.is_none() && self.random.below(2) == 0 {
                self.perform(at);
            }
        }
        self.forget();
        if is_power_cut {
            let seed = self.random.next_u64();
            for (number, device) in
                [&mut self.backing, &mut self.medium, &mut self.journal].into_iter().enumerate()
            {
                device.cut(seed + number as u64);
            }
        }
        self.check_kept(is_power_cut)
    }

    /// Whether the disk has all that was answered; from now on it is what it holds.
    fn check_kept(&mut self, is_power_cut: bool) -> Result<(), String> {
        let contents = self.backing.contents();
        for (sector, held) in contents.chunks_exact(SECTOR as usize).enumerate() {
            let found = version(sector as u64, held).expect("the disk holds whole sectors");
            let answered = if is_power_cut { 0 } else { self.answered[sector] };
            let history = &mut self.history[sector];
            let is_kept = history.iter().any(|(step, kept)| *kept == found && *step >= answered);
            if !is_kept {
                return Err(format!("sector {sector} lost a write: {found} of {history:?}"));
            }
            if is_power_cut {
                history.clear();
            }
            // After a kill the disk may still lose what was not flushed.
            history.push((self.next_step, found));
            self.answered[sector] = self.next_step;
            self.allowed[sector] = vec![found];
        }
        self.next_step += 1;
        Ok(())
    }

    /// Puts another medium at the place of this one, which it gives. What is under way fails.
    pub fn swap_medium(&mut self, other: SimulatedDevice) -> SimulatedDevice {
        for running in self.running.iter_mut().filter(|running| running.device == Device::Cache) {
            running.result.get_or_insert(Err(ErrorNumber(19)));
        }
        std::mem::replace(&mut self.medium, other)
    }

    fn forget(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.was_running = engine.is_running();
            let counters = engine.counters();
            self.total.hits += counters.hits;
            self.total.filled += counters.filled;
            self.total.moved += counters.moved;
            self.total.evicted += counters.evicted;
            self.total.raced += counters.raced;
            self.total.bases += counters.bases;
            self.total.medium_wrong += counters.medium_wrong;
            self.total.bailed_out += counters.bailed_out;
        }
        self.running.clear();
        self.asked.clear();
        self.buffers.reset();
        self.is_cut = false;
        self.cut_at = None;
        self.is_slow = false;
    }

    /// Nothing but what the disk holds is right now.
    pub fn believe_disk(&mut self) {
        let contents = self.backing.contents();
        for (sector, held) in contents.chunks_exact(SECTOR as usize).enumerate() {
            let found = version(sector as u64, held).expect("the disk holds whole sectors");
            self.allowed[sector] = vec![found];
            self.history[sector] = vec![(self.next_step, found)];
            self.answered[sector] = self.next_step;
        }
        self.next_step += 1;
    }

    /// Detaches; whether the cache is proved fresh.
    pub fn detach(&mut self) -> Result<bool, String> {
        let is_followed = self.proof == ChangeProof::Always;
        if !is_followed || self.random.below(2) == 0 {
            self.drain()?;
        }
        let superblock = self.superblock();
        if let Some(engine) = self.engine.as_mut().filter(|_| !is_followed) {
            engine.take_last_witnesses(vec![superblock]);
        }
        self.send(Input::Detach)?;
        self.drain()?;
        for _ in 0..40 {
            if self.is_slow && self.is_detached.is_none() {
                self.tick(3 * SECOND_NS)?;
                self.drain()?;
            }
        }
        if self.is_cut {
            return Ok(false);
        }
        let Some(is_proved) = self.is_detached else {
            return Err("the detach hangs".to_owned());
        };
        self.forget();
        Ok(is_proved)
    }

    /// The volume is written by something else while it is detached: its superblock changes.
    pub fn write_elsewhere(&mut self) {
        let all = VOLUME / SECTOR;
        let mut sectors = vec![self.random.below(WITNESS_SECTORS)];
        sectors.extend((0..200).map(|_| self.random.below(all)));
        for sector in sectors {
            let version = self.next_version;
            self.next_version += 1;
            let _ = self.backing.write(sector * SECTOR, &content(sector, version));
        }
        let _ = self.backing.flush();
        self.believe_disk();
    }

    /// The medium is there again.
    pub fn return_medium(&mut self) -> Result<(), String> {
        self.medium.faults.is_gone = false;
        self.send(Input::CacheReturned)
    }
}

/// The buffer that an operation names.
fn data_of(operation: Operation) -> Option<BufferRange> {
    match operation {
        Operation::Read { data, .. } | Operation::Write { data, .. } => Some(data),
        _ => None,
    }
}
