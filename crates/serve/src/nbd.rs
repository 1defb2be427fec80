//! A volume over the protocol of network block devices (NBD): to the kernel's own client over a
//! pair of sockets, or to any client that connects.
//!
//! - [`protocol`] reads what clients send and lays out answers, over any stream;
//! - [`server`] serves a volume over one connection, several requests at a time;
//! - [`device`] is the kernel's device over such a server, which may be killed and replaced.

pub mod device;
pub mod protocol;
pub mod server;

pub use device::KernelDevice;
pub use protocol::{Export, ExportFeatures, NbdCommand, NbdRequest, Negotiated};
