//! Something with a working set: started in the lab's group, asked at random places, its
//! answers compared with what was written. Our own process and the databases alike
//! answer each line with a line; so this is no `sys::helper::Helper`.

use super::described::{Application, Sql};
use crate::{Error, Host, Result};
use machine::Root;
use model::random::Random;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use sys::directory::Directory;

/// What a row of 1 KiB takes in a table: three in a page of 4 KiB.
const ROW_BYTES: u64 = 1365;
/// An answer is waited for so long: the slowest is the check of everything, from a slow disk.
const PATIENCE: Duration = Duration::from_secs(900);
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/sbin"];
const LOOK_NS: u64 = 100_000_000;
/// How long it may take to end by itself: PostgreSQL writes what is in its buffers.
const FAREWELL: Duration = Duration::from_secs(10);
const FAREWELL_LOOK: Duration = Duration::from_millis(10);

/// A last line is looked for in so much of a log: it may be long, and is another user's.
const LOG_END_BYTES: u64 = 4096;

/// What came of some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// How long each took.
    pub latencies_ns: Vec<u64>,
    /// How many pages or rows were not what was written.
    pub wrong: u64,
}

/// Where an application lives.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationHome<'h> {
    /// The directory of its group; none on the whole machine.
    pub group: Option<&'h Path>,
    /// The directory for its files, which it may write to and come to own.
    pub directory: &'h Directory,
    /// Its standard error, outside of that directory.
    pub log: &'h File,
    /// Whether its files are there already.
    pub has_files: bool,
}

/// An application that runs; ended on drop.
#[derive(Debug)]
pub struct Running<'a> {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    described: &'a Application,
    log: File,
    rows: u64,
    random: Random,
}

/// What is not installed of what the application needs; `None` if it can be started.
pub fn missing(root: &Root, application: &Application) -> Option<String> {
    let sql = application.sql.as_ref()?;
    let programs = [sql.prepare.first(), sql.client.first()];
    let absent = programs.into_iter().flatten().find(|name| program(name).is_none());
    let user = sql.user.as_ref().filter(|user| numbers_of(root, user).is_none());
    absent
        .map(|name| format!("{name} is not installed"))
        .or_else(|| user.map(|user| format!("there is no user {user}")))
}

impl<'a> Running<'a> {
    /// Starts it with a working set of `bytes`, made if its files are not there, and checked: all
    /// of it is in memory then.
    ///
    /// # Errors
    /// Where it cannot be started, or does not answer.
    pub fn start(
        host: &Host,
        root: &Root,
        described: &'a Application,
        place: ApplicationHome,
        bytes: u64,
    ) -> Result<Self> {
        let bytes = described.content_bytes(bytes);
        let rows = bytes / ROW_BYTES;
        let mut running = match &described.sql {
            None => {
                let mut words = host.programs.lab.command_line();
                words.extend(["working-set".into(), bytes.to_string().into(), "scattered".into()]);
                Self::spawn(host, described, place, None, words, rows)?
            }
            Some(sql) => Self::database(host, root, described, sql, place, bytes)?,
        };
        match &described.sql {
            None => running.numbers().map(drop)?,
            Some(_) if place.has_files => {}
            Some(sql) => {
                for statement in &sql.make {
                    running.send(&statement.replace("{rows}", &rows.to_string()))?;
                }
            }
        }
        match running.wrong()? {
            0 => Ok(running),
            wrong => Err(running.failed(&format!("{wrong} of what it was given are wrong"))),
        }
    }

