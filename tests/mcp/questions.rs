//! Questions of people about their money, each answered by calls of tools alone. The figures are
//! held against what the simulated exchange says and against sums over rows.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::assistant::{Assistant, NEW};
use super::world::World;
use crate::support::say;

struct Interview<'a> {
    world: &'a World,
    assistant: Assistant<'a>,
    calls: Vec<String>,
    said: Vec<String>,
    all_calls: usize,
}

/// A number as it was written: two places survive the reader's floats.
fn number(value: &Value) -> Decimal {
    assert!(value.is_number(), "{value}");
    value.to_string().parse().unwrap()
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, name: &str) -> Decimal {
    let known = rows
        .into_iter()
        .map(|row| &row[name])
        .filter(|value| !value.is_null());
    known.map(number).sum()
}

fn rows<'a>(document: &'a Value, pointer: &str) -> &'a [Value] {
    document.pointer(pointer).unwrap().as_array().unwrap()
}

fn symbol(row: &Value) -> String {
    let of = |name: &str| row[name].as_str().unwrap();
    format!("{}:{}", of("exchange"), of("tradingsymbol"))
}

#[track_caller]
fn near(one: Decimal, other: Decimal) {
    let cents = Decimal::new(2, 2);
    assert!((one - other).abs() <= cents, "{one} is not {other}");
}

impl Interview<'_> {
    /// A tool's data.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls.push(format!("{tool}{arguments}"));
        self.all_calls += 1;
        self.assistant.call(tool, arguments).data()
    }

    /// All rows of a list over its pages, and the first page.
    fn all(&mut self, tool: &str, pointer: &str) -> (Vec<Value>, Value) {
        let first = self.call(tool, &json!({}));
        let (mut page, mut all) = (first.clone(), Vec::new());
        loop {
            all.extend_from_slice(rows(&page, pointer));
            let cursor = page
                .get("next_cursor")
                .filter(|cursor| !cursor.is_null())
                .cloned();
            let Some(cursor) = cursor else {
                return (all, first);
            };
            page = self.call(tool, &json!({"cursor": cursor}));
        }
    }

    fn answer(&mut self, question: &str, answer: impl std::fmt::Display) {
        let calls = std::mem::take(&mut self.calls).join(", ");
        assert!(!calls.is_empty(), "{question}");
        self.said.push(format!("{question} [{calls}] {answer}"));
    }

    /// The exchange's last price and previous close.
    fn told(&self, symbol: &str) -> (Decimal, Decimal) {
        self.world.stage.scene.said(symbol)
    }
}

pub fn are_answered_by_calls_alone(world: &World) {
    let assistant = Assistant::new(&world.service, &world.key, NEW);
    let mut interview = Interview {
        world,
        assistant,
        calls: Vec::new(),
        said: Vec::new(),
        all_calls: 0,
    };
    market(&mut interview);
    shares(&mut interview);
    worth(&mut interview);
    holdings(&mut interview);
    brokers(&mut interview);
    journal_and_signals(&mut interview);
    lots_and_gains(&mut interview);
    let Interview {
        said, all_calls, ..
    } = interview;
    say(&format!(
        "MCP: {} questions by {all_calls} calls\n{}\n",
        said.len(),
        said.join("\n")
    ));
    assert!(said.len() >= 20, "{}", said.len());
}

fn market(to: &mut Interview<'_>) {
    let snapshot = to.call("market_snapshot", &json!({}));
    let (last, close) = to.told("NSE:NIFTY 50");
    assert_eq!(number(&snapshot["index1_price"]), last);
    let change = ((last - close) * Decimal::ONE_HUNDRED / close).round_dp(2);
    near(number(&snapshot["index1_change"]), change);
    to.answer(
        "Where does the NIFTY 50 stand, and how far did it move?",
        format!("{last}, {change} %"),
    );

    let snapshot = to.call("market_snapshot", &json!({}));
    assert_eq!(
        (&snapshot["market"]["is_open"], &snapshot["market"]["stale"]),
        (&json!(false), &json!(false))
    );
    let phase = snapshot["market"]["phase"].as_str().unwrap();
    assert!(["closed", "post_close"].contains(&phase), "{phase}");
    to.answer("Is the market open?", phase);

    let snapshot = to.call("market_snapshot", &json!({}));
    let known = rows(&snapshot, "/sectors")
        .iter()
        .filter(|sector| !sector["change_pct"].is_null());
    let best = known
        .max_by_key(|sector| number(&sector["change_pct"]))
        .unwrap();
    let (last, close) = to.told(best["symbol"].as_str().unwrap());
    near(number(&best["change_pct"]), (last - close) * Decimal::ONE_HUNDRED / close);
    to.answer(
        "Which sector did best today?",
        format!("{} {}", best["name"], best["change_pct"]),
    );

    let quotes = to.call("quotes", &json!({"symbols": "NSE:INFY"}));
    let quote = &quotes["quotes"][0];
    let as_of: Timestamp = quote["as_of"].as_str().unwrap().parse().unwrap();
    let age_s = to.world.stage.scene.clock.now().as_second() - as_of.as_second();
    assert!(age_s > 4 * 3_600 && quote["stale"] == false, "{age_s} {quote}");
    assert_eq!(quote["simulated"], true);
    to.answer(
        "How old is this price of Infosys?",
        format!("of {}, {age_s} s, simulated", quote["as_of"]),
    );
}

