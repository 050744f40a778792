//! What an operator's machines ask: metrics, and whether the service lives and can serve.
//!
//! A listener of its own, so that it is never published with the service. Probes are answered on
//! the edge from memory; the metrics are gathered on a lane, because that reads `/proc` and sums
//! some thousand counters. Reads atomics and copies only: must never hold anything that the edge or
//! a writer waits for.

mod exposition;
mod listener;
mod metrics;
mod probes;
mod process;

pub use listener::{Admin, MetricSources};
