//! The list of `boost fill`: a place and a length, or a path, on each line, the most wanted first.
//!
//! A line is judged as it is read, and the first bad one ends it; what is kept of a line is up to
//! the caller. Lines may come from anyone: their length and their number are bounded.

use model::Bytes;
use model::text::escaped;
use std::ffi::OsStr;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of a line: a path has at most 4096.
const LINE_BYTES_MAX: u64 = 4096;
/// Lines of a list.
const LINES_MAX: u64 = 4 << 20;
/// Letters of a bad line that are shown.
const SHOWN_MAX: usize = 60;

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListEntry<'l> {
    /// Bytes of the volume.
    Range(Range<u64>),
    /// All of a file.
    File(&'l Path),
}

/// Passes each entry of a list to `take`, in order. Empty lines are none.
///
/// # Errors
/// Which line is bad, and why, as a sentence; what `take` says of one.
pub(super) fn read_list(
    mut list: impl BufRead,
    volume_bytes: u64,
    mut take: impl FnMut(ListEntry<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut list).take(LINE_BYTES_MAX + 2).read_until(b'\n', &mut line);
        let said = |why: String| format!("line {number}: {why}");
        if read.map_err(|error: io::Error| said(sys::plain_reason(&error)))? == 0 {
            return Ok(());
        }
        if number > LINES_MAX {
            return Err(format!("it has more than {LINES_MAX} lines"));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.len() as u64 > LINE_BYTES_MAX {
            return Err(said(format!("it is longer than {LINE_BYTES_MAX} bytes")));
        }
        if let Some(entry) = entry(text, volume_bytes).map_err(said)? {
            take(entry).map_err(said)?;
        }
    }
    Ok(())
}

/// What a line asks for; `None` if it is empty.
fn entry(text: &[u8], volume_bytes: u64) -> Result<Option<ListEntry<'_>>, String> {
    let trimmed = text.trim_ascii();
    match trimmed.first() {
        None => Ok(None),
        Some(b'0'..=b'9' | b'-' | b'+') => {
            let text = std::str::from_utf8(trimmed).map_err(|_| wrong(trimmed))?;
            range(text, volume_bytes).map(|range| Some(ListEntry::Range(range)))
        }
        // A path may end with a space, but not hold what no path holds.
        Some(_) if text.contains(&0) => Err("a path has no byte 0".to_owned()),
        Some(_) => Ok(Some(ListEntry::File(Path::new(OsStr::from_bytes(text))))),
    }
}

fn range(text: &str, volume_bytes: u64) -> Result<Range<u64>, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    let &[offset, len] = words.as_slice() else { return Err(wrong(text.as_bytes())) };
    let number = |word: &str| word.parse::<Bytes>().map(|bytes| bytes.0);
    let (Ok(offset), Ok(len)) = (number(offset), number(len)) else {
        return Err(wrong(text.as_bytes()));
    };
    if len == 0 {
        return Err("its length is 0".to_owned());
    }
    match offset.checked_add(len).filter(|end| *end <= volume_bytes) {
        Some(end) => Ok(offset..end),
        None => Err(format!("it ends behind the volume, which has {volume_bytes} bytes")),
    }
}

fn wrong(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    format!(
        "`{}` is no OFFSET LENGTH; a path that begins with a digit or a sign is written with ./",
        escaped(&shown)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[u8]) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        read_list(list, 1 << 30, |entry| {
            found.push(match entry {
                ListEntry::Range(range) => format!("{}+{}", range.start, range.end - range.start),
                ListEntry::File(path) => path.to_string_lossy().into_owned(),
            });
            Ok(())
        })
        .map(|()| found)
    }

    #[test]
    fn a_digit_or_a_sign_begins_a_place_and_all_else_a_path() {
        let list = b"4096 16k\n\n  1m\t8k  \n/a b/c\n./5 6\nrelative\n/ends with \n0 1";
        let expected =
            ["4096+16384", "1048576+8192", "/a b/c", "./5 6", "relative", "/ends with ", "0+1"];
        assert_eq!(entries(list).unwrap(), expected);
        assert_eq!(entries(b"").unwrap(), Vec::<String>::new());
        assert_eq!(entries(b"0 1g").unwrap(), ["0+1073741824"]);
    }

    #[test]
    fn the_first_bad_line_is_named() {
        let bad: [(&[u8], &str); 12] = [
            (b"/a\n5\n", "line 2: `5` is no OFFSET LENGTH"),
            (b"1 2 3", "line 1: `1 2 3` is no"),
            (b"1 x", "is no OFFSET LENGTH"),
            (b"-1 5", "is no OFFSET LENGTH"),
            (b"+1 5", "is no OFFSET LENGTH"),
            (b"1\xff 5", "is no OFFSET LENGTH"),
            (b"4096 0", "its length is 0"),
            (b"1g 1", "it ends behind the volume, which has 1073741824 bytes"),
            (b"9223372036854775807 9223372036854775807", "is no OFFSET LENGTH"),
            (b"8589934591g 8589934591g", "ends behind"),
            (b"\n\n/a\0b", "line 3: a path has no byte 0"),
            (b"7\x1b]0;x\x07 1", "\\x1b"),
        ];
        for (list, words) in bad {
            let said = entries(list).unwrap_err();
            assert!(said.contains(words), "{said}: {words}");
            assert!(!said.contains('\x1b') && said.len() < 300, "{said:?}");
        }
        let long = [b"/".repeat(LINE_BYTES_MAX as usize + 1), b"\n".to_vec()].concat();
        assert!(entries(&long).unwrap_err().contains("longer than 4096 bytes"));
        let longest = b"/".repeat(LINE_BYTES_MAX as usize);
        assert_eq!(entries(&longest).unwrap().len(), 1);
        let said = read_list(&b"/a\n/b\n"[..], 1, |_| Err("not there".to_owned()));
        assert_eq!(said, Err("line 1: not there".to_owned()));
    }

    #[test]
    fn a_list_without_an_end_is_given_up() {
        /// Gives the same line for ever.
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                to.fill(b'\n');
                Ok(to.len())
            }
        }
        let list = io::BufReader::new(Endless);
        let said = read_list(list, 1, |_| Ok(())).unwrap_err();
        assert!(said.contains("more than 4194304 lines"), "{said}");
        /// And a line without an end.
        struct OneLine;
        impl Read for OneLine {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                to.fill(b'/');
                Ok(to.len())
            }
        }
        let said = read_list(io::BufReader::new(OneLine), 1, |_| Ok(())).unwrap_err();
        assert!(said.contains("longer than"), "{said}");
    }

    #[test]
    fn any_bytes_are_entries_or_one_sentence() {
        let volume = 1 << 20;
        let mut random = testkit::Random(11);
        // What lists are made of is more often met than any byte.
        let letters = b"0123456789kmgt \n\t./-+a\0\xff\x1b";
        for _ in 0..20_000 {
            let len = random.below(80) as usize;
            let mut list = vec![0; len];
            random.fill(&mut list);
            let is_usual = random.below(4) > 0;
            for byte in list.iter_mut().filter(|_| is_usual) {
                *byte = letters[usize::from(*byte) % letters.len()];
            }
            let read = read_list(list.as_slice(), volume, |entry| {
                if let ListEntry::Range(range) = entry {
                    assert!(range.start < range.end && range.end <= volume, "{list:?}");
                }
                Ok(())
            });
            if let Err(said) = read {
                assert!(said.starts_with("line ") && !said.contains('\n'), "{said:?}");
            }
        }
    }
}
