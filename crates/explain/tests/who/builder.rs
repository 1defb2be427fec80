//! Recordings with processes: a minute at one sample a second, rows each second, whatever is used
//! spread evenly over the seconds that are named.

use explain::recording::{Window, explain};
use model::explanation::{Actor, ActorRole, Cause, Explanation};
use model::recording::{
    DeviceFacts, Ending, FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, Recording,
    RecordingOutcome, Schema, Series, SourceState, Subject, Tick,
};

pub const S: u64 = 1_000_000_000;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// How long each recording lasts, in seconds.
pub const SECONDS: u64 = 60;

pub const SESSION: &str = "/user.slice/user-1000.slice/session-3.scope";
pub const BACKUP: &str = "/system.slice/backup.service";

/// A recording that grows.
#[derive(Clone, Debug)]
pub struct Built(pub Recording);

/// A machine with two processors and one disk, where events were open and nothing happened.
pub fn machine() -> Built {
    let mut recording = Recording::default();
    let facts = &mut recording.facts;
    facts.subject = Subject::Machine;
    facts.processors = 2;
    facts.page_bytes = 4096;
    facts.root = true;
    facts.devices.push(DeviceFacts {
        name: "vda".to_owned(),
        number: "254:0".to_owned(),
        ..DeviceFacts::default()
    });
    facts.sights.insert("events.sched".to_owned(), SourceState::Open);
    for second in 0..=SECONDS {
        recording.ticks.push(Tick { due_ns: second * S, at_ns: second * S });
    }
    recording.outcome = Some(RecordingOutcome {
        ending: Ending::Stopped,
        ended_ns: SECONDS * S,
        ..RecordingOutcome::default()
    });
    Built(recording)
}

/// The same of a command.
pub fn command(word: &str) -> Built {
    let mut built = machine();
    built.0.facts.subject = Subject::Command { argv: vec![word.to_owned()] };
    built.0.outcome.as_mut().unwrap().ending = Ending::Exited { code: 0 };
    built
}

impl Built {
    /// A counter that grows evenly by `total` between two seconds.
    pub fn grows(mut self, name: &str, total: u64, during: (u64, u64)) -> Self {
        let mut series = Series {
            schema: Schema {
                id: self.0.series.len() as u32,
                name: name.to_owned(),
                unit: if name.ends_with("_ns") { "ns" } else { "count" }.to_owned(),
                source: format!("source of {name}"),
                ..Schema::default()
            },
            ..Series::default()
        };
        let (from, to) = during;
        for second in 0..=SECONDS {
            let grown = total * second.clamp(from, to).saturating_sub(from) / (to - from);
            series.push(second as u32, Some(grown as i64));
        }
        self.0.series.push(series);
        self
    }

    /// The same over all of it.
    pub fn grows_evenly(self, name: &str, total: u64) -> Self {
        self.grows(name, total, (0, SECONDS))
    }

    /// So many seconds of all processors: what they ran, and the rest idle.
    pub fn busy_s(self, seconds: u64) -> Self {
        self.grows_evenly("stat.cpu.user_ns", seconds * S)
            .grows_evenly("stat.cpu.idle_ns", (2 * SECONDS - seconds) * S)
    }

    /// Events: what all threads waited for block I/O, all of it for reads.
    pub fn reads_s(self, seconds: u64, during: (u64, u64)) -> Self {
        self.grows("trace.block_io.read_ns", seconds * S, during)
            .grows("trace.sched.block_io_ns", seconds * S, during)
            .grows_evenly("trace.sched.run_ns", S)
    }

    /// A process; its id.
    pub fn process(&mut self, name: &str, pid: u32, group: &str) -> u32 {
        let id = self.0.who.processes.len() as u32;
        self.0.who.processes.push(Process {
            id,
            pid,
            parent: 1,
            user: 1000,
            started_ns: 1,
            name: name.to_owned(),
            group: group.to_owned(),
            is_kernel: false,
            is_many: false,
        });
        id
    }

    /// A thread of the kernel; its id.
    pub fn kernel(&mut self, name: &str, pid: u32) -> u32 {
        let id = self.process(name, pid, "/");
        self.0.who.processes[id as usize].is_kernel = true;
        id
    }

    /// What a process used between two seconds, in rows of one second.
    pub fn used(&mut self, process: u32, during: (u64, u64), figures: &[(ProcessFigure, u64)]) {
        for second in during.0..during.1 {
            let mut row = ProcessRow {
                process,
                from_ns: second * S,
                to_ns: (second + 1) * S,
                memory_bytes: 100 * MIB,
                processes: 1,
                ..ProcessRow::default()
            };
            let (done, seconds) = (second - during.0, during.1 - during.0);
            for (figure, total) in figures {
                row.figures[*figure as usize] =
                    total * (done + 1) / seconds - total * done / seconds;
            }
            self.0.who.rows.push(row);
        }
    }

    /// Gives the rows of a process levels of memory that rise evenly to `bytes` above the first.
    pub fn rises(&mut self, process: u32, bytes: u64) {
        let all = self.0.who.rows.iter_mut();
        let rows: Vec<&mut ProcessRow> = all.filter(|row| row.process == process).collect();
        let last = rows.len() as u64 - 1;
        for (number, row) in rows.into_iter().enumerate() {
            row.memory_bytes += bytes * number as u64 / last;
        }
    }

    /// A file; its id.
    pub fn file(&mut self, path: Option<&str>, inode: u64) -> u32 {
        let id = self.0.who.files.len() as u32;
        let path = path.map(str::to_owned);
        self.0.who.files.push(FileIdentity { id, device: (254, 0), inode, path });
        id
    }

    /// What a process read of a file: added to the cache, and of that read again.
    pub fn read(&mut self, file: u32, process: u32, added: u64, again: u64) {
        self.0.who.file_rows.push(FileRow {
            file,
            process,
            from_ns: 0,
            to_ns: SECONDS * S,
            added_bytes: added,
            refaulted_bytes: again,
            ..FileRow::default()
        });
    }

    /// The explanation of all of it; rows are put into order before.
    pub fn explained(&self) -> Explanation {
        explain(&self.sorted(), Window::default())
    }

    /// The explanation of a part, in seconds.
    pub fn between(&self, from: u64, to: u64) -> Explanation {
        let window = Window { from_ns: Some(from * S), to_ns: Some(to * S) };
        explain(&self.sorted(), window)
    }

    fn sorted(&self) -> Recording {
        let mut recording = self.0.clone();
        recording.who.rows.sort_by_key(|row| row.to_ns);
        recording
    }
}

/// The finding of this rule.
pub fn finding<'a>(explanation: &'a Explanation, id: &str) -> &'a Cause {
    let found = explanation.findings.iter().find(|cause| cause.finding.id == id);
    found.unwrap_or_else(|| panic!("no {id} in {:#?}", explanation.findings))
}

/// The names in a role, in order.
pub fn names(cause: &Cause, role: ActorRole) -> Vec<&str> {
    of_role(cause, role).iter().map(|actor| actor.used.name.as_str()).collect()
}

/// The actors in a role, in order.
pub fn of_role(cause: &Cause, role: ActorRole) -> Vec<&Actor> {
    cause.actors.iter().filter(|actor| actor.role == role).collect()
}
