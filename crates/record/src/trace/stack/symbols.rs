//! Addresses of the functions that matter in the running kernel, from /proc/kallsyms.
//!
//! Nothing else of that file is kept: some two hundred of a hundred thousand lines matter.

use super::functions::{self, FunctionMeaning, FunctionNames};
use super::kept::KeptTable;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// No function is longer; a table that is out of order shall not claim more.
const FUNCTION_BYTES_MAX: u64 = 64 << 10;

/// A function that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    pub name: &'static str,
    pub meaning: FunctionMeaning,
}

impl KeptTable for Vec<Function> {
    const FILE: &'static str = crate::run_directory::FUNCTIONS;

    fn find(symbols: BufReader<File>) -> Self {
        read(symbols, &functions::names())
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn write(&self) -> String {
        let line =
            |Function { start, end, name, .. }: &Function| format!("{start:x} {end:x} {name}\n");
        self.iter().map(line).collect()
    }

    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Self> {
        let names = functions::names();
        let read: Self = lines.map(|line| kept_function(line, &names)).collect::<Option<_>>()?;
        read.is_sorted_by_key(|function| function.start).then_some(read)
    }
}

fn kept_function(line: &str, names: &FunctionNames) -> Option<Function> {
    let mut words = line.split(' ');
    let mut address = || u64::from_str_radix(words.next()?, 16).ok();
    let (start, end) = (address()?, address()?);
    let (name, meaning) = names.get_key_value(words.next()?)?;
    Some(Function { start, end, name, meaning: *meaning })
}

/// Reads lines of address, kind and name; in order of the addresses.
pub(super) fn read(mut source: impl BufRead, names: &FunctionNames) -> Vec<Function> {
    let shapes = Shapes::of(names.keys().copied());
    let mut functions: Vec<Function> = Vec::new();
    let mut line = Vec::new();
    // So many have their end; the others begin at the same address.
    let mut ended = 0;
    while source.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        // Most lines are not looked at any further.
        let name = split_symbol(&line).filter(|(.., name)| shapes.may_have(name));
        let known =
            name.and_then(|(.., name)| names.get_key_value(std::str::from_utf8(name).ok()?));
        if (known.is_some() || ended < functions.len())
            && let Some(start) = split_symbol(&line).and_then(function_address)
        {
            close(&mut functions, &mut ended, start);
            functions.extend(known.map(|(name, meaning)| Function {
                start,
                end: start.saturating_add(1),
                name,
                meaning: *meaning,
            }));
        }
        line.clear();
    }
    functions.sort_unstable_by_key(|function| function.start);
    functions
}

/// Gives the open functions their end where another one begins.
fn close(functions: &mut [Function], ended: &mut usize, address: u64) {
    let all = functions.len();
    let open = &mut functions[*ended..];
    if open.first().is_none_or(|function| function.start == address) {
        return;
    }
    for function in open {
        let most = function.start.saturating_add(FUNCTION_BYTES_MAX);
        function.end = if address > function.start { address.min(most) } else { most };
    }
    *ended = all;
}

/// A symbol's address, its kind, and its name without what a compiler added.
type Symbol<'a> = (&'a [u8], u8, &'a [u8]);

/// Reads `ffffffff81000000 T name.cold\t[module]`.
fn split_symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let blank = line.iter().position(|byte| *byte == b' ')?;
    let (address, rest) = line.split_at(blank);
    let [_, kind, b' ', name @ ..] = rest else {
        return None;
    };
    let ends = |byte: &u8| matches!(byte, b'.' | b'\t' | b'\n' | b' ');
    let end = name.iter().position(ends).unwrap_or(name.len());
    Some((address, *kind, &name[..end]))
}

/// Where a function begins; `None` for data, and where the kernel hides addresses.
fn function_address((address, kind, _): Symbol<'_>) -> Option<u64> {
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    (address != 0 && matches!(kind, b't' | b'T' | b'w' | b'W')).then_some(address)
}

/// Which lengths the names have that begin with each byte: cheaper than a look-up for all the other
/// names.
struct Shapes([u64; 256]);

impl Shapes {
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut shapes = Self([0; 256]);
        for name in names {
            if let Some(first) = name.as_bytes().first() {
                shapes.0[usize::from(*first)] |= 1 << name.len().min(63);
            }
        }
        shapes
    }

    fn may_have(&self, name: &[u8]) -> bool {
        let lengths = name.first().map_or(0, |first| self.0[usize::from(*first)]);
        lengths >> name.len().min(63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_says_the_same() {
        let symbols = "1000 T io_schedule\n1100 t futex_wait\n1200 T end\n";
        let found = read(symbols.as_bytes(), &functions::names());
        assert_eq!(found.len(), 2);
        assert_eq!(Vec::<Function>::read(found.write().lines()), Some(found));
        for damaged in ["1000 1100 no_such_function", "1000 io_schedule", "x 1100 io_schedule"] {
            assert_eq!(Vec::<Function>::read(damaged.lines()), None, "{damaged}");
        }
        let turned = "1100 1200 futex_wait\n1000 1100 io_schedule";
        assert_eq!(Vec::<Function>::read(turned.lines()), None);
    }
}
