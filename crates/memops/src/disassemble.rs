//! Shows a function as it is in memory: the result, its errors, and the one place that reads code.
//!
//! Only x86-64 has a decoder here; `x86_64::control_flow` decodes and finds the loops.

use std::error::Error;
use std::fmt;

#[cfg(target_arch = "x86_64")]
use crate::x86_64::control_flow;

/// One instruction of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the function's first instruction.
    pub offset: usize,
    /// The machine code.
    pub bytes: Vec<u8>,
    /// Intel syntax; targets of jumps within the function are offsets like `offset`.
    pub text: String,
    /// Whether it belongs to an innermost loop: within the span of a backward jump, or a `rep`
    /// string instruction.
    pub in_loop: bool,
}

/// Why a method's code cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisassembleError {
    /// The method's loop is for another architecture than this program.
    NoCode {
        /// The method's name.
        method: &'static str,
    },
    /// There is no decoder for the instructions of this architecture.
    NoDecoder {
        /// The method's name.
        method: &'static str,
    },
}

impl fmt::Display for DisassembleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DisassembleError::NoCode { method } => {
                write!(
                    formatter,
                    "cannot disassemble {method}: its code is for another architecture"
                )
            }
            DisassembleError::NoDecoder { method } => {
                write!(formatter, "cannot disassemble {method}: no decoder for this architecture")
            }
        }
    }
}

impl Error for DisassembleError {}

/// Decodes the function at `entry`, where it is executed from.
///
/// # Safety
/// `entry` must be the first instruction of a function that stays mapped and readable, whose every
/// call returns.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn live_function(
    _method: &'static str,
    entry: *const u8,
) -> Result<Vec<Instruction>, DisassembleError> {
    // SAFETY: `listing` asks only for bytes of instructions that control flow reaches from the
    // entry, which lie in the function that the caller vouches for.
    let fetch = |offset: usize| unsafe { entry.add(offset).read() };
    Ok(control_flow::listing(fetch))
}

/// There is no decoder for other architectures: always [`DisassembleError::NoDecoder`].
///
/// # Safety
/// As on x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn live_function(
    method: &'static str,
    _entry: *const u8,
) -> Result<Vec<Instruction>, DisassembleError> {
    Err(DisassembleError::NoDecoder { method })
}
