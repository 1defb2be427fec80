//! One thread's part of the copy probe: its buffers, its techniques, and the
//! proof that each technique does what it says, on poisoned memory.

use super::{CopyPlan, width_of};
use crate::disturbance::{Bracket, Disturbance};
use crate::memory::arena::{self, Arena};
use crate::memory::technique::Technique;
use crate::team::Team;
use crate::trial::{self, Bench, VariantTrials};
use crate::{Budget, Result};
use memops::{Operation, Width};

/// Buffers up to this size are brought into the caches before each trial.
/// Picked above every L3 seen; a pass of 64 MiB costs 3 ms.
pub(super) const CACHED_BYTES: u64 = 64 << 20;

/// What one method gave at one size.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) outcome: VariantTrials,
    pub(super) verified: bool,
    pub(super) failed: Option<String>,
}

/// Measures every technique of the team at one size, verifying each first.
pub(super) fn one_size(
    plan: &CopyPlan,
    size: u64,
    team: &mut Team<'_, Worker>,
    bracket: &mut Bracket,
    budget: &Budget,
) -> Vec<Measured> {
    let variants = team.first(|worker| worker.techniques.len());
    let mut bench = AtSize {
        team,
        size: size as usize,
        cached: size <= CACHED_BYTES,
        verified: vec![None; variants],
    };
    let outcomes = trial::interleave(&mut bench, &plan.schedule, budget, bracket);
    let verified = std::mem::take(&mut bench.verified);
    let failed = team.first(|worker| worker.failed.take());
    outcomes
        .into_iter()
        .zip(verified)
        .map(|(outcome, verified)| Measured {
            outcome,
            verified: verified == Some(true),
            failed: match verified {
                Some(false) => Some("its result was wrong".to_owned()),
                _ => failed.clone(),
            },
        })
        .collect()
}

/// One thread's buffers and techniques.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) arena: Arena,
    techniques: Vec<Technique>,
    widths: Vec<Option<Width>>,
    offset: (usize, usize),
    block: usize,
    stride: usize,
    /// The size for which the source holds its pattern.
    filled: usize,
    failed: Option<String>,
}

impl Worker {
    pub(super) fn new(arena: Arena, names: &[String], plan: &CopyPlan) -> Result<Self> {
        let techniques =
            names.iter().map(|name| Technique::prepare(name)).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            arena,
            techniques,
            widths: names.iter().map(|name| width_of(name)).collect(),
            offset: plan.offset,
            block: plan.block_bytes.map_or(usize::MAX, |b| b as usize),
            stride: plan.stride,
            filled: 0,
            failed: None,
        })
    }

    fn run(&mut self, variant: usize, size: usize, calls: u64) {
        let (target, source) = buffers(&mut self.arena, self.offset, size);
        let technique = &mut self.techniques[variant];
        for _ in 0..calls {
            if self.stride > 1 {
                let width = self.widths[variant].unwrap_or(Width::Byte);
                memops::copy_strided(width, target, source, self.stride);
                continue;
            }
            let blocks =
                target.chunks_mut(self.block.min(size)).zip(source.chunks(self.block.min(size)));
            for (to, from) in blocks {
                if let Err(error) = technique.apply(to, from) {
                    self.failed = Some(error.to_string());
                    return;
                }
            }
        }
    }

    /// Whether `variant` does what it says on fresh, poisoned buffers.
    fn verify(&mut self, variant: usize, size: usize) -> bool {
        let operation = self.techniques[variant].operation();
        let (target, source) = buffers(&mut self.arena, self.offset, size);
        if self.filled != size {
            fill_pattern(source, size as u64);
            self.filled = size;
        }
        target.fill(POISON);
        self.run(variant, size, 1);
        let (target, source) = buffers(&mut self.arena, self.offset, size);
        let (target, source) = (&*target, &*source);
        match &self.techniques[variant] {
            _ if operation == Operation::Copy => target == source,
            Technique::Loop(method) if operation == Operation::Read => {
                method.read(source) == word_sum(source)
            }
            _ => target.iter().all(|&byte| byte == 0),
        }
    }
}

/// The target and the source of one size, off their boundary by `offset`.
fn buffers(arena: &mut Arena, offset: (usize, usize), size: usize) -> (&mut [u8], &mut [u8]) {
    let (to, from) = offset;
    let (target, source) = arena::pair(arena.bytes_mut(), size + to.max(from));
    (&mut target[to..to + size], &mut source[from..from + size])
}

/// The team as a bench at one size.
struct AtSize<'a, 't> {
    team: &'a mut Team<'t, Worker>,
    size: usize,
    cached: bool,
    /// What the verification of each technique gave; `None` before it.
    verified: Vec<Option<bool>>,
}

impl Bench for AtSize<'_, '_> {
    fn variants(&self) -> usize {
        self.verified.len()
    }

    fn prepare(&mut self, variant: usize) {
        let size = self.size;
        if self.verified[variant].is_none() {
            self.verified[variant] = Some(self.team.first(|worker| worker.verify(variant, size)));
        }
        // Inside the caches the buffers must be where the last variant would not
        // have left them; beyond, every pass finds the same cold memory.
        if self.cached {
            self.run(variant, 1);
        }
        self.team.mark();
    }

    fn run(&mut self, variant: usize, calls: u64) {
        let size = self.size;
        self.team.run(move |worker| worker.run(variant, size, calls));
    }

    fn others_disturbed(&mut self) -> Disturbance {
        self.team.others_disturbed()
    }
}

/// What the target is filled with before it is verified: no word of the pattern, and
/// not the zero that the write methods write.
const POISON: u8 = 0x5a;

/// Words that differ from each other, so that a misplaced one is seen.
fn fill_pattern(buffer: &mut [u8], seed: u64) {
    let mut word = seed | 1;
    for chunk in buffer.chunks_mut(8) {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// The sum that `memops` documents for its read loops.
fn word_sum(buffer: &[u8]) -> u64 {
    buffer
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
        .fold(0, u64::wrapping_add)
}
