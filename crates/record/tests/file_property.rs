//! What was written is what is read, for rows of any values and any shape.
//!
//! The oracle is the plain table of rows, kept beside the writer.

#![allow(clippy::unwrap_used, reason = "a test program")]

use model::recording::{Facts, Recording, RecordingOutcome, Schema, SeriesKind, Span, Task, Tick};
use proptest::prelude::*;
use record::{ABSENT, Row, file};

/// One call of the writer.
#[derive(Clone, Debug)]
enum Call {
    /// A sample this long after the last one, this late, with these values and so many
    /// columns more.
    Sample(u64, u64, Vec<(usize, i64)>, usize),
    Flush,
    Span(u64, u64),
}

fn values() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (-5i64..1000).prop_map(|small| small * 4096),
        2 => any::<i64>(),
        2 => Just(ABSENT),
        1 => Just(i64::MAX),
        1 => Just(ABSENT + 1),
        1 => Just(0),
    ]
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let changes = prop::collection::vec((0usize..40, values()), 0..8);
    let period = prop_oneof![8 => Just(100_000_000u64), 1 => 0u64..30_000_000_000];
    let sample = (period, 0u64..1_000_000, changes, 0usize..3);
    let call = prop_oneof![
        30 => sample.prop_map(|(period, late, changes, more)| {
            Call::Sample(period, late, changes, more)
        }),
        1 => Just(Call::Flush),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(start, length)| {
            Call::Span(u64::from(start), u64::from(start) + u64::from(length))
        }),
    ];
    prop::collection::vec(call, 0..260)
}

fn schema(id: usize) -> Schema {
    Schema {
        id: id as u32,
        name: format!("series.{id}"),
        unit: "count".to_owned(),
        kind: if id.is_multiple_of(2) { SeriesKind::Counter } else { SeriesKind::Gauge },
        source: "/proc/vmstat".to_owned(),
        refresh_ns: (id == 3).then_some(1_000_000_000),
    }
}

/// What the reader must give.
#[derive(Debug, Default)]
struct Table {
    ticks: Vec<Tick>,
    rows: Vec<Vec<i64>>,
    schemas: Vec<Schema>,
    spans: Vec<Span>,
}

fn facts() -> Facts {
    Facts {
        version: "0".to_owned(),
        started_unix_ns: 1_800_000_000_000_000_000,
        rate_hz: 10,
        ..Facts::default()
    }
}

fn outcome() -> RecordingOutcome {
    RecordingOutcome { ended_ns: 77, processes: 3, ..RecordingOutcome::default() }
}

fn tasks() -> Vec<Task> {
    let task = |pid| Task { pid, comm: format!("task-{pid}"), ..Task::default() };
    (0..3).map(task).collect()
}

fn write(calls: &[Call]) -> (Vec<u8>, Table) {
    let mut writer = file::Writer::new(Vec::new(), &facts()).unwrap();
    let (mut table, mut row, mut due_ns, mut at_ns) = (Table::default(), Row::default(), 0, 0);
    for call in calls {
        match call {
            Call::Sample(period, late, changes, more) => {
                for _ in 0..*more {
                    table.schemas.push(schema(table.schemas.len()));
                }
                for (id, value) in changes.iter().filter(|(id, _)| *id < table.schemas.len()) {
                    row.set(*id as u32, *value);
                }
                due_ns += period;
                at_ns = u64::max(at_ns, due_ns + late);
                let tick = Tick { due_ns, at_ns };
                writer.sample(tick, &table.schemas, &row).unwrap();
                table.ticks.push(tick);
                table.rows.push(row.values().to_vec());
            }
            Call::Flush => writer.flush().unwrap(),
            Call::Span(start_ns, end_ns) => {
                let span = Span {
                    kind: "mark".to_owned(),
                    text: format!("mark {}", table.spans.len()),
                    start_ns: *start_ns,
                    end_ns: *end_ns,
                };
                writer.span(&span).unwrap();
                table.spans.push(span);
            }
        }
    }
    writer.tasks(&tasks()).unwrap();
    let mut ended = facts();
    ended.processors = 4;
    let bytes = writer.finish(&ended, &outcome()).unwrap();
    (bytes, table)
}

/// Compares the samples that were read with the first of those written.
fn check_samples(recording: &Recording, table: &Table) -> Result<(), TestCaseError> {
    prop_assert_eq!(&recording.ticks, &table.ticks[..recording.ticks.len()]);
    for (id, series) in recording.series.iter().enumerate() {
        prop_assert_eq!(&series.schema, &table.schemas[id]);
        let rows = table.rows.iter().enumerate();
        for (sample, row) in rows.take(recording.ticks.len()) {
            let written = row.get(id).copied().filter(|value| *value != ABSENT);
            let read = series.at(sample as u32);
            prop_assert_eq!(read, written, "series {} sample {}", id, sample);
        }
        let is_change = |pair: &[model::recording::SeriesStep]| {
            pair[0].sample < pair[1].sample && pair[0].value != pair[1].value
        };
        let steps: Vec<_> = series.steps.iter().collect();
        prop_assert!(steps.windows(2).all(is_change), "changes, in order");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_written_is_read(calls in calls()) {
        let (bytes, mut table) = write(&calls);
        let recording = file::read(&bytes[..]).unwrap();
        prop_assert_eq!(recording.ticks.len(), table.ticks.len());
        let has_rows = !table.ticks.is_empty();
        prop_assert_eq!(recording.series.len(), if has_rows { table.schemas.len() } else { 0 });
        check_samples(&recording, &table)?;
        table.spans.sort_by_key(|span| span.start_ns);
        prop_assert_eq!(&recording.spans, &table.spans);
        prop_assert_eq!(&recording.tasks, &tasks());
        prop_assert_eq!(recording.facts.processors, 4);
        prop_assert_eq!(&recording.outcome, &Some(outcome()));
        prop_assert_eq!(&recording.damage, &Vec::<String>::new());
    }
}
