//! What the tests of pages need: Node, two of its packages, a browser. `cargo xtask test` gets
//! them.
//!
//! The packages lie in a cache directory of the user, in versions that are pinned here, so that
//! no test downloads anything.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

/// The packages and their versions: the browser's driver, the type checker. Both run with Node 18,
/// which Debian 12 has.
pub const PACKAGES: [(&str, &str); 2] = [("playwright-core", "1.56.1"), ("typescript", "7.0.2")];

/// The programs that a browser may be called.
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];

/// The directory of the packages; `None` for a user without a home.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let caches = given("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(given("HOME")?).join(".cache")))?;
    Some(caches.join("terrace-web"))
}

/// The folder of the package of this name, in its pinned version.
///
/// # Errors
/// The words for [`crate::skip`].
pub fn package(name: &str) -> Result<PathBuf, String> {
    let missing = |version: &str| format!("the Node package {name} {version} (cargo xtask test)");
    let pinned = PACKAGES.iter().find(|(package, _)| *package == name);
    let (_, version) = pinned.ok_or_else(|| missing("of some version"))?;
    let folder = cache().ok_or("a home directory")?.join("node_modules").join(name);
    let about = std::fs::read_to_string(folder.join("package.json")).unwrap_or_default();
    if !about.contains(&format!("\"version\": \"{version}\"")) {
        return Err(missing(version));
    }
    Ok(folder)
}

/// `node`, not started.
///
/// # Errors
/// The words for [`crate::skip`].
pub fn node() -> Result<Command, String> {
    crate::run("node", &["--version"])?;
    Ok(Command::new("node"))
}

/// The name of a browser that can be driven.
///
/// # Errors
/// The words for [`crate::skip`].
pub fn browser() -> Result<PathBuf, String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .flat_map(|folder| BROWSERS.map(|name| folder.join(name)))
        .find(|program| program.is_file())
        .ok_or_else(|| "chromium".to_owned())
}

/// Asks for `http://HOST:PORT/PATH` as a browser would, and reads the answer to its end: head and
/// body.
///
/// # Errors
/// If no program listens there or the connection breaks.
pub fn get(address: &str) -> std::io::Result<String> {
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
