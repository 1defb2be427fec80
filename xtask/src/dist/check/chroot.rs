//! Fresh Debian systems in directories: the package is installed, used and purged there.
//!
//! `debootstrap` makes each once, from the mirror that apt of this machine uses; a trial works on a
//! copy. Its mounts are in a mount namespace of the script, so they end with it.

use std::path::{Path, PathBuf};

use super::{Command, Finding, LIMIT, Looked, Packages, emptied, process};
use crate::dist::WORK;
use crate::error::Error;

/// A release of Debian.
#[derive(Debug)]
pub(super) struct DebianRelease {
    pub(super) title: &'static str,
    name: &'static str,
}

/// Those on which the package must work.
pub(super) const SUITES: &[DebianRelease] = &[
    DebianRelease { title: "Debian 11", name: "bullseye" },
    DebianRelease { title: "Debian 12", name: "bookworm" },
    DebianRelease { title: "Debian 13", name: "trixie" },
];

/// The first with glibc 2.28; mirrors drop old releases.
const OLDEST: DebianRelease = DebianRelease { title: "Debian 10", name: "buster" };

/// `$1` is the system. What the package is not asked to remove is not listed: logs, caches, the
/// lists of the package manager itself.
const SCRIPT: &str = r#"set -e
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
listed() {
    (cd "$1"; find . \( -path ./proc -o -path ./sys -o -path ./run -o -path ./tmp \
        -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/dpkg \) -prune -o -print) | sort
    ls "$1/var/lib/dpkg/info" | grep '^terrace' || true
}
in_it() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$D" "$@"; }
D=$1
"#;

const DEB: &str = r#"
listed "$D" >"$D.before"
begun=$(date +%s%N)
since() { echo "$1 $((($(date +%s%N) - begun) / 1000000)) ms"; }
in_it dpkg -i /terrace.deb >/dev/null
in_it terrace run -- true 2>"$D.run"
[ -s "$D.run" ]
since "first verdict after"
in_it terrace survey --quick --no-keep >"$D.survey"
grep -q RAM "$D.survey"
since "survey --quick after"
! ls "$D"/etc/systemd/system/*.wants/terrace* 2>/dev/null
in_it dpkg --purge terrace >/dev/null
listed "$D" >"$D.after"
diff "$D.before" "$D.after" >&2
"#;

const TARBALL: &str = r#"
in_it /terrace/bin/terrace run -- true
in_it /terrace/bin/terrace survey --quick --no-keep >"$D.survey"
grep -q RAM "$D.survey"
"#;

/// The package installs, works and leaves nothing.
pub(super) fn deb(packages: &Packages, suite: &DebianRelease) -> Looked {
    let system = match fresh(packages, suite)? {
        Ok(system) => system,
        Err(need) => return Ok(Finding::Skipped(need)),
    };
    copy(&packages.with_end(".deb")?, &system.join("terrace.deb"))?;
    let said = in_namespace(&system, DEB)?;
    let times = said.trim().replace('\n', ", ");
    let text = "installed, off, `run -- true` and `survey --quick` work, a purge leaves nothing";
    Ok(Finding::Held(format!("{text}; {times}")))
}

/// The program runs on the oldest release that can be had.
pub(super) fn tarball(packages: &Packages) -> Looked {
    let mut missing = Vec::new();
    for suite in [&OLDEST].into_iter().chain(SUITES) {
        let system = match fresh(packages, suite)? {
            Ok(system) => system,
            Err(need) => {
                missing.push(need);
                continue;
            }
        };
        copy(&packages.unpacked, &system.join("terrace"))?;
        in_namespace(&system, TARBALL)?;
        let without: String = missing.iter().map(|need| format!("; would need {need}")).collect();
        let text = format!("{}: `run -- true` and `survey --quick` work", suite.title);
        return Ok(Finding::Held(text + &without));
    }
    Ok(Finding::Skipped(missing.remove(0)))
}

/// A copy of a fresh system; what it would need, if that is missing.
fn fresh(packages: &Packages, suite: &DebianRelease) -> Result<Result<PathBuf, String>, Error> {
    if process::find("debootstrap").is_none() {
        return Ok(Err("debootstrap".to_owned()));
    }
    if !testkit::is_admin() {
        return Ok(Err("root that may mount".to_owned()));
    }
    let folder = packages.release.root.join(WORK).join("chroots");
    let (base, done) = (folder.join(suite.name), folder.join(format!("{}.done", suite.name)));
    if !done.exists() {
        emptied(&base)?;
        let mut command = Command::new("debootstrap");
        command.args(["--variant=minbase", suite.name]).arg(&base).arg(mirror()?);
        if let Err(error) = process::run(command, LIMIT)?.success() {
            return Ok(Err(format!("a mirror that has {} ({error})", suite.title)));
        }
        std::fs::write(&done, "").map_err(Error::io("write", &done))?;
    }
    let system = folder.join(format!("{}.trial", suite.name));
    emptied(&system)?;
    copy(&base.join("."), &system)?;
    Ok(Ok(system))
}

/// Runs a script with the mounts of a system around it; its output.
fn in_namespace(system: &Path, script: &str) -> Result<String, Error> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{SCRIPT}{script}"), "sh"]).arg(system);
    Ok(process::run(command, LIMIT)?.success()?.stdout)
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut command = Command::new("cp");
    command.args(["-a", "--"]).arg(from).arg(to);
    process::run(command, LIMIT)?.success().map(drop)
}

/// Where apt of this machine gets Debian from.
fn mirror() -> Result<String, Error> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]);
    command.arg("Created-By: Packages");
    let said = process::run(command, LIMIT)?.success()?.stdout;
    let main = said.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [uri, release, component] = words[..] else { return None };
        (component == "main" && !release.contains(['-', '/'])).then(|| uri.to_owned())
    });
    main.ok_or_else(|| Error::Failed("apt of this machine names no mirror of Debian".to_owned()))
}
