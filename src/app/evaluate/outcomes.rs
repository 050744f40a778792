//! How confidence did, by whatever it can be told apart: the outcomes' part of the report.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::signals::Direction;
use crate::signals::backtest::{Judged, Scores, edges_of};
use crate::signals::blocks::{Estimate, Place};
use crate::signals::performance::{Cell, Performance, verdict};
use crate::views::signal_record::Interval;

/// How one way to say a confidence did.
#[derive(Debug, Serialize)]
pub struct Model {
    pub model: &'static str,
    pub mean_confidence: f64,
    pub lowest: f64,
    pub highest: f64,
    pub brier: Option<f64>,
    /// Absent too where it is infinite: something was called certain and did not come.
    pub log_loss: Option<f64>,
    pub calibration_error: Option<f64>,
    /// What chance alone would make of it if all confidences were right.
    pub calibration_error_if_perfect: Option<f64>,
}

/// Brier score of confidence less another's; below zero is better.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub with: &'static str,
    #[serde(flatten)]
    pub difference: Interval,
    pub verdict: String,
}

/// How confidence did in one direction.
#[derive(Debug, Serialize)]
pub struct OfDirection {
    pub direction: &'static str,
    pub signals: u64,
    pub hits: u64,
    pub dates: u64,
    pub hit_rate: Option<f64>,
    pub mean_confidence: Option<f64>,
    /// Share of the universe that moved so over the same sessions.
    pub same_day_rate: Option<f64>,
    /// Hit rate less that.
    pub lift: Option<Interval>,
    pub observed_minus_said: Option<Interval>,
}

/// How confidence did in one year.
#[derive(Debug, Serialize)]
pub struct Year {
    pub year: i16,
    pub signals: u64,
    pub hits: u64,
    pub dates: u64,
    pub hit_rate: f64,
    pub mean_confidence: f64,
    pub brier: Option<f64>,
}

/// How confidence did in one direction in a quarter of a year.
#[derive(Debug, Serialize)]
pub struct Quarter {
    pub quarter: String,
    pub direction: &'static str,
    pub signals: u64,
    pub hits: u64,
    pub dates: u64,
    pub hit_rate: Option<f64>,
    pub mean_confidence: Option<f64>,
    pub observed_minus_said: Option<Interval>,
}

/// A row of the reliability table; shares are absent where there is no signal.
#[derive(Debug, Serialize)]
pub struct Bin {
    pub above: Option<f64>,
    pub up_to: Option<f64>,
    pub signals: u64,
    pub hits: u64,
    pub dates: u64,
    pub mean_confidence: Option<f64>,
    pub hit_rate: Option<f64>,
    pub observed_minus_said: Option<Interval>,
    pub bullish_share: Option<f64>,
}

pub fn model(model: &'static str, scores: &Scores, scored: bool) -> Model {
    let if_scored = |score: f64| (scored && score.is_finite()).then_some(score);
    Model {
        model,
        mean_confidence: scores.mean_confidence(),
        lowest: scores.lowest,
        highest: scores.highest,
        brier: if_scored(scores.brier()),
        log_loss: if_scored(scores.log_loss()),
        calibration_error: if_scored(scores.calibration_error),
        calibration_error_if_perfect: if_scored(scores.calibration_error_if_perfect),
    }
}

pub fn comparisons(performance: &Performance) -> Vec<Comparison> {
    let compared = [
        ("coin", "a coin", performance.from_coin()),
        ("base_rate", "the base rate", performance.from_base()),
    ];
    let comparison = |(with, named, difference): (_, _, Option<Estimate>)| {
        let difference = difference?;
        let verdict = verdict(&difference, named);
        Some(Comparison { with, difference: Interval::exact(difference), verdict })
    };
    compared.into_iter().filter_map(comparison).collect()
}

pub fn directions(performance: &Performance) -> Vec<OfDirection> {
    let of = |(direction, cell): (Direction, &Cell)| OfDirection {
        direction: direction.as_str(),
        signals: cell.signals,
        hits: cell.hits,
        dates: cell.dates,
        hit_rate: cell.hit_rate(),
        mean_confidence: cell.mean_confidence(),
        same_day_rate: cell.same_day_rate(),
        lift: cell.lift().map(Interval::exact),
        observed_minus_said: cell.observed_minus_said().map(Interval::exact),
    };
    performance.directions().into_iter().map(of).collect()
}

pub fn years(judged: &[Judged]) -> Vec<Year> {
    let of_year = judged.chunk_by(|one, other| one.date.year() == other.date.year());
    let year = |judged: &[Judged]| {
        let mut performance = Performance::default();
        for signal in judged {
            performance.count(signal);
        }
        let (all, said) = (&performance.all, &performance.confidence);
        Year {
            year: judged[0].date.year(),
            signals: all.signals,
            hits: all.hits,
            dates: all.dates,
            hit_rate: all.hit_rate().unwrap_or_default(),
            mean_confidence: said.mean_confidence(),
            brier: all.is_scored().then(|| said.brier()),
        }
    };
    of_year.map(year).collect()
}

/// `places` are those of `judged`: a quarter's blocks are those of the whole.
pub fn quarters(judged: &[Judged], places: &[Place]) -> Vec<Quarter> {
    let mut cells: BTreeMap<(i16, i8, Direction), Cell> = BTreeMap::new();
    for (signal, place) in judged.iter().zip(places) {
        let quarter = (signal.date.month() - 1) / 3 + 1;
        let key = (signal.date.year(), quarter, signal.key.direction());
        cells.entry(key).or_default().count(*place, signal);
    }
    let quarter = |((year, quarter, direction), cell): ((i16, i8, Direction), Cell)| Quarter {
        quarter: format!("{year}-Q{quarter}"),
        direction: direction.as_str(),
        signals: cell.signals,
        hits: cell.hits,
        dates: cell.dates,
        hit_rate: cell.hit_rate(),
        mean_confidence: cell.mean_confidence(),
        observed_minus_said: cell.observed_minus_said().map(Interval::exact),
    };
    cells.into_iter().map(quarter).collect()
}

pub fn bins(performance: &Performance) -> Vec<Bin> {
    let bin = |(at, bin): (usize, &Cell)| {
        let (above, up_to) = edges_of(at);
        Bin {
            above,
            up_to,
            signals: bin.signals,
            hits: bin.hits,
            dates: bin.dates,
            mean_confidence: bin.mean_confidence(),
            hit_rate: bin.hit_rate(),
            observed_minus_said: bin.observed_minus_said().map(Interval::exact),
            bullish_share: bin.bullish_share(),
        }
    };
    performance.bins.iter().enumerate().map(bin).collect()
}
