//! Runs a handler's slow work on a lane of threads, while the request parks.

use crate::api::portfolio_errors::portfolio_busy;
use crate::http::Problem;
use crate::rt::{Lane, LaneError};

/// Longest wait for the computation of a response after its rows were read.
pub(super) const COMPUTE_DEADLINE_MS: u64 = 2_000;

/// Runs `work` on the portfolio lane and parks until it has ended. A job in the lane's queue holds
/// its rows, some tens of KiB for a usual portfolio.
pub(in crate::api) fn compute<T: Send + 'static>(
    lane: &Lane,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    on(lane, COMPUTE_DEADLINE_MS, portfolio_busy, portfolio_busy, work)
}

/// Runs `work` on `lane` and parks until it has ended. The answer is `busy` if the lane is full or
/// closing, and `late` if the deadline passes.
pub(in crate::api) fn on<T: Send + 'static>(
    lane: &Lane,
    deadline_ms: u64,
    busy: fn() -> Problem,
    late: impl FnOnce() -> Problem,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match lane.submit(deadline_ms, work).map_err(|_| busy())?.wait() {
        Ok(done) => done,
        Err(error) => Err(not_done(error, busy, late)),
    }
}

/// The answer if a job on a lane did not finish.
pub(super) fn not_done(
    error: LaneError,
    busy: fn() -> Problem,
    late: impl FnOnce() -> Problem,
) -> Problem {
    match error {
        LaneError::Late => late(),
        LaneError::Closed => busy(),
        LaneError::Panicked => Problem::internal().because(error),
    }
}
