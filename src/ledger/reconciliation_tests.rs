//! What proves a quantity: pending trades, settlement, pledges, actions; and what does not.

use super::*;
use crate::ledger::lots::replay;
use crate::ledger::testing::{account, corrections, date, decimal, isin, trades_of};

const X: &str = "INE0EXA01011";
const TODAY: &str = "2026-11-27";

/// Weekdays, but for 1 April and 26 August 2026, on which nothing settles.
struct Weekdays;

impl Settlement for Weekdays {
    fn settlement_day(&self, traded: Date) -> Option<Date> {
        let mut day = traded;
        loop {
            day = day.tomorrow().ok()?;
            let weekend = day.weekday().to_monday_zero_offset() > 4;
            if !weekend && day != date("2026-04-01") && day != date("2026-08-26") {
                return Some(day);
            }
        }
    }
}

fn sync(name: &str, on: &str, holdings: &[(&str, &str)]) -> SyncedAccount {
    let holding = |(text, owned): &(&str, &str)| SyncedHolding {
        isin: Isin::parse(text),
        symbol: if Isin::parse(text).is_some() {
            "X"
        } else {
            text
        }
        .to_owned(),
        owned: decimal(owned),
        pledged: Decimal::ZERO,
        action_seen: None,
    };
    SyncedAccount {
        account: account(name),
        by: if name == "a" { Broker::A } else { Broker::B },
        at_ms: 1,
        on: date(on),
        trading_date: date(on),
        holdings: holdings.iter().map(holding).collect(),
    }
}

fn reconciled(trades: &[&str], said: &[&str], synced: &[SyncedAccount]) -> Reconciliation {
    let corrections = corrections(said);
    let trades = trades_of(trades, &corrections);
    let ledger = replay(&trades, &corrections, date(TODAY));
    let persons = Persons::new();
    let compared = Compared {
        trades: &trades,
        corrections: &corrections,
        ledger: &ledger,
        persons: &persons,
    };
    reconcile(compared, synced, &Weekdays).unwrap()
}

/// Whether the only row is proved.
fn proved(trades: &[&str], said: &[&str], sync: SyncedAccount) -> bool {
    let found = reconciled(trades, said, &[sync]);
    assert_eq!(found.rows.len(), 1, "{found:?}");
    assert_eq!(found.is_complete(), found.rows[0].is_proved());
    found.is_complete()
}

#[test]
fn equal_quantities_are_proved_and_others_are_not() {
    let trades = ["a 2024-05-02 buy 25 X 100 INE0EXA01011 #1"];
    let on = "2026-11-26";
    for (synced, expected) in [("25", true), ("24", false), ("26", false), ("0", false)] {
        assert_eq!(proved(&trades, &[], sync("a", on, &[(X, synced)])), expected, "{synced}");
    }
    // Two rows of the broker are one security.
    assert!(proved(&trades, &[], sync("a", on, &[(X, "20"), (X, "5")])));
    assert!(!proved(&trades, &[], sync("a", on, &[])));
    let sold = [trades[0], "a 2024-05-03 sell 25 X 110 INE0EXA01011 #2"];
    assert!(
        proved(&sold, &[], sync("a", on, &[])),
        "a share that is gone is proved by 0 and 0"
    );
    // A holding without any trade, and a sync without any.
    let found = reconciled(&[], &[], &[sync("a", on, &[(X, "1")])]);
    assert_eq!(found.rows[0].reasons, [Reason::QuantityDiffers]);
    assert!(reconciled(&[], &[], &[sync("a", on, &[])]).is_complete());
}

#[test]
fn trades_of_the_syncs_day_may_be_shown_or_not() {
    let trades = [
        "a 2024-05-02 buy 25 X 100 INE0EXA01011 #1",
        "a 2026-11-26 buy 10 X 100 INE0EXA01011 #2",
        "a 2026-11-26 sell 4 X 100 INE0EXA01011 #3",
        // Of the day after the sync.
        "a 2026-11-27 buy 100 X 100 INE0EXA01011 #4",
    ];
    for (synced, expected) in [
        ("25", true),
        ("21", true),
        ("35", true),
        ("31", true),
        ("30", false),
        ("131", false),
    ] {
        let sync = sync("a", "2026-11-26", &[(X, synced)]);
        assert_eq!(proved(&trades, &[], sync), expected, "{synced}");
    }
    let found = reconciled(&trades, &[], &[sync("a", "2026-11-26", &[(X, "31")])]);
    let row = &found.rows[0];
    let pending = Pending {
        bought: decimal("10"),
        sold: decimal("4"),
    };
    assert_eq!((row.ledger, row.pending), (decimal("25"), pending));
    assert_eq!(row.difference(), Some(decimal("6")));
    for (sold, expected) in [
        ("2026-11-26", true),
        ("2026-11-27", false),
        ("2024-05-02", false),
    ] {
        // No sale is of the other days.
        assert_eq!(found.is_not_yet_synced(&account("a"), date(sold)), expected, "{sold}");
    }
}

