//! The replay: days, netting, first in first out, and actions.

use super::*;
use crate::ledger::row::Mark;
use crate::ledger::testing::{corrections, date, decimal, trades_of};

const END: &str = "2026-11-28";

pub(super) fn ledger_of(trades: &[&str], said: &[&str]) -> Ledger {
    let corrections = corrections(said);
    replay(&trades_of(trades, &corrections), &corrections, date(END))
}

/// `acquired entered how quantity cost` of each open lot, headed by account and ISIN.
fn lots(ledger: &Ledger) -> Vec<String> {
    let of = ledger.positions.iter().flat_map(|position| {
        position.lots.iter().map(|lot| {
            let security = position
                .isin()
                .map_or("?".into(), |isin| isin.as_str().to_owned());
            let quantity = lot.quantity.normalize();
            let cost = lot.cost.rounded().unwrap();
            let account = position.account.as_str();
            let dates = format!("{} {}", lot.acquired_on, lot.entered);
            format!("{account} {security} {dates} {} {quantity} {cost}", lot.how)
        })
    });
    of.collect()
}

/// `sold kind acquired quantity proceeds cost` of each part.
fn parts(ledger: &Ledger) -> Vec<String> {
    let of = ledger.sales.iter().flat_map(|sale| {
        sale.parts.iter().map(|part| {
            let quantity = part.lot.quantity.normalize();
            let proceeds = part.proceeds.rounded().unwrap();
            let cost = part.lot.cost.rounded().unwrap();
            let kind = part.kind;
            format!("{} {kind} {} {quantity} {proceeds} {cost}", sale.sold, part.lot.acquired_on)
        })
    });
    of.collect()
}

pub(super) fn uncovered(ledger: &Ledger) -> Decimal {
    ledger
        .positions
        .iter()
        .map(|position| position.uncovered)
        .sum()
}

#[test]
fn a_sale_takes_what_entered_first_on_whichever_exchange() {
    let ledger = ledger_of(
        &[
            "a 2023-05-11 buy 12 RELIANCE 2311.40 INE002A01018 #40417733",
            "a 2023-08-02 buy 6 RELIANCE 2498.75 INE002A01018 #2093 BSE",
            "a 2024-06-13 sell 9 RELIANCE 2877.15 INE002A01018 #51440918",
            "a 2024-08-21 sell 9 RELIANCE 3012.60 INE002A01018 #51770263",
        ],
        &[],
    );
    assert_eq!(
        parts(&ledger),
        [
            "2024-06-13 delivery 2023-05-11 9 25894.35 20802.60",
            "2024-08-21 delivery 2023-05-11 3 9037.80 6934.20",
            "2024-08-21 delivery 2023-08-02 6 18075.60 14992.50",
        ]
    );
    assert_eq!(lots(&ledger), [""; 0]);
}

#[test]
fn what_is_bought_and_sold_on_one_exchange_and_day_is_intraday_first() {
    let ledger = ledger_of(
        &[
            "a 2024-09-02 buy 10 INFY 1800 INE009A01021 #1",
            "a 2024-09-03 sell 15 INFY 1901.85 INE009A01021 #3 14:46:55",
            "a 2024-09-03 buy 15 INFY 1893.20 INE009A01021 #2 09:31:02",
            // Sold first, and more than was bought: the rest is of what was held.
            "a 2024-09-04 sell 6 INFY 1910 INE009A01021 #4 09:20:00",
            "a 2024-09-04 buy 4 INFY 1900 INE009A01021 #5 10:00:00",
            // On the other exchange nothing was bought.
            "a 2024-09-05 buy 3 INFY 1900 INE009A01021 #6 10:00:00",
            "a 2024-09-05 sell 2 INFY 1920 INE009A01021 #7 11:00:00 BSE",
            // An auction's purchase is delivered.
            "a 2024-09-06 buy 5 INFY 1900 INE009A01021 #8 auction",
            "a 2024-09-06 sell 1 INFY 1920 INE009A01021 #9",
        ],
        &[],
    );
    assert_eq!(
        parts(&ledger),
        [
            "2024-09-03 intraday 2024-09-03 15 28527.75 28398.00",
            "2024-09-04 intraday 2024-09-04 4 7640.00 7600.00",
            "2024-09-04 delivery 2024-09-02 2 3820.00 3600.00",
            "2024-09-05 delivery 2024-09-02 2 3840.00 3600.00",
            "2024-09-06 delivery 2024-09-02 1 1920.00 1800.00",
        ]
    );
    // The trades of 5 September are marked, and no others.
    let marked: Vec<u32> = ledger.checks.iter().copied().collect();
    assert_eq!(marked, [5, 6]);
    let mut trades = trades_of(&["a 2024-09-05 buy 3 X 19 INE009A01021 #6 mtf"], &[]);
    trades.mark_checks(&BTreeSet::from([0, 1]));
    assert_eq!(trades.all[0].mark, Some(Mark::MarginFunded));
    let mut trades = trades_of(&["a 2024-09-05 buy 3 X 19 INE009A01021 #6"], &[]);
    trades.mark_checks(&ledger.checks);
    assert_eq!(trades.all[0].mark, None);
    trades.mark_checks(&BTreeSet::from([0]));
    assert_eq!(trades.all[0].mark, Some(Mark::Check));
    assert_eq!(ledger.positions[0].quantity(), decimal("13"));
}

