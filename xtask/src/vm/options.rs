//! What was typed after `cargo xtask vm`, checked as far as that needs no file and no program.
//!
//! Each option has a limit where a wrong one would hurt this machine: memory, time, names that reach a shell.

use std::path::PathBuf;
use std::time::Duration;

use super::disk::{self, DiskSpec};

/// The text of `--help`.
pub(super) const USAGE: &str = "\
usage: cargo xtask vm [OPTIONS] -- COMMAND...   one word: a shell script; several: a program
       cargo xtask vm --build [--package NAME]  only make the guest image
       cargo xtask vm --clean                   remove the guest images

runs COMMAND as root in a small throw-away machine (Debian, emulated unless KVM works), with its output
and exit status; 124: the time is over, 125: this program failed. If COMMAND names terrace, it is built
and lies on PATH.

  --disk NAME:SIZE[,KEY=VALUE...]  a disk, in the guest /dev/vm/NAME; NAME:file=PATH keeps what is written
           model=hdd|usb|sd        one request at a time, each with a modelled time; change it with
             read_ms write_ms jump_read_ms jump_write_ms read_bps write_bps seek_min_ms seek_max_ms turn_ms
           bus=virtio|usb|scsi|nvme   rot=0|1 (what the guest's kernel believes)
           vm-ctl unplug NAME, called in the guest, pulls a disk on usb or scsi
  --mem 512M       memory of the guest         --timeout 600    seconds for the command
  --module NAME    load it first               --env K[=V]      set or pass on a variable
  --dir DIR        copy DIR to /bench, where the command starts
  --bin PATH       copy a program onto PATH    --tests CRATE    build its tests, copy them to /tests
  --out DIR        put what is left in /out here, also when the time is over
  --stats FILE     what reached each disk, as JSON   --console FILE   the kernel's messages
  --package NAME   one more Debian package in the image (makes an image of its own)
  --append TEXT    more kernel command line";

/// Less does not boot Debian's kernel with room for a command.
const MEMORY_MIN: u64 = 192 << 20;
/// The emulator keeps it all in this machine's memory.
const MEMORY_MAX: u64 = 64 << 30;
const MEMORY_DEFAULT: u64 = 512 << 20;

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);
/// A day: a guest that was forgotten ends by itself.
const TIMEOUT_S_MAX: u64 = 86_400;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Action {
    #[default]
    Run,
    Build,
    Clean,
    Help,
}

/// The command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) action: Action,
    pub(super) disks: Vec<DiskSpec>,
    pub(super) memory_bytes: u64,
    pub(super) timeout: Duration,
    pub(super) modules: Vec<String>,
    /// Names, and values unless they are to be passed on.
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) directory: Option<PathBuf>,
    pub(super) out: Option<PathBuf>,
    pub(super) console: Option<PathBuf>,
    pub(super) stats: Option<PathBuf>,
    pub(super) programs: Vec<PathBuf>,
    pub(super) tests: Vec<String>,
    pub(super) packages: Vec<String>,
    pub(super) append: Vec<String>,
    pub(super) command: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            action: Action::Run,
            disks: Vec::new(),
            memory_bytes: MEMORY_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
            modules: Vec::new(),
            environment: Vec::new(),
            directory: None,
            out: None,
            console: None,
            stats: None,
            programs: Vec::new(),
            tests: Vec::new(),
            packages: Vec::new(),
            append: Vec::new(),
            command: Vec::new(),
        }
    }
}

/// Reads the words after `vm`; the error says which one is wrong and why.
pub(super) fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                options.command = words.by_ref().cloned().collect();
            }
            "--build" => options.action = Action::Build,
            "--clean" => options.action = Action::Clean,
            "--help" | "-h" => options.action = Action::Help,
            option if option.starts_with("--") => {
                let value = words
                    .next()
                    .ok_or_else(|| format!("{option} needs a value, see --help"))?;
                options.set(option, value)?;
            }
            other => return Err(format!("write -- before the command {other:?}")),
        }
    }
    if options.action == Action::Run && options.command.is_empty() {
        return Err("no command, see --help".to_owned());
    }
    Ok(options)
}

