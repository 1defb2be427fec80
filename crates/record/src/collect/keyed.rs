//! The commonest shapes: lines of a name and a number, and files of one line of numbers.
//!
//! The meaning of a name is a plain function, so a source is little more than that function.

use super::table::{Column, LineTable, Shape, no_head};
use machine::Root;
use model::recording::SeriesKind;

/// Lines of "name number", where a function knows the series of a name.
#[derive(Debug)]
pub(super) struct Keyed {
    prefix: String,
    columns: fn(&str, &str) -> Vec<Column>,
}

impl Keyed {
    /// `columns` is given the prefix and the name.
    pub fn new(prefix: impl Into<String>, columns: fn(&str, &str) -> Vec<Column>) -> Self {
        Self { prefix: prefix.into(), columns }
    }
}

impl Shape for Keyed {
    fn columns(&self, key: &str) -> Vec<Column> {
        (self.columns)(&self.prefix, key)
    }
}

/// A file of one line without a name.
#[derive(Debug)]
pub(super) struct Single(pub Vec<Column>);

impl Shape for Single {
    fn head<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], usize)> {
        no_head(line)
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        self.0.clone()
    }
}

/// A counter or gauge of the first word, named by prefix and key.
pub(super) fn plain(prefix: &str, key: &str, unit: &'static str, kind: SeriesKind) -> Column {
    Column { kind, ..Column::counter(0, format!("{prefix}.{key}"), unit, 1) }
}

/// A file of lines "name number".
pub(super) fn keyed(
    root: &Root,
    path: impl Into<String>,
    prefix: impl Into<String>,
    columns: fn(&str, &str) -> Vec<Column>,
) -> Option<LineTable<Keyed>> {
    LineTable::open(root, path, Keyed::new(prefix, columns))
}
