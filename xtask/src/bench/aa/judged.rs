//! Pairs of surveys, judged by the rule of `model::comparison`. Pure: surveys in, counts out.
//!
//! The noise of a quantity is learnt from all plain runs but the ones that are judged: a run that
//! helped to say what is normal would be called normal.

use model::comparison::{DifferenceVerdict, Noise};
use model::survey::Survey;
use model::{Tier, TierKind};

/// One figure of one tier in every run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    /// The tier's name.
    pub(super) tier: String,
    /// `latency`, `read`, `write` or `copy`.
    pub(super) name: &'static str,
    /// `ns` or `GB/s`.
    pub(super) unit: &'static str,
    /// Whether the tier is memory or a cache of it, which a slowed build makes slower.
    is_memory: bool,
    /// The median in each run; `None` where the run has none.
    values: Vec<Option<f64>>,
}

/// How many pairs were judged, and how many of them called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    pub(super) called: usize,
    pub(super) judged: usize,
}

/// What is called different among equal runs.
#[derive(Debug, Default)]
pub(super) struct Equal {
    /// Of pairs of one quantity.
    pub(super) quantities: Pairs,
    /// Of pairs of one tier, called when any of its quantities is.
    pub(super) tiers: Pairs,
}

/// In how many pairs a slowed tier was found slower.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) tier: String,
    pub(super) pairs: Pairs,
}

impl Pairs {
    /// The share that was called; 0 where nothing was judged.
    pub(super) fn share(self) -> f64 {
        self.called as f64 / self.judged.max(1) as f64
    }

    pub(super) fn add(&mut self, is_called: bool) {
        self.judged += 1;
        self.called += usize::from(is_called);
    }
}

impl Quantity {
    /// The values of the runs that have one.
    pub(super) fn present(&self) -> Vec<f64> {
        self.values.iter().copied().flatten().collect()
    }

    /// `name (noise 0.012, provable 5.0 %, called 3 of 190)`.
    pub(super) fn describe(&self, name: &str) -> String {
        let Some(noise) = Noise::learn(&self.present()) else {
            return format!("{name} ({} runs)", self.present().len());
        };
        let mut pairs = Pairs::default();
        for (first, second) in pairs_of(self.values.len()) {
            if let Some(is_called) = self.differs(first, second) {
                pairs.add(is_called);
            }
        }
        format!(
            "{name} (noise {:.4}, provable {:.1} %, called {} of {})",
            noise.log_deviation,
            noise.provable() * 100.0,
            pairs.called,
            pairs.judged
        )
    }

    /// Whether runs `first` and `second` are called different; `None` where one has no value or too
    /// few others have.
    fn differs(&self, first: usize, second: usize) -> Option<bool> {
        let (a, b) = (self.values[first]?, self.values[second]?);
        let verdict = self.noise_without(&[first, second])?.judge(a, b);
        Some(verdict != DifferenceVerdict::Unproven)
    }

    fn noise_without(&self, judged: &[usize]) -> Option<Noise> {
        let others: Vec<f64> = self
            .values
            .iter()
            .enumerate()
            .filter(|(run, _)| !judged.contains(run))
            .filter_map(|(_, value)| *value)
            .collect();
        Noise::learn(&others)
    }
}

/// Every quantity that any of `surveys` has, in the order of the page.
pub(super) fn quantities(surveys: &[Survey]) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = Vec::new();
    for (run, survey) in surveys.iter().enumerate() {
        for tier in &survey.tiers {
            for (name, unit, value) in figures(tier) {
                let is_it = |known: &&mut Quantity| known.tier == tier.name && known.name == name;
                if let Some(known) = all.iter_mut().find(is_it) {
                    known.values[run] = value;
                    continue;
                }
                let mut values = vec![None; surveys.len()];
                values[run] = value;
                all.push(Quantity {
                    tier: tier.name.clone(),
                    name,
                    unit,
                    is_memory: matches!(tier.kind, TierKind::CpuCache | TierKind::Ram),
                    values,
                });
            }
        }
    }
    all
}

fn figures(tier: &Tier) -> [(&'static str, &'static str, Option<f64>); 4] {
    let rate = |estimate: &Option<model::Estimate>| Some(estimate.as_ref()?.median / 1e9);
    [
        ("latency", "ns", tier.latency_ns.as_ref().map(|latency| latency.median)),
        ("read", "GB/s", rate(&tier.read_bytes_per_s)),
        ("write", "GB/s", rate(&tier.write_bytes_per_s)),
        ("copy", "GB/s", rate(&tier.copy_bytes_per_s)),
    ]
}

