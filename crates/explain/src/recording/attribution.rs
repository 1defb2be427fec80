//! The series behind each number, and when they grew: what a chart shows of a claim.
//!
//! Rules and accounting name the series that a number may come from. [`attribute`] runs
//! once, on the finished explanation: it keeps the series that the window has, and finds
//! the span of each claim by the first counter of its evidence that grew.

use super::View;
use super::view::begins_at_zero;
use model::Evidence;
use model::explanation::{Explanation, Interval};
use model::recording::{Series, SeriesKind};

/// The part of the growth that a span holds, as a fraction: 90 %.
const MOST: (u128, u128) = (9, 10);

/// Completes the series and spans of an explanation of `view`.
pub fn attribute(view: &View, explanation: &mut Explanation) {
    let bars = &mut explanation.bars;
    for slice in bars.thread.iter_mut().chain(&mut bars.wall) {
        keep_recorded(view, &mut slice.evidence);
    }
    for part in &mut explanation.of_which {
        keep_recorded(view, &mut part.evidence);
        part.span = span(view, &part.evidence);
    }
    for cause in &mut explanation.findings {
        keep_recorded(view, &mut cause.finding.evidence);
        cause.span = span(view, &cause.finding.evidence);
    }
    for cleared in &mut explanation.cleared {
        keep_recorded(view, std::slice::from_mut(&mut cleared.evidence));
    }
}

/// Leaves out the series that this window has no value of. A number that bears the name of a
/// series and names no other is that series' own.
fn keep_recorded(view: &View, evidence: &mut [Evidence]) {
    for number in evidence {
        if number.series.is_empty() {
            number.series.push(number.name.clone());
        }
        number.series.retain(|name| view.growth(name).is_some());
    }
}

/// When most of the growth was that these numbers were computed from.
fn span(view: &View, evidence: &[Evidence]) -> Option<Interval> {
    let names = evidence.iter().flat_map(|number| &number.series);
    let mut spans = names.filter_map(|name| {
        let series = view.series(name)?;
        let is_counter = series.schema.kind == SeriesKind::Counter;
        is_counter.then(|| shortest(&growths(view, series))).flatten()
    });
    spans.next()
}

/// A growth and the time in which it happened.
struct Growth {
    within: Interval,
    by: u128,
}

/// Every growth of a counter, in order.
fn growths(view: &View, series: &Series) -> Vec<Growth> {
    let (first, last) = view.samples();
    let at = |sample: u32| {
        view.at_ns(sample).unwrap_or(view.to_ns()).clamp(view.from_ns(), view.to_ns())
    };
    let mut before = series.at(first);
    if before.is_none() && begins_at_zero(&series.schema.name) {
        // The recorder's own sums begin at 0, whenever they first appear.
        before = Some(0);
    }
    let mut found = Vec::new();
    let mut to_ns = view.from_ns();
    for step in series.within(first, last) {
        let Some(now) = step.value else { continue };
        let by = now.saturating_sub(before.unwrap_or(now));
        before = Some(now);
        if by > 0 {
            // No damaged file may turn time around.
            to_ns = to_ns.max(at(step.sample));
            // The kernel may have made the value up to so long before it was read.
            let stale_ns = series.schema.refresh_ns.unwrap_or(0);
            let from_ns =
                at(step.sample - 1).min(to_ns.saturating_sub(stale_ns)).max(view.from_ns());
            found.push(Growth {
                within: Interval { from_ns, to_ns },
                by: u128::from(by.unsigned_abs()),
            });
        }
    }
    found
}

/// The shortest time that holds most of the growth; `None` where nothing grew.
fn shortest(growths: &[Growth]) -> Option<Interval> {
    let whole: u128 = growths.iter().map(|growth| growth.by).sum();
    let is_most = |held: u128| held * MOST.1 >= whole * MOST.0;
    let mut best: Option<Interval> = None;
    let mut start = 0;
    let mut held = 0;
    for growth in growths {
        held += growth.by;
        while is_most(held - growths[start].by) && growths[start].within.to_ns < growth.within.to_ns
        {
            held -= growths[start].by;
            start += 1;
        }
        let found = Interval { from_ns: growths[start].within.from_ns, to_ns: growth.within.to_ns };
        let length = |interval: Interval| interval.to_ns - interval.from_ns;
        if is_most(held) && best.is_none_or(|best| length(found) < length(best)) {
            best = Some(found);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Window;
    use model::recording::{Recording, Schema, Tick};

    /// A recording of one counter by its values, a sample every 10 ns.
    fn recording(name: &str, values: &[Option<i64>]) -> Recording {
        let mut series = Series {
            schema: Schema { name: name.to_owned(), ..Schema::default() },
            ..Series::default()
        };
        let mut recording = Recording::default();
        for (sample, value) in values.iter().enumerate() {
            series.push(sample as u32, *value);
            recording.ticks.push(Tick { due_ns: 10 * sample as u64, at_ns: 10 * sample as u64 });
        }
        recording.series.push(series);
        recording
    }

    fn span_of(recording: &Recording, window: Window) -> Option<(u64, u64)> {
        let view = View::new(recording, window);
        let number = Evidence::new("in words", 1.0, "ns", "x");
        let mut evidence = [number.seen_in(["gone", "a", "trace.a"])];
        keep_recorded(&view, &mut evidence);
        assert!(evidence[0].series.len() <= 1);
        span(&view, &evidence).map(|span| (span.from_ns, span.to_ns))
    }

    #[test]
    fn a_span_is_the_shortest_that_holds_most_of_the_growth() {
        let all = Window::default();
        let values = |of: &[i64]| of.iter().map(|value| Some(*value)).collect::<Vec<_>>();
        let burst = recording("a", &values(&[0, 2, 50, 96, 97, 98, 100]));
        assert_eq!(span_of(&burst, all), Some((10, 30)));
        let steady = recording("a", &values(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]));
        assert_eq!(span_of(&steady, all), Some((0, 90)));
        let still = recording("a", &values(&[7, 7, 7]));
        assert_eq!(span_of(&still, all), None);
        let reset = recording("a", &values(&[90, 0, 0, 5]));
        assert_eq!(span_of(&reset, all), Some((20, 30)));
    }

    #[test]
    fn a_sum_of_events_grew_when_it_appeared_and_another_counter_did_not() {
        let values = [None, None, Some(90), Some(99)];
        let all = Window::default();
        assert_eq!(span_of(&recording("trace.a", &values), all), Some((10, 20)));
        assert_eq!(span_of(&recording("a", &values), all), Some((20, 30)));
    }

    #[test]
    fn a_span_stays_in_the_window_and_counts_how_old_a_value_may_be() {
        let values: Vec<_> = [0, 0, 0, 8, 8, 98].map(Some).to_vec();
        let mut recording = recording("a", &values);
        let window = Window { from_ns: Some(10), to_ns: Some(40) };
        assert_eq!(span_of(&recording, window), Some((20, 30)));
        recording.series[0].schema.refresh_ns = Some(25);
        assert_eq!(span_of(&recording, window), Some((10, 30)));
        assert_eq!(span_of(&recording, Window::default()), Some((25, 50)));
    }
}
