//! Page cache is charged to the group of whoever reads it: a short-lived helper inside of the
//! target's group reads the files, so that the memory counts where it is used.
//!
//! The helper is this program again. It opens nothing before its first line of input, and gets
//! that once it is in the group. A line of input is a list of pieces ([`Work`]); its lines of
//! output say what was read (`Told`), one for each batch. It ends with its input, and within
//! a batch of its parent's end, because nobody listens to its output any more.

use super::files::{NamedFile, Piece};
use super::read::{self, Read};
use crate::{Error, Kind, Result};
use model::Control;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How many pieces a line of input holds: the list lies in the target's group as well.
const PIECES_A_LINE: usize = 1024;
/// How often a caller is asked while the helper waits for its disk.
const ASK_EVERY_NS: u64 = 50_000_000;

/// What is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The files with what they must still be.
    pub files: Vec<NamedFile>,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
}

/// A line of the helper's output.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    /// What was read of this line of input so far.
    read: Read,
    /// Whether that was all of it.
    ended: bool,
}

/// Reads `work` from inside of the control group whose directory is `group`, by the program
/// `argv` (this program's hidden command, which calls [`serve`]). `progress` gets what was read
/// so far, at least every 50 ms, and ends the helper at once by [`Control::Stop`].
///
/// # Errors
/// `Impossible` where a process may not be put into the group; `Failed` where the helper ended.
pub fn read_inside(
    group: &Path,
    argv: &[OsString],
    work: &Work,
    progress: &mut dyn FnMut(&Read) -> Control,
) -> Result<Read> {
    let mut helper = Helper::start(argv)?;
    helper.enter(group)?;
    let mut done = Read::default();
    for part in work.pieces.chunks(PIECES_A_LINE) {
        helper.give(&part_of(work, part))?;
        // What was told of once is told again while the helper waits for its disk, never less.
        let mut so_far = done;
        loop {
            let told = helper.next(&mut || progress(&so_far))?;
            let Some(told) = told else { return Ok(so_far) };
            so_far = done;
            so_far.add(&told.read);
            if progress(&so_far).is_stop() {
                return Ok(so_far);
            }
            if told.ended {
                done = so_far;
                break;
            }
        }
    }
    Ok(done)
}

/// The hidden command's body: reads what each line of `input` asks for, and says so on `output`.
///
/// # Errors
/// `Usage` for a line that is no work, `Failed` when nobody listens.
pub fn serve(input: impl BufRead, mut output: impl Write) -> Result<()> {
    let mut tell = |told: &Told| -> io::Result<()> {
        serde_json::to_writer(&mut output, told)?;
        output.write_all(b"\n")?;
        output.flush()
    };
    let unheard =
        |error: io::Error| Error::new(Kind::Failed, "say what was read", sys::plain_reason(&error));
    for line in input.lines() {
        let work = line.map_err(|error| not_work(sys::plain_reason(&error)))?;
        let work: Work =
            serde_json::from_str(&work).map_err(|error| not_work(error.to_string()))?;
        let mut broken = None;
        let read = read::pieces(&work, &mut |read| {
            let told = Told {
                read: *read,
                ended: false,
            };
            broken = tell(&told).err();
            Control::stop_if(broken.is_some())
        });
        if let Some(error) = broken {
            return Err(unheard(error));
        }
        tell(&Told { read, ended: true }).map_err(unheard)?;
    }
    Ok(())
}

fn not_work(why: String) -> Error {
    Error::new(Kind::Usage, "read a list of pieces", why)
}

/// These pieces with the files that they name, and no others.
fn part_of(work: &Work, pieces: &[Piece]) -> Work {
    let mut part = Work::default();
    let mut places = HashMap::new();
    for piece in pieces {
        let Some(named) = work.files.get(piece.file as usize) else {
            continue;
        };
        let file = *places.entry(piece.file).or_insert_with(|| {
            part.files.push(named.clone());
            part.files.len() as u32 - 1
        });
        part.pieces.push(Piece {
            file,
            ..piece.clone()
        });
    }
    part
}

/// The helper; killed and waited for on drop.
struct Helper {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Helper {
    fn start(argv: &[OsString]) -> Result<Self> {
        let failed = |why: String| Error::new(Kind::Failed, "start the reader inside a group", why);
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| failed("it has no name".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(sys::plain_reason(&error)))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(failed("it has no pipes".to_owned())),
        }
    }

    /// Puts it into the group: the same file in both versions.
    fn enter(&self, group: &Path) -> Result<()> {
        let members = group.join("cgroup.procs");
        let number = self.child.id().to_string();
        std::fs::write(&members, number).map_err(|error| {
            let reason = sys::plain_reason(&error);
            Error::new(Kind::Impossible, "read from inside of the group", reason).at(group)
        })
    }

    fn give(&mut self, work: &Work) -> Result<()> {
        let mut line = serde_json::to_vec(work).map_err(|error| ended(error.to_string()))?;
        line.push(b'\n');
        self.input
            .write_all(&line)
            .map_err(|error| ended(sys::plain_reason(&error)))
    }

    /// Its next line; `None` if `progress` stops it first.
    fn next(&mut self, progress: &mut dyn FnMut() -> Control) -> Result<Option<Told>> {
        // A line may be in the buffer already, where no descriptor tells of it.
        while self.output.buffer().is_empty() {
            let source = Some(self.output.get_ref().as_fd());
            if sys::poll::readable([source], Some(ASK_EVERY_NS)) == [true] {
                break;
            }
            if progress().is_stop() {
                return Ok(None);
            }
        }
        let mut line = String::new();
        self.output
            .read_line(&mut line)
            .map_err(|error| ended(sys::plain_reason(&error)))?;
        serde_json::from_str(&line)
            .map(Some)
            .map_err(|_| ended("it ended before its work".to_owned()))
    }
}

fn ended(why: String) -> Error {
    Error::new(Kind::Failed, "hear from the reader inside a group", why)
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
