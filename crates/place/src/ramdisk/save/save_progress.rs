//! How far a save is, as its caller learns it: between entries, and within a large file. The caller
//! may pause the save then, or stop it.
//!
//! A file that is read with pauses is more likely to change meanwhile than one that is read at
//! once. So the caller is asked within files of some size only, and an attempt ends with the first
//! pause in which the file changed.

use model::progress::{Progress, ProgressSink};

/// The caller is asked after so many entries.
const MOST_ENTRIES: u64 = 256;
/// Or, between two entries, after so many bytes of content: a millisecond of a processor.
const SOME_BYTES: u64 = 1 << 20;
/// Within a file after so many. Picked: a smaller file is read at once.
const MOST_BYTES: u64 = 4 << 20;

/// Asks the caller whether a save continues, after so many entries or bytes.
pub(super) struct SaveProgress<'p, 's> {
    sink: &'p mut ProgressSink<'s>,
    entries: u64,
    /// Since it was asked last.
    new_entries: u64,
    new_bytes: u64,
    is_stopped: bool,
}

impl<'p, 's> SaveProgress<'p, 's> {
    pub(super) fn new(sink: &'p mut ProgressSink<'s>) -> Self {
        Self { sink, entries: 0, new_entries: 0, new_bytes: 0, is_stopped: false }
    }

    /// Whether the caller wants the end.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// An entry is done with.
    pub(super) fn end_entry(&mut self) {
        self.entries += 1;
        self.new_entries += 1;
        if self.new_entries >= MOST_ENTRIES || self.new_bytes >= SOME_BYTES {
            self.ask();
        }
    }

    /// Bytes of a file were read; whether the caller was asked, which may have been a pause.
    pub(super) fn read(&mut self, bytes: u64) -> bool {
        self.new_bytes += bytes;
        let is_due = self.new_bytes >= MOST_BYTES;
        if is_due {
            self.ask();
        }
        is_due
    }

    fn ask(&mut self) {
        (self.new_entries, self.new_bytes) = (0, 0);
        let answer = (self.sink)(Progress::items("saving", self.entries, None));
        self.is_stopped |= answer.is_stop();
    }
}

#[cfg(test)]
mod tests {
    use crate::ramdisk::{RamdiskRestore, SaveRequest, restore, save};
    use machine::Root;
    use model::progress::{self, Control};
    use std::fs::{self, File};
    use std::io::Write;
    use std::path::Path;
    use testkit::TempDir;

    const BYTES: usize = 24 << 20;

    fn request(directory: &TempDir) -> SaveRequest {
        let (source, store) = (directory.join("source"), directory.join("store"));
        SaveRequest { source, store, keep: 3, force: false, freeze: None, wait: false }
    }

    /// A directory with one large file.
    fn with_large_file() -> (TempDir, SaveRequest) {
        let directory = TempDir::new();
        let request = request(&directory);
        fs::create_dir(&request.source).unwrap();
        let content: Vec<u8> = (0..BYTES).map(|at| (at / 5) as u8).collect();
        fs::write(request.source.join("large"), content).unwrap();
        (directory, request)
    }

    fn names(store: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let all = fs::read_dir(store).unwrap().map(|entry| name(entry).into_string().unwrap());
        all.filter(|name| name.starts_with("data-") || name.starts_with("generation-")).collect()
    }

    #[test]
    fn the_caller_is_asked_within_a_large_file_and_may_stop_there() {
        let (_directory, request) = with_large_file();
        let mut asked = 0;
        let mut stop = |_: progress::Progress<'_>| {
            asked += 1;
            Control::stop_if(asked == 3)
        };
        let stopped = save(&Root::system(), &request, &mut stop).unwrap();
        assert!(!stopped.is_complete && stopped.generation == 0, "{stopped:?}");
        assert_eq!(names(&request.store), [""; 0]);
        let mut asked = 0;
        let mut count = |_: progress::Progress<'_>| {
            asked += 1;
            Control::Continue
        };
        assert!(save(&Root::system(), &request, &mut count).unwrap().is_complete);
        assert!((5..=8).contains(&asked), "{asked} times in 24 MiB");
    }

    /// Its writer writes in each pause: without one it is read as it is at one moment.
    #[test]
    fn what_changes_in_each_pause_is_read_without_one() {
        let (directory, request) = with_large_file();
        let large = request.source.join("large");
        let mut asked = 0;
        let mut append = |_: progress::Progress<'_>| {
            asked += 1;
            // A change has the time of the last tick of the kernel's clock.
            std::thread::sleep(std::time::Duration::from_millis(30));
            File::options().append(true).open(&large).unwrap().write_all(b"more").unwrap();
            Control::Continue
        };
        let saved = save(&Root::system(), &request, &mut append).unwrap();
        assert_eq!((saved.failure_count, saved.is_complete), (0, true), "{saved:?}");
        // Once in the first attempt, which ended there, and after the file.
        assert!((1..=2).contains(&asked), "{asked}");
        assert!(saved.data_bytes < BYTES as u64 + 4096, "what was read before is cut off");
        let back = directory.join("back");
        let wanted = RamdiskRestore {
            store: request.store.clone(),
            target: back.clone(),
            generation: None,
            below: None,
            is_attached: false,
        };
        restore(&Root::system(), &wanted, &mut progress::ignore).unwrap();
        let (now, then) = (fs::read(&large).unwrap(), fs::read(back.join("large")).unwrap());
        assert_eq!(then.len(), BYTES + 4, "as it was after the first pause");
        assert!(now.starts_with(&then));
    }
}
