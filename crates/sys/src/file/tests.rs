//! The file calls against this machine's real file systems.
//!
//! What a file system or kernel lacks is said and skipped; everything made here is owned
//! by a guard of `testkit`.

use super::*;
use crate::memory::AlignedBuffer;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use testkit::{TempDir, Tmpfs};

/// Incompressible bytes.
fn noise(bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    testkit::Random(42).fill(&mut buffer);
    buffer
}

#[test]
fn a_scratch_file_has_no_name() {
    let directory = TempDir::new();
    let held = crate::directory::Directory::open(directory.path()).unwrap();
    for create in [Scratch::create, Scratch::unlinked] {
        let scratch = create(&held).unwrap();
        assert!(directory.names().is_empty());
        assert_eq!(scratch.file().metadata().unwrap().nlink(), 0);
        assert_eq!(scratch.file().metadata().unwrap().mode() & 0o777, 0o600);
        write_at(scratch.file(), b"data", 5).unwrap();
        let mut buffer = [9; 10];
        assert_eq!(read_at(scratch.file(), &mut buffer, 4).unwrap(), 5);
        assert_eq!(&buffer[..5], b"\0data");
        assert!(directory.names().is_empty());
    }
}

#[test]
fn a_scratch_file_can_be_opened_again() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let data = noise(8192);
    write_at(scratch.file(), &data, 0).unwrap();
    let mut other = scratch.reopen().unwrap();
    let mut text = Vec::new();
    other.read_to_end(&mut text).unwrap();
    assert!(text == data);
    match scratch.reopen_direct() {
        Ok(direct) => {
            let mut buffer = AlignedBuffer::new(8192).unwrap();
            assert_eq!(read_at(&direct, &mut buffer, 0).unwrap(), 8192);
            assert!(buffer[..] == data[..]);
            // Its own open file description: the first one stays buffered.
            assert_eq!(read_at(scratch.file(), &mut buffer[1..10], 1).unwrap(), 9);
        }
        Err(error) => assert_eq!(error.kind, ErrorKind::Unsupported, "{error}"),
    }
}

#[test]
fn places_without_room_or_right_are_named() {
    let error = Scratch::create_in(Path::new("/absent-from-here")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        "cannot create a scratch file in /absent-from-here: no such file or directory"
    );
    let error = Scratch::create_in(Path::new("/proc")).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::NotFound | ErrorKind::Denied), "{error}");
    let file = std::env::current_exe().unwrap();
    assert_eq!(Scratch::create_in(&file).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_full_disk_is_no_space() {
    let tmpfs = match Tmpfs::mount(1 << 20) {
        Ok(tmpfs) => tmpfs,
        Err(need) => return testkit::skip(need),
    };
    let scratch = Scratch::create_in(tmpfs.path()).unwrap();
    let system = file_system(scratch.file()).unwrap();
    assert!(system.in_ram && !system.network);
    assert_eq!((system.name, system.free_bytes), (Some("tmpfs"), 1 << 20));
    assert_eq!(allocate(scratch.file(), 2 << 20).unwrap_err().kind, ErrorKind::NoSpace);
    assert_eq!(write_at(scratch.file(), &noise(2 << 20), 0).unwrap(), 1 << 20);
    assert_eq!(write_at(scratch.file(), b"x", 1 << 20).unwrap_err().kind, ErrorKind::NoSpace);
    drop(scratch);
    // A program that another test starts at this moment holds a copy until it runs.
    let started = std::time::Instant::now();
    while file_system_of(tmpfs.path()).unwrap().free_bytes != 1 << 20 {
        assert!(started.elapsed().as_secs() < 10, "the space is not given back");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn special_files_are_refused_and_never_waited_for() {
    let directory = TempDir::new();
    let fifo = directory.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for path in [fifo.as_path(), Path::new("/dev/null"), Path::new("/dev/tty")] {
        if path.exists() {
            assert_eq!(open_read(path, false).unwrap_err().kind, ErrorKind::Invalid, "{path:?}");
        }
    }
    assert_eq!(open_read(Path::new("/absent"), false).unwrap_err().kind, ErrorKind::NotFound);
    // A direct opening may be refused by the file system, never with another word.
    if let Err(error) = open_read(&std::env::current_exe().unwrap(), true) {
        assert_eq!(error.kind, ErrorKind::Unsupported);
    }
}

#[test]
fn opened_files_wait_as_usual() {
    let file = open_read(&std::env::current_exe().unwrap(), false).unwrap();
    // SAFETY: takes a descriptor; touches no memory of ours.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    assert_eq!(flags & libc::O_NONBLOCK, 0, "io_uring would answer EAGAIN");
}

#[test]
fn direct_io_obeys_the_reported_alignment() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    allocate(scratch.file(), 1 << 20).unwrap();
    let Some(alignment) = direct_alignment(scratch.file()).unwrap() else {
        return testkit::skip("Linux 6.1 and a file system that reports its alignment");
    };
    if alignment.write == 0 {
        return testkit::skip("a file system with direct I/O");
    }
    assert!(alignment.memory.is_power_of_two() && alignment.write.is_power_of_two());
    let direct = scratch.reopen_direct().unwrap();
    let mut buffer = AlignedBuffer::new(4096).unwrap();
    let unit = alignment.read as usize;
    assert_eq!(read_at(&direct, &mut buffer[..unit], unit as u64).unwrap(), unit);
    // Misaligned: some file systems refuse, ext4 takes the way through the cache instead.
    match read_at(&direct, &mut buffer[..unit], 1) {
        Ok(bytes) => assert_eq!(bytes, unit),
        Err(error) => assert_eq!(error.kind, ErrorKind::Invalid),
    }
    set_direct(&direct, false).unwrap();
    assert_eq!(read_at(&direct, &mut buffer[..7], 1).unwrap(), 7);
    set_direct(&direct, true).unwrap();
}

#[test]
fn cache_state_follows_writes_and_eviction() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let file = scratch.file();
    let (pages, page) = (64, crate::process::page_bytes());
    write_at(file, &noise(pages * page), 0).unwrap();
    let state = || crate::cachestat::of(file, 0, 0);
    let full = match state() {
        Ok(full) => full,
        Err(error) => return testkit::skip(format!("Linux 6.5 ({error})")),
    };
    assert_eq!(full.cached, pages as u64);
    let half = crate::cachestat::of(file, 0, (pages / 2 * page) as u64).unwrap();
    assert_eq!(half.cached, pages as u64 / 2);
    sync_range_start(file, 0, 0).unwrap();
    sync_range_wait(file, 0, 0).unwrap();
    sync_data(file).unwrap();
    assert_eq!(state().unwrap().dirty, 0);
    advise(file, 0, 0, CacheAdvice::DontNeed).unwrap();
    if file_system(file).unwrap().in_ram {
        return testkit::skip("a temporary directory on a disk");
    }
    assert_eq!(state().unwrap().cached, 0);
    let mut buffer = vec![0; pages * page];
    read_at(file, &mut buffer, 0).unwrap();
    assert!(buffer == noise(pages * page));
    assert_eq!(state().unwrap().cached, pages as u64);
}

#[test]
fn uncached_io_moves_the_same_bytes_and_leaves_no_pages() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let data = noise(256 << 10);
    match write_at_uncached(scratch.file(), &data, 0) {
        Ok(bytes) => assert_eq!(bytes, data.len()),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
            return testkit::skip("Linux 6.14 and a file system with uncached I/O");
        }
    }
    sync_data(scratch.file()).unwrap();
    advise(scratch.file(), 0, 0, CacheAdvice::DontNeed).unwrap();
    let mut buffer = vec![0; data.len()];
    let mut done = 0;
    while done < buffer.len() {
        done += read_at_uncached(scratch.file(), &mut buffer[done..], done as u64).unwrap();
    }
    assert!(buffer == data);
    let state = crate::cachestat::of(scratch.file(), 0, 0).unwrap();
    // A page that was locked at the time may stay; the bulk may not.
    assert!(state.cached < 16, "{state:?}");
}

