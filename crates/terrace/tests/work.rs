//! Work that is counted (`--work`): what a server or a program did, in the verdict. Other servers
//! than PostgreSQL are played in the tests of the recorder.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/postgres.rs"]
mod postgres;
mod support;

use postgres::PostgresServer;
use serde_json::Value;
use std::path::Path;
use support::{Ran, command, run, terrace, valid_explanation};
use testkit::TempDir;

/// What the recording says.
fn explained(file: &Path) -> Value {
    valid_explanation(&terrace(&format!("explain --json {}", file.display())).done())
}

fn record(server: &PostgresServer, options: &[&str], file: &Path) -> Ran {
    let mut command = command("record --trace none --force");
    command.args(options).arg("-o").arg(file).env("PGHOST", server.socket_directory());
    run(command)
}

#[test]
fn transactions_of_postgresql_are_counted_and_what_it_refuses_is_one_line() {
    let server = match PostgresServer::start(1, None) {
        Ok(server) => server,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let file = directory.join("pg.trec");
    let load = server.load(1);
    let counted = || -> u64 {
        let sql = "SELECT sum(xact_commit) FROM pg_stat_database";
        let asked = server.client("psql").args(["-XAtc", sql, "postgres"]).output().unwrap();
        String::from_utf8(asked.stdout).unwrap().trim().parse().unwrap()
    };
    let before = counted();
    record(&server, &["--work", "pg:xact_commit", "--for", "5s"], &file).done();
    let most = counted() - before;
    drop(load);
    let explanation = explained(&file);
    let (work, wall_s) = (&explanation["work"], explanation["wall_ns"].as_f64().unwrap() / 1e9);
    let (amount, per_s) = (work["amount"].as_u64().unwrap(), work["per_s"].as_f64().unwrap());
    assert!(amount <= most && amount > most / 4, "{amount} of {most}");
    assert!((per_s - amount as f64 / wall_s).abs() < 0.01 * per_s, "{work}");
    let page = terrace(&format!("explain {}", file.display())).done();
    let line = page.lines().find(|line| line.starts_with(" Work: ")).unwrap();
    assert!(line.contains(" xact_commit a second ("), "{line}");

    let refused = record(&server, &["--work", "pg:x\u{e9}", "--for", "1s"], &file);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    let refused = record(&server, &["--work", "pg:no_such", "--for", "1s"], &file);
    refused.refused(2, "cannot read the work of --work pg: PostgreSQL: column \"no_such\"");
    server.signal("-STOP");
    let hangs = record(&server, &["--work", "pg:xact_commit", "--for", "1s"], &file);
    server.signal("-CONT");
    hangs.refused(2, "PostgreSQL: no answer within 2 s");
    drop(server);
    let mut command = command("record --for 1s --work pg:xact_commit --force");
    command.arg("-o").arg(&file).env("PGHOST", directory.path());
    run(command).refused(2, "no server at the socket .s.PGSQL.5432 (no such file or directory)");
}

#[test]
fn a_command_says_by_a_file_what_it_has_done_and_keeps_its_status() {
    let directory = TempDir::new();
    let (file, done) = (directory.join("a.trec"), directory.join("done"));
    let script = format!("for i in 1 2 3 4 5 6; do echo $i > {}; sleep 0.1; done", done.display());
    let mut command = command("run --trace none");
    command.arg("--work").arg(format!("file:{}", done.display())).arg("-o").arg(&file);
    command.args(["--", "sh", "-c", &format!("{script}; exit 3")]);
    let ran = run(command);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err.contains("Work: ") && ran.err.contains(" done a second (6 in all)."),
        "{ran:?}"
    );
    let work = &explained(&file)["work"];
    assert_eq!((&work["series"], &work["amount"]), (&"work.done".into(), &6.into()));
}

/// The processes of the counter are not the subject's: their time is in no bar.
#[test]
fn a_command_that_counts_is_no_part_of_the_subject() {
    let directory = TempDir::new();
    let file = directory.join("a.trec");
    let busy = "command:i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i";
    let mut command = command("run --work");
    command.arg(busy).arg("-o").arg(&file).args(["--", "sleep", "3"]);
    assert_eq!(run(command).code, Some(0));
    let explanation = explained(&file);
    let slices = explanation["bars"]["thread"].as_array().unwrap();
    let on_processor = slices.iter().find(|slice| slice["name"] == "run");
    let run_ns = on_processor.map_or(0, |slice| slice["ns"].as_u64().unwrap());
    assert!(run_ns < explanation["wall_ns"].as_u64().unwrap() / 20, "{explanation}");
}

#[test]
fn a_source_of_no_known_kind_is_refused() {
    for spec in ["carbon:x", "nginx:http://10.0.0.1/x", "pg:a;b"] {
        let mut command = command("record --for 1s -o x.trec");
        command.args(["--work", spec]);
        let ran = run(command);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    }
}

/// The first day of a newcomer, step 5: a server before and after its limit was raised.
#[test]
fn two_recordings_of_a_server_are_compared_by_its_transactions() {
    const LIMITS: [u64; 2] = [160 << 20, 2 << 30];
    let group = match testkit::Cgroup::v1_memory(LIMITS[0]) {
        Ok(group) => group,
        Err(need) => return testkit::skip(need),
    };
    let server = match PostgresServer::start(40, Some(&group)) {
        Ok(server) => server,
        Err(need) => return testkit::skip(need),
    };
    let directory = TempDir::new();
    let files = ["tight.trec", "roomy.trec"].map(|name| directory.join(name));
    let load = server.load(2);
    for (file, limit) in files.iter().zip(LIMITS) {
        std::fs::write(group.path().join("memory.limit_in_bytes"), limit.to_string()).unwrap();
        // What the cache can hold is in it.
        let sql = "SELECT sum(abalance) FROM pgbench_accounts";
        let read = server.client("psql").args(["-XAtc", sql, "postgres"]).output().unwrap();
        assert!(read.status.success(), "{read:?}");
        let mut command = command("record --force --for 8s --work pg:xact_commit");
        command.arg("--cgroup").arg(group.path()).arg("-o").arg(file);
        command.env("PGHOST", server.socket_directory());
        assert_eq!(run(command).code, Some(0));
    }
    drop(load);
    let [tight, roomy] = files.map(|file| file.display().to_string());
    let page = terrace(&format!("compare {tight} {roomy}")).done();
    println!("{page}");
    let has_wall = page.lines().any(|line| line.starts_with(" wall"));
    assert!(!has_wall && !page.contains("were not watched alike"), "{page}");
    let text = terrace(&format!("compare --json {tight} {roomy}")).done();
    let value: Value = serde_json::from_str(&text).unwrap();
    let schema = include_str!("../../../docs/compare.schema.json");
    assert_eq!(support::schema_complaint(schema, &value), None, "{text}");
    let rate = &value["items"][0];
    assert_eq!((&rate["of"], &rate["name"]), (&"rate".into(), &"xact_commit".into()), "{text}");
    assert_eq!((&rate["basis"], &rate["verdict"]), (&"blocks".into(), &"larger".into()), "{text}");
    let sentence = value["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("The second does ") && sentence.contains(" times as much: "),
        "{text}"
    );
    let gate = terrace(&format!("compare --fail-if worse:5% {roomy} {tight}"));
    assert_eq!(gate.code, Some(4), "{gate:?}");
    assert!(gate.err.contains("xact_commit a second is "), "{gate:?}");
    assert_eq!(terrace(&format!("compare --fail-if worse:5% {tight} {roomy}")).code, Some(0));
}
