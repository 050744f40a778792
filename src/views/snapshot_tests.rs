//! Tests of the snapshot: its exact body, its sources and its ages.

use jiff::Timestamp;
use proptest::prelude::{any, proptest};
use rust_decimal::Decimal;

use super::ShownSignals;
use crate::base::{Quote, Source, clock, json, testing};
use crate::market::{IndexList, MarketCalendar, Priced, Prices, Snapshot, SnapshotInputs};
use crate::views::snapshot as views;
use crate::views::values;

fn at(civil: &str) -> Timestamp {
    clock::instant(civil.parse().unwrap())
}

fn priced(symbol: &str, last: &str, close: Option<&str>, source: Source) -> Priced {
    let quote = Quote {
        previous_close: close.map(|text| json::parse_decimal(text).unwrap()),
        asked: at("2026-11-20T11:00:02"),
        source,
        ..testing::quote(symbol, last, at("2026-11-20T11:00:01"))
    };
    Priced {
        quote,
        stale: false,
    }
}

fn map(prices: impl IntoIterator<Item = Priced>) -> Prices {
    prices
        .into_iter()
        .map(|priced| (priced.quote.symbol.clone(), priced))
        .collect()
}

fn leads(source: Source) -> Vec<Priced> {
    vec![
        priced("NSE:NIFTY 50", "24321.875", Some("24200"), source),
        priced("NSE:NIFTY BANK", "52000", Some("52065"), source),
        priced("BSE:SENSEX", "80112.35", Some("80112.35"), source),
    ]
}

fn list() -> IndexList {
    let mut list = IndexList::embedded();
    list.sectors.truncate(2);
    list
}

fn build_at(now: &str, prices: &Prices) -> Option<Snapshot> {
    let status = MarketCalendar::embedded().status(at(now));
    Snapshot::build(&SnapshotInputs {
        indices: &list(),
        prices,
        status: &status,
    })
}

fn build(prices: Vec<Priced>) -> Snapshot {
    build_at("2026-11-20T11:00:03", &map(prices)).unwrap()
}

fn json(snapshot: &Snapshot) -> String {
    json_with(snapshot, &ShownSignals::none())
}

fn json_with(snapshot: &Snapshot, shown: &ShownSignals) -> String {
    String::from_utf8(values::to_vec(&views::Snapshot::of(snapshot, shown))).unwrap()
}

#[test]
fn the_body_equals_the_documented_one() {
    let mut prices = leads(Source::BrokerA);
    prices.push(priced("NSE:NIFTY IT", "36000.5", Some("37000.0"), Source::BrokerA));
    assert_eq!(
        json(&build(prices)),
        concat!(
            r#"{"index1_price":24321.88,"index1_change":0.5,"#,
            r#""bankindex_price":52000,"bankindex_change":-0.12,"#,
            r#""index2_price":80112.35,"index2_change":0,"#,
            r#""signals":[],"signals_as_of":null,"#,
            r#""sectors":[{"name":"Nifty IT","symbol":"NSE:NIFTY IT","change_pct":-2.7},"#,
            r#"{"name":"Nifty Auto","symbol":"NSE:NIFTY AUTO","change_pct":null}],"#,
            r#""market":{"is_open":true,"phase":"open","#,
            r#""next_transition_at":"2026-11-20T15:15:00+05:30","calendar_known":true,"#,
            r#""as_of_ist":"2026-11-20T11:00:01+05:30","stale":false,"source":"broker_a"}}"#,
        )
    );
}

