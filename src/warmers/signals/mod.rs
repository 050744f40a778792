//! Daily candles of the universe and the signals found in them: the task of the scheduler's thread
//! (`task`), what it asks the feeds for, and the jobs of the lane `signals`.

pub(super) mod arrivals;
mod at_hand;
pub(super) mod done;
pub(crate) mod fetch;
mod histories;
mod outcomes;
pub(crate) mod publication;
mod rebuild;
mod symbol;
mod task;
mod work;

pub(super) use fetch::TickState;
pub(super) use task::SignalsTask;
