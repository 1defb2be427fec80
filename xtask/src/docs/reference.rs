//! The pages of the reference that are generated: the help of each command, as the product prints
//! it, and the JSON schemas.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process;

const LIMIT: Duration = Duration::from_secs(20);

/// Paths below `docs/` and texts of the pages.
///
/// # Errors
/// When the product fails, or a schema cannot be read.
pub(super) fn pages(root: &Path, terrace: &Path) -> Result<Vec<(String, String)>, Error> {
    let mut commands = "# The help of each command\n\nAs `--help` prints it.\n".to_owned();
    add_help(terrace, &mut Vec::new(), &mut commands)?;
    Ok(vec![
        ("reference/commands.md".to_owned(), commands),
        ("reference/schemas.md".to_owned(), schemas(root)?),
    ])
}

/// Adds the help of a command and of those below it.
fn add_help(terrace: &Path, words: &mut Vec<String>, text: &mut String) -> Result<(), Error> {
    let mut command = Command::new(terrace);
    command.args(&*words).arg("--help").env("COLUMNS", "80");
    let help = process::run(command, LIMIT)?.success()?.stdout;
    let name = words.iter().fold("terrace".to_owned(), |name, word| format!("{name} {word}"));
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for below in commands_of(&help) {
        words.push(below);
        add_help(terrace, words, text)?;
        words.pop();
    }
    Ok(())
}

/// The commands that a help lists.
fn commands_of(help: &str) -> Vec<String> {
    const LISTS: [&str; 2] = ["Commands:", "Actions:"];
    let lines = help.lines().skip_while(|line| !LISTS.contains(line)).skip(1);
    // A name is indented by two; what goes on with its text by more.
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| name.split(' ').next())?
    });
    names.map(str::to_owned).collect()
}

/// All schemas, one after another.
fn schemas(root: &Path) -> Result<String, Error> {
    let folder = root.join("docs");
    let entries = fs::read_dir(&folder).map_err(Error::io("list", &folder))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".schema.json"))
        .collect();
    names.sort();
    let mut text = "# JSON schemas\n\n[json.md](../json.md) describes the fields.\n".to_owned();
    for name in names {
        let path = folder.join(&name);
        let schema = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let _ = write!(text, "\n## {name}\n\n```json\n{}\n```\n", schema.trim_end());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_lists_its_commands() {
        let help = "What it is\n\nUsage: x\n\nCommands:\n  run        Run\n             more\n  \
                    lab        Lab\n\nOptions:\n  -h, --help\n";
        assert_eq!(commands_of(help), ["run", "lab"]);
        assert!(commands_of("Usage: x\n\nOptions:\n  -h\n").is_empty());
    }
}