#[test]
fn a_sale_without_a_purchase_is_uncovered_for_good() {
    let ledger = ledger_of(
        &[
            "a 2018-10-04 sell 450 SUZLON 6.35 INE040H01021 #25770318",
            "a 2018-10-05 buy 500 SUZLON 6 INE040H01021 #1",
            "a 2018-10-08 sell 510 SUZLON 7 INE040H01021 #2",
        ],
        &[],
    );
    assert_eq!((uncovered(&ledger), lots(&ledger).len()), (decimal("460"), 0));
    let open: Vec<Decimal> = ledger.sales.iter().map(|sale| sale.uncovered).collect();
    assert_eq!(open, [decimal("450"), decimal("10")]);
}

#[test]
fn charges_are_cost_and_the_transaction_tax_is_not() {
    let ledger = ledger_of(
        &[
            "a 2024-05-02 buy 30 X 100 INE0EXA01011 #1 brokerage=10 stt=3 stamp=0.45",
            "a 2024-05-06 sell 7 X 110 INE0EXA01011 #2 brokerage=5 stt=1",
            "a 2024-05-07 buy 1 X 100 INE0EXA01011 #3 stt=1",
        ],
        &[],
    );
    // 700 and 7/30 of 10.45.
    assert_eq!(parts(&ledger), ["2024-05-06 delivery 2024-05-02 7 770.00 702.44"]);
    assert_eq!(ledger.sales[0].charges, Some(decimal("5").into()));
    let open = &ledger.positions[0].lots;
    assert_eq!(open[0].cost.rounded(), Some(decimal("2308.01")));
    assert_eq!(open[1].charges, None);
    let whole = ledger.sales[0].parts[0].lot.cost.plus(&open[0].cost);
    assert_eq!(whole, decimal("3010.45").into());
}

#[test]
fn lots_without_a_trade_enter_before_the_trades_of_their_day() {
    let ledger = ledger_of(
        &[
            "a 2022-05-04 buy 5 X 300 INE0EXA01011 #1",
            "a 2022-05-05 sell 24 X 310 INE0EXA01011 #2",
        ],
        &[
            r#"{"kind":"opening_lot","account":"a","isin":"INE0EXA01011","date":"2021-03-02",
            "entered":"2022-05-04","quantity":10,"cost":9000,"how":"gift"}"#,
            r#"{"kind":"opening_lot","account":"a","isin":"INE0EXA01011","date":"2015-03-02",
            "entered":"2022-05-04","quantity":10,"cost":5000}"#,
            r#"{"kind":"rights","account":"a","isin":"INE0EXA01011","date":"2022-05-04",
            "quantity":2,"price":100}"#,
        ],
    );
    assert_eq!(
        parts(&ledger),
        [
            "2022-05-05 delivery 2022-05-04 2 620.00 200.00",
            "2022-05-05 delivery 2015-03-02 10 3100.00 5000.00",
            "2022-05-05 delivery 2021-03-02 10 3100.00 9000.00",
            "2022-05-05 delivery 2022-05-04 2 620.00 600.00",
        ]
    );
    assert_eq!(lots(&ledger), ["a INE0EXA01011 2022-05-04 2022-05-04 market 3 900.00"]);
}

