//! The page of `file-copy-2008`: one row for each copier, the figures of 2008 beside them, and an
//! answer to each question, or "unproven". Pure.

use crate::output::figure::{or_absent, precise_rate, precise_time};
use crate::output::prose::{PageText, long_time};
use crate::output::report::interrupted_after;
use crate::output::table::Table;
use lab::description::{Experiment, Figure};
use lab::file_copy::{FileCopyOutcome, RecordedCopy};
use model::Bytes;
use std::path::Path;

const UNPROVEN: &str = "unproven";
/// A side that waited for less of the copy's time was not held up. Picked: two runs of
/// one copier differ by about as much.
const LEAST_WAIT_SHARE: f64 = 0.1;

impl super::OutcomePage for FileCopyOutcome {
    fn write_page(&self, experiment: &Experiment, directory: Option<&Path>, out: &mut PageText) {
        let bytes = Bytes(self.bytes);
        out.heading(&format!("{}: {} files, {bytes}", experiment.name, self.files));
        out.table(&figures(experiment, self), 1);
        out.heading("How soon at full speed, and who throttled whom");
        out.sentences(
            self.copies
                .iter()
                .map(|copy| format!("{}: {}; {}.", copy.name(), full_speed(copy), throttled(copy))),
        );
        out.heading("When it said done, and when it was");
        out.sentences(self.copies.iter().map(|copy| format!("{}: {}.", copy.name(), done(copy))));
        out.heading("The cache, and what a first read of the copy costs");
        out.sentences(self.copies.iter().map(|copy| {
            let first = first_read(copy, self.bytes);
            format!("{}: {}; {first}.", copy.name(), cache(copy))
        }));
        out.heading("Hits of a flash tier");
        out.sentence(&flash(self));
        let faults = self
            .copies
            .iter()
            .flat_map(|copy| copy.faults.iter().map(|fault| format!("{}, {fault}.", copy.name())));
        out.sentences(faults);
        out.sentences(self.notes.iter().map(|note| format!("Note: {note}.")));
        let kept = directory.unwrap_or(Path::new("")).display();
        out.sentence(&match &self.page {
            Some(page) => format!("All three over each other, in a browser: {kept}/{page}"),
            None => format!("Kept in {kept}: result.json and the recordings."),
        });
    }

    fn shortfall(&self) -> Option<String> {
        let faulty = self
            .copies
            .iter()
            .find(|copy| copy.faults.iter().any(|fault| fault.starts_with("not copied")));
        let failed = faulty.map(|copy| format!("{}: not everything was copied", copy.name()));
        failed.or_else(|| interrupted_after("done", sys::interrupt::requested()))
    }
}

fn figures<'a>(
    experiment: &'a Experiment,
    outcome: &'a FileCopyOutcome,
) -> Table<&'a RecordedCopy> {
    let then = |copy: &RecordedCopy| {
        let item = experiment.items("copiers").iter().find(|item| item.id == copy.copier);
        let figure = item.and_then(|item| experiment.figure(item.original.as_deref()?));
        or_absent(figure, Figure::to_string)
    };
    let bytes = outcome.bytes as f64;
    let time = |ns: Option<u64>| or_absent(ns, long_time);
    Table::of(&outcome.copies)
        .words("copier", 0, |copy| copy.name())
        .numbers("full speed, 2008", 1, then)
        .numbers("full speed", 1, move |copy| time(copy.full_speed_ns))
        .numbers("said done", 0, move |copy| time(copy.done_ns))
        .numbers("on the disk", 0, move |copy| time(copy.durable_ns))
        .numbers("rate", 0, move |copy| {
            or_absent(copy.durable_ns, |ns| precise_rate(bytes / (ns as f64 / 1e9)))
        })
        .numbers("first read", 0, move |copy| time(copy.first_read_ns))
}

fn full_speed(copy: &RecordedCopy) -> String {
    match copy.full_speed_ns {
        Some(0) => "the disk wrote at full speed from the first sample on".to_owned(),
        Some(ns) => format!("the disk wrote at full speed after {}", precise_time(ns as f64)),
        None => format!("how soon at full speed is {UNPROVEN}"),
    }
}

