//! The exchange day's promises: prices depend on the seed alone, closes carry over, and prices
//! freeze outside trading.

use super::*;
use crate::sim::exchange::universe::Universe;
use rust_decimal::Decimal;

fn at(text: &str) -> Timestamp {
    format!("{text}+05:30").parse().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_prices_and_another_seed_others() {
    let prices = |seed| {
        let universe = Universe::new(seed, 0);
        let day = Day::new(seed, Sessions::weekdays());
        let now = at("2026-11-20T11:42:17");
        universe
            .all()
            .iter()
            .map(|i| day.tick(i, now))
            .collect::<Vec<_>>()
    };
    assert_eq!(prices(42), prices(42));
    assert_ne!(prices(42), prices(43));
}

#[test]
fn the_previous_close_is_the_close_of_the_session_before_across_weekends_and_holidays() {
    let universe = Universe::new(5, 0);
    // Tuesday 24 November 2026 is a holiday (Guru Nanak Jayanti).
    let holiday = jiff::civil::date(2026, 11, 24);
    let weekdays = Sessions::weekdays();
    let day = Day::new(5, Sessions::new(move |d| d != holiday && weekdays.trades_on(d)));
    for key in [
        "NSE:INFY",
        "NSE:NIFTY 50",
        "NSE:SIM300",
        "NSE:INDIA VIX",
        "BSE:SENSEX",
    ] {
        let instrument = universe.by_key(key).unwrap();
        let tick = |text| day.tick(instrument, at(text));
        let friday = tick("2026-11-20T16:10:00");
        assert_eq!(tick("2026-11-21T12:00:00"), friday, "Saturday shows Friday, {key}");
        let early = tick("2026-11-23T08:00:00");
        assert_eq!((early.last, early.previous_close), (friday.last, friday.last), "{key}");
        assert_eq!((early.open, early.high, early.low), (0, 0, 0));
        assert_eq!(early.as_of, friday.as_of);
        let monday = tick("2026-11-23T14:00:00");
        assert_eq!(monday.previous_close, friday.last, "{key}");
        let monday = tick("2026-11-23T18:00:00");
        assert_eq!(monday.previous_close, friday.last, "still, after the close, {key}");
        assert_eq!(tick("2026-11-25T10:00:00").previous_close, monday.last, "{key}");
    }
}

#[test]
fn the_range_of_a_day_contains_its_price_and_begins_with_the_session() {
    let universe = Universe::new(7, 0);
    let day = Day::new(7, Sessions::weekdays());
    let times = [
        "09:15:00", "09:15:01", "11:00:30", "15:20:00", "15:31:00", "16:10:00",
    ];
    for key in ["NSE:INFY", "NSE:NIFTY 50", "NSE:SIM300", "BSE:SENSEX"] {
        let instrument = universe.by_key(key).unwrap();
        let mut low = i64::MAX;
        let mut high = 0;
        for time in times {
            let tick = day.tick(instrument, at(&format!("2026-11-20T{time}")));
            assert!(0 < tick.low && tick.low <= tick.last && tick.last <= tick.high, "{tick:?}");
            assert!(tick.low <= low && tick.high >= high, "{tick:?} narrower than before");
            (low, high) = (tick.low, tick.high);
        }
        // A price that was ordered is within it, too, and makes none before the open.
        let symbol = key.to_owned();
        let price = Some(Decimal::ONE);
        let order = TradingOrder {
            symbol,
            price,
            previous_close: None,
            open: None,
            halted: None,
        };
        day.trade(instrument, &order, at("2026-11-19T12:00:00"))
            .unwrap();
        let tick = day.tick(instrument, at("2026-11-20T11:00:30"));
        assert_eq!((tick.last, tick.low), (100, 100));
        assert!(tick.high > 100);
        let early = day.tick(instrument, at("2026-11-20T08:00:00"));
        assert_eq!((early.high, early.low), (0, 0), "{early:?}");
    }
}

#[test]
fn the_closing_auction_freezes_constituents_and_prints_once() {
    let universe = Universe::new(9, 0);
    let day = Day::new(9, Sessions::weekdays());
    let infy = universe.by_key("NSE:INFY").unwrap();
    let frozen = day.tick(infy, at("2026-11-20T15:15:00"));
    assert_eq!(day.tick(infy, at("2026-11-20T15:34:59")), frozen);
    let done = day.tick(infy, at("2026-11-20T15:35:00"));
    assert_eq!(done.as_of, at("2026-11-20T15:35:00"));
    assert_ne!(done.last, frozen.last);
    assert_eq!(day.tick(infy, at("2026-11-20T23:00:00")), done);
    // Other shares trade on until 15:30, as all did before August 2026.
    let other = universe.by_key("NSE:SIM300").unwrap();
    let prices = |instrument, date: &str| {
        let times = [
            "15:15:00", "15:18:00", "15:21:00", "15:24:00", "15:27:00", "15:29:59",
        ];
        let last = |time| day.tick(instrument, at(&format!("{date}T{time}"))).last;
        times
            .map(last)
            .into_iter()
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    assert!(prices(other, "2026-11-20") > 1);
    assert_eq!(prices(infy, "2026-11-20"), 1);
    assert!(prices(infy, "2026-07-31") > 1);
    let old = day.tick(infy, at("2026-07-31T15:30:00"));
    assert_eq!(old.as_of, at("2026-07-31T15:30:00"));
    assert_eq!(old, day.tick(infy, at("2026-07-31T15:40:00")));
}

#[test]
fn prices_move_stay_on_the_tick_and_inside_the_days_extremes() {
    let universe = Universe::new(3, 0);
    let day = Day::new(3, Sessions::weekdays());
    for instrument in universe.all().iter().step_by(17) {
        let start = at("2026-11-20T09:15:00").as_second();
        let mut high = 0;
        let mut low = i64::MAX;
        let mut seen = std::collections::HashSet::new();
        for second in 0..400 {
            let tick = day.tick(instrument, Timestamp::from_second(start + second).unwrap());
            (high, low) = (high.max(tick.last), low.min(tick.last));
            assert_eq!((tick.high, tick.low), (high, low), "{} +{second}", instrument.key);
            assert_eq!(tick.last % instrument.tick_paise, 0);
            seen.insert(tick.last);
        }
        // A share of some rupees moves by few ticks in seven minutes, an index by many.
        assert!(seen.len() > 1, "{} stands still", instrument.key);
        let tick = day.tick(instrument, at("2026-11-20T14:00:00"));
        let change = (tick.last - tick.previous_close).abs() * 1000 / tick.previous_close;
        assert!(change < 100, "{} moved {change} per mille", instrument.key);
    }
}

#[test]
fn bars_agree_with_the_ticks_and_with_the_day() {
    let universe = Universe::new(3, 0);
    let day = Day::new(3, Sessions::weekdays());
    let infy = universe.by_key("NSE:INFY").unwrap();
    let date = jiff::civil::date(2026, 11, 20);
    let after = at("2026-11-20T20:00:00");
    let minutes = day.bars(infy, date, 1, after);
    assert_eq!(minutes.len(), 360, "no bars during the auction");
    assert_eq!(day.bars(infy, date, 15, after).len(), 24);
    let whole = day.day_bar(infy, date);
    assert_eq!(whole.open, minutes[0].open);
    let high = minutes
        .iter()
        .map(|bar| bar.high)
        .max()
        .unwrap()
        .max(whole.close);
    assert_eq!(whole.high, high);
    for pair in minutes.windows(2) {
        assert_eq!(pair[0].close, pair[1].open);
    }
    let now = at("2026-11-20T10:07:31");
    let running = day.bars(infy, date, 5, now);
    assert_eq!(running.len(), 11);
    assert_eq!(running.last().unwrap().close, day.tick(infy, now).last);
    assert!(
        day.bars(infy, date, 5, at("2026-11-20T09:00:00"))
            .is_empty()
    );
}

#[test]
fn prices_that_move_twice_a_second_begin_each_second_as_those_that_move_once() {
    let universe = Universe::new(3, 0);
    let once = Day::new(3, Sessions::weekdays());
    let twice = Day {
        prices_per_s: 2,
        ..Day::new(3, Sessions::weekdays())
    };
    let moments = [
        "11:42:30.000",
        "11:42:30.499",
        "11:42:30.500",
        "11:42:30.999",
        "11:42:31.000",
    ];
    let mut moved = 0;
    for instrument in universe.all() {
        let shown = |day: &Day, time| day.tick(instrument, at(&format!("2026-11-20T{time}")));
        let ticks = moments.map(|time| shown(&twice, time));
        assert_eq!(ticks[0], ticks[1], "{}", instrument.key);
        assert_eq!(ticks[2], ticks[3], "{}", instrument.key);
        assert_eq!([0, 2, 4].map(|n: usize| ticks[n].part), [0, 1, 0]);
        assert_eq!(ticks[2].as_of, at("2026-11-20T11:42:30"));
        assert_eq!(ticks[4].as_of, at("2026-11-20T11:42:31"));
        for tick in &ticks {
            assert!(tick.low <= tick.last && tick.last <= tick.high, "{}", instrument.key);
        }
        for number in [0, 4] {
            assert_eq!(ticks[number].last, shown(&once, moments[number]).last);
        }
        moved += usize::from(ticks[0].last != ticks[2].last);
    }
    assert!(moved > universe.all().len() / 4, "{moved}");
}

#[test]
fn the_closing_auction_follows_the_calendars_regimes() {
    let universe = Universe::new(7, 0);
    let text =
        "[[regime]]\nfrom=\"2026-12-14\"\ncontinuous=\"09:15-15:30\"\nclosing=\"15:20-15:45\"";
    let calendar = MarketCalendar::with_operator_text(text, "mine.toml").unwrap();
    let day = Day::new(7, Sessions::weekdays().at_hours_of(Arc::new(calendar)));
    for (date, frozen, printed) in [
        ("2026-07-31", "15:30:00", "15:30:00"),
        ("2026-12-04", "15:15:00", "15:35:00"),
        ("2026-12-07", "15:29:59", "15:40:00"),
        ("2026-12-14", "15:20:00", "15:45:00"),
    ] {
        for (key, last) in [
            ("NSE:INFY", printed),
            ("NSE:NIFTY 50", printed),
            ("NSE:SIM300", "15:30:00"),
        ] {
            let instrument = universe.by_key(key).unwrap();
            let as_of = |time: &str| day.tick(instrument, at(&format!("{date}T{time}"))).as_of;
            let time = |time: &str| at(&format!("{date}T{time}"));
            assert_eq!(as_of("15:14:00"), time("15:14:00"), "{date} {key}");
            assert_eq!(as_of("23:00:00"), time(last), "{date} {key}");
            if last != "15:30:00" {
                assert_eq!(as_of("15:34:59"), time(frozen), "{date} {key}");
                // A second before the close the simulated line may have come to its level.
                let is_apart = frozen != "15:29:59";
                let before = day.tick(instrument, time("15:34:59")).last;
                let printed = day.tick(instrument, time(last)).last;
                assert!(!is_apart || before != printed, "{date} {key}");
            } else {
                assert_eq!(as_of("15:27:00"), time("15:27:00"), "{date} {key}");
            }
        }
    }
}

/// In two parts, and with an auction of its own: times of the last price in the session, and the
/// first instant at which the day's close is shown.
#[test]
fn a_special_session_has_the_calendars_hours() {
    let universe = Universe::new(7, 0);
    let text = "[[session]]\ndate=\"2026-12-05\"\nname=\"Drill\"\n\
                [[session.part]]\ncontinuous=\"09:15-10:00\"\n\
                [[session.part]]\ncontinuous=\"11:30-12:30\"\n\
                [[session]]\ndate=\"2026-12-12\"\nname=\"Evening\"\n\
                [[session.part]]\npre_open=\"17:45-18:00\"\ncontinuous=\"18:00-19:00\"\n\
                closing=\"19:00-19:10\"\n";
    let calendar = Arc::new(MarketCalendar::with_operator_text(text, "mine.toml").unwrap());
    let trading = Arc::clone(&calendar);
    let sessions = Sessions::new(move |date| trading.is_trading_date(date)).at_hours_of(calendar);
    let day = Day::new(7, sessions);
    for (key, now, shown) in [
        ("NSE:INFY", "05T09:00:00", "04T15:35:00"),
        ("NSE:SIM300", "05T09:00:00", "04T15:30:00"),
        ("NSE:INFY", "05T09:30:00", "05T09:30:00"),
        ("NSE:INFY", "05T10:30:00", "05T09:59:59"),
        ("NSE:INFY", "05T11:29:59", "05T09:59:59"),
        ("NSE:INFY", "05T12:00:00", "05T12:00:00"),
        ("NSE:INFY", "05T12:30:00", "05T12:30:00"),
        ("NSE:INFY", "05T15:00:00", "05T12:30:00"),
        ("NSE:SIM300", "05T15:00:00", "05T12:30:00"),
        ("NSE:INFY", "12T11:00:00", "11T15:40:00"),
        ("NSE:INFY", "12T18:30:00", "12T18:30:00"),
        ("NSE:INFY", "12T19:05:00", "12T18:59:59"),
        ("NSE:INFY", "12T19:10:00", "12T19:10:00"),
        ("NSE:SIM300", "12T19:05:00", "12T19:00:00"),
        ("NSE:SIM300", "12T23:05:00", "12T19:00:00"),
        ("NSE:NIFTY 50", "12T23:05:00", "12T19:10:00"),
    ] {
        let instrument = universe.by_key(key).unwrap();
        let tick = day.tick(instrument, at(&format!("2026-12-{now}")));
        assert_eq!(tick.as_of, at(&format!("2026-12-{shown}")), "{key} at {now}");
        assert!(tick.open == 0 || tick.low <= tick.last && tick.last <= tick.high, "{key} {now}");
    }
    let infy = universe.by_key("NSE:INFY").unwrap();
    let date = jiff::civil::date(2026, 12, 12);
    let bar = day.day_bar(infy, date);
    let closed = day.tick(infy, at("2026-12-12T20:00:00"));
    assert_eq!((bar.close, bar.high, bar.low), (closed.last, closed.high, closed.low));
    assert_eq!(bar.start, at("2026-12-12T18:00:00"));
    assert_eq!(day.bars(infy, date, 5, at("2026-12-12T23:00:00")).len(), 12);
}
