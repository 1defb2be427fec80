//! Tests of the protocol: what clients may say, and what hostile ones do. Each client has sent all
//! that it says before the server begins.

use super::*;
use std::io::Cursor;

const NOTHING: ExportFeatures =
    ExportFeatures { trim: false, write_zeroes: false, structured: false, block_bytes: None };
const EXPORTS: &[Export] = &[
    Export { name: "a", bytes: 4096, features: NOTHING },
    Export { name: "disk", bytes: 1 << 30, features: NOTHING },
];
const FULL: &[Export] =
    &[Export { name: "disk", bytes: 1 << 30, features: ExportFeatures::all(512) }];

/// A client that has sent everything already; keeps what it receives.
struct Client {
    says: Cursor<Vec<u8>>,
    hears: Vec<u8>,
}

impl Client {
    fn new(parts: &[&[u8]]) -> Self {
        Self { says: Cursor::new(parts.concat()), hears: Vec::new() }
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.says.read(buffer)
    }
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hears.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An export that was chosen, and nothing else.
fn plain(export: usize) -> Negotiated {
    Negotiated { export, ..Negotiated::default() }
}

const FLAGS: &[u8] = &[0, 0, 0, 3];

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The data of INFO and GO: a name and no wishes.
fn named(name: &str) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend([0, 0]);
    data
}

fn request(command: u16, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(command.to_be_bytes());
    bytes.extend(77u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn go_chooses_a_disk_after_options_that_are_not_known() {
    let structured_replies = option(8, &[]);
    let mut client = Client::new(&[
        FLAGS,
        &structured_replies,
        &option(OPTION_GO, &named("nothing")),
        &option(OPTION_GO, &named("disk")),
    ]);
    assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), Some(plain(1)));
    let sent = &client.hears[18..];
    assert_eq!(sent[12..16], REPLY_UNSUPPORTED.to_be_bytes());
    assert_eq!(sent[32..36], REPLY_UNKNOWN.to_be_bytes());
    let facts = &sent[40..][20..32];
    assert_eq!(facts, [0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 13]);
    assert_eq!(sent[72..][12..16], REPLY_ACK.to_be_bytes());
}

#[test]
fn the_old_way_of_choosing_has_zeroes_unless_declined() {
    for (flags, len) in [([0, 0, 0, 3], 10), ([0, 0, 0, 1], 134)] {
        let mut client = Client::new(&[&flags, &option(OPTION_EXPORT_NAME, b"a")]);
        assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), Some(plain(0)));
        assert_eq!(client.hears.len() - 18, len);
    }
}

#[test]
fn a_client_may_leave_instead() {
    let mut client = Client::new(&[FLAGS, &option(OPTION_ABORT, &[])]);
    assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), None);
    assert_eq!(read_request(&mut Cursor::new([]), &mut Vec::new()).unwrap(), None);
    let leave = request(2, 0, 0, &[]);
    let left =
        read_request(&mut Cursor::new(leave), &mut Vec::new()).unwrap().map(|last| last.command);
    assert_eq!(left, Some(NbdCommand::Disconnect));
}

#[test]
fn a_hostile_greeting_is_refused() {
    let refused = |parts: &[&[u8]]| {
        let error = negotiate(&mut Client::new(parts), EXPORTS).unwrap_err();
        error.to_string()
    };
    assert_eq!(refused(&[FLAGS, &[0; 16]]), "NBD: bad option");
    let too_long = [&b"IHAVEOPT"[..], &[0, 0, 0, 7], &[255; 4]].concat();
    assert_eq!(refused(&[FLAGS, &too_long]), "NBD: bad length of an option");
    let endless = option(99, &[]).repeat(100);
    assert_eq!(refused(&[FLAGS, &endless]), "NBD: bad number of options");
    let unknown = option(OPTION_EXPORT_NAME, b"x");
    assert_eq!(refused(&[FLAGS, &unknown]), "NBD: bad name of an export");
    let cut = negotiate(&mut Client::new(&[FLAGS, b"IHAVE"]), EXPORTS).unwrap_err();
    assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_name_longer_than_its_option_is_answered_with_an_error() {
    let lie = [&u32::MAX.to_be_bytes()[..], b"disk"].concat();
    let parts = [FLAGS, &option(OPTION_GO, &lie), &option(OPTION_ABORT, &[])];
    let mut client = Client::new(&parts);
    assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), None);
    assert_eq!(client.hears[18..][12..16], REPLY_INVALID.to_be_bytes());
}

