//! The verdict: where the time went, in about ten lines that a stranger understands; and
//! in detail both bars with their numbers, everything inside of them, and all evidence.
//!
//! Pure: an [`Explanation`] and a page become text. The page adds no figure that the JSON
//! lacks. Which bar is shown: the command's wall time where at most one of its
//! threads was busy at a time, else the time of all its threads, and it says so.

mod bar;
mod causes;
mod details;
mod moments;
mod remedies;
mod repeats;
#[cfg(test)]
mod tests;
mod usage;

pub use bar::lines as bar_lines;
pub use causes::{claim_words, cleared_words};
pub use remedies::factor;
pub use repeats::{Repeat, median_of, repeats};

use super::Page;
use super::clean::spaced;
use super::figure;
use super::prose::{count, indented, long_time, rate};
use super::style::Tone;
use super::survey::Detail;
use super::table::{length, tied};
use model::Grade;
use model::doctor::{DOCTOR, POINTER};
use model::explanation::{Explanation, Slice, TimeSlice, short_words};

/// Threads count as one at a time while they were busy at most this much longer than the
/// clock: 5 % is less than one cell in ten of a bar.
const ONE_AT_A_TIME: f64 = 1.05;

/// Below this share the unexplained part is not worth a line: the issue of rounding.
const WORTH_A_LINE: f64 = 0.03;

/// Below this a share of a core says nothing: watching has a price of its own to begin and end,
/// seen to be 0.1 to 0.3 s where there are many events to switch on.
const LEAST_FOR_A_SHARE_NS: u64 = 10_000_000_000;

/// What a page needs to know that is not part of the explanation.
#[derive(Clone, Debug, Default)]
pub struct VerdictSetting {
    /// What stands at the top: `terrace`, `terrace explain: make -j2`.
    pub title: String,
    /// Whether the recorder was root.
    pub root: bool,
    /// Whether names in the recording were replaced, so that a reader does not search for `arg-1`.
    pub redacted: bool,
    /// The recording's file, as a word of a command line; empty of one that is in memory only.
    pub file: String,
    /// How to see all of it, as words that follow "Details:"; empty where this is all.
    pub details: String,
}

pub fn page(
    explanation: &Explanation,
    setting: &VerdictSetting,
    detail: Detail,
    page: Page,
) -> String {
    let mut text = header(explanation, setting, page);
    text.push_str(&contradicted(explanation, page));
    text.push_str(&moments::lines(explanation, setting, detail, page));
    match detail {
        Detail::Brief => {
            text.push_str(&one_bar(explanation, page));
            text.push_str(&work(explanation, page));
            text.push_str(&copy(explanation, page));
            text.push_str(&server(explanation, page));
            text.push_str(&unknown(explanation, setting, page));
            text.push_str(&causes::brief(explanation, page));
        }
        Detail::Full => {
            text.push_str(&details::bars(explanation, page));
            text.push_str(&work(explanation, page));
            text.push_str(&copy(explanation, page));
            text.push_str(&server(explanation, page));
            text.push_str(&unknown(explanation, setting, page));
            text.push_str(&causes::full(explanation, page));
            text.push_str(&usage::full(explanation, page));
            text.push_str(&details::rest(explanation, page));
        }
    }
    text.push_str(&covered(explanation, page));
    text.push_str(&doubts(explanation, page));
    text.push_str(&redacted(setting, page));
    text.push_str(&cost(explanation, setting, page));
    text
}

