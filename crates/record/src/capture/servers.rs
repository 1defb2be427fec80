//! The processes outside of a command that it is connected to: what it waits for when it waits for
//! an answer.
//!
//! 1. The descriptors of the command's processes name their sockets and pipes by inode.
//! 2. The other end of a Unix socket comes from the kernel's socket diagnosis, that of a connection
//!    to this machine from /proc/net/tcp, and a pipe has one inode for both.
//! 3. The owner of the other end is looked for among the descriptors of all other processes.
//!
//! Step 3 costs some milliseconds on a machine with 300 processes, so it is done at a few times,
//! ever further apart, and only for a command that is connected to anything. A server that forks a
//! process for each connection is named by its first process.

use crate::process_tree::{numbers, parent, parents_around, state_and_parent};
use model::recording::{ServerFacts, ServerLink};
use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::unix_diag::UnixDiag;

/// The first look; each next one comes after three times as long.
const FIRST_LOOK_NS: u64 = 150_000_000;
const NEXT_LOOK_TIMES: u64 = 3;

/// More descriptors are not looked at in one look: a tenth of a second.
const MOST_DESCRIPTORS: usize = 50_000;

/// More connections of a command are not followed.
const MOST_CONNECTIONS: usize = 256;

/// Standard input; a pipe at another descriptor is seldom what a command waits for.
const STANDARD_INPUT: u32 = 0;
/// Sockets at these are the command's own terminal or log.
const LAST_STANDARD: u32 = 2;

/// A server's parent of the same name is the server, at most so far up.
const MOST_PARENTS: usize = 4;

/// What was found so far.
#[derive(Debug)]
pub(super) struct Servers {
    command: u32,
    next_ns: u64,
    found: Vec<ServerFacts>,
}

/// What a descriptor of the command is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Connection {
    /// The inode of the other end.
    inode: u64,
    link: ServerLink,
    address: String,
}

impl Servers {
    /// Of a command that starts at `now_ns`.
    pub(super) fn new(command: u32, now_ns: u64) -> Self {
        Self { command, next_ns: now_ns + FIRST_LOOK_NS, found: Vec::new() }
    }

    /// How long it is until the next look.
    pub(super) fn wait_ns(&self, now_ns: u64) -> u64 {
        self.next_ns.saturating_sub(now_ns)
    }

    /// Looks, if it is time to.
    pub(super) fn look_if_due(&mut self, started_ns: u64, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        self.look();
        let since_ns = now_ns.saturating_sub(started_ns).max(FIRST_LOOK_NS);
        self.next_ns = started_ns + since_ns.saturating_mul(NEXT_LOOK_TIMES);
    }

    /// Those that were found, the one that was met most often first.
    pub(super) fn into_found(mut self) -> Vec<ServerFacts> {
        self.found.sort_by_key(|one| std::cmp::Reverse((one.looks, one.connections)));
        self.found
    }

    fn look(&mut self) {
        let tree = descendants(self.command, &parents_around(&[self.command]));
        let connections = connections(&tree);
        if connections.is_empty() {
            return;
        }
        let mut met: HashMap<u32, (u32, Connection)> = HashMap::new();
        for (pid, connection) in owners(&connections, &tree) {
            let server = first_of_its_name(pid);
            met.entry(server).or_insert((0, connection)).0 += 1;
        }
        for (pid, (connections, connection)) in met {
            let known = self.found.iter_mut().find(|one| one.pid == pid);
            if let Some(known) = known {
                known.looks += 1;
                known.connections = known.connections.max(connections);
            } else if let Some(name) = name_of(pid) {
                let Connection { link, address, .. } = connection;
                self.found.push(ServerFacts { pid, name, link, address, looks: 1, connections });
            }
        }
    }
}

fn descendants(command: u32, parents: &HashMap<u32, u32>) -> HashSet<u32> {
    let mut tree = HashSet::from([command]);
    loop {
        let before = tree.len();
        let is_below = |(child, parent): (&u32, &u32)| tree.contains(parent).then_some(*child);
        let children: Vec<u32> = parents.iter().filter_map(is_below).collect();
        tree.extend(children);
        if tree.len() == before {
            return tree;
        }
    }
}

/// The other ends of what the processes of the command have open.
fn connections(tree: &HashSet<u32>) -> HashMap<u64, Connection> {
    let mut sockets = HashSet::new();
    let mut found = HashMap::new();
    for pid in tree {
        each_descriptor(*pid, |number, target| {
            if let Some(inode) = inode_of(target, b"socket:[") {
                if number > LAST_STANDARD {
                    sockets.insert(inode);
                }
            } else if let Some(inode) = inode_of(target, b"pipe:[")
                && number == STANDARD_INPUT
            {
                let address = String::new();
                found.insert(inode, Connection { inode, link: ServerLink::Pipe, address });
            }
        });
    }
    let mut all: Vec<u64> = sockets.into_iter().collect();
    all.sort_unstable();
    all.truncate(MOST_CONNECTIONS);
    let diag = UnixDiag::open().ok();
    let process = tree.iter().next().copied().unwrap_or_default();
    let tcp = TcpTable::of(process);
    for inode in all {
        let other = tcp.other_end(inode).or_else(|| other_unix_end(diag.as_ref()?, inode));
        found.extend(other.map(|connection| (connection.inode, connection)));
    }
    found
}

fn other_unix_end(diag: &UnixDiag, inode: u64) -> Option<Connection> {
    let ask = |inode: u64| diag.ask(u32::try_from(inode).ok()?).ok().flatten();
    let peer = u64::from(ask(inode)?.peer?);
    let address = ask(peer).map_or_else(String::new, |socket| socket.name);
    Some(Connection { inode: peer, link: ServerLink::UnixSocket, address })
}

