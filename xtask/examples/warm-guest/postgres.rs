//! PostgreSQL as a database under trial: Debian's server with its usual settings, asked by `psql`.
//!
//! Its shared buffers are shared memory, which no process counts as its own in swap: what left
//! memory is seen by what the machine has of it.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use testkit::WorkingSet;

use crate::Outcome;
use crate::database::{Database, PRIME};
use crate::system::{self, PAGE, failed, run};

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
const FOLDER: &str = "/mnt/postgres";
/// `nobody`: the server refuses root.
const USER: u32 = 65534;

/// The server and the client that asks it; both ended on drop.
pub(crate) struct Postgres {
    client: WorkingSet,
    shared_pages: u64,
    _server: Server,
}

impl Database for Postgres {
    const KINDS: &'static [&'static str] = &[];
    const TEXT: &'static str = "repeat(lpad(id::text, 32, '0'), 28)";

    fn build(rows: usize) -> Outcome<()> {
        fs::create_dir(FOLDER).map_err(failed(FOLDER))?;
        chown(FOLDER, Some(USER), Some(USER)).map_err(failed(FOLDER))?;
        as_user(&["initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-D", FOLDER])?;
        let _server = Server::start()?;
        let sql = format!(
            "CREATE TABLE t(id bigint PRIMARY KEY, v text); \
             INSERT INTO t SELECT id, {} FROM generate_series(0, {rows} - 1) AS id; \
             VACUUM ANALYZE t; SELECT count(*) FROM t;",
            Self::TEXT
        );
        WorkingSet::spawn(psql())?.ask(&sql).map(drop)
    }

    fn start(rows: usize) -> Outcome<Self> {
        system::read_once(FOLDER)?;
        let shared_before = shared_pages()?;
        let server = Server::start()?;
        let mut client = WorkingSet::spawn(psql())?;
        // Row by row over the index: a scan of the table would go through it in order.
        client.ask(&format!(
            "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; \
             SELECT sum(length(t.v)) FROM generate_series(0::bigint, {rows} - 1) AS i \
             JOIN t ON t.id = (i * {PRIME}) % {rows};"
        ))?;
        let shared_pages = shared_pages()?.saturating_sub(shared_before);
        Ok(Self { client, shared_pages, _server: server })
    }

    fn client(&mut self) -> &mut WorkingSet {
        &mut self.client
    }

    fn pids(&self) -> Outcome<Vec<u32>> {
        let text = run(&["pgrep", "-x", "postgres"])?;
        let server = text.split_whitespace().map(str::parse::<u32>);
        let own = std::iter::once(Ok(self.client.pid()));
        server.chain(own).collect::<Result<_, _>>().map_err(failed("pgrep"))
    }

    fn pages_in_swap(&self) -> Outcome<u64> {
        Ok(self.shared_pages.saturating_sub(shared_pages()?))
    }
}

/// A server that runs; stopped on drop.
struct Server;

impl Server {
    fn start() -> Outcome<Self> {
        // Processes that come and go would be named to a restore and be gone.
        let options = format!("-k {FOLDER} -c listen_addresses= -c autovacuum=off");
        let log = format!("{FOLDER}/log");
        as_user(&[
            "pg_ctl", "start", "-s", "-w", "-t", "120", "-D", FOLDER, "-l", &log, "-o", &options,
        ])?;
        Ok(Self)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = as_user(&["pg_ctl", "stop", "-s", "-m", "fast", "-D", FOLDER]);
    }
}

fn as_user(words: &[&str]) -> Outcome<String> {
    let program = format!("{PROGRAMS}/{}", words[0]);
    let user = USER.to_string();
    let mut all = vec!["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"];
    all.extend(["--", &program]);
    all.extend(&words[1..]);
    run(&all)
}

/// A client that answers in bare numbers, once for a line.
fn psql() -> Command {
    let mut command = Command::new(format!("{PROGRAMS}/psql"));
    command.args(["-h", FOLDER, "-U", "postgres", "-XAtq"]);
    command.args(["-c", "SELECT 0", "-f", "-"]);
    command
}

/// Pages of shared memory that the machine holds in RAM.
fn shared_pages() -> Outcome<u64> {
    Ok(system::meminfo_bytes("Shmem:")? / PAGE)
}
