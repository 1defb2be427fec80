//! Names in a manifest: visible ASCII as it is, all else and the backslash as `\xHH`. So a manifest
//! is ASCII and has no tab or line end in a name.

/// `bytes` as the text of a field.
pub(in crate::ramdisk) fn escape(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            0x21..=0x7e if *byte != b'\\' => text.push(char::from(*byte)),
            _ => {
                text.push_str("\\x");
                text.push(char::from(DIGITS[usize::from(byte >> 4)]));
                text.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    text
}

/// The bytes of a field; `None` for an escape of another form.
pub(in crate::ramdisk) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'\\' => {
                let (digits, after) = after.strip_prefix(b"x")?.split_at_checked(2)?;
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = after;
            }
            0x21..=0x7e => bytes.push(*first),
            _ => return None,
        }
    }
    Some(bytes)
}

/// `bytes` in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a hexadecimal text.
pub(super) fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}
