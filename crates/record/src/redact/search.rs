//! The search for many secrets at once, in time that grows with the text and not with their
//! number (Aho and Corasick).
//!
//! A secret counts only as a word of its own: where it starts with a letter or digit, none may
//! be in front of it, and the same at its end. So a mark is put between each letter or digit
//! and what is none, in the text as in the secrets, and at the ends of a secret. Then the
//! longest secret at a place is what an automaton finds by itself.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};
use std::collections::HashSet;

/// The mark: a byte that UTF-8 does not have.
const MARK: u8 = 0xff;

/// A longer secret is in no automaton: texts as long as this are removed whole then.
const MAX_SECRET_BYTES: usize = 1024;

/// The most bytes of all secrets: their automaton takes fifty times as many.
const MAX_BYTES: usize = 1 << 20;

/// New secrets are in an automaton of their own, which is made anew with each of them. It gives
/// them to the large one when they are so many, or have so many bytes.
const NEW_SECRETS: usize = 64;
const NEW_BYTES: usize = 16 << 10;

/// What is looked for.
#[derive(Debug, Default)]
pub(super) struct Search {
    known: HashSet<String>,
    old: Automaton,
    new: Automaton,
    bytes: usize,
    has_long: bool,
}

/// Some of the secrets.
#[derive(Debug, Default)]
struct Automaton {
    secrets: Vec<Secret>,
    bytes: usize,
    made: Option<AhoCorasick>,
}

#[derive(Debug)]
struct Secret {
    marked: Vec<u8>,
    /// How long it is without marks.
    length: usize,
    stand_in: String,
}

/// A secret that was found.
#[derive(Debug)]
pub(super) struct FoundSecret<'a> {
    pub(super) length: usize,
    pub(super) stand_in: &'a str,
}

impl Search {
    /// Adds a secret; of two equal ones the first stays.
    pub(super) fn add(&mut self, secret: &str, stand_in: &str) {
        if secret.len() > MAX_SECRET_BYTES {
            self.has_long = true;
            return;
        }
        self.bytes += secret.len();
        if self.bytes > MAX_BYTES || !self.known.insert(secret.to_owned()) {
            return;
        }
        self.new.add(Secret {
            marked: marked(secret),
            length: secret.len(),
            stand_in: stand_in.to_owned(),
        });
    }

    /// Whether all secrets can be found in a text of this length.
    pub(super) fn can_search(&self, length: usize) -> bool {
        self.bytes <= MAX_BYTES && !(self.has_long && length > MAX_SECRET_BYTES)
    }

    /// Makes ready for a text.
    pub(super) fn prepare(&mut self) {
        if self.new.secrets.len() > NEW_SECRETS || self.new.bytes > NEW_BYTES {
            let new = std::mem::take(&mut self.new);
            new.secrets.into_iter().for_each(|secret| self.old.add(secret));
        }
        self.old.make();
        self.new.make();
    }

    /// Walks through `text`, for which it was made ready.
    pub(super) fn walk<'a>(&'a self, text: &'a str) -> Walk<'a> {
        Walk {
            rest: text,
            marked: marked(text),
            at: 0,
            old: Next::default(),
            new: Next::default(),
            search: self,
        }
    }
}

impl Automaton {
    fn add(&mut self, secret: Secret) {
        self.bytes += secret.length;
        self.secrets.push(secret);
        self.made = None;
    }

    fn make(&mut self) {
        if self.made.is_none() && !self.secrets.is_empty() {
            let secrets = self.secrets.iter().map(|secret| &secret.marked);
            let made = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                // The fastest kind takes a kilobyte for each byte of a secret.
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(secrets);
            // Only secrets of gigabytes cannot be searched for.
            self.made = made.ok();
        }
    }
}

/// The next match of one automaton.
#[derive(Debug, Default)]
struct Next {
    found: Option<Match>,
    is_over: bool,
}

impl Next {
    /// The first match that starts at `from` or after it.
    fn find(&mut self, automaton: &Automaton, text: &[u8], from: usize) -> Option<Match> {
        let is_passed = self.found.is_none_or(|found| found.start() < from);
        if is_passed && !self.is_over {
            let made = automaton.made.as_ref();
            self.found = made.and_then(|made| made.find(Input::new(text).range(from..)));
            self.is_over = self.found.is_none();
        }
        self.found.filter(|found| found.start() >= from)
    }
}

