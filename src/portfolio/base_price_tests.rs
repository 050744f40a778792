//! Syncs and closes around an adjusted base price, and prices that are still the close before.

use super::*;
use crate::base::base_ratio::BaseRatio;
use crate::base::{Account, ActionSign, Broker, Cost, Mark};
use crate::portfolio::close::reprice;
use crate::portfolio::testing::{friday, holding};
use crate::portfolio::valuation::{summary, valued};
use jiff::Timestamp;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn at(time: &str) -> Timestamp {
    format!("2026-11-{time}+05:30").parse().unwrap()
}

fn close(price: &str, before: Option<&str>) -> ClosingPrice {
    ClosingPrice {
        price: decimal(price),
        previous_close: before.map(decimal),
        as_of_ms: at("19T15:30:00").as_millisecond(),
        official: true,
        base_ratio: None,
    }
}

/// A row of broker A: quantity, average, last price and previous close, priced at `time`.
fn row(figures: (i64, &str, &str, &str), time: &str) -> Holding {
    let (quantity, average, last, previous) = figures;
    Holding {
        cost: Some(Cost::PerShare(decimal(average))),
        last_price: Some(decimal(last)),
        close_price: previous.parse().ok(),
        as_of_ms: at(time).as_millisecond(),
        ..holding("POWERGRID", quantity, 1)
    }
}

/// A sync on `day` that replaces `before`, with the stored close of the session before.
fn synced(day: &MarketDay, stored: ClosingPrice, before: &Holding, after: Holding) -> Derived {
    let closes = HashMap::from([(Symbol::parse("NSE:POWERGRID").unwrap(), stored)]);
    let none = HashMap::new();
    let stood = Stood {
        accounts: [Account::at(Broker::A)].into_iter().collect(),
        holdings: std::slice::from_ref(before),
        positions: &[],
        closes: &none,
        closes_before: &closes,
    };
    derive(
        Account::at(Broker::A),
        day,
        stood,
        &Synced {
            holdings: vec![after],
            ..Synced::default()
        },
    )
}

fn on(date: &str) -> MarketDay {
    let date: Date = format!("2026-11-{date}").parse().unwrap();
    MarketDay {
        today: date,
        session: date,
        day: Some(date),
        session_before: date.yesterday().ok(),
        stood_at: None,
        ..friday()
    }
}

fn sign(derived: &Derived) -> (Option<ActionSign>, bool) {
    (derived.holdings[0].mark.map(|mark| mark.sign), derived.point.suspect)
}

const EX_DATE: &str = "20T11:00:00";

fn held() -> Holding {
    row((300, "210", "264.50", ""), "19T15:30:00")
}

#[test]
fn a_base_price_marks_the_row_and_the_point_whatever_its_size() {
    for (last, base) in [
        ("198.40", "198.37"), // a bonus of one for three
        ("240", "240.45"),    // one for ten
        ("220", "220.42"),    // one for five
        ("177", "176.33"),    // one for two
        ("250", "251.30"),    // rights
        ("186", "185.15"),    // a demerger
        ("259", "254.50"),    // a special dividend
        ("131", "132.25"),    // a split
        ("1330", "1322.50"),  // a consolidation
    ] {
        let derived = synced(
            &friday(),
            close("264.50", Some("262")),
            &held(),
            row((300, "210", last, base), EX_DATE),
        );
        assert_eq!(sign(&derived), (Some(ActionSign::BasePrice), true), "{base}");
        assert_eq!(derived.holdings[0].close_price, Some(decimal(base)), "the day's move is right");
        assert_eq!(derived.outcome.suspected.rows[0].1.as_str(), "base_price");
    }
}

