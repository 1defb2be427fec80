//! The text forms that several kernel files share.
//!
//! Pure functions on text; whatever is malformed is skipped or `None`, nothing panics.

/// The highest CPU number believed; kernels are built for at most 8,192.
const MAX_CPU: usize = 65_535;

/// "0-3,8" as numbers, ascending and without repeats; parts that are no numbers are skipped.
pub(crate) fn cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<usize>()) else {
            continue;
        };
        cpus.extend(first..=last.min(MAX_CPU));
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The word in brackets of "always [madvise] never"; the only word where none is marked.
pub(crate) fn selected(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let marked = words.clone().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    marked.or_else(|| words.next().filter(|_| words.next().is_none()))
}

/// "32K", "1024K", "8M" or plain bytes.
pub(crate) fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        b'G' | b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The number behind `key` in lines of the form "key 123" or "key: 123 kB"; units are ignored.
pub(crate) fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let after_key = line.strip_prefix(key)?;
        let value = after_key.strip_prefix(':').or_else(|| after_key.strip_prefix([' ', '\t']))?;
        value.split_whitespace().next()?.parse().ok()
    })
}

/// The same for files that count in units of 1,024 bytes, as bytes.
pub(crate) fn kib_of(text: &str, key: &str) -> Option<model::Bytes> {
    value_of(text, key)?.checked_mul(1024).map(model::Bytes)
}

/// "254:0" as device numbers.
pub(crate) fn device_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Undoes the `\040` escapes of mount tables and /proc/swaps.
pub(crate) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let code = if first == b'\\' { octal(tail) } else { None };
        match code {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

/// Three octal digits that make a byte.
fn octal(text: &[u8]) -> Option<u8> {
    let digits = text.get(..3)?;
    let value = digits.iter().try_fold(0u32, |value, digit| {
        (b'0'..=b'7').contains(digit).then(|| value * 8 + u32::from(digit - b'0'))
    })?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("8,0-1,1"), [0, 1, 8]);
        assert!(cpu_list("").is_empty());
        assert!(cpu_list("3-1,x,-").is_empty());
        assert_eq!(cpu_list("65534-4294967295").len(), 2, "a wild range stays bounded");
    }

    #[test]
    fn selected_words() {
        assert_eq!(selected("always [madvise] never\n"), Some("madvise"));
        assert_eq!(selected("none\n"), Some("none"));
        assert_eq!(selected("always madvise"), None);
        assert_eq!(selected(""), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("48K\n"), Some(48 << 10));
        assert_eq!(size_bytes("32M"), Some(32 << 20));
        assert_eq!(size_bytes("512"), Some(512));
        assert_eq!(size_bytes("K"), None);
        assert_eq!(size_bytes("99999999999999999G"), None);
    }

    #[test]
    fn keys_match_whole_words_only() {
        let text = "MemFree:  5 kB\nMem: 1\ncache 7\ncached 8\n";
        assert_eq!(value_of(text, "Mem"), Some(1));
        assert_eq!(value_of(text, "cache"), Some(7));
        assert_eq!(kib_of(text, "MemFree"), Some(model::Bytes(5120)));
        assert_eq!(value_of(text, "absent"), None);
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescape(br"\9\04\777"), br"\9\04\777");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            cpu_list(&text);
            selected(&text);
            size_bytes(&text);
            value_of(&text, "a");
            device_numbers(&text);
            prop_assert!(unescape(&bytes).len() <= bytes.len());
        }

        #[test]
        fn escaping_is_undone(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let escaped: Vec<u8> =
                bytes.iter().flat_map(|byte| format!("\\{byte:03o}").into_bytes()).collect();
            prop_assert_eq!(unescape(&escaped), bytes);
        }

        #[test]
        fn cpu_lists_hold_what_was_listed(cpus in prop::collection::btree_set(0usize..4096, 1..20)) {
            let text = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(cpu_list(&text), cpus.into_iter().collect::<Vec<_>>());
        }
    }
}
