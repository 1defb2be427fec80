//! `terrace copy --background`: one request in flight while another program reads the same disk,
//! the full depth again when it has gone. The copy counts its own requests.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Started, command, terrace};
use testkit::{Mounted, TempDir};

const MIB: usize = 1 << 20;

/// Another program that reads the disk without a pause.
fn reader(path: &str) -> Started {
    let line =
        format!("while :; do dd if={path} of=/dev/null bs=4k iflag=direct 2>/dev/null; done");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null());
    Started(command.spawn().unwrap())
}

/// The values of a series, in the order of time.
fn series(csv: &str, name: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let place = lines.next().unwrap().split(',').position(|title| title == name).unwrap();
    lines.filter_map(|line| line.split(',').nth(place)?.parse().ok()).collect()
}

#[test]
fn one_request_is_in_flight_while_another_program_reads_and_many_when_it_has_gone() {
    let disk = match Mounted::ext4(700 << 20) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    let at = |name: &str| disk.path().join(name).display().to_string();
    let logs = TempDir::new();
    fs::create_dir(at("tree")).unwrap();
    for number in 0..4u8 {
        fs::write(at(&format!("tree/{number}")), vec![number + 1; 45 * MIB]).unwrap();
    }
    fs::write(at("read"), vec![9; 100 * MIB]).unwrap();
    for name in ["tree", "read"] {
        let ran = terrace(&format!("warm evict {}", at(name)));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    let readers = [reader(&at("read")), reader(&at("read"))];
    let log = logs.join("log.trec").display().to_string();
    let words = format!("copy {} {} --background --log {log}", at("tree"), at("copy"));
    let mut line = command(&words);
    let mut copying = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let is_running = copying.try_wait().unwrap().is_none();
    drop(readers);
    let ended = copying.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let page = String::from_utf8_lossy(&ended.stdout);
    assert!(is_running, "it was over too soon: {page}");
    for number in 0..4u8 {
        let copied = fs::read(at(&format!("copy/{number}"))).unwrap();
        assert!(copied == vec![number + 1; 45 * MIB]);
    }
    let csv = terrace(&format!("export {log} --to csv")).out;
    let (reads, writes) = (series(&csv, "copy.read_depth"), series(&csv, "copy.write_depth"));
    let limits = series(&csv, "copy.read_depth_limit");
    let depths: Vec<f64> =
        reads.iter().zip(&writes).map(|(reads, writes)| reads + writes).collect();
    if !page.contains("uring") {
        return testkit::skip("io_uring");
    }
    // The first ten samples, a second, are all beside the readers.
    assert!(limits.len() > 10, "{limits:?}");
    assert!(limits[..10].iter().all(|limit| *limit == 1.0), "{limits:?}");
    assert!(depths[..10].iter().all(|depth| *depth <= 1.0), "{depths:?}");
    // The last ones may be beside what others have to write.
    assert!(limits[10..].contains(&32.0), "{limits:?}");
}
