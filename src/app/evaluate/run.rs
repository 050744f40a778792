//! The command `signals evaluate`: reads candles, walks forward over them, prints the report.
//!
//! Main thread of a process of its own.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use crate::app::evaluate::candles;
use crate::app::evaluate::candles::FolderError;
use crate::app::evaluate::plot;
use crate::app::evaluate::report::Report;
use crate::app::evaluate::text;
use crate::ops::Exit;
use crate::signals::backtest::{Universe, sessions};
use crate::signals::confidence::WINDOW_DATES;
use crate::signals::history::HOLES_MAX;
use crate::signals::silence::{self, Silence};

/// Evaluates a folder of candles; writes text or JSON, and a plot on request.
pub fn evaluate(folder: &Path, prior_dates: u32, json: bool, plot: Option<&Path>) -> ExitCode {
    let report = match report_of(folder, prior_dates) {
        Ok(report) => report,
        Err(error) => return fail(&error, Exit::Data),
    };
    let written = if json { report.to_json() } else { Ok(text::write(&report)) };
    let written = match written {
        Ok(written) => written,
        Err(error) => return fail(&error, Exit::Internal),
    };
    let mut out = io::stdout().lock();
    match out.write_all(written.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return fail(&format!("standard output: {error}"), Exit::StateDir);
        }
        _ => {}
    }
    let Some(file) = plot else { return Exit::Ok.into() };
    match plot::svg(&report) {
        Ok(svg) => match std::fs::write(file, svg) {
            Ok(()) => Exit::Ok.into(),
            Err(error) => fail(&format!("{}: {error}", file.display()), Exit::StateDir),
        },
        Err(error) => fail(&error, Exit::Internal),
    }
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
enum EvaluateError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(
        "no signal can be judged: the candles span {dates} dates, and signals count from the \
         {}th on, once their outcome is known; {silent} candles are of symbols that are silent \
         then, for more than {HOLES_MAX} missing sessions or a suspected split", WINDOW_DATES + 1
    )]
    NothingToJudge { dates: usize, silent: usize },
}

fn report_of(folder: &Path, prior_dates: u32) -> Result<Report, EvaluateError> {
    let files = candles::list(folder)?;
    let bar = progress(files.len(), "reading");
    let read = candles::read(&files, || bar.inc(1));
    bar.finish_and_clear();
    for told in read.told() {
        say(told);
    }
    if read.histories.is_empty() {
        return Err(FolderError::NothingUsable { folder: folder.into() }.into());
    }
    let bar = progress(read.histories.len(), "finding signals");
    let sessions = sessions(&read.histories);
    let silences: Vec<Silence> =
        read.histories.iter().map(|history| silence::judge(history, &sessions)).collect();
    let universe = Universe::examine_with(&read.histories, &silences, prior_dates, |_| bar.inc(1));
    bar.finish_and_clear();
    let judged = universe.judged();
    if judged.is_empty() {
        let silent = silences.iter().map(Silence::dates).sum();
        return Err(EvaluateError::NothingToJudge { dates: universe.dates().len(), silent });
    }
    Ok(Report::of(&read, &silences, &universe, &judged))
}

/// A bar on a terminal; nothing anywhere else.
fn progress(steps: usize, what: &'static str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg:16} {bar:40} {pos}/{len}");
    let bar = ProgressBar::new(steps as u64).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// To standard error. Nobody is left to tell when that fails.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

pub(super) fn fail(error: &dyn std::fmt::Display, exit: Exit) -> ExitCode {
    say(&format!("bhav: {error}"));
    exit.into()
}
