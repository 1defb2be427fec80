//! Everything built once more, from a copy of the tree in another directory and without git: each
//! file must have the same bytes.

use std::fs;

use super::{Command, Finding, LIMIT, Looked, Packages, emptied, process};
use crate::dist::{Release, SUMS, WORK, make, read};
use crate::error::Error;

pub(super) fn is_identical(packages: &Packages) -> Looked {
    let first = &packages.release;
    let folder = first.root.join(WORK).join("again");
    let (copy, out) = (folder.join("tree"), folder.join("out"));
    emptied(&copy)?;
    emptied(&out)?;
    let script = "tar -c --exclude=./target --exclude=./.git . | tar -x -C \"$1\"";
    let mut command = Command::new("sh");
    command.current_dir(&first.root).args(["-c", script, "sh"]).arg(&copy);
    process::run(command, LIMIT)?.success()?;
    let release = Release::of(&copy, &first.source, &first.target)?;
    make(&release, &folder.join("build"), &out)?;
    let mut same = 0;
    let mut others = Vec::new();
    for entry in fs::read_dir(&out).map_err(Error::io("list", &out))? {
        let entry = entry.map_err(Error::io("list", &out))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != SUMS && read(&entry.path())? == read(&packages.out.join(&name))? {
            same += 1;
        } else {
            others.push(name);
        }
    }
    Ok(if others.is_empty() {
        Finding::Held(format!("{same} files are identical, built in two directories"))
    } else {
        Finding::Failed(format!("{same} files are identical, not {}", others.join(", ")))
    })
}
