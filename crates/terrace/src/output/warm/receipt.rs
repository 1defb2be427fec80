//! The receipt of `warm restore`: what was planned, what was read, what of it is there now,
//! what that spares those who need it, and why it ended.

use super::{counted, kind_name, parts, place_name};
use crate::output::figure::{self, Digits, or_absent};
use crate::output::prose::{PageText, count, long_time};
use crate::output::report::{Report, interrupted_after};
use crate::output::table::Table;
use model::Bytes;
use place::background::StopReason;
use place::workingset::restore::RestoreMethod;
use place::workingset::restore::{PlannedSource, RestoreReport, RestoredSource};
use place::workingset::speed::DiskSpeed;
use serde::Serialize;

/// What was planned and, unless only that was asked for, what was done.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReceipt {
    /// One for each source.
    pub planned: Vec<PlannedSource>,
    /// What the devices showed.
    pub speeds: Vec<DiskSpeed>,
    /// What cannot be seen or done, each in a line.
    pub notes: Vec<String>,
    /// `None` after `--dry-run`.
    pub done: Option<RestoreReport>,
}

impl Report for RestoreReceipt {
    const COMMAND: &'static str = "warm restore";
    const SCHEMA: &'static str = "terrace.warm.restore/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        match &self.done {
            Some(report) => write_done(report, out),
            None => {
                out.heading("terrace warm restore: nothing was read (--dry-run)");
                parts::write_planned(&self.planned, out);
            }
        }
        out.notes(&self.notes);
        out.notes(self.done.iter().flat_map(|report| &report.notes));
    }

    fn shortfall(&self) -> Option<String> {
        let Some(done) = &self.done else {
            return interrupted_after("seen", sys::interrupt::requested());
        };
        let stop = done.stop;
        // Whoever sets a limit is not surprised by it.
        let wanted = matches!(stop, StopReason::Done | StopReason::Budget);
        (!wanted).then(|| format!("not all of it is back: {}", why(stop)))
    }
}

/// What was done: a sentence, the sources, what is spared, why it ended.
fn write_done(report: &RestoreReport, out: &mut PageText) {
    let sum = |of: fn(&RestoredSource) -> u64| report.parts.iter().map(of).sum::<u64>();
    let pages = sum(|part| part.pages);
    let elapsed = long_time(report.elapsed_ns);
    if pages == 0 {
        out.heading("terrace warm restore: no page was read");
    } else {
        out.heading(&format!(
            "terrace warm restore: read {} ({}) in {elapsed}",
            Bytes(sum(|part| part.bytes)),
            counted(pages, "page", "pages")
        ));
        out.table(&table(&by_place(&report.parts)), 3);
    }
    if report.paused_ns >= report.elapsed_ns / 10 && report.paused_ns > 0 {
        let paused = long_time(report.paused_ns);
        out.sentence(&format!("Of {elapsed} it paused {paused}: others wanted the processors."));
    }
    let gone = sum(|part| part.gone_pages);
    if gone > 0 {
        let gone = counted(gone, "page was", "pages were");
        out.sentence(&format!("{gone} gone: its process or mapping has ended meanwhile."));
    }
    out.sentences(spared(&report.parts));
    out.sentence(&format!("Ended: {}.", why(report.stop)));
}

/// One part for each place and way to read.
fn by_place(parts: &[RestoredSource]) -> Vec<RestoredSource> {
    let mut sums: Vec<RestoredSource> = Vec::new();
    for part in parts.iter().filter(|part| part.pages > 0) {
        let name = place_name(part.kind, &part.source);
        let key = (part.kind, name, part.method);
        let same = |sum: &&mut RestoredSource| (sum.kind, sum.source.as_str(), sum.method) == key;
        match sums.iter_mut().find(same) {
            Some(sum) => {
                sum.bytes += part.bytes;
                sum.pages += part.pages;
                sum.present_pages += part.present_pages;
                sum.elapsed_ns += part.elapsed_ns;
            }
            None => sums.push(RestoredSource { source: name.to_owned(), ..part.clone() }),
        }
    }
    sums
}

fn table(parts: &[RestoredSource]) -> Table<&RestoredSource> {
    let present = |part: &RestoredSource| part.present_pages as f64 / part.pages as f64;
    let rate = |part: &RestoredSource| part.bytes as f64 * 1e9 / part.elapsed_ns.max(1) as f64;
    Table::of(parts)
        .words("what", 0, |part| kind_name(part.kind))
        .numbers("read", 0, |part| Bytes(part.bytes).to_string())
        .words("from", 0, |part| part.source.as_str())
        .numbers("now there", 0, |part| figure::percent(present(part)))
        .numbers("took", 0, |part| long_time(part.elapsed_ns))
        .numbers("rate", 2, |part| figure::rate(rate(part), Digits::Two))
        .words("how", 1, |part| or_absent(part.method, method))
}

