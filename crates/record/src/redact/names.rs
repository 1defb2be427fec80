//! The stand-ins that were given, and the search for what they replaced in other texts.
//!
//! A text of one class always gets the same stand-in. A path that was not replaced by name is found
//! by its slash.

use super::kernel::{self, Vocabulary, Words};
use super::search::Search;
use std::collections::HashMap;

/// Mount points that are the same on all machines.
const PLAIN_PATHS: Words = Words(
    "/ /boot /boot/efi /dev /dev/shm /home /mnt /opt /proc /root /run /srv /sys /sys/fs/cgroup \
    /sys/fs/cgroup/unified /tmp /usr /var /var/lib /var/log /var/tmp",
);

/// The kernel names the entries of this directory. Entries of its subdirectories are volumes that a
/// user named, labels, or links with a serial number.
const DEVICE_PATH: &str = "/dev/";

/// Shorter texts are not searched for elsewhere: they are in every word.
const SHORTEST_SECRET: usize = 3;

/// More texts than a command line and a machine have; a search for more would take a
/// hostile recording's time. A recorder's text is removed whole then.
const MAX_SECRETS: usize = 4096;

/// Of those, how many may be names of threads and marks, or of a long list: a build has thousands,
/// and the recorder's texts name none.
const MAX_NAMES: usize = 1024;

/// The most stand-ins; what comes after them has the number 0 of its class, equal or not.
const MAX_STAND_INS: usize = 1 << 18;

/// Classes of which a recording may hold any number.
const COMMON_CLASSES: &[&str] = &["task-", "mark-"];

/// Classes that the recorder's texts never contain; they name paths, groups, users, devices.
const NEVER_QUOTED: &[&str] = &["arg-", "task-", "mark-"];

/// Replaces a text that could not be searched.
const REMOVED: &str = "(removed)";

/// What was replaced by what.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    stand_ins: HashMap<(&'static str, String), String>,
    counts: HashMap<&'static str, usize>,
    /// What is not looked for: our own words.
    vocabulary: Vocabulary,
    /// Whether what is replaced now is of a list of any length.
    is_listing: bool,
    /// How many of all that was replaced are long enough to be looked for.
    secrets: usize,
    /// Those that are not in the search yet.
    pending: Vec<(String, String)>,
    search: Search,
}

impl StandIns {
    /// No stand-in yet; what is made of these words alone is not looked for in texts.
    pub(super) fn new(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, ..Self::default() }
    }

    /// The stand-in for `text`: the same for the same text of one class.
    pub(super) fn stand_in(&mut self, class: &'static str, text: &str) -> String {
        let key = (class, text.to_owned());
        if let Some(stand_in) = self.stand_ins.get(&key) {
            return stand_in.clone();
        }
        if self.stand_ins.len() >= MAX_STAND_INS {
            return format!("{class}0");
        }
        let count = self.counts.entry(class).or_insert(0);
        *count += 1;
        let stand_in = format!("{class}{count}");
        self.stand_ins.insert(key, stand_in.clone());
        let is_common =
            (self.is_listing || COMMON_CLASSES.contains(&class)) && self.secrets >= MAX_NAMES;
        let is_looked_for = text.len() >= SHORTEST_SECRET && !self.is_ours(class, text);
        if is_looked_for && !is_common && self.secrets <= MAX_SECRETS {
            self.secrets += 1;
            self.pending.push((text.to_owned(), stand_in.clone()));
        }
        stand_in
    }

    /// What is replaced from now on is of a list of any length, of which texts quote little.
    pub(super) fn begin_listing(&mut self) {
        self.is_listing = true;
    }

    /// Whether this text in the recorder's sentences reveals nothing: it is one of the recorder's
    /// words, or a plain word of a class that its sentences never contain.
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
        if !PLAIN_PATHS.contains(path) {
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
            let name = text[at + home.len()..].split('/').next().unwrap_or_default();
            if !name.is_empty() {
                self.stand_in("user-", name);
            }
        }
    }

    /// Replaces in a text of the recorder all that was replaced elsewhere, and then every
    /// path that is not the kernel's.
    pub(super) fn scrub(&mut self, text: &mut String) {
        self.learn_groups(text);
        for (secret, stand_in) in self.pending.drain(..) {
            self.search.add(&secret, &stand_in);
        }
        self.search.prepare();
        if self.secrets > MAX_SECRETS || !self.search.can_search(text.len()) {
            REMOVED.clone_into(text);
            return;
        }
        let cleaned = self.without_secrets(text);
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

    /// Notes the groups that kernel files in a text name.
    fn learn_groups(&mut self, text: &str) {
        let (mut rest, mut before) = (text, ' ');
        while let Some(letter) = rest.chars().next() {
            let word = kernel_word(rest, letter, before);
            let is_file =
                word.is_some_and(|word| kernel::path(word, |group| self.group(group)).is_some());
            let passed = word.filter(|_| is_file).map_or(letter.len_utf8(), str::len);
            before = if is_file { '/' } else { letter };
            rest = &rest[passed..];
        }
    }

    /// A text with all secrets replaced.
    fn without_secrets(&mut self, text: &str) -> String {
        let search = std::mem::take(&mut self.search);
        let mut cleaned = String::with_capacity(text.len());
        let mut walk = search.walk(text);
        let mut before = ' ';
        while let Some(letter) = walk.rest().chars().next() {
            let word = kernel_word(walk.rest(), letter, before);
            if let Some((word, path)) =
                word.and_then(|word| Some((word, kernel::path(word, |group| self.group(group))?)))
            {
                cleaned.push_str(&path);
                walk.skip(word.len());
                before = '/';
                continue;
            }
            let found = walk.found();
            let passed = walk.skip(found.as_ref().map_or(letter.len_utf8(), |found| found.length));
            cleaned.push_str(found.map_or(passed, |found| found.stand_in));
            before = passed.chars().next_back().unwrap_or(' ');
        }
        drop(walk);
        self.search = search;
        cleaned
    }
}

/// The word at the start of `rest`, if it is a file of the kernel. Looks no further than its
/// first two parts unless it is one: a text of slashes alone takes no longer than another.
fn kernel_word(rest: &str, letter: char, before: char) -> Option<&str> {
    if letter != '/' || before.is_alphanumeric() {
        return None;
    }
    let mut slashes = 0;
    let is_far = |letter: char| {
        slashes += usize::from(letter == '/');
        slashes > 2 || is_end(letter)
    };
    let start = rest.split(is_far).next().unwrap_or_default();
    let is_whole = !rest[start.len()..].starts_with('/');
    let head = if is_whole { start.trim_end_matches(':') } else { start };
    let word = || rest.split(is_end).next().unwrap_or_default();
    kernel::is_kernel(head).then(|| word().trim_end_matches(':'))
}

/// Whether a letter ends a path in a sentence.
fn is_end(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;()".contains(letter)
}

/// Whether a word is a path that a person or a service made.
fn is_foreign_path(word: &str) -> bool {
    if !word.starts_with('/') || PLAIN_PATHS.contains(word) || is_stand_in(&word[1..]) {
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
    let number = ["group-", "path-"].iter().find_map(|class| part.strip_prefix(class));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
