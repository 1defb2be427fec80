//! The table of the survey's page: one line for each level, nearest to the processor first.
//!
//! The bar shows the latency on a logarithmic axis, so that a level ten times slower is
//! one step longer. Where single requests cannot be timed the median stands under `p50`
//! and the p99 is a dash. Where short words make all columns fit they are shortened,
//! else columns go, the grade before the bar: the bar is what the eye reads.

use crate::output::Page;
use crate::output::figure::{self, Digits};
use crate::output::style::Tone;
use crate::output::table::{Cell, Table, length};
use model::survey::Survey;
use model::{Estimate, Grade, Tier, TierKind};

/// From this width on there is room for three digits and long names.
const WIDE: usize = 100;

const INDENT: usize = 1;

/// How much room a table takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Three digits, all columns, long names.
    Wide,
    /// Two digits, for 80 columns.
    Usual,
    /// Also short names and grades, where many findings are about one level.
    Tight,
}

impl Room {
    /// The longest name of a level. Picked: `/srv/~hive vdb` still tells disks apart.
    fn name_width(self) -> usize {
        match self {
            Room::Wide => 28,
            Room::Usual => 14,
            Room::Tight => 12,
        }
    }

    fn digits(self) -> Digits {
        match self {
            Room::Wide => Digits::Three,
            Room::Usual | Room::Tight => Digits::Two,
        }
    }
}

/// The latency with a bar of length 0: below the fastest load of any processor.
const BAR_START_NS: f64 = 0.1;

/// The table, or nothing when there are no levels.
pub fn render(survey: &Survey, page: Page) -> String {
    let rooms = if page.width >= WIDE { &[Room::Wide][..] } else { &[Room::Usual, Room::Tight] };
    let whole =
        rooms.iter().map(|&room| table(survey, room)).find(|table| table.fits(page, INDENT));
    // Where columns must go anyway, short words would only be harder to read.
    let table = whole.unwrap_or_else(|| table(survey, rooms[0]));
    if table.is_empty() {
        return String::new();
    }
    table.render(page, INDENT)
}

/// Whether there is nothing to show but a reason, which stands below the table.
fn is_blank(tier: &Tier) -> bool {
    tier.grade == Grade::Unseen && tier.latency_ns.is_none() && tier.read_bytes_per_s.is_none()
}

fn table(survey: &Survey, room: Room) -> Table<&Tier> {
    let wide = room == Room::Wide;
    let digits = room.digits();
    let number = |tier: &Tier, text: Option<String>| match text {
        Some(text) => Cell::toned(text, if tier.noisy { Tone::Warn } else { Tone::Plain }),
        None => Cell::toned(figure::ABSENT, Tone::Dim),
    };
    let p50 = |tier: &Tier| {
        let latency = tier.latency_ns.as_ref()?;
        Some(latency.p50.unwrap_or(latency.median))
    };
    let p99 = |tier: &Tier| tier.latency_ns.as_ref()?.p99;
    let time = |tier, ns: Option<f64>| number(tier, ns.map(|ns| figure::time(ns, digits)));
    let rate = |tier, rate: &Option<Estimate>| {
        number(tier, rate.as_ref().map(|rate| figure::rate(rate.median, digits)))
    };
    let steps = if wide { 2.0 } else { 1.0 };
    let bar_title = if wide { "latency, 10x per 2 steps" } else { "10x/step" };
    let capacity =
        |tier: &Tier| number(tier, tier.capacity_bytes.map(|bytes| size(tier.kind, bytes, digits)));
    let mut table = Table::of(survey.tiers.iter().filter(|tier| !is_blank(tier)))
        .gap(if wide { 2 } else { 1 })
        .words("level", 0, |tier| short_name(&tier.name, room.name_width()))
        .words(bar_title, 5, |tier| p50(tier).map_or(String::new(), |ns| bar(ns, steps)))
        .numbers("p50", 0, |tier| time(tier, p50(tier)))
        .numbers("p99", 3, |tier| time(tier, p99(tier)))
        .numbers("read", 1, |tier| rate(tier, &tier.read_bytes_per_s))
        .numbers("write", 2, |tier| rate(tier, &tier.write_bytes_per_s));
    if wide {
        table = table.numbers("copy", 7, |tier| rate(tier, &tier.copy_bytes_per_s));
    }
    table = table.numbers("size", 4, capacity).words("seen", 6, |tier| seen(tier, room)).words(
        "",
        0,
        |tier| Cell::toned(marker(tier, survey), Tone::Warn),
    );
    if wide {
        table = table.words("how", 8, |tier| Cell::toned(tier.method.as_str(), Tone::Dim));
    }
    table
}

