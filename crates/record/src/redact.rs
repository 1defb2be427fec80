//! A recording that may be shared: command lines, names of users, hosts, processes and threads,
//! paths, groups and marks are replaced by stand-ins.
//!
//! Equal texts get equal stand-ins (`/path-3`), so that what belonged together still does. There is
//! a list of what is kept, not of what is replaced: a thread's name stays only if it is the same on
//! every machine. Numbers, times, kernel names of devices and the processor's model stay. The
//! recorder's texts are searched for everything that was replaced elsewhere, except for the
//! recorder's own words: a user called `memory` changes no `memory.stat`.

mod kernel;
mod names;
mod search;
mod survey;
mod who;

use kernel::{Vocabulary, Words};
use model::recording::{Facts, Recording, ServerLink, Span, Subject, Task};
use names::StandIns;

pub use survey::{redact_survey, redact_surveys};

/// Kinds of spans whose words are the recorder's; the others' are a person's.
const OWN_SPANS: &[&str] = &[
    "rate",
    "clock_jump",
    "device_added",
    "device_removed",
    "group_changed",
    "events_stopped",
    "events_paused",
    "gap",
];

/// What the names of kernel threads start with; a thread must also be a child of kthreadd, and a
/// process one that the recorder took for the kernel's.
const KERNEL_THREADS: Words = Words(
    "kworker/ kswapd kcompactd ksoftirqd/ khugepaged kthreadd ksmd migration/ rcu_ jbd2/ ext4- xfs \
    btrfs loop writeback kblockd oom_reaper cpuhp/ kdevtmpfs kauditd watchdogd zswap",
);

/// The process whose children kernel threads are.
const KTHREADD: u32 = 2;

/// Programs whose names are not personal.
const PLAIN_PROGRAMS: Words = Words(
    "ar as awk bash cargo cat cc1 cc1plus clang cmake collect2 cp curl dash dd dockerd find fio \
    g++ gcc git go grep gzip java ld ld.lld ls make mariadbd mv mysqld ninja node perl pg_restore \
    postgres python3 qemu-img redis-server rm rsync rustc rustdoc sed sh sleep sort stress-ng \
    sudo systemd tar terrace wget xargs xz zstd",
);

/// The kernel cuts a thread's name to this many bytes.
const COMM_BYTES: usize = 15;

/// Replaces what is personal; a recording that was redacted stays as it is.
pub fn redact(recording: &mut Recording) {
    if recording.facts.redacted {
        return;
    }
    let mut names = StandIns::new(Vocabulary::of(recording));
    let program = facts(&mut recording.facts, &mut names);
    for series in &mut recording.series {
        series_name(&mut series.schema.name, &recording.facts, &mut names);
    }
    for task in &mut recording.tasks {
        task_name(task, program.as_deref(), &mut names);
    }
    for span in &mut recording.spans {
        span_text(span, &mut names);
    }
    who::redact(&mut recording.who, program.as_deref(), &mut names);
    // Last, because these are searched for all that was found above.
    for series in &mut recording.series {
        names.scrub(&mut series.schema.source);
    }
    if let Some(outcome) = &mut recording.outcome {
        if let model::recording::Ending::Killed { out_of_memory, .. } = &mut outcome.ending {
            out_of_memory.iter_mut().for_each(|text| names.scrub(text));
        }
        outcome.stopped_early.iter_mut().for_each(|text| names.scrub(text));
    }
    for text in &mut recording.damage {
        names.scrub(text);
    }
    let facts = &mut recording.facts;
    for text in facts.settings.values_mut() {
        // The kernel's words (`always [madvise] never`) are not personal; a path may be.
        if text.contains('/') {
            names.scrub(text);
        }
    }
    for sight in facts.sights.values_mut() {
        if let model::recording::SourceState::Closed { why, remedy } = sight {
            names.scrub(why);
            remedy.iter_mut().for_each(|text| names.scrub(text));
        }
    }
    facts.redacted = true;
}

