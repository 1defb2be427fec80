//! Options whose value is one of a few words: a table of words, library values and help, so that no
//! enum here repeats one of a library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use measure::faults::Way;
use measure::memory::PageKind;
use measure::pressure::{Content, Touch};
use memops::Operation;
use model::ChaseOrder;
use std::ffi::OsStr;

/// The words of an option, each with its value and its help. `clap` lists and suggests them.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static>(&'static [(&'static str, T, &'static str)]);

/// What is done with memory.
pub const OPERATIONS: Choice<Operation> = Choice(&[
    ("copy", Operation::Copy, "Copy one buffer to another"),
    ("read", Operation::Read, "Read a buffer"),
    ("write", Operation::Write, "Fill a buffer"),
]);

/// The page size of a buffer.
pub const PAGES: Choice<PageKind> = Choice(&[
    ("4k", PageKind::Base, "Pages of 4 KiB"),
    (
        "thp",
        PageKind::Transparent,
        "Transparent huge pages, where the kernel grants them",
    ),
    ("hugetlb", PageKind::Huge, "Huge pages of the reserved pool"),
]);

/// In which order a chase visits the cache lines of its buffer.
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

/// How memory is touched first.
pub const WAYS: Choice<Way> = Choice(&[
    ("4k", Way::Base, "One store for each page of 4 KiB"),
    (
        "thp",
        Way::Transparent,
        "One store for each transparent huge page",
    ),
    (
        "populate",
        Way::Populate,
        "One call for all pages (MADV_POPULATE_WRITE)",
    ),
]);

/// What the memory of a hog holds.
pub const CONTENTS: Choice<Content> = Choice(&[
    ("random", Content::Random, "Bytes that do not compress"),
    ("text", Content::Text, "Words, which compress as prose does"),
    (
        "zero",
        Content::Zero,
        "Zeros, which the kernel may swap without writing",
    ),
]);

/// How often the memory of a hog is touched.
pub const TOUCHES: Choice<Touch> = Choice(&[
    ("once", Touch::Once, "Once"),
    ("loop", Touch::Loop, "Again and again while it is held"),
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
