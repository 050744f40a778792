//! Tests of the phases: the boundaries of every kind of day, and the transitions compared with a
//! direct evaluation of the rules.

use std::sync::LazyLock;

use proptest::prelude::{ProptestConfig, any, proptest};

use super::*;
use crate::market::MarketCalendar;
use crate::market::calendar::FinalClose;

fn at(civil: &str) -> Timestamp {
    clock::instant(civil.parse().unwrap())
}

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

/// `(instant in IST, phase, is_open)`, checked at the instant and at the last millisecond of its
/// second.
fn check(calendar: &MarketCalendar, rows: &[(&str, Phase, bool)]) {
    for (civil, phase, is_open) in rows {
        for later_ms in [0, 999] {
            let instant =
                Timestamp::from_millisecond(at(civil).as_millisecond() + later_ms).unwrap();
            let status = calendar.status(instant);
            assert_eq!(
                (status.phase, status.is_open),
                (*phase, *is_open),
                "{civil} + {later_ms} ms"
            );
            assert!(status.calendar_known, "{civil}");
        }
    }
}

fn transitions(calendar: &MarketCalendar, from: &str, count: usize) -> Vec<String> {
    let mut now = at(from);
    let mut found = Vec::new();
    for _ in 0..count {
        let status = calendar.status(now);
        now = status.next_transition_at.unwrap();
        let next = calendar.status(now);
        assert_ne!((status.phase, status.is_open), (next.phase, next.is_open), "{now}");
        let open = if next.is_open { " open" } else { "" };
        found.push(format!("{} {}{open}", &clock::iso(now)[..19], next.phase.as_str()));
    }
    found
}

#[test]
fn a_day_before_august_2026_has_no_closing_auction() {
    use Phase::{Closed, Open, PostClose, PreOpen};
    check(
        &MarketCalendar::embedded(),
        &[
            ("2026-07-31T00:00:00", Closed, false),
            ("2026-07-31T08:59:59", Closed, false),
            ("2026-07-31T09:00:00", PreOpen, false),
            ("2026-07-31T09:14:59", PreOpen, false),
            ("2026-07-31T09:15:00", Open, true),
            ("2026-07-31T15:15:00", Open, true),
            ("2026-07-31T15:29:59", Open, true),
            ("2026-07-31T15:30:00", Closed, false),
            ("2026-07-31T15:39:59", Closed, false),
            ("2026-07-31T15:40:00", PostClose, false),
            ("2026-07-31T15:59:59", PostClose, false),
            ("2026-07-31T16:00:00", Closed, false),
            ("2026-07-31T23:59:59", Closed, false),
        ],
    );
}

#[test]
fn a_day_since_august_2026_has_a_closing_auction() {
    use Phase::{Closed, Closing, Open, PostClose, PreOpen};
    let calendar = MarketCalendar::embedded();
    for day in ["2026-08-03", "2026-09-04", "2026-09-07", "2026-11-20"] {
        let rows = [
            ("08:59:59", Closed, false),
            ("09:00:00", PreOpen, false),
            ("09:14:59", PreOpen, false),
            ("09:15:00", Open, true),
            ("15:14:59", Open, true),
            ("15:15:00", Closing, true),
            ("15:29:59", Closing, true),
            ("15:30:00", Closing, false),
            ("15:34:59", Closing, false),
            ("15:35:00", Closed, false),
            ("15:49:59", Closed, false),
            ("15:50:00", PostClose, false),
            ("15:59:59", PostClose, false),
            ("16:00:00", Closed, false),
        ];
        for (time, phase, is_open) in rows {
            check(&calendar, &[(&format!("{day}T{time}"), phase, is_open)]);
        }
    }
}

