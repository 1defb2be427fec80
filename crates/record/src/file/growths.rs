//! A chunk of growths before compression: what processes used, what they did with files, samples
//! of processors and requests to block devices by process.
//!
//! 1. All instants of the chunk are listed once, in order; a row names its own by their numbers.
//! 2. The rows of one process, or of one file and process, follow each other in order of time, so
//!    that nearly every row begins where the one before it ended.
//! 3. Each row says by one bit which of its numbers are not 0; the others are stored by columns,
//!    each divided by its greatest common divisor (pages, sectors, microseconds).
//! 4. Levels are stored as differences to the row before. A chunk counts from no other one, so a
//!    reader may skip any of them.
//! 5. The tables follow each other; the last ones are left out if they are empty, and a reader
//!    leaves out those behind the ones that it knows.

use super::columns::{common_divisor, malformed, within};
use super::varint::{Input, put, put_signed};
use crate::device_number;
use model::recording::{
    FileRow, ProcessFigure, ProcessRow, RequestRow, SampleRow, SampledPart, Who,
};

/// The most rows of one chunk, of processes and of files each: with the widest numbers a chunk
/// stays below [`super::MAX_RAW_BYTES`].
pub(super) const MAX_GROWTHS: usize = 1 << 15;

/// The most rows of samples and of requests each, which are wider.
pub(super) const MAX_WIDE: usize = 1 << 13;

/// The most instants of one chunk: each row has two.
const MAX_INSTANTS: usize = 4 * (MAX_GROWTHS + MAX_WIDE);

/// The most numbers of a row that a later version may have.
const MAX_COLUMNS: usize = 32;

/// A column of numbers that are stored as they are.
const NUMBERS: u8 = 0;
/// A column of levels: each is the signed difference to the row before of the same key.
const DIFFERENCES: u8 = 1;

/// Numbers of a process' row: memory, whether it has ended, more processes than one, its figures.
/// Figures of later versions come last.
const PROCESS_COLUMNS: usize = FIRST_FIGURE + ProcessFigure::COUNT;
const FIRST_FIGURE: usize = 3;
/// Those that are levels.
const PROCESS_LEVELS: u32 = 1;

/// Numbers of a file's row: added, refaulted, dirtied, evicted.
const FILE_COLUMNS: usize = 4;

/// Numbers of a row of samples: each part.
const SAMPLE_COLUMNS: usize = SampledPart::COUNT;

/// Numbers of a row of requests: whether they are writes, requests, bytes, latency, classes.
const REQUEST_COLUMNS: usize = FIRST_CLASS + RequestRow::CLASSES;
const FIRST_CLASS: usize = 4;

/// The process and 0, the file and the process, or the process and the device.
type Key = (u32, u32);

/// One row in the form of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Growth<const N: usize> {
    key: Key,
    from_ns: u64,
    to_ns: u64,
    numbers: [u64; N],
}

impl From<&ProcessRow> for Growth<PROCESS_COLUMNS> {
    fn from(row: &ProcessRow) -> Self {
        let mut numbers = [0; PROCESS_COLUMNS];
        numbers[0] = row.memory_bytes;
        numbers[1] = u64::from(row.has_ended);
        numbers[2] = row.processes.wrapping_sub(1);
        numbers[FIRST_FIGURE..].copy_from_slice(&row.figures);
        Self { key: (row.process, 0), from_ns: row.from_ns, to_ns: row.to_ns, numbers }
    }
}

impl Growth<PROCESS_COLUMNS> {
    fn row(&self) -> ProcessRow {
        let mut figures = [0; ProcessFigure::COUNT];
        figures.copy_from_slice(&self.numbers[FIRST_FIGURE..]);
        ProcessRow {
            process: self.key.0,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            figures,
            memory_bytes: self.numbers[0],
            has_ended: self.numbers[1] != 0,
            processes: self.numbers[2].wrapping_add(1),
        }
    }
}

impl From<&FileRow> for Growth<FILE_COLUMNS> {
    fn from(row: &FileRow) -> Self {
        Self {
            key: (row.file, row.process),
            from_ns: row.from_ns,
            to_ns: row.to_ns,
            numbers: [row.added_bytes, row.refaulted_bytes, row.dirtied_bytes, row.evicted_bytes],
        }
    }
}

