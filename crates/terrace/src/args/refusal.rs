//! Refused command lines in this program's own words: one line and one hint.
//!
//! `clap` reports an error as a structure and as a page of text. Only the structure is used, so
//! that every refusal has the same shape.

use crate::error::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The refusal `error` of the command line of `command` (`measure memcpy`) in one line.
pub fn explain(error: &clap::Error, command: &str) -> Error {
    let refused = Error::usage(reason(error, command)).during(command);
    match suggestion(error) {
        Some(similar) => refused.hint(format!("did you mean `{similar}`?")),
        None => refused.hint(see_help(error, command)),
    }
}

fn reason(error: &clap::Error, command: &str) -> String {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let name = argument.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
    match error.kind() {
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string);
            format!("{name} `{value}`: {}", why.unwrap_or_else(|| "not accepted".to_owned()))
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{name} needs a value"),
        ErrorKind::InvalidValue => {
            format!("{name} `{value}`: not one of {}", list(error, ContextKind::ValidValue))
        }
        ErrorKind::UnknownArgument if name.starts_with('-') => format!("unknown option `{name}`"),
        ErrorKind::UnknownArgument => format!("unexpected `{argument}`"),
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("unknown {} `{word}`", noun(command))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("no {} given", noun(command))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg);
            format!("{} is missing", missing.replace(['<', '>'], ""))
        }
        ErrorKind::ArgumentConflict => {
            let other = list(error, ContextKind::PriorArg);
            format!("{argument} cannot be used with {other}")
        }
        _ => first_line(error),
    }
}

/// What a word at this place would be.
fn noun(command: &str) -> &'static str {
    match command {
        "measure" => "probe",
        "warm" | "lab" => "action",
        "lab run" => "experiment",
        _ => "command",
    }
}

fn suggestion(error: &clap::Error) -> Option<String> {
    [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| text(error, kind))
}

fn see_help(error: &clap::Error, command: &str) -> String {
    let nothing_named = matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    match (nothing_named, command) {
        (true, "") => "start with `terrace survey`; `terrace --help` lists all commands".to_owned(),
        (_, "") => "`terrace --help` lists all commands".to_owned(),
        _ => format!("see `terrace {command} --help`"),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

fn list(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::String(text)) => text.clone(),
        _ => "another option".to_owned(),
    }
}

fn first_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}