#[test]
fn impossible_ranges_are_errors() {
    let directory = TempDir::new();
    let scratch = Scratch::create_in(directory.path()).unwrap();
    let file = scratch.file();
    assert_eq!(read_at(file, &mut [0; 4], u64::MAX).unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(
        advise(file, u64::MAX, 0, CacheAdvice::Normal).unwrap_err().kind,
        ErrorKind::Invalid
    );
    assert_eq!(allocate(file, 0).unwrap_err().kind, ErrorKind::Invalid);
    let (mut reader, mut writer) = crate::pipe::pair(4096).unwrap();
    writer.write_all(b"x").unwrap();
    assert!(advise(&reader, 0, 0, CacheAdvice::Random).is_err());
    assert_eq!(reader.read(&mut [0; 4]).unwrap(), 1);
}

#[test]
fn a_directory_tells_its_file_system() {
    let system = file_system_of(Path::new("/proc")).unwrap();
    assert_eq!((system.name, system.in_ram, system.network), (Some("proc"), false, false));
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        assert!(file_system_of(shared).unwrap().in_ram);
    }
    assert_eq!(file_system_of(Path::new("/absent")).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_block_device_tells_its_size() {
    let directory = TempDir::new();
    let image = directory.join("image");
    std::fs::write(&image, noise(1 << 20)).unwrap();
    let device = match testkit::LoopDevice::over(&image) {
        Ok(device) => device,
        Err(need) => return testkit::skip(need),
    };
    let file = open_read(device.path(), false).unwrap();
    assert_eq!(crate::block::size_bytes(&file).unwrap(), 1 << 20);
    assert_eq!(crate::block::logical_block_bytes(&file).unwrap(), 512);
    let mut buffer = vec![0; 1 << 20];
    assert_eq!(read_at(&file, &mut buffer, 0).unwrap(), 1 << 20);
    assert!(buffer == noise(1 << 20));
}

#[test]
fn an_unnoticed_reading_leaves_the_access_time() {
    use std::os::unix::fs::MetadataExt;
    let directory = testkit::TempDir::new();
    let path = directory.join("file");
    std::fs::write(&path, [1; 4096]).unwrap();
    let file = File::open(&path).unwrap();
    // Older than the last change, so that the next ordinary reading would move it.
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    let times = std::fs::FileTimes::new().set_accessed(long_ago);
    file.set_times(times).unwrap();
    let accessed = || std::fs::metadata(&path).unwrap().atime();
    read_at(&open_unnoticed(&path).unwrap(), &mut [0; 8], 0).unwrap();
    assert_eq!(accessed(), 1000);
    assert_eq!(open_unnoticed(Path::new("/dev/null")).unwrap_err().kind, ErrorKind::Invalid);
}

#[test]
fn data_is_shared_where_the_file_system_can() {
    let directory = TempDir::new();
    let open = |name: &str| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        options.open(directory.join(name)).unwrap()
    };
    let (source, target) = (open("source"), open("target"));
    write_at(&source, b"shared", 0).unwrap();
    match share_data(&source, &target) {
        Ok(()) => {
            let mut read = [0; 6];
            assert_eq!(read_at(&target, &mut read, 0).unwrap(), 6);
            assert_eq!(&read, b"shared");
        }
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Unsupported), "{error:?}");
            testkit::skip("a file system with shared data (btrfs, XFS) for temporary files");
        }
    }
    sync_file_system(&source).unwrap();
}