/// Replaces what the facts name; the subject's program, which stays.
fn facts(facts: &mut Facts, names: &mut StandIns) -> Option<String> {
    let mut program = None;
    match &mut facts.subject {
        Subject::Command { argv } | Subject::Process { argv, .. } => {
            program = command_line(argv, names);
        }
        Subject::Group { path, unit } => {
            names.group(path);
            if let Some(unit) = unit {
                names.replace("unit-", unit);
            }
        }
        Subject::Machine | Subject::Probe { .. } => {}
    }
    if let Some(host) = facts.machine.as_mut().and_then(|machine| machine.host.take()) {
        names.stand_in("host-", &host);
    }
    for device in &mut facts.devices {
        device.backing_file.iter_mut().for_each(|path| names.path(path));
    }
    for mount in &mut facts.mounts {
        names.path(&mut mount.point);
    }
    for server in &mut facts.servers {
        // The name of a program stays, that of a script does not.
        if let Some((program, script)) = server.name.split_once(' ') {
            let (program, mut script) = (program.to_owned(), script.to_owned());
            names.replace("arg-", &mut script);
            server.name = format!("{program} {script}");
        }
        if server.link == ServerLink::UnixSocket {
            names.path(&mut server.address);
        }
    }
    for group in &mut facts.groups {
        group.paths.values_mut().for_each(|path| names.group(path));
    }
    let mut swaps = std::mem::take(&mut facts.swaps);
    for area in &mut swaps {
        // The name, and perhaps the device behind it.
        let (name, device) = match area.split_once(' ') {
            Some((name, device)) => (name, Some(device)),
            None => (area.as_str(), None),
        };
        let name = swap_area(name, facts, names);
        *area = device.map_or(name.clone(), |device| format!("{name} {device}"));
    }
    facts.swaps = swaps;
    program
}

/// Replaces all words but the program's name, which is returned. A process may have written
/// anything into its command line (`sshd: alice@pts/0`), so only its first word counts.
fn command_line(argv: &mut [String], names: &mut StandIns) -> Option<String> {
    let (first, rest) = argv.split_first_mut()?;
    let word = first.split_whitespace().next().unwrap_or_default();
    let file = word.rsplit('/').next().unwrap_or_default();
    let base = file.trim_end_matches(':').to_owned();
    if *first != base {
        names.stand_in("/path-", first);
        let text = first.clone();
        names.user(&text);
        *first = base.clone();
    }
    for word in rest {
        names.replace("arg-", word);
    }
    Some(base)
}

/// The name of a swap area: kernel devices keep it, files do not.
fn swap_area(name: &str, facts: &Facts, names: &mut StandIns) -> String {
    let is_disk = |name: &str| facts.devices.iter().any(|device| device.name == name);
    // A partition is named after its disk: `vda2`, `nvme0n1p3`.
    let disk = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let is_kernel_name = is_disk(name)
        || is_disk(disk)
        || disk.strip_suffix('p').is_some_and(is_disk)
        || (disk == "zram" && disk != name);
    if is_kernel_name {
        return name.to_owned();
    }
    names.stand_in("area-", name)
}

/// `swap.<area>.used_bytes` names a file; no other series should, but a slash would show it.
fn series_name(name: &mut String, facts: &Facts, names: &mut StandIns) {
    let rest = name.strip_prefix("swap.").map(str::to_owned);
    if let Some((area, field)) = rest.as_deref().and_then(|rest| rest.rsplit_once('.')) {
        *name = format!("swap.{}.{field}", swap_area(area, facts, names));
    } else if name.contains('/') {
        names.replace("series-", name);
    }
}

/// Replaces a thread's name unless it is the subject's program, a common one, or a kernel
/// thread.
fn task_name(task: &mut Task, program: Option<&str>, names: &mut StandIns) {
    let is_kernel = task.ppid == KTHREADD || task.pid == KTHREADD;
    comm(&mut task.comm, is_kernel, program, names);
}

/// As [`task_name`], for a thread or process that may be the kernel's.
fn comm(comm: &mut String, is_kernel: bool, program: Option<&str>, names: &mut StandIns) {
    let is_subject = program.is_some_and(|program| {
        program == comm || (comm.len() == COMM_BYTES && program.starts_with(&*comm))
    });
    let is_plain_kernel = is_kernel && KERNEL_THREADS.iter().any(|start| comm.starts_with(start));
    if !is_subject && !is_plain_kernel && !PLAIN_PROGRAMS.contains(comm) {
        names.replace("task-", comm);
    }
}

