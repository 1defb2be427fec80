//! A text file of lines as a plan: which line starts how, and which of its words is which
//! series.
//!
//! The plan is made from the first reading. Later readings only check that each line still
//! starts as planned and turn words into numbers: no name is looked up and nothing is
//! allocated. A line that differs makes a new plan; what is gone from the file is absent
//! from then on. What a file means is each source's [`Shape`], not known here.

use crate::registry::{ABSENT, Registry, Row};
use machine::{ProcFile, Root};
use model::recording::SeriesKind;
use std::fmt::Debug;

/// Version 1 groups have no word for "no limit"; they show the largest multiple of a page.
const NO_LIMIT: u64 = 1 << 62;
/// The most lines of one plan: more are not the file that we took it for.
const MAX_LINES: usize = 16_384;

/// Which number is no value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AbsentWhen {
    /// None: all are values.
    #[default]
    Never,
    /// One beyond any machine: a limit that does not hold.
    Unlimited,
    /// 0, which says that there is no limit.
    Zero,
}

/// One series of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Which word behind the line's head holds the number, from 0.
    pub word: usize,
    /// The name of the series.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// What the number is multiplied with to have that unit.
    pub scale: u64,
    /// Which number is no value.
    pub absent_when: AbsentWhen,
    /// How often the value is made anew, where that is slow.
    pub refresh_ns: Option<u64>,
}

impl Column {
    /// A counter in the word `word`.
    pub fn counter(word: usize, name: impl Into<String>, unit: &'static str, scale: u64) -> Self {
        Self {
            word,
            name: name.into(),
            unit,
            kind: SeriesKind::Counter,
            scale,
            absent_when: AbsentWhen::Never,
            refresh_ns: None,
        }
    }

    /// A level in the word `word`.
    pub fn gauge(word: usize, name: impl Into<String>, unit: &'static str, scale: u64) -> Self {
        Self { kind: SeriesKind::Gauge, ..Self::counter(word, name, unit, scale) }
    }

    /// The same, absent where it says that there is no limit.
    pub fn absent_when(mut self, absent_when: AbsentWhen) -> Self {
        self.absent_when = absent_when;
        self
    }

    /// The same, with how often the value is made anew.
    pub fn refreshed(mut self, refresh_ns: Option<u64>) -> Self {
        self.refresh_ns = refresh_ns;
        self
    }
}

/// What the lines of a file mean.
pub(super) trait Shape: Debug + Send {
    /// The end of a line's head, its delimiter included, and the part of it that is the key; `None`
    /// for a line without numbers to keep. By default the head is the first word.
    fn head<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], usize)> {
        word_at(line, 0)
    }

    /// The series of a line; none if the line is not kept.
    fn columns(&self, key: &str) -> Vec<Column>;
}

/// The first word at or behind `from`, without a colon at its end, and where it ends.
pub(super) fn word_at(line: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let rest = line.get(from..)?;
    let start = from + rest.iter().position(|byte| !is_blank(*byte))?;
    let length = line[start..].iter().position(|byte| is_blank(*byte))?;
    let word = &line[start..start + length];
    Some((word.strip_suffix(b":").unwrap_or(word), start + length + 1))
}

/// For a file that is one line of numbers: no head at all.
pub(super) fn no_head(_: &[u8]) -> Option<(&[u8], usize)> {
    Some((&[], 0))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// A planned series of a line.
#[derive(Clone, Copy, Debug)]
struct Cell {
    word: usize,
    id: u32,
    scale: u64,
    absent_when: AbsentWhen,
}

/// A planned line.
#[derive(Debug)]
struct Line {
    head: Box<[u8]>,
    key: Box<str>,
    cells: Box<[Cell]>,
    /// How many words it has, where a series was left out for want of one.
    words: Option<usize>,
}

/// A file held open, with its plan.
#[derive(Debug)]
pub(super) struct LineTable<S> {
    reader: ProcFile,
    source: String,
    shape: S,
    lines: Vec<Line>,
    /// The text whose numbers are in the row; empty if they are not.
    last_text: Vec<u8>,
    gone: bool,
}

/// What a new plan changed, by key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Keys with series that were not there before.
    pub added: Vec<String>,
    /// Keys with series that are no longer there.
    pub removed: Vec<String>,
}

impl<S: Shape> LineTable<S> {
    /// Opens the file; `None` where it is not there or may not be read.
    pub fn open(root: &Root, path: impl Into<String>, shape: S) -> Option<Self> {
        let source = path.into();
        Some(Self {
            reader: ProcFile::open(root, &source).ok()?,
            source,
            shape,
            lines: Vec::new(),
            last_text: Vec::new(),
            gone: false,
        })
    }

    /// The path of the file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Puts the numbers of an earlier text of the file into `row`, which is not the one that
    /// readings go to.
    pub fn read_text(&mut self, text: &[u8], registry: &mut Registry, row: &mut Row) {
        if !follow(&self.lines, text, row) {
            self.lines = plan(&self.shape, &self.source, text, registry);
            follow(&self.lines, text, row);
        }
    }

    /// The same with the text of this moment.
    pub fn read_into(&mut self, registry: &mut Registry, row: &mut Row) {
        let text = self.reader.short_lines().map(<[u8]>::to_vec).unwrap_or_default();
        self.read_text(&text, registry, row);
    }

