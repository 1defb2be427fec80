//! The page of `memory-copy-2001`: the answer first, then what it stands on, then the table of 2001
//! and the parameters that were open. Pure.

use crate::output::figure::{self, Digits, or_absent};
use crate::output::prose::PageText;
use crate::output::report::interrupted;
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use explain::copying::{Limit, MethodLimit, Ratio};
use lab::description::Experiment;
use lab::memory_copy::{
    ARTICLE_BYTES, CACHED_BYTES, Load, MemoryCopyOutcome, Row, SYSTEMS, Stride, Then,
};
use measure::memory::PageKind;
use measure::memory::classic::METHODS;
use measure::memory::copy::CopyRow;
use model::{Bytes, Estimate};
use std::path::Path;

/// The titles that the systems have in a table.
const SHORT: [&str; 3] = ["2.2.16", "2.4.4", "Win2000"];

impl super::OutcomePage for MemoryCopyOutcome {
    fn write_page(&self, experiment: &Experiment, directory: Option<&Path>, out: &mut PageText) {
        out.heading(&format!("{}: {}", experiment.name, experiment.title));
        out.sentences(answer(self));
        write_limits(self, out);
        write_then_and_now(self, out);
        write_open_parameters(self, out);
        out.sentences(self.notes.iter().map(|note| format!("Not measured: {note}.")));
        out.sentences(directory.map(|directory| {
            let directory = directory.display();
            format!("Kept in {directory}: result.json and the recording whole.trec.")
        }));
    }

    fn shortfall(&self) -> Option<String> {
        let differs = |row: &&Row| row.verified == Some(false);
        let of_2001 = self.rows.iter().find(differs).map(|row| &row.method);
        let unverified = |row: &&CopyRow| row.bytes_per_s.is_some() && !row.verified;
        let mut measured = self.blocks.iter().chain(&self.two_cores);
        let others = || measured.find(unverified).map(|row| &row.method);
        if let Some(method) = of_2001.or_else(others) {
            return Some(format!("{method}: the copy differs from its source"));
        }
        interrupted(sys::interrupt::requested())
    }
}

/// Why two systems differed, and by how much memory and processor gained.
fn answer(outcome: &MemoryCopyOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(answer) = &outcome.answer {
        lines.push(format!("Why two systems differ: {}", answer.now));
        lines.push(format!("In 2001: {}", answer.then));
    }
    let gains = |row: &Row| {
        let least = row.then.iter().map(|then| then.times_if_binary);
        let most = row.then.iter().map(|then| then.times_if_decimal);
        range(least.fold(f64::MAX, f64::min), most.fold(0.0, f64::max))
    };
    let memcpy = outcome.rows.iter().find(|row| row.method == METHODS[0]);
    if let (Some(row), Some(control)) = (memcpy, &outcome.control) {
        let faster = control.seconds_2001.map(|then| then / control.seconds);
        let [a, b, c] = faster;
        lines.push(format!(
            "Since then memcpy of 16 MiB became {} times as fast, the control, which needs no memory, {} \
             times ({:.3} s for 100,000,000 steps; then {} s).",
            gains(row),
            range(a.min(b).min(c), a.max(b).max(c)),
            control.seconds,
            control.seconds_2001.map(|s| format!("{s:.3}")).join(", "),
        ));
    }
    lines
}