    fn database(
        host: &Host,
        root: &Root,
        described: &'a Application,
        sql: &Sql,
        place: ApplicationHome,
        bytes: u64,
    ) -> Result<Self> {
        let user = sql.user.as_ref().and_then(|user| numbers_of(root, user));
        if let Some((uid, gid)) = user {
            std::os::unix::fs::fchown(place.directory.file(), Some(uid), Some(gid))
                .map_err(|error| application_error(described, &sys::plain_reason(&error)))?;
        }
        let words = |words: &[String]| -> Vec<OsString> {
            let directory = place.directory.path().to_string_lossy();
            let half_kib = (bytes / 2048).to_string();
            let named = words.first().and_then(|name| program(name)).map(OsString::from);
            let filled = words.iter().skip(1).map(|word| {
                let word = word.replace("{dir}", &directory);
                word.replace("{half_kib}", &half_kib).into()
            });
            named.into_iter().chain(filled).collect()
        };
        if !sql.prepare.is_empty() && !place.has_files {
            let mut prepare = member(host, described, place, user, words(&sql.prepare))?;
            let status = prepare.stdin(Stdio::null()).stdout(Stdio::null()).status();
            if !status.is_ok_and(|status| status.success()) {
                return Err(application_error(described, "its files cannot be made"));
            }
        }
        Self::spawn(host, described, place, user, words(&sql.client), bytes / ROW_BYTES)
    }

    fn spawn(
        host: &Host,
        described: &'a Application,
        place: ApplicationHome,
        user: Option<(u32, u32)>,
        words: Vec<OsString>,
        rows: u64,
    ) -> Result<Self> {
        let failed = |error| application_error(described, &sys::plain_reason(&error));
        let log = place.log.try_clone().map_err(failed)?;
        let mut child = member(host, described, place, user, words)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        match output {
            Some(output) => Ok(Self {
                child,
                input,
                output: BufReader::new(output),
                described,
                log,
                rows,
                random: Random(rows),
            }),
            None => Err(application_error(described, "it has no output")),
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends so many requests at random places.
    ///
    /// # Errors
    /// Where it does not answer, and on Ctrl-C.
    pub fn ask(&mut self, requests: u32) -> Result<Answers> {
        let Some(sql) = &self.described.sql else {
            self.send(&format!("{{\"lookups\": {requests}}}"))?;
            let mut latencies_ns = self.numbers()?;
            let wrong = latencies_ns.drain(..1.min(latencies_ns.len())).sum();
            return Ok(Answers { latencies_ns, wrong });
        };
        let mut answers = Answers::default();
        for _ in 0..requests {
            let id = self.random.below(self.rows);
            let request = sql.ask.replace("{id}", &id.to_string());
            let start = Instant::now();
            self.send(&request)?;
            let answer = self.answer()?;
            answers.latencies_ns.push(start.elapsed().as_nanos() as u64);
            answers.wrong += u64::from(answer != payload(id));
        }
        Ok(answers)
    }

    /// How much of its whole content is not what was written.
    ///
    /// # Errors
    /// As [`Running::ask`].
    pub fn wrong(&mut self) -> Result<u64> {
        let Some(sql) = &self.described.sql else {
            self.send("\"compare\"")?;
            return Ok(self.numbers()?.iter().sum());
        };
        self.send(&sql.count_wrong)?;
        // A database may have answered something about its table before.
        loop {
            if let Some(count) = self.answer()?.strip_prefix("wrong ") {
                let number = count.parse();
                return number.map_err(|_| self.failed("its answer is not a number"));
            }
        }
    }

    /// The next answer of [`crate::working_set`].
    fn numbers(&mut self) -> Result<Vec<u64>> {
        let answer = serde_json::from_str(&self.answer()?);
        answer.map_err(|_| self.failed("its answer is not a list of numbers"))
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let mut input = self.input.as_ref();
        let written = input.as_mut().map(|input| writeln!(input, "{line}"));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed("it ended")),
        }
    }

