//! What the service reports of itself: the health document, the readings that metrics show, and the
//! verdicts of the probes.
//!
//! The scheduler has a report made once a second, and everyone else reads the last one: a question
//! never waits for a subsystem that is broken. No locks.

mod probes;
mod report;

pub(crate) use probes::{EdgeSeen, Verdict, alive, ready};
pub use report::Report;
pub(crate) use report::reporter;
