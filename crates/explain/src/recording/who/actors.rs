//! Who has a part in a finding: its victims and its culprits.
//!
//! 1. Culprits are the users with a clear share of what the finding is about, while most of it
//!    happened.
//! 2. Victims are those who waited most and are no culprits. If only culprits waited, the first of
//!    them is a victim of its own use.
//! 3. Threads of the kernel work for others: in their place stands who made the work, if that is
//!    known. They are never victims.

use super::quantity::Quantity;
use super::ranking::{Ranking, User};
use super::roles::Roles;
use super::sentence::Names;
use super::totals;
use crate::recording::View;
use crate::recording::limited::processes_in;
use crate::recording::rules::LEAST_SHARE;
use model::Grade;
use model::explanation::{Actor, ActorRole};
use model::recording::{ProcessFigure, Subject};

/// An actor is clear from this share on. Picked: three others may then have as much.
const CLEAR: f64 = 0.25;

/// The same of all processes of a group or of a name: more than all others together.
const CLEAR_GROUP: f64 = 0.5;

/// Who is named after a clear one has at least this share. Picked: one part in twenty, as a
/// finding.
const WORTH_NAMING: f64 = 0.05;

/// The same where none is clear. Picked: below it the first one says enough.
const WORTH_NAMING_UNCLEAR: f64 = 0.1;

/// So many are named in each role, at most.
const MOST_NAMED: usize = 3;

/// The actors of a finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundActors<'a> {
    /// Those who waited, the longest first.
    pub victims: Vec<User<'a>>,
    /// Those who caused it, without victims, the largest first.
    pub culprits: Vec<User<'a>>,
    /// The victim that is also the first culprit: it waited for its own use.
    pub is_own: Option<User<'a>>,
    /// The threads of the kernel that worked for a culprit, by the name of the first.
    pub workers: Vec<User<'a>>,
    /// The first users where none is a clear culprit.
    pub unclear: Vec<User<'a>>,
    /// The share of processes that this recording does not watch, if it is most; and of what.
    pub outside: Option<(f64, Quantity)>,
    /// How the role of culprits is known.
    pub culprit_grade: Option<Grade>,
}

impl FoundActors<'_> {
    /// As JSON has it.
    pub fn to_actors(&self, names: Names) -> Vec<Actor> {
        let grade = self.culprit_grade.unwrap_or(Grade::Measured);
        let victims = self.victims.iter().map(|user| (ActorRole::Victim, user, Grade::Measured));
        // What it used itself is counted, whatever else is concluded.
        let own = self.is_own.iter().map(|user| (ActorRole::Culprit, user, Grade::Measured));
        let culprits = self.culprits.iter().map(|user| (ActorRole::Culprit, user, grade));
        let all = victims.chain(own).chain(culprits);
        all.map(|(role, user, grade)| Actor { role, used: user.to_use(grade, names) }).collect()
    }
}

/// The parts of a recording in which actors are looked for.
#[derive(Clone, Copy, Debug)]
pub struct ActorView<'v, 'a> {
    /// The part that is explained.
    pub view: &'v View<'a>,
    /// The part of it in which most of the finding happened.
    pub meanwhile: &'v View<'a>,
    /// The paths of the control groups that it happened in; empty if that is not known.
    pub groups: &'v [&'a str],
}

impl<'a> ActorView<'_, 'a> {
    /// Whether processes can be at work that the recording does not watch.
    fn has_outside(&self) -> bool {
        !matches!(self.view.facts().subject, Subject::Machine | Subject::Probe { .. })
    }

    fn used_meanwhile(&self, quantities: &[Quantity], is_own_resource: bool) -> Ranking<'a> {
        let of_subject = |quantity| totals::of_subject(self.meanwhile, quantity);
        let total = |quantity| {
            if !self.groups.is_empty() {
                return None;
            }
            let own = of_subject(quantity);
            if is_own_resource {
                own
            } else {
                own.max(totals::of_machine(self.meanwhile, quantity))
            }
        };
        let sums = processes_in(self.meanwhile.process_sums(), self.groups);
        let each =
            quantities.iter().map(|quantity| Ranking::of(&sums, *quantity, total(*quantity)));
        Ranking::of_all(each)
    }

    fn waited(&self, quantity: Quantity) -> Ranking<'a> {
        let sums = processes_in(self.view.process_sums(), self.groups);
        if !self.groups.is_empty() {
            return Ranking::of(&sums, quantity, None);
        }
        let own = totals::of_subject(self.view, quantity);
        let all = if self.has_outside() { None } else { totals::of_machine(self.view, quantity) };
        Ranking::of(&sums, quantity, own.max(all))
    }
}

