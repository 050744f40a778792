//! Tests of the calendar: its known days, the operator's file, and faults.

use jiff::Span;
use jiff::civil::Weekday;

use super::*;
use crate::base::clock;
use crate::market::Phase;
use crate::market::calendar_entries::Confidence;
use crate::market::data_file::{DaySpan, Fault};

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

fn at(civil: &str) -> Timestamp {
    clock::instant(civil.parse().unwrap())
}

fn operator(text: &str) -> MarketCalendar {
    MarketCalendar::with_operator_text(text, "mine.toml").unwrap()
}

fn faults(text: &str) -> Vec<Fault> {
    match MarketCalendar::with_operator_text(text, "mine.toml") {
        Err(DataError::Faulty { faults, .. }) => faults,
        other => panic!("no faults in {text}: {other:?}"),
    }
}

#[test]
fn the_embedded_calendar_has_the_known_number_of_days() {
    let calendar = MarketCalendar::embedded();
    for (year, weekday_holidays) in [(2023, 15), (2024, 16), (2025, 13), (2026, 16)] {
        let listed = calendar
            .entries
            .days
            .iter()
            .filter(|(date, entry)| date.year() == year && matches!(entry, Entry::Holiday(_)))
            .inspect(|(date, _)| {
                assert!(
                    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday),
                    "{date} is a weekend"
                );
            })
            .count();
        assert_eq!(listed, weekday_holidays, "{year}");
    }
    let traded = |first: &str, last: &str| {
        date(first)
            .series(Span::new().days(1))
            .take_while(|day| *day <= date(last))
            .filter(|day| calendar.is_trading_date(*day))
            .count()
    };
    // The number of daily bars of 50 large shares.
    assert_eq!(traded("2023-01-01", "2023-12-31"), 246);
    assert_eq!(traded("2024-01-01", "2024-12-31"), 249);
    assert_eq!(traded("2025-01-01", "2025-09-30"), 187);
    assert_eq!(traded("2027-01-01", "2027-12-31"), 0);
}

#[test]
fn every_embedded_entry_has_a_source() {
    let calendar = MarketCalendar::embedded();
    let provenances = calendar
        .entries
        .days
        .values()
        .filter_map(|entry| match entry {
            Entry::Holiday(holiday) => Some(&holiday.provenance),
            Entry::Session(session) => Some(&session.provenance),
            Entry::TradingDay => None,
        });
    let regimes = calendar
        .entries
        .regimes
        .values()
        .map(|regime| &regime.provenance);
    let years = calendar.entries.years.values().map(|list| &list.provenance);
    let settlement = calendar
        .entries
        .settlement_holidays
        .values()
        .map(|day| &day.provenance);
    let mut count = 0;
    for provenance in provenances.chain(regimes).chain(years).chain(settlement) {
        assert_ne!(provenance.source, "operator", "an embedded entry without a source");
        count += 1;
    }
    assert_eq!(count, 69 + 9 + 4 + 4 + 2);
    let holiday = calendar.holiday(date("2026-11-24")).unwrap();
    assert_eq!(holiday.name, "Guru Nanak Jayanti");
    assert_eq!(holiday.provenance.confidence, Confidence::Announced);
    let regime = calendar.regime(date("2026-12-07")).unwrap();
    assert_eq!(regime.provenance.confidence, Confidence::Unconfirmed, "one family of sources");
    for number in ["HO/47/11/11(3)2025-MRD-POD2/I/23843/2026", "NSE/CMTR/76963"] {
        assert!(regime.provenance.source.contains(number), "{}", regime.provenance.source);
    }
}

#[test]
fn sessions_with_placeholder_hours_are_listed_as_unconfirmed() {
    let calendar = MarketCalendar::embedded();
    let flagged: Vec<_> = calendar
        .unconfirmed_sessions(date("2023-01-01"))
        .map(|s| s.0)
        .collect();
    assert_eq!(flagged, [date("2024-05-18"), date("2026-11-08")]);
    assert!(calendar.is_trading_date(date("2026-11-08")));
    let day = |text: &str| calendar.entries.days.get(&date(text));
    assert!(matches!(day("2025-10-21"), Some(Entry::Session(session)) if session.hours_confirmed));
    assert!(!matches!(day("2025-10-20"), Some(Entry::Session(_))));
}