/// A place in a text.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    rest: &'a str,
    marked: Vec<u8>,
    /// Where the rest starts in what is marked, with a mark in front of it.
    at: usize,
    old: Next,
    new: Next,
    search: &'a Search,
}

impl<'a> Walk<'a> {
    /// The text that is left.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// The longest secret that starts here.
    pub(super) fn found(&mut self) -> Option<FoundSecret<'a>> {
        let Search { old, new, .. } = self.search;
        let here = self.at + usize::from(self.marked.get(self.at) == Some(&MARK));
        let mut longest: Option<(Match, &'a Secret)> = None;
        for (next, automaton) in [(&mut self.old, old), (&mut self.new, new)] {
            let found = next.find(automaton, &self.marked, self.at);
            if let Some(found) = found.filter(|found| found.start() <= here)
                && longest.is_none_or(|(before, _)| before.end() < found.end())
            {
                longest = Some((found, &automaton.secrets[found.pattern()]));
            }
        }
        longest.map(|(_, secret)| FoundSecret { length: secret.length, stand_in: &secret.stand_in })
    }

    /// Goes on after so many bytes, which are whole letters.
    pub(super) fn skip(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(bytes);
        let mut left = bytes;
        while left > 0 {
            left -= usize::from(self.marked[self.at] != MARK);
            self.at += 1;
        }
        self.rest = rest;
        passed
    }
}

/// The bytes of a text with a mark wherever a word starts or ends.
fn marked(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 4 + 2);
    let mut is_word = false;
    let mut bytes = [0; 4];
    for letter in text.chars() {
        if letter.is_alphanumeric() != is_word {
            is_word = !is_word;
            out.push(MARK);
        }
        out.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
    }
    if is_word {
        out.push(MARK);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is found by asking each secret at each place, as words are defined.
    fn asked(text: &str, secrets: &[String]) -> String {
        let (mut out, mut rest, mut before) = (String::new(), text, ' ');
        let joins = |left: Option<char>, right: Option<char>| {
            left.is_some_and(char::is_alphanumeric) && right.is_some_and(char::is_alphanumeric)
        };
        while let Some(letter) = rest.chars().next() {
            let is_here = |secret: &&String| {
                rest.strip_prefix(secret.as_str()).is_some_and(|after| {
                    !joins(Some(before), secret.chars().next())
                        && !joins(secret.chars().next_back(), after.chars().next())
                })
            };
            let longest = secrets.iter().filter(is_here).max_by_key(|secret| secret.len());
            let passed = longest.map_or(letter.len_utf8(), String::len);
            match longest {
                Some(secret) => out += &format!("<{secret}>"),
                None => out.push(letter),
            }
            before = rest[..passed].chars().next_back().unwrap_or(' ');
            rest = &rest[passed..];
        }
        out
    }

    fn searched(text: &str, search: &mut Search) -> String {
        search.prepare();
        let mut walk = search.walk(text);
        let mut out = String::new();
        while let Some(letter) = walk.rest().chars().next() {
            match walk.found() {
                Some(found) => {
                    out += found.stand_in;
                    walk.skip(found.length);
                }
                None => out += walk.skip(letter.len_utf8()),
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_same_is_found_as_by_asking_each_secret(
            text in "[ab /é.]{0,40}",
            secrets in prop::collection::vec("[ab /é.]{1,6}", 0..90),
            split in 0..90usize,
        ) {
            let mut search = Search::default();
            for (number, secret) in secrets.iter().enumerate() {
                search.add(secret, &format!("<{secret}>"));
                if number == split {
                    search.prepare();
                }
            }
            prop_assert_eq!(searched(&text, &mut search), asked(&text, &secrets));
        }
    }

    #[test]
    fn what_cannot_be_searched_is_known() {
        let mut search = Search::default();
        search.add(&"x".repeat(MAX_SECRET_BYTES), "a");
        assert!(search.can_search(1 << 20));
        search.add(&"y".repeat(MAX_SECRET_BYTES + 1), "b");
        assert!(search.can_search(MAX_SECRET_BYTES) && !search.can_search(MAX_SECRET_BYTES + 1));
        for number in 0..MAX_BYTES / 1000 + 9 {
            search.add(&format!("{number:01000}"), "c");
        }
        assert!(!search.can_search(1));
    }
}