/// The actors of a finding with these roles.
pub fn find<'a>(of: &ActorView<'_, 'a>, roles: &Roles) -> FoundActors<'a> {
    let mut found = FoundActors::default();
    // Each of several groups used up a limit of its own: none of them made another wait.
    let has_culprits = of.groups.len() <= 1;
    let mut roles = Roles { culprit: if has_culprits { roles.culprit } else { &[] }, ..*roles };
    let mut used = of.used_meanwhile(roles.culprit, roles.is_own_resource);
    // Samples of very short processes are of none that is named.
    let are_few_named = used.named_share() < CLEAR_GROUP;
    if are_few_named && has_culprits && !roles.without_samples.is_empty() {
        roles = roles.unsampled();
        used = of.used_meanwhile(roles.culprit, roles.is_own_resource);
    }
    // Samples are those of the subject.
    let is_of_all = !roles.culprit.iter().any(|quantity| quantity.is_sampled());
    let (mut culprits, workers) = without_workers(of, clear(&used));
    let waited = roles.victim.map(|quantity| of.waited(quantity)).unwrap_or_default();
    // Who used little beside the first and waited long is a victim.
    let is_clear = |user: &&User| user.share >= CLEAR;
    let clear_ones: Vec<User> = culprits.iter().filter(is_clear).cloned().collect();
    found.victims = victims(of, &waited, &clear_ones);
    let named = used.named_share();
    if of.has_outside() && is_of_all && used.total > 0 && 1.0 - named > CLEAR_GROUP {
        // Whoever did it is not in this recording.
        culprits.clear();
        found.outside = roles.culprit.first().map(|quantity| (1.0 - named, *quantity));
    }
    let is_victim = |user: &User| found.victims.iter().any(|victim| victim.overlaps(user));
    let own = culprits.iter().find(|user| is_victim(user)).cloned();
    culprits.retain(|user| !is_victim(user));
    // Beside a victim's own part that of another one counts only if it is clear by itself.
    if own.is_some() {
        culprits.retain(|user| user.share >= CLEAR);
    }
    let most = culprits.first().map_or(0.0, |first| first.share);
    found.is_own = own.filter(|own| own.share >= most);
    if culprits.is_empty() && found.is_own.is_none() && found.outside.is_none() {
        let first = used.users.iter().take(MOST_NAMED).enumerate();
        let named =
            first.filter(|(number, user)| *number == 0 || user.share >= WORTH_NAMING_UNCLEAR);
        found.unclear = named.map(|(_, user)| user.clone()).collect();
    }
    found.culprit_grade = Some(match () {
        () if roles.by_coincidence || !workers.is_empty() => Grade::Inferred,
        () => Grade::Measured,
    });
    found.culprits = culprits;
    found.workers = workers;
    found
}

/// The first users, if the first of them is clear; else the first group that is, or the first name
/// that processes of several groups have.
fn clear<'a>(ranking: &Ranking<'a>) -> Vec<User<'a>> {
    if ranking.users.first().is_some_and(|first| first.share >= CLEAR) {
        let named = ranking.users.iter().take(MOST_NAMED);
        return named.filter(|user| user.share >= WORTH_NAMING).cloned().collect();
    }
    // A group of one process would only give it another name.
    let groups = ranking.groups.iter().filter(|group| group.processes.len() > 1);
    let mut together = groups.chain(&ranking.names);
    together.find(|users| users.share >= CLEAR_GROUP).cloned().into_iter().collect()
}

