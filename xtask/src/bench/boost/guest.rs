//! The scripts of this suite in a guest, and what they leave.
//! What is read of that is in `log`.

use std::fs;

use crate::bench::Session;
use crate::bench::guest::{self, GuestRun};
use crate::bench::report::malformed;
use crate::error::Error;

use super::log::RequestLog;

const TIMEOUT_S: u64 = 900;
const MEMORY: &str = "512M";
pub(super) const SCRIPTS: [(&str, &str); 6] = [
    ("use.py", include_str!("guest/use.py")),
    ("lib.sh", include_str!("guest/lib.sh")),
    ("warm.sh", include_str!("guest/warm.sh")),
    ("first.sh", include_str!("guest/first.sh")),
    ("second.sh", include_str!("guest/second.sh")),
    ("disk.sh", include_str!("guest/disk.sh")),
];

/// The disk, the stick, and where key and journal are.
const DISKS: [&str; 3] = ["disk:512M,model=hdd", "stick:64M,model=usb", "state:64M"];

/// Bytes of the file that is read, in MiB, and of the cache's file: the rest of the stick is its
/// file system's.
pub(super) const DATA_MIB: &str = "384";
pub(super) const CACHE: &str = "48m";
pub(super) const CACHE_BYTES: f64 = 48.0 * 1024.0 * 1024.0;

/// What is before the disk. A word that has the name of the tool would build it.
pub(super) const ENGINES: [&str; 4] = ["boost", "bcache", "dm-cache", "none"];

/// Runs a script, and another one in the next boot.
///
/// # Errors
/// When the guest fails.
pub(super) fn boot(
    session: &mut Session,
    what: &str,
    script: &[impl AsRef<str>],
    then: Option<&str>,
) -> Result<(), Error> {
    let script: Vec<&str> = script.iter().map(AsRef::as_ref).collect();
    eprintln!("{what}: {}", script.join(" "));
    let run = GuestRun {
        disks: &DISKS,
        memory: MEMORY,
        timeout_s: TIMEOUT_S,
        packages: &["bcache-tools"],
        modules: &["bcache", "dm_cache_smq", "fuse", "loop"],
        programs: &[],
        scripts: &SCRIPTS,
        then,
        command: &[&["bash"], &script[..]].concat(),
    };
    guest::run(session, &run)
}

fn text(session: &Session, name: &str) -> Result<String, Error> {
    let path = guest::out(session).join(name);
    fs::read_to_string(&path).map_err(Error::io("read", &path))
}

/// What the guest wrote down of skewed requests.
///
/// # Errors
/// When it left nothing, or something else.
pub(super) fn requests(session: &Session, name: &str) -> Result<RequestLog, Error> {
    RequestLog::read(&text(session, name)?)
}

/// Numbers, one in a line.
///
/// # Errors
/// As [`requests`].
pub(super) fn lines(session: &Session, name: &str) -> Result<Vec<f64>, Error> {
    let text = text(session, name)?;
    let all = text.lines().map(str::parse).collect::<Result<Vec<f64>, _>>();
    all.ok().filter(|all| !all.is_empty()).ok_or_else(|| malformed(format!("{name}: no numbers")))
}

/// As [`lines`], in rising order.
///
/// # Errors
/// As [`requests`].
pub(super) fn sorted(session: &Session, name: &str) -> Result<Vec<f64>, Error> {
    let mut all = lines(session, name)?;
    all.sort_by(f64::total_cmp);
    Ok(all)
}

/// A figure by its name.
///
/// # Errors
/// As [`requests`].
pub(super) fn figure(session: &Session, name: &str) -> Result<f64, Error> {
    let text = text(session, "results")?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    let value = pairs.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok());
    value.ok_or_else(|| malformed(format!("no {name} of the guest")))
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which so large a share of the sorted ones is.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted[at.min(sorted.len() - 1)]
}
