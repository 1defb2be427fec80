//! What tests need and programs do not: fake machines, faulty devices, and real fixtures
//! that clean up after themselves.
//!
//! The idea: everything that a test makes is owned by a guard, so that a failing test
//! leaves no file, mount, loop device or control group behind. What a fixture cannot have
//! here is an error with the words for [`skip`]. Used as a dev-dependency only.

mod cgroup;
mod cut_disk;
mod dead_fuse;
mod device;
pub mod disk_model;
mod fake_root;
mod fault_plan;
mod faulty_disk;
mod faulty_files;
mod fuse_file;
mod fuse_leftovers;
mod fuse_mount;
mod kernel_trace;
mod loop_device;
mod made_who;
mod mounted;
mod simulated;
mod simulated_driver;
mod slow_disk;
mod swap_area;
mod temp_dir;
mod tmpfs;
pub mod tool_reports;
mod trees;
mod true_size;
mod usb_trees;
pub mod web;
mod who_recording;
mod working_set;
pub mod write_cache;
mod zipf_keys;
mod zram_device;

pub use cgroup::Cgroup;
pub use cut_disk::CutDisk;
pub use dead_fuse::{Dead, DeadFuse};
pub use device::{Fault, Faulty, MemoryDevice};
pub use fake_root::FakeRoot;
pub use fault_plan::{FaultPlan, FileFault, Trigger};
pub use faulty_disk::{DiskMount, FaultyDisk};
pub use faulty_files::FaultyFiles;
pub use kernel_trace::KernelTrace;
pub use loop_device::LoopDevice;
pub use made_who::MadeWho;
pub use model::random::Random;
pub use mounted::{FileSystem, Mount, Mounted};
pub use simulated::{MediumFaults, SimulatedBuffers, SimulatedDevice};
pub use simulated_driver::SimulatedDriver;
pub use slow_disk::{SlowDisk, Statistics};
pub use swap_area::{SwapArea, SwapDevice};
pub use temp_dir::TempDir;
pub use tmpfs::Tmpfs;
pub use true_size::{Beyond, TrueSize};
pub use who_recording::{HOSTILE_NAME, who_recording};
pub use working_set::WorkingSet;
pub use zipf_keys::ZipfKeys;
pub use zram_device::ZramDevice;

/// `O_DIRECT` of this architecture's Linux.
pub const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };

/// Says why a test did not run: "skipped: needs root". The test returns right after.
#[allow(clippy::print_stdout, reason = "the test harness shows it with the test's own output")]
pub fn skip(need: impl std::fmt::Display) {
    println!("skipped: needs {need}");
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

/// Whether this process is root and may do what root may: in most containers it may not, because
/// they withhold `CAP_SYS_ADMIN` and show the settings read-only.
#[must_use]
pub fn is_admin() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let setting = std::fs::File::options().write(true).open("/proc/sys/vm/swappiness");
    is_root() && capabilities.is_some_and(|mask| mask & SYS_ADMIN != 0) && setting.is_ok()
}

/// `program` with every signal at its default, not started: what a test interrupts must not have
/// inherited an ignored SIGINT, as a background job of a shell without job control has. The
/// process has the same number as its `env`.
#[must_use]
pub fn with_default_signals(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

/// Runs a program to its end; its output, or the words for [`skip`].
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = std::process::Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("the program {program} ({error})"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{program} {}` to work: {}", arguments.join(" "), message.trim()))
}
