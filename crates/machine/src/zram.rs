//! Compressed RAM disks: how much they hold and how small it became.
//!
//! One that merely exists (the module makes it at load) is left out.

use crate::parse::selected;
use crate::root::Root;
use model::Bytes;
use serde::Serialize;

/// One zram device that is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Zram {
    /// Its kernel name, as `zram0`.
    pub name: String,
    /// The size that it pretends to have.
    pub disk_size: Option<Bytes>,
    /// The selected compressor.
    pub algorithm: Option<String>,
    /// What is stored, before compression.
    pub original_bytes: Option<u64>,
    /// The same after compression.
    pub compressed_bytes: Option<u64>,
    /// The memory that this takes, the allocator's own loss included.
    pub used_bytes: Option<u64>,
    /// The most that it ever took.
    pub used_bytes_max: Option<u64>,
    /// Pages of one repeated value, which take no memory.
    pub same_pages: Option<u64>,
    /// Pages that did not compress.
    pub incompressible_pages: Option<u64>,
    /// The device that pages are moved on to, where there is one.
    pub backing_device: Option<String>,
}

/// The zram devices that are set up; one without a size is not.
#[must_use]
pub fn devices(root: &Root) -> Vec<Zram> {
    root.names("/sys/block")
        .into_iter()
        .filter(|name| name.starts_with("zram"))
        .map(|name| read(root, name))
        .filter(|zram| zram.disk_size.is_some_and(|size| size.0 > 0))
        .collect()
}

fn read(root: &Root, name: String) -> Zram {
    let file = |field: &str| root.word(format!("/sys/block/{name}/{field}"));
    let counts = file("mm_stat").map(|text| parse_mm_stat(&text)).unwrap_or_default();
    Zram {
        disk_size: file("disksize").and_then(|text| text.parse().ok()).map(Bytes),
        algorithm: file("comp_algorithm").and_then(|text| selected(&text).map(str::to_owned)),
        backing_device: file("backing_dev").filter(|text| text != "none"),
        name,
        ..counts
    }
}

/// The counters of `mm_stat`; the rest stays unknown.
fn parse_mm_stat(text: &str) -> Zram {
    let numbers: Vec<Option<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
    let at = |place: usize| numbers.get(place).copied().flatten();
    Zram {
        original_bytes: at(0),
        compressed_bytes: at(1),
        used_bytes: at(2),
        used_bytes_max: at(4),
        same_pages: at(5),
        incompressible_pages: at(7),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counters_are_in_the_kernels_order() {
        let zram = parse_mm_stat("  4096 100 8192 0 12288 3 1 2 5\n");
        assert_eq!((zram.original_bytes, zram.compressed_bytes), (Some(4096), Some(100)));
        assert_eq!((zram.used_bytes, zram.used_bytes_max), (Some(8192), Some(12288)));
        assert_eq!((zram.same_pages, zram.incompressible_pages), (Some(3), Some(2)));
        assert_eq!(parse_mm_stat("1 2 3 4 5").incompressible_pages, None);
    }

    proptest! {
        #[test]
        fn any_text_parses(text in "\\PC{0,120}") {
            let _ = parse_mm_stat(&text);
        }
    }
}
