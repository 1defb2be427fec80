//! Users of one quantity, the largest first.
//!
//! A user is a process, or the processes of one program in one control group where none of them
//! has much: 300 short compilers are one user. A process with much is a user of its own, so that
//! one of several equally named ones can be distinguished.

use super::quantity::Quantity;
use super::sentence::Names;
use super::sums::{ProcessSum, SharedSum};
use crate::recording::accounting::processor_samples::interval;
use model::Grade;
use model::explanation::ProcessUse;
use model::recording::{GroupKind, GroupName, Process, ProcessFigure};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A process with this share of all is a user of its own. Picked: five of them at most.
const MUCH: f64 = 0.2;

/// So many of one program are named apart; of more the program says what they are.
const MOST_APART: usize = 3;

/// So is one with this share of what its program used: the others hardly matter.
const MOST_OF_ITS_PROGRAM: f64 = 0.8;

/// A value is inferred if more than this share of it was shared out by time. Picked: the edge of
/// a window cuts one row in many.
const MOST_SHARED: f64 = 0.1;

/// A share of samples is measured if at least this part of it is certain. Picked: with one that is
/// less the order of users can be another.
const LEAST_SURE: f64 = 0.5;

/// So many of each ranking are merged: the first ones are what is looked for.
const MOST_MERGED: usize = 32;

/// Some processes, and how much of a quantity is theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct User<'a> {
    /// They, the one with most first; never empty.
    pub processes: Vec<&'a Process>,
    /// How many they are: more than are listed, if some are sums of many.
    pub count: u64,
    /// What of them is compared.
    pub quantity: Quantity,
    /// How much of it is theirs.
    pub sum: SharedSum,
    /// Their part of what all used, 0 to 1.
    pub share: f64,
    /// The 95 % interval of the share, where it is one of samples.
    pub interval: Option<(f64, f64)>,
    /// What they have in common.
    pub of: UserKind,
}

/// What the processes of a user have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// Their name and their unit, container or other group.
    Program,
    /// Their group.
    Group,
    /// Their name, in several groups.
    Name,
}

/// How much of a quantity is that of one process, or of several that were summed up.
#[derive(Clone, Copy, Debug)]
struct Amount<'a> {
    process: &'a Process,
    count: u64,
    sum: SharedSum,
}

/// The processes of one program apart: each that has much alone, the others together.
fn split(amounts: Vec<Amount>, total: u64) -> Vec<Vec<Amount>> {
    let whole = amounts.iter().fold(0u64, |all, one| all.saturating_add(one.sum.value));
    let with_much = amounts.iter().filter(|one| share_of(one.sum.value, total) >= MUCH).count();
    let has_much = |one: &Amount| {
        (share_of(one.sum.value, total) >= MUCH && with_much <= MOST_APART)
            || share_of(one.sum.value, whole) >= MOST_OF_ITS_PROGRAM
    };
    let (alone, rest): (Vec<_>, Vec<_>) = amounts.into_iter().partition(has_much);
    let apart = alone.into_iter().map(|one| vec![one]).chain([rest]);
    apart.filter(|amounts| !amounts.is_empty()).collect()
}

impl<'a> User<'a> {
    /// The user that these are together, of `total` in all.
    fn of(of: UserKind, quantity: Quantity, mut amounts: Vec<Amount<'a>>, total: u64) -> Self {
        amounts.sort_by_key(|one| (Reverse(one.sum.value), one.process.id));
        let sum = amounts.iter().fold(SharedSum::default(), |all, one| all.plus(one.sum));
        Self {
            processes: amounts.iter().map(|one| one.process).collect(),
            count: amounts.iter().fold(0u64, |all, one| all.saturating_add(one.count)),
            quantity,
            sum,
            share: share_of(sum.value, total),
            interval: quantity.is_sampled().then(|| interval(sum.value, total)),
            of,
        }
    }
}

