//! An entry of a manifest: what a name of the RAM disk is, its metadata and where its content is.
//! What a line says is checked here: a path stays below the top, pieces are in order.

use super::text::{escape, from_hexadecimal, hexadecimal, unescape};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use sys::attributes::{ExtendedAttribute, FileTime};
use sys::file_stat::{FileStat, InodeKind};

/// A name of the RAM disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ramdisk) struct Entry {
    /// The path below the top, without a leading slash; empty for the top itself.
    pub(in crate::ramdisk) path: Vec<u8>,
    /// What it was when it was saved. The device and the mount are not kept, they are 0 and `None`.
    pub(in crate::ramdisk) stat: FileStat,
    /// Whether a change after it was saved has certainly moved its time of change.
    pub(in crate::ramdisk) is_settled: bool,
    /// Where a link leads to.
    pub(in crate::ramdisk) link_target: Option<Vec<u8>>,
    /// Its extended attributes.
    pub(in crate::ramdisk) extended: Vec<ExtendedAttribute>,
    /// The content of a file in order; what no piece covers is a hole.
    pub(in crate::ramdisk) pieces: Vec<StoredPiece>,
}

/// What is known of an entry without its path, its content and its extended attributes.
#[derive(Clone, Copy, Debug)]
pub(in crate::ramdisk) struct EntryHead {
    /// As [`Entry::stat`]; the device that an entry stands for is not among it.
    pub(in crate::ramdisk) stat: FileStat,
    /// As [`Entry::is_settled`].
    pub(in crate::ramdisk) is_settled: bool,
}

/// Bytes of a file that are in a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ramdisk) struct StoredPiece {
    /// Where they are in the file.
    pub(in crate::ramdisk) at: u64,
    /// How many.
    pub(in crate::ramdisk) bytes: u32,
    /// The number of the data file.
    pub(in crate::ramdisk) data: u64,
    /// Where they are in it.
    pub(in crate::ramdisk) offset: u64,
    /// Their XXH3.
    pub(in crate::ramdisk) hash: u64,
}

impl StoredPiece {
    /// Where it ends in the file.
    pub(in crate::ramdisk) fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.into())
    }

    fn is_followed_by(&self, next: &Self) -> bool {
        self.data == next.data
            && self.end() == next.at
            && self.offset.saturating_add(self.bytes.into()) == next.offset
    }
}

impl Entry {
    /// What follows the `+` of its line.
    pub(super) fn to_fields(&self) -> String {
        let stat = &self.stat;
        let mut text = format!(
            "{}\t{}\t{:o}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            escape(&self.path),
            kind_letter(stat.kind),
            stat.mode,
            stat.user,
            stat.group,
            stat.links,
            stat.inode,
            time_text(stat.modified),
            time_text(stat.accessed),
            time_text(stat.changed),
            if self.is_settled { "s" } else { "u" },
            stat.bytes,
        );
        // Writing to a string cannot fail.
        if let Some(target) = &self.link_target {
            let _ = write!(text, "\t>{}", escape(target));
        }
        if stat.special_device != 0 {
            let _ = write!(text, "\t#{}", stat.special_device);
        }
        for (name, value) in &self.extended {
            let _ = write!(text, "\t@{}={}", escape(name.as_bytes()), hexadecimal(value));
        }
        let mut before: Option<&StoredPiece> = None;
        for piece in &self.pieces {
            if before.is_some_and(|before| before.is_followed_by(piece)) {
                text.push(',');
            } else {
                let _ = write!(text, "\t:{}:{}:{}:", piece.data, piece.offset, piece.at);
            }
            let _ = write!(text, "{}={:016x}", piece.bytes, piece.hash);
            before = Some(piece);
        }
        text
    }

    /// The entry of a line; `None` for a line that cannot be one.
    pub(super) fn from_fields(fields: &str) -> Option<Self> {
        let mut fields = fields.split('\t');
        let path = unescape(fields.next()?)?;
        if !is_below(&path) {
            return None;
        }
        let EntryHead { stat, is_settled } = EntryHead::from_fields(&mut fields)?;
        let (link_target, extended, pieces) = (None, Vec::new(), Vec::new());
        let mut entry = Self { path, stat, is_settled, link_target, extended, pieces };
        for field in fields {
            entry.take_rest(field)?;
        }
        entry.is_possible().then_some(entry)
    }

