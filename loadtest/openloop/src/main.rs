//! Command line entry of the load generator.

use std::process::ExitCode;

use clap::Parser;
use openloop::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("openloop: {error}");
            ExitCode::FAILURE
        }
    }
}
