//! The lines around the picture: whose it is, which moment is looked at and what goes on meanwhile,
//! what an ordinary user cannot see, the keys.

use super::findings::hanging;
use super::{Glyphs, Scene};
use crate::output::figure;
use crate::output::prose::long_time;
use crate::output::style::{Tone, Toned};
use crate::output::table::{length, wrap};
use crate::output::verdict::shortened;
use model::doctor::POINTER;
use model::duration::SECOND_NS;
use model::explanation::{Explanation, StandingOut};

const DAY_S: i64 = 86_400;

/// The columns of a key in the help.
const KEY_WIDTH: usize = 16;

/// The most lines that say what cannot be seen.
const UNSEEN_LINES: usize = 2;

/// ` terrace top: the whole machine                                    14:32:05`
pub fn title(scene: &Scene<'_>) -> Toned {
    let subject = scene.explanation.map_or("", |explanation| &explanation.subject);
    let whose = match (scene.file, subject) {
        (Some(file), "") => file.to_owned(),
        (Some(file), subject) => format!("{file}: {subject}"),
        (None, subject) => subject.to_owned(),
    };
    let clock = clock(scene, scene.cursor.at_ns.unwrap_or(scene.extent.last_ns));
    let left = format!(" terrace top: {whose}");
    let (left, right) = ((Tone::Strong, &*left), (Tone::Plain, &*clock));
    both_ends(left, right, scene.size.width)
}

/// Which moment is looked at, and how to come back to now.
pub fn state(scene: &Scene<'_>) -> Toned {
    let (extent, cursor) = (&scene.extent, scene.cursor);
    let window_ns =
        cursor.window(extent).map_or(extent.last_ns, |(from_ns, to_ns)| to_ns - from_ns);
    let window = long_time(window_ns / (SECOND_NS / 10) * (SECOND_NS / 10));
    let (tone, long, short) = match (cursor.at_ns, extent.is_live) {
        (None, true) if window_ns == 0 => (Tone::Busy, "live".to_owned(), "live".to_owned()),
        (None, true) => {
            let long = format!("live: the last {window}");
            (Tone::Busy, long, "live".to_owned())
        }
        (None, false) => {
            let all = format!("{}: all of {window}", ending(scene));
            (Tone::Plain, all.clone(), all)
        }
        (Some(at_ns), true) => {
            let ago = long_time(extent.last_ns.saturating_sub(at_ns) / SECOND_NS * SECOND_NS);
            let long = format!("{ago} ago, the {window} before it. Live goes on; End returns");
            (Tone::Warn, long, format!("{ago} ago; End: now"))
        }
        (Some(at_ns), false) => {
            let at = long_time(at_ns.min(extent.last_ns));
            let long = format!("at {at}, the {window} before it. End: all of it");
            (Tone::Warn, long, format!("at {at}; End: all"))
        }
    };
    let share = scene.explanation.and_then(|it| it.watching.core_share);
    let cost = share
        .map_or(String::new(), |share| format!("watching: {} of a core", figure::percent(share)));
    let width = scene.size.width;
    let words = if length(&long) + 1 < width { long } else { short };
    both_ends((tone, &format!(" {words}")), (Tone::Dim, &cost), width)
}

/// The moment that is looked at, else how many there are; nothing where nothing stood out.
pub fn moments(scene: &Scene<'_>) -> Option<Toned> {
    let first = scene.moments.first()?;
    let looked_at = scene.cursor.of_moments(scene.moments, &scene.extent);
    let (tone, text) = match (looked_at, scene.moments.len()) {
        (Some(moment), _) => (Tone::Warn, in_short(moment)),
        (None, 1) => (Tone::Plain, format!("Stood out (m goes there): {}", in_short(first))),
        (None, many) => {
            let times: Vec<&str> = scene.moments.iter().map(|it| it.time.as_str()).collect();
            let when = times.join(", ");
            (Tone::Plain, format!("{many} moments stood out (m goes to the next): {when}"))
        }
    };
    let room = scene.size.width.saturating_sub(1);
    Some(vec![(tone, format!(" {}", shortened(&text, room)))])
}

/// `14:32:05, 12 s: Waited 3 s for reads`
fn in_short(moment: &StandingOut) -> String {
    let lasted = long_time(moment.to_ns.saturating_sub(moment.from_ns));
    let unusual = moment.figures.first().map_or("", |figure| figure.title.as_str());
    let what = if moment.claim.is_empty() { unusual } else { &moment.claim };
    format!("{}, {lasted}: {}", moment.time, what.trim_end_matches('.'))
}

/// How a recording ended: `exit 0`.
fn ending<'a>(scene: &Scene<'a>) -> &'a str {
    let ending = scene.explanation.map(|it| it.ending.as_str());
    ending.filter(|text| !text.is_empty()).unwrap_or("ended")
}

