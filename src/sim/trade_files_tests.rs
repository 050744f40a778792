//! Tests of the seeded trades and of their files, which the ledger reads back.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::*;
use crate::base::Clock;
use crate::ledger::file::{FileFormat, ReadFile, read_file};
use crate::ledger::row::{AccountName, Row};
use crate::sim::broker_a::portfolio::held;
use crate::sim::trade_history::{bought_of_moved_in, last_day, owned};
use crate::sim::world::SimSettings;

const TODAY: Date = date(2026, 11, 20);

fn world_at(now: &str) -> World {
    let clock = Clock::manual(now.parse::<Timestamp>().unwrap());
    World::new(SimSettings::default(), clock.clone())
}

fn world() -> World {
    world_at("2026-11-20T11:42:17+05:30")
}

fn file(world: &World, path: &str) -> Vec<u8> {
    let answer = answer(world, path);
    assert_eq!(answer.status, 200, "{path}");
    let Content::Text(_, bytes) = answer.content else {
        panic!("{path}")
    };
    bytes
}

fn read(world: &World, path: &str) -> ReadFile {
    let bytes = file(world, path);
    let account = AccountName::parse("a").unwrap();
    let file = read_file(Cursor::new(bytes), &account, TODAY, &|| false).unwrap();
    assert_eq!(file.refused, [], "{path}");
    file
}

#[test]
fn every_history_ends_at_what_the_account_holds_and_is_never_short() {
    let world = world();
    for number in 0..200 {
        for broker in [Broker::A, Broker::B] {
            let user = format!("U{number}");
            let mut left: BTreeMap<&str, i64> = BTreeMap::new();
            let events = history(&world, broker, &user, TODAY);
            for event in &events {
                let open = left.entry(&event.share.key).or_default();
                *open += event.kind.signed(event.quantity);
                assert!(*open >= 0, "{user} {} {}", event.share.key, event.date);
                assert!(event.date <= last_day(TODAY) && event.paise > 0);
            }
            for (place, held) in held(&world, &user).iter().enumerate() {
                let open = left
                    .get(held.instrument.key.as_str())
                    .copied()
                    .unwrap_or_default();
                let owned = owned(broker, held);
                // Most of one share was moved in from elsewhere.
                let expected = if place == 6 {
                    bought_of_moved_in(owned)
                } else {
                    owned
                };
                assert_eq!(open, expected, "{user} {broker:?} {place}");
            }
        }
    }
}

/// Of the twelve shares one lacks a year, one had a bonus, one a split with a new ISIN.
#[test]
fn four_of_twelve_shares_have_something_to_find() {
    let world = world();
    let events = history(&world, Broker::A, "SA0001", TODAY);
    let of = |is: &dyn Fn(&Event<'_>) -> bool| -> BTreeSet<&str> {
        events
            .iter()
            .filter(|event| is(event))
            .map(|event| event.share.key.as_str())
            .collect()
    };
    assert_eq!(of(&|event| event.is_missing).len(), 1);
    assert_eq!(of(&|event| event.kind == EventKind::Bonus).len(), 1);
    assert_eq!(of(&|event| event.isin != event.share.isin).len(), 1);
    let split: Vec<&Event<'_>> = events
        .iter()
        .filter(|event| event.isin != event.share.isin)
        .collect();
    let isin = &split[0].isin;
    assert_eq!(isin[..9], split[0].share.isin[..9], "of one company");
    let missing: i64 = events
        .iter()
        .filter(|event| event.is_missing)
        .map(|event| event.kind.signed(event.quantity))
        .sum();
    assert_ne!(missing, 0, "its lack changes what is left");
}

