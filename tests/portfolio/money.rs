//! The meaning of a portfolio's figures: totals over two brokers synced on different days, prices
//! of one close, days that a split distorts.

use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::user::{rows, written};
use crate::market::days::Days;

const MONDAY: &str = "2026-11-16T11:00:00+05:30";
const INFY: &str = "INE009A01021";
const TCS: &str = "INE467B01029";

/// A hundred INFY at broker A, five hundred TCS at broker B, synced on Monday at 800 and 300.
fn two_brokers() -> Days {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000}"#);
    days.holds_at_b(&[("TCS", TCS, "500")], &[("TCS", "500", "250.00", "NSE:TCS")]);
    days.sync("a");
    days.sync("b");
    days
}

#[test]
fn a_sync_after_the_close_values_the_other_broker_at_that_close() {
    let days = two_brokers();
    assert_eq!(written(&days.summary()["total_current_value"]), "230000");
    days.go_to("2026-11-18T11:00:00+05:30");
    days.price("NSE:INFY", "815");
    days.price("NSE:TCS", "400");
    days.go_to("2026-11-18T16:10:00+05:30");
    days.await_close("2026-11-18");
    assert_eq!(written(&days.point("2026-11-18")["total_current_value"]), "281500");
    assert_eq!(written(&days.summary()["total_current_value"]), "281500");

    days.go_to("2026-11-18T20:30:00+05:30");
    days.sync("a");
    assert_eq!(written(&days.point("2026-11-18")["total_current_value"]), "281500");
    assert_eq!(days.point("2026-11-18")["carried"].as_u64(), Some(0));
    assert_eq!(days.point("2026-11-18")["source"], "close", "every price still is the close");
    assert_eq!(written(&days.summary()["total_current_value"]), "281500");

    // Friday closes higher; nobody syncs before Saturday.
    days.go_to("2026-11-20T11:00:00+05:30");
    days.price("NSE:INFY", "820");
    days.price("NSE:TCS", "410");
    days.go_to("2026-11-20T16:10:00+05:30");
    days.await_close("2026-11-20");
    days.go_to("2026-11-21T12:00:00+05:30");
    days.sync("a");
    for date in ["2026-11-20", "2026-11-21"] {
        let point = days.point(date);
        assert_eq!(written(&point["total_current_value"]), "287000", "{date}");
        assert_eq!(point["carried"].as_u64(), Some(0), "{date}");
    }
    assert_eq!(days.point("2026-11-21")["source"], "sync", "a Saturday has no close");
    for row in days.holdings() {
        assert_eq!(row["as_of"], "2026-11-20T15:35:00+05:30", "{row:?}");
    }
    assert_eq!(written(&days.summary()["total_current_value"]), "287000");

    // Monday's session begins. Only broker A has its prices.
    days.go_to("2026-11-23T10:30:00+05:30");
    days.price("NSE:INFY", "830");
    days.price("NSE:TCS", "420");
    days.sync("a");
    let point = days.point("2026-11-23");
    assert_eq!(written(&point["total_current_value"]), "288000", "the last close, marked");
    assert_eq!(point["carried"].as_u64(), Some(1));
    days.summary();
}

