//! The table of the program of 2001: megabytes a second by method and pass, today's
//! averages beside the figures of the article where the size is the article's, and the
//! control that tells memory from processor.

use super::{PageText, Report, causes, interrupted};
use crate::output::Page;
use crate::output::csv::Sheet;
use crate::output::figure::{ABSENT, or_absent};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use measure::compute::ComputeReport;
use measure::memory::classic::METHODS;
use measure::memory::classic::{ClassicReport, ClassicRow};
use model::Bytes;
use serde::Serialize;

/// The article's figures for 16 MiB: Linux 2.2.16, Linux 2.4.4, Windows 2000 (MB/s).
const OF_2001: [[f64; 3]; 7] = [
    [173.644, 179.417, 132.077],
    [169.683, 169.000, 93.494],
    [170.065, 172.333, 96.156],
    [170.136, 172.648, 102.507],
    [170.066, 172.050, 123.498],
    [170.094, 172.330, 123.498],
    [169.778, 171.192, 123.283],
];

/// The size that the article measured.
const ARTICLE_BYTES: u64 = 16 << 20;

const NAMES: [&str; 7] =
    ["memcpy", "char *", "short *", "int *", "long *", "__int64 *", "double *"];

/// The columns that one method takes in the table of passes, the space before it
/// included: `__int64 *` and 100 GB/s have 9 letters.
const METHOD_WIDTH: usize = 10;

/// The columns that the number of a pass takes: as many as 100,000 needs.
const PASS_WIDTH: usize = 8;

/// A run of the old program: its options, what it measured, and the control.
#[derive(Debug, Serialize)]
pub struct ClassicResult {
    /// `-s`: only averages are printed; the JSON has all passes.
    #[serde(skip)]
    pub averages_only: bool,
    /// Method numbers in the order asked for.
    pub methods: Vec<usize>,
    /// `-f`.
    pub allocate_each_pass: bool,
    /// `-w`.
    pub locked: bool,
    /// `-p`, unless `-w` switched it off.
    pub prepare: bool,
    #[serde(flatten)]
    pub report: ClassicReport,
    /// The fractal of 2001; `None` where it could not be run any more.
    pub control: Option<ComputeReport>,
}

impl Report for ClassicResult {
    const COMMAND: &'static str = "measure memcpy";
    const SCHEMA: &'static str = "terrace.measure.classic/1";

    fn write_page(&self, out: &mut PageText) {
        out.heading(&self.title());
        if !self.averages_only {
            out.lines(|page| self.passes(page));
        }
        out.table(&self.averages(), 1);
        self.compare_control(out);
        out.note(&self.disturbed());
        if !self.prepare {
            out.note("not verified: without -p both blocks hold zeros, equal copied or not");
        }
        out.note(
            "MB is 10^6 bytes here; the article does not say whether its MB is 10^6 or 2^20, which \
             is 4.9 % apart",
        );
    }

    fn csv(&self) -> Option<String> {
        let passes = if self.averages_only { 0 } else { self.report.passes as usize };
        let mut sheet = Sheet::of(&self.methods).column("method", |&method| NAMES[method]);
        for pass in 0..passes {
            sheet = sheet.column(&format!("pass {}", pass + 1), |&method| {
                let rate = self.row(method)?.bytes_per_s.get(pass)?;
                Some(rate / 1e6)
            });
        }
        let sheet = sheet
            .column("average MB/s", |&method| Some(self.row(method)?.average_bytes_per_s / 1e6));
        Some(sheet.render())
    }

    fn shortfall(&self) -> Option<String> {
        let wrong = self.report.rows.iter().find(|row| row.verified == Some(false));
        if let Some(row) = wrong {
            return Some(format!("{}: the copy differs from its source", row.method));
        }
        let done: usize = self.report.rows.iter().map(|row| row.bytes_per_s.len()).sum();
        let asked = self.report.passes * self.methods.len() as u64;
        if done as u64 == asked {
            return None;
        }
        interrupted(sys::interrupt::requested())
            .or_else(|| Some(format!("the budget ended after {done} of {asked} passes")))
    }
}

impl ClassicResult {
    /// `memory copy of 16 MiB, 8 passes, prepared; MB/s`.
    fn title(&self) -> String {
        let options = [
            (self.allocate_each_pass, ", allocated for each pass (-f)"),
            (self.locked, ", locked (-w)"),
            (self.prepare, ", prepared (-p)"),
        ];
        let given = options.iter().filter(|(is_given, _)| *is_given);
        let options: String = given.map(|(_, text)| *text).collect();
        format!(
            "memory copy of {}, {} passes{options}; MB/s, each copied byte once",
            Bytes(self.report.size_bytes),
            self.report.passes
        )
    }

    fn row(&self, method: usize) -> Option<&ClassicRow> {
        self.report.rows.iter().find(|row| row.method == METHODS[method])
    }

    /// A row for each pass, a column for each method; as many tables below each other as
    /// the width needs, so that no method is left out.
    fn passes(&self, page: Page) -> String {
        let beside = page.width.saturating_sub(PASS_WIDTH) / METHOD_WIDTH;
        let mut text = String::new();
        for methods in self.methods.chunks(beside.max(1)) {
            let passes = 0..self.report.passes as usize;
            let number = |pass: usize| Cell::toned((pass + 1).to_string(), Tone::Dim);
            let mut table = Table::of(passes).gap(1).numbers("pass", 0, number);
            for &method in methods {
                table = table.numbers(NAMES[method], 0, |pass| {
                    let rate = self.row(method).and_then(|row| row.bytes_per_s.get(pass));
                    or_absent(rate, |rate| format!("{:.1}", rate / 1e6))
                });
            }
            text.push_str(&table.render(page, 1));
        }
        text
    }