#[test]
fn a_transfer_takes_the_first_lots_without_a_gain_and_they_enter_there_that_day() {
    let ledger = ledger_of(
        &[
            "a 2020-01-06 buy 10 X 100 INE0EXA01011 #1",
            "a 2020-02-03 buy 10 X 200 INE0EXA01011 #2",
            "b 2020-03-02 buy 10 X 300 INE0EXA01011 #3",
            "b 2020-07-01 sell 15 X 400 INE0EXA01011 #4",
        ],
        &[
            r#"{"kind":"transfer","account":"a","to":"b","isin":"INE0EXA01011",
            "date":"2020-06-01","quantity":14}"#,
            r#"{"kind":"transfer","account":"a","isin":"INE0EXA01011","date":"2020-08-03",
            "quantity":1}"#,
        ],
    );
    assert_eq!(
        parts(&ledger),
        [
            "2020-07-01 delivery 2020-03-02 10 4000.00 3000.00",
            "2020-07-01 delivery 2020-01-06 5 2000.00 500.00",
        ]
    );
    assert_eq!(
        lots(&ledger),
        [
            "a INE0EXA01011 2020-02-03 2020-02-03 market 5 1000.00",
            "b INE0EXA01011 2020-01-06 2020-06-01 market 5 500.00",
            "b INE0EXA01011 2020-02-03 2020-06-01 market 4 800.00",
        ]
    );
    assert_eq!(ledger.positions[0].left_for.len(), 2);
    let gone = ledger_of(
        &["a 2020-01-06 buy 10 X 100 INE0EXA01011 #1"],
        &[
            r#"{"kind":"transfer","account":"a","isin":"INE0EXA01011","date":"2020-01-06",
            "quantity":1}"#,
        ],
    );
    // What is bought that day has not come yet.
    assert_eq!((uncovered(&gone), gone.positions[0].quantity()), (decimal("1"), decimal("10")));
}

#[test]
fn of_one_days_transfers_the_smaller_one_comes_first() {
    let transfer = |to: &str, quantity: u32| {
        format!(
            r#"{{"kind":"transfer","account":"a","to":"{to}","isin":"INE0EXA01011",
            "date":"2024-01-05","quantity":{quantity}}}"#
        )
    };
    for [small, large] in [["d", "c"], ["c", "d"]] {
        let ledger = ledger_of(
            &[
                "a 2020-05-28 buy 20 X 1000 INE0EXA01011 #1",
                "a 2020-08-28 buy 20 X 2000 INE0EXA01011 #2",
            ],
            &[&transfer(large, 30), &transfer(small, 5)],
        );
        let found = lots(&ledger);
        let of_small = found.iter().filter(|lot| lot.starts_with(small));
        let expected = format!("{small} INE0EXA01011 2020-05-28 2024-01-05 market 5 5000.00");
        assert_eq!(of_small.collect::<Vec<_>>(), [&expected]);
    }
}

#[test]
fn what_one_account_gives_another_passes_on_that_day_whatever_their_names() {
    let bought = |account: &str| format!("{account} 2020-01-06 buy 10 X 100 INE0EXA01011 #1");
    let moves = |from: &str, to: &str, quantity: u32| {
        format!(
            r#"{{"kind":"transfer","account":"{from}","to":"{to}","isin":"INE0EXA01011",
            "date":"2020-06-01","quantity":{quantity}}}"#
        )
    };
    for [first, between, last] in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let said = [moves(first, between, 8), moves(between, last, 6)];
        let ledger = ledger_of(&[&bought(first)], &said.each_ref().map(String::as_str));
        assert_eq!(uncovered(&ledger), Decimal::ZERO, "{first} {between} {last}");
        let lot = |account: &str, entered: &str, quantity: u32| {
            let cost = quantity * 100;
            format!("{account} INE0EXA01011 2020-01-06 {entered} market {quantity} {cost}.00")
        };
        let mut wanted = [
            lot(first, "2020-01-06", 2),
            lot(between, "2020-06-01", 2),
            lot(last, "2020-06-01", 6),
        ];
        wanted.sort();
        assert_eq!(lots(&ledger), wanted);
    }
    // Back on the same day.
    let said = [moves("a", "b", 1), moves("b", "a", 8)];
    let ledger = ledger_of(&[&bought("b")], &said.each_ref().map(String::as_str));
    assert_eq!(uncovered(&ledger), Decimal::ZERO);
    let held: Vec<Decimal> = ledger.positions.iter().map(Position::quantity).collect();
    assert_eq!(held, [decimal("7"), decimal("3")]);
}

