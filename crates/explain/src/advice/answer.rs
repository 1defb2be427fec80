//! The answer in words. A sentence names its size, its seconds with their interval, and the span
//! that they are of; `none` and `unproven` say why.

use super::MIB;
use super::blocks::{KindReturns, Observation};
use super::flash::{BlockReads, CacheDevice, NAMED_SHARE, Simulated, widest};
use super::memory::RETURNS_MIN;
use super::trace;
use crate::wording::{count, percent};
use model::Bytes;
use model::advice::{
    Advice, AdviceState, FlashAdvice, FlashGain, MemoryAdvice, MemoryGain, SparedTime, TraceAdvice,
};
use model::bytes::three_digits;
use model::text::long_time;
use std::collections::BTreeMap;

/// Why less memory is not judged.
pub(super) const NO_HITS: &str = "what less memory would cost shows in what is used again, which \
     was not followed: sudo terrace record --hits --for 1h -o hour.trec";

/// Why less memory is not judged where hits could not be followed.
pub(super) fn hits_closed(why: &str) -> String {
    format!("what less memory would cost shows in what is used again, which was not seen: {why}")
}

/// Why less memory is not judged where the recording does not say how much there was.
pub(super) const NO_ROOM: &str = "how much the page cache held was not recorded";

/// Why so much less is not judged.
pub(super) fn beyond_cache(room: u64) -> String {
    format!(
        "the page cache and free memory had {}: what programs lose with less is not known",
        Bytes(rounded(room))
    )
}

/// Why less memory has no seconds.
pub(super) fn no_price(lost_bytes: u64) -> String {
    format!(
        "{} would have been read again, and nothing was read that says how long a disk takes",
        Bytes(lost_bytes)
    )
}

/// `1 GiB less would have cost 12 s (10 to 15) of this hour`, of each size that was judged.
pub(super) fn of_less(sizes: &[MemoryGain], seen: &Observation) -> String {
    let of_size = |gain: &MemoryGain| {
        let size = Bytes(gain.more_bytes.unsigned_abs());
        Some(format!("{size} less would have cost {}", seconds(&gain.cost?)))
    };
    let judged: Vec<String> = sizes.iter().filter_map(of_size).collect();
    if judged.is_empty() {
        let why = sizes.iter().find_map(|gain| gain.unproven.clone());
        return why.unwrap_or_else(|| "no size was named".to_owned());
    }
    format!("{} of {}", judged.join(", "), span(seen.span_ns()))
}

/// The command that records what is needed.
const RECORD: &str = "sudo terrace record --for 1h -o hour.trec";

/// Why neither a stick nor an SSD is judged.
pub(super) const NO_ACCESSES: &str =
    "record with --accesses: sudo terrace record --accesses --for 1h -o hour.trec";

/// The share of the waits of threads below which the wall time says something else than they do.
const HIDDEN_SHARE: f64 = 0.5;

/// Why no block read is known of a recording that is damaged.
pub(super) fn unreadable(damage: &str) -> String {
    format!("no accesses could be read ({damage}): {NO_ACCESSES}")
}

/// Why the seconds of a size are not known.
pub(super) const FEW_PIECES: &str =
    "fewer than four pieces of time were recorded: how sure the seconds are is not known";

/// Why less memory is not judged by a trace.
pub(super) const NO_HITS_OF_TRACE: &str =
    "what less memory would cost shows in hits, and a trace has what reached the disk alone";

/// Why no seconds of a trace are known.
pub(super) fn no_times(form: &str) -> String {
    format!(
        "the {form} trace has no times of the disk (--with the JSON of `terrace boost qualify STICK \
         --for DISK` prices its reads)"
    )
}

/// `a cache of 512 MiB would have served 58 % of 1,234,567 reads, a larger one at most 62 %; ...`
pub(super) fn of_hits(caches: &BTreeMap<u64, Simulated>, reads: u64, why: &str) -> String {
    let most = caches.values().map(|cache| cache.hits).max().unwrap_or(0);
    let is_enough = |hits: u64| hits as f64 >= most as f64 * NAMED_SHARE;
    let Some((bytes, cache)) = caches.iter().find(|(_, cache)| is_enough(cache.hits)) else {
        return why.to_owned();
    };
    let share = |hits: u64| percent(hits as f64 / reads.max(1) as f64);
    let (size, all) = (Bytes(*bytes), count(reads));
    let mut text =
        format!("a cache of {size} would have served {} of {all} reads", share(cache.hits));
    if share(most) != share(cache.hits) {
        text.push_str(&format!(", a larger one at most {}", share(most)));
    }
    format!("{text}; the seconds are unproven: {why}")
}

