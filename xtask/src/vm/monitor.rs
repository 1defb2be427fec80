//! QEMU's monitor (QMP), as far as it is needed: pulling a disk out, and putting it in again.
//!
//! One JSON object a line; events can come in between.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// QEMU answers within milliseconds, unless it hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A disk that was pulled out is in use for a moment longer: so often it is put in again, with this
/// pause.
const PLUG_TRIES: usize = 100;
const PLUG_PAUSE: Duration = Duration::from_millis(20);

/// No answer is longer.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// More lines than QEMU has events between a command and its answer.
const LINES_MAX: usize = 100;

/// A connection to QEMU's monitor.
#[derive(Debug)]
pub(super) struct Monitor {
    stream: BufReader<UnixStream>,
    has_greeted: bool,
}

impl Monitor {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream), has_greeted: false }
    }

    /// Pulls out the device called `name`, as far as QEMU is concerned; what QEMU has against it.
    pub(super) fn unplug(&mut self, name: &str) -> Result<(), String> {
        self.greet()?;
        self.command(&json!({"execute": "device_del", "arguments": {"id": name}}))
    }

    /// Puts a device in; what QEMU has against it.
    pub(super) fn plug(&mut self, device: &Value) -> Result<(), String> {
        self.greet()?;
        let mut outcome = Ok(());
        for _ in 0..PLUG_TRIES {
            outcome = self.command(&json!({"execute": "device_add", "arguments": device}));
            if outcome.is_ok() {
                break;
            }
            thread::sleep(PLUG_PAUSE);
        }
        outcome
    }

    fn greet(&mut self) -> Result<(), String> {
        if !self.has_greeted {
            self.command(&json!({"execute": "qmp_capabilities"}))?;
            self.has_greeted = true;
        }
        Ok(())
    }

    fn command(&mut self, command: &Value) -> Result<(), String> {
        let socket = self.stream.get_mut();
        socket
            .set_read_timeout(Some(ANSWER_LIMIT))
            .and_then(|()| writeln!(socket, "{command}"))
            .map_err(|error| error.to_string())?;
        for _ in 0..LINES_MAX {
            let mut line = String::new();
            let mut limited = self.stream.by_ref().take(LINE_BYTES_MAX);
            limited.read_line(&mut line).map_err(|error| error.to_string())?;
            let answer: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            if let Some(error) = answer.get("error") {
                return Err(error["desc"].as_str().unwrap_or("refused").to_owned());
            }
            if answer.get("return").is_some() {
                return Ok(());
            }
        }
        Err("no answer".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_passed_over_and_a_refusal_is_an_error() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(here);
        let answers = [
            r#"{"QMP": {"version": {}}}"#,
            r#"{"return": {}}"#,
            r#"{"event": "X"}"#,
            r#"{"error": {"class": "DeviceNotFound", "desc": "Device 'x' not found"}}"#,
            r#"{"return": {}}"#,
            "nonsense",
        ];
        writeln!(there, "{}", answers.join("\n")).unwrap();
        assert_eq!(monitor.unplug("x"), Err("Device 'x' not found".to_owned()));
        assert_eq!(monitor.unplug("y"), Ok(()));
        assert!(monitor.unplug("z").is_err());
        drop(monitor);
        let mut asked = String::new();
        there.read_to_string(&mut asked).unwrap();
        let asked: Vec<Value> =
            asked.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(asked[0]["execute"], "qmp_capabilities");
        assert_eq!(asked[2]["arguments"]["id"], "y");
        assert_eq!(asked.len(), 4);
    }
}
