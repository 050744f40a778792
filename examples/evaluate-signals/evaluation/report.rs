//! The figures of an evaluation as one JSON document, and the most important of them as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bhav::signals::backtest::{
    Judged, Scores, Signal, Silence, Universe, edges_of, judge, sessions,
};
use bhav::signals::blocks::{Estimate, Place, SCORE_DATES_MIN};
use bhav::signals::confidence::{WINDOW_DATES, Weight, prior};
use bhav::signals::patterns::{HORIZON_SESSIONS, Key};
use bhav::signals::performance::{Cell, Performance, verdict};
use bhav::signals::{DISCLAIMER, Direction, MEANING};
use serde_json::{Value, json};

use super::candles::Folder;

/// Patterns with fewer dates than this are not listed: their figures mean next to nothing.
const LISTED_DATES_MIN: u32 = 30;

/// Evaluates the candles of `folder`: the confidence of each date is made of earlier dates only.
///
/// # Errors
/// Why nothing can be judged.
pub fn report(folder: &Folder, prior_dates: u32) -> Result<Value, String> {
    let sessions = sessions(&folder.histories);
    let silences: Vec<Silence> = folder
        .histories
        .iter()
        .map(|history| judge(history, &sessions))
        .collect();
    let universe = Universe::examine_with(&folder.histories, &silences, prior_dates);
    let judged = universe.judged();
    if judged.is_empty() {
        let dates = universe.dates().len();
        let silent: usize = silences.iter().map(Silence::dates).sum();
        let first = WINDOW_DATES + 1;
        return Err(format!(
            "no signal can be judged: the candles span {dates} dates, and signals count from the \
             {first}th on, once their outcome is known; {silent} candles are of symbols that are \
             silent then, for missing sessions or a suspected split"
        ));
    }
    let mut performance = Performance::default();
    let places: Vec<Place> = judged
        .iter()
        .map(|signal| performance.count(signal))
        .collect();
    let years = judged.chunk_by(|one, other| one.date.year() == other.date.year());
    Ok(json!({
        "meaning": MEANING,
        "disclaimer": DISCLAIMER,
        "read": read(folder, &universe),
        "suspect": suspects(folder, &silences),
        "horizon_sessions": HORIZON_SESSIONS,
        "window_dates": WINDOW_DATES,
        "prior_dates": universe.prior_dates(),
        "judged": judged_part(&judged, &performance.all),
        "models": models(&judged, performance.all.is_scored()),
        "comparisons": comparisons(&performance),
        "directions": performance.directions().map(direction),
        "years": years.map(year).collect::<Vec<_>>(),
        "quarters": quarters(&judged, &places),
        "reliability": performance.bins.iter().enumerate().map(bin).collect::<Vec<_>>(),
        "last_date": last_date(&universe),
    }))
}

/// The most important figures as text.
pub fn summary(report: &Value) -> String {
    let mut text = String::new();
    for name in ["read", "judged"] {
        let _ = writeln!(text, "{name}: {}", report[name]);
    }
    for name in ["suspect", "models", "comparisons", "directions"] {
        let _ = writeln!(text, "\n{name}:");
        for row in report[name].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  {row}");
        }
    }
    let _ = writeln!(text, "\n{MEANING}\n{DISCLAIMER}");
    text
}

fn read(folder: &Folder, universe: &Universe) -> Value {
    json!({
        "files": folder.files,
        "files_left_out": folder.files_left_out,
        "rows_left_out": folder.rows_left_out,
        "symbols": folder.histories.len(),
        "candles": folder.histories.iter().map(|history| history.candles.len()).sum::<usize>(),
        "dates": universe.dates().len(),
        "first_date": universe.dates().first().map(ToString::to_string),
        "last_date": universe.dates().last().map(ToString::to_string),
    })
}

/// The symbols whose candles have gaps or days that look like a split.
fn suspects(folder: &Folder, silences: &[Silence]) -> Vec<Value> {
    let symbols = folder
        .histories
        .iter()
        .map(|history| &history.symbol)
        .zip(silences);
    let suspect = |(symbol, silence): (&String, &Silence)| {
        let splits = silence.suspected.iter().map(|suspected| {
            let (new, old) = suspected.ratio.unzip();
            json!({"date": suspected.date.to_string(), "new": new, "old": old})
        });
        json!({
            "symbol": symbol,
            "missing": silence.missing,
            "suspected_splits": splits.collect::<Vec<_>>(),
            "silent": silence.dates(),
        })
    };
    symbols
        .filter(|(_, silence)| !silence.is_clean())
        .map(suspect)
        .collect()
}

fn judged_part(judged: &[Judged], all: &Cell) -> Value {
    let first = judged.iter().map(|signal| signal.date).min();
    let last = judged.iter().map(|signal| signal.date).max();
    json!({
        "first_date": first.map(|date| date.to_string()),
        "last_date": last.map(|date| date.to_string()),
        "dates": all.dates,
        "signals": all.signals,
        "hits": all.hits,
        "hit_rate": all.hit_rate(),
        "score_dates_min": SCORE_DATES_MIN,
    })
}

/// The confidence that is published, then its baselines.
fn models(judged: &[Judged], is_scored: bool) -> Value {
    let model = |name: &str, said: fn(&Judged) -> f64| {
        let scores = Scores::of(judged, said);
        let if_scored = |score: f64| (is_scored && score.is_finite()).then_some(score);
        json!({
            "model": name,
            "mean_confidence": scores.mean_confidence(),
            "lowest": scores.lowest,
            "highest": scores.highest,
            "brier": if_scored(scores.brier()),
            "log_loss": if_scored(scores.log_loss()),
            "calibration_error": if_scored(scores.calibration_error),
            "calibration_error_if_perfect": if_scored(scores.calibration_error_if_perfect),
        })
    };
    json!([
        model("confidence", |signal| signal.confidence),
        model("half_shrunk_base_rate", |signal| prior(signal.base_rate)),
        model("base_rate", |signal| signal.base_rate),
        model("coin", |_| 0.5),
    ])
}