impl User<'_> {
    /// The one with most.
    pub fn first(&self) -> &Process {
        self.processes[0]
    }

    /// The control group of all of them.
    pub fn group_name(&self) -> Option<GroupName> {
        GroupName::of(&self.first().group)
    }

    /// Whether a process is in both.
    pub fn overlaps(&self, other: &User) -> bool {
        let theirs = |process: &&Process| other.processes.iter().any(|its| its.id == process.id);
        self.processes.iter().any(theirs)
    }

    /// Whether they are threads of the kernel.
    pub fn is_kernel(&self) -> bool {
        self.first().is_kernel
    }

    /// How many control groups they are in.
    pub fn group_count(&self) -> usize {
        let paths: BTreeSet<&str> =
            self.processes.iter().map(|process| process.group.as_str()).collect();
        paths.len()
    }

    /// How much of another figure is theirs.
    pub fn get(&self, sums: &[ProcessSum], figure: ProcessFigure) -> u64 {
        let of_them = sums.iter().filter(|sum| self.holds(sum.process.id));
        of_them.fold(0, |all, sum| all.saturating_add(sum.get(figure).value))
    }

    /// What devices read and wrote for them, bytes.
    pub fn device_bytes(&self, sums: &[ProcessSum]) -> (u64, u64) {
        let of_them = sums.iter().filter(|sum| self.holds(sum.process.id));
        of_them.fold((0, 0), |(read, wrote): (u64, u64), sum| {
            let [more_read, more_wrote] = sum.device_bytes;
            (read.saturating_add(more_read.value), wrote.saturating_add(more_wrote.value))
        })
    }

    fn holds(&self, id: u32) -> bool {
        self.processes.iter().any(|process| process.id == id)
    }

    /// How the sum is known.
    pub fn grade(&self) -> Grade {
        let is_counted = self.sum.shared as f64 <= self.sum.value as f64 * MOST_SHARED;
        let is_close = |(low, _): (f64, f64)| low >= self.share * LEAST_SURE;
        let is_sure = is_counted && self.interval.is_none_or(is_close);
        if is_sure { Grade::Measured } else { Grade::Inferred }
    }

    /// As JSON has it, known no better than `at_most`.
    pub fn to_use(&self, at_most: Grade, names: Names) -> ProcessUse {
        let first = self.first();
        // In several groups they have no common one.
        let group = self.group_name().filter(|_| self.of != UserKind::Name);
        let group_name = group.as_ref().map(|name| name.text.clone());
        let single = (self.count == 1 && !first.is_many).then_some(first);
        ProcessUse {
            process: single.map(|process| process.id),
            pid: single.map(|process| process.pid),
            name: match &group_name {
                Some(name) if self.of == UserKind::Group => name.clone(),
                _ => first.name.clone(),
            },
            label: names.label(self),
            processes: self.count,
            group: match (self.of, group) {
                (UserKind::Name, _) => String::new(),
                (UserKind::Group, Some(name)) => name.path,
                _ => first.group.clone(),
            },
            group_name,
            figure: self.quantity.id().to_owned(),
            value: self.sum.value,
            unit: self.quantity.unit().to_owned(),
            share: self.share,
            share_low: self.interval.map(|(low, _)| low),
            share_high: self.interval.map(|(_, high)| high),
            grade: if at_most == Grade::Measured { self.grade() } else { at_most },
        }
    }
}

/// The users of one or several quantities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking<'a> {
    /// Users with a name, the largest first.
    pub users: Vec<User<'a>>,
    /// The same by unit, container or other control group, the largest first.
    pub groups: Vec<User<'a>>,
    /// The same by name, of those that are in several groups, the largest first.
    pub names: Vec<User<'a>>,
    /// What all used.
    pub total: u64,
}

