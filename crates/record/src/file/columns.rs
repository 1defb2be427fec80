//! A samples chunk before compression: rows of values, turned into columns of differences.
//!
//! 1. Most columns stand still: a bitmap names those that changed, the others take one bit.
//! 2. What changed is coded as differences to the row before, the first one to the chunk
//!    before. A chunk can thus be read only after those before it.
//! 3. The greatest common divisor of a column's differences is taken out (pages, sectors,
//!    clock ticks), which also makes columns equal that count the same in other units.
//! 4. A column that changes rarely is coded as pairs of distance and difference; one with
//!    absent values apart, so that "absent" needs no number of its own elsewhere.

use super::varint::{Input, put, put_signed};
use crate::registry::{ABSENT, MAX_SERIES};
use model::recording::Tick;

/// The most rows of one chunk, ten seconds at the usual rate: what a crash may lose.
pub(super) const MAX_ROWS: usize = 100;

/// The most values of one chunk. The widest code takes 12 bytes, so a chunk stays below
/// [`super::MAX_RAW_BYTES`] whatever the values are.
pub(super) const MAX_CELLS: usize = 1_000_000;

/// A column that changes in fewer than one row of this many is coded by pairs.
const SPARSE_BELOW: usize = 3;

/// Every row has a difference, divided by the divisor.
const DENSE: u8 = 0;
/// Pairs of distance and difference, divided by the divisor.
const SPARSE: u8 = 1;
/// Pairs of distance and value, among them absent ones.
const GAPS: u8 = 2;

/// Rows that wait to be written.
#[derive(Debug, Default)]
pub(super) struct PendingRows {
    pub(super) ticks: Vec<Tick>,
    /// Row after row.
    values: Vec<i64>,
    /// Where each row ends in `values`.
    ends: Vec<usize>,
}

impl PendingRows {
    /// Adds a row; rows may grow.
    pub(super) fn push(&mut self, tick: Tick, values: &[i64]) {
        self.ticks.push(tick);
        self.values.extend_from_slice(values);
        self.ends.push(self.values.len());
    }

    pub(super) fn clear(&mut self) {
        self.ticks.clear();
        self.values.clear();
        self.ends.clear();
    }

    /// How many values there would be with one row of `columns` more.
    pub(super) fn cells_with(&self, columns: usize) -> usize {
        (self.ticks.len() + 1) * columns.max(self.columns())
    }

    fn columns(&self) -> usize {
        let mut start = 0;
        let widths = self.ends.iter().map(|end| {
            let width = end - start;
            start = *end;
            width
        });
        widths.max().unwrap_or(0)
    }

    /// The column `index` of all rows; absent where a row is shorter.
    fn column(&self, index: usize, column: &mut Vec<i64>) {
        column.clear();
        let mut start = 0;
        for end in &self.ends {
            column.push(self.values[start..*end].get(index).copied().unwrap_or(ABSENT));
            start = *end;
        }
    }
}

/// What the differences of the next chunk count from: the last row of the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Base {
    due_ns: u64,
    at_ns: u64,
    /// The time between the last two rows.
    period_ns: u64,
    values: Vec<i64>,
}

impl Base {
    /// When the last row was taken.
    pub(super) fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// The last row.
    pub(super) fn row(&self) -> (Tick, &[i64]) {
        let Self { due_ns, at_ns, .. } = *self;
        (Tick { due_ns, at_ns }, &self.values)
    }

    /// Appends it to `out`, so that a reader can count from it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.due_ns, self.at_ns, self.period_ns] {
            put(out, number);
        }
        put(out, self.values.len() as u64);
        for value in &self.values {
            put(out, u64::from(*value != ABSENT));
            if *value != ABSENT {
                put_signed(out, *value);
            }
        }
    }

    /// Reads what [`Base::encode`] made, of at most `known` columns.
    ///
    /// # Errors
    /// What is impossible in it, in words.
    pub(super) fn decode(raw: &[u8], known: usize) -> Result<Self, String> {
        let mut input = Input::new(raw);
        let mut time_ns = || input.number().ok_or_else(malformed);
        let (due_ns, at_ns, period_ns) = (time_ns()?, time_ns()?, time_ns()?);
        let columns = within(input.number(), MAX_SERIES.min(known))?;
        let mut values = Vec::with_capacity(columns);
        for _ in 0..columns {
            let is_present = input.number().ok_or_else(malformed)? != 0;
            let value = is_present.then(|| input.signed().ok_or_else(malformed));
            values.push(value.transpose()?.unwrap_or(ABSENT));
        }
        if at_ns < due_ns || !input.is_empty() {
            return Err(malformed());
        }
        Ok(Self { due_ns, at_ns, period_ns, values })
    }

    /// `tick`, moved so that it is not before the last row, of `held` or before it.
    pub(super) fn forward(&self, held: &PendingRows, tick: Tick) -> Tick {
        let last = held.ticks.last();
        let due_ns = tick.due_ns.max(last.map_or(self.due_ns, |last| last.due_ns));
        let at_ns = last.map_or(self.at_ns, |last| last.at_ns);
        Tick { due_ns, at_ns: tick.at_ns.max(at_ns).max(due_ns) }
    }
}

