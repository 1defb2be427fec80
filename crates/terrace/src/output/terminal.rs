//! What the output is written on: how wide it is, and whether colour suits it. Asked once,
//! so that a page is laid out for one width.

use super::style::Style;
use super::target::OutputTarget;
use crate::args::When;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The width of a text that is not written to a terminal.
const USUAL_WIDTH: usize = 80;

/// Below this nothing can be shown; a terminal that claims less is not believed.
const LEAST_WIDTH: usize = 20;

/// The page that a text is laid out for.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub width: usize,
    pub style: Style,
}

impl Page {
    /// The page that `target` offers, given what was asked for by `--color`.
    pub fn of(target: &OutputTarget, color: When) -> Self {
        let is_standard = matches!(target, OutputTarget::Standard);
        Self::on(std::io::stdout(), is_standard && std::io::stdout().is_terminal(), color)
    }

    /// The page that standard error offers: where a verdict goes when standard output belongs
    /// to somebody else.
    pub fn on_standard_error(color: When) -> Self {
        Self::on(std::io::stderr(), std::io::stderr().is_terminal(), color)
    }

    fn on(stream: impl AsFd, terminal: bool, color: When) -> Self {
        let style = Style::new(wants_colour(color, terminal));
        Self { width: width(terminal, stream), style }
    }

    /// A page of `width` columns without colour.
    #[cfg(test)]
    pub fn plain(width: usize) -> Self {
        Self { width, style: Style::new(false) }
    }
}

/// Whether what was asked for by `--color` means colour here.
pub fn wants_colour(color: When, terminal: bool) -> bool {
    match color {
        When::Always => true,
        When::Never => false,
        // https://no-color.org: any value but the empty one.
        When::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

fn width(terminal: bool, stream: impl AsFd) -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let seen = || terminal_size::terminal_size_of(stream);
    let width =
        if terminal { seen().map(|(width, _)| usize::from(width.0)).or(asked) } else { asked };
    width.filter(|width| *width >= LEAST_WIDTH).unwrap_or(USUAL_WIDTH)
}