#[test]
fn weekends_holidays_and_special_sessions_have_their_own_phases() {
    use Phase::{Closed, Holiday, Open, PostClose, PreOpen};
    check(
        &MarketCalendar::embedded(),
        &[
            // A Saturday and a Sunday.
            ("2026-08-01T11:00:00", Closed, false),
            ("2026-08-02T11:00:00", Closed, false),
            // Holidays last from midnight to midnight. Some of these dates are wrong in calendar
            // libraries.
            ("2026-11-24T00:00:00", Holiday, false),
            ("2026-11-24T11:00:00", Holiday, false),
            ("2026-11-24T23:59:59", Holiday, false),
            ("2026-11-25T00:00:00", Closed, false),
            ("2023-06-28T11:00:00", Open, true),
            ("2023-06-29T11:00:00", Holiday, false),
            ("2024-05-20T11:00:00", Holiday, false),
            ("2026-01-15T11:00:00", Holiday, false),
            ("2026-03-03T11:00:00", Holiday, false),
            ("2026-03-04T11:00:00", Open, true),
            ("2026-08-26T11:00:00", Open, true),
            // A holiday on a Saturday changes nothing.
            ("2026-08-15T11:00:00", Closed, false),
            // Budget Sunday.
            ("2026-02-01T08:59:59", Closed, false),
            ("2026-02-01T09:00:00", PreOpen, false),
            ("2026-02-01T09:15:00", Open, true),
            ("2026-02-01T15:29:59", Open, true),
            ("2026-02-01T15:30:00", Closed, false),
            ("2026-02-01T15:40:00", PostClose, false),
            ("2025-02-01T15:29:59", Open, true),
            ("2024-01-20T09:15:00", Open, true),
            // Muhurat.
            ("2023-11-12T18:14:59", PreOpen, false),
            ("2023-11-12T18:15:00", Open, true),
            ("2023-11-12T19:14:59", Open, true),
            ("2023-11-12T19:15:00", Closed, false),
            ("2024-11-01T11:00:00", Closed, false),
            ("2024-11-01T17:45:00", PreOpen, false),
            ("2024-11-01T18:00:00", Open, true),
            ("2024-11-01T19:00:00", Closed, false),
            ("2025-10-21T11:00:00", Closed, false),
            ("2025-10-21T13:29:59", Closed, false),
            ("2025-10-21T13:30:00", PreOpen, false),
            ("2025-10-21T13:44:59", PreOpen, false),
            ("2025-10-21T13:45:00", Open, true),
            ("2025-10-21T14:44:59", Open, true),
            ("2025-10-21T14:45:00", Closed, false),
            // Drills in two parts.
            ("2024-03-02T09:14:59", Closed, false),
            ("2024-03-02T09:15:00", Open, true),
            ("2024-03-02T09:59:59", Open, true),
            ("2024-03-02T10:00:00", Closed, false),
            ("2024-03-02T11:29:59", Closed, false),
            ("2024-03-02T11:30:00", Open, true),
            ("2024-03-02T12:29:59", Open, true),
            ("2024-03-02T12:30:00", Closed, false),
        ],
    );
}

#[test]
fn transitions_follow_the_new_hours_from_the_first_trading_date_on() {
    let calendar = MarketCalendar::embedded();
    assert_eq!(
        transitions(&calendar, "2026-07-31T15:00:00", 8),
        [
            "2026-07-31T15:30:00 closed",
            "2026-07-31T15:40:00 post_close",
            "2026-07-31T16:00:00 closed",
            "2026-08-03T09:00:00 pre_open",
            "2026-08-03T09:15:00 open open",
            "2026-08-03T15:15:00 closing open",
            "2026-08-03T15:30:00 closing",
            "2026-08-03T15:35:00 closed",
        ]
    );
    assert_eq!(
        transitions(&calendar, "2026-11-23T15:55:00", 4),
        [
            "2026-11-23T16:00:00 closed",
            "2026-11-24T00:00:00 holiday",
            "2026-11-25T00:00:00 closed",
            "2026-11-25T09:00:00 pre_open",
        ]
    );
}

#[test]
fn the_trading_date_is_that_of_the_last_session_that_began() {
    let calendar = MarketCalendar::embedded();
    for (civil, expected) in [
        ("2026-11-20T09:14:59", "2026-11-19"),
        ("2026-11-20T09:15:00", "2026-11-20"),
        ("2026-11-20T23:59:59", "2026-11-20"),
        ("2026-11-22T12:00:00", "2026-11-20"),
        ("2026-11-24T12:00:00", "2026-11-23"),
        ("2026-02-02T09:14:59", "2026-02-01"),
        ("2026-02-01T09:14:59", "2026-01-30"),
        ("2025-10-21T13:44:59", "2025-10-20"),
        ("2025-10-22T12:00:00", "2025-10-21"),
    ] {
        let status = calendar.status(at(civil));
        assert_eq!(status.trading_date, Some(date(expected)), "{civil}");
    }
}