/// The service was down at the close, and a user syncs before the revaluation: Friday's close then
/// corrects the sync's point for Saturday.
#[test]
fn a_close_that_is_revalued_late_puts_right_what_was_written_since() {
    let days = two_brokers();
    days.go_to("2026-11-20T11:00:00+05:30");
    days.price("NSE:INFY", "820");
    days.price("NSE:TCS", "410");
    days.scene.fault("broker_a.quote", r#"{"kind":"refuse"}"#);
    days.scene.fault("broker_a.ohlc", r#"{"kind":"refuse"}"#);
    for route in ["public.spark", "public.spark_v8", "public.chart"] {
        days.scene.fault(route, r#"{"kind":"refuse"}"#);
    }
    days.go_to("2026-11-21T12:00:00+05:30");
    days.sync("a");
    let early = days.point("2026-11-21");
    assert_eq!(written(&early["total_current_value"]), "232000");
    assert_eq!(early["carried"].as_u64(), Some(1), "broker B's, and it says so");
    days.scene.control("DELETE", "faults", "");
    days.await_close("2026-11-20");
    for date in ["2026-11-20", "2026-11-21"] {
        let point = days.point(date);
        assert_eq!(written(&point["total_current_value"]), "287000", "{date}");
        assert_eq!(point["carried"].as_u64(), Some(0), "{date}");
    }
    assert_eq!(written(&days.summary()["total_current_value"]), "287000");
}

#[test]
fn the_day_s_move_is_of_that_day_or_not_known() {
    let days = two_brokers();
    let summary = days.summary();
    assert_eq!(summary["day"], "2026-11-16");
    // Broker A sends Friday's price. Broker B's price has not moved since.
    assert_eq!(written(&summary["day_pnl"]), "0");
    assert_eq!(left_out(&summary), (Some(0), Some(0)));

    // On Wednesday morning all prices are from Monday's sync or Tuesday's close, so the day has no
    // move yet.
    days.go_to("2026-11-17T16:10:00+05:30");
    days.await_close("2026-11-17");
    let summary = days.summary();
    assert_eq!(
        (&summary["day"], summary["without_close"].as_u64()),
        (&"2026-11-17".into(), Some(0))
    );
    assert_eq!(written(&summary["day_pnl"]), "0", "computed to be 0: the price stood");
    days.go_to("2026-11-18T08:30:00+05:30");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000},
           {"symbol":"NSE:ITC","quantity":1,"average_paise":30000}"#,
    );
    days.sync("a");
    let summary = days.summary();
    assert_eq!(summary["day"], "2026-11-17", "the date has not begun");
    assert_eq!(summary["priced_to"], "2026-11-17T15:35:00+05:30", "nor its prices");
    // For the new share the broker sends Tuesday's close as the previous one, or Monday's.
    assert_eq!(summary["without_close"].as_u64(), Some(1));
    assert_eq!(
        days.point("2026-11-18")["carried"].as_u64(),
        Some(3),
        "the date's own are to come"
    );
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000}"#);
    days.sync("a");
    days.go_to("2026-11-18T09:20:00+05:30");
    let summary = days.summary();
    assert_eq!(summary["day"], "2026-11-18");
    assert!(summary["day_pnl"].is_null(), "{summary:?}");
    assert_eq!(left_out(&summary), (Some(2), Some(0)), "their prices are of the day before");

    // Broker A's move appears with its sync, broker B's with its own sync or with the close.
    days.price("NSE:INFY", "815");
    days.price("NSE:TCS", "400");
    days.sync("a");
    let summary = days.summary();
    assert_eq!(written(&summary["day_pnl"]), "1500");
    assert_eq!(left_out(&summary), (Some(1), Some(0)));
    days.go_to("2026-11-18T16:10:00+05:30");
    days.await_close("2026-11-18");
    let summary = days.summary();
    assert_eq!(written(&summary["day_pnl"]), "51500");
    assert_eq!(
        (&summary["day"], summary["without_close"].as_u64()),
        (&"2026-11-18".into(), Some(0))
    );
    days.go_to("2026-11-21T12:00:00+05:30");
    days.await_close("2026-11-20");
    assert_eq!(days.summary()["day"], "2026-11-20", "on a Saturday it is Friday's");
}

/// Holdings left out of the day's move: by a price of another day, and by an unknown previous
/// close.
fn left_out(summary: &Value) -> (Option<u64>, Option<u64>) {
    (summary["without_day_price"].as_u64(), summary["without_close"].as_u64())
}

/// Between 09:00 and 09:15 a broker's last price is the previous close, in every route.
#[test]
fn a_pre_open_sync_brings_the_close_before_it_and_no_move_of_the_day() {
    let days = two_brokers();
    days.go_to("2026-11-17T16:10:00+05:30");
    days.await_close("2026-11-17");
    days.go_to("2026-11-18T09:05:00+05:30");
    days.sync("a");
    days.sync("b");
    for row in days.holdings() {
        assert_eq!(row["as_of"], "2026-11-17T15:35:00+05:30", "{row:?}");
    }
    assert_eq!(
        days.point("2026-11-18")["carried"].as_u64(),
        Some(2),
        "the date's own are to come"
    );
    days.go_to("2026-11-18T09:16:00+05:30");
    let summary = days.summary();
    assert_eq!(summary["day"], "2026-11-18");
    assert!(summary["day_pnl"].is_null(), "{summary:?}");
    assert_eq!(left_out(&summary), (Some(2), Some(0)));
    // Once trading has begun, the broker's prices are of the day.
    days.sync("a");
    let summary = days.summary();
    assert_eq!(written(&summary["day_pnl"]), "0", "computed to be 0: the price stood");
    assert_eq!(left_out(&summary), (Some(1), Some(0)));
}

