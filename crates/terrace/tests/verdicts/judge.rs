//! The judge: what was reported against what was done, and the confusion table. It knows no
//! case by name.

use crate::busy::DISTURBED;
use crate::cases::{Case, SHARED};
use crate::stage::RunReport;
use crate::witness::{STATES, Times};
use model::explanation::{Actor, ActorRole};
use model::recording::Subject;

/// The share of the thread time that may stay without a name where root watches.
const UNEXPLAINED_SHARE: f64 = 0.03;

/// The share of the time outside user code that findings are meant to account for. No verdict is
/// wrong for less, but nine of ten cases must have it.
const WELL_COVERED: f64 = 0.9;
const WELL_COVERED_CASES: f64 = 0.9;

/// Of fewer cases nothing follows.
const LEAST_CASES: usize = 10;

/// How far events and delay accounting may lie apart, as a share of the thread time.
const AGREEMENT_SHARE: f64 = 0.02;

/// What lies between the two boundaries of one wait: the kernel starts its own clock before it
/// picks who runs next and tells of the switch, and stops it when it has told of the waking and
/// picked a processor. Seen on an idle machine: 1.3 us for each of 13,400 waits.
const WAIT_BOUNDARY_NS: u64 = 3_000;

/// The kernel tells the running time of a thread as of its last tick.
const TICK_NS: u64 = 4_000_000;

/// One verdict.
struct Attempt {
    report: String,
    /// The share of the time outside user code that the findings account for.
    covered: Option<f64>,
    is_right: bool,
    is_disturbed: bool,
}

/// A case with all its verdicts.
pub struct Row {
    case: &'static Case,
    skipped: Option<String>,
    attempts: Vec<Attempt>,
}

impl Row {
    /// A case that was not judged yet.
    pub fn new(case: &'static Case) -> Self {
        Self { case, skipped: None, attempts: Vec::new() }
    }

    /// A case that cannot be made here.
    pub fn skipped(mut self, need: String) -> Self {
        self.skipped = Some(need);
        self
    }

    /// Notes one verdict.
    pub fn add(&mut self, report: &RunReport, faults: &[String]) {
        self.attempts.push(Attempt {
            report: report.findings().join(" "),
            covered: report.json["covered"].as_f64(),
            is_right: faults.is_empty(),
            is_disturbed: report.others.is_some_and(|share| share > DISTURBED),
        });
    }

    /// Whether no attempt was right, and at least one had the processors to itself.
    pub fn is_wrong(&self) -> bool {
        let undisturbed = |attempt: &Attempt| !attempt.is_disturbed;
        self.is_not_right() && self.attempts.iter().any(undisturbed)
    }

    /// Whether no attempt was right because each was disturbed: such a case was not judged.
    fn is_disturbed(&self) -> bool {
        self.is_not_right() && !self.is_wrong()
    }

    fn is_not_right(&self) -> bool {
        self.skipped.is_none() && !self.attempts.iter().any(|attempt| attempt.is_right)
    }
}

/// What is wrong with a verdict; empty if it is right.
pub fn faults(case: &Case, report: &RunReport) -> Vec<String> {
    let mut faults = Vec::new();
    let found = report.findings();
    let is_staged = |id: &&&str| case.first.contains(*id) || !SHARED.contains(*id);
    match found.iter().find(is_staged) {
        Some(first) if case.first.contains(first) => {}
        first => faults.push(format!("first is {first:?}, not {:?}", case.first)),
    }
    for id in case.also {
        if !found.contains(id) {
            faults.push(format!("{id} is missing"));
        }
    }
    for id in &found {
        let true_here = [case.first, case.also, case.besides, SHARED];
        if !true_here.iter().any(|list| list.contains(id)) {
            faults.push(format!("{id} is false"));
        }
    }
    let cleared = report.json["cleared"].as_array().unwrap();
    for id in cleared.iter().filter_map(|one| one["id"].as_str()) {
        if case.also.contains(&id) || case.first == [id] {
            faults.push(format!("{id} was cleared and is guilty"));
        }
    }
    faults.extend(misnamed(case, report));
    faults.extend(unexplained(report));
    faults.extend(bars_close(report));
    faults.extend(disagreement(report));
    match &report.witnessed {
        Some(Ok(seen)) => {
            faults.extend(contradicted(report, "thread", &seen.threads));
            faults.extend(contradicted(report, "wall", &seen.wall));
        }
        Some(Err(why)) => faults.push(why.clone()),
        None => {}
    }
    faults
}

