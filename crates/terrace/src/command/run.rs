//! `terrace run`: starts a command, records it, and says where its time went.
//!
//! Standard input and output, the terminal and the signals belong to the command. The verdict goes
//! to standard error after the command has ended.

mod against;
mod attempted;
mod cache;
mod in_memory;

pub use in_memory::run as in_memory;

use super::record_options;
use crate::args::When;
use crate::args::run::RunArgs;
use crate::error::{Error, Result};
use crate::exit::{self, Exit};
use crate::output::prose::shell_word;
use crate::output::survey::Detail;
use crate::output::verdict::{self, Repeat, VerdictSetting};
use crate::output::{self, OutputTarget, Page, json};
use explain::recording::{Window, explain};
use model::explanation::Explanation;
use model::recording::Ending;
use record::capture::{self, CommandPlan};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A shell's status for a command that signal 0 would have ended.
const BY_SIGNAL: i32 = 128;

/// One run, explained; the recording itself is not kept in memory.
struct Ran {
    explanation: Explanation,
    root: bool,
    file: Option<PathBuf>,
    status: u8,
}

/// The command of one run, and the file of its recording.
struct PlannedRun<'a> {
    argv: &'a [OsString],
    output: Option<PathBuf>,
}

/// Runs the command, once or several times, and prints the verdict.
///
/// # Errors
/// If the command was not started; its own failure is an exit status.
pub fn run(args: &RunArgs, color: When) -> Result<Exit> {
    if let Some(against) = &args.against {
        return against::run(args, against, color);
    }
    if args.attempt {
        return attempted::run(args, color);
    }
    let report = json_target(args)?;
    // Asked before the command may have changed the terminal.
    let page = Page::on_standard_error(color);
    let mut runs = Vec::new();
    for number in 1..=args.repeats() {
        prepare(args)?;
        let ran = run_once(args, planned_run(args, number))?;
        let failed = ran.status != 0;
        runs.push(ran);
        if failed {
            // Times of a command that fails are not comparable with others.
            break;
        }
    }
    let Some(last) = runs.last() else {
        return Err(Error::usage("nothing was run"));
    };
    let exit = Exit::Command(last.status);
    if !args.quiet {
        print_verdict(&page_of(args, &runs, page));
    }
    if let Some(target) = report {
        let written = json::render(&runs[shown(&runs)].explanation);
        if let Err(error) = written.and_then(|text| target.write(&text)) {
            // The command has ended as it has; its status is not this program's to change.
            output::complain(&error.during("run"));
        }
    }
    Ok(exit)
}

/// The file of `--json`: never standard output, which belongs to the command.
fn json_target(args: &RunArgs) -> Result<Option<OutputTarget>> {
    let Some(path) = &args.json else {
        return Ok(None);
    };
    match OutputTarget::of(Some(path))? {
        OutputTarget::Standard => {
            let text = "--json needs a file: standard output belongs to the command";
            Err(Error::usage(text))
        }
        file => Ok(Some(file)),
    }
}

fn planned_run(args: &RunArgs, number: u32) -> PlannedRun<'_> {
    let output = args.output.as_deref().map(|path| match args.repeats() {
        1 => path.to_owned(),
        _ => numbered(path, &number.to_string()),
    });
    PlannedRun { argv: &args.command, output }
}

fn run_once(args: &RunArgs, planned: PlannedRun<'_>) -> Result<Ran> {
    let plan = CommandPlan {
        argv: planned.argv.to_vec(),
        own_group: !args.no_group,
        watch: record_options::of_command(&args.watch, planned.output)?,
    };
    let captured = capture::command(&plan)?;
    let recording = captured.recording;
    Ok(Ran {
        explanation: explain(&recording, Window::default()),
        root: recording.facts.root,
        file: captured.file,
        status: status(&captured.ending),
    })
}

/// The status that a shell would report for the command's end.
fn status(ending: &Ending) -> u8 {
    let code = match ending {
        Ending::Exited { code } => *code,
        Ending::Killed { signal, .. } => BY_SIGNAL + signal,
        Ending::Stopped => return exit::FAILED_BEFORE_STATUS,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Sets the cache state and runs the command of `--prepare` in a shell, before each run. Its output
/// goes to standard error.
fn prepare(args: &RunArgs) -> Result<()> {
    cache::set_cache_state(args)?;
    let Some(line) = &args.prepare else {
        return Ok(());
    };
    let failed = |why: String| Error::new(exit::FAILED_BEFORE, format!("--prepare: {why}"));
    let cannot_print = |why| failed(format!("cannot use standard error: {why}"));
    let printed = std::io::stderr().as_fd().try_clone_to_owned().map_err(cannot_print)?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).stdin(Stdio::null()).stdout(printed);
    let ended = shell.status().map_err(|why| failed(format!("cannot run sh: {why}")))?;
    if ended.success() { Ok(()) } else { Err(failed(format!("`{line}` failed ({ended})"))) }
}

/// The run whose verdict is shown: the one in the middle, or the one that failed.
fn shown(runs: &[Ran]) -> usize {
    let last = runs.len().saturating_sub(1);
    match runs.last() {
        Some(ran) if ran.status != 0 => last,
        _ => verdict::median_of(&repeats(runs)),
    }
}

fn repeats(runs: &[Ran]) -> Vec<Repeat> {
    let repeat = |ran: &Ran| Repeat {
        wall_ns: ran.explanation.wall_ns,
        ending: ran.explanation.ending.clone(),
        file: ran.file.as_deref().map(|file| file.display().to_string()),
    };
    runs.iter().map(repeat).collect()
}

fn page_of(args: &RunArgs, runs: &[Ran], page: Page) -> String {
    let index = shown(runs);
    let table = match args.repeats() {
        1 => String::new(),
        _ => verdict::repeats(&repeats(runs), index, page),
    };
    format!("{table}{}", page_of_one(args, &runs[index], page))
}

/// The verdict of one run.
fn page_of_one(args: &RunArgs, ran: &Ran, page: Page) -> String {
    let setting = VerdictSetting {
        title: "terrace".to_owned(),
        root: ran.root,
        redacted: false,
        file: String::new(),
        details: details(args, ran.file.as_deref()),
    };
    verdict::page(&ran.explanation, &setting, Detail::of(args.details), page)
}

/// Where the rest of a brief verdict is.
fn details(args: &RunArgs, file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("terrace explain {}", shell_word(&file.display().to_string())),
        None if args.details => String::new(),
        None => "--details, or -o FILE.trec to keep it".to_owned(),
    }
}

/// `name.trec` of the run called `3`: `name.3.trec`.
fn numbered(path: &Path, run: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{run}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Prints the verdict on standard error; if that is closed, it is dropped.
fn print_verdict(text: &str) {
    // On a terminal the command may have left the cursor in the middle of a line.
    let start = if std::io::stderr().is_terminal() { "\n" } else { "" };
    output::report(&format!("{start}{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_command_s_own() {
        assert_eq!(status(&Ending::Exited { code: 7 }), 7);
        let killed = Ending::Killed { signal: 9, out_of_memory: None };
        assert_eq!(status(&killed), 137);
        assert_eq!(status(&Ending::Stopped), 125);
    }

    #[test]
    fn each_of_several_runs_has_a_file() {
        let name = |path: &str| numbered(Path::new(path), "3").display().to_string();
        assert_eq!(name("/data/a.b.trec"), "/data/a.b.3.trec");
        assert_eq!(name("plain"), "plain.3");
    }
}
