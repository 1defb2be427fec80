//! Reads files from inside a control group. Page cache is charged to the group of the task that
//! reads it, so a short-lived helper in the target's group reads, and the memory counts where it is
//! used.
//!
//! The helper (`sys::helper`) opens nothing before its first message, which it gets once it is in
//! the group. A message to it is a list of pieces ([`ReadPlan`]); it reports what it has read
//! (`ReaderReport`) after each batch. It ends with its input and with its caller.

use super::read::{self, ReadCounts};
use crate::read_plan::ReadPlan;
use crate::{Error, ErrorKind, Result};
use model::Control;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;
use sys::helper::{Caller, Helper, HiddenCommand, Received};

/// How many pieces a message holds: the list takes memory of the target's group as well.
const PIECES_PER_MESSAGE: usize = 1024;
/// How often `progress` is called while the helper waits for its disk.
const ASK_EVERY: Duration = Duration::from_millis(50);
const RECEIVE: &str = "receive from the reader inside a group";

/// What the helper reports.
#[derive(Debug, Serialize, Deserialize)]
struct ReaderReport {
    /// What was read of this message so far.
    read: ReadCounts,
    /// Whether that was all of it.
    ended: bool,
}

/// Reads `work` from inside of the control group whose directory is `group`, by `command`, which
/// calls [`serve`]. `progress` gets what was read so far, at least every 50 ms, and ends the
/// helper at once by [`Control::Stop`].
///
/// # Errors
/// `Impossible` where a process may not be put into the group; `Failed` where the helper ended.
pub fn read_inside(
    group: &Path,
    command: &HiddenCommand,
    work: &ReadPlan,
    progress: &mut dyn FnMut(&ReadCounts) -> Control,
) -> Result<ReadCounts> {
    let mut helper = Helper::start(command).map_err(failed("start the reader inside a group"))?;
    helper.join(group).map_err(|error| {
        let reason = sys::plain_reason(&error.source);
        Error::new(ErrorKind::Impossible, "read from inside of the group", reason).at(group)
    })?;
    let mut done = ReadCounts::default();
    for part in work.pieces.chunks(PIECES_PER_MESSAGE) {
        helper.send(&work.of_pieces(part)).map_err(failed(RECEIVE))?;
        // While the helper waits for its disk the last report is repeated.
        let mut so_far = done;
        loop {
            let is_whole = match helper.receive(ASK_EVERY).map_err(failed(RECEIVE))? {
                Received::Message(ReaderReport { read, ended }) => {
                    so_far = done;
                    so_far.add(&read);
                    ended
                }
                Received::Pending => false,
                Received::Ended => return Err(ended_early(&mut helper)),
            };
            if progress(&so_far).is_stop() {
                return Ok(so_far);
            }
            if is_whole {
                done = so_far;
                break;
            }
        }
    }
    Ok(done)
}

fn ended_early(helper: &mut Helper) -> Error {
    let text = helper.wait().ok().and_then(|ending| ending.error_text);
    let why = text.unwrap_or("it ended before its work".to_owned());
    Error::new(ErrorKind::Failed, RECEIVE, why)
}

fn failed(operation: &str) -> impl Fn(sys::Error) -> Error {
    move |error| Error::new(ErrorKind::Failed, operation, sys::plain_reason(&error.source))
}

/// The hidden command's body: reads what each message asks for, and reports it.
///
/// # Errors
/// `Usage` for a message that is not a list of pieces, `Failed` if the caller has ended.
pub fn serve<R: BufRead, W: Write>(caller: &mut Caller<R, W>) -> Result<()> {
    while let Some(work) = caller.receive::<ReadPlan>().map_err(not_work)? {
        let mut sent = Ok(());
        let read = read::pieces(&work, &mut |read| {
            let (read, ended) = (*read, false);
            sent = caller.send(&ReaderReport { read, ended });
            Control::stop_if(sent.is_err())
        });
        let ended = true;
        sent.and_then(|()| caller.send(&ReaderReport { read, ended }))
            .map_err(failed("report what was read"))?;
    }
    Ok(())
}

fn not_work(error: sys::Error) -> Error {
    let why = sys::plain_reason(&error.source);
    Error::new(ErrorKind::Usage, "read a list of pieces", why)
}
