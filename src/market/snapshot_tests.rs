use proptest::prelude::{any, proptest};

use super::*;
use crate::market::MarketCalendar;

fn at(civil: &str) -> Timestamp {
    ist::instant(civil.parse().unwrap())
}

fn quote(symbol: &str, last: &str, close: Option<&str>, source: Source) -> Quote {
    Quote {
        symbol: Symbol::parse(symbol).unwrap(),
        last_price: decimal::parse(last).unwrap(),
        previous_close: close.map(|text| decimal::parse(text).unwrap()),
        as_of: at("2026-11-20T11:00:01"),
        received: at("2026-11-20T11:00:02"),
        source,
        simulated: false,
    }
}

fn map(quotes: impl IntoIterator<Item = Quote>) -> QuoteMap {
    quotes.into_iter().map(|quote| (quote.symbol.clone(), quote)).collect()
}

fn leads(source: Source) -> Vec<Quote> {
    vec![
        quote("NSE:NIFTY 50", "24321.875", Some("24200"), source),
        quote("NSE:NIFTY BANK", "52000", Some("52065"), source),
        quote("BSE:SENSEX", "80112.35", Some("80112.35"), source),
    ]
}

fn list() -> IndexList {
    let mut list = IndexList::embedded();
    list.sectors.truncate(2);
    list
}

fn build(maps: &[&QuoteMap], stale: bool) -> Option<Snapshot> {
    let calendar = MarketCalendar::embedded();
    let status = calendar.status(at("2026-11-20T11:00:03"));
    Snapshot::build(&SnapshotInputs { indices: &list(), quotes: maps, status: &status, stale })
}

fn json(snapshot: &Snapshot) -> String {
    String::from_utf8(snapshot.to_json()).unwrap()
}

#[test]
fn the_body_is_exactly_the_contracts() {
    let mut quotes = map(leads(Source::BrokerA));
    let it = quote("NSE:NIFTY IT", "36000.5", Some("37000.0"), Source::BrokerA);
    quotes.insert(it.symbol.clone(), it);
    let snapshot = build(&[&quotes], false).unwrap();
    assert_eq!(
        json(&snapshot),
        concat!(
            r#"{"index1_price":24321.88,"index1_change":0.5,"#,
            r#""bankindex_price":52000,"bankindex_change":-0.12,"#,
            r#""index2_price":80112.35,"index2_change":0,"#,
            r#""signals":[],"#,
            r#""sectors":[{"name":"Nifty IT","symbol":"NSE:NIFTY IT","change_pct":-2.7},"#,
            r#"{"name":"Nifty Auto","symbol":"NSE:NIFTY AUTO","change_pct":null}],"#,
            r#""market":{"is_open":true,"phase":"open","#,
            r#""next_transition_at":"2026-11-20T15:15:00+05:30","#,
            r#""as_of_ist":"2026-11-20T11:00:01+05:30","stale":false,"source":"broker_a"}}"#,
        )
    );
}