#[test]
fn a_sync_before_the_session_knows_nothing_of_it() {
    let trades = [
        "a 2024-05-02 buy 25 X 100 INE0EXA01011 #1",
        "a 2026-11-25 buy 5 X 100 INE0EXA01011 #2",
        "a 2026-11-26 buy 7 X 100 INE0EXA01011 #3",
    ];
    for (synced, expected) in [("25", true), ("30", true), ("37", false), ("32", false)] {
        let before_open = SyncedAccount {
            trading_date: date("2026-11-25"),
            ..sync("a", "2026-11-26", &[(X, synced)])
        };
        assert_eq!(proved(&trades, &[], before_open), expected, "{synced}");
    }
}

#[test]
fn broker_b_shows_what_was_delivered() {
    // Bought on Thursday, delivered on Friday.
    let trades = [
        "b 2024-05-02 buy 25 X 100 INE0EXA01011 #1",
        "b 2026-11-19 buy 10 X 100 INE0EXA01011 #2",
    ];
    for (on, synced, expected) in [
        ("2026-11-19", "25", true),
        ("2026-11-20", "25", true),
        ("2026-11-20", "35", true),
        ("2026-11-21", "35", true),
        ("2026-11-21", "25", false),
    ] {
        let sync = sync("b", on, &[(X, synced)]);
        assert_eq!(proved(&trades, &[], sync), expected, "{on} {synced}");
    }
}

#[test]
fn nothing_settles_on_a_settlement_holiday() {
    // Bought on Tuesday 25 August 2026: Wednesday trades and does not settle.
    let trades = [
        "b 2024-05-02 buy 25 X 100 INE0EXA01011 #1",
        "b 2026-08-25 buy 10 X 100 INE0EXA01011 #2",
    ];
    for (on, expected) in [
        ("2026-08-26", true),
        ("2026-08-27", true),
        ("2026-08-28", false),
    ] {
        let sync = sync("b", on, &[(X, "25")]);
        assert_eq!(proved(&trades, &[], sync), expected, "{on}");
    }
}

#[test]
fn pledged_shares_are_inside_or_beside() {
    let trades = ["a 2024-05-02 buy 25 X 100 INE0EXA01011 #1"];
    for (owned, pledged, expected) in [
        ("25", "10", true),
        ("15", "10", true),
        ("20", "10", false),
        ("0", "25", true),
    ] {
        let mut sync = sync("a", "2026-11-26", &[(X, owned)]);
        sync.holdings[0].pledged = decimal(pledged);
        let found = reconciled(&trades, &[], &[sync]);
        assert_eq!(found.is_complete(), expected, "{owned} {pledged}");
        let shown = if expected { "25" } else { owned };
        assert_eq!(found.rows[0].synced, Some(decimal(shown)));
    }
}

#[test]
fn an_account_that_is_never_synced_is_never_proved() {
    let found = reconciled(&["other 2024-05-02 buy 25 X 100 INE0EXA01011 #1"], &[], &[]);
    let row = &found.rows[0];
    assert_eq!((row.reasons.as_slice(), row.synced), (&[Reason::NeverSynced][..], None));
    assert_eq!(row.difference(), None);
}

