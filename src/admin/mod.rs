//! Metrics and probes for operators.
//!
//! They have their own listener, so that they are not published with the service. Probes are
//! answered on the edge from memory. Metrics are gathered on the lane `admin`, because gathering
//! reads `/proc` and sums thousands of counters. It reads atomics and copies only, and takes no
//! lock that the edge or a writer waits for.

mod exposition;
pub mod listener;
mod metrics;

pub use listener::Admin;
pub(crate) use metrics::MetricSources;