fn throttled(copy: &RecordedCopy) -> String {
    let (Some(reads), Some(writes)) = (copy.readers_waited_ns, copy.writers_waited_ns) else {
        return format!("who throttled whom is {UNPROVEN}");
    };
    let waits = format!(
        "reads waited {} for writes, writes {} for reads",
        long_time(reads),
        long_time(writes)
    );
    let whole = copy.durable_ns.or(copy.done_ns).unwrap_or(0) as f64;
    let who = if (reads.max(writes) as f64) < whole * LEAST_WAIT_SHARE {
        "neither held the other up"
    } else if reads >= writes.saturating_mul(2) {
        "the target throttled the source"
    } else if writes >= reads.saturating_mul(2) {
        "the source throttled the target"
    } else {
        "they throttled each other"
    };
    format!("{who}: {waits}")
}

fn done(copy: &RecordedCopy) -> String {
    match (copy.done_ns, copy.durable_ns) {
        // Two samples of the recording are 0.2 s.
        (Some(done), Some(durable)) if durable > done + 200_000_000 => format!(
            "said done after {}, and was on the disk {} later",
            long_time(done),
            long_time(durable - done)
        ),
        (Some(done), Some(_)) => {
            format!("said done after {}, when all was on the disk", long_time(done))
        }
        (Some(done), None) => {
            format!("said done after {}; when it was on the disk is {UNPROVEN}", long_time(done))
        }
        (None, _) => format!("when it said done is {UNPROVEN}"),
    }
}

fn cache(copy: &RecordedCopy) -> String {
    let dropped = match copy.cache_dropped_bytes {
        Some(bytes) => format!("{} of file pages were taken back", Bytes(bytes)),
        None => format!("what was taken back is {UNPROVEN}"),
    };
    match (copy.source_cached_bytes, copy.target_cached_bytes) {
        (Some(source), Some(target)) => format!(
            "{dropped}, {} of the sources and {} of the copies stayed in the cache",
            Bytes(source),
            Bytes(target)
        ),
        _ => format!("{dropped}, what stayed in the cache is {UNPROVEN}"),
    }
}

fn first_read(copy: &RecordedCopy, bytes: u64) -> String {
    let Some(ns) = copy.first_read_ns else {
        return format!("the cost of a first read is {UNPROVEN}");
    };
    let from_disk = match copy.first_read_cached_bytes {
        Some(cached) => {
            format!(", of which the disk gave {}", Bytes(bytes.saturating_sub(cached)))
        }
        None => String::new(),
    };
    format!("a first read of it took {}{from_disk}", long_time(ns))
}

fn flash(outcome: &FileCopyOutcome) -> String {
    let counts: Vec<String> = outcome
        .copies
        .iter()
        .filter_map(|copy| {
            let count = copy.flash?;
            Some(format!("{}: {} hits, {} misses", copy.name(), count.hits, count.misses))
        })
        .collect();
    if counts.is_empty() {
        return format!("Hits are {UNPROVEN}: there is no bcache below either disk.");
    }
    format!("{}.", counts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_unproven_and_who_waited_was_throttled() {
        let none = RecordedCopy::default();
        for said in [full_speed(&none), throttled(&none), done(&none), first_read(&none, 5)] {
            assert!(said.contains(UNPROVEN), "{said}");
        }
        assert!(cache(&none).contains(UNPROVEN));
        let second = 1_000_000_000;
        let copy = RecordedCopy {
            readers_waited_ns: Some(3 * second),
            writers_waited_ns: Some(second),
            done_ns: Some(2 * second),
            durable_ns: Some(9 * second),
            ..none
        };
        assert!(throttled(&copy).starts_with("the target throttled the source"));
        assert!(done(&copy).contains("7 s later"), "{}", done(&copy));
        let both = RecordedCopy { writers_waited_ns: Some(2 * second), ..copy };
        assert!(throttled(&both).starts_with("they throttled each other"));
        let long = RecordedCopy { durable_ns: Some(40 * second), ..both };
        assert!(throttled(&long).starts_with("neither held the other up"));
    }
}
