//! Denials of this program by AppArmor and SELinux, in the kernel's messages.
//!
//! 1. Only records of the kernel's facility count. No process can choose it for what it writes.
//! 2. Only lines that begin as those of the audit subsystem: `audit: type=1400 audit(TIME:SERIAL)`.
//!    In them text of users is in quotes, or in hexadecimal digits if it has a space or a quote: a
//!    name of a file adds no field.
//! 3. A denial is of this program by the name of its thread, by the program file that a line of the
//!    same event names, by the number of this process, or by that of a process that is known so.
//!
//! Any process may take the name of this program, so these are hints and no proof. Where auditd
//! runs, it gets these lines, and the kernel's messages do not have them.

use model::denial::{Denial, MessagesRead, SecurityModule};
use std::collections::VecDeque;
use sys::Result;
use sys::kernel_messages::{KernelMessage, KernelMessages};

/// The name of this program, as the kernel has it of its threads.
const PROGRAM: &str = "terrace";
/// As many records are read. A ring has a few thousand to 100,000; it is read from its oldest
/// record on, so a limit costs the newest.
const RECORDS_MAX: u64 = 200_000;
/// As many different denials are kept, the last ones: a page of them.
const KEPT_MAX: usize = 8;
/// As many processes of this program are remembered, the last ones.
const KNOWN_MAX: usize = 32;
/// As many denials of other programs wait for the line that names their program file, or for one of
/// another thread. The first follows at once, but those of other processors may come between.
const WAITING_MAX: usize = 32;

/// `AUDIT_AVC`: denials of both modules.
const DENIAL_TYPE: &str = "1400";
/// `AUDIT_SYSCALL`: the call behind a denial, where system calls are audited.
const CALL_TYPE: &str = "1300";

/// This process, whose denials need no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnProcess {
    /// Its number on the machine.
    pub pid: u32,
    /// Denials from then on are its own, in seconds since 1970: the number had other owners before.
    pub since_unix_s: i64,
}

/// Reads the kernel's messages, and gives the denials of this program in the order of their last
/// record. `own` is absent where this process does not know its number on the machine.
///
/// # Errors
/// `Denied` for users who may not read them, `NotFound` in most containers.
pub fn read(own: Option<OwnProcess>) -> Result<(Vec<Denial>, MessagesRead)> {
    let mut messages = KernelMessages::open()?;
    let mut log = DenialLog::new(own);
    let mut is_whole = false;
    for _ in 0..RECORDS_MAX {
        match messages.next_message()? {
            KernelMessage::Record(record) => log.add(record),
            // What was next is gone, and was never read.
            KernelMessage::Overwritten => log.has_gap = true,
            KernelMessage::End => {
                is_whole = true;
                break;
            }
        }
    }
    Ok(log.finish(is_whole))
}

/// The denials of this program among records of the kernel, as they come.
#[derive(Debug, Default)]
pub struct DenialLog {
    own: Option<OwnProcess>,
    /// The last ones, the newest at the end.
    kept: Vec<Denial>,
    /// Denials that no name shows to be of this program, with their events.
    waiting: VecDeque<(String, Denial)>,
    /// Processes of this program, and what confines them: a number has several owners in time.
    known: VecDeque<(u32, String)>,
    records: u64,
    first_sequence: Option<u64>,
    has_gap: bool,
    left_out: u64,
}

impl DenialLog {
    /// A log without records.
    #[must_use]
    pub fn new(own: Option<OwnProcess>) -> Self {
        Self { own, ..Self::default() }
    }

    /// Takes one record, as `/dev/kmsg` gives it.
    pub fn add(&mut self, record: &[u8]) {
        self.records += 1;
        let Some(record) = Record::parse(record) else { return };
        self.first_sequence.get_or_insert(record.sequence);
        if !record.is_of_kernel {
            return;
        }
        let Some(line) = AuditLine::parse(record.text) else { return };
        match line.kind {
            DENIAL_TYPE => self.add_denial(&line),
            CALL_TYPE => self.add_call(&line),
            _ => {}
        }
    }

    /// What was found. `is_whole` says whether the newest record was read.
    #[must_use]
    pub fn finish(self, is_whole: bool) -> (Vec<Denial>, MessagesRead) {
        let read = MessagesRead {
            readable: true,
            why: None,
            records: self.records,
            first_sequence: self.first_sequence,
            is_whole: is_whole && !self.has_gap,
            left_out: self.left_out,
        };
        (self.kept, read)
    }

