//! Histories with the faults that vendors make, and the guarantees of joining.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Monday 2 November 2026.
const MONDAY: Date = jiff::civil::date(2026, 11, 2);
/// A Sunday with an evening session.
const MUHURAT: Date = jiff::civil::date(2026, 11, 8);
/// A Tuesday without a session.
const HOLIDAY: Date = jiff::civil::date(2026, 11, 10);

fn trades_on(date: Date) -> bool {
    date == MUHURAT || (date != HOLIDAY && date.weekday().to_monday_zero_offset() < 5)
}

fn day(date: Date, after: i64) -> Date {
    date.checked_add(jiff::Span::new().days(after)).unwrap()
}

fn candle(date: Date, price: i64, volume: i64) -> Candle {
    let low_e4 = price - price / 50;
    Candle {
        date,
        open_e4: price,
        high_e4: price + 7,
        low_e4,
        close_e4: price + 3,
        volume,
    }
}

/// A candle for each session from `MONDAY` to `days` later, with slowly rising prices.
fn history(days: i64) -> Vec<Candle> {
    let all = sessions(MONDAY, day(MONDAY, days), &trades_on).enumerate();
    all.map(|(at, date)| candle(date, 1_000_000 + at as i64 * 100, 5_000))
        .collect()
}

fn window(days: i64) -> Window {
    Window {
        from: MONDAY,
        to: day(MONDAY, days),
        untraded: false,
    }
}

fn judged(candles: &[Candle], days: i64) -> Checked {
    check(candles, window(days), &trades_on)
}

