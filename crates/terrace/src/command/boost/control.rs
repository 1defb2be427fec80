//! How a served cache is asked: one line to its socket, one line of JSON back. The socket is in a
//! directory that only root can enter.

use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::CacheStatus;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::lock::{self, LockMode};

/// The file that the volume is served as.
pub(super) const EXPORT: &str = "volume";
/// A link to the block device, for /etc/fstab: its number is another one each time.
pub(super) const DEVICE: &str = "device";
/// What a recorder reads.
pub(super) const COUNTERS: &str = "counters";
const SOCKET: &str = "socket";
const CACHES: &str = "boost";
/// Locks and logs of services, which outlive the directory of a cache.
const SERVICES: &str = "boost-services";
/// How long one service may take to follow another.
pub(super) const SUCCESSION: Duration = Duration::from_secs(5);
/// A line that is asked is short, and so is an answer.
pub(super) const LINE_BYTES: u64 = 64 << 10;
/// How long one end waits for the line of the other.
const LINE_WAIT: Duration = Duration::from_secs(5);
/// How long the end of a cache may take.
const DETACH_WAIT: Duration = Duration::from_secs(120);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    Status,
    /// Whether a byte of the volume is cached.
    IsCached(u64),
    /// What it has brought.
    History,
    /// What of these parts of the volume, each an offset and a length, is cached.
    Coverage(Vec<(u64, u64)>),
    /// Fill the cache ahead: the connection is then one of [`super::filling`]. A fill that goes on
    /// with another service says what was brought before.
    Fill(FilledBefore),
    Detach,
}

/// What a fill has brought by services that ended since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FilledBefore {
    /// Bytes that the flash took.
    pub(super) stored_bytes: u64,
    /// Frames that were cached for them.
    #[serde(default)]
    pub(super) frames: u64,
}

/// How the end of a cache was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Detached {
    /// Whether it is proved fresh.
    pub(super) is_proved: bool,
    /// Why it did not end.
    pub(super) refused: Option<String>,
}

/// The directory of a cache while it is served; made if it was not there.
pub(super) fn directory(name: &str) -> Result<Directory> {
    Ok(Directory::create_private(&place(name)?)?)
}

/// Where that is.
pub(super) fn place(name: &str) -> Result<PathBuf> {
    let own = record::run_directory::own()?;
    Ok(own.path().join(CACHES).join(name))
}

/// Takes a name for the service that has the file open.
///
/// # Errors
/// `Impossible` if another one has it.
pub(super) fn take_name(name: &str) -> Result<File> {
    let (services, name) = (services()?, OsStr::new(name));
    loop {
        let file = services.open_or_create(name, 0o600)?;
        if !lock::try_take(&file, LockMode::Exclusive)? {
            return Err(Error::new(Exit::Impossible, "another service has this name"));
        }
        // The one before may have removed it after it was opened here.
        let place = |file: Metadata| (file.dev(), file.ino());
        let is_there = services.metadata(name).ok().map(place);
        if is_there.is_some() && is_there == file.metadata().ok().map(place) {
            return Ok(file);
        }
    }
}

/// Removes the file of a name that this service has.
pub(super) fn give_name_back(name: &str) {
    if let Ok(services) = services() {
        let _ = services.remove(OsStr::new(name));
    }
}

/// Where services have their locks and what they said.
pub(super) fn services() -> Result<Directory> {
    let own = record::run_directory::own()?;
    Ok(Directory::create_private(&own.path().join(SERVICES))?)
}

