//! What a restore would read: a table of the sources, and why one is left out.

use super::kind_name;
use crate::output::Page;
use crate::output::figure::or_absent;
use crate::output::prose::{count, long_time};
use crate::output::style::Tone;
use crate::output::table::{Cell, Column, Table};
use model::Bytes;
use place::workingset::restore::Part;

/// The sources with what would be read, as lines; nothing where there are none.
pub fn planned(parts: &[Part], page: Page) -> String {
    let read = parts.iter().filter(|part| part.skipped.is_none());
    let mut text = String::new();
    let table = table(read);
    if !table.is_empty() {
        text.push_str(&super::line(page, Tone::Plain, "A restore would read:"));
        text.push_str(&table.render(page, 3));
    }
    for part in parts {
        if let Some(why) = &part.skipped {
            let what = format!(
                "{} {} in {}",
                Bytes(part.bytes),
                kind_name(part.kind),
                part.source
            );
            text.push_str(&super::line(
                page,
                Tone::Plain,
                &format!("Left out: {what}: {why}"),
            ));
        }
    }
    text
}

fn table<'a>(parts: impl Iterator<Item = &'a Part>) -> Table {
    let mut table = Table::new(vec![
        Column::words("what"),
        Column::numbers("size"),
        Column::words("from"),
        Column::numbers("runs").rank(1),
        Column::numbers("in order"),
        Column::numbers("by demand"),
    ]);
    for part in parts {
        table.row(vec![
            Cell::from(kind_name(part.kind)),
            Cell::from(Bytes(part.bytes).to_string()),
            Cell::from(part.source.as_str()),
            Cell::from(count(part.runs)),
            Cell::from(or_absent(part.estimated_ns, long_time)),
            Cell::from(or_absent(part.by_demand_ns, long_time)),
        ]);
    }
    table
}
