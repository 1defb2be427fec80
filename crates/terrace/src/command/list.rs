//! `measure memcpy --list` and `--disassemble`: what could be measured, and the code. Also
//! refuses names that are none, with the one that was likely meant.

use crate::args::When;
use crate::args::measure::ProbeArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::style::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{OutputTarget, Page, json};
use measure::memory::copy::operation_name;
use measure::memory::technique::{self, KERNEL_TECHNIQUES};
use memops::Instruction;
use serde::Serialize;

/// One method as `--list` shows it.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    operation: &'static str,
    describe: &'static str,
    /// Why it cannot run here; `None` where it can.
    absent: Option<&'static str>,
}

/// Lists all methods, those that this machine lacks with the reason.
pub fn methods(args: &ProbeArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.form.output.as_deref())?;
    let page = Page::of(&target, color);
    let listed = listed();
    let text = if args.form.json { json::render(&listed)? } else { table(&listed).render(page, 0) };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// Shows the loop of method `name` as it lies in memory.
pub fn disassemble(name: &str, args: &ProbeArgs, color: When) -> Result<Exit> {
    let target = OutputTarget::of(args.form.output.as_deref())?;
    let page = Page::of(&target, color);
    if !technique::names().contains(&name) {
        return Err(unknown(name));
    }
    let method = memops::find(name).ok_or_else(|| {
        let text = format!("method `{name}` goes through the kernel and has no loop of its own");
        Error::new(Exit::Impossible, text)
    })?;
    let instructions =
        method.disassemble().map_err(|why| Error::new(Exit::Impossible, why.to_string()))?;
    let bytes = |instruction: &Instruction| {
        let bytes = instruction.bytes.iter().map(|byte| format!("{byte:02x}"));
        Cell::toned(bytes.collect::<Vec<_>>().join(" "), Tone::Dim)
    };
    let table = Table::of(&instructions)
        .numbers("", 0, |one| Cell::toned(format!("{:x}", one.offset), Tone::Dim))
        .words("", 0, |one| if one.in_loop { "|" } else { "" })
        .words("", 0, |one| one.text.as_str())
        .words("", 0, bytes);
    let title = format!("{name}: {} (| marks the loop)\n", method.describe());
    target.write(&(title + &table.render(page, 0)))?;
    Ok(Exit::Done)
}

fn listed() -> Vec<Listed> {
    let loops = memops::methods().iter().map(|method| Listed {
        name: method.name(),
        operation: operation_name(method.operation()),
        describe: method.describe(),
        absent: method.absent(),
    });
    let through_kernel = KERNEL_TECHNIQUES.iter().map(|&(name, describe)| Listed {
        name,
        operation: "copy",
        describe,
        absent: None,
    });
    loops.chain(through_kernel).collect()
}

fn table(listed: &[Listed]) -> Table<&Listed> {
    let toned = |method: &Listed, text: &str| {
        Cell::toned(text, if method.absent.is_some() { Tone::Dim } else { Tone::Plain })
    };
    Table::of(listed)
        .words("method", 0, |method| toned(method, method.name))
        .words("does", 0, |method| toned(method, method.operation))
        .words("here", 1, |method| toned(method, method.absent.unwrap_or("yes")))
        .words("how", 0, |method| Cell::toned(method.describe, Tone::Dim))
}

/// Refuses the first name that is no method's, with the one nearest to it; then the first
/// of a method that this processor lacks.
pub fn known(names: &[String]) -> Result<()> {
    let known = technique::names();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown(name));
    }
    let absent = |name: &String| Some((name.clone(), memops::find(name)?.absent()?));
    match names.iter().find_map(absent) {
        Some((name, why)) => {
            let text = format!("this processor cannot run method `{name}`: {why}");
            Err(Error::new(Exit::Impossible, text))
        }
        None => Ok(()),
    }
}

/// An unknown method, with the known one that is nearest to it where one is near.
fn unknown(name: &str) -> Error {
    let error = Error::usage(format!("unknown method `{name}`"));
    match nearest(name) {
        Some(known) => error.hint(format!("did you mean `{known}`? --list names all methods")),
        None => error.hint("`terrace measure memcpy --list` names all methods"),
    }
}

/// The known name with the fewest edits to `name`, if they are few for its length.
fn nearest(name: &str) -> Option<&'static str> {
    let nearest = technique::names().into_iter().min_by_key(|known| edits(name, known))?;
    (edits(name, nearest) <= name.chars().count().div_ceil(3)).then_some(nearest)
}

/// Letters to insert, delete or replace to make `a` into `b` (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_not() {
        assert_eq!(nearest("rep-movsbb"), Some("rep-movsb"));
        assert_eq!(nearest("memcopy"), Some("memcpy"));
        assert_eq!(nearest("frobnicate"), None);
        assert_eq!((edits("", "abc"), edits("abc", "abc"), edits("abc", "axc")), (3, 0, 1));
    }

    #[test]
    fn every_method_is_listed_once() {
        let mut names: Vec<&str> = listed().iter().map(|method| method.name).collect();
        assert_eq!(names.len(), technique::names().len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), technique::names().len());
    }
}
