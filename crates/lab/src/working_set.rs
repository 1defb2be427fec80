//! A process with a working set of a known size, layout and content, which lab, benchmarks and
//! tests evict and restore.
//!
//! Pages are first written in the order of their addresses or in a scattered one; the kernel evicts
//! the oldest first, into slots that follow that order. The content of a page follows from its
//! number, so a wrong byte is found. [`serve`] answers each request with a list of numbers.

use crate::{Error, Result};
use model::random::{INCREMENT, Random, mix};
use serde::Deserialize;
use std::io::{BufRead, Write};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;
use std::time::Instant;
use sys::helper::Caller;
use sys::memory::{Mapping, Pages};

/// What a request reads: a few pages far from each other, as a lookup in an index does.
const PAGES_PER_LOOKUP: u64 = 4;
const FILL_SEED: u64 = 1;
const TOUCH_SEED: u64 = 2;

/// How the pages of a working set are written first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In the order of their addresses.
    Contiguous,
    /// In a random order, so that swap slots do not follow addresses.
    Scattered,
    /// As `Contiguous`; every other page compresses to a tenth.
    HalfCompressible,
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "contiguous" => Ok(Self::Contiguous),
            "scattered" => Ok(Self::Scattered),
            "half" => Ok(Self::HalfCompressible),
            _ => Err("a layout is contiguous, scattered or half".to_owned()),
        }
    }
}

/// A request to the process, as a line of JSON.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    /// So many lookups at random places: the wrong pages, then the nanoseconds of each lookup.
    Lookups(u32),
    /// One word of every page, in a random order: nanoseconds, wrong pages, major faults.
    Touch,
    /// Every byte: wrong pages.
    Compare,
    /// Map and write all pages anew; the list is empty.
    Remap,
    /// The process stays and becomes another program, which never answers.
    Exec,
}

/// Writes a working set of `bytes`, answers with an empty list, and then each request until the
/// input ends.
///
/// # Errors
/// If the memory cannot be had, a request is unknown, or the caller has ended.
pub fn serve(bytes: u64, layout: Layout, input: impl BufRead, output: impl Write) -> Result<()> {
    let mut caller = Caller::new(input, output);
    let mut set = WorkingSet::write(bytes, layout)?;
    let mut answer = Vec::new();
    loop {
        caller.send(&answer)?;
        let Some(request) = caller.receive()? else {
            return Ok(());
        };
        answer = match request {
            Request::Lookups(count) => set.lookups(count),
            Request::Touch => set.touch(),
            Request::Compare => vec![set.wrong_pages()],
            Request::Remap => {
                drop(set);
                set = WorkingSet::write(bytes, layout)?;
                Vec::new()
            }
            Request::Exec => {
                let error = Command::new("sleep").arg("infinity").exec();
                return Err(Error::failed(format!("cannot start sleep: {error}")));
            }
        };
    }
}

/// Memory whose page n has the words n to n + 511 of [`word`]: no two pages have the same word at
/// the same place.
struct WorkingSet {
    memory: Mapping,
    layout: Layout,
    page_bytes: usize,
    pages: u64,
    random: Random,
}

impl WorkingSet {
    fn write(bytes: u64, layout: Layout) -> Result<Self> {
        let size = usize::try_from(bytes).map_err(|_| Error::usage("the size is too large"))?;
        let page_bytes = sys::process::page_bytes();
        let pages = (size / page_bytes) as u64;
        let mut set = Self {
            memory: Mapping::anonymous(size, Pages::Base)?,
            layout,
            page_bytes,
            pages,
            random: Random(pages),
        };
        let contents = set.contents();
        let mut order: Vec<u64> = (0..pages).collect();
        if layout == Layout::Scattered {
            Random(FILL_SEED).shuffle(&mut order);
        }
        for page in order {
            let range = set.range(page);
            contents.fill(page as usize, &mut set.memory.as_mut_slice()[range]);
        }
        Ok(set)
    }

    fn contents(&self) -> Contents {
        let words = 0..self.pages + self.page_bytes as u64 / 8;
        Contents {
            words: words.flat_map(|index| word(index).to_ne_bytes()).collect(),
            is_half: self.layout == Layout::HalfCompressible,
        }
    }

    fn range(&self, page: u64) -> Range<usize> {
        let start = page as usize * self.page_bytes;
        start..start + self.page_bytes
    }