fn shares(to: &mut Interview<'_>) {
    let quotes = to.call("quotes", &json!({"symbols": ["NSE:INFY", "NSE:M&M"]}));
    for quote in rows(&quotes, "/quotes") {
        let (last, close) = to.told(quote["symbol"].as_str().unwrap());
        assert_eq!((number(&quote["last_price"]), number(&quote["change"])), (last, last - close));
    }
    to.answer(
        "What do Infosys and M&M cost, and what was the change?",
        &quotes["quotes"][1]["change"],
    );

    let found = to.call("search_instruments", &json!({"q": "larsen"}));
    assert_eq!(found["instruments"][0]["symbol"], "NSE:LT");
    to.answer("What is the symbol of Larsen & Toubro?", "NSE:LT");

    let truth = to
        .world
        .stage
        .candles("NSE:ITC", "2026-11-19".parse().unwrap());
    let price = |price_e4: i64| Decimal::new(price_e4, 4).normalize();
    let candles = to.call("candles", &json!({"symbol": "NSE:ITC", "days": 30}));
    let highest = rows(&candles, "/candles")
        .iter()
        .map(|row| number(&row["close"]))
        .max()
        .unwrap();
    let expected = truth[truth.len() - 30..]
        .iter()
        .map(|candle| candle.close_e4)
        .max()
        .unwrap();
    assert_eq!(highest.normalize(), price(expected));
    to.answer("What was ITC's highest close of thirty sessions?", highest);

    let candles = to.call("candles", &json!({"symbol": "NSE:ITC", "days": 21}));
    let rows = rows(&candles, "/candles");
    let (first, last) = (number(&rows[0]["close"]), number(&rows[20]["close"]));
    let ends = (truth[truth.len() - 21].close_e4, truth[truth.len() - 1].close_e4);
    assert_eq!((first.normalize(), last.normalize()), (price(ends.0), price(ends.1)));
    to.answer("How far did ITC go in twenty sessions?", last - first);
}

fn worth(to: &mut Interview<'_>) {
    let (held, _) = to.all("holdings", "/holdings");
    let summary = &to.call("portfolio_summary", &json!({"days": 1}))["summary"];
    near(number(&summary["total_current_value"]), sum(&held, "current_value"));
    to.answer("What is my portfolio worth?", &summary["total_current_value"]);

    let summary = &to.call("portfolio_summary", &json!({"days": 1}))["summary"];
    let of = |name: &str| number(&summary[name]);
    let gain = of("total_current_value") - of("value_without_cost") - of("total_invested");
    near(of("total_pnl"), gain);
    let (gain, left_out) = (&summary["total_pnl"], &summary["without_cost"]);
    to.answer(
        "What have I gained on what I hold?",
        format!("{gain}, without {left_out} of no cost"),
    );

    let (held, first) = to.all("holdings", "/holdings");
    let hundred = Decimal::ONE_HUNDRED;
    let moved = |row: &Value| {
        if row["close_price"].is_number() && row["last_price"].is_number() {
            return number(&row["quantity"])
                * (number(&row["last_price"]) - number(&row["close_price"]));
        }
        // Broker B may name the change in percent alone, to two places.
        if !row["day_change_pct"].is_number() || !row["current_value"].is_number() {
            return Decimal::ZERO;
        }
        let value = number(&row["current_value"]);
        value - value * hundred / (hundred + number(&row["day_change_pct"]))
    };
    let most = held.iter().max_by_key(|row| moved(row).abs()).unwrap();
    let (last, close) = to.told(&symbol(most));
    near(moved(most), number(&most["quantity"]) * (last - close));
    let counted = held.iter().filter(|row| row["day_change_pct"].is_number());
    let (day, all) = (&first["summary"]["day_pnl"], counted.map(moved).sum::<Decimal>());
    let places = number(&first["summary"]["total_current_value"]) * Decimal::new(5, 5);
    assert!((number(day) - all).abs() <= places, "{day} is not {all}");
    to.answer(
        "What moved my portfolio today?",
        format!("{} by {}, all {day}", symbol(most), moved(most)),
    );

    let week = to.call("portfolio_summary", &json!({"days": 7}));
    let last = rows(&week, "/trend").last().unwrap();
    assert_eq!(last["date"], "2026-11-19");
    assert_eq!(last["total_current_value"], week["summary"]["total_current_value"]);
    to.answer(
        "How did my portfolio develop this week?",
        format!("{} points", rows(&week, "/trend").len()),
    );
}

