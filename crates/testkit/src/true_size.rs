//! A disk that claims more bytes than it has, as fake sticks do: where a range of its addresses
//! really is. Pure: the server of the requests does as this says.

/// What such a disk does with the bytes beyond those that it has. No request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Writes are dropped without an error, reads give zeros.
    Dropped,
    /// The address wraps around: what is written there replaces what is at the start.
    Wraps,
}

/// The bytes that a disk has, and what becomes of those beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueSize {
    /// What it has, at least 1 byte.
    pub bytes: u64,
    /// What becomes of the others.
    pub beyond: Beyond,
}

impl TrueSize {
    /// Where the bytes `[offset, offset + len)` really are: parts in order, each with its offset
    /// (`None`: nowhere) and its length.
    #[must_use]
    pub fn places(self, offset: u64, len: u64) -> Vec<(Option<u64>, u64)> {
        let size = self.bytes;
        let mut places = Vec::new();
        let (mut at, end) = (offset, offset.saturating_add(len));
        while at < end {
            let (place, room) = match self.beyond {
                Beyond::Dropped if at >= size => (None, end - at),
                Beyond::Dropped => (Some(at), size - at),
                Beyond::Wraps => (Some(at % size), size - at % size),
            };
            let count = room.min(end - at);
            places.push((place, count));
            at += count;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_true_size_is_nowhere_or_at_the_start() {
        let places = |beyond, offset, len| TrueSize { bytes: 100, beyond }.places(offset, len);
        assert_eq!(places(Beyond::Dropped, 90, 20), [(Some(90), 10), (None, 10)]);
        assert_eq!(places(Beyond::Dropped, 300, 5), [(None, 5)]);
        assert_eq!(places(Beyond::Wraps, 90, 20), [(Some(90), 10), (Some(0), 10)]);
        assert_eq!(
            places(Beyond::Wraps, 250, 160),
            [(Some(50), 50), (Some(0), 100), (Some(0), 10)]
        );
        assert_eq!(places(Beyond::Dropped, 7, 0), []);
    }
}
