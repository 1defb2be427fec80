//! `terrace explain`: prints the verdict of a recording, or of a part of it, as text or JSON.
//! The crate `explain` judges; this file reads the recording and writes the result.

mod window;

use super::{moments, open_recording, recorder_ring};
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
use record::file::{RecordingOutline, request_rows};
use std::path::Path;

/// Explains, and delivers the explanation.
///
/// # Errors
/// If the recording cannot be read, or the window is outside of it.
pub fn explain(args: &ExplainArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let file = recorder_ring::named_or_found(args.file.as_deref())?;
    let (recording, window) = read(args, &file)?;
    let mut explanation = explain_recording(&recording, window);
    let setting = setting(args, &file, &explanation, &recording.facts);
    if window == Window::default() {
        moments::add_to(&mut explanation, &file, recording);
    }
    let text = if args.json {
        json::render(&explanation)?
    } else {
        verdict::page(&explanation, &setting, Detail::of(args.details), page)
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// The recording and the requested window. Of a long recording only the window is read, if
/// possible.
fn read(args: &ExplainArgs, file: &Path) -> Result<(Recording, Window)> {
    super::must_exist(file)?;
    request_rows(file)?;
    let is_part = args.from.is_some() || args.to.is_some() || args.at.is_some();
    if let Some(outline) = is_part.then(|| RecordingOutline::open(file)).flatten() {
        let window = window::of(args, outline.recording())?;
        let (from_ns, to_ns) = (window.from_ns.unwrap_or(0), window.to_ns.unwrap_or(u64::MAX));
        if let Some(recording) = outline.part(from_ns, to_ns) {
            return Ok((recording, window));
        }
    }
    let recording = open_recording(file)?;
    let window = window::of(args, &recording)?;
    Ok((recording, window))
}

fn setting(
    args: &ExplainArgs,
    file: &Path,
    explanation: &Explanation,
    facts: &Facts,
) -> VerdictSetting {
    let file = shell_word(&file.display().to_string());
    VerdictSetting {
        title: match explanation.subject.as_str() {
            "" => "terrace explain".to_owned(),
            subject => format!("terrace: {subject}"),
        },
        root: facts.root,
        redacted: facts.redacted,
        file: file.clone(),
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
    use model::recording::{
        FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, RecordingOutcome, SeriesKind,
        Span, Tick, Who,
    };
    use record::{RecordSink, Registry, Row, file};
    use std::time::Duration;
    use testkit::TempDir;

    /// Who used what in one second: firefox in the first minute, tar in the second one.
    fn who_of_second(second: u64) -> Who {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut who = Who::default();
        let names = [(4711, "firefox", "session-3.scope"), (812, "tar", "backup.service")];
        for (id, (pid, name, unit)) in (0..).zip(names).filter(|_| second == 0) {
            who.processes.push(Process {
                id,
                pid,
                name: name.to_owned(),
                group: format!("/{unit}"),
                ..Process::default()
            });
            let path = Some(format!("/srv/{name}"));
            who.files.push(FileIdentity { id, device: (254, 0), inode: 3, path });
        }
        let (process, from_ns) = (u32::from(second >= 60), second * SECOND_NS);
        let to_ns = from_ns + SECOND_NS;
        let mut row = ProcessRow { process, from_ns, to_ns, processes: 1, ..Default::default() };
        row.figures[ProcessFigure::Cpu as usize] = SECOND_NS;
        who.rows.push(row);
        let added_bytes = 4 << 20;
        let of_file =
            FileRow { file: process, process, from_ns, to_ns, added_bytes, ..Default::default() };
        who.file_rows.push(of_file);
        who
    }

    fn facts() -> Facts {
        Facts { processors: 2, started_unix_ns: 1_000_000_000, ..Facts::default() }
    }

    /// A recording in a file.
    fn made(path: &std::path::Path) {
        made_in(file::FileSink::create(path, false, &facts()).unwrap());
    }

    /// Two minutes at 10 Hz, in 120 chunks, of a machine that reads from one disk and runs.
    fn made_in(mut output: impl RecordSink) {
        let mut registry = Registry::new();
        let names = [
            ("stat.cpu.user_ns", SeriesKind::Counter, 110_000_000),
            ("stat.cpu.idle_ns", SeriesKind::Counter, 90_000_000),
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
            if number % 10 == 0 && number > 0 {
                output.who(&who_of_second(number / 10 - 1)).unwrap();
            }
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
        output.finish(&facts(), &outcome).unwrap();
    }

    fn arguments(file: &std::path::Path) -> ExplainArgs {
        ExplainArgs {
            file: Some(file.to_owned()),
            from: None,
            to: None,
            at: None,
            details: false,
            json: true,
            output: None,
        }
    }

    /// The page of the time around an instant.
    fn page_at(file: &std::path::Path, at: &str) -> String {
        let part = crate::args::value::part(at).unwrap();
        let args = ExplainArgs { at: Some(part), ..arguments(file) };
        let (recording, window) = read(&args, file).unwrap();
        let explanation = explain_recording(&recording, window);
        let setting = setting(&args, file, &explanation, &recording.facts);
        verdict::page(&explanation, &setting, Detail::Brief, Page::plain(80))
    }

    #[test]
    fn at_an_instant_it_says_who_it_was() {
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        made(&path);
        // The clock stood at 00:00:01 when it began.
        let early = page_at(&path, "00:00:21");
        assert!(early.contains("firefox (pid 4711, session-3.scope) ran 10 s"), "{early}");
        assert!(!early.contains("tar"), "{early}");
        let late = page_at(&path, "00:01:31");
        assert!(late.contains("backup.service (pid 812, tar) ran 10 s"), "{late}");
        assert!(!late.contains("firefox"), "{late}");
    }

    #[test]
    fn a_part_that_is_read_alone_is_explained_as_in_the_whole() {
        let directory = TempDir::new();
        let path = directory.join("x.trec");
        made(&path);
        explained_alike(&path);
    }

    /// Also over the border of two segments, at 40 s and 80 s.
    #[test]
    fn a_part_of_a_ring_is_explained_as_in_the_whole() {
        let directory = TempDir::new();
        let keep_ns = file::SEGMENTS * 40_000_000_000;
        made_in(file::Ring::open(directory.path(), keep_ns, 1 << 30, &facts()).unwrap());
        assert_eq!(directory.names().len(), 3 + 1);
        explained_alike(directory.path());
        let late = page_at(directory.path(), "00:01:31");
        assert!(late.contains("backup.service (pid 812, tar) ran 10 s"), "{late}");
    }

    /// Removes the ids of processes: a part of a ring has only those of its segments.
    fn without_ids(json: &mut serde_json::Value) {
        match json {
            serde_json::Value::Array(all) => all.iter_mut().for_each(without_ids),
            serde_json::Value::Object(fields) => {
                fields.remove("process");
                fields.values_mut().for_each(without_ids);
            }
            _ => {}
        }
    }

    fn explained_alike(path: &std::path::Path) {
        let all = open_recording(path).unwrap();
        for from_s in [1, 38, 77, 110] {
            let since = |s| Some(crate::args::value::Moment::Since(Duration::from_secs(s)));
            let (from, to) = (since(from_s), since(from_s + 5));
            let args = ExplainArgs { from, to, ..arguments(path) };
            let (part, window) = read(&args, path).unwrap();
            assert!(part.ticks.len() < all.ticks.len() * 3 / 4, "{from_s}");
            let explained = |recording| {
                let explanation = explain_recording(recording, window);
                let mut json = serde_json::to_value(explanation).unwrap();
                without_ids(&mut json);
                json
            };
            assert_eq!(explained(&part), explained(&all), "{from_s}");
        }
    }
}