impl<'a> Ranking<'a> {
    /// Ranks the users of `quantity`. All used `total` where that is known, and no less than those
    /// that have rows.
    pub fn of(sums: &[ProcessSum<'a>], quantity: Quantity, total: Option<u64>) -> Self {
        let all = sums.iter().map(|sum| Amount {
            process: sum.process,
            count: sum.processes.max(1),
            sum: quantity.of(sum),
        });
        let amounts: Vec<Amount> = all.filter(|amount| amount.sum.value > 0).collect();
        let rows = amounts.iter().fold(0u64, |all, one| all.saturating_add(one.sum.value));
        let total = total.unwrap_or(0).max(rows);
        let mut programs: BTreeMap<(&str, String, bool), Vec<Amount>> = BTreeMap::new();
        let mut groups: BTreeMap<String, Vec<Amount>> = BTreeMap::new();
        let mut names: BTreeMap<&str, Vec<Amount>> = BTreeMap::new();
        for amount in amounts.into_iter().filter(|amount| !is_remainder(amount.process)) {
            let process = amount.process;
            let group = GroupName::of(&process.group);
            let path = group.as_ref().map(|group| group.path.clone()).unwrap_or_default();
            let program = (process.name.as_str(), path.clone(), process.is_many);
            programs.entry(program).or_default().push(amount);
            if !process.is_kernel {
                names.entry(&process.name).or_default().push(amount);
                // The top of the hierarchy holds all the others.
                if group.is_some_and(|group| group.kind != GroupKind::Top) {
                    groups.entry(path).or_default().push(amount);
                }
            }
        }
        let user = |of, amounts: Vec<Amount<'a>>| User::of(of, quantity, amounts, total);
        let mut ranking = Self {
            users: Vec::new(),
            groups: groups.into_values().map(|all| user(UserKind::Group, all)).collect(),
            names: names.into_values().map(|all| user(UserKind::Name, all)).collect(),
            total,
        };
        for amounts in programs.into_values() {
            let apart = split(amounts, total).into_iter();
            ranking.users.extend(apart.map(|amounts| user(UserKind::Program, amounts)));
        }
        ranking.names.retain(|user| user.group_count() > 1);
        for users in [&mut ranking.users, &mut ranking.groups, &mut ranking.names] {
            largest_first(users);
        }
        ranking
    }

    /// The users of several quantities of one unit; who is a user of two is listed with the larger.
    pub fn of_all(rankings: impl IntoIterator<Item = Ranking<'a>>) -> Self {
        let mut all = Self::default();
        for ranking in rankings {
            all.users.extend(ranking.users.into_iter().take(MOST_MERGED));
            all.groups.extend(ranking.groups.into_iter().take(MOST_MERGED));
            all.names.extend(ranking.names.into_iter().take(MOST_MERGED));
            all.total = all.total.saturating_add(ranking.total);
        }
        for users in [&mut all.users, &mut all.groups, &mut all.names] {
            largest_first(users);
            let mut kept: Vec<User> = Vec::new();
            for mut user in users.drain(..) {
                if !kept.iter().any(|known| known.overlaps(&user)) {
                    user.share = share_of(user.sum.value, all.total);
                    kept.push(user);
                }
            }
            *users = kept;
        }
        all
    }

    /// The part of all that users with a name have, 0 to 1.
    pub fn named_share(&self) -> f64 {
        self.users.iter().map(|user| user.share).sum()
    }

    /// What is left of all without the first users.
    pub fn others(&self, first: &[User]) -> u64 {
        first.iter().fold(self.total, |left, user| left.saturating_sub(user.sum.value))
    }
}

/// Whether this entry holds those that have no name: short-lived ones, and what did not fit in
/// the kernel's tables.
fn is_remainder(process: &Process) -> bool {
    process.pid == 0 && process.parent == 0
}

/// Equals stay in the order of their names.
fn largest_first(users: &mut [User]) {
    users.sort_by_key(|user| Reverse(user.sum.value));
}

fn share_of(value: u64, whole: u64) -> f64 {
    if whole > 0 { (value as f64 / whole as f64).min(1.0) } else { 0.0 }
}
