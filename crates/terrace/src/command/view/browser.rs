//! Opens the browser of this session, where there is one.
//!
//! Never for root: the screen that root finds is most often somebody else's, and a browser of root's
//! is no gift. Whether it worked is not asked; the address has been printed.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use viewer::Server;

/// What leads to a screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Leads the browser to the page of `server`.
pub fn open(server: &Server) {
    let has_screen = SCREENS
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_screen || sys::process::effective_uid() == 0 {
        return;
    }
    // In a group of its own, so that Ctrl-C ends the server and not the browser.
    let started = server.address_for_once().map(|address| {
        Command::new("xdg-open")
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
    });
    drop(started);
}
