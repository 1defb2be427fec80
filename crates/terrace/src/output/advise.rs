//! The page of advice: the answer first, then each size with its interval, who waited, and what is
//! concluded rather than measured.
//!
//! Pure: an [`Advice`] becomes text.

use super::Page;
use super::figure;
use super::prose::{PageText, commands_tied, grouped, long_time, sentence};
use super::style::Tone;
use super::table::Table;
use model::Bytes;
use model::advice::{
    Advice, AdviceUser, FlashGain, MemoryGain, SparedTime, TraceAdvice, TraceSize, TraceTimes,
};
use model::text::count;

/// Of the subject so much is shown: two lines.
const SUBJECT_CHARS: usize = 120;

pub fn page(advice: &Advice, page: Page) -> String {
    let mut text = PageText::new(page);
    let title = format!("terrace advise: {}", shortened(&advice.subject));
    text.lines(|page| sentence(page, Tone::Dim, &title, 3));
    text.heading(&capital(&advice.answer));
    let is_of_hits = advice.trace.as_ref().is_some_and(TraceAdvice::has_only_hits);
    if !advice.memory.sizes.is_empty() && !is_of_hits {
        text.lines(|_| "\n".to_owned());
        let all = advice.memory.sizes.iter();
        let (less, more): (Vec<_>, Vec<_>) = all.partition(|gain| gain.cost.is_some());
        if !more.is_empty() {
            text.table(&sizes(&more), 1);
        }
        if !less.is_empty() {
            text.table(&costs(&less), 1);
        }
        text.sentences(unproven(&advice.memory.sizes));
    }
    let gains = cached(advice);
    if !gains.is_empty() {
        text.lines(|_| "\n".to_owned());
        text.sentence("A cache on a stick or an SSD:");
        text.table(&flash(&gains), 1);
    }
    if let Some(trace) = advice.trace.as_ref().filter(|trace| !trace.sizes.is_empty()) {
        text.lines(|_| "\n".to_owned());
        text.sentence("What a cache would have hit of the blocks that were read:");
        text.table(&hits(trace), 1);
    }
    for (title, users) in
        [("Who waited for what came back:", &advice.processes), ("By group:", &advice.groups)]
    {
        if !users.is_empty() {
            text.lines(|_| "\n".to_owned());
            text.sentence(title);
            text.table(&waiting(users), 1);
        }
    }
    text.lines(|_| "\n".to_owned());
    text.notes(notes(advice));
    text.finish()
}

/// A command line may be a whole script.
fn shortened(subject: &str) -> String {
    let words = subject.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SUBJECT_CHARS) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}

/// The first letter as a capital, and a full stop.
fn capital(answer: &str) -> String {
    let mut letters = answer.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    ended(&format!(" {}{}", first.unwrap_or_default(), letters.as_str()))
}

/// With a full stop, unless a command is its end: that is copied as it stands.
fn ended(text: &str) -> String {
    let is_command = text.rsplit(": ").next().is_some_and(|last| last.starts_with("sudo "));
    format!("{}{}", commands_tied(text), if is_command { "" } else { "." })
}

fn sizes<'a>(gains: &[&'a MemoryGain]) -> Table<&'a MemoryGain> {
    fn time(gain: &MemoryGain, of: fn(&SparedTime) -> u64) -> String {
        figure::or_absent(gain.spared, |spared| in_one_unit(&spared, of))
    }
    Table::of(gains.iter().copied())
        .numbers("memory", 0, |gain| signed(gain.more_bytes))
        .numbers("spares", 0, |gain| time(gain, |spared| spared.ns))
        .numbers("at least", 1, |gain| time(gain, |spared| spared.low_ns))
        .numbers("at most", 1, |gain| time(gain, |spared| spared.high_ns))
        .numbers("would have stayed", 2, |gain| {
            figure::or_absent(gain.kept_bytes, |bytes| Bytes(bytes).to_string())
        })
}

