//! Counters of made servers, files and commands: read anew, absent while they hang, gone with their
//! reader. PostgreSQL is read in the tests of the program.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use testkit::TempDir;

fn started(text: &str, may_appear: bool) -> Result<WorkCounter> {
    WorkCounter::start(&text.parse().unwrap(), may_appear)
}

/// The value of a fresh sample.
fn now(counter: &WorkCounter) -> i64 {
    let mut registry = Registry::new();
    let id = counter.register(&mut registry).unwrap();
    let mut row = Row::default();
    counter.sample(true, id, &mut row);
    row.values()[id as usize]
}

/// A server that answers each connection with `answer`, which makes its next text; `None` hangs.
fn serve(mut answer: impl FnMut(u64) -> Option<String> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for (number, stream) in (0..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let mut asked = [0; 512];
            let _ = stream.read(&mut asked);
            match answer(number) {
                Some(text) => drop(stream.write_all(text.as_bytes())),
                None => held.push(stream),
            }
        }
    });
    port
}

#[test]
fn a_file_is_read_anew_and_a_key_finds_its_number() {
    let directory = TempDir::new();
    let path = directory.join("counts");
    std::fs::write(&path, "seen 1\norders 5\n").unwrap();
    let counter = started(&format!("file:{}:orders", path.display()), false).unwrap();
    assert_eq!((counter.series.as_str(), now(&counter)), ("work.orders", 5));
    std::fs::write(directory.join("new"), "seen 1\norders 9\n").unwrap();
    std::fs::rename(directory.join("new"), &path).unwrap();
    assert_eq!(now(&counter), 9);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(now(&counter), ABSENT, "what cannot be read is absent, never 0");
    assert!(counter.fault().unwrap().contains("no such file"));
}

#[test]
fn a_file_that_the_command_will_make_counts_0_and_is_an_error_otherwise() {
    let directory = TempDir::new();
    let text = format!("file:{}", directory.join("done").display());
    let counter = started(&text, true).unwrap();
    assert_eq!(now(&counter), 0);
    std::fs::write(directory.join("done"), "7").unwrap();
    assert_eq!(now(&counter), 7);
    drop(counter);
    std::fs::remove_file(directory.join("done")).unwrap();
    let refused = started(&text, false).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Usage);
    let text = refused.to_string();
    assert!(text.starts_with("cannot read the work of --work file: "), "{text}");
}

#[test]
fn a_command_is_run_for_each_reading_and_ends_with_the_counter() {
    let directory = TempDir::new();
    let marks = directory.join("marks");
    let line = format!(
        "command:echo x >> {0}; wc -l < {0}; sleep 1000 & echo $! > {0}.pid",
        marks.display()
    );
    let counter = started(&line, false).unwrap();
    let first = now(&counter);
    assert!(now(&counter) > first && first >= 1);
    let pid = std::fs::read_to_string(format!("{}.pid", marks.display())).unwrap();
    drop(counter);
    let gone = || !std::path::Path::new("/proc").join(pid.trim()).join("cwd").exists();
    let until = Instant::now() + Duration::from_secs(5);
    while !gone() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone(), "the command's own processes end too");
}

#[test]
fn a_command_that_hangs_makes_its_value_absent_and_no_sample_late() {
    let directory = TempDir::new();
    let gate = directory.join("gate");
    let line = format!("command:echo 5; while [ -e {} ]; do sleep 0.05; done", gate.display());
    let counter = started(&line, false).unwrap();
    assert_eq!(now(&counter), 5);
    std::fs::write(&gate, "").unwrap();
    let began = Instant::now();
    let mut value = 5;
    while value != ABSENT && began.elapsed() < Duration::from_secs(20) {
        let asked = Instant::now();
        value = now(&counter);
        assert!(asked.elapsed() < FRESH_LIMIT * 3, "a sample waits for a moment only");
    }
    assert_eq!(value, ABSENT);
    std::fs::remove_file(&gate).unwrap();
    while value != 5 && began.elapsed() < Duration::from_secs(40) {
        value = now(&counter);
    }
    assert_eq!(value, 5, "it is read again when it answers again");
}

#[test]
fn redis_and_nginx_are_asked_and_refusals_are_one_clean_line() {
    let port =
        serve(|number| Some(format!("$99\r\n# Stats\r\ncommands:{}\r\n+OK\r\n", 10 + number)));
    let counter = started(&format!("redis:commands@{port}"), false).unwrap();
    let first = now(&counter);
    assert!(first > 10 && now(&counter) > first);
    let port = serve(|_| Some("-NOAUTH\x1b[2J needed\r\n".to_owned()));
    let refused = started(&format!("redis:commands@{port}"), false).unwrap_err().to_string();
    assert!(refused.contains("NOAUTH [2J needed") && !refused.contains('\x1b'), "{refused}");
    let page = "HTTP/1.0 200 OK\r\n\r\nActive connections: 1 \nserver accepts handled requests\n 1 2 33 \n";
    let port = serve(move |_| Some(page.to_owned()));
    let counter = started(&format!("nginx:http://127.0.0.1:{port}/s"), false).unwrap();
    assert_eq!((counter.series.as_str(), now(&counter)), ("work.requests", 33));
}

#[test]
fn a_server_that_hangs_holds_nothing_up() {
    let port = serve(|number| (number == 0).then(|| "commands:1\r\n".to_owned()));
    let counter = started(&format!("redis:commands@{port}"), false).unwrap();
    let asked = Instant::now();
    assert_eq!(now(&counter), 1, "the last value holds for a moment");
    let until = Instant::now() + Duration::from_secs(20);
    while now(&counter) != ABSENT && Instant::now() < until {}
    assert_eq!(now(&counter), ABSENT);
    assert!(counter.fault().unwrap().contains("no answer"));
    let dropped = Instant::now();
    drop(counter);
    assert!(dropped.elapsed() < ANSWER_LIMIT, "{:?} {:?}", dropped.elapsed(), asked.elapsed());
    let port = serve(|_| None);
    let refused = started(&format!("redis:commands@{port}"), false).unwrap_err().to_string();
    assert!(refused.ends_with("no answer within 2 s"), "{refused}");
}

#[test]
fn an_error_has_one_line() {
    assert_eq!(cleaned("a\n\tb\x1b[1m \u{202e}c"), "a b [1m c");
    assert_eq!(cleaned(&"x".repeat(999)).len(), LONGEST_ANSWER);
}
