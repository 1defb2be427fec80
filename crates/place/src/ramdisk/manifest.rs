//! The text of a manifest: a header, a line for each entry, and an end with a hash of all before.
//!
//! The idea: a person reads it with `zstd -dc`, and a program needs no more than to split lines at
//! tabs. An entry that is there is a line that begins with `+`; in a manifest with a base `-` and a
//! path say that the entry is gone. `docs/ramdisk-store.md` has every field.

mod entry;
#[cfg(test)]
mod tests;
mod text;

pub(super) use entry::{Entry, EntryHead, StoredPiece, parse_time, time_text};
pub(super) use text::{escape, unescape};

use super::identity::DirectoryIdentity;
use memchr::{memchr, memchr_iter, memchr2};
use std::collections::BTreeMap;
use std::fmt::Write;
use sys::attributes::FileTime;
use xxhash_rust::xxh3::xxh3_64;

/// Grows when an older reader would misread a manifest.
pub const MANIFEST_VERSION: u32 = 1;
/// The first word of a manifest.
const MAGIC: &str = "terrace-ramdisk";
/// A manifest is read whole. 100,000 files take about 20 MB.
pub(super) const MOST_BYTES: usize = 1 << 30;

/// Bytes that were written to a disk on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayBytes {
    /// The day, by number since 1970, in UTC.
    pub day: i64,
    /// How many.
    pub bytes: u64,
}

impl DayBytes {
    /// So many more at a time, in seconds since 1970. On another day the count begins anew.
    #[must_use]
    pub fn plus(self, bytes: u64, at_seconds: i64) -> Self {
        Self { day: day(at_seconds), bytes: self.at(at_seconds).saturating_add(bytes) }
    }

    /// How many on the day of a time, in seconds since 1970.
    #[must_use]
    pub fn at(self, at_seconds: i64) -> u64 {
        if self.day == day(at_seconds) { self.bytes } else { 0 }
    }
}

fn day(at_seconds: i64) -> i64 {
    at_seconds.div_euclid(86_400)
}

/// What the header of a manifest says, and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The store that it belongs to.
    pub store: u64,
    /// Its number.
    pub generation: u64,
    /// The generation that its lines change; 0 if they are all there is.
    pub base: u64,
    /// When it was saved, by the clock.
    pub saved: FileTime,
    /// The directory that was saved.
    pub from: DirectoryIdentity,
    /// Bytes of each data file that the generation names.
    pub data: BTreeMap<u64, u64>,
    /// What the store wrote on the day of this generation, without this manifest.
    pub wrote: DayBytes,
    /// The lines of the entries, each with its end of line.
    pub(super) lines: Vec<u8>,
}

impl Manifest {
    /// As it is written, before compression.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        self.clone().into_text()
    }

    /// As [`Manifest::to_text`], without a copy of the lines.
    pub(super) fn into_text(self) -> Vec<u8> {
        let mut head = format!(
            "{MAGIC}\t{MANIFEST_VERSION}\nstore\t{:016x}\ngeneration\t{}\nbase\t{}\nsaved\t{}\nfrom\t{}\n",
            self.store,
            self.generation,
            self.base,
            time_text(self.saved),
            self.from.to_fields(),
        );
        for (number, bytes) in &self.data {
            // Writing to a string cannot fail.
            let _ = writeln!(head, "data\t{number}\t{bytes}");
        }
        // Writing to a string cannot fail.
        let _ = writeln!(head, "wrote\t{}\t{}", self.wrote.day, self.wrote.bytes);
        let mut text = self.lines;
        text.splice(0..0, head.into_bytes());
        seal(&mut text);
        text
    }

    /// Reads a manifest. Of the lines of its entries only the paths are looked for.
    ///
    /// # Errors
    /// What is wrong, as a sentence that begins with "it".
    pub fn from_text(text: &[u8]) -> Result<Self, String> {
        Self::from_owned(text.to_vec())
    }

    /// As [`Manifest::from_text`], without a copy of the lines.
    pub(super) fn from_owned(text: Vec<u8>) -> Result<Self, String> {
        let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let words = std::str::from_utf8(first_line).ok().and_then(|line| line.split_once('\t'));
        let Some((MAGIC, version)) = words else {
            return Err("it is no manifest of a RAM disk of Terrace".to_owned());
        };
        match version.parse::<u32>() {
            Ok(MANIFEST_VERSION) => {}
            Ok(newer) if newer > MANIFEST_VERSION => {
                return Err(format!(
                    "it was written by a newer Terrace (format {newer}, this program reads \
                     {MANIFEST_VERSION}); read it with that version"
                ));
            }
            _ => return Err("its version cannot be read".to_owned()),
        }
        let bytes = whole(&text)?.len();
        Self::from_whole_text(text, bytes).ok_or_else(|| "it is damaged".to_owned())
    }

    /// The manifest of the first `bytes` of a text, whose hash was right.
    fn from_whole_text(mut text: Vec<u8>, bytes: usize) -> Option<Self> {
        text.truncate(bytes);
        let mut rest = text.as_slice();
        next_line(&mut rest)?;
        let store = u64::from_str_radix(header_value(&mut rest, "store")?, 16).ok()?;
        let generation = header_value(&mut rest, "generation")?.parse().ok()?;
        let base = header_value(&mut rest, "base")?.parse().ok()?;
        let saved = parse_time(header_value(&mut rest, "saved")?)?;
        let from = DirectoryIdentity::from_fields(header_value(&mut rest, "from")?)?;
        let mut data = BTreeMap::new();
        while rest.starts_with(b"data\t") {
            let (number, bytes) = header_value(&mut rest, "data")?.split_once('\t')?;
            data.insert(number.parse().ok()?, bytes.parse().ok()?);
        }
        // Absent in the first stores.
        let mut wrote = DayBytes::default();
        if rest.starts_with(b"wrote\t") {
            let (day, bytes) = header_value(&mut rest, "wrote")?.split_once('\t')?;
            wrote = DayBytes { day: day.parse().ok()?, bytes: bytes.parse().ok()? };
        }
        if generation == 0 || base >= generation {
            return None;
        }
        // The rest of a line is understood when its entry is asked for.
        let mut start = 0;
        for end in memchr_iter(b'\n', rest) {
            path_of(&rest[start..=end])?;
            start = end + 1;
        }
        let header_bytes = bytes - rest.len();
        text.drain(..header_bytes);
        Some(Self { store, generation, base, saved, from, data, wrote, lines: text })
    }
}

