//! A bar that adds up to 100 %: a label over each part where they fit side by side, a
//! legend below where they do not.
//!
//! The cells of a part are proportional to its time, so lengths may be compared. Labels
//! never overlap: a part is given room for its label before the bar is made longer. Each
//! part has a glyph of its own, because colour may be absent.

use crate::output::Page;
use crate::output::style::{Tone, Toned};
use crate::output::table::{length, tied, wrap};
use model::explanation::{Slice, TimeSlice, short_words};

/// The space between two labels.
const GAP: usize = 2;

/// One part of a bar, ready to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BarPart {
    label: String,
    glyph: char,
    tone: Tone,
    ns: u64,
    percent: u64,
}

/// The glyph and tone of a slice.
const fn look(slice: TimeSlice) -> (char, Tone) {
    match slice {
        TimeSlice::Run => ('#', Tone::Busy),
        TimeSlice::Queue => ('=', Tone::Warn),
        TimeSlice::BlockIo => ('/', Tone::Device),
        TimeSlice::Children => ('+', Tone::Dim),
        TimeSlice::Sleep | TimeSlice::Asleep => ('.', Tone::Dim),
        TimeSlice::Idle => ('-', Tone::Dim),
        TimeSlice::Steal => ('x', Tone::Warn),
        TimeSlice::Unexplained => ('?', Tone::Unknown),
        TimeSlice::User | TimeSlice::Kernel => OTHER,
    }
}

/// The look of a slice that another version knows.
const OTHER: (char, Tone) = ('o', Tone::Plain);

/// Whole percentages of the shares of `ns` that add up to 100; all 0 where there is no time.
pub fn percentages(ns: &[u64]) -> Vec<u64> {
    shared_out(ns, 100)
}

/// The bar of `slices` in lines of at most the page's width; empty where there is no time.
pub fn render(slices: &[Slice], page: Page) -> String {
    let painted = |line: &Toned| {
        let pieces = line.iter().map(|(tone, text)| page.style.paint(*tone, text));
        format!("{}\n", pieces.collect::<String>())
    };
    lines(slices, page.width).iter().map(painted).collect()
}

/// The lines of the bar, each below `width` columns wide.
pub fn lines(slices: &[Slice], width: usize) -> Vec<Toned> {
    let all = parts(slices);
    let named: Vec<BarPart> = all.iter().filter(|part| part.percent > 0).cloned().collect();
    let room = width.saturating_sub(2);
    // Tiny parts are named as long as the bar stays long enough to compare lengths.
    let side_by_side = columns(&all, room, room / 2);
    side_by_side.or_else(|| columns(&named, room, room / 3)).unwrap_or_else(|| legend(&named, room))
}

fn parts(slices: &[Slice]) -> Vec<BarPart> {
    let lengths: Vec<u64> = slices.iter().map(|slice| slice.ns).collect();
    let shares = percentages(&lengths);
    let with_time = slices.iter().zip(shares).filter(|(slice, _)| slice.ns > 0);
    with_time.map(|(slice, share)| part(slice, share)).collect()
}

fn part(slice: &Slice, percent: u64) -> BarPart {
    let share = match percent {
        0 => "<1%".to_owned(),
        _ => format!("{percent}%"),
    };
    let (glyph, tone) = TimeSlice::of(&slice.name).map_or(OTHER, look);
    BarPart {
        label: format!("{} {share}", short_words(&slice.name)),
        glyph,
        tone,
        ns: slice.ns,
        percent,
    }
}

/// `whole` shared out in proportion to `weights` by the largest remainders.
fn shared_out(weights: &[u64], whole: u64) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: u64| u128::from(weight) * u128::from(whole);
    let mut shares: Vec<u64> =
        weights.iter().map(|weight| u64::try_from(exact(*weight) / sum).unwrap_or(whole)).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(exact(weights[index]) % sum));
    let missing = whole.saturating_sub(shares.iter().sum());
    for &index in order.iter().take(usize::try_from(missing).unwrap_or(0)) {
        shares[index] += 1;
    }
    shares
}

/// The cells of each part in a bar of about `total`: what is there is seen, as one cell.
fn cells(parts: &[BarPart], total: usize) -> Vec<usize> {
    let weights: Vec<u64> = parts.iter().map(|part| part.ns).collect();
    shared_out(&weights, total as u64)
        .into_iter()
        .map(|share| usize::try_from(share).unwrap_or(total).max(1))
        .collect()
}

/// Labels side by side, each over its part; `None` where that leaves fewer than `least`
/// cells for the bar.
fn columns(parts: &[BarPart], room: usize, least: usize) -> Option<Vec<Toned>> {
    let widths = |cells: &[usize]| -> Vec<usize> {
        let each = parts.iter().zip(cells);
        each.map(|(part, cells)| length(&part.label).max(*cells)).collect()
    };
    let gaps = GAP * parts.len().saturating_sub(1);
    let fits = |total: usize| {
        let cells = cells(parts, total);
        (widths(&cells).iter().sum::<usize>() + gaps <= room).then_some(cells)
    };
    let cells = (least.max(1)..=room).rev().find_map(fits)?;
    let widths = widths(&cells);
    let (mut labels, mut bar) = (Line::new(), Line::new());
    for ((part, cells), width) in parts.iter().zip(cells).zip(widths) {
        labels.put(Tone::Plain, &part.label, width + GAP);
        bar.put(part.tone, &part.glyph.to_string().repeat(cells), width + GAP);
    }
    Some(vec![labels.pieces, bar.pieces])
}

