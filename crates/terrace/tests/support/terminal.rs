//! A program on a pseudo-terminal: keys in, a screen out, and the terminal's own state after its
//! end. The screen is what a terminal would show of the bytes that were written to it.

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How often a test looks whether something has come; it comes long before, or never.
const LOOKS: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(20);

/// A program that runs on a terminal of its own.
pub struct Terminal {
    pub child: Child,
    master: Option<File>,
    /// Held open, so that what the program made of the terminal can still be asked.
    slave: File,
    before: Termios,
    parser: vt100::Parser,
    /// All that was written to the terminal.
    pub written: Vec<u8>,
}

impl Terminal {
    /// Starts `command` on a terminal of this size, in a session of its own; `None` (with the
    /// reason printed) where that cannot be had.
    pub fn start(command: &Command, width: u16, height: u16) -> Option<Terminal> {
        if !super::has_program("setsid") {
            testkit::skip("setsid");
            return None;
        }
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        ioctl_fionbio(&master, true).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        tcsetwinsize(&master, size(width, height)).unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        let mut on_terminal = Command::new("setsid");
        on_terminal.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => on_terminal.env(name, value),
                None => on_terminal.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            on_terminal.current_dir(directory);
        }
        on_terminal.env("TERM", "xterm-256color");
        let child = on_terminal.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Some(Terminal {
            child,
            master: Some(File::from(master)),
            slave,
            before,
            parser: vt100::Parser::new(cells(height), cells(width), 0),
            written: Vec::new(),
        })
    }

    /// The screen as it is now.
    pub fn screen(&mut self) -> String {
        let mut buffer = [0; 65_536];
        while let Some(Ok(read @ 1..)) = self.master.as_mut().map(|file| file.read(&mut buffer)) {
            self.parser.process(&buffer[..read]);
            self.written.extend(&buffer[..read]);
        }
        self.parser.screen().contents()
    }

    /// The screen when it holds `words` at last.
    #[track_caller]
    pub fn until(&mut self, words: &str) -> String {
        self.until_so(words, |screen| screen.contains(words))
    }

    /// The screen when it is so at last; `what` says how.
    #[track_caller]
    pub fn until_so(&mut self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        for _ in 0..LOOKS {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            sleep(PAUSE);
        }
        let screen = self.screen();
        let _ = self.child.kill();
        panic!("not {what}:\n{screen}");
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        let master = self.master.as_mut().unwrap();
        master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        tcsetwinsize(self.master.as_ref().unwrap(), size(width, height)).unwrap();
        self.screen();
        self.parser.screen_mut().set_size(cells(height), cells(width));
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Takes the terminal away, as a connection that breaks does.
    pub fn hang_up(&mut self) {
        self.master = None;
    }

    pub fn wait(&mut self) -> ExitStatus {
        for _ in 0..LOOKS {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            // One that nobody reads would wait for ever to write.
            self.screen();
            sleep(PAUSE);
        }
        let _ = self.child.kill();
        panic!("it does not end");
    }

    /// It ends with this status and has given the terminal back.
    #[track_caller]
    pub fn ended(&mut self, code: i32) {
        assert_eq!(self.wait().code(), Some(code), "{}", self.screen());
        let after = tcgetattr(&self.slave).unwrap();
        let modes = |termios: &Termios| {
            let own = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
            (termios.local_modes & own, termios.input_modes, termios.output_modes)
        };
        assert_eq!(modes(&after), modes(&self.before));
        for _ in 0..LOOKS {
            self.screen();
            let screen = self.parser.screen();
            if !screen.alternate_screen() && !screen.hide_cursor() {
                return;
            }
            sleep(PAUSE);
        }
        panic!("the terminal was not given back");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

fn size(width: u16, height: u16) -> Winsize {
    Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }
}