/// (time of day, phase, is_open) from 15:10 to 16:05; each holds until the next.
fn expect_afternoon(day: &str, expected: &[(&str, Phase, bool)]) {
    let calendar = MarketCalendar::embedded();
    for minute in 15 * 60 + 10..=16 * 60 + 5 {
        let time = format!("{:02}:{:02}", minute / 60, minute % 60);
        let holds = expected
            .iter()
            .rev()
            .find(|(from, ..)| *from <= time.as_str())
            .unwrap();
        for second in ["00", "59"] {
            check(&calendar, &[(&format!("{day}T{time}:{second}"), holds.1, holds.2)]);
        }
    }
}

#[test]
fn the_auction_moves_behind_continuous_trading_on_7_december_2026() {
    use Phase::{Closed, Closing, Open, PostClose};
    expect_afternoon(
        "2026-12-04",
        &[
            ("15:10", Open, true),
            ("15:15", Closing, true),
            ("15:30", Closing, false),
            ("15:35", Closed, false),
            ("15:50", PostClose, false),
            ("16:00", Closed, false),
        ],
    );
    let new_hours = [
        ("15:10", Open, true),
        ("15:30", Closing, false),
        ("15:40", Closed, false),
        ("15:50", PostClose, false),
        ("16:00", Closed, false),
    ];
    for day in ["2026-12-07", "2026-12-08", "2026-12-11", "2026-12-31"] {
        expect_afternoon(day, &new_hours);
    }
    assert_eq!(
        transitions(&MarketCalendar::embedded(), "2026-12-04T15:00:00", 9)[3..],
        [
            "2026-12-04T15:50:00 post_close",
            "2026-12-04T16:00:00 closed",
            "2026-12-07T09:00:00 pre_open",
            "2026-12-07T09:15:00 open open",
            "2026-12-07T15:30:00 closing",
            "2026-12-07T15:40:00 closed",
        ]
    );
}

#[test]
fn shares_without_derivatives_trade_through_the_first_regimes_auction() {
    for (from, to, indices, others) in [
        ("2026-12-04T15:10", "2026-12-04T15:40", 5, 20),
        ("2026-12-04T15:15", "2026-12-04T15:30", 0, 15),
        ("2026-12-04T15:29", "2026-12-07T09:16", 1, 2),
        ("2026-12-07T15:10", "2026-12-07T15:40", 20, 20),
        ("2026-07-30T15:10", "2026-07-30T15:40", 20, 20),
    ] {
        let at = |text: &str| at(&format!("{text}:00"));
        let minutes = |whose| {
            CALENDAR
                .trading_of_between(whose, at(from), at(to))
                .as_mins()
        };
        assert_eq!(minutes(Trading::WithAuction), indices, "{from}");
        assert_eq!(minutes(Trading::WithoutAuction), others, "{from}");
    }
    // With an auction and without.
    for (now, moved) in [
        ("2026-12-04T15:25:00", ["15:15", "15:25"]),
        ("2026-12-04T15:33:00", ["15:15", "15:30"]),
        ("2026-12-04T16:30:00", ["15:35", "15:30"]),
        ("2026-12-07T15:33:00", ["15:30", "15:30"]),
        ("2026-12-07T16:30:00", ["15:40", "15:30"]),
        ("2026-07-30T16:30:00", ["15:30", "15:30"]),
    ] {
        let day = &now[..10];
        for (whose, moved) in [Trading::WithAuction, Trading::WithoutAuction]
            .into_iter()
            .zip(moved)
        {
            let moved = at(&format!("{day}T{moved}:00"));
            assert_eq!(CALENDAR.last_move_of(whose, at(now)), Some(moved), "{now} {whose:?}");
        }
    }
    // The close: the first time of its prices, when it is final, and the first trade before it that
    // is no close of a share in the auction.
    for (date, with, without, reference) in [
        ("2026-12-04", ["15:28", "15:35"], ["15:29", "15:30"], Some("15:00")),
        ("2026-12-07", ["15:38", "15:40"], ["15:29", "15:30"], Some("15:15")),
        ("2026-07-30", ["15:29", "15:30"], ["15:29", "15:30"], None),
    ] {
        let instant = |time: &str| at(&format!("{date}T{time}:00"));
        let date = date.parse().unwrap();
        for (whose, expected) in [
            (Trading::WithAuction, with),
            (Trading::WithoutAuction, without),
        ] {
            let close = CALENDAR.close_of(whose, date).unwrap();
            assert_eq!([close.prices_from, close.at], expected.map(instant), "{date} {whose:?}");
        }
        assert_eq!(CALENDAR.reference_from(date), reference.map(instant), "{date}");
    }
}

