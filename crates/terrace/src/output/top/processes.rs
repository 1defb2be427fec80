//! The table of processes beneath the findings: who is running, waiting, reading, and how much, in
//! the second that is looked at.
//!
//! Narrow screens drop columns in the order of their importance, never the one that is sorted by.
//! Processes without room are summed up in the last row, so that the rows add up.

use super::usage::{ProcessRates, rates};
use super::values::short;
use super::{Glyphs, KeyAction, Scene};
use crate::output::clean::escaped;
use crate::output::figure::{self, Digits};
use crate::output::prose::long_time;
use crate::output::style::{Tone, Toned};
use crate::output::table::length;
use crate::output::verdict::shortened;
use model::recording::{GroupName, Process, ProcessFigure};
use std::cmp::Ordering;
use viewer::who::{is_rest, unwatched};

/// The table is of this time before the moment that is looked at, or of one column where that is
/// longer: a process that used anything has a row a second.
const WINDOW_NS: u64 = 2_000_000_000;

/// From this many lines on there is one that says what the table is of.
const ROOM_FOR_TITLE: usize = 8;

/// The least columns of the name of a unit or group.
const GROUP_WIDTH: usize = 14;

/// The most letters of a filter: names of processes have fifteen.
const FILTER_MAX: usize = 40;

/// A column of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessColumn {
    Pid,
    Name,
    #[default]
    Cpu,
    Queue,
    BlockWait,
    Read,
    Written,
    Faults,
    Refaulted,
    SwappedIn,
    Memory,
    Growth,
    User,
    Group,
}

use ProcessColumn as Column;

impl ProcessColumn {
    /// All of them, from left to right.
    pub const ALL: [Self; 14] = [
        Self::Pid,
        Self::Name,
        Self::Cpu,
        Self::Queue,
        Self::BlockWait,
        Self::Read,
        Self::Written,
        Self::Faults,
        Self::Refaulted,
        Self::SwappedIn,
        Self::Memory,
        Self::Growth,
        Self::User,
        Self::Group,
    ];

    /// All of them, the most important one first.
    const BY_IMPORTANCE: [Self; 14] = [
        Self::Name,
        Self::Cpu,
        Self::Memory,
        Self::Read,
        Self::BlockWait,
        Self::Written,
        Self::Pid,
        Self::Group,
        Self::Queue,
        Self::Growth,
        Self::Refaulted,
        Self::Faults,
        Self::SwappedIn,
        Self::User,
    ];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Name => "process",
            Self::Cpu => "CPU",
            Self::Queue => "run queue",
            Self::BlockWait => "block wait",
            Self::Read => "read/s",
            Self::Written => "written/s",
            Self::Faults => "faults/s",
            Self::Refaulted => "refaults/s",
            Self::SwappedIn => "swap-ins/s",
            Self::Memory => "memory",
            Self::Growth => "growth/s",
            Self::User => "user",
            Self::Group => "unit or group",
        }
    }

    /// Its columns on the screen, without the space before it; room for the mark of sorting.
    const fn width(self) -> usize {
        match self {
            Self::Pid => 7,
            Self::Name => 15,
            Self::Cpu => 6,
            Self::User => 6,
            Self::Group => GROUP_WIDTH,
            Self::Memory | Self::Growth | Self::Faults => 9,
            Self::BlockWait | Self::Refaulted | Self::SwappedIn => 11,
            Self::Read => 8,
            Self::Queue | Self::Written => 10,
        }
    }

    const fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::Group)
    }

    /// The column `by` places to the right of this one, around the ends.
    pub fn moved(self, by: isize) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        let next = (at + count).saturating_add_signed(by) % count;
        Self::ALL[next]
    }
}

/// How the table is ordered, and what it leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessChoice {
    pub sort: ProcessColumn,
    /// The smallest first of numbers, the last in the alphabet first of names.
    pub is_reversed: bool,
    /// Only names and groups that contain this, of any case.
    pub filter: String,
    /// Whether the filter is being typed.
    pub is_typing: bool,
}

