//! The number of a device in one word, as the kernel has it inside and as a recording's file keeps
//! it: 12 bits for its driver (major), 20 for the device itself (minor). What programs are told by
//! `stat` has another form.

/// Bits of the minor number.
const MINOR_BITS: u32 = 20;

/// One word of major and minor number.
pub fn joined((major, minor): (u32, u32)) -> u32 {
    major << MINOR_BITS | minor
}

/// Whether the device has such a word.
pub fn is_one((major, minor): (u32, u32)) -> bool {
    major < 1 << (u32::BITS - MINOR_BITS) && minor < 1 << MINOR_BITS
}

/// Major and minor number.
pub fn split(number: u32) -> (u32, u32) {
    (number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_keep_all_their_bits() {
        for device in [(0, 0), (7, 1), (259, 0xf_ffff), (0xfff, 0x8_0000)] {
            assert_eq!(split(joined(device)), device);
            assert!(is_one(device));
        }
        assert!(!is_one((0x1000, 0)) && !is_one((0, 0x10_0000)));
        assert_eq!(joined((254, 1)), 0x0fe0_0001);
    }
}
