//! The answer in words. A sentence names its size, its seconds with their interval, and the span
//! that they are of; `none` and `unproven` say why.

use super::MIB;
use super::blocks::Observation;
use super::memory::RETURNS_MIN;
use crate::wording::{count, percent};
use model::Bytes;
use model::advice::{
    Advice, AdviceState, FlashAdvice, FlashGain, MemoryAdvice, MemoryGain, SparedTime,
};
use model::bytes::three_digits;
use model::text::long_time;

/// Why less memory is not judged.
pub(super) const NO_HITS: &str =
    "this recording has no hits: what less memory would cost shows in those alone";

/// The command that records what is needed.
const RECORD: &str = "sudo terrace record --for 1h -o hour.trec";

/// Why neither a stick nor an SSD is judged.
pub(super) const NO_ACCESSES: &str =
    "record with --accesses: sudo terrace record --accesses --for 1h -o hour.trec";

/// The share of the waits of threads below which the wall time says something else than they do.
const HIDDEN_SHARE: f64 = 0.5;

/// The answer in one sentence.
pub(super) fn sentence(advice: &Advice) -> String {
    let memory = &advice.memory;
    let judged = advice.flash.iter().filter(|one| one.state != AdviceState::Unproven);
    let flash: Vec<&str> = judged.map(|one| one.text.as_str()).collect();
    let state = match memory.state {
        AdviceState::Helps => "",
        AdviceState::Nothing => "none: ",
        AdviceState::Unproven => "unproven: ",
    };
    let mut text = format!("{state}{}", memory.text);
    for one in flash.iter().filter(|text| !text.is_empty()) {
        text.push_str(&format!("; {one}"));
    }
    text
}

/// `4 GiB more would have spared 212 s (190 to 240) of this hour; above 6 GiB nothing more`.
pub(super) fn of_memory(advice: &MemoryAdvice, seen: &Observation) -> String {
    let is_named = |gain: &&MemoryGain| Some(gain.more_bytes) == advice.named_bytes;
    let Some(gain) = advice.sizes.iter().find(is_named) else {
        let why = advice.sizes.iter().find_map(|gain| gain.unproven.clone());
        return why.unwrap_or_else(|| "no size was named".to_owned());
    };
    let spared = gain.spared.unwrap_or_default();
    let size = Bytes(gain.more_bytes.unsigned_abs());
    let of = span(seen.span_ns());
    let amount = seconds(&spared);
    if advice.state == AdviceState::Nothing {
        let cost = long_time(seen.disk_ns() as f64);
        let mut text =
            format!("the disk cost you {cost} of {of}, and {size} more would have spared {amount}");
        text.push_str(&hidden(gain, &spared));
        return text;
    }
    let mut text = format!("{size} more would have spared {amount} of {of}");
    if let Some(knee) = advice.knee_bytes.filter(|knee| *knee > 0) {
        text.push_str(&format!("; above {} nothing more", Bytes(rounded(knee))));
    }
    text.push_str(&hidden(gain, &spared));
    text
}

/// `an 8 GiB stick 71 s (60 to 80)`.
pub(super) fn of_flash(kind: &str, gain: &FlashGain) -> String {
    format!("{} of a cache on {} {}", Bytes(gain.bytes), a_device(kind), seconds(&gain.spared))
}

/// `a stick nothing`.
pub(super) fn no_flash(kind: &str) -> String {
    format!("a cache on {} nothing", a_device(kind))
}

fn a_device(kind: &str) -> &'static str {
    if kind == "stick" { "a stick" } else { "an SSD" }
}

/// What is said of few block reads.
pub(super) fn few_reads(reads: u64, min: u64) -> String {
    format!("{} block reads seen, at least {} are needed", count(reads), count(min))
}

/// What the wall time hides: others ran while threads waited.
fn hidden(gain: &MemoryGain, spared: &SparedTime) -> String {
    let threads = gain.threads_ns.unwrap_or(0);
    if (spared.ns as f64) >= threads as f64 * HIDDEN_SHARE || threads < 1_000_000_000 {
        return String::new();
    }
    format!(
        " (threads together would have waited {} less; meanwhile others ran)",
        long_time(threads as f64)
    )
}

/// `212 s (190 to 240)`: both ends in the unit of the estimate.
pub(super) fn seconds(spared: &SparedTime) -> String {
    let (unit_ns, unit) = match spared.ns.max(spared.high_ns) {
        ns if ns >= 7_200_000_000_000 => (3.6e12, "h"),
        ns if ns >= 600_000_000_000 => (60e9, "min"),
        _ => (1e9, "s"),
    };
    let show = |ns: u64| short(ns as f64 / unit_ns);
    format!("{} {unit} ({} to {})", show(spared.ns), show(spared.low_ns), show(spared.high_ns))
}