/// Who has the other ends open, outside of the command.
fn owners(connections: &HashMap<u64, Connection>, tree: &HashSet<u32>) -> Vec<(u32, Connection)> {
    let own = std::process::id();
    let others = numbers(Path::new("/proc")).filter(|pid| !tree.contains(pid) && *pid != own);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for pid in others {
        if looked_at >= MOST_DESCRIPTORS {
            break;
        }
        each_descriptor(pid, |number, target| {
            looked_at += 1;
            let inode = inode_of(target, b"socket:[").or_else(|| {
                // The other end of a pipe that is read is not read itself.
                inode_of(target, b"pipe:[").filter(|_| number != STANDARD_INPUT)
            });
            if let Some(connection) = inode.and_then(|inode| connections.get(&inode)) {
                found.push((pid, connection.clone()));
            }
        });
    }
    found
}

/// Calls `each` with number and target of the descriptors of a process, as far as that is
/// permitted.
fn each_descriptor(pid: u32, mut each: impl FnMut(u32, &[u8])) {
    let directory = format!("/proc/{pid}/fd");
    for number in numbers(Path::new(&directory)) {
        if let Ok(target) = std::fs::read_link(format!("{directory}/{number}")) {
            each(number, target.as_os_str().as_bytes());
        }
    }
}

/// The number in `socket:[4711]`.
fn inode_of(target: &[u8], start: &[u8]) -> Option<u64> {
    let number = target.strip_prefix(start)?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The topmost of the processes above `pid` that have its name: that which was started.
fn first_of_its_name(pid: u32) -> u32 {
    let Some(name) = short_name(pid) else { return pid };
    let mut first = pid;
    for _ in 0..MOST_PARENTS {
        match parent(first) {
            Some(parent) if parent > 1 && short_name(parent).as_ref() == Some(&name) => {
                first = parent;
            }
            _ => break,
        }
    }
    first
}

fn short_name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// What a person calls it: of an interpreter with the script, where that is its first argument.
fn name_of(pid: u32) -> Option<String> {
    // One that has ended meanwhile cannot be watched.
    state_and_parent(&format!("/proc/{pid}/stat"))?;
    let name = short_name(pid)?;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_script = |word: &&str| {
        [".py", ".rb", ".js", ".pl", ".sh", ".php"].iter().any(|ending| word.ends_with(ending))
    };
    let mut words = words.split(|byte| *byte == 0).skip(1).take(3);
    let script = words.find_map(|word| std::str::from_utf8(word).ok().filter(is_script));
    Some(match script.and_then(|path| path.rsplit('/').next()) {
        Some(script) => format!("{name} {script}"),
        None => name,
    })
}

/// The TCP connections of a network namespace: inode by the addresses of both ends.
#[derive(Debug, Default)]
struct TcpTable {
    by_ends: HashMap<(String, String), u64>,
    ends: HashMap<u64, (String, String)>,
}

/// The state of an established connection, and that of one whose other end was closed.
const OPEN_STATES: [&str; 2] = ["01", "08"];

impl TcpTable {
    fn of(pid: u32) -> Self {
        let mut table = Self::default();
        for name in ["tcp", "tcp6"] {
            let text = std::fs::read_to_string(format!("/proc/{pid}/net/{name}"));
            table.add(&text.unwrap_or_default());
        }
        table
    }

    fn add(&mut self, text: &str) {
        for line in text.lines().skip(1) {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (Some(local), Some(remote), Some(state)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Some(inode) = words.nth(5).and_then(|word| word.parse().ok()) else { continue };
            if OPEN_STATES.contains(&state) {
                let ends = (plain(local), plain(remote));
                self.by_ends.insert(ends.clone(), inode);
                self.ends.insert(inode, ends);
            }
        }
    }

    /// The other end of a connection, if it is on this machine.
    fn other_end(&self, inode: u64) -> Option<Connection> {
        let (local, remote) = self.ends.get(&inode)?;
        let other = *self.by_ends.get(&(remote.clone(), local.clone()))?;
        let port = remote.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok())?;
        Some(Connection { inode: other, link: ServerLink::Tcp, address: format!("port {port}") })
    }
}

/// An address as both tables have it: one of version 4 that a socket of version 6 uses is that of
/// version 4.
fn plain(address: &str) -> String {
    const MAPPED: &str = "0000000000000000FFFF0000";
    address.strip_prefix(MAPPED).unwrap_or(address).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_found_by_their_addresses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        let inode = |socket: &TcpStream| {
            use std::os::fd::AsRawFd;
            use std::os::unix::fs::MetadataExt;
            let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
            std::fs::metadata(path).unwrap().ino()
        };
        let table = TcpTable::of(std::process::id());
        let address = format!("port {port}");
        let other = Connection { inode: inode(&server), link: ServerLink::Tcp, address };
        assert_eq!(table.other_end(inode(&client)), Some(other));
        assert_eq!(table.other_end(1), None);
    }

    #[test]
    fn looks_come_ever_further_apart() {
        let second = 1_000_000_000;
        let mut servers = Servers::new(u32::MAX, 0);
        let mut looks = 0;
        for now_ns in (0..3600 * second).step_by(50_000_000) {
            let before = servers.next_ns;
            servers.look_if_due(0, now_ns);
            looks += u32::from(servers.next_ns != before);
        }
        assert!((8..=11).contains(&looks), "{looks}");
        assert_eq!(servers.into_found(), []);
    }
}
