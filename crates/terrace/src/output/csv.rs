//! Comma-separated values: one header, then rows of as many fields (RFC 4180).
//!
//! Numbers are written in full, in the unit that the header names; what is absent is an
//! empty field.

use measure::storage::latency::RequestLatency;
use model::Estimate;

/// Columns over the rows of a result. Each column is declared once, with its name and its field.
#[derive(Debug)]
pub struct Sheet<'a, R> {
    rows: &'a [R],
    header: Vec<String>,
    /// The fields of each row, quoted.
    lines: Vec<Vec<String>>,
}

pub trait Field {
    /// The field's text, not yet quoted.
    fn field(&self) -> String;
}

impl Field for f64 {
    fn field(&self) -> String {
        if self.is_finite() { self.to_string() } else { String::new() }
    }
}

macro_rules! plain_field {
    ($($kind:ty),+) => {$(
        impl Field for $kind {
            fn field(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
plain_field!(u8, u32, u64, usize, bool, &str, String);

impl<T: Field> Field for Option<T> {
    fn field(&self) -> String {
        self.as_ref().map(Field::field).unwrap_or_default()
    }
}

impl<'a, R> Sheet<'a, R> {
    /// A sheet of `rows` without columns.
    pub fn of(rows: &'a [R]) -> Self {
        Self { rows, header: Vec::new(), lines: vec![Vec::new(); rows.len()] }
    }

    pub fn column<F: Field>(mut self, name: &str, field: impl Fn(&'a R) -> F) -> Self {
        self.header.push(quote(name));
        for (line, row) in self.lines.iter_mut().zip(self.rows) {
            line.push(quote(&field(row).field()));
        }
        self
    }

    /// Adds the nine columns of an estimate: `PREFIXmedian_UNIT` to `runs`.
    pub fn estimate(
        self,
        prefix: &str,
        unit: &str,
        of: impl Fn(&'a R) -> Option<&'a Estimate>,
    ) -> Self {
        let name = |which: &str| format!("{prefix}{which}_{unit}");
        self.column(&name("median"), |row| of(row).map(|value| value.median))
            .column(&name("best"), |row| of(row).map(|value| value.best))
            .column(&name("low"), |row| of(row).and_then(|value| value.low))
            .column(&name("high"), |row| of(row).and_then(|value| value.high))
            .column("spread", |row| of(row).and_then(|value| value.spread))
            .column("trials", |row| of(row).map(|value| value.trials))
            .column("discarded", |row| of(row).map(|value| value.discarded))
            .column("covers", |row| of(row).map(|value| value.covers.name()))
            .column("runs", |row| of(row).map(|value| value.runs))
    }

    /// Adds the columns of the times of single requests.
    pub fn latency(self, of: impl Fn(&'a R) -> &'a RequestLatency) -> Self {
        self.column("min_ns", |row| of(row).min_ns)
            .column("mean_ns", |row| of(row).mean_ns)
            .column("max_ns", |row| of(row).max_ns)
            .column("deviation_ns", |row| of(row).deviation_ns)
            .column("p50_ns", |row| of(row).p50_ns)
            .column("p50_low_ns", |row| of(row).p50_low_ns)
            .column("p50_high_ns", |row| of(row).p50_high_ns)
            .column("p90_ns", |row| of(row).p90_ns)
            .column("p99_ns", |row| of(row).p99_ns)
            .column("p99_9_ns", |row| of(row).p99_9_ns)
            .column("covers", |row| of(row).covers.name())
    }

    /// Adds the median of a rate, called `name`, and the ends of its interval.
    pub fn rate(self, name: &str, of: impl Fn(&'a R) -> Option<&'a Estimate>) -> Self {
        self.column(name, |row| of(row).map(|rate| rate.median))
            .column(&format!("{name}_low"), |row| of(row).and_then(|rate| rate.low))
            .column(&format!("{name}_high"), |row| of(row).and_then(|rate| rate.high))
    }

    pub fn render(&self) -> String {
        std::iter::once(&self.header)
            .chain(&self.lines)
            .map(|fields| fields.join(",") + "\n")
            .collect()
    }
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_when_they_must_be() {
        let rows = [("a,b", 1.5, None), ("say \"x\"", f64::NAN, Some(3_u64))];
        let sheet = Sheet::of(&rows)
            .column("name", |row| row.0)
            .column("value", |row| row.1)
            .column("note", |row| row.2);
        assert_eq!(sheet.render(), "name,value,note\n\"a,b\",1.5,\n\"say \"\"x\"\"\",,3\n");
    }
}
