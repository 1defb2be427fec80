//! Each rule of a recording against cases made by hand: at least one that fires it, at least
//! one near miss, and in each exactly the findings that are named, in their order. Real
//! recordings are judged beside the binary, in its tests `recordings` and `verdicts`.
//!
//! A fixture is text (`tests/fixtures/by_hand/RULE.txt`), so that the numbers of a case stand
//! side by side; [`Fixture::read`] says what the lines mean. The time of a fixture is given,
//! not accounted for: these are tests of the rules alone. Below them: properties that hold
//! for any numbers.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be read must fail the test")]

use explain::recording::accounting::Accounts;
use explain::recording::attribution::attribute;
use explain::recording::rules::{RULES, Rank, RunView, judge};
use explain::recording::{View, Window};
use model::explanation::{Cause, Explanation, OverlappingPart, Slice};
use model::machine::MachineFacts;
use model::recording::{
    DeviceFacts, DeviceKind, Ending, GroupFacts, MountFacts, NewMemoryPrice, Recording,
    RecordingOutcome, Series, SeriesKind, SeriesStep, SourceState, Subject, Tick,
};
use model::{Evidence, Grade};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How long each fixture lasts.
const WALL_NS: u64 = 10_000_000_000;

/// Samples of each fixture; a series with fewer values keeps its last one.
const SAMPLES: usize = 5;

/// Series that are levels; all others are counters.
const GAUGES: [&str; 6] = ["_bytes", "nr_dirty", "_threshold", "Shmem", "_us", "in_flight"];

/// Of these, what counts all the same.
const COUNTERS: [&str; 2] = ["read_bytes", "write_bytes"];

/// The families of events that are open, each with the sums that are known from the first sample
/// on.
const EVENTS: [(&str, &[&str]); 4] = [
    (
        "sched",
        &[
            "trace.sched.run_ns",
            "trace.sched.queue_ns",
            "trace.sched.block_io_ns",
            "trace.sched.sleep_ns",
            "trace.sched.switches",
        ],
    ),
    ("block", &["trace.block.issued"]),
    ("vmscan", &["trace.vmscan.direct_reclaims"]),
    ("writeback", &["trace.writeback.dirty_waits"]),
];

/// One case of a rule.
#[derive(Debug, Default)]
struct Fixture {
    story: String,
    fires: bool,
    recording: Recording,
    accounts: Accounts,
    finds: Vec<String>,
    clears: Vec<(String, f64)>,
    unseen: Vec<String>,
    silent: Vec<String>,
    says: Vec<String>,
    advises: Vec<String>,
}

impl Fixture {
    fn new(heading: &str) -> Self {
        let (kind, story) = heading.split_once(": ").unwrap();
        let mut fixture =
            Fixture { story: story.to_owned(), fires: kind == "fires", ..Fixture::default() };
        assert!(fixture.fires || kind == "near miss", "{heading}");
        fixture.recording = empty();
        fixture
    }

