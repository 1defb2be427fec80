//! Files as probes need them: opened without side effects, read and written at an offset,
//! cached, uncached or direct, and their space, durability and cache hints.
//!
//! Offsets are bytes. Calls that a signal interrupts are repeated. The nameless scratch
//! file is in `scratch`, one that is replaced whole or not at all in `replace`, what `statfs` tells
//! in `system`.

mod holes;
mod input;
mod mapped;
mod replace;
mod scratch;
mod system;
#[cfg(test)]
mod tests;
mod unnoticed;

pub use holes::next_data;
pub use input::{examine_input, open_input};
pub use mapped::MappedFile;
pub use replace::{Durability, FileMode, TempFile, replace};
/// What will be done with a range, as a hint to the page cache.
pub use rustix::fs::Advice as CacheAdvice;
pub use scratch::Scratch;
pub use system::{FileSystem, file_system, file_system_of, folds_case};
pub use unnoticed::{open_place, open_unnoticed, open_unnoticed_below};

use crate::error::{Error, ErrorKind, Result, count, failed};
use model::device::Alignment;
use rustix::fs::{
    AtFlags, FallocateFlags, OFlags, StatxFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl,
    statx,
};
use rustix::io::retry_on_intr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// `RWF_DONTCACHE` (Linux 6.14): buffered, but the pages leave the cache afterwards.
const RWF_DONTCACHE: libc::c_int = 0x80;
/// `STATX_DIO_READ_ALIGN` (Linux 6.15): a finer alignment for reads than for writes.
const DIO_READ_ALIGN: StatxFlags = StatxFlags::from_bits_retain(0x0002_0000);

/// Opens a regular file, directory or block device for reading, direct if asked. Never
/// waits on a FIFO, never opens a character device, never takes a controlling terminal.
///
/// # Errors
/// `Invalid` for any other kind of file; `Unsupported` if the file system refuses `O_DIRECT`.
pub fn open_read(path: &Path, direct: bool) -> Result<File> {
    let fail = |source| Error::new("open", source).at(path);
    // Before the open: merely opening a tape or a terminal has effects.
    refuse_special(&std::fs::metadata(path).map_err(fail)?).map_err(fail)?;
    let direct_flag = if direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | direct_flag)
        .open(path)
        .map_err(|source| direct_refusal(fail(source), direct))?;
    // After it: the name may have been exchanged in between, and O_NONBLOCK kept that harmless.
    refuse_special(&file.metadata().map_err(fail)?).map_err(fail)?;
    // io_uring answers EAGAIN on a non-blocking file; nothing here waits on a peer any more.
    clear_nonblocking(&file).map_err(|error| error.at(path))?;
    Ok(file)
}

/// Lets requests on an open file wait again, after a careful open.
pub(crate) fn clear_nonblocking(file: &File) -> Result<()> {
    set_flag(file, OFlags::NONBLOCK, false)
}

/// Switches direct I/O on or off for this open file description and all its duplicates.
///
/// # Errors
/// `Unsupported` if the file system refuses it.
pub fn set_direct(file: &File, on: bool) -> Result<()> {
    set_flag(file, OFlags::DIRECT, on).map_err(|error| direct_refusal(error, on))
}

/// Whether reads and writes of this opening go past the page cache (`O_DIRECT`).
///
/// # Errors
/// None in practice; the descriptor is open.
pub fn is_direct(file: &File) -> Result<bool> {
    Ok(flags(file)?.contains(OFlags::DIRECT))
}

/// Reserves the first `bytes` bytes on the device and makes the file at least that long.
///
/// # Errors
/// `NoSpace` if it does not fit; `Unsupported` where the file system cannot reserve, or would write
/// zeroes for it, as FAT does.
pub fn allocate(file: &File, bytes: u64) -> Result<()> {
    const OPERATION: &str = "allocate space";
    signed(OPERATION, bytes)?;
    if file_system(file).is_ok_and(|system| system.is_fat()) {
        return Err(Error::new(OPERATION, io::ErrorKind::Unsupported.into()));
    }
    retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)).map_err(failed(OPERATION))
}

