//! The helper process that writes: for each order it receives it writes page after page, times
//! each, and reports its progress, so that the progress of one that is killed is known as well.
//!
//! Every page is different and does not compress, so that nothing can save what it takes. Around
//! each chunk the thread reads how long it waited for a processor and how long the host took it.

use super::WritePlace;
use crate::disturbance::{Bracket, Disturbance};
use crate::helper::{become_expendable, failed};
use crate::pressure::{self, PageContent};
use crate::{Budget, Error, ErrorKind, Result};
use machine::{Root, memory};
use model::Histogram;
use model::bytes::MIB;
use model::ramdisk::{Pass, PassEnd, Round};
use model::random::Random;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, Write};
use std::time::Duration;
use sys::file::Scratch;
use sys::helper::Caller;

/// Written between two checks of the limits.
const CHUNK_BYTES: usize = 4 << 20;
/// Bytes between two reports of the progress: at most this is missing if it is killed.
const REPORT_EVERY_BYTES: u64 = 16 << 20;
/// Room beside the data on a RAM disk of its own.
const SPARE_BYTES: u64 = 16 * MIB;

/// What to write.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WriteOrder {
    pub round: Round,
    pub place: WritePlace,
    pub content: PageContent,
    pub bytes: u64,
    pub floor_bytes: u64,
    pub budget: Duration,
}

/// What it reports. A pass is done when it has an end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WriterReport {
    Pass(Pass),
    /// It cannot be done here, and why.
    Nothing(String),
}

/// Writes what the caller orders: the whole life of the process. It is killed with its caller,
/// and by the kernel before all other processes.
///
/// # Errors
/// `Failed` where a file or memory cannot be had.
pub fn run_writer<R: BufRead, W: Write>(root: &Root, caller: &mut Caller<R, W>) -> Result<()> {
    become_expendable(root)?;
    let seed = sys::random::seed()
        .map_err(|error| Error::caused(ErrorKind::Failed, "draw a seed", error))?;
    let mut writer = Writer { root, file: None, chunk: vec![0; CHUNK_BYTES], random: Random(seed) };
    while let Some(order) = caller.receive().map_err(failed("read what to do"))? {
        let mut report =
            |report: &WriterReport| caller.send(report).map_err(failed("report the progress"));
        match writer.file_for(&order) {
            Ok(()) => writer.pass(&order, &mut report)?,
            // The other passes can do without it.
            Err(error) if order.round == Round::Huge => {
                let reason = sys::plain_reason(&error.source);
                let note = format!("huge pages were not tried: {reason}");
                report(&WriterReport::Nothing(note))?;
            }
            Err(error) => return Err(Error::caused(ErrorKind::Failed, "make the file", error)),
        }
    }
    Ok(())
}

struct Writer<'a> {
    root: &'a Root,
    file: Option<File>,
    chunk: Vec<u8>,
    random: Random,
}

impl Writer<'_> {
    /// Has the file that the pass is to write to, which is empty but for a rewrite.
    fn file_for(&mut self, order: &WriteOrder) -> sys::Result<()> {
        if order.round == Round::Rewrite {
            return Ok(());
        }
        // Frees what the last pass took.
        self.file = None;
        self.file = Some(match (&order.place, order.round) {
            (_, Round::Huge) => sys::shared_memory::huge_file(order.bytes + SPARE_BYTES)?,
            (WritePlace::SharedMemory, _) => sys::shared_memory::file()?,
            (WritePlace::Directory(path), _) => Scratch::create_in(path)?.reopen()?,
        });
        Ok(())
    }

    fn pass(
        &mut self,
        order: &WriteOrder,
        report: &mut dyn FnMut(&WriterReport) -> Result<()>,
    ) -> Result<()> {
        let mut pass = Pass::begun(order.round);
        let mut touches = Histogram::new();
        let budget = Budget::of(order.budget);
        let mut watch = Watch::new(self.root);
        let mut reported_bytes = 0;
        let end = loop {
            let left = order.bytes - pass.bytes;
            if left == 0 {
                break PassEnd::Whole;
            }
            if budget.over() {
                break PassEnd::Time;
            }
            if order.round != Round::Rewrite && self.is_at_floor(order.floor_bytes) {
                break PassEnd::Floor;
            }
            let length = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX));
            pressure::write(&mut self.chunk[..length], order.content, &mut self.random);
            watch.begin();
            let whole = self.write(length, &mut pass, &mut touches)?;
            watch.end(&mut pass);
            if !whole {
                break PassEnd::Full;
            }
            if pass.bytes - reported_bytes >= REPORT_EVERY_BYTES {
                reported_bytes = pass.bytes;
                pass.describe(&touches);
                report(&WriterReport::Pass(pass.clone()))?;
            }
        };
        pass.describe(&touches);
        pass.left_memory_bytes = self.left_memory(pass.bytes);
        pass.end = Some(end);
        report(&WriterReport::Pass(pass))
    }

    /// Writes the first `length` bytes of the chunk behind what the pass has written, each page
    /// timed from the end of the last; false when the file system is full.
    fn write(&self, length: usize, pass: &mut Pass, touches: &mut Histogram) -> Result<bool> {
        let Some(file) = &self.file else {
            let why = "there is nothing to write over";
            return Err(Error::new(ErrorKind::Usage, super::OPERATION, why));
        };
        let start = sys::clock::now_ns();
        let mut last = start;
        let mut whole = true;
        for page in self.chunk[..length].chunks(sys::process::page_bytes()) {
            match sys::file::write_at(file, page, pass.bytes) {
                Ok(_) => {}
                Err(error) if error.kind == sys::ErrorKind::NoSpace => {
                    whole = false;
                    break;
                }
                Err(error) => {
                    return Err(Error::caused(ErrorKind::Failed, super::OPERATION, error));
                }
            }
            let now = sys::clock::now_ns();
            touches.add(now - last);
            pass.bytes += page.len() as u64;
            last = now;
        }
        pass.touch_ns += last - start;
        Ok(whole)
    }

    fn is_at_floor(&self, floor_bytes: u64) -> bool {
        let available = memory::read(self.root).available;
        available.is_none_or(|available| available.0 < floor_bytes)
    }

    fn left_memory(&self, written_bytes: u64) -> Option<u64> {
        let state = sys::cachestat::of(self.file.as_ref()?, 0, 0).ok()?;
        let held = state.cached * sys::process::page_bytes() as u64;
        Some(written_bytes.saturating_sub(held))
    }
}

