//! Verdicts of explanations that are built here: what stands on the page at several
//! widths, and that no page is wider than it may be.

use super::*;
use crate::output::clean::printable;
use crate::output::prose::shown;
use model::explanation::{
    Actor, ActorRole, Bars, Cause, ClearedCause, Contradiction, EventSource, FigureUse,
    OverlappingPart, ProcessUse, Repair, SCHEMA, Unseen, Watching,
};
use model::{Evidence, Finding};

fn seen(name: &str, value: f64, unit: &str) -> Evidence {
    Evidence::new(name, value, unit, "/proc/vmstat")
}

fn slice(name: &str, ns: u64) -> Slice {
    Slice {
        name: name.to_owned(),
        ns,
        grade: Grade::Measured,
        evidence: vec![seen("trace.wall", ns as f64, "ns")],
    }
}

fn cause(claim: &str, grade: Grade, ns: u64, evidence: Vec<Evidence>) -> Cause {
    Cause::new(Some(ns), Finding::new(grade, claim, evidence))
}

fn cleared(name: &str, value: f64, unit: &str) -> ClearedCause {
    ClearedCause {
        id: name.replace(' ', "_"),
        name: name.to_owned(),
        evidence: seen("pswpin", value, unit),
        cost_ns: None,
    }
}

/// The run of the issue: a restore that reads what was evicted under a memory limit.
fn restore() -> Explanation {
    let wall = vec![
        slice("run", 9_086_000_000),
        slice("queue", 1_239_000_000),
        slice("block_io", 25_193_000_000),
        slice("sleep", 5_369_000_000),
        slice("unexplained", 413_000_000),
    ];
    let reads = vec![seen("blkio delay", 25.2e9, "ns"), seen("read_bytes", 1.7e9, "bytes")];
    let refaults = vec![
        seen("workingset_refault_file", 151_000.0, "pages"),
        seen("limit of app.slice", 2_147_483_648.0, "bytes"),
    ];
    let mut again = cause(
        "About 9.2 s re-read data evicted moments before",
        Grade::Inferred,
        9_200_000_000,
        refaults,
    );
    again.within_previous = true;
    again.finding.remedy =
        Some("Raise the limit from 2 to 3 GiB. Risk: less for others.".to_owned());
    Explanation {
        schema: SCHEMA.to_owned(),
        subject: "pg_restore".to_owned(),
        ending: "exit 0".to_owned(),
        to_ns: 41_300_000_000,
        wall_ns: 41_300_000_000,
        thread_ns: 41_300_000_000,
        bars: Bars { thread: wall.clone(), wall },
        findings: vec![
            cause(
                "Waited 25.2 s for reads from /data: 6,480 reads, p50 3.9 ms",
                Grade::Measured,
                25_200_000_000,
                reads,
            ),
            again,
        ],
        cleared: vec![
            cleared("swap", 0.0, "count"),
            cleared("steal", 0.002, "ratio"),
            cleared("CPU limit", 0.0, "throttles"),
            cleared("dirty throttle", 0.0, "count"),
        ],
        watching: Watching { core_share: Some(0.003), samples: 413, missed: 0, events: None },
        ..Explanation::default()
    }
}

/// The same with everything that a page can hold.
fn crowded() -> Explanation {
    let mut crowded = restore();
    crowded.thread_ns = 90_000_000_000;
    crowded.bars.thread = vec![
        slice("run", 40_000_000_000),
        slice("children", 41_300_000_000),
        slice("unexplained", 8_700_000_000),
    ];
    crowded.of_which = vec![OverlappingPart {
        name: "direct_reclaim".to_owned(),
        within: "run".to_owned(),
        ns: 1_200_000_000,
        count: Some(4_812),
        grade: Grade::Measured,
        evidence: vec![seen("trace.vmscan.direct_reclaim_ns", 1.2e9, "ns")],
        span: None,
    }];
    crowded.unseen = vec![Unseen {
        what: "exits".to_owned(),
        why: "only root may listen to exits".to_owned(),
        remedy: Some("sudo terrace run -- CMD".to_owned()),
    }];
    crowded.repairs = vec![Repair {
        text: "block I/O of thread 7 was longer than its life".to_owned(),
        before_ns: 707_184_000_000,
        after_ns: 1_000_000_000,
    }];
    crowded.doubts = vec!["12 events were lost".to_owned()];
    for number in 0..20 {
        crowded.cleared.push(cleared(&format!("suspect number {number}"), 0.0, "count"));
    }
    crowded
}

