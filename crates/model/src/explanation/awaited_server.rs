//! A process of the same machine that a command mostly waited for: what is slow is to be seen
//! there.

use serde::{Deserialize, Serialize};

/// The server that answered a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AwaitedServer {
    /// Its number; of one that forks for each connection, that of the first process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The part of all thread time in which the command waited for an answer, 0 to 1.
    pub share: f64,
    /// That in a sentence.
    pub text: String,
    /// The command that watches the server.
    pub command: String,
}
