//! A chunk of identities before compression: the processes and files that later rows name.
//!
//! Identities have numbers from 0, in the order of the file. A chunk begins with the number of its
//! first process and file, so a missing chunk is noticed. A part of a recording is read with all
//! its identities, because any row may name any of them.

use super::columns::malformed;
use super::varint::{Input, put, put_signed};
use model::recording::{FileIdentity, Process};

/// The process is a thread of the kernel.
const IS_KERNEL: u64 = 1;
/// These are several processes.
const IS_MANY: u64 = 2;
/// The file has a path.
const HAS_PATH: u64 = 1;

/// What takes the identities of a chunk, in order, each under its number.
pub(super) trait DecodedIdentities {
    /// A process.
    ///
    /// # Errors
    /// Why there can be no more, in words.
    fn process(&mut self, number: u64, process: &DecodedProcess<'_>) -> Result<(), String>;

    /// A file.
    ///
    /// # Errors
    /// Why there can be no more, in words.
    fn file(&mut self, number: u64, file: &DecodedFile<'_>) -> Result<(), String>;
}

/// A process whose texts are still those of the chunk.
pub(super) struct DecodedProcess<'a> {
    process: Process,
    name: &'a str,
    group: &'a str,
}

/// A file whose text is still that of the chunk.
pub(super) struct DecodedFile<'a> {
    file: FileIdentity,
    path: Option<&'a str>,
}

impl DecodedProcess<'_> {
    /// Bytes of its texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.name.len() + self.group.len()
    }

    /// The process under this number.
    pub(super) fn with_id(&self, id: u32) -> Process {
        let (name, group) = (self.name.to_owned(), self.group.to_owned());
        Process { id, name, group, ..self.process.clone() }
    }
}

impl DecodedFile<'_> {
    /// Bytes of its text.
    pub(super) fn text_bytes(&self) -> usize {
        self.path.map_or(0, str::len)
    }

    /// The file under this number.
    pub(super) fn with_id(&self, id: u32) -> FileIdentity {
        FileIdentity { id, path: self.path.map(str::to_owned), ..self.file.clone() }
    }
}

/// Appends as many of the identities as stay below about `bytes`, and at least one; how many of
/// each there are in `out` then.
pub(super) fn encode(
    processes: &[Process],
    files: &[FileIdentity],
    bytes: usize,
    out: &mut Vec<u8>,
) -> (usize, usize) {
    let mut room = bytes;
    let mut has_room = |texts: usize| {
        let had_room = room > 0;
        room = room.saturating_sub(texts + size_of::<Process>());
        had_room
    };
    let taken = processes.iter().take_while(|it| has_room(it.name.len() + it.group.len()));
    let processes = &processes[..taken.count()];
    let taken = files.iter().take_while(|it| has_room(it.path.as_ref().map_or(0, String::len)));
    let files = &files[..taken.count()];
    put(out, processes.first().map_or(0, |process| u64::from(process.id)));
    put(out, processes.len() as u64);
    let (mut pid, mut started_ns) = (0, 0);
    for process in processes {
        put_signed(out, i64::from(process.pid) - i64::from(pid));
        put(out, u64::from(process.parent));
        put(out, u64::from(process.user));
        put_signed(out, process.started_ns.wrapping_sub(started_ns) as i64);
        let kernel = if process.is_kernel { IS_KERNEL } else { 0 };
        put(out, kernel | if process.is_many { IS_MANY } else { 0 });
        put_text(out, &process.name);
        put_text(out, &process.group);
        (pid, started_ns) = (process.pid, process.started_ns);
    }
    put(out, files.first().map_or(0, |file| u64::from(file.id)));
    put(out, files.len() as u64);
    for file in files {
        put(out, u64::from(file.device.0));
        put(out, u64::from(file.device.1));
        put(out, file.inode);
        put(out, file.path.as_ref().map_or(0, |_| HAS_PATH));
        if let Some(path) = &file.path {
            put_text(out, path);
        }
    }
    (processes.len(), files.len())
}

/// Reads a chunk.
///
/// # Errors
/// What is impossible in it, in words; `decoded` may have got a part of it.
pub(super) fn decode(raw: &[u8], decoded: &mut impl DecodedIdentities) -> Result<(), String> {
    let mut input = Input::new(raw);
    let (mut pid, mut started_ns) = (0, 0);
    for number in numbers(&mut input).ok_or_else(malformed)? {
        let of_chunk = process(&mut input, pid, started_ns).ok_or_else(malformed)?;
        (pid, started_ns) = (of_chunk.process.pid, of_chunk.process.started_ns);
        decoded.process(number, &of_chunk)?;
    }
    for number in numbers(&mut input).ok_or_else(malformed)? {
        decoded.file(number, &file(&mut input).ok_or_else(malformed)?)?;
    }
    if input.is_empty() { Ok(()) } else { Err(malformed()) }
}

/// The numbers of the identities that follow.
fn numbers(input: &mut Input<'_>) -> Option<std::ops::Range<u64>> {
    let (first, count) = (input.number()?, input.number()?);
    Some(first..first.checked_add(count)?)
}

fn process<'a>(input: &mut Input<'a>, pid: u32, started_ns: u64) -> Option<DecodedProcess<'a>> {
    let pid = i64::from(pid).checked_add(input.signed()?)?;
    let parent = small(input)?;
    let user = small(input)?;
    let started_ns = started_ns.wrapping_add(input.signed()? as u64);
    let flags = input.number()?;
    let process = Process {
        pid: u32::try_from(pid).ok()?,
        parent,
        user,
        started_ns,
        is_kernel: flags & IS_KERNEL != 0,
        is_many: flags & IS_MANY != 0,
        ..Process::default()
    };
    Some(DecodedProcess { process, name: text(input)?, group: text(input)? })
}

fn file<'a>(input: &mut Input<'a>) -> Option<DecodedFile<'a>> {
    let device = (small(input)?, small(input)?);
    let inode = input.number()?;
    let has_path = input.number()? & HAS_PATH != 0;
    let path = if has_path { Some(text(input)?) } else { None };
    Some(DecodedFile { file: FileIdentity { device, inode, ..FileIdentity::default() }, path })
}

fn small(input: &mut Input<'_>) -> Option<u32> {
    u32::try_from(input.number()?).ok()
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn text<'a>(input: &mut Input<'a>) -> Option<&'a str> {
    let length = usize::try_from(input.number()?).ok()?;
    std::str::from_utf8(input.bytes(length)?).ok()
}
