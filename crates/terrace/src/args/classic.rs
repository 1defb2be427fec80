//! Arguments of the program of 2001: `[-f] [-w] [-s] [-p] [-csv] SIZE COUNT [METHOD...]`.
//!
//! They are unchanged, so that a command line of the article can be repeated. `SIZE` takes `k` and
//! `m`; methods are numbers from 0 to 6.

use super::value;
use measure::memory::classic::METHODS;
use model::Bytes;

/// The options of the program of 2001.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classic {
    /// `-f`: allocate and free for each pass.
    pub allocate_each_pass: bool,
    /// `-w`: hold the buffers in memory (locked, today); switches `-p` off.
    pub locked: bool,
    /// `-s`: print only averages.
    pub averages_only: bool,
    /// `-p`: touch the buffers before each pass.
    pub prepare: bool,
    /// `-csv`: print comma-separated values.
    pub csv: bool,
    /// Bytes to copy.
    pub size: Bytes,
    /// Passes.
    pub passes: u64,
    /// Method numbers in the order given; all seven when none was.
    pub methods: Vec<usize>,
}

/// More passes are refused: they would take days.
const MOST_PASSES: u64 = 100_000;

/// Reads the old program's arguments.
///
/// # Errors
/// One line that says which word is wrong.
pub fn parse(line: &str) -> Result<Classic, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let flags = words.iter().take_while(|word| word.starts_with('-')).count();
    let (flags, rest) = words.split_at(flags);
    if let Some(unknown) =
        flags.iter().find(|flag| !["-f", "-w", "-s", "-p", "-csv"].contains(flag))
    {
        return Err(format!(
            "unknown option `{unknown}`: the program of 2001 has -f, -w, -s, -p, -csv"
        ));
    }
    let [size, passes, methods @ ..] = rest else {
        return Err("a size and a count are needed: 16m 8".to_owned());
    };
    let has = |flag: &str| flags.contains(&flag);
    let locked = has("-w");
    Ok(Classic {
        allocate_each_pass: has("-f"),
        locked,
        averages_only: has("-s"),
        prepare: has("-p") && !locked,
        csv: has("-csv"),
        size: value::size(size).map_err(|why| format!("`{size}`: {why}"))?,
        passes: pass_count(passes)?,
        methods: method_numbers(methods)?,
    })
}

fn pass_count(word: &str) -> Result<u64, String> {
    match word.parse() {
        Ok(passes) if (1..=MOST_PASSES).contains(&passes) => Ok(passes),
        _ => Err(format!("`{word}`: a count is a whole number from 1 to {MOST_PASSES}")),
    }
}

fn method_numbers(words: &[&str]) -> Result<Vec<usize>, String> {
    if words.is_empty() {
        return Ok((0..METHODS.len()).collect());
    }
    words
        .iter()
        .map(|word| match word.parse() {
            Ok(number) if number < METHODS.len() => Ok(number),
            _ => Err(format!("`{word}`: a method is a number from 0 to 6")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_article() {
        let classic = parse("-p -s -csv 16m 8 0 1 2 3 4 5 6").unwrap();
        assert_eq!(classic.size, Bytes(16 << 20));
        assert_eq!(classic.passes, 8);
        assert_eq!(classic.methods, [0, 1, 2, 3, 4, 5, 6]);
        assert!(classic.prepare && classic.averages_only && classic.csv);
        assert!(!classic.locked && !classic.allocate_each_pass);
    }

    #[test]
    fn a_locked_working_set_switches_the_preparation_off() {
        assert!(!parse("-w -p 16m 8").unwrap().prepare);
    }

    #[test]
    fn no_method_means_all() {
        assert_eq!(parse("64k 3").unwrap().methods.len(), 7);
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("-x 16m 8", "-x"),
            ("16m", "size and a count"),
            ("", "size and a count"),
            ("0 8", "`0`"),
            ("16q 8", "`16q`"),
            ("16m 0", "`0`"),
            ("16m 8 7", "`7`"),
            ("16m 8 x", "`x`"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
