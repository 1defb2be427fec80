//! The program of the tarball, looked at from outside: what it needs, how large it is, what it says
//! of itself, how soon it answers.

use std::fs;
use std::time::{Duration, Instant};

use super::{Command, Finding, Looked, Packages, process, said};
use crate::dist::{build, elf, read, tree};

/// The most that it may have.
const BYTES_MAX: u64 = 12 << 20;

/// How often `--help` is started, and how long the median may take.
const STARTS: usize = 21;
const START_MAX: Duration = Duration::from_millis(10);

/// No symbol is newer than the C library that it was built for.
pub(super) fn glibc(packages: &Packages) -> Looked {
    if process::find("readelf").is_none() {
        return Ok(Finding::Skipped("readelf (binutils)".to_owned()));
    }
    let symbols = elf::needed_symbols(&packages.program())?;
    let last = symbols.iter().max_by_key(|symbol| symbol.glibc);
    let newest =
        last.map_or(String::new(), |it| format!("{}@{}.{}", it.name, it.glibc.0, it.glibc.1));
    let seen = format!("{} symbols, newest {newest}", symbols.len());
    let newer: Vec<&str> = symbols
        .iter()
        .filter(|symbol| symbol.glibc > build::GLIBC)
        .map(|symbol| symbol.name.as_str())
        .collect();
    Ok(if newer.is_empty() {
        Finding::Held(seen)
    } else {
        Finding::Failed(format!("{seen}; newer than 2.28: {}", newer.join(", ")))
    })
}

/// Stripped, it is not too large.
pub(super) fn size(packages: &Packages) -> Looked {
    let bytes = read(&packages.program())?.len() as u64;
    let seen =
        format!("{:.1} MiB stripped, at most {} MiB", bytes as f64 / 1048576.0, BYTES_MAX >> 20);
    Ok(if bytes <= BYTES_MAX { Finding::Held(seen) } else { Finding::Failed(seen) })
}

/// It says its version, its commit, its target and its recorders.
pub(super) fn version(packages: &Packages) -> Looked {
    let text = said(Command::new(packages.program()), &["--version"])?;
    let release = &packages.release;
    let parts = [&release.version, &release.source.commit, &release.target];
    let missing: Vec<&str> =
        parts.into_iter().map(String::as_str).filter(|part| !text.contains(part)).collect();
    let seen = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(if missing.is_empty() && text.contains("eBPF") {
        Finding::Held(seen)
    } else {
        Finding::Failed(format!("{seen}; lacks {}", missing.join(", ")))
    })
}

/// Neither the program nor its debug information names a directory of this machine.
pub(super) fn paths(packages: &Packages) -> Looked {
    let root = &packages.release.root;
    let mut found = tree::paths_of_this_machine(root, &read(&packages.program())?)?;
    let packed = packages.out.join(format!("{}.debug.gz", packages.release.name()));
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").arg(&packed);
    let debug = super::emptied(&packages.unpacked.with_file_name("debug"))
        .map(|()| packages.unpacked.with_file_name("debug").join("terrace.debug"))?;
    let file = fs::File::create(&debug).map_err(crate::Error::io("write", &debug))?;
    let unpacked = gzip.stdout(file).status().map_err(crate::Error::io("read", &packed))?;
    if !unpacked.success() {
        return Ok(Finding::Failed(format!("{} cannot be unpacked", packed.display())));
    }
    let bytes = read(&debug)?;
    found.extend(tree::paths_of_this_machine(root, &bytes)?);
    Ok(if found.is_empty() {
        Finding::Held(format!("none of this machine, also in {} MB of debug", bytes.len() >> 20))
    } else {
        Finding::Failed(format!("of this machine: {}", found.join(", ")))
    })
}

/// The median of some cold processes; the file itself is in the page cache.
pub(super) fn start(packages: &Packages) -> Looked {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let started = Instant::now();
        said_quietly(packages)?;
        times.push(started.elapsed());
    }
    times.sort();
    let median = times[STARTS / 2];
    let seen = format!("--help in {:.1} ms, median of {STARTS}", median.as_secs_f64() * 1e3);
    Ok(if median <= START_MAX { Finding::Held(seen) } else { Finding::Failed(seen) })
}

fn said_quietly(packages: &Packages) -> Result<(), crate::Error> {
    let mut command = Command::new(packages.program());
    command.arg("--help").stdout(std::process::Stdio::null());
    let program = packages.program();
    command.status().map(drop).map_err(crate::Error::io("start", &program))
}
