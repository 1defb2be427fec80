//! What the helper processes of this crate share: they do what may get a process killed, so they
//! are the first that the kernel kills. `sys::helper` starts them and carries their messages.

use crate::{Error, ErrorKind, Result};
use machine::Root;

/// Makes this process the first that the kernel kills when memory is short.
///
/// # Errors
/// `Failed` where that is forbidden.
pub(crate) fn become_expendable(root: &Root) -> Result<()> {
    let score = root.path("/proc/self/oom_score_adj");
    std::fs::write(&score, "1000")
        .map_err(|error| Error::caused(ErrorKind::Failed, "write", error).at(&score))
}

/// Turns an error of a helper's interface into one of `operation`, which names the purpose.
pub(crate) fn failed(operation: &str) -> impl Fn(sys::Error) -> Error {
    move |error| {
        let failed = Error::new(ErrorKind::Failed, operation, sys::plain_reason(&error.source));
        match &error.path {
            Some(path) => failed.at(path),
            None => failed,
        }
    }
}
