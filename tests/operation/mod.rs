//! Operating the service: health, metrics, reload, restart, stop, and the supervisor.

mod handover;
mod health;
mod kill;
mod log_lines;
mod metrics;
mod monitoring;
mod probes;
pub mod process;
mod proxies;
mod proxies_unstarted;
mod public_demo;
mod reload;
mod restart;
mod restart_under_load;
mod stopping;
mod supervised;
mod supervisor;
mod warmer_metrics;
