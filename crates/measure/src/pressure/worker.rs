//! A hog itself: it maps memory, fills page after page, holds it, and ends.
//!
//! Its work is its first message: the caller puts it into a group before. It reports its progress
//! while it works, so that the progress of a hog that is killed is known as well.

use super::{HogTouch, PageContent};
use crate::helper::become_expendable;
use crate::{Budget, Error, ErrorKind, Result};
use machine::{Root, pressure};
use model::random::Random;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::helper::Caller;
use sys::memory::{Mapping, Pages};

/// A hog's instructions: the only message that it receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HogTask {
    pub bytes: u64,
    pub hold: Duration,
    pub content: PageContent,
    pub touch: HogTouch,
    /// Differs between hogs, so that no two hold the same pages.
    pub seed: u64,
    pub until: Option<PressureLimit>,
}

/// When to stop growing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PressureLimit {
    /// The pressure file of the machine or the group.
    pub file: PathBuf,
    pub percent: u32,
}

/// A hog's progress, sent after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HogProgress {
    pub touched_bytes: u64,
    pub pressure_reached: bool,
}

/// The smallest step after which it reports and checks its limits.
const STEP_BYTES: usize = 4 << 20;
/// The most steps: more reports would say no more.
const MOST_STEPS: usize = 256;
/// How long pressure is watched for a share: shorter and one slow fault decides.
const PRESSURE_WINDOW: Duration = Duration::from_millis(500);
/// Between two checks of the time while it only holds.
const NAP: Duration = Duration::from_millis(10);
/// Words of text; their order is random, so that it compresses as prose does.
#[rustfmt::skip]
const WORDS: [&[u8]; 16] = [
    b"the ", b"memory ", b"of ", b"a ", b"page ", b"is ", b"written ", b"and ", b"swapped ", b"to ",
    b"disk ", b"when ", b"nobody ", b"reads ", b"it ", b"again ",
];

/// Runs a hog: the whole life of its process. It is killed with its caller, and by the kernel
/// before all other processes.
///
/// # Errors
/// `Failed` where memory cannot be had or the caller has ended.
pub fn run_hog<R: BufRead, W: Write>(root: &Root, caller: &mut Caller<R, W>) -> Result<()> {
    become_expendable(root)?;
    let work: Option<HogTask> = caller
        .receive()
        .map_err(|error| Error::caused(ErrorKind::Usage, "read what to do", error))?;
    // A caller that has ended sends nothing.
    let Some(work) = work else { return Ok(()) };
    let bytes = usize::try_from(work.bytes)
        .map_err(|_| Error::new(ErrorKind::Usage, "map memory", "the size is too large"))?;
    let mut memory = Mapping::anonymous(bytes, Pages::Base)
        .map_err(|error| Error::caused(ErrorKind::Failed, "get memory", error))?;
    fill(root, memory.as_mut_slice(), &work, caller)?;
    hold(memory.as_mut_slice(), &work);
    Ok(())
}

/// Touches every page, until the end or until the pressure is there.
fn fill<R: BufRead, W: Write>(
    root: &Root,
    memory: &mut [u8],
    work: &HogTask,
    caller: &mut Caller<R, W>,
) -> Result<()> {
    let step = STEP_BYTES.max(memory.len().div_ceil(MOST_STEPS));
    let mut watch = work.until.as_ref().map(|until| Watch::start(root, until));
    let mut random = Random(work.seed);
    let mut done = HogProgress::default();
    for part in memory.chunks_mut(step) {
        write(part, work.content, &mut random);
        done.touched_bytes += part.len() as u64;
        done.pressure_reached = watch.as_mut().is_some_and(Watch::reached);
        caller
            .send(&done)
            .map_err(|error| Error::caused(ErrorKind::Failed, "report the progress", error))?;
        if done.pressure_reached || sys::interrupt::requested() {
            break;
        }
    }
    Ok(())
}

