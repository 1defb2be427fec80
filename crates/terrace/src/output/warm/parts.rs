//! What a restore would read: a table of the sources, and why one is left out.
//! Shared by `warm show` and by a restore that was only planned.

use super::{kind_name, place_name};
use crate::output::figure::or_absent;
use crate::output::prose::{PageText, count, long_time};
use crate::output::table::Table;
use model::Bytes;
use place::workingset::restore::PlannedSource;

/// The sources with what would be read; nothing where there are none.
pub fn write_planned(parts: &[PlannedSource], out: &mut PageText) {
    let sums = by_place(parts);
    if !sums.is_empty() {
        out.sentence("A restore would read:");
        out.table(&table(&sums), 3);
    }
    out.sentences(parts.iter().filter_map(|part| {
        let (why, kind) = (part.skipped.as_ref()?, kind_name(part.kind));
        Some(format!("Left out: {} {kind} in {}: {why}", Bytes(part.bytes), part.source))
    }));
}

/// One part for each place: the control groups whose files lie on a disk are read one by one.
fn by_place(parts: &[PlannedSource]) -> Vec<PlannedSource> {
    let mut sums: Vec<PlannedSource> = Vec::new();
    for part in parts.iter().filter(|part| part.skipped.is_none()) {
        let name = place_name(part.kind, &part.source);
        let same = |sum: &&mut PlannedSource| (sum.kind, sum.source.as_str()) == (part.kind, name);
        match sums.iter_mut().find(same) {
            Some(sum) => {
                sum.bytes += part.bytes;
                sum.runs += part.runs;
                sum.estimated_ns = both(sum.estimated_ns, part.estimated_ns);
                sum.by_demand_ns = both(sum.by_demand_ns, part.by_demand_ns);
            }
            None => sums.push(PlannedSource { source: name.to_owned(), ..part.clone() }),
        }
    }
    sums
}

/// The sum, unless one of the two is not known.
fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

fn table(parts: &[PlannedSource]) -> Table<&PlannedSource> {
    Table::of(parts)
        .words("what", 0, |part| kind_name(part.kind))
        .numbers("size", 0, |part| Bytes(part.bytes).to_string())
        .words("from", 0, |part| part.source.as_str())
        .numbers("runs", 1, |part| count(part.runs))
        .numbers("in order", 0, |part| or_absent(part.estimated_ns, long_time))
        .numbers("by demand", 0, |part| or_absent(part.by_demand_ns, long_time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use place::workingset::restore::MemoryKind;

    #[test]
    fn what_lies_in_one_place_is_one_line_and_an_unknown_time_stays_unknown() {
        let part = |kind, source: &str, estimated_ns| PlannedSource {
            kind,
            source: source.to_owned(),
            bytes: 4096,
            runs: 1,
            estimated_ns,
            by_demand_ns: Some(5),
            skipped: None,
        };
        let sums = by_place(&[
            part(MemoryKind::File, "sda", Some(1)),
            part(MemoryKind::Shared, "/memfd:a", Some(1)),
            part(MemoryKind::File, "sda", None),
            part(MemoryKind::File, "sdb", Some(1)),
            part(MemoryKind::Shared, "/memfd:b", Some(1)),
        ]);
        let shown: Vec<_> = sums
            .iter()
            .map(|sum| (sum.source.as_str(), sum.runs, sum.estimated_ns, sum.by_demand_ns))
            .collect();
        let expected = [
            ("sda", 2, None, Some(10)),
            ("swap", 2, Some(2), Some(10)),
            ("sdb", 1, Some(1), Some(5)),
        ];
        assert_eq!(shown, expected);
    }
}