/// Broker B sends no previous close. The other broker's row of the share has it exactly, while
/// broker B's own percentage has two decimals.
#[test]
fn broker_bs_part_of_the_days_move_is_known_where_anybody_says_it() {
    let days = two_brokers();
    days.price("NSE:TCS", "303");
    days.sync("b");
    let summary = days.summary();
    assert_eq!(written(&summary["day_pnl"]), "1500", "one percent of 300, five hundred times");
    assert_eq!(left_out(&summary), (Some(0), Some(0)));
    let of_b = days.get("/api/portfolio/holdings?broker=b")["holdings"][0].clone();
    assert_eq!(written(&of_b["day_change_pct"]), "1");
    assert!(of_b["close_price"].is_null(), "{of_b:?}");

    // 1.01666… percent, which broker B writes as 1.02.
    days.price("NSE:TCS", "303.05");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000},
           {"symbol":"NSE:TCS","quantity":1,"average_paise":20000}"#,
    );
    days.sync("b");
    days.sync("a");
    let summary = days.summary();
    let whole = days.holdings();
    let tcs = whole.iter().find(|row| row["broker"] == "b").unwrap();
    assert_eq!(written(&tcs["close_price"]), "300", "from broker A's row: {tcs:?}");
    // 501 times 3.05; by the percentage the five hundred would have moved by 1529.95.
    assert_eq!(written(&summary["day_pnl"]), "1528.05");
}

#[test]
fn positions_say_of_which_day_and_sync_they_are() {
    let days = Days::from(MONDAY);
    days.sync("a");
    let monday = days.get("/api/portfolio/positions");
    let day = &monday["summary"]["day"];
    assert_eq!(day["date"], "2026-11-16");
    assert_eq!(day["synced_at"], MONDAY);
    assert_eq!((day["count"].as_u64(), day["earlier"].as_u64()), (Some(2), Some(0)));
    days.go_to("2026-11-18T10:30:00+05:30");
    days.sync("b");
    let wednesday = days.get("/api/portfolio/positions");
    let (day, net) = (&wednesday["summary"]["day"], &wednesday["summary"]["net"]);
    assert_eq!(day["date"], "2026-11-16", "broker B has no list of the day");
    assert_eq!((day["count"].as_u64(), day["earlier"].as_u64()), (Some(2), Some(2)));
    assert!(day["synced"]["b"].is_null());
    assert_eq!((&net["date"], &net["synced_at"]), (&day["date"], &day["synced_at"]));
    assert_eq!(net["synced"]["b"], "2026-11-18T10:30:00+05:30");
    assert!(net["earlier"].as_u64() < net["count"].as_u64(), "{net:?}");
    for row in rows(&wednesday, "positions") {
        let is_a = row["broker"] == "a";
        assert_eq!(row["earlier"].as_bool(), Some(is_a), "{row:?}");
        assert_eq!(row["date"], if is_a { "2026-11-16" } else { "2026-11-18" });
    }
}