/// Three digits that count, and no more than two after the point.
fn short(value: f64) -> String {
    if value < 10.0 { three_digits((value * 10.0).round() / 10.0) } else { three_digits(value) }
}

/// `this hour`, `these 60 s`.
pub(super) fn span(ns: u64) -> String {
    const HOUR_NS: u64 = 3_600_000_000_000;
    if ns.abs_diff(HOUR_NS) < HOUR_NS / 50 {
        "this hour".to_owned()
    } else {
        format!("these {}", long_time(ns as f64))
    }
}

/// A size that is no more exact than its class: two digits of MiB or GiB.
fn rounded(bytes: u64) -> u64 {
    let step = (bytes.max(MIB).next_power_of_two() / 16).max(MIB);
    bytes.div_ceil(step).saturating_mul(step)
}

/// Why a recording has no returns.
pub(super) fn no_returns(seen: &Observation) -> String {
    let why = match (seen.root, seen.in_kernel) {
        (false, _) => "what leaves memory is seen by root alone",
        (true, false) => "this kernel runs no programs of the recorder, which follow pages",
        (true, true) => "the recording did not follow what leaves memory",
    };
    format!("{why}: {RECORD}")
}

/// What is said of a short recording.
pub(super) fn too_short(seen: &Observation, min_ns: u64) -> String {
    let [span, least] = [seen.span_ns(), min_ns].map(|ns| long_time(ns as f64));
    format!("{} seen in {span}, at least {least} are needed", returns(seen))
}

/// What is said of an idle machine.
pub(super) fn idle(seen: &Observation) -> String {
    let of = span(seen.span_ns());
    format!("idle for nearly all of {of}, {} seen", returns(seen))
}

/// What is said if hardly anything waited for a disk.
pub(super) fn no_wait(seen: &Observation) -> String {
    let waited = long_time(seen.waited_ns() as f64);
    format!("the disk cost you {waited} of {}", span(seen.span_ns()))
}

/// What is said if what was read had not left memory before.
pub(super) fn all_cold(seen: &Observation) -> String {
    let waited = long_time(seen.waited_ns() as f64);
    format!(
        "{} seen, at least {} are needed: what was waited for ({waited}) had not been in memory \
         since the recording began",
        returns(seen),
        count(RETURNS_MIN)
    )
}

fn returns(seen: &Observation) -> String {
    match seen.returned_pages() {
        1 => "1 return".to_owned(),
        pages => format!("{} returns", count(pages)),
    }
}

/// Why a size is too large to be judged.
pub(super) fn beyond(reach_bytes: u64) -> String {
    format!("distances of more than {} are not known", Bytes(reach_bytes))
}

/// What widens the interval, and what is not priced.
pub(super) fn notes(seen: &Observation, flash: &[FlashAdvice]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(one) = flash.iter().find(|one| one.state == AdviceState::Unproven) {
        notes.push(format!("a stick or an SSD: unproven: {}", one.text));
    }
    let judged = flash.iter().filter(|one| one.state != AdviceState::Unproven);
    notes.extend(judged.map(|one| format!("{}: {}", a_device(&one.kind), one.times_from)));
    if let Some(reads) = seen.reads.as_ref().filter(|reads| reads.shift > 0 || reads.lost > 0) {
        notes.push(format!(
            "of block requests one region in {} was kept, and {} were lost",
            1_u64 << reads.shift.min(63),
            count(reads.lost)
        ));
    }
    if seen.lost > 0 {
        notes.push(format!(
            "{} kernel events were lost ({}): the interval is wider by as much",
            count(seen.lost),
            percent(seen.lost_share())
        ));
    }
    if seen.zram_bytes > 0 || seen.zswap_bytes > 0 {
        let bytes = Bytes(seen.zram_bytes.saturating_add(seen.zswap_bytes));
        notes
            .push(format!("{bytes} came back from compressed memory: counted, not priced as disk"));
    }
    let returned = seen.sum(|block| block.returns.iter().map(|kind| kind.seen_bytes).sum());
    let counted = seen.sum(|block| block.returns.iter().map(|kind| kind.all_bytes()).sum());
    if returned > 0 && counted > returned.saturating_add(returned / 4) {
        notes.push(format!(
            "the kernel counts {} that came back, {} were seen to leave: what had left before the \
             recording is not known and counts as not spared",
            Bytes(counted),
            Bytes(returned)
        ));
    }
    notes
}
