//! What is escaped, that it happens before widths are computed, and that nothing else in this
//! crate writes escape sequences or to a terminal.

use super::*;
use crate::output::Page;
use crate::output::style::{Style, Tone};
use crate::output::table::{Cell, Table, length, wrap};
use std::path::{Path, PathBuf};

/// One of each kind, with a mark of colour and its end as the layout writes them.
const HOSTILE: &str = "a\x1b]0;t\x07\x1b[2J\u{9b}31m\r\t\x0b\x7f\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{feff}\u{fdd0}\u{fdd3}b";

fn assert_clean(text: &str) {
    let left = text.chars().find(|c| *c != '\n' && is_hazard(*c));
    assert_eq!(left, None, "{text:?}");
}

#[test]
fn everything_that_a_terminal_obeys_is_visible() {
    assert_eq!(
        escaped(HOSTILE),
        "a\\x1b]0;t\\x07\\x1b[2J\\u{9b}31m\\r\\t\\x0b\\x7f\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{2028}\
         \\u{feff}\\u{fdd0}\\u{fdd3}b"
    );
    assert_eq!(escaped("a\nb"), "a\\nb");
    assert_eq!(spaced("a\n\tb\x1b"), "a  b\\x1b");
    assert_eq!(escaped_lines("a\nb\r"), "a\nb\\r");
    for plain in ["", "Wörter, 漢字, 🙂 \u{a0}(5 %)"] {
        assert!(matches!(escaped(plain), Cow::Borrowed(_)), "{plain}");
        assert_eq!(printable(plain), plain);
    }
    assert_eq!(printable("a\x1b[31m\n\u{9b}2J"), "a\\x1b[31m\n\\u{9b}2J");
}

#[test]
fn json_means_the_same_afterwards() {
    let value = serde_json::json!({ HOSTILE: [HOSTILE, "\u{e0041}"] });
    let text = json(&value.to_string()).into_owned();
    assert_clean(&text);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
}

/// The ways in which foreign text enters a page, with and without colour.
#[test]
fn foreign_text_is_clean_in_the_layout_and_its_width_is_that_of_the_escapes() {
    for style in [Style::new(false), Style::new(true)] {
        let page = Page { width: 200, style };
        let rows = [(HOSTILE, Tone::Plain), (HOSTILE, Tone::Warn), ("a\nb", Tone::Plain)];
        let table = Table::of(rows)
            .words(HOSTILE, 0, |(text, tone)| Cell::toned(text, tone))
            .words("end", 0, |_| "x");
        let text = table.render(page, 0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text:?}");
        let mut ends = Vec::new();
        for line in lines {
            let codes = ["\x1b[2m", "\x1b[33m", "\x1b[0m"];
            let without = |text: String, code| text.replace(code, "");
            let plain = codes.into_iter().fold(printable(line).into_owned(), without);
            assert_clean(&plain);
            ends.push(plain.trim_end_matches(['x', 'e', 'n', 'd']).len());
        }
        assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
        let wrapped = wrap(HOSTILE, 200, 0);
        assert_clean(&wrapped);
        let painted = printable(&style.paint(Tone::Warn, HOSTILE)).into_owned();
        assert_clean(&painted.replace("\x1b[33m", "").replace("\x1b[0m", ""));
    }
    assert_eq!(length(HOSTILE), escaped(HOSTILE).len());
}

#[test]
fn data_on_a_terminal_is_clean_wherever_its_pieces_end() {
    let mut data = format!("{{\"x\":\"{HOSTILE}é🙂\"}}\n\ta").into_bytes();
    data.extend(b"\xff\x9b2J\xe2\x80");
    let mut whole = None;
    for size in 1..8 {
        let mut out = Vec::new();
        let mut writer = TerminalWriter::new(&mut out);
        data.chunks(size).for_each(|piece| writer.write_all(piece).unwrap());
        writer.end().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_clean(&text.replace('\t', ""));
        assert!(text.ends_with("é🙂\"}\n\ta\\xff\\x9b2J\\xe2\\x80"), "{text}");
        assert_eq!(whole.get_or_insert_with(|| text.clone()), &text);
    }
}

/// The files of this crate below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Only these files write escape sequences, and only these write to the standard streams. What two
/// processes of Terrace say to each other through a pipe is marked as that.
#[test]
fn one_place_writes_to_the_terminal() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rules: [(&[&str], &[&str]); 2] = [
        (&["\\x1b", "\\u{1b}", "\\x9b"], &["output/clean.rs", "output/progress.rs"]),
        (
            &[
                "io::stdout(",
                "io::stderr(",
                "print!(",
                "println!(",
                "eprint!(",
                "eprintln!(",
                "dbg!(",
            ],
            &[
                "output.rs",
                "output/target.rs",
                "output/terminal.rs",
                "output/progress.rs",
                "output/top/screen.rs",
                // Asks whether standard output is a terminal.
                "command/top.rs",
                // Lets a shell of `--prepare` print there.
                "command/run.rs",
                // Protocols of helper processes.
                "command/helper.rs",
                "command/lab.rs",
            ],
        ),
    ];
    for path in sources(&source) {
        let text = std::fs::read_to_string(&path).unwrap();
        let without_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = without_tests.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = lines.collect::<Vec<_>>().join("\n");
        let name = path.strip_prefix(&source).unwrap().to_str().unwrap();
        if name.ends_with("tests.rs") {
            continue;
        }
        for (words, allowed) in rules {
            let found = words.iter().find(|word| code.contains(**word));
            assert!(found.is_none() || allowed.contains(&name), "{name}: {found:?}");
        }
    }
}
