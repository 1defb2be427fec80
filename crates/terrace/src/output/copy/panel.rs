//! The panel of a copy while it works: where it grows, how much of it is on the device, how fast
//! both sides are, and what limits it. Pure.
//!
//! Full signs of the bar are bytes on the device, which a power cut does not take; light ones are
//! bytes that were written and are not there yet.

use crate::output::figure;
use crate::output::prose::count;
use crate::output::style::{Style, Tone, Toned};
use crate::output::table::wrap;
use crate::output::top::Glyphs;
use explain::transfer::{TransferLimit, TransferVerdict};
use model::Bytes;
use model::copy_gauges::CopyGauges;
use model::gauge::Gauge;
use std::collections::VecDeque;
use std::time::Duration;

/// How often the rates of the lanes are taken, and the panel is drawn.
pub const DRAW_EVERY: Duration = Duration::from_millis(250);
/// It is also drawn when the percentage has changed by so many tenths.
const DRAW_AT_TENTHS: u64 = 3;
/// A lane has at most so many signs; one stands for [`DRAW_EVERY`].
const MOST_SIGNS: usize = 40;
/// A wider panel would be harder to read.
const MOST_COLUMNS: usize = 100;
/// A lane with fewer signs shows nothing.
const LEAST_SIGNS: usize = 4;
/// A longer sentence is cut.
const MOST_LINES: usize = 4;

/// What the panel remembers of the seconds before.
#[derive(Debug)]
pub struct CopyPanel {
    heading: String,
    glyphs: Glyphs,
    reads: Lane,
    writes: Lane,
    taken_at: Duration,
    /// Tenths of a percent that were drawn last.
    drawn_tenths: u64,
}

#[derive(Debug, Default)]
struct Lane {
    bytes: u64,
    /// Bytes a second, the latest last.
    rates: VecDeque<f64>,
}

impl CopyPanel {
    /// For a copy that will be `target`.
    pub fn new(target: &str, glyphs: Glyphs) -> Self {
        Self {
            heading: format!(
                "terrace copy: to {target}, invisible until all of it is on the device"
            ),
            glyphs,
            reads: Lane::default(),
            writes: Lane::default(),
            taken_at: Duration::ZERO,
            drawn_tenths: 0,
        }
    }

    /// Takes the rates since the last call; whether the panel is to be drawn again: so much time
    /// has passed, or so much more is on the device.
    pub fn take(&mut self, elapsed: Duration, gauges: &CopyGauges) -> bool {
        let passed = elapsed.saturating_sub(self.taken_at);
        let tenths = Amounts::of(gauges).tenths().unwrap_or(0);
        let is_time = passed >= DRAW_EVERY;
        if is_time {
            self.taken_at = elapsed;
            self.reads.add(value(&gauges.read_bytes), passed);
            self.writes.add(value(&gauges.written_bytes), passed);
        }
        let is_drawn = is_time || tenths.abs_diff(self.drawn_tenths) >= DRAW_AT_TENTHS;
        if is_drawn {
            self.drawn_tenths = tenths;
        }
        is_drawn
    }

    /// The lines, none wider than `width` columns.
    pub fn lines(
        &self,
        gauges: &CopyGauges,
        verdict: &TransferVerdict,
        width: usize,
    ) -> Vec<Toned> {
        let width = width.min(MOST_COLUMNS);
        let mut lines = plain_lines(&self.heading, width);
        let amounts = Amounts::of(gauges);
        lines.extend(self.bar(&amounts, width));
        lines.extend(plain_lines(&amounts.words(gauges), width));
        let depth = |gauge: &Gauge| gauge.get().filter(|depth| *depth > 0);
        lines.push(self.lane("read", &self.reads, depth(&gauges.read_depth), width));
        lines.push(self.lane("write", &self.writes, depth(&gauges.write_depth), width));
        if verdict.limit != TransferLimit::Unproven {
            lines.extend(plain_lines(&verdict.sentence, width));
        }
        lines
    }

    /// The bar, if it is known how much there is to copy.
    fn bar(&self, amounts: &Amounts, width: usize) -> Option<Toned> {
        let total = amounts.total?;
        let (done, waiting, rest) = match self.glyphs {
            Glyphs::Ascii => ('#', '=', '.'),
            Glyphs::Blocks => ('█', '▒', '·'),
        };
        let room = width.saturating_sub(2);
        let cells = |bytes: u64| (share(bytes, total) * room as f64) as usize;
        let full = cells(amounts.durable);
        let light = cells(amounts.durable + amounts.under_way).max(full) - full;
        let signs = |sign: char, count: usize| sign.to_string().repeat(count);
        Some(vec![
            // Its sign alone makes the second bar lighter: dim too, it is not seen on white.
            (Tone::Plain, format!("[{}{}", signs(done, full), signs(waiting, light))),
            (Tone::Dim, signs(rest, room - full - light)),
            (Tone::Plain, "]".to_owned()),
        ])
    }

