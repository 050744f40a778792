//! The `bhav` program: allocator, command line, exit code.

use std::process::ExitCode;

use bhav::app;
use bhav::cli::{self, Commands};

// One line to change when the load tests measure allocators.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let commands = Commands { serve: app::serve, demo: app::demo, sim: app::sim };
    cli::run(std::env::args_os(), &commands)
}
