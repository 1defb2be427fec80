//! Numbers of few bytes: seven bits a byte, lowest first, the top bit says that more follow
//! (LEB128); signed ones fold their sign into the lowest bit first (zigzag).
//!
//! The reader of a damaged or hostile file goes through [`Input`], which never reads past
//! its end and never panics.

/// The most bytes that a 64-bit number takes.
const MAX_BYTES: u32 = 10;

/// Appends an unsigned number.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Bytes that are taken from the front.
#[derive(Debug)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes; `None` where there are fewer.
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// The next unsigned number; `None` where it is cut or does not fit 64 bits.
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for index in 1..MAX_BYTES {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if index == MAX_BYTES - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * index);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// The next signed number.
    pub(super) fn signed(&mut self) -> Option<i64> {
        let folded = self.number()?;
        Some((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        let mut values: Vec<i64> = (0..64)
            .flat_map(|bit| {
                let power = 1i64 << bit;
                [power, power.wrapping_sub(1), power.wrapping_neg(), !power]
            })
            .collect();
        values.extend([0, i64::MIN, i64::MAX]);
        let mut bytes = Vec::new();
        for value in &values {
            put_signed(&mut bytes, *value);
            put(&mut bytes, *value as u64);
        }
        let mut input = Input::new(&bytes);
        for value in &values {
            assert_eq!(input.signed(), Some(*value));
            assert_eq!(input.number(), Some(*value as u64));
        }
        assert!(input.is_empty());
    }

    #[test]
    fn what_is_cut_or_too_long_is_no_number() {
        assert_eq!(Input::new(&[]).number(), None);
        assert_eq!(Input::new(&[0x80]).number(), None);
        assert_eq!(Input::new(&[0xff; 11]).number(), None);
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Input::new(&largest).number(), Some(u64::MAX));
        largest[9] = 2;
        assert_eq!(Input::new(&largest).number(), None);
    }
}
