//! What the subject has done, by the counter of `--work`: its growth, and its rate. What that is
//! worth, and who did it, is not judged here.

use super::View;
use model::explanation::WorkDone;

/// The names of counters of work start so.
pub const WORK: &str = "work.";

/// What was done in the view; `None` where no counter of work was recorded, or was never read.
pub(super) fn done(view: &View) -> Option<WorkDone> {
    let series = view.starting_with(WORK).next()?;
    let name = series.schema.name.as_str();
    let amount = view.growth(name)?;
    let seconds = view.wall_ns() as f64 / 1e9;
    Some(WorkDone {
        series: name.to_owned(),
        name: name.trim_start_matches(WORK).to_owned(),
        source: series.schema.source.clone(),
        amount,
        per_s: if seconds > 0.0 { amount as f64 / seconds } else { 0.0 },
    })
}
