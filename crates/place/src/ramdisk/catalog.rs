//! The entries of a generation in memory: the lines of its manifests, and where each path's is.
//!
//! The idea: 100,000 entries as lines are a fraction of what they would be as structures, and a
//! manifest is made of them. So lines stay as they were read, one is understood when it is asked
//! for, and a change is a line at the end.

use super::manifest::{Entry, EntryHead, Line, escape, head_of, path_of};
use memchr::{memchr, memchr_iter};
use std::collections::HashMap;
use std::mem;
use sys::file_stat::InodeKind;
use xxhash_rust::xxh3::xxh3_64;

/// The place of a path that is gone.
const GONE: u32 = u32::MAX;

/// The entries of a generation by path.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    lines: Vec<u8>,
    /// Where the line of each path begins, by the path's hash. Of two paths with one hash the later
    /// is under the next number.
    places: HashMap<u64, u32>,
    live_bytes: usize,
    live_entries: u64,
    /// Where a line of each inode begins; made when it is first asked for.
    inodes: Option<HashMap<u64, u32>>,
}

impl Catalog {
    /// Takes over the lines of a manifest. The first are not copied: they are most of all.
    pub(super) fn apply(&mut self, lines: Vec<u8>) {
        let mut place = self.lines.len();
        if place == 0 {
            self.lines = lines;
            self.places.reserve(memchr_iter(b'\n', &self.lines).count());
        } else {
            self.lines.extend_from_slice(&lines);
        }
        while place < self.lines.len() {
            let length = self.line_at(place).len();
            self.index(place);
            place += length;
        }
    }

    /// Takes over one line.
    pub(super) fn apply_line(&mut self, line: &[u8]) {
        let place = self.lines.len();
        self.lines.extend_from_slice(line);
        self.index(place);
    }

    /// Notes what the line at `place` says of its path.
    fn index(&mut self, place: usize) {
        let line = self.line_at(place);
        let Some((is_there, path)) = path_of(line) else {
            return;
        };
        let line_bytes = line.len();
        let (key, old) = self.find(path);
        if let Some(old) = old {
            self.live_bytes -= self.line_at(old).len();
            self.live_entries -= 1;
        }
        if is_there {
            self.places.insert(key, place as u32);
            self.live_bytes += line_bytes;
            self.live_entries += 1;
        } else if old.is_some() {
            self.places.insert(key, GONE);
        }
    }

    /// The entry of a path.
    pub(super) fn entry(&self, path: &[u8]) -> Option<Entry> {
        let (_, place) = self.find(escape(path).as_bytes());
        self.entry_at(place?)
    }

    /// The entry that had this inode when it was first asked for one by its inode, under any path.
    pub(super) fn entry_of_inode(&mut self, inode: u64) -> Option<Entry> {
        if self.inodes.is_none() {
            let places = self.places.values().filter(|place| **place != GONE);
            let of_place = |place: &u32| {
                let entry = self.entry_at(*place as usize)?;
                (entry.stat.kind == InodeKind::File).then_some((entry.stat.inode, *place))
            };
            self.inodes = Some(places.filter_map(of_place).collect());
        }
        let place = *self.inodes.as_ref()?.get(&inode)?;
        self.entry_at(place as usize)
    }

    /// The head of the entry of a path, with [`Catalog::key`].
    pub(super) fn head(&self, path: &[u8]) -> Option<(u64, EntryHead)> {
        let (key, place) = self.find(escape(path).as_bytes());
        Some((key, head_of(self.line_at(place?))?))
    }

    /// What stands for a path in a set: two paths of a catalog never have the same.
    pub(super) fn key(&self, path: &[u8]) -> Option<u64> {
        let (key, place) = self.find(escape(path).as_bytes());
        place.map(|_| key)
    }

    /// All entries with their keys, in the order in which they were read.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, Entry)> {
        let mut places: Vec<(u32, u64)> = self
            .places
            .iter()
            .filter(|(_, place)| **place != GONE)
            .map(|(key, place)| (*place, *key))
            .collect();
        places.sort_unstable();
        places.into_iter().filter_map(|(place, key)| Some((key, self.entry_at(place as usize)?)))
    }

    /// The lines of all entries, and nothing else stays: a copy of all lines is half of the memory
    /// that a save takes.
    pub(super) fn into_live_lines(mut self) -> Vec<u8> {
        if self.live_bytes == self.lines.len() {
            return mem::take(&mut self.lines);
        }
        self.live_lines()
    }

    /// The lines of all entries.
    fn live_lines(&self) -> Vec<u8> {
        let mut places: Vec<u32> =
            self.places.values().copied().filter(|place| *place != GONE).collect();
        places.sort_unstable();
        let mut lines = Vec::with_capacity(self.live_bytes);
        for place in places {
            lines.extend_from_slice(self.line_at(place as usize));
        }
        lines
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> u64 {
        self.live_entries
    }

    /// Bytes of the lines of all entries.
    pub(super) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Bytes of all lines, with those that later ones replaced.
    pub(super) fn bytes(&self) -> usize {
        self.lines.len()
    }

    fn find(&self, path: &[u8]) -> (u64, Option<usize>) {
        let mut key = xxh3_64(path);
        loop {
            match self.places.get(&key) {
                None => return (key, None),
                Some(&place) if place != GONE => {
                    let place = place as usize;
                    if path_of(self.line_at(place)).is_some_and(|(_, found)| found == path) {
                        return (key, Some(place));
                    }
                }
                Some(_) => {}
            }
            key = key.wrapping_add(1);
        }
    }

    fn line_at(&self, place: usize) -> &[u8] {
        let rest = &self.lines[place..];
        let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        &rest[..end]
    }

    fn entry_at(&self, place: usize) -> Option<Entry> {
        match Line::of(self.line_at(place))? {
            Line::Put(entry) => Some(entry),
            Line::Remove(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, bytes: u64) -> String {
        let time = "0.000000000";
        format!("+\t{path}\tf\t644\t0\t0\t1\t7\t{time}\t{time}\t{time}\ts\t{bytes}\n")
    }

    #[test]
    fn the_last_line_of_a_path_counts() {
        let mut catalog = Catalog::default();
        catalog.apply(format!("{}{}{}", line("a", 1), line("b", 2), line("a", 3)).into_bytes());
        assert_eq!(catalog.entry(b"a").unwrap().stat.bytes, 3);
        assert_eq!(catalog.len(), 2);
        catalog.apply(b"-\ta\n-\tnever\n".to_vec());
        assert!(catalog.entry(b"a").is_none());
        assert_eq!(catalog.live_lines(), line("b", 2).into_bytes());
        catalog.apply(line("a", 4).into_bytes());
        assert_eq!(catalog.entry(b"a").unwrap().stat.bytes, 4);
        let all: Vec<u64> = catalog.entries().map(|(_, entry)| entry.stat.bytes).collect();
        assert_eq!(all, [2, 4]);
        assert_eq!(catalog.live_bytes(), catalog.live_lines().len());
    }
}
