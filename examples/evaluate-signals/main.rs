//! Measures what candlestick signals were worth on a folder of daily candles.
//!
//! ```sh
//! cargo run --release --example evaluate-signals -- examples/candles
//! cargo run --release --example evaluate-signals -- examples/candles --json
//! ```
//!
//! With `--json` the result is every figure with all digits; docs/signals.md says what they mean.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod evaluation;

use std::process::ExitCode;

use bhav::signals::confidence::PRIOR_DATES;
use evaluation::{Folder, report, summary};

const USAGE: &str = "evaluate-signals DIR [--json] [--prior-dates 1 to 10000]";

fn main() -> ExitCode {
    let mut folder = None;
    let mut is_json = false;
    let mut prior_dates = Some(PRIOR_DATES);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => is_json = true,
            "--prior-dates" => {
                let given = args.next().and_then(|text| text.parse().ok());
                prior_dates = given.filter(|dates| (1..=10_000).contains(dates));
            }
            _ => folder = Some(arg),
        }
    }
    let (Some(path), Some(prior_dates)) = (folder, prior_dates) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let report = Folder::read(path.as_ref()).and_then(|folder| {
        folder.told.iter().for_each(|told| eprintln!("{told}"));
        report(&folder, prior_dates)
    });
    match report {
        Ok(report) if is_json => println!("{report}"),
        Ok(report) => print!("{}", summary(&report)),
        Err(why) => {
            eprintln!("{path}: {why}");
            return ExitCode::from(65);
        }
    }
    ExitCode::SUCCESS
}
