//! How much of the wall time outside user code the findings account for. docs/accounting.md
//! defines it.
//!
//! Each slice of the wall bar holds as much accounted time as the slice of the threads that made
//! it, in proportion. Each rule names the parts that its time lies in; a part counts once,
//! however many findings name it.

use super::accounting::processor_samples::{CLASSES, ORIGINS};
use super::rules::{Place, RunRule, RunView, asleep_ns};
use crate::wording::long_time;
use model::explanation::{
    AccountedTime, CALL_PART, Cause, OverlappingPart, TimePart, TimeSlice, short_words,
};
use std::collections::BTreeMap;

/// The slices that findings may account for. Idle time is not among them.
const SLICES: [TimeSlice; 7] = [
    TimeSlice::Run,
    TimeSlice::Queue,
    TimeSlice::BlockIo,
    TimeSlice::Sleep,
    TimeSlice::Asleep,
    TimeSlice::Steal,
    TimeSlice::Unexplained,
];

/// Parts of the time on a processor that are the kernel's work seen across calls and faults.
const ACROSS: [TimePart; 1] = [TimePart::Compaction];

/// Which of the two divisions of a slice a part belongs to: they overlap, so what both account
/// for is taken once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Division {
    Origin,
    Call,
    Class,
    /// In none: anywhere in the slice, beside what others account for.
    Slice,
}

/// A part that findings may account for, and how long it is.
#[derive(Clone, Debug)]
struct Room {
    slice: TimeSlice,
    division: Division,
    name: String,
    ns: u64,
}

/// A slice of the wall bar.
#[derive(Clone, Debug)]
pub(super) struct SliceCoverage {
    slice: TimeSlice,
    /// Its wall time outside user code.
    wall_ns: u64,
    /// The time of threads that made it, outside user code.
    thread_ns: u64,
    /// Of that, accounted for.
    pub covered_ns: u64,
    /// Parts of it with what no finding accounts for, longest first.
    left: Vec<(String, u64)>,
}

/// What is accounted for of each part of each slice.
type Claims = BTreeMap<(&'static str, Division, String), u64>;

/// What findings account for.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    wall_ns: u64,
    slices: Vec<SliceCoverage>,
    /// By rule.
    accounted: BTreeMap<&'static str, Vec<AccountedTime>>,
}

impl SliceCoverage {
    /// The time of threads that no finding accounts for.
    pub(super) fn rest_ns(&self) -> u64 {
        self.thread_ns.saturating_sub(self.covered_ns)
    }

    /// The longest of its parts that no finding accounts for, in words (`system calls 0.9 s (read
    /// 0.5 s, openat 0.2 s)`), and their time together.
    pub(super) fn named_rest(&self, most: usize) -> (Vec<String>, u64) {
        let mut groups: Vec<PartGroup> = Vec::new();
        for (name, ns) in self.left.iter().filter(|(_, ns)| *ns > 0) {
            let title = title_of(name);
            match groups.iter_mut().find(|group| group.title == title) {
                Some(group) => group.parts.push((name, *ns)),
                None => groups.push(PartGroup { title, parts: vec![(name, *ns)] }),
            }
        }
        groups.retain(|group| group.ns() >= self.rest_ns() / LEAST_NAMED);
        groups.sort_by_key(|group| std::cmp::Reverse(group.ns()));
        groups.truncate(most);
        let ns = groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.ns()));
        let in_words = groups.iter().map(|group| group.in_words(self.rest_ns() / LEAST_NAMED));
        (in_words.collect(), ns.min(self.rest_ns()))
    }
}

/// A part of less than one in so many of the rest is not named.
const LEAST_NAMED: u64 = 20;

/// So many parts of a group are named.
const MOST_IN_GROUP: usize = 2;

/// Parts that have one title in a sentence, longest first.
struct PartGroup<'a> {
    title: String,
    parts: Vec<(&'a str, u64)>,
}

