//! The page of `memory-copy-2001`: the answer first, then what it stands on, then the table of 2001
//! and the parameters that were open. Pure.

use crate::output::Page;
use crate::output::figure::{self, ABSENT, Digits, or_absent};
use crate::output::prose::{heading, sentence};
use crate::output::report::interrupted;
use crate::output::style::Tone;
use crate::output::table::{Cell, Column, Table};
use explain::copying::{Limit, MethodLimit, Ratio};
use lab::description::Experiment;
use lab::memory_copy::{
    ARTICLE_BYTES, CACHED_BYTES, MemoryCopyOutcome, Row, SYSTEMS, Stride, Then,
};
use measure::memory::PageKind;
use measure::memory::classic::METHODS;
use measure::memory::copy::CopyRow;
use model::{Bytes, Estimate};
use std::path::Path;

/// The titles that the systems have in a table.
const SHORT: [&str; 3] = ["2.2.16", "2.4.4", "Win2000"];

impl super::OutcomePage for MemoryCopyOutcome {
    fn page(&self, experiment: &Experiment, out: Option<&Path>, page: Page) -> String {
        let title = format!("{}: {}", experiment.name, experiment.title);
        let mut text = heading(page, &title);
        let mut lines = |lines: Vec<String>| {
            text.extend(lines.iter().map(|line| sentence(page, line)));
        };
        lines(answer(self));
        text.push_str(&limits(self, page));
        text.push_str(&then_and_now(self, page));
        text.push_str(&open_parameters(self, page));
        let kept = out.map(|out| {
            let out = out.display();
            format!("Kept in {out}: result.json and the recording whole.trec.")
        });
        let notes = self.notes.iter().map(|note| format!("Not measured: {note}."));
        text.extend(notes.chain(kept).map(|line| sentence(page, &line)));
        text
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
fn limits(outcome: &MemoryCopyOutcome, page: Page) -> String {
    let memory = outcome.memory_bytes;
    let size = or_absent(memory, |bytes| Bytes(bytes).to_string());
    let mut text = heading(page, "What moves the data, and what limits it; GB/s");
    let mut table = Table::new(vec![
        Column::words("method"),
        Column::words("moved by"),
        Column::numbers(&Bytes(CACHED_BYTES).to_string()).rank(2),
        Column::numbers(&Bytes(ARTICLE_BYTES).to_string()).rank(1),
        Column::numbers(&size),
        Column::numbers("2 cores"),
        Column::words("limit"),
    ])
    .gap(1);
    for verdict in &outcome.verdicts {
        let method = verdict.method.as_str();
        let mover = outcome.movers.iter().find(|mover| mover.method == method);
        let of = |rows, bytes| giga(rate(rows, method, bytes));
        let tone = match verdict.limit {
            Limit::Unproven => Tone::Dim,
            _ => Tone::Plain,
        };
        table.row(vec![
            method.into(),
            or_absent(mover, |mover| mover.store.clone()).into(),
            of(&outcome.blocks, Some(CACHED_BYTES)).into(),
            of(&outcome.blocks, Some(ARTICLE_BYTES)).into(),
            of(&outcome.blocks, memory).into(),
            of(&outcome.two_cores, memory).into(),
            Cell::toned(verdict.limit.name(), tone),
        ]);
    }
    text.push_str(&table.render(page, 1));
    let reason = |verdict: &MethodLimit| format!("{}: {}", verdict.method, verdict.because);
    let because = outcome.verdicts.iter().map(reason);
    text.extend(because.map(|line| sentence(page, &line)));
    text.extend(pairs(outcome).map(|line| sentence(page, &line)));
    text
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
fn then_and_now(outcome: &MemoryCopyOutcome, page: Page) -> String {
    let title = format!(
        "The table of 2001: {}, {} passes, prepared; MB/s, each byte once",
        Bytes(outcome.size_bytes),
        outcome.passes
    );
    let mut text = heading(page, &title);
    let mut columns =
        vec![Column::words("method"), Column::numbers("today"), Column::numbers("95 % interval")];
    columns.extend(SHORT.map(Column::numbers));
    let mut rates = Table::new(columns);
    for row in &outcome.rows {
        let mega = |rate: f64| format!("{:.0}", rate / 1e6);
        let today = &row.bytes_per_s;
        let interval = today.low.zip(today.high);
        let mut cells = vec![
            row.method.as_str().into(),
            mega(today.median).into(),
            or_absent(interval, |(low, high)| format!("{} to {}", mega(low), mega(high))).into(),
        ];
        cells.extend(then(row, |then| format!("{:.3}", then.mb_per_s)));
        rates.row(cells);
    }
    text.push_str(&rates.render(page, 1));
    text.push_str(&relations(outcome).render(page, 1));
    let unit = "Today's MB is 10^6 bytes. The original does not say whether its MB is 10^6 or 2^20, so \
                each gain has two ends, 4.9 % apart. Today's figure is the median of the passes; the original \
                printed their average.";
    text.push_str(&sentence(page, unit));
    let disturbed = u64::from(outcome.tally.discarded());
    if disturbed > 0 {
        let all = u64::from(outcome.tally.kept) + disturbed;
        let line = format!("Others disturbed {disturbed} of {all} passes; as in 2001 all count.");
        text.push_str(&sentence(page, &line));
    }
    text
}

/// Each method beside memcpy of the same column, and how many times faster than then.
fn relations(outcome: &MemoryCopyOutcome) -> Table {
    let mut columns = vec![Column::words("of memcpy"), Column::numbers("today")];
    columns.extend(SHORT.map(Column::numbers));
    columns.extend(SHORT.map(|system| Column::numbers(&format!("x {system}"))));
    let mut table = Table::new(columns);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    for row in &outcome.rows {
        let mut cells = vec![row.method.as_str().into(), or_absent(row.of_memcpy, percent).into()];
        cells.extend(then(row, |then| percent(then.of_memcpy)));
        cells.extend(then(row, |then| range(then.times_if_binary, then.times_if_decimal)));
        table.row(cells);
    }
    table
}

/// A cell for each system.
fn then(row: &Row, shown: impl Fn(&Then) -> String) -> Vec<Cell> {
    let of = |name: &str| row.then.iter().find(|then| then.system == name);
    SYSTEMS.map(|name| or_absent(of(name), &shown).into()).into()
}

/// Block size, stride, page size, page tables.
fn open_parameters(outcome: &MemoryCopyOutcome, page: Page) -> String {
    let mut text = String::new();
    let mut part = |title: &str, table: Table, said: Vec<String>| {
        if !table.is_empty() {
            text.push_str(&heading(page, title));
            text.push_str(&table.render(page, 1));
            text.extend(said.iter().map(|line| sentence(page, line)));
        }
    };
    part("Block size; GB/s", blocks(outcome), Vec::new());
    let title = "Stride and page size: int64 down matrix columns; GB/s (95 % interval +-)";
    part(title, strides(&outcome.strides), walks(&outcome.strides));
    let reach = match outcome.reach_bytes {
        Some(bytes) => format!("4 KiB pages cost more from {} on.", Bytes(bytes)),
        None => "That 4 KiB pages cost more is not proven up to the largest buffer.".to_owned(),
    };
    let title = "Page tables: one dependent load at random (95 % interval +-)";
    part(title, loads(outcome), vec![reach]);
    text
}

fn blocks(outcome: &MemoryCopyOutcome) -> Table {
    let mut sizes: Vec<u64> = outcome.blocks.iter().map(|row| row.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut columns = vec![Column::words("method")];
    columns.extend(sizes.iter().map(|&size| Column::numbers(&Bytes(size).to_string())));
    let mut table = Table::new(columns);
    let first = sizes.first().copied();
    let of_first = |row: &&CopyRow| Some(row.size_bytes) == first;
    for CopyRow { method, .. } in outcome.blocks.iter().filter(of_first) {
        let mut cells = vec![Cell::from(method.as_str())];
        let rates = sizes.iter().map(|&size| giga(rate(&outcome.blocks, method, Some(size))));
        cells.extend(rates.map(Cell::from));
        table.row(cells);
    }
    table
}

/// A row for each walk, a column for each kind of page.
fn strides(all: &[Stride]) -> Table {
    let mut table = Table::new(vec![
        Column::words("matrix"),
        Column::words("from one element to the next"),
        Column::numbers("4 KiB pages"),
        Column::numbers("huge pages"),
    ]);
    for base in all.iter().filter(|one| one.pages == PageKind::Base) {
        let same = |one: &&Stride| {
            one.pages == PageKind::Transparent
                && (one.size_bytes, one.elements) == (base.size_bytes, base.elements)
        };
        let huge = all.iter().find(same);
        let step = match base.elements {
            0 => "in sequence".to_owned(),
            elements => format!("{elements} elements, {} bytes", elements * 8),
        };
        table.row(vec![
            Bytes(base.size_bytes).to_string().into(),
            step.into(),
            with_error(as_asked(base), |rate| giga(Some(rate))).into(),
            with_error(huge.and_then(as_asked), |rate| giga(Some(rate))).into(),
        ]);
    }
    table
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

fn loads(outcome: &MemoryCopyOutcome) -> Table {
    let mut table = Table::new(vec![
        Column::words("buffer"),
        Column::numbers("4 KiB pages"),
        Column::numbers("huge pages"),
    ]);
    let time = |ns: &Option<Estimate>| {
        with_error(ns.as_ref(), |ns| figure::time(ns.median, Digits::Three))
    };
    for load in &outcome.loads {
        table.row(vec![
            Bytes(load.size_bytes).to_string().into(),
            time(&load.base_ns).into(),
            time(&load.huge_ns).into(),
        ]);
    }
    table
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
    rate.map_or_else(|| ABSENT.to_owned(), |rate| figure::number(rate.median / 1e9, Digits::Three))
}

/// `105-110`, one number where both ends show alike.
fn range(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|end| figure::number(end, Digits::Two));
    if low == high { low } else { format!("{low}-{high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
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
