//! Devices that wrap a device: one counts requests, one slows them down. Tests have a third, which
//! fails them (`testkit::Faulty`).
//!
//! Each keeps the contract of [`model::device::BlockDevice`] and can wrap any other.

mod counted;
mod throttled;

pub use counted::{Count, Counted, Counts};
pub use throttled::{Limits, Throttled};
