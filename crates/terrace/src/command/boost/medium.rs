//! The medium of a served cache: looked for while it is gone, in a thread of its own, since a stick
//! that hangs may hold up nothing else.

use super::engine::{SharedCache, SharedState, locked};
use super::parts::Parts;
use crate::args::boost::CacheArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use machine::Root;
use model::device::{Alignment, BlockDevice, DeviceError};
use place::boost::medium::MediumFile;
use serve::driver::{Driver, DriverDevice};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a medium that is gone is looked for.
const MEDIUM_LOOKED_FOR: Duration = Duration::from_secs(2);

/// A medium that is not there.
pub(super) struct Absent(pub(super) u64);

/// `ENODEV`.
const NO_DEVICE: i32 = 19;

fn absent(operation: &'static str) -> DeviceError {
    DeviceError::new(operation, None, std::io::Error::from_raw_os_error(NO_DEVICE))
}

impl BlockDevice for Absent {
    fn size_bytes(&self) -> std::result::Result<u64, DeviceError> {
        Ok(self.0)
    }

    fn alignment(&self) -> Alignment {
        Alignment::NONE
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> std::result::Result<usize, DeviceError> {
        Err(absent("read"))
    }

    fn write_at(&self, _: &[u8], _: u64) -> std::result::Result<usize, DeviceError> {
        Err(absent("write"))
    }

    fn discard(&self, _: std::ops::Range<u64>) -> std::result::Result<(), DeviceError> {
        Err(absent("discard"))
    }

    fn flush(&self) -> std::result::Result<(), DeviceError> {
        Err(absent("flush"))
    }
}

impl DriverDevice for Absent {}

/// Looks for a medium that is gone or failed.
pub(super) struct MediumWatch {
    pub(super) args: CacheArgs,
    pub(super) parts: Arc<Parts>,
    pub(super) driver: Weak<Driver>,
    pub(super) cache: SharedCache,
    pub(super) medium: Option<Arc<MediumFile>>,
    pub(super) service: SharedState,
}

impl MediumWatch {
    pub(super) fn start(self) -> Result<()> {
        let started = std::thread::Builder::new().name("medium".to_owned()).spawn(|| self.run());
        let failed = |error| Error::new(Exit::Partial, format!("cannot start a thread: {error}"));
        started.map(drop).map_err(failed)
    }

    fn run(mut self) {
        let root = Root::system();
        while let Some(driver) = self.driver.upgrade() {
            let is_wanted = {
                let service = locked(&self.service);
                service.off.is_some() && !service.is_given_up
            };
            if is_wanted && let Some(medium) = self.find(&root) {
                self.cache.lock().set_medium_read_bytes(medium.alignment().read);
                let _ = driver.replace_cache(Arc::new(Arc::clone(&medium)), Some(medium.file()));
            }
            drop(driver);
            std::thread::sleep(MEDIUM_LOOKED_FOR);
        }
    }

    /// The same file again, or the one that is in its place now.
    fn find(&mut self, root: &Root) -> Option<Arc<MediumFile>> {
        let of = |file: std::fs::Metadata| (file.dev(), file.ino());
        let found = std::fs::metadata(&self.args.parts.cache).ok().map(of);
        let own = self.medium.as_ref().and_then(|it| it.file().metadata().ok()).map(of);
        if own.is_none() || own != found {
            let opened = self.parts.open_medium(&self.args, root, false).ok()?;
            self.medium = Some(Arc::new(opened));
        }
        self.medium.clone()
    }
}
