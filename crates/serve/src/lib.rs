//! Exports of a volume to the kernel, and what drives an engine behind them.
//!
//! - [`volume`]: the contract of what is exported, blocking and called from several threads;
//! - [`fuse`]: a volume as the only file of a file system, to put a loop device on; its server may
//!   be killed and a successor goes on, without an error to those who use it;
//! - [`nbd`]: a volume over the protocol of network block devices, also to the kernel's own client;
//! - [`driver`]: an engine of `model::engine` over real devices; [`direct`]: a device without one;
//! - [`supervisor`]: starts a server again and again, and keeps its open files ([`holder`]) for the
//!   successor.
//!
//! What a volume is made of is not known here: a cache, a plain device and a device of a test are
//! served alike.

#![forbid(unsafe_code)]

pub mod direct;
pub mod driver;
pub mod fuse;
pub mod holder;
pub mod nbd;
pub mod supervisor;
pub mod volume;