/// Whom the first staged finding does not name first in the role that they had.
fn misnamed(case: &Case, report: &RunReport) -> Vec<String> {
    let found = report.json["findings"].as_array().unwrap();
    let is_first = |id: &str| case.first.contains(&id);
    let Some(first) = found.iter().find(|cause| cause["id"].as_str().is_some_and(is_first)) else {
        return Vec::new();
    };
    let actors: Vec<Actor> = serde_json::from_value(first["actors"].clone()).unwrap_or_default();
    let named = |role: ActorRole| {
        let first = actors.iter().find(|actor| actor.role == role);
        first.map(|actor| actor.used.name.as_str())
    };
    let wrong = case.actors.iter().filter(|(role, name)| named(*role) != Some(*name));
    wrong.map(|(role, name)| format!("{role:?} is {:?}, not {name}", named(*role))).collect()
}

/// Each slice of a bar against the kernel's own trace, as a share of all its time.
fn contradicted(report: &RunReport, bar: &str, seen: &Times) -> Option<String> {
    let slices = report.json["bars"][bar].as_array()?;
    let sum = |names: &[&str]| -> u64 {
        let is_named = |name: &str| names.contains(&name);
        let named = slices.iter().filter(|slice| slice["name"].as_str().is_some_and(is_named));
        named.filter_map(|slice| slice["ns"].as_u64()).sum()
    };
    let slices = STATES.map(|state| match state {
        // A thread that waits for a child sleeps.
        "sleep" => sum(&["sleep", "children"]),
        state => sum(&[state]),
    });
    let whole = seen.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<String> = STATES
        .iter()
        .zip(slices.iter().zip(seen))
        .map(|(state, (slice, seen))| {
            let share = |ns: u64| ns as f64 / whole * 100.0;
            format!("{state} {:.2} ({:.2})", share(*slice), share(*seen))
        })
        .collect();
    let said = format!("{bar} bar in % (by the kernel's trace): {}", shares.join(", "));
    println!("    {said}");
    let is_apart =
        |(slice, seen): (&u64, &u64)| slice.abs_diff(*seen) as f64 / whole > AGREEMENT_SHARE;
    slices.iter().zip(seen).any(is_apart).then_some(said)
}

fn unexplained(report: &RunReport) -> Option<String> {
    let whole = report.json["thread_ns"].as_f64()?;
    let slices = report.json["bars"]["thread"].as_array()?;
    let share = |name| {
        let slice = slices.iter().find(|slice| slice["name"] == name);
        slice.and_then(|slice| slice["ns"].as_f64()).unwrap_or(0.0) / whole.max(1.0)
    };
    let left = share("unexplained");
    (left > UNEXPLAINED_SHARE).then(|| format!("{:.1} % unexplained", left * 100.0))
}

/// Both bars add up to their wholes, to the nanosecond.
fn bars_close(report: &RunReport) -> Vec<String> {
    let sum = |bar: &str| -> u64 {
        let slices = report.json["bars"][bar].as_array().unwrap();
        slices.iter().filter_map(|slice| slice["ns"].as_u64()).sum()
    };
    let whole = |name: &str| report.json[name].as_u64().unwrap();
    [("thread", "thread_ns"), ("wall", "wall_ns")]
        .into_iter()
        .filter(|(bar, name)| sum(bar) != whole(name))
        .map(|(bar, name)| format!("bar {bar}: {} is not {}", sum(bar), whole(name)))
        .collect()
}

