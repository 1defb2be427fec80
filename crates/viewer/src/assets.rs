//! The files of `web/` that a page is made of, in the order that it needs them.
//!
//! Each module comes after what it imports. uPlot is vendored and untouched: a script that
//! makes the one name `uPlot`, which the modules use as it is and never import.

/// The style sheet of a recording's page.
pub const RECORDING_STYLE: &str = concat!(
    include_str!("../web/vendor/uplot/uPlot.min.css"),
    "\n",
    include_str!("../web/page.css"),
    "\n",
    include_str!("../web/differences.css"),
    "\n",
    include_str!("../web/recording.css"),
);

/// The modules of a recording's page; the last one starts it.
pub const RECORDING_MODULES: &[&str] = &[
    include_str!("../web/vendor/uplot/uPlot.iife.min.js"),
    include_str!("../web/dom.js"),
    include_str!("../web/format.js"),
    include_str!("../web/decode.js"),
    include_str!("../web/charts.js"),
    include_str!("../web/questions.js"),
    include_str!("../web/bars.js"),
    include_str!("../web/findings.js"),
    include_str!("../web/moments.js"),
    include_str!("../web/differences.js"),
    include_str!("../web/compare.js"),
    include_str!("../web/counters.js"),
    include_str!("../web/live.js"),
    include_str!("../web/who.js"),
    include_str!("../web/overlay.js"),
    include_str!("../web/recording.js"),
];
