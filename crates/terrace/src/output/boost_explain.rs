//! Which device has what of a file, for people: the first sentence says how much of it the flash
//! answers.
//!
//! Pure: figures become text.

use super::Page;
use model::Bytes;
use model::text::{count, escaped};
use serde::{Deserialize, Serialize};

/// Why a cache takes nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NothingNew {
    /// The budget of the day is used up.
    Budget,
    /// The flash is not used.
    Off,
}

/// Which device has what of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCoverage {
    /// The file.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Bytes of it that are on the volume.
    pub placed_bytes: u64,
    /// Its parts there.
    pub parts: u64,
    /// Bytes of it that are in the page cache; `None` if the kernel does not say.
    pub memory_bytes: Option<u64>,
    /// Bytes of it in the cache on flash.
    pub cached_bytes: u64,
    /// Bytes of it that are not, and were read once lately.
    pub read_once_bytes: u64,
    /// Why nothing new is cached now.
    pub nothing_new: Option<NothingNew>,
    /// Why nothing is read from the flash now.
    pub off: Option<String>,
}

impl FileCoverage {
    fn disk_bytes(&self) -> u64 {
        self.placed_bytes.saturating_sub(self.cached_bytes)
    }

    fn sentence(&self) -> String {
        let path = escaped(&self.path);
        let [all, cached, disk] =
            [self.placed_bytes, self.cached_bytes, self.disk_bytes()].map(Bytes);
        match &self.off {
            _ if self.placed_bytes == 0 => {
                format!("Nothing of {path} is on the volume: a read of it asks no device.")
            }
            Some(why) => {
                let why = escaped(why);
                format!("All {all} of {path} are read from the disk, as {why}.")
            }
            None if self.cached_bytes == 0 => format!("All {all} of {path} are on the disk only."),
            None if disk.0 == 0 => {
                format!("All {all} of {path} are in the cache: they are read from the flash.")
            }
            None => format!("{cached} of {path} are in the cache, {disk} on the disk only."),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let unplaced = self.bytes.saturating_sub(self.placed_bytes);
        if unplaced > 0 {
            notes.push(format!(
                "{} of it have no place on the volume: holes, or not written there yet",
                Bytes(unplaced)
            ));
        }
        if self.parts > 1 {
            notes.push(format!("it is in {} parts", count(self.parts)));
        }
        match self.memory_bytes.filter(|bytes| *bytes > 0) {
            Some(bytes) => notes.push(format!(
                "{} of it are in memory now: a read of these asks neither the flash nor the disk",
                Bytes(bytes)
            )),
            None if self.memory_bytes.is_some() => notes.push("nothing of it is in memory".into()),
            None => {}
        }
        if self.disk_bytes() == 0 {
            return notes;
        }
        match self.nothing_new {
            Some(NothingNew::Budget) => notes.push(
                "nothing new is cached now: the budget of the day for writing to the flash is used \
                 up"
                    .to_owned(),
            ),
            Some(NothingNew::Off) => notes.push("nothing new is cached now".to_owned()),
            None => {}
        }
        let once = Bytes(self.read_once_bytes);
        if once.0 > 0 {
            notes.push(format!("{once} were read once lately: the next read of them caches them"));
        }
        if self.disk_bytes() > once.0 {
            notes.push(format!(
                "{} were not read from the disk within what the cache remembers, or in long runs, \
                 or were written or evicted since: what is read twice is cached, and `boost fill` \
                 brings it at once",
                Bytes(self.disk_bytes() - once.0)
            ));
        }
        notes
    }

    /// A few lines.
    #[must_use]
    pub fn page(&self, page: Page) -> String {
        super::boost::page_of(std::iter::once((self.sentence(), self.notes())), page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_adds_up_to_what_is_on_the_volume() {
        let some = FileCoverage {
            path: "/a\n".to_owned(),
            bytes: 1 << 20,
            placed_bytes: 768 << 10,
            parts: 2,
            memory_bytes: Some(4096),
            cached_bytes: 512 << 10,
            read_once_bytes: 64 << 10,
            nothing_new: None,
            off: None,
        };
        assert_eq!(some.sentence(), "512 KiB of /a\\n are in the cache, 256 KiB on the disk only.");
        let notes = some.notes().join("\n");
        for words in ["256 KiB of it have no place", "2 parts", "64 KiB were read once", "192 KiB"]
        {
            assert!(notes.contains(words), "{notes}");
        }
        let all = FileCoverage { cached_bytes: 768 << 10, ..some.clone() };
        assert!(all.sentence().starts_with("All 768 KiB of"), "{}", all.sentence());
        assert!(!all.notes().join("\n").contains("twice"));
        let off = FileCoverage { off: Some("the flash failed".to_owned()), ..all };
        assert!(off.sentence().ends_with("read from the disk, as the flash failed."));
        let none = FileCoverage { placed_bytes: 0, cached_bytes: 0, ..some };
        assert!(none.sentence().starts_with("Nothing of"), "{}", none.sentence());
    }
}