/// What moves the data of each method and what limits it, with the sentences that prove it.
fn write_limits(outcome: &MemoryCopyOutcome, out: &mut PageText) {
    let memory = outcome.memory_bytes;
    let size = or_absent(memory, |bytes| Bytes(bytes).to_string());
    let mover = |verdict: &MethodLimit| {
        let mover = outcome.movers.iter().find(|mover| mover.method == verdict.method);
        or_absent(mover, |mover| mover.store.clone())
    };
    let of = |rows, verdict: &MethodLimit, bytes| giga(rate(rows, &verdict.method, bytes));
    let limit = |verdict: &MethodLimit| {
        let is_proven = verdict.limit != Limit::Unproven;
        Cell::toned(verdict.limit.name(), if is_proven { Tone::Plain } else { Tone::Dim })
    };
    let (blocks, two_cores) = (&outcome.blocks, &outcome.two_cores);
    let table = Table::of(&outcome.verdicts)
        .gap(1)
        .words("method", 0, |verdict| verdict.method.as_str())
        .words("moved by", 0, mover)
        .numbers(&Bytes(CACHED_BYTES).to_string(), 2, |it| of(blocks, it, Some(CACHED_BYTES)))
        .numbers(&Bytes(ARTICLE_BYTES).to_string(), 1, |it| of(blocks, it, Some(ARTICLE_BYTES)))
        .numbers(&size, 0, |verdict| of(blocks, verdict, memory))
        .numbers("2 cores", 0, |verdict| of(two_cores, verdict, memory))
        .words("limit", 0, limit);
    out.heading("What moves the data, and what limits it; GB/s");
    out.table(&table, 1);
    let reason = |verdict: &MethodLimit| format!("{}: {}", verdict.method, verdict.because);
    out.sentences(outcome.verdicts.iter().map(reason));
    out.sentences(pairs(outcome));
}

/// One loop as two compilers make it.
fn pairs(outcome: &MemoryCopyOutcome) -> impl Iterator<Item = String> {
    outcome.pairs.iter().filter_map(|pair| {
        let mut said = Vec::new();
        let mut add = |what: &str, ratio: &Option<Ratio>| {
            said.extend(ratio.map(|ratio| format!("{what} {}", as_fast(&ratio))));
        };
        add("as rep movsb", &pair.string_over_loop);
        add("as compiled today", &pair.compiled_over_loop);
        let times = said.join("; ");
        (!said.is_empty()).then(|| format!("The {} loop over 16 MiB: {times}.", pair.method))
    })
}

/// The table of 2001.
fn write_then_and_now(outcome: &MemoryCopyOutcome, out: &mut PageText) {
    out.heading(&format!(
        "The table of 2001: {}, {} passes, prepared; MB/s, each byte once",
        Bytes(outcome.size_bytes),
        outcome.passes
    ));
    let mega = |rate: f64| format!("{:.0}", rate / 1e6);
    let interval = |row: &Row| {
        let ends = row.bytes_per_s.low.zip(row.bytes_per_s.high);
        or_absent(ends, |(low, high)| format!("{} to {}", mega(low), mega(high)))
    };
    let rates = Table::of(&outcome.rows)
        .words("method", 0, |row| row.method.as_str())
        .numbers("today", 0, |row| mega(row.bytes_per_s.median))
        .numbers("95 % interval", 0, interval);
    out.table(&with_systems(rates, "", |then| format!("{:.3}", then.mb_per_s)), 1);
    out.table(&relations(outcome), 1);
    out.sentence(
        "Today's MB is 10^6 bytes. The original does not say whether its MB is 10^6 or 2^20, so \
         each gain has two ends, 4.9 % apart. Today's figure is the median of the passes; the \
         original printed their average.",
    );
    let disturbed = u64::from(outcome.tally.discarded());
    if disturbed > 0 {
        let all = u64::from(outcome.tally.kept) + disturbed;
        out.sentence(&format!(
            "Others disturbed {disturbed} of {all} passes; as in 2001 all count."
        ));
    }
}

/// Each method beside memcpy of the same column, and how many times faster than then.
fn relations(outcome: &MemoryCopyOutcome) -> Table<&Row> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let today = |row: &Row| or_absent(row.of_memcpy, percent);
    let table = Table::of(&outcome.rows)
        .words("of memcpy", 0, |row| row.method.as_str())
        .numbers("today", 0, today);
    let beside = with_systems(table, "", |then| percent(then.of_memcpy));
    with_systems(beside, "x ", |then| range(then.times_if_binary, then.times_if_decimal))
}