fn hold(memory: &mut [u8], work: &HogTask) {
    let budget = Budget::of(work.hold);
    let page_bytes = sys::process::page_bytes();
    let step = STEP_BYTES.next_multiple_of(page_bytes);
    while !budget.over() {
        match work.touch {
            HogTouch::Once => std::thread::sleep(NAP.min(budget.left())),
            HogTouch::Loop => {
                for part in memory.chunks_mut(step).take_while(|_| !budget.over()) {
                    for byte in part.iter_mut().step_by(page_bytes) {
                        *std::hint::black_box(byte) ^= 1;
                    }
                }
            }
        }
    }
}

/// Fills `part` so that each of its pages is written to.
pub(crate) fn write(part: &mut [u8], content: PageContent, random: &mut Random) {
    match content {
        PageContent::Random => random.fill(part),
        PageContent::Text => {
            let mut rest = part;
            while !rest.is_empty() {
                let word = WORDS[(random.next_u64() >> 60) as usize];
                let length = word.len().min(rest.len());
                let (now, later) = rest.split_at_mut(length);
                now.copy_from_slice(&word[..length]);
                rest = later;
            }
        }
        // Not left out by the compiler: a page that is only read is the kernel's own.
        PageContent::Zero => {
            for byte in part.iter_mut().step_by(sys::process::page_bytes()) {
                *std::hint::black_box(byte) = 0;
            }
        }
    }
}

/// Watches the share of time that tasks wait for memory.
struct Watch<'a> {
    root: &'a Root,
    until: &'a PressureLimit,
    since: Instant,
    some_us: Option<u64>,
}

impl<'a> Watch<'a> {
    fn start(root: &'a Root, until: &'a PressureLimit) -> Self {
        let mut watch = Self { root, until, since: Instant::now(), some_us: None };
        watch.some_us = watch.read();
        watch
    }

    fn read(&self) -> Option<u64> {
        let text = self.root.read(&self.until.file).ok()?;
        Some(pressure::parse(&text)?.some_us)
    }

    /// Whether the share of the last whole window reached the limit.
    fn reached(&mut self) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed < PRESSURE_WINDOW {
            return false;
        }
        let now = self.read();
        let grown = now.zip(self.some_us);
        self.since = Instant::now();
        self.some_us = now;
        grown.is_some_and(|(now, before)| {
            let waited_us = u128::from(now.saturating_sub(before));
            waited_us * 100 >= elapsed.as_micros() * u128::from(self.until.percent)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::FakeRoot;

    /// Bytes that take few values compress; those of a page of random ones hardly do.
    fn values(content: PageContent) -> usize {
        let mut page = vec![7; 4096];
        write(&mut page, content, &mut Random(1));
        let mut seen = [false; 256];
        page.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        seen.iter().filter(|seen| **seen).count()
    }

    #[test]
    fn contents_differ_in_kind() {
        assert!(values(PageContent::Random) > 250);
        assert!((10..30).contains(&values(PageContent::Text)));
        let mut page = vec![7; 8192];
        write(&mut page, PageContent::Zero, &mut Random(1));
        assert_eq!((page[0], page[4096], page[1]), (0, 0, 7));
    }

    #[test]
    fn two_hogs_hold_different_pages() {
        let page = |seed| {
            let mut page = vec![0; 4096];
            write(&mut page, PageContent::Random, &mut Random(seed));
            page
        };
        assert!(page(1) != page(2));
    }

    #[test]
    fn pressure_is_the_share_of_a_whole_window() {
        let tree = FakeRoot::bare().file("/proc/pressure/memory", "some total=1000000\n");
        let root = Root::at(tree.path());
        let until = PressureLimit { file: "/proc/pressure/memory".into(), percent: 20 };
        let reached_after = |waited_us: u64, window: Duration| {
            let mut watch = Watch::start(&root, &until);
            watch.since = Instant::now().checked_sub(window).unwrap();
            watch.some_us = Some(1_000_000 - waited_us);
            watch.reached()
        };
        assert!(reached_after(300_000, Duration::from_secs(1)));
        assert!(!reached_after(100_000, Duration::from_secs(1)));
        assert!(!reached_after(300_000, Duration::from_millis(100)), "too early");
    }
}
