//! SQLite as a database under trial: the shell, which holds the whole table in its own cache. That
//! is memory of its own, in the layout that its allocator gives as rows are asked for.

use std::process::Command;

use testkit::WorkingSet;

use crate::Outcome;
use crate::database::{Database, PRIME, ROW_BYTES};
use crate::system::{self, run};

const FILE: &str = "/mnt/rows.db";

/// The shell that runs.
pub(crate) struct Sqlite(WorkingSet);

impl Database for Sqlite {
    const KINDS: &'static [&'static str] = &["--only", "anonymous"];
    const TEXT: &'static str = "replace(hex(zeroblob(14)), '0', printf('%032d', id))";

    fn build(rows: usize) -> Outcome<()> {
        let sql = format!(
            "PRAGMA journal_mode=OFF; CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); \
             WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id + 1 < {rows}) \
             INSERT INTO t SELECT id, {} FROM n;",
            Self::TEXT
        );
        run(&["sqlite3", FILE, &sql]).map(drop)
    }

    fn start(rows: usize) -> Outcome<Self> {
        system::read_once(FILE)?;
        let cache_kib = rows * ROW_BYTES * 2 / 1024;
        let mut shell = Command::new("sqlite3");
        shell.args(["-cmd", &format!("PRAGMA cache_size=-{cache_kib}")]);
        shell.args(["-cmd", "SELECT 0", FILE]);
        let mut sqlite = WorkingSet::spawn(shell)?;
        sqlite.ask(&format!(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}) \
             SELECT sum(length(t.v)) FROM n CROSS JOIN t ON t.id = (n.i * {PRIME}) % {rows};"
        ))?;
        Ok(Self(sqlite))
    }

    fn client(&mut self) -> &mut WorkingSet {
        &mut self.0
    }

    fn pids(&self) -> Outcome<Vec<u32>> {
        Ok(vec![self.0.pid()])
    }

    fn pages_in_swap(&self) -> Outcome<u64> {
        system::swapped_pages(self.0.pid())
    }
}
