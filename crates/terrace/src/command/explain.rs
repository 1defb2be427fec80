//! `terrace explain`: prints the verdict of a recording, or of a part of it, as text or JSON.
//! The crate `explain` judges; this file reads the recording and writes the result.

mod window;

use super::open_recording;
use crate::args::When;
use crate::args::recordings::ExplainArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::prose::shell_word;
use crate::output::survey::Detail;
use crate::output::verdict::{self, VerdictSetting};
use crate::output::{OutputTarget, Page, json};
use explain::recording::{Window, explain as explain_recording};
use model::explanation::Explanation;
use model::recording::Facts;
use model::recording::Recording;
use record::file::Outline;

/// Explains, and delivers the explanation.
///
/// # Errors
/// If the recording cannot be read, or the window is outside of it.
pub fn explain(args: &ExplainArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let (recording, window) = read(args)?;
    let explanation = explain_recording(&recording, window);
    let text = if args.json {
        json::render(&explanation)?
    } else {
        let setting = setting(args, &explanation, &recording.facts);
        verdict::page(&explanation, &setting, Detail::of(args.details), page)
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// The recording and the requested window. Of a long recording only the window is read, if
/// possible.
fn read(args: &ExplainArgs) -> Result<(Recording, Window)> {
    let is_part = args.from.is_some() || args.to.is_some() || args.at.is_some();
    if let Some(outline) = is_part.then(|| Outline::open(&args.file)).flatten() {
        let window = window::of(args, outline.recording())?;
        let (from_ns, to_ns) = (window.from_ns.unwrap_or(0), window.to_ns.unwrap_or(u64::MAX));
        if let Some(recording) = outline.part(from_ns, to_ns) {
            return Ok((recording, window));
        }
    }
    let recording = open_recording(&args.file)?;
    let window = window::of(args, &recording)?;
    Ok((recording, window))
}

fn setting(args: &ExplainArgs, explanation: &Explanation, facts: &Facts) -> VerdictSetting {
    let file = shell_word(&args.file.display().to_string());
    VerdictSetting {
        title: match explanation.subject.as_str() {
            "" => "terrace explain".to_owned(),
            subject => format!("terrace: {subject}"),
        },
        root: facts.root,
        redacted: facts.redacted,
        details: if args.details {
            String::new()
        } else {
            format!("terrace explain {file} --details")
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::recording::{RecordingOutcome, SeriesKind, Span, Tick};
    use record::{RecordSink, Registry, Row, file};
    use std::time::Duration;
    use testkit::TempDir;

    /// Two minutes at 10 Hz, in 120 chunks, of a machine that reads from one disk and runs.
    fn made(path: &std::path::Path) {
        let mut registry = Registry::new();
        let mut output = file::FileSink::create(path, false, &Facts::default()).unwrap();
        let names = [
            ("tree.run_ns", SeriesKind::Counter, 60_000_000),
            ("tree.queue_ns", SeriesKind::Counter, 25_000_000),
            ("tree.threads", SeriesKind::Gauge, 0),
            ("disk.vda.read_bytes", SeriesKind::Counter, 4 << 20),
            ("disk.vda.io_ns", SeriesKind::Counter, 90_000_000),
            ("own.cpu_ns", SeriesKind::Counter, 300_000),
        ];
        let mut row = Row::default();
        for number in 0..1200u64 {
            for (name, kind, growth) in names {
                let id = registry.id(name, "ns", kind, "x").unwrap();
                row.count(id, 3 + number * growth);
            }
            let due_ns = number * 100_000_000;
            let tick = Tick { due_ns, at_ns: due_ns + number % 5 };
            output.sample(tick, registry.schemas(), &row).unwrap();
            if number % 10 == 9 {
                output.flush().unwrap();
            }
        }
        let span = Span {
            kind: "events_stopped".to_owned(),
            text: "too many events".to_owned(),
            start_ns: 50_000_000_000,
            end_ns: 50_000_000_000,
        };
        output.span(&span).unwrap();
        let outcome = RecordingOutcome {
            ended_ns: 120_000_000_000,
            missed_samples: 3,
            ..RecordingOutcome::default()
        };
        output.finish(&Facts::default(), &outcome).unwrap();
    }

    #[test]
    fn a_part_that_is_read_alone_is_explained_as_in_the_whole() {
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        made(&path);
        let all = open_recording(&path).unwrap();
        for from_s in [1, 40, 77, 110] {
            let since = |s| Some(crate::args::value::Moment::Since(Duration::from_secs(s)));
            let args = ExplainArgs {
                file: path.clone(),
                from: since(from_s),
                to: since(from_s + 5),
                at: None,
                details: false,
                json: true,
                output: None,
            };
            let (part, window) = read(&args).unwrap();
            assert!(part.ticks.len() < all.ticks.len() / 2, "{from_s}");
            let json = |recording| json::render(&explain_recording(recording, window)).unwrap();
            assert_eq!(json(&part), json(&all), "{from_s}");
        }
    }
}