    /// The averages, with the article's beside them.
    fn averages(&self) -> Table<usize> {
        let average = |row: &ClassicRow| format!("{:.3}", row.average_bytes_per_s / 1e6);
        let verified = |method| match self.row(method).and_then(|row| row.verified) {
            Some(true) => Cell::from("yes"),
            Some(false) => Cell::toned("NO", Tone::Warn),
            None => Cell::from(ABSENT),
        };
        let mut table = Table::of(self.methods.iter().copied())
            .numbers("", 0, |method| method.to_string())
            .words("method", 0, |method| NAMES[method])
            .numbers("average", 0, |method| or_absent(self.row(method), average))
            .words("verified", 2, verified);
        if self.report.size_bytes == ARTICLE_BYTES {
            let then = ["2.2.16 (2001)", "2.4.4 (2001)", "Win2000 (2001)"];
            for (system, title) in then.iter().enumerate() {
                table = table.numbers(title, 1, |method| format!("{:.3}", OF_2001[method][system]));
            }
        }
        table
    }

    /// The control beside its figures of 2001: where it gained as much as the copies, the
    /// memory alone explains nothing.
    fn compare_control(&self, out: &mut PageText) {
        let Some(control) = &self.control else {
            return out.note("the control was not run: the time ended before it");
        };
        let then = control.seconds_2001.map(|seconds| format!("{seconds:.3}"));
        out.sentence(&format!(
            "Control, no memory: the fractal takes {:.3} s for {} steps; in 2001 {} s.",
            control.seconds,
            control.iterations,
            then.join(", ")
        ));
    }

    fn disturbed(&self) -> String {
        let tally = &self.report.tally;
        let disturbed = tally.discarded();
        let of = format!("of {} passes", u64::from(tally.kept) + u64::from(disturbed));
        match disturbed {
            0 => format!("none {of} was disturbed"),
            _ => {
                format!("{disturbed} {of} were disturbed ({}); as in 2001 all count", causes(tally))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::disturbance::Tally;

    fn result(averages_only: bool) -> ClassicResult {
        let row = |method: &str, rate: f64| ClassicRow {
            method: method.to_owned(),
            bytes_per_s: vec![rate, 2.0 * rate],
            average_bytes_per_s: 1.5 * rate,
            verified: Some(true),
        };
        ClassicResult {
            averages_only,
            methods: vec![0, 5],
            allocate_each_pass: false,
            locked: false,
            prepare: true,
            report: ClassicReport {
                rows: vec![row("memcpy", 10e9), row("int64", 8e9)],
                size_bytes: 16 << 20,
                passes: 2,
                tally: Tally::default(),
                interrupted: false,
            },
            control: None,
        }
    }

    #[test]
    fn the_figures_of_2001_are_those_of_the_lab() {
        let experiment = lab::description::named("memory-copy-2001").unwrap();
        let all = lab::memory_copy::systems(&experiment);
        for (number, published) in OF_2001.iter().enumerate() {
            let ours: Vec<f64> = all.iter().map(|system| system.rates[number]).collect();
            assert_eq!(ours, published, "{}", METHODS[number]);
        }
    }

    #[test]
    fn each_pass_is_a_row_unless_only_averages_are_asked_for() {
        let text = result(false).page(Page::plain(80));
        let rows = " pass  memcpy __int64 *\n    1 10000.0    8000.0\n    2 20000.0   16000.0\n";
        assert!(text.contains(rows), "{text}");
        assert!(text.contains("15000.000") && text.contains("123.498"), "{text}");
        assert!(text.contains("10^6"), "{text}");
        assert!(text.contains("yes") && !text.contains("not verified"), "{text}");
        let text = result(true).page(Page::plain(80));
        assert!(!text.contains("20000.0") && text.contains("15000.000"), "{text}");
    }

    /// Blocks of zeros are equal whatever the method did.
    #[test]
    fn nothing_is_called_verified_that_was_not_prepared() {
        let mut zeros = result(true);
        zeros.prepare = false;
        zeros.report.rows.iter_mut().for_each(|row| row.verified = None);
        let text = zeros.page(Page::plain(80));
        assert!(!text.contains("yes"), "{text}");
        assert!(text.contains("not verified"), "{text}");
    }

    #[test]
    fn no_method_is_left_out_on_a_narrow_page() {
        let mut all = result(false);
        all.methods = (0..7).collect();
        for width in [40, 80] {
            let text = all.page(Page::plain(width));
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            let titles: Vec<&str> = text.lines().filter(|line| line.starts_with(" pass")).collect();
            for name in NAMES {
                assert!(titles.iter().any(|line| line.contains(name)), "{text}");
            }
        }
    }

    #[test]
    fn the_rows_of_the_program_have_its_headings() {
        let text = result(false).csv().unwrap();
        assert_eq!(
            text,
            "method,pass 1,pass 2,average MB/s\nmemcpy,10000,20000,15000\n__int64 *,8000,16000,12000\n"
        );
        let text = result(true).csv().unwrap();
        assert!(text.starts_with("method,average MB/s\nmemcpy,15000\n"), "{text}");
    }

    #[test]
    fn missing_passes_and_wrong_copies_are_a_shortfall() {
        assert_eq!(result(false).shortfall(), None);
        let mut short = result(false);
        short.report.rows[1].bytes_per_s.pop();
        assert!(short.shortfall().unwrap().contains("3 of 4 passes"));
        let mut wrong = result(false);
        wrong.report.rows[0].verified = Some(false);
        assert!(wrong.shortfall().unwrap().contains("memcpy"));
    }
}
