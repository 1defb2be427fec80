//! A volume over the protocol of network block devices (NBD): to the kernel's own client over a
//! pair of sockets, or to any client that connects.
//!
//! - [`protocol`] reads what clients send and lays out answers, over any stream;
//! - [`server`] serves a volume over one connection, several requests at a time;
//! - [`device`] is the kernel's device over such a server, which may be killed and replaced;
//! - [`service`] serves all connections of a device, and keeps them.

pub mod device;
pub mod protocol;
pub mod server;
pub mod service;

pub use device::{DeviceSetup, KernelDevice};
pub use protocol::{Export, ExportFeatures, NbdCommand, NbdRequest, Negotiated};
pub use service::DeviceServer;