#[test]
fn the_files_of_broker_a_have_the_trades_of_the_history() {
    let world = world();
    let events = history(&world, Broker::A, "SA0001", TODAY);
    let csv = read(&world, "a/SA0001/tradebook.csv");
    let later = read(&world, "a/SA0001/tradebook-middle-year.csv");
    assert_eq!(csv.format, FileFormat::ZerodhaTradebook);
    let sum = |rows: &[Row]| rows.iter().map(|row| row.quantity).sum::<Decimal>();
    let traded = events.iter().filter(|event| event.kind.is_trade());
    let traded: i64 = traded.map(|event| event.quantity).sum();
    assert_eq!(sum(&csv.rows) + sum(&later.rows), traded.into());
    let isins: BTreeSet<_> = later.rows.iter().map(|row| row.isin).collect();
    assert_eq!((isins.len(), later.rows.is_empty()), (1, false));
    let ids: BTreeSet<_> = csv.rows.iter().map(|row| row.trade_id.clone()).collect();
    assert_eq!(ids.len(), csv.rows.len());

    let workbook = read(&world, "a/SA0001/tradebook.xlsx");
    let moved = |row: &Row| Row {
        line: row.line + 8,
        ..row.clone()
    };
    assert_eq!(workbook.rows, csv.rows.iter().map(moved).collect::<Vec<_>>());
    assert_eq!(workbook.client_id.unwrap().id, "SA0001");
}

#[test]
fn the_reports_have_the_sales_of_their_year() {
    let world = world();
    let events = history(&world, Broker::A, "SA0001", TODAY);
    let report = read(&world, "a/SA0001/taxpnl-2024-25.zip");
    let in_year = |event: &&Event<'_>| {
        !event.kind.is_purchase()
            && event.kind.is_trade()
            && (REPORT_YEAR.0..=REPORT_YEAR.1).contains(&event.date)
    };
    let sold: i64 = events
        .iter()
        .filter(in_year)
        .map(|event| event.quantity)
        .sum();
    let reported: Decimal = report.report.iter().map(|line| line.quantity).sum();
    assert_eq!((reported, sold > 0), (sold.into(), true));
    let sections: BTreeSet<_> = report
        .report
        .iter()
        .map(|line| line.section.as_str())
        .collect();
    assert_eq!(sections, BTreeSet::from(["intraday", "long", "short"]));
    for line in &report.report {
        assert_eq!(line.gain, line.proceeds - line.cost.unwrap());
    }

    let gains = read(&world, "b/SB000001/capital-gains-2024-25.xls");
    assert_eq!(gains.format, FileFormat::IciciCapitalGains);
    assert!(!gains.report.is_empty());
    assert!(gains.notes[1].starts_with("totals that agree"), "{:?}", gains.notes);
}

#[test]
fn the_list_of_all_transactions_proposes_its_bonus() {
    let world = world();
    let file = read(&world, "b/SB000001/all-transactions.csv");
    let later = read(&world, "b/SB000001/all-transactions-middle-year.csv");
    let events = history(&world, Broker::B, "SB000001", TODAY);
    let trades = events.iter().filter(|event| event.kind.is_trade()).count();
    assert_eq!(file.rows.len() + later.rows.len(), trades);
    let [proposal] = file.proposals.as_slice() else {
        panic!("{:?}", file.proposals)
    };
    let written = proposal.correction.to_json();
    assert!(
        written.contains("\"bonus\"") && written.contains("\"numerator\":1"),
        "{written}"
    );
}

/// A file of another day says the same trades under the same numbers.
#[test]
fn files_stay_the_same_for_half_a_year() {
    let path = "a/SA0001/tradebook.csv";
    let november = file(&world(), path);
    assert_eq!(november, file(&world_at("2026-07-01T09:00:00+05:30"), path));
    assert_ne!(november, file(&world_at("2026-06-30T09:00:00+05:30"), path));
}

#[test]
fn there_is_no_other_file() {
    let world = world();
    for path in [
        "",
        "a",
        "a/SA0001",
        "a/SA0001/x.csv",
        "c/SA0001/tradebook.csv",
        "a/../b/x",
    ] {
        assert_eq!(answer(&world, path).status, 404, "{path}");
    }
}