#[test]
fn the_previous_trading_date_may_be_a_special_session() {
    let calendar = MarketCalendar::embedded();
    for (day, previous) in [
        ("2026-02-02", "2026-02-01"),
        ("2024-01-23", "2024-01-20"),
        ("2024-11-04", "2024-11-01"),
        ("2025-10-23", "2025-10-21"),
        ("2026-11-09", "2026-11-08"),
        ("2026-11-25", "2026-11-23"),
        ("2027-01-01", "2026-12-31"),
    ] {
        assert_eq!(calendar.previous_trading_date(date(day)), Some(date(previous)), "{day}");
    }
    assert_eq!(calendar.next_trading_date(date("2026-11-23")), Some(date("2026-11-25")));
    assert_eq!(calendar.next_trading_date(date("2025-10-21")), Some(date("2025-10-23")));
    // 2027 is not covered, so its dates are unknown.
    assert_eq!(calendar.previous_trading_date(date("2027-01-02")), None);
    assert_eq!(calendar.next_trading_date(date("2026-12-31")), None);
    assert_eq!(calendar.previous_trading_date(date("2023-01-01")), None);
    assert_eq!(calendar.covered_until(date("2024-06-01")), Some(date("2026-12-31")));
    assert_eq!(calendar.covered_until(date("2027-06-01")), None);
}

#[test]
fn the_official_close_is_the_end_of_the_closing_auction() {
    let calendar = MarketCalendar::embedded();
    for (day, close) in [
        ("2026-07-31", "2026-07-31T15:30:00"),
        ("2026-08-03", "2026-08-03T15:35:00"),
        ("2024-03-02", "2024-03-02T12:30:00"),
        ("2025-10-21", "2025-10-21T14:45:00"),
    ] {
        assert_eq!(calendar.official_close(date(day)), Some(at(close)), "{day}");
    }
    assert_eq!(calendar.official_close(date("2026-08-02")), None);
    let orders = |day| calendar.regime(date(day)).unwrap().hours.orders;
    assert_eq!(orders("2026-09-04"), DaySpan::parse("09:00-09:08"));
    assert_eq!(orders("2026-09-07"), DaySpan::parse("09:00-09:10"));
}

#[test]
fn a_settlement_holiday_is_listed_and_changes_nothing() {
    let calendar = MarketCalendar::embedded();
    for day in ["2026-04-01", "2026-08-26"] {
        assert!(
            calendar
                .entries
                .settlement_holidays
                .contains_key(&date(day)),
            "{day}"
        );
        assert!(calendar.is_trading_date(date(day)) && calendar.knows(date(day)), "{day}");
        assert!(calendar.official_close(date(day)).is_some(), "{day}");
        assert_eq!(calendar.status(at(&format!("{day}T11:00:00"))).phase, Phase::Open, "{day}");
    }
    let more = operator("[[settlement_holiday]]\ndate = \"2026-12-08\"\nname = \"Bank holiday\"");
    assert_eq!(more.entries.settlement_holidays.len(), 3);
    assert!(more.is_trading_date(date("2026-12-08")));
}

/// The times of the auction follow from the file, or from its kind where the file is silent.
#[test]
fn the_earliest_end_of_an_auction_is_a_field_or_two_minutes_before_an_end() {
    for (hours, earliest, latest) in [
        // The form of the first regime, without and with the field.
        ("continuous=\"09:15-15:30\"\nclosing=\"15:15-15:35\"", "15:28", "15:35"),
        (
            "continuous=\"09:15-15:30\"\nclosing=\"15:15-15:35\"\nclosing_earliest_end=\"15:31\"",
            "15:31",
            "15:35",
        ),
        // Of the second: behind continuous trading.
        ("continuous=\"09:15-15:30\"\nclosing=\"15:30-15:40\"", "15:38", "15:40"),
        ("continuous=\"09:15-15:20\"\nclosing=\"15:25-15:26\"", "15:25", "15:26"),
        (
            "continuous=\"09:15-15:30\"\nclosing=\"15:30-15:40\"\nclosing_earliest_end=\"15:40\"",
            "15:40",
            "15:40",
        ),
        ("continuous=\"09:15-15:30\"", "15:29", "15:30"),
    ] {
        let calendar = operator(&format!("[[regime]]\nfrom = \"2026-12-14\"\n{hours}"));
        let day = date("2026-12-15");
        let time = |clock: &str| Some(at(&format!("2026-12-15T{clock}:00")));
        assert_eq!(calendar.closing_prices_from(day), time(earliest), "{hours}");
        assert_eq!(calendar.official_close(day), time(latest), "{hours}");
    }
}