    fn add_denial(&mut self, line: &AuditLine<'_>) {
        let Some(mut denial) = denial(line) else { return };
        denial.is_own = self.own.is_some_and(|own| {
            denial.pid == Some(own.pid) && denial.last_unix_s >= own.since_unix_s
        });
        if denial.is_own || denial.thread == PROGRAM || self.is_known(&denial) {
            return self.keep_process(denial);
        }
        push_bounded(&mut self.waiting, (line.event.to_owned(), denial), WAITING_MAX);
    }

    /// The system call of an event names the program file.
    fn add_call(&mut self, line: &AuditLine<'_>) {
        let program = line.quoted("exe").unwrap_or_default();
        if program.rsplit('/').next() != Some(PROGRAM) {
            return;
        }
        while let Some(at) = self.waiting.iter().position(|(event, _)| event == line.event) {
            if let Some((_, denial)) = self.waiting.remove(at) {
                self.keep_process(denial);
            }
        }
    }

    /// Whether it is of a process of this program, which is confined as it was. Its other threads
    /// have names of their own.
    fn is_known(&self, denial: &Denial) -> bool {
        let is_same =
            |(pid, subject): &(u32, String)| denial.pid == Some(*pid) && denial.subject == *subject;
        self.known.iter().any(is_same)
    }

    /// Keeps the denial, and those of other threads of its process that wait.
    fn keep_process(&mut self, denial: Denial) {
        if let Some(pid) = denial.pid.filter(|_| !self.is_known(&denial)) {
            push_bounded(&mut self.known, (pid, denial.subject.clone()), KNOWN_MAX);
        }
        while let Some(at) = self.waiting.iter().position(|(_, one)| self.is_known(one)) {
            if let Some((_, earlier)) = self.waiting.remove(at) {
                self.keep(earlier);
            }
        }
        self.keep(denial);
    }

    fn keep(&mut self, mut denial: Denial) {
        let key = |one: &Denial| {
            (one.module, one.subject.clone(), one.operation.clone(), one.object.clone())
        };
        let wanted = key(&denial);
        if let Some(at) = self.kept.iter().position(|known| key(known) == wanted) {
            let known = self.kept.remove(at);
            denial.count += known.count;
            denial.is_own |= known.is_own;
        } else if self.kept.len() == KEPT_MAX {
            // Those of this very process are known to be of this program.
            let oldest = self.kept.iter().position(|one| !one.is_own).unwrap_or(0);
            self.kept.remove(oldest);
            self.left_out += 1;
        }
        self.kept.push(denial);
    }
}

/// Puts it at the end; the first one makes room.
fn push_bounded<T>(queue: &mut VecDeque<T>, new: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(new);
}

/// The parts of a record that decide whether it counts.
#[derive(Debug, PartialEq, Eq)]
struct Record<'a> {
    is_of_kernel: bool,
    sequence: u64,
    text: &'a str,
}

impl<'a> Record<'a> {
    /// `PRIORITY,SEQUENCE,TIME,FLAGS[,...];TEXT`, then lines of properties, which are left out
    /// (Documentation/ABI/testing/dev-kmsg). All of it is ASCII: other bytes are escaped.
    fn parse(record: &'a [u8]) -> Option<Self> {
        let record = std::str::from_utf8(record).ok()?;
        let (prefix, text) = record.split_once(';')?;
        let mut parts = prefix.split(',');
        let priority: u32 = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        // The facility is above the three bits of the level.
        Some(Self { is_of_kernel: priority >> 3 == 0, sequence, text: text.lines().next()? })
    }
}

/// A line of the audit subsystem.
#[derive(Debug)]
struct AuditLine<'a> {
    kind: &'a str,
    /// `TIME:SERIAL`: the same in all lines of an event.
    event: &'a str,
    unix_s: i64,
    body: &'a str,
}

