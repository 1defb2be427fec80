//! What a process is called: the kernel's name of it, and for an interpreter the script it runs.
//!
//! `python3` says nothing where ten services are written in it, so `python3 report.py` is kept.
//! Only the name of the script is: arguments and program text may be secrets.

use machine::Root;

/// As much of a command line is looked at: a script is among the first words.
const COMMAND_BYTES: usize = 4096;
/// As much of a script's name is kept.
const SCRIPT_BYTES: usize = 40;
/// As much of a program's name is what the kernel keeps.
const KERNEL_NAME_BYTES: usize = 15;
/// What one runtime calls its first thread, whose name is that of the process.
const RENAMED: &[&str] = &["MainThread", "node-MainThread"];

/// How an interpreter finds the script among its words. A word that is on none of the lists may be
/// followed by a secret or by program text, so it ends the search.
#[derive(Debug)]
struct Interpreter {
    names: &'static [&'static str],
    /// Options of one letter that stand alone, also several in one word.
    letters: &'static str,
    /// What other options that stand alone begin with.
    alone: &'static [&'static str],
    /// Options that take the next word, which is not what is run.
    with_value: &'static [&'static str],
    /// Options whose next word is what is run.
    runs: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["ash", "bash", "dash", "ksh", "sh", "zsh"],
        letters: "abefhilmnpuvx",
        alone: &["--login", "--noprofile", "--norc", "--posix", "--verbose"],
        with_value: &["-o", "-eo", "-euo", "-euxo", "-exo", "-ueo", "-uo", "-O", "--rcfile"],
        runs: &[],
    },
    Interpreter {
        names: &["python", "pypy"],
        letters: "bBdEiIOPqRsSuvx",
        alone: &["-W", "-X"],
        with_value: &["-W", "-X", "--check-hash-based-pycs"],
        runs: &["-m"],
    },
    Interpreter { names: &["perl"], letters: "tTuUwWX", alone: &[], with_value: &[], runs: &[] },
    Interpreter { names: &["ruby"], letters: "vw", alone: &[], with_value: &[], runs: &[] },
    Interpreter {
        names: &["node"],
        letters: "",
        alone: &["--inspect", "--no-", "--enable-", "--experimental-", "--trace-"],
        with_value: &["-r", "--require", "--import"],
        runs: &[],
    },
    Interpreter {
        names: &["java"],
        letters: "",
        alone: &["-D", "-X", "-agentlib:", "-agentpath:", "-ea", "-javaagent:", "-server"],
        with_value: &[
            "-classpath",
            "-cp",
            "-p",
            "--add-exports",
            "--add-modules",
            "--add-opens",
            "--add-reads",
            "--class-path",
            "--module-path",
        ],
        runs: &["-jar", "-m", "--module"],
    },
    Interpreter {
        names: &["php"],
        letters: "nq",
        alone: &["-d"],
        with_value: &["-d", "-c"],
        runs: &["-f", "--file"],
    },
    Interpreter { names: &["lua"], letters: "", alone: &[], with_value: &[], runs: &[] },
    Interpreter {
        names: &["Rscript"],
        letters: "",
        alone: &["--no-", "--slave", "--vanilla", "--verbose"],
        with_value: &[],
        runs: &[],
    },
];

/// The name of the process `pid`, which the kernel calls `kernel_name`.
///
/// The command line is in the process' own memory, and reading it may wait for that: only that of
/// interpreters is read.
pub fn of(pid: u32, kernel_name: &str) -> String {
    let is_asked = RENAMED.contains(&kernel_name) || interpreter(kernel_name).is_some();
    let read = || Root::system().read_bytes(format!("/proc/{pid}/cmdline")).ok();
    let command = is_asked.then(read).flatten().unwrap_or_default();
    let known = &command[..command.len().min(COMMAND_BYTES)];
    named(known, kernel_name).unwrap_or_else(|| kernel_name.to_owned())
}

/// `python3 report.py`, from a command line whose words end in zero bytes; `None` if the kernel's
/// name says it all.
fn named(command: &[u8], kernel_name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(command);
    let mut words = text.split('\0');
    let program = last_component(words.next()?);
    let is_renamed = RENAMED.contains(&kernel_name);
    let is_called_so = program.bytes().take(KERNEL_NAME_BYTES).eq(kernel_name.bytes());
    if !(is_called_so || is_renamed) {
        return None;
    }
    let script = interpreter(program)?.script(words)?;
    let ends = script.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let end = ends.take_while(|end| *end <= SCRIPT_BYTES).last()?;
    Some(format!("{program} {}", &script[..end]))
}

