//! Plays seeded days (`tests/days`): the service, its brokers and its disk in one thread.
//!
//! ```sh
//! cargo run --release --example bhav-sim-days -- --days 1000 --seed 1
//! ```
//!
//! Each broken promise is printed with its seed and the last events. `--short` plays the short days
//! of the test suite.

// The days are written as tests.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/days/mod.rs"]
mod days;

use std::process::ExitCode;

use bhav::base::Clock;
use days::day::{Length, play};

fn main() -> ExitCode {
    let (mut days, mut seed, mut length) = (100, 1, Length::Long);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let number = |value: Option<String>| value.and_then(|value| value.parse::<u64>().ok());
        match arg.as_str() {
            "--days" => days = number(args.next()).expect("--days N"),
            "--seed" => seed = number(args.next()).expect("--seed S"),
            "--short" => length = Length::Short,
            other => {
                eprintln!("{other}: --days N, --seed S and --short are known");
                return ExitCode::from(64);
            }
        }
    }
    // What a task panics with is in the report.
    std::panic::set_hook(Box::new(|_| {}));
    let (clock, mut failed) = (Clock::system(), 0);
    for seed in seed..seed + days {
        match play(seed, length) {
            Ok(report) if days == 1 => println!("{report:#?}"),
            Ok(_) => {}
            Err(failure) => {
                failed += 1;
                println!("{failure}\n");
            }
        }
    }
    let took_ms = clock.monotonic_ms();
    println!("{days} days, {failed} failed, {} ms a day", took_ms / days.max(1));
    ExitCode::from(u8::from(failed > 0))
}
