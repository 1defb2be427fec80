//! What `ramdisk adopt` and `release` say: where the directory is now, and what becomes of the old
//! one. Pure.

use super::prose::{PageText, commands_tied};
use super::ramdisk_store::{entries, path_words, seconds};
use super::report::Report;
use model::Bytes;
use place::ramdisk::{RamdiskAdoptReport, RamdiskReleaseReport};
use serde::Serialize;

/// A directory that was moved onto a RAM disk.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct AdoptPage(pub RamdiskAdoptReport);

/// A directory that was given back.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct ReleasePage(pub RamdiskReleaseReport);

impl Report for AdoptPage {
    const COMMAND: &'static str = "ramdisk adopt";
    const SCHEMA: &'static str = "terrace.ramdisk-adopt/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let Self(adopted) = self;
        let Some(created) = adopted.created.as_ref().filter(|created| created.is_complete) else {
            return;
        };
        let ramdisk = &created.ramdisk;
        let point = path_words(&ramdisk.mount_point);
        let (number, bytes, time) = created
            .restored
            .as_ref()
            .map_or((0, 0, 0.0), |restored| (restored.entries, restored.bytes, restored.seconds));
        out.sentence(&format!(
            "{point} is on a RAM disk of {} now: {} with {}, in {}",
            ramdisk.options.size,
            entries(number),
            Bytes(bytes),
            seconds(adopted.saved.seconds + time),
        ));
        out.note(&commands_tied(&format!(
            "on its disk it stays as it was, covered; to get it back there as it is then: terrace \
             ramdisk release {point}"
        )));
        if let Some(persist) = &ramdisk.persist {
            let store = path_words(&persist.store);
            out.note(&commands_tied(&format!(
                "what changes from now on is lost by a restart until it is saved: terrace ramdisk \
                 save {point} --persist {store}"
            )));
            out.note(&commands_tied(&format!(
                "after a restart the old files are there again; to cover them: terrace ramdisk \
                 create {point} --adopted --size {} --persist {store}",
                typed(ramdisk.options.size)
            )));
        }
    }

    fn shortfall(&self) -> Option<String> {
        (!self.0.is_complete()).then(|| "interrupted: it is on its disk as before".to_owned())
    }
}

impl Report for ReleasePage {
    const COMMAND: &'static str = "ramdisk release";
    const SCHEMA: &'static str = "terrace.ramdisk-release/1";
    const TIMED: bool = false;

    fn write_page(&self, out: &mut PageText) {
        let Self(released) = self;
        let Some(restored) = released.restored.as_ref().filter(|_| released.is_complete) else {
            return;
        };
        out.sentence(&format!(
            "{} is on its disk again, as it was on the RAM disk: {} with {}, compared, in {}",
            path_words(&released.ramdisk.mount_point),
            entries(restored.entries),
            Bytes(restored.bytes),
            seconds(released.saved.seconds + restored.seconds),
        ));
        if let Some(persist) = &released.ramdisk.persist {
            out.note(&format!(
                "{} has the same as generation {}, and is not needed any more",
                path_words(&persist.store),
                released.saved.generation
            ));
        }
    }

    fn shortfall(&self) -> Option<String> {
        (!self.0.is_complete).then(|| "interrupted: it is on the RAM disk as before".to_owned())
    }
}

/// A size as it is typed.
fn typed(size: Bytes) -> String {
    match size.0 % (1 << 20) {
        0 => format!("{}m", size.0 >> 20),
        _ => size.0.to_string(),
    }
}
