//! What the JSON of a recording takes in memory, estimated before it is parsed: small text
//! may become large objects. What has no room is counted and left out.

use std::collections::BTreeMap;

/// Spans, tasks, series and identities may take this part of the memory; the rest is for values.
const TEXT_SHARE: usize = 3;

/// The facts may take this part; while they are replaced there are two of them.
const FACTS_SHARE: usize = 4;

/// The most that one object of the facts takes beside its text: a map with one entry.
const OBJECT_BYTES: usize = 640;

/// The most that one field or element takes beside its text: an entry of a map.
const FIELD_BYTES: usize = 96;

/// Memory that is left.
#[derive(Debug)]
pub(in crate::file) struct Budget {
    bytes: usize,
    text: usize,
    facts: usize,
    left_out: BTreeMap<&'static str, u64>,
}

impl Budget {
    pub(in crate::file) fn new(bytes: usize) -> Self {
        Self { bytes, text: 0, facts: 0, left_out: BTreeMap::new() }
    }

    /// Counts the facts in `raw`, which take the place of earlier ones.
    ///
    /// # Errors
    /// When they would take too much.
    pub(in crate::file) fn take_facts(&mut self, raw: &[u8]) -> Result<(), String> {
        let cost = |byte: &u8| match byte {
            b'{' => OBJECT_BYTES,
            b',' => FIELD_BYTES,
            _ => 1,
        };
        let bytes: usize = raw.iter().map(cost).sum();
        if bytes > self.bytes / FACTS_SHARE {
            return Err("its facts are more than a reader takes".to_owned());
        }
        self.facts = self.facts.max(bytes);
        Ok(())
    }

    /// Whether an object of type `T` with this text may be kept; counts it either way.
    pub(in crate::file) fn has_room_for<T>(&mut self, line: &[u8], what: &'static str) -> bool {
        let has_room = self.has_room(size_of::<T>() + line.len());
        if !has_room {
            *self.left_out.entry(what).or_default() += 1;
        }
        has_room
    }

    /// Whether something of so many bytes may be kept; counts it if so.
    pub(in crate::file) fn has_room(&mut self, bytes: usize) -> bool {
        let text = self.text + bytes;
        let has_room = text <= self.bytes / TEXT_SHARE;
        if has_room {
            self.text = text;
        }
        has_room
    }

    /// What is left for values.
    pub(in crate::file) fn left(&self) -> usize {
        self.bytes.saturating_sub(self.text + self.facts)
    }

    /// What was left out, in words.
    pub(in crate::file) fn left_out(self) -> impl Iterator<Item = String> {
        let said =
            |(what, count)| format!("{count} {what} were left out: more than a reader takes");
        self.left_out.into_iter().map(said)
    }
}
