//! `terrace doctor` where AppArmor and SELinux really refuse it something: the denial is shown with
//! what it was about, and is no more once a rule allows it.
//!
//! Skipped where QEMU or the image is missing: `cargo xtask vm --build --package apparmor --package
//! secilc`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::Found;
use testkit::TempDir;

const PACKAGES: [&str; 2] = ["apparmor", "secilc"];

const FILES: [(&str, &str); 4] = [
    ("apparmor.sh", include_str!("doctor_guest/apparmor.sh")),
    ("profile", include_str!("doctor_guest/profile")),
    ("selinux.sh", include_str!("doctor_guest/selinux.sh")),
    ("policy.cil", include_str!("doctor_guest/policy.cil")),
];

/// What the script said, or none where there is no guest. Reports are in `out`.
fn in_a_guest(script: &str, kernel_line: &str, out: &Path) -> Option<Found> {
    if !xtask::vm::is_ready_with(&PACKAGES) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --package apparmor \
                    --package secilc)";
        testkit::skip(need);
        return None;
    }
    let script = format!("sh {script}");
    let packages = PACKAGES.map(|name| ["--package", name]).concat();
    let rest = ["--append", kernel_line, "--out", out.to_str().unwrap(), "--", &script];
    Some(support::run_guest(&FILES, &[&packages[..], &rest].concat()).0)
}

fn report(out: &Path, name: &str) -> Value {
    let text = std::fs::read(out.join(format!("{name}.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The denials of the process that wrote the report.
fn own(report: &Value) -> Vec<&Value> {
    let all = report["denials"].as_array().unwrap().iter();
    all.filter(|denial| denial["is_own"] == true).collect()
}

/// These fields of a denial.
fn fields<'v>(denial: &'v Value, names: &[&str]) -> Vec<&'v str> {
    names.iter().map(|name| denial[name].as_str().unwrap_or("-")).collect()
}

/// A page without its line ends.
fn page(out: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(out.join(format!("{name}.txt"))).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_rule_that_doctor_suggests_allows_what_apparmor_refused() {
    let out = TempDir::new();
    let Some(found) = in_a_guest("apparmor.sh", "loglevel=4", out.path()) else { return };
    let refused = report(out.path(), "refused");
    let denials = own(&refused);
    assert_eq!(denials.len(), 1, "{refused:#}");
    let names = ["module", "subject", "operation", "object", "class", "rights"];
    let expected = ["apparmor", "terrace", "open", "/proc/vmstat", "file", "r"];
    assert_eq!(fields(denials[0], &names), expected);
    found.is("line", "/proc/vmstat r, (a rule in /etc/apparmor.d/local/terrace)");
    let text = page(out.path(), "refused");
    assert!(text.contains("AppArmor, profile terrace: open of /proc/vmstat (file, r)"), "{text}");
    let allowed = report(out.path(), "allowed");
    assert_eq!(own(&allowed), Vec::<&Value>::new(), "{allowed:#}");
    assert_eq!(allowed["kernel_messages"]["readable"], true, "{allowed:#}");
}

#[test]
fn what_selinux_refuses_is_shown_and_what_it_only_logs_is_not() {
    let out = TempDir::new();
    let kernel_line = "security=selinux selinux=1 enforcing=0";
    let Some(found) = in_a_guest("selinux.sh", kernel_line, out.path()) else { return };
    found.is("enforced", "0");
    let logged = report(out.path(), "logged");
    assert_eq!(logged["denials"], Value::Array(Vec::new()), "{logged:#}");
    let refused = report(out.path(), "refused");
    let names = ["module", "subject", "operation", "object", "object_context", "class"];
    let seen: Vec<_> = own(&refused).iter().map(|denial| fields(denial, &names)).collect();
    let domain = "u:r:terrace_t:s0";
    let file = ["selinux", domain, "read", "vmstat", "u:object_r:vmstat_t:s0", "file"];
    let event = ["selinux", domain, "open", "-", domain, "perf_event"];
    assert!(seen.contains(&file.to_vec()) && seen.contains(&event.to_vec()), "{refused:#}");
    assert_eq!(seen.len(), 2, "{refused:#}");
    let line = refused["denials"][0]["lines"][0]["line"].as_str().unwrap();
    assert!(line.contains("audit2allow -M terrace-local"), "{line}");
    let text = page(out.path(), "refused");
    assert!(text.contains("SELinux, domain terrace_t: read of vmstat (file)"), "{text}");
    assert!(text.contains("what was refused to this report is shown below"), "{text}");
    let allowed = report(out.path(), "allowed");
    assert_eq!(own(&allowed), Vec::<&Value>::new(), "{allowed:#}");
}
