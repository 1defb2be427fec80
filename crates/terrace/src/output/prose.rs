//! Sentences on a page: the first one of several, a command that must not be broken, a
//! number with its unit. Pure text, shared by the pages that show findings.

use super::Page;
use super::clean::is_hazard;
use super::figure::{self, Digits};
use super::style::Tone;
use super::table::{Table, tied, wrap};
use model::Evidence;
pub use model::text::{count, rate};

/// Paints each line by itself: a colour that runs over a line end colours the margin.
pub fn painted_lines(page: Page, tone: Tone, text: &str) -> String {
    let painted: Vec<String> = text
        .lines()
        .map(|line| {
            let words = line.trim_start();
            let margin = &line[..line.len() - words.len()];
            format!("{margin}{}", page.style.paint(tone, words))
        })
        .collect();
    painted.join("\n")
}

/// A page that is written from the top: headings, sentences, tables and notes.
#[derive(Debug)]
pub struct PageText {
    page: Page,
    text: String,
}

impl PageText {
    pub fn new(page: Page) -> Self {
        Self { page, text: String::new() }
    }

    /// A bold line at the top of the page or of a section.
    pub fn heading(&mut self, text: &str) {
        let lines = wrap(text, self.page.width, 3);
        self.text.push_str(&painted_lines(self.page, Tone::Strong, &lines));
        self.text.push('\n');
    }

    /// A sentence of its own.
    pub fn sentence(&mut self, text: &str) {
        self.text.push_str(&sentence(self.page, Tone::Plain, text, 3));
    }

    pub fn sentences<S: AsRef<str>>(&mut self, all: impl IntoIterator<Item = S>) {
        all.into_iter().for_each(|text| self.sentence(text.as_ref()));
    }

    /// A remark, dim.
    pub fn note(&mut self, text: &str) {
        self.text.push_str(&sentence(self.page, Tone::Dim, text, 3));
    }

    pub fn notes<S: AsRef<str>>(&mut self, all: impl IntoIterator<Item = S>) {
        all.into_iter().for_each(|text| self.note(text.as_ref()));
    }

    /// A table behind `indent` spaces.
    pub fn table<R: Copy>(&mut self, table: &Table<R>, indent: usize) {
        self.text.push_str(&table.render(self.page, indent));
    }

    /// Lines that are laid out for the page already.
    pub fn lines(&mut self, lay_out: impl FnOnce(Page) -> String) {
        self.text.push_str(&lay_out(self.page));
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// `text` behind `indent` spaces, its further lines behind `hang`, with a line end.
pub fn indented(text: &str, tone: Tone, indent: usize, hang: usize, page: Page) -> String {
    if text.is_empty() {
        return String::new();
    }
    let room = page.width.saturating_sub(1 + indent);
    let margin = " ".repeat(indent);
    let lines = wrap(text, room, hang - indent).replace('\n', &format!("\n{margin}"));
    format!("{margin}{}\n", painted_lines(page, tone, &lines))
}

/// A sentence on lines of its own behind one space, each further line behind `hang` spaces.
pub fn sentence(page: Page, tone: Tone, text: &str, hang: usize) -> String {
    let lines = wrap(text, page.width.saturating_sub(1), hang);
    format!(" {}\n", painted_lines(page, tone, &lines))
}

/// The values of each key, in the order in which the keys came first.
pub fn grouped<K: PartialEq, V>(items: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// `a, b (reason)` for each reason of `items`, which are pairs of reason and name.
pub fn by_reason<'a>(items: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let groups = grouped(items).into_iter();
    groups.map(|(reason, names)| format!("{} ({reason})", names.join(", "))).collect()
}

/// `text` up to the end of its first sentence; a full stop in parentheses ends none.
pub fn first_sentence(text: &str) -> &str {
    let mut open = 0_usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            '.' if open == 0 && text[index + 1..].starts_with(' ') => return &text[..=index],
            _ => {}
        }
    }
    text
}

/// The programs that remedies tell a person to run.
const PROGRAMS: [&str; 3] = ["echo ", "sudo ", "terrace "];

/// `text` with each command after a colon held together on one line, so that it can be
/// copied from the page: `until the next boot: echo 1 | sudo tee FILE, and measure`.
pub fn commands_tied(text: &str) -> String {
    let mut pieces = text.split(": ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(": ");
        if !PROGRAMS.iter().any(|program| piece.starts_with(program)) {
            out.push_str(piece);
            continue;
        }
        let ends = [" (", ", ", ". "].iter().filter_map(|end| piece.find(end));
        let (command, rest) = piece.split_at(ends.min().unwrap_or(piece.len()));
        out.push_str(&tied(command));
        out.push_str(rest);
    }
    out
}

