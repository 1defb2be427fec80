//! The card of a claim: the counters that its words and the causes name, in both recordings.
//!
//! 1. A counter belongs to the card when it was asked for; when a word of the claim names it
//!    or its topic; or when it belongs to a finding whose time differs most.
//! 2. It moved when it grew by another amount: by a tenth, and by more than a few.
//! 3. Those that moved most stand first. One that the claim names and that did not move is
//!    told too: that is what a card is for.

use crate::recording::{View, Window, explain};
use crate::wording::list;
use model::explanation::Explanation;
use model::proof::{CounterChange, ProofCard, Run};
use model::recording::{Recording, Series, SeriesKind};
use std::collections::BTreeSet;

/// What a card is asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// What is claimed.
    pub claim: String,
    /// The counters to show; empty for those that belong to the claim.
    pub counters: Vec<String>,
}

/// Counters on a card beyond those that the caller named. Picked: what fits below a post.
const SHOWN: usize = 8;

/// A change of less than this share of the larger does not count: runs differ by chance.
const MOVED_SHARE: f64 = 0.1;

/// How many findings, by the difference of their time, name counters.
const CAUSES: usize = 2;

/// A difference of less time than this makes no finding a cause.
const CAUSE_NS: f64 = 10e6;

/// Words, and parts of the names of the counters that they speak of; words that stand in a
/// counter's name need no row.
const TOPICS: [(&[&str], &[&str]); 14] = [
    (&["swap", "swapping", "swapped", "swapped out"], &["pswpin", "pswpout", "swap_in_ns"]),
    (
        &["cache", "cached", "hit", "hits", "evicted", "refaults"],
        &["workingset_refault", "tree.read_bytes"],
    ),
    (&["disk", "device", "ssd", "storage"], &["tree.read_bytes", "tree.write_bytes", "io_ns"]),
    (&["read", "reads", "reading"], &["tree.read_bytes", "block_io.read_ns", ".reads"]),
    (&["write", "writes", "writing", "writeback"], &["tree.write_bytes", "writes", "nr_written"]),
    (&["flush", "sync", "fsync", "durable"], &["flush"]),
    (&["fault", "faults", "touch", "mmap"], &["tree.minor_faults", "tree.major_faults"]),
    (
        &["reclaim", "memory", "pressure", "thrashing"],
        &["pgscan_direct", "pgsteal", "pressure.memory"],
    ),
    (&["huge", "thp", "hugepage", "hugepages"], &["thp_fault", "thp_collapse"]),
    (&["cpu", "processor", "cores", "compute"], &["tree.run_ns", "tree.queue_ns", "throttled"]),
    (&["contention", "queue", "noisy", "stolen"], &["tree.queue_ns", "steal_ns"]),
    (&["lock", "locks", "mutex"], &["sleep.lock_ns"]),
    (&["ahead", "readahead", "prefetch"], &[".reads", "tree.read_bytes", "swap_ra"]),
    (&["compression", "compressed", "zram", "zswap"], &["zswp", "zram"]),
];

/// The card of a claim about two recordings.
#[must_use]
pub fn card(first: &Recording, second: &Recording, asked: &Asked) -> ProofCard {
    let explained = [first, second].map(|recording| explain(recording, Window::default()));
    let views = [first, second].map(|recording| View::new(recording, Window::default()));
    let mut counters: Vec<CounterChange> = Vec::new();
    for (why, matches) in reasons(asked, &explained) {
        for series in candidates(&views).filter(|series| matches.names(&series.schema.name)) {
            let name = &series.schema.name;
            if !counters.iter().any(|known| &known.series == name) {
                counters.push(moved(series, &views, why.clone()));
            }
        }
    }
    chosen(&mut counters, asked);
    let run = |explanation: &Explanation| Run {
        file: String::new(),
        subject: explanation.subject.clone(),
        wall_ns: explanation.wall_ns,
    };
    ProofCard {
        claim: asked.claim.clone(),
        first: run(&explained[0]),
        second: run(&explained[1]),
        verdict: verdict(&counters),
        counters,
    }
}

/// What makes a counter belong to the card.
enum Matches {
    Exactly(Vec<String>),
    Parts(Vec<String>),
}

impl Matches {
    fn names(&self, series: &str) -> bool {
        match self {
            Matches::Exactly(names) => names.iter().any(|name| name == series),
            Matches::Parts(parts) => parts.iter().any(|part| series.contains(part.as_str())),
        }
    }
}

/// The reasons for which counters are looked for, the strongest first.
fn reasons(asked: &Asked, explained: &[Explanation; 2]) -> Vec<(String, Matches)> {
    if !asked.counters.is_empty() {
        let asked = Matches::Exactly(asked.counters.clone());
        return vec![("asked for".to_owned(), asked)];
    }
    let words = words(&asked.claim);
    let named = words.iter().map(|word| {
        let parts = topic(word);
        (format!("the claim says \"{word}\""), Matches::Parts(parts))
    });
    let causes = causes(explained).into_iter().map(|id| {
        let parts = id.split('_').flat_map(topic).collect();
        (format!("the time of {id} differs"), Matches::Parts(parts))
    });
    named.chain(causes).collect()
}

/// The words of a text in lower case, without those too short to name anything.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.len() > 2).map(str::to_owned).collect()
}

/// What of the names of counters `word` speaks of; a word with `_` or a figure in it may be
/// part of such a name itself.
fn topic(word: &str) -> Vec<String> {
    let rows = TOPICS.iter().filter(|(words, _)| words.contains(&word));
    let mut parts: Vec<String> =
        rows.flat_map(|(_, parts)| parts.iter().map(|part| (*part).to_owned())).collect();
    if word.contains('_') || word.starts_with("pg") || word.starts_with("psw") {
        parts.push(word.to_owned());
    }
    parts
}

