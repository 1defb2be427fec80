//! Which names a file system holds, and which of them it takes for one. Pure.
//!
//! The rules are those of Linux's drivers (`fs/fat/namei_vfat.c`, `fs/exfat/nls.c`): what they
//! accept and keep is held. Names are taken to be UTF-8, as current mounts have it.
//! Not judged: accents in different forms (composed and decomposed), which a directory that folds
//! case also takes for one.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The names of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameRules {
    /// How long they are at most.
    pub limit: NameLimit,
    /// Characters that they do not have, besides `/` and 0.
    pub reserved: &'static str,
    /// Whether control characters are reserved too.
    pub reserves_controls: bool,
    /// Whether dots at the end are dropped.
    pub drops_last_dots: bool,
    /// Whether a space at the end is refused.
    pub refuses_last_space: bool,
    /// Which names are one.
    pub folding: CaseFolding,
}

/// How long a name is at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLimit {
    /// Any bytes, so many.
    Bytes(usize),
    /// Valid UTF-8 of so many units of UTF-16.
    Utf16Units(usize),
}

/// Which names are the same to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseFolding {
    /// Only equal bytes.
    None,
    /// Letters of either case, one by one: FAT and its relatives.
    Simple,
    /// As Unicode folds them, `ß` and `ss` too: directories of ext4 and f2fs with casefold.
    Full,
}

/// Why a name cannot be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFault {
    /// It is not UTF-8.
    NotUtf8,
    /// It is longer than so many bytes or units of UTF-16.
    TooLong(usize),
    /// It has this character.
    Reserved(char),
    /// It ends with a dot, which would be dropped.
    LastDot,
    /// It ends with a space.
    LastSpace,
}

impl fmt::Display for NameFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => out.write_str("the name is not UTF-8"),
            Self::TooLong(most) => write!(out, "the name is longer than {most}"),
            // Debug: it may be a control character.
            Self::Reserved(character) => write!(out, "the name has the character {character:?}"),
            Self::LastDot => out.write_str("the name ends with a dot"),
            Self::LastSpace => out.write_str("the name ends with a space"),
        }
    }
}

impl NameRules {
    /// Any bytes.
    pub const UNIX: Self = Self {
        limit: NameLimit::Bytes(255),
        reserved: "",
        reserves_controls: false,
        drops_last_dots: false,
        refuses_last_space: false,
        folding: CaseFolding::None,
    };
    /// FAT with long names.
    pub const FAT: Self = Self {
        limit: NameLimit::Utf16Units(255),
        reserved: "*?<>|\":\\",
        reserves_controls: true,
        drops_last_dots: true,
        refuses_last_space: true,
        folding: CaseFolding::Simple,
    };
    /// exFAT.
    pub const EXFAT: Self = Self { refuses_last_space: false, ..Self::FAT };
    /// NTFS as Linux mounts it: case counts, and Windows may not reach all names.
    pub const NTFS: Self = Self { limit: NameLimit::Utf16Units(255), ..Self::UNIX };

    /// Why `name` cannot be held; `None` if it can.
    #[must_use]
    pub fn fault(&self, name: &OsStr) -> Option<NameFault> {
        let units = match self.limit {
            NameLimit::Bytes(most) => {
                return (name.len() > most).then_some(NameFault::TooLong(most));
            }
            NameLimit::Utf16Units(most) => most,
        };
        let Some(text) = name.to_str() else {
            return Some(NameFault::NotUtf8);
        };
        let is_reserved = |character: char| {
            self.reserved.contains(character) || (self.reserves_controls && character < ' ')
        };
        if let Some(character) = text.chars().find(|character| is_reserved(*character)) {
            Some(NameFault::Reserved(character))
        } else if text.encode_utf16().count() > units {
            Some(NameFault::TooLong(units))
        } else if self.drops_last_dots && text.ends_with('.') {
            Some(NameFault::LastDot)
        } else if self.refuses_last_space && text.ends_with(' ') {
            Some(NameFault::LastSpace)
        } else {
            None
        }
    }

    /// A text that is equal for names that are the same name there.
    #[must_use]
    pub fn folded(&self, name: &OsStr) -> Vec<u8> {
        let Some(text) = name.to_str() else {
            return name.as_bytes().to_vec();
        };
        let folded: String = match self.folding {
            CaseFolding::None => text.to_owned(),
            CaseFolding::Simple => text.chars().map(folded_alone).collect(),
            // Up first: `ß` becomes `SS`, and both forms of sigma one.
            CaseFolding::Full => {
                text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
            }
        };
        folded.into_bytes()
    }
}

/// A letter in its upper case, if that is one letter.
fn folded_alone(letter: char) -> char {
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => letter,
    }
}

/// The names of one directory of the target, so that two that are one there are found. It holds
/// them all where case is folded, and none elsewhere.
#[derive(Debug, Default)]
pub struct NameCollisions {
    names: HashMap<Vec<u8>, OsString>,
}

impl NameCollisions {
    /// Adds a name; the one that it collides with, if there is one.
    pub fn add(&mut self, name: &OsStr, rules: &NameRules) -> Option<&OsStr> {
        if rules.folding == CaseFolding::None {
            return None;
        }
        let earlier = self.names.entry(rules.folded(name)).or_insert_with(|| name.to_owned());
        (earlier != name).then_some(earlier)
    }
}
