//! Who did it, as the JSON of a recording has it: one object for each process, file and row, in
//! which only figures that are not 0 are named.

use model::recording::{
    FileRow, ProcessFigure, ProcessRow, RequestRow, SampleRow, SampledPart, Who,
};
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The object `who`.
pub(super) struct WhoJson<'a>(pub &'a Who);

/// One row, with its figures by their names.
struct RowJson<'a>(&'a ProcessRow);

/// The figures of a row that are not 0.
struct FiguresJson<'a>(&'a ProcessRow);

/// What a figure is.
#[derive(Serialize)]
struct FigureJson {
    name: &'static str,
    unit: &'static str,
}

impl Serialize for WhoJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Who { processes, rows, files, file_rows, samples, requests } = self.0;
        let figures =
            ProcessFigure::ALL.map(|figure| FigureJson { name: figure.id(), unit: figure.unit() });
        let mut object = to.serialize_struct("Who", 7)?;
        object.serialize_field("figures", &figures)?;
        object.serialize_field("processes", processes)?;
        object.serialize_field("rows", &Rows(rows))?;
        object.serialize_field("files", files)?;
        object.serialize_field::<[FileRow]>("file_rows", file_rows)?;
        object.serialize_field("samples", &Samples(samples))?;
        object.serialize_field::<[RequestRow]>("requests", requests)?;
        object.end()
    }
}

/// All rows, each written as it is reached.
struct Rows<'a>(&'a [ProcessRow]);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(RowJson))
    }
}

/// All rows of samples, likewise.
struct Samples<'a>(&'a [SampleRow]);

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(SamplesJson))
    }
}

/// One of them, with its parts by their names.
struct SamplesJson<'a>(&'a SampleRow);

impl Serialize for SamplesJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let SampleRow { process, from_ns, to_ns, samples } = self.0;
        let named = SampledPart::ALL.iter().map(|(_, name)| *name).zip(samples);
        let parts: BTreeMap<&str, &u64> = named.filter(|(_, count)| **count > 0).collect();
        let mut object = to.serialize_struct("SampleRow", 4)?;
        object.serialize_field("process", process)?;
        object.serialize_field("from_ns", from_ns)?;
        object.serialize_field("to_ns", to_ns)?;
        object.serialize_field("samples", &parts)?;
        object.end()
    }
}

impl Serialize for RowJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut object = to.serialize_struct("ProcessRow", 7)?;
        object.serialize_field("process", &row.process)?;
        object.serialize_field("from_ns", &row.from_ns)?;
        object.serialize_field("to_ns", &row.to_ns)?;
        object.serialize_field("figures", &FiguresJson(row))?;
        object.serialize_field("memory_bytes", &row.memory_bytes)?;
        object.serialize_field("has_ended", &row.has_ended)?;
        object.serialize_field("processes", &row.processes)?;
        object.end()
    }
}

impl Serialize for FiguresJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let named = ProcessFigure::ALL.iter().map(|figure| (figure.id(), self.0.get(*figure)));
        let mut object = to.serialize_map(None)?;
        for (name, value) in named.filter(|(_, value)| *value != 0) {
            object.serialize_entry(name, &value)?;
        }
        object.end()
    }
}