/// Reserves the first `bytes` bytes on the device, without making the file longer. FAT keeps them
/// until the file is closed.
///
/// # Errors
/// `NoSpace` if it does not fit; `Unsupported` where the file system cannot reserve.
pub fn reserve(file: &File, bytes: u64) -> Result<()> {
    const OPERATION: &str = "reserve space";
    signed(OPERATION, bytes)?;
    retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes))
        .map_err(failed(OPERATION))
}

/// Waits until the file's data, and what is needed to find it, is on the device.
///
/// # Errors
/// `Device` if a write failed; then the state of the file is unknown.
pub fn sync_data(file: &File) -> Result<()> {
    // SAFETY: takes a descriptor only.
    count("sync", || unsafe { libc::fdatasync(file.as_raw_fd()) } as isize).map(drop)
}

/// Waits until all data and names of the file system that holds `file` are on its device, those of
/// other programs too.
///
/// # Errors
/// `Device` if a write failed since `file` was opened (Linux 5.8; before, failures are not said).
pub fn sync_file_system(file: &File) -> Result<()> {
    retry_on_intr(|| rustix::fs::syncfs(file)).map_err(failed("sync the file system"))
}

/// Makes `target` share all data of `source` (`FICLONE`): nothing is copied until one of them
/// changes. `target` is open for writing, on the same file system.
///
/// # Errors
/// `Unsupported` where the file system has no shared data; `Other` with `EXDEV` across two.
pub fn share_data(source: &File, target: &File) -> Result<()> {
    retry_on_intr(|| rustix::fs::ioctl_ficlone(target, source)).map_err(failed("share the data"))
}

/// Gives the range's space back to the file system; it then reads as zeroes, and the file keeps
/// its length.
///
/// # Errors
/// `Unsupported` where the file system has no holes.
pub fn punch_hole(file: &File, range: Range<u64>) -> Result<()> {
    const OPERATION: &str = "discard";
    let (offset, bytes) = (range.start, range.end.saturating_sub(range.start));
    signed(OPERATION, offset.max(bytes))?;
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    retry_on_intr(|| fallocate(file, mode, offset, bytes)).map_err(failed(OPERATION))
}

/// Starts writing the dirty pages of a range; does not wait and promises no durability.
/// 0 bytes means to the end of the file.
///
/// # Errors
/// The kernel's word; `Invalid` for a range beyond any file.
pub fn sync_range_start(file: &File, offset: u64, bytes: u64) -> Result<()> {
    sync_range(file, offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

/// Writes the dirty pages of a range and waits for them; no promise about metadata or the
/// device's own cache. 0 bytes means to the end of the file.
///
/// # Errors
/// `Device` if a write failed.
pub fn sync_range_wait(file: &File, offset: u64, bytes: u64) -> Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_range(file, offset, bytes, flags)
}

/// Tells the page cache what comes; 0 bytes means to the end of the file.
///
/// # Errors
/// `Invalid` for pipes and ranges beyond any file.
pub fn advise(file: &File, offset: u64, bytes: u64, advice: CacheAdvice) -> Result<()> {
    const OPERATION: &str = "advise the page cache";
    signed(OPERATION, offset.max(bytes))?;
    fadvise(file, offset, NonZeroU64::new(bytes), advice).map_err(failed(OPERATION))
}

/// What direct I/O on `file` must be aligned to, 0 for a file without direct I/O; `None` if the
/// kernel does not report it.
///
/// # Errors
/// Only where a filter forbids `statx`.
pub fn direct_alignment(file: &File) -> Result<Option<Alignment>> {
    let wanted = StatxFlags::DIOALIGN | DIO_READ_ALIGN;
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, wanted).map_err(failed("examine the file"))?;
    let reported = |mask: StatxFlags| stat.stx_mask & mask.bits() != 0;
    let write = stat.stx_dio_offset_align;
    let read = stat.stx_dio_read_offset_align;
    let is_read_known = read > 0 && reported(DIO_READ_ALIGN);
    Ok(reported(StatxFlags::DIOALIGN).then_some(Alignment {
        read: if is_read_known { read } else { write },
        write,
        memory: stat.stx_dio_mem_align,
    }))
}

