//! One decoded machine instruction: what `disassemble` returns for each, on every architecture;
//! only x86-64 is decoded.

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
