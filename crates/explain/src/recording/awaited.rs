//! Whether a command mostly waited for a server of the same machine: then what is slow is to be
//! seen there, and the sentence names it with the command that watches it.
//!
//! The recorder says which processes the command was connected to, and the stacks of its waits how
//! long it waited in sockets or in its standard input. Which of several servers it waited for is
//! not seen: the one that was met most often is named, and the others after it.

use super::View;
use super::accounting::Accounts;
use crate::wording::{list, percent};
use model::explanation::AwaitedServer;
use model::recording::{ServerFacts, ServerLink};

/// A command that waited for less than this part of its thread time does not mostly wait. Picked:
/// a client of a busy machine also waits for a processor.
const LEAST_SHARE: f64 = 0.4;

/// So many others are named.
const MOST_OTHERS: usize = 2;

/// The server that the command of `view` mostly waited for.
pub(super) fn server(view: &View, accounts: &Accounts) -> Option<AwaitedServer> {
    let servers = &view.facts().servers;
    if servers.is_empty() || !view.is_command() || accounts.thread_ns == 0 {
        return None;
    }
    let slept = |class: &str| view.sum(&format!("trace.sleep.{class}_ns")).unwrap_or(0);
    let by_sockets = slept("socket").saturating_add(slept("poll"));
    let by_pipes = slept("pipe");
    let is_pipe = |server: &&ServerFacts| server.link == ServerLink::Pipe;
    let (waited_ns, is_pipe_awaited) =
        if by_pipes > by_sockets { (by_pipes, true) } else { (by_sockets, false) };
    let share = waited_ns as f64 / accounts.thread_ns as f64;
    if share < LEAST_SHARE {
        return None;
    }
    let mut awaited = servers.iter().filter(|server| is_pipe(server) == is_pipe_awaited);
    let first = awaited.next()?;
    let others: Vec<String> = awaited.take(MOST_OTHERS).map(label).collect();
    let or = if others.is_empty() {
        String::new()
    } else {
        format!(", or for {}, to which it is connected too", list(&others))
    };
    let share = share.min(1.0);
    Some(AwaitedServer {
        pid: first.pid,
        name: first.name.clone(),
        share,
        text: format!("For {} of its time it waited for {}{or}", percent(share), label(first)),
        command: format!("terrace record --pid {} --for 10 -o server.trec", first.pid),
    })
}

/// `postgres (pid 812, /run/postgresql/.s.PGSQL.5432)`
fn label(server: &ServerFacts) -> String {
    let ServerFacts { pid, name, address, link, .. } = server;
    match (link, address.as_str()) {
        (ServerLink::Pipe, _) => format!("{name} (pid {pid}, by a pipe)"),
        (_, "") => format!("{name} (pid {pid})"),
        (_, address) => format!("{name} (pid {pid}, {address})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Window, accounting};
    use model::recording::{
        Recording, RecordingOutcome, Schema, Series, SeriesKind, Steps, Subject, Tick,
    };

    /// A command of one thread that slept so long, of ten seconds.
    fn waited(class: &str, seconds: u64, servers: Vec<ServerFacts>) -> Option<AwaitedServer> {
        const SECOND_NS: u64 = 1_000_000_000;
        let mut recording = Recording::default();
        recording.facts.subject = Subject::Command { argv: vec!["pgbench".to_owned()] };
        recording.facts.servers = servers;
        recording.ticks =
            [0, 10].map(|s| Tick { due_ns: s * SECOND_NS, at_ns: s * SECOND_NS }).into();
        let ended_ns = 10 * SECOND_NS;
        recording.outcome = Some(RecordingOutcome { ended_ns, ..RecordingOutcome::default() });
        let counters = [
            (format!("trace.sleep.{class}_ns"), seconds),
            ("trace.sched.sleep_ns".to_owned(), seconds),
            ("trace.sched.run_ns".to_owned(), 10 - seconds),
        ];
        for (id, (name, seconds)) in (0..).zip(counters) {
            let schema = Schema { id, name, kind: SeriesKind::Counter, ..Schema::default() };
            let mut series = Series { schema, steps: Steps::new() };
            series.push(0, Some(0));
            series.push(1, Some((seconds * SECOND_NS) as i64));
            recording.series.push(series);
        }
        let view = View::new(&recording, Window::default());
        let accounts = accounting::account(&view);
        assert_eq!(accounts.thread_ns, ended_ns);
        server(&view, &accounts)
    }

    fn of(pid: u32, name: &str, link: ServerLink, address: &str) -> ServerFacts {
        let (name, address) = (name.to_owned(), address.to_owned());
        ServerFacts { pid, name, link, address, looks: 1, connections: 1 }
    }

    #[test]
    fn the_server_is_named_with_the_command_that_watches_it() {
        let postgres = of(812, "postgres", ServerLink::UnixSocket, "/run/.s.PGSQL.5432");
        let found = waited("poll", 7, vec![postgres.clone()]).unwrap();
        let text = "For 70 % of its time it waited for postgres (pid 812, /run/.s.PGSQL.5432)";
        assert_eq!(found.text, text);
        assert_eq!(found.command, "terrace record --pid 812 --for 10 -o server.trec");
        let redis = of(7, "redis-server", ServerLink::Tcp, "port 6379");
        let found = waited("socket", 9, vec![postgres, redis]).unwrap();
        assert!(
            found
                .text
                .ends_with("or for redis-server (pid 7, port 6379), to which it is connected too")
        );
    }

    #[test]
    fn a_command_that_works_or_waits_otherwise_waits_for_none() {
        let postgres = of(812, "postgres", ServerLink::UnixSocket, "");
        assert_eq!(waited("poll", 3, vec![postgres.clone()]), None);
        assert_eq!(waited("timer", 9, vec![postgres.clone()]), None);
        assert_eq!(waited("poll", 9, Vec::new()), None);
        assert_eq!(waited("pipe", 9, vec![postgres.clone()]), None);
        let slow = of(9, "slow", ServerLink::Pipe, "");
        let found = waited("pipe", 9, vec![postgres, slow]).unwrap();
        assert!(found.text.ends_with("it waited for slow (pid 9, by a pipe)"), "{}", found.text);
    }
}
