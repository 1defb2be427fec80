//! Options whose value is one of a few words: a table of words, library values and help, so that no
//! enum here repeats one of a library.

use super::recordings::ExportForm;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use measure::faults::TouchMethod;
use measure::memory::PageKind;
use measure::pressure::{HogTouch, PageContent};
use memops::Operation;
use model::ChaseOrder;
use model::copy_gauges::CopyEngine;
use place::boost::plan::ExportChoice;
use place::ramdisk::record::HugePolicy;
use place::workingset::restore::MemoryKind;
use record::export::{Csv, Json, OpenMetrics, Perfetto, Trec};
use record::import::Form;
use record::trace::Family;
use std::ffi::OsStr;

/// The words of an option, each with its value and its help; `clap` lists and suggests them.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static>(&'static [(&'static str, T, &'static str)]);

/// The operations on memory.
pub const OPERATIONS: Choice<Operation> = Choice(&[
    ("copy", Operation::Copy, "Copy one buffer to another"),
    ("read", Operation::Read, "Read a buffer"),
    ("write", Operation::Write, "Fill a buffer"),
]);

/// The page size of a buffer.
pub const PAGES: Choice<PageKind> = Choice(&[
    ("4k", PageKind::Base, "Pages of 4 KiB"),
    ("thp", PageKind::Transparent, "Transparent huge pages, where the kernel grants them"),
    ("hugetlb", PageKind::Huge, "Huge pages of the reserved pool"),
]);

/// The order in which a chase visits the cache lines of its buffer.
pub const ORDERS: Choice<ChaseOrder> = Choice(&[
    (
        "random",
        ChaseOrder::Random,
        "At random over the whole buffer: each load may walk the page table",
    ),
    (
        "in-page",
        ChaseOrder::InPage,
        "At random within a page, page after page: the page walk is shared by all lines of the page",
    ),
]);

/// The methods of a first touch.
pub const WAYS: Choice<TouchMethod> = Choice(&[
    ("4k", TouchMethod::Base, "One store for each page of 4 KiB"),
    ("thp", TouchMethod::Transparent, "One store for each transparent huge page"),
    ("populate", TouchMethod::Populate, "One call for all pages (MADV_POPULATE_WRITE)"),
]);

/// What the memory of a hog holds.
pub const CONTENTS: Choice<PageContent> = Choice(&[
    ("random", PageContent::Random, "Bytes that do not compress"),
    ("text", PageContent::Text, "Words, which compress as prose does"),
    ("zero", PageContent::Zero, "Zeros, which the kernel may swap without writing"),
]);

/// The kinds of memory that `warm restore` restores.
pub const MEMORY_KINDS: Choice<MemoryKind> = Choice(&[
    ("anonymous", MemoryKind::Anonymous, "What programs allocated, from swap"),
    ("shared", MemoryKind::Shared, "Shared memory and files on tmpfs, from swap"),
    ("files", MemoryKind::File, "Files that processes use, from their disks"),
]);

/// Which pages of a RAM disk are huge.
pub const HUGE_POLICIES: Choice<HugePolicy> = Choice(&[
    ("within_size", HugePolicy::WithinSize, "Those that are whole within their file"),
    ("always", HugePolicy::Always, "All: a file of 1 byte takes 2 MiB"),
    ("never", HugePolicy::Never, "None"),
]);

/// How a disk is served through a cache.
pub const EXPORTS: Choice<ExportChoice> = Choice(&[
    ("auto", ExportChoice::Auto, "By FUSE where that survives a kill of the service, else by NBD"),
    ("fuse", ExportChoice::Fuse, "A file of FUSE under a loop device, from Linux 6.9"),
    ("nbd", ExportChoice::Nbd, "The kernel's network block device, from Linux 5.14"),
]);

/// How `copy` moves bytes.
pub const COPY_ENGINES: Choice<CopyEngine> = Choice(&[
    ("reflink", CopyEngine::Reflink, "Both files share the data; nothing moves"),
    ("uring", CopyEngine::Uring, "Past the page cache, several requests at a time"),
    ("uncached", CopyEngine::Uncached, "Through the page cache and out of it again"),
    ("paced", CopyEngine::Paced, "Through the page cache, written back one window behind"),
    ("plain", CopyEngine::Plain, "Plain reads and writes, dropped from the cache at the end"),
    ("cached", CopyEngine::Cached, "Plain reads and writes, left in the page cache"),
    (
        "two-thread",
        CopyEngine::TwoThread,
        "As in 2008: one thread reads, one writes, past the cache",
    ),
]);

/// A family of kernel events, or `none`. A name of its own, because clap would take an `Option` for
/// an optional value.
pub type EventFamily = Option<Family>;

/// The kernel events that are followed.
pub const EVENTS: Choice<EventFamily> = Choice(&[
    ("sched", Some(Family::Sched), "Which tasks ran, waited and slept, and on what"),
    ("block", Some(Family::Block), "Requests to devices"),
    ("vmscan", Some(Family::Vmscan), "Tasks that had to free memory themselves"),
    ("writeback", Some(Family::Writeback), "Writers that had to wait because too much was dirty"),
    ("cpu", Some(Family::Cpu), "What processors did, by samples"),
    ("who", Some(Family::Who), "What each process used, and which files"),
    ("faults", Some(Family::Faults), "Every page fault of a user; not cheap"),
    ("none", None, "No events"),
]);

/// A format that other programs read.
pub const FORMATS: Choice<ExportForm> = Choice(&[
    ("csv", ExportForm::Recording(&Csv), "One line for each sample, one column for each counter"),
    (
        "json",
        ExportForm::Recording(&Json),
        "Everything: facts, counters, delays, marks, how it ended",
    ),
    ("trec", ExportForm::Recording(&Trec), "A recording again, which `terrace explain` reads"),
    (
        "perfetto",
        ExportForm::Recording(&Perfetto),
        "A trace for ui.perfetto.dev and its trace processor; counters as they were read",
    ),
    (
        "openmetrics",
        ExportForm::Recording(&OpenMetrics),
        "Text with time stamps that Prometheus and compatible programs import as history",
    ),
    (
        "oracle-general",
        ExportForm::OracleGeneral,
        "Reads and writes of blocks of 4 KiB, for libCacheSim; of `record --accesses`, or of a trace",
    ),
]);

/// The output of a tool that can be imported.
pub const TOOLS: Choice<Form> = Choice(&[
    ("sadf", Form::Sadf, "`sadf -j`"),
    ("fio", Form::Fio, "Its JSON"),
    ("fio-log", Form::FioLog, "A log that it wrote during the run"),
    ("vmstat", Form::Vmstat, "`vmstat N`"),
    ("iostat", Form::Iostat, "`iostat N`"),
]);

/// How often the memory of a hog is touched.
pub const TOUCHES: Choice<HogTouch> = Choice(&[
    ("once", HogTouch::Once, "Once"),
    ("loop", HogTouch::Loop, "Again and again while it is held"),
]);

impl<T: Clone + Send + Sync + 'static> Choice<T> {
    fn words(self) -> impl Iterator<Item = PossibleValue> {
        let words = self.0.iter();
        words.map(|(word, _, help)| PossibleValue::new(*word).help(*help))
    }
}

impl<T: Clone + Copy + Send + Sync + 'static> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        let typed = PossibleValuesParser::new(self.words()).parse_ref(command, arg, text)?;
        let found = self.0.iter().find(|(word, ..)| *word == typed);
        let (_, value, _) = found.ok_or_else(|| Error::new(ErrorKind::InvalidValue))?;
        Ok(*value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words()))
    }
}