    /// `read  ▁▃▅▇ 1.06 GB/s, 12 in flight`.
    fn lane(&self, name: &str, lane: &Lane, depth: Option<u64>, width: usize) -> Toned {
        let rate = lane.rates.back().map_or("-".to_owned(), |rate| figure::precise_rate(*rate));
        let depth = depth.map_or(String::new(), |depth| format!(", {depth} in flight"));
        let both = format!("{rate}{depth}");
        let words = if both.chars().count() + 6 > width { rate } else { both };
        let room = width.saturating_sub(7 + words.chars().count()).min(MOST_SIGNS);
        let full = lane.rates.iter().copied().fold(1.0, f64::max);
        let signs: String = if room < LEAST_SIGNS {
            String::new()
        } else {
            let hidden = lane.rates.len().saturating_sub(room);
            let rates = lane.rates.iter().skip(hidden);
            let drawn: String = rates.map(|rate| self.glyphs.height(Some(*rate), full)).collect();
            format!("{drawn} ")
        };
        vec![(Tone::Plain, format!("{name:<5} ")), (Tone::Plain, signs), (Tone::Plain, words)]
    }
}

impl Lane {
    fn add(&mut self, bytes: u64, passed: Duration) {
        let moved = bytes.saturating_sub(self.bytes);
        self.bytes = bytes;
        self.rates.push_back(moved as f64 / passed.as_secs_f64().max(1e-3));
        if self.rates.len() > MOST_SIGNS {
            self.rates.pop_front();
        }
    }
}

/// How much is where.
struct Amounts {
    durable: u64,
    under_way: u64,
    total: Option<u64>,
}

impl Amounts {
    fn of(gauges: &CopyGauges) -> Self {
        let durable = value(&gauges.durable_bytes);
        let on_device = durable.saturating_sub(value(&gauges.unmoved_bytes));
        let under_way = value(&gauges.written_bytes).saturating_sub(on_device);
        Self { durable, under_way, total: gauges.bytes_total.get() }
    }

    /// Tenths of a percent on the device, 1,000 only when all of it is there.
    fn tenths(&self) -> Option<u64> {
        self.total.map(|total| (1000.0 * share(self.durable, total)) as u64)
    }

    /// `41.3 % of 2.6 GiB on the device, 12 MiB under way; 28 of 69 files`.
    fn words(&self, gauges: &CopyGauges) -> String {
        let under_way = Bytes(self.under_way);
        let done = value(&gauges.files_done);
        match (self.total.zip(self.tenths()), gauges.files_total.get()) {
            (Some((total, tenths)), Some(files)) => {
                let percent = match tenths {
                    1000 => "100".to_owned(),
                    _ => format!("{}.{}", tenths / 10, tenths % 10),
                };
                let (done, files) = (count(done), count(files));
                format!(
                    "{percent} % of {} on the device, {under_way} under way; {done} of {files} files",
                    Bytes(total)
                )
            }
            _ => {
                let durable = Bytes(self.durable);
                format!("{durable} on the device, {under_way} under way; still counting files")
            }
        }
    }
}

fn value(gauge: &Gauge) -> u64 {
    gauge.get().unwrap_or(0)
}

fn share(bytes: u64, total: u64) -> f64 {
    if total == 0 { 1.0 } else { (bytes as f64 / total as f64).min(1.0) }
}

/// A text, wrapped, and cut after some lines. Not dim: that is hard to read on a
/// light background that is not white.
fn plain_lines(text: &str, width: usize) -> Vec<Toned> {
    let wrapped = wrap(text, width, 0);
    let lines = wrapped.lines().take(MOST_LINES);
    // A word that is longer than a line is cut too: a path.
    lines.map(|line| vec![(Tone::Plain, line.chars().take(width).collect())]).collect()
}

