//! PostgreSQL over its socket: the sum of a column of `pg_stat_database` by one connection that
//! stays open, by the protocol's version 3.
//!
//! It connects as psql does: PGHOST, PGPORT, PGUSER, PGDATABASE, else the usual socket and the name
//! of the caller. Root is rarely a role of the server, so root connects as the account `postgres`,
//! by which the server also knows who it is (peer). No password is ever sent.

use super::number::parsed;
use super::socket::{Stream, is_timeout};
use super::{ANSWER_LIMIT, WorkReader};
use std::io::{Error, ErrorKind, Result as IoResult};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Where its socket is, if PGHOST does not say it.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// Its port, which is in the name of its socket too.
const USUAL_PORT: u16 = 5432;
/// The account of the server on most systems.
const ACCOUNT: &str = "postgres";
/// A longer message is no answer to our question.
const LONGEST_MESSAGE: usize = 64 << 10;
/// One read waits so long, so that the limit of the whole answer is kept.
const READ_LIMIT: Duration = Duration::from_millis(100);
/// Version 3.0 of the protocol.
const VERSION: u32 = 0x0003_0000;

/// A column, and the connection by which it is read.
#[derive(Debug)]
pub(super) struct Postgres {
    column: String,
    connection: Option<Connection>,
}

/// A connection that is ready for a query.
struct Connection {
    stream: Box<dyn Stream + Send>,
    until: Instant,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Who connects.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    name: String,
    /// The numbers of the user and group, if they are not the caller's.
    ids: Option<(u32, u32)>,
}

impl Postgres {
    pub fn new(column: String) -> Self {
        Self { column, connection: None }
    }

    fn ask(&mut self) -> IoResult<Result<i64, String>> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open()?);
        }
        let column = &self.column;
        let query = format!("SELECT sum(\"{column}\") FROM pg_catalog.pg_stat_database\0");
        match &mut self.connection {
            Some(connection) => connection.query(&query),
            None => Err(Error::other("no connection")),
        }
    }
}

impl WorkReader for Postgres {
    fn read(&mut self, _is_ending: &AtomicBool) -> Result<i64, String> {
        let answer = self.ask();
        if answer.is_err() {
            self.connection = None;
        }
        let failed = |error: Error| format!("PostgreSQL: {}", sys::plain_reason(&error));
        answer.map_err(failed)?.map_err(|why| format!("PostgreSQL: {why}"))
    }
}

impl Connection {
    fn open() -> IoResult<Self> {
        let account = account();
        let connected = || connect();
        let stream = match account.ids {
            Some((uid, gid)) => {
                sys::process::as_user(uid, gid, connected).map_err(|error| error.source)?
            }
            None => connected(),
        }?;
        let mut connection = Self { stream, until: Instant::now() + ANSWER_LIMIT };
        let database = variable("PGDATABASE").unwrap_or_else(|| "postgres".to_owned());
        connection.stream.write_all(&startup(&account.name, &database))?;
        loop {
            let (kind, body) = connection.message()?;
            match kind {
                b'R' => must_be_admitted(&body)?,
                b'E' => return Err(Error::other(refusal(&body))),
                b'Z' => return Ok(connection),
                _ => {}
            }
        }
    }

    fn query(&mut self, query: &str) -> IoResult<Result<i64, String>> {
        self.until = Instant::now() + ANSWER_LIMIT;
        let mut asked = vec![b'Q'];
        asked.extend((query.len() as u32 + 4).to_be_bytes());
        asked.extend(query.bytes());
        self.stream.write_all(&asked)?;
        let mut answer = Err("no row".to_owned());
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'D' => answer = first_column(&body).ok_or_else(|| "no number".to_owned()),
                b'E' => answer = Err(refusal(&body)),
                b'Z' => return Ok(answer),
                _ => {}
            }
        }
    }

    /// The next message: its kind and its body.
    fn message(&mut self) -> IoResult<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let body = length.checked_sub(4).filter(|body| *body <= LONGEST_MESSAGE);
        let mut bytes = vec![0; body.ok_or_else(|| Error::other("it does not speak to us"))?];
        self.fill(&mut bytes)?;
        Ok((head[0], bytes))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> IoResult<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(Error::other("it has closed the connection")),
                Ok(read) => filled += read,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            if filled < buffer.len() && Instant::now() >= self.until {
                let limit = ANSWER_LIMIT.as_secs();
                return Err(Error::other(format!("no answer within {limit} s")));
            }
        }
        Ok(())
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn connect() -> IoResult<Box<dyn Stream + Send>> {
    let port = variable("PGPORT")
        .map_or(Ok(USUAL_PORT), |port| port.parse::<u16>())
        .map_err(|_| Error::other("PGPORT is no port"))?;
    match variable("PGHOST") {
        Some(host) if !host.starts_with('/') => {
            let known = if host == "localhost" { "127.0.0.1" } else { host.as_str() };
            let here = known
                .parse::<IpAddr>()
                .ok()
                .filter(IpAddr::is_loopback)
                .ok_or_else(|| Error::other("PGHOST is not on this machine"))?;
            let stream = TcpStream::connect_timeout(&SocketAddr::new(here, port), ANSWER_LIMIT)?;
            stream.set_read_timeout(Some(READ_LIMIT))?;
            stream.set_write_timeout(Some(ANSWER_LIMIT))?;
            Ok(Box::new(stream))
        }
        host => {
            let usual = SOCKET_DIRECTORIES.map(PathBuf::from).to_vec();
            let directories = host.map_or(usual, |host| vec![PathBuf::from(host)]);
            let name = format!(".s.PGSQL.{port}");
            let mut fault = Error::from(ErrorKind::NotFound);
            for directory in directories {
                match UnixStream::connect(directory.join(&name)) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(READ_LIMIT))?;
                        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
                        return Ok(Box::new(stream));
                    }
                    Err(error) if fault.kind() == ErrorKind::NotFound => fault = error,
                    Err(_) => {}
                }
            }
            let why = sys::plain_reason(&fault);
            Err(Error::other(format!("no server at the socket {name} ({why})")))
        }
    }
}

