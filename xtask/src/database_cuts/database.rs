//! The databases whose files are on a RAM disk: started there under load by one client that waits
//! for each commit, and opened again where their files were restored to.
//!
//! SQLite is its client; PostgreSQL runs under its own account. Both clients read SQL from a pipe
//! and print the number of each transaction after its commit.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use testkit::Cgroup;

use super::{LIMIT, POLL, ledger};
use crate::process::{self, Finished, Running};

/// The account of the server.
const ACCOUNT: &str = "postgres";
/// Between two transactions, so that a load of seconds stays small.
const PAUSE: Duration = Duration::from_micros(200);
/// A server that was stopped has no number any more within it.
const GONE_LIMIT: Duration = Duration::from_secs(10);
/// Small, so that files change all the time: pages are evicted, and a checkpoint comes each 1 MiB.
const SETTINGS: [&str; 3] = ["shared_buffers=1MB", "max_wal_size=2MB", "min_wal_size=2MB"];

/// A kind of database.
#[derive(Debug)]
pub(super) enum Database {
    Sqlite,
    /// The directory of its programs.
    Postgres(PathBuf),
}

impl Database {
    /// Those that are installed.
    ///
    /// # Errors
    /// The words for `testkit::skip`.
    pub(super) fn all() -> Result<Vec<Self>, String> {
        if !testkit::is_root() {
            return Err("root".to_owned());
        }
        if process::find("sqlite3").is_none() || process::find("stdbuf").is_none() {
            return Err("sqlite3 and stdbuf".to_owned());
        }
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).max();
        let server = programs.filter(|bin| bin.join("initdb").is_file()).map(Self::Postgres);
        Ok(std::iter::once(Self::Sqlite).chain(server).collect())
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// Makes a database on the RAM disk, and starts its load. All that writes is in the group.
    pub(super) fn start(&self, ram: &Path, side: &Path, group: &Cgroup) -> Result<Load, String> {
        match self {
            Self::Sqlite => {
                let mut client = group.command("stdbuf");
                client.args(["-oL", "sqlite3", "-batch", "-bail"]).arg(ram.join("base"));
                let first = "PRAGMA journal_mode=WAL;\nPRAGMA wal_autocheckpoint=100;\n";
                Load::start(client, (first, ".print"), &side.join("sqlite3.log"), None)
            }
            Self::Postgres(programs) => {
                let data = ram.join("data");
                std::fs::create_dir(&data).map_err(|error| error.to_string())?;
                run("chown", &[ACCOUNT, &data.to_string_lossy()])?;
                let mut make = account(Command::new("setpriv"), &programs.join("initdb"));
                make.arg("-D").arg(&data).args(["-A", "trust", "-N", "--wal-segsize=1"]);
                run_all(make.args(["--locale=C", "-E", "UTF8"]))?;
                let server = Server::start(programs, &data, side, Some(group))?;
                let mut client = Command::new("stdbuf");
                client.arg("-oL").arg(programs.join("psql")).args(server.words());
                client.args(["-v", "ON_ERROR_STOP=1"]);
                Load::start(client, ("", "\\echo"), &side.join("psql.log"), Some(server))
            }
        }
    }

    /// Opens what was restored, and reads all of it.
    pub(super) fn read(&self, ram: &Path, side: &Path) -> Result<String, String> {
        match self {
            Self::Sqlite => {
                let mut client = Command::new("sqlite3");
                client.args(["-batch", "-bail"]).arg(ram.join("base"));
                let text =
                    run_all(client.arg(format!("PRAGMA integrity_check; {}", ledger::READ)))?;
                let rest = text.strip_prefix("ok\n").map(str::to_owned);
                rest.ok_or_else(|| text.lines().take(3).collect::<Vec<_>>().join("; "))
            }
            Self::Postgres(programs) => {
                let server = Server::start(programs, &ram.join("data"), side, None)?;
                let mut client = Command::new(programs.join("psql"));
                run_all(client.args(server.words()).args(["-c", ledger::READ]))
            }
        }
    }
}

/// A PostgreSQL server; stopped on drop, as by a crash.
#[derive(Debug)]
pub(super) struct Server {
    programs: PathBuf,
    data: PathBuf,
    socket: PathBuf,
}

