//! The stage: makes a cause with real groups, devices, swap and neighbours, runs the
//! command under `terrace run` or the scene beside `terrace record`, and gathers what was said.

mod cold_starts;
mod memory_scenes;
mod processor_scenes;
mod scenes;

use crate::busy::Processors;
use crate::cases::{Case, WITNESSED};
use crate::witness::{self, Lives};
use record::file;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::{Cgroup, Mounted, SwapArea, TempDir};

/// What a stage holds while its command runs; dropping it takes everything back.
#[derive(Default)]
pub struct Made {
    /// The command's words.
    pub argv: Vec<String>,
    /// The programs beside each other while the whole machine is recorded; there is no command
    /// then.
    scene: Vec<scenes::Program>,
    /// The groups that the command joins.
    groups: Vec<Cgroup>,
    /// Groups that programs of the scene join.
    _held_groups: Vec<Cgroup>,
    neighbours: Vec<Neighbour>,
    // Put back while the device is there: the kernel keeps them for whoever gets the device next.
    _settings: Vec<ChangedSetting>,
    // The last to go: files lie on them.
    _mounts: Vec<Mounted>,
    _swaps: Vec<SwapArea>,
    _directories: Vec<TempDir>,
    stdin: Option<Stdio>,
}

/// A process beside; killed on drop.
struct Neighbour(Child);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A setting of the kernel that a stage has changed; put back on drop.
struct ChangedSetting {
    path: PathBuf,
    before: String,
}

impl ChangedSetting {
    fn set(path: PathBuf, value: &str) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("{}: {error}", path.display());
        let before = std::fs::read_to_string(&path).map_err(words)?;
        std::fs::write(&path, value).map_err(words)?;
        Ok(Self { path, before })
    }
}

impl Drop for ChangedSetting {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.path, self.before.trim());
    }
}

/// What the program reported.
pub struct RunReport {
    /// `terrace explain --json` of the recording.
    pub json: Value,
    /// The verdict as a person sees it.
    pub page: String,
    /// The recording itself.
    pub recording: model::recording::Recording,
    /// What the kernel's own trace says of the same command, where it was asked.
    pub witnessed: Option<Result<Lives, String>>,
    /// The share of all processors that others had meanwhile, the host included, 0 to 1;
    /// `None` where neighbours belong to the stage.
    pub others: Option<f64>,
}

impl RunReport {
    /// The findings' ids, worst first.
    pub fn findings(&self) -> Vec<&str> {
        let all = self.json["findings"].as_array().unwrap();
        all.iter().filter_map(|cause| cause["id"].as_str()).collect()
    }

    /// One line: what was found, and how long it took.
    pub fn summary(&self) -> String {
        let wall = self.json["wall_ns"].as_f64().unwrap_or(0.0) / 1e9;
        format!("{} in {wall:.1} s", self.findings().join(", "))
    }
}

/// Makes the case's cause, records its command, and returns the report.
pub fn run(case: &Case) -> Result<RunReport, String> {
    let mut made = (case.make)()?;
    let directory = TempDir::new();
    let file = match std::env::var_os("VERDICTS_KEEP") {
        Some(kept) => PathBuf::from(kept).join(format!("{}.trec", case.name)),
        None => directory.join("run.trec"),
    };
    // A kept one of an earlier attempt.
    let _ = std::fs::remove_file(&file);
    if !made.scene.is_empty() {
        let (output, others) = scenes::record(&made.scene, &file)?;
        drop(made);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaint}", case.name);
        let explain = Command::new(TERRACE).env("COLUMNS", "80").arg("explain").arg(&file).output();
        let page = String::from_utf8_lossy(&explain.unwrap().stdout).into_owned();
        let (json, recording) = explained(&file);
        return Ok(RunReport { json, page, recording, witnessed: None, others: Some(others) });
    }
    let mut command = made.command(&file);
    command.env("COLUMNS", "80");
    command.stdin(made.stdin.take().unwrap_or_else(Stdio::null));
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let trace = if WITNESSED.contains(&case.name) { Some(witness::start()?) } else { None };
    let before = Processors::now();
    let recorder = command.spawn().map_err(|error| error.to_string())?;
    // The shells that join groups become the recorder: its number stays.
    let number = recorder.id();
    let output = recorder.wait_with_output().map_err(|error| error.to_string())?;
    let by_others = Processors::now().others_since(&before);
    let others = made.neighbours.is_empty().then_some(by_others);
    drop(made);
    let trace = trace.map(testkit::KernelTrace::finish).transpose()?;
    let page = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {page}", case.name);
    let (json, recording) = explained(&file);
    Ok(RunReport {
        json,
        page,
        recording,
        witnessed: trace.map(|trace| witness::lives(&trace, number)),
        others,
    })
}

