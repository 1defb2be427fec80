//! Which versions of the C library a program needs, read from its dynamic symbols by `readelf`. A
//! version that the oldest system lacks would keep it from starting there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::tools;
use crate::error::Error;
use crate::process;

/// Prints a thousand lines.
const LIMIT: Duration = Duration::from_secs(60);

/// A symbol that a program takes from a library, with the version that it was linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededSymbol {
    /// Its name.
    pub name: String,
    /// Of glibc: `(2, 28)`.
    pub glibc: (u32, u32),
}

/// The symbols of glibc that the program at `path` needs.
///
/// # Errors
/// If readelf is missing, or it is not a program.
pub fn needed_symbols(path: &Path) -> Result<Vec<NeededSymbol>, Error> {
    let mut command = Command::new(tools::either(&["readelf", "llvm-readelf"], "binutils")?);
    command.args(["-W", "--dyn-syms"]).arg(path).env("LC_ALL", "C");
    let said = process::run(command, LIMIT)?.success()?.stdout;
    let symbols: Vec<NeededSymbol> = said.lines().filter_map(needed).collect();
    if symbols.is_empty() {
        let text = format!("{}: no symbol of glibc is needed by it", path.display());
        return Err(Error::Failed(text));
    }
    Ok(symbols)
}

/// `12: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND memcpy@GLIBC_2.14 (3)`.
fn needed(line: &str) -> Option<NeededSymbol> {
    let (_, symbol) = line.split_once(" UND ")?;
    let (name, version) = symbol.split_whitespace().next()?.split_once('@')?;
    let mut numbers = version.trim_start_matches('@').strip_prefix("GLIBC_")?.split('.');
    let glibc = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(NeededSymbol { name: name.to_owned(), glibc })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_symbol_that_is_needed_has_its_version() {
        let line = "   12: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND ";
        let of = |symbol: &str| needed(&format!("{line}{symbol}")).map(|one| one.glibc);
        assert_eq!(of("memcpy@GLIBC_2.14 (3)"), Some((2, 14)));
        assert_eq!(of("stat@GLIBC_2.2.5 (2)"), Some((2, 2)));
        assert_eq!(of("_Unwind_Resume@GCC_3.0 (9)"), None);
        assert_eq!(of("weak"), None);
        assert_eq!(needed("   13: 00001 0 FUNC GLOBAL DEFAULT 14 own@@GLIBC_2.28"), None);
    }

    #[test]
    fn a_running_program_needs_what_its_loader_found() {
        if process::find("readelf").is_none() {
            return testkit::skip("readelf (binutils)");
        }
        let own = std::env::current_exe().unwrap();
        let symbols = needed_symbols(&own).unwrap();
        let has = |name: &str| symbols.iter().any(|one| one.name == name);
        assert!(has("malloc") && has("memcpy"), "{symbols:?}");
        assert!(symbols.iter().all(|one| one.glibc.0 == 2));
        assert!(needed_symbols(Path::new("/etc/hostname")).is_err());
    }
}