/// The interpreter of this name with or without a version: `python3.11`, and not `pythonista`.
fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_it = |name: &&str| program.strip_prefix(name).is_some_and(is_version);
    INTERPRETERS.iter().find(|interpreter| interpreter.names.iter().any(is_it))
}

impl Interpreter {
    /// The script among the words after the program.
    fn script<'a>(&self, mut words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        loop {
            let word = words.next()?;
            let is_letters = word.strip_prefix('-').is_some_and(|letters| {
                !letters.is_empty() && letters.chars().all(|letter| self.letters.contains(letter))
            });
            let stands_alone = || self.alone.iter().any(|start| word.starts_with(start));
            let has_value = word.starts_with("--") && word.contains('=');
            let run = if self.runs.contains(&word) || word == "--" {
                words.next()?
            } else if !word.starts_with('-') {
                word
            } else if self.with_value.contains(&word) {
                words.next()?;
                continue;
            } else if is_letters || has_value || stands_alone() {
                continue;
            } else {
                return None;
            };
            return Some(last_component(run)).filter(|name| !name.is_empty());
        }
    }
}

fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(words: &[&str], kernel_name: &str) -> Option<String> {
        let mut command = words.join("\0").into_bytes();
        command.push(0);
        named(&command, kernel_name)
    }

    #[test]
    fn an_interpreter_is_named_with_its_script() {
        let known: &[(&[&str], &str, &str)] = &[
            (
                &["python3", "-u", "/srv/app/report.py", "--key", "x"],
                "python3",
                "python3 report.py",
            ),
            (
                &["/usr/bin/python3.11", "-W", "error", "-m", "http.server"],
                "python3.11",
                "python3.11 http.server",
            ),
            (&["/bin/sh", "/etc/cron.daily/backup"], "sh", "sh backup"),
            (&["bash", "-o", "pipefail", "-e", "./run.sh"], "bash", "bash run.sh"),
            (
                &["java", "-Xmx1g", "-cp", "a:b", "org.example.Main"],
                "java",
                "java org.example.Main",
            ),
            (&["java", "-jar", "/opt/x/server.jar"], "java", "java server.jar"),
            (&["node", "--require", "x", "/srv/index.js"], "MainThread", "node index.js"),
        ];
        for (words, kernel_name, expected) in known {
            assert_eq!(name(words, kernel_name).as_deref(), Some(*expected), "{words:?}");
        }
    }

    #[test]
    fn where_no_script_is_named_the_kernels_name_stays() {
        let none: &[(&[&str], &str)] = &[
            (&["sh", "-c", "secret"], "sh"),
            (&["bash", "-lc", "secret"], "bash"),
            (&["python3", "-c", "secret"], "python3"),
            (&["python3", "-uc", "secret"], "python3"),
            (&["perl", "-lane", "secret", "a.txt"], "perl"),
            (&["php", "-r", "secret"], "php"),
            (&["node", "--eval", "secret"], "node"),
            (&["sh", "-s", "--", "--token", "secret"], "sh"),
            (&["bash", "-s", "secret"], "bash"),
            (&["python3", "-", "secret"], "python3"),
            (&["perl", "-I", "secret", "x"], "perl"),
            (&["php", "-R", "secret"], "php"),
            (&["node", "--token", "secret"], "node"),
            (&["java", "--token", "secret"], "java"),
            (&["python3"], "python3"),
            (&["pythonista", "a.py"], "pythonista"),
            // It gave itself a name of its own.
            (&["python3", "a.py"], "worker"),
            (&["postgres", "-D", "/var/lib"], "postgres"),
            (&["sh", ""], "sh"),
            (&[""], ""),
        ];
        for (words, kernel_name) in none {
            assert_eq!(name(words, kernel_name), None, "{words:?}");
        }
    }

    #[test]
    fn a_script_with_a_long_name_is_cut_at_a_letter() {
        let long = "\u{e4}".repeat(100);
        let named = name(&["perl", &long], "perl").unwrap();
        assert_eq!(named, format!("perl {}", "\u{e4}".repeat(SCRIPT_BYTES / 2)));
    }
}