/// Working memory of [`encode`], kept from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    column: Vec<i64>,
    body: Vec<u8>,
}

/// Appends the rows of `held` to `out`, and moves `base` to the last of them.
pub(super) fn encode(
    held: &PendingRows,
    base: &mut Base,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) {
    let columns = held.columns().max(base.values.len());
    put(out, held.ticks.len() as u64);
    put(out, columns as u64);
    for tick in &held.ticks {
        let period = tick.due_ns.wrapping_sub(base.due_ns);
        put_signed(out, period.wrapping_sub(base.period_ns) as i64);
        (base.due_ns, base.period_ns) = (tick.due_ns, period);
    }
    for tick in &held.ticks {
        put(out, tick.at_ns.saturating_sub(tick.due_ns));
        base.at_ns = tick.at_ns;
    }
    base.values.resize(columns, ABSENT);
    let bitmap = out.len();
    out.resize(bitmap + columns.div_ceil(8), 0);
    scratch.body.clear();
    for (index, before) in base.values.iter_mut().enumerate() {
        held.column(index, &mut scratch.column);
        if scratch.column.iter().all(|value| value == before) {
            continue;
        }
        out[bitmap + index / 8] |= 1 << (index % 8);
        let last = scratch.column.last().copied();
        encode_column(&mut scratch.column, *before, &mut scratch.body);
        *before = last.unwrap_or(*before);
    }
    out.extend_from_slice(&scratch.body);
}

/// Codes one column, and uses it up.
fn encode_column(column: &mut [i64], before: i64, out: &mut Vec<u8>) {
    if column.contains(&ABSENT) {
        return encode_gaps(column, before, out);
    }
    let mut last = present(before);
    // A column that appears has changed, also where it appears with the value 0.
    let mut appears = before == ABSENT;
    let mut changes = usize::from(appears && column.first() == Some(&0));
    let mut divisor = 0;
    for value in column.iter_mut() {
        let difference = value.wrapping_sub(last);
        last = std::mem::replace(value, difference);
        divisor = common_divisor(difference.unsigned_abs(), divisor);
        changes += usize::from(difference != 0);
    }
    // Nothing to divide where a column appears as 0 and stays so.
    let divisor = divisor.max(1);
    let is_sparse = changes * SPARSE_BELOW < column.len();
    out.push(if is_sparse { SPARSE } else { DENSE });
    put(out, divisor);
    if !is_sparse {
        for difference in column {
            put_signed(out, difference.wrapping_div(divisor as i64));
        }
        return;
    }
    put(out, changes as u64);
    let mut distance = 0;
    for difference in column {
        if *difference == 0 && !appears {
            distance += 1;
            continue;
        }
        appears = false;
        put(out, distance);
        put_signed(out, difference.wrapping_div(divisor as i64));
        distance = 0;
    }
}

/// Codes a column with absent values: for each change the distance, 1, and the difference,
/// or the distance and 0 for absent.
fn encode_gaps(column: &[i64], before: i64, out: &mut Vec<u8>) {
    let mut last = before;
    let is_change = |value: &&i64| std::mem::replace(&mut last, **value) != **value;
    let changes = column.iter().filter(is_change).count();
    out.push(GAPS);
    put(out, changes as u64);
    let (mut last, mut distance) = (before, 0);
    for value in column {
        if *value == last {
            distance += 1;
            continue;
        }
        put(out, distance);
        put(out, u64::from(*value != ABSENT));
        if *value != ABSENT {
            put_signed(out, value.wrapping_sub(present(last)));
        }
        (last, distance) = (*value, 0);
    }
}