impl PartGroup<'_> {
    fn ns(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns))
    }

    fn in_words(&self, least_ns: u64) -> String {
        let time = |ns: u64| long_time(ns as f64);
        if let [(only, ns)] = self.parts.as_slice() {
            return format!("{} {}", short_words(only), time(*ns));
        }
        let is_named =
            |(name, ns): &&(&str, u64)| *name != TimePart::SystemCalls.id() && *ns >= least_ns;
        let long = self.parts.iter().filter(is_named);
        let named: Vec<String> = long
            .take(MOST_IN_GROUP)
            .map(|(name, ns)| match name.strip_prefix(CALL_PART) {
                Some(call) => format!("{call} {}", time(*ns)),
                None => format!("{} {}", short_words(name), time(*ns)),
            })
            .collect();
        let whole = format!("{} {}", self.title, time(self.ns()));
        if named.is_empty() { whole } else { format!("{whole} ({})", named.join(", ")) }
    }
}

/// What a part counts as in a sentence.
fn title_of(name: &str) -> String {
    const FAULTS: [TimePart; 5] = [
        TimePart::FirstTouch,
        TimePart::CopyOnWrite,
        TimePart::FileFault,
        TimePart::SwapFault,
        TimePart::OtherFault,
    ];
    if name.starts_with(CALL_PART) {
        return short_words(TimePart::SystemCalls.id());
    }
    if FAULTS.iter().any(|fault| fault.id() == name) {
        return "page faults".to_owned();
    }
    short_words(name)
}

impl Coverage {
    /// What `found` accounts for. Findings beside each other share a part between them; one that
    /// lies inside of another (`is_inside`) names time of that one.
    pub(super) fn of(
        run: &RunView,
        found: &[(&RunRule, Cause)],
        is_inside: impl Fn(&RunRule) -> bool,
    ) -> Self {
        let mut claims: Claims = BTreeMap::new();
        let mut accounted = BTreeMap::new();
        for inside in [false, true] {
            for found in found.iter().filter(|(rule, _)| is_inside(rule) == inside) {
                accounted.insert(found.0.id, claim(run, found, &mut claims, inside));
            }
        }
        let slices = SLICES.iter().filter_map(|slice| slice_coverage(run, *slice, &claims));
        Self { wall_ns: run.wall_ns(), slices: slices.collect(), accounted }
    }

    /// Where the time lies that the finding of a rule accounts for.
    pub(super) fn of_rule(&self, rule: &RunRule) -> Vec<AccountedTime> {
        self.accounted.get(rule.id).cloned().unwrap_or_default()
    }

    /// One slice.
    pub(super) fn slice(&self, slice: TimeSlice) -> Option<&SliceCoverage> {
        self.slices.iter().find(|known| known.slice == slice)
    }

    /// The wall time outside user code, and the part of it that is accounted for, 0 to 1; `None`
    /// where it is too short (`hurts`) to be judged, or where what can be judged of it is: of the
    /// rest nothing measured what it was.
    pub(super) fn share(&self, hurts: impl Fn(u64) -> bool) -> Option<f64> {
        let outside: u128 = self.slices.iter().map(|slice| u128::from(slice.wall_ns)).sum();
        let outside_ns = u64::try_from(outside).unwrap_or(u64::MAX).min(self.wall_ns);
        let unseen_ns = self.slice(TimeSlice::Unexplained).map_or(0, |slice| slice.wall_ns);
        if !hurts(outside_ns) || !hurts(outside_ns.saturating_sub(unseen_ns)) || outside == 0 {
            return None;
        }
        let covered = self.slices.iter().filter(|slice| slice.thread_ns > 0).map(|slice| {
            slice.wall_ns as f64 * (slice.covered_ns as f64 / slice.thread_ns as f64).min(1.0)
        });
        Some((covered.sum::<f64>() / outside as f64).clamp(0.0, 1.0))
    }
}

