//! What `warm` says: pages for a person, one line for what is done at once. Pure.
//!
//! Sizes are in powers of 1024, as memory is; a page names the largest, the JSON has all.

mod parts;
mod receipt;
mod show;
pub mod snapshot;

pub use receipt::Receipt;

use super::Page;
use super::clean::escaped;
use super::style::Tone;
use super::table::wrap;
use model::Bytes;
use place::workingset::evict::Evicted;
use place::workingset::restore::MemoryKind;

/// What was pushed out, and why something stayed.
pub fn evicted(evicted: &Evicted, whose: &str) -> String {
    let (before, after) = (Bytes(evicted.before_bytes), Bytes(evicted.after_bytes));
    let whose = escaped(whose);
    let mut text = format!("{whose}: {before} were in memory, {after} still are\n");
    for why in &evicted.kept {
        text.push_str(&format!(" stayed: {}\n", escaped(why)));
    }
    text
}

/// The word for a kind of memory.
fn kind_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Anonymous => "anonymous",
        MemoryKind::Shared => "shared",
        MemoryKind::File => "files",
    }
}

/// What stands for the place that memory comes from. Shared objects are many, and where in swap
/// they lie cannot be seen.
fn place_name(kind: MemoryKind, source: &str) -> &str {
    match kind {
        MemoryKind::Shared => "swap",
        _ => source,
    }
}

/// A line of a page, indented by one and broken where the page ends.
fn line(page: Page, tone: Tone, words: &str) -> String {
    let text = wrap(words, page.width.saturating_sub(1), 3);
    format!(" {}\n", super::prose::painted_lines(page, tone, &text))
}

/// The first line of a page.
fn heading(page: Page, words: &str) -> String {
    let text = wrap(words, page.width, 3);
    super::prose::painted_lines(page, Tone::Strong, &text) + "\n"
}

/// `1 process`, `2 processes`: the plural is the third word.
fn counted(count: u64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{} {noun}", super::prose::count(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_what_was_done_at_once() {
        let gone = Evicted {
            before_bytes: 64 << 20,
            after_bytes: 4096,
            kept: vec!["1 file: mapped".to_owned()],
        };
        assert_eq!(
            evicted(&gone, "/x"),
            "/x: 64 MiB were in memory, 4 KiB still are\n stayed: 1 file: mapped\n"
        );
    }
}