#[test]
fn requests_are_read_one_after_another() {
    let bytes = [request(1, 8192, 3, b"xyz"), request(3, 0, 0, &[]), request(4, 0, u32::MAX, &[])];
    let mut stream = Cursor::new(bytes.concat());
    let mut data = vec![1; 9];
    let write = read_request(&mut stream, &mut data).unwrap().unwrap();
    assert_eq!((write.command, write.cookie), (NbdCommand::Write, 77));
    assert_eq!((write.offset, data.as_slice()), (8192, &b"xyz"[..]));
    assert!(!write.is_durable);
    let flush = read_request(&mut stream, &mut data).unwrap().unwrap();
    assert_eq!((flush.command, data.len()), (NbdCommand::Flush, 0));
    let trim = read_request(&mut stream, &mut data).unwrap().unwrap();
    assert_eq!((trim.command, trim.len), (NbdCommand::Trim, u32::MAX));
}

#[test]
fn a_hostile_request_is_refused() {
    let refused =
        |bytes: Vec<u8>| read_request(&mut Cursor::new(bytes), &mut Vec::new()).unwrap_err();
    assert_eq!(refused(vec![0; 28]).to_string(), "NBD: bad request");
    for command in [0, 1] {
        let error = refused(request(command, 0, LEN_MAX + 1, &[]));
        assert_eq!(error.to_string(), "NBD: bad length of a request");
    }
    let cut = refused(request(1, 0, LEN_MAX, b"little"));
    assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_reply_carries_the_cookie_and_either_data_or_an_error() {
    let sent = |outcome| {
        let mut bytes = Vec::new();
        reply(&mut bytes, 5, outcome).unwrap();
        bytes
    };
    let head = [0x67, 0x44, 0x66, 0x98];
    let good = [&head[..], &[0; 4], &[0, 0, 0, 0, 0, 0, 0, 5], b"ab"].concat();
    assert_eq!(sent(Ok(b"ab")), good);
    assert_eq!(sent(Err(22))[4..8], [0, 0, 0, 22]);
}

/// The kinds of the replies to options in `bytes`, in their order.
fn replies(mut bytes: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    while bytes.len() >= 20 {
        assert_eq!(bytes[..8], OPTION_REPLY_MAGIC.to_be_bytes());
        kinds.push(u32::from_be_bytes(*bytes[12..].first_chunk().unwrap()));
        let len = u32::from_be_bytes(*bytes[16..].first_chunk().unwrap()) as usize;
        bytes = &bytes[20 + len..];
    }
    kinds
}

/// The data of an option for contexts: a name, then queries.
fn asked(name: &str, queries: &[&str]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let mut data = text(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(text(query)));
    data
}

#[test]
fn a_client_that_wants_all_gets_all() {
    let go = [&named("disk")[..4 + 4], &[0, 1, 0, 3]].concat();
    let mut client = Client::new(&[
        FLAGS,
        &option(OPTION_LIST, &[]),
        &option(OPTION_STRUCTURED, &[]),
        &option(OPTION_LIST_CONTEXTS, &asked("disk", &[])),
        &option(OPTION_SET_CONTEXTS, &asked("disk", &["qemu:x", "base:allocation"])),
        &option(OPTION_GO, &go),
    ]);
    let agreed = negotiate(&mut client, FULL).unwrap().unwrap();
    assert_eq!((agreed.is_structured, agreed.has_block_status), (true, true));
    let kinds = replies(&client.hears[18..]);
    let (ack, info, context) = (REPLY_ACK, REPLY_INFO, REPLY_CONTEXT);
    assert_eq!(kinds, [REPLY_SERVER, ack, ack, context, ack, context, ack, info, info, ack]);
    assert_eq!(FULL[0].features.flags(), 0b1110_1101);
}

#[test]
fn what_was_not_offered_is_not_agreed_on() {
    let structured = option(OPTION_STRUCTURED, &[]);
    let context = option(OPTION_SET_CONTEXTS, &asked("disk", &["base:allocation"]));
    let go = option(OPTION_GO, &named("disk"));
    let mut client = Client::new(&[FLAGS, &structured, &context, &go]);
    assert_eq!(negotiate(&mut client, EXPORTS).unwrap(), Some(plain(1)));
    let (no, ack) = (REPLY_UNSUPPORTED, REPLY_ACK);
    assert_eq!(replies(&client.hears[18..]), [no, no, REPLY_INFO, ack]);
    // Contexts before structured replies, with data where there is none, of another export.
    let other = option(OPTION_SET_CONTEXTS, &asked("x", &["base:allocation"]));
    let full = option(OPTION_STRUCTURED, b"x");
    let mut client = Client::new(&[FLAGS, &context, &full, &structured, &other, &go]);
    let agreed = negotiate(&mut client, FULL).unwrap().unwrap();
    assert!(agreed.is_structured && !agreed.has_block_status);
    let kinds = replies(&client.hears[18..]);
    assert_eq!(kinds[..4], [no, REPLY_INVALID, ack, REPLY_UNKNOWN]);
}

#[test]
fn hostile_questions_for_contexts_are_invalid() {
    let whole = asked("disk", &["base:allocation"]);
    let many = [&asked("disk", &[])[..8], &u32::MAX.to_be_bytes()].concat();
    let long = [&asked("disk", &[""])[..12], &u32::MAX.to_be_bytes()].concat();
    let more = [&whole[..], b"x"].concat();
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    for data in cut.chain([many, long, more]) {
        let parts = [FLAGS, &option(OPTION_STRUCTURED, &[]), &option(OPTION_SET_CONTEXTS, &data)];
        let mut client = Client::new(&[&parts[..], &[&option(OPTION_ABORT, &[])]].concat());
        assert_eq!(negotiate(&mut client, FULL).unwrap(), None);
        let kinds = replies(&client.hears[18..]);
        assert_eq!(kinds, [REPLY_ACK, REPLY_INVALID, REPLY_ACK], "{data:?}");
    }
}

#[test]
fn structured_replies_have_their_length_and_end() {
    let sent = |send: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut bytes = Vec::new();
        send(&mut bytes).unwrap();
        assert_eq!(bytes[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        assert_eq!(bytes[8..16], 5u64.to_be_bytes());
        let len = u32::from_be_bytes(*bytes[16..].first_chunk().unwrap()) as usize;
        assert_eq!(bytes.len(), 20 + len);
        (u16::from_be_bytes([bytes[6], bytes[7]]), bytes[20..].to_vec())
    };
    let data = sent(&|out| reply_data(out, 5, 258, b"ab"));
    assert_eq!(data, (1, vec![0, 0, 0, 0, 0, 0, 1, 2, b'a', b'b']));
    assert_eq!(sent(&|out| reply_end(out, 5, Ok(()))), (0, vec![]));
    assert_eq!(sent(&|out| reply_end(out, 5, Err(22))), (32769, vec![0, 0, 0, 22, 0, 0]));
    let status = sent(&|out| reply_status(out, 5, &[(7, false), (1, true)]));
    assert_eq!(status.0, 5);
    assert_eq!(status.1, [0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3]);
}