fn method(method: RestoreMethod) -> String {
    match method {
        RestoreMethod::RemoteRead => "one reader".to_owned(),
        RestoreMethod::RemoteReaders(readers) => format!("{readers} readers"),
        RestoreMethod::WillNeed => "advice".to_owned(),
        RestoreMethod::AdviceOnly => "advice alone".to_owned(),
    }
}

/// "Spares 12,288 faults of about 7.81 ms each: up to 96 s"
fn spared(parts: &[RestoredSource]) -> Option<String> {
    let known = || parts.iter().filter_map(|part| Some((part, part.avoided_ns?)));
    let faults: u64 = known().map(|(part, _)| part.avoided_faults).sum();
    let ns: u64 = known().map(|(_, ns)| ns).sum();
    (faults > 0).then(|| {
        format!(
            "Spares up to {} faults, each a read of about {} by what the disk showed: {}.",
            count(faults),
            figure::precise_time(ns as f64 / faults as f64),
            long_time(ns)
        )
    })
}

/// Why it ended, in words that follow a colon.
pub(super) fn why(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Done => "all was done",
        StopReason::Floor => "free memory came down to the floor",
        StopReason::Pressure => "others began to wait for memory",
        StopReason::GroupLimit => "a control group is at its limit",
        StopReason::Yield => "what was read did not stay in memory",
        StopReason::Budget => "the time or the bytes that it was given were used up",
        StopReason::Cancelled => "interrupted",
        StopReason::SourceGone => "its source is gone: the process, the swap area or the disk",
        _ => "the guard said so",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use place::workingset::restore::MemoryKind;

    fn receipt(stop: StopReason) -> RestoreReceipt {
        let part = RestoredSource {
            kind: MemoryKind::Anonymous,
            source: "/swap".to_owned(),
            method: Some(RestoreMethod::RemoteReaders(4)),
            bytes: 48 << 20,
            present_pages: 12_000,
            pages: 12_288,
            gone_pages: 1,
            elapsed_ns: 480_000_000,
            avoided_faults: 12_000,
            avoided_ns: Some(120_000_000_000),
        };
        RestoreReceipt {
            planned: Vec::new(),
            speeds: Vec::new(),
            notes: vec!["before".to_owned()],
            done: Some(RestoreReport {
                stop,
                parts: vec![part],
                elapsed_ns: 500_000_000,
                paused_ns: 300_000_000,
                notes: vec!["after".to_owned()],
            }),
        }
    }

    #[test]
    fn the_receipt_says_what_is_back_what_is_spared_and_why_it_ended() {
        let text = receipt(StopReason::Pressure).page(Page::plain(80));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "read 48 MiB (12,288 pages) in 500 ms",
            "anonymous 48 MiB /swap 98 % 480 ms 105 MB/s 4 readers",
            "Of 500 ms it paused 300 ms: others wanted the processors.",
            "1 page was gone",
            "Spares up to 12,000 faults, each a read of about 10 ms by what the disk showed: 2 min",
            "Ended: others began to wait for memory. before after",
        ] {
            assert!(words.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn only_an_end_that_was_asked_for_is_a_success() {
        for stop in [StopReason::Done, StopReason::Budget] {
            assert_eq!(receipt(stop).shortfall(), None);
        }
        for stop in [StopReason::Floor, StopReason::GroupLimit, StopReason::SourceGone] {
            assert!(receipt(stop).shortfall().unwrap().contains(why(stop)));
        }
        let interrupted = receipt(StopReason::Cancelled).shortfall().unwrap();
        assert!(interrupted.ends_with("interrupted"));
    }

    #[test]
    fn nothing_in_swap_has_a_receipt_as_well() {
        let mut nothing = receipt(StopReason::Done);
        if let Some(report) = &mut nothing.done {
            report.parts.clear();
        }
        let text = nothing.page(Page::plain(80));
        assert!(text.starts_with("terrace warm restore: no page was read\n"), "{text}");
        assert!(text.contains("before") && !text.contains("Spares"), "{text}");
        assert_eq!(nothing.shortfall(), None);
    }
}
