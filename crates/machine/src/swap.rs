//! The swap areas in use and the devices that hold them.
//!
//! A swap file's device is the one that its mount names; on btrfs that number is not a
//! disk's, and the mount's source must be asked.

use crate::block;
use crate::mounts;
use crate::parse::unescape;
use crate::root::Root;
use model::Bytes;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One swap area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Area {
    /// The partition or file.
    pub path: PathBuf,
    /// `partition` or `file`.
    pub kind: String,
    /// Its size.
    pub size: Bytes,
    /// Of it, in use.
    pub used: Bytes,
    /// Areas of higher priority fill first.
    pub priority: i32,
    /// The number of the device that holds it, if known.
    pub device: Option<(u32, u32)>,
}

/// The areas in use; empty if swap is off or the kernel does not say.
#[must_use]
pub fn areas(root: &Root) -> Vec<Area> {
    let text = root.read_bytes("/proc/swaps").unwrap_or_default();
    let mut areas = parse(&text);
    let mounts = mounts::read(root);
    for area in &mut areas {
        area.device = match area.path.strip_prefix("/dev") {
            Ok(name) => name.to_str().and_then(|name| block::numbers_of(root, name)),
            Err(_) => mounts::behind(&mounts, &area.path).map(|mount| (mount.major, mount.minor)),
        };
    }
    areas
}

/// The areas in the text of /proc/swaps, their devices not yet known.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<Area> {
    text.split(|byte| *byte == b'\n').skip(1).filter_map(parse_line).collect()
}

/// "/dev/vda2  partition  1048572  0  -2"
fn parse_line(line: &[u8]) -> Option<Area> {
    let mut fields = line.split(|byte| byte.is_ascii_whitespace()).filter(|part| !part.is_empty());
    let path = PathBuf::from(OsString::from_vec(unescape(fields.next()?)));
    let mut word = || std::str::from_utf8(fields.next()?).ok();
    let kind = word()?.to_owned();
    let kib = |text: &str| text.parse::<u64>().ok()?.checked_mul(1024).map(Bytes);
    Some(Area {
        path,
        kind,
        size: kib(word()?)?,
        used: kib(word()?)?,
        priority: word()?.parse().ok()?,
        device: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    const TEXT: &[u8] = b"Filename\t\tType\t\tSize\t\tUsed\t\tPriority\n\
/dev/zram0                              partition\t8388604\t\t524288\t\t100\n\
/swap\\040file                           file\t\t1048572\t\t0\t\t-2\n";

    #[test]
    fn kinds_of_areas_are_recognized() {
        let areas = parse(TEXT);
        assert_eq!(areas.len(), 2);
        assert_eq!(areas[0].size, Bytes(8_388_604 * 1024));
        assert_eq!((areas[0].used, areas[0].priority), (Bytes(512 << 20), 100));
        assert_eq!(areas[1].path, Path::new("/swap file"));
        assert_eq!((areas[1].kind.as_str(), areas[1].priority), ("file", -2));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }
    }
}
