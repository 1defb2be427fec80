//! Stacks of waits: which state each stands for goes back into the kernel; time that was counted
//! before the answer came is moved.

use super::objects::{Maps, kernel_state};
use super::sums::Sums;
use crate::trace::event::State;

/// For so many readings time may still have been counted without a class.
const READINGS: u8 = 3;

/// A stack whose state is known since a moment ago.
#[derive(Debug)]
struct Understood {
    id: u32,
    state: State,
    moved_ticks: u64,
    is_answered: bool,
    readings: u8,
}

/// Stacks that were met.
#[derive(Debug, Default)]
pub struct Stacks {
    recent: Vec<Understood>,
}

impl Stacks {
    /// A stack that was not met before stands for a state.
    pub fn meet(&mut self, id: u32, state: State) {
        let (is_answered, readings) = (false, READINGS);
        self.recent.push(Understood { id, state, moved_ticks: 0, is_answered, readings });
    }

    /// Whether stacks were met that the kernel has no answer for yet.
    pub fn has_new(&self) -> bool {
        self.recent.iter().any(|stack| !stack.is_answered)
    }

    /// Answers the kernel what is new, and moves time that it counted meanwhile.
    ///
    /// # Errors
    /// As of the maps.
    pub fn settle(&mut self, maps: &mut Maps, sums: &mut Sums) -> sys::Result<()> {
        for stack in &mut self.recent {
            if !stack.is_answered {
                maps.stack_states.put(stack.id, kernel_state(stack.state))?;
                stack.is_answered = true;
            }
            let [ticks] = maps.stack_ticks.get(stack.id)?;
            sums.move_to(stack.state, ticks.wrapping_sub(stack.moved_ticks));
            stack.moved_ticks = ticks;
            stack.readings = stack.readings.saturating_sub(1);
        }
        self.recent.retain(|stack| stack.readings > 0);
        Ok(())
    }
}
