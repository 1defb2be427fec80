//! `terrace copy` reads many small files in the order of the disk: in a guest with a disk that
//! takes the time of its seeks, against `cp -a` of the same files.
//!
//! A program of its own, as it judges a time and so runs alone. Skipped as `vm.rs` is.
#![allow(clippy::unwrap_used, reason = "a test program")]

mod support;

use std::process::Command;

use support::program;
use testkit::TempDir;

#[test]
fn many_small_files_are_read_in_half_the_time_of_cp() {
    if !xtask::vm::is_ready() {
        return testkit::skip("qemu-system-x86 and a guest image (cargo xtask vm --build)");
    }
    let folder = TempDir::new();
    let script = include_str!("copy_order_guest/order.sh");
    std::fs::write(folder.join("order.sh"), script).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["vm", "--disk=hdd:256M,model=hdd,bus=scsi", "--mem", "512M", "--timeout", "300"]);
    command.arg("--bin").arg(program()).arg("--dir").arg(folder.path());
    let run = command.args(["--", "sh order.sh"]).output().unwrap();
    let [said, complained] = [run.stdout, run.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(run.status.code(), Some(0), "{said}{complained}");
    let found = support::counted(&said);
    // Of 5,000 such files a whole copy took 0.24 of the time of `cp -a`.
    let [ours, theirs] = ["hdd.ours", "hdd.cp"].map(|name| found[name]);
    assert!(ours * 2.0 <= theirs, "reads took {ours} ms, those of cp {theirs} ms");
}
