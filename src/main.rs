//! The `bhav` program: allocator, command line, exit code.

use std::process::ExitCode;

use bhav::cli::{self, Commands};

// One line to change when the load tests measure allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let commands = Commands { serve: later, demo: later, sim: later };
    cli::run(std::env::args_os(), &commands)
}

/// Stands for the composition root until it is merged.
fn later(_: bhav::config::Config) -> ExitCode {
    tracing::error!("this build carries the command line only");
    bhav::ops::Exit::Internal.into()
}