impl Growth<FILE_COLUMNS> {
    fn row(&self) -> FileRow {
        let [added_bytes, refaulted_bytes, dirtied_bytes, evicted_bytes] = self.numbers;
        FileRow {
            file: self.key.0,
            process: self.key.1,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            added_bytes,
            refaulted_bytes,
            dirtied_bytes,
            evicted_bytes,
        }
    }
}

impl From<&SampleRow> for Growth<SAMPLE_COLUMNS> {
    fn from(row: &SampleRow) -> Self {
        let SampleRow { process, from_ns, to_ns, samples } = *row;
        Self { key: (process, 0), from_ns, to_ns, numbers: samples }
    }
}

impl Growth<SAMPLE_COLUMNS> {
    fn row(&self) -> SampleRow {
        let Self { key, from_ns, to_ns, numbers } = *self;
        SampleRow { process: key.0, from_ns, to_ns, samples: numbers }
    }
}

impl From<&RequestRow> for Growth<REQUEST_COLUMNS> {
    fn from(row: &RequestRow) -> Self {
        let mut numbers = [0; REQUEST_COLUMNS];
        let sums = [u64::from(row.is_write), row.requests, row.bytes, row.latency_ns];
        numbers[..FIRST_CLASS].copy_from_slice(&sums);
        numbers[FIRST_CLASS..].copy_from_slice(&row.classes);
        let number = device_number::joined(row.device);
        Self { key: (row.process, number), from_ns: row.from_ns, to_ns: row.to_ns, numbers }
    }
}

impl Growth<REQUEST_COLUMNS> {
    fn row(&self) -> RequestRow {
        let [is_write, requests, bytes, latency_ns, classes @ ..] = self.numbers;
        let (process, number) = self.key;
        RequestRow {
            process,
            device: device_number::split(number),
            is_write: is_write != 0,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            requests,
            bytes,
            latency_ns,
            classes,
        }
    }
}

/// Appends the rows of `who` to `out`, at most [`MAX_GROWTHS`] or [`MAX_WIDE`] of a kind; their
/// time range. A row that ends before it begins is written as an instant.
pub(super) fn encode(who: &Who, out: &mut Vec<u8>) -> (u64, u64) {
    let processes: Vec<Growth<PROCESS_COLUMNS>> = ordered(&who.rows);
    let files: Vec<Growth<FILE_COLUMNS>> = ordered(&who.file_rows);
    let samples: Vec<Growth<SAMPLE_COLUMNS>> = ordered(&who.samples);
    let requests: Vec<Growth<REQUEST_COLUMNS>> = ordered(&who.requests);
    let mut instants: Vec<u64> = processes.iter().flat_map(Growth::times).collect();
    instants.extend(files.iter().flat_map(Growth::times));
    instants.extend(samples.iter().flat_map(Growth::times));
    instants.extend(requests.iter().flat_map(Growth::times));
    instants.sort_unstable();
    instants.dedup();
    put(out, instants.len() as u64);
    let (mut before_ns, mut period_ns) = (0, 0);
    for at_ns in &instants {
        let passed_ns = at_ns.wrapping_sub(before_ns);
        put_signed(out, passed_ns.wrapping_sub(period_ns) as i64);
        (before_ns, period_ns) = (*at_ns, passed_ns);
    }
    encode_rows(&processes, PROCESS_LEVELS, &instants, out);
    encode_rows(&files, 0, &instants, out);
    if !samples.is_empty() || !requests.is_empty() {
        encode_rows(&samples, 0, &instants, out);
    }
    if !requests.is_empty() {
        encode_rows(&requests, 0, &instants, out);
    }
    (instants.first().copied().unwrap_or(0), before_ns)
}

