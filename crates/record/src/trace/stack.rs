//! From a kernel stack to what its thread waits for, by the names of a few functions.
//!
//! For a sleep the innermost function that has a class decides: a page fault inside of
//! `poll` is a fault. For block I/O the weightiest purpose decides. A kernel that hides
//! addresses leaves the table empty, and every wait without a class.

mod functions;
pub(super) mod kept;
mod symbols;

use super::event::{Io, Sleep, State};
use functions::{FunctionMeaning, FunctionNames, IoPurpose};
use std::sync::OnceLock;
use symbols::Function;

/// Bit 1 of a thread's state at a switch: asleep, not to be woken by signals.
const UNINTERRUPTIBLE: u64 = 2;

/// The functions that matter, by name and by address.
#[derive(Debug)]
pub struct FunctionTable {
    names: FunctionNames,
    /// In order of their addresses.
    functions: Vec<Function>,
}

impl FunctionTable {
    /// The table of the running kernel, found on first use.
    pub fn of_kernel() -> &'static Self {
        static TABLE: OnceLock<FunctionTable> = OnceLock::new();
        TABLE.get_or_init(|| {
            let names = functions::names();
            let mut rules: Vec<&str> = names.keys().copied().collect();
            rules.sort_unstable();
            let functions: Option<Vec<Function>> = kept::of_kernel(&rules);
            Self { names, functions: functions.unwrap_or_default() }
        })
    }

    /// A table without addresses, if stacks are not needed.
    pub fn none() -> &'static Self {
        static TABLE: OnceLock<FunctionTable> = OnceLock::new();
        TABLE.get_or_init(|| Self { names: functions::names(), functions: Vec::new() })
    }

    /// How many functions it has.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    fn meaning(&self, address: u64) -> Option<FunctionMeaning> {
        // A return address may be the first byte behind the function, never its first byte.
        let after = self.functions.partition_point(|function| function.start < address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        (address <= function.end).then_some(function.meaning)
    }

    /// What a thread waits for that leaves its processor in `state` (the kernel's bits) with
    /// this stack. `None` for one that could go on.
    pub fn classify(&self, state: u64, stack: impl Iterator<Item = u64>) -> Option<State> {
        if state & 0xff == 0 {
            return None;
        }
        let judge = self.judge(stack);
        let is_blocked = state & UNINTERRUPTIBLE != 0;
        let is_io = is_blocked && (judge.is_io_wait || self.functions.is_empty());
        Some(judge.verdict(is_io, !self.functions.is_empty()))
    }

    /// As [`FunctionTable::classify`] for a thread of which the kernel says whether it waits for
    /// block I/O.
    pub fn classify_wait(&self, is_io: bool, stack: impl Iterator<Item = u64>) -> State {
        self.judge(stack).verdict(is_io, !self.functions.is_empty())
    }

    fn judge(&self, stack: impl Iterator<Item = u64>) -> Judge {
        let mut judge = Judge::default();
        // Marks between parts of a stack are the largest numbers.
        for address in stack.filter(|address| *address < u64::MAX - 4095) {
            judge.frames += 1;
            if let Some(meaning) = self.meaning(address) {
                judge.add(meaning);
            }
        }
        judge
    }

    /// As [`FunctionTable::classify`] for a thread that sleeps already, from the text of
    /// /proc/PID/task/TID/stack, which leaves the scheduler's own functions out.
    pub fn classify_text(&self, is_blocked: bool, text: &str) -> State {
        let mut judge = Judge::default();
        for line in text.lines() {
            judge.frames += 1;
            let symbol = line.split_whitespace().last().unwrap_or_default();
            let name = symbol.split(['+', '.']).next().unwrap_or_default();
            if let Some(meaning) = self.names.get(name) {
                judge.add(*meaning);
            }
        }
        let is_io = is_blocked && judge.purpose.is_some();
        judge.verdict(is_io, true)
    }
}

/// What a stack has said so far.
#[derive(Default)]
struct Judge {
    frames: usize,
    sleep: Option<Sleep>,
    purpose: Option<IoPurpose>,
    is_io_wait: bool,
    is_children: bool,
}

impl Judge {
    /// Adds a function, from the innermost outwards.
    fn add(&mut self, meaning: FunctionMeaning) {
        if !self.is_children {
            self.sleep = self.sleep.or(meaning.sleep);
        }
        let purposes = [self.purpose, meaning.purpose];
        self.purpose = purposes.into_iter().flatten().min();
        self.is_io_wait |= meaning.is_io_wait;
        self.is_children |= meaning.is_children && self.sleep.is_none();
    }