/// PGUSER, else the caller; for root the server's own account, if there is one.
fn account() -> Account {
    let own = sys::process::effective_uid();
    let accounts = sys::file::open_input("/etc/passwd".as_ref()).ok().and_then(|mut file| {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file, &mut text).ok().map(|_| text)
    });
    account_of(own, variable("PGUSER"), &accounts.unwrap_or_default())
}

fn account_of(own: u32, given: Option<String>, accounts: &str) -> Account {
    let mut rows = accounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(':').collect();
        let ids = (words.get(2)?.parse::<u32>().ok()?, words.get(3)?.parse::<u32>().ok()?);
        Some((words.first()?.to_string(), ids))
    });
    if own == 0 {
        let wanted = given.clone().unwrap_or_else(|| ACCOUNT.to_owned());
        if let Some((_, ids)) = rows.find(|(name, _)| *name == wanted) {
            return Account { name: wanted, ids: Some(ids).filter(|(uid, _)| *uid != 0) };
        }
        return Account { name: wanted, ids: None };
    }
    let name = given.or_else(|| rows.find(|(_, (uid, _))| *uid == own).map(|(name, _)| name));
    Account { name: name.unwrap_or_else(|| ACCOUNT.to_owned()), ids: None }
}

fn startup(user: &str, database: &str) -> Vec<u8> {
    let mut body = VERSION.to_be_bytes().to_vec();
    for word in ["user", user, "database", database, "application_name", "terrace"] {
        body.extend(word.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    body.push(0);
    let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
    message.extend(body);
    message
}

/// The answer 0 admits; all others ask for a password or more.
fn must_be_admitted(body: &[u8]) -> IoResult<()> {
    if body.get(..4) == Some(&[0; 4]) {
        return Ok(());
    }
    let why = "it asks for a password, which is not sent: use command:psql -Atc 'SELECT ...', \
               which reads .pgpass";
    Err(Error::other(why))
}

/// The first column of a row, as a number; a sum of nothing is 0.
fn first_column(body: &[u8]) -> Option<i64> {
    let length = i32::from_be_bytes(body.get(2..6)?.try_into().ok()?);
    if length < 0 {
        return Some(0);
    }
    let text = body.get(6..6 + usize::try_from(length).ok()?)?;
    parsed(std::str::from_utf8(text).ok()?)
}

/// The words of an error of the server.
fn refusal(body: &[u8]) -> String {
    let fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
    let mut words = fields.filter(|(kind, _)| **kind == b'M');
    let found = words.next().map(|(_, text)| String::from_utf8_lossy(text).into_owned());
    found.unwrap_or_else(|| "it refuses".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_connects_as_the_account_of_the_server() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres:x:70:71::/:/bin/sh\nbob:x:9:9::/:x\n";
        let of = |own, given: Option<&str>, accounts| {
            let account = account_of(own, given.map(str::to_owned), accounts);
            (account.name, account.ids)
        };
        assert_eq!(of(0, None, accounts), ("postgres".to_owned(), Some((70, 71))));
        assert_eq!(of(0, Some("bob"), accounts), ("bob".to_owned(), Some((9, 9))));
        assert_eq!(of(0, Some("root"), accounts), ("root".to_owned(), None));
        assert_eq!(of(0, None, ""), ("postgres".to_owned(), None));
        assert_eq!(of(9, None, accounts), ("bob".to_owned(), None));
        assert_eq!(of(9, Some("app"), accounts), ("app".to_owned(), None));
    }

    #[test]
    fn messages_are_understood_and_nonsense_is_not() {
        assert_eq!(first_column(b"\0\x01\0\0\0\x03512"), Some(512));
        assert_eq!(first_column(b"\0\x01\xff\xff\xff\xff"), Some(0));
        assert_eq!(first_column(b"\0\x01\0\0\0\x09512"), None);
        assert_eq!(first_column(b""), None);
        assert_eq!(
            refusal(b"SERROR\0C42703\0Mcolumn \"x\" does not exist\0\0"),
            "column \"x\" does not exist"
        );
        assert_eq!(refusal(b""), "it refuses");
        assert!(must_be_admitted(&[0, 0, 0, 0]).is_ok());
        assert!(must_be_admitted(&[0, 0, 0, 10]).is_err());
        assert!(must_be_admitted(&[]).is_err());
        let message = startup("a", "b");
        assert_eq!(message.len(), u32::from_be_bytes(message[..4].try_into().unwrap()) as usize);
    }
}
