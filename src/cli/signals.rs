//! The command `signals`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::ops::exit;
use crate::signals::confidence::PRIOR_DATES;

/// Runs the evaluation. Arguments: folder of candles, weight of the prior in dates, whether to
/// write JSON, file for a plot.
pub type Evaluate = fn(&Path, u32, bool, Option<&Path>) -> ExitCode;

pub(super) fn evaluate(matches: &ArgMatches, run: Evaluate) -> ExitCode {
    let folder: &PathBuf = matches.get_one("folder").expect("clap demands it");
    let plot = matches.get_one::<PathBuf>("plot").map(PathBuf::as_path);
    let prior_dates = *matches.get_one("prior-dates").expect("it has a default");
    run(folder, prior_dates, matches.get_flag("json"), plot)
}

/// Forty years of sessions, as many as a file may have; with it the prior outweighs all data.
const PRIOR_DATES_MAX: i64 = 10_000;

const EVALUATION: &str = "\
Reads every *.csv file in the folder. Each contains one symbol, is named after it (INFY.csv), and
has a header line with date,open,high,low,close,volume; other columns are ignored. Dates are written
2022-01-03 or 03-Jan-2022, quoted numbers may have thousands separators, and the newest row may be
first, as in the history files of NSE. Implausible rows are reported and left out.
The evaluation walks forward: the confidence of each date is computed from earlier dates only.

Example data of invented shares: examples/candles in the repository,
/usr/share/doc/bhav/examples/candles in the package.

Information, not investment advice.";

pub(super) fn evaluation() -> Command {
    let path = || value_parser!(PathBuf);
    let folder = Arg::new("folder").value_name("DIR").required(true).value_parser(path());
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    let plot = Arg::new("plot").long("plot").value_name("FILE.svg").value_parser(path());
    let prior = Arg::new("prior-dates").long("prior-dates").value_name("DATES");
    let prior = prior.value_parser(value_parser!(u32).range(1..=PRIOR_DATES_MAX));
    let prior = prior.default_value(PRIOR_DATES.to_string());
    Command::new("evaluate")
        .about("Measure how well signals predicted, on a folder of daily candles")
        .arg(folder.help("Folder of daily candles"))
        .arg(json.help("Write one JSON document, with all digits"))
        .arg(plot.help("Plot predictions against outcomes"))
        .arg(prior.help("Weight of the market's own drift in a confidence, in dates"))
        .after_help(format!("{EVALUATION}\n\n{}", exit::HELP))
}
