//! Looks and samples by made numbers, and one jump with the kernel's own: what was held is
//! given in order of time, once, with the columns that a look has.

use super::*;
use testkit::FakeRoot;

const MS: u64 = 1_000_000;
/// Where the looks have the total of I/O.
const IO_SOME: usize = 4;

fn burst() -> (Burst, Registry) {
    let tree = FakeRoot::bare();
    let mut registry = Registry::new();
    registry.id("other", "count", SeriesKind::Counter, "x");
    let burst = Burst::new(&Root::at(tree.path()), &[], &mut registry);
    (burst, registry)
}

fn look(burst: &mut Burst, at_ns: u64, some_ns: i64) -> bool {
    let mut totals = [None; TOTALS];
    totals[0] = Some(some_ns);
    burst.note(Look { at_ns, totals })
}

fn sample(burst: &mut Burst, at_ns: u64, other: i64, some_ns: i64) {
    let mut row = Row::default();
    row.set(0, other);
    row.set(1, some_ns);
    burst.hold(Tick { due_ns: at_ns, at_ns }, &row);
}

fn written(burst: &mut Burst, now_ns: u64) -> Vec<(u64, i64, i64)> {
    let mut rows = Vec::new();
    let answer: Result<(), ()> = burst.release(now_ns, |tick, row| {
        rows.push((tick.at_ns / MS, row.values()[0], row.values()[1]));
        Ok(())
    });
    answer.unwrap();
    rows
}

#[test]
fn a_jump_is_a_fifth_of_a_tenth_of_a_second() {
    let (mut burst, _) = burst();
    assert!(!look(&mut burst, 1000 * MS, 5_000_000));
    assert!(!look(&mut burst, 1050 * MS, 24_999_999));
    assert!(look(&mut burst, 1090 * MS, 25_000_000));
    // The same growth, but over a longer time.
    assert!(!look(&mut burst, 1300 * MS, 30_000_000));
    // A late look is judged by the share of the time that it covers.
    assert!(look(&mut burst, 1500 * MS, 70_000_000));
    assert!(!look(&mut burst, 1700 * MS, 109_000_000));
}

#[test]
fn the_history_is_written_in_order_when_the_rate_rises() {
    let (mut burst, _) = burst();
    for at in [100, 110, 120, 130] {
        look(&mut burst, at * MS, at as i64);
    }
    sample(&mut burst, 105 * MS, 7, 105);
    sample(&mut burst, 125 * MS, 9, 125);
    assert!(written(&mut burst, 140 * MS).is_empty());
    assert!(burst.raise(140 * MS));
    // What comes before the first sample has no other columns to stand beside.
    let expected = [(105, 7, 105), (110, 7, 110), (120, 7, 120), (125, 9, 125), (130, 9, 130)];
    assert_eq!(written(&mut burst, 140 * MS), expected);
    assert!(!burst.raise(200 * MS), "it was up already");
    assert_eq!(burst.lower(2199 * MS), None);
    assert_eq!(burst.lower(2200 * MS), Some(140 * MS));
    assert!(!burst.is_raised());
}

#[test]
fn without_a_jump_only_samples_are_written_a_second_later() {
    let (mut burst, _) = burst();
    look(&mut burst, 10 * MS, 1);
    sample(&mut burst, 20 * MS, 7, 2);
    look(&mut burst, 30 * MS, 3);
    sample(&mut burst, 900 * MS, 8, 4);
    assert_eq!(written(&mut burst, 1021 * MS), [(20, 7, 2)]);
    let mut rest = 0;
    let answer: Result<(), ()> = burst.finish(|_, _| {
        rest += 1;
        Ok(())
    });
    answer.unwrap();
    assert_eq!(rest, 1);
}

/// A reader of a disk that waits for a line first and is ended on drop.
struct Reader(std::process::Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Reader {
    fn start(file: &std::path::Path) -> Self {
        let script = r#"read go; for round in $(seq 100); do dd if="$0" of=/dev/null bs=64k iflag=direct 2>/dev/null; done"#;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(file);
        Self(command.stdin(std::process::Stdio::piped()).spawn().unwrap())
    }
}

/// Looks until something jumps, and lets the reader begin after 30 looks; when that was, and
/// for how long it was waited for the disk.
fn look_for_a_jump(burst: &mut Burst, reader: &mut Reader) -> (Option<u64>, i64) {
    let started_ns = sys::clock::now_ns();
    let mut jump_ns = None;
    for look in 0..300 {
        if look == 30 {
            drop(reader.0.stdin.take());
        }
        std::thread::sleep(std::time::Duration::from_nanos(LOOK_NS));
        let now_ns = sys::clock::now_ns() - started_ns;
        // An earlier jump is a neighbour's.
        if burst.look(now_ns) && look >= 60 {
            jump_ns = Some(now_ns);
            break;
        }
    }
    let total_ns = |look: Option<&Look>| look.unwrap().totals[IO_SOME].unwrap();
    let waited_ns = total_ns(burst.looks.back()) - total_ns(burst.looks.front());
    (jump_ns, waited_ns)
}

/// The numbers are the kernel's: a reader of a disk starts to be waited for. Of the
/// pressures only that of I/O is shown, because tests beside this one press on CPUs.
#[test]
fn a_real_jump_shows_pressure_and_the_leader_at_every_look() {
    let [pressure, schedstat] = ["/proc/pressure/io", "/proc/self/schedstat"];
    if !std::path::Path::new(pressure).exists() || !std::path::Path::new(schedstat).exists() {
        return testkit::skip("pressure and schedstat in the kernel");
    }
    let directory = testkit::TempDir::new();
    let file = directory.join("big");
    std::fs::write(&file, vec![7; 32 << 20]).unwrap();
    let mut reader = Reader::start(&file);
    let tree = FakeRoot::bare().file("/proc/pressure/none", "");
    let link = |path: &str| std::os::unix::fs::symlink(path, tree.path().join(&path[1..])).unwrap();
    link(pressure);
    link(&format!("/proc/{}", reader.0.id()));
    let mut registry = Registry::new();
    let mut burst = Burst::new(&Root::at(tree.path()), &[reader.0.id()], &mut registry);
    let columns = ["pressure.io.some_ns", "leader.run_ns"].map(|name| {
        let mut schemas = registry.schemas().iter();
        schemas.position(|schema| schema.name == name).unwrap()
    });
    let mut row = Row::default();
    row.set(registry.schemas().len() as u32 - 1, ABSENT);
    burst.hold(Tick::default(), &row);
    let (jump_ns, waited_ns) = look_for_a_jump(&mut burst, &mut reader);
    if jump_ns.is_none() && waited_ns < 10 * JUMP_NS.cast_signed() {
        return testkit::skip("a disk that a reader waits for");
    }
    let jump_ns = jump_ns.unwrap();
    burst.raise(jump_ns);
    let looks = burst.looks.len();
    let mut rows = Vec::new();
    let answer: Result<(), ()> = burst.release(jump_ns, |tick, row| {
        rows.push((tick.at_ns, columns.map(|column| row.values()[column])));
        Ok(())
    });
    answer.unwrap();
    // The sample, and every look since then.
    assert_eq!(rows.len(), 1 + looks);
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let (first, last) = (rows[1].1, rows[looks].1);
    assert!(first.iter().all(|value| *value != ABSENT));
    assert!(last[0] - first[0] >= JUMP_NS.cast_signed() && last[1] > first[1]);
}