/// Reads the rows of a chunk, in order of their end; there are no identities in it.
///
/// # Errors
/// What is impossible in it, in words.
pub(super) fn decode(raw: &[u8]) -> Result<Who, String> {
    let mut input = Input::new(raw);
    let count = within(input.number(), MAX_INSTANTS)?;
    // Each takes a byte at least, so a number alone takes no memory.
    let mut instants = Vec::with_capacity(count.min(raw.len()));
    let (mut at_ns, mut period_ns) = (0_u64, 0_u64);
    for _ in 0..count {
        let change = input.signed().ok_or_else(malformed)?;
        period_ns = period_ns.wrapping_add(change as u64);
        at_ns = at_ns.checked_add(period_ns).ok_or_else(malformed)?;
        instants.push(at_ns);
    }
    let processes = decode_rows::<PROCESS_COLUMNS>(&mut input, &instants)?;
    let files = decode_rows::<FILE_COLUMNS>(&mut input, &instants)?;
    let mut samples = Vec::new();
    if !input.is_empty() {
        samples = decode_rows::<SAMPLE_COLUMNS>(&mut input, &instants)?;
    }
    let mut requests = Vec::new();
    if !input.is_empty() {
        requests = decode_rows::<REQUEST_COLUMNS>(&mut input, &instants)?;
    }
    // Tables that are not known here must be whole.
    while !input.is_empty() {
        decode_rows::<0>(&mut input, &instants)?;
    }
    let mut who = Who {
        rows: processes.iter().map(Growth::<PROCESS_COLUMNS>::row).collect(),
        file_rows: files.iter().map(Growth::<FILE_COLUMNS>::row).collect(),
        samples: samples.iter().map(Growth::<SAMPLE_COLUMNS>::row).collect(),
        requests: requests.iter().map(Growth::<REQUEST_COLUMNS>::row).collect(),
        ..Who::default()
    };
    who.rows.sort_by_key(|row| row.to_ns);
    who.file_rows.sort_by_key(|row| row.to_ns);
    who.samples.sort_by_key(|row| row.to_ns);
    who.requests.sort_by_key(|row| row.to_ns);
    Ok(who)
}

impl<const N: usize> Growth<N> {
    fn times(&self) -> [u64; 2] {
        [self.from_ns, self.to_ns]
    }

    /// One bit for each number that is stored.
    fn stored(&self, before: &[u64; N], levels: u32) -> u32 {
        let is_stored = |index: &usize| match levels & 1 << index {
            0 => self.numbers[*index] != 0,
            _ => self.numbers[*index] != before[*index],
        };
        (0..N).filter(is_stored).fold(0, |bits, index| bits | 1 << index)
    }
}

