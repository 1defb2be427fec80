//! What a security module refused to this program, as the kernel logged it, and how much of the
//! kernel's messages was read for it.
//!
//! Names of profiles, files and programs are text of others: whatever writes them to a terminal
//! makes them visible first.

use crate::doctor::PermitLine;
use serde::{Deserialize, Serialize};

/// A module that refuses what users and capabilities permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityModule {
    /// It confines programs by profiles.
    #[serde(rename = "apparmor")]
    AppArmor,
    /// It confines domains by types.
    #[serde(rename = "selinux")]
    SeLinux,
}

impl SecurityModule {
    /// Its name for a person.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::AppArmor => "AppArmor",
            Self::SeLinux => "SELinux",
        }
    }
}

/// A refusal by a security module, with its repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The module that refused it.
    pub module: SecurityModule,
    /// What confines the process: the profile of AppArmor, the context of SELinux.
    pub subject: String,
    /// What was refused: an operation of AppArmor, permissions of SELinux.
    pub operation: String,
    /// The path or name of what it was asked of, or the capability. SELinux often has no more than
    /// the last part of a path.
    pub object: Option<String>,
    /// The context of what it was asked of (SELinux).
    pub object_context: Option<String>,
    /// What kind of object that is: `file`, `cap`, `chr_file`.
    pub class: Option<String>,
    /// The rights that were refused (AppArmor): `r`.
    pub rights: Option<String>,
    /// The process, by its number on the machine.
    pub pid: Option<u32>,
    /// The user whose files it opens (AppArmor).
    pub uid: Option<u32>,
    /// The name of the thread.
    pub thread: String,
    /// Whether it is of the process that reports it.
    pub is_own: bool,
    /// How many were logged.
    pub count: u64,
    /// When the last one was logged, in seconds since 1970.
    pub last_unix_s: i64,
}

/// A denial with what would allow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialReport {
    /// The denial.
    #[serde(flatten)]
    pub denial: Denial,
    /// When the last one was logged, by the local clock.
    pub last: String,
    /// What would allow it or show more; any one of them is enough. Printed and never run.
    pub lines: Vec<PermitLine>,
}

/// Which of the kernel's messages were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesRead {
    /// Whether they could be read at all.
    pub readable: bool,
    /// Why not.
    pub why: Option<String>,
    /// How many were read.
    pub records: u64,
    /// The number of the oldest one; the kernel counts from 0 at boot.
    pub first_sequence: Option<u64>,
    /// Whether none was missing up to the newest.
    pub is_whole: bool,
    /// How many denials are left out for want of room.
    pub left_out: u64,
}

impl MessagesRead {
    /// What was looked at, as a noun: `the kernel's messages since boot`.
    #[must_use]
    pub fn looked_at(&self) -> String {
        let from = match self.first_sequence {
            Some(0) | None => "since boot".to_owned(),
            Some(first) => format!("since number {first}"),
        };
        let end = if self.is_whole { "" } else { ", not all of them" };
        format!("the kernel's messages {from}{end}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_names_its_beginning_and_its_gaps() {
        let read = |first_sequence, is_whole| MessagesRead {
            readable: true,
            first_sequence,
            is_whole,
            ..MessagesRead::default()
        };
        assert_eq!(read(Some(0), true).looked_at(), "the kernel's messages since boot");
        assert_eq!(
            read(Some(7), false).looked_at(),
            "the kernel's messages since number 7, not all of them"
        );
    }
}