/// The bar without gaps, and below it what its glyphs mean.
fn legend(parts: &[BarPart], room: usize) -> Vec<Toned> {
    if parts.is_empty() {
        return Vec::new();
    }
    let mut cells = cells(parts, room);
    // Parts that were lifted to one cell take it from the longest.
    while cells.iter().sum::<usize>() > room {
        match cells.iter_mut().max() {
            Some(longest) if *longest > 1 => *longest -= 1,
            _ => break,
        }
    }
    let mut bar = Line::new();
    for (part, cells) in parts.iter().zip(cells) {
        bar.put(part.tone, &part.glyph.to_string().repeat(cells), cells);
    }
    let names: Vec<String> =
        parts.iter().map(|part| tied(&format!("{} {}", part.glyph, part.label))).collect();
    let legend = format!(" {}", wrap(&names.join(", "), room, 1));
    let lines = legend.lines().map(|line| vec![(Tone::Plain, line.to_owned())]);
    [bar.pieces].into_iter().chain(lines).collect()
}

/// A line that is filled from the left; space is written only before more text.
struct Line {
    pieces: Toned,
    pending: usize,
}

impl Line {
    fn new() -> Self {
        Self { pieces: Vec::new(), pending: 1 }
    }

    /// Adds `text`, which takes `width` columns.
    fn put(&mut self, tone: Tone, text: &str, width: usize) {
        self.pieces.push((Tone::Plain, " ".repeat(self.pending)));
        self.pieces.push((tone, text.to_owned()));
        self.pending = width.saturating_sub(length(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Grade;

    fn slices(parts: &[(&str, u64)]) -> Vec<Slice> {
        let slice = |(name, ns): &(&str, u64)| Slice {
            name: (*name).to_owned(),
            ns: *ns,
            grade: Grade::Measured,
            evidence: Vec::new(),
        };
        parts.iter().map(slice).collect()
    }

    const NAMES: [&str; 6] = ["run", "queue", "block_io", "children", "sleep", "unexplained"];

    #[test]
    fn shares_add_up_to_a_hundred() {
        assert_eq!(percentages(&[1, 1, 1]), [34, 33, 33]);
        assert_eq!(percentages(&[0, 0]), [0, 0]);
        assert_eq!(percentages(&[u64::MAX, u64::MAX]), [50, 50]);
        assert_eq!(percentages(&[996, 4]), [100, 0]);
    }

    #[test]
    fn labels_stand_over_their_parts() {
        let slices = slices(&[("run", 50), ("block_io", 49), ("sleep", 1)]);
        assert_eq!(
            render(&slices, Page::plain(50)),
            " CPU 50%             block I/O 49%       sleep 1%\n \
             ##################  //////////////////  .\n"
        );
    }

    #[test]
    fn a_narrow_page_has_a_legend() {
        let slices = slices(&[("run", 20), ("block_io", 60), ("sleep", 15), ("unexplained", 5)]);
        assert_eq!(
            render(&slices, Page::plain(40)),
            " #######///////////////////////......??\n \
             # CPU 20%, / block I/O 60%,\n \
             . sleep 15%, ? unexplained 5%\n"
        );
    }

    #[test]
    fn a_tiny_part_is_named_only_where_there_is_room() {
        let slices = slices(&[("run", 9_970), ("queue", 30)]);
        assert!(render(&slices, Page::plain(80)).contains("queue <1%"));
        let many = [
            ("run", 5000),
            ("queue", 3),
            ("block_io", 2000),
            ("children", 1500),
            ("unexplained", 1500),
        ];
        let text = render(&self::slices(&many), Page::plain(60));
        assert!(!text.contains("queue") && text.contains("block I/O 20%"), "{text}");
    }

    #[test]
    fn no_time_no_bar() {
        assert_eq!(render(&[], Page::plain(80)).trim(), "");
        assert_eq!(render(&slices(&[("run", 0)]), Page::plain(80)).trim(), "");
    }

    /// Every label is there whole, apart from its neighbours, and no line is too long.
    fn hold(slices: &[Slice], width: usize) {
        let text = render(slices, Page::plain(width));
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines {
            assert!(length(line) < width, "{width}: {text}");
        }
        let parts = parts(slices);
        let sum: u64 = parts.iter().map(|part| part.percent).sum();
        assert_eq!(sum, 100, "{text}");
        for part in parts.iter().filter(|part| part.percent > 0) {
            let label = &part.label;
            let apart = |line: &&str| {
                line.split("  ").flat_map(|cell| cell.split(", ")).any(|cell| {
                    let cell = cell.trim().trim_end_matches(',');
                    cell == label || cell == format!("{} {label}", part.glyph)
                })
            };
            assert!(lines.iter().any(apart), "{label} at {width}: {text}");
            assert!(text.contains(part.glyph), "{label} at {width}: {text}");
        }
    }

    /// Lengths from a fixed generator, so that a failure repeats; many are 0 or tiny.
    #[test]
    fn labels_never_overlap_at_any_width() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for _ in 0..400 {
            let parts: Vec<(&str, u64)> = NAMES
                .iter()
                .map(|name| {
                    let scale = [0, 1, 10, 1_000, 1_000_000, 4_000_000_000];
                    (*name, random() % (1 + scale[random() as usize % scale.len()]))
                })
                .collect();
            let slices = slices(&parts);
            if slices.iter().all(|slice| slice.ns == 0) {
                continue;
            }
            for width in [40, 41, 50, 59, 72, 80, 100, 200] {
                hold(&slices, width);
            }
        }
    }
}
