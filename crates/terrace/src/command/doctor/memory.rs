//! What is in memory and in swap, and pages of other sizes: each is tried on a page or a file of
//! this process, and on processes of others.

use super::{attempt, closed, idle, partly, refused, works};
use machine::others::processes_of_others;
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
/// Processes of others that are looked into.
const OTHERS_MAX: usize = 16;
/// No swap area: /proc makes no files.
const NO_AREA: &str = "/proc/no-swap-area-of-terrace";

pub(super) fn examine(root: &Root) -> [(SourceId, SourceAttempt); 6] {
    [
        (SourceId::Cachestat, cachestat()),
        (SourceId::Pagemap, pagemap(root)),
        (SourceId::ProcessMemory, process_memory(root)),
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

/// The own pages, their places, and pages of others.
fn pagemap(root: &Root) -> SourceAttempt {
    let seen = "pages of this process";
    match are_places_shown(root) {
        Err(error) => refused(&error),
        Ok(false) => {
            let why = "the kernel hides the places of pages".to_owned();
            let refusal = SourceRefusal { why, ..SourceRefusal::default() };
            SourceAttempt { refusals: vec![refusal], ..works(seen) }
        }
        Ok(true) => of_others(
            root,
            |pid| Pagemap::open(root, pid).map(drop),
            |some| match some {
                Some(some) => format!("pages and swap slots of this process, and of {some}"),
                None => format!("{seen}, and their slots in swap"),
            },
        ),
    }
}

/// A byte at an address where nothing is mapped, and advice for no range at all.
fn process_memory(root: &Root) -> SourceAttempt {
    let page = sys::process::page_bytes() as u64;
    let look = |pid| {
        process_memory::touch(pid, &[page])?;
        let process = sys::pidfd::open(pid)?;
        process_memory::advise(process.as_fd(), &[], MemoryAdvice::WillNeed).map(drop)
    };
    of_others(root, look, |some| {
        some.map_or_else(String::new, |some| format!("read and advised on: {some}"))
    })
}

/// Looks into processes of others; `seen` words how many of them could be: `None` for none.
fn of_others(
    root: &Root,
    look: impl Fn(u32) -> sys::Result<()>,
    seen: impl Fn(Option<String>) -> String,
) -> SourceAttempt {
    let others = processes_of_others(root, OTHERS_MAX);
    if others.is_empty() {
        return idle("there is no process of others");
    }
    let answers: Vec<sys::Result<()>> = others.iter().map(|pid| look(*pid)).collect();
    let open = answers.iter().filter(|answer| answer.is_ok()).count();
    let some = (open > 0).then(|| format!("{open} of {} other processes", others.len()));
    match answers.into_iter().find_map(Result::err) {
        None => works(seen(some)),
        Some(error) => partly(seen(some), &error),
    }
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
        Err(error) => {
            let why = "no area may be switched on".to_owned();
            let errno = error.number();
            let refusal = SourceRefusal { why, errno, ..SourceRefusal::default() };
            SourceAttempt { refusals: vec![refusal], ..works(areas) }
        }
        // Not possible: there is no such file.
        Ok(()) => works(areas),
    }
}