/// Makes the case's cause, and tries the first remedy of its command; the comparison of
/// `terrace run --try`, or `None` where nothing can be tried.
pub fn try_remedy(case: &Case) -> Result<Option<Value>, String> {
    let made = (case.make)()?;
    // A command that reads its input to the end cannot be run again.
    if !made.scene.is_empty() || made.stdin.is_some() {
        return Ok(None);
    }
    let directory = TempDir::new();
    let file = directory.join("tried.json");
    let path = file.to_string_lossy().into_owned();
    let cold = "sync; echo 3 > /proc/sys/vm/drop_caches";
    let options = ["--apply", "--try", "--quiet", "--prepare", cold, "--json", &path];
    let mut command = made.terrace_run(&options);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let text =
        String::from_utf8_lossy(&output.map_err(|error| error.to_string())?.stderr).into_owned();
    let said = text.lines().filter(|line| line.starts_with("terrace: "));
    said.for_each(|line| println!("{}: {line}", case.name));
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    Ok(serde_json::from_str(&written).ok())
}

/// The recording's explanation as JSON, and the recording itself.
fn explained(file: &Path) -> (Value, model::recording::Recording) {
    let explained = Command::new(TERRACE).args(["explain", "--json"]).arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&explained.stderr);
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {complaint}"));
    (json, file::read(File::open(file).unwrap()).unwrap())
}

const TERRACE: &str = env!("CARGO_BIN_EXE_terrace");

impl Made {
    /// `terrace run` of the command, inside the stage's groups.
    fn command(&self, file: &Path) -> Command {
        self.terrace_run(&["--apply", "--force", "-o", &file.to_string_lossy()])
    }

