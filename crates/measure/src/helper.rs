//! Processes of this program that do what may get one killed: started by their work, held by a
//! guard, first in line for the out-of-memory killer, and gone with whoever started them.

use crate::{Error, ErrorKind, Result};
use machine::Root;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};

/// A running helper, its three streams piped; killed and waited for on drop.
#[derive(Debug)]
pub(crate) struct Helper(pub Child);

impl Helper {
    /// Starts `argv`; `operation` follows "cannot" in what goes wrong.
    ///
    /// # Errors
    /// `Failed` where no process can be started.
    pub fn start(argv: &[OsString], operation: &str) -> Result<Self> {
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| Error::new(ErrorKind::Usage, operation, "no program is named for it"))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let why = sys::plain_reason(&error);
                Error::new(ErrorKind::Failed, operation, why).at(program.as_ref())
            })?;
        Ok(Self(child))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended and been waited for already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes this process the first that the kernel kills for want of memory, and one that ends
/// with its parent.
///
/// # Errors
/// `Failed` where that is forbidden.
pub(crate) fn become_expendable(root: &Root) -> Result<()> {
    let failed = |error| Error::caused(ErrorKind::Failed, "become a helper", error);
    sys::parent::die_with_it().map_err(failed)?;
    let score = root.path("/proc/self/oom_score_adj");
    std::fs::write(&score, "1000")
        .map_err(|error| Error::caused(ErrorKind::Failed, "write", error).at(&score))
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
