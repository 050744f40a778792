//! Flows: what is in them, what is not and why, and the index beside them.

use super::*;
use crate::base::Broker;
use crate::ledger::lots::replay;
use crate::ledger::reconciliation::{
    Compared, Settlement, SyncedAccount, SyncedHolding, reconcile,
};
use crate::ledger::testing::{account, corrections, date, decimal, trades_of};

const TODAY: &str = "2025-01-15";

struct NextDay;

impl Settlement for NextDay {
    fn settlement_day(&self, traded: Date) -> Option<Date> {
        traded.tomorrow().ok()
    }
}

/// Returns of `self` where the accounts hold what is given: account, ISIN, quantity.
fn returned(
    trades: &[&str],
    said: &[&str],
    held: &[(&str, &str, &str)],
    persons: &Persons,
    price: Option<&str>,
) -> Returns {
    let corrections = corrections(said);
    let trades = trades_of(trades, &corrections);
    let ledger = replay(&trades, &corrections, date(TODAY));
    let names: BTreeSet<&str> = ledger
        .positions
        .iter()
        .map(|of| of.account.as_str())
        .collect();
    let synced: Vec<SyncedAccount> = names
        .into_iter()
        .filter(|name| *name != "never")
        .map(|name| SyncedAccount {
            account: account(name),
            by: Broker::A,
            at_ms: 0,
            on: date(TODAY),
            trading_date: date(TODAY),
            holdings: held
                .iter()
                .filter(|(of, _, _)| *of == name)
                .map(|(_, isin, quantity)| SyncedHolding {
                    isin: Isin::parse(isin),
                    symbol: "?".into(),
                    owned: decimal(quantity),
                    pledged: Decimal::ZERO,
                    action_seen: None,
                })
                .collect(),
        })
        .collect();
    let compared = Compared {
        trades: &trades,
        corrections: &corrections,
        ledger: &ledger,
        persons,
    };
    let proof = reconcile(compared, &synced, &NextDay).unwrap();
    let prices = |_: &Position| {
        Some(DatedPrice {
            price: decimal(price?),
            date: date(TODAY),
        })
    };
    let index = |day: Date| {
        (day != date("2024-06-03")).then(|| {
            if day < date("2024-06-01") {
                decimal("100")
            } else {
                decimal("120")
            }
        })
    };
    let sources = ReturnSources {
        ledger: &ledger,
        proof: &proof,
        persons,
        prices: &prices,
        index: &index,
    };
    returns(sources, "self")
}

const X: &str = "INE0EXA01011";
const VECTOR: [&str; 3] = [
    "a 2024-01-15 buy 50 X 100 INE0EXA01011 #1",
    "a 2024-04-10 buy 30 X 100 INE0EXA01011 #2",
    "a 2024-08-20 sell 15 X 100 INE0EXA01011 #3",
];

fn out(returns: &Returns) -> Vec<String> {
    let of = returns.left_out.iter().map(|row| {
        let account = row.account.as_ref().map_or("-", AccountName::as_str);
        let isin = row
            .isin
            .map_or("-".to_owned(), |isin| isin.as_str().to_owned());
        format!("{account} {isin} {}", row.reason)
    });
    of.collect()
}

fn rupees(amount: &Amount) -> String {
    amount.rounded().unwrap().to_string()
}

#[test]
fn the_rate_of_purchases_sales_and_the_value_of_what_is_held() {
    // 65 shares are worth 7,200.
    let price = "110.76923076923076923076923077";
    let found = returned(&VECTOR, &[], &[("a", X, "65")], &Persons::new(), Some(price));
    assert_eq!(found.whole.rate.rate, Some(0.104_499_636_5));
    assert_eq!(found.whole.absolute_pct.as_ref().map(rupees), Some("8.75".into()));
    let sums = [
        &found.whole.purchases,
        &found.whole.sales,
        &found.whole.value,
    ]
    .map(rupees);
    assert_eq!(sums, ["8000.00", "1500.00", "7200.00"]);
    assert_eq!(found.holdings.len(), 1);
    assert_eq!(found.holdings[0].of, found.whole);
    assert_eq!(out(&found), ["- - dividends"]);
    // The same money in the index: 80 units for 8,000, 12.5 of them sold at 120.
    assert_eq!(found.benchmark.reason, None);
    let absolute = found.benchmark.absolute_pct.unwrap();
    assert!((absolute - 20.0 * 80.0 / 80.0).abs() < 1e-9, "{absolute}");
    assert!(found.benchmark.rate.unwrap().rate.unwrap() > 0.2);
}