/// Appends the last line. Public for fuzzing, which would never guess a hash.
pub fn seal(text: &mut Vec<u8>) {
    let lines = memchr_iter(b'\n', text).count();
    let end = format!("end\t{lines}\t{:016x}\n", xxh3_64(text));
    text.extend_from_slice(end.as_bytes());
}

/// A line about an entry.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one at a time, and nearly all are the large one")]
pub(super) enum Line {
    /// The entry is there.
    Put(Entry),
    /// The entry with this path is gone.
    Remove(Vec<u8>),
}

impl Line {
    /// The line without or with its end; `None` for any other.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.strip_suffix(b"\n").unwrap_or(line)).ok()?;
        match text.split_once('\t')? {
            ("+", fields) => Entry::from_fields(fields).map(Self::Put),
            ("-", path) => unescape(path).map(Self::Remove),
            _ => None,
        }
    }

    /// As it is written, with its end.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Put(entry) => format!("+\t{}\n", entry.to_fields()),
            Self::Remove(path) => format!("-\t{}\n", escape(path)),
        }
    }
}

/// The head of the entry that a line puts, without the rest of it.
pub(super) fn head_of(line: &[u8]) -> Option<EntryHead> {
    let text = std::str::from_utf8(line.strip_prefix(b"+\t")?).ok()?;
    EntryHead::from_fields(&mut text.trim_end_matches('\n').split('\t').skip(1))
}

/// The escaped path of a line and whether the entry is there, without reading the rest.
pub(super) fn path_of(line: &[u8]) -> Option<(bool, &[u8])> {
    let is_there = line.starts_with(b"+\t");
    let rest = line.strip_prefix(if is_there { b"+\t" } else { b"-\t" })?;
    let end = memchr2(b'\t', b'\n', rest).unwrap_or(rest.len());
    Some((is_there, &rest[..end]))
}

/// The text before the last line, if that has its hash.
fn whole(text: &[u8]) -> Result<&[u8], String> {
    let cut = || "it is cut: its last line is missing".to_owned();
    let body = text.strip_suffix(b"\n").ok_or_else(cut)?;
    let start = body.iter().rposition(|byte| *byte == b'\n').ok_or_else(cut)? + 1;
    let end = std::str::from_utf8(&body[start..]).map_err(|_| cut())?;
    let fields: Vec<&str> = end.split('\t').collect();
    let &["end", lines, hash] = fields.as_slice() else {
        return Err(cut());
    };
    let counted = memchr_iter(b'\n', &text[..start]).count();
    let is_right = lines.parse() == Ok(counted)
        && u64::from_str_radix(hash, 16) == Ok(xxh3_64(&text[..start]));
    if is_right { Ok(&text[..start]) } else { Err("its hash is wrong: it is damaged".to_owned()) }
}

fn next_line<'t>(rest: &mut &'t [u8]) -> Option<&'t str> {
    let end = memchr(b'\n', rest)?;
    let line = std::str::from_utf8(&rest[..end]).ok()?;
    *rest = &rest[end + 1..];
    Some(line)
}

/// What follows `name` and a tab in the next line.
fn header_value<'t>(rest: &mut &'t [u8], name: &str) -> Option<&'t str> {
    next_line(rest)?.strip_prefix(name)?.strip_prefix('\t')
}