fn texts(checked: &Checked) -> Vec<String> {
    checked.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn a_complete_history_with_special_sessions_is_clean() {
    let good = history(18);
    let checked = judged(&good, 18);
    assert!(checked.is_clean(), "{checked:?}");
    assert_eq!(checked.candles, good);
    assert!(good.iter().any(|candle| candle.date == MUHURAT));
    assert_eq!((checked.leading, checked.outside, checked.holiday_rows), (0, 0, 0));
}

#[test]
fn a_fault_is_reported_and_drops_only_its_day() {
    let mut bad = history(11);
    let tuesday = bad[1].date;
    bad[1].high_e4 = bad[1].low_e4 - 1;
    bad.push(candle(HOLIDAY, 1_000_000, 9));
    bad.push(candle(day(MONDAY, 12), 1_000_000, 9));
    let mut late = bad[2];
    late.volume += 1;
    bad.push(late);
    let checked = judged(&bad, 11);
    assert_eq!(
        texts(&checked),
        [
            "2026-11-03: the high is below another price, or the low above one",
            "2026-11-10 is no trading date",
            "2026-11-14 is not over",
            "2026-11-04 comes after 2026-11-13",
        ]
    );
    assert_eq!(checked.missing, [tuesday]);
    assert_eq!(checked.candles.len(), history(11).len() - 1);
}

#[test]
fn a_duplicate_date_keeps_equal_candles_and_drops_different_ones() {
    let mut same = history(4);
    same.insert(2, same[1]);
    let checked = judged(&same, 4);
    assert_eq!(texts(&checked), ["2026-11-03 comes twice"]);
    assert_eq!((checked.candles, checked.missing), (history(4), vec![]));
    let mut different = history(4);
    for _ in 0..2 {
        different.insert(2, candle(different[1].date, 999, 1));
    }
    let checked = judged(&different, 4);
    assert_eq!(checked.faults.len(), 2);
    assert_eq!(checked.missing, [day(MONDAY, 1)], "nobody knows which one is right");
}

#[test]
fn missing_sessions_differ_from_sessions_before_the_listing() {
    let mut some = history(11);
    some.drain(..2);
    some.remove(1);
    some.pop();
    let checked = judged(&some, 11);
    assert!(checked.faults.is_empty());
    assert_eq!(checked.leading, 2, "listed on the third day, for all we know");
    assert_eq!(checked.missing, [day(MONDAY, 3), day(MONDAY, 11)]);
    let none = judged(&[], 11);
    assert_eq!((none.leading, none.missing.len()), (history(11).len(), 0));
}

#[test]
fn a_row_of_a_holiday_is_a_fault_only_with_volume() {
    let mut rows = history(11);
    let at = rows
        .iter()
        .position(|candle| candle.date > HOLIDAY)
        .unwrap();
    rows.insert(
        at,
        Candle {
            volume: 0,
            ..candle(HOLIDAY, 1_000_000, 1)
        },
    );
    rows.insert(0, candle(day(MONDAY, -3), 1_000_000, 1));
    let checked = judged(&rows, 11);
    assert!(checked.is_clean());
    assert_eq!((checked.holiday_rows, checked.outside), (1, 1));
    let mut untraded = history(11);
    untraded[3].volume = 0;
    let checked = judged(&untraded, 11);
    assert_eq!(texts(&checked), ["2026-11-05: nothing was traded"]);
}

/// A history whose candles from `at` on are priced after a split of `old` shares into `new`.
fn split_at(at: usize, (new, old): (i64, i64), volume: impl Fn(i64) -> i64) -> Vec<Candle> {
    let mut candles = history(40);
    for candle in &mut candles[at..] {
        let price = candle.open_e4 * old / new;
        *candle = self::candle(candle.date, price, volume(candle.volume));
    }
    candles
}

#[test]
fn splits_bonuses_and_consolidations_are_suspected() {
    for ratio in [
        (2, 1),
        (5, 1),
        (10, 1),
        (3, 2),
        (4, 3),
        (5, 4),
        (1, 5),
        (1, 10),
        (20, 1),
    ] {
        let (new, old) = ratio;
        let candles = split_at(9, ratio, |volume| volume * new / old);
        let checked = judged(&candles, 40);
        assert!(checked.faults.is_empty());
        assert_eq!(
            checked.suspected,
            [Suspected {
                date: candles[9].date,
                ratio: Some(ratio)
            }]
        );
        assert!(!checked.is_clean());
    }
}

#[test]
fn a_gap_beyond_what_a_share_opens_at_is_suspected_whatever_its_ratio() {
    let date = history(40)[9].date;
    // A demerger, a special dividend, an unusual bonus, a wrong candle.
    for (new, old) in [
        (10, 7),
        (100, 89),
        (100, 85),
        (7, 6),
        (100, 118),
        (100, 115),
        (100, 30),
        (9, 5),
        (6, 5),
    ] {
        let suspected = suspected(&split_at(9, (new, old), |volume| volume));
        assert_eq!(suspected.len(), 1, "{new}:{old}");
        assert_eq!(suspected[0].date, date);
    }
    // On volumes that no split has, the ratio is not believed, and the gap is.
    let gap = [Suspected { date, ratio: None }];
    assert_eq!(suspected(&split_at(9, (2, 1), |volume| volume * 40)), gap);
    assert_eq!(suspected(&split_at(9, (10, 7), |volume| volume * 10 / 7)), gap);
    // The pre-open finds prices within a tenth.
    for old in [100, 105, 109, 110, 95, 91] {
        assert_eq!(suspected(&split_at(9, (100, old), |volume| volume)), [], "{old}");
    }
    assert_eq!(suspected(&[]), []);
}

/// Falls of more than a quarter on one day, after an opening within the limit, and a share that
/// opens far away every other day.
#[test]
fn falls_in_trading_and_wild_shares_are_not_suspected() {
    let mut fallen = history(60);
    let day = &mut fallen[30];
    (day.low_e4, day.close_e4) = (day.open_e4 * 7 / 10, day.open_e4 * 72 / 100);
    let close_e4 = day.close_e4;
    for candle in &mut fallen[31..] {
        *candle = self::candle(candle.date, close_e4, candle.volume);
    }
    assert_eq!(suspected(&fallen), []);
    let mut wild = history(60);
    for (at, candle) in wild.iter_mut().enumerate() {
        let price = if at % 2 == 0 { 1_000_000 } else { 1_130_000 };
        *candle = self::candle(candle.date, price, candle.volume);
    }
    let early = suspected(&wild)
        .into_iter()
        .all(|suspected| suspected.date < wild[22].date);
    assert!(early, "twenty gaps tell what is usual");
}

#[test]
fn a_base_price_tells_which_candles_are_not_adjusted() {
    let before = day(MONDAY, 1);
    let day = day(MONDAY, 2);
    let before = candle(before, 4_000_000, 9);
    let opens = |open_e4| candle(day, open_e4, 9);
    // A demerger of five hundredths, an ordinary day, a vendor that has adjusted.
    assert!(is_unadjusted(&before, &opens(3_810_000), 3_800_000));
    assert!(!is_unadjusted(&before, &opens(3_810_000), 4_000_000));
    assert!(!is_unadjusted(&before, &opens(3_990_000), 3_950_000));
    // The day did not open there, so the base price is of something else.
    assert!(!is_unadjusted(&before, &opens(3_995_000), 3_800_000));
}

#[test]
fn new_sessions_are_appended() {
    let all = history(18);
    let (stored, _) = all.split_at(8);
    let merged = merge(stored, &all[5..], &trades_on).unwrap();
    assert_eq!(
        merged,
        Merged {
            append: all[8..].to_vec(),
            waits_for: None
        }
    );
    let nothing = merge(stored, &stored[6..], &trades_on).unwrap();
    assert_eq!(nothing, Merged::default());
    // The vendor corrected a volume, lost a stored day and found older candles. None of this is a
    // conflict.
    let mut fresh = history(18);
    fresh[6].volume += 1;
    fresh.remove(5);
    let merged = merge(&stored[3..], &fresh, &trades_on).unwrap();
    assert_eq!(merged.append, all[8..]);
}

#[test]
fn sessions_after_a_gap_wait_for_the_missing_one() {
    let mut fresh = history(18);
    let absent = fresh.remove(9).date;
    let merged = merge(&history(18)[..8], &fresh, &trades_on).unwrap();
    assert_eq!((merged.append.len(), merged.waits_for), (1, Some(absent)));
    assert_eq!(absent, day(MONDAY, 11));
}

#[test]
fn changed_or_inserted_dates_are_conflicts() {
    let all = history(18);
    let mut rewritten = all.clone();
    rewritten[7].close_e4 += 1;
    let date = all[7].date;
    let merge = |stored: &[Candle], fresh: &[Candle]| merge(stored, fresh, &trades_on);
    assert_eq!(merge(&all[..9], &rewritten[5..]), Err(Conflict::Rewritten { date }));
    let mut holed = all[..9].to_vec();
    holed.remove(7);
    assert_eq!(merge(&holed, &all[5..]), Err(Conflict::Inserted { date }));
    assert_eq!(merge(&all[..8], &all[8..]), Err(Conflict::NoOverlap));
    assert_eq!(merge(&[], &all), Err(Conflict::NoOverlap));
    assert_eq!(merge(&all[..8], &[]), Err(Conflict::NoOverlap));
    let split = split_at(12, (2, 1), |volume| volume * 2);
    let suspected = Suspected {
        date: split[12].date,
        ratio: Some((2, 1)),
    };
    assert_eq!(merge(&split[..12], &split[9..]), Err(Conflict::Suspected(suspected)));
    // A suspected split among stored candles is no conflict for the days after it.
    assert!(merge(&split[..14], &split[9..]).is_ok());
}

fn any_candle() -> impl Strategy<Value = Candle> {
    let price = prop_oneof![Just(0), -5_i64..5, 90_i64..110, Just(i64::MAX)];
    let prices = [price.clone(), price.clone(), price.clone(), price];
    (0_i64..30, prices, prop_oneof![Just(0_i64), 1_i64..9, Just(i64::MAX)]).prop_map(
        |(after, [open_e4, high_e4, low_e4, close_e4], volume)| Candle {
            date: day(MONDAY, after),
            open_e4,
            high_e4,
            low_e4,
            close_e4,
            volume,
        },
    )
}

proptest! {
    #[test]
    fn any_candles_are_checked_into_a_valid_history(
        candles in proptest::collection::vec(any_candle(), 0..60),
        days in 0_i64..30,
    ) {
        let checked = judged(&candles, days);
        for pair in checked.candles.windows(2) {
            prop_assert!(pair[0].date < pair[1].date);
        }
        for candle in &checked.candles {
            prop_assert!(candle.check().is_ok() && trades_on(candle.date));
            prop_assert!(candle.date >= MONDAY && candle.date <= day(MONDAY, days));
            prop_assert!(candles.contains(candle), "none is made up");
        }
        let has: BTreeSet<Date> = checked.candles.iter().map(|candle| candle.date).collect();
        let all: BTreeSet<Date> =
            sessions(MONDAY, day(MONDAY, days), &trades_on).collect();
        let missing: BTreeSet<Date> = checked.missing.iter().copied().collect();
        prop_assert!(missing.is_disjoint(&has));
        prop_assert_eq!(missing.len() + has.len() + checked.leading, all.len());
        // A second check of the accepted candles finds no fault.
        let again = judged(&checked.candles, days);
        prop_assert!(again.faults.is_empty());
        prop_assert_eq!(again.candles, checked.candles);
    }

    #[test]
    fn joining_a_history_in_any_pieces_gives_the_whole(
        cuts in proptest::collection::vec(1_usize..9, 1..9),
    ) {
        let all = history(60);
        let mut stored = all[..3].to_vec();
        let mut until = 3;
        for cut in cuts {
            until = (until + cut).min(all.len());
            let from = stored.len().saturating_sub(cut);
            let merged = merge(&stored, &all[from..until], &trades_on).unwrap();
            prop_assert_eq!(merged.waits_for, None);
            stored.extend(merged.append);
            prop_assert_eq!(&stored, &all[..until]);
        }
    }

    #[test]
    fn joining_keeps_stored_candles_and_leaves_no_gap(
        stored in proptest::collection::vec(any_candle(), 0..40),
        fresh in proptest::collection::vec(any_candle(), 0..40),
    ) {
        let sorted = |mut candles: Vec<Candle>| {
            candles.sort_by_key(|candle| candle.date);
            judged(&candles, 30).candles
        };
        let stored = sorted(stored);
        let fresh = sorted(fresh);
        if let Ok(merged) = merge(&stored, &fresh, &trades_on) {
            let last = stored.last().unwrap().date;
            let expected = sessions(last, day(MONDAY, 30), &trades_on).filter(|date| *date > last);
            let appended = merged.append.iter().map(|candle| candle.date);
            prop_assert!(appended.zip(expected).all(|(one, other)| one == other));
            prop_assert!(merged.append.iter().all(|candle| fresh.contains(candle)));
        }
    }
}
