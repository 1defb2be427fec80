//! Finds whole words and brackets in a layer of source.
//!
//! Offsets are bytes, lines count from 1. Words are bounded as identifiers are: `print!` is not
//! found in `eprint!`, nor `exit` in `exit_status`.

/// The offsets of `word` in `code` where no identifier goes on at either side of it.
///
/// A side of `word` that is punctuation itself (`print!`) is bounded by nothing.
pub fn find<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let open_left = word.starts_with(is_identifier);
    let open_right = word.ends_with(is_identifier);
    code.match_indices(word).filter_map(move |(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let cut_left = open_left && before.is_some_and(is_identifier);
        let cut_right = open_right && after.is_some_and(is_identifier);
        (!cut_left && !cut_right).then_some(at)
    })
}

/// Whether `code` has the whole word `word`.
pub fn contains(code: &str, word: &str) -> bool {
    find(code, word).next().is_some()
}

/// The line, from 1, of the byte at `offset`.
pub fn line(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
}

/// The identifier that `text` starts with; empty when it starts with something else.
pub fn identifier(text: &str) -> &str {
    let end = text.find(|c| !is_identifier(c)).unwrap_or(text.len());
    &text[..end]
}

/// The offset of the bracket that closes the one at `open`; the end of `code` when none does.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The offset, from `start`, of the first `{` or `;` outside of any bracket: where an item's body
/// begins, or where the item ends without one.
pub fn body(code: &str, start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b'{' | b';' => return Some(at),
            b'(' | b'[' => at = closing(code, at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole() {
        let code = "eprint!(a); print!(b); exit_status; exit();";
        assert_eq!(find(code, "print!").collect::<Vec<_>>(), [12]);
        assert_eq!(find(code, "exit").collect::<Vec<_>>(), [36]);
        assert!(!contains(code, "status"));
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!((line("a\nb", 0), line("a\nb", 2)), (1, 2));
    }

    #[test]
    fn brackets_close_by_depth() {
        let code = "f(a[b(c)], d) { e }";
        assert_eq!(closing(code, 1), 12);
        assert_eq!(closing("f(", 1), 2);
        assert_eq!(body(code, 0), Some(14));
        assert_eq!(body("f(x: [u8; 2]);", 0), Some(13));
        assert_eq!(body("f(", 0), None);
    }
}
