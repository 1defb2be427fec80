//! Two sides, compared: which figures differ by more than noise, and what made the difference.
//!
//! Many runs of both sides are judged by ranks, with an interval by drawing runs anew
//! (`judge`). Single surveys are judged by how much kept surveys of their machine varied
//! (`surveys`). A difference in time is split into parts that add up to it (`split`), and
//! two recordings can be laid beside each other by the work done (`progress`). Recordings of what
//! runs on have no length of their own: `steady` compares their rates. `proof` is
//! the card of a claim. Pure: explanations, recordings and surveys in, a comparison out.

mod judge;
mod progress;
mod proof;
mod recordings;
mod sentence;
mod split;
mod steady;
mod surveys;

pub use progress::{NotAligned, aligned};
pub use proof::{Asked, card};
pub use recordings::recordings;
pub use sentence::worse;
pub use steady::{SteadyRun, rates, steady_run};
pub use surveys::surveys;