#[test]
fn simulated_and_unknown_are_said() {
    let mut quotes = leads(Source::Public);
    quotes[1].simulated = true;
    quotes[2].previous_close = None;
    let mut snapshot = build(&[&map(quotes)], true).unwrap();
    snapshot.remark(&MarketCalendar::embedded().status(at("2026-12-31T20:00:00")), true);
    let body = json(&snapshot);
    assert!(body.contains(r#""index2_change":null"#), "{body}");
    let tail = concat!(
        r#""market":{"is_open":false,"phase":"closed","next_transition_at":null,"#,
        r#""as_of_ist":"2026-11-20T11:00:01+05:30","stale":true,"source":"public","simulated":true}}"#
    );
    assert!(body.ends_with(tail), "{body}");
}

#[test]
fn without_all_three_indices_there_is_no_snapshot() {
    for missing in 0..3 {
        let mut quotes = leads(Source::BrokerA);
        quotes.remove(missing);
        assert_eq!(build(&[&map(quotes)], false), None);
    }
    assert_eq!(build(&[], false), None);
}

#[test]
fn the_three_come_from_one_source_if_any_has_them_all() {
    let public = map(leads(Source::Public));
    let mut partial = leads(Source::BrokerA);
    partial.pop();
    let broker_a = map(partial);
    let one = build(&[&broker_a, &public], false).unwrap();
    assert_eq!(one.market.source, Source::Public);
    // None has all three: each comes from the first that has it, and `source` is the primary's.
    let mut rest = leads(Source::Public);
    rest.remove(0);
    let mixed = build(&[&broker_a, &map(rest)], false).unwrap();
    assert_eq!((mixed.market.source, mixed.index2.price), (Source::BrokerA, one.index2.price));
}

#[test]
fn a_value_that_lags_is_not_passed_off_as_fresh() {
    let mut quotes = leads(Source::BrokerA);
    for symbol in ["NSE:NIFTY IT", "NSE:NIFTY AUTO"] {
        quotes.push(quote(symbol, "101", Some("100"), Source::BrokerA));
    }
    let back = |quote: &mut Quote, ms: i64| {
        let received = quote.received.as_millisecond() - ms;
        quote.received = Timestamp::from_millisecond(received).unwrap();
    };
    back(&mut quotes[3], PEER_LAG_MS_MAX);
    back(&mut quotes[4], PEER_LAG_MS_MAX + 1);
    let snapshot = build(&[&map(quotes.clone())], false).unwrap();
    assert_eq!(snapshot.sectors[0].change_pct, Some(Decimal::ONE));
    assert_eq!(snapshot.sectors[1].change_pct, None);
    assert!(!snapshot.market.stale);
    back(&mut quotes[2], PEER_LAG_MS_MAX + 1);
    assert!(build(&[&map(quotes)], false).unwrap().market.stale);
}

#[test]
fn a_stored_snapshot_comes_back_stale() {
    let mut snapshot = build(&[&map(leads(Source::BrokerA))], false).unwrap();
    snapshot.sectors[0].name = "Oil \"&\" Gas".into();
    let read = Snapshot::from_bytes(&snapshot.to_bytes()).unwrap();
    assert!(read.market.stale);
    snapshot.market.stale = true;
    assert_eq!(read, snapshot);
    assert!(json(&read).contains(r#""name":"Oil \"&\" Gas""#));
}

#[test]
fn damaged_storage_is_refused() {
    let snapshot = build(&[&map(leads(Source::BrokerA))], false).unwrap();
    let good = String::from_utf8(snapshot.to_bytes()).unwrap();
    for (from, to) in [
        ("\"version\":1", "\"version\":2"),
        ("24321.875", "-1"),
        ("broker_a", "broker_c"),
        ("\"open\"", "\"ajar\""),
        ("NSE:NIFTY IT", "nifty it"),
        ("\"sectors\"", "\"selectors\""),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        assert!(Snapshot::from_bytes(bad.as_bytes()).is_err(), "{from}");
    }
    assert!(Snapshot::from_bytes(&good.as_bytes()[..good.len() - 1]).is_err());
    let oversize = format!("{good}{}", " ".repeat(STORED_BYTES_MAX));
    assert!(Snapshot::from_bytes(oversize.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_price_is_written_as_json_and_read_back_rounded(
        paise in 1i64..1_000_000_000_000_000, places in 0u32..9, close in any::<u32>(),
    ) {
        let mut quotes = leads(Source::BrokerA);
        quotes[0].last_price = Decimal::new(paise, places);
        quotes[0].previous_close = Some(Decimal::new(i64::from(close), 2));
        let snapshot = build(&[&map(quotes)], false).unwrap();
        let body = json(&snapshot);
        let rest = body.strip_prefix(r#"{"index1_price":"#).unwrap();
        let (written, _) = rest.split_once(',').unwrap();
        let written = decimal::parse(written).unwrap();
        assert_eq!(written, decimal::rounded(Decimal::new(paise, places)));
        assert!(sonic_rs::from_str::<sonic_rs::Value>(&body).is_ok(), "{body}");
    }
}
