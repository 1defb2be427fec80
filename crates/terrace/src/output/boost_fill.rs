//! What a fill of a cache brought, for people and as JSON: the first sentence is the receipt.
//!
//! Pure: a result becomes text.

use super::Page;
use crate::exit::Exit;
use model::Bytes;
use model::text::{count, escaped};
use serde::{Deserialize, Serialize};

/// Why a fill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillEnd {
    /// All that was wanted was looked at.
    All,
    /// The budget of the day is used up.
    Budget,
    /// The cache holds no more: it would evict what was filled first.
    Full,
    /// The flash is not used.
    Off,
    /// The cache is being detached.
    Detaching,
    /// Ctrl-C, or the caller has gone.
    Cancelled,
    /// The service ended.
    Gone,
}

/// What a fill brought, as `terrace.boost_fill/1` has it. Bytes are of whole blocks of the volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FillReceipt {
    /// `terrace.boost_fill/1`.
    pub schema: &'static str,
    /// The cache.
    pub name: String,
    /// Where the order is from: `page_cache` or `list`.
    pub source: &'static str,
    /// Files of which something was in the page cache; `None` of a list.
    pub files: Option<u64>,
    /// What was wanted, each byte once.
    pub wanted_bytes: u64,
    /// Cached now.
    pub filled_bytes: u64,
    /// In the cache before.
    pub known_bytes: u64,
    /// Not to be cached: they were being written, or could not be read.
    pub failed_bytes: u64,
    /// What was not looked at before the end.
    pub left_bytes: u64,
    /// What the flash took.
    pub stored_bytes: u64,
    /// What it may take of one fill.
    pub room_bytes: u64,
    /// Why it ended.
    pub end: FillEnd,
    /// What was left out.
    pub notes: Vec<String>,
}

impl FillReceipt {
    /// Whether all was done that the cache and its budget permit.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.end {
            FillEnd::All | FillEnd::Budget | FillEnd::Full => Exit::Done,
            FillEnd::Off | FillEnd::Detaching | FillEnd::Cancelled | FillEnd::Gone => Exit::Partial,
        }
    }

    /// The receipt.
    fn sentence(&self) -> String {
        if self.wanted_bytes == 0 && self.end == FillEnd::All {
            return "Nothing was filled: nothing was found to fill with.".to_owned();
        }
        let (filled, wanted) = (Bytes(self.filled_bytes), Bytes(self.wanted_bytes));
        let mut rest = Vec::new();
        if self.known_bytes > 0 {
            rest.push(format!("{} were in the cache already", Bytes(self.known_bytes)));
        }
        if self.failed_bytes > 0 {
            let bytes = Bytes(self.failed_bytes);
            rest.push(format!("{bytes} were being written or could not be read"));
        }
        let why = match self.end {
            FillEnd::All => None,
            FillEnd::Budget => Some("the budget of the day for writing to the flash is used up"),
            FillEnd::Full => Some("the cache holds no more of one fill"),
            FillEnd::Off => Some("the flash is not used now"),
            FillEnd::Detaching => Some("the cache is being detached"),
            FillEnd::Cancelled => Some("it was interrupted"),
            FillEnd::Gone => Some("the service ended"),
        };
        rest.extend(why.map(|why| format!("{why}, with {} left", Bytes(self.left_bytes))));
        let colon = if rest.is_empty() { "" } else { ": " };
        format!("{filled} of {wanted} were filled{colon}{}.", rest.join("; "))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(files) = self.files {
            let of =
                if files == 1 { "1 file".to_owned() } else { format!("{} files", count(files)) };
            remarks.push(format!("wanted was what of {of} was in the page cache"));
        }
        if self.stored_bytes > 0 {
            remarks.push(format!(
                "on the flash it takes {}, compressed, of {} that one fill may take",
                Bytes(self.stored_bytes),
                Bytes(self.room_bytes)
            ));
        }
        remarks.extend(self.notes.iter().map(|note| escaped(note).into_owned()));
        remarks
    }

    /// A few lines.
    #[must_use]
    pub fn page(&self, page: Page) -> String {
        super::boost::page_of(std::iter::once((self.sentence(), self.remarks())), page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(end: FillEnd) -> FillReceipt {
        FillReceipt {
            schema: "terrace.boost_fill/1",
            name: "fast".to_owned(),
            source: "list",
            files: None,
            wanted_bytes: 600 << 20,
            filled_bytes: 412 << 20,
            known_bytes: 0,
            failed_bytes: 0,
            left_bytes: 0,
            stored_bytes: 200 << 20,
            room_bytes: 1 << 30,
            end,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_receipt_says_what_became_of_all_bytes() {
        let all = FillReceipt { filled_bytes: 600 << 20, ..receipt(FillEnd::All) };
        assert_eq!(all.sentence(), "600 MiB of 600 MiB were filled.");
        let some = FillReceipt { known_bytes: 180 << 20, failed_bytes: 8 << 20, ..all.clone() };
        assert_eq!(
            FillReceipt { filled_bytes: 412 << 20, ..some }.sentence(),
            "412 MiB of 600 MiB were filled: 180 MiB were in the cache already; 8 MiB were being \
             written or could not be read."
        );
        let left = FillReceipt { left_bytes: 188 << 20, ..receipt(FillEnd::Budget) };
        assert_eq!(
            left.sentence(),
            "412 MiB of 600 MiB were filled: the budget of the day for writing to the flash is used \
             up, with 188 MiB left."
        );
        let none = FillReceipt { wanted_bytes: 0, filled_bytes: 0, ..receipt(FillEnd::All) };
        assert!(none.sentence().starts_with("Nothing was filled"), "{}", none.sentence());
        assert_eq!((left.exit(), receipt(FillEnd::Cancelled).exit()), (Exit::Done, Exit::Partial));
    }
}
