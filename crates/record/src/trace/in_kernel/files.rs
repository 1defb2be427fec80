//! Files, by what processes did with them through the page cache: the first of each second get a
//! row, the rest are summed up.

use super::objects::{FILE_KEY_BYTES, FILE_NAMES, FILE_VALUE_BYTES, number, text, word};
use super::who::Processes;
use crate::device_number;
use model::recording::{FileIdentity, FileRow, Who};
use std::collections::HashMap;

/// The first so many of a second have rows.
const FIRST: usize = 20;
/// Fewer bytes are not worth one.
const BYTES_MIN: u64 = 64 << 10;
/// The most files that are kept apart in one recording.
const FILES_MAX: usize = 65_536;

/// A file as the kernel knows it.
type FileKey = (u32, u64);

/// What one process did with one file in a second.
#[derive(Debug)]
struct Done {
    file: FileKey,
    process: u32,
    bytes: [u64; 4],
    path: Option<String>,
}

impl Done {
    fn weight(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// Files that were met.
#[derive(Debug, Default)]
pub struct Files {
    ids: HashMap<FileKey, u32>,
    done: Vec<Done>,
    mounts: HashMap<u32, String>,
    from_ns: u64,
}

impl Files {
    /// Takes one entry of the kernel's table.
    pub fn take(&mut self, key: &[u8; FILE_KEY_BYTES], value: &[u8; FILE_VALUE_BYTES]) {
        let (Some(device), Some(process), Some(inode)) =
            (number(key, 0), number(key, 4), word(key, 8))
        else {
            return;
        };
        let bytes = [0, 8, 16, 24].map(|at| word(value, at).unwrap_or_default());
        let path = path_of(&value[32..]);
        self.done.push(Done { file: (device, inode), process, bytes, path });
    }

    /// Writes the rows of this second.
    pub fn write(&mut self, processes: &mut Processes, caller_ns: u64, who: &mut Who) {
        let now_ns = caller_ns / 1000 * 1000;
        let mut done = std::mem::take(&mut self.done);
        let from_ns = std::mem::replace(&mut self.from_ns, now_ns);
        done.retain(|done| done.weight() >= BYTES_MIN);
        done.sort_unstable_by_key(|done| std::cmp::Reverse(done.weight()));
        for mut done in done.into_iter().take(FIRST) {
            let process = processes.id_of(done.process, who);
            let path = done.path.take();
            let Some(file) = self.id_of(done.file, path, who) else {
                continue;
            };
            let [added_bytes, refaulted_bytes, dirtied_bytes, evicted_bytes] = done.bytes;
            who.file_rows.push(FileRow {
                file,
                process,
                from_ns,
                to_ns: now_ns,
                added_bytes,
                refaulted_bytes,
                dirtied_bytes,
                evicted_bytes,
            });
        }
    }

    fn id_of(&mut self, file: FileKey, path: Option<String>, who: &mut Who) -> Option<u32> {
        if let Some(id) = self.ids.get(&file) {
            return Some(*id);
        }
        if self.ids.len() >= FILES_MAX {
            return None;
        }
        let id = u32::try_from(self.ids.len()).ok()?;
        self.ids.insert(file, id);
        let (number, inode) = file;
        let device = device_number::split(number);
        let path = path.map(|path| self.on_mount(number, path));
        who.files.push(FileIdentity { id, device, inode, path });
        Some(id)
    }

    /// A path within its file system as the path that people type, where it begins at its top.
    fn on_mount(&mut self, device: u32, path: String) -> String {
        if !path.starts_with('/') {
            return path;
        }
        if !self.mounts.contains_key(&device) {
            let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            self.mounts = mounts(&text);
            self.mounts.entry(device).or_default();
        }
        let mount = self.mounts.get(&device).map_or("", String::as_str);
        format!("{}{path}", mount.trim_end_matches('/'))
    }
}

/// The first mount of the top of each file system.
fn mounts(text: &str) -> HashMap<u32, String> {
    let mut found = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(' ').skip(2);
        let (Some(number), Some("/"), Some(point)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let numbers = number.split_once(':');
        let parsed = numbers.and_then(|(major, minor)| {
            Some(device_number::joined((major.parse().ok()?, minor.parse().ok()?)))
        });
        if let Some(device) = parsed {
            found.entry(device).or_insert_with(|| point.replace("\\040", " "));
        }
    }
    found
}

/// The path from its names, its own first: from the top of the file system if that is among them,
/// else with `.../` before it. A name that was cut ends in `...`.
fn path_of(names: &[u8]) -> Option<String> {
    let (_, bytes) = FILE_NAMES;
    let mut path = String::new();
    let mut is_whole = false;
    for name in names.chunks_exact(bytes) {
        let mut name_text = text(name);
        if name_text.is_empty() {
            break;
        }
        if name_text == "/" {
            is_whole = true;
            break;
        }
        if name_text.len() >= bytes - 1 {
            name_text.push_str("...");
        }
        path = format!("/{name_text}{path}");
    }
    match (is_whole, path.is_empty()) {
        (_, true) => None,
        (true, false) => Some(path),
        (false, false) => Some(format!("...{path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<u8> {
        let (count, bytes) = FILE_NAMES;
        let mut all = vec![0; count * bytes];
        for (place, name) in all.chunks_exact_mut(bytes).zip(names) {
            place[..name.len()].copy_from_slice(name.as_bytes());
        }
        all
    }

    #[test]
    fn names_make_a_path() {
        assert_eq!(path_of(&named(&["c", "b", "a", "/"])).unwrap(), "/a/b/c");
        let deep = named(&["g", "f", "e", "d", "c", "b", "a"]);
        assert_eq!(path_of(&deep).unwrap(), ".../a/b/c/d/e/f/g");
        assert_eq!(path_of(&named(&[])), None);
        let long = "n".repeat(47);
        assert_eq!(path_of(&named(&[&long, "/"])).unwrap(), format!("/{long}..."));
    }

    #[test]
    fn a_file_system_is_found_where_its_top_is_mounted() {
        let text = "30 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    31 30 254:0 /sub /mnt/sub rw - ext4 /dev/vda rw\n\
                    32 30 7:1 / /mnt/my\\040disk rw - ext4 /dev/loop1 rw\n";
        let found = mounts(text);
        assert_eq!(found[&(254 << 20)], "/");
        assert_eq!(found[&(7 << 20 | 1)], "/mnt/my disk");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_first_files_of_a_second_have_rows() {
        let mut files = Files::default();
        for inode in 0..100u64 {
            let mut key = [0; FILE_KEY_BYTES];
            key[..4].copy_from_slice(&(254u32 << 20 | 3).to_ne_bytes());
            key[8..].copy_from_slice(&inode.to_ne_bytes());
            let mut value = [0; FILE_VALUE_BYTES];
            value[..8].copy_from_slice(&((inode + 1) << 16).to_ne_bytes());
            value[32..].copy_from_slice(&named(&["x", "/"]));
            files.take(&key, &value);
        }
        let mut who = Who::default();
        files.write(&mut Processes::default(), 5000, &mut who);
        assert_eq!((who.files.len(), who.file_rows.len()), (FIRST, FIRST));
        assert_eq!(who.files[0].device, (254, 3));
        assert_eq!((who.files[0].inode, who.file_rows[0].added_bytes), (99, 100 << 16));
    }
}