fn used(label: &str, figure: &str, unit: &str, value: u64, share: f64) -> ProcessUse {
    ProcessUse {
        process: Some(0),
        pid: Some(812),
        name: "tar".to_owned(),
        label: label.to_owned(),
        processes: 1,
        group: "/system.slice/backup.service".to_owned(),
        group_name: Some("backup.service".to_owned()),
        figure: figure.to_owned(),
        value,
        unit: unit.to_owned(),
        share,
        share_low: None,
        share_high: None,
        grade: Grade::Measured,
    }
}

/// A machine that was busy, with who it was.
fn machine() -> Explanation {
    let mut machine = restore();
    machine.bars.thread = vec![slice("run", 60_000_000_000), slice("idle", 22_600_000_000)];
    machine.bars.wall = vec![slice("run", 41_300_000_000)];
    machine.thread_ns = 82_600_000_000;
    let tar = "backup.service (pid 812, tar)";
    let claim = "The processors were busy for 60 s of 82.6 s";
    let mut busy = cause(claim, Grade::Measured, 60_000_000_000, vec![seen("run", 60e9, "ns")]);
    busy.who = vec![
        format!("{tar} ran 48 s (80 %), firefox (pid 4711, session-3.scope) 6 s (10 %)"),
        "Read: /var/lib/db 2 GiB (90 %, by tar (pid 812))".to_owned(),
    ];
    let culprit = used(tar, "cpu", "ns", 48_000_000_000, 0.8);
    busy.actors = vec![Actor { role: ActorRole::Culprit, used: culprit.clone() }];
    machine.findings = vec![busy];
    let figure = |figure: &str, unit: &str, total, first, others| FigureUse {
        figure: figure.to_owned(),
        total,
        unit: unit.to_owned(),
        first: vec![first],
        others,
        groups: Vec::new(),
    };
    machine.usage = vec![
        figure("cpu", "ns", 60_000_000_000, culprit, 12_000_000_000),
        figure(
            "read_bytes",
            "bytes",
            2 << 30,
            used(tar, "read_bytes", "bytes", 1 << 30, 0.5),
            1 << 30,
        ),
        figure(
            "memory_growth",
            "bytes",
            1 << 30,
            used("python3 (pid 66)", "memory_growth", "bytes", 1 << 30, 1.0),
            0,
        ),
    ];
    machine
}

fn setting() -> VerdictSetting {
    VerdictSetting {
        title: "terrace".to_owned(),
        root: true,
        redacted: false,
        file: String::new(),
        details: "terrace explain pg_restore.trec".to_owned(),
    }
}

fn show(explanation: &Explanation, detail: Detail, width: usize) -> String {
    page(explanation, &setting(), detail, Page::plain(width))
}

/// The share is said where it is known, and the source of the events in detail only.
#[test]
fn what_the_findings_account_for_is_at_the_end() {
    let mut explanation = restore();
    let line = "The findings account for";
    assert!(!show(&explanation, Detail::Brief, 80).contains(line));
    // 0 % says nothing: the bar says what was not seen.
    explanation.covered = Some(0.004);
    assert!(!show(&explanation, Detail::Brief, 80).contains(line));
    explanation.covered = Some(0.934);
    explanation.watching.events = Some(EventSource::InKernel);
    let brief = show(&explanation, Detail::Brief, 80);
    assert!(brief.contains(" The findings account for 93 % of the wall time outside user code.\n"));
    assert!(!brief.contains("inside the kernel"), "{brief}");
    let details = |explanation: &Explanation| show(explanation, Detail::Full, 80);
    assert!(details(&explanation).contains("Events were summed by programs inside the kernel."));
    explanation.watching.events = Some(EventSource::Ring);
    assert!(details(&explanation).contains("Events came through rings of samples"));
}

