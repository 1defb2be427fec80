//! Units of systemd that commands install: their files, and the words of their lines.
//!
//! Each command has a first line of its own for its units. A unit without it is neither replaced
//! nor removed; the caller looks at all before it writes the first. Nothing is started.

use crate::error::{Error, Result};
use crate::exit::Exit;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};

/// Where an administrator's units are.
pub(super) const UNITS: &str = "/etc/systemd/system";
/// There if systemd is process 1.
const RUNNING: &str = "/run/systemd/system";
/// A longer file is not ours.
const MOST_BYTES: u64 = 1 << 20;

/// A unit, and the directories in which a link to it makes another unit pull it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) wanted_in: Vec<String>,
}

/// A directory of units, for the command whose units begin with `mark`.
#[derive(Debug)]
pub(super) struct UnitDirectory {
    directory: Directory,
    mark: &'static str,
}

impl UnitDirectory {
    /// The directory; made if it was not there.
    pub(super) fn create(place: &Path, mark: &'static str) -> Result<Self> {
        Ok(Self { directory: Directory::create(place, 0o755)?, mark })
    }

    /// The directory.
    pub(super) fn open(place: &Path, mark: &'static str) -> Result<Self> {
        Ok(Self { directory: Directory::open(place)?, mark })
    }

    /// Whether there is a unit of this name, of any maker.
    pub(super) fn has(&self, name: &str) -> Result<bool> {
        is_there(&self.directory, name)
    }

    /// Those of these names that are there.
    ///
    /// # Errors
    /// `Impossible` if one of them was not made by this command.
    pub(super) fn own(&self, names: &[String]) -> Result<Vec<String>> {
        let mut own = Vec::new();
        for name in names {
            if self.has(name)? {
                self.refuse_of_others(name)?;
                own.push(name.clone());
            }
        }
        Ok(own)
    }

    /// The names of the units of this command with this line.
    pub(super) fn with_line(&self, line: &str) -> Result<Vec<String>> {
        let names = self.directory.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let has_it = |name: &String| {
            self.own_text(name).is_some_and(|text| text.lines().any(|other| other == line))
        };
        Ok(names.filter(has_it).collect())
    }

    /// The text of a unit of this command.
    fn own_text(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = self.directory.open_regular(OsStr::new(name)).ok()?;
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        (text.lines().next() == Some(self.mark)).then_some(text)
    }

    fn refuse_of_others(&self, name: &str) -> Result<()> {
        if self.own_text(name).is_some() {
            return Ok(());
        }
        let path = self.directory.path().join(name);
        let text = format!("{} was not made by this program, and is left alone", path.display());
        Err(Error::new(Exit::Impossible, text))
    }

    /// Writes a unit over what is there, and its links.
    pub(super) fn write(&self, unit: &Unit) -> Result<()> {
        let (mode, durability) = (FileMode::AsBefore { new: 0o644 }, Durability::Synced);
        let name = OsStr::new(&unit.name);
        file::replace(&self.directory, name, unit.text.as_bytes(), mode, durability)?;
        for at in &unit.wanted_in {
            let inside = if self.has(at)? {
                self.directory.subdirectory(OsStr::new(at))?
            } else {
                self.directory.create_subdirectory(OsStr::new(at), 0o755)?
            };
            if !is_there(&inside, &unit.name)? {
                inside.create_link(name, OsStr::new(&format!("../{}", unit.name)))?;
            }
            inside.sync()?;
        }
        Ok(())
    }

    /// Removes a unit.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        Ok(self.directory.remove(OsStr::new(name))?)
    }

    /// The links to units in directories of other units: of which directory, and their name.
    pub(super) fn links(&self, units: &[String]) -> Result<Vec<(PathBuf, String)>> {
        let mut links = Vec::new();
        for name in self.directory.names()? {
            let text = name.to_string_lossy();
            if !(text.ends_with(".wants") || text.ends_with(".requires")) {
                continue;
            }
            let Ok(inside) = self.directory.subdirectory(&name) else { continue };
            for unit in units {
                if inside.read_link(OsStr::new(unit)).is_ok_and(|to| to == *format!("../{unit}")) {
                    links.push((PathBuf::from(&name), unit.clone()));
                }
            }
        }
        Ok(links)
    }

    /// Removes such links, and directories that are empty then.
    pub(super) fn remove_links(&self, links: &[(PathBuf, String)]) -> Result<()> {
        for (at, name) in links {
            let inside = self.directory.subdirectory(at.as_os_str())?;
            inside.remove(OsStr::new(name))?;
            // One that others use is not empty.
            let _ = self.directory.remove_directory(at.as_os_str());
        }
        Ok(())
    }
}

