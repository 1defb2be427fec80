//! Page faults of user code, counted by the kernel. A fault is an event that is counted and never
//! looked at, so none is lost.

use super::sources::online;
use std::collections::HashSet;
use sys::perf::{self, Attributes, EventSource};

/// The open counters.
#[derive(Debug, Default)]
pub struct FaultCounter(Vec<perf::Event>);

impl FaultCounter {
    /// Counts page faults of these threads and their later children, or of all processors.
    ///
    /// # Errors
    /// When the kernel does not count for any of them.
    pub fn open(threads: Option<&HashSet<u32>>) -> sys::Result<Self> {
        let mut attributes = Attributes::new(EventSource::PageFaults);
        attributes.user_only = true;
        attributes.inherit = threads.is_some();
        let opened: Vec<sys::Result<perf::Event>> = match threads {
            Some(threads) => {
                let open = |thread: &u32| perf::Event::on_thread(&attributes, *thread);
                threads.iter().map(open).collect()
            }
            None => {
                let open = |processor| perf::Event::on_processor(&attributes, processor);
                online().into_iter().map(open).collect()
            }
        };
        let mut counter = Self::default();
        let all_failed = opened.iter().all(Result::is_err);
        for event in opened {
            // One thread may have ended since it was seen; all of them have not.
            match event.and_then(|event| event.enable().map(|()| event)) {
                Ok(event) => counter.0.push(event),
                Err(error) if all_failed => return Err(error),
                Err(_) => {}
            }
        }
        Ok(counter)
    }

    /// Page faults so far.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|event| event.count().unwrap_or(0)).sum()
    }
}