#[test]
fn ten_lines_name_the_cause() {
    let text = show(&restore(), Detail::Brief, 80);
    assert_eq!(
        text,
        "\
-- terrace ----------------------------------------------------- 41.3 s, exit 0
 CPU 22%    run queue 3%  block I/O 61%               sleep 13%  unexplained 1%
 #########  =             //////////////////////////  ......     ?
 1 Waited 25.2 s for reads from /data: 6,480 reads, p50 3.9 ms         measured
     blkio delay 25.2 s; read_bytes 1.58 GiB
 2 of which: about 9.2 s re-read data evicted moments before           inferred
     workingset_refault_file 151,000 pages; limit of app.slice 2 GiB
 Not to blame: swap 0, steal 0.2 %, CPU limit 0, dirty throttle 0
 Would help: raise the limit from 2 to 3 GiB (at most 9.2 s)
 Watching cost 0.3 % of a core.   Details: terrace explain pg_restore.trec
"
    );
}

#[test]
fn a_machine_says_who_it_was() {
    let text = show(&machine(), Detail::Brief, 80);
    let expected = "\
 1 The processors were busy for 60 s of 82.6 s                         measured
     run 60 s
     backup.service (pid 812, tar) ran 48 s (80 %), firefox (pid 4711,
       session-3.scope) 6 s (10 %)
     Read: /var/lib/db 2 GiB (90 %, by tar (pid 812))
";
    assert!(text.contains(expected), "{text}");
    // The finding names who ran; what else was used much stands below.
    let most = "\
 Most used by: read backup.service (pid 812, tar) 50 %; memory growth python3
     (pid 66) 100 %
 Not to blame: swap 0";
    assert!(text.contains(most), "{text}");
    let mut grouped = machine();
    let group = |name: &str, share| ProcessUse {
        name: name.to_owned(),
        share,
        ..grouped.usage[0].first[0].clone()
    };
    grouped.usage[0].groups = vec![group("backup.service", 0.8), group("session-3.scope", 0.1)];
    let full = show(&grouped, Detail::Full, 80);
    let table = "\
 Most used by
   CPU, 60 s in all
     48 s  80 %  measured  backup.service (pid 812, tar)
     by group: backup.service 80 %, session-3.scope 10 %
   read, 2 GiB in all
     1 GiB  50 %  measured  backup.service (pid 812, tar)
";
    assert!(full.contains(table), "{full}");
    // A command's brief page has no room for the parts of its process tree.
    let mut command = restore();
    command.usage = machine().usage;
    assert!(!show(&command, Detail::Brief, 80).contains("Most used by"));
}

/// Names of processes, groups and files are text of others.
#[test]
fn a_hostile_name_of_an_actor_stays_in_its_line() {
    let name = "x\n\x1b[2J\u{202e}y";
    let mut hostile = machine();
    hostile.findings[0].who = vec![format!("{name} ran 48 s"), format!("Read: /a/{name} 2 GiB")];
    for figure in &mut hostile.usage {
        figure.groups = vec![ProcessUse { name: name.to_owned(), ..figure.first[0].clone() }; 2];
        figure.first[0].label = format!("{name}.service (pid 812, {name})");
    }
    for detail in [Detail::Brief, Detail::Full] {
        for width in [40, 80, 200] {
            let text = show(&hostile, detail, width);
            let is_clean = |line: &str| !line.contains(crate::output::clean::is_hazard);
            assert!(text.lines().all(is_clean), "{text:?}");
            assert!(text.contains(r"\x1b[2J\u{202e}y"), "{text}");
            let mut free = text.lines().filter(|line| !line.contains("terrace "));
            assert!(free.all(|line| length(line) < width), "{text}");
        }
    }
}

#[test]
fn the_time_of_several_threads_is_not_wall_time() {
    let text = show(&crowded(), Detail::Brief, 80);
    assert!(text.contains(" Wall time: CPU 22%, run queue 3%, block I/O 61%"), "{text}");
    assert!(text.contains(" All threads together, 90 s of thread time:\n CPU 44% "), "{text}");
    assert!(
        text.contains(
            " Unexplained, 9.7 %: cause cannot be seen (why: `terrace doctor`). To see it:"
        ),
        "{text}"
    );
    assert!(text.contains(" Doubt: 12 events were lost\n"), "{text}");
}