/// The findings whose time differs most between the two.
fn causes(explained: &[Explanation; 2]) -> Vec<String> {
    let time = |explanation: &Explanation, id: &str| -> f64 {
        let causes = explanation.findings.iter();
        let of_it = causes.filter(|cause| cause.finding.id == id);
        of_it.filter_map(|cause| cause.ns).map(|ns| ns as f64).sum()
    };
    let all = explained.iter().flat_map(|explanation| &explanation.findings);
    let ids: BTreeSet<&str> = all.map(|cause| cause.finding.id.as_str()).collect();
    let differs = |id: &str| (time(&explained[1], id) - time(&explained[0], id)).abs();
    let mut ids: Vec<&str> = ids.into_iter().filter(|id| differs(id) >= CAUSE_NS).collect();
    ids.sort_by(|a, b| differs(b).total_cmp(&differs(a)));
    ids.into_iter().take(CAUSES).map(str::to_owned).collect()
}

/// The counters of either recording, without those of the recorder itself, of single
/// processors and of the groups around the subject's.
fn candidates<'a>(views: &'a [View<'a>; 2]) -> impl Iterator<Item = &'a Series> {
    let is_listed = |series: &&Series| {
        let name = &series.schema.name;
        let outer = name.strip_prefix("group").is_some_and(|rest| !rest.starts_with('0'));
        let single = name.strip_prefix("stat.cpu").is_some_and(|rest| !rest.starts_with('.'));
        let histogram = name.contains("_le_");
        let own = name.starts_with("own.");
        series.schema.kind == SeriesKind::Counter && !(outer || single || histogram || own)
    };
    let all = views.iter().flat_map(|view| &view.recording().series);
    all.filter(is_listed)
}

fn moved(series: &Series, views: &[View; 2], why: String) -> CounterChange {
    let schema = &series.schema;
    let name = schema.name.as_str();
    let grown = |view: &View| {
        let sum = if name.starts_with("trace.") { view.sum(name) } else { view.growth(name) };
        sum.map(|sum| sum as f64)
    };
    let (first, second) = (grown(&views[0]), grown(&views[1]));
    CounterChange {
        series: schema.name.clone(),
        unit: schema.unit.clone(),
        source: schema.source.clone(),
        first,
        second,
        moved: first.zip(second).is_some_and(|(a, b)| is_moved(a, b, &schema.unit)),
        why,
    }
}

/// Whether two growths differ by more than a few and by more than a tenth.
fn is_moved(first: f64, second: f64, unit: &str) -> bool {
    let (difference, larger) = ((second - first).abs(), first.max(second));
    difference > few(unit) && difference >= MOVED_SHARE * larger
}

/// Puts the counters in order and leaves out what says nothing: those that moved, the
/// subject's own before the machine's, the most telling change first; then those that the claim
/// names and that did not move.
fn chosen(counters: &mut Vec<CounterChange>, asked: &Asked) {
    if !asked.counters.is_empty() {
        let place = |it: &CounterChange| asked.counters.iter().position(|name| *name == it.series);
        counters.sort_by_key(place);
        return;
    }
    let is_there = |it: &CounterChange| it.first.unwrap_or(0.0) + it.second.unwrap_or(0.0) > 0.0;
    counters.retain(|it| it.moved || (is_there(it) && it.why.starts_with("the claim")));
    counters.sort_by(|a, b| {
        let key = |it: &CounterChange| (!it.moved, !is_own(&it.series));
        key(a).cmp(&key(b)).then(weight(b).total_cmp(&weight(a)))
    });
    counters.truncate(SHOWN);
}

/// Whether a series is of the subject alone.
fn is_own(series: &str) -> bool {
    let own = ["tree.", "group0.", "trace.block_io.", "trace.sleep.", "trace.vmscan."];
    own.iter().any(|prefix| series.starts_with(prefix))
}

/// A growth that is as good as none.
fn few(unit: &str) -> f64 {
    match unit {
        "ns" => 1e6,
        "bytes" => 65_536.0,
        _ => 16.0,
    }
}

/// How telling a change is: its share of the larger, times how many digits more than a few
/// that has. All of a little tells less than half of a lot.
fn weight(it: &CounterChange) -> f64 {
    let (first, second) = (it.first.unwrap_or(0.0), it.second.unwrap_or(0.0));
    let larger = first.max(second);
    if larger > 0.0 {
        (second - first).abs() / larger * (larger / few(&it.unit)).ln_1p()
    } else {
        0.0
    }
}

fn verdict(counters: &[CounterChange]) -> String {
    let of_two = "One run of each: this shows what moved, not that the claim holds.";
    let (moved, still): (Vec<&CounterChange>, Vec<&CounterChange>) =
        counters.iter().partition(|it| it.moved);
    let names = |some: &[&CounterChange]| {
        let names: Vec<String> = some.iter().take(3).map(|it| format!("`{}`", it.series)).collect();
        list(&names)
    };
    match (moved.len(), still.len()) {
        (0, 0) => format!("No counter that belongs to the claim was recorded or moved. {of_two}"),
        (0, _) => {
            format!("No counter that belongs to the claim moved: {}. {of_two}", names(&still))
        }
        (1, _) => format!("One counter moved: {}. {of_two}", names(&moved)),
        (many, _) => format!("{many} counters moved, most of all {}. {of_two}", names(&moved)),
    }
}

#[cfg(test)]
mod tests;
