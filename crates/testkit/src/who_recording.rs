//! A recording with processes and files, as the recorder in the kernel fills one: a backup reads
//! through the page cache, so that a browser waits for what was evicted from it.
//!
//! Made by arithmetic, so that tests know every figure: 40 s at 5 Hz, two processors.

use model::recording::{
    Facts, FileIdentity, FileRow, Process, ProcessFigure, ProcessRow, Recording, RecordingOutcome,
    Schema, Series, SeriesKind, SourceState, Steps, Subject, Tick, Who,
};

const SECOND_NS: u64 = 1_000_000_000;
const SAMPLE_NS: u64 = SECOND_NS / 5;
const SAMPLES: u64 = 200;
const MB: u64 = 1_000_000;

/// The name of a process that is markup and a terminal's command.
pub const HOSTILE_NAME: &str = "<b>\x1b[31mx";

/// The places of the processes.
const BROWSER: u32 = 0;
const BACKUP: u32 = 1;
const KSWAPD: u32 = 2;
const HOSTILE: u32 = 3;
const LEAK: u32 = 4;
const REST: u32 = 5;
/// Twelve compilers are the last ones.
const COMPILERS: std::ops::Range<u32> = 6..18;

/// A machine on which `backup` makes `browser` wait from second 10 to second 30.
#[must_use]
pub fn who_recording() -> Recording {
    let mut recording = Recording {
        facts: Facts {
            started_unix_ns: 1_800_000_000 * SECOND_NS,
            processors: 2,
            page_bytes: 4096,
            rate_hz: 5,
            root: true,
            subject: Subject::Machine,
            ..Facts::default()
        },
        outcome: Some(RecordingOutcome {
            ended_ns: SAMPLES * SAMPLE_NS,
            ..RecordingOutcome::default()
        }),
        ..Recording::default()
    };
    recording.facts.sights.insert("who".to_owned(), SourceState::Open);
    recording.who = Who { processes: processes(), files: files(), ..Who::default() };
    let names = ["trace.sched.run_ns", "trace.sched.queue_ns", "trace.sched.block_io_ns"];
    recording.series = names.map(time_series).into();
    let mut sums = vec![[0u64; 3]; SAMPLES as usize];
    for sample in 1..=SAMPLES {
        let rows = rows_of(sample);
        for row in &rows {
            let samples = row.from_ns / SAMPLE_NS..row.to_ns / SAMPLE_NS;
            let count = samples.end - samples.start;
            for sum in &mut sums[samples.start as usize..samples.end as usize] {
                for (sum, figure) in sum.iter_mut().zip(&row.figures) {
                    *sum += figure / count;
                }
            }
        }
        recording.who.rows.extend(rows);
        recording.who.file_rows.extend(file_rows_of(sample));
    }
    let mut used = [0u64; 3];
    for sample in 0..=SAMPLES {
        if let Some(sums) = sample.checked_sub(1).map(|before| sums[before as usize]) {
            used.iter_mut().zip(sums).for_each(|(used, sum)| *used += sum);
            // Who used this is not known.
            used[0] += SAMPLE_NS / 20;
        }
        let at_ns = sample * SAMPLE_NS;
        recording.ticks.push(Tick { due_ns: at_ns, at_ns });
        for (series, value) in recording.series.iter_mut().zip(used) {
            series.push(u32::try_from(sample).unwrap_or(u32::MAX), i64::try_from(value).ok());
        }
    }
    recording
}

fn time_series(name: &str) -> Series {
    let schema = Schema {
        name: name.to_owned(),
        unit: "ns".to_owned(),
        kind: SeriesKind::Counter,
        source: "sched_switch".to_owned(),
        ..Schema::default()
    };
    Series { schema, steps: Steps::new() }
}

fn processes() -> Vec<Process> {
    let process = |id: u32, pid: u32, name: &str, group: &str, user: u32| Process {
        id,
        pid,
        parent: 1,
        user,
        started_ns: u64::from(pid),
        name: name.to_owned(),
        group: group.to_owned(),
        ..Process::default()
    };
    let session = "/user.slice/user-1000.slice/session-3.scope";
    let kernel = Process { is_kernel: true, parent: 2, ..process(KSWAPD, 61, "kswapd0", "/", 0) };
    let mut all = vec![
        process(BROWSER, 4711, "browser", session, 1000),
        process(BACKUP, 812, "backup", "/system.slice/backup.service", 0),
        kernel,
        process(HOSTILE, 999, HOSTILE_NAME, "/system.slice/<i>.service", 65_534),
        process(LEAK, 1234, "leak", session, 1000),
        process(REST, 0, "others", "", 0),
    ];
    let compilers = COMPILERS.map(|id| process(id, 5000 + id, "cc1", session, 1000));
    all.extend(compilers);
    all
}

