//! The page of `ramdisk why`: the verdict in a sentence, the passes, the causes ruled out, the
//! remedies with what they gained here, and what cannot be seen. Pure.

use super::Report;
use super::figure::{self, or_absent, precise_time};
use super::prose::{self, PageText};
use super::report::interrupted_after;
use super::table::Table;
use model::Bytes;
use model::doctor::POINTER;
use model::finding::Finding;
use model::ramdisk::{
    Effect, Pass, PassEnd, RamDiskObservation, RamDiskVerdict, Round, RunRange, SLOW, TriedRemedy,
};
use serde::Serialize;

/// What was seen, and what it means.
#[derive(Debug, Serialize)]
pub struct RamdiskAnswer {
    /// The verdict.
    #[serde(flatten)]
    pub judged: RamDiskVerdict,
    /// The figures it rests on.
    #[serde(flatten)]
    pub seen: RamDiskObservation,
    /// Whether Ctrl-C ended it before all passes were made.
    #[serde(skip)]
    pub interrupted: bool,
}

impl Report for RamdiskAnswer {
    const COMMAND: &'static str = "ramdisk why";
    const SCHEMA: &'static str = "terrace.ramdisk-why/1";

    fn write_page(&self, out: &mut PageText) {
        let (judged, seen) = (&self.judged, &self.seen);
        out.heading(&format!("terrace ramdisk why: {} in {}", Bytes(seen.asked_bytes), seen.place));
        for (number, finding) in judged.findings.iter().enumerate() {
            let also = if number == 0 { "" } else { "Also: " };
            out.sentence(&format!("{also}{} ({})", finding.claim, finding.grade));
        }
        out.table(&passes(seen, judged.usual_ns), 3);
        let first = judged.findings.first();
        out.sentences(evidence(first));
        out.sentences(cleared(judged));
        let remedy = first.and_then(|first| first.remedy.as_ref());
        out.sentences(remedy.map(|remedy| format!("What to do: {remedy}")));
        out.sentences(judged.tried.iter().map(measured));
        out.notes(judged.unseen.iter().map(|why| format!("Not seen: {why} ({POINTER})")));
        out.notes(&seen.notes);
        out.notes(cut(seen));
    }

    fn shortfall(&self) -> Option<String> {
        interrupted_after("seen", self.interrupted)
    }
}

fn passes(seen: &RamDiskObservation, usual_ns: Option<f64>) -> Table<&Pass> {
    let slow = |pass: &Pass| {
        let usual_ns = usual_ns.filter(|_| pass.touches > 0);
        or_absent(usual_ns.map(|usual| pass.share_from(usual * SLOW)), figure::percent)
    };
    let in_all = |pass: &Pass| Some(pass.touch_ns as f64).filter(|ns| *ns > 0.0);
    Table::of(&seen.passes)
        .words("written", 0, |pass| words(pass.round))
        .numbers("size", 2, |pass| Bytes(pass.bytes).to_string())
        .numbers("a page", 0, |pass| precise_time(pass.mean_ns()))
        .numbers("p50", 3, |pass| precise_time(pass.p50_ns))
        .numbers("p99", 1, |pass| precise_time(pass.p99_ns))
        .numbers("slow", 0, slow)
        .numbers("in all", 0, |pass| precise_time(in_all(pass)))
}

fn words(round: Round) -> &'static str {
    match round {
        Round::First => "new memory",
        Round::Again => "given back, and new again",
        Round::Rewrite => "the same pages over",
        Round::Huge => "new memory, huge pages",
    }
}

/// "Evidence: vmstat.pswpout 67,464 pages; ..."
fn evidence(finding: Option<&Finding>) -> Option<String> {
    let pieces = finding?.evidence.iter();
    let figures: Vec<String> =
        pieces.map(|piece| format!("{} {}", piece.name, prose::value(piece))).collect();
    (!figures.is_empty()).then(|| format!("Evidence: {}.", figures.join("; ")))
}

/// The causes ruled out, each with its number, in one sentence.
fn cleared(judged: &RamDiskVerdict) -> Option<String> {
    let causes: Vec<String> = judged
        .excluded
        .iter()
        .map(|one| {
            let piece = &one.evidence;
            let value = match piece.unit.as_str() {
                "ratio" => figure::percent(piece.value),
                _ => prose::value(piece),
            };
            format!("{} ({} {value})", one.reason.words(), piece.name)
        })
        .collect();
    (!causes.is_empty()).then(|| format!("Not to blame: {}.", causes.join(", ")))
}