/// `-- terrace ------- 41.3 s, exit 0`; on narrow pages the end stands on its own line.
fn header(explanation: &Explanation, setting: &VerdictSetting, page: Page) -> String {
    let room = page.width.saturating_sub(1);
    let end = match explanation.ending.as_str() {
        "" => long_time(explanation.wall_ns),
        ending => format!("{}, {ending}", long_time(explanation.wall_ns)),
    };
    let taken = length(&end) + "-- ".len() + " -- ".len();
    let title = shortened(&setting.title, room.saturating_sub(taken).max(12));
    let start = format!("-- {title} ");
    let rule = room.checked_sub(length(&start) + length(&end) + 1);
    match rule.filter(|rule| *rule >= 2) {
        Some(rule) => {
            let line = format!("{start}{}", "-".repeat(rule));
            format!("{} {end}\n", page.style.paint(Tone::Strong, &line))
        }
        None => {
            let line = page.style.paint(Tone::Strong, start.trim_end());
            format!("{line}\n{}", paragraph(&end, Tone::Plain, page))
        }
    }
}

/// `Work: 25,600 xact_commit a second (204,800 in all).`
fn work(explanation: &Explanation, page: Page) -> String {
    let Some(work) = &explanation.work else {
        return String::new();
    };
    let (rate, all) = (tied(&rate(work.per_s)), tied(&count(work.amount)));
    let line = format!("Work: {rate} {} a second ({all} in all).", work.name);
    paragraph(&line, Tone::Plain, page)
}

/// How the copy went, a line for each sentence.
fn copy(explanation: &Explanation, page: Page) -> String {
    let lines = explanation.copy.iter().flat_map(|copy| &copy.lines);
    let shown = lines.enumerate().map(|(at, line)| match at {
        0 => paragraph(&format!("Copy: {}", continued(line)), Tone::Strong, page),
        _ => paragraph(line, Tone::Plain, page),
    });
    shown.collect()
}

/// The one bar of a brief page, with lines above it where it needs an introduction.
fn one_bar(explanation: &Explanation, page: Page) -> String {
    let bars = &explanation.bars;
    let is_machine = of_processors(&bars.thread);
    let clock_alone = one_at_a_time(explanation) && !is_machine;
    let slices = if clock_alone { &bars.wall } else { &bars.thread };
    let drawn = bar::render(slices, page);
    if drawn.trim().is_empty() {
        return paragraph("No time was recorded.", Tone::Plain, page);
    }
    let mut lines = Vec::new();
    if clock_alone && inferred(slices) {
        lines.push("Wall time, inferred from samples:".to_owned());
    } else if !clock_alone {
        let how = if inferred(slices) { ", inferred" } else { "" };
        let whole = long_time(explanation.thread_ns);
        lines.extend(idle(explanation).or_else(|| wall_time(&bars.wall)));
        lines.push(if is_machine {
            format!("All processors together, {whole} of processor time{how}:")
        } else {
            format!("All threads together, {whole} of thread time{how}:")
        });
    }
    let lines = lines.iter().map(|line| paragraph(line, Tone::Dim, page));
    format!("{}{drawn}", lines.collect::<String>())
}

/// Whether a bar is of processors, as that of a whole machine is: no thread is idle.
pub fn of_processors(slices: &[Slice]) -> bool {
    let theirs = [TimeSlice::Idle, TimeSlice::Steal];
    slices.iter().any(|slice| theirs.iter().any(|of| slice.name == *of))
}

/// From this share on a machine was idle. Picked: the rest is what services and the recorder need.
const MOSTLY_IDLE: f64 = 0.9;

/// `The machine was idle: 97 % of its processors' time`; `None` where it was not.
pub fn idle(explanation: &Explanation) -> Option<String> {
    let slices = &explanation.bars.thread;
    let idle = slices.iter().find(|slice| slice.name == TimeSlice::Idle)?;
    let share = idle.ns as f64 / explanation.thread_ns.max(1) as f64;
    (share >= MOSTLY_IDLE).then(|| {
        let percent = tied(&figure::percent(share));
        format!("The machine was idle: {percent} of its processors' time.")
    })
}

