//! Redaction of long texts: its time grows with the text, not with the number of secrets, and
//! what a hostile text repeats is not searched again for each repetition.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::recording::{Facts, Recording, Span, Subject};
use record::redact::redact;
use std::time::{Duration, Instant};

/// As many bytes as take a minute where each secret is asked for at each place.
const TEXT_BYTES: usize = 512 << 10;

fn redacted(secrets: usize, text: &str) -> (String, Duration) {
    let words = (1..secrets).map(|number| format!("{}{number:04}", "r".repeat(40)));
    let argv = std::iter::once("x".to_owned()).chain(words).collect();
    let span = Span { kind: "rate".to_owned(), text: text.to_owned(), start_ns: 0, end_ns: 0 };
    let mut recording = Recording {
        facts: Facts { subject: Subject::Command { argv }, ..Facts::default() },
        spans: vec![span],
        ..Recording::default()
    };
    let start = Instant::now();
    redact(&mut recording);
    (recording.spans[0].text.clone(), start.elapsed())
}

#[test]
fn many_secrets_take_no_more_time_than_few() {
    let text = "r".repeat(TEXT_BYTES);
    let (same, few) = redacted(10, &text);
    assert_eq!(same, text);
    let (same, many) = redacted(4_000, &text);
    assert_eq!(same, text);
    // Each secret at each place took 400 times as long. Making the search ready takes some, too.
    assert!(many < few * 40 + Duration::from_secs(1), "{few:?} {many:?}");
}

#[test]
fn a_text_of_slashes_is_walked_once() {
    for part in ["/", "/x", "/proc//proc/x/", "/sys/fs/cgroup/a/", " /home/alice"] {
        let short = part.repeat(TEXT_BYTES / 64 / part.len());
        let long = part.repeat(TEXT_BYTES / part.len());
        let (_, short) = redacted(10, &short);
        let (text, long) = redacted(10, &long);
        assert!(!text.contains("home/alice"));
        // 64 times as long; each place to the end would be 4,096 times.
        assert!(long < short * 640 + Duration::from_secs(1), "{part}: {short:?} {long:?}");
    }
}