/// What a remedy gained: "Measured: with huge pages, 0.6 us a page (0.5 us to 0.7 us in 5 runs);
/// 3 us before (..): it helps."
fn measured(tried: &TriedRemedy) -> String {
    let range = |range: Option<RunRange>| {
        let Some(range) = range else {
            return String::new();
        };
        let runs = match range.runs {
            1 => "one run with that noise".to_owned(),
            runs => format!("{runs} runs"),
        };
        format!(" ({} to {}, {runs})", precise_time(range.low_ns), precise_time(range.high_ns))
    };
    let verdict = match (tried.effect, tried.after_range) {
        (Effect::Helps, _) => "it helps",
        (Effect::Harms, _) => "it does harm here",
        (Effect::Unproven, Some(_)) => "unproven, within the noise",
        (Effect::Unproven, None) => "unproven, too few runs to know the noise",
    };
    format!(
        "Measured: with {}, {} a page{}; {}{} before: {verdict}.",
        tried.what,
        precise_time(tried.after_ns),
        range(tried.after_range),
        precise_time(tried.before_ns),
        range(tried.before_range),
    )
}

/// Why a pass is shorter than asked for.
fn cut(seen: &RamDiskObservation) -> Vec<String> {
    let why_cut = |pass: &Pass| {
        let why = match pass.end? {
            PassEnd::Whole => return None,
            PassEnd::Time => "its time was over (--budget)",
            PassEnd::Floor => "no more memory could be taken from the others",
            PassEnd::Full => "the RAM disk was full",
        };
        let bytes = Bytes(pass.bytes);
        Some(format!("\"{}\" ended after {bytes}: {why}", words(pass.round)))
    };
    seen.passes.iter().filter_map(why_cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Page;
    use model::ramdisk::Reason;

    fn answer() -> RamdiskAnswer {
        let mut touches = model::Histogram::new();
        let mut first = Pass::begun(Round::First);
        for number in 0..1000 {
            touches.add(if number % 2 == 0 { 2_000 } else { 12_000 });
        }
        first.describe(&touches);
        (first.bytes, first.touch_ns) = (4_096_000, 7_000_000);
        first.end = Some(PassEnd::Floor);
        let seen = RamDiskObservation {
            place: "shared memory".to_owned(),
            asked_bytes: 1 << 30,
            page_bytes: 4096,
            passes: vec![first],
            repeats: Vec::new(),
            limits: Vec::new(),
            killed: false,
            is_guest: Some(true),
            swap_areas: Vec::new(),
            notes: vec!["huge pages were not tried: permission denied".to_owned()],
        };
        RamdiskAnswer { judged: explain::ramdisk::judge(&seen), seen, interrupted: true }
    }

    #[test]
    fn the_page_begins_with_the_verdict_and_fits() {
        let mut answer = answer();
        let range = |low_ns, high_ns, runs| RunRange { low_ns, high_ns, runs };
        let tried = TriedRemedy {
            what: "huge pages".to_owned(),
            before_ns: 7_000.0,
            after_ns: 14_000.0,
            before_range: Some(range(6_000.0, 8_000.0, 1)),
            after_range: Some(range(12_000.0, 15_000.0, 5)),
            effect: Effect::Harms,
        };
        let unproven = TriedRemedy { effect: Effect::Unproven, ..tried.clone() };
        let single = TriedRemedy { before_range: None, after_range: None, ..unproven.clone() };
        answer.judged.tried = vec![tried, unproven, single];
        let text = answer.page(Page::plain(80));
        assert!(
            text.starts_with("terrace ramdisk why: 1 GiB in shared memory\n A page takes 7"),
            "{text}"
        );
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in [
            "(unseen)",
            "new memory 3.91 MiB 7 us 2 us 12 us 50 % 7 ms",
            "huge pages, 14 us a page (12 us to 15 us, 5 runs); 7 us (6 us to 8 us, one run with that noise) before: it does harm here.",
            "before: unproven, within the noise.",
            "huge pages, 14 us a page; 7 us before: unproven, too few runs to know the noise.",
            "Not seen: swap:",
            "ended after 3.91 MiB: no more memory could be taken",
            "not tried: permission denied",
        ] {
            assert!(joined.contains(expected), "{expected}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(answer.shortfall().unwrap().starts_with("interrupted"));
    }

    #[test]
    fn the_json_has_verdict_and_figures_side_by_side() {
        let json = serde_json::to_value(answer()).unwrap();
        assert_eq!(json["verdict"], Reason::Unproven.id());
        assert_eq!(json["passes"][0]["round"], "first");
        assert_eq!(json["passes"][0]["end"], "floor");
    }
}
