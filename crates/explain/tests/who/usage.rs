//! The first users of each figure of a machine, also in a window of it; and recordings that are
//! damaged or have no processes.

use super::builder::{BACKUP, GIB, MIB, S, SECONDS, SESSION, finding, machine};
use model::Grade;
use model::explanation::FigureUse;
use model::recording::ProcessFigure::{Cpu, ReadBytes, WrittenBytes};
use proptest::prelude::*;

const ALL: (u64, u64) = (0, SECONDS);

/// A figure, its users with what they used, and what others used.
type Listed<'a> = (&'a str, Vec<(&'a str, u64)>, u64);

fn figures(usage: &[FigureUse]) -> Vec<Listed<'_>> {
    let each = usage.iter().map(|figure| {
        let first = figure.first.iter().map(|user| (user.name.as_str(), user.value)).collect();
        (figure.figure.as_str(), first, figure.others)
    });
    each.collect()
}

#[test]
fn the_first_users_of_each_figure_and_what_others_used() {
    let mut built = machine()
        .busy_s(100)
        .grows_evenly("disk.vda.read_bytes", 10 * GIB)
        .grows_evenly("vmstat.nr_dirtied", 2 * GIB / 4096);
    let tar = built.process("tar", 812, BACKUP);
    let firefox = built.process("firefox", 4711, SESSION);
    built.used(tar, ALL, &[(Cpu, 30 * S), (ReadBytes, 6 * GIB)]);
    built.used(firefox, ALL, &[(Cpu, 60 * S), (ReadBytes, 3 * GIB), (WrittenBytes, GIB)]);
    built.rises(firefox, GIB);
    let explained = built.explained();
    assert_eq!(
        figures(&explained.usage),
        [
            ("cpu", vec![("firefox", 60 * S), ("tar", 30 * S)], 10 * S),
            ("read_bytes", vec![("tar", 6 * GIB), ("firefox", 3 * GIB)], GIB),
            ("written_bytes", vec![("firefox", GIB)], GIB),
            ("memory_growth", vec![("firefox", GIB)], 0),
        ]
    );
    let by_group = |number: usize| {
        let groups = explained.usage[number].groups.iter();
        groups.map(|group| (group.name.as_str(), group.value)).collect::<Vec<_>>()
    };
    assert_eq!(by_group(0), [("session-3.scope", 60 * S), ("backup.service", 30 * S)]);
    assert_eq!(explained.usage[0].groups[0].group, SESSION);
}

#[test]
fn an_idle_machine_has_no_actors() {
    let mut built = machine().busy_s(1).grows_evenly("disk.vda.read_bytes", MIB);
    let sshd = built.process("sshd", 30, "/system.slice/ssh.service");
    built.used(sshd, ALL, &[(Cpu, S), (ReadBytes, MIB)]);
    let explained = built.explained();
    assert_eq!(explained.usage, []);
    assert!(explained.findings.iter().all(|cause| cause.actors.is_empty() && cause.who.is_empty()));
}

/// Around an instant others are the first than over all of it.
#[test]
fn a_window_names_who_was_busy_then() {
    let mut built = machine().busy_s(110);
    let (cron, editor) = (built.process("cron", 7, "/"), built.process("code", 8, SESSION));
    built.used(editor, ALL, &[(Cpu, 40 * S)]);
    built.used(cron, (30, 40), &[(Cpu, 9 * S)]);
    assert_eq!(built.explained().usage[0].first[0].name, "code");
    let part = built.between(30, 38);
    let first = &part.usage[0].first;
    assert_eq!((first[0].name.as_str(), first[1].name.as_str()), ("cron", "code"));
    assert_eq!((first[0].value, first[0].grade), (7_200_000_000, Grade::Measured));
    let bound = finding(&part, "cpu_bound");
    assert!(bound.who[0].starts_with("cron (pid 7) ran 7.2 s (49.1 %), code"), "{:?}", bound.who);
}

