//! The parts of a flash cache, each found, locked or claimed, and joined to what the engine is
//! attached with.

use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use cache::{Geometry, Limits, Setup};
use machine::Root;
use place::boost::host::{HostPart, random};
use place::boost::medium::{MediumFile, MediumPlace, MediumState, OwnMedium};
use place::boost::plan::check_disks;
use place::boost::volume::Volume;
use std::fs::File;
use sys::directory::Directory;

/// Bytes of a segment at most, as large as erase blocks are.
const SEGMENT_BYTES_MAX: u64 = 4 << 20;
/// And at least.
const SEGMENT_BYTES_MIN: u64 = 256 << 10;
/// A small cache has so many segments, so that not all of it is given up for the next one.
const SEGMENTS_MIN: u64 = 32;

/// What a process before left open.
#[derive(Debug, Default)]
pub(super) struct HeldParts {
    /// The claimed volume.
    pub(super) volume: Option<File>,
    /// The directory of the host's part.
    pub(super) state: Option<Directory>,
}

/// Volume and host part of a cache, and what the engine is attached with.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) volume: Volume,
    pub(super) host: HostPart,
    pub(super) setup: Setup,
    /// The journal as it was found.
    pub(super) journal: Vec<u8>,
}

impl Parts {
    /// Locks the host's part, and claims the volume unless the process before left its claim. The
    /// directory of the host's part is the one that it left, too.
    ///
    /// # Errors
    /// Which part is refused, and why.
    pub(super) fn open(args: &CacheArgs, root: &Root, held: HeldParts) -> Result<Self> {
        let size = args.parts.size.0;
        let fit = |volume: &Volume| {
            Geometry::fit(volume.bytes, size, segment_bytes(size)).map_err(Error::usage)
        };
        let HeldParts { volume: claimed, state } = held;
        let state =
            || state.map_or_else(|| HostPart::directory(&args.parts.state, &args.parts.name), Ok);
        let (host, volume) = match claimed {
            // The lock first: while requests of the process before are under way, nothing is read.
            Some(file) => {
                let host = HostPart::open(state()?)?;
                (host, Volume::of_claimed(file, &args.parts.backing, root)?)
            }
            // The volume first: nothing is made for what is refused.
            None => {
                let volume = Volume::claim(&args.parts.backing, root)?;
                fit(&volume)?;
                (HostPart::open(state()?)?, volume)
            }
        };
        let geometry = fit(&volume)?;
        let setup = Setup {
            geometry,
            volume_id: volume.id,
            key: host.key(),
            salt: random()?,
            new_cache_id: random()?,
            witnesses: volume.content.witnesses.clone(),
            proof: volume.content.proof,
            may_format: false,
            limits: Limits::fit(&geometry),
        };
        let journal = host.read_journal(cache::journal_bytes(&geometry), cache::newer_version)?;
        Ok(Self { volume, host, setup, journal })
    }

    /// Bytes that the file of the cache has when it is full.
    pub(super) fn medium_bytes(&self) -> u64 {
        let geometry = &self.setup.geometry;
        u64::from(geometry.segment_bytes) * (u64::from(geometry.segments) + 1)
    }

    /// Finds the file of the cache and opens it; with `may_make` it may be made. Without, the place
    /// may be where a stick is not mounted now.
    ///
    /// # Errors
    /// If it is not this cache's, on the wrong disk, or has no room.
    pub(super) fn open_medium(
        &self,
        args: &CacheArgs,
        root: &Root,
        may_make: bool,
    ) -> Result<MediumFile> {
        self.with_medium(args, root, |place, own| {
            if !may_make && place.state(own)? == MediumState::Absent {
                return Err(Error::new(Exit::Impossible, "the file of the cache is not there"));
            }
            Ok(place.open(own, may_make && args.take_file)?)
        })
    }

    /// Finds the file of the cache, refuses a wrong disk, and passes on what it is known by.
    ///
    /// # Errors
    /// As [`Parts::open_medium`].
    pub(super) fn with_medium<T>(
        &self,
        args: &CacheArgs,
        root: &Root,
        then: impl FnOnce(MediumPlace, &OwnMedium<'_>) -> Result<T>,
    ) -> Result<T> {
        let place = MediumPlace::find(&args.parts.cache, root)?;
        check_disks(root, &self.volume, &place, &self.host)?;
        let own = OwnMedium {
            header: self.setup.medium_header(&self.journal),
            bytes: self.medium_bytes(),
            is_own: &|block| self.setup.owns_medium(&self.journal, block),
            newer: cache::newer_version,
        };
        then(place, &own)
    }
}

/// The same for the same size, so that a cache is warm at its next attach.
fn segment_bytes(size: u64) -> u32 {
    let most = (size / SEGMENTS_MIN).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
    1 << most.ilog2()
}

#[cfg(test)]
mod tests {
    use super::segment_bytes;

    #[test]
    fn small_caches_have_small_segments() {
        let sizes = [1 << 20, 16 << 20, 100 << 20, 1 << 30, 1 << 40].map(segment_bytes);
        assert_eq!(sizes, [256 << 10, 512 << 10, 2 << 20, 4 << 20, 4 << 20]);
    }
}
