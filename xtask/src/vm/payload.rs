//! What a guest is given: programs, folders and its command, in the disk that is laid over the root
//! image.
//!
//! The disk is a sparse file without a name. What the guest writes anywhere lands on it, so that
//! neither /bench nor /out takes the guest's memory.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::disk::Bus;
use super::files;
use super::image;
use super::options::VmOptions;
use crate::error::Error;
use crate::process;

/// The scratch disk: as much as a guest may write outside of its own disks. A sparse file.
pub(super) const SCRATCH_BYTES: u64 = 16 << 30;

const SYSTEMD: &str = include_str!("guest/systemd.sh");
/// Where init.sh is done with disks and modules.
const AFTER_SET_UP: &str = "cd /bench";

/// A file or folder of this machine, and where the guest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) source: PathBuf,
    /// Absolute, in the guest.
    pub(super) target: PathBuf,
}

/// The scratch disk for a guest, filled; `work` holds the copies for a moment.
///
/// # Errors
/// When something cannot be copied.
pub(super) fn scratch(
    options: &VmOptions,
    command: &[String],
    copies: &[Copy],
    cache: &Path,
    work: &Path,
) -> Result<File, Error> {
    let disk = files::nameless(cache, SCRATCH_BYTES)?;
    let stage = work.join("stage");
    let upper = stage.join("upper");
    let settings = upper.join("etc/terrace-vm");
    for folder in [&settings, &upper.join("bench"), &stage.join("work")] {
        files::make_folder(folder)?;
    }
    for copy in copies {
        let target = upper.join(copy.target.strip_prefix("/").unwrap_or(&copy.target));
        files::make_folder(target.parent().unwrap_or(&upper))?;
        let mut command = Command::new("cp");
        command.args(["-aT", "--reflink=auto"]);
        command.arg(&copy.source).arg(target);
        image::step(command)?;
    }
    files::write(&settings.join("config"), config(options).as_bytes())?;
    files::write(&settings.join("command"), script(command).as_bytes())?;
    if options.systemd {
        files::write(&settings.join("before"), options.before.as_deref().unwrap_or("").as_bytes())?;
        let init = upper.join("usr/sbin/terrace-init");
        files::make_folder(&upper.join("usr/sbin"))?;
        files::write(&init, init_of_systemd().as_bytes())?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&init, mode).map_err(Error::io("make executable", &init))?;
    }
    let size = format!("{}k", SCRATCH_BYTES >> 10);
    image::make_file_system(&stage, &files::path_of(&disk), &size)?;
    std::fs::remove_dir_all(&stage).map_err(Error::io("remove", &stage))?;
    Ok(disk)
}

/// The usual init up to the command, and then systemd.
fn init_of_systemd() -> String {
    let set_up = image::INIT.split(AFTER_SET_UP).next().unwrap_or_default();
    format!("{set_up}{SYSTEMD}")
}

/// What the guest's init reads: shell variables.
fn config(options: &VmOptions) -> String {
    let buses = options.disks.iter().map(|disk| disk.bus);
    let mut modules: Vec<&str> = buses.flat_map(Bus::modules).copied().collect();
    modules.extend(options.modules.iter().map(String::as_str));
    let disks: Vec<String> = options
        .disks
        .iter()
        .map(|disk| format!("{}:{}", disk.name, u8::from(disk.is_rotational)))
        .collect();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "MODULES=({})", modules.join(" "));
    let _ = writeln!(text, "DISKS=({})", disks.join(" "));
    let _ = writeln!(text, "TIMEOUT_S={}", options.timeout.as_secs());
    let _ = writeln!(text, "TAKE_OUT={}", if options.out.is_some() { "1" } else { "" });
    for (name, value) in &options.environment {
        let value = value.clone().or_else(|| std::env::var(name).ok());
        if let Some(value) = value {
            let _ = writeln!(text, "export {name}={}", process::quoted(&value));
        }
    }
    text
}

/// The command as a shell script.
fn script(command: &[String]) -> String {
    match command {
        [script] => format!("{script}\n"),
        words => {
            let words: Vec<String> = words.iter().map(|word| process::quoted(word)).collect();
            format!("exec {}\n", words.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::options;

    fn options(words: &[&str]) -> VmOptions {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        options::parse(&words).unwrap()
    }

    #[test]
    fn one_word_is_a_script_and_several_are_a_program() {
        assert_eq!(script(&options(&["--", "ls; exit 3"]).command), "ls; exit 3\n");
        let words = ["--", "echo", "a b", "it's", "$HOME"];
        assert_eq!(script(&options(&words).command), "exec echo 'a b' 'it'\\''s' '$HOME'\n");
    }

    #[test]
    fn systemd_takes_over_after_the_set_up() {
        let init = init_of_systemd();
        let at = |words: &str| init.find(words).unwrap_or_else(|| panic!("{words}: {init}"));
        assert!(at("name_disk") < at("machine-id") && at("machine-id") < at("exec /lib/systemd"));
        assert!(!init.contains("busybox poweroff -f\n/"), "{init}");
    }

    #[test]
    fn the_guest_gets_its_modules_disks_and_variables() {
        let line = "--disk a:1M,model=hdd,bus=usb --module zram --env A=x'y --env ABSENT_ONE --timeout 7 --out o -- true";
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(
            config(&options(&words)),
            "MODULES=(xhci_pci usb_storage sd_mod zram)\nDISKS=(a:1)\nTIMEOUT_S=7\nTAKE_OUT=1\n\
             export A='x'\\''y'\n"
        );
    }
}