/// `Wall time: CPU 97%, sleep 3%`; `None` where that bar is empty.
fn wall_time(wall: &[Slice]) -> Option<String> {
    let lengths: Vec<u64> = wall.iter().map(|slice| slice.ns).collect();
    let shares = bar::percentages(&lengths).into_iter().zip(wall);
    let named: Vec<String> = shares
        .filter(|(share, _)| *share > 0)
        .map(|(share, slice)| tied(&format!("{} {share}%", short_words(&slice.name))))
        .collect();
    (!named.is_empty()).then(|| format!("Wall time: {}", named.join(", ")))
}

/// Whether at most one thread was busy at a time, so that wall time shows all.
pub fn one_at_a_time(explanation: &Explanation) -> bool {
    let busy = |slices: &[Slice]| -> u64 {
        let busy = [TimeSlice::Run, TimeSlice::Queue, TimeSlice::BlockIo];
        let is_busy = |slice: &&Slice| busy.iter().any(|of| slice.name == *of);
        slices.iter().filter(is_busy).fold(0, |sum, slice| sum.saturating_add(slice.ns))
    };
    let (thread, wall) = (&explanation.bars.thread, &explanation.bars.wall);
    if thread.is_empty() || wall.is_empty() {
        return thread.is_empty();
    }
    busy(thread) as f64 <= busy(wall) as f64 * ONE_AT_A_TIME
}

/// Whether any part of a bar is less than measured.
pub fn inferred(slices: &[Slice]) -> bool {
    let unsure =
        |slice: &Slice| slice.grade != Grade::Measured && slice.name != TimeSlice::Unexplained;
    slices.iter().any(|slice| slice.ns > 0 && unsure(slice))
}

/// The server that the command waited for, and how it is watched.
fn server(explanation: &Explanation, page: Page) -> String {
    let line = explanation.server.as_ref().map(|server| {
        format!("{}. What it does meanwhile: {}", spaced(&server.text), tied(&server.command))
    });
    line.map_or_else(String::new, |line| paragraph(&line, Tone::Strong, page))
}

/// What is said about a large part that nothing has measured.
fn unknown(explanation: &Explanation, setting: &VerdictSetting, page: Page) -> String {
    let share = unexplained(explanation);
    if share < WORTH_A_LINE {
        return String::new();
    }
    let percent = figure::percent(share);
    let what = format!("Unexplained, {percent}: cause cannot be seen");
    let why = tied(POINTER);
    let mut unseen = explanation.unseen.iter();
    let remedy = unseen.find_map(|unseen| unseen.remedy.as_ref());
    let line = match remedy {
        Some(_) if !setting.root => format!("{what}; sudo shows it, {} why.", tied(DOCTOR)),
        Some(remedy) => format!("{what} ({why}). To see it: {}", tied(remedy)),
        None => format!("{what} here ({why})."),
    };
    paragraph(&line, Tone::Unknown, page)
}

/// The share of the shown bar that nothing has measured.
fn unexplained(explanation: &Explanation) -> f64 {
    let is_machine = of_processors(&explanation.bars.thread);
    let (slices, whole_ns) = if one_at_a_time(explanation) && !is_machine {
        (&explanation.bars.wall, explanation.wall_ns)
    } else {
        (&explanation.bars.thread, explanation.thread_ns)
    };
    let slice = slices.iter().find(|slice| slice.name == TimeSlice::Unexplained);
    slice.map_or(0.0, |slice| slice.ns as f64 / whole_ns.max(1) as f64)
}

/// The sentence for no findings: only what was seen can stand out.
pub fn nothing(explanation: &Explanation) -> &'static str {
    if unexplained(explanation) < WORTH_A_LINE {
        "Nothing stood out."
    } else {
        "Nothing stood out of what can be seen."
    }
}

/// Findings that account for less than this part of the time account for none of it: it is shown
/// as 0 %.
const LEAST_COVERED: f64 = 0.005;

/// The share of the wall time outside user code that the findings account for. Nothing is said
/// where that is none of it: the bar says what was not seen, and how much.
fn covered(explanation: &Explanation, page: Page) -> String {
    let share = explanation.covered.filter(|share| *share >= LEAST_COVERED);
    let line = share.map(|share| {
        let percent = format!("{:.0} %", share * 100.0);
        format!("The findings account for {} of the wall time outside user code.", tied(&percent))
    });
    line.map_or_else(String::new, |line| paragraph(&line, Tone::Plain, page))
}