impl Options {
    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let path = || Some(PathBuf::from(value));
        match option {
            "--disk" => self.add_disk(DiskSpec::parse(value)?)?,
            "--mem" => self.memory_bytes = memory(value)?,
            "--timeout" => self.timeout = timeout(value)?,
            "--module" => self.modules.push(plain(option, value)?),
            "--env" => self.environment.push(variable(value)?),
            "--dir" => self.directory = path(),
            "--out" => self.out = path(),
            "--console" => self.console = path(),
            "--stats" => self.stats = path(),
            "--bin" => self.programs.push(PathBuf::from(value)),
            "--tests" => self.tests.push(plain(option, value)?),
            "--package" => self.packages.push(plain(option, value)?),
            "--append" => self.append.push(value.to_owned()),
            _ => return Err(format!("no option {option}, see --help")),
        }
        Ok(())
    }

    fn add_disk(&mut self, disk: DiskSpec) -> Result<(), String> {
        if self.disks.iter().any(|other| other.name == disk.name) {
            return Err(format!("two disks are called {}", disk.name));
        }
        self.disks.push(disk);
        Ok(())
    }
}

fn memory(text: &str) -> Result<u64, String> {
    let bytes = disk::bytes(text)?;
    if (MEMORY_MIN..=MEMORY_MAX).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!("--mem is 192M to 64G, not {text}"))
    }
}

fn timeout(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| (1..=TIMEOUT_S_MAX).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("--timeout is 1 to {TIMEOUT_S_MAX} seconds, not {text}"))
}

/// A name of a module, package or crate: nothing that a shell or another program could take otherwise.
fn plain(option: &str, value: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    if value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.chars().all(is_allowed) {
        Ok(value.to_owned())
    } else {
        Err(format!("{option} {value:?} is not a name"))
    }
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(is_allowed) && name.starts_with(|c: char| !c.is_ascii_digit()) {
        Ok((name.to_owned(), value))
    } else {
        Err(format!("--env {text:?} is not K or K=V"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn all_after_the_dashes_is_the_command() {
        let options = parsed("--mem 1G --timeout 5 -- terrace survey --json -- x").unwrap();
        assert_eq!(
            options.command,
            ["terrace", "survey", "--json", "--", "x"].map(str::to_owned)
        );
        assert_eq!(options.memory_bytes, 1 << 30);
        assert_eq!(options.timeout, Duration::from_secs(5));
    }

    #[test]
    fn options_that_repeat_add_up() {
        let options =
            parsed("--disk a:1M --disk b:1M,model=sd --env A=b=c --env HOME --module nbd -- true");
        let options = options.unwrap();
        let names: Vec<_> = options
            .disks
            .iter()
            .map(|disk| disk.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            options.environment,
            [
                ("A".to_owned(), Some("b=c".to_owned())),
                ("HOME".to_owned(), None)
            ]
        );
    }

    #[test]
    fn making_and_removing_images_need_no_command() {
        let build = parsed("--build --package postgresql").unwrap();
        assert_eq!(build.action, Action::Build);
        assert_eq!(build.packages, ["postgresql"]);
        assert_eq!(parsed("--clean").unwrap().action, Action::Clean);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_reason() {
        for (line, reason) in [
            ("--mem 512M", "no command"),
            ("--mem", "--mem needs a value"),
            ("--mem 1M -- true", "--mem is 192M to 64G"),
            ("--timeout 0 -- true", "--timeout is 1 to"),
            ("--cpus 2 -- true", "no option --cpus"),
            ("true", "write -- before the command"),
            ("--env 1=2 -- true", "is not K or K=V"),
            ("--env a-b=2 -- true", "is not K or K=V"),
            ("--module a;b -- true", "is not a name"),
            ("--package -o -- true", "is not a name"),
            ("--disk a:1M --disk a:2M -- true", "two disks are called a"),
            ("--disk a:x -- true", "bad size"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
