//! An empty cache gets warm by skewed requests: how well it then hits, how soon, how fast, and what
//! that writes to the stick; beside bcache, dm-cache and the disk alone, each in its own guest.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, CACHE_BYTES, DATA_MIB, ENGINES, boot, figure, mean, requests, sorted};
use super::log::{BLOCK_BYTES, fewest_misses};

const SKEW: &str = "1.2";
/// Until it is warm, and measured then.
const REQUESTS: [&str; 2] = ["8000", "4000"];

/// Figures of an engine.
const FIGURES: [&str; 8] = [
    "misses",
    "fewest misses",
    "requests a second",
    "predicted requests a second",
    "seconds until 90 % of warm",
    "bytes written to the stick for each byte hit",
    "wrong blocks",
    "share of hits",
];

/// Compares the engines.
///
/// # Errors
/// When a guest fails.
pub(super) fn measure(session: &mut Session) -> Result<(), Error> {
    let rounds = session.request.alternations;
    let parameters = format!("{REQUESTS:?}, skew {SKEW}, {CACHE} before {DATA_MIB} MiB");
    let (target, program) = (session.target.clone(), session.terrace.program.clone());
    let figures = FIGURES.len() * ENGINES.len();
    let mut steps = Steps::open(&target, "boost-warm", &program, &parameters, figures)?;
    let mut all = vec![vec![Vec::new(); FIGURES.len()]; ENGINES.len()];
    for round in 0..rounds {
        let step = steps.get(round, || one_round(session, round))?;
        step.note_in(&mut session.record);
        for (values, value) in all.iter_mut().flatten().zip(&step.values) {
            values.push(*value);
        }
    }
    compare(session, &all)?;
    steps.end(&mut session.record, "rounds", rounds);
    Ok(())
}

/// The figures of each engine; which is first changes from round to round.
fn one_round(session: &mut Session, round: usize) -> Result<(Vec<f64>, Vec<String>), Error> {
    let mut all = vec![Vec::new(); ENGINES.len()];
    for turn in 0..ENGINES.len() {
        let engine = (turn + round) % ENGINES.len();
        all[engine] = of_engine(session, ENGINES[engine], round)?;
    }
    Ok((all.concat(), Vec::new()))
}

fn of_engine(session: &mut Session, engine: &str, round: usize) -> Result<Vec<f64>, Error> {
    let seed = (round + 1).to_string();
    let [cold, warm] = REQUESTS;
    boot(session, "warm", &["warm.sh", engine, CACHE, DATA_MIB, cold, warm, SKEW, &seed], None)?;
    let (cold, warm) = (requests(session, "cold")?, requests(session, "warm")?);
    let blocks = [&cold.blocks[..], &warm.blocks[..]].concat();
    let slots = (CACHE_BYTES / BLOCK_BYTES) as usize;
    let fewest = fewest_misses(&blocks, cold.blocks.len(), slots);
    let [disk_s, stick_s] =
        ["disk_us", "stick_us"].map(|name| Ok::<_, Error>(mean(&sorted(session, name)?) / 1e6));
    let predicted = 1.0 / (disk_s? * (1.0 - warm.hit_ratio()) + stick_s? * warm.hit_ratio());
    let written = cold.stick_written_bytes + warm.stick_written_bytes;
    Ok(vec![
        warm.misses(),
        fewest,
        warm.rate(),
        predicted,
        cold.seconds_until(0.9 * warm.hit_ratio()),
        written / (cold.hit_bytes() + warm.hit_bytes()).max(BLOCK_BYTES),
        figure(session, "wrong")?,
        warm.hit_ratio(),
    ])
}

fn compare(session: &mut Session, all: &[Vec<Vec<f64>>]) -> Result<(), Error> {
    let series = |engine: usize, figure: usize| Series::new(ENGINES[engine], &all[engine][figure]);
    let against = |figure: usize, name: &str| Series::new(name, &all[0][figure]);
    let record = &mut session.record;
    let what = |figure: usize| format!("zipf {SKEW}: {}", FIGURES[figure]);
    let fewest = (series(0, 0), against(1, "fewest possible"));
    record.add_against(&what(0), "", fewest, Some(Target::AtMost(1.15)))?;
    let predicted = (series(0, 2), against(3, "predicted"));
    record.add_against(&what(2), "/s", predicted, Some(Target::AtLeast(0.95)))?;
    let rows = [
        (2, "/s", Some(Target::AtLeast(1.0))),
        (4, "s", Some(Target::AtMost(1.1))),
        (5, "", Some(Target::AtMost(0.5))),
        (7, "", None),
    ];
    for (figure, unit, target) in rows {
        for (engine, name) in ENGINES.iter().enumerate().skip(1) {
            // The disk alone gets no hits.
            if *name == "none" && figure != 2 {
                continue;
            }
            let target = target.filter(|_| *name == "bcache");
            let pair = (series(0, figure), series(engine, figure));
            record.add_against(&what(figure), unit, pair, target)?;
        }
    }
    record.add_alone(&what(6), "", series(0, 6), Some(Target::AtMost(0.0)))
}
