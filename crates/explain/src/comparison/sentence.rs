//! The verdict of a comparison in a sentence or two: what differs, by how much, because of
//! what; or that nothing was proven, and why.

use super::split::{causes, gains, is_proven, most_inside};
use crate::wording::{list, percent};
use model::bytes::three_digits;
use model::compared::{Basis, ComparedFigure, Comparison, DifferencePart, TimeDifference};
use model::comparison::DifferenceVerdict;
use model::duration::show_ns;
use model::explanation::short_words;
use model::text::rate as per_second;

/// The longest list of figures in a sentence.
const NAMED: usize = 3;

/// How far beyond the edge of its interval a difference must lie to be proven in 9 of 10
/// comparisons: (1.96 + 1.28) / 1.96.
const CERTAIN: f64 = 1.65;

/// More runs than this are not worth proposing.
const MOST_RUNS: f64 = 200.0;

/// The verdict on recordings.
pub(super) fn of_recordings(items: &[ComparedFigure], split: Option<&TimeDifference>) -> String {
    let wall = items.iter().find(|item| item.of == "wall");
    let (Some(wall), Some(split)) = (wall, split) else {
        return "There is nothing to compare.".to_owned();
    };
    // Of the middle half of the runs, as its parts, which add up to it; medians do not.
    let difference = split.difference_ns;
    let amount = show_ns(difference.abs());
    let longer = if difference < 0.0 { "less" } else { "longer" };
    let change = if split.first_ns > 0.0 {
        percent(difference.abs() / split.first_ns)
    } else {
        "from nothing".to_owned()
    };
    match (wall.verdict, wall.basis) {
        (DifferenceVerdict::Unproven, Basis::Ranks) => format!(
            "Unproven: runs of one side differ as much as the sides do. The second took {amount} \
             {longer} \
             ({change}{}){}.",
            interval(wall),
            more_runs(wall)
        ),
        (DifferenceVerdict::Unproven, _) => format!(
            "Unproven: {}. This time the second took {amount} {longer} ({change}){}.",
            runs(wall),
            because(split, |_| true)
        ),
        _ => {
            let because = match because(split, is_proven) {
                none if none.is_empty() => "; which part of it made that is unproven".to_owned(),
                causes => causes,
            };
            let interval = interval(wall);
            format!("The second takes {amount} {longer} ({change}{interval}){because}.")
        }
    }
}

/// `; 10 runs of each can prove 18 %, and about 40 would tell whether this is real`.
fn more_runs(wall: &ComparedFigure) -> String {
    let (Some(provable), Some(change)) = (wall.provable, wall.change()) else {
        return String::new();
    };
    let runs = f64::from(wall.first_runs.min(wall.second_runs));
    let provable_now = format!("; {runs} runs of each can prove {}", percent(provable));
    // The interval narrows with the root of the runs.
    let needed = runs * (CERTAIN * provable / change.abs()).powi(2);
    match needed {
        ..=MOST_RUNS => {
            format!("{provable_now}, and about {needed:.0} would tell whether this is real")
        }
        _ => provable_now,
    }
}

/// `one run each`, `3 and 5 runs`.
fn runs(wall: &ComparedFigure) -> String {
    match (wall.first_runs, wall.second_runs) {
        (1, 1) => "one run each".to_owned(),
        (first, second) => format!("only {first} and {second} runs"),
    }
}

/// `; 95 % interval +3.6 s to +4.6 s`, of the median difference, on which the verdict rests.
fn interval(wall: &ComparedFigure) -> String {
    let Some((low, high)) = wall.low.zip(wall.high) else {
        return String::new();
    };
    let sign = |ns: f64| if ns < 0.0 { "-" } else { "+" };
    let shown = |ns: f64| format!("{}{}", sign(ns), show_ns(ns.abs()));
    format!("; 95 % interval {} to {}", shown(low), shown(high))
}

/// `; of that, 3 s +- 0.4 s are block I/O (2.9 s of it refault)`.
fn because(split: &TimeDifference, counts: impl Fn(&DifferencePart) -> bool) -> String {
    let causes = causes(split).into_iter().filter(|part| counts(part)).take(NAMED);
    let named: Vec<String> = causes
        .map(|part| {
            let inside = most_inside(split, part).filter(|inside| counts(inside)).map_or_else(
                String::new,
                |inside| {
                    let length = show_ns(inside.difference_ns.abs());
                    format!(" ({length} of it {})", short_words(&inside.name))
                },
            );
            format!("{} are {}{inside}", with_error(part), short_words(&part.name))
        })
        .collect();
    if named.is_empty() {
        return String::new();
    }
    let mut text = format!("; of that, {}", list(&named));
    if let Some(part) = gains(split).into_iter().find(|part| counts(part)) {
        let less = if part.difference_ns < 0.0 { "less" } else { "more" };
        let length = show_ns(part.difference_ns.abs());
        text.push_str(&format!(", while {} took {length} {less}", short_words(&part.name)));
    }
    text
}

/// `3 s +- 0.4 s`.
fn with_error(part: &DifferencePart) -> String {
    let length = show_ns(part.difference_ns.abs());
    match part.low_ns.zip(part.high_ns) {
        Some((low, high)) => format!("{length} +- {}", show_ns((high - low) / 2.0)),
        None => length,
    }
}