/// The directory of a cache, if it is served.
fn existing(name: &str) -> Result<Option<Directory>> {
    let Some(own) = record::run_directory::existing()? else { return Ok(None) };
    match Directory::open_private(&own.path().join(CACHES).join(name)) {
        Err(error) if error.kind == sys::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// The names of all that have such a directory.
pub(super) fn names() -> Result<Vec<String>> {
    let Some(own) = record::run_directory::existing()? else { return Ok(Vec::new()) };
    let Ok(caches) = own.subdirectory(OsStr::new(CACHES)) else { return Ok(Vec::new()) };
    let found = caches.names()?.into_iter().filter_map(|name| name.into_string().ok());
    let mut names: Vec<String> = found.collect();
    names.sort();
    Ok(names)
}

/// The path of a file in the directory of a cache, for calls that take no descriptor.
pub(super) fn path(directory: &Directory, name: &str) -> PathBuf {
    directory.path().join(name)
}

/// Listens for questions, in the place of a process that was killed.
///
/// # Errors
/// If the socket cannot be made.
pub(super) fn listen(directory: &Directory) -> Result<UnixListener> {
    let _ = directory.remove(OsStr::new(SOCKET));
    let failed = |error| Error::new(Exit::Partial, format!("cannot listen for questions: {error}"));
    // By the open directory: the way to it is not walked again.
    let held = format!("/proc/self/fd/{}/{SOCKET}", directory.file().as_raw_fd());
    let listener = UnixListener::bind(held).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Removes what a served cache had in its directory, and that.
pub(super) fn remove(name: &str) {
    let Ok(Some(directory)) = existing(name) else { return };
    // Also what a process left that was killed while it replaced a file.
    for file in directory.names().unwrap_or_default() {
        let _ = directory.remove(&file);
    }
    if let Ok(caches) =
        record::run_directory::own().and_then(|own| Ok(own.subdirectory(OsStr::new(CACHES))?))
    {
        let _ = caches.remove_directory(OsStr::new(name));
    }
}

/// Asks the served cache `name`, and waits while one service follows another.
///
/// # Errors
/// `Usage` if there is none of this name; if it does not answer; for other users than root.
pub(super) fn ask<A: DeserializeOwned>(name: &str, question: Question) -> Result<A> {
    ask_within(name, question, SUCCESSION)
}

/// The status of a cache that is served now.
pub(super) fn status_now(name: &str) -> Option<CacheStatus> {
    ask_within(name, Question::Status, Duration::ZERO).ok()
}

fn ask_within<A: DeserializeOwned>(
    name: &str,
    question: Question,
    patience: Duration,
) -> Result<A> {
    let failed = |error: String| unanswered(name, &error);
    let mut stream = connect(name, patience)?;
    let wait = if question == Question::Detach { DETACH_WAIT } else { LINE_WAIT };
    let line = serde_json::to_string(&question).map_err(|error| failed(error.to_string()))?;
    let mut answer = String::new();
    stream
        .set_read_timeout(Some(wait))
        .and_then(|()| stream.write_all(format!("{line}\n").as_bytes()))
        .and_then(|()| BufReader::new((&stream).take(LINE_BYTES)).read_line(&mut answer))
        .map_err(|error| failed(sys::plain_reason(&error)))?;
    serde_json::from_str(&answer).map_err(|error| failed(error.to_string()))
}

/// Connects to the served cache `name`, and waits while one service follows another.
///
/// # Errors
/// As [`ask`].
pub(super) fn connect(name: &str, patience: Duration) -> Result<UnixStream> {
    only_root()?;
    let end = Instant::now() + patience;
    loop {
        let Some(directory) = existing(name)? else {
            return Err(Error::usage(format!("no cache {name} is attached"))
                .hint("`terrace boost status` lists those that are"));
        };
        match UnixStream::connect(path(&directory, SOCKET)) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return Err(unanswered(name, "its service is being replaced")),
        }
    }
}

/// The error of a service that does not answer.
pub(super) fn unanswered(name: &str, why: &str) -> Error {
    Error::new(Exit::Partial, format!("{name} does not answer: {why}"))
}

/// Refuses other users.
pub(super) fn only_root() -> Result<()> {
    let is_root = sys::process::effective_uid() == 0;
    let refused = || {
        Error::new(Exit::Impossible, "only root can use a cache")
            .hint("sudo, and `terrace doctor` for what this machine allows")
    };
    is_root.then_some(()).ok_or_else(refused)
}

/// The question of a client; `None` if it asks nothing that is known.
pub(super) fn question(stream: &UnixStream) -> Option<Question> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Answers a client, which may have gone.
pub(super) fn answer(mut stream: &UnixStream, answer: &impl Serialize) {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    let _ = stream.write_all(&line);
}
