//! Living threads as /proc shows them: the few delays that every user may read.
//!
//! A thread may end between two reads; what is missing is `None`, not an error.

use crate::process_tree::numbers;
use machine::process_io::ProcessIo;
use machine::schedstat::RunDelay;
use model::duration::CLOCK_TICK_NS;
use std::fs;
use std::io::Read;
use std::path::Path;

/// More than any of the files that are read has; `status` has 1,500 bytes.
const FILE_BYTES: usize = 8192;

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LivingThread {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) ppid: u32,
    pub(super) comm: String,
    pub(super) state: char,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    /// When it began, counted from the start of the machine, sleep included.
    pub(super) began_ns: u64,
    /// Field 42 of stat; 0 also where it is not counted.
    pub(super) block_io_ns: u64,
    pub(super) run: Option<RunDelay>,
    pub(super) io: Option<ProcessIo>,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl LivingThread {
    /// Whether only its number is left.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// The threads of a process.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{pid}/task"))).collect()
}

/// One thread; the files that are not permitted are left out.
pub(super) fn thread(pid: u32, tid: u32) -> Option<LivingThread> {
    let directory = format!("/proc/{pid}/task/{tid}");
    let mut thread = parse_stat(&small_file(&format!("{directory}/stat"))?)?;
    thread.pid = pid;
    Some(thread)
}

/// The same with all that /proc has.
pub(super) fn complete(thread: &LivingThread) -> LivingThread {
    let directory = format!("/proc/{}/task/{}", thread.pid, thread.tid);
    let text = |file: &str| small_file(&format!("{directory}/{file}"));
    let status = text("status").unwrap_or_default();
    LivingThread {
        run: text("schedstat").and_then(|text| machine::schedstat::parse(&text)),
        io: text("io").and_then(|text| machine::process_io::parse(&text)),
        voluntary_switches: number_of(&status, "voluntary_ctxt_switches:"),
        involuntary_switches: number_of(&status, "nonvoluntary_ctxt_switches:"),
        ..thread.clone()
    }
}

/// A file that the kernel gives whole in one reading; a name in it need not be UTF-8.
fn small_file(path: &str) -> Option<String> {
    let mut buffer = [0; FILE_BYTES];
    let bytes = fs::File::open(path).ok()?.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(&buffer[..bytes]).into_owned())
}

/// The number on the line that begins with `name`; 0 if it is absent.
fn number_of(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// "12 (a name) S 1 ..."; a name may hold anything, brackets and spaces too.
fn parse_stat(text: &str) -> Option<LivingThread> {
    let (tid, rest) = text.split_once(" (")?;
    let (comm, rest) = rest.rsplit_once(") ")?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    // From field 4 on all are numbers; some may be negative, none of those that are read.
    let fields: Vec<&str> = words.collect();
    let field = |number: usize| fields.get(number - 4)?.parse::<u64>().ok();
    Some(LivingThread {
        tid: tid.parse().ok()?,
        ppid: u32::try_from(field(4)?).ok()?,
        comm: comm.to_owned(),
        state,
        minor_faults: field(10)?,
        major_faults: field(12)?,
        user_ns: field(14)?.saturating_mul(CLOCK_TICK_NS),
        system_ns: field(15)?.saturating_mul(CLOCK_TICK_NS),
        began_ns: field(22)?.saturating_mul(CLOCK_TICK_NS),
        block_io_ns: field(42).unwrap_or(0).saturating_mul(CLOCK_TICK_NS),
        ..LivingThread::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_are_names() {
        let numbers: Vec<String> = (4..=44).map(|field| field.to_string()).collect();
        let thread = parse_stat(&format!("12 (a) S (b) R {}", numbers.join(" "))).unwrap();
        assert_eq!(thread.comm, "a) S (b");
        assert_eq!((thread.tid, thread.ppid, thread.state), (12, 4, 'R'));
        assert_eq!((thread.minor_faults, thread.major_faults), (10, 12));
        assert_eq!(thread.block_io_ns, 420_000_000);
        assert_eq!(parse_stat("12 (a) R 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_is_there() {
        let pid = std::process::id();
        assert!(threads(pid).contains(&pid));
        let thread = complete(&thread(pid, pid).unwrap());
        assert!(!thread.has_ended());
        assert_eq!(super::thread(u32::MAX, u32::MAX), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,200}") {
            let _ = parse_stat(&text);
        }
    }
}
