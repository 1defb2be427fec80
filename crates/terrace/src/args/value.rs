//! Parsers of typed values: sizes, durations, counts, offsets, moments of a recording, and command
//! lines, which are split into words as a shell does, without a shell.
//!
//! Each refuses with one line of its own, which `clap` passes on. What only a shell can do (pipes,
//! variables, patterns) is refused: a shell on one side of a comparison alone would be part of the
//! difference.

use machine::Root;
use model::Bytes;
use model::duration::SECOND_NS;
use place::workingset::restore::RestoreMethod;
use record::WorkSpec;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// More runs of one command than this are refused: their table would fit on no page.
const MOST_REPEATS: u32 = 1000;

/// A longer hold of memory is refused.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);

/// More threads than this are refused.
const MOST_THREADS: usize = measure::memory::copy::MOST_THREADS;

/// The largest offset that a copy accepts.
const LARGEST_OFFSET: u64 = measure::memory::copy::LARGEST_OFFSET as u64;

/// The offsets of the target and the source of a copy from their alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// Bytes that the target starts behind a page boundary.
    pub target: u64,
    /// Bytes that the source starts behind a page boundary.
    pub source: u64,
}

/// How to read from swap; `None`: as suits the disk. A name of its own, because clap would take an
/// `Option` for an optional value.
pub type SwapMethod = Option<RestoreMethod>;

/// A size of at least one byte.
pub fn size(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes(0)) => Err("a size must be at least 1 byte".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// What a cache is called: it is also the name of a directory.
pub fn cache_name(text: &str) -> Result<String, String> {
    place::boost::host::check_name(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

/// A size with a sign: `2g`, `+2g`, `-1g`; not 0.
pub fn signed_size(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let bytes = i64::try_from(size(digits)?.0).map_err(|_| "more than 8 EiB".to_owned())?;
    Ok(sign * bytes)
}

/// A size that may be 0, for commands that say themselves what 0 would mean.
pub fn any_size(text: &str) -> Result<Bytes, String> {
    text.parse::<Bytes>().map_err(|error| error.to_string())
}

/// Permissions in octal, as `0750`.
pub fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| "permissions are 3 or 4 digits from 0 to 7, as 0750".to_owned())
}

/// A user and a group, by names or numbers; without a group that of the user.
pub fn owner(text: &str) -> Result<(u32, u32), String> {
    let accounts = |file: &str| Root::system().read(file).unwrap_or_default();
    owner_of(text, &accounts("/etc/passwd"), &accounts("/etc/group"))
}

fn owner_of(text: &str, users: &str, groups: &str) -> Result<(u32, u32), String> {
    let (user, group) = match text.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (text, None),
    };
    // "name:x:number:..."; of a user the number of its group follows.
    let row = |table: &str, wanted: &str| {
        let rows = table.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let is_wanted =
            |row: &Vec<&str>| row.first() == Some(&wanted) || row.get(2) == Some(&wanted);
        let numbers = |row: Vec<&str>| {
            let number = row.get(2)?.parse::<u32>().ok()?;
            Some((number, row.get(3).and_then(|group| group.parse::<u32>().ok())))
        };
        rows.into_iter().find(|row| is_wanted(row)).and_then(numbers)
    };
    let (user_number, own_group) = match (row(users, user), user.parse::<u32>()) {
        (Some((number, group)), _) => (number, group),
        (None, Ok(number)) => (number, None),
        (None, Err(_)) => return Err(format!("there is no user {user}")),
    };
    let group_number = match group {
        None => own_group.unwrap_or(user_number),
        Some(group) => match (row(groups, group), group.parse::<u32>()) {
            (Some((number, _)), _) => number,
            (None, Ok(number)) => number,
            (None, Err(_)) => return Err(format!("there is no group {group}")),
        },
    };
    Ok((user_number, group_number))
}

/// The time from one save to the next.
pub fn interval(text: &str) -> Result<Duration, String> {
    let duration = pause(text)?;
    if duration < Duration::from_secs(1) {
        return Err("the time between two saves must be at least 1 s".to_owned());
    }
    Ok(duration)
}

/// What counts work.
pub fn work(text: &str) -> Result<WorkSpec, String> {
    text.parse()
}

/// A duration that may be 0, for pauses.
pub fn pause(text: &str) -> Result<Duration, String> {
    model::duration::parse(text).map_err(|error| error.to_string())
}

