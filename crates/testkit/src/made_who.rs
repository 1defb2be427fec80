//! What processes use on a desktop that does not exist: for tests and measurements of what keeps
//! it, shows it or explains it.
//!
//! Forty processes of which ten are busy, each with two or three figures that are not 0; programs
//! that start and end; files that are read. Ten rows a sample, and once a second one for all that
//! used anything. The same seed makes the same.

use crate::Random;
use model::recording::{
    FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, RequestRow, SampleRow, SampledPart,
    Who,
};

/// Rows of an ordinary sample.
const FIRST: usize = 10;

/// Between two samples with rows of all.
const SECOND_NS: u64 = 1_000_000_000;

const PAGE: u64 = 4096;

const PROGRAMS: [(&str, &str); 8] = [
    ("firefox", "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-2031.scope"),
    (
        "Isolated Web Co",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope",
    ),
    ("gnome-shell", "/user.slice/user-1000.slice/user@1000.service/session.slice"),
    ("Xwayland", "/user.slice/user-1000.slice/user@1000.service/session.slice"),
    ("pipewire", "/user.slice/user-1000.slice/user@1000.service/session.slice/pipewire.service"),
    ("postgres", "/system.slice/postgresql@15-main.service"),
    ("rsync", "/system.slice/backup.service"),
    ("code", "/user.slice/user-1000.slice/user@1000.service/app.slice/app-code-881.scope"),
];

/// One process while it lives.
#[derive(Debug)]
struct Made {
    id: u32,
    since_ns: u64,
    figures: [u64; ProcessFigure::COUNT],
    memory_bytes: u64,
    /// How busy it is: nanoseconds of a sample.
    cpu_ns: u64,
}

/// Makes what a recorder reports, sample after sample.
#[derive(Debug)]
pub struct MadeWho {
    random: Random,
    living: Vec<Made>,
    processes: u32,
    files: u32,
    last_ns: u64,
}

