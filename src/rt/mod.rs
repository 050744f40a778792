//! Threads, coroutines and lanes. The only module that starts or parks them, or hears signals.
//!
//! Two schedulers live side by side. The *edge* is may's: one worker per core, each with its own
//! epoll, running coroutines with their own stacks, which must never block. Work that can block
//! runs on a [`Lane`]: a pool of named OS threads behind a bounded queue. A coroutine hands a job
//! to a lane and parks; its worker goes on.
//!
//! A coroutine may wake on another thread. So nothing that is bound to a thread (a lock guard, a
//! thread-local borrow, a cache view) is held over a call that parks.

pub mod coroutines;
pub mod group_commit;
pub mod lanes;
pub mod liveness;
pub mod readiness;
pub mod threads;
pub mod unix_signals;

pub use group_commit::{Batch, BatchSpec, BatchStats, COMMIT_SIZES, Ledger};
pub use lanes::{Lane, LaneError, LaneSpec, LaneStats, Refused, Ticket, WAIT_BOUNDS_MS};
pub use liveness::EdgeLiveness;
