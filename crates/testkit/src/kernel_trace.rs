//! The kernel's own trace in an instance of a test's own: a record that shares nothing with
//! what it checks. Needs root and tracefs.
//!
//! An instance has buffers and switches of its own, so no other trace is disturbed.

use crate::mounted::attach;
use crate::temp_dir::TempDir;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tells instances of one process apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Memory for all processors together: two million events, of which compilers on a busy machine
/// were seen to make 1.1 million.
const BUFFERS_KIB: usize = 128 << 10;

/// Begins the name of every instance; the number of its process follows.
const NAME: &str = "terrace-test-";

/// The instance; on drop it is removed, and what it was mounted for is unmounted.
#[derive(Debug)]
pub struct KernelTrace {
    instance: PathBuf,
    _mounted: MountedTrace,
}

/// tracefs in a directory of the test's own.
#[derive(Debug)]
struct MountedTrace(TempDir);

impl Drop for MountedTrace {
    fn drop(&mut self) {
        let _ = sys::mount::unmount(self.0.path());
    }
}

impl KernelTrace {
    /// Starts to trace `events` (as `sched/sched_switch`) on the monotonic clock; `triggers`
    /// are pairs of an event and what is to happen with it.
    ///
    /// # Errors
    /// The words for [`crate::skip`].
    pub fn start(events: &[&str], triggers: &[(&str, &str)]) -> Result<Self, String> {
        if !crate::is_root() {
            return Err("root".to_owned());
        }
        let directory = TempDir::new();
        attach("tracefs", &[("source", "terrace-test")], &[], directory.path())?;
        let mounted = MountedTrace(directory);
        let instances = mounted.0.join("instances");
        sweep(&instances);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let instance = instances.join(format!("{NAME}{}-{count}", std::process::id()));
        std::fs::create_dir(&instance).map_err(|error| format!("an own trace: {error}"))?;
        // From here on `Drop` removes it.
        let trace = Self { instance, _mounted: mounted };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        trace.set("trace_clock", "mono")?;
        trace.set("buffer_size_kb", &(BUFFERS_KIB / processors).to_string())?;
        for (event, action) in triggers {
            trace.set(&format!("events/{event}/trigger"), action)?;
        }
        for event in events {
            trace.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    /// Ends it; its lines in the order of time.
    ///
    /// # Errors
    /// What went wrong: some events were lost, too.
    pub fn finish(self) -> Result<String, String> {
        self.set("tracing_on", "0")?;
        let text = std::fs::read_to_string(self.instance.join("trace"))
            .map_err(|error| format!("the trace to be read: {error}"))?;
        // "# entries-in-buffer/entries-written: 134/134   #P:2"
        let counts = text.lines().find_map(|line| {
            let (_, counts) = line.split_once("entries-written: ")?;
            counts.split_whitespace().next()?.split_once('/')
        });
        match counts {
            Some((kept, written)) if kept == written => Ok(text),
            _ => Err(format!("room for all events of the trace ({counts:?})")),
        }
    }

    fn set(&self, file: &str, value: &str) -> Result<(), String> {
        std::fs::write(self.instance.join(file), value)
            .map_err(|error| format!("{file} to take {value}: {error}"))
    }
}

/// Removes the instances of test runs that were killed: each holds its buffers until then.
fn sweep(instances: &Path) {
    for entry in std::fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next());
        let is_left = process.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if is_left {
            // Another test run may have done it.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

impl Drop for KernelTrace {
    fn drop(&mut self) {
        let _ = self.set("events/enable", "0");
        // The kernel may still be busy with it.
        let gone = || std::fs::remove_dir(&self.instance).is_ok() || !self.instance.exists();
        for _ in 0..100 {
            if gone() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KernelTrace;

    #[test]
    fn a_program_is_traced_and_the_instance_goes_away() {
        let trace = match KernelTrace::start(&["sched/sched_process_exec"], &[]) {
            Ok(trace) => trace,
            Err(need) => return crate::skip(need),
        };
        let (instance, place) = (trace.instance.clone(), trace._mounted.0.path().to_path_buf());
        assert!(instance.exists());
        let child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait_with_output().unwrap();
        // What a run leaves that was killed: its process is gone.
        let left = instance.with_file_name(format!("{}{number}-0", super::NAME));
        std::fs::create_dir(&left).unwrap();
        let text = trace.finish().unwrap();
        assert!(text.contains(&format!(" old_pid={number}\n")), "{text}");
        assert!(!place.exists());
        let again = KernelTrace::start(&[], &[]).unwrap();
        for gone in [instance, left] {
            let name = gone.file_name().unwrap();
            assert!(!again._mounted.0.join("instances").join(name).exists());
        }
    }
}
