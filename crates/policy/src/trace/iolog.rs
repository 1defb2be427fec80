//! The logs of `fio --write_iolog`: a first line with the version, then `file action [offset
//! length]`, in version 3 with the time in microseconds before.

use super::{RawPlace, RawRequest, number, shortened};

const MICROSECOND_NS: u64 = 1000;

/// What lines above have said.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    version: u8,
    /// The sum of all waits of version 2.
    waited_us: u64,
}

impl State {
    /// Decodes one line; `None` if it neither reads nor writes.
    pub(super) fn decode<'t>(&mut self, line: &'t str) -> Result<Option<RawRequest<'t>>, String> {
        if self.version == 0 {
            self.version = match line {
                "fio version 2 iolog" => 2,
                "fio version 3 iolog" => 3,
                _ => return Err("it does not begin with \"fio version 2 iolog\" or 3".to_owned()),
            };
            return Ok(None);
        }
        let mut fields = line.split_ascii_whitespace();
        let time_us = match self.version {
            2 => None,
            _ => Some(number(fields.next(), "time")?),
        };
        let (Some(file), Some(action)) = (fields.next(), fields.next()) else {
            return Err("its action is missing".to_owned());
        };
        let is_write = match action {
            "read" => false,
            "write" => true,
            "wait" if self.version == 2 => {
                let wait_us = number(fields.next(), "wait")?;
                self.waited_us = self.waited_us.saturating_add(wait_us);
                return Ok(None);
            }
            "add" | "open" | "close" | "sync" | "datasync" | "trim" => return Ok(None),
            other => return Err(format!("its action is unknown: {:?}", shortened(other))),
        };
        let offset = number(fields.next(), "offset")?;
        let bytes = number(fields.next(), "length")?;
        let at_ns = time_us.unwrap_or(self.waited_us).saturating_mul(MICROSECOND_NS);
        let place = RawPlace::Range { offset, bytes };
        Ok(Some(RawRequest { at_ns, file, place, is_write, latency_ns: None }))
    }
}