#[test]
fn what_is_no_base_price_marks_nothing() {
    let last_trade = ClosingPrice {
        official: false,
        ..close("264.50", None)
    };
    let after = |previous| row((300, "210", "262.40", previous), EX_DATE);
    for (stored, previous) in [
        (close("264.50", Some("262")), "264.50"),
        (close("264.50", Some("262")), "264.55"),
        (close("264.50", Some("262")), "262"),
        (last_trade, "266"),
        (last_trade, "258.10"),
    ] {
        let derived = synced(&friday(), stored, &held(), after(previous));
        assert_eq!(sign(&derived), (None, false), "{previous}");
    }
    // Nothing is stored, and the row's own price was a midday's.
    let midday = row((300, "210", "250", ""), "19T12:00:00");
    let other = ClosingPrice {
        price: decimal("264.50"),
        ..last_trade
    };
    assert_eq!(sign(&synced(&friday(), other, &midday, after("264.50"))), (None, false));
    // Bought on the day itself.
    let closes = HashMap::from([(Symbol::parse("NSE:POWERGRID").unwrap(), close("264.50", None))]);
    let none = HashMap::new();
    let stood = Stood {
        accounts: Accounts::default(),
        holdings: &[],
        positions: &[],
        closes: &none,
        closes_before: &closes,
    };
    let bought = Synced {
        holdings: vec![after("198.37")],
        ..Synced::default()
    };
    assert_eq!(sign(&derive(Account::at(Broker::A), &friday(), stood, &bought)), (None, false));
}

/// A bonus of one for three, day by day.
#[test]
fn the_mark_stays_until_quantity_and_cost_have_followed() {
    let stored = close("264.50", Some("262"));
    let first = synced(&friday(), stored, &held(), row((300, "210", "198.40", "198.37"), EX_DATE));
    let marked = Some(ActionSign::BasePrice);
    let awaited = Some(ActionSign::AverageAwaited);
    let again = synced(
        &friday(),
        stored,
        &first.holdings[0],
        row((300, "210", "199", "198.37"), "20T14:00:00"),
    );
    assert_eq!(sign(&again), (marked, true), "the same day");
    let monday = |before: &Holding, quantity, average| {
        let after = row((quantity, average, "201", "199"), "23T11:00:00");
        synced(&on("23"), close("199", Some("198.37")), before, after)
    };
    let waits = monday(&again.holdings[0], 300, "210");
    assert_eq!(sign(&waits), (marked, true));
    assert_eq!(sign(&monday(&waits.holdings[0], 150, "210")), (marked, true), "half was sold");
    assert_eq!(sign(&monday(&waits.holdings[0], 310, "209.70")), (marked, true), "some bought");
    let shares = monday(&waits.holdings[0], 400, "210");
    assert_eq!(sign(&shares), (awaited, true), "the value is right, the profit is not");
    let still = monday(&shares.holdings[0], 400, "210");
    assert_eq!(sign(&still), (awaited, true));
    let cost = monday(&still.holdings[0], 400, "157.50");
    assert_eq!(sign(&cost), (Some(ActionSign::SharesArrived), false));
    let both = monday(&waits.holdings[0], 400, "157.50");
    assert_eq!(sign(&both), (Some(ActionSign::SharesArrived), false), "at once");
    let after = row((400, "157.50", "203", "201"), "24T11:00:00");
    let over = synced(&on("24"), close("201", Some("199")), &both.holdings[0], after);
    assert_eq!(sign(&over), (None, false));
}

#[test]
fn shares_that_are_there_at_once_are_not_marked_as_missing() {
    let stored = close("264.50", Some("262"));
    let there = row((400, "157.50", "198.40", "198.37"), EX_DATE);
    let derived = synced(&friday(), stored, &held(), there.clone());
    assert_eq!(sign(&derived), (Some(ActionSign::InverseRatios), true));
    let again = synced(&friday(), stored, &derived.holdings[0], there);
    assert_eq!(sign(&again), (Some(ActionSign::InverseRatios), true), "no base price once more");
    let uncorrected = row((400, "210", "198.40", "198.37"), EX_DATE);
    let derived = synced(&friday(), stored, &held(), uncorrected);
    assert_eq!(sign(&derived), (Some(ActionSign::AverageAwaited), true));
}