/// Run with queue, and block I/O, by events against the kernel's own accounting. Run and
/// queue are not told apart: the kernel stamps a thread that it puts back into the queue
/// with a clock that stands still between ticks, and so charges some of its run as queue.
fn disagreement(report: &RunReport) -> Vec<String> {
    let recording = &report.recording;
    if matches!(recording.facts.subject, Subject::Machine) {
        // It has no tasks of its own.
        return Vec::new();
    }
    let bar = report.json["bars"]["thread"].as_array().unwrap();
    let slice = |name: &str| bar.iter().find(|slice| slice["name"] == name)?["ns"].as_u64();
    let last = recording.ticks.len().saturating_sub(1) as u32;
    let growth = |name: &str| recording.series(name).and_then(|series| series.growth(0, last));
    let steal = growth("stat.cpu.steal_ns").unwrap_or(0);
    let alive: u64 = recording.tasks.iter().map(|task| task.alive_ns).sum();
    let threads: u64 = recording.tasks.iter().map(|task| task.threads).sum();
    let waits = growth("trace.sched.block_io_waits").unwrap_or(0);
    let mut found = Vec::new();
    let sums = [
        (
            "run",
            "queue",
            recording.tasks.iter().map(|task| task.run_ns + task.queue.total_ns).sum::<u64>(),
        ),
        (
            "block_io",
            "",
            recording.tasks.iter().filter_map(|task| Some(task.block_io?.total_ns)).sum(),
        ),
    ];
    for (name, other, charged) in sums {
        if growth("trace.sched.run_ns").is_none() {
            continue;
        }
        let traced = slice(name).unwrap_or(0) + slice(other).unwrap_or(0);
        // The kernel's 707 s of block I/O in a life of 0.9 s: told apart by the product.
        if charged > alive {
            continue;
        }
        let allowed = (alive as f64 * AGREEMENT_SHARE) as u64
            + threads * TICK_NS
            + waits * WAIT_BOUNDARY_NS
            + steal;
        let apart = charged.abs_diff(traced);
        if apart > allowed {
            let share = apart as f64 / alive.max(1) as f64 * 100.0;
            found.push(format!("{name}: the bar {traced} ns, accounting {charged} ns: {share:.1} % of the thread time apart"));
        }
    }
    found
}

/// Of the cases that were judged and have the figure: how many are well covered, and all of them.
fn well_covered(rows: &[Row]) -> (usize, usize) {
    let last = |row: &Row| row.attempts.last().and_then(|attempt| attempt.covered);
    let covered: Vec<f64> =
        rows.iter().filter(|row| !row.is_disturbed()).filter_map(last).collect();
    (covered.iter().filter(|share| **share >= WELL_COVERED).count(), covered.len())
}

/// Whether findings account for too little in too many cases.
pub fn is_badly_covered(rows: &[Row]) -> bool {
    let (well, all) = well_covered(rows);
    all >= LEAST_CASES && (well as f64) < all as f64 * WELL_COVERED_CASES
}

/// The confusion table: what was done, what was reported first, and whether that was right.
pub fn table(rows: &[Row]) -> String {
    let mut lines =
        vec![format!("{:<20} {:<9} {:>7}  {}", "made", "verdict", "covered", "told, worst first")];
    for row in rows {
        if let Some(need) = &row.skipped {
            lines.push(format!("{:<20} skipped   needs {need}", row.case.name));
            continue;
        }
        for (number, attempt) in row.attempts.iter().enumerate() {
            let name = if number == 0 { row.case.name } else { "" };
            let verdict = match attempt {
                Attempt { is_right: true, .. } => "right",
                Attempt { is_disturbed: true, .. } => "disturbed",
                _ => "WRONG",
            };
            let covered = attempt.covered.map_or("-".to_owned(), |share| format!("{share:.2}"));
            lines.push(format!("{name:<20} {verdict:<9} {covered:>7}  {}", attempt.report));
        }
    }
    let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let skipped = count(|row| row.skipped.is_some());
    let disturbed = count(Row::is_disturbed);
    let judged = rows.len() - skipped - disturbed;
    let right = judged - count(Row::is_wrong);
    lines.push(format!(
        "{right} of {judged} causes named; skipped {skipped}, disturbed {disturbed}"
    ));
    let (well, all) = well_covered(rows);
    lines.push(format!("covered {WELL_COVERED} or more: {well} of {all}"));
    if disturbed > 0 {
        lines.push("skipped: needs processors that others leave alone".to_owned());
    }
    lines.join("\n")
}
