//! The clock of the machine is set while a recorder runs, and between two runs of a flight
//! recorder. The clock here is that of the program only: a small library answers for it, so nothing
//! is set.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{command, run, terrace, valid_explanation};
use testkit::TempDir;

/// Adds the seconds in the file `CLOCK_OFFSET` to the time of day.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(id, now);
    const char *path = getenv("CLOCK_OFFSET");
    if (id == CLOCK_REALTIME && path) {
        char text[32] = "";
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
            close(file);
        }
    }
    return answer;
}
"#;

/// A clock that can be set for one program.
struct Clock {
    directory: TempDir,
}

impl Clock {
    /// The clock; `None`, and what it needs, where no C compiler makes its library.
    fn new() -> Option<Self> {
        let directory = TempDir::new();
        fs::write(directory.join("clock.c"), SHIM).unwrap();
        let made = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(directory.join("clock.so"))
            .arg(directory.join("clock.c"))
            .arg("-ldl")
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            testkit::skip("a C compiler");
            return None;
        }
        let clock = Self { directory };
        clock.set(0);
        Some(clock)
    }

    /// Sets it to the real time and so many seconds; a reader sees the old or the new offset.
    fn set(&self, seconds: i64) {
        let new = self.directory.join("new");
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, self.offset()).unwrap();
    }

    fn offset(&self) -> PathBuf {
        self.directory.join("offset")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.env("LD_PRELOAD", self.directory.join("clock.so"));
        command.env("CLOCK_OFFSET", self.offset());
        command
    }
}

#[test]
fn a_clock_that_is_set_meanwhile_is_said_and_moves_no_time() {
    let Some(clock) = Clock::new() else {
        return;
    };
    for (seconds, words) in [(3600, "forward"), (-3600, "back")] {
        clock.set(0);
        let file = clock.directory.join(words);
        let line = format!("record --for 2s --trace none -o {}", file.display());
        let mut recorder = clock.command(&line).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        clock.set(seconds);
        assert!(recorder.wait().unwrap().success());
        let text = terrace(&format!("explain {}", file.display())).done();
        assert!(text.contains(&format!("the clock was set {words}")), "{text}");
        let line = format!("explain --json {}", file.display());
        let explained = valid_explanation(&terrace(&line).done());
        let wall_ns = explained["wall_ns"].as_u64().unwrap();
        assert!(wall_ns < 1_800_000_000_000, "half an hour: {wall_ns} ns");
    }
}

#[test]
fn a_flight_recorder_forgets_what_was_recorded_by_a_clock_that_was_ahead() {
    let Some(clock) = Clock::new() else {
        return;
    };
    let ring = clock.directory.join("ring");
    let line = |seconds: u32| {
        let options = format!("--keep 2s --trace none --for {seconds}s");
        format!("record {options} -o {}", ring.display())
    };
    clock.set(86_400);
    assert_eq!(run(clock.command(&line(2))).code, Some(0));
    let ahead: Vec<_> = fs::read_dir(&ring).unwrap().flatten().collect();
    assert!(!ahead.is_empty());
    clock.set(0);
    assert_eq!(run(clock.command(&line(5))).code, Some(0));
    let line = format!("explain --json {}", ring.display());
    let explained = valid_explanation(&terrace(&line).done());
    let wall_ns = explained["wall_ns"].as_u64().unwrap();
    assert!(wall_ns < 3_600_000_000_000, "of a day: {wall_ns} ns");
}
