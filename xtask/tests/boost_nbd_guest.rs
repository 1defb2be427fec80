//! `terrace boost attach --export nbd` in a guest, which has network block devices: ext4 on one
//! under a load that verifies what it reads, while the process that serves is killed five times.
//!
//! Skipped as `vm.rs` is. Times are not looked at: the guest is emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::process::Command;
use testkit::TempDir;

const SCRIPT: &str = include_str!("boost_nbd_guest/killed.sh");

#[test]
fn a_killed_service_of_a_network_block_device_has_a_successor_and_no_request_fails() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    std::fs::create_dir(folder.join("script")).unwrap();
    std::fs::write(folder.join("script/killed.sh"), SCRIPT).unwrap();
    let work = TempDir::new();
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("vm")
        .env("TMPDIR", work.path())
        .args(["--disk", "disk:96M", "--disk", "stick:64M", "--disk", "host:64M"])
        .args(["--mem", "1G", "--timeout", "500", "--module", "nbd"])
        .arg("--bin")
        .arg(support::program())
        .arg("--dir")
        .arg(folder.join("script"))
        .args(["--", "sh killed.sh"])
        .output()
        .unwrap();
    let [text, errors] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(0), "{text}{errors}");
    println!("{text}");
    let said = support::said(&text);
    let is = |name: &str, value: &str| {
        assert_eq!(said.get(name).map(String::as_str), Some(value), "{name}: {text}{errors}");
    };
    is("attach", "0");
    assert!(said["plan"].contains("sent again after 5 s (NBD)"), "{text}");
    assert!(said["device"].starts_with("/dev/nbd"), "{text}");
    assert_eq!(said["discard"] == "0", said["disk_discard"] == "0", "{text}");
    assert!(said["detach_mounted"].starts_with("3 ") && text.contains("is mounted at"), "{text}");
    is("kills", "5");
    is("successor", "yes yes yes yes yes");
    is("load", "0");
    is("jobs", "2");
    is("io_errors", "0");
    is("umount", "0");
    assert!(said["detach"].contains("is detached, and proved fresh"), "{text}");
    is("fsck", "0");
    is("left", "");
}
