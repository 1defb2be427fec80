//! What this process has read and written: as it asked, and what reached the disks.
//!
//! The difference distinguishes a cached read from a real one without any privilege.

use crate::parse::value_of;
use crate::root::Root;
use serde::Serialize;

/// Totals of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProcessIo {
    /// Bytes that read calls returned, from anywhere.
    pub rchar: u64,
    /// Bytes that write calls took, to anywhere.
    pub wchar: u64,
    /// Bytes fetched from block devices on its behalf.
    pub read_bytes: u64,
    /// Bytes that it caused to be written to block devices.
    pub write_bytes: u64,
    /// Of these, bytes dropped before they were written, since the file was cut or removed.
    pub cancelled_write_bytes: Option<u64>,
    /// Read calls.
    pub read_calls: Option<u64>,
    /// Write calls.
    pub write_calls: Option<u64>,
}

/// The totals now; `None` where the kernel does not account I/O.
#[must_use]
pub fn read(root: &Root) -> Option<ProcessIo> {
    parse(&root.read("/proc/self/io").ok()?)
}

/// The same from the text.
#[must_use]
pub fn parse(text: &str) -> Option<ProcessIo> {
    Some(ProcessIo {
        rchar: value_of(text, "rchar")?,
        wchar: value_of(text, "wchar")?,
        read_bytes: value_of(text, "read_bytes")?,
        write_bytes: value_of(text, "write_bytes")?,
        cancelled_write_bytes: value_of(text, "cancelled_write_bytes"),
        read_calls: value_of(text, "syscr"),
        write_calls: value_of(text, "syscw"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_name() {
        let io = parse("rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4\n").unwrap();
        assert_eq!((io.rchar, io.wchar, io.read_bytes, io.write_bytes), (1, 2, 3, 4));
        assert_eq!(io.cancelled_write_bytes, None);
        assert_eq!(parse("rchar: 1\n"), None);
    }

    #[test]
    fn reading_a_file_counts() {
        let root = Root::system();
        let Some(before) = read(&root) else {
            println!("skipped: needs I/O accounting");
            return;
        };
        let bytes = std::fs::read("/proc/self/exe").unwrap().len() as u64;
        assert!(read(&root).unwrap().rchar >= before.rchar + bytes);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,120}") {
            let _ = parse(&text);
        }
    }
}
