//! Would more memory, a stick or an SSD have helped here, and by how many seconds?
//!
//! 1. [`observe`] reduces a recording to [`Observation`]: blocks of time, each with its waits and
//!    with the distances of the pages that came back.
//! 2. `memory` says what each amount of memory would have spared of the waits of all blocks, and
//!    `interval` how sure that is.
//!    `less` says the same of less memory: what would have been lost.
//! 3. `flash` says what a cache on a stick or an SSD would have spared of the disk time.
//! 4. `trace` judges the traces of other tools by their reads alone: [`observe_trace`].
//! 5. `answer` makes sentences of it.
//!
//! Pure, as all of this crate. docs/advise.md says what is measured in it and what is concluded.

mod answer;
mod blocks;
mod flash;
mod interval;
mod less;
mod memory;
mod trace;
mod users;

pub use blocks::{Observation, observe};
pub use flash::{BlockAccess, BlockReads, CacheDevice};
pub use trace::{DiskTime, TraceReads, observe_trace};

use model::advice::{Advice, AdviceState, SCHEMA};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The sizes that are judged if none is named; those that the distances do not reach are left out.
const USUAL_SIZES: [i64; 4] = [1 << 30, 2 << 30, 4 << 30, 8 << 30];

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdviceRequest {
    /// How much more memory, or less; empty: the usual sizes.
    pub more_bytes: Vec<i64>,
    /// Sizes of a cache on a stick or an SSD; empty: the usual sizes.
    pub flash_bytes: Vec<u64>,
    /// The devices that such a cache could be on.
    pub devices: Vec<CacheDevice>,
}

/// Why recordings cannot be judged together: they are of two machines, or of the same time.
#[must_use]
pub fn clash(observations: &[Observation]) -> Option<String> {
    blocks::clash(observations)
}

/// Judges what was observed, one recording or several of the same machine.
#[must_use]
pub fn advise(observations: &[Observation], request: &AdviceRequest) -> Advice {
    let pooled = blocks::pooled(observations);
    let (memory, trace) = match trace::judge(observations, &pooled, request) {
        Some((memory, trace)) => (memory, Some(trace)),
        None => (memory::judge(&pooled, request), None),
    };
    let flash = flash::judge(observations, &request.devices, &request.flash_bytes);
    let states = flash.iter().map(|one| one.state).chain([memory.state]);
    let helps = states.into_iter().any(|state| state == AdviceState::Helps);
    let (processes, groups) = users::first(&pooled, &memory);
    let mut advice = Advice {
        schema: SCHEMA.to_owned(),
        subject: pooled.subject.clone(),
        state: if helps { AdviceState::Helps } else { memory.state },
        span_ns: pooled.span_ns(),
        disk_ns: pooled.disk_ns(),
        threads_waited_ns: pooled.waited_ns(),
        blocks: pooled.blocks.len() as u64,
        block_ns: pooled.blocks.iter().map(|block| block.length_ns).max().unwrap_or(0),
        per_day_ns: memory::per_day_ns(&memory, pooled.span_ns())
            .filter(|_| trace.as_ref().is_none_or(trace::is_of_real_time)),
        notes: answer::notes(&pooled, observations, &flash, trace.as_ref()),
        flash,
        processes,
        groups,
        memory,
        trace,
        ..Advice::default()
    };
    advice.answer = answer::sentence(&advice);
    advice
}

#[cfg(test)]
mod tests;
