//! The page of `hog`: what the hogs did in a sentence or two, then who lost how much.
//!
//! Pure. The page shows the largest losers; the JSON has up to a thousand.

use super::Report;
use super::figure::{self, or_absent};
use super::prose::PageText;
use super::table::Table;
use measure::pressure::{self, HogPlan, MemoryLoss};
use model::Bytes;
use serde::Serialize;

/// How many losers have a line.
const MOST_LINES: usize = 20;

/// What the hogs did, and what was asked of them.
#[derive(Debug, Serialize)]
pub struct HogResult {
    #[serde(skip)]
    pub plan: HogPlan,
    #[serde(flatten)]
    pub report: pressure::HogReport,
}

impl Report for HogResult {
    const COMMAND: &'static str = "hog";
    const SCHEMA: &'static str = "terrace.hog/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let (plan, report) = (&self.plan, &self.report);
        out.heading(&title(plan));
        out.sentence(&done(report));
        out.sentences(pressure(plan, report));
        out.sentences(report.killed.iter().map(|why| format!("A hog was killed: {why}")));
        if report.pushed_out.is_empty() {
            out.sentence("Nobody who could be seen lost anything.");
        } else {
            out.sentence("Pushed out of memory, at most at any time:");
            out.table(&losers(&report.pushed_out), 3);
        }
        let left = report.pushed_out.len().saturating_sub(MOST_LINES);
        if left > 0 {
            out.note(&format!("{left} more lost less; --json names them"));
        }
        out.notes(&report.notes);
    }

    fn shortfall(&self) -> Option<String> {
        let report = &self.report;
        if report.interrupted {
            Some("interrupted: the hogs have ended; this is what they did until then".to_owned())
        } else if !report.killed.is_empty() {
            Some(format!("{} of the hogs were killed", report.killed.len()))
        } else {
            None
        }
    }
}

/// "terrace hog: 2 of 1 GiB, 25 times, in a group of 256 MiB"
fn title(plan: &HogPlan) -> String {
    let times = if plan.repeat == 1 { "once".to_owned() } else { format!("{} times", plan.repeat) };
    let group = plan.group_limit.map_or(String::new(), |limit| format!(", in a group of {limit}"));
    format!("terrace hog: {} of {}, {times}{group}", plan.count, plan.size)
}

fn done(report: &pressure::HogReport) -> String {
    let swapped = or_absent(report.machine_swapped_out_bytes, |bytes| Bytes(bytes).to_string());
    let ended = match report.finished {
        1 => "1 hog ended by itself".to_owned(),
        count => format!("{count} hogs ended by themselves"),
    };
    format!(
        "{ended}; {} were touched in {}. The machine wrote {swapped} to swap meanwhile, theirs included.",
        Bytes(report.touched_bytes),
        figure::precise_time(report.elapsed_ns as f64),
    )
}

fn pressure(plan: &HogPlan, report: &pressure::HogReport) -> Option<String> {
    let (percent, file) = (plan.until_pressure_percent?, report.pressure_of.as_ref()?);
    let what =
        if report.pressure_reached? { "reached: they stopped growing" } else { "not reached" };
    Some(format!("Waiting for memory {percent} % of the time: {what} ({}).", file.display()))
}

fn losers(all: &[MemoryLoss]) -> Table<&MemoryLoss> {
    let size = |bytes: u64| {
        or_absent(Some(bytes).filter(|bytes| *bytes > 0), |bytes| Bytes(bytes).to_string())
    };
    Table::of(all.iter().take(MOST_LINES))
        .words("whose", 0, |who| who.whose.as_str())
        .numbers("process", 1, |who| or_absent(who.pid, |pid| pid.to_string()))
        .numbers("to swap", 0, |who| size(who.to_swap_bytes))
        .numbers("from the cache", 0, |who| size(who.from_cache_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use sys::helper::HiddenCommand;

    fn plan() -> HogPlan {
        HogPlan {
            count: 2,
            repeat: 25,
            group_limit: Some(Bytes(256 << 20)),
            until_pressure_percent: Some(20),
            ..HogPlan::new(Bytes(1 << 30), HiddenCommand::new(["none"]))
        }
    }

    fn report() -> HogResult {
        let victim = MemoryLoss {
            whose: "victim".to_owned(),
            pid: Some(7),
            to_swap_bytes: 16 << 20,
            from_cache_bytes: 0,
        };
        let report = pressure::HogReport {
            rounds: 25,
            finished: 49,
            killed: vec!["ended by signal 9 after 1 MiB".to_owned()],
            touched_bytes: 50 << 30,
            elapsed_ns: 41_000_000_000,
            pressure_reached: Some(true),
            pressure_of: Some("/proc/pressure/memory".into()),
            machine_swapped_out_bytes: None,
            interrupted: false,
            pushed_out: vec![victim; 22],
            notes: vec!["shared memory is not seen".to_owned()],
        };
        HogResult { plan: plan(), report }
    }

    #[test]
    fn the_page_names_losers_killed_and_what_is_not_seen() {
        let text = report().page(Page::plain(80));
        assert!(
            text.starts_with("terrace hog: 2 of 1 GiB, 25 times, in a group of 256 MiB\n"),
            "{text}"
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "49 hogs ended by themselves; 50 GiB were touched in 41 s.",
            "wrote - to swap",
            "20 % of the time: reached",
            "A hog was killed: ended by signal 9",
            "victim 7 16 MiB -",
            "2 more lost less",
            "shared memory is not seen",
        ] {
            assert!(words.contains(expected), "{expected}: {text}");
        }
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(text.matches("victim").count(), MOST_LINES);
    }

    #[test]
    fn a_hog_that_was_killed_or_interrupted_is_no_success() {
        let mut result = report();
        assert_eq!(result.shortfall().as_deref(), Some("1 of the hogs were killed"));
        result.report.killed.clear();
        assert_eq!(result.shortfall(), None);
        result.report.interrupted = true;
        assert!(result.shortfall().unwrap().starts_with("interrupted"));
    }
}
