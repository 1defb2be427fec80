//! Who used most of each figure: one line on a brief page of a machine, a table on a detailed one.
//! Where the table does not fit, a line for each user.

use super::{of_processors, paragraph};
use crate::output::Page;
use crate::output::figure;
use crate::output::prose::{count, indented, long_time};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table, tied};
use model::Bytes;
use model::explanation::{Explanation, FigureUse, ProcessUse, figure_title};

/// Fewer groups are not worth a line: one holds all, as the users above say.
const LEAST_GROUPS: usize = 2;

/// So many of each figure stand on a brief page.
const MOST_IN_BRIEF: usize = 2;

/// `Most used by: read tar (pid 812) 88 %; memory growth python3 (pid 66) 3 GiB`, without figures
/// whose users a finding names.
pub fn brief(explanation: &Explanation, page: Page) -> String {
    if !of_processors(&explanation.bars.thread) {
        return String::new();
    }
    let is_named = |figure: &&FigureUse| {
        let mut actors = explanation.findings.iter().flat_map(|cause| &cause.actors);
        !actors.any(|actor| actor.used.figure == figure.figure)
    };
    let figures: Vec<String> = explanation.usage.iter().filter(is_named).map(in_brief).collect();
    if figures.is_empty() {
        return String::new();
    }
    paragraph(&format!("Most used by: {}", figures.join("; ")), Tone::Plain, page)
}

fn in_brief(figure: &FigureUse) -> String {
    let first = figure.first.iter().take(MOST_IN_BRIEF);
    let users: Vec<String> = first
        .map(|user| format!("{} {}", user.label, tied(&figure::percent(user.share))))
        .collect();
    format!("{} {}", tied(&figure_title(&figure.figure)), users.join(", "))
}

/// All of them, with their values and what others used.
pub fn full(explanation: &Explanation, page: Page) -> String {
    if explanation.usage.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", paragraph("Most used by", Tone::Strong, page));
    for figure in &explanation.usage {
        let all = value(&figure.unit, figure.total);
        let line = format!("{}, {all} in all", figure_title(&figure.figure));
        text.push_str(&indented(&line, Tone::Dim, 3, 5, page));
        let table = Table::of(&figure.first)
            .numbers("", 0, |user: &ProcessUse| value(&user.unit, user.value))
            .numbers("", 0, |user| figure::percent(user.share))
            .words("", 1, |user| Cell::toned(user.grade.to_string(), Tone::Dim))
            .words("", 0, |user| user.label.clone());
        let inner = Page { width: page.width.saturating_sub(1), ..page };
        if table.fits(inner, 5) {
            text.push_str(&table.render(inner, 5));
        } else {
            figure.first.iter().for_each(|user| text.push_str(&user_line(user, page)));
        }
        text.push_str(&groups_line(figure, page));
    }
    text
}

/// A user where the table does not fit: `48 s, 80 %: tar (pid 812)`.
fn user_line(user: &ProcessUse, page: Page) -> String {
    let (much, share) = (value(&user.unit, user.value), figure::percent(user.share));
    let line = format!("{} {}", tied(&format!("{much}, {share}:")), user.label);
    indented(&line, Tone::Plain, 5, 7, page)
}

/// `by group: session-3.scope 60 %, backup.service 30 %`
fn groups_line(figure: &FigureUse, page: Page) -> String {
    if figure.groups.len() < LEAST_GROUPS {
        return String::new();
    }
    let groups = figure.groups.iter();
    let named: Vec<String> = groups
        .map(|group| format!("{} {}", group.name, tied(&figure::percent(group.share))))
        .collect();
    indented(&format!("by group: {}", named.join(", ")), Tone::Dim, 5, 7, page)
}

fn value(unit: &str, value: u64) -> String {
    match unit {
        "ns" => long_time(value),
        "bytes" => Bytes(value).to_string(),
        _ => count(value),
    }
}
