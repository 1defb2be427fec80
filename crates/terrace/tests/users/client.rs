//! A person who measures a client of a database, and is sent to the server: with the line
//! that watches it.

use crate::machine_alone;
use crate::support::{TERRACE, terrace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::TempDir;

/// Where Debian has the programs of a server, one directory for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Who may run the server: it refuses root.
const SERVER_USER: &str = "postgres";

/// A server with a database for pgbench, ended with the test.
struct Postgres {
    programs: PathBuf,
    data: TempDir,
}

impl Postgres {
    /// Starts one that listens on a Unix socket in its directory.
    fn start() -> Result<Self, String> {
        if !testkit::is_root() {
            return Err("root, to start a server as another user".to_owned());
        }
        let versions = std::fs::read_dir(VERSIONS).map_err(|_| "PostgreSQL".to_owned())?;
        let mut programs: Vec<PathBuf> =
            versions.flatten().map(|entry| entry.path().join("bin")).collect();
        programs.retain(|directory| directory.join("pgbench").exists());
        programs.sort();
        let programs = programs.pop().ok_or("PostgreSQL with pgbench")?;
        let data = TempDir::new();
        let server = Self { programs, data };
        let directory = server.directory();
        if !as_server(Command::new("chown").args([SERVER_USER, &directory]), false) {
            return Err(format!("a user {SERVER_USER}"));
        }
        let place = format!("{directory}/db");
        let is_made = server.act("initdb", &["-D", &place, "--auth=trust", "--no-sync"])
            && server.act("pg_ctl", &["-D", &place, "-o", &server.options(), "-w", "start"])
            && server.act("pgbench", &["-h", &directory, "-i", "-s", "2", "postgres"]);
        if is_made { Ok(server) } else { Err("a PostgreSQL that starts".to_owned()) }
    }

    fn directory(&self) -> String {
        self.data.path().to_string_lossy().into_owned()
    }

    fn options(&self) -> String {
        format!("-k {} -c listen_addresses= -c fsync=off", self.directory())
    }

    /// Runs one of its programs as its user; whether that went well.
    fn act(&self, program: &str, words: &[&str]) -> bool {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={SERVER_USER}"), "--clear-groups"]);
        command.arg(self.programs.join(program)).args(words);
        as_server(&mut command, true)
    }

    /// The number of its first process.
    fn pid(&self) -> u32 {
        let file = std::fs::read_to_string(format!("{}/db/postmaster.pid", self.directory()));
        file.unwrap().lines().next().unwrap().parse().unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let place = format!("{}/db", self.directory());
        self.act("pg_ctl", &["-D", &place, "-m", "immediate", "stop"]);
    }
}

/// Runs a command without its output, in a directory that the user of the server may enter.
fn as_server(command: &mut Command, in_root: bool) -> bool {
    if in_root {
        command.current_dir("/");
    }
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ended.is_ok_and(|ended| ended.success())
}

/// The verdict of a run of `argv`: as JSON, and as a person reads it.
fn run(directory: &Path, argv: &[&str]) -> (Value, String) {
    let file = directory.join("client.trec");
    let output = Command::new(TERRACE)
        .args(["run", "--force", "-o"])
        .arg(&file)
        .arg("--")
        .args(argv)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{page}");
    let json = terrace(&format!("explain {} --json", file.display())).done();
    (serde_json::from_str(&json).unwrap(), page)
}

/// Judges what was said of a run that waited for the process `pid` of this name.
#[track_caller]
fn names_server(said: &(Value, String), name: &str, pid: u32) {
    let (json, page) = said;
    let server = &json["server"];
    assert_eq!(server["pid"], pid, "{page}{server}");
    assert!(server["name"].as_str().unwrap().contains(name), "{server}");
    let command = format!("terrace record --pid {pid} --for 10");
    assert!(server["command"].as_str().unwrap().starts_with(&command), "{server}");
    let first_line = page.replace('\n', " ");
    assert!(first_line.contains("of its time it waited for"), "{page}");
    assert!(page.contains(&command), "{page}");
}

/// Whether waits have names here, which the sentence rests on.
fn can_see_waits() -> bool {
    if testkit::is_admin() {
        return true;
    }
    testkit::skip("root outside of a container: events name what a command waits for");
    false
}

#[test]
fn pgbench_learns_of_the_server() {
    let _alone = machine_alone();
    if !can_see_waits() {
        return;
    }
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return testkit::skip(&why),
    };
    let directory = TempDir::new();
    let pgbench = server.programs.join("pgbench").to_string_lossy().into_owned();
    let place = server.directory();
    // One client: with more of them a small machine has the client wait for a processor.
    let argv = [&pgbench, "-h", &place, "-U", SERVER_USER, "-c", "1", "-T", "3", "postgres"];
    names_server(&run(directory.path(), &argv), "postgres", server.pid());
}

/// A server that thinks for 20 ms before each answer, on a port of its own that it prints.
const SLOW_SERVER: &str = "\
import socket, sys, time
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    while client.recv(64):
        time.sleep(0.02)
        client.send(b'answer')
";

const CLIENT: &str = "\
import socket, sys
server = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
for _ in range(60):
    server.send(b'question')
    server.recv(64)
";

#[test]
fn a_client_by_tcp_learns_of_the_server_by_its_script() {
    let _alone = machine_alone();
    if !can_see_waits() {
        return;
    }
    let directory = TempDir::new();
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let (slow, client) = (path("slow_server.py"), path("client.py"));
    std::fs::write(&slow, SLOW_SERVER).unwrap();
    std::fs::write(&client, CLIENT).unwrap();
    let mut python = Command::new("python3");
    let Ok(mut server) = python.arg(&slow).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    else {
        return testkit::skip("python3");
    };
    let mut port = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut port).unwrap();
    let server = crate::support::Started(server);
    let said = run(directory.path(), &["python3", &client, port.trim()]);
    names_server(&said, "slow_server.py", server.pid());
    let text = said.0["server"]["text"].as_str().unwrap();
    assert!(text.contains(&format!("port {}", port.trim())), "{text}");
}

/// a command that works by itself has no server, though it has a pipe and a socket.
#[test]
fn a_command_that_works_has_no_server() {
    let _alone = machine_alone();
    let directory = TempDir::new();
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let (json, page) = run(directory.path(), &["sh", "-c", spin]);
    assert_eq!(json["server"], Value::Null, "{page}");
}
