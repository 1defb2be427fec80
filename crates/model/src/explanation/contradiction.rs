//! Two sources of one recording that cannot both be right. `explain` finds them, and lowers the
//! grade of what rests on them.

use serde::{Deserialize, Serialize};

/// Two sources that say what cannot both be true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradiction {
    /// Both, with their numbers, in a clause.
    pub text: String,
    /// Which one is believed, and why; `None` where nothing decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub believed: Option<String>,
    /// The command that would decide; `None` where none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The findings that are inferred because of it, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<String>,
}