impl ProcessChoice {
    /// Performs an action of the table.
    pub fn apply(&mut self, action: KeyAction) {
        match action {
            KeyAction::SortLeft => self.sort = self.sort.moved(-1),
            KeyAction::SortRight => self.sort = self.sort.moved(1),
            KeyAction::Reverse => self.is_reversed = !self.is_reversed,
            KeyAction::Filter => self.is_typing = true,
            KeyAction::Letter(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(letter);
            }
            KeyAction::Erase => {
                self.filter.pop();
            }
            KeyAction::FilterKept => self.is_typing = false,
            KeyAction::FilterDropped => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
    }
}

/// The table in at most `room` lines; one line where processes were not watched.
pub fn lines(scene: &Scene<'_>, room: usize) -> Vec<Toned> {
    let recording = scene.recording;
    let width = scene.size.width;
    if room == 0 {
        return Vec::new();
    }
    if let Some(why) = unwatched(&recording.who, &recording.facts) {
        return vec![vec![(Tone::Unknown, shortened(&format!(" {why}"), width.saturating_sub(1)))]];
    }
    let (from_ns, to_ns) = window(scene);
    let all = rates(&recording.who, from_ns, to_ns);
    let choice = &scene.cursor.processes;
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| is_named(one, &choice.filter));
    named.sort_by(|a, b| ordered(a, b, choice));
    let has_title = room >= ROOM_FOR_TITLE || !choice.filter.is_empty() || choice.is_typing;
    let head = if has_title { 2 } else { 1 };
    let left = room.saturating_sub(head);
    // The last line is that of the others, where there are any.
    let fits = if named.len() <= left && others.is_empty() { left } else { left.saturating_sub(1) };
    let (found, count) = (named.len(), named.len() + others.len());
    others.extend(named.split_off(named.len().min(fits)));
    let columns = fitting(width, choice.sort);
    let mut lines = Vec::new();
    if has_title {
        lines.push(title(scene, (from_ns, to_ns), found, count));
    }
    lines.push(heading(&columns, choice, scene.glyphs));
    lines.extend(named.iter().map(|one| row(one, &columns)));
    if !others.is_empty() && lines.len() < room {
        lines.push(row(&ProcessRates::sum(&others), &columns));
    }
    lines.truncate(room);
    lines
}

/// What the table is of: from and to.
fn window(scene: &Scene<'_>) -> (u64, u64) {
    let (cursor, extent) = (scene.cursor, &scene.extent);
    match (cursor.at_ns, extent.is_live) {
        (None, false) => (extent.first_ns, extent.last_ns),
        (at_ns, _) => {
            let to_ns = at_ns.unwrap_or(extent.last_ns).min(extent.last_ns);
            let window_ns = WINDOW_NS.max(cursor.column_ns(extent));
            let from_ns = to_ns.saturating_sub(window_ns).max(extent.first_ns);
            (from_ns, to_ns.max(from_ns + 1))
        }
    }
}

/// Whether it is a process that the filter keeps.
fn is_named(one: &ProcessRates<'_>, filter: &str) -> bool {
    let contains = |text: &str| text.to_lowercase().contains(&filter.to_lowercase());
    let process = one.process.filter(|process| !is_rest(process));
    process.is_some_and(|process| contains(&process.name) || contains(&process.group))
}

fn ordered(a: &ProcessRates<'_>, b: &ProcessRates<'_>, choice: &ProcessChoice) -> Ordering {
    let text = |one: &ProcessRates<'_>| match (one.process, choice.sort) {
        (Some(process), Column::Name) => process.name.to_lowercase(),
        (Some(process), Column::Group) => unit_of(&process.group).to_lowercase(),
        _ => String::new(),
    };
    let order = if choice.sort.is_text() {
        text(a).cmp(&text(b))
    } else {
        let value = |one| value(one, choice.sort).unwrap_or(f64::NEG_INFINITY);
        value(b).total_cmp(&value(a))
    };
    let chosen = if choice.is_reversed { order.reverse() } else { order };
    // Equals keep their places from one picture to the next.
    let id = |one: &ProcessRates<'_>| one.process.map_or(u32::MAX, |process| process.id);
    chosen.then(id(a).cmp(&id(b)))
}

/// The number in a column; shares are 1 for one whole processor or thread.
fn value(one: &ProcessRates<'_>, column: Column) -> Option<f64> {
    use ProcessFigure as Figure;
    let process = one.process;
    Some(match column {
        Column::Pid => f64::from(process?.pid),
        Column::User => f64::from(process?.user),
        Column::Cpu => one.get(Figure::Cpu) / 1e9,
        Column::Queue => one.get(Figure::Queue) / 1e9,
        Column::BlockWait => one.get(Figure::BlockWait) / 1e9,
        Column::Read => one.get(Figure::ReadBytes),
        Column::Written => one.get(Figure::WrittenBytes),
        Column::Faults => one.get(Figure::MajorFaults) + one.get(Figure::MinorFaults),
        Column::Refaulted => one.get(Figure::Refaulted),
        Column::SwappedIn => one.get(Figure::SwappedIn),
        Column::Memory => return one.memory_bytes,
        Column::Growth => return one.growth_bytes_per_s,
        Column::Name | Column::Group => return None,
    })
}

/// The unit or container that a control group belongs to, else its path.
fn unit_of(group: &str) -> String {
    GroupName::of(group).map(|name| name.text).unwrap_or_default()
}