#[test]
fn past_the_known_end_the_phase_is_what_weekday_and_hours_say() {
    use Phase::{Closed, Closing, Holiday, Open, PostClose, PreOpen};
    let calendar = MarketCalendar::embedded();
    for (civil, phase, is_open) in [
        ("2027-01-01T08:59:59", Closed, false),
        ("2027-01-01T09:00:00", PreOpen, false),
        ("2027-01-01T11:00:00", Open, true),
        ("2027-01-01T15:29:59", Open, true),
        ("2027-01-01T15:35:00", Closing, false),
        ("2027-01-01T15:55:00", PostClose, false),
        ("2027-01-02T11:00:00", Closed, false),
        ("2027-01-04T11:00:00", Open, true),
        // Fixed dates are listed. What was computed from the moon closes nothing.
        ("2027-01-26T11:00:00", Holiday, false),
        ("2027-03-10T11:00:00", Open, true),
        ("2028-02-01T11:00:00", Open, true),
        ("2036-12-31T11:00:00", Open, true),
        ("2037-01-01T11:00:00", Closed, false),
        ("2099-06-01T11:00:00", Closed, false),
        ("2022-12-30T11:00:00", Closed, false),
    ] {
        let status = calendar.status(at(civil));
        assert_eq!((status.phase, status.is_open), (phase, is_open), "{civil}");
        assert!(!status.calendar_known, "{civil}");
        assert_eq!(status.next_transition_at, None, "{civil}");
        assert_eq!(calendar.official_close(clock::zoned(at(civil)).date()), None, "{civil}");
    }
    // Nothing is known after the last covered date, so no transition is announced.
    let evening = calendar.status(at("2026-12-31T16:00:00"));
    assert_eq!((evening.calendar_known, evening.next_transition_at), (true, None));
    assert_eq!(
        calendar.status(at("2027-01-04T11:00:00")).trading_date,
        Some(date("2026-12-31"))
    );
    assert_eq!(calendar.status(at("2022-12-30T11:00:00")).trading_date, None);
    assert!(calendar.status(at("2023-01-01T00:00:00")).calendar_known);
    // Indices move in the hours that are assumed, or their prices are old.
    let began = calendar.trading_began(at("2027-01-04T11:00:00"));
    assert_eq!(began, Some(at("2027-01-04T09:15:00")));
}

/// Evaluates the rules directly on the calendar's entries, without the unrolled transitions.
fn reference(calendar: &MarketCalendar, now: Timestamp) -> (Phase, bool) {
    let civil = clock::zoned(now).datetime();
    let second = civil.hour() as u32 * 3_600 + civil.minute() as u32 * 60 + civil.second() as u32;
    match calendar.day(civil.date()) {
        Day::Unknown | Day::Weekend => (Phase::Closed, false),
        Day::Holiday => (Phase::Holiday, false),
        Day::Trading(parts) => {
            let state = state_within(parts, second);
            (state.phase, state.is_open)
        }
    }
}

/// (from, to, minutes of continuous trading between)
#[test]
fn trading_between_counts_only_continuous_trading() {
    for (from, to, minutes) in [
        ("2026-11-20T11:00", "2026-11-20T11:07", 7),
        ("2026-11-20T11:07", "2026-11-20T11:00", 0),
        ("2026-11-20T15:10", "2026-11-20T15:40", 5),
        ("2026-11-20T15:15", "2026-11-23T09:15", 0),
        ("2026-11-20T15:14", "2026-11-23T09:17", 3),
        // Tuesday is a holiday.
        ("2026-11-23T15:00", "2026-11-25T10:00", 60),
        // A drill has two sessions: 09:15 to 10:00 and 11:30 to 12:30.
        ("2024-03-02T09:50", "2024-03-02T11:40", 20),
    ] {
        let at = |text: &str| clock::instant(format!("{text}:00").parse().unwrap());
        let counted = CALENDAR.trading_between(at(from), at(to));
        assert_eq!(counted.as_mins(), minutes, "{from} {to}");
    }
}