    /// The answer in its next line that has one.
    fn answer(&mut self) -> Result<String> {
        let (after, before) = match &self.described.sql {
            Some(sql) => (sql.answer_after.as_str(), sql.answer_before.as_str()),
            None => ("", ""),
        };
        loop {
            let line = self.line()?;
            if let Some(answer) = between(line.trim_end_matches('\n'), after, before) {
                return Ok(answer.to_owned());
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        let start = Instant::now();
        // A line may be in the buffer already, where no descriptor shows it.
        while self.output.buffer().is_empty() {
            let source = Some(self.output.get_ref().as_fd());
            if sys::poll::readable([source], Some(LOOK_NS)) == [true] {
                break;
            }
            if sys::interrupt::requested() {
                return Err(Error::failed("interrupted"));
            }
            if start.elapsed() > PATIENCE {
                return Err(self.failed("it does not answer"));
            }
        }
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(bytes) if bytes > 0 => Ok(line),
            _ => Err(self.failed("it ended")),
        }
    }

    fn failed(&self, why: &str) -> Error {
        match last_line(&self.log) {
            Some(last) => application_error(self.described, &format!("{why} ({last})")),
            None => application_error(self.described, why),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // A database ends with its input, and then takes away what it has outside of its directory:
        // a segment of shared memory stays when it is killed.
        self.input = None;
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < FAREWELL {
            std::thread::sleep(FAREWELL_LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that joins the group and becomes `words`, its standard error kept in a file.
fn member(
    host: &Host,
    described: &Application,
    place: ApplicationHome,
    user: Option<(u32, u32)>,
    words: Vec<OsString>,
) -> Result<Command> {
    let mut line = host.programs.lab.command_line();
    line.push("member".into());
    if let Some(group) = place.group {
        line.extend(["--group".into(), group.into()]);
    }
    if let Some((uid, gid)) = user {
        line.extend(["--user".into(), format!("{uid}:{gid}").into()]);
    }
    line.push("--".into());
    line.extend(words);
    let failed = |error| application_error(described, &sys::plain_reason(&error));
    let log = place.log.try_clone().map_err(failed)?;
    let mut command = Command::new(&line[0]);
    command
        .args(&line[1..])
        .stderr(log)
        .current_dir(place.directory.path())
        .env("LC_ALL", "C")
        // Ctrl-C is only for the lab.
        .process_group(0);
    Ok(command)
}

/// The last line of an application's standard error.
fn last_line(log: &File) -> Option<String> {
    let bytes = log.metadata().ok()?.len();
    let mut end = vec![0; bytes.min(LOG_END_BYTES) as usize];
    let start = bytes.saturating_sub(LOG_END_BYTES);
    log.read_exact_at(&mut end, start).ok()?;
    let text = String::from_utf8_lossy(&end);
    text.lines().next_back().map(str::to_owned)
}

fn application_error(described: &Application, why: &str) -> Error {
    Error::failed(format!("cannot work with {}: {why}", described.id))
}

/// The content of a row: 1 KiB made of its key.
fn payload(id: u64) -> String {
    format!("{:016}", id * 7919).repeat(64)
}

fn between<'t>(line: &'t str, after: &str, before: &str) -> Option<&'t str> {
    let rest = match after {
        "" => line,
        _ => line.split_once(after)?.1,
    };
    match before {
        "" => Some(rest),
        _ => Some(rest.split_once(before)?.0),
    }
}

/// Where a program is: on PATH, among those for root, or where Debian keeps those of PostgreSQL's
/// newest version.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    versions.sort();
    let system = SYSTEM_PROGRAMS.iter().map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(system).chain(versions.into_iter().rev());
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}

/// The numbers of a user and its group, from /etc/passwd.
fn numbers_of(root: &Root, user: &str) -> Option<(u32, u32)> {
    let text = root.read("/etc/passwd").ok()?;
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.first() == Some(&user))?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_between_its_marks() {
        let line = "backend> \t 1: payload = \"0042\"\t(typeid = 25, len = -1)";
        assert_eq!(between(line, "= \"", "\"\t"), Some("0042"));
        assert_eq!(between("\t----", "= \"", "\"\t"), None);
        assert_eq!(between("0042", "", ""), Some("0042"));
    }

    #[test]
    fn a_row_is_made_of_its_key() {
        assert_eq!(payload(1).len(), 1024);
        assert!(payload(2).starts_with("00000000000158380000"));
    }

    #[test]
    fn a_user_is_found_by_name() {
        let tree = testkit::FakeRoot::bare().file("/etc/passwd", "a:x:1:2::/:/x\nb:x:3:4::/:/x\n");
        let root = Root::at(tree.path());
        assert_eq!(numbers_of(&root, "b"), Some((3, 4)));
        assert_eq!(numbers_of(&root, "c"), None);
    }
}