/// Where sources contradict each other and nothing decides: before all else.
fn contradicted(explanation: &Explanation, page: Page) -> String {
    let mut open = explanation.contradictions.iter().filter(|one| one.believed.is_none());
    let Some(first) = open.next() else { return String::new() };
    let mut line = format!("Sources contradict each other: {}.", first.text);
    let more = open.count();
    if more > 0 {
        line.push_str(&format!(" So do {} more.", count(more as u64)));
    }
    let rests = if first.lowered.is_empty() { "" } else { " What rests on them is inferred." };
    line.push_str(rests);
    if let Some(remedy) = &first.remedy {
        line.push_str(&format!(" To decide it: {}", tied(remedy)));
    }
    paragraph(&line, Tone::Warn, page)
}

/// Why the numbers deserve less trust than usual; always said.
fn doubts(explanation: &Explanation, page: Page) -> String {
    let doubts = explanation.doubts.iter();
    doubts.map(|doubt| paragraph(&format!("Doubt: {doubt}"), Tone::Warn, page)).collect()
}

/// That names are stand-ins: no reason to trust a number less.
fn redacted(setting: &VerdictSetting, page: Page) -> String {
    let line =
        if setting.redacted { "Names of commands, paths and users were replaced." } else { "" };
    paragraph(line, Tone::Dim, page)
}

/// `Watching cost 0.3 % of a core.   Details: terrace explain x.trec`
fn cost(explanation: &Explanation, setting: &VerdictSetting, page: Page) -> String {
    let share = explanation.watching.core_share;
    let cost = share.map(|share| match explanation.wall_ns {
        // A share of so little time would be that of opening and closing.
        ..LEAST_FOR_A_SHARE_NS => {
            let spent_ns = share * explanation.wall_ns as f64;
            let time = figure::time(spent_ns, figure::Digits::Two);
            format!("Watching cost {time} of processor time.")
        }
        _ => format!("Watching cost {} of a core.", figure::percent(share)),
    });
    let more = match setting.details.as_str() {
        "" => None,
        // A command is for copying, so it is not broken.
        command if command.starts_with("terrace ") => Some(tied(&format!("Details: {command}"))),
        words => Some(format!("Details: {words}")),
    };
    let gap = tied("  ");
    let parts = [cost.map(|cost| tied(&cost)), more];
    let words: Vec<String> = parts.into_iter().flatten().collect();
    let one_line = words.join(&format!("{gap} "));
    if length(&one_line) + 1 < page.width {
        return paragraph(&tied(&one_line), Tone::Dim, page);
    }
    let lines = words.iter();
    lines.map(|line| paragraph(line, Tone::Dim, page)).collect()
}

/// `text` below the margin, wrapped, with a line end; nothing for nothing.
fn paragraph(text: &str, tone: Tone, page: Page) -> String {
    indented(text, tone, 1, 5, page)
}

/// `text` in at most `room` columns, its end cut off.
pub fn shortened(text: &str, room: usize) -> String {
    // A command line may hold line ends and worse; the page stays a page.
    let clean = spaced(text);
    if length(&clean) <= room {
        return clean.into_owned();
    }
    let kept: String = clean.chars().take(room.saturating_sub(2)).collect();
    format!("{}..", kept.trim_end())
}

/// The same sentence inside of another one: without its capital, unless it starts with an
/// abbreviation (CPU, I/O) or a name.
fn continued(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let (first, second) = (letters.next(), letters.clone().next());
    match first.filter(|_| second.is_some_and(|letter| letter.is_lowercase() || letter == ' ')) {
        Some(first) => format!("{}{}", first.to_lowercase(), letters.as_str()),
        None => sentence.to_owned(),
    }
}