#[test]
fn simulated_delayed_and_unknown_values_are_marked() {
    let mut prices = leads(Source::Public);
    prices[1].quote.simulated = true;
    prices[2].quote.previous_close = None;
    for priced in &mut prices {
        (priced.stale, priced.quote.delay_s) = (true, Some(901));
    }
    let snapshot = build_at("2026-12-31T20:00:00", &map(prices)).unwrap();
    let as_of = Some(jiff::civil::date(2026, 12, 30));
    let body = json_with(
        &snapshot,
        &ShownSignals {
            as_of,
            ..ShownSignals::none()
        },
    );
    assert!(body.contains(r#""index2_change":null"#), "{body}");
    assert!(
        body.contains(r#""signals":[],"signals_as_of":"2026-12-30","sectors""#),
        "{body}"
    );
    let tail = concat!(
        r#""market":{"is_open":false,"phase":"closed","next_transition_at":null,"#,
        r#""calendar_known":true,"#,
        r#""as_of_ist":"2026-11-20T11:00:01+05:30","delay_s":901,"stale":true,"#,
        r#""source":"public","simulated":true}}"#,
    );
    assert!(body.ends_with(tail), "{body}");
}

#[test]
fn without_all_three_indices_there_is_no_snapshot() {
    for missing in 0..3 {
        let mut prices = leads(Source::BrokerA);
        prices.remove(missing);
        assert_eq!(build_at("2026-11-20T11:00:03", &map(prices)), None);
    }
}

/// `market` describes the primary index. Another index carries its own time and source if they
/// differ.
#[test]
fn an_index_of_another_time_or_source_has_its_own_members() {
    let mut prices = leads(Source::Public);
    prices
        .iter_mut()
        .for_each(|priced| priced.quote.delay_s = Some(900));
    prices[1].quote.as_of = at("2026-11-20T11:00:16");
    prices[2] = priced("BSE:SENSEX", "80112.35", Some("80112.35"), Source::BrokerA);
    prices[2].stale = true;
    prices[2].quote.as_of = at("2026-11-20T11:10:00");
    let body = json(&build(prices));
    for part in [
        // The primary index is fresh, although `market` is marked as stale.
        r#""index1_change":0.5,"index1_delay_s":900,"index1_stale":false,"index1_source":"public""#,
        r#""bankindex_change":-0.12,"bankindex_as_of":"2026-11-20T11:00:16+05:30","#,
        r#""index2_change":0,"index2_as_of":"2026-11-20T11:10:00+05:30","index2_stale":true,"#,
        r#""index2_source":"broker_a","signals""#,
        r#""as_of_ist":"2026-11-20T11:00:01+05:30","delay_s":900,"stale":true,"source":"public""#,
    ] {
        assert!(body.contains(part), "{part} is not in {body}");
    }
}

#[test]
fn a_sector_of_another_source_or_older_is_null() {
    let of = |source, stale| {
        let mut prices = leads(Source::BrokerA);
        let sector = priced("NSE:NIFTY IT", "101", Some("100"), source);
        prices.push(Priced { stale, ..sector });
        prices
    };
    let shown = |prices| build(prices).sectors[0].change_pct;
    assert_eq!(shown(of(Source::BrokerA, false)), Some(Decimal::ONE));
    assert_eq!(shown(of(Source::BrokerA, true)), None);
    assert_eq!(shown(of(Source::Public, false)), None);
    let mut all_old = of(Source::BrokerA, true);
    all_old.iter_mut().for_each(|priced| priced.stale = true);
    assert_eq!(shown(all_old), Some(Decimal::ONE), "as old as the rest");
    let mut late = of(Source::BrokerA, false);
    late[3].quote.as_of = at("2026-11-20T11:00:00");
    let body = json(&build(late));
    assert!(
        body.contains(r#""change_pct":1,"as_of":"2026-11-20T11:00:00+05:30"}"#),
        "{body}"
    );
}

proptest! {
    #[test]
    fn any_price_is_written_as_a_rounded_json_number(
        paise in 1i64..1_000_000_000_000_000, places in 0u32..9, close in any::<u32>(),
    ) {
        let mut prices = leads(Source::BrokerA);
        prices[0].quote.last_price = Decimal::new(paise, places);
        prices[0].quote.previous_close = Some(Decimal::new(i64::from(close), 2));
        let body = json(&build(prices));
        let rest = body.strip_prefix(r#"{"index1_price":"#).unwrap();
        let (written, _) = rest.split_once(',').unwrap();
        let written = json::parse_decimal(written).unwrap();
        assert_eq!(written, json::rounded(Decimal::new(paise, places)));
        assert!(sonic_rs::from_str::<sonic_rs::Value>(&body).is_ok(), "{body}");
    }
}