#[test]
fn every_reason_that_a_security_may_have_is_named() {
    let found = reconciled(
        &[
            "a 2024-05-02 buy 25 X 100 INE0EXA01011 #1",
            "a 2024-05-02 buy 26 X 100 INE0EXA01011 #1",
            "a 2024-05-03 sell 5 X 100 INE0EXA01011 #2",
            "a 2024-05-03 buy 5 Y 100 #3",
        ],
        &[r#"{"kind":"unproved","isin":"INE0EXA01011","date":"2024-06-03","what":"delisting"}"#],
        &[sync("a", "2026-11-26", &[(X, "20"), ("Y", "5")])],
    );
    let reasons: Vec<&[Reason]> = found
        .rows
        .iter()
        .map(|row| row.reasons.as_slice())
        .collect();
    let all = [
        Reason::QuantityDiffers,
        Reason::Uncovered,
        Reason::Conflict,
        Reason::ActionUnproved,
    ];
    assert_eq!(reasons, [&all[..], &[Reason::IsinUnknown][..]]);
    assert_eq!(found.rows[0].cause, Some(Cause::OlderFile));
    assert_eq!(found.rows[1].cause, Some(Cause::Symbol));
    assert_eq!(found.rows[1].symbol.as_deref(), Some("Y"));
    let symbol = r#"{"kind":"symbol","account":"a","symbol":"Y","isin":null}"#;
    assert_eq!(found.rows[1].mends, [Mend::Correction(symbol.into())]);
    let import = Mend::Import {
        from: None,
        to: Some(date("2024-05-03")),
    };
    assert_eq!(found.rows[0].mends[0], import);
}

#[test]
fn corrections_until_the_sync_count_and_later_ones_do_not() {
    let trades = ["a 2024-05-02 buy 25 X 100 INE0EXA01011 #1"];
    let split = |ex_date: &str| {
        format!(
            r#"{{"kind":"split","isin":"{X}","new_isin":"INE0EXA01029","ex_date":"{ex_date}",
            "numerator":5,"denominator":1}}"#
        )
    };
    for (ex_date, text, synced, expected) in [
        ("2026-11-26", X, "125", true),
        ("2026-11-26", "INE0EXA01029", "125", true),
        ("2026-11-26", X, "25", false),
        ("2026-11-27", X, "25", true),
        ("2026-11-27", X, "125", false),
    ] {
        let sync = sync("a", "2026-11-26", &[(text, synced)]);
        assert_eq!(proved(&trades, &[&split(ex_date)], sync), expected, "{ex_date} {synced}");
    }
    // The second account received what the first gave.
    let transfer = format!(
        r#"{{"kind":"transfer","account":"a","to":"b","isin":"{X}","date":"2026-11-20",
        "quantity":10}}"#
    );
    let both = [
        sync("a", "2026-11-26", &[(X, "15")]),
        sync("b", "2026-11-26", &[(X, "10")]),
    ];
    let found = reconciled(&trades, &[&transfer], &both);
    assert!(found.is_complete(), "{found:?}");
}

/// The cause and the first mend of the only row.
fn mended(trades: &[&str], synced: &[(&str, &str)]) -> (Cause, Mend) {
    let found = reconciled(trades, &[], &[sync("a", "2026-11-26", synced)]);
    let row = &found.rows[0];
    (row.cause.unwrap(), row.mends[0].clone())
}

