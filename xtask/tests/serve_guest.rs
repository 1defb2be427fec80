//! The tests of the crate `serve` on a second kernel, Debian's 6.12, which has network block
//! devices: also their server is killed under a file system in use.
//!
//! Skipped as `vm.rs` is. Times are not looked at: the guest is emulated.
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::process::Command;

#[test]
fn killed_servers_have_successors_on_another_kernel() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["vm", "--mem", "1G", "--module", "loop", "--module", "fuse", "--module", "nbd"])
        .args(["--tests", "serve", "--", "/tests/served --nocapture --test-threads 1 killed"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(!text.contains("skipped:"), "{text}");
    assert!(text.contains("a_killed_server_of_a_network_block_device_has_a_successor"), "{text}");
}
