//! Mounts of tests over FUSE: they carry the number of the process, so that the next test can
//! remove what a killed one left ([`crate::fuse_leftovers`]).

use serve::fuse::Channel;
use serve::fuse::channel::RootKind;
use std::path::Path;

/// How the mounts of this program's tests are known, with the number of the process after it.
pub(crate) const SOURCE_PREFIX: &str = "terrace-test-";

/// How often an unmount is tried: a device that was just detached is released a little later.
const UNMOUNT_TRIES: u32 = 50;

/// Mounts a connection at `path`.
pub(crate) fn mount(channel: &Channel, path: &Path, root: RootKind) -> Result<(), String> {
    let source = format!("{SOURCE_PREFIX}{}", std::process::id());
    channel.mount(path, root, &source).map_err(|error| format!("FUSE to be mounted: {error}"))
}

/// Whether nothing is mounted at `path` any more. By force if need be, which ends the connection
/// although a process holds a file of it.
pub(crate) fn unmount(path: &Path) -> bool {
    for _ in 0..UNMOUNT_TRIES {
        if sys::mount::unmount(path).is_ok() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    sys::mount::abandon(path).is_ok()
}
