//! Identity of rows: with and without ids, averaged orders, conflicts, ISINs, previews.

use proptest::prelude::*;

use super::*;
use crate::ledger::corrections::Correction;
use crate::ledger::testing::{Told, account, correction, decimal, isin, rows};

const RELIANCE: &str = "INE002A01018";
const INFY: &str = "INE009A01021";

/// Imports of account `a`: format and rows each.
struct Files {
    account: AccountName,
    all: Vec<(String, &'static str, Vec<Row>)>,
    corrections: Vec<Correction>,
    choices: Choices,
    told: Told,
}

fn files(all: &[(&'static str, &[&str])]) -> Files {
    let numbered = all.iter().enumerate();
    let file = |(at, (format, lines)): (usize, &(&'static str, &[&str]))| {
        (format!("i{at}"), *format, rows(lines))
    };
    Files {
        account: account("a"),
        all: numbered.map(file).collect(),
        corrections: Vec::new(),
        choices: Choices::new(),
        told: Told::default(),
    }
}

impl Files {
    fn imports<'a>(&'a self) -> Vec<ImportedRows<'a>> {
        let import = |(id, format, rows): &'a (String, &'static str, Vec<Row>)| ImportedRows {
            import: id,
            account: &self.account,
            format,
            rows,
        };
        self.all.iter().map(import).collect()
    }

    fn with<T>(&self, run: impl FnOnce(Known<'_>) -> T) -> T {
        let securities = Securities::of(&self.corrections);
        run(Known {
            securities: &securities,
            choices: &self.choices,
            isins: &self.told,
        })
    }

    fn trades(&self) -> Trades {
        self.with(|known| trades(&self.imports(), known))
    }

    /// Of the last file among those before.
    fn preview(&self) -> Preview {
        let imports = self.imports();
        let (added, live) = imports.split_last().unwrap();
        self.with(|known| preview(live, *added, known))
    }

    /// Side, quantity, price and lines of each trade.
    fn shown(&self) -> Vec<String> {
        self.trades().all.iter().map(shown).collect()
    }
}

fn shown(trade: &Trade) -> String {
    let sources: Vec<String> = trade
        .sources
        .iter()
        .map(|source| format!("{}:{}", source.import, source.line))
        .collect();
    let quantity = trade.quantity.normalize();
    let price = trade.price.normalize();
    format!("{} {quantity} at {price} of {}", trade.side, sources.join(" "))
}

#[test]
fn rows_with_one_id_are_one_trade_whatever_their_names() {
    let found = files(&[
        (
            "zerodha_tradebook",
            &[
                "2023-05-11 buy 12 RELIANCE 2311.400000 INE002A01018 #40417733 10:41:09",
                "2023-05-11 buy 12 RELIANCE 2311.4 INE002A01018 #40417733",
                "2023-05-11 buy 12 RELIANCE 2311.4 INE002A01018 #40417734",
            ],
        ),
        ("zerodha_tradebook", &["2023-05-11 buy 12 OLDNAME 2311.4 #40417733"]),
        ("sync_a", &["2023-05-11 buy 12 RELIANCE 2311.4 #40417733 oX"]),
    ]);
    assert_eq!(
        found.shown(),
        [
            "buy 12 at 2311.4 of 0:1 0:2 1:1 2:1",
            "buy 12 at 2311.4 of 0:3",
        ]
    );
    let trades = found.trades();
    let first = &trades.all[0];
    assert_eq!((&*first.symbol, first.isin), ("RELIANCE", Some(isin(RELIANCE))));
    assert_eq!((first.order_id.as_deref(), first.time.is_some()), (Some("X"), true));
    assert_ne!(first.id(), trades.all[1].id());
}

#[test]
fn an_id_is_of_its_exchange_segment_date_and_side() {
    let found = files(&[(
        "zerodha_tradebook",
        &[
            "2023-05-11 buy 1 X 10 INE002A01018 #1",
            "2023-05-11 sell 1 X 10 INE002A01018 #1",
            "2023-05-12 buy 1 X 10 INE002A01018 #1",
            "2023-05-11 buy 1 X 10 INE002A01018 #1 BSE",
            "2023-05-11 buy 1 X 10 #1 FO",
        ],
    )]);
    let trades = found.trades();
    assert_eq!((trades.all.len(), trades.conflicts.len()), (5, 0));
    let ids: HashSet<String> = trades.all.iter().map(Trade::id).collect();
    assert_eq!(ids.len(), 5);
}

#[test]
fn equal_rows_without_ids_count_up_in_one_import_and_meet_in_several() {
    let line = "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013";
    let found = files(&[
        ("icici_tradebook", &[line, line]),
        ("icici_all", &[line, line, line]),
        ("icici_all", &[line]),
    ]);
    assert_eq!(
        found.shown(),
        [
            "buy 9 at 452.35 of 0:1 1:1 2:1",
            "buy 9 at 452.35 of 0:2 1:2",
            "buy 9 at 452.35 of 1:3",
        ]
    );
    let ids: HashSet<String> = found.trades().all.iter().map(Trade::id).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_row_without_id_meets_one_with_id_that_says_the_same() {
    let with_id = "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1 12:40:35 oA";
    for (line, count) in [
        ("2024-08-06 buy 9 FILL 452.35 INE0EXQ01013", 1),
        ("2024-08-06 buy 9 FILLX 452.35 INE0EXQ01013", 1),
        ("2024-08-06 buy 9 FILL 452.35", 1),
        ("2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 12:40:35 oA", 1),
        ("2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 12:40:36", 2),
        ("2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 oB", 2),
        ("2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 BSE", 2),
        ("2024-08-06 buy 9 FILL 452.36 INE0EXQ01013", 2),
        ("2024-08-06 buy 8 FILL 452.35 INE0EXQ01013", 2),
        ("2024-08-06 sell 9 FILL 452.35 INE0EXQ01013", 2),
        ("2024-08-07 buy 9 FILL 452.35 INE0EXQ01013", 2),
        ("2024-08-06 buy 9 FILL 452.35 INE0EXR01011", 2),
    ] {
        let found = files(&[("zerodha_tradebook", &[with_id]), ("workbook", &[line])]);
        assert_eq!(found.trades().all.len(), count, "{line}");
    }
}

#[test]
fn two_lines_of_one_file_are_two_trades_even_if_one_has_lost_its_id() {
    let short = "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #778803";
    let long = "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1690947000098765432";
    let lost = "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013";
    let found = files(&[("csv", &[short, long]), ("workbook", &[short, lost])]);
    assert_eq!(found.shown(), ["buy 9 at 452.35 of 0:1 1:1", "buy 9 at 452.35 of 0:2 1:2"]);
    assert_eq!(files(&[("workbook", &[short, lost])]).trades().all.len(), 2);
}

#[test]
fn a_row_that_says_more_has_the_first_choice() {
    let found = files(&[
        (
            "csv",
            &[
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1 10:00:00",
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #2 11:00:00",
            ],
        ),
        (
            "workbook",
            &[
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013",
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 10:00:00",
            ],
        ),
    ]);
    assert_eq!(found.shown(), ["buy 9 at 452.35 of 0:1 1:2", "buy 9 at 452.35 of 0:2 1:1"]);
}

#[test]
fn an_averaged_order_stands_only_where_no_executions_show_it() {
    let order = "2025-02-05 buy 15 EXAIND 100.33 INE0EXA01011 oR";
    let executions: &[&str] = &[
        "2025-02-05 buy 10 EXAIND 100 INE0EXA01011",
        "2025-02-05 buy 5 EXAIND 101",
    ];
    let both = files(&[("sync_b", &[order]), ("icici_tradebook", executions)]);
    assert_eq!(both.shown(), ["buy 10 at 100 of 0:1 1:1", "buy 5 at 101 of 0:1 1:2"]);
    assert_eq!(files(&[("sync_b", &[order])]).shown(), ["buy 15 at 100.33 of 0:1"]);
    let other = files(&[("sync_b", &[order]), ("icici_tradebook", &executions[..1])]);
    assert_eq!(other.trades().all.len(), 2);
    let twice = files(&[("sync_b", &[order]), ("sync_b", &[order])]);
    assert_eq!(twice.shown(), ["buy 15 at 100.33 of 0:1 1:1"]);
}

#[test]
fn an_order_that_is_left_over_is_another_trade_than_the_execution_that_says_the_same() {
    let orders: &[&str] = &[
        "2025-02-05 buy 5 X 100 INE0EXA01011 o1",
        "2025-02-05 buy 5 X 100 INE0EXA01011 oA",
    ];
    let execution: &[&str] = &["2025-02-05 buy 5 X 100 INE0EXA01011 oA"];
    let found = files(&[("sync_b", orders), ("icici_tradebook", execution)]);
    assert_eq!(found.shown(), ["buy 5 at 100 of 0:1", "buy 5 at 100 of 0:2 1:1"]);
    let trades = found.trades();
    assert_ne!(trades.all[0].id(), trades.all[1].id());
}

#[test]
fn one_id_with_two_figures_is_a_conflict_until_it_is_chosen() {
    let mut found = files(&[
        ("csv", &["2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1 10:00:00"]),
        ("csv", &["2024-08-06 buy 19 FILL 452.35 INE0EXQ01013 #1 09:00:00"]),
        ("workbook", &["2024-08-06 buy 19 FILL 452.35 INE0EXQ01013"]),
    ]);
    let trades = found.trades();
    assert!(trades.all.is_empty());
    let [conflict] = trades.conflicts.as_slice() else {
        panic!("{trades:?}")
    };
    assert_eq!(conflict.trade.mark, Some(Mark::Conflict));
    assert_eq!(conflict.first.quantity, decimal("9"));
    assert_eq!(conflict.second.quantity, decimal("19"));
    assert_eq!(conflict.trade.sources.len(), 3, "{conflict:?}");
    let id = conflict.id.clone();
    for (keep, quantity) in [(Keep::First, "9"), (Keep::Second, "19")] {
        found.choices.insert(id.clone(), keep);
        let trades = found.trades();
        assert_eq!((trades.all.len(), trades.conflicts.len()), (1, 0));
        assert_eq!(trades.all[0].quantity, decimal(quantity));
    }
    // A third figure is a new question about the one that was kept.
    let third = rows(&["2024-08-06 buy 9 FILL 460 INE0EXQ01013 #1"]);
    found.all.push(("i9".into(), "csv", third));
    let trades = found.trades();
    assert_eq!((trades.all.len(), trades.conflicts.len()), (0, 1));
    assert_eq!(trades.conflicts[0].first.quantity, decimal("19"));
    assert_eq!(trades.conflicts[0].second.price, decimal("460"));
    assert_ne!(trades.conflicts[0].id, id);
}

#[test]
fn the_isin_of_a_row_without_one_comes_from_rows_holdings_the_list_or_the_person() {
    let line: &[&str] = &["2024-08-06 buy 9 EXAIND 452.35"];
    let security = |found: &Files| found.trades().all[0].security.clone();
    let mut found = files(&[("icici_tradebook", line)]);
    let known = |text: &str| Security::Known(isin(text));
    assert_eq!(security(&found), Security::Unknown("EXAIND".into()));
    found.told.said = vec![("EXAIND", RELIANCE)];
    assert_eq!(security(&found), known(RELIANCE));
    found.told.listed = vec![("EXAIND", INFY)];
    assert_eq!(security(&found), known(INFY));
    found.told.held = vec![("EXAIND", "INE0EXA01011")];
    assert_eq!(security(&found), known("INE0EXA01011"));
    let told = rows(&["2020-01-01 buy 1 EXAIND 5 INE0EXN01010"]);
    found.all.push(("i1".into(), "icici_all", told));
    assert_eq!(found.trades().all[1].security, known("INE0EXN01010"));
    // Of two candidates none is taken, unless the person says which.
    let second = rows(&["2020-01-02 buy 1 EXAIND 5 INE0EXP01015"]);
    found.all.push(("i2".into(), "icici_all", second));
    assert_eq!(found.trades().all[2].security, known(RELIANCE));
    found.told.said.clear();
    assert_eq!(found.trades().all[2].security, Security::Unknown("EXAIND".into()));
    // Two that a split joins are one security.
    found.corrections = vec![correction(
        r#"{"kind":"split","isin":"INE0EXN01010","new_isin":"INE0EXP01015","ex_date":"2021-01-01",
        "numerator":5,"denominator":1}"#,
    )];
    assert_eq!(found.trades().all[2].security, known("INE0EXP01015"));
    // The other exchange's symbol is another one.
    let elsewhere = files(&[
        ("icici_tradebook", &["2024-08-06 buy 9 EXAIND 452.35 BSE"]),
        ("icici_all", &["2020-01-01 buy 1 EXAIND 5 INE0EXN01010"]),
    ]);
    assert_eq!(elsewhere.trades().all[1].security, Security::Unknown("EXAIND".into()));
}

#[test]
fn a_row_of_an_unknown_security_meets_the_same_symbol() {
    let found = files(&[
        (
            "icici_all",
            &[
                "2020-01-01 buy 1 EXAIND 5 INE0EXN01010",
                "2020-01-02 buy 1 EXAIND 5 INE0EXP01015",
            ],
        ),
        ("icici_tradebook", &["2020-01-02 buy 1 EXAIND 5", "2020-01-03 buy 1 EXAIND 5"]),
    ]);
    assert_eq!(
        found.shown(),
        [
            "buy 1 at 5 of 0:1",
            "buy 1 at 5 of 0:2 1:1",
            "buy 1 at 5 of 1:2"
        ]
    );
    assert_eq!(found.trades().all[1].security, Security::Known(isin("INE0EXP01015")));
}

#[test]
fn a_preview_says_of_each_line_what_it_adds() {
    let found = files(&[
        (
            "csv",
            &[
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1",
                "2024-08-06 buy 4 FILL 452.35 INE0EXQ01013",
            ],
        ),
        (
            "csv",
            &[
                "2024-08-06 buy 9 FILL 452.35 INE0EXQ01013 #1",
                "2024-08-06 buy 7 FILL 452.35 INE0EXQ01013 #2",
                "2024-08-06 buy 7 FILL 452.35 INE0EXQ01013 #2",
                "2024-08-06 buy 8 FILL 452.35 INE0EXQ01013 #2",
                "2024-08-06 buy 4 FILL 452.35 INE0EXQ01013",
                "2024-08-06 buy 4 FILL 452.35 INE0EXQ01013",
                "2024-08-06 buy 10 FILL 452.35 INE0EXQ01013 #1",
                "2024-08-06 buy 4 FILL 452.35 INE0EXQ01013 #3",
            ],
        ),
    ]);
    let preview = found.preview();
    // The file shows three trades of 4, and one of them is stored.
    assert_eq!(preview.new, [2, 6, 8]);
    assert_eq!(preview.known, [1, 3, 5]);
    let conflicts: Vec<(u32, Decimal, Decimal)> = preview
        .conflicts
        .iter()
        .map(|conflict| (conflict.line, conflict.stated.quantity, conflict.stored.quantity))
        .collect();
    let of = |line, stated, stored| (line, decimal(stated), decimal(stored));
    assert_eq!(conflicts, [of(4, "8", "7"), of(7, "10", "9")]);
}

#[test]
fn executions_of_a_stored_averaged_order_are_known_and_so_is_the_order() {
    let order: &[&str] = &["2025-02-05 buy 15 EXAIND 100.33 INE0EXA01011"];
    let executions: &[&str] = &[
        "2025-02-05 buy 10 EXAIND 100 INE0EXA01011",
        "2025-02-05 buy 5 EXAIND 101 INE0EXA01011",
    ];
    let file = files(&[("sync_b", order), ("icici_tradebook", executions)]).preview();
    assert_eq!((file.new, file.known), (vec![], vec![1, 2]));
    let sync = files(&[("icici_tradebook", executions), ("sync_b", order)]).preview();
    assert_eq!((sync.new, sync.known), (vec![], vec![1]));
}

#[test]
fn an_averaged_order_is_what_it_was_filled_to_last() {
    let morning: &[&str] = &[
        "2025-02-05 buy 10 EXAIND 100 oN1",
        "2025-02-05 buy 4 EXAIND 90 oN2",
    ];
    let evening: &[&str] = &[
        "2025-02-05 buy 15 EXAIND 101 oN1",
        "2025-02-05 buy 4 EXAIND 90 oN2",
    ];
    let one = files(&[("sync_b", morning), ("sync_b", evening)]);
    assert_eq!(one.shown(), ["buy 4 at 90 of 0:2 1:2", "buy 15 at 101 of 0:1 1:1"]);
    let same = files(&[("sync_b", &[morning, evening].concat())]);
    assert_eq!(same.shown(), ["buy 4 at 90 of 0:2 0:4", "buy 15 at 101 of 0:1 0:3"]);
    // Two orders that are alike are two.
    let alike = [
        "2025-02-05 buy 4 EXAIND 90 oN2",
        "2025-02-05 buy 4 EXAIND 90 oN3",
    ];
    assert_eq!(files(&[("sync_b", &alike)]).shown().len(), 2);
    let preview = one.preview();
    assert_eq!((preview.new, preview.known), (vec![], vec![1, 2]));
}

#[test]
fn the_order_of_a_day_is_time_then_id_shorter_first_then_exchange_price_and_quantity() {
    let found = files(&[(
        "csv",
        &[
            "2024-08-06 buy 1 X 5 INE0EXQ01013",
            "2024-08-06 buy 2 X 5 INE0EXQ01013 #10 10:00:00",
            "2024-08-06 buy 3 X 5 INE0EXQ01013 #9 10:00:00",
            "2024-08-06 buy 4 X 5 INE0EXQ01013 #95 09:59:59 BSE",
            "2024-08-06 buy 5 X 4 INE0EXQ01013 BSE",
            "2024-08-06 buy 6 X 4 INE0EXQ01013",
            "2024-08-05 buy 7 X 4 INE0EXQ01013",
        ],
    )]);
    let trades = found.trades();
    let order: Vec<String> = trades
        .all
        .iter()
        .map(|trade| trade.quantity.to_string())
        .collect();
    assert_eq!(order, ["7", "4", "3", "2", "5", "6", "1"]);
}

/// Rows of a few figures, so that many are equal, near or in conflict.
fn any_row() -> impl Strategy<Value = Row> {
    let names = prop_oneof![Just("X"), Just("Y")];
    let isins = prop_oneof![Just(""), Just("INE0EXQ01013"), Just("INE0EXR01011")];
    let ids = prop_oneof![2 => Just(""), 1 => Just("#1"), 1 => Just("#2"), 1 => Just("#333")];
    let times = prop_oneof![Just(""), Just("10:00:00"), Just("11:00:00")];
    let rest = prop_oneof![
        Just(""),
        Just("BSE"),
        Just("oA"),
        Just("brokerage=1"),
        Just("mtf")
    ];
    let figures = (1..4_u32, 1..3_u32, 1..3_u32, prop::bool::ANY);
    (figures, names, isins, ids, times, rest).prop_map(
        |((quantity, price, day, buys), name, isin, id, time, rest)| {
            let side = if buys { "buy" } else { "sell" };
            let text = format!(
                "2024-08-0{day} {side} {quantity} {name} 10{price} {isin} {id} {time} {rest}"
            );
            rows(&[&text]).remove(0)
        },
    )
}

fn any_files() -> impl Strategy<Value = Vec<(&'static str, Vec<Row>)>> {
    let formats = prop_oneof![2 => Just("csv"), 1 => Just("sync_b")];
    let file = (formats, prop::collection::vec(any_row(), 0..12)).prop_map(|(format, mut rows)| {
        for (at, row) in rows.iter_mut().enumerate() {
            row.line = at as u32 + 1;
            if format == "sync_b" {
                row.trade_id = None;
            }
        }
        (format, rows)
    });
    prop::collection::vec(file, 1..5)
}

/// The trades without the names of the imports, which repetition changes.
fn content(mut trades: Trades) -> String {
    trades.imports.clear();
    let conflicts = trades
        .conflicts
        .iter_mut()
        .map(|conflict| &mut conflict.trade);
    for trade in trades.all.iter_mut().chain(conflicts) {
        trade.sources = Box::default();
    }
    format!("{trades:?}")
}

fn files_of(all: Vec<(String, &'static str, Vec<Row>)>) -> Files {
    Files { all, ..files(&[]) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn order_repetition_and_undo_of_imports_change_nothing(
        all in any_files(),
        undone in any_files(),
        seed in any::<u64>(),
    ) {
        let named = |(at, (format, rows)): (usize, &(&'static str, Vec<Row>))| {
            (format!("i{at}"), *format, rows.clone())
        };
        let once = files_of(all.iter().enumerate().map(named).collect());
        let expected = once.trades();
        // A row of a file is in one trade, or in several if it is an order's average.
        let lines: HashSet<(u32, u32)> = expected
            .all
            .iter()
            .chain(expected.conflicts.iter().map(|conflict| &conflict.trade))
            .flat_map(|trade| trade.sources.iter().map(|source| (source.import, source.line)))
            .collect();
        let ids: HashSet<String> = expected.all.iter().map(Trade::id).collect();
        prop_assert_eq!(ids.len(), expected.all.len(), "two trades have one id");
        prop_assert_eq!(lines.len(), all.iter().map(|(_, rows)| rows.len()).sum::<usize>());

        let mut order = once.all.clone();
        // Imports that were undone are not among the live ones; those beside them stay.
        let places = order.len().max(1);
        order.rotate_left((seed % places as u64) as usize);
        if seed & 1 << 20 != 0 {
            order.reverse();
        }
        for (at, (format, rows)) in undone.iter().enumerate() {
            order.insert((seed >> 8) as usize % places, (format!("u{at}"), *format, rows.clone()));
        }
        order.retain(|(id, _, _)| !id.starts_with('u'));
        let moved = files_of(order.clone());
        prop_assert_eq!(format!("{:?}", moved.trades()), format!("{expected:?}"));

        let repeated = order[(seed >> 32) as usize % order.len()].clone();
        order.insert((seed >> 40) as usize % places, ("i9".into(), repeated.1, repeated.2));
        let again = files_of(order);
        prop_assert_eq!(content(again.trades()), content(expected));

        // A preview of a file that is live adds nothing, and no line is forgotten.
        let mut last = once.all.clone();
        last.push(("i9".into(), last[0].1, last[0].2.clone()));
        let preview = files_of(last).preview();
        prop_assert_eq!(preview.new.len(), 0, "{:?}", preview);
        prop_assert_eq!(preview.conflicts.len(), 0, "{:?}", preview);
        prop_assert_eq!(preview.known.len(), all[0].1.len());
    }
}
