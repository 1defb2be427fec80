//! `stat` with a deadline, for network mounts whose server no longer answers.
//!
//! Such a call cannot be cancelled: the thread that makes it is left behind to sleep in the
//! kernel until the server answers or the process ends. Callers ask at most once per mount.

use crate::error::{Error, Result};
use std::fs::Metadata;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// The answer of `stat(path)`, or `None` if it does not come within `timeout`.
///
/// # Errors
/// The inner result is the file system's own answer, an error included.
#[must_use]
pub fn stat_within(path: &Path, timeout: Duration) -> Option<Result<Metadata>> {
    let (sender, receiver) = mpsc::channel();
    let target = path.to_owned();
    let spawned = std::thread::Builder::new().name("timed-stat".into()).spawn(move || {
        let answer =
            std::fs::metadata(&target).map_err(|source| Error::new("examine", source).at(&target));
        // The caller may have stopped waiting; then the answer is not needed.
        let _ = sender.send(answer);
    });
    match spawned {
        Ok(_) => receiver.recv_timeout(timeout).ok(),
        Err(source) => Some(Err(Error::new("start a thread to examine", source).at(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_live_file_system_answers() {
        let second = Duration::from_secs(60);
        assert!(stat_within(Path::new("/"), second).unwrap().unwrap().is_dir());
        let error = stat_within(Path::new("/absent-from-here"), second).unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    }

    #[test]
    fn no_time_is_no_answer() {
        // A zero timeout stands for a server that is slower than the deadline: either outcome
        // is right, a hang is not.
        let _ = stat_within(Path::new("/"), Duration::ZERO);
    }
}