fn span_text(span: &mut Span, names: &mut StandIns) {
    if OWN_SPANS.contains(&span.kind.as_str()) {
        names.scrub(&mut span.text);
    } else {
        names.replace("mark-", &mut span.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{Exporter, Json};
    use model::recording::{
        DeviceFacts, Ending, FileIdentity, GroupFacts, MountFacts, Process, RecordingOutcome,
        Schema, Series, SourceState, Who,
    };

    /// Everything that must not be found in a redacted recording.
    const PRIVATE: &[&str] =
        &["alice", "acme", "hunter2", "ledger", "vault", "titan", "7f3a", "payroll", "crypt"];

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn private_facts() -> Facts {
        let machine =
            model::machine::MachineFacts { host: Some(text("titan7f3a")), ..Default::default() };
        let argv = ["/home/alice/bin/rsync", "--password=hunter2", "/srv/acme/ledger"];
        Facts {
            subject: Subject::Command { argv: argv.map(text).to_vec() },
            machine: Some(machine),
            devices: vec![
                DeviceFacts { name: text("vda"), ..Default::default() },
                DeviceFacts {
                    name: text("loop3"),
                    backing_file: Some(text("/srv/vault/image.img")),
                    ..Default::default()
                },
            ],
            mounts: ["/", "/srv/acme", "/srv/vault"]
                .map(|point| MountFacts { point: text(point), ..Default::default() })
                .to_vec(),
            swaps: ["vda2 vda", "zram0", "ledger.swap vda", "mapper/crypt-swap"].map(text).to_vec(),
            groups: vec![GroupFacts {
                paths: [(text("memory"), text("/acme.slice/payroll"))].into(),
                ..Default::default()
            }],
            settings: [(text("kernel.core_pattern"), text("/srv/vault/core"))].into(),
            sights: [(
                text("exits"),
                SourceState::closed(
                    "alice may not read /home/alice/x",
                    Some("chown alice /srv/acme"),
                ),
            )]
            .into(),
            ..Facts::default()
        }
    }

    fn private_who() -> Who {
        let process = |id, name: &str, group: &str, user| Process {
            id,
            name: text(name),
            group: text(group),
            user,
            is_kernel: name.contains("worker/"),
            ..Process::default()
        };
        let file =
            |id, path: &str| FileIdentity { id, path: Some(text(path)), ..FileIdentity::default() };
        Who {
            processes: vec![
                process(0, "rsync", "/acme.slice/payroll", 70_123),
                process(1, "payroll-worker", "/system.slice/ledger.service", 70_123),
                process(2, "payroll-worker", "", 1_004),
                process(3, "kworker/u8:2", "/", 0),
                process(4, "kdm-worker/vault", "/", 0),
                process(5, "others", "", 65_534),
            ],
            files: vec![
                file(0, "/srv/acme"),
                file(1, "/home/alice/ledger.db"),
                file(2, "/srv/acme"),
            ],
            ..Who::default()
        }
    }

    fn private_recording() -> Recording {
        let series = |name: &str, source: &str| Series {
            schema: Schema { name: text(name), source: text(source), ..Default::default() },
            steps: model::recording::Steps::new(),
        };
        let span = |kind: &str, words: &str| Span {
            kind: text(kind),
            text: text(words),
            start_ns: 0,
            end_ns: 0,
        };
        let task = |comm: &str, ppid| Task { comm: text(comm), ppid, ..Default::default() };
        Recording {
            facts: private_facts(),
            series: vec![
                series("swap.ledger.swap.used_bytes", "/proc/swaps"),
                series("swap.vda2.used_bytes", "/proc/swaps"),
                series("swap.mapper/crypt-swap.used_bytes", "/proc/swaps"),
                series(
                    "group0.memory.usage_bytes",
                    "/sys/fs/cgroup/memory/acme.slice/payroll/memory.stat",
                ),
                series("group3.memory.high_bytes", "/sys/fs/cgroup/a/ledger.slice/b/memory.high"),
            ],
            spans: vec![
                span("mark", "import for acme begins"),
                span("device_added", "loop4 with /home/alice/disk.img (host titan7f3a)"),
            ],
            tasks: vec![
                task("rsync", 7),
                task("payroll-worker", 7),
                task("payroll-worker", 8),
                task("kworker/0:1", 2),
                task("kworker/alice", 9),
            ],
            who: private_who(),
            outcome: Some(RecordingOutcome {
                ending: Ending::Killed {
                    signal: 9,
                    out_of_memory: Some(text("the limit of /acme.slice/payroll")),
                },
                stopped_early: Some(text("/srv/vault/x.trec: the disk is full")),
                ..Default::default()
            }),
            damage: vec![
                text("cannot read /home/alice/x.trec: it is gone"),
                text("/dev/disk/by-id/ata-titan7f3a and /dev/acme/root are slow"),
            ],
            ..Recording::default()
        }
    }

    #[test]
    fn nothing_private_is_left() {
        let mut recording = private_recording();
        redact(&mut recording);
        let mut bytes = Vec::new();
        Json.export(&recording, &mut bytes).unwrap();
        let json = String::from_utf8(bytes).unwrap();
        for private in PRIVATE {
            assert!(!json.contains(private), "{private} is in {json}");
        }
        assert!(recording.facts.redacted);
    }

    #[test]
    fn what_belonged_together_still_does() {
        let mut recording = private_recording();
        redact(&mut recording);
        let facts = &recording.facts;
        let Subject::Command { argv } = &facts.subject else {
            panic!("another subject");
        };
        assert_eq!(argv.join(" "), "rsync arg-1 arg-2");
        assert_eq!(facts.swaps, ["vda2 vda", "zram0", "area-1 vda", "area-2"]);
        let names = recording.series.iter().map(|series| series.schema.name.as_str());
        let swaps: Vec<&str> = names.filter(|name| name.starts_with("swap.")).collect();
        let expected = ["swap.area-1.used_bytes", "swap.vda2.used_bytes", "swap.area-2.used_bytes"];
        assert_eq!(swaps, expected);
        let group = &facts.groups[0].paths["memory"];
        assert_eq!(
            recording.series[3].schema.source,
            format!("/sys/fs/cgroup/memory{group}/memory.stat")
        );
        let comms: Vec<&str> = recording.tasks.iter().map(|task| task.comm.as_str()).collect();
        assert_eq!(comms, ["rsync", "task-1", "task-1", "kworker/0:1", "task-2"]);
        assert_eq!(facts.mounts[0].point, "/");
        assert_ne!(facts.mounts[1].point, facts.mounts[2].point);
        assert_eq!(recording.spans[0].text, "mark-1");
    }

    #[test]
    fn who_did_it_has_stand_ins() {
        let mut recording = private_recording();
        redact(&mut recording);
        let Recording { facts, who, tasks, .. } = &recording;
        let names: Vec<&str> = who.processes.iter().map(|it| it.name.as_str()).collect();
        let thread = tasks[1].comm.as_str();
        assert_eq!(names, ["rsync", thread, thread, "kworker/u8:2", "task-3", "others"]);
        let own = facts.groups[0].paths["memory"].as_str();
        let groups: Vec<&str> = who.processes.iter().map(|it| it.group.as_str()).collect();
        assert_eq!(groups[..5], [own, "/group-2", "", "/", "/"]);
        let users: Vec<u32> = who.processes.iter().map(|process| process.user).collect();
        assert_eq!(users, [1000, 1000, 1001, 0, 0, 65_534]);
        let paths: Vec<_> = who.files.iter().map(|file| file.path.as_deref().unwrap()).collect();
        assert_eq!((paths[0], paths[2]), (facts.mounts[1].point.as_str(), paths[0]));
        assert_ne!(paths[0], paths[1]);
    }

    /// A desktop has thousands of files, and the recorder's texts must stay readable.
    #[test]
    fn many_files_do_not_remove_the_texts() {
        let mut recording = private_recording();
        recording.who.files = (0..20_000)
            .map(|id| FileIdentity {
                id,
                path: Some(format!("/srv/vault/photo-{id}")),
                ..FileIdentity::default()
            })
            .collect();
        recording.damage = vec![text("/srv/vault/photo-19999 and 5 processes are gone")];
        redact(&mut recording);
        assert!(recording.damage[0].ends_with("and 5 processes are gone"));
        assert!(!format!("{recording:?}").contains("photo"));
    }

    /// A version 1 host mounts its groups below a tmpfs, which is not secret.
    #[test]
    fn a_source_keeps_its_file_and_a_device_its_name() {
        let mut recording = private_recording();
        recording
            .facts
            .mounts
            .push(MountFacts { point: text("/sys/fs/cgroup"), ..Default::default() });
        recording.damage = vec![text("/dev/vda1 is slow")];
        redact(&mut recording);
        let source = &recording.series[3].schema.source;
        assert_eq!(source, "/sys/fs/cgroup/memory/group-1/memory.stat");
        assert_eq!(recording.damage, ["/dev/vda1 is slow"]);
    }

    #[test]
    fn more_texts_than_can_be_searched_for_leave_none() {
        let mut recording = private_recording();
        let names = (0..10_000).map(|number| text(&format!("word-{number}")));
        let Subject::Command { argv } = &mut recording.facts.subject else {
            panic!("another subject");
        };
        argv.extend(names);
        recording.damage.push(text("word-9999 is damaged"));
        redact(&mut recording);
        assert!(!format!("{recording:?}").contains("word-"));
    }

    #[test]
    fn a_second_time_changes_nothing() {
        let mut recording = private_recording();
        redact(&mut recording);
        let once = recording.clone();
        redact(&mut recording);
        assert_eq!(recording, once);
    }

    #[test]
    fn a_command_line_that_a_process_wrote_keeps_one_word() {
        for (line, program) in [
            ("sshd: alice@pts/0", "sshd"),
            ("/usr/lib/postgresql/15/bin/postgres", "postgres"),
            ("", ""),
        ] {
            let mut argv = vec![text(line)];
            let found = command_line(&mut argv, &mut StandIns::default());
            assert_eq!((found.as_deref(), argv[0].as_str()), (Some(program), program));
        }
    }
}
