//! What a cache has brought: the first sentence says what it saved in a week.
//!
//! Pure: sums become figures, and these text. What is measured (how long reads took that the flash
//! or the disk answered, what was written) is apart from what is concluded: that what the flash
//! answered would have taken as long on the disk as what the disk answered.

use super::prose::count;
use super::{Page, figure};
use model::Bytes;
use model::text::{escaped, long_time};
use serde::{Deserialize, Serialize};

/// With fewer timed reads a mean says nothing.
const TIMED_MIN: u64 = 100;
const DAY_S: u64 = 86_400;

/// Sums of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheTotals {
    /// Reads, and their bytes.
    pub reads: u64,
    pub read_bytes: u64,
    /// Those of them that the cache answered alone.
    pub hits: u64,
    pub hit_bytes: u64,
    /// Hits that did not begin where the read before ended.
    pub hit_seeks: u64,
    /// Hits that were timed, and how long they took together.
    pub timed_hits: u64,
    pub timed_hits_ns: u64,
    /// Reads of at most 128 KiB and no long run that the disk answered and that were timed, and how
    /// long they took together.
    pub timed_misses: u64,
    pub timed_misses_ns: u64,
    /// Bytes written to the flash.
    pub medium_bytes: u64,
}

impl CacheTotals {
    /// Each sum with what `change` makes of it and the other's.
    fn zip(&self, other: &Self, change: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: change(self.reads, other.reads),
            read_bytes: change(self.read_bytes, other.read_bytes),
            hits: change(self.hits, other.hits),
            hit_bytes: change(self.hit_bytes, other.hit_bytes),
            hit_seeks: change(self.hit_seeks, other.hit_seeks),
            timed_hits: change(self.timed_hits, other.timed_hits),
            timed_hits_ns: change(self.timed_hits_ns, other.timed_hits_ns),
            timed_misses: change(self.timed_misses, other.timed_misses),
            timed_misses_ns: change(self.timed_misses_ns, other.timed_misses_ns),
            medium_bytes: change(self.medium_bytes, other.medium_bytes),
        }
    }

    /// Adds a span. What was read from a file may be any number.
    pub fn add(&mut self, other: &Self) {
        *self = self.zip(other, u64::saturating_add);
    }

    /// What was counted since another state of the same counters.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.zip(before, u64::saturating_sub)
    }
}

/// A day with reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryDay {
    /// Days since 1970, UTC.
    pub day: u64,
    /// What it had.
    pub totals: CacheTotals,
}

/// What the service knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheHistory {
    /// The cache.
    pub name: String,
    /// The volume, by its kernel name.
    pub volume: String,
    /// Whether its disk has a head that moves; `None` if the kernel does not say.
    pub is_rotational: Option<bool>,
    /// When it was attached, and now, seconds since 1970.
    pub attached_unix_s: u64,
    pub now_unix_s: u64,
    /// Since it was attached.
    pub since_attach: CacheTotals,
    /// The days of the last week.
    pub days: Vec<HistoryDay>,
    /// This day, UTC.
    pub today: CacheTotals,
    /// Bytes that may be written to the flash in a day.
    pub budget_bytes_per_day: u64,
    /// Bytes of the file of the cache when it is full.
    pub cache_bytes: u64,
}

/// What a span saved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SavedTime {
    /// The mean of the timed reads that the flash answered, measured.
    pub flash_ns: f64,
    /// And of those that the disk answered.
    pub disk_ns: f64,
    /// Concluded: all hits times the difference; negative if the flash is slower. Added up over
    /// reads, of which several may have waited at once.
    pub saved_ns: f64,
}

/// A cache, as `terrace.boost_report/1` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheReport {
    #[serde(flatten)]
    pub history: CacheHistory,
    /// The sum of the last 7 days.
    pub week: CacheTotals,
    /// `None`: fewer than 100 reads of either kind were timed.
    pub week_saved: Option<SavedTime>,
    pub since_attach_saved: Option<SavedTime>,
    /// What was written to the flash today, as a share of what may be written in a day.
    pub worn_today: f64,
}

/// All of them, as JSON has it.
#[derive(Debug, Serialize)]
pub struct CacheReports<'r> {
    /// `terrace.boost_report/1`.
    pub schema: &'static str,
    /// Those that answered.
    pub caches: &'r [CacheReport],
}

fn saved(totals: &CacheTotals) -> Option<SavedTime> {
    let mean = |ns: u64, reads: u64| (reads >= TIMED_MIN).then(|| ns as f64 / reads as f64);
    let flash_ns = mean(totals.timed_hits_ns, totals.timed_hits)?;
    let disk_ns = mean(totals.timed_misses_ns, totals.timed_misses)?;
    Some(SavedTime { flash_ns, disk_ns, saved_ns: totals.hits as f64 * (disk_ns - flash_ns) })
}

impl CacheReport {
    /// Adds what is concluded.
    #[must_use]
    pub fn of(history: CacheHistory) -> Self {
        let mut week = CacheTotals::default();
        history.days.iter().for_each(|day| week.add(&day.totals));
        Self {
            week,
            week_saved: saved(&week),
            since_attach_saved: saved(&history.since_attach),
            worn_today: history.today.medium_bytes as f64
                / history.budget_bytes_per_day.max(1) as f64,
            history,
        }
    }

