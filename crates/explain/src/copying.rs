//! What limits a copy, and whether two differ: rates with error bars in, verdicts with the numbers
//! that they stand on out.
//!
//! A copy goes through four narrow places: the processor's instructions, the transfers that a store
//! causes by fetching what it overwrites, what one core can have under way, and the bus of all
//! cores. Each verdict is an experiment that only one of them explains; none of them is guessed.

use crate::numbers::{ErrorBars, interval};
use crate::wording::{percent, times};
use model::bytes::show_rate;
use model::{Bytes, Estimate, Evidence};
use serde::{Deserialize, Serialize};

/// Two rates count as equal where the whole interval of one lies above this share of the other's:
/// 10 % is what neighbours alone make on a shared machine.
const EQUAL: f64 = 0.9;

/// What sparing the fetch can bring: 3 transfers become 2. Accepted around 3/2.
const SPARED: std::ops::RangeInclusive<f64> = 1.2..=1.8;

/// What was measured of one method.
#[derive(Clone, Debug, Default)]
pub struct MethodRates {
    /// Its name.
    pub method: String,
    /// In the caches, where it was fastest: the size and its rate, bytes a second.
    pub cached: Option<(u64, Estimate)>,
    /// At the original's size, which may lie in the last cache.
    pub block: Option<(u64, Estimate)>,
    /// Beyond all caches.
    pub memory: Option<(u64, Estimate)>,
    /// The same by two cores at once, each on memory of its own.
    pub two_cores: Option<Estimate>,
    /// Whether its stores fetch what they overwrite.
    pub fetches: bool,
    /// A copy of equal width that does not fetch, at the size of `memory`.
    pub streamed: Option<(String, Estimate)>,
}

/// What limits a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its instructions: it is no faster in the caches.
    Processor,
    /// That each line which it overwrites is fetched first.
    WriteAllocate,
    /// What one core can have under way: two cores copy more.
    OneCore,
    /// The bus: a second core adds nothing.
    Bus,
    /// The intervals overlap, or a number is missing.
    Unproven,
}

impl Limit {
    /// In the words of a table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::WriteAllocate => "write-allocate",
            Self::OneCore => "one core",
            Self::Bus => "bus",
            Self::Unproven => "unproven",
        }
    }
}

/// What limits one method, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodLimit {
    /// Its name.
    pub method: String,
    /// What was proven.
    pub limit: Limit,
    /// One sentence with the numbers.
    pub because: String,
    /// The numbers.
    pub evidence: Vec<Evidence>,
}

/// One rate over another, with the ends of what the error bars allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the medians.
    pub times: f64,
    /// The least that the error bars allow.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Ratio {
    /// `of` over `over`; `None` where one has no error bars.
    #[must_use]
    pub fn of(of: &Estimate, over: &Estimate) -> Option<Self> {
        Some(Self::between(interval(of)?, interval(over)?))
    }

    /// Whether the error bars allow no 1.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    fn between(of: ErrorBars, over: ErrorBars) -> Self {
        Self { times: of.median / over.median, low: of.low / over.high, high: of.high / over.low }
    }
}

impl std::fmt::Display for Ratio {
    /// `1.46 times (1.4 to 1.52)`.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [middle, low, high] = [self.times, self.low, self.high].map(times);
        write!(to, "{middle} times ({low} to {high})")
    }
}

/// What limits `seen`. The first experiment that proves anything counts.
#[must_use]
pub fn limit(seen: &MethodRates) -> MethodLimit {
    let proven = [in_memory, write_allocate, bus, one_core, with_a_disturbed_memory]
        .iter()
        .find_map(|experiment| experiment(seen));
    let (limit, because) = proven.unwrap_or_else(|| (Limit::Unproven, missing(seen)));
    MethodLimit { method: seen.method.clone(), limit, because, evidence: evidence(seen) }
}

type Proof = Option<(Limit, String)>;

fn in_memory(seen: &MethodRates) -> Proof {
    processor(seen, rate(&seen.memory)?)
}

/// What memory was too disturbed to tell, the original's size may.
fn with_a_disturbed_memory(seen: &MethodRates) -> Proof {
    match rate(&seen.memory) {
        Some(_) => None,
        None => processor(seen, rate(&seen.block)?),
    }
}