/// Rows in the form and the order of the chunk.
fn ordered<'r, R: 'r, const N: usize>(rows: &'r [R]) -> Vec<Growth<N>>
where
    Growth<N>: From<&'r R>,
{
    let mut growths: Vec<Growth<N>> = rows.iter().map(Growth::from).collect();
    for growth in &mut growths {
        growth.from_ns = growth.from_ns.min(growth.to_ns);
    }
    growths.sort_by_key(|row| (row.key, row.to_ns, row.from_ns));
    growths
}

fn encode_rows<const N: usize>(
    rows: &[Growth<N>],
    levels: u32,
    instants: &[u64],
    out: &mut Vec<u8>,
) {
    let groups: Vec<_> = rows.chunk_by(|a, b| a.key == b.key).collect();
    put(out, N as u64);
    put(out, rows.len() as u64);
    put(out, groups.len() as u64);
    let mut before = (0, 0);
    for group in &groups {
        let key = group[0].key;
        put_signed(out, i64::from(key.0) - i64::from(before.0));
        put_signed(out, i64::from(key.1) - i64::from(before.1));
        put(out, group.len() as u64);
        before = key;
    }
    let number_of = |at_ns: u64| instants.partition_point(|instant| *instant < at_ns);
    for group in &groups {
        let mut before = None;
        for row in *group {
            let to = number_of(row.to_ns);
            put(out, (to - before.unwrap_or(0)) as u64);
            before = Some(to);
        }
    }
    for group in &groups {
        let mut ended_ns = None;
        for row in *group {
            let is_next = ended_ns == Some(row.from_ns);
            let length = number_of(row.to_ns) - number_of(row.from_ns);
            put(out, if is_next { 0 } else { 1 + length as u64 });
            ended_ns = Some(row.to_ns);
        }
    }
    let mut columns: [Vec<i64>; N] = std::array::from_fn(|_| Vec::new());
    for group in &groups {
        let mut before = [0; N];
        for row in *group {
            let stored = row.stored(&before, levels);
            put(out, u64::from(stored));
            for index in (0..N).filter(|index| stored & 1 << index != 0) {
                let base = if levels & 1 << index == 0 { 0 } else { before[index] };
                columns[index].push(row.numbers[index].wrapping_sub(base) as i64);
            }
            before = row.numbers;
        }
    }
    for (index, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
        encode_column(column, levels & 1 << index != 0, out);
    }
}

fn encode_column(column: &[i64], is_level: bool, out: &mut Vec<u8>) {
    let size = |number: &i64| if is_level { number.unsigned_abs() } else { *number as u64 };
    let divisor = column.iter().map(size).fold(0, |divisor, size| common_divisor(size, divisor));
    out.push(if is_level { DIFFERENCES } else { NUMBERS });
    put(out, divisor);
    for number in column {
        if is_level {
            put_signed(out, number.wrapping_div(divisor as i64));
        } else {
            put(out, *number as u64 / divisor);
        }
    }
}

/// Reads rows of any number of columns; those that are not known here are left out.
fn decode_rows<const N: usize>(
    input: &mut Input<'_>,
    instants: &[u64],
) -> Result<Vec<Growth<N>>, String> {
    let columns = within(input.number(), MAX_COLUMNS)?;
    let count = within(input.number(), MAX_GROWTHS)?;
    let lengths = decode_keys(input, count)?;
    let mut rows = Vec::with_capacity(count);
    for (key, length) in lengths {
        rows.extend((0..length).map(|_| Growth { key, from_ns: 0, to_ns: 0, numbers: [0; N] }));
    }
    decode_times(input, instants, &mut rows)?;
    let mut stored = Vec::with_capacity(count);
    for _ in 0..count {
        let bits = input.number().ok_or_else(malformed)?;
        if bits >> columns != 0 {
            return Err(malformed());
        }
        stored.push(bits as u32);
    }
    let in_use = stored.iter().fold(0, |all, bits| all | bits);
    for index in (0..columns).filter(|index| in_use & 1 << index != 0) {
        decode_column(input, index, &stored, &mut rows)?;
    }
    Ok(rows)
}

/// The keys of all groups, and how many rows each has; together they are `count`.
fn decode_keys(input: &mut Input<'_>, count: usize) -> Result<Vec<(Key, usize)>, String> {
    let groups = within(input.number(), count)?;
    let mut keys = Vec::with_capacity(groups);
    let (mut key, mut rows) = ((0_u32, 0_u32), 0);
    for _ in 0..groups {
        let mut moved = |id: u32| {
            let by = input.signed().and_then(|by| i64::from(id).checked_add(by));
            by.and_then(|id| u32::try_from(id).ok()).ok_or_else(malformed)
        };
        key = (moved(key.0)?, moved(key.1)?);
        let length = within(input.number(), count - rows)?;
        rows += length;
        keys.push((key, length));
    }
    if rows != count {
        return Err(malformed());
    }
    Ok(keys)
}

fn decode_times<const N: usize>(
    input: &mut Input<'_>,
    instants: &[u64],
    rows: &mut [Growth<N>],
) -> Result<(), String> {
    let mut ends = Vec::with_capacity(rows.len());
    for group in rows.chunk_by_mut(|a, b| a.key == b.key) {
        let mut end = 0;
        for row in group {
            end += within(input.number(), instants.len())?;
            row.to_ns = *instants.get(end).ok_or_else(malformed)?;
            ends.push(end);
        }
    }
    let mut ends = ends.into_iter();
    for group in rows.chunk_by_mut(|a, b| a.key == b.key) {
        let mut ended_ns = None;
        for (row, end) in group.iter_mut().zip(&mut ends) {
            row.from_ns = match input.number().ok_or_else(malformed)? {
                0 => ended_ns.ok_or_else(malformed)?,
                length => instants[end - within(Some(length - 1), end)?],
            };
            ended_ns = Some(row.to_ns);
        }
    }
    Ok(())
}

fn decode_column<const N: usize>(
    input: &mut Input<'_>,
    index: usize,
    stored: &[u32],
    rows: &mut [Growth<N>],
) -> Result<(), String> {
    let coding = input.byte().ok_or_else(malformed)?;
    let divisor = input.number().ok_or_else(malformed)?;
    if coding > DIFFERENCES {
        return Err(malformed());
    }
    let (mut key, mut level) = (None, 0_u64);
    for (row, stored) in rows.iter_mut().zip(stored) {
        if key != Some(row.key) {
            (key, level) = (Some(row.key), 0);
        }
        if stored & 1 << index != 0 {
            level = match coding {
                NUMBERS => {
                    let number = input.number().and_then(|number| number.checked_mul(divisor));
                    number.ok_or_else(malformed)?
                }
                _ => {
                    let change = input.signed().ok_or_else(malformed)?;
                    level.wrapping_add(change.wrapping_mul(divisor as i64) as u64)
                }
            };
        } else if coding == NUMBERS {
            level = 0;
        }
        if let Some(number) = row.numbers.get_mut(index) {
            *number = level;
        }
    }
    Ok(())
}
