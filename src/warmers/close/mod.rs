//! The revaluation of portfolios at the official closing prices: its task (`task`), what is due,
//! the run's progress (`work`), the feeds' prices and the store's jobs.

pub(crate) mod due;
pub(crate) mod jobs;
pub(crate) mod missing;
pub(crate) mod prices;
mod task;
pub(crate) mod work;

pub(super) use prices::TickState;
pub(super) use task::CloseTask;