/// No slower there than at best in the caches: then that is not what it waits for. The best trial,
/// because a neighbour that slowed the whole sitting in the caches would else prove it.
fn processor(seen: &MethodRates, (bytes, there): (u64, ErrorBars)) -> Proof {
    let (cached_bytes, cached) = seen.cached.as_ref()?;
    rate(&seen.cached)?;
    (there.low >= EQUAL * cached.best).then(|| {
        let because = format!(
            "{} at best in the caches ({}) and {} at {}: it is no slower there, so its own \
             instructions take the time.",
            show_rate(cached.best),
            Bytes(*cached_bytes),
            show_rate(there.median),
            Bytes(bytes),
        );
        (Limit::Processor, because)
    })
}

/// The same width without the fetch is faster by what it spares.
fn write_allocate(seen: &MethodRates) -> Proof {
    let (_, memory) = rate(&seen.memory)?;
    let (name, streamed) = seen.streamed.as_ref()?;
    let gain = Ratio::between(interval(streamed)?, memory);
    (seen.fetches && gain.low > 1.0 && SPARED.contains(&gain.times)).then(|| {
        let because = format!(
            "{name} copies {gain} as fast: it does not fetch the lines that it overwrites, which \
             is \
             one transfer of three."
        );
        (Limit::WriteAllocate, because)
    })
}

/// A second core adds nothing, not even in the best trial of the two: they are apart from the one,
/// and a neighbour that slowed them would else prove it.
fn bus(seen: &MethodRates) -> Proof {
    let (both, gain) = second_core(seen)?;
    let (_, memory) = rate(&seen.memory)?;
    let best = seen.two_cores.as_ref()?.best;
    (best <= memory.low / EQUAL).then(|| {
        let because = format!(
            "two cores together copy {}, {gain} what one does: a second one adds nothing.",
            show_rate(both)
        );
        (Limit::Bus, because)
    })
}

/// A second core adds, and the cache is faster by more than what counts as equal: memory has more
/// to give than one core takes. A loop that is a few percent slower there waits for itself.
fn one_core(seen: &MethodRates) -> Proof {
    let ((_, cached), (_, memory)) = (rate(&seen.cached)?, rate(&seen.memory)?);
    let (both, gain) = second_core(seen)?;
    (EQUAL * cached.low > memory.high && gain.low > 1.0 / EQUAL).then(|| {
        let because = format!(
            "two cores together copy {}, {gain} what one does, and in the cache it copies {}: it \
             waits for memory, but memory has more to give than one core can ask for at once.",
            show_rate(both),
            show_rate(cached.median)
        );
        (Limit::OneCore, because)
    })
}

/// Two cores: their rate, and over one core's.
fn second_core(seen: &MethodRates) -> Option<(f64, Ratio)> {
    let both = interval(seen.two_cores.as_ref()?)?;
    let (_, memory) = rate(&seen.memory)?;
    Some((both.median, Ratio::between(both, memory)))
}

fn rate(of: &Option<(u64, Estimate)>) -> Option<(u64, ErrorBars)> {
    let (bytes, estimate) = of.as_ref()?;
    Some((*bytes, interval(estimate)?))
}

/// Why nothing is proven.
fn missing(seen: &MethodRates) -> String {
    let why = match (rate(&seen.cached), rate(&seen.memory), second_core(seen)) {
        (None, _, _) => "too few undisturbed trials in the cache",
        (_, None, _) => "too few undisturbed trials beyond the caches",
        (_, _, None) => {
            "the error bars of one core overlap, and no second core gave a figure to lean on"
        }
        _ => "the error bars of these rates overlap",
    };
    format!("{why}.")
}

fn evidence(seen: &MethodRates) -> Vec<Evidence> {
    let sized = |of: &Option<(u64, Estimate)>| {
        let (bytes, rate) = of.as_ref()?;
        Some((format!("{}, {}", seen.method, Bytes(*bytes)), rate.median))
    };
    let streamed = seen.streamed.as_ref();
    let both = seen.two_cores.as_ref();
    let all = [
        sized(&seen.cached),
        sized(&seen.block),
        sized(&seen.memory),
        both.map(|rate| (format!("{}, two cores", seen.method), rate.median)),
        streamed.map(|(name, rate)| (name.clone(), rate.median)),
    ];
    let rates = all.into_iter().flatten();
    rates.map(|(name, rate)| Evidence::new(name, rate, "bytes_per_s", "measure memcpy")).collect()
}

