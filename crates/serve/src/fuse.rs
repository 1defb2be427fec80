//! A volume as the only file of a file system in user space (FUSE), mounted over an ordinary file.
//!
//! A loop device over it is a disk whose requests arrive here one by one.
//!
//! - [`protocol`] reads what the kernel sends; it does no I/O;
//! - [`channel`] is one descriptor of the connection: requests are read from it, answered by it;
//! - [`server`] serves a volume with one thread for each channel;
//! - [`session`] opens the channels, or takes them over from a server that was killed.

pub mod channel;
pub mod protocol;
pub mod server;
pub mod session;

pub use channel::{Channel, Received, resend_is_offered};
pub use server::{FileOptions, FileServer};
pub use session::Session;
