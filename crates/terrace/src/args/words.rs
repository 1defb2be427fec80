//! Splits a command line into words as a shell does, without a shell: words, quotes, backslashes.
//! What only a shell can do (pipes, variables, patterns) is refused: a shell on one side of a
//! comparison alone would be part of the difference.

use std::ffi::OsString;

/// What means something to a shell outside of quotes. `=` and `~` are left alone.
const OF_A_SHELL: &str = "|&;<>()$`*?[]#{}!\n";

/// The words of `text`.
///
/// # Errors
/// One line for what only a shell understands, a quote without an end, or no word.
pub fn command_line(text: &str) -> Result<Vec<OsString>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take().map(OsString::from)),
            '\'' => {
                let quoted = until(&mut letters, '\'')?;
                word.get_or_insert_default().push_str(&quoted);
            }
            '"' => {
                let quoted = until(&mut letters, '"')?;
                word.get_or_insert_default().push_str(&quoted);
            }
            '\\' => {
                let next = letters.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            other if OF_A_SHELL.contains(other) => return Err(of_a_shell(other)),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word.map(OsString::from));
    if words.is_empty() { Err("it names no command".to_owned()) } else { Ok(words) }
}

/// The text up to the closing quote. In double ones a backslash takes the next letter as it is.
fn until(letters: &mut std::str::Chars<'_>, quote: char) -> Result<String, String> {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == quote => return Ok(text),
            '$' | '`' if quote == '"' => return Err(of_a_shell(letter)),
            '\\' if quote == '"' => match letters.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => text.push(next),
                Some(next) => text.extend(['\\', next]),
                None => break,
            },
            _ => text.push(letter),
        }
    }
    Err(format!("the quote {quote} has no end"))
}

fn of_a_shell(letter: char) -> String {
    format!(
        "`{}` is for a shell: quote it, or give both commands as sh -c '...'",
        letter.escape_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn words(text: &str) -> Vec<String> {
        let words = command_line(text).unwrap();
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// What it accepts, a real shell takes apart alike.
    #[test]
    fn words_are_those_of_a_shell() {
        for text in [
            "cat x",
            "  a   b\tc ",
            r#"a 'b c' "d e" f\ g"#,
            r#"'it''s' "" a"b"'c'"#,
            r#"x "a\"b" "a\nb" '\n' a\'b"#,
            "dd if=/dev/zero bs=4k",
        ] {
            let line = format!("printf '%s\\0' {text}");
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let mut theirs: Vec<&str> = said.split('\0').collect();
            theirs.pop();
            assert_eq!(words(text), theirs, "{text}");
        }
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        for text in ["a | b", "a; b", "a $x", r#"a "$x""#, "a > b", "ls *.c", "a\nb"] {
            let refused = command_line(text).unwrap_err();
            assert!(refused.contains("sh -c"), "{refused}");
        }
        for text in ["", "  ", "'a", "\"a", "a\\"] {
            assert!(command_line(text).is_err(), "{text}");
        }
        assert_eq!(words("sh -c 'a | b > $x'"), ["sh", "-c", "a | b > $x"]);
    }
}
