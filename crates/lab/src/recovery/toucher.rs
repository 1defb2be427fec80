//! The toucher: a process with memory of its own, filled in random order, that answers
//! requests for pages at random places and compares each page with what it wrote.

use super::application::Answers;
use crate::{Error, Result};
use model::random::Random;
use std::io::{BufRead, Write};
use std::time::Instant;
use sys::memory::{Mapping, Pages};

/// What a request looks at: a few pages that lie apart, as a lookup in an index does.
const PAGES_A_REQUEST: u64 = 4;

/// Fills the memory, says "ready", then obeys: a number asks for so many requests and is
/// answered with [`Answers`], "check" compares everything and is answered with the wrong pages.
///
/// # Errors
/// Where the memory cannot be had or nobody listens.
pub fn serve(bytes: u64, input: impl BufRead, mut output: impl Write) -> Result<()> {
    let page_bytes = sys::process::page_bytes();
    let size = usize::try_from(bytes).map_err(|_| Error::usage("the size is too large"))?;
    let mut memory = Mapping::anonymous(size, Pages::Base)?;
    let count = (size / page_bytes) as u64;
    for page in scattered(count) {
        let start = page as usize * page_bytes;
        fill(page, &mut memory.as_mut_slice()[start..start + page_bytes]);
    }
    let mut set = Set {
        memory,
        page_bytes,
        count,
        random: Random(count),
    };
    say(&mut output, "ready")?;
    for line in input.lines() {
        let line = line.map_err(|error| unheard(&error))?;
        match line.parse() {
            Ok(requests) => say(&mut output, &set.answers(requests)?)?,
            Err(_) => {
                let wrong: u64 = (0..count).map(|page| set.wrong(page)).sum();
                say(&mut output, &wrong.to_string())?;
            }
        }
    }
    Ok(())
}

struct Set {
    memory: Mapping,
    page_bytes: usize,
    count: u64,
    random: Random,
}

impl Set {
    fn answers(&mut self, requests: u32) -> Result<String> {
        let mut answers = Answers::default();
        for _ in 0..requests {
            let start = Instant::now();
            for _ in 0..PAGES_A_REQUEST {
                let page = self.random.below(self.count);
                answers.wrong += self.wrong(page);
            }
            answers.latencies_ns.push(start.elapsed().as_nanos() as u64);
        }
        serde_json::to_string(&answers)
            .map_err(|error| Error::failed(format!("cannot answer: {error}")))
    }

    /// 1 if the page is not what was written.
    fn wrong(&self, page: u64) -> u64 {
        let start = page as usize * self.page_bytes;
        let content = &self.memory.as_slice()[start..start + self.page_bytes];
        let mut expected = Random(page);
        let same = content
            .chunks_exact(8)
            .all(|word| word == expected.next_u64().to_ne_bytes());
        u64::from(!same)
    }
}

/// The content of a page, which no other page has and nothing compresses.
fn fill(page: u64, content: &mut [u8]) {
    let mut random = Random(page);
    for word in content.chunks_exact_mut(8) {
        word.copy_from_slice(&random.next_u64().to_ne_bytes());
    }
}

/// The numbers below `count` in a random order, so that slots do not follow addresses.
fn scattered(count: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..count).collect();
    Random(count).shuffle(&mut all);
    all
}

fn say(output: &mut impl Write, text: &str) -> Result<()> {
    writeln!(output, "{text}")
        .and_then(|()| output.flush())
        .map_err(|error| unheard(&error))
}

fn unheard(error: &std::io::Error) -> Error {
    let reason = sys::plain_reason(error);
    Error::failed(format!("cannot hear or tell: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_own_place_and_content() {
        let mut all = scattered(1000);
        assert_ne!(all[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..1000));
        // Equal pages would hide one in another's place.
        let mut starts: Vec<u64> = (0..10_000).map(|page| Random(page).next_u64()).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 10_000);
    }

    #[test]
    fn a_wrong_byte_is_found() {
        let page_bytes = 4096;
        let mut memory = Mapping::anonymous(4 * page_bytes, Pages::Base).unwrap();
        for page in 0..4 {
            fill(
                page,
                &mut memory.as_mut_slice()[page as usize * page_bytes..][..page_bytes],
            );
        }
        let set = |memory| Set {
            memory,
            page_bytes,
            count: 4,
            random: Random(1),
        };
        memory.as_mut_slice()[2 * page_bytes + 4095] ^= 1;
        let set = set(memory);
        assert_eq!(
            (0..4).map(|page| set.wrong(page)).collect::<Vec<_>>(),
            [0, 0, 1, 0]
        );
    }
}