/// `table` and a column for each system, titled with `prefix` before its name.
fn with_systems<'r>(
    table: Table<&'r Row>,
    prefix: &str,
    shown: impl Fn(&Then) -> String,
) -> Table<&'r Row> {
    SYSTEMS.iter().zip(SHORT).fold(table, |table, (system, title)| {
        table.numbers(&format!("{prefix}{title}"), 0, |row| {
            or_absent(row.then.iter().find(|then| then.system == *system), &shown)
        })
    })
}

/// Block size, stride, page size, page tables.
fn write_open_parameters(outcome: &MemoryCopyOutcome, out: &mut PageText) {
    let blocks = blocks(outcome);
    if !blocks.is_empty() {
        out.heading("Block size; GB/s");
        out.table(&blocks, 1);
    }
    let strides = strides(&outcome.strides);
    if !strides.is_empty() {
        out.heading("Stride and page size: int64 down matrix columns; GB/s (95 % interval +-)");
        out.table(&strides, 1);
        out.sentences(walks(&outcome.strides));
    }
    if !outcome.loads.is_empty() {
        out.heading("Page tables: one dependent load at random (95 % interval +-)");
        out.table(&loads(outcome), 1);
        out.sentence(&match outcome.reach_bytes {
            Some(bytes) => format!("4 KiB pages cost more from {} on.", Bytes(bytes)),
            None => "That 4 KiB pages cost more is not proven up to the largest buffer.".to_owned(),
        });
    }
}

fn blocks(outcome: &MemoryCopyOutcome) -> Table<&str> {
    let mut sizes: Vec<u64> = outcome.blocks.iter().map(|row| row.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of_first = |row: &&CopyRow| Some(&row.size_bytes) == sizes.first();
    let methods = outcome.blocks.iter().filter(of_first).map(|row| row.method.as_str());
    let table = Table::of(methods).words("method", 0, |method| method);
    sizes.iter().fold(table, |table, &size| {
        table.numbers(&Bytes(size).to_string(), 0, |method| {
            giga(rate(&outcome.blocks, method, Some(size)))
        })
    })
}

/// A row for each walk, a column for each kind of page.
fn strides(all: &[Stride]) -> Table<&Stride> {
    let step = |base: &Stride| match base.elements {
        0 => "in sequence".to_owned(),
        elements => format!("{elements} elements, {} bytes", elements * 8),
    };
    let huge = |base: &Stride| {
        let walk = (base.size_bytes, base.elements);
        let mut huge = all.iter().filter(|one| one.pages == PageKind::Transparent);
        huge.find(|one| (one.size_bytes, one.elements) == walk).and_then(as_asked)
    };
    let shown = |rate| with_error(rate, |rate| giga(Some(rate)));
    Table::of(all.iter().filter(|one| one.pages == PageKind::Base))
        .words("matrix", 0, |base| Bytes(base.size_bytes).to_string())
        .words("from one element to the next", 0, step)
        .numbers("4 KiB pages", 0, |base| shown(as_asked(base)))
        .numbers("huge pages", 0, |base| shown(huge(base)))
}

/// The rate on pages that were granted as asked for; else it is no figure of them.
fn as_asked(stride: &Stride) -> Option<&Estimate> {
    let rate = stride.bytes_per_s.as_ref();
    rate.filter(|_| stride.granted.is_none_or(|share| share > 0.5))
}

/// What the walks over the large matrix say: the stride at its worst, and the page size.
fn walks(all: &[Stride]) -> Vec<String> {
    let large = |pages: PageKind| {
        let of = all.iter().filter(move |one| one.pages == pages);
        of.filter(|one| one.size_bytes == ARTICLE_BYTES)
            .filter_map(|one| Some((one.elements, as_asked(one)?)))
    };
    let sequence = |pages| large(pages).find(|(step, _)| *step == 0).map(|(_, rate)| rate);
    let in_sequence = sequence(PageKind::Base);
    let worst = large(PageKind::Base).min_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let stride = worst.zip(in_sequence).and_then(|((step, rate), sequence)| {
        let ratio = as_fast(&Ratio::of(sequence, rate)?);
        Some(format!("In sequence beside by {step} elements, on pages of 4 KiB: {ratio}."))
    });
    let huge = sequence(PageKind::Transparent);
    let pages = huge.zip(in_sequence).and_then(|(huge, base)| {
        let ratio = as_fast(&Ratio::of(huge, base)?);
        Some(format!("Huge pages beside pages of 4 KiB, in sequence: {ratio}."))
    });
    stride.into_iter().chain(pages).collect()
}

/// `1.46 times (1.4 to 1.52) as fast`, with a word of doubt where the error bars allow 1.
fn as_fast(ratio: &Ratio) -> String {
    let doubt = if ratio.is_proven() { "" } else { ", unproven" };
    format!("{ratio} as fast{doubt}")
}

fn loads(outcome: &MemoryCopyOutcome) -> Table<&Load> {
    let time =
        |ns: &Option<Estimate>| with_error(ns.as_ref(), |ns| figure::precise_time(ns.median));
    Table::of(&outcome.loads)
        .words("buffer", 0, |load| Bytes(load.size_bytes).to_string())
        .numbers("4 KiB pages", 0, |load| time(&load.base_ns))
        .numbers("huge pages", 0, |load| time(&load.huge_ns))
}

fn rate<'r>(rows: &'r [CopyRow], method: &str, bytes: Option<u64>) -> Option<&'r Estimate> {
    let is_it = |row: &&CopyRow| row.method == method && Some(row.size_bytes) == bytes;
    rows.iter().find(is_it)?.bytes_per_s.as_ref()
}