/// (date, the last one before the rule's end; the day after it; the operator's file)
#[test]
fn a_day_past_the_end_of_each_rule_nothing_is_known_or_official() {
    let ends = [
        ("2026-12-31", "2027-01-01", ""),
        // A year whose list ends within it.
        (
            "2027-06-30",
            "2027-07-01",
            "[[year]]\nyear = 2027\nknown_until = \"2027-06-30\"",
        ),
        // The hours, while holidays are still known.
        ("2027-12-31", "2028-01-03", "years = [2027, 2028]"),
        (
            "2027-03-30",
            "2027-03-31",
            "years = [2027]\n[[regime]]\nfrom = \"2027-03-01\"\nknown_until = \"2027-03-30\"\n\
             continuous = \"09:15-15:30\"",
        ),
    ];
    for (last, after, text) in ends {
        let calendar = operator(text);
        let noon = |day: &str| calendar.status(at(&format!("{day}T12:00:00")));
        assert!(noon(last).calendar_known && calendar.knows(date(last)), "{last}");
        assert!(calendar.official_close(date(last)).is_some(), "{last}");
        let status = noon(after);
        assert!(!status.calendar_known && !calendar.knows(date(after)), "{after}");
        assert_eq!((status.phase, status.is_open), (Phase::Open, true), "{after}");
        assert_eq!(status.next_transition_at, None, "{after}");
        assert_eq!(calendar.official_close(date(after)), None, "{after}");
        assert_eq!(calendar.closing_prices_from(date(after)), None, "{after}");
        let evening = at(&format!("{after}T20:00:00"));
        assert_eq!(calendar.last_close(evening), None, "{after}");
        assert_eq!(calendar.status(evening).phase, Phase::Closed, "{after}");
        assert_eq!(calendar.market_day(evening).day, None, "{after}");
    }
}

#[test]
fn a_session_with_placeholder_hours_is_a_trading_date_without_a_close() {
    let calendar = MarketCalendar::embedded();
    let sunday = date("2026-11-08");
    assert!(calendar.is_trading_date(sunday) && !calendar.knows(sunday));
    assert_eq!(calendar.official_close(sunday), None);
    assert!(!calendar.status(at("2026-11-08T18:30:00")).calendar_known);
    let text = "[[session]]\ndate=\"2026-11-08\"\nname=\"Muhurat\"\n[[session.part]]\n\
                continuous=\"13:45-14:45\"\nclosing=\"14:45-14:55\"\npost_close=\"15:05-15:15\"";
    let known = operator(text);
    assert!(known.knows(sunday));
    assert_eq!(known.official_close(sunday), Some(at("2026-11-08T14:55:00")));
    assert_eq!(known.closing_prices_from(sunday), Some(at("2026-11-08T14:53:00")));
}

#[test]
fn operator_entries_override_embedded_ones() {
    let calendar = operator(
        r#"
years = [2027]

[[holiday]]
date = "2027-03-11"
name = "Id-Ul-Fitr, by the exchange's list"

[[holiday]]
date = "2026-12-01"
name = "Polling day"

[[trading_day]]
date = "2026-12-25"

[[session]]
date = "2026-11-08"
name = "Muhurat"
source = "circular"
[[session.part]]
pre_open = "13:30-13:45"
continuous = "13:45-14:45"
closing = "14:45-15:05"

[[regime]]
from = "2027-06-01"
continuous = "09:00-17:00"
"#,
    );
    let phase = |civil| calendar.status(at(civil)).phase;
    assert_eq!(phase("2026-12-01T11:00:00"), Phase::Holiday);
    assert_eq!(phase("2026-12-25T11:00:00"), Phase::Open);
    assert_eq!(phase("2026-11-08T14:00:00"), Phase::Open);
    assert_eq!(phase("2026-11-08T14:50:00"), Phase::Closing);
    assert_eq!(phase("2026-11-08T18:30:00"), Phase::Closed);
    assert_eq!(calendar.unconfirmed_sessions(date("2026-01-01")).count(), 0);
    // The embedded estimates for 2027 are dropped; holidays with a fixed date stay.
    assert_eq!(phase("2027-03-10T11:00:00"), Phase::Open);
    assert_eq!(phase("2027-03-11T11:00:00"), Phase::Holiday);
    assert_eq!(phase("2027-01-26T11:00:00"), Phase::Holiday);
    assert_eq!(phase("2027-05-31T16:30:00"), Phase::Closed);
    assert_eq!(phase("2027-06-01T16:30:00"), Phase::Open);
    assert_eq!(calendar.next_trading_date(date("2026-12-31")), Some(date("2027-01-01")));
    // Untouched entries stay.
    assert_eq!(phase("2026-11-24T11:00:00"), Phase::Holiday);
}