fn holdings(to: &mut Interview<'_>) {
    let (held, _) = to.all("holdings", "/holdings");
    let lost: Vec<&Value> = held
        .iter()
        .filter(|row| !row["pnl"].is_null() && number(&row["pnl"]) < Decimal::ZERO)
        .collect();
    for row in &held {
        if row["pnl"].is_null() || row["average_price"].is_null() {
            continue;
        }
        let is_below = number(&row["last_price"]) < number(&row["average_price"]);
        assert_eq!(
            lost.contains(&row),
            is_below && number(&row["quantity"]) > Decimal::ZERO,
            "{row}"
        );
    }
    to.answer("Which of my shares have lost since I bought them?", lost.len());

    let (held, first) = to.all("holdings", "/holdings");
    let largest = held.iter().filter(|row| !row["current_value"].is_null());
    let largest = largest
        .max_by_key(|row| number(&row["current_value"]))
        .unwrap();
    let total = number(&first["summary"]["total_current_value"]);
    let share = number(&largest["current_value"]) * Decimal::ONE_HUNDRED / total;
    near(number(&largest["share_pct"]), share);
    to.answer(
        "Which is my largest holding?",
        format!("{} {} %", symbol(largest), largest["share_pct"]),
    );

    let (held, first) = to.all("holdings", "/holdings");
    let unknown = held.iter().filter(|row| row["invested"].is_null()).count();
    assert_eq!(first["summary"]["without_cost"], json!(unknown));
    to.answer("Of how many holdings is the cost not known?", unknown);
}

fn brokers(to: &mut Interview<'_>) {
    let (merged, _) = to.all("holdings", "/summary/merged");
    let both: Vec<&Value> = merged
        .iter()
        .filter(|row| rows(row, "/parts").len() == 2)
        .collect();
    for row in &both {
        assert_eq!(number(&row["quantity"]), sum(rows(row, "/parts"), "quantity"), "{row}");
    }
    assert!(!both.is_empty());
    to.answer("Which shares do I hold at both brokers?", both.len());

    let summary = &to.call("portfolio_summary", &json!({}))["summary"];
    for broker in ["a", "b"] {
        assert!(
            summary["synced"][broker]
                .as_str()
                .unwrap()
                .starts_with("2026-11-"),
            "{summary}"
        );
    }
    let oldest = ["a", "b"]
        .map(|broker| summary["synced"][broker].as_str().unwrap())
        .into_iter()
        .min();
    assert_eq!(summary["synced_at"].as_str(), oldest);
    to.answer("When were my brokers last synced?", &summary["synced"]);

    let positions = to.call("positions", &json!({"type": "net"}));
    let open = rows(&positions, "/positions");
    assert_eq!(positions["summary"]["net"]["count"], json!(open.len()));
    near(number(&positions["summary"]["net"]["pnl"]), sum(open, "pnl"));
    to.answer("What do my open positions bring?", &positions["summary"]["net"]["pnl"]);

    let positions = to.call("positions", &json!({"type": "day"}));
    let earlier = rows(&positions, "/positions")
        .iter()
        .filter(|row| row["earlier"] == true)
        .count();
    assert_eq!(positions["summary"]["day"]["earlier"], json!(earlier));
    to.answer("Are these positions of today?", format!("{earlier} are of an earlier date"));
}

