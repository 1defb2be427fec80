//! The end of a served volume: no new user comes to the block device, and the last one may still
//! have it open. A client that asked for it waits for a while.

use super::control::{self, Detached};
use super::export::Export;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a client waits for a program that has the device open.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// Since when the device is given up, and the client that waits for the end.
#[derive(Debug, Default)]
pub(super) struct Ending(Option<(Instant, Option<UnixStream>)>);

impl Ending {
    /// Whether the device is given up.
    pub(super) fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    /// Begins it for a client, unless the device is in use.
    pub(super) fn ask(&mut self, export: &Export, client: UnixStream) {
        match use_of(export) {
            Some(used) => {
                let refused = Some(format!("{used}: unmount it first"));
                control::answer(&client, &Detached { is_proved: false, refused });
            }
            None => self.begin(export, Some(client)),
        }
    }

    /// Begins it if a signal asked for it and the device is not in use.
    pub(super) fn begin_if_asked(&mut self, export: &Export) {
        let is_asked = sys::interrupt::requested() && !self.is_begun();
        if is_asked && use_of(export).is_none() {
            self.begin(export, None);
        }
    }

    fn begin(&mut self, export: &Export, client: Option<UnixStream>) {
        export.begin_end();
        let since = self.0.take().map_or_else(Instant::now, |(since, _)| since);
        self.0 = Some((since, client));
    }

    /// Says to a client that waits that a program still has the device open.
    pub(super) fn answer_late(&mut self, export: &Export) {
        let Some((since, client)) = &mut self.0 else { return };
        if since.elapsed() < CLOSE_WAIT {
            return;
        }
        if let Some(client) = client.take() {
            let device = export.device.path();
            let refused = Some(format!(
                "a program still has {} open: the cache ends when that closes it",
                device.display()
            ));
            control::answer(&client, &Detached { is_proved: false, refused });
        }
    }

    /// Says to a client that waits how it ended.
    pub(super) fn answer(&self, is_proved: bool) {
        if let Some((_, Some(client))) = &self.0 {
            control::answer(client, &Detached { is_proved, refused: None });
        }
    }
}

/// What uses the block device, in words; nothing if it is not ours any more.
fn use_of(export: &Export) -> Option<String> {
    if export.is_there() { export.device.use_of() } else { None }
}
