//! A RAM disk that survives: generations of a directory in a store on a disk.
//!
//! The idea: a generation is a manifest, which names pieces of data files. It counts once these are
//! durable and one rename has given the manifest its name. What is in memory is read, and nothing
//! is written that the store has: each piece has a hash of its bytes.
//!
//! ```text
//! save:     walk -> entries that changed -> pieces that changed -> data file -> manifest
//! restore:  manifest -> hidden directory -> data, metadata, links -> one rename
//! ```
//!
//! `docs/ramdisk-store.md` has the bytes, and how to recover without this program.

mod catalog;
mod content;
mod current;
mod identity;
mod manifest;
mod pack;
pub mod record;
mod restore;
mod save;
mod store;

pub use identity::DirectoryIdentity;
pub use manifest::{MANIFEST_VERSION, Manifest, seal};
pub use restore::{RamdiskRestore, RamdiskRestoreReport, restore};
pub use save::{SaveReport, SaveRequest, save};
pub use store::{Description, Generation, Store};