/// Reads who had the processor around each chunk, of the processor that the thread is on.
struct Watch<'a> {
    root: &'a Root,
    cpu: Option<usize>,
    bracket: Bracket,
    before: crate::disturbance::ThreadCounters,
}

impl<'a> Watch<'a> {
    fn new(root: &'a Root) -> Self {
        let cpu = sys::affinity::running_on();
        let mut bracket = Bracket::for_this_thread(root, cpu);
        Self { root, cpu, before: bracket.read(), bracket }
    }

    fn begin(&mut self) {
        if sys::affinity::running_on() != self.cpu {
            *self = Self::new(self.root);
        }
        self.before = self.bracket.read();
    }

    fn end(&mut self, pass: &mut Pass) {
        let disturbed = Disturbance::between(&self.before, &self.bracket.read());
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = more.map_or(*sum, |more| Some(sum.unwrap_or(0) + more));
        };
        add(&mut pass.waited_ns, disturbed.waited_ns);
        add(&mut pass.stolen_ns, disturbed.stolen_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(round: Round, mib: u64) -> WriteOrder {
        WriteOrder {
            round,
            place: WritePlace::SharedMemory,
            content: PageContent::Random,
            bytes: mib * MIB,
            floor_bytes: 0,
            budget: Duration::from_secs(60),
        }
    }

    fn writer(root: &Root) -> Writer<'_> {
        Writer { root, file: None, chunk: vec![0; CHUNK_BYTES], random: Random(1) }
    }

    fn made(writer: &mut Writer<'_>, order: &WriteOrder) -> Vec<Pass> {
        writer.file_for(order).unwrap();
        let mut passes = Vec::new();
        let mut keep = |report: &WriterReport| match report {
            WriterReport::Pass(pass) => {
                passes.push(pass.clone());
                Ok(())
            }
            WriterReport::Nothing(why) => panic!("{why}"),
        };
        writer.pass(order, &mut keep).unwrap();
        passes
    }

    #[test]
    fn every_page_is_timed_once_and_progress_is_reported() {
        let root = Root::system();
        let mut writer = writer(&root);
        let reports = made(&mut writer, &order(Round::First, 34));
        let last = reports.last().unwrap();
        assert_eq!(reports.iter().filter(|pass| pass.end.is_none()).count(), 2);
        assert_eq!((last.bytes, last.touches), (34 * MIB, 34 * 256));
        assert_eq!(last.bars.iter().map(|bar| bar.count).sum::<u64>(), 34 * 256);
        assert_eq!(last.end, Some(PassEnd::Whole));
        assert!(last.touch_ns > 0 && last.p99_ns > last.p50_ns);
        // What was written is what the file holds: the same pages again take no new memory.
        let blocks =
            |file: &File| std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
        let before = blocks(writer.file.as_ref().unwrap());
        let over = made(&mut writer, &order(Round::Rewrite, 34));
        assert_eq!(over.last().unwrap().bytes, 34 * MIB);
        assert_eq!(blocks(writer.file.as_ref().unwrap()), before);
    }

    #[test]
    fn the_floor_is_kept_and_time_ends() {
        let root = Root::system();
        let mut writer = writer(&root);
        let at_floor = WriteOrder { floor_bytes: u64::MAX, ..order(Round::First, 8) };
        let pass = made(&mut writer, &at_floor).pop().unwrap();
        assert_eq!((pass.end, pass.bytes), (Some(PassEnd::Floor), 0));
        let late = WriteOrder { budget: Duration::ZERO, ..order(Round::First, 8) };
        assert_eq!(made(&mut writer, &late).pop().unwrap().end, Some(PassEnd::Time));
    }

    #[test]
    fn pages_differ_so_that_nothing_saves_memory() {
        let root = Root::system();
        let mut writer = writer(&root);
        made(&mut writer, &order(Round::First, 8));
        let mut pages = vec![vec![0; 4096]; 2];
        let file = writer.file.as_ref().unwrap();
        for (number, page) in pages.iter_mut().enumerate() {
            sys::file::read_at(file, page, number as u64 * 5 * MIB).unwrap();
        }
        assert!(pages[0] != pages[1]);
        let used = |page: &[u8]| page.iter().collect::<std::collections::HashSet<_>>().len();
        assert!(pages.iter().all(|page| used(page) > 250));
    }
}
