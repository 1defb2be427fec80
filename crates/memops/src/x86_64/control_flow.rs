//! Decodes a function of x86-64 by following its control flow, and marks its loops.
//!
//! 1. Decoding starts at the entry and goes on at jump targets and at what comes after an
//!    instruction, never at what comes after a return. So only bytes of reachable instructions are
//!    read, and none behind the function.
//! 2. An instruction's length is that of the shortest run of bytes that decodes, so no byte behind
//!    it is read either.
//! 3. A backward jump that its own target can reach closes a loop; the innermost loops are marked.
//!
//! Jumps to before the entry and indirect jumps are shown and not followed.

use std::collections::BTreeMap;

use crate::disassemble::Instruction;
use yaxpeax_x86::amd64::{DecodeError, InstDecoder, Instruction as Decoded, Opcode, Operand};

/// Most bytes behind the entry that are followed; glibc 2.36's AVX-512 `memcpy` spans 2 KiB.
const SPAN_MAX_BYTES: usize = 16 * 1024;
/// Most instructions that are decoded: a bound on time, which the span implies only loosely.
const INSTRUCTIONS_MAX: usize = 4096;
/// The longest instruction of x86-64, by definition of the architecture.
const INSTRUCTION_MAX_BYTES: usize = 15;

/// All instructions that control flow reaches from offset 0, in the order of offsets; `fetch` reads
/// a byte of code.
pub(crate) fn listing(fetch: impl Fn(usize) -> u8) -> Vec<Instruction> {
    mark_loops(decode(fetch))
}

/// One decoded instruction with where control goes from it.
#[derive(Debug)]
struct Step {
    bytes: Vec<u8>,
    text: String,
    falls_through: bool,
    /// The offset that it jumps to, within the function's span.
    target: Option<usize>,
}

impl Step {
    fn successors(&self, offset: usize) -> impl Iterator<Item = usize> {
        let next = self.falls_through.then_some(offset + self.bytes.len());
        next.into_iter().chain(self.target)
    }
}

fn decode(fetch: impl Fn(usize) -> u8) -> BTreeMap<usize, Step> {
    let mut steps = BTreeMap::new();
    let mut pending = vec![0];
    while let Some(offset) = pending.pop() {
        if offset >= SPAN_MAX_BYTES
            || steps.len() >= INSTRUCTIONS_MAX
            || steps.contains_key(&offset)
        {
            continue;
        }
        let step = decode_one(offset, &fetch);
        pending.extend(step.successors(offset));
        steps.insert(offset, step);
    }
    steps
}

fn decode_one(offset: usize, fetch: &impl Fn(usize) -> u8) -> Step {
    let decoder = InstDecoder::default();
    let mut bytes = Vec::with_capacity(INSTRUCTION_MAX_BYTES);
    while bytes.len() < INSTRUCTION_MAX_BYTES {
        bytes.push(fetch(offset + bytes.len()));
        match decoder.decode_slice(&bytes) {
            Ok(instruction) => return interpret(offset, bytes, &instruction),
            Err(DecodeError::ExhaustedInput) => {}
            Err(_) => break,
        }
    }
    // Newer than the decoder: what follows cannot be known, so this path ends here.
    Step { bytes, text: "(unknown instruction)".to_string(), falls_through: false, target: None }
}

fn interpret(offset: usize, bytes: Vec<u8>, instruction: &Decoded) -> Step {
    let opcode = instruction.opcode();
    let next = offset + bytes.len();
    let branches = opcode == Opcode::JMP
        || opcode.is_jcc()
        || matches!(
            opcode,
            Opcode::LOOP | Opcode::LOOPZ | Opcode::LOOPNZ | Opcode::JRCXZ | Opcode::JECXZ
        );
    let displacement = match (instruction.operand_count() > 0).then(|| instruction.operand(0)) {
        Some(Operand::ImmediateI8 { imm }) => Some(isize::from(imm)),
        Some(Operand::ImmediateI32 { imm }) => Some(imm as isize),
        _ => None,
    };
    let target = displacement
        .filter(|_| branches)
        .and_then(|displacement| next.checked_add_signed(displacement))
        .filter(|target| *target < SPAN_MAX_BYTES);
    let falls_through = !matches!(
        opcode,
        Opcode::JMP
            | Opcode::JMPF
            | Opcode::RETURN
            | Opcode::RETF
            | Opcode::IRET
            | Opcode::IRETD
            | Opcode::IRETQ
            | Opcode::UD0
            | Opcode::UD1
            | Opcode::UD2
            | Opcode::HLT
    );
    let text = match target {
        Some(target) => format!("{opcode} {target:#x}"),
        // A scale of 1 is no scale; the decoder prints it.
        None => instruction.to_string().replace(" * 1", ""),
    };
    Step { bytes, text, falls_through, target }
}