/// Brier score of the confidence minus another's; below zero is better.
fn comparisons(performance: &Performance) -> Vec<Value> {
    let compared = [
        ("coin", "a coin", performance.against_coin()),
        ("base_rate", "the base rate", performance.against_base()),
    ];
    let comparison = |(with, named, difference): (&str, &str, Option<Estimate>)| {
        let difference = difference?;
        let verdict = verdict(&difference, named);
        let head = joined(json!({"with": with}), interval(Some(difference)));
        Some(joined(head, json!({"verdict": verdict})))
    };
    compared.into_iter().filter_map(comparison).collect()
}

fn interval(estimate: Option<Estimate>) -> Value {
    let Some(Estimate {
        value,
        standard_error,
        low,
        high,
    }) = estimate
    else {
        return Value::Null;
    };
    json!({"value": value, "standard_error": standard_error, "low": low, "high": high})
}

/// `row` with the counts of `cell`, and what its signals claimed too much or too little.
fn counted(row: Value, cell: &Cell) -> Value {
    let counts = json!({
        "signals": cell.signals,
        "hits": cell.hits,
        "dates": cell.dates,
        "hit_rate": cell.hit_rate(),
        "mean_confidence": cell.mean_confidence(),
        "observed_minus_said": interval(cell.observed_minus_said()),
    });
    joined(row, counts)
}

fn joined(first: Value, second: Value) -> Value {
    let members = |value: Value| value.as_object().cloned().unwrap_or_default();
    Value::Object(members(first).into_iter().chain(members(second)).collect())
}

fn direction((direction, cell): (Direction, &Cell)) -> Value {
    let more = json!({"same_day_rate": cell.same_day_rate(), "lift": interval(cell.lift())});
    joined(counted(json!({"direction": direction.as_str()}), cell), more)
}

fn year(judged: &[Judged]) -> Value {
    let mut performance = Performance::default();
    for signal in judged {
        performance.count(signal);
    }
    let brier = performance
        .all
        .is_scored()
        .then(|| performance.confidence.brier());
    let year = json!({"year": judged[0].date.year(), "brier": brier});
    counted(year, &performance.all)
}

/// `places` are the signals' places in `judged`, so that a quarter has the blocks of the whole.
fn quarters(judged: &[Judged], places: &[Place]) -> Vec<Value> {
    let mut cells: BTreeMap<(i16, i8, Direction), Cell> = BTreeMap::new();
    for (signal, place) in judged.iter().zip(places) {
        let quarter = (signal.date.month() - 1) / 3 + 1;
        let key = (signal.date.year(), quarter, signal.key.direction());
        cells.entry(key).or_default().count(*place, signal);
    }
    let quarter = |((year, quarter, direction), cell): ((i16, i8, Direction), Cell)| {
        let name = format!("{year}-Q{quarter}");
        counted(json!({"quarter": name, "direction": direction.as_str()}), &cell)
    };
    cells.into_iter().map(quarter).collect()
}

fn bin((at, cell): (usize, &Cell)) -> Value {
    let (above, up_to) = edges_of(at);
    let row = json!({"above": above, "up_to": up_to, "bullish_share": cell.bullish_share()});
    counted(row, cell)
}

/// The list that the service would publish on the last date.
fn last_date(universe: &Universe) -> Value {
    let last = universe.dates().len().saturating_sub(1);
    let mut keys: Vec<Key> = Key::all().collect();
    // Sorted by function, bearish first.
    keys.sort_by_key(|key| (key.function_name(), key.direction() == Direction::Bullish));
    let weights: Vec<(Key, Weight)> = keys
        .into_iter()
        .map(|key| (key, universe.weigh(key, last)))
        .collect();
    let base_rate = |direction: Direction| {
        let with = weights.iter().find(|(key, _)| key.direction() == direction);
        with.map_or(0.5, |(_, weight)| weight.base_rate)
    };
    let listed = weights
        .iter()
        .filter(|(_, weight)| weight.dates >= LISTED_DATES_MIN);
    let found = universe.signals_on(last);
    let of_symbol = found.chunk_by(|one, other| one.symbol == other.symbol);
    json!({
        "date": universe.dates().last().map(ToString::to_string),
        "base_rate_up": base_rate(Direction::Bullish),
        "base_rate_down": base_rate(Direction::Bearish),
        "listed_dates_min": LISTED_DATES_MIN,
        "patterns": listed.map(|(key, weight)| pattern(*key, weight)).collect::<Vec<_>>(),
        "signals": of_symbol.flat_map(signals).collect::<Vec<_>>(),
    })
}

/// The signals of one symbol. There is a conflict if they claim both directions.
fn signals(rows: &[Signal<'_>]) -> Vec<Value> {
    let direction = rows[0].key.direction();
    let conflict = rows.iter().any(|row| row.key.direction() != direction);
    let signal = |row: &Signal<'_>| {
        let head = json!({"symbol": row.symbol, "conflict": conflict});
        joined(head, pattern(row.key, &row.weight))
    };
    rows.iter().map(signal).collect()
}

fn pattern(key: Key, weight: &Weight) -> Value {
    json!({
        "function": key.function_name(),
        "pattern": key.name(),
        "direction": key.direction().as_str(),
        "signals": weight.signals,
        "hits": weight.hits,
        "hit_rate": weight.hit_rate(),
        "dates": weight.dates,
        "date_hit_rate": weight.date_hit_rate,
        "base_rate": weight.base_rate,
        "confidence": weight.confidence,
    })
}
