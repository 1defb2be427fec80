//! `terrace copy` on real trees: what is copied is equal, content and metadata; what is not whole
//! has no name; an interrupted or killed copy goes on; bad input touches nothing.

// A helper of tests may unwrap as the tests do.
#![allow(clippy::unwrap_used)]

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};
use support::described::{assert_is, described};
use support::{Ran, as_ordinary_user, command, run, terrace};
use testkit::{Mounted, TempDir};

const ENGINES: [&str; 6] = ["uring", "uncached", "paced", "plain", "cached", "two-thread"];
const MIB: usize = 1 << 20;

/// Bytes that differ everywhere and from file to file.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut all = Vec::with_capacity(length + 8);
    while all.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.extend(state.to_le_bytes());
    }
    all.truncate(length);
    all
}

/// A tree with sizes around every border, holes, links, names of any bytes, old times and modes.
fn make_tree(top: &Path) {
    fs::create_dir_all(top.join("deep/er/est")).unwrap();
    let sizes = [0, 1, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB + 777, 5 * MIB];
    for (at, size) in sizes.into_iter().enumerate() {
        fs::write(top.join(format!("file{at}")), bytes(at as u64 + 1, size)).unwrap();
    }
    for at in 0..300 {
        let path = top.join(format!("deep/er/small{at}"));
        fs::write(path, bytes(1000 + at, 10 + at as usize * 7)).unwrap();
    }
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.write_all_at(&bytes(7, 5000), 9 * MIB as u64 + 100).unwrap();
    sparse.set_len(40 * MIB as u64 + 3).unwrap();
    fs::hard_link(top.join("file3"), top.join("deep/second")).unwrap();
    fs::hard_link(top.join("file8"), top.join("deep/second-large")).unwrap();
    symlink("../file1", top.join("deep/link")).unwrap();
    symlink("nowhere at all", top.join("dangling")).unwrap();
    let odd = OsString::from_vec(b"odd \xff\n\x1b[31m name".to_vec());
    fs::write(top.join(&odd), "odd").unwrap();
    fs::set_permissions(top.join("file1"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(top.join("deep/er"), fs::Permissions::from_mode(0o1750)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(981_173_106, 789_012_345);
    for name in ["file2", "deep/er/small7", "file8"] {
        File::options().append(true).open(top.join(name)).unwrap().set_modified(old).unwrap();
    }
    File::open(top.join("deep/er")).unwrap().set_modified(old).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(top.join("pipe")).status();
    assert!(pipe.unwrap().success());
}

/// The copy is as its source.
fn assert_equal(one: &Path, other: &Path) {
    assert_is(&described(one), other);
}

/// A page without its line ends.
fn one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn copy(words: &str) -> Ran {
    terrace(&format!("copy {words}"))
}

/// No directory of a copy that is not complete.
fn assert_nothing_hidden(directory: &Path) {
    let hidden: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.as_encoded_bytes().starts_with(b".terrace"))
        .collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[test]
fn every_engine_copies_content_and_metadata() {
    let directory = TempDir::new();
    let source = directory.join("source");
    make_tree(&source);
    let shown = directory.path().display();
    for engine in ENGINES {
        let words = format!("{shown}/source {shown}/{engine} --engine {engine} --verify --json");
        let ran = copy(&words);
        assert_eq!(ran.code, Some(0), "{engine}: {} {}", ran.out, ran.err);
        assert_equal(&source, &directory.join(engine));
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let done = &json["result"]["done"];
        // A second name of a file is none.
        assert_eq!(done["verified_files"], done["files"], "{engine}");
        assert_eq!(done["files"], 312, "{engine}: {done}");
        let used: Vec<&str> = done["engines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|used| used["engine"].as_str().unwrap())
            .collect();
        let is_refused = !done["refusals"].as_array().unwrap().is_empty();
        assert!(is_refused || used.contains(&engine), "{engine}: {done}");
        let sparse = directory.join(engine).join("sparse").metadata().unwrap();
        assert!(sparse.blocks() * 512 < 4 * MIB as u64, "{engine}: holes stay holes");
    }
    assert_nothing_hidden(directory.path());
}

/// A part of the source is in the cache: that part stays, and nothing else comes.
#[test]
fn the_cache_is_as_it_was() {
    let directory = TempDir::new();
    let path = directory.path().display();
    let file = directory.join("file");
    fs::write(&file, bytes(3, 48 * MIB)).unwrap();
    if terrace(&format!("warm evict {}", file.display())).code != Some(0) {
        return testkit::skip("a file that can be evicted");
    }
    let part = File::open(&file).unwrap();
    for at in 0..64 {
        part.read_exact_at(&mut [0; 65536], at * 65536).unwrap();
    }
    let ran = copy(&format!("{path}/file {path}/copy --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let done = &json["result"]["done"];
    let Some(before) = done["source_cached_before"].as_u64() else {
        return testkit::skip("cachestat (Linux 6.5)");
    };
    let after = done["source_cached_after"].as_u64().unwrap();
    // Read-ahead brings some MiB more than the four that were read.
    assert!((4 * MIB as u64..44 * MIB as u64).contains(&before), "{done}");
    assert!(after <= before, "{done}");
    assert!(done["target_cached"].as_u64().unwrap() < MIB as u64, "{done}");
}

#[test]
fn the_receipt_counts_the_cache_of_small_files_too() {
    let directory = TempDir::new();
    let tree = directory.join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["read", "evicted", "also"] {
        fs::write(tree.join(name), bytes(3, 40_000)).unwrap();
    }
    if terrace(&format!("warm evict {}", tree.display())).code != Some(0) {
        return testkit::skip("files that can be evicted");
    }
    assert_eq!(fs::read(tree.join("read")).unwrap().len(), 40_000);
    let ran = copy(&format!("{} {} --json", tree.display(), directory.join("copy").display()));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let done = &json["result"]["done"];
    if done["source_cached_before"].is_null() {
        return testkit::skip("cachestat (Linux 6.5)");
    }
    let cached = |when: &str| done[when].as_u64().unwrap();
    assert_eq!((cached("source_cached_before"), cached("source_cached_after")), (40_000, 40_000));
    assert_eq!(cached("target_cached"), 0, "{done}");
}

/// That the copy reads a file is no access that the copy shows.
#[test]
fn the_time_of_the_last_access_is_that_of_before() {
    let directory = TempDir::new();
    let old = SystemTime::UNIX_EPOCH + Duration::new(981_173_106, 0);
    for (name, length) in [("large", 2 * MIB), ("small", 2000)] {
        fs::write(directory.join(name), bytes(5, length)).unwrap();
        // Older than the last change: the next read would move it.
        let times =
            fs::FileTimes::new().set_accessed(old).set_modified(old + Duration::from_secs(9));
        File::options().write(true).open(directory.join(name)).unwrap().set_times(times).unwrap();
        let path = directory.path().display();
        assert_eq!(copy(&format!("{path}/{name} {path}/{name}.copy")).code, Some(0));
        let accessed = directory.join(format!("{name}.copy")).metadata().unwrap().accessed();
        assert_eq!(accessed.unwrap(), old, "{name}");
    }
}

#[test]
fn names_are_those_of_cp() {
    let directory = TempDir::new();
    let at = |name: &str| directory.join(name);
    let path = directory.path().display();
    fs::create_dir(at("tree")).unwrap();
    fs::write(at("tree/file"), "one").unwrap();
    fs::write(at("single"), "two").unwrap();
    fs::create_dir(at("into")).unwrap();
    // Into a directory that exists, several at once.
    assert_eq!(copy(&format!("{path}/tree {path}/single {path}/into")).code, Some(0));
    assert_eq!(fs::read_to_string(at("into/tree/file")).unwrap(), "one");
    assert_eq!(fs::read_to_string(at("into/single")).unwrap(), "two");
    // To a name, with a slash behind the source, and only the entries.
    assert_eq!(copy(&format!("{path}/tree/ {path}/renamed")).code, Some(0));
    assert_eq!(copy(&format!("{path}/tree/. {path}/renamed")).code, Some(0));
    assert_eq!(fs::read_to_string(at("renamed/file")).unwrap(), "one");
    assert!(!at("renamed/tree").exists());
    // A link that was named is copied as a link.
    symlink("tree", at("link")).unwrap();
    assert_eq!(copy(&format!("{path}/link {path}/into")).code, Some(0));
    assert!(at("into/link").symlink_metadata().unwrap().is_symlink());
    assert_nothing_hidden(&at("into"));
}

#[test]
fn what_exists_is_replaced_kept_or_merged_with() {
    let directory = TempDir::new();
    let at = |name: &str| directory.join(name);
    let path = directory.path().display();
    for (name, text) in [("from/d/a", "new a"), ("from/d/b", "new b"), ("to/d/a", "old")] {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), text).unwrap();
    }
    fs::write(at("to/d/theirs"), "stays").unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(at("from/d")).unwrap().set_modified(old).unwrap();
    let held = File::open(at("to/d/a")).unwrap();
    let ran = copy(&format!("{path}/from/. {path}/to --no-clobber"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(fs::read_to_string(at("to/d/a")).unwrap(), "old");
    assert_eq!(fs::read_to_string(at("to/d/b")).unwrap(), "new b");
    assert_eq!(at("to/d").metadata().unwrap().modified().unwrap(), old);
    // Newer at the target, of the same length: kept.
    fs::write(at("to/d/b"), "NEW B").unwrap();
    assert_eq!(copy(&format!("{path}/from/. {path}/to --update")).code, Some(0));
    assert_eq!(fs::read_to_string(at("to/d/b")).unwrap(), "NEW B");
    assert_eq!(copy(&format!("{path}/from/. {path}/to")).code, Some(0));
    assert_eq!(fs::read_to_string(at("to/d/a")).unwrap(), "new a");
    assert_eq!(fs::read_to_string(at("to/d/b")).unwrap(), "new b");
    assert_eq!(fs::read_to_string(at("to/d/theirs")).unwrap(), "stays");
    // Replaced by a rename: who has the old one open keeps it whole.
    let mut old = [0; 3];
    held.read_exact_at(&mut old, 0).unwrap();
    assert_eq!(&old, b"old");
    // A file where a directory is: named, and nothing of it is lost.
    fs::remove_dir_all(at("from/d")).unwrap();
    fs::write(at("from/d"), "a file").unwrap();
    let ran = copy(&format!("{path}/from/. {path}/to"));
    assert_eq!(ran.code, Some(1));
    assert!(one_line(&ran.out).contains("it is a directory, and the source is not"), "{}", ran.out);
    assert_eq!(fs::read_to_string(at("to/d/theirs")).unwrap(), "stays");
}

#[test]
fn what_makes_no_sense_is_refused_and_touches_nothing() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::create_dir_all(directory.join("tree/below")).unwrap();
    fs::create_dir_all(directory.join("other/below")).unwrap();
    fs::write(directory.join("file"), "x").unwrap();
    symlink("tree/below", directory.join("way")).unwrap();
    let before = described(directory.path());
    for (words, why) in [
        (format!("{path}/tree {path}/tree/below"), "is inside of it"),
        (format!("{path}/tree {path}/tree/new"), "is inside of it"),
        (format!("{path}/tree {path}/way"), "is inside of it"),
        (format!("{path}/file {path}/file"), "the same file"),
        (format!("{path}/file {path}"), "the same file"),
        (format!("{path}/tree/below {path}/other/below {path}/tree"), "the same"),
        (format!("{path}/absent {path}/new"), "no such file"),
        (format!("{path}/file {path}/absent/new"), "no such file"),
        (format!("{path}/file {path}/tree {path}/new"), "there are several sources"),
        (format!("{path}/tree {path}/file"), "it is not a directory"),
    ] {
        let ran = copy(&words);
        assert_eq!(ran.code, Some(2), "{words}: {} {}", ran.out, ran.err);
        assert!(ran.err.contains(why), "{words}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    assert_is(&before, directory.path());
}

/// As an ordinary user: what is closed is named, owners are counted once for each entry.
#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_copied() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::create_dir_all(directory.join("tree/closed")).unwrap();
    fs::write(directory.join("tree/file"), "x").unwrap();
    fs::write(directory.join("tree/secret"), "x").unwrap();
    // A name that is no text is a list of bytes in JSON.
    let odd = directory.join("tree").join(OsString::from_vec(b"odd\xff".to_vec()));
    fs::write(&odd, "x").unwrap();
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o600)).unwrap();
    for (name, mode) in [("tree/closed", 0o700), ("tree/secret", 0o600)] {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(command) = as_ordinary_user(&format!("copy {path}/tree {path}/copy --json")) else {
        return;
    };
    let ran = run(command);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert_eq!(fs::read_to_string(directory.join("copy/file")).unwrap(), "x");
    assert!(!directory.join("copy/secret").exists());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let done = &json["result"]["done"];
    let named: Vec<&str> = done["failures"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|failure| failure["path"].as_str())
        .collect();
    assert_eq!(done["failure_count"], named.len() + 1, "{done}");
    assert!(named.iter().any(|path| path.ends_with("tree/secret")), "{named:?}");
    assert!(named.iter().any(|path| path.ends_with("tree/closed")), "{named:?}");
    // The file and the directories that the copy has.
    let owners = done["losses"].as_array().unwrap().iter().find(|loss| loss["what"] == "owner");
    let entries = owners.unwrap()["entries"].as_u64().unwrap();
    assert!((2..=3).contains(&entries), "{done}");
}

fn started(words: &str) -> Child {
    let mut command = command(&format!("copy {words}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Whatever the moment, a file under a final name is whole, and the same command ends equal. 40
/// moments, or as many as TERRACE_COPY_KILLS says.
#[test]
fn after_a_kill_nothing_is_half_under_its_name_and_the_same_command_goes_on() {
    let mount = match Mounted::ext4(400 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let at = |name: &str| mount.path().join(name);
    let source = at("source");
    make_tree(&source);
    fs::write(source.join("large"), bytes(99, 60 * MIB)).unwrap();
    let expected = described(&source);
    let words = format!("{} {}", source.display(), at("copy").display());
    let start = Instant::now();
    assert_eq!(copy(&words).code, Some(0));
    let whole = start.elapsed();
    fs::remove_dir_all(at("copy")).unwrap();
    let asked = std::env::var("TERRACE_COPY_KILLS").map(|asked| asked.parse().unwrap());
    let kills = asked.unwrap_or(40_u32);
    let mut resumed = 0;
    for round in 0..kills {
        let mut child = started(&words);
        std::thread::sleep(whole.mul_f64((f64::from(round) * 0.618_034).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
        if at("copy").exists() {
            // The tree appears at once, so it is whole.
            assert_is(&expected, &at("copy"));
            fs::remove_dir_all(at("copy")).unwrap();
        }
        if round % 4 == 3 {
            let ran = copy(&format!("{words} --json"));
            assert_eq!(ran.code, Some(0), "round {round}: {}", ran.err);
            assert_is(&expected, &at("copy"));
            assert_nothing_hidden(mount.path());
            let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            resumed += json["result"]["done"]["resumed_files"].as_u64().unwrap();
            fs::remove_dir_all(at("copy")).unwrap();
        }
    }
    assert!(resumed > 0, "no run went on with what another had completed");
}

#[test]
fn ctrl_c_ends_soon_says_so_and_the_same_command_goes_on() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::create_dir(directory.join("tree")).unwrap();
    for at in 0..8 {
        fs::write(directory.join(format!("tree/file{at}")), bytes(at, 4 * MIB)).unwrap();
    }
    let words = format!("{path}/tree {path}/copy --limit-rate 8m");
    let mut line = command(&format!("copy {words}"));
    let child = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(!directory.join("copy").exists());
    // As after a reboot or of a disk that was plugged in again: other inodes under the same path.
    let (tree, former) = (directory.join("tree"), directory.join("former"));
    fs::rename(&tree, &former).unwrap();
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-a").args([&former, &tree]).status().unwrap().success());
    fs::remove_dir_all(&former).unwrap();
    let ran = copy(&format!("{path}/tree {path}/copy --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(json["result"]["done"]["resumed_files"].as_u64() > Some(0), "{json}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    assert_equal(&directory.join("tree"), &directory.join("copy"));
    assert_nothing_hidden(directory.path());
}

/// An earlier run left no checksums, so what it copied is copied again and verified too.
#[test]
fn a_verified_copy_is_verified_whole_after_an_interruption() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::create_dir(directory.join("tree")).unwrap();
    for at in 0..8 {
        fs::write(directory.join(format!("tree/file{at}")), bytes(at, 2 * MIB)).unwrap();
    }
    let mut child = started(&format!("{path}/tree {path}/copy --verify --limit-rate 8m"));
    std::thread::sleep(Duration::from_millis(1200));
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = copy(&format!("{path}/tree {path}/copy --verify --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["result"]["done"]["verified_files"], 8, "{json}");
}

#[test]
fn a_limited_rate_is_kept() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::write(directory.join("file"), bytes(5, 12 * MIB)).unwrap();
    let start = Instant::now();
    let ran = copy(&format!("{path}/file {path}/copy --limit-rate 8m"));
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // 12 MiB at 8 MiB/s, of which a tenth of a second may start at once.
    assert!(seconds > 1.3, "{seconds}");
    // The same in small files.
    fs::create_dir(directory.join("many")).unwrap();
    for at in 0..48 {
        fs::write(directory.join(format!("many/{at}")), bytes(at, MIB / 4)).unwrap();
    }
    let start = Instant::now();
    assert_eq!(copy(&format!("{path}/many {path}/copies --limit-rate 8m")).code, Some(0));
    assert!(start.elapsed().as_secs_f64() > 1.3, "{:?}", start.elapsed());
}

#[test]
fn few_descriptors_and_no_locked_memory_are_enough() {
    let directory = TempDir::new();
    make_tree(&directory.join("source"));
    let mut deep = directory.join("source/deep");
    for _ in 0..100 {
        deep.push("below");
        fs::create_dir(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
    }
    let path = directory.path().display();
    let line = format!(
        "ulimit -n 64; ulimit -l 0; exec {} copy {path}/source {path}/copy",
        support::TERRACE
    );
    let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_equal(&directory.join("source"), &directory.join("copy"));
}

/// What another user changes while root copies leads nowhere else.
#[test]
fn a_directory_that_becomes_a_link_leads_nowhere_else() {
    let directory = TempDir::new();
    let path = directory.path().to_owned();
    fs::create_dir(path.join("outside")).unwrap();
    fs::write(path.join("outside/secret"), "secret").unwrap();
    fs::create_dir_all(path.join("tree/real")).unwrap();
    for at in 0..200 {
        fs::create_dir(path.join(format!("tree/d{at}"))).unwrap();
        fs::write(path.join(format!("tree/d{at}/f")), "x").unwrap();
    }
    let (done, over) = std::sync::mpsc::channel::<()>();
    let racing = path.clone();
    let thread = std::thread::spawn(move || {
        while over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            for at in 0..200 {
                let (place, aside) =
                    (racing.join(format!("tree/d{at}")), racing.join(format!("aside{at}")));
                fs::rename(&place, &aside).unwrap();
                symlink(racing.join("outside"), &place).unwrap();
                fs::remove_file(&place).unwrap();
                fs::rename(&aside, &place).unwrap();
            }
        }
    });
    for round in 0..5 {
        let words = format!("{0}/tree {0}/copy{round}", path.display());
        let ran = copy(&words);
        assert!([Some(0), Some(1)].contains(&ran.code), "{}", ran.err);
        let below = described(&path.join(format!("copy{round}")));
        assert!(!below.keys().any(|name| name.contains("secret")), "{below:?}");
    }
    done.send(()).unwrap();
    thread.join().unwrap();
    assert_eq!(fs::read_to_string(path.join("outside/secret")).unwrap(), "secret");
}

#[test]
fn a_dry_run_says_what_and_touches_nothing() {
    let directory = TempDir::new();
    make_tree(&directory.join("source"));
    let before = described(directory.path());
    let path = directory.path().display();
    let ran = copy(&format!("{path}/source {path}/copy --dry-run"));
    assert_eq!(ran.code, Some(0));
    // 312 files, two of them under two names.
    assert!(one_line(&ran.out).starts_with("would copy 314 files"), "{}", ran.out);
    assert_is(&before, directory.path());
}

#[test]
fn a_log_has_what_the_copy_counted() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::write(directory.join("file"), bytes(5, 8 * MIB)).unwrap();
    let words = format!("{path}/file {path}/copy --limit-rate 8m --log {path}/log.trec");
    assert_eq!(copy(&words).code, Some(0));
    let ran = terrace(&format!("export {path}/log.trec --to csv"));
    assert!(ran.out.lines().next().unwrap().contains("copy.durable_bytes"), "{}", ran.err);
}

/// What it has of data.
const LARGE_DATA: usize = 228 * MIB;

/// 268 MiB under two names, with a hole of 40 MiB in it.
fn make_large_file(directory: &Path) {
    fs::create_dir(directory).unwrap();
    let file = File::create(directory.join("large")).unwrap();
    let mut piece = bytes(11, 4 * MIB);
    for at in (0..20).chain(30..67) {
        // Each block differs from all others.
        for (block, place) in piece.chunks_exact_mut(4096).zip(0u64..) {
            block[..8].copy_from_slice(&(at * 1024 + place).to_le_bytes());
        }
        file.write_all_at(&piece, at * 4 * MIB as u64).unwrap();
    }
    fs::hard_link(directory.join("large"), directory.join("name")).unwrap();
}

fn is_same_content(one: &Path, other: &Path) -> bool {
    std::process::Command::new("cmp").args(["-s".as_ref(), one, other]).status().unwrap().success()
}

/// Whether an interrupted copy has recorded how far it is.
fn has_offset(directory: &Path) -> bool {
    let below = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let staging = below(directory).map(|entry| entry.path().join("offsets"));
    staging.flat_map(|offsets| below(&offsets).collect::<Vec<_>>()).count() > 0
}

/// What a run did, as its receipt says.
fn done(ran: &Ran) -> serde_json::Value {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    json["result"]["done"].clone()
}

/// Ended midway by a kill or Ctrl-C, by each engine that records how far it is.
#[test]
fn an_interrupted_large_file_goes_on_at_its_last_durable_offset() {
    let mount = match Mounted::ext4(1000 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let at = |name: &str| mount.path().join(name);
    make_large_file(&at("source"));
    let data = LARGE_DATA as u64;
    for (engine, signal, after_ms, least) in [
        ("uring", "KILL", 150, 60),
        ("paced", "KILL", 400, 60),
        ("two-thread", "KILL", 0, 60),
        ("uring", "INT", 1_300, 4),
        ("paced", "INT", 1_600, 4),
    ] {
        let least = least * MIB as u64;
        let words =
            format!("{} {} --engine {engine}", at("source").display(), at("copy").display());
        let mut child = started(&format!("{words} --limit-rate 60m"));
        let start = Instant::now();
        while signal == "KILL" && !has_offset(mount.path()) {
            assert!(start.elapsed() < Duration::from_secs(40), "{engine}: no offset was recorded");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(after_ms));
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.unwrap().success());
        child.wait().unwrap();
        assert!(!at("copy").exists());
        let done = done(&copy(&format!("{words} --json")));
        let of = |field: &str| done[field].as_u64().unwrap();
        // The hole may be part of what is done already.
        assert!(of("resumed_bytes") >= least, "{engine} {signal}: {done}");
        assert!(of("written_bytes") <= data - least, "{engine} {signal}: {done}");
        assert!(of("resumed_bytes") + of("written_bytes") >= data, "{engine} {signal}: {done}");
        for name in ["large", "name"] {
            assert!(is_same_content(&at("source/large"), &at("copy").join(name)), "{engine}");
        }
        let copied = at("copy/large").metadata().unwrap();
        assert_eq!(copied.nlink(), 2);
        assert!(copied.blocks() * 512 < data + MIB as u64, "a hole stays a hole");
        assert_nothing_hidden(mount.path());
        fs::remove_dir_all(at("copy")).unwrap();
    }
}

/// What an interrupted run left of a large file does not count for another content, nor where it
/// is to be verified.
#[test]
fn a_large_file_begins_anew_where_its_source_changed_or_is_verified() {
    let mount = match Mounted::ext4(1000 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let at = |name: &str| mount.path().join(name);
    make_large_file(&at("source"));
    let words = format!("{} {} --json", at("source").display(), at("copy").display());
    for more in ["--verify", "", "--restart"] {
        let mut child = started(&format!("{words} --limit-rate 60m"));
        std::thread::sleep(Duration::from_millis(1_300));
        let pid = child.id().to_string();
        std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
        child.wait().unwrap();
        if more.is_empty() {
            let time = at("source/large").metadata().unwrap().modified().unwrap();
            let file = File::options().write(true).open(at("source/large")).unwrap();
            file.write_all_at(b"changed", 17).unwrap();
            // The time of its content says nothing; that of its inode does.
            file.set_modified(time).unwrap();
        }
        let done = done(&copy(&format!("{words} {more}")));
        assert_eq!(done["resumed_bytes"], 0, "{more}: {done}");
        assert_eq!(done["written_bytes"], LARGE_DATA, "{more}: {done}");
        assert!(is_same_content(&at("source/large"), &at("copy/name")), "{more}");
        fs::remove_dir_all(at("copy")).unwrap();
    }
}

#[test]
fn a_hole_of_five_tebibytes_is_copied_as_a_hole() {
    let mount = match Mounted::made("ext4", &["-q", "-F", "-b", "4096"], 200 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let path = mount.path().display();
    let file = File::create(mount.path().join("hole")).unwrap();
    let end = (5 << 40) - 12345;
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"end", end - 3).unwrap();
    for engine in ENGINES {
        let ran = copy(&format!("{path}/hole {path}/{engine} --engine {engine}"));
        assert_eq!(ran.code, Some(0), "{engine}: {} {}", ran.out, ran.err);
        let found = File::open(mount.path().join(engine)).unwrap();
        let about = found.metadata().unwrap();
        assert_eq!(about.len(), end, "{engine}");
        assert!(about.blocks() * 512 < MIB as u64, "{engine}: {} blocks", about.blocks());
        let (mut begin, mut last) = ([0; 5], [0; 3]);
        found.read_exact_at(&mut begin, 0).unwrap();
        found.read_exact_at(&mut last, end - 3).unwrap();
        assert_eq!((&begin, &last), (b"begin", b"end"), "{engine}");
    }
}

#[test]
fn too_few_inodes_are_said_before_the_first_byte() {
    let directory = TempDir::new();
    fs::create_dir(directory.join("tree")).unwrap();
    for at in 0..200 {
        fs::write(directory.join(format!("tree/{at}")), "").unwrap();
    }
    let mount = match Mounted::made("ext4", &["-q", "-F", "-N", "64"], 32 << 20) {
        Ok(mount) => mount,
        Err(need) => return testkit::skip(need),
    };
    let before = described(mount.path());
    let words = format!("{}/tree {}", directory.path().display(), mount.path().display());
    copy(&words).refused(3, "inodes are needed");
    assert_is(&before, mount.path());
}

#[test]
fn what_another_copy_left_is_named_and_left_and_one_that_runs_is_not_named() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::write(directory.join("large"), bytes(1, 24 * MIB)).unwrap();
    fs::write(directory.join("small"), "x").unwrap();
    let mut other = started(&format!("{path}/large {path}/first --limit-rate 8m --now"));
    std::thread::sleep(Duration::from_millis(700));
    let ran = copy(&format!("{path}/small {path}/second --json"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let left = |ran: &Ran| {
        let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        json["result"]["done"]["leftovers"].as_array().unwrap().len()
    };
    assert_eq!(left(&ran), 0, "it is running");
    other.kill().unwrap();
    other.wait().unwrap();
    let ran = copy(&format!("{path}/small {path}/third --json"));
    assert_eq!((ran.code, left(&ran)), (Some(0), 1), "{}", ran.out);
    let ran = copy(&format!("{path}/small {path}/fourth"));
    assert!(one_line(&ran.out).contains("another copy left"), "{}", ran.out);
    assert_eq!(copy(&format!("{path}/large {path}/first")).code, Some(0));
    assert_nothing_hidden(directory.path());
}

/// What its owner may not write to is moved to its place, and merged from, all the same.
#[test]
fn directories_without_the_right_to_write_are_placed_and_merged() {
    let directory = TempDir::new();
    let path = directory.path().display();
    fs::create_dir_all(directory.join("tree/closed/below")).unwrap();
    fs::write(directory.join("tree/closed/below/file"), "x").unwrap();
    for name in ["tree/closed/below", "tree/closed", "tree"] {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o555)).unwrap();
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let modes = |top: &str| {
        ["", "/closed", "/closed/below"].map(|below| {
            let about = directory.join(format!("{top}{below}")).metadata().unwrap();
            (about.mode() & 0o7777, about.mtime(), about.mtime_nsec())
        })
    };
    let Some(command) = as_ordinary_user(&format!("copy {path}/tree {path}/copy")) else {
        return;
    };
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!(modes("copy"), modes("tree"));
    // Into a directory that exists and may be written to, from one that may not.
    fs::create_dir_all(directory.join("into/closed")).unwrap();
    for name in ["into/closed", "into"] {
        fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let Some(command) = as_ordinary_user(&format!("copy {path}/tree/. {path}/into")) else {
        return;
    };
    let ran = run(command);
    assert!([Some(0), Some(1)].contains(&ran.code), "{}{}", ran.out, ran.err);
    assert_eq!(fs::read_to_string(directory.join("into/closed/below/file")).unwrap(), "x");
    assert_nothing_hidden(directory.path());
    assert_nothing_hidden(&directory.join("into"));
}
