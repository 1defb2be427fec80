//! The side of a helper process (`sys::helper`): its caller is at the other end of standard input
//! and output, which only this crate touches.

use crate::error::Result;
use std::io::{StdinLock, Stdout};
use sys::helper::Caller;

/// The caller of this process, which is a helper.
///
/// # Errors
/// If the caller has ended already.
pub fn caller() -> Result<Caller<StdinLock<'static>, Stdout>> {
    Ok(Caller::connect(std::io::stdin().lock(), std::io::stdout())?)
}