/// Devices are sold in powers of 1000, memory in powers of 1024.
fn size(kind: TierKind, bytes: u64, digits: Digits) -> String {
    match kind {
        TierKind::Device | TierKind::Swap => figure::decimal_size(bytes as f64, digits),
        _ => figure::binary_size(bytes, digits),
    }
}

/// One `#` for each step of the logarithmic axis, at least one.
fn bar(ns: f64, steps_per_decade: f64) -> String {
    let steps = (ns / BAR_START_NS).log10() * steps_per_decade;
    // A latency of a day would have 15 steps; more is no latency.
    "#".repeat(steps.round().clamp(1.0, 15.0 * steps_per_decade) as usize)
}

fn seen(tier: &Tier, room: Room) -> Cell {
    let word = match (tier.grade, room) {
        _ if tier.noisy => return Cell::toned("noisy", Tone::Warn),
        (Grade::Measured, Room::Tight) => "yes".to_owned(),
        (grade, _) => grade.to_string(),
    };
    Cell::toned(word, Tone::Dim)
}

/// `<- 1,3`: the numbers of the findings about this level.
fn marker(tier: &Tier, survey: &Survey) -> String {
    let about = |name: &Option<String>| name.as_deref() == Some(tier.name.as_str());
    let numbers: Vec<String> = (1..)
        .zip(&survey.findings)
        .filter(|(_, finding)| about(&finding.tier))
        .map(|(number, _): (u32, _)| number.to_string())
        .collect();
    if numbers.is_empty() { String::new() } else { format!("<- {}", numbers.join(",")) }
}

/// A name in at most `width` columns. What stands behind two spaces, the device, stays
/// whole; the mount path before it loses its middle: `/srv/~hive vdb`.
fn short_name(name: &str, width: usize) -> String {
    if length(name) <= width {
        return name.to_owned();
    }
    match name.rsplit_once("  ") {
        Some((path, device)) if length(device) + LEAST_PATH < width => {
            let room = width - length(device) - 1;
            format!("{} {device}", without_middle(path, room))
        }
        _ => without_middle(name, width),
    }
}

/// The shortest path beside a device's name: `/a~b`.
const LEAST_PATH: usize = 4;

fn without_middle(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let tail = width.saturating_sub(1) / 2;
    let head = width.saturating_sub(tail + 1);
    let start: String = letters[..head].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    format!("{start}~{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_slower_is_one_step_longer() {
        let length = |ns| bar(ns, 1.0).len();
        assert_eq!((length(0.9), length(9.0), length(90.0)), (1, 2, 3));
        assert_eq!(length(1.1e6), 7);
        assert_eq!(length(0.0), 1);
        assert_eq!(length(f64::INFINITY), 15);
        assert_eq!(length(f64::NAN), 0);
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(short_name("/srv/data/archive", 14), "/srv/da~rchive");
        assert_eq!(short_name("/dev/shm  tmpfs", 14), "/dev/shm tmpfs");
        assert_eq!(short_name("ünïcödé-lëvel", 5), "ün~el");
        assert_eq!(short_name("RAM", 14), "RAM");
    }

    #[test]
    fn the_device_stays_whole_however_long_its_path_is() {
        let long = format!("/dev/shm/{}/mount  loop0", "deep/".repeat(40));
        for width in 12..40 {
            let short = short_name(&long, width);
            assert_eq!(length(&short), width, "{short}");
            assert!(short.ends_with(" loop0"), "{short}");
            assert!(short.starts_with("/de") && short.contains('~'), "{short}");
        }
        let device = "a-device-with-a-long-name";
        assert_eq!(short_name(&format!("/  {device}"), 14), "/  a-de~g-name");
    }
}
