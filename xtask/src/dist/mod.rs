//! `cargo xtask dist`: what a user installs, built from one commit and the same on every machine.
//!
//! One file for each kind of artefact: `build` the binary and its debug file, `crates` what is
//! linked into it, `licences` its texts, `sbom` its list, `tree` the files of an
//! installation, `archive` the tarball, `packages` `.deb` and `.rpm`. `check` looks at the
//! result as a new user would, and builds it once more.
//!
//! Nothing here installs a tool: what is missing is named with the line that installs it.

pub mod archive;
mod build;
mod check;
mod crates;
pub mod elf;
mod licences;
mod packages;
mod sbom;
mod source;
mod tools;
mod tree;
pub mod units;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::workspace;
use source::Source;

/// The targets that are built where nothing else is asked for.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Below the target directory: what is packed, and what is given away.
const WORK: &str = "target/dist";
const SUMS: &str = "SHA256SUMS";

/// The options of `cargo xtask dist`.
#[derive(clap::Args, Debug)]
pub(crate) struct DistOptions {
    /// Build for this target; may be given several times (default: x86_64 and aarch64, as far as
    /// their standard libraries are installed)
    #[arg(long, value_name = "T")]
    target: Vec<String>,

    /// Where the packages are put (default: target/dist/out)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Look at the packages that are there as a new user would, and build them once more
    #[arg(long)]
    check: bool,
}

/// What is built, from what, and where it goes.
#[derive(Debug)]
struct Release {
    /// The workspace.
    root: PathBuf,
    source: Source,
    version: String,
    target: String,
    /// Where the files of an installation are put together.
    work: PathBuf,
}

impl Release {
    fn of(root: &Path, source: &Source, target: &str) -> Result<Self, Error> {
        Ok(Self {
            root: root.to_owned(),
            source: source.clone(),
            version: version(root)?,
            target: target.to_owned(),
            work: root.join(WORK),
        })
    }

    /// `terrace-0.1.0-x86_64-unknown-linux-gnu`.
    fn name(&self) -> String {
        format!("terrace-{}-{}", self.version, self.target)
    }
}

/// Builds, or checks what was built.
///
/// # Errors
/// What is missing, does not build, or was found by the check.
pub(crate) fn run(options: &DistOptions) -> Result<(), Error> {
    let root = workspace::current_root()?;
    let out = options.out.clone().unwrap_or_else(|| root.join(WORK).join("out"));
    let source = Source::of(&root)?;
    let targets = targets(&root, &options.target)?;
    if options.check {
        return check::run(&root, &source, &targets, &out);
    }
    tools::all_for_packages()?;
    let again = |error| Error::io("replace", &out)(error);
    if out.exists() {
        fs::remove_dir_all(&out).map_err(again)?;
    }
    fs::create_dir_all(&out).map_err(again)?;
    for target in &targets {
        let release = Release::of(&root, &source, target)?;
        make(&release, &root.join(WORK).join("build"), &out)?;
    }
    put(&out, "install.sh", &read(&root.join("packaging/install.sh"))?)?;
    put(&out, SUMS, sums(&out)?.as_bytes())?;
    println!("dist: {}", out.display());
    print!("{}", sums(&out)?);
    Ok(())
}

/// Makes everything of one target; `target_directory` is cargo's.
fn make(release: &Release, target_directory: &Path, out: &Path) -> Result<(), Error> {
    println!("dist: {} of commit {}", release.name(), release.source.commit);
    let built = build::build(release, target_directory)?;
    let linked = crates::linked(&release.root, &release.target)?;
    let texts = licences::texts(&release.root, &linked)?;
    let sbom = sbom::cyclonedx(release, &linked)?;
    let tree = tree::files(release, &built, &texts, &sbom)?;
    let name = release.name();
    let tar = archive::tar(&name, &tree, release.source.epoch_s)?;
    put(out, &format!("{name}.tar.gz"), &archive::gzip(&tar)?)?;
    put(out, &format!("{name}.debug.gz"), &archive::gzip(&read(&built.debug)?)?)?;
    put(out, &format!("{name}.cdx.json"), sbom.as_bytes())?;
    packages::both(release, &tree, out)
}

/// The targets that can be built here.
///
/// # Errors
/// If one that was asked for cannot, or none can.
fn targets(root: &Path, asked: &[String]) -> Result<Vec<String>, Error> {
    let mut targets = Vec::new();
    let wanted: Vec<&str> = if asked.is_empty() {
        TARGETS.to_vec()
    } else {
        asked.iter().map(String::as_str).collect()
    };
    for target in wanted {
        match build::missing(root, target)? {
            None => targets.push(target.to_owned()),
            Some(why) if asked.is_empty() => println!("dist: {target} is left out: {why}"),
            Some(why) => return Err(Error::Usage(format!("{target}: {why}"))),
        }
    }
    if targets.is_empty() {
        return Err(Error::Failed("no target can be built here".to_owned()));
    }
    Ok(targets)
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String, Error> {
    let metadata = workspace::metadata(root)?;
    let packages = metadata["packages"].as_array();
    let own = packages.and_then(|all| all.iter().find(|package| package["name"] == "terrace"));
    let version = own.and_then(|package| package["version"].as_str()).map(str::to_owned);
    version.ok_or_else(|| Error::Malformed {
        what: "cargo metadata",
        why: "no version of terrace".to_owned(),
    })
}

/// The sums of all files there but that of the sums, as sha256sum writes them.
fn sums(out: &Path) -> Result<String, Error> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(out).map_err(Error::io("list", out))? {
        let entry = entry.map_err(Error::io("list", out))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != SUMS {
            lines.push((name, sha256(&read(&entry.path())?)));
        }
    }
    lines.sort();
    Ok(lines.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}

fn put(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = directory.join(name);
    fs::write(&path, bytes).map_err(Error::io("write", &path))
}
