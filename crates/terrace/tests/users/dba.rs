//! The administrator of a database: PostgreSQL in a group whose memory limit is a third of what the
//! clients read. Each way of recording the server finds the limit first, and clears nothing of what
//! it causes; the first right answer is there within half a minute. The disk is a modelled one: on
//! one that is much faster, the clients want the processors first, which is a true verdict too.
//!
//! Seen before: `record --cgroup --apply` cleared the limit and the reads of a server that had read
//! 1.41 GiB again, as delay accounting had begun after the server.

use crate::postgres::PostgresServer;
use crate::support::{self, command, print_figure, terrace, valid_explanation};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testkit::{Cgroup, Mounted, TempDir};

/// The memory limit of the server's group.
const LIMIT_BYTES: u64 = 256 << 20;

/// A database of 600 MB.
const SCALE: u32 = 40;

/// The disk of the database: what it reads waits for a solid-state disk behind a network.
const DISK: &str = "sd,read_ms=0.6,read_bps=2e8,cross_read_ms=0,write_ms=0.05,jump_write_ms=0,\
                    write_bps=1e9";

/// The bytes of that disk.
const DISK_BYTES: u64 = 1536 << 20;

/// Clients that read.
const CLIENTS: u32 = 4;

/// How often the test looks whether they have begun.
const LOOKS: u32 = 100;

/// Until the first right answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the limit causes.
const GUILTY: [&str; 4] =
    ["memory_limit", "cache_too_small", "cache_evicted_by_stream", "reads_from_device"];

/// A recording of the server, with the group's name as `--cgroup` takes it.
struct Day {
    // Before the disk that its data is on.
    server: PostgresServer,
    group: Cgroup,
    _disk: Mounted,
    directory: TempDir,
}

impl Day {
    fn begin() -> Result<Self, String> {
        let group = Cgroup::v1_memory(LIMIT_BYTES)?;
        let disk = Mounted::modelled(DISK, DISK_BYTES)?;
        let server = PostgresServer::start_in(disk.path(), SCALE, Some(&group))?;
        Ok(Self { server, group, _disk: disk, directory: TempDir::new() })
    }

    /// Returns once each client has a process of the server that works for it.
    fn wait_for_clients(&self) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
        let has_begun = || {
            let asked = self.server.client("psql").args(["-XAtc", sql, "postgres"]).output();
            String::from_utf8(asked.unwrap().stdout).unwrap().trim() == CLIENTS.to_string()
        };
        for _ in 0..LOOKS {
            if has_begun() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no clients");
    }

    /// Records with these options for a few seconds.
    fn record(&self, options: &str) -> PathBuf {
        let file = self.directory.join("day.trec");
        let line = format!("record {options} --for 5s --force -o {}", file.display());
        let done = terrace(&line);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        file
    }

    fn group_name(&self) -> String {
        let path = self.group.path().to_str().unwrap();
        path.split_once("/memory/").unwrap().1.to_owned()
    }
}

fn explained(file: &Path) -> Value {
    valid_explanation(&terrace(&format!("explain --json {}", file.display())).done())
}

fn ids<'v>(explanation: &'v Value, list: &str) -> Vec<&'v str> {
    let all = explanation[list].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap()).collect()
}

/// The findings but those on other programs: that they want the processors is a fact of the machine
/// that the test runs on.
fn found(explanation: &Value) -> Vec<&str> {
    let all = explanation["findings"].as_array().unwrap().iter();
    let own = all.filter(|one| !one["claim"].as_str().unwrap().contains(", others ran "));
    own.map(|one| one["id"].as_str().unwrap()).collect()
}