#[test]
fn purchases_without_ids_or_times_enter_by_the_names_of_the_exchanges() {
    let ledger = ledger_of(
        &[
            "b 2023-02-14 buy 11 X 90 INE0EXA01011",
            "b 2023-02-14 buy 9 X 2061 INE0EXA01011 BSE",
            "b 2024-08-02 sell 9 X 100 INE0EXA01011",
        ],
        &[],
    );
    assert_eq!(parts(&ledger), ["2024-08-02 delivery 2023-02-14 9 900.00 18549.00"]);
}

#[test]
fn shares_bought_on_one_exchange_and_sold_on_the_other_are_marked_among_many() {
    let bought: Vec<String> = (0..20_000)
        .map(|id| format!("a 2024-09-03 buy 1 X 100 INE0EXA01011 #{}", id + 1))
        .collect();
    let mut lines: Vec<&str> = bought.iter().map(String::as_str).collect();
    assert_eq!(ledger_of(&lines, &[]).checks.len(), 0);
    lines.push("a 2024-09-03 sell 1 X 100 INE0EXA01011 #1 BSE");
    assert_eq!(ledger_of(&lines, &[]).checks.len(), 20_001);
}

#[test]
fn splits_and_bonuses_go_by_what_was_held_the_day_before() {
    let said = [
        r#"{"kind":"split","isin":"INE0EXA01011","new_isin":"INE0EXA01029",
        "ex_date":"2024-08-26","numerator":5,"denominator":1}"#,
        r#"{"kind":"bonus","isin":"INE0EXA01011","ex_date":"2024-09-02","numerator":1,
        "denominator":2,"allotment_date":"2024-09-04"}"#,
    ];
    let ledger = ledger_of(
        &[
            "a 2024-08-23 buy 3 X 500 INE0EXA01011 #1",
            // The ISIN of a row decides nothing: this purchase is of the day of the split.
            "a 2024-08-26 buy 2 X 100 INE0EXA01011 #2",
            "a 2024-09-02 buy 9 X 60 INE0EXA01029 #3",
            "a 2024-09-03 sell 1 X 70 INE0EXA01029 #4",
        ],
        &said,
    );
    // 15 and 2 are held: 8 and a half give 8.
    assert_eq!(
        lots(&ledger),
        [
            "a INE0EXA01029 2024-08-23 2024-08-23 market 14 1400.00",
            "a INE0EXA01029 2024-08-26 2024-08-26 market 2 200.00",
            "a INE0EXA01029 2024-09-02 2024-09-02 market 9 540.00",
            "a INE0EXA01029 2024-09-04 2024-09-04 bonus 8 0.00",
        ]
    );
    // Before the allotment the bonus is in no lot.
    let corrections = corrections(&said);
    let trades = trades_of(&["a 2024-08-23 buy 3 X 500 INE0EXA01011 #1"], &corrections);
    for (day, held) in [
        ("2024-08-25", "3"),
        ("2024-08-26", "15"),
        ("2024-09-03", "15"),
    ] {
        let ledger = replay(&trades, &corrections, date(day));
        assert_eq!(ledger.positions[0].quantity(), decimal(held), "{day}");
    }
}

