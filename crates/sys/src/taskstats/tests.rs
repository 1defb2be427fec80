//! Task accounting on the real kernel, and the parser on bytes that this kernel gave and on
//! malformed bytes.

use super::*;
use crate::spawn::Gated;
use crate::wait::wait;
use model::recording::Delay;
use proptest::prelude::*;

/// A record of version 16 as Linux 6.18 sent it, in a whole message: thread, process, sum.
const RECORDED: &[u8] = include_bytes!("recorded.bin");

fn listening() -> Option<Connection> {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let opened = Connection::open().and_then(|mut connection| {
        connection.listen(&cpus)?;
        Ok(connection)
    });
    match opened {
        Ok(connection) => Some(connection),
        Err(error) => {
            testkit::skip(format!("a listener to ends: {error}"));
            None
        }
    }
}

fn run(argv: &[&str]) -> u32 {
    let argv: Vec<_> = argv.iter().map(std::convert::Into::into).collect();
    let mut command = Gated::spawn(&argv).unwrap();
    command.open_gate().unwrap();
    wait(command.pid()).unwrap();
    command.pid()
}

#[test]
fn the_end_of_a_child_is_notified_before_its_parent_knows() {
    let Some(mut connection) = listening() else {
        return;
    };
    let pid = run(&["/bin/sh", "-c", "exit 3"]);
    let mut heard = Vec::new();
    let lost = connection.drain(|stats| heard.push(stats)).unwrap();
    assert!(!lost);
    let stats = heard.iter().find(|stats| stats.tid == pid).unwrap();
    assert_eq!(stats.comm, "sh");
    assert_eq!(stats.ppid, std::process::id());
    // Not so its time on a processor: the last stretch may not be charged yet.
    assert!(stats.minor_faults > 0);
    // Two clocks of the kernel, one of which is slewed by up to 0.05 %: so the limit has slack.
    let alive_ns = stats.elapsed_ns + stats.elapsed_ns / 100 + 1_000_000;
    assert!(stats.run_ns + stats.queue.total_ns <= alive_ns);
    if stats.version >= 12 {
        assert_eq!(stats.tgid, Some(pid));
        assert!(stats.last_of_process);
    }
    assert_eq!(connection.dropped().unwrap_or(0), 0);
}

#[test]
fn a_thread_that_lives_can_be_asked_about_and_one_that_does_not_is_none() {
    let mut connection = Connection::open().unwrap();
    let pid = std::process::id();
    let stats = match connection.ask(pid) {
        Ok(stats) => stats.unwrap(),
        Err(error) if error.kind == ErrorKind::Denied => return testkit::skip("CAP_NET_ADMIN"),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(stats.tid, pid);
    assert!(stats.elapsed_ns > 0);
    let again = connection.ask(pid).unwrap().unwrap();
    assert!(again.elapsed_ns >= stats.elapsed_ns);
    assert!(again.run_ns >= stats.run_ns);
    // Beyond the largest number that Linux gives.
    assert_eq!(connection.ask(1 << 30).unwrap(), None);
}

#[test]
fn a_message_of_linux_6_18_gives_all_its_fields() {
    let mut threads = parse::messages(RECORDED).filter_map(|message| match message {
        Message::Thread(stats) => Some(*stats),
        _ => None,
    });
    let stats = threads.next().unwrap();
    assert!(threads.next().is_none());
    assert!(stats.version >= 16);
    assert_eq!(stats.comm, "dd");
    assert_eq!(stats.tgid, Some(stats.tid));
    assert!(stats.last_of_process);
    assert_eq!(stats.interrupts.unwrap().max_ns, Some(0));
    let queue = stats.queue;
    assert!(queue.count > 0 && queue.max_ns.unwrap() <= queue.total_ns);
    assert!(stats.run_ns + queue.total_ns + stats.block_io.total_ns <= stats.elapsed_ns + 1000);
    let copies = stats.copy_on_write.unwrap();
    assert!(copies.count > 0 && copies.max_ns.unwrap() <= copies.total_ns);
    assert!(stats.block_io.count > 0 && stats.block_io.max_ns.unwrap() > 0);
    assert!(stats.read_bytes >= 1 << 20, "{}", stats.read_bytes);
    assert!(stats.write_chars >= 1 << 20);
    assert!(stats.major_faults <= stats.block_io.count);
}

/// A record in which each word holds its own number, of a version and length.
fn numbered(version: u16, bytes: usize) -> Vec<u8> {
    let mut record: Vec<u8> = (0..bytes as u64 / 8).flat_map(u64::to_ne_bytes).collect();
    record[..2].copy_from_slice(&version.to_ne_bytes());
    record
}

#[test]
fn each_version_gives_what_it_has() {
    let old = Stats::from_bytes(&numbered(8, 328)).unwrap();
    assert_eq!((old.queue.count, old.run_ns), (2, 9));
    assert_eq!(old.elapsed_ns, 18_000);
    assert_eq!((old.reclaim.count, old.reclaim.total_ns), (39, 40));
    assert_eq!((old.tgid, old.thrash, old.compact), (None, None, None));

    let v13 = Stats::from_bytes(&numbered(13, 416)).unwrap();
    assert_eq!(v13.copy_on_write.unwrap().count, 50);
    assert_eq!((v13.interrupts, v13.queue.max_ns), (None, None));
    assert_eq!(v13.tgid, Some(46));

    let v16 = Stats::from_bytes(&numbered(16, 560)).unwrap();
    assert_eq!(v16.queue.max_ns, Some(54));
    assert_eq!(v16.block_io.max_ns, Some(56));
    assert_eq!(v16.interrupts.unwrap().max_ns, Some(68));

    // Version 15 has the same words in other places.
    let v15 = Stats::from_bytes(&numbered(15, 560)).unwrap();
    assert_eq!(v15.queue, delay(2, 3, 4));
    assert_eq!(v15.block_io, delay(6, 7, 8));
    assert_eq!(v15.run_ns, 15);
    assert_eq!(v15.interrupts.unwrap(), delay(66, 67, 68));

    // What a newer kernel adds is passed over.
    let newer = Stats::from_bytes(&numbered(20, 900)).unwrap();
    assert_eq!(newer.queue, v16.queue);
    assert_eq!(Stats::from_bytes(&numbered(7, 560)), None);
    assert_eq!(Stats::from_bytes(&numbered(16, 320)), None);
}

fn delay(count: u64, total_ns: u64, max_ns: u64) -> Delay {
    Delay { count, total_ns, max_ns: Some(max_ns) }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
        let _ = Stats::from_bytes(&bytes);
        for message in parse::messages(&bytes) {
            let _ = format!("{message:?}");
        }
    }

    #[test]
    fn no_damage_to_a_message_makes_it_panic(
        at in 0..RECORDED.len(), byte in any::<u8>(), end in 0..=RECORDED.len()
    ) {
        let mut bytes = RECORDED.to_vec();
        bytes[at] = byte;
        bytes.truncate(end);
        for message in parse::messages(&bytes) {
            let _ = format!("{message:?}");
        }
        let _ = family_of("test", &bytes);
    }
}