impl<'a> AuditLine<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("audit: type=")?;
        let (kind, rest) = rest.split_once(" audit(")?;
        let (event, body) = rest.split_once("): ")?;
        let (time, serial) = event.split_once(':')?;
        serial.parse::<u64>().ok()?;
        let (seconds, _) = time.split_once('.')?;
        Some(Self { kind, event, unix_s: seconds.parse().ok()?, body })
    }

    /// The value of the first field of that name, as text.
    fn value(&self, key: &str) -> Option<String> {
        fields(self.body).find(|(name, _)| *name == key).map(|(_, value)| value.text())
    }

    /// The value of a field that is in quotes: that of a name without odd characters.
    fn quoted(&self, key: &str) -> Option<&'a str> {
        let found = fields(self.body).find(|(name, _)| *name == key);
        found.and_then(|(_, value)| match value {
            FieldValue::Quoted(text) => Some(text),
            FieldValue::Bare(_) => None,
        })
    }

    /// As [`AuditLine::value`] for what users may name: bare digits are a name in hexadecimal.
    fn name(&self, key: &str) -> Option<String> {
        let (_, value) = fields(self.body).find(|(name, _)| *name == key)?;
        Some(match value {
            FieldValue::Bare(digits) => from_hex(digits).unwrap_or_else(|| unescaped(digits)),
            FieldValue::Quoted(_) => value.text(),
        })
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.value(key)?.parse().ok()
    }
}

#[derive(Clone, Copy, Debug)]
enum FieldValue<'a> {
    Quoted(&'a str),
    Bare(&'a str),
}

impl FieldValue<'_> {
    fn text(self) -> String {
        match self {
            Self::Quoted(text) | Self::Bare(text) => unescaped(text),
        }
    }
}

/// The fields `key=value` and `key="value"` of a line, in their order. Words without `=` are left
/// out.
fn fields(body: &str) -> impl Iterator<Item = (&str, FieldValue<'_>)> {
    let mut rest = body;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(' ');
            if rest.is_empty() {
                return None;
            }
            let end = rest.find([' ', '=']).unwrap_or(rest.len());
            let (key, behind) = rest.split_at(end);
            let Some(value) = behind.strip_prefix('=') else {
                rest = behind;
                continue;
            };
            let (value, behind) = match value.strip_prefix('"') {
                Some(quoted) => {
                    let (text, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
                    (FieldValue::Quoted(text), behind)
                }
                None => {
                    let (text, behind) = value.split_at(value.find(' ').unwrap_or(value.len()));
                    (FieldValue::Bare(text), behind)
                }
            };
            rest = behind;
            return Some((key, value));
        }
    })
}

/// The name behind hexadecimal digits; bytes that are not UTF-8 are replaced.
fn from_hex(digits: &str) -> Option<String> {
    let digits = digits.as_bytes();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes: Option<Vec<u8>> =
        digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

/// `text` without the escapes of `/dev/kmsg`: a backslash is `\x5c` there.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(from_hex_byte) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn from_hex_byte(digits: &str) -> Option<u8> {
    // `from_str_radix` takes a sign as well.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    u8::from_str_radix(digits, 16).ok()
}

/// The denial of a line, of any program.
fn denial(line: &AuditLine<'_>) -> Option<Denial> {
    let body = line.body.trim_start();
    if body.starts_with("apparmor=\"DENIED\" ") {
        of_apparmor(line)
    } else if let Some(rest) = body.strip_prefix("avc:") {
        let (permissions, _) = rest.trim_start().strip_prefix("denied")?.split_once('}')?;
        of_selinux(line, permissions.trim_start().strip_prefix('{')?.trim())
    } else {
        None
    }
}

fn of_apparmor(line: &AuditLine<'_>) -> Option<Denial> {
    let object = ["name", "capname", "peer", "family"].iter().find_map(|key| line.name(key));
    Some(Denial {
        subject: line.name("profile")?,
        operation: line.value("operation")?,
        object,
        class: line.value("class"),
        rights: line.value("denied_mask").or_else(|| line.value("requested_mask")),
        ..unnamed(line, SecurityModule::AppArmor)
    })
}

fn of_selinux(line: &AuditLine<'_>, permissions: &str) -> Option<Denial> {
    // A permissive domain is logged, and refused nothing.
    if line.value("permissive").as_deref() == Some("1") {
        return None;
    }
    let named = ["path", "name"].iter().find_map(|key| line.name(key));
    Some(Denial {
        subject: line.value("scontext")?,
        operation: permissions.to_owned(),
        object: named,
        object_context: line.value("tcontext"),
        class: line.value("tclass"),
        ..unnamed(line, SecurityModule::SeLinux)
    })
}

/// What the lines of both modules have; nothing of what was refused.
fn unnamed(line: &AuditLine<'_>, module: SecurityModule) -> Denial {
    Denial {
        module,
        subject: String::new(),
        operation: String::new(),
        object: None,
        object_context: None,
        class: None,
        rights: None,
        pid: line.number("pid"),
        uid: line.number("fsuid"),
        thread: line.name("comm").unwrap_or_default(),
        is_own: false,
        count: 1,
        last_unix_s: line.unix_s,
    }
}