impl Server {
    fn start(
        programs: &Path,
        data: &Path,
        side: &Path,
        group: Option<&Cgroup>,
    ) -> Result<Self, String> {
        let command = group.map_or_else(|| Command::new("setpriv"), |it| it.command("setpriv"));
        let mut start = account(command, &programs.join("pg_ctl"));
        let log = side.join("postgres.log");
        start.args(["-w", "-t", "60", "-s", "-D"]).arg(data).arg("-l").arg(&log);
        let settings: String = SETTINGS.iter().map(|it| format!(" -c {it}")).collect();
        let options = format!("-k '{}' -c listen_addresses=''{settings}", side.display());
        let server =
            Self { programs: programs.to_owned(), data: data.to_owned(), socket: side.to_owned() };
        run_all(start.args(["-o", &options, "start"])).map_err(|error| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(4).collect();
            format!("{error}: {}", last.into_iter().rev().collect::<Vec<_>>().join("; "))
        })?;
        Ok(server)
    }

    /// The words of a client that prints bare lines.
    fn words(&self) -> Vec<String> {
        let socket = self.socket.display().to_string();
        ["-h", &socket, "-U", ACCOUNT, "-X", "-q", "-A", "-t", "-d", ACCOUNT]
            .map(str::to_owned)
            .to_vec()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let file = std::fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let mut stop = account(Command::new("setpriv"), &self.programs.join("pg_ctl"));
        stop.args(["-s", "-m", "immediate", "-D"]).arg(&self.data).arg("stop");
        // One that never ran is not there.
        let _ = run_all(&mut stop);
        // A server over a copy of its files does not start as long as its number is taken.
        let process = file.lines().next().map(|pid| Path::new("/proc").join(pid.trim()));
        let began = Instant::now();
        while process.as_ref().is_some_and(|it| it.exists()) && began.elapsed() < GONE_LIMIT {
            std::thread::sleep(POLL);
        }
    }
}

/// A client that commits one transaction after the other.
#[derive(Debug)]
pub(super) struct Load {
    count: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    client: JoinHandle<Result<(), String>>,
    /// Ends after the client.
    _server: Option<Server>,
}

impl Load {
    /// `first` is what the client is given before the schema, `print` how it prints a word.
    fn start(
        mut command: Command,
        (first, print): (&str, &'static str),
        log: &Path,
        server: Option<Server>,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(log).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let running = Running::of(child);
        let count = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err("a client without pipes".to_owned());
        };
        let first = format!("{first}{}", ledger::schema());
        let (counted, asked, log) = (Arc::clone(&count), Arc::clone(&is_over), log.to_owned());
        let client = std::thread::spawn(move || {
            let _running = running;
            let mut lines = BufReader::new(output).lines();
            let mut commit = |n: u64, text: &str| {
                let sent = input.write_all(format!("{text}{print} done {n}\n").as_bytes());
                let words = format!("done {n}");
                let is_done =
                    sent.is_ok() && lines.by_ref().map_while(Result::ok).any(|line| line == words);
                let said = || std::fs::read_to_string(&log).unwrap_or_default();
                is_done.then_some(()).ok_or_else(|| format!("transaction {n}: {}", said()))
            };
            commit(0, &first)?;
            for n in (1..).take_while(|_| !asked.load(Ordering::Relaxed)) {
                commit(n, &ledger::transaction(n))?;
                counted.store(n, Ordering::Release);
                std::thread::sleep(PAUSE);
            }
            Ok(())
        });
        Ok(Self { count, is_over, client, _server: server })
    }

    /// How many transactions were acknowledged.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Whether it goes on.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.client.is_finished() { Err("a client has ended".to_owned()) } else { Ok(()) }
    }

    /// Ends it; why it could not go on until then.
    pub(super) fn end(self) -> Result<(), String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))
    }
}

/// A program under the account of the server.
fn account(mut command: Command, program: &Path) -> Command {
    command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]).arg(program);
    command.current_dir("/").env("LC_ALL", "C");
    command
}

pub(super) fn run(program: &str, words: &[&str]) -> Result<String, String> {
    run_all(Command::new(program).args(words))
}

/// What a command prints that ends with status 0.
fn run_all(command: &mut Command) -> Result<String, String> {
    let own = std::mem::replace(command, Command::new("true"));
    let ran = process::run(own, LIMIT).and_then(Finished::success);
    ran.map(|finished| finished.stdout).map_err(|error| error.to_string())
}