fn files() -> Vec<FileIdentity> {
    let file = |id: u32, path: Option<&str>| FileIdentity {
        id,
        device: (8, 1),
        inode: 70 + u64::from(id),
        path: path.map(str::to_owned),
    };
    vec![
        file(0, Some("/srv/photos/2026.tar")),
        file(1, Some("/home/user/.cache/browser/<img src=x onerror=alert(1)>")),
        file(2, None),
    ]
}

/// What is used in the sample that ends there; those that matter less have a row a second.
fn rows_of(sample: u64) -> Vec<ProcessRow> {
    let is_slow = sample.is_multiple_of(5);
    let second = (sample - 1) / 5;
    let is_backed_up = (10..30).contains(&second);
    let row = |process: u32, samples: u64, figures: &[(ProcessFigure, u64)], memory_mb: u64| {
        let mut row = ProcessRow {
            process,
            from_ns: (sample - samples) * SAMPLE_NS,
            to_ns: sample * SAMPLE_NS,
            memory_bytes: memory_mb * MB,
            processes: 1,
            ..ProcessRow::default()
        };
        for (figure, per_s) in figures {
            row.figures[*figure as usize] = per_s * samples / 5;
        }
        row
    };
    use ProcessFigure as Figure;
    let percent = SECOND_NS / 100;
    let mut rows = vec![if is_backed_up {
        let waits = [
            (Figure::Cpu, 8 * percent),
            (Figure::Queue, 5 * percent),
            (Figure::BlockWait, 85 * percent),
            (Figure::ReadBytes, 20 * MB),
            (Figure::Refaulted, 16 * MB),
            (Figure::CacheAdded, 20 * MB),
            (Figure::MajorFaults, 300),
            (Figure::SwappedIn, 2 * MB),
        ];
        row(BROWSER, 1, &waits, 900)
    } else {
        row(BROWSER, 1, &[(Figure::Cpu, 55 * percent), (Figure::MinorFaults, 2_000)], 1_200)
    }];
    if is_backed_up {
        let reads = [
            (Figure::Cpu, 40 * percent),
            (Figure::BlockWait, 50 * percent),
            (Figure::ReadBytes, 150 * MB),
            (Figure::CacheAdded, 150 * MB),
        ];
        rows.push(row(BACKUP, 1, &reads, 40));
        rows.push(row(KSWAPD, 1, &[(Figure::Cpu, 30 * percent)], 0));
    }
    if is_slow {
        rows.push(row(
            LEAK,
            5,
            &[(Figure::Cpu, 3 * percent), (Figure::MinorFaults, 5_000)],
            200 + 20 * second,
        ));
        let writes = [(Figure::Cpu, percent), (Figure::WrittenBytes, 3 * MB)];
        rows.push(row(HOSTILE, 5, &writes, 5));
        rows.push(row(REST, 5, &[(Figure::Cpu, 2 * percent)], 0));
        let busy = if second < 10 { 9 * percent } else { percent / 2 };
        let compiles =
            [(Figure::Cpu, busy), (Figure::Queue, busy), (Figure::WrittenBytes, MB / 10)];
        rows.extend(COMPILERS.map(|id| row(id, 5, &compiles, 60)));
    }
    rows
}

fn file_rows_of(sample: u64) -> Vec<FileRow> {
    let (from_ns, to_ns) = ((sample - 1) * SAMPLE_NS, sample * SAMPLE_NS);
    let row =
        |file: u32, process: u32| FileRow { file, process, from_ns, to_ns, ..FileRow::default() };
    if !(10..30).contains(&((sample - 1) / 5)) {
        return vec![FileRow { dirtied_bytes: 3 * MB / 5, ..row(2, HOSTILE) }];
    }
    vec![
        FileRow { added_bytes: 30 * MB, evicted_bytes: 28 * MB, ..row(0, BACKUP) },
        FileRow {
            added_bytes: 4 * MB,
            refaulted_bytes: 3 * MB,
            evicted_bytes: 4 * MB,
            ..row(1, BROWSER)
        },
    ]
}
