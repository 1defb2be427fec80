//! An I/O limit of a control group held the subject back.
//!
//! The kernel counts no time for it. What shows it: the group's traffic on a device ran at
//! the limit while the device itself was mostly idle, and threads waited. Limits of version 2
//! (`io.max`) and of version 1 (`blkio.throttle.*`) look the same here.

use super::limited::none_held;
use super::limits::{MOST_LEVELS, group_path};
use super::run_view::{part_of, ratio, series_of};
use super::{RunVerdict, RunView};
use crate::recording::limited::{self, LimitedGroup};
use crate::recording::who::quantity::Quantity;
use crate::verdict::{NoFinding, clear};
use crate::wording::{count, long_time};
use model::bytes::show_rate;
use model::explanation::{Cause, TimePart};
use model::recording::{ProcessFigure as Figure, Series};
use model::{Evidence, Finding, Grade};

/// From this share of a limit on it is reached. Picked: the kernel lets through what a slice
/// of 0.1 s allows, so a short run stays a little below or goes a little beyond.
const NEAR: f64 = 0.85;

/// What is limited: the end of the limit's name, of the traffic's, whether in bytes.
const KINDS: [(&str, &str, bool); 4] = [
    (".max.rbps", ".read_bytes", true),
    (".max.wbps", ".write_bytes", true),
    (".max.riops", ".reads", false),
    (".max.wiops", ".writes", false),
];

/// One limit and what went through below it.
struct Limited<'a> {
    /// What the group's series begin with: `group0`, `limited7`.
    base: String,
    /// The group in words.
    group: String,
    device: &'a str,
    is_write: bool,
    in_bytes: bool,
    limit: f64,
    /// A second, while anything moved.
    reached: f64,
    /// The wait of the subject's threads that the device was not busy for.
    ns: u64,
    evidence: Vec<Evidence>,
}

impl Limited<'_> {
    fn share(&self) -> f64 {
        ratio(self.reached, self.limit)
    }

    fn description(&self, rate: f64) -> String {
        if self.in_bytes { show_rate(rate) } else { format!("{} requests/s", count(rate as u64)) }
    }
}

pub(super) fn check(run: &RunView) -> RunVerdict {
    if run.is_machine() {
        return of_machine(run);
    }
    let has_traffic = run.starting_with("group").any(|series| series.schema.name.contains(".io."));
    if !has_traffic {
        return Err(NoFinding::Nothing);
    }
    let of_level = |level: u32| {
        let group = group_path(run, level, &["io", "unified"]);
        limits(run, &format!("group{level}"), &group, |is_write| waited(run, is_write))
    };
    let all: Vec<Limited> = (0..MOST_LEVELS).flat_map(of_level).collect();
    if let Some(limit) = unjudged_limit(run) {
        return Err(format!("what went through at {limit} was not recorded").into());
    }
    let Some(worst) = nearest(&all) else {
        return clear(Some(Evidence::new("limits", 0.0, "count", "io.max")));
    };
    if worst.share() < NEAR || !run.hurts(worst.ns) {
        let share = Evidence::new("reached of the limit", worst.share(), "ratio", "io.stat");
        return clear(Some(share.seen_in(series_of(&worst.evidence))));
    }
    cause(run, worst)
}

/// The limit that held back longest, else the one that was nearest to it.
fn nearest<'l, 'a>(all: &'l [Limited<'a>]) -> Option<&'l Limited<'a>> {
    all.iter().max_by(|a, b| (a.share() >= NEAR, a.ns).cmp(&(b.share() >= NEAR, b.ns)))
}

/// Of the whole machine: the group that was held back longest. What its processes waited for block
/// I/O is shared between reads and writes by their bytes.
fn of_machine(run: &RunView) -> RunVerdict {
    let used = |group: &LimitedGroup, figure| group.used(run, Quantity::Figure(figure));
    let of_group = |group: &LimitedGroup| {
        let used = |figure| used(group, figure).unwrap_or(0);
        let (read, written) = (used(Figure::ReadBytes), used(Figure::WrittenBytes));
        let all = read.saturating_add(written) as f64;
        let waited = |is_write: bool| {
            let moved = if is_write { written } else { read };
            part_of(used(Figure::BlockWait), ratio(moved as f64, all))
        };
        limits(run, group.prefix(), &group.name(), waited)
    };
    let groups = limited::groups(run);
    let all: Vec<Limited> = groups.iter().flat_map(of_group).collect();
    if let Some(worst) = nearest(&all).filter(|one| one.share() >= NEAR && run.hurts(one.ns)) {
        return cause(run, worst);
    }
    let is_near = |group: &LimitedGroup| of_group(group).iter().any(|one| one.share() >= NEAR);
    let is_unwatched = |group: &LimitedGroup| used(group, Figure::BlockWait).is_none();
    if groups.iter().any(|group| is_unwatched(group) && is_near(group)) {
        return Err("how long processes waited at a group's I/O limit is not known".into());
    }
    none_held(run, "io.held_ns")
}