#[test]
fn all_faults_of_a_file_are_reported_with_their_lines() {
    let found = faults(
        r#"year = [2027]
[[holiday]]
date = "2026-13-01"
name = "no such month"
[[holiday]]
name = "no date"
[[session]]
date = "2026-12-06"
name = "Drill"
[[session.part]]
continuous = "10:00-09:15"
[[session.part]]
continuous = "11:30-12:30"
post_close = "12:00-12:40"
[[session]]
date = "2027-02-07"
name = "too early"
[[session.part]]
continuous = "10:00-11:00"
[[holiday]]
date = "2026-12-02"
name = "once"
confidence = "certain"
[[holiday]]
date = "2026-12-02"
name = "twice"
"#,
    );
    let lines: Vec<usize> = found.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 3, 5, 11, 14, 15, 23, 24], "{found:#?}");
    assert!(found[0].message.contains("write [[year]]"));
    assert!(found[5].message.contains("add 2027 to `years`"));
}

#[test]
fn a_malformed_file_is_reported_without_a_panic() {
    for (text, line) in [
        ("years = 2027", 1),
        ("\nyears = [\"2027\"]", 2),
        ("years = [1999]", 1),
        ("years = [2019]", 1),
        ("holiday = 3", 1),
        ("[[holiday]]\ndate = 2026-12-01\nname = \"bare\"", 2),
        ("[[holiday]]\ndate = \"2026-12-01\"\nname = \"", 3),
        ("[[regime]]\nfrom = \"2027-01-01\"", 1),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\nclosing=\"15:15-15:20\"",
            4,
        ),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\npre_open=\"09:00-09:20\"",
            4,
        ),
        ("[[session]]\ndate = \"2026-12-06\"\nname = \"no part\"", 1),
        ("[[year]]\nyear = 1999", 2),
        ("[[year]]\nyear = 2027\nknown_until = \"2028-01-01\"", 3),
        ("years = [2027]\n[[year]]\nyear = 2027", 2),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\nknown_until=\"2026-01-01\"\n\
             continuous=\"09:15-15:30\"",
            3,
        ),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\n\
             closing_earliest_end=\"15:38\"",
            4,
        ),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\nclosing=\"15:30-15:40\"\n\
             closing_earliest_end=\"15:41\"",
            5,
        ),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\nclosing=\"15:30-15:40\"\n\
             closing_orders=\"15:29-15:36\"",
            5,
        ),
        (
            "[[regime]]\nfrom=\"2027-01-01\"\ncontinuous=\"09:15-15:30\"\nclosing=\"15:30-15:40\"\n\
             closing_earliest_end=\"3:38 pm\"",
            5,
        ),
        ("[[settlement_holiday]]\ndate=\"2026-12-08\"", 1),
    ] {
        let found = faults(text);
        assert_eq!(found[0].line, line, "{text}: {found:?}");
    }
    let error =
        MarketCalendar::with_operator_text("years = 1\nmonths = 2", "mine.toml").unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("mine.toml:1: ") && shown.contains("\nmine.toml:2: "),
        "{shown}"
    );
}

#[test]
fn a_file_is_read_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calendar.toml");
    std::fs::write(&path, "[[holiday]]\ndate = \"2026-12-02\"\nname = \"Polling\"\n").unwrap();
    let calendar = MarketCalendar::load(Some(&path)).unwrap();
    assert!(!calendar.is_trading_date(date("2026-12-02")));
    assert!(
        MarketCalendar::load(None)
            .unwrap()
            .is_trading_date(date("2026-12-02"))
    );
}