/// What cannot be seen, by its names.
pub fn unseen(explanation: &Explanation, width: usize) -> Vec<Toned> {
    let unseen = explanation.unseen.iter();
    let names: Vec<String> = unseen.map(|unseen| unseen.what.replace('_', " ")).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let text = format!("Cannot be seen without root ({POINTER}): {}", names.join(", "));
    hanging(Tone::Unknown, &text, width).take(UNSEEN_LINES).collect()
}

/// What the keys do, and what cannot be seen with the reasons.
pub fn help(scene: &Scene<'_>) -> Vec<Toned> {
    let keys = [
        ("left right, h l", "one column of time back and on"),
        ("PgUp PgDn", "half a screen back and on"),
        ("Home End", "the oldest moment, the newest one"),
        ("up down, k j", "the finding whose evidence is shown"),
        ("space", "stop here, and go on"),
        ("m", "the next moment that stood out, of a recording that has ended"),
        ("Tab", "the lanes of one question after the other, then all"),
        ("+ -", "less time in a column, more"),
        ("< >", "processes by the column to the left, to the right"),
        ("r", "the smallest first, the largest first"),
        ("/", "processes by name or group: letters, then Enter; Esc: all again"),
        ("p", "processes alone, lanes alone, both"),
        ("?", "these words, and back"),
        ("q Esc Ctrl-C", "the end"),
    ];
    let room = scene.size.width.saturating_sub(KEY_WIDTH + 2);
    let mut lines = vec![Toned::new()];
    for (key, does) in keys {
        for (number, does) in wrap(does, room, 0).lines().enumerate() {
            let name = if number == 0 { key } else { "" };
            let cell = format!(" {name:<KEY_WIDTH$}");
            lines.push(vec![(Tone::Strong, cell), (Tone::Plain, does.to_owned())]);
        }
    }
    let unseen = scene.explanation.iter().flat_map(|it| &it.unseen);
    let gaps = unseen.map(|it| format!("Not seen: {}: {}", it.what.replace('_', " "), it.why));
    let doubts = scene.explanation.iter().flat_map(|it| &it.doubts);
    let contradictions = scene.explanation.iter().flat_map(|it| &it.contradictions);
    let open = contradictions.filter(|one| one.believed.is_none());
    let contradicted = open.map(|one| format!("Sources contradict each other: {}", one.text));
    lines.push(Toned::new());
    let doubts = doubts.map(|doubt| format!("Doubt: {doubt}"));
    for text in contradicted.chain(gaps).chain(doubts) {
        lines.extend(hanging(Tone::Dim, &text, scene.size.width));
    }
    lines
}

/// The keys that fit on the last line, the most useful first.
pub fn keys(scene: &Scene<'_>) -> Toned {
    let (time, finding) = match scene.glyphs {
        Glyphs::Ascii => ("<- -> time", "up down finding"),
        Glyphs::Blocks => ("← → time", "↑ ↓ finding"),
    };
    let is_paused = scene.cursor.at_ns.is_some();
    let pause = if is_paused { "End now" } else { "space pause" };
    let selected = scene.cursor.question.and_then(|it| scene.questions.get(it));
    let question = selected.map_or("Tab question", |question| question.title.as_str());
    let mut line = String::new();
    let typing = ["Enter keep", "Esc all processes", "Backspace"];
    let usual = [
        "q quit", "? help", time, finding, pause, "< > sort", "/ filter", "p panes", question,
        "+ - zoom",
    ];
    let is_typing = scene.cursor.processes.is_typing;
    let keys: &[&str] = if is_typing { &typing } else { &usual };
    for words in keys {
        if length(&line) + length(words) + 3 > scene.size.width {
            break;
        }
        line.push_str(&format!(" {words} "));
    }
    vec![(Tone::Dim, line.trim_end().to_owned())]
}

/// The time of day of a moment, by the clock of the machine that was recorded.
fn clock(scene: &Scene<'_>, at_ns: u64) -> String {
    let facts = &scene.recording.facts;
    if facts.started_unix_ns == 0 {
        return String::new();
    }
    let unix_s = (facts.started_unix_ns.saturating_add(at_ns) / SECOND_NS).cast_signed();
    let of_day_s = unix_s.saturating_add(i64::from(facts.utc_offset_s)).rem_euclid(DAY_S);
    let (hours, minutes, seconds) = (of_day_s / 3600, of_day_s / 60 % 60, of_day_s % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

/// Two texts at the ends of a line; the second gives way, then the first is cut.
fn both_ends(left: (Tone, &str), right: (Tone, &str), width: usize) -> Toned {
    let text = shortened(left.1, width.saturating_sub(1));
    let taken = length(&text) + length(right.1) + 3;
    if right.1.is_empty() || taken > width {
        return vec![(left.0, text)];
    }
    let gap = " ".repeat(width - taken + 2);
    vec![(left.0, text), (Tone::Plain, gap), (right.0, right.1.to_owned())]
}