    fn lookups(&mut self, count: u32) -> Vec<u64> {
        let mut answer = vec![0];
        for _ in 0..count {
            let start = Instant::now();
            for _ in 0..PAGES_PER_LOOKUP {
                let page = self.random.below(self.pages);
                answer[0] += u64::from(!self.is_intact(page));
            }
            answer.push(start.elapsed().as_nanos() as u64);
        }
        answer
    }

    /// Compares a page without other memory, which may be evicted itself.
    fn is_intact(&self, page: u64) -> bool {
        let repeats = self.layout == Layout::HalfCompressible && page.is_multiple_of(2);
        let words = self.memory.as_slice()[self.range(page)].chunks_exact(8);
        words.zip(page..).all(|(found, index)| {
            let index = if repeats { page + (index - page) % 8 } else { index };
            found == word(index).to_ne_bytes()
        })
    }

    fn touch(&self) -> Vec<u64> {
        let (faults, started) = (major_faults(), Instant::now());
        let mut order: Vec<u64> = (0..self.pages).collect();
        Random(TOUCH_SEED).shuffle(&mut order);
        let is_wrong = |page: &u64| {
            let start = self.range(*page).start;
            self.memory.as_slice()[start..start + 8] != word(*page).to_ne_bytes()
        };
        let wrong = order.iter().filter(|page| is_wrong(page)).count() as u64;
        let elapsed_ns = started.elapsed().as_nanos() as u64;
        vec![elapsed_ns, wrong, major_faults() - faults]
    }

    fn wrong_pages(&self) -> u64 {
        let contents = self.contents();
        let mut expected = vec![0; self.page_bytes];
        let pages = self.memory.as_slice().chunks_exact(self.page_bytes);
        let wrong = pages.enumerate().filter(|(page, found)| {
            contents.fill(*page, &mut expected);
            *found != expected
        });
        wrong.count() as u64
    }
}

/// The words of all pages: a page is copied from here, which on an emulated processor is much
/// faster than computing it.
struct Contents {
    words: Vec<u8>,
    is_half: bool,
}

impl Contents {
    fn fill(&self, page: usize, bytes: &mut [u8]) {
        let own = &self.words[page * 8..][..bytes.len()];
        if self.is_half && page.is_multiple_of(2) {
            let chunks = bytes.chunks_mut(64);
            chunks.for_each(|chunk| chunk.copy_from_slice(&own[..64]));
        } else {
            bytes.copy_from_slice(own);
        }
    }
}

/// Of this thread, which is the only one.
fn major_faults() -> u64 {
    sys::usage::thread().map_or(0, |usage| usage.major_faults)
}

/// One of a sequence of words without a pattern, which nothing compresses.
fn word(index: u64) -> u64 {
    mix((index + 1).wrapping_mul(INCREMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(layout: Layout, requests: &str) -> Vec<Vec<u64>> {
        let mut output = Vec::new();
        serve(1 << 20, layout, requests.as_bytes(), &mut output).unwrap();
        let lines = output.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    #[test]
    fn every_request_is_answered_and_nothing_is_wrong() {
        for layout in [Layout::Contiguous, Layout::Scattered, Layout::HalfCompressible] {
            let requests = "\"touch\"\n{\"lookups\": 3}\n\"compare\"\n\"remap\"\n\"compare\"\n";
            let answers = answers(layout, requests);
            assert_eq!(answers.len(), 6, "{layout:?}: {answers:?}");
            assert_eq!((answers[1].len(), answers[1][1]), (3, 0));
            assert_eq!((answers[2].len(), answers[2][0]), (4, 0));
            assert_eq!((&answers[3], &answers[5]), (&vec![0], &vec![0]));
            assert!(answers[0].is_empty() && answers[4].is_empty());
        }
    }

    #[test]
    fn a_wrong_byte_is_found() {
        for layout in [Layout::Scattered, Layout::HalfCompressible] {
            let mut set = WorkingSet::write(1 << 20, layout).unwrap();
            assert!((0..set.pages).all(|page| set.is_intact(page)));
            let last = set.range(2).end - 1;
            set.memory.as_mut_slice()[last] ^= 1;
            assert_eq!((set.wrong_pages(), set.is_intact(2)), (1, false));
            let first = set.range(3).start;
            set.memory.as_mut_slice()[first] ^= 1;
            assert_eq!(set.touch()[1], 1);
        }
    }
}