/// A line as it is written.
pub fn painted(line: &Toned, style: Style) -> String {
    line.iter().map(|(tone, text)| style.paint(*tone, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::clean::printable;

    const MIB: u64 = 1 << 20;

    fn verdict(limit: TransferLimit, sentence: &str) -> TransferVerdict {
        TransferVerdict { limit, sentence: sentence.to_owned(), evidence: Vec::new() }
    }

    fn read_bound() -> TransferVerdict {
        let sentence = "read-bound: the source gives 1.06 GB/s, 99 % of what it can";
        verdict(TransferLimit::Read, sentence)
    }

    /// 41 of 100 MiB on the device, of which 8 were there, and 12 under way.
    fn gauges() -> CopyGauges {
        let gauges = CopyGauges::default();
        gauges.bytes_total.set(100 * MIB);
        gauges.files_total.set(1234);
        gauges.files_done.add(28);
        gauges.durable_bytes.add(41 * MIB);
        gauges.unmoved_bytes.add(8 * MIB);
        gauges.written_bytes.add(45 * MIB);
        gauges.read_bytes.add(48 * MIB);
        gauges.write_depth.set(5);
        gauges
    }

    fn text(width: usize, glyphs: Glyphs, gauges: &CopyGauges) -> String {
        let mut panel = CopyPanel::new("/mnt/stick/photos", glyphs);
        assert!(panel.take(Duration::from_millis(10), gauges));
        assert!(!panel.take(Duration::from_millis(20), gauges));
        for quarter in 1..=60 {
            assert!(panel.take(DRAW_EVERY * quarter, gauges));
        }
        let style = Style::new(false);
        let lines = panel.lines(gauges, &read_bound(), width);
        lines.iter().map(|line| painted(line, style) + "\n").collect()
    }

    #[test]
    fn what_is_on_the_device_what_is_under_way_and_the_cause() {
        let shown = text(80, Glyphs::Blocks, &gauges());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0],
            "terrace copy: to /mnt/stick/photos, invisible until all of it is on the device"
        );
        let (full, light) = (lines[1].matches('█').count(), lines[1].matches('▒').count());
        assert_eq!((full, light, lines[1].chars().count()), (31, 10, 80), "{shown}");
        assert_eq!(
            lines[2],
            "41.0 % of 100 MiB on the device, 12 MiB under way; 28 of 1,234 files"
        );
        assert!(lines[3].starts_with("read  ") && lines[3].ends_with(" 0 B/s"), "{shown}");
        assert!(lines[4].ends_with(", 5 in flight"), "{shown}");
        assert_eq!(lines[5], "read-bound: the source gives 1.06 GB/s, 99 % of what it can");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [20, 25, 40, 60, 80, 200] {
            for glyphs in [Glyphs::Ascii, Glyphs::Blocks] {
                let shown = text(width, glyphs, &gauges());
                let widest = shown.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width.min(MOST_COLUMNS)), "{width}: {shown}");
                assert!(glyphs == Glyphs::Blocks || shown.is_ascii(), "{shown}");
            }
        }
    }

    #[test]
    fn it_is_drawn_when_the_percentage_has_changed() {
        let gauges = gauges();
        let mut panel = CopyPanel::new("/mnt", Glyphs::Ascii);
        assert!(panel.take(Duration::from_millis(1), &gauges), "41 % instead of nothing");
        gauges.durable_bytes.add(MIB / 10);
        assert!(!panel.take(Duration::from_millis(2), &gauges));
        gauges.durable_bytes.add(MIB / 4);
        assert!(panel.take(Duration::from_millis(3), &gauges));
        assert!(panel.reads.rates.is_empty(), "a rate of 3 ms says nothing");
    }

    #[test]
    fn one_hundred_percent_is_all_of_it_and_nothing_is_all_of_nothing() {
        let gauges = gauges();
        gauges.durable_bytes.set(100 * MIB - 1);
        assert!(text(80, Glyphs::Ascii, &gauges).contains("\n99.9 % of 100 MiB"));
        gauges.durable_bytes.set(100 * MIB);
        gauges.unmoved_bytes.set(55 * MIB);
        let shown = text(80, Glyphs::Ascii, &gauges);
        assert!(shown.contains("\n100 % of 100 MiB on the device, 0 B under way"), "{shown}");
        gauges.bytes_total.set(0);
        assert!(text(80, Glyphs::Ascii, &gauges).contains("100 % of 0 B"));
    }

    #[test]
    fn only_what_is_not_there_is_dim_and_a_name_of_another_user_is_harmless() {
        let panel = CopyPanel::new("/mnt/\x1b[31mred", Glyphs::Blocks);
        let lines = panel.lines(&gauges(), &read_bound(), 80);
        let drawn = |line: &Toned| printable(&painted(line, Style::new(true))).into_owned();
        let dim: String = lines.iter().map(drawn).filter(|line| line.contains("\x1b[2m")).collect();
        assert!(dim.contains("▒\x1b[2m·") && !dim.contains("bound"), "{lines:?}");
        assert!(!lines.iter().map(drawn).any(|line| line.contains("\x1b[31m")), "{lines:?}");
    }
}
