//! Scores compared with their definitions, the order of publication, and the rule that later
//! candles change nothing.

use super::*;
use crate::base::candle::PRICE_E4;
use crate::signals::performance::Performance;

fn key(name: &str) -> Key {
    Key::from_name(name).unwrap()
}

fn judged(confidence: f64, hit: bool, name: &str) -> Judged {
    let date = Date::constant(2026, 11, 20);
    Judged {
        date,
        key: key(name),
        confidence,
        base_rate: 0.5,
        hit,
        same_day: None,
    }
}

/// A seeded random walk of `count` candles that begins on 1 January 2020.
fn history(symbol: &str, seed: u64, count: usize) -> History {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut close = 500 * PRICE_E4;
    let mut date = Date::constant(2020, 1, 1);
    let candles = (0..count).map(|_| {
        let mut step = |most: i64| random.i64(-most..=most) * PRICE_E4 / 20;
        let open = close + step(40);
        close = (open + step(200)).max(PRICE_E4);
        let high_e4 = open.max(close) + step(60).max(0);
        let low_e4 = (open.min(close) - step(60).max(0)).max(PRICE_E4 / 2);
        date = date.tomorrow().unwrap();
        Candle {
            date,
            open_e4: open,
            high_e4,
            low_e4,
            close_e4: close,
            volume: 1,
        }
    });
    History {
        symbol: symbol.into(),
        candles: candles.collect(),
    }
}

#[test]
fn scores_equal_their_definitions() {
    let signals = [
        judged(0.6, true, "hammer"),
        judged(0.6, false, "hammer"),
        judged(0.45, false, "hanging_man"),
        judged(0.4, false, "hanging_man"),
    ];
    let scores = Scores::of(&signals, |signal| signal.confidence);
    assert_eq!(scores.signals, 4);
    assert_eq!((scores.lowest, scores.highest), (0.4, 0.6));
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
    near(scores.mean_confidence(), 0.5125);
    near(scores.brier(), (0.16 + 0.36 + 0.2025 + 0.16) / 4.0);
    let loss: f64 = [0.6_f64, 0.4, 0.55, 0.6]
        .iter()
        .map(|confidences| -confidences.ln())
        .sum();
    near(scores.log_loss(), loss / 4.0);
    // Both signals of confidence 0.6 are in one bin: 1.2 hits expected, 1 came.
    near(scores.calibration_error, (0.2 + 0.45 + 0.4) / 4.0);
    // One block has no standard error, so the expected error is zero.
    assert_eq!(scores.calibration_error_if_perfect, 0.0);
    let mut performance = Performance::default();
    for signal in &signals {
        performance.count(signal);
    }
    let filled: Vec<_> = performance
        .bins
        .iter()
        .map(|bin| (bin.signals, bin.hits, bin.bullish))
        .collect();
    assert_eq!(filled[..3], [(1, 0, 0), (1, 0, 0), (0, 0, 0)]);
    assert_eq!(filled[12], (2, 1, 2));
    assert_eq!(filled.iter().map(|bin| bin.0).sum::<u64>(), 4);
    assert_eq!((performance.all.dates, performance.all.hit_rate()), (1, Some(0.25)));
    let none = Scores::of(&[], |signal| signal.confidence);
    assert_eq!((none.brier(), none.calibration_error, none.lowest), (0.0, 0.0, 0.0));
}

#[test]
fn equal_confidences_are_one_bin_in_any_order() {
    let mut signals = vec![judged(0.5, true, "hammer"); 40];
    signals.extend(vec![judged(0.5, false, "hammer"); 60]);
    let error = Scores::of(&signals, |_| 0.5).calibration_error;
    assert!((error - 0.1).abs() < 1e-12, "{error}");
    signals.reverse();
    assert_eq!(Scores::of(&signals, |_| 0.5).calibration_error, error);
}

#[test]
fn a_confidence_on_an_edge_belongs_to_the_bin_below() {
    assert_eq!((bin_of(0.0), bin_of(0.44), bin_of(0.440_001)), (0, 0, 1));
    assert_eq!((bin_of(0.55), bin_of(0.550_001), bin_of(1.0)), (11, 12, 12));
}