#[test]
fn charges_are_flows_and_trades_of_a_day_and_derivatives_are_not() {
    let trades = [
        "a 2024-01-15 buy 10 X 100 INE0EXA01011 #1 brokerage=5 stt=1",
        "a 2024-05-15 sell 4 X 110 INE0EXA01011 #2 brokerage=2",
        "a 2024-05-16 buy 7 X 110 INE0EXA01011 #3",
        "a 2024-05-16 sell 7 X 120 INE0EXA01011 #4",
        "a 2024-09-11 buy 25 NIFTY24SEP25100CE 118.40 FO #5",
        "a 2024-09-13 sell 25 NIFTY24SEP25100CE 161.20 FO #6",
        "a 2024-06-03 buy 1 Y 10 INE0EXB01019 #7",
        "a 2024-06-04 sell 1 Y 12 INE0EXB01019 #8",
    ];
    let found = returned(&trades, &[], &[("a", X, "6")], &Persons::new(), Some("100"));
    let sums = [
        &found.whole.purchases,
        &found.whole.sales,
        &found.whole.value,
    ]
    .map(rupees);
    assert_eq!(sums, ["1015.00", "450.00", "600.00"]);
    assert_eq!(out(&found), ["- - intraday", "- - fno", "- - dividends"]);
    assert_eq!(found.holdings.len(), 1, "what is gone is no holding");
    // The index has no close of 3 June.
    assert_eq!(found.benchmark.reason, Some("no_index_price"));
    assert_eq!((found.benchmark.rate, found.benchmark.absolute_pct), (None, None));
}

#[test]
fn what_is_not_proved_not_priced_or_has_left_is_out_and_named() {
    let trades = [
        VECTOR[0],
        "a 2024-01-15 buy 5 Y 100 INE0EXB01019 #4",
        "never 2024-01-15 buy 5 Z 100 INE0EXC01017 #5",
    ];
    let left = r#"{"kind":"transfer","account":"a","isin":"INE0EXB01019","date":"2024-05-02",
        "quantity":1}"#;
    let held = [("a", X, "49"), ("a", "INE0EXB01019", "4")];
    let found = returned(&trades, &[left], &held, &Persons::new(), Some("100"));
    assert_eq!(
        out(&found),
        [
            "a INE0EXA01011 quantity_differs",
            "a INE0EXB01019 shares_left",
            "never INE0EXC01017 never_synced",
            "- - dividends",
        ]
    );
    assert_eq!(found.whole.rate.reason, Some(NoRate::NoFlows));
    assert_eq!(found.whole.absolute_pct, None);
    let unpriced = returned(&trades[..1], &[], &[("a", X, "50")], &Persons::new(), None);
    assert_eq!(out(&unpriced), ["a INE0EXA01011 no_price", "- - dividends"]);
}

#[test]
fn shares_that_move_between_ones_own_accounts_stay_and_to_another_person_leave() {
    let transfer = r#"{"kind":"transfer","account":"a","to":"b","isin":"INE0EXA01011",
        "date":"2024-05-02","quantity":20}"#;
    let held = [("a", X, "30"), ("b", X, "20")];
    let mut persons = Persons::new();
    let own = returned(&VECTOR[..1], &[transfer], &held, &persons, Some("110"));
    assert_eq!((out(&own).len(), rupees(&own.whole.value)), (1, "5500.00".into()));
    persons.insert(account("b"), "spouse".into());
    let given = returned(&VECTOR[..1], &[transfer], &held, &persons, Some("110"));
    assert_eq!(out(&given), ["a INE0EXA01011 shares_left", "- - dividends"]);
    // Where the other account is not proved, neither is a part of the value.
    let unproved = [("a", X, "30"), ("b", X, "19")];
    let found = returned(&VECTOR[..1], &[transfer], &unproved, &Persons::new(), Some("110"));
    assert_eq!(
        out(&found),
        [
            "a INE0EXA01011 quantity_differs",
            "b INE0EXA01011 quantity_differs",
            "- - dividends",
        ]
    );
}

