//! `terrace explain`: a recording, or a part of it, becomes a verdict or its JSON.
//! The judging is all in `explain`; here is reading before it and delivery after it.

mod window;

use super::recording;
use crate::args::When;
use crate::args::explain::ExplainArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::prose::shell_word;
use crate::output::survey::Detail;
use crate::output::verdict::{self, Setting};
use crate::output::{Page, Target, json};
use explain::recording::{Window, explain as explain_recording};
use model::explanation::Explanation;
use model::recording::Recording;
use record::file::Outline;

/// Explains, and delivers the explanation.
///
/// # Errors
/// When the recording cannot be read, or the window lies outside of it.
pub fn explain(args: &ExplainArgs, color: When) -> Result<Exit> {
    let target = Target::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let (recording, window) = read(args)?;
    let explanation = explain_recording(&recording, window);
    let text = if args.json {
        json::render(&explanation)?
    } else {
        let setting = setting(args, &explanation, recording.facts.root);
        verdict::page(&explanation, &setting, Detail::of(args.details), page)
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// The recording and the window that was asked for. Of a long recording only what the window
/// needs is read, where that is possible.
fn read(args: &ExplainArgs) -> Result<(Recording, Window)> {
    let is_part = args.from.is_some() || args.to.is_some() || args.at.is_some();
    if let Some(outline) = is_part.then(|| Outline::open(&args.file)).flatten() {
        let window = window::of(args, outline.recording())?;
        let (from_ns, to_ns) = (
            window.from_ns.unwrap_or(0),
            window.to_ns.unwrap_or(u64::MAX),
        );
        if let Some(recording) = outline.part(from_ns, to_ns) {
            return Ok((recording, window));
        }
    }
    let recording = recording::open(&args.file)?;
    let window = window::of(args, &recording)?;
    Ok((recording, window))
}

fn setting(args: &ExplainArgs, explanation: &Explanation, root: bool) -> Setting {
    let file = shell_word(&args.file.display().to_string());
    Setting {
        title: match explanation.subject.as_str() {
            "" => "terrace explain".to_owned(),
            subject => format!("terrace: {subject}"),
        },
        root,
        details: match args.details {
            true => String::new(),
            false => format!("terrace explain {file} --details"),
        },
    }
}
