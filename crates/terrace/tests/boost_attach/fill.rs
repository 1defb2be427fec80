//! `terrace boost fill` and `explain PATH`: what is brought, where it is then read from, and that
//! nothing is done for a list with a bad line.

use super::*;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Instant;
use support::command;
use sys::file::CacheAdvice;
use testkit::SlowDisk;

/// Content that does not compress.
pub(super) fn noise(seed: u64, bytes: u64) -> Vec<u8> {
    let mut content = vec![0; bytes as usize];
    testkit::Random(seed).fill(&mut content);
    content
}

fn json(ran: Ran) -> Value {
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(value["schema"], "terrace.boost_fill/1");
    let bytes = |field: &str| value[format!("{field}_bytes")].as_u64().unwrap();
    let parts = bytes("filled") + bytes("known") + bytes("failed") + bytes("left");
    assert_eq!(parts, bytes("wanted"), "{value}");
    value
}

impl Scene {
    fn fill_by(&self, list: &[u8], options: &str) -> Ran {
        let path = self.directory.join("list");
        fs::write(&path, list).unwrap();
        terrace(&format!("boost fill {} {} {options}", self.name, path.display()))
    }

    fn hits(&self) -> u64 {
        self.status()["hits"].as_u64().unwrap()
    }

    fn explain(&self, place: &Path) -> String {
        let said = terrace(&format!("boost explain {} {}", self.name, place.display())).done();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_list_is_brought_and_its_first_read_is_a_hit() {
    let Some(scene) = Scene::new("fill-list") else { return };
    scene.attach(&scene.medium()).done();
    // Out of order, twice, and not of whole frames: 8 MiB in all.
    let blocks = 2048;
    let list = "4m 4194304\n  1000 3m\n\n0 4m\n2m 100k\n";
    let first = json(scene.fill_by(list.as_bytes(), "--json"));
    assert_eq!(first["wanted_bytes"], blocks * BLOCK as u64);
    // Programs that look at each new disk may have read some of it.
    assert!(first["filled_bytes"].as_u64().unwrap() > 7 * MIB, "{first}");
    assert_eq!(scene.status()["brought_bytes"], first["filled_bytes"]);
    let before = scene.hits();
    let read = read_blocks(&scene.device(), blocks);
    let raw = fs::read(scene.directory.join("volume")).unwrap();
    assert!(read == raw[..read.len()]);
    assert!(scene.hits() - before > blocks * 9 / 10, "{} of {blocks}", scene.hits() - before);
    let again = json(scene.fill_by(list.as_bytes(), "--json"));
    assert_eq!((&again["known_bytes"], &again["end"]), (&again["wanted_bytes"], &"all".into()));
    let page = scene.fill_by(list.as_bytes(), "").done();
    let words = "0 B of 8 MiB were filled: 8 MiB were in the cache already.";
    assert!(page.trim_start().starts_with(words), "{page}");
    scene.detach().done();
}

/// How long a read of a program takes where nothing is cached, in order.
fn waits(device: &Path, is_over: impl Fn() -> bool) -> Vec<Duration> {
    let file = File::options().read(true).custom_flags(testkit::O_DIRECT).open(device).unwrap();
    let mut buffer = AlignedBuffer::new(BLOCK).unwrap();
    let (mut random, mut waits) = (testkit::Random(3), Vec::new());
    while !is_over() {
        // Between the blocks of the list.
        let place = random.below(VOLUME / SPREAD) * SPREAD + SPREAD / 2;
        let began = Instant::now();
        file.read_exact_at(&mut buffer, place).unwrap();
        waits.push(began.elapsed());
    }
    waits.sort();
    waits
}

const SPREAD: u64 = 64 << 10;

#[test]
fn a_fill_has_a_disk_with_a_head_to_itself_for_moments() {
    let Some(scene) = Scene::new("fill-moments") else { return };
    let disk = match SlowDisk::hdd(VOLUME) {
        Ok(disk) => disk,
        Err(need) => return testkit::skip(need),
    };
    assert!(
        Command::new("mkfs.ext4").args(["-q", "-F"]).arg(disk.path()).status().unwrap().success()
    );
    let line = scene.line("attach", &scene.medium());
    let volume = scene.volume.path().display().to_string();
    terrace(&line.replace(&volume, &disk.path().display().to_string())).done();
    let device = scene.device();
    let blocks = (0..VOLUME / SPREAD).map(|number| format!("{} 4096\n", number * SPREAD));
    let list = scene.directory.join("list");
    fs::write(&list, blocks.collect::<String>()).unwrap();
    let alone = {
        let began = Instant::now();
        waits(&device, || began.elapsed() > Duration::from_secs(1))
    };
    let line = format!("boost fill {} {}", scene.name, list.display());
    let fill = Mutex::new(command(&line).stdout(Stdio::null()).spawn().unwrap());
    let waits = waits(&device, || fill.lock().unwrap().try_wait().unwrap().is_some());
    let longest = waits.last().unwrap();
    println!("{} reads, {longest:?}; alone {:?}", waits.len(), alone.last());
    assert!(fill.into_inner().unwrap().wait().unwrap().success());
    // A read waits for the end of a burst, and then has its turn.
    assert!(*longest > Duration::from_millis(90), "{longest:?}");
    assert!(*longest < Duration::from_secs(5), "{longest:?}");
    assert!(waits[waits.len() / 2] < Duration::from_millis(90), "{:?}", waits[waits.len() / 2]);
    scene.detach().done();
}

#[test]
fn a_list_with_a_bad_line_brings_nothing() {
    let Some(scene) = Scene::new("fill-bad") else { return };
    let absent = format!("boost fill {} --from-page-cache", scene.name);
    terrace(&absent).refused(2, "is attached");
    scene.attach(&scene.medium()).done();
    let device = scene.device();
    let behind = format!("0 4m\n{VOLUME} 1\n");
    let foreign = format!("0 4m\n{}\n", scene.directory.join("volume").display());
    let lists = [
        (b"0 4m\n1 2 3\n".as_slice(), "the list: line 2: `1 2 3` is no OFFSET LENGTH"),
        (behind.as_bytes(), "line 2: it ends behind the volume"),
        (foreign.as_bytes(), "no file system is mounted from it"),
        (b"0 4m\n\0\n", "line 2: a path has no byte 0"),
    ];
    for (list, words) in lists {
        scene.fill_by(list, "").refused(2, words);
    }
    let mount = Mount::existing(FileSystem::Ext4, &device, scene.directory.join("point")).unwrap();
    fs::create_dir(mount.path().join("directory")).unwrap();
    let made = Command::new("mkfifo").arg(mount.path().join("pipe")).status();
    assert!(made.is_ok_and(|made| made.success()));
    let on = |name: &str| format!("0 4m\n{}\n", mount.path().join(name).display());
    for (list, words) in [
        (on("absent"), "line 2: "),
        (on("directory"), "not a regular file"),
        (on("pipe"), "not a regular file"),
        (foreign.clone(), "it is not on the file system that is mounted from"),
        (on(&"x".repeat(4096)), "line 2: it is longer than"),
    ] {
        scene.fill_by(list.as_bytes(), "").refused(2, words);
    }
    assert_eq!(scene.status()["brought_bytes"], 0);
    terrace(&format!("boost fill {}", scene.name)).refused(2, "LIST");
    let both = scene.fill_by(b"", "--from-page-cache");
    both.refused(2, "cannot be used with");
    let nothing = scene.fill_by(b"\n\n", "").done();
    assert!(nothing.contains("Nothing was filled"), "{nothing}");
    let foreign = scene.directory.join("volume");
    terrace(&format!("boost explain {} {}", scene.name, foreign.display()))
        .refused(2, "it is not on the file system");
    drop(mount);
    terrace(&format!("boost explain {} {}", scene.name, foreign.display()))
        .refused(3, "no file system is mounted from it");
    scene.detach().done();
}

/// Drops what of a file is in the page cache.
fn forget(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    sys::file::advise(&file, 0, 0, CacheAdvice::DontNeed).unwrap();
}

/// Reads a file past the page cache.
fn read_direct(path: &Path) -> Vec<u8> {
    let file = sys::file::open_read(path, true).unwrap();
    let mut buffer = AlignedBuffer::new(BLOCK).unwrap();
    let mut content = Vec::new();
    let bytes = file.metadata().unwrap().len();
    content.resize(bytes as usize, 0);
    let blocks = bytes / BLOCK as u64;
    // A prime, so that each is met once, and no two in a row.
    for block in (0..blocks).map(|number| number * 7919 % blocks) {
        file.read_exact_at(&mut buffer, block * BLOCK as u64).unwrap();
        content[block as usize * BLOCK..][..BLOCK].copy_from_slice(&buffer);
    }
    content
}

#[test]
fn the_page_cache_is_brought_and_files_say_where_they_are_read_from() {
    let Some(scene) = Scene::new("fill-pages") else { return };
    scene.attach(&scene.medium()).done();
    let device = scene.device();
    let mount = Mount::existing(FileSystem::Ext4, &device, scene.directory.join("point")).unwrap();
    let (hot, cold) = (mount.path().join("hot file"), mount.path().join("cold"));
    let content = noise(1, 3 * MIB);
    fs::write(&hot, &content).unwrap();
    fs::write(&cold, noise(2, 2 * MIB)).unwrap();
    let file = File::create(mount.path().join("holes")).unwrap();
    file.write_all_at(&[1; BLOCK], 32 * MIB).unwrap();
    fs::hard_link(&hot, mount.path().join("second name")).unwrap();
    sys::file::sync_file_system(&file).unwrap();
    forget(&cold);
    // A block that the file system has read itself may have brought a frame with a part of it.
    assert!(scene.explain(&cold).contains("on the disk only"), "{}", scene.explain(&cold));
    let brought = json(terrace(&format!("boost fill {} --from-page-cache --json", scene.name)));
    assert_eq!((&brought["end"], &brought["source"]), (&"all".into(), &"page_cache".into()));
    // Each inode counts once; of the cold one a page may have stayed.
    assert!((2..=3).contains(&brought["files"].as_u64().unwrap()), "{brought}");
    let filled = brought["filled_bytes"].as_u64().unwrap();
    assert!((3 * MIB..9 * MIB).contains(&filled), "{brought}");
    // A path with a space is one argument.
    let explain = |path: &Path| {
        let mut command = support::command(&format!("boost explain {}", scene.name));
        command.arg(path);
        let said = support::run(command).done();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = explain(&hot);
    assert!(said.contains("All 3 MiB of") && said.contains("are in the cache"), "{said}");
    assert!(said.contains("3 MiB of it are in memory now"), "{said}");
    assert!(scene.explain(&cold).contains("on the disk only"), "{}", scene.explain(&cold));
    let holes = scene.explain(&mount.path().join("holes"));
    assert!(holes.contains("32 MiB of it have no place on the volume"), "{holes}");
    let before = scene.hits();
    assert!(read_direct(&hot) == content);
    let (hits, reads) = (scene.hits() - before, content.len() as u64 / BLOCK as u64);
    assert!(hits > reads * 9 / 10, "{hits} of {reads}");
    // A path in a list; read once by that list's own reader, it is all cached now.
    let listed =
        json(scene.fill_by([cold.as_os_str().as_bytes(), b"\n"].concat().as_slice(), "--json"));
    assert!(listed["filled_bytes"].as_u64().unwrap() >= 2 * MIB - 128 * 1024, "{listed}");
    assert!(scene.explain(&cold).contains("All 2 MiB of"), "{}", scene.explain(&cold));
    drop(file);
    drop(mount);
    scene.detach().done();
}

#[test]
fn a_fill_takes_no_more_than_is_kept_and_what_was_first_stays() {
    let Some(scene) = Scene::new("fill-full") else { return };
    let image = File::options().write(true).open(scene.volume.path()).unwrap();
    image.write_all_at(&noise(3, 64 * MIB), 16 * MIB).unwrap();
    image.sync_all().unwrap();
    drop(image);
    scene.attach(&scene.medium()).done();
    let full = json(scene.fill_by(b"16m 64m\n", "--json"));
    assert_eq!(full["end"], "full", "{full}");
    let (stored, room) = (&full["stored_bytes"], full["room_bytes"].as_u64().unwrap());
    let stored = stored.as_u64().unwrap();
    // The piece that is under way when it is reached is 8 frames.
    assert!(stored >= room && stored < room + 9 * (16 << 10), "{full}");
    let filled = full["filled_bytes"].as_u64().unwrap();
    assert!(scene.status()["cached_bytes"].as_u64().unwrap() >= filled);
    // Of the last pieces, which are read at the same time, not the first ones may be the kept ones.
    for offset in [0, filled / 2, filled - 2 * MIB] {
        let said = terrace(&format!("boost explain {} {}", scene.name, 16 * MIB + offset)).done();
        assert!(said.contains("is in the cache"), "{offset} of {filled}: {said}");
    }
    // The rest of the day's budget is less than one more fill.
    let rest = json(scene.fill_by(b"40m 40m\n", "--json"));
    assert_eq!(rest["end"], "budget", "{rest}");
    let written = scene.status()["medium_bytes"].as_u64().unwrap();
    assert!(written <= 25 * MIB, "{written} in a day");
    scene.detach().done();
}

/// Begins a fill and stops the service amid it: the fill, and the process that is stopped. `None`
/// if the fill was over before.
fn fill_and_stop(scene: &Scene) -> Option<(Child, String)> {
    let list = scene.directory.join("list");
    let lines: String = (0..60).map(|part| format!("{}m 256k\n", part * 3 / 2)).collect();
    fs::write(&list, lines).unwrap();
    let process = scene.status()["process"].as_u64().unwrap().to_string();
    let mut command = with_default_signals(support::TERRACE);
    command.args(["boost", "fill", &scene.name, "--json"]).arg(&list);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_until("it has begun", || {
        let published = Path::new("/run/terrace/boost").join(&scene.name).join("counters");
        let counters = fs::read_to_string(published).unwrap_or_default();
        let of = |line: &str| line.strip_prefix("prefetched_frames ")?.parse::<u64>().ok();
        counters.lines().find_map(of).is_some_and(|frames| frames > 0)
            || child.try_wait().unwrap().is_some()
    });
    signal("-STOP", &process);
    std::thread::sleep(Duration::from_millis(100));
    if child.try_wait().unwrap().is_none() {
        return Some((child, process));
    }
    signal("-CONT", &process);
    None
}

fn signal(signal: &str, process: &str) {
    assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
}

#[test]
fn ctrl_c_ends_a_fill_and_the_next_one_brings_the_rest() {
    // One that was over before it could be stopped shows nothing.
    for _ in 0..10 {
        let Some(scene) = Scene::new("fill-cancel") else { return };
        let image = File::options().write(true).open(scene.volume.path()).unwrap();
        image.write_all_at(&noise(4, 95 * MIB), MIB).unwrap();
        image.sync_all().unwrap();
        drop(image);
        scene.attach(&scene.medium()).done();
        let Some((child, process)) = fill_and_stop(&scene) else { continue };
        signal("-INT", &child.id().to_string());
        std::thread::sleep(Duration::from_millis(500));
        signal("-CONT", &process);
        let ran = support::wait_for(child);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let ended = json(ran);
        assert_eq!(ended["end"], "cancelled", "{ended}");
        assert!(ended["left_bytes"].as_u64().unwrap() > 0, "{ended}");
        let list = fs::read(scene.directory.join("list")).unwrap();
        let rest = json(scene.fill_by(&list, "--json"));
        assert_eq!((&rest["end"], &rest["failed_bytes"]), (&"all".into(), &0.into()), "{rest}");
        let brought = |fill: &Value| fill["filled_bytes"].as_u64().unwrap();
        assert!(brought(&rest) >= ended["left_bytes"].as_u64().unwrap(), "{ended} {rest}");
        assert!(rest["known_bytes"].as_u64().unwrap() >= brought(&ended), "{ended} {rest}");
        scene.detach().done();
        return;
    }
    panic!("no fill could be stopped before its end");
}

#[test]
fn a_fill_goes_on_with_the_successor_of_a_killed_service() {
    let Some(scene) = Scene::new("fill-kill") else { return };
    scene.attach(&scene.medium()).done();
    let mut command = support::command(&format!("boost fill {} - --json", scene.name));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut list = child.stdin.take().unwrap();
    for part in 0..30 {
        writeln!(list, "{} 1m", part * 2 * MIB).unwrap();
    }
    drop(list);
    wait_until("it has begun", || {
        scene.status()["cached_bytes"].as_u64().unwrap() > 0 || child.try_wait().unwrap().is_some()
    });
    scene.kill();
    let ran = support::wait_for(child);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let filled = json(ran);
    assert_eq!((&filled["end"], &filled["failed_bytes"]), (&"all".into(), &0.into()), "{filled}");
    wait_until("it is on again", || scene.status()["off"].is_null());
    let first = read_blocks(&scene.device(), 200);
    assert!(first == fs::read(scene.directory.join("volume")).unwrap()[..first.len()]);
    scene.detach().done();
}
