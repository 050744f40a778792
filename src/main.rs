//! The `bhav` program: command line and exit code.
//!
//! The allocator is the system's, by measurement (ARCHITECTURE.md): the hot path does not allocate,
//! and another one costs a dependency and memory.

use std::process::ExitCode;

use bhav::app;
use bhav::cli::{self, Commands};

fn main() -> ExitCode {
    let commands =
        Commands { serve: app::serve, demo: app::demo, sim: app::sim, evaluate: app::evaluate };
    cli::run(std::env::args_os(), &commands)
}
