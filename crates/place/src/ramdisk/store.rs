//! The directory of a store: manifests and data files by number, and one lock.
//!
//! ```text
//! store                               version and number of the store; locked by who uses it
//! restored                            the directory that was restored last
//! keeper                              who keeps it, locked by that process
//! generation-0000000042-0000000041.zst  a manifest, and the generation that it changes
//! data-0000000042                     pieces that generation 42 was the first to name
//! ```
//!
//! Generations are ordered by number and not by the clock. What no generation that is kept needs is
//! removed, after a newer one counts.

use super::catalog::Catalog;
use super::identity::DirectoryIdentity;
use super::manifest::{MOST_BYTES, Manifest};
use crate::{Error, ErrorKind, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use sys::directory::Directory;
use sys::file::{self, Durability, FileMode};
use sys::lock::{self, LockMode};

/// The first line of the file `store`.
const HEAD: &str = "terrace-ramdisk-store\t1\t";
const HEAD_NAME: &str = "store";
const RESTORED_NAME: &str = "restored";
/// How often a lock is tried that is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A lock may outlive its process: who reads `/proc/PID/fdinfo` holds the file for a moment.
const LOCK_OUTLIVES: Duration = Duration::from_millis(300);
/// zstd's own default.
const LEVEL: i32 = 3;
/// Manifests that change each other; then one says all.
pub(super) const MOST_CHANGES: usize = 64;

/// A generation of a store, by its file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation {
    /// Its number.
    pub number: u64,
    /// The generation that its manifest changes; 0 if it says all.
    pub base: u64,
}

/// What a generation holds.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Its number.
    pub generation: u64,
    /// When it was saved, seconds since 1970.
    pub saved_at: i64,
    /// Names, directories too.
    pub entries: u64,
    /// Bytes of content; data of several names count once for each.
    pub bytes: u64,
    /// Why it cannot be restored, if it cannot.
    pub damage: Option<String>,
}

/// A store, locked.
#[derive(Debug)]
pub struct Store {
    directory: Directory,
    /// Holds the lock.
    _head: File,
    number: u64,
}

/// The entries of a generation.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Without its lines, which are in the catalog.
    pub(super) manifest: Manifest,
    pub(super) catalog: Catalog,
    /// How many manifests it took.
    pub(super) manifests: usize,
}

pub(super) fn data_name(number: u64) -> OsString {
    format!("data-{number:010}").into()
}

impl Generation {
    pub(super) fn name(self) -> OsString {
        format!("generation-{:010}-{:010}.zst", self.number, self.base).into()
    }

    pub(super) fn of_name(name: &OsStr) -> Option<Self> {
        let text = name.to_str()?.strip_prefix("generation-")?.strip_suffix(".zst")?;
        let (number, base) = text.split_once('-')?;
        let found = Self { number: number.parse().ok()?, base: base.parse().ok()? };
        (found.name() == name && found.base < found.number).then_some(found)
    }
}

impl Store {
    /// Opens a store, or makes one, mode 0700, for one that saves.
    ///
    /// # Errors
    /// `Usage` for a directory that is something else; `Impossible` while another process uses it,
    /// unless that is waited for, and for a store of a newer version.
    pub fn open_or_create(path: &Path, wait: bool) -> Result<Self> {
        let directory = Self::directory_of(path)?;
        Self::locked(directory, LockMode::Exclusive, wait)
    }

