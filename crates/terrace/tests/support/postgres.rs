//! A PostgreSQL server of a test's own: in a temporary directory, on a socket there, in a control
//! group if asked, and gone with the test. Needs root and its programs.
// Each test file uses a part of it; and a helper of tests may unwrap as the tests do.
#![allow(dead_code, clippy::unwrap_used)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::{Cgroup, TempDir};

/// The account that the server runs as.
const ACCOUNT: &str = "postgres";

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    programs: PathBuf,
}

/// A load that ends with the test.
pub struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl PostgresServer {
    /// Starts one, with a database for pgbench of this scale (16 MB each); `group` is for it and
    /// all that it starts, so that its cache is charged there.
    ///
    /// # Errors
    /// The words for [`testkit::skip`].
    pub fn start(scale: u32, group: Option<&Cgroup>) -> Result<Self, String> {
        Self::start_in(&std::env::temp_dir(), scale, group)
    }

    /// The same with its data below `parent`.
    ///
    /// # Errors
    /// The words for [`testkit::skip`].
    pub fn start_in(parent: &Path, scale: u32, group: Option<&Cgroup>) -> Result<Self, String> {
        if !testkit::is_root() {
            return Err("root".to_owned());
        }
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let newest = versions.map(|version| version.path().join("bin")).max();
        let programs = newest.ok_or("PostgreSQL")?;
        let directory = TempDir::in_dir(parent);
        // The account of the server has to reach it.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
        let server = Self { directory, programs };
        let data = server.directory.join("data");
        server.done(server.as_account("initdb").arg("-D").arg(&data).args(["-A", "trust", "-N"]));
        let settings = format!(
            "listen_addresses=''\nunix_socket_directories='{}'\nshared_buffers=64MB\nfsync=off\n",
            server.socket_directory().display()
        );
        let path = data.join("postgresql.auto.conf");
        std::fs::write(&path, settings).unwrap();
        let program = "setpriv";
        let joins = group.map(|group| group.command(program));
        let plain = || testkit::with_default_signals(program);
        let mut start = server.account_of(joins.unwrap_or_else(plain), "pg_ctl");
        start.args(["-w", "-t", "120", "-l"]).arg(server.directory.join("log"));
        server.done(start.arg("-D").arg(&data).arg("start"));
        if scale > 0 {
            let scale = scale.to_string();
            server.done(server.client("pgbench").args(["-i", "-q", "-s", &scale, ACCOUNT]));
        }
        Ok(server)
    }

    /// Where its socket is, for PGHOST.
    pub fn socket_directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts reads by so many clients, until the load is dropped.
    pub fn load(&self, clients: u32) -> Load {
        let clients = clients.to_string();
        let mut command = self.client("pgbench");
        command.args(["-S", "-c", &clients, "-j", "1", "-T", "1000", ACCOUNT]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Load(command.spawn().unwrap())
    }

    /// The process that answers new connections, the parent of all others.
    #[allow(dead_code, reason = "not each test that has a server asks for it")]
    pub fn pid(&self) -> u32 {
        let text = std::fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }

    /// Stops or continues that process.
    #[allow(dead_code, reason = "not each test that has a server asks for it")]
    pub fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// The path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// One of its programs as a client.
    pub fn client(&self, program: &str) -> Command {
        let mut command = self.as_account(program);
        command.env("PGHOST", self.socket_directory());
        command
    }

    fn as_account(&self, program: &str) -> Command {
        self.account_of(testkit::with_default_signals("setpriv"), program)
    }

    fn account_of(&self, mut command: Command, program: &str) -> Command {
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
        command.arg(self.programs.join(program)).current_dir(self.directory.path());
        command
    }

    fn done(&self, command: &mut Command) {
        let done = command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let mut stop = self.as_account("pg_ctl");
        stop.arg("-D").arg(self.directory.join("data")).args(["-m", "immediate", "stop"]);
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}
