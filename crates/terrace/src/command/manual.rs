//! `terrace manual` and `terrace completions`, from the one declaration of the command line.
//!
//! For the manual the library renders a page for each command; here their sections become parts of
//! one page, followed by what belongs to all of them: exit status, units, environment. `--to`
//! writes that page and one for each command, for packages.

use crate::args::{CLOSING_SECTIONS, Cli, ManualArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::OutputTarget;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};

/// The mode of a page, less the mask of the process.
const PAGE_MODE: u32 = 0o644;

/// Prints the manual in roff, or writes all pages.
///
/// # Errors
/// If a page cannot be written.
pub fn manual(args: &ManualArgs) -> Result<Exit> {
    let page = page().map_err(unrendered)?;
    let Some(place) = &args.to else {
        OutputTarget::standard().write_data(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Done);
    };
    write_pages(place, &page)?;
    Ok(Exit::Done)
}

/// Writes `whole` as the page of the program, and one for each command.
fn write_pages(place: &Path, whole: &[u8]) -> Result<()> {
    let directory = Directory::create(place, 0o755)?;
    let put = |name: &str, page: &[u8]| {
        let mode = FileMode::AsBefore { new: PAGE_MODE };
        file::replace(&directory, OsStr::new(name), page, mode, Durability::Unsynced)
    };
    put("terrace.1", whole)?;
    let mut root = Cli::command();
    root.build();
    let mut open: Vec<&clap::Command> = root.get_subcommands().collect();
    while let Some(command) = open.pop() {
        // A hidden one is how this program calls itself.
        if command.is_hide_set() {
            continue;
        }
        let man = Man::new(command.clone()).manual("Terrace Manual");
        let mut page = Vec::new();
        man.render(&mut page).map_err(unrendered)?;
        put(&man.get_filename(), &page)?;
        open.extend(command.get_subcommands());
    }
    Ok(())
}

fn unrendered(why: io::Error) -> Error {
    Error::new(Exit::Partial, format!("cannot render the manual: {why}"))
}

/// Prints the completions for `shell`.
pub fn print_completions(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "terrace", &mut script);
    OutputTarget::standard().write_data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

fn page() -> io::Result<Vec<u8>> {
    let mut root = Cli::command();
    root.build();
    let man = Man::new(root.clone()).manual("Terrace Manual");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    // A hidden one is how this program calls itself.
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        describe(command, &mut out)?;
    }
    for (title, text) in CLOSING_SECTIONS {
        let mut section = Roff::new();
        section.control("SH", [title.to_uppercase().as_str()]);
        // Laid out by hand, so shown as it is.
        section.control("nf", []);
        for line in text.lines() {
            section.text([roman(line)]);
        }
        section.control("fi", []);
        section.to_writer(&mut out)?;
    }
    Ok(out)
}

/// One command and those below it, each a section of its own.
fn describe(command: &clap::Command, out: &mut Vec<u8>) -> io::Result<()> {
    if command.has_subcommands() {
        return command.get_subcommands().try_for_each(|below| describe(below, out));
    }
    let title = command.get_bin_name().unwrap_or(command.get_name()).to_uppercase();
    let mut section = Roff::new();
    section.control("SH", [title.as_str()]);
    section.to_writer(out)?;
    // Said once, at the top of the page.
    let said = ["color", "help"];
    let command = command.clone().mut_args(|arg| {
        let again = said.contains(&arg.get_id().as_str());
        arg.hide(again)
    });
    let man = Man::new(command);
    let mut body = Vec::new();
    man.render_synopsis_section(&mut body)?;
    man.render_description_section(&mut body)?;
    man.render_options_section(&mut body)?;
    out.write_all(&as_part(&body))
}

/// The same roff with its sections one level lower.
fn as_part(roff: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(roff)
        .lines()
        .map(|line| match line.strip_prefix(".SH ") {
            Some(title) => format!(".SS {title}\n"),
            None => format!("{line}\n"),
        })
        .collect::<String>()
        .into_bytes()
}