/// The columns that fit, from left to right, each with its width: the last one takes what is left.
fn fitting(width: usize, sort: Column) -> Vec<(Column, usize)> {
    let mut left = width.saturating_sub(1);
    let mut kept = Vec::new();
    let order = std::iter::once(sort).chain(Column::BY_IMPORTANCE);
    for column in order {
        let needed = column.width() + 1;
        if !kept.contains(&column) && needed <= left {
            kept.push(column);
            left -= needed;
        }
    }
    let columns = Column::ALL.into_iter().filter(|column| kept.contains(column));
    // Names of units are long: they take what no other column needs, else the name does.
    let wide = if kept.contains(&Column::Group) { Column::Group } else { Column::Name };
    columns.map(|it| (it, it.width() + if it == wide { left } else { 0 })).collect()
}

fn title(scene: &Scene<'_>, (from_ns, to_ns): (u64, u64), found: usize, count: usize) -> Toned {
    let choice = &scene.cursor.processes;
    let time = long_time((to_ns - from_ns) / 100_000_000 * 100_000_000);
    let mut words = format!(" Processes in {time}: {count}");
    if choice.is_typing || !choice.filter.is_empty() {
        let filter = escaped(&choice.filter);
        let mark = if choice.is_typing { "_" } else { "" };
        words.push_str(&format!(", {found} with \"{filter}{mark}\" in their name or group"));
    }
    vec![(Tone::Dim, shortened(&words, scene.size.width.saturating_sub(1)))]
}

fn heading(columns: &[(Column, usize)], choice: &ProcessChoice, glyphs: Glyphs) -> Toned {
    let cells = columns.iter().flat_map(|(column, width)| {
        let is_sorted = *column == choice.sort;
        let mark = match (is_sorted, choice.is_reversed) {
            (true, is_reversed) => glyphs.sort_sign(is_reversed != column.is_text()),
            (false, _) => "",
        };
        let tone = if is_sorted { Tone::Strong } else { Tone::Dim };
        let text = format!("{}{mark}", column.title());
        [(Tone::Plain, " ".to_owned()), (tone, placed(&text, *column, *width))]
    });
    cells.collect()
}

/// ` 4711 chrome         123 %    1.2 GiB  ...`
fn row(one: &ProcessRates<'_>, columns: &[(Column, usize)]) -> Toned {
    let cells = columns.iter().flat_map(|(column, width)| {
        let text = cell(one, *column);
        let tone = match (one.process, &*text) {
            (None, _) | (_, "0" | "-") => Tone::Dim,
            _ => Tone::Plain,
        };
        [(Tone::Plain, " ".to_owned()), (tone, placed(&text, *column, *width))]
    });
    cells.collect()
}

/// `text` in exactly so many columns: names at the left, numbers at the right.
fn placed(text: &str, column: Column, width: usize) -> String {
    let text = shortened(text, width);
    let fill = " ".repeat(width.saturating_sub(length(&text)));
    if column.is_text() { text + &fill } else { fill + &text }
}

fn cell(one: &ProcessRates<'_>, column: Column) -> String {
    let Some(process) = one.process else {
        return match column {
            Column::Name if one.count == 1 => "1 other".to_owned(),
            Column::Name => format!("{} others", one.count),
            Column::Pid | Column::User | Column::Group => String::new(),
            _ => number(one, column),
        };
    };
    match column {
        Column::Pid if process.is_many => "-".to_owned(),
        Column::Pid => process.pid.to_string(),
        Column::User => process.user.to_string(),
        Column::Name => name_of(process, one.count),
        Column::Group if process.is_kernel => "(kernel)".to_owned(),
        Column::Group => escaped(&unit_of(&process.group)).into_owned(),
        _ => number(one, column),
    }
}

fn name_of(process: &Process, count: u64) -> String {
    let name = escaped(&process.name);
    if process.is_many { format!("{name} ({count})") } else { name.into_owned() }
}

fn number(one: &ProcessRates<'_>, column: Column) -> String {
    let Some(value) = value(one, column) else {
        return "-".to_owned();
    };
    match column {
        Column::Cpu | Column::Queue | Column::BlockWait if value < 0.0005 => "0".to_owned(),
        Column::Cpu | Column::Queue | Column::BlockWait => figure::percent(value),
        Column::Faults if value < 0.5 => "0".to_owned(),
        Column::Faults => short(value),
        _ if value.abs() < 1.0 => "0".to_owned(),
        Column::Memory => figure::binary_size(value as u64, Digits::Two),
        Column::Growth => {
            let sign = if value < 0.0 { '-' } else { '+' };
            format!("{sign}{}", figure::binary_size(value.abs() as u64, Digits::Two))
        }
        _ => figure::decimal_size(value, Digits::Two),
    }
}
