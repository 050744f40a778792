//! Patterns found in a short tail, and faults of a running candle.

use jiff::Span;
use jiff::civil::date;
use proptest::prelude::*;

use super::*;

const TODAY: Date = date(2026, 11, 20);

/// A calendar on which every day is a trading date.
fn every_day(_: Date) -> bool {
    true
}

/// `count` candles up to yesterday, with short and long bodies, gaps and equal prices.
fn walk(seed: u64, count: usize) -> Vec<Candle> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut close = 5_000_000;
    let mut day = TODAY.checked_sub(Span::new().days(count as i64)).unwrap();
    let candles = (0..count).map(|_| {
        let open = close + [0, 0, 500, -500, 6_000, -6_000][random.usize(..6)];
        let body = [0, 0, 500, -500, 4_000, -4_000, 15_000, -15_000, 30_000, -30_000];
        close = open + body[random.usize(..10)];
        let shadow = [0, 0, 500, 2_000, 10_000, 25_000];
        let high_e4 = open.max(close) + shadow[random.usize(..6)];
        let low_e4 = open.min(close) - shadow[random.usize(..6)];
        let date = day;
        day = day.tomorrow().unwrap();
        let candle =
            Candle { date, open_e4: open, high_e4, low_e4, close_e4: close, volume: 1_000 };
        // Back towards the middle, so that prices stay positive.
        close += (5_000_000 - close) / 50;
        candle
    });
    candles.collect()
}

/// Stored candles, and a vendor's reply with the last five of them and today's.
fn stored_and_fetched() -> (Vec<Candle>, Vec<Candle>) {
    let stored = walk(7, 40);
    let open = stored[stored.len() - 1].close_e4;
    let today = Candle {
        date: TODAY,
        open_e4: open,
        high_e4: open + 900,
        low_e4: open - 900,
        close_e4: open + 500,
        volume: 3,
    };
    let fresh = stored[stored.len() - 5..].iter().copied().chain([today]).collect();
    (tail(&stored).to_vec(), fresh)
}

fn judged(change: impl Fn(&mut Vec<Candle>)) -> Result<Candle, RunningFault> {
    let (tail, mut fresh) = stored_and_fetched();
    change(&mut fresh);
    running(&tail, &fresh, TODAY, &every_day)
}

#[test]
fn a_plausible_candle_is_accepted_at_any_volume() {
    let (tail, fresh) = stored_and_fetched();
    assert_eq!(tail.len(), TAIL_SESSIONS);
    assert_eq!(judged(|_| ()), Ok(fresh[5]));
    assert_eq!(running(&[], &fresh, TODAY, &every_day), Err(RunningFault::Absent));
}

#[test]
fn an_implausible_candle_is_refused_with_its_fault() {
    let split = |part: i64| {
        judged(|fresh| {
            let Candle { open_e4, high_e4, low_e4, close_e4, .. } = &mut fresh[5];
            for price in [open_e4, high_e4, low_e4, close_e4] {
                *price /= part;
            }
        })
    };
    for part in [2, 3, 5, 10] {
        // On so little volume no ratio is named.
        let suspected = Conflict::Suspected(Suspected { date: TODAY, ratio: None });
        assert_eq!(split(part), Err(RunningFault::Conflict(suspected)), "{part}");
    }
    assert_eq!(judged(|fresh| fresh.truncate(5)), Err(RunningFault::Absent));
    assert_eq!(judged(Vec::clear), Err(RunningFault::Absent));
    let crossed = judged(|fresh| fresh[5].high_e4 = 1);
    assert!(matches!(crossed, Err(RunningFault::Impossible(_))), "{crossed:?}");
    let untraded = judged(|fresh| fresh[5].volume = 0);
    assert!(matches!(untraded, Err(RunningFault::Impossible(_))), "{untraded:?}");
    let tomorrow = judged(|fresh| fresh[5].date = TODAY.tomorrow().unwrap());
    assert!(matches!(tomorrow, Err(RunningFault::Impossible(_))), "{tomorrow:?}");
    let rewritten = judged(|fresh| fresh[1].high_e4 += 1);
    let date = stored_and_fetched().1[1].date;
    assert_eq!(rewritten, Err(RunningFault::Conflict(Conflict::Rewritten { date })));
    let alone = judged(|fresh| drop(fresh.drain(..5)));
    assert_eq!(alone, Err(RunningFault::Conflict(Conflict::NoOverlap)));
}

#[test]
fn a_missing_session_before_the_running_candle_is_a_gap() {
    let (tail, fresh) = stored_and_fetched();
    let short = &tail[..tail.len() - 1];
    let without: Vec<Candle> =
        fresh.iter().filter(|candle| candle.date != tail[tail.len() - 1].date).copied().collect();
    assert_eq!(running(short, &without, TODAY, &every_day), Err(RunningFault::Gap));
    // The vendor has the missing session, but it is not stored, so the running candle has nothing
    // to follow.
    assert_eq!(running(short, &fresh, TODAY, &every_day), Err(RunningFault::Gap));
}

#[test]
fn a_tail_is_long_enough_for_patterns_of_many_kinds() {
    let detector = Detector::default();
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let candles = walk(seed, TAIL_SESSIONS + 1);
        let (last, before) = candles.split_last().unwrap();
        kinds.extend(newest(&detector, before, last).into_iter().map(Key::function_name));
    }
    assert!(kinds.len() > 25, "{kinds:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// So a look needs only the tail, not the whole history.
    #[test]
    fn a_tail_gives_the_same_patterns_as_the_whole_history(seed: u64, count in 2..600_usize) {
        let candles = walk(seed, count);
        let (last, before) = candles.split_last().unwrap();
        let detector = Detector::default();
        let whole = detector.newest(&Columns::of(&candles));
        prop_assert_eq!(newest(&detector, tail(before), last), whole);
    }
}
