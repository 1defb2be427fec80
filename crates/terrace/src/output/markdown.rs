//! Text of others as text in Markdown: no element of HTML, no markup, no end of a line or a cell.
//! Shared by all commands that write Markdown.

use super::clean::spaced;

/// `text` as plain text of one line, also in a cell of a table.
pub fn text(text: &str) -> String {
    let mut out = String::new();
    for letter in spaced(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.extend(['\\', letter]);
            }
            letter => out.push(letter),
        }
    }
    out
}

/// `text` as code of one line, whatever signs it holds; not in a cell of a table, where a bar ends
/// the cell even in code.
pub fn code(text: &str) -> String {
    let text = spaced(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// As [`code`] for a cell of a table; as [`text`] where a bar would end the cell.
pub fn code_in_cell(name: &str) -> String {
    if name.contains('|') { text(name) } else { code(name) }
}

/// `sentence` as text, in which the words between two backticks are code.
pub fn sentence(sentence: &str) -> String {
    let pieces: Vec<&str> = sentence.split('`').collect();
    let last = pieces.len() - 1;
    let marked = pieces.iter().enumerate().map(|(index, piece)| {
        // Without a second backtick the first one is a sign like others.
        match (index % 2 == 1, index == last) {
            (true, false) if !piece.is_empty() => code(piece),
            (true, _) => format!("\\`{}", text(piece)),
            (false, _) => text(piece),
        }
    });
    marked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_markup() {
        assert_eq!(
            text(
                "# <img src=x onerror=a>&amp; `c` **b** [l](u) |\n_i_ ~~s~~ ![p](q) \\ \x1b[2J\u{202e}"
            ),
            "\\# &lt;img src=x onerror=a&gt;&amp;amp; \\`c\\` \\*\\*b\\*\\* \\[l\\](u) \\| \\_i\\_ \\~\\~s\\~\\~ \
             \\!\\[p\\](q) \\\\ \\\\x1b\\[2J\\\\u{202e}"
        );
        assert_eq!(text("Waited 2.1 s (5 %)."), "Waited 2.1 s (5 %).");
    }

    #[test]
    fn code_holds_all_signs() {
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("a\n<b>\x07"), "`a <b>\\x07`");
        assert_eq!(code_in_cell("a_b"), "`a_b`");
        assert_eq!(code_in_cell("a|b"), "a\\|b");
    }

    #[test]
    fn a_sentence_keeps_its_code_and_nothing_else() {
        assert_eq!(sentence("`a_b` <moved> by *2*."), "`a_b` &lt;moved&gt; by \\*2\\*.");
        assert_eq!(sentence("a ` b"), "a \\` b");
    }
}
