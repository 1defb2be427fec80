//! What a person at a shell does to a machine: programs, swap, hogs, and the ways to bring memory
//! back. Nothing here is measured but the ways, each as the whole time of its command.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output};
use std::time::Instant;

use serde_json::Value;

use crate::Outcome;

/// The disk of the swap area, and the disk of files.
pub(crate) const SWAP: &str = "/dev/vm/swap";
/// Another one for swap, slow.
pub(crate) const SLOW: &str = "/dev/vm/slow";
pub(crate) const DATA: &str = "/dev/vm/data";

pub(crate) const PAGE: u64 = 4096;
/// `Documentation/admin-guide/mm/pagemap.rst`.
const SWAPPED: u64 = 1 << 62;

/// Hogs are started at most so often to push a process out.
const HOGS_MAX: usize = 8;
/// What counts as pushed out: a program keeps its own code and stack.
const PUSHED_OUT: f64 = 0.95;

/// Makes a line of an error, for `map_err`.
pub(crate) fn failed<E: Display>(what: &str) -> impl Fn(E) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Runs a program to its end and gives its output; it must succeed.
pub(crate) fn run(words: &[&str]) -> Outcome<String> {
    let what = words.join(" ");
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(failed(&what))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{what}: {}: {complaint}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Makes an ext4 that is whole at once: the kernel writes no tables of inodes while one measures.
pub(crate) fn make_file_system(disk: &str) -> Outcome<()> {
    let whole = ["-E", "lazy_itable_init=0"];
    run(&["mke2fs", "-q", "-t", "ext4", whole[0], whole[1], disk]).map(drop)
}

pub(crate) fn write(path: &str, text: &str) -> Outcome<()> {
    fs::write(path, text).map_err(failed(path))
}

/// A swap area, new and in use; out of use on drop.
pub(crate) struct Swap(&'static str);

impl Swap {
    pub(crate) fn on(disk: &'static str) -> Outcome<Self> {
        run(&["mkswap", disk])?;
        run(&["swapon", disk])?;
        Ok(Self(disk))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        // It may be off already: that is one of the ways.
        let _ = run(&["swapoff", self.0]);
    }
}

/// Pages of a process in swap.
pub(crate) fn swapped_pages(pid: u32) -> Outcome<u64> {
    Ok(bytes_in(&format!("/proc/{pid}/status"), "VmSwap:")? / PAGE)
}

/// What `/proc/meminfo` says of `name`, which ends in a colon.
pub(crate) fn meminfo_bytes(name: &str) -> Outcome<u64> {
    bytes_in("/proc/meminfo", name)
}

/// The value of the line that begins with `name`, which is in KiB, in bytes.
fn bytes_in(path: &str, name: &str) -> Outcome<u64> {
    let text = fs::read_to_string(path).map_err(failed(path))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| format!("no {name} in {path}"))? * 1024)
}

/// The sum of those counters of `/proc/vmstat` whose name is wanted.
pub(crate) fn counted(is_wanted: impl Fn(&str) -> bool) -> Outcome<u64> {
    let text = fs::read_to_string("/proc/vmstat").map_err(failed("vmstat"))?;
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let wanted: Vec<u64> =
        lines.filter(|(name, _)| is_wanted(name)).filter_map(|(_, n)| n.parse().ok()).collect();
    if wanted.is_empty() {
        Err("no such counter in vmstat".to_owned())
    } else {
        Ok(wanted.iter().sum())
    }
}

/// A process that is killed and waited for on drop.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Outcome<Self> {
        command.spawn().map(Self).map_err(failed(&format!("{command:?}")))
    }

    /// Whether it has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// What it printed, to its end.
    pub(crate) fn output(&mut self) -> Outcome<Output> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let Some(mut pipe) = self.0.stdout.take() {
            pipe.read_to_end(&mut stdout).map_err(failed("its output"))?;
        }
        if let Some(mut pipe) = self.0.stderr.take() {
            pipe.read_to_end(&mut stderr).map_err(failed("its complaints"))?;
        }
        let status = self.0.wait().map_err(failed("its end"))?;
        Ok(Output { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a file, or all below a folder, in order, so that its disk is not asked page by page.
pub(crate) fn read_once(path: &str) -> Outcome<()> {
    let script = format!("find {path} -type f -exec cat {{}} + >/dev/null");
    run(&["sh", "-c", &script]).map(drop)
}

/// Starts hogs of `hog` each, two at a time, until `pages` of a process lie in swap; how many do.
pub(crate) fn push_out(pid: u32, pages: u64, hog: &str) -> Outcome<u64> {
    push_out_until(pages, hog, || swapped_pages(pid))
}

/// As [`push_out`], where `in_swap` tells how many of the pages are there.
pub(crate) fn push_out_until(
    pages: u64,
    hog: &str,
    in_swap: impl Fn() -> Outcome<u64>,
) -> Outcome<u64> {
    let mut swapped = 0;
    for _ in 0..HOGS_MAX {
        run(&["terrace", "hog", "--size", hog, "--count", "2", "--repeat", "1", "--json"])?;
        swapped = in_swap()?;
        if swapped as f64 >= pages as f64 * PUSHED_OUT {
            return Ok(swapped);
        }
    }
    Err(format!("of {pages} pages only {swapped} are in swap"))
}

/// Brings memory of `pids` back in one of the ways; seconds, and what the tool reported. The tool's
/// own way takes options: `restore:--method:willneed`.
pub(crate) fn bring_back(way: &str, pids: &[u32], extra: &[&str]) -> Outcome<(f64, Value)> {
    let started = Instant::now();
    let report = match way {
        "demand" => Value::Null,
        "swapoff" => run(&["swapoff", SWAP]).map(|_| Value::Null)?,
        "address" => pids.iter().try_for_each(|pid| by_address(*pid)).map(|()| Value::Null)?,
        _ if way.starts_with("restore") => {
            let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
            let list = numbers.join(",");
            let mut words = vec!["terrace", "warm", "restore", "--pid", &list, "--json"];
            words.extend(extra);
            words.extend(way.split(':').skip(1));
            let text = run(&words)?;
            serde_json::from_str(&text).map_err(failed("the report"))?
        }
        _ => return Err(format!("no way {way:?}")),
    };
    Ok((started.elapsed().as_secs_f64(), report))
}

/// As de-swap does: a byte of every page in swap, in the order of the addresses.
fn by_address(pid: u32) -> Outcome<()> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(failed("maps"))?;
    let open = |name| File::open(format!("/proc/{pid}/{name}")).map_err(failed(name));
    let (pagemap, memory) = (open("pagemap")?, open("mem")?);
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (start, end) = range.ok_or("a line of maps without a range")?;
        let address = |text| u64::from_str_radix(text, 16).map_err(failed(line));
        for page in address(start)? / PAGE..address(end)? / PAGE {
            let mut entry = [0; 8];
            pagemap.read_exact_at(&mut entry, page * 8).map_err(failed("pagemap"))?;
            if u64::from_le_bytes(entry) & SWAPPED != 0 {
                memory.read_exact_at(&mut [0], page * PAGE).map_err(failed("mem"))?;
            }
        }
    }
    Ok(())
}