    /// All cases of a rule: a case starts with `== fires: STORY` or `== near miss: STORY`.
    /// Times are in milliseconds, the values of a series in its own unit, one a sample.
    fn read(rule: &str) -> Vec<Fixture> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/by_hand");
        let text = std::fs::read_to_string(folder.join(format!("{rule}.txt")))
            .unwrap_or_else(|e| panic!("{rule}: {e}"));
        let mut fixtures: Vec<Fixture> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix("== ") {
                Some(heading) => fixtures.push(Fixture::new(heading)),
                None => fixtures.last_mut().unwrap().take(line),
            }
        }
        for fixture in &mut fixtures {
            let slices = fixture.accounts.bars.thread.iter();
            fixture.accounts.thread_ns = slices.map(|slice| slice.ns).sum();
        }
        fixtures
    }

    fn take(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let facts = &mut self.recording.facts;
        match word {
            "thread" => self.accounts.bars.thread = slices(&words),
            "wall" => self.accounts.bars.wall = slices(&words),
            "part" => self.accounts.of_which.push(part(&words)),
            "guess" => {
                let mut guess = part(&words);
                guess.grade = Grade::Inferred;
                self.accounts.of_which.push(guess);
            }
            "machine" => facts.subject = Subject::Machine,
            "process" => facts.subject = Subject::Process { pid: 7, argv: Vec::new() },
            "series" => {
                if words[0] == "trace.cpu.samples" {
                    facts.sights.insert("events.cpu".to_owned(), SourceState::Open);
                }
                self.recording.series.push(series(&words));
            }
            "group" => facts.groups.push(group(&words)),
            "device" => facts.devices.push(device(&words)),
            "mount" => facts.mounts.push(MountFacts {
                point: words[0].to_owned(),
                fs_type: "ext4".to_owned(),
                device: Some(words[1].to_owned()),
            }),
            "swap" => facts.swaps.push(rest.to_owned()),
            "virtual" => {
                facts.machine = Some(MachineFacts {
                    virtualization: Some(rest.to_owned()),
                    ..MachineFacts::default()
                });
            }
            "new_page_ns" => {
                facts.new_memory = Some(NewMemoryPrice {
                    page_ns: rest.parse().unwrap(),
                    pages: 131_072,
                    surveyed_unix_s: 0,
                });
            }
            "noevents" => facts.sights.clear(),
            "oom" => {
                self.recording.outcome.as_mut().unwrap().ending =
                    Ending::Killed { signal: 9, out_of_memory: Some(rest.to_owned()) }
            }
            "finds" => {
                let ids = words.iter().filter(|id| **id != "-");
                self.finds = ids.map(|id| (*id).to_owned()).collect();
            }
            "clears" => self.clears.push((words[0].to_owned(), words[1].parse().unwrap())),
            "unseen" => self.unseen.push(rest.to_owned()),
            "silent" => self.silent.push(rest.to_owned()),
            "says" => self.says.push(rest.to_owned()),
            "advises" => self.advises.push(rest.to_owned()),
            _ => panic!("what is `{line}`?"),
        }
    }

    /// Gives each slice and each part a series of its own, as accounting does.
    fn record_bars(&mut self) {
        let accounts = &mut self.accounts;
        let slices = accounts
            .bars
            .thread
            .iter_mut()
            .map(|slice| (&slice.name, slice.ns, &mut slice.evidence));
        let parts =
            accounts.of_which.iter_mut().map(|part| (&part.name, part.ns, &mut part.evidence));
        for (name, ns, evidence) in slices.chain(parts) {
            let name = format!("bars.{name}");
            evidence.push(Evidence::new("of it", ns as f64, "ns", "x").seen_in([&name]));
            self.recording.series.push(series(&[&name, "0", "1"]));
        }
    }

    fn judged(&self) -> Explanation {
        judged(&self.recording, &self.accounts)
    }

    /// The findings as an explanation has them: with their series and spans.
    fn attributed(&self) -> Vec<Cause> {
        let mut explanation = self.judged();
        let view = View::new(&self.recording, Window::default());
        attribute(&view, &mut explanation);
        explanation.findings
    }
}

fn judged(recording: &Recording, accounts: &Accounts) -> Explanation {
    let view = View::new(recording, Window::default());
    judge(&RunView { view: &view, accounts })
}

fn empty() -> Recording {
    let mut recording = Recording::default();
    let facts = &mut recording.facts;
    facts.subject = Subject::Command { argv: vec!["cmd".to_owned()] };
    facts.processors = 2;
    facts.page_bytes = 4096;
    for (events, sums) in EVENTS {
        facts.sights.insert(format!("events.{events}"), SourceState::Open);
        recording.series.extend(sums.iter().map(|sum| series(&[sum, "0", "0"])));
    }
    // What can be had without rights.
    for sampled in ["tree.run_ns", "tree.queue_ns", "tree.system_ns"] {
        recording.series.push(series(&[sampled, "0", "0"]));
    }
    recording.ticks = (0..SAMPLES as u64)
        .map(|sample| sample * WALL_NS / (SAMPLES as u64 - 1))
        .map(|at_ns| Tick { due_ns: at_ns, at_ns })
        .collect();
    recording.outcome = Some(RecordingOutcome {
        ended_ns: WALL_NS,
        ending: Ending::Exited { code: 0 },
        ..RecordingOutcome::default()
    });
    recording
}

