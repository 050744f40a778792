//! How confidence did, by whatever it can be told apart: the outcomes' part of the report.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;

use crate::base::candle::{CandleFault, price_e4};
use crate::base::{Candle, json};
use crate::signals::Direction;
use crate::signals::backtest::{Cell, Judged, Performance, Scores, edges_of, verdict};
use crate::signals::blocks::{Estimate, Place};
use crate::views::signals::Interval;

/// How one way to say a confidence did.
#[derive(Debug, Serialize)]
pub(crate) struct Model {
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
pub(crate) struct Comparison {
    pub with: &'static str,
    #[serde(flatten)]
    pub difference: Interval,
    pub verdict: String,
}

/// How confidence did in one direction.
#[derive(Debug, Serialize)]
pub(crate) struct OfDirection {
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
pub(crate) struct Year {
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
pub(crate) struct Quarter {
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
pub(crate) struct Bin {
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

pub(crate) fn model(model: &'static str, scores: &Scores, scored: bool) -> Model {
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

pub(crate) fn comparisons(performance: &Performance) -> Vec<Comparison> {
    let compared = [
        ("coin", "a coin", performance.against_coin()),
        ("base_rate", "the base rate", performance.against_base()),
    ];
    let comparison = |(with, named, difference): (_, _, Option<Estimate>)| {
        let difference = difference?;
        let verdict = verdict(&difference, named);
        Some(Comparison { with, difference: Interval::exact(difference), verdict })
    };
    compared.into_iter().filter_map(comparison).collect()
}

pub(crate) fn directions(performance: &Performance) -> Vec<OfDirection> {
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

pub(crate) fn years(judged: &[Judged]) -> Vec<Year> {
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
pub(crate) fn quarters(judged: &[Judged], places: &[Place]) -> Vec<Quarter> {
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

pub(crate) fn bins(performance: &Performance) -> Vec<Bin> {
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

// ---- Rows
//
// One row of a file of candles: its fields, dates and numbers as vendors and the exchange write
// them, and why it cannot be used. Pure.

/// Most characters of a field shown when it is wrong.
const SHOWN_CHARS_MAX: usize = 24;

/// `2026-11-20`, and `20-Nov-2026` as the exchange writes it.
const DATE_BYTES: usize = 10;
const LONG_DATE_BYTES: usize = 11;

pub(crate) const COLUMNS: [&str; 6] = ["date", "open", "high", "low", "close", "volume"];

/// The fields of a line: commas part them, but not within quotes.
pub(super) fn fields(line: &[u8]) -> Vec<&[u8]> {
    let mut quoted = false;
    let parts = line.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    });
    parts.collect()
}

/// Why a row is left out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowFault {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{column} `{shown}` {why}")]
    Field { column: &'static str, shown: String, why: &'static str },
    #[error("{0}")]
    Candle(#[from] CandleFault),
    #[error("another row has this date")]
    Again,
    #[error("rows of {0} contradict each other")]
    Contradicts(Date),
    #[error("more fields than line 1 has; are there decimal commas?")]
    TooManyFields,
    #[error("the date is out of order")]
    OutOfOrder,
}

impl RowFault {
    /// The row says something else of this candle's date.
    pub(crate) fn contradicts(&self, candle: &Candle) -> bool {
        matches!(self, Self::Contradicts(date) if *date == candle.date)
    }
}

pub(super) fn row(fields: &[&[u8]], columns: usize, at: &[usize; 6]) -> Result<Candle, RowFault> {
    // A comma at the end is common.
    if fields.iter().skip(columns).any(|field| !bare(field).is_empty()) {
        return Err(RowFault::TooManyFields);
    }
    let field = |column: usize| Field::of(fields, at[column], COLUMNS[column]);
    let candle = Candle {
        date: field(0)?.date()?,
        open_e4: field(1)?.price()?,
        high_e4: field(2)?.price()?,
        low_e4: field(3)?.price()?,
        close_e4: field(4)?.price()?,
        volume: field(5)?.shares()?,
    };
    candle.check()?;
    Ok(candle)
}

struct Field<'a> {
    column: &'static str,
    text: &'a str,
}

impl<'a> Field<'a> {
    fn of(fields: &[&'a [u8]], at: usize, column: &'static str) -> Result<Self, RowFault> {
        let bytes = fields.get(at).map(|field| bare(field)).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or(RowFault::Missing(column))?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { column, text }),
            Err(_) => Err(Self { column, text: "..." }.fault("is not UTF-8 text")),
        }
    }

    fn date(&self) -> Result<Date, RowFault> {
        // The parsers take other forms too, and times.
        let date = match self.text.len() {
            LONG_DATE_BYTES => Date::strptime("%d-%b-%Y", self.text).ok(),
            DATE_BYTES => self.text.parse().ok(),
            _ => None,
        };
        date.ok_or_else(|| self.fault("is not a date such as 2026-11-20"))
    }

    fn number(&self) -> Result<Decimal, RowFault> {
        let number = match self.text.contains(',') {
            true => ungrouped(self.text).as_deref().and_then(json::parse_decimal),
            false => json::parse_decimal(self.text),
        };
        number.ok_or_else(|| {
            let why = if has_decimal_comma(self.text) {
                "has a decimal comma; a point is expected"
            } else {
                "is not a finite number"
            };
            self.fault(why)
        })
    }

    fn price(&self) -> Result<i64, RowFault> {
        price_e4(self.number()?).ok_or_else(|| self.fault("is out of range"))
    }

    fn shares(&self) -> Result<i64, RowFault> {
        let whole = Some(self.number()?).filter(Decimal::is_integer);
        whole.and_then(|n| n.to_i64()).ok_or_else(|| self.fault("is not a number of shares"))
    }

    fn fault(&self, why: &'static str) -> RowFault {
        let shown = self.text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
        RowFault::Field { column: self.column, shown, why }
    }
}

/// `1,05,000.50` or `105,000.50` without its commas; `None` where they do not set thousands apart.
fn ungrouped(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut groups = whole.rsplit(',');
    let last_is_whole = groups.next().is_some_and(|group| group.len() == 3);
    let good = last_is_whole && !fraction.contains(',') && {
        let mut above: Vec<&str> = groups.collect();
        let first = above.pop();
        first.is_some_and(|group| (1..=3).contains(&group.len()))
            && above.iter().all(|group| matches!(group.len(), 2 | 3))
    };
    good.then(|| text.replace(',', ""))
}

/// `1234,5` or `1.234,50`.
fn has_decimal_comma(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((whole, fraction)) = text.split_once(',') else { return false };
    let mut groups = whole.split('.');
    digits(fraction)
        && groups.next().is_some_and(digits)
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// A field without quotes around it and blanks outside or inside of them.
pub(super) fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let inner = field.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inner.map_or(field, <[u8]>::trim_ascii)
}