    /// "41 min and 312,000 seeks of vdb", or why not.
    fn saving(&self, totals: &CacheTotals, saved: Option<SavedTime>) -> String {
        let volume = escaped(&self.history.volume);
        let spared = match self.history.is_rotational {
            Some(false) => "random reads",
            _ => "seeks",
        };
        let seeks = format!("{} {spared} of {volume}", count(totals.hit_seeks));
        match saved {
            _ if totals.reads == 0 => format!("nothing was read of {volume}"),
            _ if totals.hits == 0 => {
                format!("the flash answered none of {} reads of {volume}", count(totals.reads))
            }
            Some(saved) if saved.saved_ns > 0.0 => {
                format!("the flash saved {} and {seeks}", long_time(saved.saved_ns))
            }
            Some(saved) => format!(
                "the flash saved no time, but {seeks}: its reads took {} longer",
                long_time(-saved.saved_ns)
            ),
            None => format!("the flash saved {seeks}; how much time is unproven"),
        }
    }

    fn sentence(&self) -> String {
        let saving = self.saving(&self.week, self.week_saved);
        format!("{}: in the last 7 days {saving}.", escaped(&self.history.name))
    }

    fn notes(&self) -> Vec<String> {
        let history = &self.history;
        let since = history.now_unix_s.saturating_sub(history.attached_unix_s);
        let ago = match since / DAY_S {
            0 => long_time(since as f64 * 1e9),
            1 => "a day".to_owned(),
            days => format!("{} days", count(days)),
        };
        let mut notes = vec![format!(
            "since it was attached, {ago} ago, {}",
            self.saving(&history.since_attach, self.since_attach_saved)
        )];
        let week = &self.week;
        match self.week_saved {
            Some(SavedTime { flash_ns, disk_ns, .. }) => {
                notes.push(format!(
                    "measured in the service, from a request to its answer: the flash took {} on \
                     average of {} reads, the disk {} of {} (up to 128 KiB, not in long runs)",
                    figure::precise_time(flash_ns),
                    count(week.timed_hits),
                    figure::precise_time(disk_ns),
                    count(week.timed_misses)
                ));
                notes.push(format!(
                    "concluded: each of the {} reads from the flash would have taken the disk as \
                     long as one of its own; times are added up over reads, of which several may \
                     have waited at once",
                    count(week.hits)
                ));
            }
            None if week.hits > 0 => notes.push(format!(
                "timed were {} reads from the flash and {} from the disk: with fewer than {TIMED_MIN} \
                 of either a mean says nothing",
                count(week.timed_hits),
                count(week.timed_misses)
            )),
            None => {}
        }
        let today = Bytes(history.today.medium_bytes);
        notes.push(format!(
            "worn: {} were written to the flash in 7 days, {today} of it today (UTC), which is {} of \
             the {} that may be written in a day",
            Bytes(week.medium_bytes),
            figure::percent(self.worn_today),
            Bytes(history.budget_bytes_per_day)
        ));
        notes
    }
}

/// A few lines for each.
#[must_use]
pub fn page(caches: &[CacheReport], page: Page) -> String {
    super::boost::page_of(caches.iter().map(|cache| (cache.sentence(), cache.notes())), page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals() -> CacheTotals {
        CacheTotals {
            reads: 400_000,
            read_bytes: 400_000 << 12,
            hits: 200_000,
            hit_bytes: 200_000 << 12,
            hit_seeks: 150_000,
            timed_hits: 1000,
            timed_hits_ns: 1_000_000_000,
            timed_misses: 500,
            timed_misses_ns: 6_500_000_000,
            medium_bytes: 1 << 30,
        }
    }

    fn report(totals: CacheTotals) -> CacheReport {
        let day = |day| HistoryDay { day, totals };
        CacheReport::of(CacheHistory {
            name: "fast".to_owned(),
            volume: "vdb".to_owned(),
            is_rotational: Some(true),
            attached_unix_s: 20_000 * DAY_S,
            now_unix_s: 20_003 * DAY_S,
            since_attach: totals,
            days: vec![day(20_002), day(20_003)],
            today: CacheTotals { medium_bytes: 1 << 28, ..totals },
            budget_bytes_per_day: 1 << 30,
            cache_bytes: 2 << 30,
        })
    }

    #[test]
    fn time_is_hits_times_the_difference_of_the_means() {
        let report = report(totals());
        // 400,000 hits, each 13 ms instead of 1 ms.
        assert_eq!(report.week_saved.unwrap().saved_ns, 400_000.0 * 12e6);
        let expected = "fast: in the last 7 days the flash saved 80 min and 300,000 seeks of vdb.";
        assert_eq!(report.sentence(), expected);
        let notes = report.notes().join("\n");
        for words in [
            "since it was attached, 3 days ago, the flash saved 40 min and 150,000 seeks of vdb",
            "the flash took 1 ms on average of 2,000 reads, the disk 13 ms of 1,000",
            "concluded: each of the 400,000 reads",
            "256 MiB of it today (UTC), which is 25 % of the 1 GiB",
        ] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
    }

    #[test]
    fn what_is_not_proved_is_not_stated() {
        let few = CacheTotals { timed_hits: 49, ..totals() };
        let sentence = report(few).sentence();
        assert!(
            sentence.ends_with("300,000 seeks of vdb; how much time is unproven."),
            "{sentence}"
        );
        let slower = CacheTotals { timed_misses_ns: 100_000, ..totals() };
        assert!(report(slower).sentence().contains("saved no time"));
        let none = CacheTotals { hits: 0, ..totals() };
        assert!(report(none).sentence().contains("answered none of 800,000 reads"));
        let idle = report(CacheTotals::default());
        assert!(idle.sentence().contains("nothing was read of vdb"), "{}", idle.sentence());
        let mut flash = report(totals());
        flash.history.is_rotational = Some(false);
        assert!(flash.sentence().contains("300,000 random reads of vdb"), "{}", flash.sentence());
    }
}