fn slices(words: &[&str]) -> Vec<Slice> {
    words
        .chunks(2)
        .map(|pair| Slice {
            name: pair[0].to_owned(),
            ns: pair[1].parse::<u64>().unwrap() * 1_000_000,
            grade: Grade::Measured,
            evidence: Vec::new(),
        })
        .collect()
}

fn part(words: &[&str]) -> OverlappingPart {
    OverlappingPart {
        name: words[0].to_owned(),
        within: words[2].to_owned(),
        ns: words[1].parse::<u64>().unwrap() * 1_000_000,
        count: words.get(3).map(|count| count.parse().unwrap()),
        grade: Grade::Measured,
        evidence: Vec::new(),
        span: None,
    }
}

fn series(words: &[&str]) -> Series {
    let mut series = Series::default();
    series.schema.name = words[0].to_owned();
    let is_one_of = |ends: &[&str]| ends.iter().any(|end| words[0].ends_with(end));
    if is_one_of(&GAUGES) && !is_one_of(&COUNTERS) {
        series.schema.kind = SeriesKind::Gauge;
    }
    let values: Vec<i64> = words[1..].iter().map(|v| v.parse().unwrap()).collect();
    // Two values are the first and the last sample's, more are one sample's each.
    for (i, value) in values.iter().enumerate() {
        let last = i + 1 == values.len();
        let sample = if last { SAMPLES - 1 } else { i };
        series.push(sample as u32, Some(*value));
    }
    series
}

fn group(words: &[&str]) -> GroupFacts {
    GroupFacts {
        level: words[0].parse().unwrap(),
        paths: [(words[1].to_owned(), words[2].to_owned())].into(),
        made: words.contains(&"made"),
    }
}

fn device(words: &[&str]) -> DeviceFacts {
    let mut device = DeviceFacts { name: words[0].to_owned(), ..DeviceFacts::default() };
    for pair in words[1..].chunks(2) {
        match pair[0] {
            "kind" => {
                device.kind = [DeviceKind::Loop, DeviceKind::Zram][usize::from(pair[1] == "zram")]
            }
            "rotational" => device.rotational = Some(pair[1] == "1"),
            "read_ahead" => device.read_ahead_bytes = Some(pair[1].parse().unwrap()),
            "physical_block" => device.physical_block_bytes = Some(pair[1].parse().unwrap()),
            "max_request" => device.max_request_bytes = Some(pair[1].parse().unwrap()),
            other => panic!("what is `{other}`?"),
        }
    }
    device
}

fn ids(judged: &Explanation) -> Vec<&str> {
    let causes = judged.findings.iter();
    causes.map(|cause| cause.finding.id.as_str()).collect()
}

