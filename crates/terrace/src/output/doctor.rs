//! What `terrace doctor` found, for people and for programs: the sentence, a line for each source,
//! for each that does not work what it costs and what would allow it, and what security modules
//! refused.

use super::Page;
use super::prose::{PageText, count, indented};
use super::style::Tone;
use super::table::tied;
use explain::doctor::denial_sentence;
use model::denial::{DenialReport, MessagesRead};
use model::doctor::{Obstacle, PermitLine, SourceHealth, SourceReport, Surroundings};
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
    /// What security modules refused to this program, the last one first.
    pub denials: Vec<DenialReport>,
    /// Which of the kernel's messages were read for denials.
    pub kernel_messages: MessagesRead,
}

impl DoctorResult {
    pub fn new(summary: String, surroundings: Surroundings, sources: Vec<SourceReport>) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self {
            schema: "terrace.doctor/1",
            version,
            summary,
            surroundings,
            sources,
            denials: Vec::new(),
            kernel_messages: MessagesRead::default(),
        }
    }

    pub fn with_denials(self, denials: Vec<DenialReport>, kernel_messages: MessagesRead) -> Self {
        Self { denials, kernel_messages, ..self }
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
    let is_refused = result.denials.iter().any(|report| report.denial.is_own);
    for report in result.sources.iter().filter(is_lacking) {
        out.lines(|page| lacking(report, is_refused, page));
    }
    if !result.denials.is_empty() {
        out.lines(|page| denials(result, page));
    } else if let Some(why) = &result.kernel_messages.why {
        out.lines(|_| "\n".to_owned());
        out.note(&format!(
            "Not known: whether SELinux or AppArmor refused something, as the kernel's messages \
             cannot be read: {why}."
        ));
    }
    if result.sources.iter().any(|report| is_lacking(&report)) || !result.denials.is_empty() {
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

/// What security modules refused, and what was looked at.
fn denials(result: &DoctorResult, page: Page) -> String {
    let messages = &result.kernel_messages;
    let title = format!("Refused to terrace by a security module ({}):", messages.looked_at());
    let mut text = format!("\n{}", indented(&title, Tone::Strong, 1, 3, page));
    // Denials by one profile share a line.
    let mut printed: Vec<&PermitLine> = Vec::new();
    for report in &result.denials {
        text.push_str(&indented(&denial_sentence(report), Tone::Plain, 3, 5, page));
        let lines: Vec<&PermitLine> =
            report.lines.iter().filter(|line| !printed.contains(line)).collect();
        text.push_str(&permits(&lines, ("Suggested", "Or"), 5, page));
        printed.extend(lines);
    }
    if messages.left_out > 0 {
        let rest = format!("{} earlier ones are left out.", count(messages.left_out));
        text.push_str(&indented(&rest, Tone::Dim, 3, 5, page));
    }
    const DOUBT: &str = "Any program may call itself terrace: see first that the process was one. \
                         Where auditd runs, later denials are in its log and not here.";
    text.push_str(&indented(DOUBT, Tone::Dim, 3, 5, page));
    text
}

/// Lines that would allow something, each with its risk, behind `indent` spaces. `words` are what
/// stands before the first line and before the others.
fn permits(lines: &[&PermitLine], words: (&str, &str), indent: usize, page: Page) -> String {
    let mut text = String::new();
    for (index, permit) in lines.iter().enumerate() {
        let word = if index == 0 { words.0 } else { words.1 };
        let line = format!("{word}: {}", tied(&permit.line));
        text.push_str(&indented(&line, Tone::Plain, indent, indent + 2, page));
        let risk = format!("Risk: {}", permit.risk);
        text.push_str(&indented(&risk, Tone::Dim, indent + 2, indent + 4, page));
    }
    text
}

/// What is missing of one source. `is_refused` says whether a security module refused something to
/// this report.
fn lacking(report: &SourceReport, is_refused: bool, page: Page) -> String {
    let number = report.errno.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let why = report.why.as_deref().unwrap_or_default();
    let title = format!("{}: {why}{number}", report.title);
    let cost = format!("Costs {}: {}.", report.cost.commands.join(", "), report.cost.then);
    let mut text = format!("\n{}", indented(&title, Tone::Strong, 1, 3, page));
    text.push_str(&indented(&cost, Tone::Plain, 3, 5, page));
    let lines: Vec<&PermitLine> = report.lines.iter().collect();
    text.push_str(&permits(&lines, ("Allow", "Or"), 3, page));
    if report.lines.is_empty() {
        let none = match report.obstacle {
            Some(Obstacle::Unknown) if is_refused => {
                "A security module may be why: what was refused to this report is shown below."
            }
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
    use model::denial::{Denial, SecurityModule};
    use model::doctor::{SourceCost, SourceId};

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

    fn refused(name: &str) -> DenialReport {
        DenialReport {
            denial: Denial {
                module: SecurityModule::AppArmor,
                subject: "/usr/bin/terrace".to_owned(),
                operation: "open".to_owned(),
                object: Some(name.to_owned()),
                object_context: None,
                class: Some("file".to_owned()),
                rights: Some("r".to_owned()),
                pid: Some(7),
                uid: Some(0),
                thread: "terrace".to_owned(),
                is_own: false,
                count: 2,
                last_unix_s: 1,
            },
            last: "1970-01-01 00:00:01".to_owned(),
            lines: vec![
                PermitLine { line: "sudo one".to_owned(), risk: "First.".to_owned() },
                PermitLine { line: "sudo two".to_owned(), risk: "Second.".to_owned() },
            ],
        }
    }

    fn with_denials(denials: Vec<DenialReport>, messages: MessagesRead) -> String {
        let sources = vec![report(SourceHealth::Works, Vec::new())];
        let result = DoctorResult::new("1 of 1.".to_owned(), Surroundings::default(), sources);
        page(&result.with_denials(denials, messages), Page::plain(120))
    }

    #[test]
    fn modules_are_named_only_where_a_denial_was_seen() {
        let looked = MessagesRead { readable: true, is_whole: true, ..MessagesRead::default() };
        let none = with_denials(Vec::new(), looked.clone());
        for word in ["AppArmor", "SELinux", "security module", "messages", "No line"] {
            assert!(!none.contains(word), "{word}: {none}");
        }
        let seen = vec![refused("/etc/x\u{1b}[31m"), refused("/etc/y")];
        let text = with_denials(seen, MessagesRead { left_out: 3, ..looked });
        for part in [
            "\n Refused to terrace by a security module (the kernel's messages since boot):\n",
            "\n   1970-01-01 00:00:01: AppArmor, profile /usr/bin/terrace: open of \
             '/etc/x\\x1b[31m' (file, r), by process 7",
            "\n     Suggested: sudo one\n       Risk: First.\n     Or: sudo two\n",
            "\n   3 earlier ones are left out.\n",
            "Any program may call itself terrace",
            "Where auditd runs",
            "No line above was run.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.contains("of /etc/y (file, r)"), "{text}");
        assert_eq!(text.matches("sudo one").count(), 1, "it is the line of both: {text}");
    }

    #[test]
    fn an_unknown_reason_points_to_what_was_refused_to_this_report() {
        let unknown = || SourceReport {
            obstacle: Some(Obstacle::Unknown),
            ..report(SourceHealth::Missing, Vec::new())
        };
        let text = |is_own| {
            let mut denial = refused("/etc/x");
            denial.denial.is_own = is_own;
            let surroundings = Surroundings::default();
            let result = DoctorResult::new("0 of 1.".to_owned(), surroundings, vec![unknown()]);
            page(&result.with_denials(vec![denial], MessagesRead::default()), Page::plain(120))
        };
        let (own, other) = (text(true), text(false));
        let pointer = "A security module may be why";
        assert!(own.contains(pointer) && !own.contains("No line is known"), "{own}");
        assert!(!other.contains(pointer) && other.contains("No line is known"), "{other}");
    }

    #[test]
    fn messages_that_cannot_be_read_are_not_taken_for_none() {
        let text = with_denials(Vec::new(), explain::doctor::unread("cannot open /dev/kmsg", true));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "refused something, as the kernel's messages cannot be read: cannot open \
                        /dev/kmsg; it takes";
        assert!(flat.contains(expected), "{text}");
    }

    #[test]
    fn what_works_needs_no_line_and_what_nothing_allows_says_so() {
        let text = shown(vec![report(SourceHealth::Works, Vec::new())]);
        assert!(!text.contains("Allow") && !text.contains("No line"), "{text}");
        let text = shown(vec![report(SourceHealth::Missing, Vec::new())]);
        assert!(text.contains("Nothing on this machine allows it."), "{text}");
    }
}