    fn verdict(&self, is_io: bool, has_names: bool) -> State {
        if is_io {
            return State::BlockIo(self.purpose.map_or(Io::Other, IoPurpose::io));
        }
        if self.is_children {
            return State::Children;
        }
        let fallback = if self.frames > 0 && has_names { Sleep::Kernel } else { Sleep::Unknown };
        State::Sleep(self.sleep.unwrap_or(fallback))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 A fixed\n\
        1000 T schedule\n1100 T io_schedule\n1200 t other\n\
        2000 t filemap_read.constprop.0\n2000 T alias\n2100 T ext4_sync_file\n2200 T pad\n\
        3000 T do_swap_page\n3100 T do_sys_poll\n3200 T handle_mm_fault\n3300 T do_wait\n\
        3400 T futex_wait\n3500 T end\n";

    fn table(symbols: &str) -> FunctionTable {
        let names = functions::names();
        let functions = symbols::read(symbols.as_bytes(), &names);
        FunctionTable { names, functions }
    }

    fn classify(state: u64, stack: &[u64]) -> Option<State> {
        let table = table(SYMBOLS);
        table.classify(state, stack.iter().copied())
    }

    #[test]
    fn block_io_is_named_by_its_purpose() {
        let mark = u64::MAX - 127;
        let read = [mark, 0x1010, 0x1110, 0x2010, 0x9999];
        assert_eq!(classify(2, &read), Some(State::BlockIo(Io::Read)));
        let flush = [0x1010, 0x1110, 0x2010, 0x2110];
        assert_eq!(classify(2, &flush), Some(State::BlockIo(Io::Flush)));
        let swap = [0x1110, 0x2010, 0x3010, 0x3210];
        assert_eq!(classify(0x102, &swap), Some(State::BlockIo(Io::SwapIn)));
        assert_eq!(classify(2, &[0x1110]), Some(State::BlockIo(Io::Other)));
    }

    /// Seen: an idle journal's thread made a whole machine wait 5.9 of 5.8 s for syncs.
    #[test]
    fn a_journal_that_has_nothing_to_do_is_not_waited_for() {
        let names = functions::names();
        let table = FunctionTable { names, functions: Vec::new() };
        let idle = "[<0>] kjournald2+0x1e2/0x280\n[<0>] kthread+0xf6/0x130\n";
        assert_eq!(table.classify_text(false, idle), State::Sleep(Sleep::Kernel));
        let commits = format!("[<0>] jbd2_journal_commit_transaction+0x1/0x2\n{idle}");
        assert_eq!(table.classify_text(false, &commits), State::Sleep(Sleep::Flush));
    }

    #[test]
    fn sleeps_are_named_by_the_innermost_function() {
        let sleep = |stack: &[u64]| classify(1, stack);
        assert_eq!(sleep(&[0x1010, 0x3410]), Some(State::Sleep(Sleep::Lock)));
        let fault_in_poll = [0x1010, 0x3210, 0x3110];
        assert_eq!(sleep(&fault_in_poll), Some(State::Sleep(Sleep::Fault)));
        assert_eq!(sleep(&[0x1010, 0x3310]), Some(State::Children));
        assert_eq!(sleep(&[0x1010, 0x1210]), Some(State::Sleep(Sleep::Kernel)));
        assert_eq!(sleep(&[]), Some(State::Sleep(Sleep::Unknown)));
        // Without io_schedule it is no block I/O, whatever was read.
        assert_eq!(classify(2, &[0x1010, 0x2010]), Some(State::Sleep(Sleep::File)));
    }

    #[test]
    fn one_that_could_go_on_waits_for_nothing() {
        assert_eq!(classify(0, &[0x1010, 0x3410]), None);
        assert_eq!(classify(0x100, &[0x1010]), None, "preempted");
    }

    #[test]
    fn a_range_ends_where_the_next_symbol_begins() {
        let table = table(SYMBOLS);
        assert!(table.meaning(0x2000).is_none(), "no call returns there");
        assert!(table.meaning(0x2001).is_some());
        assert!(table.meaning(0x2100).is_some(), "a call as the last instruction");
        assert!(table.meaning(0x2201).is_none());
    }

    #[test]
    fn hidden_addresses_leave_waits_without_a_class() {
        let table = table("0000000000000000 T io_schedule\n");
        let stack = [0x1110u64, 0x2010];
        let state = table.classify(2, stack.into_iter());
        assert_eq!(state, Some(State::BlockIo(Io::Other)));
        let state = table.classify(1, stack.into_iter());
        assert_eq!(state, Some(State::Sleep(Sleep::Unknown)));
    }

    #[test]
    fn a_stack_in_proc_is_read_by_name() {
        let table = FunctionTable::none();
        let text = "[<0>] futex_do_wait+0x41/0x80\n[<0>] __futex_wait+0x8a/0x100\n";
        assert_eq!(table.classify_text(false, text), State::Sleep(Sleep::Lock));
        let text = "[<0>] folio_wait_bit_common+0x1/0x2\n[<0>] filemap_read.isra.0+0x1/0x2\n";
        assert_eq!(table.classify_text(true, text), State::BlockIo(Io::Read));
    }

    #[test]
    fn this_kernel_has_functions_of_each_class() {
        let table = FunctionTable::of_kernel();
        if table.functions.is_empty() {
            return testkit::skip("/proc/kallsyms with addresses");
        }
        let meanings = || table.functions.iter().map(|function| function.meaning);
        let has = |wanted: fn(&FunctionMeaning) -> bool| meanings().any(|meaning| wanted(&meaning));
        assert!(has(|meaning| meaning.is_io_wait));
        assert!(has(|meaning| meaning.is_children));
        assert!(has(|meaning| meaning.sleep == Some(Sleep::Lock)));
        assert!(has(|meaning| meaning.purpose == Some(IoPurpose::Read)));
    }
}
