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

const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "sh", "zsh"];
const INTERPRETERS: &[&str] =
    &["Rscript", "java", "lua", "node", "perl", "php", "pypy", "python", "ruby"];
/// Options whose next word is not what is run.
const WITH_VALUE: &[&str] = &[
    "--class-path",
    "--import",
    "--module-path",
    "--require",
    "-W",
    "-X",
    "-classpath",
    "-cp",
    "-o",
];
/// Options whose next word is what is run.
const RUN: &[&str] = &["--module", "-jar", "-m"];
/// Options in one letter, also beside others in one word, whose next word is program text.
const TEXT_OF_SHELL: &[char] = &['c'];
const TEXT: &[char] = &['E', 'c', 'e', 'p', 'r'];

/// The name of the process `pid`, which the kernel calls `kernel_name`.
///
/// The command line is in the process' own memory, and reading it may wait for that: only that of
/// interpreters is read.
pub fn of(pid: u32, kernel_name: &str) -> String {
    let is_asked = RENAMED.contains(&kernel_name) || is_interpreter(kernel_name);
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
    if !(is_called_so || is_renamed) || !is_interpreter(program) {
        return None;
    }
    let script = script(words, program)?;
    let ends = script.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let end = ends.take_while(|end| *end <= SCRIPT_BYTES).last()?;
    Some(format!("{program} {}", &script[..end]))
}

/// Whether it is one of them with or without a version: `python3.11`, and not `pythonista`.
fn is_interpreter(program: &str) -> bool {
    let version = |name: &&&str| {
        let rest = program.strip_prefix(**name);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    SHELLS.contains(&program) || INTERPRETERS.iter().any(|name| version(&name))
}

/// The script among the words after the program, unless one of them may be program text.
fn script<'a>(mut words: impl Iterator<Item = &'a str>, program: &str) -> Option<&'a str> {
    let text = match program {
        "java" => &[],
        _ if SHELLS.contains(&program) => TEXT_OF_SHELL,
        _ => TEXT,
    };
    loop {
        let word = words.next()?;
        let is_long = word.starts_with("--");
        if RUN.contains(&word) && !SHELLS.contains(&program) {
            return words.next().map(last_component).filter(|name| !name.is_empty());
        } else if WITH_VALUE.contains(&word) {
            words.next()?;
        } else if !word.starts_with('-') {
            return Some(last_component(word)).filter(|name| !name.is_empty());
        } else if ["--eval", "--print"].contains(&word) || (!is_long && word.contains(text)) {
            return None;
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
