//! `terrace ramdisk install` in a guest that boots systemd, twice: what is in a RAM disk when the
//! machine powers off is there for ordinary services of the next boot, and all is saved before
//! sleep.
//!
//! The disk of the store has the times of one with a head. In place of the sleep itself a script
//! looks at the store: all before it is systemd's own. Skipped where QEMU or the image is
//! missing: `cargo xtask vm --build --systemd`.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

const SCRIPTS: [(&str, &str); 3] = [
    ("units.sh", include_str!("ramdisk_guest/units.sh")),
    ("first.sh", include_str!("ramdisk_guest/first.sh")),
    ("second.sh", include_str!("ramdisk_guest/second.sh")),
];
/// What is unsaved when the machine powers off.
const UNSAVED: &str = "MIB=512";

#[test]
fn services_wait_for_the_restore_and_a_poweroff_loses_nothing() {
    if !xtask::vm::is_ready_with(&["systemd"]) {
        let need = "qemu-system-x86 and an image (cargo xtask vm --build --systemd)";
        return testkit::skip(need);
    }
    let machine = ["--disk", "store:2G,model=hdd", "--mem", "2G", "--timeout", "400"];
    let boots = ["--systemd", "--before", "sh units.sh", "--then", "sh second.sh"];
    let rest = ["--env", UNSAVED, "--", "sh first.sh"];
    let (found, _) = support::run_guest(&SCRIPTS, &[&machine[..], &boots, &rest].concat());
    let is = |name: &str, value: &str| found.is(name, value);
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
    is("second.seen", &found.0["first.sum"]);
    is("second.sum", &found.0["first.sum"]);
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
