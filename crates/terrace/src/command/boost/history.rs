//! What a cache has brought, by day: kept beside its key and journal, so that it outlives each
//! process of the service and each attach.
//!
//! The last days, the sum since the last attach, and what is left of the budget of the day, in one
//! small file that is replaced whole. It is written every five minutes if something changed, and at
//! the end; a service that is killed loses what came since. A file that cannot be read counts for
//! nothing, and one of a newer version is left as it is.

use super::parts::Parts;
use crate::output::boost_report::{CacheTotals, HistoryDay};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use sys::directory::Directory;
use sys::file::{Durability, FileMode, replace};

const FILE: &str = "history";
const SCHEMA: &str = "terrace.boost_history/1";
/// Bytes of the file at most: a day has about 300.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Days that are kept: more than a week, so that a clock that is set loses none of the last one.
const DAYS_MAX: usize = 16;
/// Days that make the week of a report, today among them.
const WEEK_DAYS: u64 = 7;
/// How often it is written.
const SAVE_INTERVAL: Duration = Duration::from_secs(300);
const DAY_S: u64 = 86_400;

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HistoryFile {
    schema: String,
    /// When it was last attached, seconds since 1970.
    attached_unix_s: u64,
    since_attach: CacheTotals,
    days: Vec<HistoryDay>,
    /// Absent in files of the first versions.
    #[serde(default)]
    budget: Option<BudgetLeft>,
}

/// What was left of the budget of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BudgetLeft {
    bytes: u64,
    /// When that was, seconds since 1970.
    unix_s: u64,
}

/// The history of a served cache.
pub(super) struct History {
    parts: Arc<Parts>,
    file: HistoryFile,
    /// What was counted in this process and is in the file.
    counted: CacheTotals,
    saved: Instant,
    is_changed: bool,
    /// The file is of a newer version, or cannot be reached.
    is_left_alone: bool,
}

impl History {
    /// Reads what is there. An attach begins a new sum; a successor goes on with the last one.
    pub(super) fn open(parts: &Arc<Parts>, is_successor: bool) -> Self {
        let now = unix_s();
        let found = read(parts.host.state_directory());
        let is_left_alone = found.is_err();
        let mut file = found.ok().flatten().unwrap_or_else(|| HistoryFile::begun(now));
        if !is_successor {
            (file.attached_unix_s, file.since_attach) = (now, CacheTotals::default());
        }
        Self {
            parts: Arc::clone(parts),
            file,
            counted: CacheTotals::default(),
            saved: Instant::now(),
            // So that a service that is killed early has a successor that knows the attach.
            is_changed: !is_successor,
            is_left_alone,
        }
    }

    /// What is left of such a budget for writing to the flash; `None` if it is not known.
    pub(super) fn budget_left(&self, bytes_per_day: u64) -> Option<u64> {
        self.file.budget.map(|budget| budget.at(unix_s(), bytes_per_day))
    }

    /// Adds what was counted in this process since the last call, and writes now and then.
    pub(super) fn update(&mut self, counted: CacheTotals, budget_bytes: u64) {
        let grown = counted.since(&self.counted);
        self.counted = counted;
        self.file.budget = Some(BudgetLeft { bytes: budget_bytes, unix_s: unix_s() });
        if grown != CacheTotals::default() {
            self.file.add(&grown, unix_s() / DAY_S);
            self.is_changed = true;
        }
        if self.is_changed && self.saved.elapsed() >= SAVE_INTERVAL {
            self.save();
        }
    }

    /// Writes what changed. Without room it is tried again later.
    pub(super) fn save(&mut self) {
        self.saved = Instant::now();
        if !self.is_changed || self.is_left_alone {
            return;
        }
        let Ok(text) = serde_json::to_vec(&self.file) else { return };
        let directory = self.parts.host.state_directory();
        let name = OsStr::new(FILE);
        let saved = replace(directory, name, &text, FileMode::OwnerOnly, Durability::Synced);
        self.is_changed = saved.is_err();
    }

    /// When it was last attached, seconds since 1970.
    pub(super) fn attached_unix_s(&self) -> u64 {
        self.file.attached_unix_s
    }

    /// The sum since it was last attached.
    pub(super) fn since_attach(&self) -> CacheTotals {
        self.file.since_attach
    }

    /// The days of the last week that had reads or writes, today last.
    pub(super) fn week(&self) -> Vec<HistoryDay> {
        let today = unix_s() / DAY_S;
        let is_of_week = |day: &&HistoryDay| day.day <= today && day.day + WEEK_DAYS > today;
        self.file.days.iter().filter(is_of_week).copied().collect()
    }

    /// What this day had.
    pub(super) fn today(&self) -> CacheTotals {
        let today = unix_s() / DAY_S;
        self.file
            .days
            .iter()
            .find(|day| day.day == today)
            .map_or_else(Default::default, |it| it.totals)
    }
}

