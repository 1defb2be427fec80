//! What counts the work, as it is typed: `pg:xact_commit`, `redis:FIELD`, `nginx:URL`,
//! `file:PATH:KEY`, `command:CMD`, each perhaps with a name before it: `orders=file:/run/orders`.
//!
//! Servers are reached on this machine only, and without encryption.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The longest name of a series of work, after its prefix.
const LONGEST_NAME: usize = 40;
/// The port of Redis.
const REDIS_PORT: u16 = 6379;
/// The port of HTTP.
const HTTP_PORT: u16 = 80;

/// What counts the work, and the name of its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkSpec {
    name: String,
    source: WorkSource,
}

/// Where a server answers on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What is asked for the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkSource {
    /// The sum of a column of `pg_stat_database`.
    Postgres { column: String },
    /// A variable of `SHOW GLOBAL STATUS`.
    Mysql { variable: String },
    /// A field of `INFO`.
    Redis { field: String, server: ServerAddress },
    /// The requests of a page of `stub_status`.
    Nginx { address: SocketAddr, host: String, path: String },
    /// A number in a file; after this key, if there is one.
    File { path: PathBuf, key: Option<String> },
    /// The first number that a command of the shell prints.
    Command { line: String },
}

impl WorkSource {
    /// Where its number comes from, for people and without anything personal.
    pub fn words(&self) -> &'static str {
        match self {
            Self::Postgres { .. } => "PostgreSQL, pg_stat_database",
            Self::Mysql { .. } => "MySQL, SHOW GLOBAL STATUS",
            Self::Redis { .. } => "Redis, INFO",
            Self::Nginx { .. } => "nginx, stub_status",
            Self::File { .. } => "the file of --work",
            Self::Command { .. } => "the command of --work",
        }
    }
}

impl WorkSpec {
    /// The name of the series, after `work.`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn source(&self) -> &WorkSource {
        &self.source
    }

    /// The word that it starts with.
    pub(super) fn word(&self) -> &'static str {
        match self.source {
            WorkSource::Postgres { .. } => "pg",
            WorkSource::Mysql { .. } => "mysql",
            WorkSource::Redis { .. } => "redis",
            WorkSource::Nginx { .. } => "nginx",
            WorkSource::File { .. } => "file",
            WorkSource::Command { .. } => "command",
        }
    }
}

impl FromStr for WorkSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (given, rest) = match named {
            Some((name, rest)) => (Some(name), rest),
            None => (None, text),
        };
        let known = "pg:COLUMN, mysql:VARIABLE, redis:FIELD, nginx:URL, file:PATH or command:CMD";
        let (word, what) = rest.split_once(':').ok_or_else(|| format!("use {known}"))?;
        let (usual, source) = match word {
            "pg" => (what.to_owned(), WorkSource::Postgres { column: name(what)? }),
            "mysql" => (what.to_owned(), WorkSource::Mysql { variable: name(what)? }),
            "redis" => redis(what)?,
            "nginx" => ("requests".to_owned(), nginx(what)?),
            "file" => file(what)?,
            "command" if !what.trim().is_empty() && !what.contains('\0') => {
                ("command".to_owned(), WorkSource::Command { line: what.to_owned() })
            }
            "command" => return Err("command: needs a command".to_owned()),
            _ => return Err(format!("`{word}` is unknown: use {known}")),
        };
        Ok(Self { name: series_name(given.unwrap_or(&usual)), source })
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(is_letter)
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!("a name has 1 to {LONGEST_NAME} letters, digits and `_`"))
}

/// A name for the series of whatever was typed.
fn series_name(text: &str) -> String {
    let letters = text.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' });
    let name: String = letters.take(LONGEST_NAME).collect();
    if name.is_empty() { "done".to_owned() } else { name }
}

