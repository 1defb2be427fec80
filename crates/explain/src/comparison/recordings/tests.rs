//! Comparisons of made explanations: verdicts, causes and sums. Whether
//! real runs are distinguished is tested with the program.

use super::*;
use model::Grade;
use model::comparison::DifferenceVerdict;
use model::explanation::{Bars, EventSource, OverlappingPart, Slice, Unseen};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A run that was so long on a processor and in block I/O, most of it refaults.
fn run(cpu_ms: u64, device_ms: u64) -> Explanation {
    let slice = |name: &str, ms: u64| Slice {
        name: name.to_owned(),
        ns: ms * MS,
        grade: Grade::Measured,
        evidence: Vec::new(),
    };
    let slices = vec![slice("run", cpu_ms), slice("block_io", device_ms), slice("unexplained", 0)];
    Explanation {
        subject: "cat x".to_owned(),
        ending: "exit 0".to_owned(),
        wall_ns: (cpu_ms + device_ms) * MS,
        thread_ns: (cpu_ms + device_ms) * MS,
        bars: Bars { thread: slices.clone(), wall: slices },
        of_which: vec![OverlappingPart {
            name: "refault".to_owned(),
            within: "block_io".to_owned(),
            ns: device_ms * MS * 9 / 10,
            count: None,
            grade: Grade::Measured,
            evidence: Vec::new(),
            span: None,
        }],
        ..Explanation::default()
    }
}

fn runs(cpu_ms: &[u64], device_ms: u64) -> Vec<Explanation> {
    cpu_ms.iter().map(|cpu_ms| run(*cpu_ms, device_ms)).collect()
}

const CPU_MS: [u64; 8] = [500, 510, 490, 505, 495, 520, 480, 501];

#[test]
fn a_difference_is_attributed_to_the_slice_that_made_it() {
    let compared = recordings(&runs(&CPU_MS, 100), &runs(&CPU_MS, 400));
    let wall = &compared.items[0];
    assert_eq!((wall.of.as_str(), wall.verdict), ("wall", DifferenceVerdict::Larger));
    let split = compared.split.as_ref().unwrap();
    let device = &split.parts[0];
    assert_eq!((device.name.as_str(), device.verdict), ("block_io", DifferenceVerdict::Larger));
    assert_eq!(device.difference_ns, 300e6);
    assert_eq!((split.parts[1].name.as_str(), split.parts[1].difference_ns), ("refault", 270e6));
    assert_eq!((split.low_ns, split.high_ns), (wall.low, wall.high));
    let cpu = split.parts.iter().find(|part| part.name == "run").unwrap();
    assert_eq!(cpu.verdict, DifferenceVerdict::Unproven);
    assert!(
        compared.sentence.starts_with("The second takes 300 ms longer (50 %; 95 % interval +")
            && compared
                .sentence
                .contains("of that, 300 ms +- 0 ns are block I/O (270 ms of it refault)."),
        "{}",
        compared.sentence
    );
    assert!(compared.worst().is_some_and(|(item, share)| item.of == "wall" && share > 0.4));
}

/// Noise of a tenth and a difference of a twentieth: how many runs would tell is said.
#[test]
fn what_noise_hides_comes_with_the_runs_that_would_show_it() {
    let noisy = [450, 550, 500, 460, 540, 470, 530, 505];
    let more = noisy.map(|ms| ms + 30);
    let compared = recordings(&runs(&noisy, 100), &runs(&more, 100));
    assert_eq!(compared.items[0].verdict, DifferenceVerdict::Unproven);
    assert!(
        compared.items[0].provable.is_some_and(|share| share > 0.05),
        "{:?}",
        compared.items[0]
    );
    assert!(
        compared.sentence.contains("; 8 runs of each can prove ")
            && compared.sentence.contains(" would tell whether this is real."),
        "{}",
        compared.sentence
    );
}

#[test]
fn the_same_is_not_called_different_and_a_gain_is_less() {
    let mut shuffled = CPU_MS;
    shuffled.rotate_left(3);
    let compared = recordings(&runs(&CPU_MS, 100), &runs(&shuffled, 100));
    assert!(compared.items.iter().all(|item| item.verdict == DifferenceVerdict::Unproven));
    assert!(
        compared.sentence.starts_with("Unproven: runs of one side differ"),
        "{}",
        compared.sentence
    );
    let compared = recordings(&runs(&CPU_MS, 400), &runs(&CPU_MS, 100));
    assert!(
        compared.sentence.starts_with("The second takes 300 ms less ("),
        "{}",
        compared.sentence
    );
    assert_eq!(compared.worst(), None);
}