/// A leap of the profit without a gain: the point shows its composition.
#[test]
fn a_point_says_which_brokers_and_how_many_holdings_it_is_of() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":100,"average_paise":70000}"#);
    days.holds_at_b(&[("TCS", TCS, "500")], &[("TCS", "500", "250.00", "NSE:TCS")]);
    days.sync("a");
    days.go_to("2026-11-16T16:10:00+05:30");
    days.await_close("2026-11-16");
    days.go_to("2026-11-17T11:00:00+05:30");
    days.sync("b");
    days.go_to("2026-11-18T11:00:00+05:30");
    days.holds_at_a("");
    assert_eq!(days.try_sync("a", r#""replace_with_none":true,"#).status, 200);
    let of = |date: &str| {
        let point = days.point(date);
        let brokers = sonic_rs::to_string(&point["brokers"]).unwrap();
        (brokers, point["holdings"].as_u64(), written(&point["total_pnl"]))
    };
    let expect = |brokers: &str, holdings, pnl: &str| (brokers.into(), Some(holdings), pnl.into());
    assert_eq!(of("2026-11-16"), expect(r#"["a"]"#, 1, "10000"), "by a sync and at a close");
    assert_eq!(of("2026-11-17"), expect(r#"["a","b"]"#, 2, "35000"));
    assert_eq!(of("2026-11-18"), expect(r#"["a","b"]"#, 1, "25000"));
    let export = days.get("/api/portfolio/export");
    assert_eq!(rows(&export, "pnl_snapshots")[2]["holdings"].as_u64(), Some(1));
}

#[test]
fn a_summary_is_as_old_as_its_oldest_part() {
    let days = two_brokers();
    days.go_to("2026-11-18T11:00:00+05:30");
    days.price("NSE:INFY", "815");
    days.sync("a");
    let summary = days.summary();
    assert_eq!(summary["synced"]["a"], "2026-11-18T11:00:00+05:30");
    let of_b = summary["synced"]["b"].as_str().unwrap().to_owned();
    assert!(of_b.starts_with("2026-11-16T11:01"), "{of_b}");
    assert_eq!(summary["synced_at"], of_b.as_str());
    // Tuesday's close was revalued on the way, or the price is Monday's.
    let prices: Vec<String> = days
        .holdings()
        .iter()
        .map(|row| row["as_of"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(summary["priced_from"], prices.iter().min().unwrap().as_str());
    assert_eq!(summary["priced_to"], prices.iter().max().unwrap().as_str());
    assert_eq!(summary["priced_to"], "2026-11-18T11:00:00+05:30");
    let of_a = days.get("/api/portfolio/holdings?broker=a")["summary"].clone();
    assert_eq!(of_a["synced_at"], "2026-11-18T11:00:00+05:30");
    assert_eq!(of_a["priced_from"], of_a["priced_to"]);
}

#[test]
fn percentages_of_nothing_and_of_unknown_costs_are_null() {
    let days = Days::from(MONDAY);
    let nothing = days.summary();
    for name in [
        "total_pnl_pct",
        "day_pnl",
        "synced_at",
        "priced_from",
        "priced_to",
    ] {
        assert!(nothing[name].is_null(), "{name}: {nothing:?}");
    }
    assert!(nothing["synced"]["a"].is_null() && nothing["synced"]["b"].is_null());
    assert_eq!(nothing["day"], "2026-11-16");
    days.price_anew("NSE:INFY", "800");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":0}"#);
    days.sync("a");
    let gift = days.summary();
    assert!(gift["total_pnl_pct"].is_null());
    assert_eq!(written(&gift["total_current_value"]), "8000");
    assert_eq!(written(&gift["value_without_cost"]), "8000");
    assert_eq!(
        (written(&gift["total_invested"]), gift["without_cost"].as_u64()),
        ("0".into(), Some(1))
    );
}

#[test]
fn everything_that_has_a_price_is_in_the_total() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "800");
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(
        r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":70000},
           {"symbol":"NSE:TCS","quantity":4,"average_paise":0}"#,
    );
    days.holds_at_b(&[("INFTEC", INFY, "5")], &[("INFTEC", "5", "0", "NSE:INFY")]);
    days.sync("a");
    days.sync("b");
    let expect = |summary: &Value| {
        assert_eq!(written(&summary["total_current_value"]), "13200");
        assert_eq!(written(&summary["total_invested"]), "7000");
        assert_eq!(written(&summary["total_pnl"]), "1000");
        assert_eq!(written(&summary["value_without_cost"]), "5200");
    };
    let summary = days.summary();
    expect(&summary);
    assert_eq!(summary["without_cost"].as_u64(), Some(2));
    assert_eq!(written(&summary["total_pnl_pct"]), "14.29");
    // The shares of both brokers merged: their value is known, their cost is not.
    let json = days.get("/api/portfolio/holdings");
    let merged = &rows(&json["summary"], "merged")[0];
    assert_eq!(merged["isin"], INFY);
    assert_eq!(written(&merged["current_value"]), "12000");
    assert!(merged["invested"].is_null() && merged["pnl"].is_null());
    days.go_to("2026-11-16T16:10:00+05:30");
    days.await_close("2026-11-16");
    expect(&days.summary());
    expect(&days.point("2026-11-16"));
    let export = days.get("/api/portfolio/export");
    expect(&rows(&export, "pnl_snapshots")[0]);
}

fn suspects(days: &Days) -> Vec<(String, bool)> {
    let pnl = days.get("/api/portfolio/pnl?days=365");
    let trend = pnl["trend"].as_array().unwrap().iter();
    let day = |point: &Value| {
        (
            point["date"].as_str().unwrap()[8..].to_owned(),
            point["suspect"].as_bool().unwrap(),
        )
    };
    trend.map(day).collect()
}

fn expected(days: &[(&str, bool)]) -> Vec<(String, bool)> {
    days.iter()
        .map(|(date, suspect)| ((*date).to_owned(), *suspect))
        .collect()
}

/// Split 1:5 on Tuesday; the broker corrects the quantity on Wednesday.
#[test]
fn an_ex_date_is_marked_and_the_day_that_mends_it_is_not() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "1400");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":100000}"#);
    days.sync("a");
    days.go_to("2026-11-16T16:10:00+05:30");
    days.await_close("2026-11-16");
    days.go_to("2026-11-17T11:00:00+05:30");
    days.price_anew("NSE:INFY", "280");
    let told = days.sync("a");
    let suspected = rows(&told, "suspected_corporate_actions");
    assert_eq!(suspected.len(), 1, "{told:?}");
    assert_eq!(suspected[0]["reason"], "base_price");
    assert_eq!(written(&days.point("2026-11-17")["total_current_value"]), "2800");
    assert_eq!(suspects(&days), expected(&[("16", false), ("17", true)]));
    assert_eq!(days.holdings()[0]["corporate_action"].as_bool(), Some(true));
    // Another sync of the day and its close do not change that.
    days.sync("a");
    days.go_to("2026-11-17T16:10:00+05:30");
    days.await_close("2026-11-17");
    assert_eq!(suspects(&days), expected(&[("16", false), ("17", true)]));

    days.go_to("2026-11-18T11:00:00+05:30");
    days.price("NSE:INFY", "285");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":50,"average_paise":20000}"#);
    let told = days.sync("a");
    assert_eq!(rows(&told, "suspected_corporate_actions")[0]["reason"], "shares_arrived");
    assert_eq!(written(&days.point("2026-11-18")["total_current_value"]), "14250");
    let marked = expected(&[("16", false), ("17", true), ("18", false)]);
    assert_eq!(suspects(&days), marked);
    days.go_to("2026-11-18T16:10:00+05:30");
    days.await_close("2026-11-18");
    assert_eq!(suspects(&days), marked);
    days.go_to("2026-11-19T10:00:00+05:30");
    days.sync("a");
    assert_eq!(days.holdings()[0]["corporate_action"].as_bool(), Some(false));
}

/// Nobody syncs on the ex-date: the revaluation marks the row until the broker's next sync.
#[test]
fn an_ex_date_that_only_the_close_sees_is_marked_until_the_next_sync() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:INFY", "1400");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":100000}"#);
    days.sync("a");
    days.go_to("2026-11-16T16:10:00+05:30");
    days.await_close("2026-11-16");
    days.go_to("2026-11-17T11:00:00+05:30");
    days.price_anew("NSE:INFY", "280");
    for date in ["2026-11-17", "2026-11-18"] {
        days.go_to(&format!("{date}T16:10:00+05:30"));
        days.await_close(date);
    }
    let mut marked = vec![("16", false), ("17", true), ("18", true)];
    assert_eq!(suspects(&days), expected(&marked));
    days.go_to("2026-11-19T11:00:00+05:30");
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":50,"average_paise":20000}"#);
    days.sync("a");
    marked.push(("19", false));
    assert_eq!(suspects(&days), expected(&marked));
}