/// `FIELD`, `FIELD@PORT`, `FIELD@/socket`.
fn redis(text: &str) -> Result<(String, WorkSource), String> {
    let (field, at) = text.split_once('@').map_or((text, None), |(field, at)| (field, Some(at)));
    let server = match at {
        None => ServerAddress::Tcp(loopback(REDIS_PORT)),
        Some(path) if path.starts_with('/') => ServerAddress::Unix(path.into()),
        Some(port) => {
            let port = port.parse().map_err(|_| "after @ comes a port or the path of a socket")?;
            ServerAddress::Tcp(loopback(port))
        }
    };
    Ok((field.to_owned(), WorkSource::Redis { field: name(field)?, server }))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// `http://HOST[:PORT]/PATH` of this machine.
fn nginx(url: &str) -> Result<WorkSource, String> {
    const HERE: &str = "nginx: needs an address of this machine: http://127.0.0.1/stub_status";
    let rest = url.strip_prefix("http://").ok_or(HERE)?;
    let (host, path) = rest.split_once('/').ok_or(HERE)?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain(host) || !is_plain(path) {
        return Err(HERE.to_owned());
    }
    let address = if let Some(port) = host.strip_prefix("localhost") {
        let port = port.strip_prefix(':').map_or(Ok(HTTP_PORT), str::parse);
        loopback(port.map_err(|_| HERE)?)
    } else {
        let whole = host.parse::<SocketAddr>().ok();
        let bare = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        whole.or_else(|| Some(SocketAddr::new(bare.ok()?, HTTP_PORT))).ok_or(HERE)?
    };
    if !address.ip().is_loopback() {
        return Err(HERE.to_owned());
    }
    Ok(WorkSource::Nginx { address, host: host.to_owned(), path: format!("/{path}") })
}

/// `PATH`, `PATH:KEY`; a key has no slash.
fn file(text: &str) -> Result<(String, WorkSource), String> {
    let keyed = text.rsplit_once(':').filter(|(_, key)| !key.is_empty() && !key.contains('/'));
    let (path, key) = keyed.map_or((text, None), |(path, key)| (path, Some(key.to_owned())));
    if path.is_empty() || path.contains('\0') {
        return Err("file: needs a path".to_owned());
    }
    let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let usual = key.clone().or(stem).unwrap_or_default();
    Ok((usual, WorkSource::File { path: path.into(), key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> WorkSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn each_source_has_its_name() {
        for (text, name) in [
            ("pg:xact_commit", "xact_commit"),
            ("mysql:Com_commit", "Com_commit"),
            ("redis:total_commands_processed@/run/redis.sock", "total_commands_processed"),
            ("nginx:http://localhost:8080/stub_status", "requests"),
            ("file:/srv/a b/orders.txt", "orders"),
            ("file:/proc/net/snmp:InSegs", "InSegs"),
            ("command:FOO=bar wc -l /x", "command"),
            ("orders=command:wc -l < /x", "orders"),
        ] {
            assert_eq!(parsed(text).name(), name, "{text}");
        }
    }

    #[test]
    fn addresses_are_of_this_machine() {
        let server = |text: &str| match parsed(text).source {
            WorkSource::Redis { server, .. } => server,
            WorkSource::Nginx { address, .. } => ServerAddress::Tcp(address),
            _ => panic!("{text}"),
        };
        let tcp = |text: &str| ServerAddress::Tcp(text.parse().unwrap());
        assert_eq!(server("redis:x@7000"), tcp("127.0.0.1:7000"));
        assert_eq!(server("nginx:http://[::1]/s"), tcp("[::1]:80"));
        assert_eq!(server("nginx:http://127.0.0.2:81/s"), tcp("127.0.0.2:81"));
    }

    #[test]
    fn what_is_no_counter_is_refused_in_one_line() {
        for text in [
            "",
            "pg",
            "pg:",
            "pg:a;drop table x",
            "mysql:x'y",
            "redis:x@y",
            "redis:x y",
            "nginx:http://example.org/stub_status",
            "nginx:https://127.0.0.1/x",
            "nginx:http://127.0.0.1",
            "nginx:http://127.0.0.1/a\r\nHost: b",
            "nginx:http://10.0.0.1/x",
            "file:",
            "command: ",
            "carbon:x",
        ] {
            let refused = text.parse::<WorkSpec>().unwrap_err();
            assert!(!refused.is_empty() && !refused.contains('\n'), "{text}: {refused}");
        }
    }
}
