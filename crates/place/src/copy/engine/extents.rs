//! The ranges of a file that hold data, one after the other: holes are not copied. Ranges begin and
//! end at whole blocks, except at the end of the file, so that they can be read past the cache.

use std::fs::File;
use std::ops::Range;
use sys::file::next_data;
use transfer::Extent;

/// A hole that is shorter is copied as data: a device reads on faster than it seeks.
const LEAST_HOLE_BYTES: u64 = 128 << 10;

/// The ranges with data, aligned to whole blocks except at the end of the file.
#[derive(Debug)]
pub(in crate::copy) struct DataExtents {
    /// `None` for a file without holes.
    source: Option<File>,
    at: u64,
    bytes: u64,
    alignment: u64,
}

impl DataExtents {
    /// Of a range of a file, up to its end; it has `allocated` bytes on its device.
    pub(in crate::copy) fn of(
        source: &File,
        range: Range<u64>,
        allocated: u64,
        alignment: u32,
    ) -> sys::Result<Self> {
        let source = if allocated < range.end {
            let duplicate = source.try_clone();
            Some(duplicate.map_err(|error| sys::Error::new("duplicate", error))?)
        } else {
            None
        };
        let alignment = u64::from(alignment.max(1));
        Ok(Self { source, at: range.start, bytes: range.end, alignment })
    }

    fn find(&mut self) -> sys::Result<Option<Extent>> {
        let Some(source) = &self.source else {
            let range = self.at..self.bytes;
            self.at = self.bytes;
            return Ok((!range.is_empty()).then(|| Extent::at(range)));
        };
        let Some(first) = next_data(source, self.at)? else {
            self.at = self.bytes;
            return Ok(None);
        };
        let mut end = first.end;
        while let Some(next) = next_data(source, end)? {
            if next.start >= self.bytes || next.start - end >= LEAST_HOLE_BYTES {
                break;
            }
            end = next.end;
        }
        let start = first.start / self.alignment * self.alignment;
        let end = end.next_multiple_of(self.alignment).min(self.bytes);
        let start = start.max(self.at).min(end);
        self.at = end;
        Ok((start < end).then(|| Extent::at(start..end)))
    }
}

impl Iterator for DataExtents {
    type Item = sys::Result<Extent>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes {
            return None;
        }
        self.find().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use testkit::TempDir;

    #[test]
    fn only_data_is_found_in_whole_blocks() {
        let directory = TempDir::new();
        let path = directory.join("file");
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        let mib = 1 << 20;
        file.write_all_at(&[1; 5000], 2 * mib).unwrap();
        file.write_all_at(&[1; 100], 4 * mib).unwrap();
        file.set_len(5 * mib + 17).unwrap();
        let about = file.metadata().unwrap();
        let allocated = about.blocks() * 512;
        if allocated >= about.len() {
            return testkit::skip("a file system with holes");
        }
        let all: Vec<Extent> = DataExtents::of(&file, 0..about.len(), allocated, 4096)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(all.first().unwrap().source, 2 * mib);
        assert!(all.iter().all(|extent| extent.source % 4096 == 0));
        assert!(all.iter().map(|extent| extent.bytes).sum::<u64>() < mib);
        let dense = DataExtents::of(&file, 0..100, 4096, 512).unwrap().collect::<Vec<_>>();
        assert_eq!(dense.len(), 1);
        assert_eq!(DataExtents::of(&file, 0..0, 0, 512).unwrap().count(), 0);
        let rest = DataExtents::of(&file, 3 * mib..about.len(), allocated, 4096).unwrap();
        assert!(rest.map(Result::unwrap).all(|extent| extent.source >= 3 * mib));
    }
}