/// What `claims` account for of a slice; `None` where its time outside user code is not known.
fn slice_coverage(run: &RunView, slice: TimeSlice, claims: &Claims) -> Option<SliceCoverage> {
    let is_sleep = matches!(slice, TimeSlice::Sleep | TimeSlice::Asleep);
    if is_sleep && run.is_machine() {
        // A machine's threads sleep for want of work.
        return None;
    }
    let wall_ns = outside_user_ns(run, slice, run.accounts.wall(slice))?;
    let thread_ns = outside_user_ns(run, slice, thread_ns(run, slice))?;
    let of = |division: Division| {
        let all = claims.iter();
        let within = all.filter(|((id, of, _), _)| (*id, *of) == (slice.id(), division));
        within.fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns))
    };
    // A call holds also the faults and interrupts that came in it.
    let calls = of(Division::Call);
    let all_calls = run.sampled(TimePart::SystemCalls).map_or(calls, |time| time.ns);
    let by_origin = of(Division::Origin).saturating_add(calls.min(all_calls));
    let by_class = of(Division::Class);
    let mut left: Vec<(String, u64)> = parts(run, slice, by_class > by_origin)
        .into_iter()
        .map(|room| {
            let claimed = claims.get(&(slice.id(), room.division, room.name.clone()));
            (room.name, room.ns.saturating_sub(claimed.copied().unwrap_or(0)))
        })
        .collect();
    left.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let in_a_part = by_origin.max(by_class);
    let covered_ns = in_a_part.saturating_add(of(Division::Slice)).min(thread_ns);
    Some(SliceCoverage { slice, wall_ns, thread_ns, covered_ns, left })
}

/// Lays the time of a finding onto the parts that its rule names: its waits, and what these caused
/// on processors.
fn claim(
    run: &RunView,
    (rule, cause): &(&RunRule, Cause),
    claims: &mut Claims,
    is_inside: bool,
) -> Vec<AccountedTime> {
    let caused_ns = cause.on_processor_ns.unwrap_or(0);
    let own_ns = cause.ns.unwrap_or(0).saturating_sub(caused_ns);
    let mut accounted = lay(run, rule.of, own_ns, claims, is_inside);
    accounted.extend(lay(run, rule.on_processor, caused_ns, claims, is_inside));
    accounted
}

/// Lays `ns` onto these places, the first one filled first, as far as there is room. What lies
/// inside of another finding is a part of what that claims.
fn lay(
    run: &RunView,
    places: &[Place],
    ns: u64,
    claims: &mut Claims,
    is_inside: bool,
) -> Vec<AccountedTime> {
    let mut left = ns;
    let mut accounted = Vec::new();
    for room in places.iter().flat_map(|place| rooms(run, place)) {
        let claimed =
            claims.entry((room.slice.id(), room.division, room.name.clone())).or_default();
        let free_ns = if is_inside { room.ns } else { room.ns.saturating_sub(*claimed) };
        let taken = left.min(free_ns);
        left -= taken;
        *claimed = if is_inside { taken.max(*claimed) } else { claimed.saturating_add(taken) };
        if taken > 0 {
            accounted.push(AccountedTime { slice: room.slice.into(), part: room.name, ns: taken });
        }
    }
    accounted
}

/// The part of a slice that is not user code: of the time on processors what ran in the kernel;
/// `None` where nothing distinguishes them.
fn outside_user_ns(run: &RunView, slice: TimeSlice, ns: u64) -> Option<u64> {
    if slice != TimeSlice::Run {
        return Some(ns);
    }
    let run_ns = run.run_ns();
    let kernel_ns = run_ns.saturating_sub(run.user_ns()?);
    let part = u128::from(ns) * u128::from(kernel_ns) / u128::from(run_ns.max(1));
    Some(u64::try_from(part).unwrap_or(ns).min(ns))
}

/// The time of threads that made a slice of the wall bar. Threads of a whole machine wait in a
/// bar of their own; sleep is that of all threads at once, which the wall bar alone knows.
fn thread_ns(run: &RunView, slice: TimeSlice) -> u64 {
    let of_threads = match slice {
        TimeSlice::Queue => run.sum("trace.sched.queue_ns"),
        TimeSlice::BlockIo => run.sum("trace.sched.block_io_ns"),
        _ => None,
    };
    match slice {
        TimeSlice::Sleep | TimeSlice::Asleep => run.accounts.wall(slice),
        TimeSlice::Run => run.run_ns(),
        _ => of_threads.filter(|_| run.is_machine()).unwrap_or_else(|| run.accounts.thread(slice)),
    }
}