/// What less memory would have cost.
fn costs<'a>(gains: &[&'a MemoryGain]) -> Table<&'a MemoryGain> {
    fn time(gain: &MemoryGain, of: fn(&SparedTime) -> u64) -> String {
        figure::or_absent(gain.cost, |cost| in_one_unit(&cost, of))
    }
    Table::of(gains.iter().copied())
        .numbers("memory", 0, |gain| signed(gain.more_bytes))
        .numbers("costs", 0, |gain| time(gain, |cost| cost.ns))
        .numbers("at least", 1, |gain| time(gain, |cost| cost.low_ns))
        .numbers("at most", 1, |gain| time(gain, |cost| cost.high_ns))
        .numbers("read again", 2, |gain| {
            figure::or_absent(gain.lost_bytes, |bytes| Bytes(bytes).to_string())
        })
}

/// In the unit that the answer has it in.
fn in_one_unit(spared: &SparedTime, of: fn(&SparedTime) -> u64) -> String {
    format!("{} {}", spared.in_unit(of(spared)), spared.unit().1)
}

/// A size of a cache on a device.
#[derive(Clone, Copy)]
struct CachedSize<'a> {
    device: &'a str,
    gain: &'a FlashGain,
}

fn cached(advice: &Advice) -> Vec<CachedSize<'_>> {
    let of_device = advice.flash.iter().flat_map(|one| {
        let device = if one.kind == "stick" { "stick" } else { "SSD" };
        one.sizes.iter().map(move |gain| CachedSize { device, gain })
    });
    of_device.collect()
}

fn flash<'a>(gains: &'a [CachedSize<'a>]) -> Table<&'a CachedSize<'a>> {
    Table::of(gains)
        .words("", 0, |one| one.device.to_owned())
        .numbers("size", 0, |one| Bytes(one.gain.bytes).to_string())
        .numbers("spares", 0, |one| in_one_unit(&one.gain.spared, |spared| spared.ns))
        .numbers("at least", 1, |one| in_one_unit(&one.gain.spared, |spared| spared.low_ns))
        .numbers("at most", 1, |one| in_one_unit(&one.gain.spared, |spared| spared.high_ns))
        .numbers("reads served", 2, |one| {
            figure::percent(one.gain.hits as f64 / one.gain.reads.max(1) as f64)
        })
}

/// The shares by policy of eviction, that of last use first.
fn hits(trace: &TraceAdvice) -> Table<&TraceSize> {
    fn share(size: &TraceSize, policy: &str) -> String {
        let share = size.policies.iter().find(|one| one.policy == policy);
        figure::or_absent(share, |one| figure::percent(one.hit_share))
    }
    let reads = trace.reads.max(1);
    Table::of(&trace.sizes)
        .numbers("size", 0, |size| Bytes(size.bytes).to_string())
        .numbers("reads served", 0, move |size| {
            figure::percent(size.served_reads as f64 / reads as f64)
        })
        .numbers("LRU", 0, |size| share(size, "LRU"))
        .numbers("SIEVE", 1, |size| share(size, "SIEVE"))
        .numbers("S3-FIFO", 1, |size| share(size, "S3-FIFO"))
        .numbers("ARC", 2, |size| share(size, "ARC"))
        .numbers("W-TinyLFU", 2, |size| share(size, "W-TinyLFU"))
        .numbers("FIFO", 3, |size| share(size, "FIFO"))
}

/// Why sizes are not judged, each reason once.
fn unproven(gains: &[MemoryGain]) -> Vec<String> {
    let with_reason = |gain: &MemoryGain| {
        let why = gain.unproven.clone()?;
        Some((why, signed(gain.more_bytes)))
    };
    let reasons = grouped(gains.iter().filter_map(with_reason)).into_iter();
    reasons.map(|(why, sizes)| ended(&format!("{}: unproven: {why}", sizes.join(", ")))).collect()
}

fn waiting(users: &[AdviceUser]) -> Table<&AdviceUser> {
    Table::of(users)
        .words("", 0, |user| user.label.clone())
        .numbers("share", 0, |user| figure::percent(user.share))
        .numbers("would be spared", 2, |user| long_time(user.spared_ns))
}

fn signed(bytes: i64) -> String {
    let sign = if bytes < 0 { '-' } else { '+' };
    format!("{sign}{}", Bytes(bytes.unsigned_abs()))
}

