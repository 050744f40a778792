//! The `bhav` program: command line and exit code.
//!
//! The allocator is the system's, by measurement (ARCHITECTURE.md): the hot path does not allocate,
//! and another one costs memory. What is freed is wiped first, so that no library's buffer keeps a
//! credential that passed through it.

use std::alloc::System;
use std::process::ExitCode;

use bhav::app;
use bhav::cli::{self, Commands};
use zeroizing_alloc::ZeroAlloc;

#[global_allocator]
static ALLOCATOR: ZeroAlloc<System> = ZeroAlloc(System);

fn main() -> ExitCode {
    let commands = Commands {
        serve: app::serve,
        demo: app::demo,
        public_demo: app::public_demo,
        sim: app::sim,
    };
    cli::run(std::env::args_os(), &commands)
}
