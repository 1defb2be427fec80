//! Denials in the kernel's messages: real forms of lines, hostile ones, and the ring of this
//! machine.
#![allow(clippy::unwrap_used, reason = "a test program")]

use machine::denials::{DenialLog, OwnProcess};
use model::denial::{Denial, MessagesRead, SecurityModule};
use proptest::prelude::*;
use std::process::Command;

const MESSAGES: &str = include_str!("fixtures/kernel-messages.txt");

/// Records as `/dev/kmsg` gives them: a line, and the lines behind it that begin with a space.
fn records(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match all.last_mut() {
            Some(record) if line.starts_with(' ') => record.push_str(&format!("{line}\n")),
            _ => all.push(format!("{line}\n")),
        }
    }
    all
}

fn found(text: &str, own: Option<OwnProcess>) -> (Vec<Denial>, MessagesRead) {
    let mut log = DenialLog::new(own);
    records(text).iter().for_each(|record| log.add(record.as_bytes()));
    log.finish(true)
}

/// A denial of AppArmor with these fields behind the time.
fn line(prefix: &str, kind: &str, body: &str) -> String {
    format!("{prefix};audit: type={kind} audit(1764288001.000:7): {body}\n")
}

const BODY: &str = "apparmor=\"DENIED\" operation=\"open\" class=\"file\" profile=\"p\" \
                    name=\"/etc/x\" pid=5 comm=\"terrace\" requested_mask=\"r\" denied_mask=\"r\"";

#[test]
fn denials_of_this_program_are_found_and_of_no_other() {
    let (denials, read) = found(MESSAGES, None);
    assert_eq!((read.records, read.first_sequence, read.is_whole), (18, Some(0), true));
    let seen: Vec<_> = denials
        .iter()
        .map(|one| (one.operation.as_str(), one.object.as_deref().unwrap_or("-"), one.count))
        .collect();
    assert_eq!(
        seen,
        [
            ("open", "/proc/vmstat", 2),
            ("capable", "sys_admin", 1),
            ("read open", "kmsg", 1),
            ("sys_admin", "-", 1),
            ("open", "/etc/of-a-thread", 1),
            ("open", "/srv/a\u{1b}[31m comm=\"", 1),
            ("open", "/srv/a\\b", 1),
        ]
    );
}

#[test]
fn each_field_is_read() {
    let (denials, _) = found(MESSAGES, None);
    let twice = &denials[0];
    assert_eq!(twice.module, SecurityModule::AppArmor);
    assert_eq!((twice.subject.as_str(), twice.rights.as_deref()), ("/usr/bin/terrace", Some("r")));
    assert_eq!((twice.pid, twice.uid, twice.last_unix_s), (Some(102), Some(1000), 1_764_288_002));
    assert_eq!((twice.class.as_deref(), twice.thread.as_str()), (Some("file"), "terrace"));
    let selinux = &denials[2];
    assert_eq!(selinux.module, SecurityModule::SeLinux);
    assert_eq!(selinux.subject, "system_u:system_r:container_t:s0:c1,c2");
    assert_eq!(selinux.object_context.as_deref(), Some("system_u:object_r:memory_device_t:s0"));
    assert_eq!((selinux.class.as_deref(), selinux.uid), (Some("chr_file"), None));
    assert_eq!(denials[4].thread, "transfer");
}

#[test]
fn what_a_process_wrote_is_no_denial() {
    // 12 is what a plain write to /dev/kmsg gets: facility 1, level 4.
    for (prefix, count) in [("5,1,1,-", 1), ("0,1,1,-", 1), ("12,1,1,-", 0), ("13,1,1,-", 0)] {
        let (denials, read) = found(&line(prefix, "1400", BODY), None);
        assert_eq!((denials.len(), read.records), (count, 1), "{prefix}");
    }
    // A line of a program that the audit subsystem passes on (`AUDIT_USER_AVC`).
    assert!(found(&line("5,1,1,-", "1107", BODY), None).0.is_empty());
    // What the kernel writes of a program with such a name.
    let traps = format!("6,1,1,-;audit: type=140[7]: segfault audit(1.0:7): {BODY}\n");
    assert!(found(&traps, None).0.is_empty());
    let later = format!("6,1,1,-;x audit: type=1400 audit(1764288001.000:7): {BODY}\n");
    assert!(found(&later, None).0.is_empty());
    let property = format!("6,1,1,-;x\n audit: type=1400 audit(1764288001.000:7): {BODY}\n");
    assert!(found(&property, None).0.is_empty());
}