fn cause(run: &RunView, worst: &Limited) -> RunVerdict {
    let verb = if worst.is_write { "wrote" } else { "read" };
    let group = &worst.group;
    let claim = format!(
        "Held back for {} by an I/O limit of {} on {} for {group}: it {verb} {}, the device was \
         mostly idle",
        long_time(worst.ns as f64),
        worst.description(worst.limit),
        worst.device,
        worst.description(worst.reached),
    );
    let mut evidence = worst.evidence.clone();
    let pressure = format!("{}.pressure.io.some_ns", worst.base);
    evidence.extend(run.grown(&pressure));
    let finding = Finding::new(Grade::Inferred, claim, evidence).remedy(
        "Have the limit raised (io.max of the group, or blkio.throttle.* of version 1), or \
         move less. Risk: what this group gets, others on the device lose.",
    );
    Ok(Cause::new(Some(worst.ns), finding))
}

/// The limits of the group whose series begin with `base`, and what its threads waited for reads
/// or writes.
fn limits<'a>(
    run: &RunView<'a>,
    base: &str,
    group: &str,
    waited: impl Fn(bool) -> u64,
) -> Vec<Limited<'a>> {
    let prefix = format!("{base}.io.");
    let series = run.starting_with(&prefix);
    let limits = series.filter_map(|series| {
        let name = series.schema.name.as_str();
        let (end, of, in_bytes) = KINDS.iter().find(|(end, _, _)| name.ends_with(end))?;
        let device = name.get(prefix.len()..name.len() - end.len())?;
        let limit = run.latest(name)?;
        let traffic = run.series(&format!("{prefix}{device}{of}"))?;
        let reached = rate(run, traffic)?;
        let is_write = of.starts_with(".write");
        let busy = busy_share(run, device);
        let unit = if *in_bytes { "bytes_per_s" } else { "requests/s" };
        let mut evidence = vec![
            Evidence::new(name, limit as f64, unit, &series.schema.source).seen_in([name]),
            Evidence::new(&traffic.schema.name, reached, unit, &traffic.schema.source)
                .seen_in([&traffic.schema.name]),
        ];
        evidence.extend(busy.map(|busy| {
            Evidence::new("device busy", busy, "ratio", "diskstats").seen_in([busy_ns(device)])
        }));
        let waited = part_of(waited(is_write), device_share(run, traffic, of));
        Some(Limited {
            base: base.to_owned(),
            group: group.to_owned(),
            device,
            is_write,
            in_bytes: *in_bytes,
            limit: limit as f64,
            reached,
            ns: part_of(waited, 1.0 - busy.unwrap_or(0.0)),
            evidence,
        })
    });
    limits.filter(|limited| limited.limit > 0.0).collect()
}

/// A limit of the subject's groups beside which nothing says what went through.
fn unjudged_limit<'a>(run: &RunView<'a>) -> Option<&'a str> {
    let names = run.starting_with("group").map(|series| series.schema.name.as_str());
    let traffic = |name: &str| {
        let (end, of, _) = KINDS.iter().find(|(end, _, _)| name.ends_with(end))?;
        Some(format!("{}{of}", name.strip_suffix(end)?))
    };
    let mut unjudged = names.filter(|name| {
        let is_set = run.latest(name).is_some_and(|limit| limit > 0);
        is_set && traffic(name).is_some_and(|traffic| run.growth(&traffic).is_none())
    });
    unjudged.next()
}

/// What went through in a second, from the first sample that saw something to the last.
fn rate(run: &RunView, traffic: &Series) -> Option<f64> {
    let (first, last) = run.samples();
    let mut steps = traffic.within(first, last).map(|step| step.sample);
    let from = steps.next()?;
    let to = steps.last().unwrap_or(from);
    let ns = run.at_ns(to)?.checked_sub(run.at_ns(from)?).filter(|ns| *ns > 0)?;
    Some(traffic.growth(from, to)? as f64 * 1e9 / ns as f64)
}

/// The counter of the time in which a device had something to do.
fn busy_ns(device: &str) -> String {
    format!("disk.{device}.io_ns")
}

/// How much of the clock the device had something to do.
fn busy_share(run: &RunView, device: &str) -> Option<f64> {
    let busy_ns = run.growth(&busy_ns(device))?;
    Some(ratio(busy_ns as f64, run.wall_ns() as f64).min(1.0))
}

/// The part of the group's traffic that went over this device.
fn device_share(run: &RunView, traffic: &Series, of: &str) -> f64 {
    let name = &traffic.schema.name;
    let level = name.split('.').next().unwrap_or_default();
    let all = run.growth_between(&format!("{level}.io."), of).unwrap_or(0);
    ratio(run.growth(name).unwrap_or(0) as f64, all as f64)
}

/// What the subject waited for in this direction.
fn waited(run: &RunView, is_write: bool) -> u64 {
    if is_write {
        let throttled = run.part_ns(TimePart::DirtyThrottle).unwrap_or(0);
        let written = run.write_wait_ns().unwrap_or(0);
        return written.saturating_add(throttled);
    }
    run.read_wait_ns()
}