fn is_there(directory: &Directory, name: impl AsRef<OsStr>) -> Result<bool> {
    match directory.metadata(name.as_ref()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The units and their links as they would be written to `place`.
pub(super) fn shown(place: &Path, units: &[Unit]) -> String {
    let mut text = String::new();
    for unit in units {
        text.push_str(&format!("# {}\n{}\n", place.join(&unit.name).display(), unit.text));
    }
    for (at, name) in units.iter().flat_map(|unit| unit.wanted_in.iter().map(|at| (at, &unit.name)))
    {
        text.push_str(&format!("# {} -> ../{name}\n", place.join(at).join(name).display()));
    }
    text
}

/// What would be removed from `place`, a path in each line.
pub(super) fn shown_removal(place: &Path, units: &[String], links: &[(PathBuf, String)]) -> String {
    let links = links.iter().map(|(at, name)| at.join(name));
    let all = units.iter().map(PathBuf::from).chain(links);
    all.map(|path| format!("would remove {}\n", place.join(path).display())).collect()
}

/// Whether systemd runs and has its units there.
pub(super) fn is_live(place: &Path) -> bool {
    place == Path::new(UNITS) && Path::new(RUNNING).exists()
}

/// Makes systemd read its units again, if it runs and they are its.
pub(super) fn reload(place: &Path) -> Result<()> {
    if is_live(place) { systemctl(&["daemon-reload"]) } else { Ok(()) }
}

/// Runs systemctl.
pub(super) fn systemctl(words: &[&str]) -> Result<()> {
    let failed = |why: &str| {
        let text = format!("systemctl {} failed: {why}", words.join(" "));
        Error::new(Exit::Impossible, text)
    };
    let ran = Command::new("systemctl").args(words).stdin(Stdio::null()).output();
    let output = ran.map_err(|error| failed(&sys::plain_reason(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(failed(said.lines().next().unwrap_or("it gave no reason")))
}

/// Refuses a path that a unit cannot name: systemd reads lines of text, and takes a last backslash
/// and spaces at the ends for its own.
pub(super) fn refuse_unwritable(path: &Path) -> Result<()> {
    let text = path.to_str().unwrap_or("\\");
    let is_odd = text.chars().any(char::is_control) || text.ends_with([' ', '\\']);
    if is_odd {
        let text = format!("no unit can name {}: rename it", path.display());
        return Err(Error::usage(text));
    }
    Ok(())
}

/// A command line of a unit: a program and its words.
pub(super) fn command_line<'w>(program: &Path, words: impl IntoIterator<Item = &'w str>) -> String {
    let mut line = word(&program.display().to_string());
    for one in words {
        line.push(' ');
        line.push_str(&if is_plain(one) { one.to_owned() } else { word(one) });
    }
    line
}

fn is_plain(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    !text.is_empty() && text.chars().all(is_letter)
}

/// A word of a command line of a unit: quoted, and nothing in it is replaced.
pub(super) fn word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '%' => quoted.push_str("%%"),
            '$' => quoted.push_str("$$"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A path in a list of a unit, in which a `$` has no meaning.
pub(super) fn path_word(text: &str) -> String {
    word(text).replace("$$", "$")
}

/// A value of a unit in which nothing is replaced.
pub(super) fn literal(text: &str) -> String {
    text.replace('%', "%%").replace('\n', " ")
}

/// A path as the name of a unit, as `systemd-escape --path` makes it.
pub(super) fn unit_path(path: &Path) -> String {
    let text = path.as_os_str().as_bytes();
    let parts: Vec<&[u8]> =
        text.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "-".to_owned() } else { unit_word(&parts.join(&b'/')) }
}

/// Text as a part of the name of a unit, as `systemd-escape` makes it.
pub(super) fn unit_word(text: &[u8]) -> String {
    let mut name = String::new();
    for (at, byte) in text.iter().enumerate() {
        match *byte {
            b'/' => name.push('-'),
            b'.' if at == 0 => name.push_str("\\x2e"),
            byte if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => {
                name.push(char::from(byte));
            }
            byte => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    name
}

/// A field of a line of /etc/fstab.
pub(super) fn fstab_field(text: &str) -> String {
    let mut field = String::new();
    for letter in text.chars() {
        match letter {
            ' ' | '\t' | '\n' | '\\' | '#' => field.push_str(&format!("\\{:03o}", letter as u32)),
            letter => field.push(letter),
        }
    }
    field
}

/// A line of /etc/fstab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FstabLine {
    /// A path, or `UUID=...` and the like.
    pub(super) source: String,
    pub(super) point: PathBuf,
    /// Whether a boot leaves it alone.
    pub(super) is_manual: bool,
}

/// The lines of /etc/fstab that are not comments.
pub(super) fn fstab_lines(text: &str) -> Vec<FstabLine> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let line = |line: &str| {
        let mut fields = line.split_whitespace().map(|field| field.replace("\\040", " "));
        let (source, point) = (fields.next()?, PathBuf::from(fields.next()?));
        let options = fields.nth(1).unwrap_or_default();
        let is_manual = options.split(',').any(|option| option == "noauto");
        Some(FstabLine { source, point, is_manual })
    };
    lines.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_as_systemd_does() {
        for (path, name) in [
            ("/ram/a b-c", "ram-a\\x20b\\x2dc"),
            ("/.hidden/.too", "\\x2ehidden-.too"),
            ("/ä", "\\xc3\\xa4"),
            ("//a///b/", "a-b"),
            ("/", "-"),
        ] {
            assert_eq!(unit_path(Path::new(path)), name);
        }
    }

    #[test]
    fn nothing_in_a_word_is_replaced() {
        assert_eq!(word("a \"b\" $c %d \\"), "\"a \\\"b\\\" $$c %%d \\\\\"");
        let line = command_line(Path::new("/usr/bin/x"), ["--size", "8", "a b"]);
        assert_eq!(line, "\"/usr/bin/x\" --size 8 \"a b\"");
    }

    #[test]
    fn fstab_is_read_without_comments() {
        let text = "# tmpfs /a tmpfs\n\ntmpfs /b\\040c tmpfs size=1g 0 0\nUUID=7 /d ext4 ro,noauto";
        let line = |source: &str, point: &str, is_manual| FstabLine {
            source: source.to_owned(),
            point: PathBuf::from(point),
            is_manual,
        };
        assert_eq!(fstab_lines(text), [line("tmpfs", "/b c", false), line("UUID=7", "/d", true)]);
    }
}