    /// The same with other options.
    fn terrace_run(&self, options: &[&str]) -> Command {
        let mut words: Vec<String> = Vec::new();
        // Each group's shell moves itself in and becomes the next.
        for group in &self.groups {
            let join = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
            let path = group.path().to_string_lossy().into_owned();
            words.extend(["sh".to_owned(), "-c".to_owned(), join.to_owned(), path]);
        }
        words.extend([TERRACE, "run"].map(str::to_owned));
        words.extend(options.iter().chain(&["--"]).map(|word| (*word).to_owned()));
        words.extend(self.argv.iter().cloned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// The makers of the stages.
pub mod make {
    use super::{
        Cgroup, ChangedSetting, Child, Command, File, Made, Mounted, Neighbour, Path, PathBuf,
        Stdio, SwapArea, TempDir,
    };
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use testkit::Random;

    pub use super::cold_starts::{browser_starts, git_status_cold};
    pub use super::memory_scenes::{analytics_touches, backup_evicts, leak_swaps};
    pub use super::processor_scenes::{compile_jobs, cron_among_idle, quota_turns};
    pub use super::scenes::fork_storm;

    pub(super) const MIB: u64 = 1 << 20;

    /// This program as the workload of these words.
    pub(super) fn own_workload(words: &[&str]) -> Vec<String> {
        let own = std::env::current_exe().unwrap();
        let mut argv = vec![own.to_string_lossy().into_owned(), "workload".to_owned()];
        argv.extend(words.iter().map(|word| (*word).to_owned()));
        argv
    }

    pub(super) fn text(path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    /// A file that does not compress, on the disk and no longer in the cache.
    pub(super) fn cold_file(directory: &Path, name: &str, mib: u64) -> String {
        let path = directory.join(name);
        let mut file = File::create(&path).unwrap();
        let mut chunk = vec![0; MIB as usize];
        let mut random = Random(17);
        for _ in 0..mib {
            random.fill(&mut chunk);
            file.write_all(&chunk).unwrap();
        }
        file.sync_all().unwrap();
        sys::file::advise(&file, 0, 0, sys::file::CacheAdvice::DontNeed).unwrap();
        text(&path)
    }

    /// A small file system on a device of its own, in a group that holds it to a rate.
    pub(super) fn slow_disk(
        mib: u64,
        limit: fn(&str, u64) -> Result<Cgroup, String>,
        rate: u64,
    ) -> Result<(Mounted, Cgroup), String> {
        let mounted = Mounted::ext4(mib * MIB)?;
        let group = limit(&device_number(&mounted)?, rate)?;
        Ok((mounted, group))
    }

    /// The number of its device, as `7:0`.
    pub(super) fn device_number(mounted: &Mounted) -> Result<String, String> {
        let path = format!("/sys/block/{}/dev", mounted.device_name());
        let number = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(number.trim().to_owned())
    }

    /// Runs a command to its end, before anything is recorded.
    pub(super) fn finish(argv: &[String]) -> Result<(), String> {
        let output = Command::new(&argv[0])
            .args(&argv[1..])
            .output()
            .map_err(|error| format!("the program {}: {error}", argv[0]))?;
        let complaint = || format!("{argv:?}: {}", String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(()) } else { Err(complaint()) }
    }

    pub fn cold_read() -> Result<Made, String> {
        let (mounted, group) = slow_disk(200, Cgroup::v1_read_rate, 50 * MIB)?;
        let file = cold_file(mounted.path(), "cold", 100);
        Ok(Made {
            argv: own_workload(&["read", &file]),
            groups: vec![group],
            _mounts: vec![mounted],
            ..Made::default()
        })
    }

    /// Direct writes: version 1 charges no others to their writer.
    pub fn write_limit() -> Result<Made, String> {
        let (mounted, group) = slow_disk(200, Cgroup::v1_write_rate, 20 * MIB)?;
        let file = format!("of={}", text(&mounted.path().join("written")));
        let words = ["dd", "if=/dev/zero", &file, "bs=1M", "count=40", "oflag=direct"];
        Ok(Made {
            argv: words.map(str::to_owned).to_vec(),
            groups: vec![group],
            _mounts: vec![mounted],
            ..Made::default()
        })
    }

    /// Direct writes of one sector each, on a disk that keeps several in one block.
    pub fn misaligned() -> Result<Made, String> {
        let directory = TempDir::new();
        let (major, minor) = sys::block::device_numbers(directory.path().metadata().unwrap().dev());
        let disk = machine::block::of_device(&machine::Root::system(), major, minor);
        let has_larger =
            disk.is_some_and(|disk| disk.physical_block_bytes > disk.logical_block_bytes);
        if !has_larger {
            return Err("a disk whose blocks are larger than its sectors".to_owned());
        }
        let file = format!("of={}", cold_file(directory.path(), "file", 8));
        let writes = ["bs=512", "seek=1", "count=6000", "conv=notrunc"];
        let mut words = vec!["dd", "if=/dev/zero", &file, "oflag=direct"];
        words.extend(writes);
        // Some kernels lose what is told in the idle task of a processor, and with it the ends
        // of requests: a neighbour who gives way keeps each of them at work.
        let idler = || {
            let hog = own_workload(&["hog"]);
            let mut command = Command::new("chrt");
            command.args(["--idle", "0"]).args(hog).spawn().unwrap()
        };
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Made {
            argv: words.into_iter().map(str::to_owned).collect(),
            neighbours: (0..processors).map(|_| Neighbour(idler())).collect(),
            _directories: vec![directory],
            ..Made::default()
        })
    }

    pub fn cold_mmap() -> Result<Made, String> {
        let directory = TempDir::new();
        let file = cold_file(directory.path(), "cold", 256);
        Ok(Made {
            argv: own_workload(&["mmap", &file, "15000"]),
            _directories: vec![directory],
            ..Made::default()
        })
    }

    /// In base pages. Where all memory gets huge pages, the program refuses them; elsewhere it
    /// does not, so that the setting can be tried.
    pub fn first_touch() -> Result<Made, String> {
        let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
        let is_always = std::fs::read_to_string(enabled).is_ok_and(|all| all.contains("[always]"));
        let word = if is_always { "touch" } else { "touch_as_given" };
        Ok(Made { argv: own_workload(&[word, "2048"]), ..Made::default() })
    }

    pub fn swap_random() -> Result<Made, String> {
        swapped("random", "2")
    }

    pub fn swap_zeros() -> Result<Made, String> {
        swapped("zeros", "6")
    }

    /// Memory of three times the group's limit, with swap to go to.
    fn swapped(kind: &str, passes: &str) -> Result<Made, String> {
        let swap = SwapArea::on(512 * MIB)?;
        let group = Cgroup::v1_memory(64 * MIB)?;
        Ok(Made {
            argv: own_workload(&["passes", kind, "192", passes]),
            groups: vec![group],
            _swaps: vec![swap],
            ..Made::default()
        })
    }

    pub fn limit_refaults() -> Result<Made, String> {
        let directory = TempDir::new();
        let file = cold_file(directory.path(), "cold", 64);
        let group = Cgroup::v1_memory(40 * MIB)?;
        Ok(Made {
            argv: own_workload(&["mmap", &file, "80000"]),
            groups: vec![group],
            _directories: vec![directory],
            ..Made::default()
        })
    }

    pub fn write_small_group() -> Result<Made, String> {
        let (mounted, slow) = slow_disk(400, Cgroup::v1_write_rate, 120 * MIB)?;
        let memory = Cgroup::v1_memory(48 * MIB)?;
        let file = text(&mounted.path().join("written"));
        Ok(Made {
            argv: own_workload(&["write", &file, "300"]),
            groups: vec![slow, memory],
            _mounts: vec![mounted],
            ..Made::default()
        })
    }

    pub fn dirty_throttle() -> Result<Made, String> {
        // As slow as a hard disk, so that waiting for it is more than copying the data; and in the
        // place of what is there already, so that it waits for the data alone.
        let mounted = Mounted::on_hdd(400 * MIB)?;
        let file = text(&mounted.path().join("written"));
        finish(&own_workload(&["write", &file, "120"]))?;
        finish(&["sync", "-f", &file].map(str::to_owned))?;
        // The device's own share of dirty memory; the device is this test's.
        let device = format!("/sys/block/{}/bdi", mounted.device_name());
        let set = |(name, value): (&str, &str)| {
            ChangedSetting::set(PathBuf::from(format!("{device}/{name}")), value)
        };
        let settings = [("strict_limit", "1"), ("max_ratio", "1")].into_iter().map(set);
        let changed = settings.collect::<Result<_, _>>()?;
        let to = format!("of={file}");
        let words = ["dd", "if=/dev/zero", &to, "bs=1M", "count=120", "conv=notrunc"];
        Ok(Made {
            argv: words.map(str::to_owned).to_vec(),
            _settings: changed,
            _mounts: vec![mounted],
            ..Made::default()
        })
    }

    pub fn hog_beside() -> Result<Made, String> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let hog = || -> Child {
            let words = own_workload(&["hog"]);
            Command::new(&words[0]).args(&words[1..]).spawn().unwrap()
        };
        Ok(Made {
            argv: own_workload(&["spin", "150"]),
            neighbours: (0..processors * 2).map(|_| Neighbour(hog())).collect(),
            ..Made::default()
        })
    }

    pub fn cpu_quota() -> Result<Made, String> {
        let group = Cgroup::v1_cpu(20_000, 100_000)?;
        Ok(Made { argv: own_workload(&["spin", "60"]), groups: vec![group], ..Made::default() })
    }

    pub fn lock_contention() -> Result<Made, String> {
        Ok(Made { argv: own_workload(&["locks", "8", "250"]), ..Made::default() })
    }

    pub fn sleep() -> Result<Made, String> {
        Ok(Made { argv: vec!["sleep".to_owned(), "2".to_owned()], ..Made::default() })
    }

    /// The writer is not part of the command: another process is slow.
    pub fn pipe_wait() -> Result<Made, String> {
        let mut writer = Command::new("sh")
            .args(["-c", "sleep 2; echo done; exec sleep 0"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let pipe = writer.stdout.take().map(Stdio::from);
        Ok(Made {
            argv: vec!["cat".to_owned()],
            neighbours: vec![Neighbour(writer)],
            stdin: pipe,
            ..Made::default()
        })
    }

    pub fn fsync_storm() -> Result<Made, String> {
        let directory = TempDir::new();
        let file = text(&directory.join("log"));
        Ok(Made {
            argv: own_workload(&["fsync", &file, "1500"]),
            _directories: vec![directory],
            ..Made::default()
        })
    }

    pub fn copy_evicts() -> Result<Made, String> {
        let directory = TempDir::new();
        let hot = cold_file(directory.path(), "hot", 32);
        let source = cold_file(directory.path(), "source", 256);
        let target = text(&directory.join("target"));
        let group = Cgroup::v1_memory(64 * MIB)?;
        Ok(Made {
            argv: own_workload(&["evict", &hot, &source, &target]),
            groups: vec![group],
            _directories: vec![directory],
            ..Made::default()
        })
    }

    /// A shell that starts one very short program after another.
    pub fn short_children() -> Result<Made, String> {
        let script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done";
        Ok(Made { argv: ["sh", "-c", script].map(str::to_owned).to_vec(), ..Made::default() })
    }

    pub fn make_j2() -> Result<Made, String> {
        let (directory, mut argv) = compilation()?;
        argv.push("-j2".to_owned());
        Ok(Made { argv, _directories: vec![directory], ..Made::default() })
    }

    /// Real compilers, started by a real `make`, on sources that are made here.
    pub(super) fn compilation() -> Result<(TempDir, Vec<String>), String> {
        compilation_of(8)
    }

    /// The same with so many sources.
    pub(super) fn compilation_of(parts: usize) -> Result<(TempDir, Vec<String>), String> {
        let directory = TempDir::new();
        for program in ["make", "cc"] {
            if Command::new(program).arg("--version").output().is_err() {
                return Err(format!("the program {program}"));
            }
        }
        let names: Vec<String> = (0..parts).map(|number| format!("part{number}")).collect();
        for name in &names {
            let functions: String = (0..400)
                .map(|number| format!("int {name}_{number}(int a, int b) {{ int s = b; for (int i = 0; i < a; i++) s += (i * {number}) ^ (s >> 3); return s; }}\n"))
                .collect();
            std::fs::write(directory.join(format!("{name}.c")), functions).unwrap();
        }
        let objects: Vec<String> = names.iter().map(|name| format!("{name}.o")).collect();
        let rules = format!("all: {}\n%.o: %.c\n\tcc -O2 -c $< -o $@\n", objects.join(" "));
        std::fs::write(directory.join("Makefile"), rules).unwrap();
        let place = text(directory.path());
        let argv = ["make", "-s", "-C", &place].map(str::to_owned).to_vec();
        Ok((directory, argv))
    }

    /// An archive of many small files is unpacked, and made durable.
    pub fn untar() -> Result<Made, String> {
        let directory = TempDir::new();
        let tree = text(&directory.join("tree"));
        finish(&own_workload(&["files", &tree, "40000", "3000"]))?;
        let (archive, target) =
            (text(&directory.join("archive.tar")), text(&directory.join("target")));
        finish(&["tar", "-cf", &archive, "-C", &tree, "."].map(str::to_owned))?;
        finish(&["sync", "-f", &archive].map(str::to_owned))?;
        std::fs::create_dir(&target).map_err(|error| error.to_string())?;
        let script = r#"tar -xf "$0" -C "$1" && sync -f "$1""#;
        let argv = ["sh", "-c", script, &archive, &target].map(str::to_owned).to_vec();
        Ok(Made { argv, _directories: vec![directory], ..Made::default() })
    }

    /// What installing packages does: many small files are made, renamed and looked up.
    pub fn install_packages() -> Result<Made, String> {
        let directory = TempDir::new();
        let tree = text(&directory.join("node_modules"));
        let argv = own_workload(&["install", &tree, "12000"]);
        Ok(Made { argv, _directories: vec![directory], ..Made::default() })
    }

    /// Threads that map and unmap memory of one address space all the time.
    pub fn mappings() -> Result<Made, String> {
        Ok(Made { argv: own_workload(&["mappings", "4", "60000"]), ..Made::default() })
    }
}