#[test]
fn one_run_each_proves_nothing_and_is_split_all_the_same() {
    let compared = recordings(&[run(500, 100)], &[run(500, 4100)]);
    assert_eq!(compared.items[0].basis, Basis::Nothing);
    assert_eq!(
        compared.sentence,
        "Unproven: one run each. This time the second took 4 s longer (667 %); of that, 4 s are \
         block I/O (3.6 s of it refault)."
    );
    assert!(compared.notes.iter().any(|note| note.starts_with("At least 4 runs")));
    let three = recordings(&runs(&CPU_MS[..3], 1), &runs(&CPU_MS, 900));
    assert!(three.sentence.starts_with("Unproven: only 3 and 8 runs."), "{}", three.sentence);
}

#[test]
fn what_went_the_other_way_is_named_too() {
    let compared = recordings(&[run(1000, 500)], &[run(3000, 100)]);
    assert!(
        compared.sentence.ends_with("; of that, 2 s are CPU, while block I/O took 400 ms less."),
        "{}",
        compared.sentence
    );
}

#[test]
fn an_odd_run_is_kept_out_of_the_split() {
    let mut second = runs(&CPU_MS, 400);
    second[3] = run(90_000, 400);
    let compared = recordings(&runs(&CPU_MS, 100), &second);
    let split = compared.split.unwrap();
    assert!(split.difference_ns < 320e6, "{}", split.difference_ns);
    assert_eq!(split.parts[0].name, "block_io");
}

#[test]
fn what_was_watched_otherwise_or_failed_is_said_and_what_was_quiet_is_not() {
    let seen = |what: &str| Explanation {
        unseen: vec![Unseen { what: what.to_owned(), why: "why".to_owned(), remedy: None }],
        ..run(500, 100)
    };
    let mut quiet = run(500, 100);
    quiet.bars.wall.retain(|slice| slice.name != "block_io");
    assert_eq!(recordings(&[run(500, 100)], &[quiet]).notes.len(), 1, "only that runs are few");
    let mut other = seen("delay_accounting");
    other.ending = "exit 1".to_owned();
    let compared = recordings(&[run(500, 100)], &[other]);
    let notes = &compared.notes;
    assert!(
        notes[0].contains("delays that the kernel charges could be seen on one of them only"),
        "{notes:?}"
    );
    assert!(notes[1].contains("(exit 1)"), "{notes:?}");
    let mut followed = run(500, 100);
    followed.watching.events = Some(EventSource::InKernel);
    let compared = recordings(&[run(500, 100)], &[followed]);
    assert!(compared.notes[0].contains("kernel events could be seen"), "{:?}", compared.notes);
    let alike = recordings(&[seen("memory_limit")], &[run(500, 100)]);
    assert_eq!(alike.notes.len(), 1, "what a rule could not judge is no source");
}

#[test]
fn nothing_is_no_comparison() {
    let compared = recordings(&[], &[run(1, 1)]);
    assert_eq!(compared.sentence, "There is nothing to compare.");
    assert_eq!(compared.split, None);
}

proptest! {
    #[test]
    fn the_slices_add_up_to_the_whole(
        first in prop::collection::vec((0..5000_u64, 0..5000_u64), 1..7),
        second in prop::collection::vec((0..5000_u64, 0..5000_u64), 1..7),
    ) {
        let made = |side: &[(u64, u64)]| -> Vec<Explanation> {
            side.iter().map(|(cpu, device)| run(*cpu, *device)).collect()
        };
        let split = recordings(&made(&first), &made(&second)).split.unwrap();
        let slices = split.parts.iter().filter(|part| part.within.is_none());
        let sum: f64 = slices.map(|part| part.difference_ns).sum();
        prop_assert!((sum - split.difference_ns).abs() <= 1.0, "{sum} {}", split.difference_ns);
        prop_assert!((split.second_ns - split.first_ns - split.difference_ns).abs() <= 1.0);
    }
}
