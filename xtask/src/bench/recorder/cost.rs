//! What recorders cost at rest: ours at 10 and 100 samples a second, those there are at
//! the fastest rate that they offer.

use std::time::Duration;

use super::contender::{self, Contender};
use crate::bench::Session;
use crate::error::Error;

/// Opening every source is over.
const SETTLE: Duration = Duration::from_secs(3);

/// Long enough that a window holds 200 samples at 10 Hz.
const WINDOW: Duration = Duration::from_secs(20);

/// A command that costs nothing and outlives the window.
const IDLE: &[&str] = &["sleep", "60"];

const PEERS: &[&str] = &["sadc", "atop", "dool", "pmlogger", "below"];

/// Measures the cost of every recorder there is.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let mut contenders = ours(session);
    contenders.extend(contender::peers(session, PEERS)?);
    let what = |label: &str| format!("cost: {label}");
    contender::compare(session, "cost of recorders", &contenders, (SETTLE, WINDOW), what)
}

fn ours(session: &Session) -> Vec<Contender> {
    let file = session.directory.file("cost.trec");
    let row = |label, words: &[&str], most| Contender::ours(&session.terrace, label, words, most);
    let run = |rate, trace| {
        let mut words = vec!["run", "--force", "--rate", rate, "--trace", trace, "-o", &file, "--"];
        words.extend(IDLE);
        words
    };
    let sched = "sched,block,vmscan,writeback";
    vec![
        row("run, 10 Hz, no events", &run("10", "none"), Some(0.5)),
        row("run, 10 Hz, events", &run("10", sched), Some(0.5)),
        row("run, 100 Hz, no events", &run("100", "none"), Some(2.5)),
        row(
            "record, whole machine, 10 Hz, no events",
            &["record", "--for", "60s", "--force", "--trace", "none", "-o", &file],
            None,
        ),
    ]
}
