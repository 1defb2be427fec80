//! A driver of an engine that does each operation at once, in the order in which they were given
//! out: for tests of what an engine decides. What overlaps is not tested by it.

use model::engine::{
    BufferId, BufferRange, Buffers, Device, Engine, ErrorNumber, Event, Input, IoResult, Operation,
    Output, Request, RequestId,
};

use crate::{SimulatedBuffers, SimulatedDevice};

/// A request that the engine does not complete ends with this number.
const HANGS: ErrorNumber = ErrorNumber(110);

/// An engine with its devices.
#[derive(Debug)]
pub struct SimulatedDriver<E> {
    /// The engine.
    pub engine: E,
    /// Its buffers.
    pub buffers: SimulatedBuffers,
    /// The volume.
    pub backing: SimulatedDevice,
    /// The medium of the cache.
    pub medium: SimulatedDevice,
    /// The journal.
    pub journal: SimulatedDevice,
    /// What was reported.
    pub events: Vec<Event>,
    next: u64,
}

impl<E: Engine> SimulatedDriver<E> {
    /// Drives an engine that took its buffers from these, and lets it start.
    pub fn new(
        engine: E,
        buffers: SimulatedBuffers,
        [backing, medium, journal]: [SimulatedDevice; 3],
    ) -> Self {
        let mut driver =
            Self { engine, buffers, backing, medium, journal, events: Vec::new(), next: 0 };
        driver.input(Input::Tick { now_ns: 0 });
        driver
    }

    /// Reads into a new vector.
    ///
    /// # Errors
    /// What the engine says.
    pub fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, ErrorNumber> {
        let data = BufferRange::first(self.buffer(len), len);
        let result = self.request(Request::Read { offset, data });
        let read = self.buffers.bytes(data).to_vec();
        self.buffers.give_back(data.buffer);
        result.map(|()| read)
    }

    /// Writes.
    ///
    /// # Errors
    /// What the engine says.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> IoResult {
        let data = BufferRange::first(self.buffer(bytes.len() as u32), bytes.len() as u32);
        self.buffers.bytes_mut(data).copy_from_slice(bytes);
        let result = self.request(Request::Write { offset, data });
        self.buffers.give_back(data.buffer);
        result
    }

    /// Any request.
    ///
    /// # Errors
    /// What the engine says.
    pub fn request(&mut self, request: Request) -> IoResult {
        self.next += 1;
        let id = RequestId(self.next);
        let ended = self.input(Input::Request { id, request });
        ended.into_iter().find(|(of, _)| *of == id).map_or(Err(HANGS), |(_, result)| result)
    }

    /// An input, and all that follows from it; the requests that ended.
    pub fn input(&mut self, input: Input) -> Vec<(RequestId, IoResult)> {
        let mut inputs = std::collections::VecDeque::from([input]);
        let mut ended = Vec::new();
        let mut outputs = Vec::new();
        while let Some(current) = inputs.pop_front() {
            self.engine.handle(current, &mut self.buffers, &mut outputs);
            for output in outputs.drain(..) {
                match output {
                    Output::Operate { id, device, operation } => {
                        let result = self.perform(device, operation);
                        inputs.push_back(Input::Completion { id, result });
                    }
                    Output::Complete { id, result } => ended.push((id, result)),
                    Output::Event(event) => self.events.push(event),
                }
            }
        }
        ended
    }

    fn perform(&mut self, device: Device, operation: Operation) -> IoResult {
        let on = match device {
            Device::Backing => &mut self.backing,
            Device::Cache => &mut self.medium,
            Device::Journal => &mut self.journal,
        };
        on.perform(operation, &mut self.buffers)
    }

    fn buffer(&mut self, len: u32) -> BufferId {
        if let Some(buffer) = self.buffers.take(len) {
            return buffer;
        }
        self.buffers.add(len, 1);
        self.buffers.take(len).unwrap_or(BufferId(0))
    }
}