/// The number of a piece of evidence with its unit: `25.2 s`, `1.7 GiB`, `6480`.
pub fn value(piece: &Evidence) -> String {
    match piece.unit.as_str() {
        "ns" => figure::precise_time(piece.value),
        "bytes_per_s" => figure::precise_rate(piece.value),
        "bytes" if piece.value >= 0.0 => figure::binary_size(piece.value as u64, Digits::Three),
        "s" => figure::precise_time(piece.value * 1e9),
        "ratio" | "count" => figure::number(piece.value, Digits::Three),
        other => format!("{} {other}", figure::number(piece.value, Digits::Three)),
    }
}

/// A piece of evidence with its number: `pswpin 0`, `blkio delay 25.2 s`.
pub fn shown(piece: &Evidence) -> String {
    let number = counted_value(piece);
    let unit = format!(" {}", piece.unit);
    match number.strip_suffix(&unit) {
        // `page faults 3 faults` says it twice.
        Some(alone) if piece.name.ends_with(&unit) => format!("{} {alone}", piece.name),
        _ => format!("{} {number}", piece.name),
    }
}

/// As [`value`], but what was counted is written in full, and nothing is 0 in each unit.
pub fn counted_value(piece: &Evidence) -> String {
    let whole = piece.value >= 0.0 && piece.value.fract() == 0.0;
    match piece.unit.as_str() {
        "ns" | "s" | "bytes" if piece.value == 0.0 => "0".to_owned(),
        "count" if whole => count(piece.value as u64),
        "ratio" => figure::percent(piece.value),
        "" => figure::number(piece.value, Digits::Three),
        unit if whole && unit != "ns" && unit != "s" && !unit.starts_with("bytes") => {
            format!("{} {unit}", count(piece.value as u64))
        }
        _ => value(piece),
    }
}

/// [`model::text::long_time`] of whole nanoseconds.
pub fn long_time(ns: u64) -> String {
    model::text::long_time(ns as f64)
}

/// A path or word as one word of a shell's command line. One that a page would show escaped is
/// written as bash, ksh and zsh read it back: `$'a\x1b'`.
pub fn shell_word(word: &str) -> String {
    if !word.contains(is_hazard) {
        return model::text::shell_word(word);
    }
    let escape = |letter: char| match letter {
        '\'' | '\\' => format!("\\{letter}"),
        letter if is_hazard(letter) => {
            let bytes = letter.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
            bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
        }
        letter => letter.to_string(),
    };
    format!("$'{}'", word.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::wrap;

    #[test]
    fn a_sentence_ends_at_a_stop_before_a_space_outside_of_parentheses() {
        let first = "Add some (zram, e.g. half of RAM. Or a file), by glibc.cpu.x=1.";
        assert_eq!(first_sentence(&format!("{first} Risk: none.")), first);
        assert_eq!(first_sentence("No stop"), "No stop");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence("Stray ) here. Then"), "Stray ) here.");
    }

    #[test]
    fn a_command_in_a_remedy_is_never_broken() {
        let remedy = "Correct it until the next boot: echo 0 | sudo tee /sys/block/vdb/queue/rotational \
                      (a udev rule makes it last).";
        let command = "echo 0 | sudo tee /sys/block/vdb/queue/rotational";
        for width in 20..100 {
            let lines = wrap(&commands_tied(remedy), width, 0);
            assert!(lines.lines().any(|line| line.contains(command)), "{lines}");
        }
        assert_eq!(commands_tied("Risk: none."), "Risk: none.");
        assert_eq!(commands_tied("Type: sudo x, y"), format!("Type: {}, y", tied("sudo x")));
    }

    #[test]
    fn long_times_counts_and_words_of_a_shell() {
        assert_eq!(long_time(41_300_000_000), "41.3 s");
        assert_eq!(long_time(2_600_000_000_000), "43.3 min");
        assert_eq!(long_time(36_000_000_000_000), "10 h");
        assert_eq!((count(0), count(131_072)), ("0".into(), "131,072".into()));
        assert_eq!(shell_word("a b's"), r"'a b'\''s'");
        assert_eq!(shell_word("a\x1b'\\\u{202e}b"), r"$'a\x1b\'\\\xe2\x80\xaeb'");
    }
}
