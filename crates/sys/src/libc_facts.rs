//! What the C library says of itself: its version and the cache sizes that it believes in.
//!
//! Its memcpy chooses its method by these sizes, so a wrong claim explains a slow copy.

/// A cache size as the C library claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheClaim {
    /// 1 for the first data cache, 2, 3.
    pub level: u8,
    /// Claimed size.
    pub bytes: u64,
}

/// The C library and its version, as "glibc 2.36"; `None` where it does not say (musl).
#[must_use]
pub fn version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the C library answers with a pointer to its own constant string, which is
        // terminated and lives as long as the process.
        let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        text.to_str().ok().map(|version| format!("glibc {version}"))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// The data and unified caches that the C library claims, first level first; absent ones
/// (it answers 0 or -1) are left out.
#[must_use]
pub fn cache_claims() -> Vec<CacheClaim> {
    #[cfg(target_env = "gnu")]
    {
        // glibc numbers them in steps of three (size, associativity, line) from the first data
        // cache.
        let names = [
            (1, libc::_SC_LEVEL1_DCACHE_SIZE),
            (2, libc::_SC_LEVEL1_DCACHE_SIZE + 3),
            (3, libc::_SC_LEVEL1_DCACHE_SIZE + 6),
        ];
        names
            .into_iter()
            .filter_map(|(level, name)| {
                // SAFETY: takes a number, touches no memory of ours.
                let answer = unsafe { libc::sysconf(name) };
                let bytes = u64::try_from(answer).ok().filter(|bytes| *bytes > 0)?;
                Some(CacheClaim { level, bytes })
            })
            .collect()
    }
    #[cfg(not(target_env = "gnu"))]
    Vec::new()
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn the_library_names_itself() {
        let text = version().unwrap();
        let number = text.strip_prefix("glibc 2.").unwrap();
        assert!(number.chars().all(|c| c.is_ascii_digit() || c == '.'), "{text}");
    }

    #[test]
    fn claims_are_the_ones_getconf_prints() {
        let Ok(output) = std::process::Command::new("getconf").arg("-a").output() else {
            println!("skipped: needs getconf");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let printed = |name: &str| -> u64 {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
        };
        let claimed = |level| {
            cache_claims().iter().find(|claim| claim.level == level).map_or(0, |claim| claim.bytes)
        };
        assert_eq!(claimed(1), printed("LEVEL1_DCACHE_SIZE"));
        assert_eq!(claimed(2), printed("LEVEL2_CACHE_SIZE"));
        assert_eq!(claimed(3), printed("LEVEL3_CACHE_SIZE"));
    }
}