#[test]
fn of_a_short_run_the_cost_is_a_time() {
    let mut short = restore();
    short.wall_ns = 4_000_000;
    short.watching.core_share = Some(1.18);
    let text = show(&short, Detail::Brief, 80);
    let words = " Watching cost 4.7 ms of processor time.";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_number_says_of_what_and_says_it_once() {
    let evidence = |name: &str, value: f64, unit: &str| Evidence::new(name, value, unit, "x");
    let once = evidence("page faults", 59_719.0, "faults");
    assert_eq!(shown(&once), "page faults 59,719");
    let other = evidence("minor faults", 3.0, "count");
    assert_eq!(shown(&other), "minor faults 3");
    let cleared = |value: f64, unit: &str, cost_ns: Option<u64>| {
        let mut explanation = restore();
        explanation.cleared = vec![ClearedCause {
            id: "cache_too_small".to_owned(),
            name: "small page cache".to_owned(),
            evidence: evidence("group0.memory.stat.workingset_refault_file", value, unit),
            cost_ns,
        }];
        show(&explanation, Detail::Brief, 80)
    };
    let (refaults, cost_ns) = ("refaults", Some(12_000_000));
    let counted = cleared(31_483.0, refaults, cost_ns);
    assert!(counted.contains("small page cache 31,483 refaults in 12 ms\n"), "{counted}");
    assert!(cleared(5.0, refaults, None).contains("small page cache\n"));
    assert!(cleared(5e6, "ns", None).contains("small page cache 5 ms\n"));
    assert!(cleared(0.0, refaults, cost_ns).contains("small page cache 0\n"));
}

#[test]
fn a_remedy_of_another_finding_than_the_worst_says_which() {
    let mut explanation = restore();
    let remedy =
        explanation.findings.iter_mut().find_map(|cause| cause.finding.remedy.take()).unwrap();
    for cause in &mut explanation.findings {
        cause.finding.remedy = None;
    }
    explanation.findings[0].finding.remedy = Some(remedy.clone());
    let first = show(&explanation, Detail::Brief, 80);
    assert!(first.contains(" Would help: "), "{first}");
    explanation.findings[0].finding.remedy = None;
    explanation.findings[1].finding.remedy = Some(remedy);
    let inside = show(&explanation, Detail::Brief, 80);
    assert!(inside.contains(" Would help: "), "{inside}");
    explanation.findings[1].within_previous = false;
    let second = show(&explanation, Detail::Brief, 80);
    assert!(second.contains(" Would help with 2: "), "{second}");
}

#[test]
fn the_bar_of_a_machine_is_of_its_processors() {
    let mut machine = restore();
    machine.bars.thread = vec![slice("run", 30_000_000_000), slice("idle", 52_600_000_000)];
    machine.bars.wall = vec![slice("run", 11_300_000_000), slice("asleep", 30_000_000_000)];
    machine.thread_ns = 82_600_000_000;
    let brief = show(&machine, Detail::Brief, 80);
    assert!(brief.contains(" All processors together, "), "{brief}");
    let full = show(&machine, Detail::Full, 80);
    assert!(full.contains(" Processor time: "), "{full}");
    for text in [brief, full] {
        assert!(!text.contains("All threads") && !text.contains("Thread time"), "{text}");
    }
}

#[test]
fn an_idle_machine_is_called_idle_first() {
    let mut machine = machine();
    machine.findings = Vec::new();
    machine.bars.thread = vec![slice("run", 2_600_000_000), slice("idle", 80_000_000_000)];
    let words = "The machine was idle: 97 % of its processors' time.";
    for detail in [Detail::Brief, Detail::Full] {
        let text = show(&machine, detail, 80);
        let mut lines = text.lines().skip(1).filter(|line| !line.is_empty());
        assert_eq!(lines.next().map(str::trim), Some(words), "{text}");
        let (processors, wall) = (text.find("rocessor"), text.find("Wall time"));
        assert!(wall.is_none() || processors < wall, "{text}");
    }
    machine.bars.thread = vec![slice("run", 30_000_000_000), slice("idle", 52_600_000_000)];
    assert!(!show(&machine, Detail::Brief, 80).contains("was idle"));
}

#[test]
fn without_root_it_says_who_sees_more() {
    let mut setting = setting();
    setting.root = false;
    let text = page(&crowded(), &setting, Detail::Brief, Page::plain(80));
    assert!(text.contains("cause cannot be seen; sudo shows it, `terrace doctor` why."), "{text}");
}

#[test]
fn details_have_all_evidence_repairs_and_blind_spots() {
    let mut crowded = crowded();
    let mut same = crowded.unseen[0].clone();
    same.what = "delay_accounting".to_owned();
    crowded.unseen.push(same);
    let text = show(&crowded, Detail::Full, 100);
    for words in [
        "   block I/O    25.2 s  61 %  measured  trace.wall 25.2 s\n",
        "   direct reclaim  1.2 s  4,812  CPU  measured  trace.vmscan.direct_reclaim_ns 1.2 s\n",
        "     read_bytes 1.58 GiB (/proc/vmstat)\n",
        "     Do: Raise the limit from 2 to 3 GiB. Risk: less for others.\n",
        "   suspect number 19: pswpin 0 (/proc/vmstat)\n",
        "   exits, delay accounting: only root may listen to exits; to see it: sudo terrace run -- CMD\n",
        "   block I/O of thread 7 was longer than its life (11.8 min -> 1 s)\n",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn colour_adds_nothing_but_codes() {
    let coloured = Page { width: 80, style: crate::output::style::Style::new(true) };
    for detail in [Detail::Brief, Detail::Full] {
        let marked = page(&crowded(), &setting(), detail, coloured);
        let mut text = printable(&marked).into_owned();
        assert!(text.contains("\x1b[32m##"), "{text}");
        for code in ["0", "1", "2", "32", "33", "35", "36"] {
            text = text.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(text, show(&crowded(), detail, 80));
    }
}

#[test]
fn a_hostile_command_line_stays_in_its_line() {
    let mut setting = setting();
    setting.title = format!("terrace: {}\n\x1b[2J", "x".repeat(500));
    let text = page(&restore(), &setting, Detail::Brief, Page::plain(80));
    let header = text.lines().next().unwrap();
    assert!(header.ends_with("xx.. -- 41.3 s, exit 0") && length(header) == 79, "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn repeated_runs_make_a_table() {
    let run = |wall_ms: u64| Repeat {
        wall_ns: wall_ms * 1_000_000,
        ending: "exit 0".to_owned(),
        file: None,
    };
    let runs = [run(3_000), run(1_000), run(2_000), run(2_500), run(2_100)];
    assert_eq!(median_of(&runs), 4);
    let text = repeats(&runs, 4, Page::plain(80));
    assert!(text.contains("   5      2.1 s  exit 0  <- shown\n"), "{text}");
    let summary = "5 runs: median 2.1 s, 1 s to 3 s, spread 24 % (middle half over median).";
    assert!(text.replace("\n ", " ").contains(summary), "{text}");
    assert_eq!(median_of(&runs[..2]), 1);
}

#[test]
fn what_nothing_decides_comes_first_and_usual_doubts_are_details() {
    let of = |believed: Option<&str>| Contradiction {
        text: "the disks took 3 s for its reads, and 6 ms of waiting was charged".to_owned(),
        believed: believed.map(str::to_owned),
        remedy: Some("terrace run --trace sched -- CMD".to_owned()),
        lowered: vec!["cpu_bound".to_owned()],
    };
    let mut explanation = restore();
    explanation.usual_doubts = vec!["12 % of the samples came late".to_owned()];
    explanation.contradictions = vec![of(None)];
    let text = show(&explanation, Detail::Brief, 200);
    let second = text.lines().nth(1).unwrap();
    let words = " Sources contradict each other: the disks took 3 s for its reads, and 6 ms of \
                 waiting was charged. What rests on them is inferred. To decide it: terrace";
    assert!(second.starts_with(words), "{text}");
    assert!(!text.contains("came late"), "{text}");
    explanation.contradictions = vec![of(Some("the disks"))];
    let text = show(&explanation, Detail::Brief, 200);
    assert!(!text.contains("contradict"), "{text}");
    let text = show(&explanation, Detail::Full, 200);
    let line = "was charged; believed: the disks; so inferred: cpu bound; to decide it: terrace";
    assert!(text.contains(line) && text.contains("came late"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in 40..140 {
        for explanation in [restore(), crowded(), machine(), Explanation::default()] {
            for detail in [Detail::Brief, Detail::Full] {
                let text = show(&explanation, detail, width);
                // What must not be broken may stand out: commands that are to be copied.
                let free = text.lines().filter(|line| !line.contains("terrace "));
                for line in free {
                    assert!(length(line) < width, "{width}: {line}\n{text}");
                    assert_eq!(line, line.trim_end(), "{text}");
                }
            }
        }
    }
}