/// What a chunk gives back, in order: all its ticks, then column by column what changed.
pub(super) trait DecodedRows {
    /// A row was taken at this instant.
    ///
    /// # Errors
    /// Why there can be no more, in words.
    fn tick(&mut self, tick: Tick) -> Result<(), String>;

    /// From `row` of this chunk on a column has this value.
    ///
    /// # Errors
    /// Why there can be no more, in words.
    fn step(&mut self, column: usize, row: usize, value: i64) -> Result<(), String>;
}

/// Reads a chunk of at most `known` columns.
///
/// # Errors
/// What is impossible in it, in words; `decoded` may have got a part of it.
pub(super) fn decode(
    raw: &[u8],
    known: usize,
    base: &mut Base,
    decoded: &mut impl DecodedRows,
) -> Result<(), String> {
    let mut input = Input::new(raw);
    let rows = within(input.number(), MAX_ROWS)?;
    let columns = within(input.number(), MAX_SERIES.min(known))?;
    let mut dues = [0; MAX_ROWS];
    for due_ns in &mut dues[..rows] {
        *due_ns = next_due(&mut input, base).ok_or_else(malformed)?;
    }
    for due_ns in &dues[..rows] {
        let late_ns = input.number().ok_or_else(malformed)?;
        let at_ns = due_ns.checked_add(late_ns).ok_or_else(malformed)?;
        if at_ns < base.at_ns {
            return Err("its times run backwards".to_owned());
        }
        base.at_ns = at_ns;
        let due_ns = *due_ns;
        decoded.tick(Tick { due_ns, at_ns })?;
    }
    let bitmap = input.bytes(columns.div_ceil(8)).ok_or_else(malformed)?;
    if base.values.len() < columns {
        base.values.resize(columns, ABSENT);
    }
    for (index, last) in base.values.iter_mut().enumerate().take(columns) {
        if bitmap[index / 8] & (1 << (index % 8)) != 0 {
            let step = |row, value| decoded.step(index, row, value);
            decode_column(&mut input, rows, last, step)?;
        }
    }
    if !input.is_empty() {
        return Err(malformed());
    }
    Ok(())
}

fn next_due(input: &mut Input<'_>, base: &mut Base) -> Option<u64> {
    let period = base.period_ns.wrapping_add(input.signed()? as u64);
    base.due_ns = base.due_ns.checked_add(period)?;
    base.period_ns = period;
    Some(base.due_ns)
}

fn decode_column(
    input: &mut Input<'_>,
    rows: usize,
    last: &mut i64,
    mut step: impl FnMut(usize, i64) -> Result<(), String>,
) -> Result<(), String> {
    let mode = input.byte().ok_or_else(malformed)?;
    let divisor = match mode {
        DENSE | SPARSE => input.number().ok_or_else(malformed)? as i64,
        GAPS => 1,
        _ => return Err(malformed()),
    };
    if mode == DENSE {
        for row in 0..rows {
            let difference = input.signed().ok_or_else(malformed)?;
            let value = present(*last).wrapping_add(difference.wrapping_mul(divisor));
            if value != *last {
                step(row, value)?;
                *last = value;
            }
        }
        return Ok(());
    }
    let mut row = 0;
    for _ in 0..within(input.number(), rows)? {
        row += within(input.number(), rows)?;
        if row >= rows {
            return Err(malformed());
        }
        let is_present = mode == SPARSE || input.number().ok_or_else(malformed)? != 0;
        let value = if is_present {
            let difference = input.signed().ok_or_else(malformed)?;
            present(*last).wrapping_add(difference.wrapping_mul(divisor))
        } else {
            ABSENT
        };
        step(row, value)?;
        *last = value;
        row += 1;
    }
    Ok(())
}

/// What a difference counts from: 0 after absent.
fn present(value: i64) -> i64 {
    if value == ABSENT { 0 } else { value }
}

pub(super) fn within(number: Option<u64>, limit: usize) -> Result<usize, String> {
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number <= limit).ok_or_else(malformed)
}

pub(super) fn malformed() -> String {
    "its content makes no sense".to_owned()
}

/// Euclid's; 0 divides nothing and is divided by all.
pub(super) fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    // One step is enough while the divisor holds, which is nearly always.
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