/// Reads into `buffer` from `offset`; the number of bytes read, 0 at the end of the file.
///
/// # Errors
/// `Device` on an I/O error, `Invalid` on a misaligned direct read.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    const OPERATION: &str = "read";
    let offset = signed(OPERATION, offset)?;
    // SAFETY: `buffer` is live and writable for the length given.
    count(OPERATION, || unsafe {
        libc::pread(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), offset)
    })
}

/// Writes `buffer` at `offset`; the number of bytes written, which may be fewer.
///
/// # Errors
/// `NoSpace` if the device is full, `Device` on an I/O error.
pub fn write_at(file: &File, buffer: &[u8], offset: u64) -> Result<usize> {
    const OPERATION: &str = "write";
    let offset = signed(OPERATION, offset)?;
    // SAFETY: `buffer` is live for the length given and only read.
    count(OPERATION, || unsafe {
        libc::pwrite(file.as_raw_fd(), buffer.as_ptr().cast(), buffer.len(), offset)
    })
}

/// Reads into `parts`, one behind the other, from `offset` on; the number of bytes read.
///
/// # Errors
/// As [`read_at`].
pub fn read_vectored_at(file: &File, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<usize> {
    retry_on_intr(|| rustix::io::preadv(file, parts, offset)).map_err(failed("read"))
}

/// Writes `parts`, one behind the other, from `offset` on; the number of bytes written, which may
/// be fewer.
///
/// # Errors
/// As [`write_at`].
pub fn write_vectored_at(file: &File, parts: &[IoSlice<'_>], offset: u64) -> Result<usize> {
    retry_on_intr(|| rustix::io::pwritev(file, parts, offset)).map_err(failed("write"))
}

/// As [`read_at`], but pages that it brings into the cache leave it again.
///
/// # Errors
/// `Unsupported` before Linux 6.14 and on file systems that cannot.
pub fn read_at_uncached(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    const OPERATION: &str = "read uncached";
    let offset = signed(OPERATION, offset)?;
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: `part` names `buffer`, which is live and writable for its whole length.
    count(OPERATION, || unsafe {
        libc::preadv2(file.as_raw_fd(), &raw const part, 1, offset, RWF_DONTCACHE)
    })
}

/// As [`write_at`], but the pages leave the cache once they are written.
///
/// # Errors
/// `Unsupported` before Linux 6.14 and on file systems that cannot.
pub fn write_at_uncached(file: &File, buffer: &[u8], offset: u64) -> Result<usize> {
    const OPERATION: &str = "write uncached";
    let offset = signed(OPERATION, offset)?;
    let part = libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() };
    // SAFETY: `part` names `buffer`, which is live; a write only reads from it.
    count(OPERATION, || unsafe {
        libc::pwritev2(file.as_raw_fd(), &raw const part, 1, offset, RWF_DONTCACHE)
    })
}

fn refuse_special(metadata: &std::fs::Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_dir() || kind.is_block_device() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file or block device"))
}

fn set_flag(file: &File, flag: OFlags, on: bool) -> Result<()> {
    let mut flags = flags(file)?;
    flags.set(flag, on);
    fcntl_setfl(file, flags).map_err(failed("change the file's mode"))
}

/// The status flags of an opening.
fn flags(file: &File) -> Result<OFlags> {
    fcntl_getfl(file).map_err(failed("read the file's mode"))
}

/// EINVAL to `O_DIRECT` is how a file system says that it has none.
fn direct_refusal(mut error: Error, direct: bool) -> Error {
    if direct && error.kind == ErrorKind::Invalid {
        error.kind = ErrorKind::Unsupported;
    }
    error
}

fn sync_range(file: &File, offset: u64, bytes: u64, flags: libc::c_uint) -> Result<()> {
    const OPERATION: &str = "write back";
    let (offset, bytes) = (signed(OPERATION, offset)?, signed(OPERATION, bytes)?);
    // SAFETY: takes a descriptor and numbers.
    count(OPERATION, || unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) as isize
    })
    .map(drop)
}

/// File offsets are signed in the kernel's interface.
pub(crate) fn signed(operation: &'static str, value: u64) -> Result<libc::off_t> {
    libc::off_t::try_from(value)
        .map_err(|_| Error::invalid(operation, "the offset is beyond any file"))
}