/// Those whose wait is long enough to notice, and who did not cause it.
fn victims<'a>(of: &ActorView<'_, 'a>, waited: &Ranking<'a>, culprits: &[User]) -> Vec<User<'a>> {
    let least_ns = (of.view.wall_ns() as f64 * LEAST_SHARE) as u64;
    let people = || waited.users.iter().filter(|user| !user.is_kernel());
    let is_culprit = |user: &User| culprits.iter().any(|culprit| culprit.overlaps(user));
    // Culprits wait most, for each other: that makes the waits of the rest no shorter.
    let by_culprits = people().filter(|user| is_culprit(user));
    let own = by_culprits.fold(0, |sum: u64, user| sum.saturating_add(user.sum.value));
    let rest = waited.total.saturating_sub(own).max(1) as f64;
    let is_noticed = |user: &User| {
        let is_long = user.quantity.unit() == "ns" && user.sum.value >= least_ns;
        user.share >= CLEAR || (is_long && user.sum.value as f64 >= rest * WORTH_NAMING)
    };
    let others = people().filter(|user| !is_culprit(user));
    let noticed: Vec<User> =
        others.filter(|user| is_noticed(user)).take(MOST_NAMED).cloned().collect();
    if !noticed.is_empty() {
        return noticed;
    }
    people().take(1).filter(|user| user.share >= CLEAR).cloned().collect()
}

/// Puts in place of each thread of the kernel the users that it worked for, if they are known.
/// What is left of it stands for itself.
fn without_workers<'a>(
    of: &ActorView<'_, 'a>,
    users: Vec<User<'a>>,
) -> (Vec<User<'a>>, Vec<User<'a>>) {
    let (mut named, mut workers): (Vec<User>, Vec<User>) = (Vec::new(), Vec::new());
    let mut unknown: Vec<User> = Vec::new();
    for user in users {
        if !user.is_kernel() {
            named.push(user);
            continue;
        }
        let behind = works_for(&user.first().name)
            .map(|quantities| of.used_meanwhile(quantities, false))
            .and_then(|used| {
                let mut people = used.users.into_iter().filter(|user| !user.is_kernel());
                people.next().filter(|first| first.share >= CLEAR)
            });
        match behind {
            Some(behind) => {
                if !named.iter().any(|known| known.overlaps(&behind)) {
                    named.push(behind);
                }
                workers.push(user);
            }
            None => unknown.push(user),
        }
    }
    named.extend(unknown);
    (named, workers)
}

/// What makes work for a thread of the kernel of this name; `None` if that is not known.
fn works_for(name: &str) -> Option<&'static [Quantity]> {
    const MEMORY: &[Quantity] = &[Quantity::MemoryGrowth, Quantity::CacheFilled];
    const WRITES: &[Quantity] = &[Quantity::Figure(ProcessFigure::WrittenBytes)];
    const DEVICES: &[Quantity] = &[Quantity::DeviceBytes];
    let starts = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
    match () {
        () if starts(&["kswapd", "kcompactd", "khugepaged"]) => Some(MEMORY),
        () if name.contains("flush") || starts(&["jbd2/", "xfsaild/", "btrfs-transacti"]) => {
            Some(WRITES)
        }
        // The unbound workers write back, encrypt and check blocks.
        () if starts(&["kworker/u", "loop", "dmcrypt", "kcryptd", "md"]) => Some(DEVICES),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_work_for_others_by_their_names() {
        let memory = Quantity::MemoryGrowth;
        let written = Quantity::Figure(ProcessFigure::WrittenBytes);
        for (name, quantity) in [
            ("kswapd0", Some(memory)),
            ("kworker/u8:2-flush-254:0", Some(written)),
            ("jbd2/vda1-8", Some(written)),
            ("kworker/u8:2", Some(Quantity::DeviceBytes)),
            ("loop3", Some(Quantity::DeviceBytes)),
            ("kworker/0:1", None),
            ("rcu_sched", None),
        ] {
            assert_eq!(works_for(name).map(|all| all[0]), quantity, "{name}");
        }
    }
}
