//! A RAM disk that survives: generations of a directory in a store on a disk.
//!
//! The idea: a generation is a manifest, which names pieces of data files. It counts once these are
//! durable and one rename has named it. Nothing is written that the store has, by hashes.
//!
//! ```text
//! save:     walk -> entries that changed -> pieces that changed -> data file -> manifest
//! restore:  manifest -> hidden directory -> data, metadata, links -> one rename
//! create:   manifest -> a mount without a place -> data, metadata, links -> one call
//! ```
//!
//! `docs/ramdisk-store.md` has the bytes, and how to recover without this program.

mod adopt;
mod catalog;
mod change;
mod content;
mod create;
mod current;
mod devices;
mod freeze;
mod gauges;
mod hidden;
mod identity;
mod keeper;
mod kind;
mod known;
mod manifest;
mod pack;
pub mod record;
mod release;
mod restore;
mod save;
mod snapshot;
mod status;
mod store;
mod trial;

pub use adopt::{RamdiskAdoptReport, adopt};
pub use change::{RamdiskGrowReport, RamdiskRemove, RamdiskRemoveReport, grow, remove};
pub use create::{RamdiskCreate, RamdiskCreateReport, create};
pub use freeze::FreezeCommands;
pub use gauges::RamdiskGauges;
pub use identity::DirectoryIdentity;
pub use keeper::Keeper;
pub use kind::RamdiskKind;
pub use known::{known, known_at, known_persist, note_kept};
pub use manifest::{MANIFEST_VERSION, Manifest, seal};
pub use release::{RamdiskReleaseReport, release};
pub use restore::{RamdiskRestore, RamdiskRestoreReport, restore};
pub use save::{Comparison, SaveReport, SaveRequest, compare, save};
pub use status::{CompressedSample, RamdiskGrowth, RamdiskStatus, list, status};
pub use store::{Description, Generation, Store};
pub use trial::{RamdiskTrial, TrialPlace};
