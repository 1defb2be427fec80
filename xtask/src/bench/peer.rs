//! The programs that Terrace is compared with: found, named with their version, run under a limit.
//!
//! A peer comes from a path that was given or from `PATH`. Terrace itself is a peer too, built in
//! release mode first. Parsing what a program prints is the suite's business.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::SuiteRequest;
use crate::error::Error;
use crate::process::{self, Finished};
use crate::workspace;

/// No program takes longer to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// A release build from nothing takes about three minutes on two cores.
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// Where the version of a program is found.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    /// The program prints it, in its first line, for this option.
    Option(&'static str),
    /// The program cannot say it; the Debian package of this name can, if it was installed from
    /// there.
    Package(&'static str),
    /// Nothing says it, at least not before a whole run.
    Unsaid,
}

/// A program that is here and can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name, as in the record.
    pub name: String,
    /// Where it is.
    pub program: PathBuf,
    /// What it says that it is; `None` when it does not say.
    pub version: Option<String>,
    /// Variables of the environment that it runs with.
    pub environment: Vec<(&'static str, &'static str)>,
}

impl Peer {
    /// The peer `name` of `request`: the program given there, or the one on `PATH`.
    ///
    /// # Errors
    /// [`Error::Program`] that says how to give one, if it is absent or cannot be executed.
    pub fn find(request: &SuiteRequest, name: &str, version: Version) -> Result<Self, Error> {
        let missing = |what: String| Error::Program { program: name.to_owned(), what };
        let program = match request.peers.get(name) {
            Some(given) if process::is_executable(given) => given.clone(),
            Some(given) => return Err(missing(format!("{} is no program", given.display()))),
            None => process::find(name)
                .ok_or_else(|| missing(format!("not on PATH; give it with --{name} PROGRAM")))?,
        };
        let version = self::version(&program, version);
        Ok(Self { name: name.to_owned(), program, version, environment: Vec::new() })
    }

    /// As [`Peer::find`], but `None` for a peer that was not given and is not on `PATH`.
    ///
    /// # Errors
    /// As [`Peer::find`], for a peer that was given.
    pub fn find_if_any(
        request: &SuiteRequest,
        name: &str,
        version: Version,
    ) -> Result<Option<Self>, Error> {
        if !request.peers.contains_key(name) && process::find(name).is_none() {
            return Ok(None);
        }
        Self::find(request, name, version).map(Some)
    }

    /// Terrace: the program that was given, or built in release mode from the workspace at `root`.
    ///
    /// # Errors
    /// [`Error::Program`] when the build fails.
    pub fn terrace(request: &SuiteRequest, root: &Path, target: &Path) -> Result<Self, Error> {
        if request.peers.contains_key("terrace") {
            return Self::find(request, "terrace", Version::Option("--version"));
        }
        Self::build(root, target, &[])
    }

    /// Terrace built so that `TERRACE_SLOWDOWN` lengthens each trial in memory, with that variable
    /// at `share` (`"0.15"`). Built into a directory of its own: the other binary must stay as it
    /// is.
    ///
    /// # Errors
    /// [`Error::Program`] when the build fails.
    pub fn slowed_terrace(root: &Path, target: &Path, share: &'static str) -> Result<Self, Error> {
        let options = ["--features", "measure/slowdown"];
        let mut peer = Self::build(root, &target.join("slowdown"), &options)?;
        peer.environment.push(("TERRACE_SLOWDOWN", share));
        Ok(peer)
    }

    fn build(root: &Path, target: &Path, options: &[&str]) -> Result<Self, Error> {
        let mut build = workspace::cargo(root);
        build.args(["build", "--release", "--locked", "--quiet", "-p", "terrace"]);
        build.args(options).arg("--target-dir").arg(target);
        process::run(build, BUILD_LIMIT)?.success()?;
        let program = target.join("release/terrace");
        let version = version(&program, Version::Option("--version"));
        Ok(Self { name: "terrace".to_owned(), program, version, environment: Vec::new() })
    }