#[test]
fn equal_confidences_are_ordered_by_dates_then_name_then_symbol() {
    let signal = |symbol, name, confidence, dates| Signal {
        symbol,
        key: key(name),
        weight: Weight {
            confidence,
            dates,
            signals: dates,
            hits: 0,
            date_hit_rate: None,
            base_rate: 0.5,
        },
    };
    let mut signals = [
        signal("B", "hammer", 0.5, 9),
        signal("A", "hammer", 0.5, 9),
        signal("Z", "dragonfly_doji", 0.5, 9),
        signal("A", "takuri", 0.5, 10),
        signal("Z", "piercing", 0.6, 1),
    ];
    signals.sort_by(by_rank);
    let order = signals.map(|signal| (signal.symbol, signal.key.name()));
    let names = ["piercing", "takuri", "dragonfly_doji", "hammer", "hammer"];
    assert_eq!(order.map(|(_, name)| name), names);
    assert_eq!(order.map(|(symbol, _)| symbol), ["Z", "A", "Z", "A", "B"]);
}

/// The signals and confidences of a date must not change when later candles are added.
#[test]
fn later_candles_change_no_earlier_signal() {
    let whole = [
        history("A", 1, 620),
        history("B", 2, 620),
        history("C", 3, 400),
    ];
    let today = 560;
    let known: Vec<History> = whole
        .iter()
        .map(|history| History {
            symbol: history.symbol.clone(),
            candles: history.candles[..history.candles.len().min(today + 1)].to_vec(),
        })
        .collect();
    let later = Universe::examine(&whole);
    let then = Universe::examine(&known);
    for date in WINDOW_DATES..=today {
        let row = |signal: &Signal<'_>| (signal.symbol.to_owned(), signal.key, signal.weight);
        let of = |universe: &Universe| {
            universe
                .signals_on(date)
                .iter()
                .map(row)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&later), of(&then), "date {date}");
    }
    let count = (WINDOW_DATES..=today)
        .map(|date| later.signals_on(date).len())
        .sum::<usize>();
    assert!(count > 50, "only {count} signals were compared");
}

/// Shares that trade on three or on nine days in ten, with the prices after a date generated anew.
/// No bit may differ up to that date, whichever dates are silent.
#[test]
fn later_prices_change_no_bit_of_earlier_confidences() {
    const TODAY: usize = 600;
    let with = |gaps: bool, seed: u64| -> Vec<History> {
        let changed = |number: u64| {
            let mut one = history("S", number, 720);
            let other = history("S", number + seed, 720);
            one.candles[TODAY + 1..].copy_from_slice(&other.candles[TODAY + 1..]);
            let mut random = fastrand::Rng::with_seed(number);
            one.candles
                .retain(|_| !gaps || random.u8(..10) < 3 + 6 * (number % 2) as u8);
            History {
                symbol: format!("S{number}"),
                ..one
            }
        };
        (0..6).map(changed).collect()
    };
    for (gaps, silences) in [(false, false), (true, false), (true, true)] {
        let confidences = |seed: u64| {
            let histories = with(gaps, seed);
            let sessions = sessions(&histories);
            let judge = |history: &History| judge(history, &sessions);
            let silences: Vec<Silence> = if silences {
                histories.iter().map(judge).collect()
            } else {
                Vec::new()
            };
            let universe = Universe::examine_with(&histories, &silences, PRIOR_DATES);
            let last = sessions[0]
                .checked_add(jiff::Span::new().days(TODAY as i64))
                .unwrap();
            let until = sessions.partition_point(|date| *date <= last);
            let bits = |weight: &Weight| {
                let rates = [weight.confidence, weight.base_rate];
                (rates.map(f64::to_bits), weight.date_hit_rate.map(f64::to_bits), weight.hits)
            };
            let of_date = |date: usize| -> Vec<_> {
                let found = universe.signals_on(date);
                found
                    .iter()
                    .map(|s| (s.symbol.to_owned(), s.key, bits(&s.weight)))
                    .collect()
            };
            let keys: Vec<_> = Key::all()
                .map(|key| bits(&universe.weigh(key, until - 1)))
                .collect();
            let signals: Vec<_> = (0..until).map(of_date).collect();
            (signals, keys, universe.judged().len())
        };
        let one = confidences(100);
        let other = confidences(200);
        assert_eq!(one.0, other.0, "gaps {gaps}, silences {silences}");
        assert_eq!(one.1, other.1, "gaps {gaps}, silences {silences}");
        assert!(silences || one.0.iter().map(Vec::len).sum::<usize>() > 300);
        assert!(silences || one.2 > 30, "{} judged", one.2);
    }
}

#[test]
fn signals_are_judged_from_a_full_window_while_outcomes_are_known() {
    let histories = [history("A", 4, 600)];
    let universe = Universe::examine(&histories);
    let judged = universe.judged();
    let dates = universe.dates();
    assert!(!judged.is_empty());
    for signal in &judged {
        assert!(signal.date >= dates[WINDOW_DATES] && signal.date < dates[595]);
    }
    let short = Universe::examine(&[history("A", 4, WINDOW_DATES)]);
    assert!(short.judged().is_empty());
}
