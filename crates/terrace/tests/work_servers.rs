//! `--work` of real servers of a test's own: MariaDB, Redis and nginx, each in a temporary
//! directory and under a load that ends with the test. PostgreSQL has its own in `work.rs`.
// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Ran, command, run, terrace, valid_explanation};
use testkit::TempDir;

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a program is there, by its success at `--version` or the like.
fn has(program: &str, asked: &str) -> bool {
    let mut command = testkit::with_default_signals(program);
    command.arg(asked).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Waits until something is there.
fn until(is_there: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < end, "the server does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Records four seconds with this counter; `home` is where a client looks for its settings.
fn record(spec: &str, home: &Path, file: &Path) -> Ran {
    let mut command = command("record --trace none --force --for 4s --work");
    command.arg(spec).arg("-o").arg(file).env("HOME", home);
    run(command)
}

/// The work of a recording, and that its page names it.
fn work(file: &Path) -> Value {
    let shown = file.display();
    let explanation = valid_explanation(&terrace(&format!("explain --json {shown}")).done());
    let work = explanation["work"].clone();
    let page = terrace(&format!("explain {shown}")).done();
    let line = format!(" {} a second (", work["name"].as_str().unwrap());
    assert!(page.lines().any(|it| it.starts_with(" Work: ") && it.contains(&line)), "{page}");
    work
}

/// The same of what a server counted itself around the recording.
#[track_caller]
fn is_what_the_server_counted(work: &Value, most: u64) {
    let amount = work["amount"].as_u64().unwrap();
    assert!(amount <= most && amount > most / 4, "{amount} of {most}");
}

#[test]
fn queries_of_mariadb_are_counted_and_what_its_client_says_is_one_line() {
    if !testkit::is_root() || !has("mariadbd", "--version") || !has("mysql", "--version") {
        return testkit::skip("root and MariaDB");
    }
    let home = TempDir::new();
    let (data, socket) = (home.join("data"), home.join("socket"));
    let settings = format!("[client]\nsocket={}\n", socket.display());
    std::fs::write(home.join(".my.cnf"), settings).unwrap();
    let mut made = testkit::with_default_signals("mariadb-install-db");
    made.args(["--no-defaults", "--auth-root-authentication-method=normal", "--user=root"]);
    made.arg(format!("--datadir={}", data.display())).stdin(Stdio::null());
    assert!(made.output().unwrap().status.success());
    let mut server = testkit::with_default_signals("mariadbd");
    server.args(["--no-defaults", "--skip-networking", "--user=root"]);
    server.arg(format!("--datadir={}", data.display()));
    server.arg(format!("--socket={}", socket.display()));
    let server = Running::start(&mut server);
    let client = |line: &str| {
        let mut client = testkit::with_default_signals("sh");
        client.args(["-c", line]).env("HOME", home.path());
        client
    };
    let counted = || -> Option<u64> {
        let asked = client("mysql -N -B -e \"SHOW GLOBAL STATUS LIKE 'Com_select'\"").output();
        let text = String::from_utf8(asked.unwrap().stdout).unwrap();
        text.split_whitespace().last()?.parse().ok()
    };
    until(|| counted().is_some());
    // At most a million, which is more than it does meanwhile.
    let load = Running::start(&mut client("yes 'SELECT 1;' | head -1000000 | exec mysql"));
    let file = home.join("a.trec");
    let before = counted().unwrap();
    record("mysql:Com_select", home.path(), &file).done();
    let most = counted().unwrap() - before;
    drop(load);
    is_what_the_server_counted(&work(&file), most);
    assert_eq!(work(&file)["source"], "MySQL, SHOW GLOBAL STATUS");
    let refused = record("mysql:no_such", home.path(), &file);
    refused.refused(2, "cannot read the work of --work mysql: it has no variable of this name");
    drop(server);
    let refused = record("mysql:Com_select", home.path(), &file);
    refused.refused(2, "cannot read the work of --work mysql: ERROR 2002 (HY000): Can't connect");
}

#[test]
fn commands_of_redis_are_counted() {
    if !has("redis-server", "--version") || !has("redis-benchmark", "--version") {
        return testkit::skip("Redis");
    }
    let directory = TempDir::new();
    let socket = directory.join("socket");
    let mut server = testkit::with_default_signals("redis-server");
    server.args(["--port", "0", "--save", "", "--dir"]).arg(directory.path());
    let _server = Running::start(server.arg("--unixsocket").arg(&socket));
    until(|| socket.exists());
    let mut load = testkit::with_default_signals("redis-benchmark");
    load.arg("-s").arg(&socket).args(["-n", "100000000", "-c", "1", "-t", "get"]);
    let _load = Running::start(&mut load);
    let counted = || -> u64 {
        let mut client = testkit::with_default_signals("redis-cli");
        let asked = client.arg("-s").arg(&socket).args(["info", "stats"]).output().unwrap();
        let text = String::from_utf8(asked.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse().unwrap()
    };
    let file = directory.join("a.trec");
    let before = counted();
    let spec = format!("redis:total_commands_processed@{}", socket.display());
    record(&spec, directory.path(), &file).done();
    is_what_the_server_counted(&work(&file), counted() - before);
    let spec = format!("redis:no_such@{}", socket.display());
    let refused = record(&spec, directory.path(), &file);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
}

#[test]
fn requests_of_nginx_are_counted() {
    if !testkit::is_root() || !has("nginx", "-v") {
        return testkit::skip("root and nginx");
    }
    let directory = TempDir::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "pid {0}/pid;\nerror_log {0}/errors;\nevents {{}}\nhttp {{ access_log off; server {{ \
         listen 127.0.0.1:{port}; location = /status {{ stub_status; }} location / {{ return 200 \
         x; }} }} }}\n",
        directory.path().display()
    );
    let path = directory.join("nginx.conf");
    std::fs::write(&path, settings).unwrap();
    let mut server = testkit::with_default_signals("nginx");
    server.arg("-p").arg(directory.path()).arg("-c").arg(&path).args(["-g", "daemon off;"]);
    let _server = Running::start(&mut server);
    let ask = move || -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    let counted = || -> u64 {
        let text = ask().unwrap();
        let numbers = text.lines().find(|line| line.starts_with(' ')).unwrap();
        numbers.split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    until(|| ask().is_some());
    let is_over = Arc::new(AtomicBool::new(false));
    let load = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            while !is_over.load(Ordering::Relaxed) {
                ask();
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    let file = directory.join("a.trec");
    let before = counted();
    let ran = record(&format!("nginx:http://127.0.0.1:{port}/status"), directory.path(), &file);
    let most = counted() - before;
    is_over.store(true, Ordering::Relaxed);
    load.join().unwrap();
    ran.done();
    is_what_the_server_counted(&work(&file), most);
    let refused = record(&format!("nginx:http://127.0.0.1:{port}/x"), directory.path(), &file);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
}