    /// Runs the program with `args` for at most `limit` and gives what it printed.
    ///
    /// # Errors
    /// [`Error::Program`] when it cannot start, fails, or runs past `limit`.
    pub fn run(&self, args: &[&str], limit: Duration) -> Result<Finished, Error> {
        let mut command = Command::new(&self.program);
        // Numbers with a decimal comma would be read as two.
        command.args(args).env("LC_ALL", "C");
        command.envs(self.environment.iter().copied());
        process::run(command, limit)?.success()
    }

    /// The line to type for a run with `args`, with the peer's name instead of its path: a record
    /// is read on other machines.
    pub fn command_line(&self, args: &[&str]) -> String {
        let variables = self.environment.iter();
        variables
            .map(|(name, value)| format!("{name}={}", process::quoted(value)))
            .chain(std::iter::once(self.name.clone()))
            .chain(args.iter().map(|arg| process::quoted(arg)))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// What `program` is, in one line; `None` when neither it nor its package says.
fn version(program: &Path, version: Version) -> Option<String> {
    let command = match version {
        Version::Option(option) => {
            let mut command = Command::new(program);
            command.arg(option);
            command
        }
        Version::Unsaid => return None,
        Version::Package(package) => {
            let mut command = Command::new("dpkg-query");
            command.args(["--show", "--showformat", "${Package} ${Version}", package]);
            command
        }
    };
    // Some programs print their version and then fail, or print it as an error.
    let output = process::run(command, VERSION_LIMIT).ok()?;
    let lines = output.stdout.lines().chain(match version {
        Version::Option(_) => output.stderr.lines(),
        Version::Package(_) | Version::Unsaid => "".lines(),
    });
    lines.map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::parse;

    fn request(line: &str) -> SuiteRequest {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&args).unwrap()
    }

    #[test]
    fn a_given_program_is_taken_and_a_wrong_one_refused() {
        let shell = process::find("sh").unwrap();
        let given = request(&format!("memory --mbw {}", shell.display()));
        let peer = Peer::find(&given, "mbw", Version::Package("no-such-package")).unwrap();
        let again = Peer::find_if_any(&given, "mbw", Version::Unsaid).unwrap();
        assert_eq!(again.as_ref(), Some(&peer));
        assert_eq!((peer.program.clone(), peer.version.clone()), (shell, None));
        let output = peer.run(&["-c", "echo 1.5"], Duration::from_secs(20)).unwrap();
        assert_eq!(output.stdout, "1.5\n");
        assert_eq!(peer.command_line(&["-c", "echo 1.5"]), "mbw -c 'echo 1.5'");
        // Not a file of the checkout: some systems mark all of these as programs.
        let directory = testkit::TempDir::new();
        let text = directory.join("text");
        std::fs::write(&text, "no program").unwrap();
        let wrong = request(&format!("memory --mbw {}", text.display()));
        let error = Peer::find(&wrong, "mbw", Version::Option("-h")).unwrap_err();
        assert_eq!(error.to_string(), format!("mbw: {} is no program", text.display()));
    }

    #[test]
    fn a_missing_peer_says_how_to_give_it() {
        let error =
            Peer::find(&request("memory"), "no-such-peer", Version::Option("-v")).unwrap_err();
        let none = Peer::find_if_any(&request("memory"), "no-such-peer", Version::Unsaid);
        assert_eq!(none.unwrap(), None);
        assert!(error.to_string().contains("--no-such-peer PROGRAM"), "{error}");
    }

    #[test]
    fn a_failing_run_is_an_error() {
        let shell = process::find("sh").unwrap();
        let peer = Peer {
            name: "sh".to_owned(),
            program: shell,
            version: None,
            environment: vec![("TERRACE_TEST", "3")],
        };
        let run = |script| peer.run(&["-c", script], Duration::from_secs(20));
        assert!(run("exit 1").is_err());
        assert_eq!(run("echo $TERRACE_TEST").unwrap().stdout, "3\n");
        assert_eq!(peer.command_line(&["-c"]), "TERRACE_TEST=3 sh -c");
    }

    #[test]
    fn a_version_is_the_first_line_wherever_it_is_printed() {
        let cargo = PathBuf::from(workspace::cargo(Path::new(".")).get_program());
        let line = version(&cargo, Version::Option("--version")).unwrap();
        assert!(line.starts_with("cargo "), "{line}");
    }
}
