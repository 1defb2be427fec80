//! Denials of security modules: what a process wrote into the kernel's messages is not shown, and
//! messages that cannot be read are reported as such.

use crate::support::{TERRACE, run, schema_complaint};
use crate::{ORDINARY, SCHEMA, examined, staged};
use machine::denials::DenialLog;
use model::doctor::Surroundings;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::Command;

fn messages(report: &Value) -> &Value {
    &report["kernel_messages"]
}

/// The kernel gives what a process writes another facility than its own: else any user that may
/// write there could plant a line for root to run.
#[test]
fn a_line_that_a_process_wrote_is_not_shown() {
    let Ok(mut ring) = OpenOptions::new().write(true).open("/dev/kmsg") else {
        return testkit::skip("/dev/kmsg, to be written");
    };
    let name = format!("/etc/planted-{}", std::process::id());
    // Each asks for the kernel's facility; the last in the form of a record.
    for prefix in ["", "<5>", "5,1,1,-;"] {
        let line = format!(
            "{prefix}audit: type=1400 audit(1764288001.000:7): apparmor=\"DENIED\" \
             operation=\"open\" class=\"file\" profile=\"planted\" name=\"{name}\" pid=1 \
             comm=\"terrace\" requested_mask=\"r\" denied_mask=\"r\" fsuid=0 ouid=0\n"
        );
        if ring.write_all(line.as_bytes()).is_err() {
            return testkit::skip("/dev/kmsg, to be written");
        }
    }
    let logged = Command::new("dmesg").output();
    let is_there = logged.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).contains(&name));
    if !is_there {
        return testkit::skip("/dev/kmsg that keeps what is written");
    }
    let Some(report) = examined(&["env"]) else { return };
    assert_eq!(messages(&report)["readable"], true, "{report}");
    assert!(messages(&report)["records"].as_u64().unwrap() > 2, "{report}");
    assert!(!report.to_string().contains(&name), "{report}");
    let page = run(staged(&["env"], TERRACE, &["doctor"]));
    assert!(!page.out.contains(&name) && !page.out.contains("planted"), "{}", page.out);
}

/// As JSON and on the page.
fn is_said_to_be_unread(before: &[&str], why: &str) {
    let Some(report) = examined(before) else { return };
    let read = messages(&report);
    assert_eq!((&read["readable"], &read["records"]), (&Value::Bool(false), &Value::from(0)));
    assert!(read["why"].as_str().unwrap().contains(why), "{read}");
    assert_eq!(report["denials"], Value::Array(Vec::new()));
    let page = run(staged(before, TERRACE, &["doctor"]));
    let flat: String = page.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Not known: whether SELinux or AppArmor refused something"), "{flat}");
    assert!(flat.contains(why), "{flat}");
}

#[test]
fn messages_that_a_user_may_not_read_are_named() {
    let setting = std::fs::read_to_string("/proc/sys/kernel/dmesg_restrict");
    if !testkit::is_root() || setting.is_ok_and(|text| text.trim() != "1") {
        return testkit::skip("root, and kernel.dmesg_restrict=1");
    }
    is_said_to_be_unread(ORDINARY, "it takes CAP_SYSLOG, or kernel.dmesg_restrict=0");
}

/// Some containers have a link to their console there, whose input belongs to another program.
#[test]
fn another_file_in_the_place_of_the_messages_is_not_read() {
    if !testkit::is_root() || !std::path::Path::new("/dev/kmsg").exists() {
        return testkit::skip("root and /dev/kmsg");
    }
    let hide = "mount --bind /dev/zero /dev/kmsg && exec \"$0\" \"$@\"";
    is_said_to_be_unread(&["unshare", "--mount", "sh", "-c", hide], "it is another file");
}

/// Few kernels refuse anything here, so the lines are of a guest with AppArmor, and of SELinux.
#[test]
fn the_schema_describes_denials() {
    let Some(mut report) = examined(&["env"]) else { return };
    let mut log = DenialLog::new(None);
    for line in [
        "apparmor=\"DENIED\" operation=\"open\" class=\"file\" profile=\"terrace\" \
         name=\"/proc/vmstat\" pid=194 comm=\"terrace\" requested_mask=\"r\" denied_mask=\"r\" \
         fsuid=0 ouid=0",
        "avc:  denied  { read } for  pid=105 comm=\"terrace\" scontext=u:r:container_t:s0 \
         tcontext=u:r:t:s0 tclass=chr_file permissive=0",
    ] {
        let record = format!("5,1,1,-;audit: type=1400 audit(1795830556.617:4): {line}\n");
        log.add(record.as_bytes());
    }
    let (denials, messages) = log.finish(true);
    let reports = explain::doctor::denial_reports(denials, &Surroundings::default(), |unix_s| {
        format!("{unix_s} s")
    });
    assert_eq!(reports.len(), 2);
    report["denials"] = serde_json::to_value(reports).unwrap();
    report["kernel_messages"] = serde_json::to_value(messages).unwrap();
    assert_eq!(schema_complaint(SCHEMA, &report), None, "{report}");
    report["denials"][0]["module"] = Value::from("other");
    assert!(schema_complaint(SCHEMA, &report).is_some());
}
