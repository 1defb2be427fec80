//! `cargo xtask vm`: a command in a small throw-away machine with disks of a chosen kind and speed.
//!
//! For tests that need what this machine lacks or must not be disturbed with: slow disks, a stick
//! that is pulled out, swap, another kernel. `options` reads what was typed, `image` and `kernel`
//! make the guest's system once, `programs` builds what is to be run, `payload` packs it, `guest`
//! runs QEMU, `server` is its disks, over NBD, some with a `write_cache`. Nothing of a guest
//! stays behind, however this process ends.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::workspace;

mod arch;
mod cross;
mod disk;
mod files;
mod guest;
mod image;
mod kernel;
mod monitor;
mod options;
mod payload;
mod programs;
mod qemu;
mod server;
mod streams;

pub(crate) use arch::Arch;
pub(crate) use cross::{has_target, temporary_directory};

use guest::End;
use image::Image;
use options::VmOptions;
use payload::Copy;
use server::Disk;

/// As `timeout` of coreutils.
const TIMED_OUT: u8 = 124;

/// What failed is this program, not the command.
const FAILED: u8 = 125;

/// A guest that dies before its command has started is started again so often: the emulation of a
/// kernel that patches its own code fails now and then.
const BOOTS: usize = 3;

#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask vm")]
struct Line {
    #[command(flatten)]
    options: VmOptions,
}

/// Runs the words after `vm`; gives the command's exit status, 124 when its time was over, 125 when
/// something here failed (which is said on standard error).
pub(crate) fn run(args: &[String]) -> u8 {
    let outcome = crate::shown(crate::parse::<Line>("cargo xtask vm", args)).and_then(|line| {
        let Some(Line { options }) = line else {
            return Ok(0);
        };
        options.check().map_err(Error::Usage)?;
        perform(&options)
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: vm: {error}");
        FAILED
    })
}

/// Whether a guest can be started here without a download.
pub fn is_ready() -> bool {
    is_ready_with(&[])
}

/// As [`is_ready`], for a guest with these packages besides.
pub fn is_ready_with(packages: &[&str]) -> bool {
    let packages: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
    let (qemu, _) = Arch::NATIVE.qemu();
    crate::process::find(qemu).is_some() && image::is_there(Arch::NATIVE, &packages)
}

fn perform(options: &VmOptions) -> Result<u8, Error> {
    if options.clean {
        image::clean()?;
    } else if options.build {
        let image = image::obtain(options.arch, &options.all_packages())?;
        println!("{}", image.path().display());
    } else {
        return run_command(options);
    }
    Ok(0)
}

fn run_command(options: &VmOptions) -> Result<u8, Error> {
    let copies = copies(options)?;
    let image = image::obtain(options.arch, &options.all_packages())?;
    let disks = guest::disks(options)?;
    let boot = |command: &[String]| boot(options, command, &image, &copies, &disks);
    let first = boot(&options.command)?;
    match (&options.then, first) {
        (Some(_), TIMED_OUT) | (None, _) => Ok(first),
        (Some(then), _) => {
            let second = boot(std::slice::from_ref(then))?;
            Ok(if first == 0 { second } else { first })
        }
    }
}

/// Runs `command` in a guest; its exit status, 0 if it cut the power.
fn boot(
    options: &VmOptions,
    command: &[String],
    image: &Image,
    copies: &[Copy],
    disks: &[Arc<Disk>],
) -> Result<u8, Error> {
    let mut why = String::new();
    for boot in 0..BOOTS {
        let with_kvm = boot == 0 && options.arch == Arch::NATIVE && qemu::has_kvm();
        match guest::run(options, command, image, copies, disks, with_kvm)? {
            End::Status(status) => return Ok(status),
            End::Cut => return Ok(0),
            End::TimedOut => {
                eprintln!("xtask: vm: {} s are over", options.timeout.as_secs());
                return Ok(TIMED_OUT);
            }
            End::NotBooted(reason) => why = reason,
        }
    }
    Err(Error::Failed(format!("the guest did not start {BOOTS} times: {why}")))
}

/// What the guest is to have of this machine, built where it must be.
fn copies(options: &VmOptions) -> Result<Vec<Copy>, Error> {
    let root = workspace::current_root()?;
    let mut copies = Vec::new();
    if options
        .command
        .iter()
        .chain(&options.then)
        .chain(&options.before)
        .any(|word| word.contains("terrace"))
    {
        copies.push(programs::tool(&root, options.arch)?);
    }
    for package in &options.tests {
        copies.extend(programs::tests(&root, options.arch, package)?);
    }
    for program in &options.programs {
        let name = program
            .file_name()
            .ok_or_else(|| Error::Failed(format!("--bin {} is no program", program.display())))?;
        copies
            .push(Copy { source: program.clone(), target: Path::new(programs::FOLDER).join(name) });
    }
    if let Some(folder) = &options.directory {
        copies.push(Copy { source: folder.clone(), target: "/bench".into() });
    }
    Ok(copies)
}
