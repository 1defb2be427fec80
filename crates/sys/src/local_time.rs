//! How far the local clock is from universal time at an instant.
//!
//! Owns `localtime_r`; the C library reads the time zone of the environment or the system.

use std::mem::MaybeUninit;

/// Seconds east of Greenwich of the local clock at `unix_s` seconds since 1970; 0 where the
/// C library cannot say.
#[must_use]
pub fn utc_offset_s(unix_s: i64) -> i32 {
    // The type of C's time is 64 bits wide wherever this program is built.
    let instant: libc::time_t = unix_s;
    let mut broken_down = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both point to live memory of the right type for the whole call. The function
    // reads the environment: this program never changes its own after its start.
    let answer = unsafe { libc::localtime_r(&raw const instant, broken_down.as_mut_ptr()) };
    if answer.is_null() {
        return 0;
    }
    // SAFETY: the call succeeded and filled it; all-zero would be valid as well.
    let broken_down = unsafe { broken_down.assume_init() };
    i32::try_from(broken_down.tm_gmtoff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::utc_offset_s;
    use std::process::Command;

    #[test]
    fn agrees_with_date() {
        let date = Command::new("date").args(["-d", "@1700000000", "+%z"]).output();
        let Ok(output) = date else {
            return testkit::skip("the program date");
        };
        let shown = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let seconds = utc_offset_s(1_700_000_000);
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        let ours = format!("{sign}{:02}{:02}", minutes / 60, minutes % 60);
        assert_eq!(ours, shown);
    }

    #[test]
    fn no_instant_is_absurd_enough_to_crash() {
        assert_eq!(utc_offset_s(i64::MAX), 0);
        assert_eq!(utc_offset_s(i64::MIN), 0);
    }
}
