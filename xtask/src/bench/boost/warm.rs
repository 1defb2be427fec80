//! An empty cache gets warm by skewed requests: how well it then hits, how soon, how fast, and what
//! that writes to the stick; against bcache, dm-cache and the disk alone, and a cache that a fill
//! brings the most likely blocks at the same time, each in its own guest.
//!
//! The filled cache is warm when it has as many hits as the one that fills by demand.

use crate::bench::Session;
use crate::bench::record::{Series, Target};
use crate::bench::steps::Steps;
use crate::error::Error;

use super::guest::{CACHE, CACHE_BYTES, DATA_MIB, boot, figure, mean, requests, sorted};
use super::log::{BLOCK_BYTES, RequestLog, fewest_misses};

const SKEW: &str = "1.2";
/// Until it is warm, and measured then.
const REQUESTS: [&str; 2] = ["8000", "4000"];

/// What is compared.
struct Way {
    name: &'static str,
    /// What is before the disk.
    engine: &'static str,
    /// How many blocks a fill brings; more than are kept.
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
    Way { name: "terrace, filled", engine: "boost", filled: Some(FILLED_BLOCKS) },
];
/// Places among them.
const OURS: usize = 0;
const BCACHE: usize = 1;
const DISK: usize = 3;
const FILLED: usize = 4;
pub(super) const FILLED_BLOCKS: &str = "8000";

/// Figures of each.
pub(super) const FIGURES: [&str; 8] = [
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
    let mut runs = Vec::new();
    for turn in 0..WAYS.len() {
        let way = (turn + round) % WAYS.len();
        boot(session, "warm", &script(WAYS[way].engine, WAYS[way].filled, round), None)?;
        runs.push((way, WarmRun::read(session)?));
    }
    runs.sort_by_key(|(way, _)| *way);
    let by_demand = runs[OURS].1.share_of_hits();
    let figures = runs.iter().map(|(way, run)| {
        run.figures(if *way == FILLED { by_demand } else { run.share_of_hits() })
    });
    Ok((figures.collect::<Vec<_>>().concat(), Vec::new()))
}

/// What the script of a run is called with.
pub(super) fn script(engine: &str, filled: Option<&str>, round: usize) -> Vec<String> {
    let [cold, warm] = REQUESTS;
    let seed = (round + 1).to_string();
    let words = ["warm.sh", engine, CACHE, DATA_MIB, cold, warm, SKEW, &seed];
    words.into_iter().chain(filled).map(str::to_owned).collect()
}

/// What a run of the script left.
pub(super) struct WarmRun {
    cold: RequestLog,
    warm: RequestLog,
    /// What the disk and the stick take for a request.
    device_seconds: [f64; 2],
    wrong: f64,
}

impl WarmRun {
    /// # Errors
    /// When the run left something else.
    pub(super) fn read(session: &Session) -> Result<Self, Error> {
        let seconds = |name| Ok::<_, Error>(mean(&sorted(session, name)?) / 1e6);
        Ok(Self {
            cold: requests(session, "cold")?,
            warm: requests(session, "warm")?,
            device_seconds: [seconds("disk_us")?, seconds("stick_us")?],
            wrong: figure(session, "wrong")?,
        })
    }

    /// Of the requests that are measured.
    pub(super) fn share_of_hits(&self) -> f64 {
        self.warm.hit_ratio()
    }

    /// Its [`FIGURES`]; a cache is warm with this share of hits.
    pub(super) fn figures(&self, warm_hits: f64) -> Vec<f64> {
        let Self { cold, warm, device_seconds: [disk_s, stick_s], wrong } = self;
        let blocks = [&cold.blocks[..], &warm.blocks[..]].concat();
        let slots = (CACHE_BYTES / BLOCK_BYTES) as usize;
        let hits = warm.hit_ratio();
        let written = cold.stick_written_bytes + warm.stick_written_bytes;
        vec![
            warm.misses(),
            fewest_misses(&blocks, cold.blocks.len(), slots),
            warm.rate(),
            1.0 / (disk_s * (1.0 - hits) + stick_s * hits),
            cold.seconds_until(0.9 * warm_hits),
            written / (cold.hit_bytes() + warm.hit_bytes()).max(BLOCK_BYTES),
            *wrong,
            hits,
        ]
    }
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