#[test]
fn tata_motors_and_itc_hotels_divide_the_cost_as_their_companies_said() {
    let ledger = ledger_of(
        &[
            "a 2020-01-06 buy 1000 TATAMOTORS 400 INE155A01022 #1",
            "a 2020-01-06 buy 1000 ITC 400 INE154A01025 #2",
        ],
        &[
            r#"{"kind":"demerger","isin":"INE155A01022","new_isin":"INE1TAE01010",
            "ex_date":"2025-10-01","numerator":1,"denominator":1,"cost_percent":31.15}"#,
            r#"{"kind":"demerger","isin":"INE154A01025","new_isin":"INE379A01028",
            "ex_date":"2025-01-06","numerator":1,"denominator":10,"cost_percent":13.51,
            "allotment_date":"2025-01-11"}"#,
        ],
    );
    assert_eq!(
        lots(&ledger),
        [
            "a INE154A01025 2020-01-06 2020-01-06 market 1000 345960.00",
            "a INE155A01022 2020-01-06 2020-01-06 market 1000 275400.00",
            "a INE1TAE01010 2020-01-06 2025-10-01 demerger 1000 124600.00",
            "a INE379A01028 2020-01-06 2025-01-11 demerger 100 54040.00",
        ]
    );
}

#[test]
fn a_merger_gives_42_for_25_and_carries_cost_and_date() {
    let ledger = ledger_of(
        &[
            "a 2019-04-01 buy 10 HDFC 2000 INE001A01036 #1 unpaid",
            "a 2020-04-01 buy 10 HDFC 1600 INE001A01036 #2",
            "a 2023-07-03 buy 1 HDFCBANK 1700 INE040A01034 #3",
            "b 2023-07-03 buy 25 HDFC 1700 INE001A01036 #4",
        ],
        &[
            r#"{"kind":"merger","account":"a","isin":"INE001A01036","new_isin":"INE040A01034",
            "ex_date":"2023-07-13","numerator":42,"denominator":25}"#,
        ],
    );
    // 16.8 and 33.6 are 16 and 33 whole shares. The action is of one account alone.
    assert_eq!(
        lots(&ledger),
        [
            "a INE040A01034 2023-07-03 2023-07-03 market 1 1700.00",
            "a INE040A01034 2019-04-01 2023-07-13 merger 16 20000.00",
            "a INE040A01034 2020-04-01 2023-07-13 merger 17 16000.00",
            "b INE001A01036 2023-07-03 2023-07-03 market 25 42500.00",
        ]
    );
    let merged = &ledger
        .positions
        .iter()
        .find(|of| of.lots.len() == 3)
        .unwrap()
        .lots[1];
    assert_eq!((merged.carried, merged.origin), (true, How::OffMarket));
}