/// The answer in one sentence; what helps comes first, and a command that can be copied last.
pub(super) fn sentence(advice: &Advice) -> String {
    let memory = &advice.memory;
    // What has no seconds says so by itself, of flash too.
    if advice.trace.as_ref().is_some_and(TraceAdvice::has_only_hits) {
        return memory.text.clone();
    }
    let flash = flash_texts(&advice.flash);
    let state = match memory.state {
        AdviceState::Helps => "",
        AdviceState::Nothing => "none: ",
        AdviceState::Unproven => "unproven: ",
    };
    let of_memory = format!("{state}{}", memory.text);
    let is_flash_alone = advice.state == AdviceState::Helps && memory.state != AdviceState::Helps;
    if is_flash_alone || (memory.text.ends_with(RECORD) && !flash.is_empty()) {
        return [flash, vec![format!("more memory: {of_memory}")]].concat().join("; ");
    }
    [vec![of_memory], flash].concat().join("; ")
}

/// What is said of the devices that were judged.
fn flash_texts(flash: &[FlashAdvice]) -> Vec<String> {
    let of_state = |state| flash.iter().filter(move |one| one.state == state);
    let mut texts: Vec<String> = of_state(AdviceState::Helps).map(|one| one.text.clone()).collect();
    let mut useless: Vec<(&FlashGain, Vec<&str>)> = Vec::new();
    for one in of_state(AdviceState::Nothing) {
        let Some(gain) = widest(&one.sizes) else { continue };
        let is_same = |other: &FlashGain| (other.bytes, other.spared) == (gain.bytes, gain.spared);
        match useless.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, devices)) => devices.push(a_device(&one.kind)),
            None => useless.push((gain, vec![a_device(&one.kind)])),
        }
    }
    let useless = useless.into_iter();
    let span_ns = flash.first().map_or(0, |one| one.span_ns);
    texts.extend(
        useless.map(|(gain, devices)| spared_by_cache(&devices.join(" or "), gain, span_ns)),
    );
    texts
}

/// `4 GiB more would have spared 212 s (190 to 240) of this hour; above 6 GiB hardly more`.
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
        text.push_str(&format!("; above {} hardly more", Bytes(rounded(knee))));
    }
    text.push_str(&hidden(gain, &spared));
    if advice.sizes.iter().any(|gain| gain.cost.is_some()) {
        text.push_str(&format!("; {}", of_less(&advice.sizes, seen)));
    }
    text
}

/// `a cache of 8 GiB on a stick would have spared 71 s (60 to 80) of this hour, if it takes 0.9 ms
/// for 4 KiB (assumed)`.
pub(super) fn of_flash(device: &CacheDevice, gain: &FlashGain, span_ns: u64) -> String {
    let mut text = spared_by_cache(a_device(&device.kind), gain, span_ns);
    if device.is_assumed {
        let time = three_digits(device.read_ns / 1e6);
        text.push_str(&format!(", if it takes {time} ms for 4 KiB (assumed)"));
    }
    text
}

/// `a cache of 4 GiB on a stick or an SSD would have spared 0 s (0 to 0) of this hour`.
pub(super) fn spared_by_cache(device: &str, gain: &FlashGain, span_ns: u64) -> String {
    let (size, of) = (Bytes(gain.bytes), span(span_ns));
    format!("a cache of {size} on {device} would have spared {} of {of}", seconds(&gain.spared))
}

pub(super) fn a_device(kind: &str) -> &'static str {
    if kind == "stick" { "a stick" } else { "an SSD" }
}

/// What is said of few block reads.
pub(super) fn few_reads(reads: u64, min: u64) -> String {
    let noun = if reads == 1 { "block read" } else { "block reads" };
    format!("{} {noun} seen, at least {} are needed", count(reads), count(min))
}

/// As [`few_reads`], of a trace of which a share was kept.
pub(super) fn few_kept(kept: u64, reads: u64, min: u64) -> String {
    if kept == reads {
        return few_reads(reads, min);
    }
    let [kept, reads, min] = [kept, reads, min].map(count);
    format!("{kept} of {reads} block reads were kept, at least {min} are needed")
}

/// What the wall time hides: others ran while threads waited, or several waited at once.
fn hidden(gain: &MemoryGain, spared: &SparedTime) -> String {
    let threads = gain.threads_ns.unwrap_or(0);
    if (spared.ns as f64) >= threads as f64 * HIDDEN_SHARE || threads < 1_000_000_000 {
        return String::new();
    }
    format!(
        " (threads together would have waited {} less: several waited at once, or others ran)",
        long_time(threads as f64)
    )
}