#[test]
fn the_cause_of_a_difference_is_told_from_its_size() {
    let long_ago = "a 2024-05-02 buy 25 X 100 INE0EXA01011 #1";
    let often: Vec<String> = (0..32)
        .map(|month| {
            let day = date("2024-05-02").saturating_add(jiff::Span::new().months(month));
            format!("a {day} buy 1 Z 100 INE0EXZ01013 #{month}")
        })
        .filter(|line| line.as_str() < "a 2026-11-26")
        .collect();
    let mut trades: Vec<&str> = often.iter().map(String::as_str).collect();
    trades.push(long_ago);
    for (synced, cause, mend) in [
        ("50", Cause::Bonus, r#""numerator":1,"denominator":1}"#),
        ("37", Cause::Bonus, r#""numerator":1,"denominator":2}"#),
        ("75", Cause::Bonus, r#""numerator":2,"denominator":1}"#),
        ("100", Cause::Bonus, r#""numerator":3,"denominator":1}"#),
        ("31", Cause::Bonus, r#""numerator":1,"denominator":4}"#),
        ("30", Cause::Bonus, r#""numerator":1,"denominator":5}"#),
        ("125", Cause::Split, r#""numerator":5,"denominator":1}"#),
        ("250", Cause::Split, r#""numerator":10,"denominator":1}"#),
        ("26", Cause::TransferIn, r#""date":null,"quantity":1,"cost":null}"#),
        ("24", Cause::TransferOut, r#""date":"2026-11-26","quantity":1}"#),
    ] {
        let (found, first) = mended(&trades, &[(X, synced), ("INE0EXZ01013", "31")]);
        assert_eq!(found, cause, "{synced}");
        let Mend::Correction(json) = first else {
            panic!("{first:?}")
        };
        assert!(json.ends_with(mend), "{json}");
        if !json.contains("null") {
            let mended = reconciled(
                &trades,
                &[&json],
                &[sync(
                    "a",
                    "2026-11-26",
                    &[(X, synced), ("INE0EXZ01013", "31")],
                )],
            );
            assert!(mended.rows[0].is_proved(), "{json} {:?}", mended.rows[0]);
        }
    }
    // A long time without a trade, and no usual ratio: a file may be missing.
    assert_eq!(mended(&[long_ago], &[(X, "26")]).0, Cause::MissingFile);
}

#[test]
fn a_new_isin_of_the_same_issuer_is_offered_as_a_split() {
    let trades = ["a 2024-05-02 buy 25 X 100 INE0EXA01011 #1"];
    let synced = sync("a", "2026-11-26", &[("INE0EXA01029", "125")]);
    let found = reconciled(&trades, &[], std::slice::from_ref(&synced));
    assert_eq!(found.rows.len(), 2);
    for row in &found.rows {
        assert_eq!(row.cause, Some(Cause::Split), "{row:?}");
    }
    let Mend::Correction(json) = &found.rows[0].mends[0] else {
        panic!()
    };
    let mended = reconciled(&trades, &[json], &[synced]);
    assert!(mended.is_complete() && mended.rows.len() == 1, "{mended:?}");
    assert_eq!(mended.rows[0].isins, [isin(X), isin("INE0EXA01029")]);
    // So it is where the new one was sold and bought since: the split came before the first of it.
    let traded = [
        trades[0],
        "a 2025-03-03 sell 20 X 30 INE0EXA01029 #2",
        "a 2025-08-04 buy 10 X 30 INE0EXA01029 #3",
    ];
    let synced = sync("a", "2026-11-26", &[("INE0EXA01029", "115")]);
    let found = reconciled(&traded, &[], std::slice::from_ref(&synced));
    let Mend::Correction(json) = &found.rows[1].mends[0] else {
        panic!()
    };
    assert!(json.contains("2025-03-03") && json.contains("\"numerator\":5"), "{json}");
    assert!(reconciled(&traded, &[json], &[synced]).is_complete());
    // Another issuer's share is another one.
    let other = reconciled(&trades, &[], &[sync("a", "2026-11-26", &[("INE0EXB01027", "125")])]);
    assert!(other.rows.iter().all(|row| row.cause != Some(Cause::Split)));
}

#[test]
fn a_loss_beside_a_bonus_that_is_kept_cuts_the_security_for_the_person() {
    let trades = [
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #1",
        "a 2024-09-16 sell 10 X 60 INE0EXA01011 #2",
    ];
    let bonus = r#"{"kind":"bonus","isin":"INE0EXA01011","ex_date":"2024-07-02","numerator":1,
        "denominator":1}"#;
    let synced = [sync("a", "2026-11-26", &[(X, "10")])];
    let found = reconciled(&trades, &[bonus], &synced);
    assert_eq!(found.rows[0].reasons, [Reason::BonusStripping]);
    let losses: Vec<Option<Decimal>> = found.ignored_losses.values().map(Amount::rounded).collect();
    assert_eq!(losses, [Some(decimal("400.00"))]);
    let with = |bought: &str, sold: &str, price: &str| {
        let trades = [
            format!("a {bought} buy 10 X 100 INE0EXA01011 #1"),
            format!("a {sold} sell 10 X {price} INE0EXA01011 #2"),
        ];
        let lines: Vec<&str> = trades.iter().map(String::as_str).collect();
        reconciled(&lines, &[bonus], &synced).is_complete()
    };
    // Three calendar months before the record date, nine after it, and a loss.
    assert!(!with("2024-04-02", "2025-04-02", "60"));
    assert!(with("2024-04-01", "2024-09-16", "60"));
    assert!(with("2024-05-02", "2025-04-03", "60"));
    assert!(with("2024-05-02", "2024-09-16", "100"));
    // The same sale takes all of the bonus, so none is kept.
    let sold_before = [
        "a 2024-04-02 buy 10 X 100 INE0EXA01011 #1",
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #2",
        "a 2024-09-13 sell 10 X 160 INE0EXA01011 #3",
        "a 2024-09-16 sell 30 X 60 INE0EXA01011 #4",
    ];
    let gone = reconciled(&sold_before, &[bonus], &[sync("a", "2026-11-26", &[])]);
    assert!(gone.is_complete(), "{gone:?}");
}

#[test]
fn a_security_through_which_shares_passed_has_a_row() {
    let said = [
        r#"{"kind":"transfer","account":"b","to":"a","isin":"INE0EXA01011","date":"2024-06-03",
        "quantity":5}"#,
        r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01010",
        "ex_date":"2024-07-01","numerator":1,"denominator":1,"account":"a"}"#,
    ];
    let trades = ["b 2024-05-02 buy 5 X 100 INE0EXA01011 #1"];
    let found = reconciled(&trades, &said, &[sync("a", "2026-11-26", &[("INE0EXB01010", "5")])]);
    let rows: Vec<(&str, bool)> = found
        .rows
        .iter()
        .map(|row| (row.account.as_str(), row.is_proved()))
        .collect();
    assert_eq!(rows, [("a", true), ("a", true), ("b", false)]);
    assert_eq!(found.rows[0].synced, Some(Decimal::ZERO));
}

/// The securities of the rows that are cut because something is never computed.
fn action_unproved(found: &Reconciliation) -> Vec<String> {
    let cut = found
        .rows
        .iter()
        .filter(|row| row.reasons.contains(&Reason::ActionUnproved));
    cut.map(|row| format!("{} {}", row.account.as_str(), row.security.isin().unwrap().as_str()))
        .collect()
}

#[test]
fn what_became_of_unproved_shares_is_unproved_where_they_went_later() {
    const Y: &str = "INE0EXB01019";
    const Z: &str = "INE0EXC01017";
    let bought = "a 2019-05-28 buy 50 X 100 INE0EXA01011 #1";
    let cash = r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2019-07-04","numerator":1,"denominator":1,"cash":10}"#;
    let merger = r#"{"kind":"merger","isin":"INE0EXB01019","new_isin":"INE0EXC01017",
        "ex_date":"2022-11-08","numerator":1,"denominator":2}"#;
    let whole = sync("a", "2026-11-26", &[(Z, "25")]);
    let found = reconciled(&[bought], &[cash, merger], std::slice::from_ref(&whole));
    let all = ["a INE0EXA01011", "a INE0EXB01019", "a INE0EXC01017"];
    assert_eq!(action_unproved(&found), all);

    // Said of the first security: what it became before stays as it is.
    let plain = cash.replace(",\"cash\":10", "");
    for (date, cut) in [
        ("2019-07-04", &all[..]),
        ("2019-07-05", &all[..1]),
        ("2019-05-01", &all[..]),
    ] {
        let said = format!(
            r#"{{"kind":"unproved","isin":"INE0EXA01011","date":"{date}","what":"partly_paid"}}"#
        );
        let synced = std::slice::from_ref(&whole);
        let found = reconciled(&[bought], &[&plain, merger, &said], synced);
        assert_eq!(action_unproved(&found), cut, "{date}");
    }

    // Demerged and transferred shares take it along; the demerged parent and the giver do not get
    // it from those that have it.
    let demerger = r#"{"kind":"demerger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2020-07-06","numerator":1,"denominator":1,"cost_percent":20}"#;
    let transfer = |date: &str, isin: &str| {
        format!(
            r#"{{"kind":"transfer","account":"a","to":"b","isin":"{isin}","date":"{date}",
            "quantity":10}}"#
        )
    };
    let before = transfer("2020-01-06", X);
    let after = transfer("2021-01-04", Y);
    let said = r#"{"kind":"unproved","account":"a","isin":"INE0EXA01011","date":"2020-03-02",
        "what":"other"}"#;
    let found = reconciled(&[bought], &[demerger, &before, &after, said], &[]);
    assert_eq!(action_unproved(&found), ["a INE0EXA01011", "a INE0EXB01019", "b INE0EXB01019"]);
    let of_child = said.replace(X, Y);
    let found = reconciled(&[bought], &[demerger, &after, &of_child], &[]);
    assert_eq!(action_unproved(&found), ["a INE0EXB01019", "b INE0EXB01019"]);
}

#[test]
fn a_merger_with_cash_cuts_nothing_of_an_account_that_had_no_share_then() {
    const Y: &str = "INE0EXB01019";
    let to_y = r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2019-10-16","numerator":1,"denominator":10}"#;
    let back = r#"{"kind":"merger","isin":"INE0EXB01019","new_isin":"INE0EXA01011",
        "ex_date":"2020-10-16","numerator":5,"denominator":1,"cash":10}"#;
    let trades = [
        "b 2019-10-10 buy 100 X 60 INE0EXA01011 #1",
        "a 2019-11-06 buy 10 X 67 INE0EXA01011 #2",
        "a 2020-10-17 sell 4 X 90 INE0EXA01011 #3",
    ];
    let synced = [
        sync("a", "2026-11-26", &[(X, "6")]),
        sync("b", "2026-11-26", &[(X, "50")]),
    ];
    let found = reconciled(&trades, &[to_y, back], &synced);
    let row = |name| {
        found
            .row(&account(name), &Security::Known(isin(X)))
            .unwrap()
    };
    assert!(row("a").is_proved(), "{:?}", row("a"));
    assert_eq!(row("b").reasons, [Reason::ActionUnproved]);
    let had = found.row(&account("b"), &Security::Known(isin(Y))).unwrap();
    assert_eq!(had.reasons, [Reason::ActionUnproved]);
}
