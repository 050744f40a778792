//! Metrics and probes for the operator's machines.
//!
//! They have a listener of their own, so that they are never published with the service. Probes are
//! answered on the edge from memory. Metrics are gathered on the lane `admin`, because that reads
//! `/proc` and sums some thousand counters. Reads atomics and copies only: takes no lock that the
//! edge or a writer waits for.

mod exposition;
mod listener;
mod metrics;
mod probes;
mod process;
pub mod settings;

pub use listener::{Admin, MetricSources};