/// A duration of at least a millisecond, for budgets.
pub fn budget(text: &str) -> Result<Duration, String> {
    let duration = pause(text)?;
    if duration < Duration::from_millis(1) {
        return Err("a budget must be at least 1 ms".to_owned());
    }
    Ok(duration)
}

/// How long memory must not have been short: it is looked at once a second.
pub fn quiet_time(text: &str) -> Result<Duration, String> {
    let duration = pause(text)?;
    if duration < Duration::from_secs(1) {
        return Err("the quiet time must be at least 1 s".to_owned());
    }
    Ok(duration)
}

/// The name of a unit of systemd, as another unit names it.
pub fn unit(text: &str) -> Result<String, String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-_.:@\\".contains(c);
    let has_kind =
        text.rsplit_once('.').is_some_and(|(name, kind)| !name.is_empty() && !kind.is_empty());
    if has_kind && text.chars().all(is_letter) {
        Ok(text.to_owned())
    } else {
        Err("the name of a unit is as in postgresql.service".to_owned())
    }
}

/// A whole number of at least 1; `k`, `m` and `g` are thousands, as of iterations.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || "a count is a whole number of at least 1: 8, 500, 10m".to_owned();
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|count| *count > 0).ok_or_else(wrong)
}

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    let wrong = format!("threads are a whole number from 1 to {MOST_THREADS}");
    within(text, 1..=MOST_THREADS, &wrong)
}

/// Samples a second.
pub fn rate(text: &str) -> Result<u32, String> {
    within(text, 1..=100, "a rate is a whole number of samples a second, from 1 to 100")
}

/// How often a command is run.
pub fn repeats(text: &str) -> Result<u32, String> {
    within(text, 1..=MOST_REPEATS, "repeats are a whole number from 1 to 1000")
}

/// Runs of a probe.
pub fn runs(text: &str) -> Result<u32, String> {
    let most = measure::runs::MOST_RUNS;
    within(text, 1..=most, &format!("runs are a whole number from 1 to {most}"))
}

/// Hogs at the same time.
pub fn hogs(text: &str) -> Result<u32, String> {
    within(text, 1..=256, "hogs are a whole number from 1 to 256")
}

/// How long memory is held: a hog always ends.
pub fn hold(text: &str) -> Result<Duration, String> {
    let duration = pause(text)?;
    if duration > LONGEST_HOLD {
        return Err("memory is held for at most 1h".to_owned());
    }
    Ok(duration)
}

/// A share of time in whole percent: `20%` or `20`.
pub fn share(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    within(number, 1..=100, "a share is a whole number from 1% to 100%")
}

/// A method to read from swap: `auto`, `remote`, `readers:4`, `willneed`.
pub fn swap_method(text: &str) -> Result<SwapMethod, String> {
    let method = match text {
        "auto" => return Ok(None),
        "remote" => RestoreMethod::RemoteRead,
        "willneed" => RestoreMethod::WillNeed,
        _ => RestoreMethod::RemoteReaders(
            text.strip_prefix("readers:")
                .and_then(|count| count.parse().ok())
                .filter(|count| (2..=64).contains(count))
                .ok_or("a method is auto, remote, readers:N with N from 2 to 64, or willneed")?,
        ),
    };
    Ok(Some(method))
}

/// The number of a process.
pub fn pid(text: &str) -> Result<u32, String> {
    within(text, 1..=i32::MAX as u32, "a process is a whole number from 1, as ps shows it")
}

fn within<T: FromStr + PartialOrd>(
    text: &str,
    range: RangeInclusive<T>,
    wrong: &str,
) -> Result<T, String> {
    let number = text.parse().ok();
    number.filter(|number| range.contains(number)).ok_or_else(|| wrong.to_owned())
}

/// The number of a processor, from 0.
pub fn cpu(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "a processor is a whole number from 0, as in /proc/cpuinfo".to_owned())
}

/// A stride in elements; 0 and 1 are sequential.
pub fn stride(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        "a stride is a whole number of elements: 12 walks columns of a 12 x 12 matrix".to_owned()
    })
}

/// A queue depth.
pub fn depth(text: &str) -> Result<u32, String> {
    within(text, 1..=1024, "a queue depth is a whole number from 1 to 1024")
}

