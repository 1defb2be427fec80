//! `iostat N [-x] [-t]`: blocks of a processor line and a table of devices.
//! Both old and new names of columns are understood, and numbers with a comma.

use super::time;
use super::timeline::FigureKind::{Rate, Share};
use super::timeline::{Figure, ReportClock, Timeline};
use model::recording::Recording;
use std::time::Duration;

/// The columns of a device.
const DEVICE: [Figure; 9] = [
    (&["r/s"], "reads", Rate("count", 1.0)),
    (&["w/s"], "writes", Rate("count", 1.0)),
    (&["tps"], "transfers", Rate("count", 1.0)),
    (&["rkB/s", "kB_read/s"], "read_bytes", Rate("bytes", 1024.0)),
    (&["wkB/s", "kB_wrtn/s"], "write_bytes", Rate("bytes", 1024.0)),
    (&["rMB/s", "MB_read/s"], "read_bytes", Rate("bytes", 1048576.0)),
    (&["wMB/s", "MB_wrtn/s"], "write_bytes", Rate("bytes", 1048576.0)),
    (&["rrqm/s"], "reads_merged", Rate("count", 1.0)),
    (&["wrqm/s"], "writes_merged", Rate("count", 1.0)),
];

/// How busy a device was: per cent, and the mean length of its queue.
const DEVICE_USE: [Figure; 2] =
    [(&["%util"], "io_ns", Share(100.0)), (&["aqu-sz", "avgqu-sz"], "weighted_ns", Share(1.0))];

/// The words over the processor line: times of so many processors.
const PROCESSORS: [Figure; 6] = [
    (&["%user"], "user_ns", Share(1.0)),
    (&["%nice"], "nice_ns", Share(1.0)),
    (&["%system"], "system_ns", Share(1.0)),
    (&["%iowait"], "iowait_ns", Share(1.0)),
    (&["%steal"], "steal_ns", Share(1.0)),
    (&["%idle"], "idle_ns", Share(1.0)),
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
    let mut reports = Reports::new(interval);
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
    clock: ReportClock,
    cpus: f64,
    is_taken: bool,
    has_begun_by_processors: bool,
}

impl Reports {
    fn new(interval: Option<Duration>) -> Self {
        Self {
            timeline: Timeline::new("iostat"),
            clock: ReportClock::new(interval),
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
        self.is_taken = self.clock.report(&mut self.timeline, stamp_s);
    }

    fn take_processors(&mut self, names: &[&str], words: &[&str]) {
        if self.is_taken {
            let cpus = self.cpus;
            let share = |name: &str| Some(number(names, words, name)? / 100.0 * cpus);
            self.timeline.take("stat.cpu.", &PROCESSORS, share);
        }
    }

    fn take_device(&mut self, names: &[&str], words: &[&str]) {
        let Some(device) = words.first().filter(|_| self.is_taken) else {
            return;
        };
        let prefix = format!("disk.{device}.");
        let value = |name: &str| number(names, words, name);
        self.timeline.take(&prefix, &DEVICE, value);
        for (requests, wait, ours) in
            [("r/s", "r_await", "read_ns"), ("w/s", "w_await", "write_ns")]
        {
            if let (Some(requests), Some(wait)) = (value(requests), value(wait)) {
                self.timeline.ran_at(&format!("{prefix}{ours}"), "ns", requests * wait * 1e6);
            }
        }
        self.timeline.take(&prefix, &DEVICE_USE, value);
    }
}

/// The number below `name`; some languages write a comma in it.
fn number(names: &[&str], words: &[&str], name: &str) -> Option<f64> {
    let at = names.iter().position(|one| *one == name)?;
    words.get(at)?.replace(',', ".").parse().ok()
}