/// A figure with half its interval: `1.15 (12 %)`.
fn with_error(of: Option<&Estimate>, shown: impl Fn(&Estimate) -> String) -> String {
    or_absent(of, |of| format!("{} ({})", shown(of), figure::plus_minus(of)))
}

/// A rate in GB/s without its unit, or a dash.
fn giga(rate: Option<&Estimate>) -> String {
    or_absent(rate, |rate| figure::number(rate.median / 1e9, Digits::Three))
}

/// `105-110`, one number where both ends show alike.
fn range(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|end| figure::number(end, Digits::Two));
    if low == high { low } else { format!("{low}-{high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use model::estimate::Better;

    fn stride(elements: usize, pages: PageKind, granted: f64, gb_per_s: f64) -> Stride {
        let values = [0.99, 1.0, 1.0, 1.0, 1.0, 1.0, 1.01].map(|share| share * gb_per_s * 1e9);
        Stride {
            size_bytes: ARTICLE_BYTES,
            elements,
            pages,
            granted: Some(granted),
            bytes_per_s: Estimate::from_values(&values, Better::Higher, 0),
        }
    }

    #[test]
    fn a_walk_is_compared_with_the_same_on_pages_that_were_granted() {
        let all = |granted| {
            [
                stride(0, PageKind::Base, 1.0, 20.0),
                stride(0, PageKind::Transparent, granted, 30.0),
                stride(512, PageKind::Base, 1.0, 0.5),
                stride(512, PageKind::Transparent, granted, 0.6),
            ]
        };
        let said = walks(&all(1.0));
        assert!(said[0].contains("40 times"), "{said:?}");
        assert!(said[0].contains("by 512 elements"), "{said:?}");
        assert!(said[1].contains("1.5 times"), "{said:?}");
        let refused = all(0.1);
        assert_eq!(walks(&refused).len(), 1);
        let text = strides(&refused).render(Page::plain(80), 1);
        assert!(text.contains("20 (1 %)") && !text.contains("30"), "{text}");
    }

    #[test]
    fn both_readings_of_a_unit_are_one_number_where_they_show_alike() {
        assert_eq!(range(95.4, 100.0), "95-100");
        assert_eq!(range(18.1, 18.3), "18");
    }
}