fn journal_and_signals(to: &mut Interview<'_>) {
    let journal = to.call("journal", &json!({}));
    // 6 sold at 1550, bought at 1500; 6 of the 10 fees of the purchase, and 6 of the sale.
    assert_eq!(number(&journal["summary"]["realised"]), Decimal::from(6 * 50 - 6 - 6));
    to.answer("What did my closed trades bring after fees?", &journal["summary"]["realised"]);

    let journal = to.call("journal", &json!({"symbol": "tcs"}));
    assert_eq!(
        (&journal["count"], &journal["entries"][0]["notes"]),
        (&json!(1), &json!("results on Thursday"))
    );
    to.answer("What did I note about TCS?", &journal["entries"][0]["notes"]);

    let journal = to.call("journal", &json!({"from": "2026-11-01", "to": "2026-11-30"}));
    assert_eq!(journal["count"], 2);
    to.answer("Which trades did I note this month?", &journal["count"]);

    let signals = to.call("signals", &json!({}));
    let rest = to.world.get("/api/signals");
    let rest: Value = serde_json::from_slice(&rest.body).unwrap();
    assert_eq!(signals["list"]["count"], rest["count"]);
    assert_eq!(signals["list"]["as_of"], "2026-11-19");
    to.answer("Which signals are there, and of what date?", &signals["list"]["count"]);

    let record = &to.call("signals", &json!({"direction": "bearish"}))["record"];
    let rest = to.world.get("/api/signals/record");
    let rest: Value = serde_json::from_slice(&rest.body).unwrap();
    for name in ["published", "judged", "hits", "hit_rate", "brier"] {
        assert_eq!(record[name], rest[name], "{name}");
    }
    to.answer(
        "How good were signals so far?",
        format!("{} of {}", record["hits"], record["judged"]),
    );
}

fn lots_and_gains(to: &mut Interview<'_>) {
    let (lots, _) = to.all("open_lots", "/lots");
    let is_this_month = |lot: &&Value| lot["long_from"].as_str().unwrap().starts_with("2026-11-");
    let turning: Vec<String> = lots.iter().filter(is_this_month).map(lot_line).collect();
    // Today is the 19th. What was bought a year ago today is of a short term until tomorrow.
    let expected = [
        "60 ITC long since 2026-11-11",
        "10 TITAN in 1 days, on 2026-11-20",
        "5 TITAN in 10 days, on 2026-11-29",
        "30 WIPRO long since 2026-11-19",
    ];
    assert_eq!(sorted(&turning), sorted(&expected));
    to.answer("Which of my shares turn long-term this month?", turning.join(", "));

    let gains = to.call("realised_gains", &json!({"fy": "2026-27"}));
    let itc = rows(&gains, "/sales")
        .iter()
        .find(|sale| sale["symbol"] == "ITC")
        .unwrap();
    assert_eq!(number(&itc["gain"]), Decimal::from(40 * 430) - Decimal::new(40 * 4_105, 1));
    let named = rows(&gains, "/left_out")
        .iter()
        .filter(|left| left["symbol"] == "ITC")
        .count();
    assert_eq!(itc["proved"] == json!(true), named == 0, "{gains}");
    to.answer("What did I gain by sales this year, and is it proved?", &itc["gain"]);

    let (gaps, first) = to.all("ledger_gaps", "/rows");
    let unproved = gaps.iter().filter(|row| row["proved"] == false).count();
    assert_eq!(first["complete"], json!(unproved == 0));
    assert!(
        gaps.iter()
            .all(|row| row["proved"] == json!(rows(row, "/reasons").is_empty()))
    );
    to.answer("Of how many of my shares are trades missing?", unproved);

    let trades = to.call("trades", &json!({"symbol": "itc", "from": "2025-04-01"}));
    let [sold, bought] = rows(&trades, "/trades") else {
        panic!("{trades}")
    };
    assert_eq!((&sold["side"], &bought["side"]), (&json!("sell"), &json!("buy")));
    to.answer("When did I last sell ITC?", &sold["date"]);

    let returns = to.call("returns", &json!({}));
    let rest: Value = serde_json::from_slice(&to.world.get("/api/trades/returns").body).unwrap();
    assert_eq!(returns["xirr"], rest["xirr"]);
    to.answer("What did my shares return a year?", &returns["xirr"]);
}

fn lot_line(lot: &Value) -> String {
    let text = |name: &str| lot[name].as_str().unwrap();
    let what = format!("{} {}", number(&lot["quantity"]).normalize(), text("symbol"));
    match text("term") {
        "short" => format!("{what} in {} days, on {}", lot["days_to_long"], text("long_from")),
        _ => format!("{what} long since {}", text("long_from")),
    }
}

fn sorted(lines: &[impl AsRef<str>]) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    lines.sort_unstable();
    lines
}