/// What is wrong with the verdict on a recording of these options.
fn complaint(options: &str, file: &Path) -> Option<String> {
    let explanation = explained(file);
    let (found, cleared) = (found(&explanation), ids(&explanation, "cleared"));
    let is_guilty = |id: &&&str| GUILTY.contains(id);
    let cleared: Vec<&&str> = cleared.iter().filter(is_guilty).collect();
    if found.first() == Some(&"memory_limit") && cleared.is_empty() {
        return None;
    }
    let page = terrace(&format!("explain --details {}", file.display())).done();
    Some(format!("record {options}: found {found:?}, cleared {cleared:?}\n{page}"))
}

/// Her first step is to run the client: the verdict sends her to the server, and does not advise to
/// stop it. Seen: "stop or move the other programs", which were the database.
fn client_is_sent_to_the_server(day: &Day) {
    let file = day.directory.join("client.trec");
    let mut run = command("run --force -o");
    run.arg(&file).arg("--").arg(day.server.program("pgbench"));
    run.arg("-h").arg(day.server.socket_directory());
    run.args([
        "-U",
        "postgres",
        "-S",
        "-c",
        &CLIENTS.to_string(),
        "-j",
        "2",
        "-T",
        "5",
        "postgres",
    ]);
    let ran = support::run(run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = ran.err;
    let explanation = explained(&file);
    let (pid, server) = (day.server.pid(), &explanation["server"]);
    assert_eq!(server["pid"], pid, "{page}{explanation:#}");
    let watches = format!("terrace record --pid {pid} --for 10");
    let command = server["command"].as_str().unwrap();
    assert!(command.contains(&watches), "{server}");
    assert!(page.contains(&watches), "{page}");
    let flowing = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("of its time it waited for"), "{page}");
    assert!(!flowing.contains("stop or move"), "{page}");
}

#[test]
fn the_memory_limit_of_a_database_is_found_first_and_never_cleared() {
    let day = match Day::begin() {
        Ok(day) => day,
        Err(need) => return testkit::skip(need),
    };
    client_is_sent_to_the_server(&day);
    let _load = day.server.load(CLIENTS);
    day.wait_for_clients();
    let group = day.group_name();
    let mut wrong = Vec::new();
    let asked = Instant::now();
    let mut answered = None;
    for options in [
        format!("--pid {}", day.server.pid()),
        format!("--cgroup {group} --apply"),
        format!("--cgroup {group} --trace sched"),
        format!("--cgroup {group}"),
    ] {
        match complaint(&options, &day.record(&options)) {
            None => {
                answered.get_or_insert(asked.elapsed());
            }
            Some(complaint) => wrong.push(complaint),
        }
    }
    print_figure("dba_wrong", wrong.len() as f64);
    answered.iter().for_each(|after| print_figure("dba_first_answer_s", after.as_secs_f64()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(answered.is_some_and(|after| after < PATIENCE), "{answered:?}");
    machine_names_the_group(&day);
    unwatched_waits_clear_nothing(&day);
}

/// A flight recorder is of the machine: it names the group that is at its limit.
fn machine_names_the_group(day: &Day) {
    let explanation = explained(&day.record(""));
    let cleared = ids(&explanation, "cleared");
    assert!(!cleared.contains(&"memory_limit"), "{cleared:?}");
    let findings = explanation["findings"].as_array().unwrap();
    let limit = findings.iter().find(|one| one["id"] == "memory_limit");
    let name = day.group.path().file_name().unwrap().to_str().unwrap();
    let claim = limit.map(|limit| limit["claim"].as_str().unwrap()).unwrap_or_default();
    assert!(claim.contains(name), "{name} in {findings:#?}");
}

/// Without events the waits of the server are not seen, and clear nothing.
fn unwatched_waits_clear_nothing(day: &Day) {
    let options = format!("--cgroup {} --trace none", day.group_name());
    let explanation = explained(&day.record(&options));
    let cleared = ids(&explanation, "cleared");
    let blindly: Vec<&&str> = cleared.iter().filter(|id| GUILTY.contains(*id)).collect();
    assert!(blindly.is_empty(), "{blindly:?}");
}
