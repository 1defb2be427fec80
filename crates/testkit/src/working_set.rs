//! A program that answers each line with numbers, above all the one of the crate `lab` with a
//! working set of known content; ended on drop.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A program that runs and waits for a line.
#[derive(Debug)]
pub struct WorkingSet {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl WorkingSet {
    /// The arguments of the program `terrace` for a set of `mib` MiB in `layout`: `contiguous`,
    /// `scattered` or `half`.
    #[must_use]
    pub fn arguments(mib: u64, layout: &str) -> [String; 4] {
        let bytes = (mib << 20).to_string();
        ["lab-process", "working-set", &bytes, layout].map(str::to_owned)
    }

    /// Starts the program `terrace` with such a set and waits until all of it is written.
    ///
    /// # Errors
    /// Why it cannot be started, or has ended.
    pub fn start(terrace: impl AsRef<OsStr>, mib: u64, layout: &str) -> Result<Self, String> {
        let mut command = Command::new(terrace);
        command.args(Self::arguments(mib, layout));
        Self::spawn(command)
    }

    /// Starts a program that answers in lines of numbers, the first when it is ready.
    ///
    /// # Errors
    /// As [`WorkingSet::start`].
    pub fn spawn(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed(&format!("{command:?}")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or("no pipes")?;
        let mut started = Self { child, input, output: BufReader::new(output) };
        started.receive()?;
        Ok(started)
    }

    /// Its process number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line and waits for its numbers.
    ///
    /// # Errors
    /// If it has ended, or answers something else.
    pub fn ask(&mut self, line: &str) -> Result<Vec<u64>, String> {
        self.send(line)?;
        self.receive()
    }

    /// Reads one word of every page: nanoseconds, wrong pages, major faults.
    ///
    /// # Errors
    /// As [`WorkingSet::ask`].
    pub fn touch(&mut self) -> Result<[u64; 3], String> {
        let answer = self.ask("\"touch\"")?;
        answer.try_into().map_err(|answer| format!("touched {answer:?}"))
    }

    /// Compares every byte: wrong pages.
    ///
    /// # Errors
    /// As [`WorkingSet::ask`].
    pub fn wrong_pages(&mut self) -> Result<u64, String> {
        let answer = self.ask("\"compare\"")?;
        answer.first().copied().ok_or_else(|| "compared nothing".to_owned())
    }

    /// Sends a line without waiting for an answer.
    ///
    /// # Errors
    /// If it has ended.
    pub fn send(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.input, "{line}").map_err(failed(line))
    }

    /// Ends it, without waiting for that.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(failed("kill"))
    }

    /// Waits for its next line of numbers.
    ///
    /// # Errors
    /// As [`WorkingSet::ask`].
    pub fn receive(&mut self) -> Result<Vec<u64>, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(failed("read an answer"))?;
        if line.is_empty() {
            return Err("a program with a working set has ended".to_owned());
        }
        let words = line.split(|c: char| "[], \n".contains(c)).filter(|word| !word.is_empty());
        words.map(str::parse).collect::<Result<_, _>>().map_err(failed(&line))
    }
}

fn failed<E: Display>(what: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}

impl Drop for WorkingSet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
