//! The only place that starts threads and coroutines, parks them, or hears signals.
//!
//! Two schedulers live side by side. The *edge* is may's: one worker per core, each with its own
//! epoll, running stackful coroutines that must never block. Everything that can block runs on a
//! [`Lane`]: a bounded pool of named OS threads. A coroutine hands work to a lane and parks; its
//! worker goes on.
//!
//! Rules that this module exists to make possible: a coroutine may wake on another thread, so
//! nothing thread-bound (a lock guard, a thread-local borrow, a cache view) is held over a call
//! that parks.

pub mod coroutines;
pub mod group_commit;
pub mod lanes;
pub mod liveness;
pub mod threads;
pub mod unix_signals;

pub use group_commit::{Batch, BatchSpec, BatchStats, COMMIT_SIZES, Ledger};
pub use lanes::{Lane, LaneError, LaneSpec, LaneStats, Refused, Ticket, WAIT_BOUNDS_MS};
pub use liveness::EdgeLiveness;
