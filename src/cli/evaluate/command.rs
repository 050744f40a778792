//! The command: reads the candles, walks forward over them, prints the report.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};

use crate::cli::evaluate::candles::{Unusable, list, read};
use crate::cli::evaluate::report::Report;
use crate::cli::evaluate::report_text::text;
use crate::cli::operator::{Done, flag, print, refuse, say};
use crate::ops::{Exit, exit};
use crate::signals::backtest::{self, Silence, Universe};
use crate::signals::confidence::PRIOR_DATES;

/// Forty years of sessions, the maximum of a file. With this prior the data counts for little.
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

pub(crate) fn command() -> Command {
    let folder = Arg::new("folder").value_name("DIR").required(true);
    let folder = folder.value_parser(value_parser!(PathBuf));
    let prior = Arg::new("prior-dates").long("prior-dates").value_name("DATES");
    let prior = prior.value_parser(value_parser!(u32).range(1..=PRIOR_DATES_MAX));
    let prior = prior.default_value(PRIOR_DATES.to_string());
    Command::new("evaluate")
        .about("Measure how well signals predicted, on a folder of daily candles")
        .arg(folder.help("Folder of daily candles"))
        .arg(flag("json", "Write one JSON document, with all digits"))
        .arg(prior.help("Weight of the market's own drift in a confidence, in dates"))
        .after_help(format!("{EVALUATION}\n\n{}", exit::HELP))
}

/// `bhav signals evaluate`.
pub(crate) fn run(matches: &ArgMatches) -> Done {
    let folder: &PathBuf = matches.get_one("folder").expect("clap demands it");
    let prior_dates = *matches.get_one("prior-dates").expect("it has a default");
    let report = evaluate(folder, prior_dates);
    let report = report.map_err(|error| refuse(&error.to_string(), Exit::Data))?;
    if !matches.get_flag("json") {
        return Ok(print(&text(&report)));
    }
    let json = sonic_rs::to_string(&report);
    let json = json.map_err(|error| refuse(&error.to_string(), Exit::Internal))?;
    Ok(print(&(json + "\n")))
}

fn evaluate(path: &Path, prior_dates: u32) -> Result<Report, Unusable> {
    let folder = read(&list(path)?);
    for told in &folder.told {
        say(&format!("{told}\n"));
    }
    if folder.histories.is_empty() {
        return Err(Unusable::NoCandles { folder: path.into() });
    }
    let sessions = backtest::sessions(&folder.histories);
    let silences: Vec<Silence> =
        folder.histories.iter().map(|history| backtest::judge(history, &sessions)).collect();
    let universe = Universe::examine_with(&folder.histories, &silences, prior_dates);
    let judged = universe.judged();
    if judged.is_empty() {
        let silent = silences.iter().map(Silence::dates).sum();
        return Err(Unusable::NothingToJudge { dates: universe.dates().len(), silent });
    }
    Ok(Report::of(&folder, &silences, &universe, &judged))
}