impl MadeWho {
    /// A machine of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed), living: Vec::new(), processes: 0, files: 0, last_ns: 0 }
    }

    /// What is new at `at_ns`, which is later than the one before.
    pub fn sample(&mut self, at_ns: u64) -> Who {
        let mut news = Who::default();
        while self.living.len() < 40 {
            let process = self.start(at_ns);
            news.processes.push(process);
        }
        let is_full = at_ns / SECOND_NS != self.last_ns / SECOND_NS;
        self.run();
        self.living.sort_by_key(|made| std::cmp::Reverse(made.figures[0]));
        for (rank, made) in self.living.iter_mut().enumerate() {
            let is_due = rank < FIRST || (is_full && made.figures[0] > 50_000);
            if is_due {
                let figures = std::mem::take(&mut made.figures);
                let from_ns = std::mem::replace(&mut made.since_ns, at_ns);
                news.rows.push(ProcessRow {
                    process: made.id,
                    from_ns,
                    to_ns: at_ns,
                    figures,
                    memory_bytes: made.memory_bytes,
                    has_ended: false,
                    processes: 1,
                });
            }
        }
        if is_full {
            self.end_one(&mut news);
            self.read_files(at_ns, &mut news);
            self.sample_processors(at_ns, &mut news);
        }
        self.last_ns = at_ns;
        news
    }

    fn start(&mut self, at_ns: u64) -> Process {
        let id = self.processes;
        self.processes += 1;
        let (name, group) = PROGRAMS[self.random.below(PROGRAMS.len() as u64) as usize];
        let is_busy = id.is_multiple_of(4);
        self.living.push(Made {
            id,
            since_ns: at_ns,
            figures: [0; ProcessFigure::COUNT],
            memory_bytes: self.random.below(1 << 18) * PAGE,
            cpu_ns: if is_busy { 8_000_000 } else { 60_000 },
        });
        Process {
            id,
            pid: 2_000 + id * 3 + self.random.below(3) as u32,
            parent: 1_000 + self.random.below(50) as u32,
            user: if group.starts_with("/user") { 1000 } else { 110 },
            started_ns: 3_600_000_000_000 + at_ns + self.random.below(SECOND_NS),
            name: name.to_owned(),
            group: group.to_owned(),
            ..Process::default()
        }
    }

    /// Lets all of them run for the time of a sample.
    fn run(&mut self) {
        let random = &mut self.random;
        for made in &mut self.living {
            let figures = &mut made.figures;
            let mut add = |figure: ProcessFigure, value| figures[figure as usize] += value;
            add(ProcessFigure::Cpu, random.below(made.cpu_ns) + (made.cpu_ns >> random.below(4)));
            add(ProcessFigure::Queue, random.below(made.cpu_ns / 8 + 1) >> random.below(4));
            if random.below(4) == 0 {
                add(ProcessFigure::MinorFaults, random.below(200));
            }
            if random.below(16) == 0 {
                let bytes = (1 + random.below(64)) * PAGE;
                add(ProcessFigure::ReadBytes, bytes);
                add(ProcessFigure::CacheAdded, bytes);
                add(ProcessFigure::BlockWait, random.below(3_000_000));
            }
            if random.below(3) == 0 {
                let pages = random.below(40) * PAGE;
                made.memory_bytes = (made.memory_bytes + 20 * PAGE).saturating_sub(pages);
            }
        }
    }

    /// Ends a process now and then.
    fn end_one(&mut self, news: &mut Who) {
        let index = self.random.below(3 * self.living.len() as u64) as usize;
        if index < self.living.len() {
            let id = self.living.remove(index).id;
            if let Some(row) = news.rows.iter_mut().find(|row| row.process == id) {
                (row.has_ended, row.memory_bytes) = (true, 0);
            }
        }
    }

    /// Samples of processors and requests of this second.
    fn sample_processors(&mut self, at_ns: u64, news: &mut Who) {
        let from_ns = self.last_ns / SECOND_NS * SECOND_NS;
        let busy: Vec<u32> = news.rows.iter().take(6).map(|row| row.process).collect();
        for process in busy {
            let mut samples = [0; SampledPart::COUNT];
            samples[SampledPart::User as usize] = self.random.below(20);
            samples[SampledPart::Call as usize] = self.random.below(5);
            samples[SampledPart::KernelCopying as usize] = samples[SampledPart::Call as usize];
            news.samples.push(SampleRow { process, from_ns, to_ns: at_ns, samples });
            let requests = self.random.below(30);
            let mut classes = [0; RequestRow::CLASSES];
            classes[2 + self.random.below(6) as usize] = requests;
            news.requests.push(RequestRow {
                process,
                device: (254, 0),
                is_write: self.random.below(2) == 1,
                from_ns,
                to_ns: at_ns,
                requests,
                bytes: requests * 8 * PAGE,
                latency_ns: requests * 300_000,
                classes,
            });
        }
    }

    fn read_files(&mut self, at_ns: u64, news: &mut Who) {
        for row in news.rows.iter().take(3) {
            if self.files < 4 || self.random.below(20) == 0 {
                news.files.push(FileIdentity {
                    id: self.files,
                    device: (254, 1),
                    inode: 1_000_000 + self.random.below(1 << 20),
                    path: Some(format!("/home/user/.cache/entries/{:x}", self.random.next_u64())),
                });
                self.files += 1;
            }
            news.file_rows.push(FileRow {
                file: self.random.below(u64::from(self.files)) as u32,
                process: row.process,
                from_ns: self.last_ns / SECOND_NS * SECOND_NS,
                to_ns: at_ns,
                added_bytes: self.random.below(1000) * PAGE,
                refaulted_bytes: 0,
                dirtied_bytes: self.random.below(2) * 64 * PAGE,
                evicted_bytes: 0,
            });
        }
    }
}
