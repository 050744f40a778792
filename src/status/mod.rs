//! The service's report on itself: the health document with what is wrong and what to do, the
//! values that metrics show, and the results of the probes.
//!
//! The scheduler makes a report once a second, and every request reads the last one. So no request
//! waits for a broken subsystem, and nothing takes a lock.

mod day;
pub(crate) mod diagnoses;
mod probes;
mod report;
pub(crate) mod troubles;

pub(crate) use probes::{EdgeSeen, Verdict, alive, ready};
pub use report::Report;
pub(crate) use report::reporter;
