//! `terrace`: the face of the workspace, and the only crate that prints or exits.
//!
//! What was typed (`args`) becomes a plan (`command`), a probe of `measure` does the
//! plan, and what it returns is rendered (`output`). The exit status is decided here.

mod args;
mod command;
mod error;
mod exit;
mod output;
mod service;

use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    sys::interrupt::reset_broken_pipe();
    // It cannot fail on Linux; elsewhere the limit kills, as it does by default.
    let _ = sys::signals::survive_file_size_limit();
    ExitCode::from(run())
}

/// Parses, does and reports: the one place where an exit status comes from.
fn run() -> Exit {
    let cli = match args::parse(std::env::args_os()) {
        Ok(args::Parsed::Run(cli)) => cli,
        Ok(args::Parsed::Show(text)) => return output::show(&text),
        Err(error) => return output::complain(&error),
    };
    match command::run(&cli) {
        Ok(exit) => exit,
        Err(error) => output::complain(&error),
    }
}