#[test]
fn a_mark_that_no_quantity_follows_ends_by_itself() {
    let mark = |ratio: &str, on: &str| {
        let on = format!("2026-11-{on}").parse().unwrap();
        Mark {
            on,
            sign: ActionSign::BasePrice,
            ratio: Some(BaseRatio(decimal(ratio))),
        }
    };
    for (ratio, date, stands) in [
        ("0.9622", "14", true),
        ("0.9622", "13", false), // money: a week
        ("0.7", "13", false),
        ("0.75", "13", true), // shares: thirty days
        ("0.75", "01", true),
    ] {
        let before = Holding {
            mark: Some(mark(ratio, date)),
            ..held()
        };
        let after = row((300, "210", "264", "264.50"), EX_DATE);
        let derived = synced(&friday(), close("264.50", None), &before, after);
        assert_eq!(sign(&derived).0.is_some(), stands, "{ratio} {date}");
        // A close ends it too, without a sync.
        let mut rows = [before];
        let date = friday().today;
        reprice(&mut rows, date, |_| Some(close("264.50", None)));
        assert_eq!(rows[0].mark.is_some(), stands, "{ratio} {date}");
    }
    // A demerger is over once the broker has split the cost.
    let before = Holding {
        mark: Some(mark("0.7", "18")),
        ..held()
    };
    let after = row((300, "148", "186", "185.15"), EX_DATE);
    assert_eq!(sign(&synced(&friday(), close("185.15", None), &before, after)), (None, false));
}

#[test]
fn a_close_marks_rows_that_were_not_synced_that_day() {
    let adjusted = ClosingPrice {
        previous_close: Some(decimal("198.37")),
        base_ratio: Some(BaseRatio(decimal("0.75"))),
        as_of_ms: at("20T15:30:00").as_millisecond(),
        ..close("198.40", None)
    };
    let date = friday().today;
    let mut rows = [
        held(),
        // It was synced that day, and judged then.
        row((300, "210", "198.40", "198.37"), EX_DATE),
        Holding {
            mark: Some(Mark {
                on: date,
                sign: ActionSign::SharesArrived,
                ratio: None,
            }),
            ..held()
        },
    ];
    reprice(&mut rows, date, |_| Some(adjusted));
    let signs = rows.each_ref().map(|row| row.mark.map(|mark| mark.sign));
    let arrived = Some(ActionSign::SharesArrived);
    assert_eq!(signs, [Some(ActionSign::BasePrice), None, arrived]);
    assert!(
        rows.iter()
            .all(|row| row.close_price == Some(decimal("198.37")))
    );
}

#[test]
fn a_price_that_is_still_the_close_is_no_move_of_the_day() {
    let tuesday = close("1400", Some("1380"));
    let day_pnl = |day: &MarketDay, after: Holding| {
        let derived = synced(day, tuesday, &held(), after);
        let rows = valued(&derived.holdings).unwrap();
        let sum = summary(&rows, day.day).unwrap();
        (sum.day_pnl, derived.holdings[0].as_of_ms)
    };
    let dated = tuesday.as_of_ms;
    let evening = MarketDay {
        last_close: Some(at("20T15:35:00")),
        ..friday()
    };
    for day in [friday(), evening] {
        // A holiday that the calendar does not know, or a halt.
        let still = row((14, "1000", "1400", "1380"), EX_DATE);
        assert_eq!(day_pnl(&day, still), (None, dated));
        // Broker B says the change alone.
        let mut percent = row((14, "1000", "1400", ""), EX_DATE);
        (percent.close_price, percent.change_pct) = (None, Some(decimal("1.45")));
        assert_eq!(day_pnl(&day, percent), (None, dated));
    }
    let now = at(EX_DATE).as_millisecond();
    let moved = row((14, "1000", "1405", "1400"), EX_DATE);
    assert_eq!(day_pnl(&friday(), moved), (Some(decimal("70")), now));
    let unmoved = row((14, "1000", "1400", "1400"), EX_DATE);
    assert_eq!(day_pnl(&friday(), unmoved), (Some(Decimal::ZERO), now));
}

#[test]
fn in_the_evening_a_row_has_the_change_of_its_session_or_none() {
    let evening = MarketDay {
        last_close: Some(at("20T15:35:00")),
        ..friday()
    };
    let rolled = row((10, "1000", "1420", "1420"), EX_DATE);
    let previous = |stored: ClosingPrice, after: Holding| {
        synced(&evening, stored, &held(), after).holdings[0].close_price
    };
    assert_eq!(previous(close("1400", None), rolled.clone()), Some(decimal("1400")));
    let mut other = rolled.clone();
    other.tradingsymbol = "NTPC".into();
    assert_eq!(previous(close("1400", None), other), None, "nothing is known of it");
    let mut percent = rolled;
    (percent.close_price, percent.change_pct) = (None, Some(Decimal::ZERO));
    assert_eq!(previous(close("1400", None), percent), Some(decimal("1400")));
}
