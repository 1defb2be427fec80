//! What is in memory and in swap, and pages of other sizes: each is tried on a page or a file of
//! this process, and on process 1.

use super::{attempt, closed, idle, partly, refused, works};
use machine::pagemap::{Pagemap, are_places_shown};
use machine::{Root, smaps, swap};
use model::doctor::{KnownObstacle, SourceAttempt, SourceId, SourceRefusal};
use std::os::fd::AsFd;
use std::path::Path;
use sys::ErrorKind;
use sys::file::Scratch;
use sys::memory::{Mapping, Pages};
use sys::process_memory::{self, MemoryAdvice};

/// Two huge pages of 2 MiB: the kernel may have room for one of them only.
const HUGE_BYTES: usize = 4 << 20;
const INIT: u32 = 1;
/// No swap area: /proc makes no files.
const NO_AREA: &str = "/proc/no-swap-area-of-terrace";

pub(super) fn examine(root: &Root) -> [(SourceId, SourceAttempt); 6] {
    [
        (SourceId::Cachestat, cachestat()),
        (SourceId::Pagemap, pagemap(root)),
        (SourceId::ProcessMemory, process_memory()),
        (SourceId::TransparentHugePages, transparent(root)),
        (SourceId::HugePages, huge(root)),
        (SourceId::Swap, swap_areas(root)),
    ]
}

/// On this program's own file, which may belong to another user, then on a scratch file.
fn cachestat() -> SourceAttempt {
    let exe = std::env::current_exe().unwrap_or_default();
    let of_program = sys::file::open_read(&exe, false)
        .and_then(|file| sys::cachestat::of(&file, 0, 0))
        .map(|state| state.cached_bytes());
    match of_program {
        Ok(bytes) => works(format!("{} of this program are cached", model::Bytes(bytes))),
        Err(error) if error.kind == ErrorKind::Denied => {
            let scratch = Scratch::create_in(&std::env::temp_dir());
            match scratch.and_then(|scratch| sys::cachestat::of(scratch.file(), 0, 0)) {
                Ok(_) => partly("files of this user", &error),
                Err(_) => refused(&error),
            }
        }
        Err(error) => refused(&error),
    }
}

/// The own pages, their places, and the pages of process 1.
fn pagemap(root: &Root) -> SourceAttempt {
    let seen = "pages of this process";
    match are_places_shown(root) {
        Err(error) => refused(&error),
        Ok(false) => {
            let why = "the kernel hides where pages lie".to_owned();
            let refusal = SourceRefusal { why, errno: None, known: None };
            SourceAttempt { refusals: vec![refusal], ..works(seen) }
        }
        Ok(true) => match Pagemap::open(root, INIT) {
            Ok(_) => works("pages of all processes, and their slots in swap"),
            Err(error) => partly(format!("{seen}, and their slots in swap"), &error),
        },
    }
}

/// A byte of process 1, at an address where nothing is mapped, and advice for no range at all.
fn process_memory() -> SourceAttempt {
    let page = sys::process::page_bytes() as u64;
    let touched = process_memory::touch(INIT, &[page]);
    let advised = touched.and_then(|_| {
        let process = sys::pidfd::open(INIT)?;
        process_memory::advise(process.as_fd(), &[], MemoryAdvice::WillNeed)
    });
    attempt(advised, |_| "process 1 may be read and advised on".to_owned())
}

fn transparent(root: &Root) -> SourceAttempt {
    let Some(enabled) = machine::memory::read(root).thp.enabled else {
        return closed("the kernel has none", KnownObstacle::NotInKernel);
    };
    if enabled == "never" {
        return closed("they are switched off", KnownObstacle::SettingOff);
    }
    let mapped = Mapping::anonymous(HUGE_BYTES, Pages::Transparent).and_then(|mut mapping| {
        mapping.populate_write()?;
        Ok(smaps::of_range(root, mapping.address(), mapping.len()))
    });
    attempt(mapped, |granted| match granted.map(|granted| granted.anon_huge) {
        Some(huge) if huge.0 > 0 => format!("{enabled}; {huge} were given"),
        Some(_) => format!("{enabled}; none was free just now"),
        None => format!("{enabled}; smaps does not say whether one was given"),
    })
}

/// Without a pool they are permitted, and none is there.
fn huge(root: &Root) -> SourceAttempt {
    let pool = machine::memory::read(root).huge_pages;
    match Mapping::anonymous(HUGE_BYTES / 2, Pages::Huge) {
        Ok(_) => works("one was mapped"),
        Err(error) if error.kind == ErrorKind::NoMemory => match (pool.total, pool.free) {
            (Some(0) | None, _) => idle("the pool is empty"),
            (Some(total), _) => idle(format!("all {total} pages of the pool are in use")),
        },
        Err(error) => refused(&error),
    }
}

/// Whether this process may switch areas on, asked with a path that leads nowhere, and which are.
fn swap_areas(root: &Root) -> SourceAttempt {
    let areas = match swap::areas(root).len() {
        0 => "no area is on".to_owned(),
        1 => "1 area is on".to_owned(),
        many => format!("{many} areas are on"),
    };
    match sys::swap_area::on(Path::new(NO_AREA), 0) {
        Err(error) if error.kind == ErrorKind::NotFound && areas.starts_with("no ") => idle(areas),
        Err(error) if error.kind == ErrorKind::NotFound => works(areas),
        Err(error) => partly(areas, &error),
        // Not possible: there is no such file.
        Ok(()) => works(areas),
    }
}