/// All pairs of equal runs.
pub(super) fn equal(quantities: &[Quantity]) -> Equal {
    let mut equal = Equal::default();
    let mut tiers: Vec<&str> = quantities.iter().map(|quantity| quantity.tier.as_str()).collect();
    tiers.dedup();
    let runs = quantities.first().map_or(0, |quantity| quantity.values.len());
    for tier in tiers {
        let of_tier = || quantities.iter().filter(move |quantity| quantity.tier == tier);
        for (first, second) in pairs_of(runs) {
            let verdicts: Vec<bool> =
                of_tier().filter_map(|quantity| quantity.differs(first, second)).collect();
            verdicts.iter().for_each(|&is_called| equal.quantities.add(is_called));
            if !verdicts.is_empty() {
                equal.tiers.add(verdicts.contains(&true));
            }
        }
    }
    equal
}

/// All pairs of a plain and a slowed run, for the latency of each tier that a slowed build makes
/// slower.
pub(super) fn slower(plain: &[Quantity], slowed: &[Quantity]) -> Vec<Found> {
    let mut all = Vec::new();
    for quantity in plain.iter().filter(|quantity| quantity.is_memory && quantity.name == "latency")
    {
        let is_it = |other: &&Quantity| other.tier == quantity.tier && other.name == quantity.name;
        let Some(slowed) = slowed.iter().find(is_it) else {
            continue;
        };
        let mut pairs = Pairs::default();
        for (run, value) in quantity.values.iter().enumerate() {
            let noise = quantity.noise_without(&[run]);
            let (Some(value), Some(noise)) = (value, noise) else {
                continue;
            };
            for slowed in slowed.present() {
                pairs.add(noise.judge(*value, slowed) == DifferenceVerdict::Larger);
            }
        }
        all.push(Found { tier: quantity.tier.clone(), pairs });
    }
    all
}

fn pairs_of(runs: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..runs).flat_map(move |first| (first + 1..runs).map(move |second| (first, second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(tier: &str, values: &[f64]) -> Quantity {
        Quantity {
            tier: tier.to_owned(),
            name: "latency",
            unit: "ns",
            is_memory: true,
            values: values.iter().copied().map(Some).collect(),
        }
    }

    const CALM: [f64; 8] = [3.0, 3.01, 3.02, 2.99, 3.0, 3.01, 2.98, 3.0];

    #[test]
    fn a_pair_does_not_teach_its_own_noise() {
        // With the odd run among the teachers, its noise would excuse it.
        let mut values = CALM;
        values[2] = 4.0;
        let quantity = latency("L2", &values);
        assert_eq!(quantity.differs(0, 2), Some(true));
        assert_eq!(quantity.differs(0, 1), Some(false));
        let equal = equal(&[quantity]);
        assert_eq!((equal.quantities.called, equal.quantities.judged), (7, 28));
        assert_eq!(equal.quantities, equal.tiers);
    }

    #[test]
    fn a_tier_is_called_once_for_all_its_quantities() {
        let mut odd = CALM;
        odd[2] = 4.0;
        let mut copy = latency("L2", &odd);
        copy.name = "copy";
        let equal = equal(&[latency("L2", &odd), copy, latency("RAM", &CALM)]);
        assert_eq!((equal.quantities.called, equal.quantities.judged), (14, 84));
        assert_eq!((equal.tiers.called, equal.tiers.judged), (7, 56));
    }

    #[test]
    fn a_slowdown_is_found_in_both_directions_of_doubt() {
        let plain = [latency("L2", &CALM), latency("RAM", &CALM)];
        let slowed = [latency("L2", &CALM.map(|value| value * 1.15)), latency("RAM", &CALM)];
        let found = slower(&plain, &slowed);
        assert_eq!(found[0].pairs, Pairs { called: 64, judged: 64 });
        assert_eq!(found[1].pairs.share(), 0.0, "nothing was slowed there");
    }

    #[test]
    fn a_missing_value_is_not_judged() {
        let mut quantity = latency("L2", &CALM);
        quantity.values[0] = None;
        assert_eq!(quantity.differs(0, 1), None);
        assert_eq!(equal(&[quantity.clone()]).quantities.judged, 21);
        assert!(quantity.describe("L2 latency").ends_with("called 0 of 21)"));
        let few = latency("L2", &CALM[..3]);
        assert_eq!(few.describe("L2 latency"), "L2 latency (3 runs)");
    }
}
