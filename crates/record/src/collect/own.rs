//! What the recorder itself costs: CPU time, memory, bytes written, and how long a reading
//! of all the sources takes.
//!
//! Of the whole process: the threads that wait and write are part of the price.

use super::keyed::keyed;
use super::keyed::{Keyed, Single};
use super::table::{Column, LineTable};
use super::{Moment, Source};
use crate::registry::Registry;
use machine::Root;
use model::recording::SeriesKind;

/// The recorder's own series.
#[derive(Debug)]
pub(super) struct Own {
    cpu: Option<u32>,
    sample: Option<u32>,
    late: Option<u32>,
    ticks_late: u64,
    io: Option<LineTable<Keyed>>,
    memory: Option<LineTable<Single>>,
}

/// Always there.
pub(super) fn open(root: &Root, registry: &mut Registry) -> Own {
    let page = sys::process::page_bytes() as u64;
    // "size resident shared text lib data dt", in pages.
    let resident = Column::gauge(1, "own.rss_bytes", "bytes", page);
    Own {
        cpu: registry.id("own.cpu_ns", "ns", SeriesKind::Counter, "getrusage"),
        sample: registry.id("own.sample_ns", "ns", SeriesKind::Gauge, "recorder"),
        late: registry.id("own.ticks_late", "count", SeriesKind::Counter, "recorder"),
        ticks_late: 0,
        io: keyed(root, "/proc/self/io", "own", written),
        memory: LineTable::open(root, "/proc/self/statm", Single(vec![resident])),
    }
}

fn written(prefix: &str, key: &str) -> Vec<Column> {
    let name = format!("{prefix}.written_bytes");
    let column = Column::counter(0, name, "bytes", 1);
    Vec::from_iter((key == "write_bytes").then_some(column))
}

impl Own {
    /// One more sample was taken late.
    pub fn late(&mut self) {
        self.ticks_late += 1;
    }

    /// Notes how long the reading took that ends now.
    pub fn sample(&self, sample_ns: u64, moment: &mut Moment<'_>) {
        if let Some(id) = self.sample {
            moment.row.count(id, sample_ns);
        }
    }
}

impl Source for Own {
    fn read(&mut self, moment: &mut Moment<'_>) {
        if let (Some(id), Ok(usage)) = (self.cpu, sys::usage::process()) {
            moment.row.count(id, usage.cpu_ns());
        }
        if let Some(id) = self.late {
            moment.row.count(id, self.ticks_late);
        }
        if !moment.slow {
            return;
        }
        if let Some(io) = &mut self.io {
            io.read(moment.registry, moment.row);
        }
        if let Some(memory) = &mut self.memory {
            memory.read(moment.registry, moment.row);
        }
    }
}
