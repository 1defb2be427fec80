//! The units of the packages, as `systemd-analyze` judges them: whether systemd reads them without
//! a complaint, and how much of the machine each leaves open.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process;

/// The highest exposure that a unit may have, out of 10. `docs/install.md` says why that
/// of `terrace-warm.service` and `terrace-warm-watch.service` is more than 4: they work on
/// processes, files and disks of all users, where they are.
const EXPOSURE_MAX: &[(&str, f64)] = &[
    ("terrace-recorder.service", 4.0),
    ("terrace-warm.service", 4.5),
    ("terrace-warm-watch.service", 4.5),
];

/// What the units start.
const PROGRAM: &str = "/usr/bin/terrace";

const LIMIT: Duration = Duration::from_secs(120);

/// Verifies the units in `folder`, with `program` in place of the installed one; what each was
/// found to have.
///
/// # Errors
/// What systemd complains about, or a unit that leaves more open than it may.
pub fn examine(folder: &Path, program: &Path) -> Result<Vec<String>, Error> {
    let copies = testkit::TempDir::new();
    let mut examined = Vec::new();
    for (name, exposure_max) in EXPOSURE_MAX {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let copy = copies.join(name);
        let text = text.replace(PROGRAM, &program.to_string_lossy());
        fs::write(&copy, text).map_err(Error::io("write", &copy))?;
        verify(name, &copy)?;
        let exposure = exposure(&copy)?;
        if exposure > *exposure_max {
            let text = format!("{name}: exposure {exposure}, at most {exposure_max}");
            return Err(Error::Failed(text));
        }
        examined.push(format!("{name} verified, exposure {exposure}"));
    }
    Ok(examined)
}

/// Anything that systemd says of it is a complaint.
///
/// # Errors
/// That complaint.
pub fn verify(name: &str, path: &Path) -> Result<(), Error> {
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(path);
    let said = process::run(verify, LIMIT)?;
    let complaint = said.stderr.lines().find(|line| line.contains(name));
    if let Some(complaint) = complaint {
        return Err(Error::Failed(complaint.to_owned()));
    }
    said.success().map(drop)
}

/// How exposed systemd finds a unit, from 0 to 10.
///
/// # Errors
/// If it does not say.
pub fn exposure(path: &Path) -> Result<f64, Error> {
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=yes", "--no-pager"]).arg(path).env("LC_ALL", "C");
    let said = process::run(command, LIMIT)?.success()?.stdout;
    let line = said.lines().find_map(|line| line.split_once("Overall exposure level for "));
    let number =
        line.and_then(|(_, rest)| rest.split_once(": ")?.1.split(' ').next()?.parse().ok());
    number.ok_or_else(|| Error::Malformed {
        what: "systemd-analyze security",
        why: "no overall exposure".to_owned(),
    })
}
