//! The three files of a process as numbers: `stat`, `io`, `schedstat`.
//!
//! Pure functions on bytes; what is malformed is `None`.

use crate::collect::table::number;

/// Bytes that hold any of the files whole: `stat` has at most 52 numbers and a short name.
pub(super) const FILE_BYTES: usize = 4096;
/// How many figures `io` has.
pub(super) const IO_FIGURES: usize = 7;

/// The fields of `stat` that are used; see proc_pid_stat(5) for their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    /// `R`, `S`, `D`, `Z` and so on.
    pub state: u8,
    pub parent: u32,
    /// The process group.
    pub group: u32,
    pub session: u32,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub threads: u64,
    /// When it was started, ticks since boot.
    pub start_ticks: u64,
    pub rss_pages: u64,
    /// Block I/O waits of this one thread.
    pub block_ticks: u64,
}

/// "12 (any name) R 1 ...": the name may hold anything, so the last parenthesis ends it.
pub(super) fn stat(text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let mut words = text.get(name_end + 1..)?.split(|byte| byte.is_ascii_whitespace());
    // Behind the name comes a space, so the first word is empty; then field 3.
    words.next()?;
    let state = *words.next()?.first()?;
    let mut fields = [0u64; 50];
    // A field that is negative, as some are, is none of those that are used.
    for (field, word) in fields.iter_mut().skip(4).zip(words) {
        *field = number(word).unwrap_or(0);
    }
    let small = |field: usize| u32::try_from(fields[field]).unwrap_or(0);
    Some(Stat {
        state,
        parent: small(4),
        group: small(5),
        session: small(6),
        minor_faults: fields[10],
        major_faults: fields[12],
        user_ticks: fields[14],
        system_ticks: fields[15],
        threads: fields[20],
        start_ticks: fields[22],
        rss_pages: fields[24],
        block_ticks: fields[42],
    })
}

/// Characters and calls of reads and writes, then bytes of devices, in the kernel's order:
/// rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes.
pub(super) fn io(text: &[u8]) -> Option<[u64; IO_FIGURES]> {
    let mut figures = [0; IO_FIGURES];
    let mut lines = text.split(|byte| *byte == b'\n');
    for figure in &mut figures {
        let line = lines.next()?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        *figure = number(line[colon + 1..].trim_ascii())?;
    }
    Some(figures)
}

/// "run queued slices", both times in nanoseconds.
pub(super) fn schedstat(text: &[u8]) -> Option<[u64; 3]> {
    let mut words = text.trim_ascii().split(|byte| *byte == b' ').map(number);
    Some([words.next()??, words.next()??, words.next()??])
}

/// The number of the process that a thread belongs to, in the text of `status`.
pub(super) fn leader(status: &[u8]) -> Option<u32> {
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"))?;
    u32::try_from(number(line.trim_ascii())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_counted_behind_the_last_parenthesis() {
        let mut text = b"7 (a) b (c) S".to_vec();
        for field in 4..=52 {
            text.extend(format!(" {field}").bytes());
        }
        let stat = stat(&text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group), (b'S', 4, 5));
        assert_eq!((stat.minor_faults, stat.major_faults), (10, 12));
        assert_eq!((stat.user_ticks, stat.system_ticks), (14, 15));
        assert_eq!((stat.threads, stat.start_ticks), (20, 22));
        assert_eq!((stat.rss_pages, stat.block_ticks), (24, 42));
    }

    #[test]
    fn io_has_seven_figures_or_none() {
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
                     cancelled_write_bytes: 7\n";
        assert_eq!(io(text), Some([1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(io(b"rchar: 1\n"), None);
        assert_eq!(schedstat(b"5 6 7\n"), Some([5, 6, 7]));
        assert_eq!(schedstat(b"\n"), None);
        assert_eq!(leader(b"Name:\tx\nTgid:\t12\n"), Some(12));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (stat(&bytes), io(&bytes), schedstat(&bytes), leader(&bytes));
        }

        #[test]
        fn any_stat_parses(text in "1 \\(\\PC{0,9}\\) [A-Z]( -?[0-9]{1,22}){0,60}") {
            let _ = stat(text.as_bytes());
        }
    }
}