/// `212 s (190 to 240)`: both ends in the unit of the estimate.
pub(super) fn seconds(spared: &SparedTime) -> String {
    let show = |ns| spared.in_unit(ns);
    let [ns, low, high] = [spared.ns, spared.low_ns, spared.high_ns].map(show);
    format!("{ns} {} ({low} to {high})", spared.unit().1)
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
    format!("threads waited {waited} of {} for reads and swap", span(seen.span_ns()))
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
pub(super) fn notes(
    seen: &Observation,
    observations: &[Observation],
    flash: &[FlashAdvice],
    trace: Option<&TraceAdvice>,
) -> Vec<String> {
    let is_said = trace.is_some_and(TraceAdvice::has_only_hits);
    let mut notes = if is_said { Vec::new() } else { of_devices(flash) };
    notes.extend(trace.map_or_else(Vec::new, trace::notes));
    notes.extend(of_reads(seen, observations, trace.is_some()));
    if seen.lost > 0 {
        notes.push(format!(
            "{} kernel events were lost ({}): the interval is wider by as much",
            count(seen.lost),
            percent(seen.lost_share())
        ));
    }
    notes.extend(compressed(seen));
    notes.extend(unknown(seen));
    for doubt in &seen.doubts {
        if !notes.contains(doubt) {
            notes.push(doubt.clone());
        }
    }
    notes
}

/// What the block reads are of, and what is missing of them.
fn of_reads(seen: &Observation, observations: &[Observation], is_trace: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let kept: Vec<&BlockReads> = observations.iter().filter_map(|one| one.reads.as_ref()).collect();
    let judged = kept.iter().filter(|reads| !reads.reads.is_empty()).count();
    notes.extend(of_several(observations.len(), judged, is_trace));
    let damaged = kept.iter().filter(|reads| !reads.reads.is_empty());
    if let Some(why) = damaged.filter_map(|reads| reads.damage.as_ref()).next() {
        notes.push(format!("the accesses of the recording end early: {why}"));
    }
    let shift = kept.iter().map(|reads| reads.shift).max().unwrap_or(0);
    if shift > 0 {
        let regions = count(1_u64 << shift.min(63));
        notes.push(format!(
            "of block requests one region in {regions} was kept: the range is wider by what that \
             may miss"
        ));
    }
    let lost = kept.iter().fold(0_u64, |sum, reads| sum.saturating_add(reads.lost));
    if lost > 0 {
        let lost = count(lost);
        notes.push(format!("{lost} block requests were lost: the range is wider by as much"));
    }
    if !seen.is_machine && judged > 0 {
        notes.push(
            "the block requests are those of the whole machine, the waits those of what was \
             recorded: a cache is judged as if it gained the same share of both"
                .to_owned(),
        );
    }
    notes
}

/// Which of several recordings a cache is judged by, and how it begins each.
fn of_several(recordings: usize, judged: usize, is_trace: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if judged > 0 && judged < recordings && !is_trace {
        notes.push(format!(
            "{judged} of {recordings} recordings kept accesses: a stick or an SSD is judged by these \
             alone"
        ));
    }
    if judged > 1 {
        notes.push(
            "a cache begins each of them empty, as what happened between them is not known: a full \
             one spares more"
                .to_owned(),
        );
    }
    notes
}

/// What is not known of a stick or an SSD, and where its times come from.
fn of_devices(flash: &[FlashAdvice]) -> Vec<String> {
    let unproven = flash.iter().filter(|one| one.state == AdviceState::Unproven);
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for one in unproven {
        let device = a_device(&one.kind);
        match reasons.iter_mut().find(|(why, _)| *why == one.text) {
            Some((_, devices)) => devices.push(device),
            None => reasons.push((one.text.clone(), vec![device])),
        }
    }
    let reasons = reasons.into_iter();
    let mut notes: Vec<String> = reasons
        .map(|(why, devices)| format!("{}: unproven: {why}", devices.join(" or ")))
        .collect();
    let judged = flash.iter().filter(|one| !one.sizes.is_empty());
    notes.extend(judged.map(|one| format!("{}: {}", a_device(&one.kind), one.times_from)));
    notes
}

/// What came back from compressed memory.
fn compressed(seen: &Observation) -> Vec<String> {
    let mut notes = Vec::new();
    if seen.zram_bytes > 0 || seen.zswap_bytes > 0 {
        let bytes = Bytes(seen.zram_bytes.saturating_add(seen.zswap_bytes));
        notes
            .push(format!("{bytes} came back from compressed memory: counted, not priced as disk"));
    }
    let is_mixed = seen.zram_bytes > 0 && seen.blocks.iter().any(|block| block.is_priced(1));
    if is_mixed {
        let text = "swap was on zram and on disks: the waits for zram are among those for disks";
        notes.push(text.to_owned());
    }
    notes
}

/// What came back from a distance that is not known.
fn unknown(seen: &Observation) -> Vec<String> {
    let mut notes = Vec::new();
    let [returned, counted, unknown] =
        [KindReturns::seen, KindReturns::all_bytes, KindReturns::unknown_bytes]
            .map(|of| seen.sum_of_kinds(of));
    if returned > 0 && counted > returned.saturating_add(returned / 4) {
        notes.push(format!(
            "the kernel counts {} that came back, {} were seen to leave: what had left before the \
             recording, or was forgotten, counts as not spared, and in the upper end as spared",
            Bytes(counted),
            Bytes(returned)
        ));
    }
    let too_far = unknown.saturating_sub(counted.saturating_sub(returned));
    if too_far > 0 {
        notes.push(format!(
            "{} came back from further than the distances reach: not spared, and in the upper end \
             spared",
            Bytes(too_far)
        ));
    }
    notes
}
