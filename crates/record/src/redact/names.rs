//! The stand-ins that were given, and the search for what they replaced in other texts.
//!
//! A text of one class always gets the same stand-in. A path that nobody gave away by name
//! is found by its slash.

use super::kernel::{self, Vocabulary};
use std::collections::HashMap;

/// Mount points that tell nothing about anybody.
const PLAIN_PATHS: &[&str] = &[
    "/",
    "/boot",
    "/boot/efi",
    "/dev",
    "/dev/shm",
    "/home",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/tmp",
    "/usr",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// Here the kernel names what lies at the top; what lies deeper is a volume that somebody named, a
/// label, or a link that tells a serial number.
const DEVICE_PATH: &str = "/dev/";

/// Shorter texts are not searched for elsewhere: they are in every word.
const SHORTEST_SECRET: usize = 3;

/// More texts than a command line and a machine have; a search for more would take a
/// hostile recording's time. A recorder's text is removed whole then.
const MAX_SECRETS: usize = 4096;

/// Of those, how many may be names of threads and marks: a build has thousands, and the
/// recorder's texts name none.
const MAX_NAMES: usize = 1024;

/// Classes of which a recording may hold any number.
const COMMON_CLASSES: &[&str] = &["task-", "mark-"];

/// Classes that no text of the recorder names: it tells of paths, groups, users, devices.
const NEVER_QUOTED: &[&str] = &["arg-", "task-", "mark-"];

/// What stands for a text that could not be searched.
const REMOVED: &str = "(removed)";

/// What was replaced by what.
#[derive(Debug, Default)]
pub(super) struct Names {
    stand_ins: HashMap<(&'static str, String), String>,
    counts: HashMap<&'static str, usize>,
    /// What is not looked for: our own words.
    vocabulary: Vocabulary,
    /// All that was replaced and is long enough to be looked for, longest first.
    secrets: Vec<(String, String)>,
}

impl Names {
    /// No stand-in yet; what is made of these words alone is not looked for in texts.
    pub(super) fn new(vocabulary: Vocabulary) -> Self {
        Self {
            vocabulary,
            ..Self::default()
        }
    }

    /// The stand-in for `text`: the same for the same text of one class.
    pub(super) fn stand_in(&mut self, class: &'static str, text: &str) -> String {
        let key = (class, text.to_owned());
        if let Some(stand_in) = self.stand_ins.get(&key) {
            return stand_in.clone();
        }
        let count = self.counts.entry(class).or_insert(0);
        *count += 1;
        let stand_in = format!("{class}{count}");
        self.stand_ins.insert(key, stand_in.clone());
        let is_common = COMMON_CLASSES.contains(&class) && self.secrets.len() >= MAX_NAMES;
        let is_looked_for = text.len() >= SHORTEST_SECRET && !self.is_ours(class, text);
        if is_looked_for && !is_common && self.secrets.len() <= MAX_SECRETS {
            let length = |secret: &(String, String)| secret.0.len();
            let at = self
                .secrets
                .partition_point(|secret| length(secret) >= text.len());
            self.secrets.insert(at, (text.to_owned(), stand_in.clone()));
        }
        stand_in
    }

    /// Whether finding this in a text of the recorder tells nothing: it is a word of ours, or a
    /// plain word of a class that the recorder's texts never quote.
    fn is_ours(&self, class: &'static str, text: &str) -> bool {
        let is_plain = || text.bytes().all(|byte| byte.is_ascii_lowercase());
        (NEVER_QUOTED.contains(&class) && is_plain()) || self.vocabulary.has(text)
    }

    pub(super) fn replace(&mut self, class: &'static str, text: &mut String) {
        let stand_in = self.stand_in(class, text);
        self.user(text);
        *text = stand_in;
    }

    pub(super) fn path(&mut self, path: &mut String) {
        if !PLAIN_PATHS.contains(&path.as_str()) {
            self.replace("/path-", path);
        }
    }

    pub(super) fn group(&mut self, path: &mut String) {
        if path != "/" {
            self.replace("/group-", path);
        }
    }

    /// Notes the user whose home a text names, because other texts may name just the user.
    pub(super) fn user(&mut self, text: &str) {
        for (at, home) in text.match_indices("/home/") {
            let name = text[at + home.len()..]
                .split('/')
                .next()
                .unwrap_or_default();
            if !name.is_empty() {
                self.stand_in("user-", name);
            }
        }
    }

    /// Replaces in a text of the recorder all that was replaced elsewhere, and then every
    /// path that is not the kernel's.
    pub(super) fn scrub(&mut self, text: &mut String) {
        if self.secrets.len() > MAX_SECRETS {
            REMOVED.clone_into(text);
            return;
        }
        let mut cleaned = String::with_capacity(text.len());
        let mut rest = text.as_str();
        let mut before = ' ';
        while let Some(letter) = rest.chars().next() {
            if letter == '/' && !before.is_alphanumeric() {
                let word = rest.split(is_end).next().unwrap_or_default();
                let word = word.trim_end_matches(':');
                if let Some(path) = kernel::path(word, self) {
                    cleaned.push_str(&path);
                    before = '/';
                    rest = &rest[word.len()..];
                    continue;
                }
            }
            let found = self
                .secrets
                .iter()
                .find(|(secret, _)| is_at(rest, before, secret));
            if let Some((secret, stand_in)) = found {
                cleaned.push_str(stand_in);
                before = secret.chars().next_back().unwrap_or(' ');
                rest = &rest[secret.len()..];
            } else {
                cleaned.push(letter);
                before = letter;
                rest = &rest[letter.len_utf8()..];
            }
        }
        *text = cleaned
            .split_inclusive(is_end)
            .map(|token| {
                let word = token.trim_end_matches(|letter| is_end(letter) || letter == ':');
                if is_foreign_path(word) {
                    format!("{}{}", self.stand_in("/path-", word), &token[word.len()..])
                } else {
                    token.to_owned()
                }
            })
            .collect();
    }
}

/// Whether a letter ends a path in a sentence.
fn is_end(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;()".contains(letter)
}

/// Whether `secret` stands at the start of `text` as a word of its own; `before` is the
/// letter in front of it.
fn is_at(text: &str, before: char, secret: &str) -> bool {
    let Some(after) = text.strip_prefix(secret) else {
        return false;
    };
    let joins = |left: Option<char>, right: Option<char>| {
        left.is_some_and(char::is_alphanumeric) && right.is_some_and(char::is_alphanumeric)
    };
    !joins(Some(before), secret.chars().next())
        && !joins(secret.chars().next_back(), after.chars().next())
}

/// Whether a word is a path that a person or a service made.
fn is_foreign_path(word: &str) -> bool {
    if !word.starts_with('/') || PLAIN_PATHS.contains(&word) || is_stand_in(&word[1..]) {
        return false;
    }
    if let Some(device) = word.strip_prefix(DEVICE_PATH) {
        return device.contains('/');
    }
    // What is the kernel's was looked at apart.
    !kernel::is_kernel(word)
}

/// Whether a part of a path is already one of ours.
fn is_stand_in(part: &str) -> bool {
    let number = ["group-", "path-"]
        .iter()
        .find_map(|class| part.strip_prefix(class));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
