//! Opening a file that the user named as input: a regular file only, and the first Ctrl-C ends the
//! waiting for a server that does not answer.
//!
//! The idea: such a call cannot be cancelled, and the handler of a signal does not end it. So a
//! thread makes it, and the caller waits for that thread and for the signal. A thread that is left
//! behind ends with the process.

use crate::error::{Error, Result};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often the signal is asked for.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Opens a regular file for reading. A FIFO, a device and a directory are refused without being
/// opened. The first byte is read once, so that a server that is gone is noticed here.
///
/// # Errors
/// `Invalid` for what is not a regular file; `Interrupted` where a signal asked for the end first.
pub fn open_input(path: &Path) -> Result<File> {
    let target = path.to_owned();
    interruptible(path, move || {
        regular(&std::fs::metadata(&target)?)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&target)?;
        // The name may have been exchanged in between, and O_NONBLOCK kept that harmless.
        regular(&file.metadata()?)?;
        super::clear_nonblocking(&file).map_err(|error| error.source)?;
        super::read_at(&file, &mut [0], 0).map_err(|error| error.source)?;
        Ok(file)
    })
}

/// What a file that the user named is.
///
/// # Errors
/// `NotFound`, `Denied` as `stat`; `Interrupted` where a signal asked for the end first.
pub fn examine_input(path: &Path) -> Result<Metadata> {
    let target = path.to_owned();
    interruptible(path, move || std::fs::metadata(target))
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_file() {
        let reason = "not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(())
}

/// Does `work` in a thread, and waits until it is done or a signal asks for the end.
fn interruptible<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |source| Error::new("open", source).at(path);
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("open-input".into())
        .spawn(move || {
            // A caller that was interrupted takes no answer.
            let _ = sender.send(work());
        })
        .map_err(failed)?;
    loop {
        match receiver.recv_timeout(ASK_EVERY) {
            Ok(answer) => return answer.map_err(failed),
            Err(RecvTimeoutError::Timeout) if !crate::interrupt::requested() => {}
            Err(_) => return Err(failed(io::Error::from(io::ErrorKind::Interrupted))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use testkit::TempDir;

    #[test]
    fn only_a_regular_file_is_opened() {
        let directory = TempDir::new();
        std::fs::write(directory.join("file"), "text").unwrap();
        std::fs::write(directory.join("empty"), "").unwrap();
        std::os::unix::fs::symlink("file", directory.join("link")).unwrap();
        for name in ["file", "empty", "link"] {
            assert!(open_input(&directory.join(name)).is_ok(), "{name}");
        }
        let refused = |path: &Path| open_input(path).unwrap_err().kind;
        assert_eq!(refused(directory.path()), ErrorKind::Invalid);
        assert_eq!(refused(Path::new("/dev/null")), ErrorKind::Invalid);
        assert_eq!(refused(&directory.join("absent")), ErrorKind::NotFound);
        let fifo = directory.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        if !made.is_ok_and(|status| status.success()) {
            return testkit::skip("mkfifo");
        }
        assert_eq!(refused(&fifo), ErrorKind::Invalid);
    }
}