/// Turns steps into instructions, those of the innermost loops marked.
fn mark_loops(steps: BTreeMap<usize, Step>) -> Vec<Instruction> {
    let loops: Vec<(usize, usize)> = steps
        .iter()
        .filter_map(|(&last, step)| step.target.map(|first| (first, last)))
        .filter(|&(first, last)| first <= last && reaches(&steps, first, last))
        .collect();
    let innermost: Vec<(usize, usize)> = loops
        .iter()
        .filter(|outer| {
            !loops.iter().any(|inner| inner != *outer && inner.0 >= outer.0 && inner.1 <= outer.1)
        })
        .copied()
        .collect();
    steps
        .into_iter()
        .map(|(offset, step)| {
            let in_span = innermost.iter().any(|&(first, last)| (first..=last).contains(&offset));
            let in_loop = in_span || step.text.starts_with("rep");
            Instruction { offset, bytes: step.bytes, text: step.text, in_loop }
        })
        .collect()
}

/// Whether control flow leads from `first` to `last` without leaving the span between them.
fn reaches(steps: &BTreeMap<usize, Step>, first: usize, last: usize) -> bool {
    let mut seen = vec![first];
    let mut next = 0;
    while let Some(&offset) = seen.get(next) {
        next += 1;
        if offset == last {
            return true;
        }
        let Some(step) = steps.get(&offset) else {
            continue;
        };
        for successor in step.successors(offset) {
            if (first..=last).contains(&successor) && !seen.contains(&successor) {
                seen.push(successor);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes plain bytes; asking for a byte behind them fails the test.
    fn listing_of(code: &[u8]) -> Vec<Instruction> {
        listing(|offset| code[offset])
    }

    #[test]
    fn stops_at_the_return_and_reads_no_byte_behind_it() {
        let texts: Vec<String> =
            listing_of(&[0x31, 0xc0, 0xc3]).into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["xor eax, eax", "ret"]);
    }

    #[test]
    fn follows_a_forward_jump_over_a_return() {
        // jz 3; ret; nop; ret
        let lines = listing_of(&[0x74, 0x01, 0xc3, 0x90, 0xc3]);
        let offsets: Vec<usize> = lines.iter().map(|line| line.offset).collect();
        assert_eq!(offsets, [0, 2, 3, 4]);
        assert_eq!(lines[0].text, "jz 0x3");
        assert!(lines.iter().all(|line| !line.in_loop));
    }

    #[test]
    fn marks_the_inner_of_two_loops() {
        // 0: nop; 1: dec ecx; 3: jnz 1; 5: dec edx; 7: jnz 0; 9: ret
        let lines = listing_of(&[0x90, 0xff, 0xc9, 0x75, 0xfc, 0xff, 0xca, 0x75, 0xf7, 0xc3]);
        let marked: Vec<usize> =
            lines.iter().filter(|line| line.in_loop).map(|line| line.offset).collect();
        assert_eq!(marked, [1, 3]);
    }

    #[test]
    fn a_backward_jump_that_nothing_returns_to_is_no_loop() {
        // 0: jmp 3; 2: ret; 3: jmp 2
        let lines = listing_of(&[0xeb, 0x01, 0xc3, 0xeb, 0xfd]);
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| !line.in_loop));
    }

    #[test]
    fn an_unknown_instruction_ends_its_path() {
        // 0x06 (push es) does not exist in 64-bit mode.
        let lines = listing_of(&[0x90, 0x06]);
        assert_eq!(lines[1].text, "(unknown instruction)");
        assert_eq!(lines[1].bytes, [0x06]);
    }

    #[test]
    fn an_endless_run_of_code_is_cut() {
        let lines = listing(|_| 0x90);
        assert_eq!(lines.len(), INSTRUCTIONS_MAX);
    }
}