/// One loop as two compilers make it: element by element, and as a string instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The loop.
    pub method: String,
    /// The string instruction's rate over the loop's; `None` without error bars.
    pub string_over_loop: Option<Ratio>,
    /// The rate of the loop as this program's compiler made it over the loop's.
    pub compiled_over_loop: Option<Ratio>,
}

/// What one system of the original measured: `memcpy`, then the loops from narrow to wide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Its name.
    pub name: String,
    /// In the original's unit.
    pub rates: Vec<f64>,
}

/// Why two systems differed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemsDifference {
    /// What this machine shows, in one or two sentences.
    pub now: String,
    /// What the original's own figures say.
    pub then: String,
    /// Whether a compiler alone makes as much of a difference here as lay between the systems.
    pub compiler_suffices: Option<bool>,
}

/// Loops of different widths that are no further apart run at one pace: the figures of 2001 have
/// three digits, and passes varied by some percent.
const ONE_PACE: f64 = 1.05;

/// Whether a compiler alone can make the difference that lay between `systems`.
#[must_use]
pub fn answer(pairs: &[Pair], systems: &[System]) -> SystemsDifference {
    let apart = farthest(systems);
    let proven = pairs
        .iter()
        .filter_map(|pair| Some((pair, pair.string_over_loop.filter(Ratio::is_proven)?)));
    let strongest = proven.max_by(|a, b| a.1.times.total_cmp(&b.1.times));
    let judged = !pairs.is_empty() && pairs.iter().all(|pair| pair.string_over_loop.is_some());
    let (now, compiler_suffices) = match strongest {
        Some((pair, ratio)) if ratio.low >= apart => (
            format!(
                "A compiler alone can do it: as rep movs the copy is {ratio} as fast as by the {} \
                 loop, on one machine and in one run; between the systems of 2001 lay at most {} \
                 times. That it was so in 2001 is likely, not proven: that code is gone.",
                pair.method,
                times(apart),
            ),
            Some(true),
        ),
        Some((pair, ratio)) if ratio.high < apart => (
            format!(
                "A compiler alone cannot do it here: rep movs is at most {ratio} as fast as a loop \
                 ({}); between the systems of 2001 lay up to {} times.",
                pair.method,
                times(apart)
            ),
            Some(false),
        ),
        None if judged => (
            "No loop differs from rep movs here by more than the error bars: a compiler alone \
             makes no difference on this machine."
                .to_owned(),
            Some(false),
        ),
        _ => (
            "Unproven here: the error bars of the loops and of rep movs overlap, or are missing."
                .to_owned(),
            None,
        ),
    };
    let then = systems.iter().filter_map(pace).collect::<Vec<_>>();
    SystemsDifference { now, then: then.join(" "), compiler_suffices }
}

/// How far two systems are apart in one method, at most.
fn farthest(systems: &[System]) -> f64 {
    let methods = systems.iter().map(|system| system.rates.len()).min();
    let apart = |at: usize| spread(systems.iter().map(|system| system.rates[at]));
    let all = (0..methods.unwrap_or(0)).filter_map(apart);
    all.fold(1.0, f64::max)
}

/// Whether the width of its loop set a system's pace.
fn pace(system: &System) -> Option<String> {
    let apart = spread(system.rates.iter().skip(1).copied())?;
    let name = &system.name;
    Some(if apart <= ONE_PACE {
        format!(
            "On {name} the loops of 1 to 8 bytes ran within {} of each other: memory set their \
             pace.",
            percent(apart - 1.0)
        )
    } else {
        format!("On {name} they were {} times apart: the code of the loop set it.", times(apart))
    })
}

/// The largest over the smallest.
fn spread(rates: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let least = rates.clone().reduce(f64::min).filter(|least| *least > 0.0)?;
    Some(rates.reduce(f64::max)? / least)
}

/// The smallest buffer from which on small pages cost more than huge ones at every size: what the
/// page tables' own cache reaches. `loads` are size, time on small pages, time on huge ones, small
/// sizes first; `None` where that is nowhere proven.
#[must_use]
pub fn reach(loads: &[(u64, Estimate, Estimate)]) -> Option<u64> {
    let costs = |(_, small, huge): &&(u64, Estimate, Estimate)| {
        Ratio::of(small, huge).is_some_and(|ratio| ratio.low > 1.0 / EQUAL)
    };
    let beyond = loads.iter().rev().take_while(costs).last()?;
    Some(beyond.0)
}

#[cfg(test)]
mod tests;
