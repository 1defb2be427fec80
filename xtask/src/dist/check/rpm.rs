//! The `.rpm` into an empty root. Its scripts need a shell and its library is another package's, so
//! both are left out there; the program runs with the libraries of this machine.

use super::{Command, Finding, LIMIT, Looked, Packages, emptied, process, said};
use crate::error::Error;

/// Installs, works, and leaves no file.
pub(super) fn into_an_empty_root(packages: &Packages) -> Looked {
    if process::find("rpm").is_none() {
        return Ok(Finding::Skipped("rpm".to_owned()));
    }
    let root = packages.unpacked.with_file_name("rpm-root");
    emptied(&root)?;
    let package = packages.with_end(".rpm")?;
    let rpm = |words: &[&str]| -> Result<String, Error> {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(&root).args(words);
        Ok(process::run(command, LIMIT)?.success()?.stdout)
    };
    rpm(&["--initdb"])?;
    let requires = rpm(&["-qp", "--requires", &package.to_string_lossy()])?;
    let install = ["-i", "--nodeps", "--noscripts", "--force-debian"];
    rpm(&[&install[..], &[&package.to_string_lossy()]].concat())?;
    let files = rpm(&["-ql", "terrace"])?.lines().count();
    rpm(&["-V", "--nodeps", "terrace"])?;
    let program = || Command::new(root.join("usr/bin/terrace"));
    said(program(), &["run", "--", "true"])?;
    let survey = said(program(), &["survey", "--quick", "--no-keep"])?;
    rpm(&["-e", "--noscripts", "terrace"])?;
    let mut find = Command::new("find");
    find.arg(root.join("usr")).args(["-not", "-type", "d"]);
    let left = said(find, &[])?.lines().count();
    let is_good = left == 0 && survey.contains("RAM") && requires.contains("glibc >= 2.28");
    let seen = format!("{files} files, `run` and `survey --quick` work, {left} files left");
    Ok(if is_good { Finding::Held(seen) } else { Finding::Failed(seen) })
}