/// What a viewer shows of a finding: of each rule, wherever it fires.
#[test]
fn each_finding_names_a_series_and_its_time() {
    let mut without = BTreeSet::new();
    for rule in RULES {
        for mut fixture in Fixture::read(rule.id) {
            fixture.record_bars();
            for cause in fixture.attributed() {
                let evidence = &cause.finding.evidence;
                let has_series = evidence.iter().any(|number| !number.series.is_empty());
                if !has_series || cause.span.is_none() {
                    without.insert(cause.finding.id);
                }
            }
        }
    }
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn every_rule_fires_on_a_case_made_by_hand_and_not_on_its_near_miss() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let fixtures = Fixture::read(rule.id);
        assert!(fixtures.iter().any(|f| f.fires), "{}: none fires", rule.id);
        assert!(fixtures.iter().any(|f| !f.fires), "{}: no miss", rule.id);
        for fixture in &fixtures {
            let case = format!("{}: {}", rule.id, fixture.story);
            let judged = fixture.judged();
            let found = ids(&judged);
            if found != fixture.finds {
                wrong.push(format!("{case}: {found:?}, not {:?}", fixture.finds));
            }
            let named = fixture.finds.iter().any(|id| id == rule.id);
            assert_eq!(named, fixture.fires, "{case}");
            sound(&judged);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn made_by_hand_what_is_cleared_unseen_or_silent_is_so_with_its_number() {
    let mut wrong = Vec::new();
    for rule in RULES {
        for mut fixture in Fixture::read(rule.id) {
            let case = format!("{}: {}", rule.id, fixture.story);
            fixture.record_bars();
            let judged = fixture.judged();
            for (id, value) in &fixture.clears {
                let cleared = judged.cleared.iter().find(|cleared| cleared.id == *id);
                let not = judged.unseen.iter().find(|unseen| unseen.what == *id);
                let Some(cleared) = cleared else {
                    wrong.push(format!("{case}: {not:?}"));
                    continue;
                };
                let evidence = &cleared.evidence;
                let off = (evidence.value - value).abs();
                assert!(off <= value.abs() * 1e-9, "{case}: {evidence:?}");
            }
            for id in &fixture.unseen {
                assert!(judged.unseen.iter().any(|u| u.what == *id), "{case}: {id}");
            }
            for id in &fixture.silent {
                assert!(!spoken(&judged).contains(id.as_str()), "{case}: {id}");
            }
            for words in &fixture.says {
                let claims: Vec<&str> =
                    judged.findings.iter().map(|cause| cause.finding.claim.as_str()).collect();
                let is_said = claims.iter().any(|claim| claim.contains(words));
                assert!(is_said, "{case}: `{words}` in {claims:#?}");
            }
            for words in &fixture.advises {
                let mut remedies = judged.findings.iter().map(|cause| &cause.finding.remedy);
                let is_advised =
                    remedies.any(|text| text.as_ref().is_some_and(|text| text.contains(words)));
                assert!(is_advised, "{case}: `{words}` in {:#?}", judged.findings);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// So many swapped pages are innocent because they were back soon.
#[test]
fn a_count_that_clears_says_what_it_cost() {
    let fixtures = Fixture::read("swapping");
    let innocent = fixtures.iter().find(|one| one.story.starts_with("somebody else swapped"));
    let judged = innocent.unwrap().judged();
    let swap = judged.cleared.iter().find(|one| one.id == "swapping").unwrap();
    assert_eq!((swap.evidence.value, swap.cost_ns), (132_060.0, Some(0)));
    let still = fixtures.iter().find(|one| one.story == "nothing was swapped").unwrap().judged();
    let swap = still.cleared.iter().find(|one| one.id == "swapping").unwrap();
    assert_eq!((swap.evidence.value, swap.cost_ns), (0.0, None));
}

/// The ids that something is said of, findings once for all of theirs.
fn spoken(judged: &Explanation) -> BTreeSet<&str> {
    let cleared = judged.cleared.iter().map(|cleared| cleared.id.as_str());
    let unseen = judged.unseen.iter().map(|unseen| unseen.what.as_str());
    ids(judged).into_iter().chain(cleared).chain(unseen).collect()
}

/// What holds for every judgement.
fn sound(judged: &Explanation) {
    let found: BTreeSet<&str> = ids(judged).into_iter().collect();
    let judged_count = found.len() + judged.cleared.len() + judged.unseen.len();
    assert_eq!(spoken(judged).len(), judged_count, "an id in two lists: {judged:#?}");
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert!(spoken(judged).is_subset(&known));
    let first = judged.findings.first();
    assert!(first.is_none_or(|first| !first.within_previous));
    let roots = judged.findings.iter().filter(|cause| !cause.within_previous);
    // A command that was killed comes first, and what remains counts for a quarter of its time.
    let is_timed = |cause: &&Cause| {
        let rule = RULES.iter().find(|rule| rule.id == cause.finding.id);
        rule.is_none_or(|rule| !matches!(rule.rank, Rank::Decisive | Rank::Remainder))
    };
    let times: Vec<Option<u64>> =
        roots.filter(is_timed).map(|cause| cause.order_ns.or(cause.ns)).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    for cause in &judged.findings {
        let finding = &cause.finding;
        assert!(!finding.evidence.is_empty(), "{finding:?}");
        assert!(!finding.claim.contains('\n') && !finding.claim.ends_with('.'));
        let values = finding.evidence.iter().map(|evidence| evidence.value);
        assert!(values.clone().all(f64::is_finite), "{finding:?}");
        for bad in ["NaN", "inf", "-"] {
            let mut words = finding.claim.split_whitespace();
            assert!(!words.any(|word| word.starts_with(bad)), "{finding:?}");
        }
        let risky = finding.remedy.as_ref();
        assert!(risky.is_none_or(|text| text.contains("Risk: ")), "{finding:?}");
    }
    for cleared in &judged.cleared {
        assert!(cleared.evidence.value.is_finite(), "{cleared:?}");
    }
    let covered = judged.covered;
    assert!(covered.is_none_or(|share| (0.0..=1.0).contains(&share)), "{covered:?}");
}

#[test]
fn ids_are_unique_and_every_fixture_belongs_to_a_rule() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    for rule in RULES {
        assert!(rule.within.iter().all(|outer| ids.contains(outer)), "{}", rule.id);
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/by_hand");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(ids.contains(stem.as_str()), "{stem}");
    }
}

#[test]
fn an_empty_recording_has_no_finding() {
    for recording in [Recording::default(), empty()] {
        let judged = judged(&recording, &Accounts::default());
        assert!(judged.findings.is_empty(), "{judged:#?}");
        assert!(judged.unseen.is_empty(), "{judged:#?}");
    }
}

#[test]
fn every_rule_of_a_recording_is_in_the_documentation() {
    let docs = include_str!("../../../docs/findings.md");
    let (_, section) = docs.split_once("## Findings of a run").unwrap();
    for rule in RULES {
        assert!(section.contains(&format!("`{}`", rule.id)), "{}", rule.id);
    }
}

/// Numbers that break arithmetic.
fn hostile() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        Just(0),
        Just(-1),
        Just(1 << 62),
        any::<i64>(),
        0..10_000_000_000i64,
    ]
}

proptest! {
    /// Every fixture with its numbers replaced: no panic, and the judgement stays sound.
    #[test]
    fn any_numbers_are_judged_soundly(
        rule in 0..RULES.len(),
        values in proptest::collection::vec(hostile(), 64),
        times in proptest::collection::vec(any::<u64>(), 16),
        keep in any::<u64>(),
    ) {
        for mut fixture in Fixture::read(RULES[rule].id) {
            let mut values = values.iter().cycle();
            let mut times = times.iter().cycle();
            let kept = |i: usize| (keep >> (i % 64)) & 1 == 1;
            for (i, series) in fixture.recording.series.iter_mut().enumerate() {
                if !kept(i) {
                    let steps = series.steps.iter();
                    let changed = steps.map(|step| SeriesStep {
                        value: values.next().copied(),
                        ..step
                    });
                    series.steps = changed.collect();
                }
            }
            let accounts = &mut fixture.accounts;
            for (i, slice) in accounts.bars.thread.iter_mut().enumerate() {
                slice.ns = if kept(i + 7) { slice.ns } else { *times.next().unwrap() };
            }
            for (i, slice) in accounts.bars.wall.iter_mut().enumerate() {
                slice.ns = if kept(i + 17) { slice.ns } else { *times.next().unwrap() };
            }
            for (i, part) in accounts.of_which.iter_mut().enumerate() {
                part.ns = if kept(i + 27) { part.ns } else { *times.next().unwrap() };
            }
            if !kept(37) {
                accounts.thread_ns = *times.next().unwrap();
            }
            sound(&fixture.judged());
        }
    }
}