/// What the figures rest on.
fn notes(advice: &Advice) -> Vec<String> {
    let time = |ns: u64| long_time(ns);
    let mut notes = match &advice.trace {
        Some(trace) => of_trace(advice, trace),
        None => vec![format!(
            "Measured: {}; for {} of it nothing could run until a disk answered, and threads \
             together waited {} for reads and swap.",
            time(advice.span_ns),
            time(advice.disk_ns),
            time(advice.threads_waited_ns)
        )],
    };
    let memory = &advice.memory;
    let returned = memory.file.came_back_bytes.saturating_add(memory.swap.came_back_bytes);
    if returned > 0 {
        notes.push(format!(
            "Came back after it had left memory: about {} of files and {} of swap, from one page in \
             16.",
            Bytes(memory.file.came_back_bytes),
            Bytes(memory.swap.came_back_bytes)
        ));
    }
    if !memory.sizes.is_empty() && advice.trace.is_none() {
        notes.push(format!(
            "The range: {} pieces of {}, drawn anew (95 %); at least, if memory evicts as the kernel \
             counts, at most, if it evicts by last use.",
            advice.blocks,
            time(advice.block_ns)
        ));
    }
    if let Some(ns) = advice.per_day_ns {
        notes.push(format!("Concluded, if a whole day were like this: {} a day.", time(ns)));
    }
    notes.extend(advice.notes.iter().map(|note| capital(note).trim_start().to_owned()));
    notes
}

/// What a trace has, and what its seconds are of.
fn of_trace(advice: &Advice, trace: &TraceAdvice) -> Vec<String> {
    let mut notes = vec![format!(
        "The trace: {} reads of {}, {} of it different blocks, and {} writes in {}.",
        count(trace.reads),
        Bytes(trace.read_bytes),
        Bytes(trace.distinct_bytes),
        count(trace.writes),
        long_time(trace.span_ns)
    )];
    let pieces = format!(
        "The range: {} pieces of {}, drawn anew (95 %).",
        advice.blocks,
        long_time(advice.block_ns)
    );
    match trace.times {
        TraceTimes::Trace => notes.push(format!(
            "Measured by it: for {} at least one read was under way; added up they took {}. {pieces}",
            long_time(advice.disk_ns),
            long_time(advice.threads_waited_ns)
        )),
        TraceTimes::Measured => notes.push(format!(
            "Concluded: one after the other its reads take {}. {pieces}",
            long_time(advice.disk_ns)
        )),
        TraceTimes::None => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::advice::{AdviceState, MemoryAdvice, SparedTime};

    #[test]
    fn the_answer_comes_first_and_the_sizes_below() {
        let spared =
            SparedTime { ns: 212_000_000_000, low_ns: 190_000_000_000, high_ns: 240_000_000_000 };
        let gain = |more_bytes, spared, unproven| MemoryGain {
            more_bytes,
            spared,
            unproven,
            kept_bytes: spared.map(|_| 3 << 30),
            ..MemoryGain::default()
        };
        let none = Some("hits are not judged yet".to_owned());
        let advice = Advice {
            subject: "the whole machine".to_owned(),
            answer: "4 GiB more would have spared 212 s (190 to 240) of this hour".to_owned(),
            span_ns: 3_600_000_000_000,
            per_day_ns: Some(5_088_000_000_000),
            memory: MemoryAdvice {
                state: AdviceState::Helps,
                sizes: vec![gain(4 << 30, Some(spared), None), gain(-(1 << 30), None, none)],
                ..MemoryAdvice::default()
            },
            processes: vec![AdviceUser {
                label: "postgres (pid 812)".to_owned(),
                ..AdviceUser::default()
            }],
            ..Advice::default()
        };
        let text = page(&advice, Page::plain(100));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("4 GiB more would have spared 212 s"), "{text}");
        let row = lines.iter().find(|line| line.contains("+4 GiB")).unwrap();
        assert!(row.contains("212 s") && row.contains("190 s") && row.contains("240 s"), "{text}");
        let command = ended("record longer: sudo terrace record --for 1h -o hour.trec");
        assert!(command.ends_with("hour.trec"), "{command}");
        assert_eq!(ended("none: 3 s"), "none: 3 s.");
        assert!(text.contains("-1 GiB") && text.contains("hits are not judged yet"), "{text}");
        assert!(text.contains("postgres (pid 812)") && text.contains("Concluded"), "{text}");
    }
}
