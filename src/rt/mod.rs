//! Threads, coroutines, lanes and Unix signals. No other module starts or parks threads and
//! coroutines, or handles signals.
//!
//! There are two schedulers. The *edge* is may's: one worker thread for each core, each with its
//! own epoll, runs coroutines, which must never block. Work that can block runs on a [`Lane`]: a
//! pool of named OS threads behind a bounded queue. A coroutine submits a job to a lane and parks;
//! meanwhile its worker runs other coroutines.
//!
//! A coroutine may resume on another thread. So nothing that is bound to a thread (a lock guard, a
//! thread-local borrow, a papaya or ArcSwap guard) is held across a call that parks.

pub(crate) mod arenas;
pub mod coroutines;
mod edge_liveness;
pub(crate) mod group_commit;
pub mod lanes;
pub mod moving;
pub(crate) mod news;
pub(crate) mod outbound;
pub(crate) mod poll;
pub(crate) mod readiness;
pub mod staged;
pub mod threads;
pub(crate) mod unix_signals;

pub(crate) use edge_liveness::EdgeLiveness;
pub use group_commit::Batch;
pub(crate) use group_commit::{BatchSpec, BatchStats, COMMIT_SIZES, Ledger};
pub use lanes::{Lane, LaneError, LaneSpec, Refused, Ticket};
pub(crate) use lanes::{LaneStats, WAIT_BOUNDS_MS};
pub(crate) use news::News;
