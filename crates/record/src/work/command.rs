//! A command of the shell that prints a number, run again for each reading with the caller's
//! rights.
//!
//! One shell stays and runs it: a recorder that adopts orphans knows its own children of the start
//! only. Each answer ends with a line of its own. A command that hangs is waited for, and its value
//! is absent meanwhile; the shell and all that it has started end with the reader. MySQL and
//! MariaDB are asked by their own client, which knows where the server is.

use super::number::{LONGEST_TEXT, first};
use super::{ANSWER_LIMIT, WorkReader};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What ends an answer: no program prints it.
const END: &str = "\u{1e}terrace-end";
/// How often a reader that waits looks whether it shall end.
const LOOK_NS: u64 = 50_000_000;

/// A command, and the shell that runs it.
#[derive(Debug)]
pub(super) struct CommandSource {
    line: String,
    /// Whether it is a client of MySQL or MariaDB: its complaint is the reason.
    is_mysql: bool,
    shell: Option<Shell>,
    /// Answers that are still to come, after one was too late.
    late: u32,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    text: Vec<u8>,
}

impl CommandSource {
    pub fn new(line: String) -> Self {
        Self { line, is_mysql: false, shell: None, late: 0 }
    }

    /// A variable of `SHOW GLOBAL STATUS`; its name has letters, digits and `_` only. Newer
    /// packages of MariaDB have no program of the old name.
    pub fn of_mysql(variable: &str) -> Self {
        let line = format!(
            "client=$(command -v mysql || command -v mariadb) || client=mysql; \
             \"$client\" -N -B -e \"SHOW GLOBAL STATUS LIKE '{variable}'\" 2>&1"
        );
        Self { is_mysql: true, ..Self::new(line) }
    }

    /// The number of an answer.
    fn number(&self, text: &str) -> Result<i64, String> {
        if !self.is_mysql {
            return first(text).ok_or_else(|| "the command printed no number".to_owned());
        }
        // A variable is its name, a tab and its value; all else is a complaint.
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let value = lines.clone().find_map(|line| line.split_once('\t'));
        match value.and_then(|(_, value)| first(value)) {
            Some(number) => Ok(number),
            None => {
                let said = lines.next().map(str::to_owned);
                Err(said.unwrap_or_else(|| "it has no variable of this name".to_owned()))
            }
        }
    }
}

impl WorkReader for CommandSource {
    fn read(&mut self, is_ending: &AtomicBool) -> Result<i64, String> {
        if self.shell.is_none() {
            self.shell = Some(Shell::start(&self.line).map_err(|why| format!("sh: {why}"))?);
            self.late = 0;
        }
        let answer = self.shell.as_mut().map(|shell| {
            if self.late == 0 {
                shell.ask()?;
            }
            shell.answer(is_ending)
        });
        match answer {
            Some(Ok(Some(text))) => {
                self.late = 0;
                self.number(&text)
            }
            Some(Ok(None)) => {
                self.late = 1;
                let limit = ANSWER_LIMIT.as_secs();
                Err(format!("the command gave no answer within {limit} s"))
            }
            Some(Err(why)) => {
                self.shell = None;
                Err(format!("sh: {}", sys::plain_reason(&why)))
            }
            None => Err("no shell".to_owned()),
        }
    }
}

impl Shell {
    fn start(line: &str) -> std::io::Result<Self> {
        // In parentheses: `exit` of the command ends the command only.
        let script = format!("while read -r _; do (\n{line}\n) </dev/null; echo '{END}'; done");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let gone = || std::io::Error::other("it has no pipes");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (input, output) = (input.ok_or_else(gone)?, output.ok_or_else(gone)?);
        Ok(Self { child, input, output, text: Vec::new() })
    }

    fn ask(&mut self) -> std::io::Result<()> {
        self.input.write_all(b"\n")
    }

    /// What it printed; `None` if it did not end in time.
    fn answer(&mut self, is_ending: &AtomicBool) -> std::io::Result<Option<String>> {
        let until = Instant::now() + ANSWER_LIMIT;
        let mut part = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&self.text);
            if let Some((answer, rest)) = text.split_once(&format!("{END}\n")) {
                let (answer, rest) = (answer.to_owned(), rest.as_bytes().to_vec());
                self.text = rest;
                return Ok(Some(answer));
            }
            if Instant::now() >= until || is_ending.load(Ordering::Acquire) {
                return Ok(None);
            }
            if let [true] = sys::poll::readable([Some(self.output.as_fd())], Some(LOOK_NS)) {
                match self.output.read(&mut part)? {
                    0 => return Err(std::io::Error::other("it has ended")),
                    bytes => self.text.extend_from_slice(&part[..bytes]),
                }
                if self.text.len() as u64 > LONGEST_TEXT {
                    return Err(std::io::Error::other("the command printed more than 1 MiB"));
                }
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Its number is its own until it was waited for.
        let _ = sys::process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}
