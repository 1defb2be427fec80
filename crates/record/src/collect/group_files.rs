//! Opening the files of a control group as sources, each at its rate.
//!
//! Own groups are read for each sample; parents and limits once a second.

use super::keyed::{Keyed, Single, keyed};
use super::table::{AbsentWhen, Column, LineTable, Shape};
use super::{Source, Tier};
use crate::registry::{Registry, Row};
use machine::Root;
use std::collections::HashMap;
use std::path::Path;

/// Open sources with their rates.
pub(super) type TieredSources = Vec<(Tier, Box<dyn Source>)>;

/// The files of one group, and the sources that were opened from them.
pub(super) struct GroupFiles<'a> {
    pub root: &'a Root,
    pub prefix: &'a str,
    pub directory: &'a Path,
    /// Whether this is a parent group, which is read once a second.
    pub parent: bool,
    pub sources: &'a mut TieredSources,
    /// Where counters begin, if not at what they have now.
    pub first: Option<FirstTexts<'a>>,
}

/// What the files of a group said when it was first looked at.
pub(super) struct FirstTexts<'a> {
    /// The texts by file; a file that is not among them is read now.
    pub texts: &'a HashMap<&'static str, Vec<u8>>,
    pub registry: &'a mut Registry,
    /// Takes the values.
    pub base: &'a mut Row,
}

impl FirstTexts<'_> {
    fn read(&mut self, table: &mut LineTable<impl Shape>) {
        let file = table.source().rsplit('/').next().unwrap_or_default();
        match self.texts.get(file) {
            Some(text) => table.read_text(text, self.registry, self.base),
            None => table.read_into(self.registry, self.base),
        }
    }
}

impl GroupFiles<'_> {
    /// The path of a file of this group.
    pub fn path(&self, file: &str) -> String {
        self.directory.join(file).to_string_lossy().into_owned()
    }

    /// Keeps a source at the rate of this group; whether it was there.
    pub fn keep(&mut self, table: Option<LineTable<impl Shape + 'static>>) -> bool {
        let tier = if self.parent { Tier::Slow } else { Tier::Steady };
        self.keep_in(tier, table)
    }

    /// Keeps a source that is read once a second, which is enough for a limit.
    pub fn keep_slow(&mut self, table: Option<LineTable<impl Shape + 'static>>) -> bool {
        self.keep_in(Tier::Slow, table)
    }

    fn keep_in(&mut self, tier: Tier, mut table: Option<LineTable<impl Shape + 'static>>) -> bool {
        let found = table.is_some();
        if let (Some(first), Some(table)) = (&mut self.first, &mut table) {
            first.read(table);
        }
        let boxed = table.map(|table| Box::new(table) as Box<dyn Source>);
        self.sources.extend(boxed.map(|source| (tier, source)));
        found
    }

    /// A file of lines "name number".
    pub fn lines(
        &self,
        file: &str,
        columns: fn(&str, &str) -> Vec<Column>,
    ) -> Option<LineTable<Keyed>> {
        keyed(self.root, self.path(file), self.prefix, columns)
    }

    /// A file with one number that is a level or a limit.
    pub fn level(&self, file: &str, name: &str, unit: &'static str) -> Option<LineTable<Single>> {
        let name = format!("{}.{name}", self.prefix);
        let column = Column::gauge(0, name, unit, 1).absent_when(AbsentWhen::Unlimited);
        LineTable::open(self.root, self.path(file), Single(vec![column]))
    }

    /// A file with one number that only grows.
    pub fn count(&self, file: &str, name: &str, unit: &'static str) -> Option<LineTable<Single>> {
        let column = Column::counter(0, format!("{}.{name}", self.prefix), unit, 1);
        LineTable::open(self.root, self.path(file), Single(vec![column]))
    }
}
