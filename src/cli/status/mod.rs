//! `bhav status`: the state of the running service, what is wrong and what to do, on one screen.
//! And `bhav healthcheck`, one probe for a supervisor.
//!
//! Main thread. Queries the service at its listen address and changes nothing. The exit code is 0,
//! 1 or 2 for ok, degraded and down.

mod command;
mod facts;
mod healthcheck;
mod report;
mod screen;

pub(super) use command::{command, run};
pub(super) use healthcheck::{healthcheck, healthcheck_command};