/// (now, when the last continuous trading began, when an index can have moved last)
#[test]
fn last_move_is_now_or_the_end_of_trading_or_the_official_close() {
    for (now, began, moved) in [
        ("2026-11-20T11:00", "2026-11-20T09:15", "2026-11-20T11:00"),
        ("2026-11-20T09:15", "2026-11-20T09:15", "2026-11-20T09:15"),
        ("2026-11-20T15:20", "2026-11-20T09:15", "2026-11-20T15:15"),
        ("2026-11-20T15:35", "2026-11-20T09:15", "2026-11-20T15:35"),
        ("2026-11-20T23:00", "2026-11-20T09:15", "2026-11-20T15:35"),
        ("2026-11-23T09:10", "2026-11-20T09:15", "2026-11-20T15:35"),
        ("2026-12-07T15:20", "2026-12-07T09:15", "2026-12-07T15:20"),
        ("2026-12-07T15:39", "2026-12-07T09:15", "2026-12-07T15:30"),
        ("2026-12-07T15:40", "2026-12-07T09:15", "2026-12-07T15:40"),
        ("2024-03-02T10:30", "2024-03-02T09:15", "2024-03-02T10:00"),
    ] {
        let at = |text: &str| clock::instant(format!("{text}:00").parse().unwrap());
        assert_eq!(CALENDAR.trading_began(at(now)), Some(at(began)), "{now}");
        assert_eq!(CALENDAR.last_move(at(now)), Some(at(moved)), "{now}");
    }
}

#[test]
fn closing_prices_are_of_the_last_minute_or_of_the_auction() {
    for (now, close, prices_from) in [
        ("2026-11-20T15:34", "2026-11-19T15:35", "2026-11-19T15:28"),
        ("2026-11-20T15:35", "2026-11-20T15:35", "2026-11-20T15:28"),
        ("2026-11-23T11:00", "2026-11-20T15:35", "2026-11-20T15:28"),
        // Before the closing auctions.
        ("2026-07-30T15:30", "2026-07-30T15:30", "2026-07-30T15:29"),
        // The second regime of the auctions.
        ("2026-12-07T15:39", "2026-12-04T15:35", "2026-12-04T15:28"),
        ("2026-12-07T15:40", "2026-12-07T15:40", "2026-12-07T15:38"),
        ("2026-12-11T23:00", "2026-12-11T15:40", "2026-12-11T15:38"),
    ] {
        let at = |text: &str| clock::instant(format!("{text}:00").parse().unwrap());
        let found = CALENDAR.final_close(at(now));
        let expected = FinalClose {
            at: at(close),
            prices_from: at(prices_from),
        };
        assert_eq!(found, Some(expected), "{now}");
        let date = clock::zoned(expected.at).date();
        assert_eq!(CALENDAR.closing_prices_from(date), Some(expected.prices_from));
    }
}

static CALENDAR: LazyLock<MarketCalendar> = LazyLock::new(MarketCalendar::embedded);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_status_holds_until_its_next_transition(
        second in 1_669_852_800i64..1_806_537_600, // December 2022 to April 2027
        share in any::<u32>(),
    ) {
        let calendar = &*CALENDAR;
        let now = Timestamp::from_second(second).unwrap();
        let status = calendar.status(now);
        assert_eq!((status.phase, status.is_open), reference(calendar, now), "{}", clock::iso(now));
        let Some(next) = status.next_transition_at else {
            // Nothing is said past a date whose kind or hours are not known, behind days without
            // trading too.
            let mut ahead = clock::zoned(now).date().tomorrow().unwrap();
            while calendar.knows(ahead) && !calendar.is_trading_date(ahead) {
                ahead = ahead.tomorrow().unwrap();
            }
            assert!(!status.calendar_known || !calendar.knows(ahead), "{}", clock::iso(now));
            return Ok(());
        };
        assert!(next > now);
        let length = next.as_second() - second - 1;
        let between = second + length * i64::from(share) / i64::from(u32::MAX);
        for unchanged in [between, next.as_second() - 1] {
            let then = Timestamp::from_second(unchanged).unwrap();
            let state = (status.phase, status.is_open);
            assert_eq!(reference(calendar, then), state, "{}", clock::iso(then));
            assert_eq!(calendar.status(then).next_transition_at, Some(next));
        }
        let before = (status.phase, status.is_open);
        assert_ne!(reference(calendar, next), before, "{}", clock::iso(next));
    }
}
