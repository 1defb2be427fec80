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
use explain::recording::explain as explain_recording;
use model::explanation::Explanation;

/// Explains, and delivers the explanation.
///
/// # Errors
/// When the recording cannot be read, or the window lies outside of it.
pub fn explain(args: &ExplainArgs, color: When) -> Result<Exit> {
    let target = Target::of(args.output.as_deref())?;
    let page = Page::of(&target, color);
    let recording = recording::open(&args.file)?;
    let window = window::of(args, &recording)?;
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