    fn take_rest(&mut self, field: &str) -> Option<()> {
        let (first, value) = field.split_at_checked(1)?;
        match first {
            ">" => self.link_target = Some(unescape(value)?),
            "#" => self.stat.special_device = value.parse().ok()?,
            "@" => {
                let (name, value) = value.rsplit_once('=')?;
                let name = OsString::from_vec(unescape(name)?);
                self.extended.push((name, from_hexadecimal(value)?));
            }
            ":" => {
                let mut parts = value.split(':');
                let (data, mut offset): (u64, u64) =
                    (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                let mut at: u64 = parts.next()?.parse().ok()?;
                for piece in parts.next()?.split(',') {
                    let (bytes, hash) = piece.split_once('=')?;
                    let bytes: u32 = bytes.parse().ok().filter(|bytes| *bytes > 0)?;
                    let hash = u64::from_str_radix(hash, 16).ok()?;
                    self.pieces.push(StoredPiece { at, bytes, data, offset, hash });
                    at = at.checked_add(bytes.into())?;
                    offset = offset.checked_add(bytes.into())?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether it can be what it says: pieces in order within a file, a target of a link only.
    fn is_possible(&self) -> bool {
        let is_file = self.stat.kind == InodeKind::File;
        let is_link = self.stat.kind == InodeKind::Link;
        let are_in_order = self.pieces.windows(2).all(|pair| pair[0].end() <= pair[1].at);
        let are_within = self.pieces.last().is_none_or(|last| last.end() <= self.stat.bytes);
        (is_file || self.pieces.is_empty())
            && is_link == self.link_target.is_some()
            && are_in_order
            && are_within
    }
}

impl EntryHead {
    /// The head of a line, and how its fields behind it go on; the path was taken already.
    pub(super) fn from_fields<'t>(fields: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
        let kind = kind_of(fields.next()?)?;
        let mode = u32::from_str_radix(fields.next()?, 8).ok().filter(|mode| *mode <= 0o7777)?;
        let (user, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (links, inode) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let modified = parse_time(fields.next()?)?;
        let accessed = parse_time(fields.next()?)?;
        let changed = parse_time(fields.next()?)?;
        let is_settled = match fields.next()? {
            "s" => true,
            "u" => false,
            _ => return None,
        };
        let bytes = fields.next()?.parse().ok()?;
        let stat = FileStat {
            kind,
            mode,
            user,
            group,
            device: 0,
            inode,
            links,
            bytes,
            allocated_bytes: 0,
            accessed,
            modified,
            changed,
            created: None,
            special_device: 0,
            mount: None,
        };
        Some(Self { stat, is_settled })
    }
}

/// Whether a path stays below the top: components that are names.
fn is_below(path: &[u8]) -> bool {
    let is_name = |part: &[u8]| {
        !part.is_empty() && part.len() <= 255 && part != b"." && part != b".." && !part.contains(&0)
    };
    path.is_empty() || path.split(|byte| *byte == b'/').all(is_name)
}

fn kind_letter(kind: InodeKind) -> char {
    match kind {
        InodeKind::File => 'f',
        InodeKind::Directory => 'd',
        InodeKind::Link => 'l',
        InodeKind::Pipe => 'p',
        InodeKind::Socket => 's',
        InodeKind::CharacterDevice => 'c',
        InodeKind::BlockDevice => 'b',
    }
}

fn kind_of(letter: &str) -> Option<InodeKind> {
    Some(match letter {
        "f" => InodeKind::File,
        "d" => InodeKind::Directory,
        "l" => InodeKind::Link,
        "p" => InodeKind::Pipe,
        "s" => InodeKind::Socket,
        "c" => InodeKind::CharacterDevice,
        "b" => InodeKind::BlockDevice,
        _ => return None,
    })
}

/// Seconds and nanoseconds, as `SECONDS.NANOSECONDS`.
pub(in crate::ramdisk) fn time_text(time: FileTime) -> String {
    format!("{}.{:09}", time.seconds, time.nanoseconds)
}

pub(in crate::ramdisk) fn parse_time(text: &str) -> Option<FileTime> {
    let (seconds, nanoseconds) = text.split_once('.')?;
    let is_right = nanoseconds.len() == 9 && nanoseconds.bytes().all(|byte| byte.is_ascii_digit());
    let time = FileTime { seconds: seconds.parse().ok()?, nanoseconds: nanoseconds.parse().ok()? };
    is_right.then_some(time)
}
