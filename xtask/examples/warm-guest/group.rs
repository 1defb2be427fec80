//! A control group of version 2 with the memory controller, which goes away with all that is in it.
//! The guest has no other version, and no service manager whose groups could be in the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::system::{failed, write};

const TREE: &str = "/sys/fs/cgroup";
/// A killed process leaves its group within some milliseconds.
const LEAVING: Duration = Duration::from_millis(10);
const LOOKS: usize = 500;

/// A group; its children must go before it does.
pub(crate) struct Group(PathBuf);

impl Group {
    /// Below the root.
    pub(crate) fn new(name: &str) -> Outcome<Self> {
        Self::below(Path::new(TREE), name)
    }

    pub(crate) fn child(&self, name: &str) -> Outcome<Self> {
        Self::below(&self.0, name)
    }

    fn below(parent: &Path, name: &str) -> Outcome<Self> {
        let control = parent.join("cgroup.subtree_control");
        write(&control.to_string_lossy(), "+memory")?;
        let folder = parent.join(name);
        fs::create_dir(&folder).map_err(failed(name))?;
        Ok(Self(folder))
    }

    /// A command that starts its program inside of the group.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let enter = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", enter]).arg(&self.0).arg(program);
        command
    }

    pub(crate) fn set(&self, file: &str, value: &str) -> Outcome<()> {
        write(&self.0.join(file).to_string_lossy(), value)
    }

    /// Bytes that the group is charged with.
    pub(crate) fn usage(&self) -> Outcome<u64> {
        let text = self.text("memory.current")?;
        text.trim().parse().map_err(failed("memory.current"))
    }

    /// The line that begins with `key` in a file of such lines, as `memory.events`.
    pub(crate) fn counter(&self, file: &str, key: &str) -> Outcome<u64> {
        let text = self.text(file)?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (_, value) =
            lines.find(|(name, _)| *name == key).ok_or_else(|| format!("no {key} in {file}"))?;
        value.parse().map_err(failed(file))
    }

    fn text(&self, file: &str) -> Outcome<String> {
        fs::read_to_string(self.0.join(file)).map_err(failed(file))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.set("cgroup.kill", "1");
        for _ in 0..LOOKS {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(LEAVING);
        }
    }
}
