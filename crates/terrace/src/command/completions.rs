//! `terrace completions SHELL`: the shell's own script, from the one declaration, so that
//! no option can be missing in it.

use crate::args::Cli;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Target;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the completions for `shell`.
pub fn print(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "terrace", &mut script);
    Target::standard().write_data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
