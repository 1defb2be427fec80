//! The packages of a processor that this machine does not have, in an emulated Debian 12:
//! installed, used, removed.

use std::fs;

use super::{Command, Finding, LIMIT, Looked, Packages, emptied, process};
use crate::error::Error;
use crate::vm::Arch;

/// What the guest's Debian lacks for it.
const TOOLS: [&str; 4] = ["dpkg", "diffutils", "gzip", "tar"];

/// In a folder with the files; the guest's `terrace` is only the installed one. The times of an
/// emulated machine say nothing.
const SCRIPT: &str = r#"set -e
listed() {
    (cd /; find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp \
        -o -path ./bench -o -path ./out -o -path ./var/log -o -path ./var/cache \
        -o -path ./var/lib/dpkg \) -prune -o -print) | sort
    ls /var/lib/dpkg/info 2>/dev/null | grep '^terrace' || true
}
used() {
    "$1" --version | sed -n 's/^\(target\|recorders\)  *//p'
    "$1" run -- true 2>/run/said
    [ -s /run/said ]
    "$1" survey --quick --no-keep >/run/survey
    grep -q RAM /run/survey
}
listed >/run/before
dpkg -i --force-depends ./terrace.deb >/dev/null
used terrace
! ls /etc/systemd/system/*.wants/terrace* 2>/dev/null
dpkg --purge terrace >/dev/null
sh install.sh . --prefix /usr/local/trial >/dev/null
used /usr/local/trial/bin/terrace >/dev/null
sh install.sh --uninstall --prefix /usr/local/trial >/dev/null
rmdir /usr/local/trial 2>/dev/null || true
listed >/run/after
diff /run/before /run/after >&2
"#;

/// `.deb` and `install.sh` of a target: they install, work, and leave nothing.
pub(super) fn installs(packages: &Packages) -> Looked {
    let Some(arch) = Arch::of_target(&packages.release.target) else {
        return Ok(Finding::Skipped(format!("a machine of {}", packages.release.target)));
    };
    let (qemu, debian) = arch.qemu();
    if process::find(qemu).is_none() {
        return Ok(Finding::Skipped(debian.to_owned()));
    }
    let folder = packages.unpacked.with_file_name("guest");
    emptied(&folder)?;
    let archive = format!("{}.tar.gz", packages.release.name());
    for name in [archive.as_str(), "install.sh", super::SUMS] {
        copy(packages, name, &folder.join(name))?;
    }
    let deb = packages.with_end(".deb")?;
    fs::copy(&deb, folder.join("terrace.deb")).map_err(Error::io("copy", &deb))?;
    let script = folder.join("trial.sh");
    fs::write(&script, SCRIPT).map_err(Error::io("write", &script))?;
    let program = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let mut guest = Command::new(program);
    guest.args(["vm", "--arch", arch.name(), "--mem", "2G", "--timeout", "500"]);
    guest.args(TOOLS.iter().flat_map(|tool| ["--package", tool]));
    guest.arg("--dir").arg(&folder).args(["--", "sh trial.sh"]);
    let ran = process::run(guest, LIMIT)?.success()?;
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = ".deb and install.sh: `run -- true` and `survey --quick` work, their removal leaves \
                nothing";
    Ok(Finding::Held(format!("{said}; {text}")))
}

fn copy(packages: &Packages, name: &str, to: &std::path::Path) -> Result<(), Error> {
    let from = packages.out.join(name);
    fs::copy(&from, to).map(drop).map_err(Error::io("copy", &from))
}
