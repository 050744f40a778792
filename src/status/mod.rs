//! The service's report on itself: the health document, the values that metrics show, and the
//! results of the probes.
//!
//! The scheduler makes a report once a second, and every request reads the last one. So no request
//! waits for a broken subsystem, and nothing takes a lock.

mod probes;
mod report;

pub(crate) use probes::{EdgeSeen, Verdict, alive, ready};
pub use report::Report;
pub(crate) use report::reporter;
