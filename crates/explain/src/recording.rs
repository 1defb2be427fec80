//! Where the time of a recording went.
//!
//! Six steps:
//!
//! 1. [`view`] cuts the window out of the recording.
//! 2. [`accounting`] makes the bars, their of-which parts and the repairs.
//! 3. [`rules`] judges every suspect.
//! 4. The assembly here adds what could not be seen, what is doubtful, what watching cost.
//! 5. [`attribution`] finds the series and the span of each claim.
//! 6. [`who`] names its actors and files.
//!
//! Pure: series in, findings out.

pub mod accounting;
pub mod attribution;
mod awaited;
mod contradictions;
mod copy_course;
mod coverage;
pub(crate) mod doubts;
mod limited;
pub mod moments;
pub mod rules;
mod unseen;
pub mod view;
pub mod who;
pub mod witness;
pub(crate) mod words;
pub mod work;

pub use doubts::RECORDING_WAS_CUT;
use model::explanation::{EventSource, Explanation, SCHEMA, Watching};
use model::recording::Recording;
pub use view::{View, Window};

/// From this length on opening and closing are a small part of what is watched, and count
/// with it; below it they would say more about the length than about the recorder.
const SETUP_COUNTS_FROM_NS: u64 = 1_000_000_000;

/// Explains the part of `recording` that lies in `window`.
#[must_use]
pub fn explain(recording: &Recording, window: Window) -> Explanation {
    let view = View::new(recording, window);
    let accounts = accounting::account(&view);
    let run = rules::RunView { view: &view, accounts: &accounts };
    let mut judged = rules::judge(&run);
    let mut unseen = unseen::unseen(&view, &accounts);
    for of_rule in judged.unseen {
        if unseen.iter().all(|known| known.what != of_rule.what) {
            unseen.push(of_rule);
        }
    }
    let contradictions =
        contradictions::settle(&run, &mut judged.findings, &mut judged.cleared, &mut unseen);
    let server = awaited::server(&view, &accounts);
    let (doubts, usual_doubts) = doubts::doubts(&view, &accounts.differences);
    let mut explanation = Explanation {
        schema: SCHEMA.to_owned(),
        subject: words::subject(recording),
        ending: words::ending(recording),
        from_ns: view.from_ns(),
        to_ns: view.to_ns(),
        wall_ns: view.wall_ns(),
        thread_ns: accounts.thread_ns,
        bars: accounts.bars,
        of_which: accounts.of_which,
        repairs: accounts.repairs,
        findings: judged.findings,
        remedies: judged.remedies,
        work: work::done(&view),
        copy: copy_course::report(&view),
        disk: judged.disk,
        server,
        covered: judged.covered,
        cleared: judged.cleared,
        unseen,
        doubts,
        usual_doubts,
        contradictions,
        usage: Vec::new(),
        moments: Vec::new(),
        marks: moments::marks(recording, view.from_ns(), view.to_ns()),
        watching: watching(&view),
    };
    attribution::attribute(&view, &mut explanation);
    who::name_actors(&view, &mut explanation);
    explanation
}

/// What watching cost: the recorder's own processor time over the wall time.
fn watching(view: &View) -> Watching {
    let wall_ns = view.wall_ns();
    let outcome = view.recording().outcome.as_ref();
    let own_cpu_ns = outcome.filter(|_| view.is_whole()).map(|outcome| {
        let setup_apart = wall_ns < SETUP_COUNTS_FROM_NS;
        let setup_ns = if setup_apart { outcome.own_setup_ns } else { 0 };
        outcome.own_cpu_ns.saturating_sub(setup_ns)
    });
    let cpu_ns = own_cpu_ns.or_else(|| view.growth("own.cpu_ns"));
    let (first, last) = view.samples();
    let samples = u64::from(last.saturating_sub(first)) + 1;
    Watching {
        core_share: cpu_ns.filter(|_| wall_ns > 0).map(|cpu_ns| cpu_ns as f64 / wall_ns as f64),
        samples: samples.min(view.recording().ticks.len() as u64),
        missed: outcome.map_or(0, |outcome| outcome.missed_samples),
        events: event_source(view),
    }
}

/// How the kernel's events came; `None` where there were none.
fn event_source(view: &View) -> Option<EventSource> {
    view.sum("trace.events").or_else(|| view.sum("trace.sched.run_ns"))?;
    Some(if is_in_kernel(view) { EventSource::InKernel } else { EventSource::Ring })
}

/// Whether programs inside the kernel summed its events, so that none went missing on its way.
/// What such a program could not keep is counted as lost and doubted as such.
pub(crate) fn is_in_kernel(view: &View) -> bool {
    view.facts().sight("events.in_kernel").is_open()
}