/// `T` or `T,S`: offsets of the target and the source, in bytes.
pub fn offset(text: &str) -> Result<Offset, String> {
    let part = |text: &str| match text.parse::<Bytes>() {
        Ok(Bytes(bytes)) if bytes <= LARGEST_OFFSET => Ok(bytes),
        Ok(_) => Err("an offset is 0 to 1m".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let (target, source) = text.split_once(',').unwrap_or((text, "0"));
    Ok(Offset { target: part(target)?, source: part(source)? })
}

/// A moment; the time of day is nanoseconds since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the start.
    Since(Duration),
    /// The first instant of a minute of the day.
    Minute(u64),
    /// An instant of the day.
    Second(u64),
}

/// Parses `12.5s`, `3min`, `14:32`, `14:32:05.5`.
pub fn moment(text: &str) -> Result<Moment, String> {
    if !text.contains(':') {
        if !text.contains(|c: char| c.is_ascii_digit()) {
            let why = "a moment is a time since the start (12.5s) or a time of day (14:32)";
            return Err(why.to_owned());
        }
        let since = model::duration::parse(text).map_err(|error| error.to_string())?;
        return Ok(Moment::Since(since));
    }
    time_of_day(text)
        .ok_or_else(|| "a time of day is 14:32 or 14:32:05, from 00:00 to 23:59:59".to_owned())
}

/// A part of a recording, as `--at` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedPart {
    /// Around a moment.
    Around(Moment),
    /// From one moment to another.
    Between(Moment, Moment),
    /// Around the mark of this text.
    Mark(String),
}

/// Parses a [`moment`], two of them with `..` between them, or the text of a mark: anything else.
pub fn part(text: &str) -> Result<NamedPart, String> {
    if let Some((from, to)) = text.split_once("..")
        && let (Ok(from), Ok(to)) = (moment(from.trim()), moment(to.trim()))
    {
        return Ok(NamedPart::Between(from, to));
    }
    match moment(text) {
        Ok(moment) => Ok(NamedPart::Around(moment)),
        // What has no letter is not a text: a moment that was mistyped.
        Err(why) if !text.contains(char::is_alphabetic) => Err(why),
        Err(why) if text.trim().starts_with('-') => Err(why),
        Err(_) => Ok(NamedPart::Mark(text.to_owned())),
    }
}