impl BudgetLeft {
    /// What is left later: a day earns all of it. A clock that was set back earns nothing.
    fn at(self, unix_s: u64, bytes_per_day: u64) -> u64 {
        let passed = u128::from(unix_s.saturating_sub(self.unix_s).min(DAY_S));
        let earned = u128::from(bytes_per_day) * passed / u128::from(DAY_S);
        self.bytes.saturating_add(earned as u64).min(bytes_per_day)
    }
}

impl HistoryFile {
    fn begun(now: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            attached_unix_s: now,
            since_attach: CacheTotals::default(),
            days: Vec::new(),
            budget: None,
        }
    }

    fn add(&mut self, grown: &CacheTotals, today: u64) {
        self.since_attach.add(grown);
        match self.days.iter_mut().find(|day| day.day == today) {
            Some(day) => day.totals.add(grown),
            None => {
                self.days.push(HistoryDay { day: today, totals: *grown });
                self.days.sort_by_key(|day| day.day);
            }
        }
        // The clock may have been wrong: what is furthest from today goes.
        while self.days.len() > DAYS_MAX {
            let furthest = (0..self.days.len()).max_by_key(|at| self.days[*at].day.abs_diff(today));
            self.days.remove(furthest.unwrap_or(0));
        }
    }
}

/// The history in a directory; `None` without one that can be used.
///
/// # Errors
/// If it is one that must be left as it is.
fn read(directory: &Directory) -> Result<Option<HistoryFile>, ()> {
    let file = match directory.open_own(OsStr::new(FILE)) {
        Ok(file) => file,
        Err(error) if error.kind == sys::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(()),
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(|_| ())?;
    parse(&text)
}

fn parse(text: &[u8]) -> Result<Option<HistoryFile>, ()> {
    #[derive(Deserialize)]
    struct AnyVersion {
        schema: String,
    }
    let is_newer = serde_json::from_slice::<AnyVersion>(text)
        .is_ok_and(|of| of.schema != SCHEMA && of.schema.starts_with("terrace.boost_history/"));
    if is_newer {
        return Err(());
    }
    let read = serde_json::from_slice::<HistoryFile>(text).ok();
    Ok(read.filter(|file| file.schema == SCHEMA && file.days.len() <= DAYS_MAX))
}

/// Seconds since 1970.
pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(hits: u64) -> CacheTotals {
        CacheTotals { hits, ..CacheTotals::default() }
    }

    #[test]
    fn days_are_bounded_and_a_wrong_clock_costs_the_furthest() {
        let mut file = HistoryFile::begun(0);
        file.add(&grown(1), 5);
        for day in 20_000..20_040 {
            file.add(&grown(day), day);
            file.add(&grown(1), day);
        }
        assert_eq!(file.days.len(), DAYS_MAX);
        let expected: Vec<u64> = (20_024..20_040).collect();
        assert_eq!(file.days.iter().map(|day| day.day).collect::<Vec<_>>(), expected);
        assert_eq!(file.days[0].totals.hits, 20_025);
        // At a boot without a clock the week stays.
        file.add(&grown(7), 0);
        assert_eq!((file.days.len(), file.days[0].day), (DAYS_MAX, 0));
        assert_eq!(file.since_attach.hits, 1 + (20_000..20_040).sum::<u64>() + 40 + 7);
        let text = serde_json::to_vec(&file).unwrap();
        assert!((text.len() as u64) < FILE_BYTES_MAX / 2, "{}", text.len());
        assert_eq!(parse(&text), Ok(Some(file)));
    }

    #[test]
    fn a_budget_is_earned_again_within_a_day() {
        let left = BudgetLeft { bytes: 100, unix_s: 1000 };
        assert_eq!(left.at(1000, 86_400), 100);
        assert_eq!(left.at(1010, 86_400), 110);
        assert_eq!(left.at(0, 86_400), 100);
        assert_eq!(left.at(u64::MAX, 86_400), 86_400);
        // Of a cache that is smaller now.
        assert_eq!(left.at(1000, 60), 60);
        let most = BudgetLeft { bytes: u64::MAX, unix_s: 0 };
        assert_eq!(most.at(DAY_S, u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_no_history_counts_for_nothing_and_a_newer_one_is_left() {
        let file = HistoryFile::begun(9);
        let text = serde_json::to_string(&file).unwrap();
        let newer = text.replace("history/1", "history/2");
        assert_eq!(parse(newer.as_bytes()), Err(()));
        let other = text.replace("boost_history/1", "other/1");
        let huge = text.replace(":9", ":99999999999999999999");
        for bad in ["", "{}", "[1]", "\0", &text[..text.len() - 2], other.as_str(), huge.as_str()] {
            assert_eq!(parse(bad.as_bytes()), Ok(None), "{bad}");
        }
        let added = text.replacen('{', "{\"more\":1,", 1);
        assert_eq!(parse(added.as_bytes()), Ok(Some(file)));
        let day = HistoryDay { day: u64::MAX, totals: grown(u64::MAX) };
        let mut full =
            HistoryFile { days: vec![day], since_attach: grown(u64::MAX), ..HistoryFile::begun(0) };
        full.add(&grown(5), 3);
        assert_eq!(full.since_attach.hits, u64::MAX);
    }
}
