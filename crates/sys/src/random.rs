//! One random number from the kernel, for seeding generators.
//!
//! Not a generator: callers expand the seed themselves and record it, so that a failing
//! run can be repeated.

use crate::error::{Error, Result, failed};
use rustix::io::retry_on_intr;
use rustix::rand::{GetRandomFlags, getrandom};

/// 64 random bits from `getrandom`.
///
/// # Errors
/// `Unsupported` where the call is missing or filtered.
pub fn seed() -> Result<u64> {
    const OPERATION: &str = "draw a random seed";
    let mut bytes = [0u8; 8];
    let drawn = retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty()));
    if drawn.map_err(failed(OPERATION))? != bytes.len() {
        return Err(Error::new(OPERATION, std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_differ() {
        assert_ne!(super::seed().unwrap(), super::seed().unwrap());
    }
}