    /// The directory of a store, which is made if it does not exist; not locked.
    pub(super) fn directory_of(path: &Path) -> Result<Directory> {
        let directory = Directory::create_private(path)?;
        let head = OsStr::new(HEAD_NAME);
        match directory.metadata(head) {
            Err(error) if error.kind == sys::ErrorKind::NotFound => {
                if !directory.names()?.is_empty() {
                    let why = "it has other files in it; name a new or an empty directory";
                    return Err(Error::new(ErrorKind::Usage, "keep a store in", why).at(path));
                }
                let text = format!("{HEAD}{:016x}\n", sys::random::seed()?);
                let (mode, durability) = (FileMode::OwnerOnly, Durability::Synced);
                file::replace(&directory, head, text.as_bytes(), mode, durability)?;
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        Ok(directory)
    }

    /// Opens a store to read from it.
    ///
    /// # Errors
    /// `Usage` where there is none; else as [`Store::open_or_create`].
    pub fn open(path: &Path) -> Result<Self> {
        let absent = |error: sys::Error| {
            let why = sys::plain_reason(&error.source);
            Error::new(ErrorKind::Usage, "open the store", why).at(path)
        };
        Self::locked(Directory::open_private(path).map_err(absent)?, LockMode::Shared, false)
    }

    fn locked(directory: Directory, mode: LockMode, wait: bool) -> Result<Self> {
        let failed = |kind, why: &str| {
            Error::new(kind, "open the store", why.to_owned()).at(directory.path())
        };
        let no_store = || failed(ErrorKind::Usage, "it is no store of a RAM disk");
        let head = match directory.open_regular(OsStr::new(HEAD_NAME)) {
            Err(error) if error.kind == sys::ErrorKind::NotFound => return Err(no_store()),
            opened => opened?,
        };
        let begun = Instant::now();
        while !lock::try_take(&head, mode)? {
            let is_over = !wait && begun.elapsed() >= LOCK_OUTLIVES;
            if is_over || sys::interrupt::requested() {
                let why = "another process saves to it or restores from it";
                return Err(failed(ErrorKind::Impossible, why));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let mut text = String::new();
        (&head).take(256).read_to_string(&mut text).map_err(|_| no_store())?;
        let fields: Vec<&str> = text.trim_end().split('\t').collect();
        let &["terrace-ramdisk-store", version, number] = fields.as_slice() else {
            return Err(no_store());
        };
        if version != "1" {
            let why = format!("it is of version {version}; this program reads version 1");
            return Err(failed(ErrorKind::Impossible, &why));
        }
        let number = u64::from_str_radix(number, 16).map_err(|_| no_store())?;
        Ok(Self { directory, _head: head, number })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The generations, by number. The data of those before the ones that were kept may be gone:
    /// then they are only the base of a later one.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn generations(&self) -> Result<Vec<Generation>> {
        let names = self.directory.names()?;
        let mut all: Vec<Generation> =
            names.iter().filter_map(|name| Generation::of_name(name)).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// A manifest.
    ///
    /// # Errors
    /// `Failed` for a damaged one, with the reason.
    pub fn manifest(&self, generation: Generation) -> Result<Manifest> {
        let name = generation.name();
        let damaged = |why: String| {
            Error::new(ErrorKind::Failed, "read the manifest", why)
                .at(self.directory.path().join(&name))
        };
        let file = self.directory.open_regular(&name)?;
        let mut text = Vec::new();
        let unpacked = zstd::Decoder::new(file)
            .and_then(|reader| reader.take(MOST_BYTES as u64 + 1).read_to_end(&mut text));
        unpacked.map_err(|error| damaged(sys::plain_reason(&error)))?;
        if text.len() > MOST_BYTES {
            return Err(damaged("it is larger than any that is written".to_owned()));
        }
        let manifest = Manifest::from_owned(text).map_err(damaged)?;
        let is_its_own = manifest.store == self.number
            && (manifest.generation, manifest.base) == (generation.number, generation.base);
        if is_its_own { Ok(manifest) } else { Err(damaged("it is another store's".to_owned())) }
    }

    /// What each generation holds; those that are only the base of a later one are left out.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn describe(&self) -> Result<Vec<Description>> {
        let files = self.data_files()?;
        let mut all = Vec::new();
        for generation in self.generations()? {
            let described = match self.load(generation) {
                Ok(Loaded { manifest, catalog, .. }) => {
                    if manifest.data.keys().any(|number| !files.contains_key(number)) {
                        continue;
                    }
                    Description {
                        generation: generation.number,
                        saved_at: manifest.saved.seconds,
                        entries: catalog.len(),
                        bytes: manifest.data.values().sum(),
                        damage: None,
                    }
                }
                Err(error) => Description {
                    generation: generation.number,
                    saved_at: 0,
                    entries: 0,
                    bytes: 0,
                    damage: Some(error.to_string()),
                },
            };
            all.push(described);
        }
        Ok(all)
    }

    /// All entries of a generation.
    ///
    /// # Errors
    /// As [`Store::manifest`], also for those that it changes; `Failed` if one of them is missing.
    pub(super) fn load(&self, generation: Generation) -> Result<Loaded> {
        let all = self.generations()?;
        let chain = chain_of(&all, generation).ok_or_else(|| {
            let why = "a generation that it changes is missing";
            let name = generation.name();
            Error::new(ErrorKind::Failed, "read the manifest", why)
                .at(self.directory.path().join(name))
        })?;
        let mut newest = self.manifest(generation)?;
        let mut catalog = Catalog::default();
        for before in chain.iter().skip(1).rev() {
            catalog.apply(self.manifest(*before)?.lines);
        }
        catalog.apply(std::mem::take(&mut newest.lines));
        Ok(Loaded { manifest: newest, catalog, manifests: chain.len() })
    }

    /// Writes a manifest; the bytes of its file. With the rename the generation counts.
    pub(super) fn put(&self, manifest: Manifest) -> Result<u64> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Failed, "pack the manifest", sys::plain_reason(&error))
        };
        let mut packer = zstd::Encoder::new(Vec::new(), LEVEL).map_err(failed)?;
        packer.include_checksum(true).map_err(failed)?;
        let name = Generation { number: manifest.generation, base: manifest.base }.name();
        let text = manifest.into_text();
        // Of a known size it takes no more memory than that needs.
        packer.set_pledged_src_size(Some(text.len() as u64)).map_err(failed)?;
        std::io::Write::write_all(&mut packer, &text).map_err(failed)?;
        let packed = packer.finish().map_err(failed)?;
        let (mode, durability) = (FileMode::OwnerOnly, Durability::Synced);
        file::replace(&self.directory, &name, &packed, mode, durability)?;
        Ok(packed.len() as u64)
    }

    /// Bytes of the file of a manifest; 0 if it is gone.
    pub(super) fn manifest_bytes(&self, generation: Generation) -> u64 {
        self.directory.stat(&generation.name()).map_or(0, |stat| stat.bytes)
    }

    /// Bytes of each data file that is there.
    pub(super) fn data_files(&self) -> Result<BTreeMap<u64, u64>> {
        let mut found = BTreeMap::new();
        for name in self.directory.names()? {
            let number = name.to_str().and_then(|name| name.strip_prefix("data-"));
            if let Some(number) = number.and_then(|number| number.parse().ok())
                && data_name(number) == name
            {
                found.insert(number, self.directory.stat(&name)?.bytes);
            }
        }
        Ok(found)
    }

    /// Removes data files of generations that never counted.
    pub(super) fn sweep(&self, newest: u64) -> Result<()> {
        for number in self.data_files()?.into_keys().filter(|number| *number > newest) {
            self.directory.remove(&data_name(number))?;
        }
        Ok(())
    }

    /// Removes what the newest `keep` generations do not need. If one of them cannot be read
    /// nothing is removed.
    pub(super) fn retain(&self, keep: usize) -> Result<()> {
        let all = self.generations()?;
        let kept = &all[all.len().saturating_sub(keep.max(1))..];
        let mut chains = BTreeSet::new();
        let mut data = BTreeSet::new();
        for generation in kept {
            let Some(chain) = chain_of(&all, *generation) else {
                return Ok(());
            };
            chains.extend(chain);
        }
        let unneeded: Vec<Generation> =
            all.iter().copied().filter(|generation| !chains.contains(generation)).collect();
        for generation in kept {
            let Ok(manifest) = self.manifest(*generation) else {
                return Ok(());
            };
            data.extend(manifest.data.into_keys());
        }
        for generation in unneeded {
            self.directory.remove(&generation.name())?;
        }
        // Their manifests are gone for good before their data are.
        self.directory.sync()?;
        for number in self.data_files()?.into_keys().filter(|number| !data.contains(number)) {
            self.directory.remove(&data_name(number))?;
        }
        Ok(())
    }

    /// Notes that a generation was restored to a directory: it is the one to save from now on.
    pub(super) fn note_restored(&self, to: &DirectoryIdentity) -> Result<()> {
        let text = format!("{}\n", to.to_fields());
        let (mode, durability) = (FileMode::OwnerOnly, Durability::Synced);
        let name = OsStr::new(RESTORED_NAME);
        Ok(file::replace(&self.directory, name, text.as_bytes(), mode, durability)?)
    }

    /// The directory that was restored last.
    pub(super) fn restored(&self) -> Option<DirectoryIdentity> {
        let file = self.directory.open_regular(OsStr::new(RESTORED_NAME)).ok()?;
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).ok()?;
        DirectoryIdentity::from_fields(text.trim_end())
    }
}

/// A generation and those that it changes, the newest first; `None` if one is missing.
fn chain_of(all: &[Generation], generation: Generation) -> Option<Vec<Generation>> {
    let mut chain = vec![generation];
    let mut base = generation.base;
    while base != 0 {
        let next = *all.iter().find(|other| other.number == base)?;
        base = next.base;
        chain.push(next);
    }
    Some(chain)
}