/// A row that is longer than the window is shared out by time, and is so no more than inferred.
#[test]
fn what_is_shared_out_is_inferred() {
    let mut built = machine().busy_s(110);
    let process = built.process("work", 7, SESSION);
    built.used(process, (0, 1), &[(Cpu, 100 * S)]);
    built.0.who.rows[0].to_ns = SECONDS * S;
    assert_eq!(built.explained().usage[0].first[0].grade, Grade::Measured);
    let part = built.between(30, 36);
    let first = &part.usage[0].first[0];
    assert_eq!((first.value, first.grade), (10 * S, Grade::Inferred));
    assert_eq!(finding(&part, "cpu_bound").actors[0].used.grade, Grade::Inferred);
}

#[test]
fn a_recording_without_processes_is_explained_as_before() {
    let explained = machine().busy_s(110).explained();
    let json = serde_json::to_string(&explained).unwrap();
    for word in ["\"usage\"", "\"actors\"", "\"files\"", "\"who\""] {
        assert!(!json.contains(word), "{word} in {json}");
    }
}

/// What is below a unit is the unit's.
#[test]
fn groups_are_units_and_containers() {
    let mut built = machine().busy_s(100);
    for (number, below) in ["", "/worker-1", "/worker-2"].into_iter().enumerate() {
        let group = format!("/system.slice/web.service{below}");
        let process = built.process(&format!("php{number}"), 10 + number as u32, &group);
        built.used(process, ALL, &[(Cpu, 20 * S)]);
    }
    let explained = built.explained();
    let groups = &explained.usage[0].groups;
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].label.as_str(), groups[0].value), ("web.service (3 processes)", 60 * S));
    assert_eq!((groups[0].processes, groups[0].group.as_str()), (3, "/system.slice/web.service"));
}

proptest! {
    /// Whatever numbers a damaged recording has: no panic, shares from 0 to 1, finite.
    #[test]
    fn any_rows_are_explained_soundly(
        numbers in proptest::collection::vec(any::<u64>(), 60),
        kinds in proptest::collection::vec(0u8..4, 8),
        from in 0..60u64,
    ) {
        let mut built = machine().busy_s(110).reads_s(30, ALL);
        for (number, kind) in kinds.iter().enumerate() {
            let process = built.process("p", number as u32, ["", "/", SESSION, "/docker/x"][number % 4]);
            built.0.who.processes[process as usize].is_many = *kind == 0;
            built.0.who.processes[process as usize].is_kernel = *kind == 1;
            built.0.who.processes[process as usize].started_ns = numbers[number];
        }
        for chunk in numbers.chunks(6) {
            let mut row = model::recording::ProcessRow {
                process: (chunk[0] % 10) as u32,
                from_ns: chunk[1] % (100 * S),
                to_ns: chunk[2] % (100 * S),
                memory_bytes: chunk[3],
                processes: chunk[4],
                has_ended: chunk[4] % 2 == 0,
                ..Default::default()
            };
            row.figures = std::array::from_fn(|at| chunk[at % 6].rotate_left(at as u32));
            built.0.who.rows.push(row);
            let file = model::recording::FileRow {
                file: (chunk[5] % 3) as u32,
                process: (chunk[0] % 10) as u32,
                from_ns: chunk[1] % (100 * S),
                to_ns: chunk[2] % (100 * S),
                added_bytes: chunk[3],
                ..Default::default()
            };
            built.0.who.file_rows.push(file);
        }
        built.file(Some("/x"), 1);
        for explained in [built.explained(), built.between(from, 60)] {
            let users = explained.usage.iter().flat_map(|figure| &figure.first);
            let actors = explained.findings.iter().flat_map(|cause| &cause.actors);
            for user in users.chain(actors.map(|actor| &actor.used)) {
                prop_assert!((0.0..=1.0).contains(&user.share), "{user:?}");
            }
            for cause in &explained.findings {
                prop_assert!(cause.who.iter().all(|words| !words.contains("NaN")), "{cause:?}");
            }
        }
    }
}
