//! Scripts that keep a RAM disk on a disk by rsync: anything-sync-daemon and log2ram, unchanged but
//! for the path of log2ram's configuration. Each needs root, binds mounts, and is undone on drop.

use std::process::Command;

use super::{Scene, make_tree};
use crate::bench::Session;
use crate::bench::copy::{durable_seconds, shell};
use crate::bench::peer::{Peer, Version};
use crate::error::Error;
use crate::process::quoted;

/// Where log2ram looks for its configuration.
const LOG2RAM_CONFIGURATION: &str = "/etc/log2ram.conf";

/// A script that is ready: what it saves was saved once.
pub(super) struct SyncScript {
    name: &'static str,
    tree: String,
    /// A line of the shell that saves.
    save: String,
    /// One that undoes all of it.
    undo: String,
}

impl SyncScript {
    /// Those that are here, each with a tree of [`make_tree`].
    ///
    /// # Errors
    /// When one of them fails.
    pub(super) fn all(session: &mut Session, scene: &Scene) -> Result<Vec<Self>, Error> {
        let found = [anything_sync_daemon(session, scene)?, log2ram(session, scene)?];
        Ok(found.into_iter().flatten().collect())
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// What it saves.
    pub(super) fn tree(&self) -> &str {
        &self.tree
    }

    /// Seconds of a save to the disk at `point`, with the sync that the script itself lacks.
    pub(super) fn save(&self, point: &str) -> Result<f64, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.save]);
        durable_seconds(command, point)
    }
}

impl Drop for SyncScript {
    fn drop(&mut self) {
        // What stays mounted is named by the end of the bench: its directory cannot be removed.
        let _ = shell(&self.undo);
    }
}

/// The peer `name`, noted as missing if it is not here.
fn find(session: &mut Session, name: &str) -> Result<Option<Peer>, Error> {
    let Some(mut peer) = Peer::find_if_any(&session.request, name, Version::Unsaid)? else {
        session.record.note(format!("{name}: not installed"));
        return Ok(None);
    };
    let text = std::fs::read_to_string(&peer.program).unwrap_or_default();
    let version = text.lines().find_map(|line| line.strip_prefix("VERS=\"")?.strip_suffix('"'));
    peer.version = version.map(str::to_owned);
    session.record.program(peer.clone());
    Ok(Some(peer))
}

/// The tree is on the disk; `sync` copies it to memory and covers it, `resync` copies it back.
fn anything_sync_daemon(session: &mut Session, scene: &Scene) -> Result<Option<SyncScript>, Error> {
    const NAME: &str = "anything-sync-daemon";
    let Some(peer) = find(session, NAME)? else { return Ok(None) };
    let tree = scene.on_disk("asd");
    make_tree(&tree)?;
    let text = format!(
        "WHATTOSYNC=('{tree}')\nVOLATILE='{}'\nUSE_OVERLAYFS=no\nUSE_BACKUPS=no\n",
        scene.memory.path().display()
    );
    let configuration = session.directory.write("asd.conf", text)?;
    let environment =
        format!("ASDCONF='{configuration}' DAEMON_FILE='{}'", session.directory.file("asd"));
    let program = quoted(&peer.program.display().to_string());
    let line = |word: &str| format!("{environment} {program} {word}");
    let undo = format!(
        "{}; rm -f \"/run/asd-$(realpath '{configuration}' | sha256sum | cut -b -16)-lock\"",
        line("unsync")
    );
    // It is undone also if the first one fails half-way.
    let script = SyncScript { name: NAME, tree, save: line("resync"), undo };
    shell(&line("sync"))?;
    session.record.command(format!("{NAME} resync"));
    Ok(Some(script))
}

/// The tree is in memory; what is beside it, `hdd.` and its name, is a directory on the disk.
fn log2ram(session: &mut Session, scene: &Scene) -> Result<Option<SyncScript>, Error> {
    const NAME: &str = "log2ram";
    let Some(peer) = find(session, NAME)? else { return Ok(None) };
    let (tree, on_disk) = (scene.in_memory(NAME), scene.on_disk(NAME));
    make_tree(&tree)?;
    let text = format!("SIZE=1G\nPATH_DISK='{tree}'\nJOURNALD_AWARE=false\n");
    let configuration = session.directory.write("log2ram.conf", text)?;
    let text = std::fs::read_to_string(&peer.program)
        .map_err(Error::io("read", &peer.program))?
        .replace(LOG2RAM_CONFIGURATION, &configuration);
    let copy = session.directory.write("log2ram", text)?;
    let covered = scene.in_memory("hdd.log2ram");
    let undo = format!("umount '{covered}'");
    let script = SyncScript { name: NAME, tree, save: format!("bash '{copy}' write"), undo };
    shell(&format!("mkdir '{covered}' '{on_disk}' && mount --bind '{on_disk}' '{covered}'"))?;
    shell(&script.save)?;
    session.record.command(format!("{NAME} write"));
    Ok(Some(script))
}