fn time_of_day(text: &str) -> Option<Moment> {
    let mut fields = text.split(':');
    let mut below = |limit: u64| -> Option<u64> {
        let field = fields.next()?;
        let plain = (1..=2).contains(&field.len()) && field.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = field.parse().ok().filter(|_| plain)?;
        (number < limit).then_some(number)
    };
    let (hours, minutes) = (below(24)?, below(60)?);
    let minute_ns = (hours * 3600 + minutes * 60) * SECOND_NS;
    let Some(field) = fields.next() else {
        return Some(Moment::Minute(minute_ns));
    };
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let seconds: f64 = field.parse().ok().filter(|_| field.chars().all(digits))?;
    let whole = fields.next().is_none() && (0.0..60.0).contains(&seconds);
    whole.then(|| Moment::Second(minute_ns + (seconds * SECOND_NS as f64) as u64))
}

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

    #[test]
    fn owners_are_names_or_numbers_and_a_user_has_a_group() {
        let owner = |text| owner_of(text, "ann:x:1000:100::/:/x\n", "disk:x:6:\nusers:x:100:\n");
        assert_eq!(owner("ann").unwrap(), (1000, 100));
        assert_eq!(owner("ann:disk").unwrap(), (1000, 6));
        assert_eq!(owner("1000").unwrap(), (1000, 100));
        assert_eq!(owner("77").unwrap(), (77, 77));
        assert_eq!(owner("77:6").unwrap(), (77, 6));
        assert!(owner("bob").unwrap_err().contains("bob"));
        assert!(owner("ann:none").unwrap_err().contains("none"));
        assert_eq!(
            (mode("0750").unwrap(), mode("8").is_err(), mode("17777").is_err()),
            (0o750, true, true)
        );
    }

    #[test]
    fn sizes_and_budgets_are_positive() {
        assert_eq!(size("16m"), Ok(Bytes(16 << 20)));
        assert!(size("0").unwrap_err().contains("at least 1 byte"));
        assert!(size("-1m").unwrap_err().contains("negative"));
        assert_eq!(pause("0"), Ok(Duration::ZERO));
        assert!(budget("0").is_err());
        assert!(budget("0.4ms").is_err());
        assert_eq!(budget("5min"), Ok(Duration::from_secs(300)));
    }

    #[test]
    fn counts() {
        assert_eq!(count("8"), Ok(8));
        assert_eq!(count("10m"), Ok(10_000_000));
        for wrong in ["", "0", "-1", "m", "1.5", "99999999999999999999", "99999999999g"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn offsets_have_a_limit() {
        assert_eq!(offset("8"), Ok(Offset { target: 8, source: 0 }));
        assert_eq!(offset("1,4095"), Ok(Offset { target: 1, source: 4095 }));
        assert_eq!(offset("4k"), Ok(Offset { target: 4096, source: 0 }));
        assert!(offset("2m").is_err());
        assert!(offset("1,-1").is_err());
        assert!(offset("1,2,3").is_err());
    }

    #[test]
    fn methods_to_read() {
        assert_eq!(swap_method("auto"), Ok(None));
        assert_eq!(swap_method("remote"), Ok(Some(RestoreMethod::RemoteRead)));
        assert_eq!(swap_method("readers:4"), Ok(Some(RestoreMethod::RemoteReaders(4))));
        assert_eq!(swap_method("willneed"), Ok(Some(RestoreMethod::WillNeed)));
        for wrong in ["", "fast", "readers", "readers:1", "readers:65", "readers:-4"] {
            assert!(swap_method(wrong).unwrap_err().contains("readers:N"), "{wrong}");
        }
    }

    #[test]
    fn small_whole_numbers_have_limits() {
        assert!(threads("0").is_err());
        assert!(threads("1025").is_err());
        assert_eq!(threads("2"), Ok(2));
        assert!(depth("0").is_err());
        assert_eq!(depth("32"), Ok(32));
        assert!(cpu("-1").is_err());
        assert_eq!((rate("100"), pid("1")), (Ok(100), Ok(1)));
        assert!(rate("0").is_err() && rate("101").is_err() && rate("2.5").is_err());
        assert!(repeats("0").is_err() && repeats("1001").is_err());
        assert_eq!((share("20%"), share("100"), hogs("256")), (Ok(20), Ok(100), Ok(256)));
        assert!(share("0%").is_err() && share("101%").is_err() && share("%").is_err());
        assert!(hogs("0").is_err() && hogs("257").is_err());
        assert_eq!(hold("1h"), Ok(Duration::from_secs(3600)));
        assert!(hold("2h").is_err() && hold("-1s").is_err());
        assert!(pid("0").is_err() && pid("-1").is_err() && pid("4294967295").is_err());
    }

    #[test]
    fn moments() {
        let at = |h: u64, m: u64, ms: u64| ((h * 60 + m) * 60_000 + ms) * 1_000_000;
        assert_eq!(moment("12.5s"), Ok(Moment::Since(Duration::from_millis(12_500))));
        assert_eq!(moment("90"), Ok(Moment::Since(Duration::from_secs(90))));
        assert_eq!(moment("14:32"), Ok(Moment::Minute(at(14, 32, 0))));
        assert_eq!(moment("14:32:05.5"), Ok(Moment::Second(at(14, 32, 5_500))));
        assert_eq!(moment("0:00:00"), Ok(Moment::Second(0)));
    }

    #[test]
    fn parts() {
        let second = |s: u64| Moment::Since(Duration::from_secs(s));
        let mark = |text: &str| Ok(NamedPart::Mark(text.to_owned()));
        assert_eq!(part("12s"), Ok(NamedPart::Around(second(12))));
        assert_eq!(part("12s..1min"), Ok(NamedPart::Between(second(12), second(60))));
        assert_eq!(part("0:00 .. 0:00:00"), {
            Ok(NamedPart::Between(Moment::Minute(0), Moment::Second(0)))
        });
        assert_eq!(part("deploy v42"), mark("deploy v42"));
        assert_eq!(part("v1..v2"), mark("v1..v2"));
        assert_eq!(part("build 12:99"), mark("build 12:99"));
        for wrong in ["24:00", "14:30..", "..", "", "-5s"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_moment_says_why() {
        for wrong in [
            "24:00",
            "14:60",
            "14:32:60",
            "1:2:3:4",
            "14:",
            ":32",
            "14:32:",
            "14:32:nan",
            "+1:30",
            "014:30",
        ] {
            assert!(moment(wrong).unwrap_err().contains("time of day"), "{wrong}");
        }
        assert!(moment("-5s").unwrap_err().contains("negative"));
        assert!(moment("noon").unwrap_err().contains("time of day"));
        assert!(moment("").is_err());
    }

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
