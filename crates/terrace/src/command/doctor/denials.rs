//! What security modules refused to this program, by the kernel's messages.
//!
//! Where they cannot be read, that is said: it is another answer than that nothing was refused.

use machine::denials::OwnProcess;
use model::denial::{DenialReport, MessagesRead};
use model::doctor::Surroundings;
use model::recording::date_and_time;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::ErrorKind;
use sys::local_time::utc_offset_s;

pub(super) fn read(here: &Surroundings, start_unix_s: i64) -> (Vec<DenialReport>, MessagesRead) {
    // The kernel logs the numbers of the machine.
    let own = here
        .first_process_namespace
        .then(|| OwnProcess { pid: std::process::id(), since_unix_s: start_unix_s });
    match machine::denials::read(own) {
        Ok((denials, messages)) => {
            let time = |unix_s| date_and_time(unix_s, utc_offset_s(unix_s));
            (explain::doctor::denial_reports(denials, here, time), messages)
        }
        Err(error) => {
            let is_refused = error.kind == ErrorKind::Denied;
            (Vec::new(), explain::doctor::unread(&error.to_string(), is_refused))
        }
    }
}

/// Whole seconds since 1970, by the clock that the kernel's audit takes too.
pub(super) fn now_unix_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().cast_signed()
}