/// The verdict on recordings of what runs on: how much was done in a second.
pub(super) fn of_rates(items: &[ComparedFigure], work: Option<&str>) -> String {
    let rate = items.iter().find(|item| item.of == "rate");
    let Some((rate, (first, second))) =
        rate.and_then(|rate| Some((rate, rate.first.zip(rate.second)?)))
    else {
        return "There is nothing to compare.".to_owned();
    };
    let Some(work) = work else {
        return format!(
            "Unproven: nothing in these recordings counts work (record --work), so more may be \
             more work and not faster work. The second made {} requests a second to disks instead \
             of {}{}.",
            per_second(second),
            per_second(first),
            times(rate, first).map_or_else(String::new, |interval| format!(" ({interval})"))
        );
    };
    let amounts =
        format!("{} {work} a second instead of {}", per_second(second), per_second(first));
    let factor =
        if first > 0.0 { three_digits(second / first) } else { "infinitely many".to_owned() };
    match (rate.verdict, times(rate, first)) {
        (DifferenceVerdict::Unproven, None) => format!(
            "Unproven: the recordings are too short, or the rate drifted all the time. This time \
             the second did {factor} times as much: {amounts}."
        ),
        (DifferenceVerdict::Unproven, Some(interval)) => format!(
            "Unproven: the second did {factor} times as much ({interval}), and work varies by as \
             much by itself: {amounts}."
        ),
        (_, interval) => {
            let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
            let costs = costs(items, work);
            format!("The second does {factor} times as much: {amounts}{interval}.{costs}")
        }
    }
}

/// `95 % interval 2.3 to 2.7 times`.
fn times(rate: &ComparedFigure, first: f64) -> Option<String> {
    let (low, high) = rate.low.zip(rate.high).filter(|_| first > 0.0)?;
    let [low, high] = [low, high].map(|end| three_digits((1.0 + end / first).max(0.0)));
    Some(format!("95 % interval {low} to {high} times"))
}

/// ` For each xact_commit: block I/O 105 us less, 0.86 requests fewer.`
fn costs(items: &[ComparedFigure], work: &str) -> String {
    let mut proven: Vec<(&ComparedFigure, f64)> = items
        .iter()
        .filter(|item| item.of == "per_work" && item.verdict != DifferenceVerdict::Unproven)
        .filter_map(|item| Some((item, item.difference?)))
        .collect();
    proven.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let times = proven.iter().filter(|(item, _)| item.unit == "ns").take(NAMED - 1);
    let mut named: Vec<String> = times
        .map(|(item, difference)| {
            let way = if *difference < 0.0 { "less" } else { "more" };
            format!("{} {} {way}", short_words(&item.name), show_ns(difference.abs()))
        })
        .collect();
    let requests = proven.iter().find(|(item, _)| item.name == "requests");
    named.extend(requests.map(|(_, difference)| {
        let way = if *difference < 0.0 { "fewer" } else { "more" };
        format!("{} requests {way}", three_digits(difference.abs()))
    }));
    if named.is_empty() {
        return String::new();
    }
    format!(" For each {work}: {}.", named.join(", "))
}

/// The verdict on surveys.
pub(super) fn of_surveys(items: &[ComparedFigure]) -> String {
    let compared = items.iter().filter(|item| item.difference.is_some());
    let judged: Vec<&ComparedFigure> =
        compared.filter(|item| item.basis != Basis::Nothing).collect();
    if judged.is_empty() {
        return "Unproven: no figure can be judged.".to_owned();
    }
    let mut differ: Vec<&ComparedFigure> = judged.clone();
    differ.retain(|item| item.verdict != DifferenceVerdict::Unproven);
    differ.sort_by(|a, b| change(b).abs().total_cmp(&change(a).abs()));
    let all = judged.len();
    if differ.is_empty() {
        return format!("No difference is proven in {all} figures.");
    }
    let mut named: Vec<String> = differ.iter().take(NAMED).map(|item| one(item)).collect();
    if differ.len() > NAMED {
        named.push(format!("{} more", differ.len() - NAMED));
    }
    let verb = if differ.len() == 1 { "differs" } else { "differ" };
    format!("{} of {all} figures {verb}: {}.", differ.len(), list(&named))
}

fn change(item: &ComparedFigure) -> f64 {
    item.change().unwrap_or(0.0)
}

/// `RAM latency 15 % larger (worse)`.
fn one(item: &ComparedFigure) -> String {
    let way = match item.verdict {
        DifferenceVerdict::Larger => "larger",
        _ => "smaller",
    };
    let worse = match item.worse_by() {
        Some(_) => "worse",
        None => "better",
    };
    let tier: Vec<&str> = item.of.split_whitespace().collect();
    let share = percent(change(item).abs());
    format!("{} {} {share} {way} ({worse})", tier.join(" "), item.name)
}

/// What a gate says when it fails: `wall is 12 % worse`.
#[must_use]
pub fn worse(comparison: &Comparison) -> Option<(String, f64)> {
    let (item, share) = comparison.worst()?;
    let what = match item.of.as_str() {
        "wall" => "the wall time".to_owned(),
        "rate" => format!("{} a second", item.name),
        of => format!("{of} {}", item.name),
    };
    Some((format!("{what} is {} worse", percent(share)), share))
}
