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
        let failed = Error::new(
            ErrorKind::Failed,
            operation,
            sys::plain_reason(&error.source),
        );
        match &error.path {
            Some(path) => failed.at(path),
            None => failed,
        }
    }
}

/// Numbers that do not compress (splitmix64).
#[derive(Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Fills `part` with them.
    pub fn fill(&mut self, part: &mut [u8]) {
        for word in part.chunks_mut(8) {
            word.copy_from_slice(&self.next().to_ne_bytes()[..word.len()]);
        }
    }
}
