//! `terrace boost attach`, `status` and `detach`.
//!
//! The first starts the service of a cache, the others ask it.

use super::control::{self, Detached, Question};
use super::parts::{HeldParts, Parts};
use super::protection::protect;
use super::{export, serve};
use crate::args::When;
use crate::args::boost::{CacheArgs, CacheParts, CacheStatusArgs, DetachArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::boost::{CacheStatus, CacheStatuses, page};
use crate::output::{self, OutputTarget, Page, json};
use machine::Root;
use model::text::escaped;
use place::boost::medium::MediumState;
use place::boost::plan::AttachPlan;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a service may take to begin.
const BEGIN_WAIT: Duration = Duration::from_secs(60);

/// Prints the plan, starts the service, and names the device to use.
///
/// # Errors
/// Which part is refused, and why; then nothing was changed but the file of the cache.
pub(super) fn attach(args: &CacheArgs) -> Result<Exit> {
    control::only_root()?;
    let parts = CacheParts {
        backing: whole(&args.parts.backing)?,
        cache: whole(&args.parts.cache)?,
        state: whole(&args.parts.state)?,
        ..args.parts.clone()
    };
    let args = CacheArgs { parts, ..args.clone() };
    if let Some(status) = control::status_now(&args.parts.name) {
        let text = format!("{} is attached already, as {}", args.parts.name, status.device);
        return Err(Error::usage(text));
    }
    if let Some(other) = cache_of(&args.parts.backing)? {
        let text = format!(
            "{} is read through the cache {}, as {}",
            args.parts.backing.display(),
            other.name,
            other.device
        );
        return Err(Error::new(Exit::Impossible, text));
    }
    output::show(&plan(&args)?);
    let device = start(&args)?;
    Ok(output::show(&format!(
        "{0} is served: use {device} instead of {1}.\n",
        escaped(&args.parts.name),
        escaped(&args.parts.backing.display().to_string())
    )))
}

fn whole(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::usage(format!("{}: {error}", path.display())))
}

/// The cache that this disk is read through.
fn cache_of(backing: &Path) -> Result<Option<CacheStatus>> {
    let Ok(device) = std::fs::canonicalize(backing) else { return Ok(None) };
    let names = control::names()?;
    let mut served = names.iter().filter_map(|name| control::status_now(name));
    Ok(served.find(|cache| device.ends_with(&cache.volume)))
}

/// Looks at all parts, makes or takes the file of the cache, and says what will be.
fn plan(args: &CacheArgs) -> Result<String> {
    let root = Root::system();
    let export = export::resolve(args)?;
    // In this process as in those of the service: what is refused here is refused there.
    let refused = protect();
    let parts = Parts::open(args, &root, HeldParts::default())?;
    let cold = parts.setup.start(&parts.journal).cold().map(|why| why.to_string());
    let bytes = parts.medium_bytes();
    let looked = parts.with_medium(args, &root, |place, own| {
        if args.file_optional && place.state(own)? == MediumState::Absent {
            return Err(Error::new(Exit::Impossible, "the file of the cache is not there"));
        }
        let plan = AttachPlan::of(&parts.volume, &place, bytes, cold.as_deref(), export);
        drop(place.open(own, args.take_file)?);
        Ok(plan)
    });
    let plan = match looked {
        Err(error) if args.file_optional => {
            return Ok(format!(
                "cache    not used now: {}. Reads go to the disk until it is\n",
                escaped(&error.to_string())
            ));
        }
        looked => looked?,
    };
    let refused = refused.iter().map(|what| format!("refused  {what}"));
    let lines = plan.lines.iter().cloned().chain(refused);
    Ok(lines.map(|line| format!("{}\n", escaped(&line))).collect())
}

/// Starts the service, which goes on when this process has ended; the block device.
fn start(args: &CacheArgs) -> Result<String> {
    let failed = |text: String| Error::new(Exit::Partial, text);
    let services = control::services()?;
    let name = OsString::from(format!("{}.{}.log", args.parts.name, std::process::id()));
    let _ = services.remove(&name);
    let mut log = services.create_new(&name, 0o600)?;
    // It is read by its descriptor.
    services.remove(&name)?;
    let said = log.try_clone().map_err(|error| failed(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["boost", "serve"]).args(serve::words(&args.parts)).args(serve::first_words(args));
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(said));
    let mut service = command.spawn().map_err(|error| failed(error.to_string()))?;
    let end = Instant::now() + BEGIN_WAIT;
    loop {
        let status = control::status_now(&args.parts.name);
        // Another service of the same name may have answered.
        let ended = service.try_wait().map_err(|error| failed(error.to_string()))?;
        match (status, ended) {
            (Some(CacheStatus { device, .. }), None) => return Ok(device),
            (_, Some(ended)) => return Err(ended_early(ended, &mut log)),
            (None, None) if Instant::now() > end => {
                sys::process::kill_group(service.id())?;
                let _ = service.wait();
                return Err(failed("the service did not begin within a minute".to_owned()));
            }
            (None, None) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Why a service ended before it served, with its own status.
fn ended_early(ended: ExitStatus, log: &mut File) -> Error {
    let mut said = String::new();
    let _ = log.rewind().and_then(|()| log.take(4096).read_to_string(&mut said));
    Error::new(serve::exit_of(ended), format!("the service did not begin: {}", first_line(&said)))
}

/// What the service said first, without the name of this program.
fn first_line(said: &str) -> String {
    let line = said.lines().next().unwrap_or("it said nothing");
    line.strip_prefix("terrace: ").unwrap_or(line).to_owned()
}

/// Shows what the caches do.
///
/// # Errors
/// `Usage` for a name that is not attached.
pub(super) fn status(args: &CacheStatusArgs, color: When) -> Result<Exit> {
    let caches = match &args.name {
        Some(name) => vec![control::ask(name, Question::Status)?],
        None => {
            control::only_root()?;
            let names = control::names()?;
            names.iter().map(|name| control::ask(name, Question::Status)).collect::<Result<_>>()?
        }
    };
    let target = OutputTarget::of(None)?;
    let text = if args.json {
        json::render(&CacheStatuses { schema: "terrace.boost_status/1", caches: &caches })?
    } else {
        page(&caches, Page::of(&target, color))
    };
    target.write(&text)?;
    Ok(Exit::Done)
}

/// Ends a cache.
///
/// # Errors
/// `Usage` for a name that is not attached; `Impossible` while its device is in use.
pub(super) fn detach(args: &DetachArgs) -> Result<Exit> {
    let detached: Detached = control::ask(&args.name, Question::Detach)?;
    if let Some(used) = detached.refused {
        return Err(Error::new(Exit::Impossible, used));
    }
    // Its files are removed by the service.
    let end = Instant::now() + BEGIN_WAIT;
    while control::names()?.contains(&args.name) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let how = if detached.is_proved {
        "proved fresh: it is warm at the next attach of an unchanged volume"
    } else {
        "not proved fresh: it is empty at the next attach"
    };
    Ok(output::show(&format!("{} is detached, and {how}.\n", escaped(&args.name))))
}
