//! Which instruction moves the bytes of a copy: the code of the method, and where in it the
//! processor was found while it copied.
//!
//! A C library has a loop for each size and processor; only looking tells which one runs.

use super::arena::{Arena, PageKind};
use super::technique::Technique;
use crate::{Budget, Error, ErrorKind, Result, team};
use machine::Root;
use memops::Instruction;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// What moves a method's bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mover {
    /// The method.
    pub method: String,
    /// What loads, as a disassembly says it: `vmovdqu64 zmmword`.
    pub load: String,
    /// What stores; the same word as `load` for a string instruction.
    pub store: String,
    /// How often the processor was found in the loop of these two.
    pub seen: u64,
    /// How often it was looked at within this method's code.
    pub looks: u64,
}

/// Copies `size_bytes` by `method` for `time` and says what moved them.
///
/// # Errors
/// `Impossible` where the memory cannot be had, the code cannot be decoded (it is for x86-64
/// alone), or the processor was never found in a loop of it.
pub fn find(
    method: &str,
    size_bytes: u64,
    time: Duration,
    root: &Root,
    stop: &Budget,
) -> Result<Mover> {
    let cannot = |why: String| {
        let what = format!("find what moves the bytes of {method}");
        Error::new(ErrorKind::Impossible, what, why)
    };
    let mut technique = Technique::prepare(method)?;
    let known = memops::find(method).and_then(|known| Some((known, known.address()?)));
    let (known, address) = known.ok_or_else(|| cannot("it has no code of its own".to_owned()))?;
    let code = known.disassemble().map_err(|error| cannot(error.to_string()))?;
    let mut arena = Arena::resident(2 * size_bytes as usize, PageKind::Transparent, root, stop)?;
    let budget = stop.part(time);
    let seen = team::alone(None, root, |_| {
        let mut failed = None;
        let seen = sys::program_counter::sample(|| {
            while !budget.over() && failed.is_none() {
                let (target, source) = arena.halves_mut();
                failed = technique.apply(target, source).err();
            }
        });
        match failed {
            Some(error) => Err(cannot(error.to_string())),
            None => seen.map_err(|error| cannot(error.to_string())),
        }
    })?;
    let offsets = seen.iter().filter_map(|at| at.checked_sub(address));
    mover(method, &code, &offsets.collect::<Vec<_>>())
        .ok_or_else(|| cannot("the processor was not found in its code".to_owned()))
}

/// The loop in which most looks fell, by what it loads and stores.
fn mover(method: &str, code: &[Instruction], offsets: &[usize]) -> Option<Mover> {
    let places: Vec<usize> = offsets
        .iter()
        .filter_map(|offset| code.binary_search_by_key(offset, |one| one.offset).ok())
        .collect();
    let seen_in = |of: &Range<usize>| places.iter().filter(|at| of.contains(at)).count() as u64;
    let best = loops(code).into_iter().max_by_key(seen_in)?;
    let seen = seen_in(&best);
    let texts = || code[best.clone()].iter().map(|one| one.text.as_str());
    // A loop that prefetches reads nothing by that.
    let load = texts().find(|text| !text.starts_with("prefetch") && loads(text))?;
    let store = texts().find(|text| stores(text))?;
    (seen > 0).then(|| Mover {
        method: method.to_owned(),
        load: shape(load),
        store: shape(store),
        seen,
        looks: places.len() as u64,
    })
}

/// The innermost loops: runs of instructions that are marked.
fn loops(code: &[Instruction]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in (0..code.len()).filter(|&at| code[at].in_loop) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

/// Whether an operand after the first is in memory.
fn loads(text: &str) -> bool {
    text.split_once(',').is_some_and(|(_, rest)| rest.contains('['))
}

/// Whether the first operand is in memory and is not only compared.
fn stores(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default();
    first.contains('[') && text.contains("mov")
}

/// `vmovdqa64 zmmword` of `vmovdqa64 zmmword [rdi + 0x40], zmm18`.
fn shape(text: &str) -> String {
    let operand = text.split('[').next().unwrap_or_default();
    let (words, _) = operand.split_once("es:").unwrap_or((operand, ""));
    let is_width = |word: &&str| ["byte", "word"].iter().any(|end| word.ends_with(end));
    let width = words.split_whitespace().find(is_width);
    let name = words
        .split_whitespace()
        .take_while(|word| !is_width(word))
        // A load names its register between the two.
        .filter(|word| !word.ends_with(','));
    name.chain(width).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(lines: &[(&str, bool)]) -> Vec<Instruction> {
        let numbered = lines.iter().enumerate();
        let instruction = |(at, (text, in_loop)): (usize, &(&str, bool))| Instruction {
            offset: at * 4,
            bytes: Vec::new(),
            text: (*text).to_owned(),
            in_loop: *in_loop,
        };
        numbered.map(instruction).collect()
    }

    /// Two loops of a C library: the one in which the processor was found counts.
    #[test]
    fn the_loop_that_runs_is_found() {
        let code = code(&[
            ("cmp rdx, qword [rip + 0x65ae1]", false),
            ("vmovdqu64 zmm17, zmmword [rsi]", true),
            ("vmovdqa64 zmmword [rdi + 0x40], zmm17", true),
            ("ja 0x4", true),
            ("mov rax, rdi", false),
            ("rep movs byte es:[rdi], byte ds:[rsi]", true),
            ("ret", false),
            ("prefetcht0 zmmword [rsi + 0x100]", true),
            ("vmovdqu64 zmm16, zmmword [rsi]", true),
            ("vmovntdq zmmword [rdi], zmm16", true),
        ]);
        let find_mover = |offsets: &[usize]| {
            let found = mover("memcpy", &code, offsets)?;
            Some((found.load, found.store, found.seen, found.looks))
        };
        let vector = ("vmovdqu64 zmmword".to_owned(), "vmovdqa64 zmmword".to_owned());
        assert_eq!(find_mover(&[4, 8, 8, 12, 20, 0, 999]), Some((vector.0, vector.1, 4, 6)));
        let string = "rep movs byte".to_owned();
        assert_eq!(find_mover(&[20, 20, 8]), Some((string.clone(), string, 2, 3)));
        let streamed = find_mover(&[32]).unwrap();
        assert_eq!(streamed.1, "vmovntdq zmmword");
        // Outside of every loop, or nowhere.
        assert_eq!((find_mover(&[0, 16]), find_mover(&[])), (None, None));
    }

    #[test]
    fn a_loop_of_bytes_moves_bytes() {
        let (time, stop) = (Duration::from_millis(300), Budget::of(Duration::from_secs(60)));
        let found = match find("char", 1 << 20, time, &Root::system(), &stop) {
            Ok(found) => found,
            Err(error) if cfg!(not(target_arch = "x86_64")) => {
                assert_eq!(error.kind, ErrorKind::Impossible);
                return;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(found.store, "mov byte");
        assert_eq!(found.load, "movzx byte");
        assert!(found.seen * 2 > found.looks, "{found:?}");
    }
}