#[test]
fn a_demerger_keeps_the_whole_and_gives_its_parts_no_rate() {
    let demerger = r#"{"kind":"demerger","isin":"INE0EXA01011","new_isin":"INE0EXB01019",
        "ex_date":"2024-05-02","numerator":1,"denominator":1,"cost_percent":30}"#;
    let held = [("a", X, "50"), ("a", "INE0EXB01019", "50")];
    let found = returned(&VECTOR[..1], &[demerger], &held, &Persons::new(), Some("60"));
    assert_eq!(found.whole.absolute_pct.as_ref().map(rupees), Some("20.00".into()));
    let reasons: Vec<_> = found
        .holdings
        .iter()
        .map(|holding| holding.of.rate.reason)
        .collect();
    assert_eq!(reasons, [Some(NoRate::CostCarried); 2]);
    let unproved = [("a", X, "50"), ("a", "INE0EXB01019", "49")];
    let found = returned(&VECTOR[..1], &[demerger], &unproved, &Persons::new(), Some("60"));
    assert_eq!(out(&found).len(), 3, "{:?}", out(&found));
    // What was there before counts on the date of its purchase.
    let opening = r#"{"kind":"opening_lot","account":"a","isin":"INE0EXA01011",
        "date":"2023-01-16","entered":"2024-01-16","quantity":10,"cost":1000}"#;
    let found = returned(&[], &[opening], &[("a", X, "10")], &Persons::new(), Some("121"));
    assert_eq!(found.whole.rate.rate.map(|rate| (rate * 1e4).round()), Some(1000.0));
}

#[test]
fn what_passed_through_an_unproved_account_or_security_is_out_where_it_came_from() {
    let persons = Persons::new();
    let price = Some("110");
    // Five shares move to an account that is never synced, where no whole share is left of them.
    let bought = ["a 2024-01-15 buy 5 X 100 INE0EXA01011 #1"];
    let said = [
        r#"{"kind":"transfer","account":"a","to":"never","isin":"INE0EXA01011",
        "date":"2024-02-01","quantity":5}"#,
        r#"{"kind":"split","account":"never","isin":"INE0EXA01011","ex_date":"2024-03-01",
        "numerator":1,"denominator":10}"#,
    ];
    let found = returned(&bought, &said, &[], &persons, price);
    let gone = [
        "a INE0EXA01011 never_synced",
        "never INE0EXA01011 never_synced",
        "- - dividends",
    ];
    assert_eq!(out(&found), gone);
    assert!(found.whole.purchases.is_zero());

    // Between two mergers nothing is traded.
    let said = [
        r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01010",
        "ex_date":"2024-02-01","numerator":1,"denominator":1}"#,
        r#"{"kind":"merger","isin":"INE0EXB01010","new_isin":"INE0EXC01018",
        "ex_date":"2024-03-01","numerator":1,"denominator":1}"#,
        r#"{"kind":"unproved","isin":"INE0EXB01010","date":"2024-02-15",
        "what":"capital_reduction"}"#,
    ];
    let held = [("a", "INE0EXC01018", "5")];
    let found = returned(&bought, &said[..2], &held, &persons, price);
    assert_eq!(out(&found), ["- - dividends"]);
    let found = returned(&bought, &said, &held, &persons, price);
    let cut = |isin: &str| format!("a {isin} action_unproved");
    let cuts = ["INE0EXA01011", "INE0EXB01010", "INE0EXC01018"].map(cut);
    assert_eq!(out(&found), [cuts.as_slice(), &["- - dividends".to_owned()]].concat());
}

#[test]
fn a_merger_of_before_the_first_purchase_binds_nothing() {
    let trades = [
        "a 2024-05-02 buy 10 X 100 INE0EXA01011 #1",
        "a 2024-05-02 buy 10 Y 100 INE0EXB01010 #2",
    ];
    let said = [
        r#"{"kind":"merger","isin":"INE0EXA01011","new_isin":"INE0EXB01010",
        "ex_date":"2024-05-02","numerator":1,"denominator":2}"#,
        r#"{"kind":"transfer","account":"a","isin":"INE0EXA01011","date":"2024-06-03",
        "quantity":1}"#,
    ];
    let held = [("a", "INE0EXA01011", "9"), ("a", "INE0EXB01010", "10")];
    let found = returned(&trades, &said, &held, &Persons::new(), Some("110"));
    assert_eq!(out(&found), ["a INE0EXA01011 shares_left", "- - dividends"]);
    assert_eq!(rupees(&found.whole.purchases), "1000.00");
    assert!(found.holdings[0].of.rate.rate.is_some());
}