#[test]
fn an_action_gives_whole_shares_for_fractions_and_a_new_isin_alone_keeps_them() {
    let bought = [
        "a 2021-03-15 buy 10.7 X 100 INE0EXA01011 #1",
        "a 2021-03-16 buy 0.6 X 120 INE0EXA01011 #2",
    ];
    let held = |action: &str, more: &str| {
        let said = format!(
            r#"{{"kind":"{action}","isin":"INE0EXA01011","ex_date":"2024-11-04","numerator":1,
            "denominator":1{more}}}"#
        );
        lots(&ledger_of(&bought, &[&said]))
    };
    let kept = [
        "a INE0EXA01011 2021-03-15 2021-03-15 market 10.7 1070.00",
        "a INE0EXA01011 2021-03-16 2021-03-16 market 0.6 72.00",
    ];
    let bonus = "a INE0EXA01011 2024-11-04 2024-11-04 bonus 11 0.00";
    assert_eq!(held("bonus", ""), [kept[0], kept[1], bonus]);
    let other = r#","new_isin":"INE0EXB01019""#;
    assert_eq!(
        held("merger", other),
        [
            "a INE0EXB01019 2021-03-15 2024-11-04 merger 10 1070.00",
            "a INE0EXB01019 2021-03-16 2024-11-04 merger 1 72.00",
        ]
    );
    assert_eq!(
        held("demerger", &format!(r#"{other},"cost_percent":50"#)),
        [
            "a INE0EXA01011 2021-03-15 2021-03-15 market 10.7 535.00",
            "a INE0EXA01011 2021-03-16 2021-03-16 market 0.6 36.00",
            "a INE0EXB01019 2021-03-15 2024-11-04 demerger 10 535.00",
            "a INE0EXB01019 2021-03-16 2024-11-04 demerger 1 36.00",
        ]
    );
    let renamed = r#","new_isin":"INE0EXA01029""#;
    let kept = kept.map(|lot| lot.replace("INE0EXA01011", "INE0EXA01029"));
    assert_eq!(held("split", renamed), kept);
}

#[test]
fn a_bonus_is_of_what_was_held_the_day_before_whatever_else_the_day_gives() {
    let bought = [
        "a 2021-03-15 buy 10 X 100 INE0EXA01011 #1",
        "a 2021-03-16 buy 6 Y 120 INE0EXB01019 #2",
        "a 2024-11-04 buy 5 X 100 INE0EXA01011 #3",
    ];
    let on_day = r#""ex_date":"2024-11-04","numerator":1,"denominator":1"#;
    let bonus = format!(r#"{{"kind":"bonus","isin":"INE0EXA01011",{on_day}}}"#);
    let into = format!(r#""isin":"INE0EXB01019","new_isin":"INE0EXA01011",{on_day}"#);
    let of_bonus = |other: &str| {
        let ledger = ledger_of(&bought, &[&bonus, other]);
        let lots = ledger
            .positions
            .into_iter()
            .flat_map(|position| position.lots);
        let given: Vec<String> = lots
            .filter(|lot| lot.how == How::Bonus)
            .map(|lot| lot.quantity.to_string())
            .collect();
        given.join(" ")
    };
    for (other, given) in [
        (format!(r#"{{"kind":"merger",{into}}}"#), "10"),
        (format!(r#"{{"kind":"demerger",{into},"cost_percent":40}}"#), "10"),
        (bonus.clone(), "10 10"),
        // The shares of the day before, as the day's split has made them.
        (
            bonus
                .replace("bonus", "split")
                .replace(r#""numerator":1"#, r#""numerator":5"#),
            "50",
        ),
        (format!(r#"{{"kind":"merger",{}}}"#, into.replace("11-04", "11-01")), "16"),
    ] {
        assert_eq!(of_bonus(&other), given, "{other}");
    }
}

#[test]
fn a_buyback_takes_the_first_lots_and_how_names_what_was_bought() {
    let ledger = ledger_of(
        &[
            "a 2021-03-15 buy 10 X 100 INE0EXA01011 #1",
            "a 2021-03-16 buy 10 X 120 INE0EXA01011 #2",
        ],
        &[
            r#"{"kind":"buyback","account":"a","isin":"INE0EXA01011","date":"2024-11-04",
            "quantity":12,"price":150}"#,
            r#"{"kind":"how","account":"a","isin":"INE0EXA01011","date":"2021-03-16",
            "how":"ipo"}"#,
            r#"{"kind":"fraction_cash","account":"a","isin":"INE0EXA01011","date":"2024-11-05",
            "cash":31.25}"#,
            r#"{"kind":"unproved","isin":"INE0EXA01011","date":"2024-11-05","what":"other"}"#,
        ],
    );
    assert_eq!(
        parts(&ledger),
        [
            "2024-11-04 buyback 2021-03-15 10 1500.00 1000.00",
            "2024-11-04 buyback 2021-03-16 2 300.00 240.00",
        ]
    );
    assert_eq!(lots(&ledger), ["a INE0EXA01011 2021-03-16 2021-03-16 ipo 8 960.00"]);
    assert_eq!((ledger.fractions.len(), ledger.unproved.len()), (1, 1));
}

#[test]
fn a_conflict_counts_for_neither_side() {
    let ledger = ledger_of(
        &[
            "a 2024-05-02 buy 30 X 100 INE0EXA01011 #1",
            "a 2024-05-02 buy 31 X 100 INE0EXA01011 #1",
            "a 2024-05-03 buy 1 X 100 INE0EXA01011 #2",
        ],
        &[],
    );
    assert_eq!(ledger.positions[0].quantity(), decimal("1"));
    assert_eq!(ledger.conflicts.into_iter().collect::<Vec<_>>(), [(0, 1)]);
}
