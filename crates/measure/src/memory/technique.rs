//! What moves the bytes in a copy: a loop of `memops`, or the kernel, through a
//! pipe or through a file on tmpfs (the "file I/O" technique of 2001).

use crate::{Error, ErrorKind, Result};
use memops::{Method, Operation};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use sys::file::Scratch;

/// Bytes that go through the pipe at once: its default capacity, so that the
/// write never waits for the read of the same thread.
const PIPE_BYTES: usize = 64 << 10;

/// Where tmpfs is looked for; the first that is one is taken.
const RAM_DIRECTORIES: [&str; 3] = ["/dev/shm", "/run/shm", "/tmp"];

/// One way to move bytes.
#[derive(Debug)]
pub enum Technique {
    /// A loop.
    Loop(&'static Method),
    /// Written into a pipe and read out of it, by one thread.
    Pipe(File, File),
    /// Written into a file on tmpfs and read out of it.
    RamFile(Scratch),
}

/// The names of the techniques that go through the kernel, with what they do.
pub const KERNEL_TECHNIQUES: [(&str, &str); 2] = [
    ("pipe", "written into a pipe and read out, 64 KiB at a time"),
    ("tmpfs-file", "written into a file on tmpfs and read out"),
];

impl Technique {
    /// The technique of this name, ready to use.
    ///
    /// An unknown name is a usage error that lists the known ones; one that this
    /// processor or machine cannot run is `Impossible`, with what it needs.
    pub fn prepare(name: &str) -> Result<Self> {
        let cannot =
            |source| Error::caused(ErrorKind::Impossible, format!("copy by {name}"), source);
        match name {
            "pipe" => {
                let (reader, writer) = sys::pipe::pair(PIPE_BYTES).map_err(cannot)?;
                Ok(Technique::Pipe(reader, writer))
            }
            "tmpfs-file" => {
                let directory = ram_directory().ok_or_else(|| {
                    let reason = "no tmpfs at /dev/shm, /run/shm or /tmp";
                    Error::new(ErrorKind::Impossible, format!("copy by {name}"), reason)
                })?;
                let scratch = Scratch::create_in(Path::new(directory)).map_err(cannot)?;
                Ok(Technique::RamFile(scratch))
            }
            _ => {
                let method = memops::find(name).ok_or_else(|| unknown(name))?;
                match method.absent() {
                    Some(why) => Err(Error::new(
                        ErrorKind::Impossible,
                        format!("run method {name}"),
                        format!("this processor lacks it: {why}"),
                    )),
                    None => Ok(Technique::Loop(method)),
                }
            }
        }
    }

    /// What it does with bytes.
    pub fn operation(&self) -> Operation {
        match self {
            Technique::Loop(method) => method.operation(),
            Technique::Pipe(..) | Technique::RamFile(_) => Operation::Copy,
        }
    }

    /// Works once through the buffers; `read` leaves the target alone, `write` the source.
    pub fn apply(&mut self, target: &mut [u8], source: &[u8]) -> std::io::Result<()> {
        match self {
            Technique::Loop(method) => match method.operation() {
                Operation::Copy => method.copy(target, source),
                Operation::Read => {
                    std::hint::black_box(method.read(source));
                }
                Operation::Write => method.write(target),
            },
            Technique::Pipe(reader, writer) => {
                for (to, from) in target.chunks_mut(PIPE_BYTES).zip(source.chunks(PIPE_BYTES)) {
                    writer.write_all(from)?;
                    reader.read_exact(to)?;
                }
            }
            Technique::RamFile(scratch) => {
                use std::os::unix::fs::FileExt;
                scratch.file().write_all_at(source, 0)?;
                scratch.file().read_exact_at(target, 0)?;
            }
        }
        Ok(())
    }
}

/// Whether the technique keeps a second copy of the bytes in memory.
pub fn needs_third_buffer(name: &str) -> bool {
    name == "tmpfs-file"
}

/// Every known name, loops first.
pub fn names() -> Vec<&'static str> {
    let loops = memops::methods().iter().map(Method::name);
    loops.chain(KERNEL_TECHNIQUES.iter().map(|(name, _)| *name)).collect()
}

fn ram_directory() -> Option<&'static str> {
    RAM_DIRECTORIES.into_iter().find(|directory| {
        sys::file::file_system_of(Path::new(directory)).is_ok_and(|system| system.in_ram)
    })
}

fn unknown(name: &str) -> Error {
    Error::new(
        ErrorKind::Usage,
        format!("find method `{name}`"),
        format!("known are {}", names().join(", ")),
    )
}