/// Where a place is in the bars, and how much of a finding fits there.
fn rooms(run: &RunView, place: &Place) -> Vec<Room> {
    match place {
        Place::Slice(slice) => {
            let ns = thread_ns(run, *slice);
            let division = Division::Slice;
            vec![Room { slice: *slice, division, name: slice.id().to_owned(), ns }]
        }
        Place::Calls(calls) => calls.iter().filter_map(|call| call_room(run, call)).collect(),
        Place::Part(part) => part_rooms(run, *part),
    }
}

fn call_room(run: &RunView, call: &str) -> Option<Room> {
    let time = run.sampled_calls(&[call])?;
    let name = format!("{CALL_PART}{call}");
    Some(Room { slice: TimeSlice::Run, division: Division::Call, name, ns: time.ns })
}

fn part_rooms(run: &RunView, part: TimePart) -> Vec<Room> {
    if let Some(time) = run.sampled(part) {
        let is_class = CLASSES.iter().any(|(class, _)| *class == part);
        let division = if is_class { Division::Class } else { Division::Origin };
        let name = part.id().to_owned();
        return vec![Room { slice: TimeSlice::Run, division, name, ns: time.ns }];
    }
    let listed = run.accounts.of_which.iter().filter(|listed| listed.name == part);
    listed.flat_map(|listed| rooms_of_listed(run, part, listed)).collect()
}

fn rooms_of_listed(run: &RunView, part: TimePart, listed: &OverlappingPart) -> Vec<Room> {
    let Some(slice) = TimeSlice::of(&listed.within) else {
        return Vec::new();
    };
    // Elapsed times of what samples tell as running.
    let has_samples_instead = part == TimePart::DirectReclaim || part == TimePart::Kernel;
    if has_samples_instead && run.processor_samples().is_some() {
        return Vec::new();
    }
    let division = if ACROSS.contains(&part) { Division::Class } else { Division::Origin };
    let room = |slice: TimeSlice, ns: u64| {
        let ns = if slice == TimeSlice::Sleep { asleep_ns(run, ns) } else { ns };
        Room { slice, division, name: listed.name.clone(), ns }
    };
    // One part over two slices.
    let journal = run.sum("trace.sleep.flush_ns").filter(|_| part == TimePart::Flush);
    match journal.map(|ns| ns.min(listed.ns)) {
        Some(journal) => {
            vec![room(TimeSlice::BlockIo, listed.ns - journal), room(TimeSlice::Sleep, journal)]
        }
        None => vec![room(slice, listed.ns)],
    }
}

/// The parts that divide a slice, with their lengths. The time on processors is divided in two
/// ways, of which one is chosen.
fn parts(run: &RunView, slice: TimeSlice, by_class: bool) -> Vec<Room> {
    if slice == TimeSlice::Run && by_class {
        return CLASSES.iter().flat_map(|(part, _)| part_rooms(run, *part)).collect();
    }
    if slice == TimeSlice::Run {
        let origins = ORIGINS.iter().map(|(part, _)| *part);
        let others = origins.filter(|of| *of != TimePart::User && *of != TimePart::SystemCalls);
        let mut rooms: Vec<Room> = others.flat_map(|part| part_rooms(run, part)).collect();
        let named =
            run.processor_samples().map(|samples| samples.calls(run.run_ns())).unwrap_or_default();
        rooms.extend(named.iter().filter_map(|(call, _)| call_room(run, call)));
        // On its way into and out of a call a thread is in none by name.
        let named_ns = named.iter().fold(0, |sum: u64, (_, time)| sum.saturating_add(time.ns));
        let nameless = part_rooms(run, TimePart::SystemCalls).into_iter();
        rooms.extend(nameless.map(|room| Room { ns: room.ns.saturating_sub(named_ns), ..room }));
        return rooms;
    }
    let listed = run.accounts.of_which.iter().filter_map(|listed| {
        // What came back from the cache is inside of the reads.
        let part = TimePart::of(&listed.name).filter(|part| *part != TimePart::Refault)?;
        Some(rooms_of_listed(run, part, listed))
    });
    listed.flatten().filter(|room| room.slice == slice && room.ns > 0).collect()
}
