//! Would more memory, a stick or an SSD have helped here, and by how many seconds?
//!
//! 1. [`observe`] reduces a recording to [`Observation`]: blocks of time, each with its waits and
//!    with the distances of the pages that came back.
//! 2. `memory` says what each amount of memory would have spared of the waits of all blocks, and
//!    `interval` how sure that is.
//! 3. `answer` makes sentences of it.
//!
//! Pure, as all of this crate. docs/advise.md says what is measured in it and what is concluded.

mod answer;
mod blocks;
mod interval;
mod memory;
mod users;

pub use blocks::{Observation, observe};

use model::advice::{Advice, SCHEMA};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The sizes that are judged if none is named; those that the distances do not reach are left out.
const USUAL_SIZES: [i64; 4] = [1 << 30, 2 << 30, 4 << 30, 8 << 30];

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdviceRequest {
    /// How much more memory, or less; empty: the usual sizes.
    pub more_bytes: Vec<i64>,
}

/// Judges what was observed, one recording or several of the same machine.
#[must_use]
pub fn advise(observations: &[Observation], request: &AdviceRequest) -> Advice {
    let pooled = blocks::pooled(observations);
    let memory = memory::judge(&pooled, request);
    let (processes, groups) = users::first(&pooled, &memory);
    let mut advice = Advice {
        schema: SCHEMA.to_owned(),
        subject: pooled.subject.clone(),
        state: memory.state,
        span_ns: pooled.span_ns(),
        disk_ns: pooled.disk_ns(),
        threads_waited_ns: pooled.waited_ns(),
        blocks: pooled.blocks.len() as u64,
        block_ns: pooled.blocks.iter().map(|block| block.length_ns).max().unwrap_or(0),
        per_day_ns: memory::per_day_ns(&memory, pooled.span_ns()),
        notes: answer::notes(&pooled),
        processes,
        groups,
        memory,
        ..Advice::default()
    };
    advice.answer = answer::sentence(&advice);
    advice
}

#[cfg(test)]
mod tests;
