//! `iostat N [-x] [-t]`: blocks of a processor line and a table of devices.
//! Both old and new names of columns are understood, and numbers with a comma.

use super::time;
use super::timeline::Timeline;
use model::recording::Recording;
use std::time::Duration;

/// A column of rates of a device: its names in old and new versions, ours, and its scale.
const RATES: [(&[&str], &str, &str, f64); 9] = [
    (&["r/s"], "reads", "count", 1.0),
    (&["w/s"], "writes", "count", 1.0),
    (&["tps"], "transfers", "count", 1.0),
    (&["rkB/s", "kB_read/s"], "read_bytes", "bytes", 1024.0),
    (&["wkB/s", "kB_wrtn/s"], "write_bytes", "bytes", 1024.0),
    (&["rMB/s", "MB_read/s"], "read_bytes", "bytes", 1048576.0),
    (&["wMB/s", "MB_wrtn/s"], "write_bytes", "bytes", 1048576.0),
    (&["rrqm/s"], "reads_merged", "count", 1.0),
    (&["wrqm/s"], "writes_merged", "count", 1.0),
];

/// The words over the processor line, and ours.
const SHARES: [(&str, &str); 6] = [
    ("%user", "stat.cpu.user_ns"),
    ("%nice", "stat.cpu.nice_ns"),
    ("%system", "stat.cpu.system_ns"),
    ("%iowait", "stat.cpu.iowait_ns"),
    ("%steal", "stat.cpu.steal_ns"),
    ("%idle", "stat.cpu.idle_ns"),
];

/// Where a line stands.
enum Section<'a> {
    Nowhere,
    /// The numbers of the processors come next.
    Processors(Vec<&'a str>),
    /// Devices follow, under these names.
    Devices(Vec<&'a str>),
}

/// Reads the text; without time stamps a report is `interval` long, else a second.
pub fn read(text: &str, interval: Option<Duration>) -> Result<Recording, String> {
    let mut reports = Reports::new(interval.unwrap_or(Duration::from_secs(1)));
    let mut section = Section::Nowhere;
    let mut stamp = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.first().copied(), &section) {
            (None, _) => section = Section::Nowhere,
            (Some("Linux"), _) => reports.processors(line),
            (Some("avg-cpu:"), _) => {
                reports.begin(stamp.take());
                section = Section::Processors(words[1..].to_vec());
            }
            (Some(first), _) if first.starts_with("Device") => {
                // With -d there are no processors before it.
                if !reports.has_begun_by_processors {
                    reports.begin(stamp.take());
                }
                reports.has_begun_by_processors = false;
                section = Section::Devices(words);
            }
            (Some(_), Section::Processors(names)) => {
                reports.take_processors(names, &words);
                reports.has_begun_by_processors = true;
                section = Section::Nowhere;
            }
            (Some(_), Section::Devices(names)) => reports.take_device(names, &words),
            (Some(_), Section::Nowhere) => stamp = time::seconds(line),
        }
    }
    reports.timeline.finish()
}

struct Reports {
    timeline: Timeline,
    interval: Duration,
    count: u64,
    first_s: Option<u64>,
    cpus: f64,
    is_taken: bool,
    has_begun_by_processors: bool,
}

impl Reports {
    fn new(interval: Duration) -> Self {
        Self {
            timeline: Timeline::new("iostat"),
            interval,
            count: 0,
            first_s: None,
            cpus: 1.0,
            is_taken: false,
            has_begun_by_processors: false,
        }
    }

    /// `Linux 6.12 (host)  11/22/26  _x86_64_  (2 CPU)`.
    fn processors(&mut self, line: &str) {
        let count = line.rsplit_once('(').map_or("", |(_, rest)| rest);
        if let Some(count) = count.split(' ').next().and_then(|word| word.parse::<u32>().ok()) {
            self.timeline.facts().processors = count;
            self.cpus = f64::from(count.max(1));
        }
    }

    fn begin(&mut self, stamp_s: Option<u64>) {
        let at_ns = match (stamp_s, self.first_s) {
            (Some(now), Some(first)) => now.saturating_sub(first).saturating_mul(1_000_000_000),
            _ => {
                let interval_ns = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
                self.count.saturating_mul(interval_ns)
            }
        };
        if self.count == 0 {
            self.first_s = stamp_s;
            let started_ns = stamp_s.unwrap_or(0).saturating_mul(1_000_000_000);
            self.timeline.facts().started_unix_ns = started_ns;
        }
        self.count += 1;
        self.is_taken = self.count > 1 && self.timeline.report(at_ns);
    }

    fn take_processors(&mut self, names: &[&str], words: &[&str]) {
        if !self.is_taken {
            return;
        }
        for (name, ours) in SHARES {
            if let Some(share) = number(names, words, name) {
                self.timeline.ran_for(ours, share / 100.0 * self.cpus);
            }
        }
    }

    fn take_device(&mut self, names: &[&str], words: &[&str]) {
        let Some(device) = words.first().filter(|_| self.is_taken) else {
            return;
        };
        for (theirs, ours, unit, scale) in RATES {
            if let Some(value) = theirs.iter().find_map(|name| number(names, words, name)) {
                let series = format!("disk.{device}.{ours}");
                self.timeline.ran_at(&series, unit, value * scale);
            }
        }
        for (requests, wait, ours) in
            [("r/s", "r_await", "read_ns"), ("w/s", "w_await", "write_ns")]
        {
            let requests = number(names, words, requests);
            if let (Some(requests), Some(wait)) = (requests, number(names, words, wait)) {
                let series = format!("disk.{device}.{ours}");
                self.timeline.ran_at(&series, "ns", requests * wait * 1e6);
            }
        }
        if let Some(busy) = number(names, words, "%util") {
            self.timeline.ran_for(&format!("disk.{device}.io_ns"), busy / 100.0);
        }
        let queue = number(names, words, "aqu-sz").or_else(|| number(names, words, "avgqu-sz"));
        if let Some(queue) = queue {
            self.timeline.ran_for(&format!("disk.{device}.weighted_ns"), queue);
        }
    }
}

/// The number below `name`; some languages write a comma in it.
fn number(names: &[&str], words: &[&str], name: &str) -> Option<f64> {
    let at = names.iter().position(|one| *one == name)?;
    words.get(at)?.replace(',', ".").parse().ok()
}
