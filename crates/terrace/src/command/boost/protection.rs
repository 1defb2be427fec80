//! What keeps a service going while memory is short: requests of a disk wait for it, and memory may
//! be freed only when they are done.
//!
//! All of it is asked for before anything is attached, by each process of a service. A container
//! may be refused some of it; that is said, and is no reason not to serve.

use sys::{Error, process, scheduling};

/// Killed after nearly all others, but not never: its memory is bounded, and a fault of it must not
/// end the machine.
const KILL_SCORE: i16 = -900;

/// Protects this process, and as to being killed those that it starts; a sentence for each part
/// that was refused.
pub(super) fn protect() -> Vec<String> {
    let said = |done: Result<(), Error>, then: &str| {
        let why = |error: Error| format!("{then} ({})", sys::plain_reason(&error.source));
        done.map_err(why).err()
    };
    // Before the memory: bringing all of it in takes some.
    let killed = said(
        process::set_memory_kill_score(KILL_SCORE),
        "the kernel may kill the service as soon as any other program when memory is short",
    );
    // Waiting for the disk that it serves, to have memory, would be waiting for itself.
    let reclaim = said(
        process::serve_memory_reclaim(),
        "the service may have to wait for its own disk when memory is short",
    );
    let locked = said(
        scheduling::hold_memory(),
        "pages of the service may leave memory, and a request wait until they are back",
    );
    [killed, reclaim, locked].into_iter().flatten().collect()
}
