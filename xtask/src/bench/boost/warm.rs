//! An empty cache gets warm by skewed requests: how well it then hits, how soon, how fast, and what
//! that writes to the stick; beside bcache, dm-cache and the disk alone, and a cache that is filled
//! ahead with the most likely blocks, each in its own guest.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, CACHE_BYTES, DATA_MIB, boot, figure, mean, requests, sorted};
use super::log::{BLOCK_BYTES, fewest_misses};

const SKEW: &str = "1.2";
/// Until it is warm, and measured then.
const REQUESTS: [&str; 2] = ["8000", "4000"];

/// What is compared.
struct Way {
    name: &'static str,
    /// What is before the disk.
    engine: &'static str,
    /// How many blocks are filled ahead; more than are kept.
    filled: Option<&'static str>,
}

impl Way {
    const fn by_demand(name: &'static str, engine: &'static str) -> Self {
        Self { name, engine, filled: None }
    }
}

const WAYS: [Way; 5] = [
    Way::by_demand("terrace", "boost"),
    Way::by_demand("bcache", "bcache"),
    Way::by_demand("dm-cache", "dm-cache"),
    Way::by_demand("disk alone", "none"),
    Way { name: "terrace, filled ahead", engine: "boost", filled: Some("8000") },
];
/// Places among them.
const OURS: usize = 0;
const BCACHE: usize = 1;
const DISK: usize = 3;
const FILLED: usize = 4;

/// Figures of each.
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
    let figures = FIGURES.len() * WAYS.len();
    let mut steps = Steps::open(&target, "boost-warm", &program, &parameters, figures)?;
    let mut all = vec![vec![Vec::new(); FIGURES.len()]; WAYS.len()];
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

/// The figures of each; which is first changes from round to round.
fn one_round(session: &mut Session, round: usize) -> Result<(Vec<f64>, Vec<String>), Error> {
    let mut all = vec![Vec::new(); WAYS.len()];
    for turn in 0..WAYS.len() {
        let way = (turn + round) % WAYS.len();
        all[way] = of_way(session, &WAYS[way], round)?;
    }
    Ok((all.concat(), Vec::new()))
}

fn of_way(session: &mut Session, way: &Way, round: usize) -> Result<Vec<f64>, Error> {
    let seed = (round + 1).to_string();
    let [cold, warm] = REQUESTS;
    let mut script = vec!["warm.sh", way.engine, CACHE, DATA_MIB, cold, warm, SKEW, &seed];
    script.extend(way.filled);
    boot(session, "warm", &script, None)?;
    let fill_s = if way.filled.is_some() { figure(session, "fill_s")? } else { 0.0 };
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
        fill_s + cold.seconds_until(0.9 * warm.hit_ratio()),
        written / (cold.hit_bytes() + warm.hit_bytes()).max(BLOCK_BYTES),
        figure(session, "wrong")?,
        warm.hit_ratio(),
    ])
}

fn compare(session: &mut Session, all: &[Vec<Vec<f64>>]) -> Result<(), Error> {
    let series = |way: usize, figure: usize| Series::new(WAYS[way].name, &all[way][figure]);
    let against = |figure: usize, name: &str| Series::new(name, &all[OURS][figure]);
    let record = &mut session.record;
    let what = |figure: usize| format!("zipf {SKEW}: {}", FIGURES[figure]);
    let fewest = (series(OURS, 0), against(1, "fewest possible"));
    record.add_against(&what(0), "", fewest, Some(Target::AtMost(1.15)))?;
    let predicted = (series(OURS, 2), against(3, "predicted"));
    record.add_against(&what(2), "/s", predicted, Some(Target::AtLeast(0.95)))?;
    let rows = [
        (2, "/s", Some(Target::AtLeast(1.0))),
        (4, "s", Some(Target::AtMost(1.1))),
        (5, "", Some(Target::AtMost(0.5))),
        (7, "", None),
    ];
    for (figure, unit, target) in rows {
        for peer in BCACHE..=DISK {
            // The disk alone gets no hits.
            if peer == DISK && figure != 2 {
                continue;
            }
            let target = target.filter(|_| peer == BCACHE);
            record.add_against(
                &what(figure),
                unit,
                (series(OURS, figure), series(peer, figure)),
                target,
            )?;
        }
    }
    let filled = (series(FILLED, 4), series(BCACHE, 4));
    record.add_against(&what(4), "s", filled, Some(Target::AtMost(0.2)))?;
    record.add_against(&what(7), "", (series(FILLED, 7), series(BCACHE, 7)), None)?;
    for way in [OURS, FILLED] {
        record.add_alone(&what(6), "", series(way, 6), Some(Target::AtMost(0.0)))?;
    }
    Ok(())
}
