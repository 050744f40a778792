//! Waiting on conditions, never for a time.

use std::time::Duration;

use bhav::base::Clock;

/// How long anything here may take on a machine that is busy with other things.
pub const PATIENCE_MS: u64 = 20_000;

/// Polls `condition` until it holds; panics with `what` when it never does.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !condition() {
        assert!(clock.monotonic_ms() < PATIENCE_MS, "never happened: {what}");
        let tick = crossbeam_channel::after(Duration::from_millis(2));
        tick.recv().unwrap();
    }
}