#[test]
fn the_number_of_this_process_counts_from_its_start_on() {
    let body = BODY.replace("comm=\"terrace\"", "comm=\"sampler\"");
    let text = line("5,1,1,-", "1400", &body);
    let own = |since_unix_s| Some(OwnProcess { pid: 5, since_unix_s });
    assert!(found(&text, own(1_764_288_001)).0[0].is_own);
    assert!(found(&text, own(1_764_288_002)).0.is_empty(), "another process had the number");
    assert!(found(&text, Some(OwnProcess { pid: 6, since_unix_s: 0 })).0.is_empty());
    assert!(found(&text, None).0.is_empty());
    assert!(!found(&line("5,1,1,-", "1400", BODY), None).0[0].is_own);
}

/// `pid=194 comm="sampler"`, as a guest with AppArmor logged it between lines of the main thread.
#[test]
fn other_threads_are_found_by_a_process_that_is_known_and_confined_alike() {
    let sampler = BODY.replace("comm=\"terrace\"", "comm=\"sampler\"");
    let early = line("5,1,1,-", "1400", &sampler.replace("/etc/x", "/early"));
    let late = line("5,3,1,-", "1400", &sampler.replace("/etc/x", "/late"));
    let main = line("5,2,1,-", "1400", BODY);
    let names = |text: &str| -> Vec<String> {
        found(text, None).0.into_iter().map(|one| one.object.unwrap()).collect()
    };
    assert_eq!(names(&format!("{early}{main}{late}")), ["/early", "/etc/x", "/late"]);
    assert!(names(&format!("{early}{late}")).is_empty());
    // Another process had the number before, or has it now.
    let others = sampler.replace("profile=\"p\"", "profile=\"q\"");
    let other = line("5,3,1,-", "1400", &others);
    assert_eq!(names(&format!("{other}{main}{other}")), ["/etc/x"]);
}

#[test]
fn the_last_ones_are_kept_and_those_of_this_process_longest() {
    let one = |number: u64| BODY.replace("/etc/x", &format!("/etc/{number}"));
    let mut text = line("5,1,1,-", "1400", &one(0).replace("pid=5", "pid=9"));
    (1..=20).for_each(|number| text.push_str(&line("5,1,1,-", "1400", &one(number))));
    let (denials, read) = found(&text, Some(OwnProcess { pid: 9, since_unix_s: 0 }));
    let names: Vec<_> = denials.iter().map(|one| one.object.as_deref().unwrap()).collect();
    assert_eq!((names.len(), names[0], names[7]), (8, "/etc/0", "/etc/20"));
    assert_eq!(read.left_out, 13);
}

#[test]
fn the_ring_of_this_machine_is_read_to_its_end() {
    let restricted = std::fs::read_to_string("/proc/sys/kernel/dmesg_restrict");
    match machine::denials::read(None) {
        Ok((_, read)) => {
            assert!(read.records > 0 && read.first_sequence.is_some(), "{read:?}");
            let Ok(shown) = Command::new("dmesg").output() else { return };
            assert!(shown.stdout.is_empty() || read.records > 1, "{read:?}");
        }
        Err(error) => {
            let may_read = testkit::is_root() && std::path::Path::new("/dev/kmsg").exists();
            assert!(!may_read || error.kind != machine::ErrorKind::NotFound, "{error}");
            testkit::skip(format!("the kernel's messages: {error} ({restricted:?})"));
        }
    }
}

proptest! {
    #[test]
    fn no_record_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut log = DenialLog::new(None);
        log.add(&bytes);
        prop_assert!(log.finish(true).0.is_empty());
    }

    #[test]
    fn no_change_of_a_real_record_panics(
        index in 0_usize..18,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\\\\x\"={}()é]{0,4}"), 0..6),
    ) {
        let mut record = records(MESSAGES)[index].clone();
        for (at, text) in cuts {
            let at = at.index(record.len());
            if record.is_char_boundary(at) {
                record.insert_str(at, &text);
            }
        }
        let mut log = DenialLog::new(None);
        log.add(record.as_bytes());
        for denial in log.finish(true).0 {
            prop_assert!(denial.thread == "terrace" && denial.count == 1);
        }
    }

    /// The kernel writes what has a space or a quote as digits, so no name makes another field.
    #[test]
    fn a_name_is_what_it_was(name in "[^\\x00]{1,40}") {
        let is_plain = name.bytes().all(|byte| (0x21..=0x7e).contains(&byte) && byte != b'"');
        let written = if is_plain {
            format!("\"{}\"", name.replace('\\', "\\x5c"))
        } else {
            name.bytes().map(|byte| format!("{byte:02X}")).collect()
        };
        let body = BODY.replace("\"/etc/x\"", &written);
        let (denials, _) = found(&line("5,1,1,-", "1400", &body), None);
        prop_assert_eq!(denials[0].object.as_deref(), Some(name.as_str()));
    }
}
