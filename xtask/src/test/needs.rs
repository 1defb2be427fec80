//! The programs that the tests compare with or prepare devices with, and how to get them.
//!
//! As root on a system with apt the missing ones are installed; anywhere else, and when apt fails,
//! one line names the packages and the run goes on: the tests that need them say `skipped: needs
//! ...`. Node's packages go into a cache directory of root's, in the versions that `testkit` pins.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::web;

use super::Outcome;
use crate::error::Error;
use crate::process;

/// A program, the Debian package that holds it, and what it is used for.
pub(crate) struct Need {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const NEEDS: &[Need] = &[
    need("chromium", "chromium", "a browser for the pages"),
    need("clang", "clang", "the recorder's programs in the kernel, built again"),
    need("dbus-daemon", "dbus-daemon", "a bus for the service that unmounts sticks"),
    need("fio", "fio", "storage figures to compare with"),
    need("ioping", "ioping", "latency figures to compare with"),
    need("llvm-strip", "llvm", "the same"),
    need("losetup", "util-linux", "block devices over a file"),
    need("mbw", "mbw", "copy figures to compare with"),
    need("mkfs.btrfs", "btrfs-progs", "a copy-on-write file system"),
    need("mkfs.exfat", "exfatprogs", "an exFAT file system"),
    need("mkfs.ext4", "e2fsprogs", "a file system on a loop device"),
    need("mkfs.vfat", "dosfstools", "a FAT file system"),
    need("mkfs.xfs", "xfsprogs", "a file system with large inode numbers"),
    need("node", "nodejs", "drives the browser, checks the pages' types"),
    need("npm", "npm", "the driver and the type checker"),
    need("pkaction", "polkitd", "what that service asks"),
    need("qemu-system-x86_64", "qemu-system-x86", "a machine of its own"),
    need("sqlite3", "sqlite3", "a database on a RAM disk"),
    need("strace", "strace", "errors at each write of a file"),
    need("udisksctl", "udisks2", "the service that unmounts sticks for ordinary users"),
];

/// A browser and ten small packages over a slow line take some minutes; apt that asks or hangs is
/// given up.
const APT_LIMIT: Duration = Duration::from_secs(900);

/// One row of a list.
pub(crate) const fn need(
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
) -> Need {
    Need { program, package, purpose }
}

/// Installs what is missing if that is possible here. Never fails: what stays missing is said.
///
/// # Errors
/// None; the shape is that of every step.
pub(super) fn install(_root: &Path) -> Result<Outcome, Error> {
    let missing: Vec<String> =
        [obtain(NEEDS), packages()].into_iter().filter_map(Result::err).collect();
    Ok(if missing.is_empty() { Outcome::Done } else { Outcome::Skipped(missing.join("; ")) })
}

/// Gets Node's packages that the tests of pages use, for root as above; why not, in one line.
fn packages() -> Result<(), String> {
    let is_there = |(name, _): &(&str, &str)| web::package(name).is_ok();
    if web::PACKAGES.iter().all(is_there) {
        return Ok(());
    }
    let wanted = web::PACKAGES.map(|(name, version)| format!("{name}@{version}"));
    let missing = format!("missing Node packages {}", wanted.join(", "));
    let cache = web::cache().filter(|_| testkit::is_root() && process::find("npm").is_some());
    let Some(cache) = cache else {
        return Err(missing);
    };
    println!("npm install {}", wanted.join(" "));
    let mut command = Command::new("npm");
    command.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]);
    command.args(["--no-save", "--silent", "--prefix"]);
    command.arg(&cache).args(wanted);
    let installed = fs::create_dir_all(&cache)
        .map_err(|error| error.to_string())
        .and_then(|()| process::run(command, APT_LIMIT).map_err(|error| error.to_string()))
        .and_then(|finished| finished.success().map_err(|error| error.to_string()));
    installed.map(drop).map_err(|error| format!("{missing}: {error}"))
}

/// Installs what is missing of `needs`; what stays missing, and why, in one line.
pub(crate) fn obtain(needs: &'static [Need]) -> Result<(), String> {
    let absent = absent(needs, |program| process::find(program).is_some());
    if absent.is_empty() {
        return Ok(());
    }
    let missing = format!("missing {}", describe(&absent));
    if !(testkit::is_root() && process::find("apt-get").is_some()) {
        return Err(missing);
    }
    apt(&absent).map_err(|error| format!("{missing}: {error}"))
}

fn absent(needs: &'static [Need], is_there: impl Fn(&str) -> bool) -> Vec<&'static Need> {
    needs.iter().filter(|need| !is_there(need.program)).collect()
}

fn describe(needs: &[&Need]) -> String {
    let each = |need: &&Need| format!("{} ({})", need.package, need.purpose);
    needs.iter().map(each).collect::<Vec<_>>().join(", ")
}

fn apt(needs: &[&Need]) -> Result<(), Error> {
    let packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    println!("apt-get install {}", packages.join(" "));
    // Lists and mirrors fail for a moment now and then; a second failure means something.
    apt_get(&["-qq", "update"]).or_else(|_| apt_get(&["-qq", "update"]))?;
    let mut args = vec!["-qq", "install", "-y", "--no-install-recommends"];
    args.extend(packages);
    apt_get(&args)
}

fn apt_get(args: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(command, APT_LIMIT)?.success()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_asked_for() {
        assert!(absent(NEEDS, |_| true).is_empty());
        let absent = absent(NEEDS, |program| program != "mbw");
        assert_eq!(absent.len(), 1);
        assert_eq!(describe(&absent), "mbw (copy figures to compare with)".to_owned());
    }

    #[test]
    fn packages_are_in_order_and_have_a_purpose() {
        assert!(NEEDS.is_sorted_by_key(|need| need.program));
        assert!(NEEDS.iter().all(|need| !need.purpose.is_empty()));
    }
}