    /// Reads the file into `row`, always the same one; what changed, where the plan had to be
    /// made anew.
    pub fn read(&mut self, registry: &mut Registry, row: &mut Row) -> Option<Change> {
        let Some(text) = self.reader.short_lines() else {
            if !self.gone {
                clear(&self.lines, row);
                self.last_text.clear();
                self.gone = true;
            }
            return None;
        };
        self.gone = false;
        // Most files of an idle group stay the same.
        if !text.is_empty() && text == self.last_text {
            return None;
        }
        self.last_text.clear();
        self.last_text.extend_from_slice(text);
        if follow(&self.lines, text, row) {
            return None;
        }
        let lines = plan(&self.shape, &self.source, text, registry);
        clear(&self.lines, row);
        follow(&lines, text, row);
        let change = compare(&self.lines, &lines);
        self.lines = lines;
        Some(change)
    }
}

/// Puts the numbers of a text into the row; false where it does not keep to the plan.
fn follow(lines: &[Line], mut text: &[u8], row: &mut Row) -> bool {
    for line in lines {
        if !text.starts_with(&line.head) {
            return false;
        }
        if line.head.ends_with(b"\n") {
            text = &text[line.head.len()..];
            continue;
        }
        let end = end_of_line(&text[line.head.len()..]) + line.head.len();
        let rest = &text[line.head.len()..end];
        let words = || Words { line: rest, at: 0 }.count();
        if line.words.is_some_and(|planned| planned != words()) {
            return false;
        }
        if !fill(&line.cells, rest, row) {
            return false;
        }
        text = text.get(end + 1..).unwrap_or_default();
    }
    // Anything behind the last planned line is new; an over-long file stays cut.
    text.is_empty() || lines.len() >= MAX_LINES
}

fn end_of_line(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.unwrap_or(text.len())
}

/// Parses the words of one line into their columns, in the order of the words; returns whether each
/// column has one.
fn fill(cells: &[Cell], line: &[u8], row: &mut Row) -> bool {
    let mut words = Words { line, at: 0 };
    let mut next_word = 0;
    let mut word: Option<&[u8]> = None;
    for cell in cells {
        while next_word <= cell.word {
            word = words.next();
            next_word += 1;
        }
        let Some(word) = word else {
            return false;
        };
        row.set(cell.id, value(word, *cell));
    }
    true
}

/// The words of a line.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut start = self.at;
        while is_blank(*self.line.get(start)?) {
            start += 1;
        }
        let mut end = start;
        while self.line.get(end).is_some_and(|byte| !is_blank(*byte)) {
            end += 1;
        }
        self.at = end;
        Some(&self.line[start..end])
    }
}

/// "123" or "total=123". Anything but a whole number is absent: "max", "-1".
fn value(word: &[u8], cell: Cell) -> i64 {
    let digits = match word.iter().rposition(|byte| *byte == b'=') {
        Some(equals) => &word[equals + 1..],
        None => word,
    };
    match number(digits) {
        Some(number) if cell.absent_when == AbsentWhen::Unlimited && number >= NO_LIMIT => ABSENT,
        Some(0) if cell.absent_when == AbsentWhen::Zero => ABSENT,
        Some(number) => i64::try_from(number.saturating_mul(cell.scale)).unwrap_or(i64::MAX),
        None => ABSENT,
    }
}

/// All digits, or nothing; what is beyond 64 bits is the largest number.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit <= 9).then(|| sum.saturating_mul(10).saturating_add(u64::from(digit)))
    })
}

fn clear(lines: &[Line], row: &mut Row) {
    for cell in lines.iter().flat_map(|line| &line.cells) {
        row.set(cell.id, ABSENT);
    }
}

/// A plan for this text. A line that is not kept is in it too: it keeps its place.
fn plan(shape: &impl Shape, source: &str, text: &[u8], registry: &mut Registry) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && lines.len() < MAX_LINES {
        let end = end_of_line(rest);
        let (line, tail) = rest.split_at((end + 1).min(rest.len()));
        lines.push(plan_line(shape, source, line, registry));
        rest = tail;
    }
    lines
}

fn plan_line(shape: &impl Shape, source: &str, whole: &[u8], registry: &mut Registry) -> Line {
    let line = whole.strip_suffix(b"\n").unwrap_or(whole);
    let Some((key, head)) = shape.head(line) else {
        // Without a key the line is compared whole, its end included.
        return Line {
            head: whole.into(),
            key: Box::default(),
            cells: Box::default(),
            words: None,
        };
    };
    let head = head.min(line.len());
    let key = String::from_utf8_lossy(key).into_owned();
    let words = (Words { line, at: head }).count();
    let mut columns = shape.columns(&key);
    // An older kernel has fewer words on a line: a missing one gets no series.
    let wanted = columns.len();
    columns.retain(|column| column.word < words);
    let left_out = columns.len() < wanted;
    columns.sort_by_key(|column| column.word);
    let cell = |column: &Column| {
        let id = registry.id_refreshed(
            &column.name,
            column.unit,
            column.kind,
            source,
            column.refresh_ns,
        )?;
        Some(Cell { word: column.word, id, scale: column.scale, absent_when: column.absent_when })
    };
    Line {
        head: line[..head].into(),
        cells: columns.iter().filter_map(cell).collect(),
        key: key.into(),
        words: left_out.then_some(words),
    }
}

fn compare(before: &[Line], after: &[Line]) -> Change {
    let without = |lines: &[Line], others: &[Line]| {
        let wanted = lines.iter().filter(|line| !line.cells.is_empty());
        let missing = wanted.filter(|line| {
            !others.iter().any(|other| other.key == line.key && !other.cells.is_empty())
        });
        missing.map(|line| line.key.to_string()).collect()
    };
    Change { added: without(after, before), removed: without(before, after) }
}

#[cfg(test)]
mod tests;
