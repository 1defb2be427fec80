//! A swap file of the bench's own, which goes away however the bench ends.
//!
//! A shell keeps it: it switches the file off and removes it when its input ends, which it does
//! also where this process is killed. It ignores the signals that Ctrl-C sends to all in the
//! terminal.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Path and size in MiB are its arguments. A swap file must have no holes, so it is written.
const KEEP: &str = r#"
trap '' HUP INT QUIT TERM PIPE
PATH="$PATH:/usr/sbin:/sbin"
umask 077
dd if=/dev/zero of="$1" bs=1048576 count="$2" conv=fsync status=none \
    && mkswap "$1" >/dev/null && swapon "$1" && echo on && read -r _
swapoff "$1" 2>/dev/null
rm -f "$1"
"#;

/// In use until drop.
pub(super) struct SwapFile(Child);

impl SwapFile {
    /// Makes `bytes` of swap at `path`, whose folder exists. The error says what it needs.
    pub(super) fn on(path: &Path, bytes: u64) -> Result<Self, String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", KEEP, "swap"]).arg(path);
        let shell = shell
            .arg((bytes >> 20).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("a shell: {error}"))?;
        let mut swap = Self(shell);
        let mut line = String::new();
        if let Some(output) = swap.0.stdout.take() {
            // What cannot be read says as little as a shell that ended.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        if line == "on\n" {
            return Ok(swap);
        }
        let mut complaint = String::new();
        if let Some(mut errors) = swap.0.stderr.take() {
            let _ = errors.read_to_string(&mut complaint);
        }
        let last = complaint.lines().last().unwrap_or("no reason was given");
        Err(format!("root and a swap file: {last}"))
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn is_in_use(path: &Path) -> bool {
        let areas = fs::read_to_string("/proc/swaps").unwrap_or_default();
        areas.contains(&*path.to_string_lossy())
    }

    #[test]
    fn it_is_in_use_while_it_lives_and_then_gone() {
        let scratch = testkit::TempDir::new();
        let path = scratch.join("swap");
        match SwapFile::on(&path, 8 << 20) {
            Ok(swap) => {
                assert!(is_in_use(&path));
                drop(swap);
            }
            Err(needs) => testkit::skip(needs),
        }
        assert!(!is_in_use(&path) && !path.exists());
    }

    #[test]
    fn where_none_can_be_made_nothing_is_left_and_the_reason_is_said() {
        let scratch = testkit::TempDir::new();
        let needs = SwapFile::on(&scratch.join("none/swap"), 8 << 20).err().unwrap();
        assert!(needs.contains("root and a swap file: "), "{needs}");
        assert!(needs.contains("none/swap"), "{needs}");
    }
}
