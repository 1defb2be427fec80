//! What `terrace doctor` found, for people and for programs: the sentence, a line for each source,
//! and for each that does not work what it costs and what would allow it.

use super::Page;
use super::prose::{PageText, indented};
use super::style::Tone;
use super::table::tied;
use model::doctor::{Obstacle, SourceHealth, SourceReport, Surroundings};
use serde::Serialize;

/// Where the lines of the report begin.
const STATE_WIDTH: usize = 8;

/// All that `terrace doctor` found.
#[derive(Debug, Serialize)]
pub struct DoctorResult {
    /// `terrace.doctor/1`.
    pub schema: &'static str,
    /// The version of this program.
    pub version: &'static str,
    /// The first sentence of the page.
    pub summary: String,
    /// What this process is.
    pub surroundings: Surroundings,
    /// Every source, in the order of the page.
    pub sources: Vec<SourceReport>,
}

impl DoctorResult {
    pub fn new(summary: String, surroundings: Surroundings, sources: Vec<SourceReport>) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { schema: "terrace.doctor/1", version, summary, surroundings, sources }
    }
}

/// The page.
pub fn page(result: &DoctorResult, page: Page) -> String {
    let mut out = PageText::new(page);
    out.heading(&result.summary);
    out.lines(|page| result.sources.iter().map(|report| line(report, page)).collect());
    let is_lacking = |report: &&SourceReport| {
        matches!(report.health, SourceHealth::Partly | SourceHealth::Missing)
    };
    for report in result.sources.iter().filter(is_lacking) {
        out.lines(|page| lacking(report, page));
    }
    if result.sources.iter().any(|report| is_lacking(&report)) {
        out.lines(|_| "\n".to_owned());
        out.note("No line above was run. For containers docs/doctor.md has whole commands.");
    }
    out.finish()
}

fn state(health: SourceHealth) -> (&'static str, Tone) {
    match health {
        SourceHealth::Works => ("works", Tone::Plain),
        SourceHealth::Partly => ("partly", Tone::Warn),
        SourceHealth::Idle => ("idle", Tone::Dim),
        SourceHealth::Missing => ("missing", Tone::Warn),
    }
}

/// `works   samples of processors: they were taken`.
fn line(report: &SourceReport, page: Page) -> String {
    let (word, tone) = state(report.health);
    let why = report.why.as_deref().unwrap_or_default();
    let text = match (report.seen.is_empty(), why.is_empty()) {
        (false, _) => report.seen.clone(),
        (true, false) => why.to_owned(),
        (true, true) => String::new(),
    };
    let padded = format!("{word:<STATE_WIDTH$}");
    let line = format!("{}{}: {text}", tied(&padded), report.title);
    indented(&line, tone, 1, 1 + STATE_WIDTH, page)
}

/// What is missing of one source.
fn lacking(report: &SourceReport, page: Page) -> String {
    let number = report.errno.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let why = report.why.as_deref().unwrap_or_default();
    let title = format!("{}: {why}{number}", report.title);
    let cost = format!("Costs {}: {}.", report.cost.commands.join(", "), report.cost.then);
    let mut text = format!("\n{}", indented(&title, Tone::Strong, 1, 3, page));
    text.push_str(&indented(&cost, Tone::Plain, 3, 5, page));
    for (index, permit) in report.lines.iter().enumerate() {
        let word = if index == 0 { "Allow" } else { "Or" };
        let line = format!("{word}: {}", tied(&permit.line));
        text.push_str(&indented(&line, Tone::Plain, 3, 5, page));
        text.push_str(&indented(&format!("Risk: {}", permit.risk), Tone::Dim, 5, 7, page));
    }
    if report.lines.is_empty() {
        let none = match report.obstacle {
            Some(Obstacle::Unknown) => "No line is known that allows it.",
            _ => "Nothing on this machine allows it.",
        };
        text.push_str(&indented(none, Tone::Dim, 3, 5, page));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::doctor::{PermitLine, SourceCost, SourceId};

    fn report(health: SourceHealth, lines: Vec<PermitLine>) -> SourceReport {
        let is_lacking = health != SourceHealth::Works;
        SourceReport {
            source: SourceId::IoUring,
            title: "queues".to_owned(),
            health,
            seen: if is_lacking { String::new() } else { "a queue was set up".to_owned() },
            why: is_lacking.then(|| "kernel.io_uring_disabled is 2".to_owned()),
            errno: is_lacking.then(|| "EPERM".to_owned()),
            obstacle: is_lacking.then_some(Obstacle::Setting),
            lines,
            cost: SourceCost { commands: vec!["copy".to_owned()], then: "threads read".to_owned() },
        }
    }

    fn shown(sources: Vec<SourceReport>) -> String {
        let result = DoctorResult::new("1 of 2.".to_owned(), Surroundings::default(), sources);
        page(&result, Page::plain(80))
    }

    #[test]
    fn a_source_that_is_missing_has_its_cost_its_line_and_the_risk() {
        let line = "sudo sysctl kernel.io_uring_disabled=0".to_owned();
        let permit = PermitLine { line, risk: "Flaws.".to_owned() };
        let text = shown(vec![
            report(SourceHealth::Works, Vec::new()),
            report(SourceHealth::Missing, vec![permit]),
        ]);
        assert!(text.starts_with("1 of 2.\n works   queues: a queue was set up\n"), "{text}");
        for part in [
            " missing queues: kernel.io_uring_disabled is 2\n",
            " queues: kernel.io_uring_disabled is 2 (EPERM)\n",
            "   Costs copy: threads read.\n",
            "   Allow: sudo sysctl kernel.io_uring_disabled=0\n",
            "     Risk: Flaws.\n",
            "No line above was run.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_works_needs_no_line_and_what_nothing_allows_says_so() {
        let text = shown(vec![report(SourceHealth::Works, Vec::new())]);
        assert!(!text.contains("Allow") && !text.contains("No line"), "{text}");
        let text = shown(vec![report(SourceHealth::Missing, Vec::new())]);
        assert!(text.contains("Nothing on this machine allows it."), "{text}");
    }
}
