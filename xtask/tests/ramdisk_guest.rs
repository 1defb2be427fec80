//! `terrace ramdisk install` in a guest that boots systemd, twice: what is in a RAM disk when the
//! machine powers off is there for ordinary services of the next boot, and all is saved before
//! sleep.
//!
//! The disk of the store has the times of one with a head. In place of the sleep itself a script
//! looks at the store: all before it is systemd's own. Skipped where QEMU or the image is
//! missing: `cargo xtask vm --build --systemd`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use support::program;
use testkit::TempDir;

const SCRIPTS: [(&str, &str); 3] = [
    ("units.sh", include_str!("ramdisk_guest/units.sh")),
    ("first.sh", include_str!("ramdisk_guest/first.sh")),
    ("second.sh", include_str!("ramdisk_guest/second.sh")),
];
/// What is unsaved when the machine powers off.
const MIB: &str = "512";

#[test]
fn services_wait_for_the_restore_and_a_poweroff_loses_nothing() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let folder = TempDir::new();
    for (name, text) in SCRIPTS {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let found = found_in_a_guest(folder.path());
    let is = |name: &str, value: &str| assert_eq!(found[name], value, "{name}: {found:?}");
    // Nothing was there to restore.
    is("first.seen", "nothing");
    is("first.saved", "1");
    // At each sleep there was one more generation, and nothing of what is in it at the end.
    is("first.slept", "2 3");
    is("first.note", "before sleep 2");
    for boot in ["first", "second"] {
        is(&format!("{boot}.active"), "active");
        is(&format!("{boot}.strict"), "active");
    }
    is("second.seen", &found["first.sum"]);
    is("second.sum", &found["first.sum"]);
    // What a service writes when it is stopped is saved too.
    is("second.late", "late");
    is("second.restarts", "0");
    // The RAM disks of both units are known; the adopted one covers its directory again.
    is("first.known", "2");
    is("second.known", "2");
    is("second.moved", "new active");
    is("second.released", "newer 0");
    is("second.verified", "0 0");
}

/// What both boots say, by name.
fn found_in_a_guest(folder: &Path) -> BTreeMap<String, String> {
    let work = TempDir::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--systemd", "--before", "sh units.sh"]).env("TMPDIR", work.path());
    command.arg("--disk=store:2G,model=hdd").arg("--bin").arg(program()).arg("--dir").arg(folder);
    command.args(["--mem", "2G", "--timeout", "400", "--env", &format!("MIB={MIB}")]);
    let run = command.args(["--then", "sh second.sh", "--", "sh first.sh"]).output().unwrap();
    let [said, complained] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(run.status.code(), Some(0), "{said}{complained}");
    support::said(&said)
}
