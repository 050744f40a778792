//! Broker A's answers to a sync, tested on the official samples and the list of replies.

use super::*;
use crate::brokers::testing::documented::broker_a::REPLIES;

const HOLDINGS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/holdings.json");
const POSITIONS: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/positions.json");
const SESSION: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/generate_session.json");

fn reply(status: u16, body: &[u8]) -> Reply {
    Reply {
        status,
        retry_after: None,
        content_type: None,
        simulated: false,
        body: body.to_vec(),
    }
}

fn rows(rows: &str) -> Result<HoldingRows, BrokerError> {
    holdings(&reply(200, format!(r#"{{"status":"success","data":[{rows}]}}"#).as_bytes()), 7)
}

fn row(members: &str) -> Result<Vec<Holding>, BrokerError> {
    let row = format!(r#"{{"tradingsymbol":"A","exchange":"NSE",{members}}}"#);
    rows(&row).map(|rows| rows.held)
}

fn number(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn each_documented_reply_has_its_answer() {
    // A redirect ends in the transport.
    let read = REPLIES
        .iter()
        .filter(|reply| reply.answer != Some(Kind::Redirected));
    for documented in read {
        let reply = reply(documented.http_status, documented.body.as_bytes());
        let rows = match documented.call {
            "POST /session/token" => session(&reply).map(|_| 1),
            "GET /portfolio/holdings" => holdings(&reply, 0).map(|rows| rows.held.len()),
            "GET /portfolio/positions" => positions(&reply).map(|rows| rows.len()),
            other => panic!("{other}"),
        };
        let answer = rows
            .as_ref()
            .map_err(|error| error.kind)
            .map(|rows| assert_eq!(*rows, 0));
        assert_eq!(answer.err(), documented.answer, "{}: {rows:?}", documented.meaning);
    }
}

#[test]
fn a_penalty_is_as_long_as_asked_within_reason() {
    let mut asked = reply(429, b"");
    for (after_s, expected_s) in [
        (None, 1),
        (Some(0), 1),
        (Some(30), 30),
        (Some(90_000), 3_600),
    ] {
        asked.retry_after = after_s.map(Duration::from_secs);
        let error = holdings(&asked, 0).unwrap_err();
        assert_eq!(error.kind, Kind::RateLimited);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(expected_s)));
    }
}

#[test]
fn the_official_session() {
    use secrecy::ExposeSecret;
    let (token, user) = session(&reply(200, SESSION)).unwrap();
    assert_eq!((token.expose_secret(), user.as_deref()), ("XXXXXX", Some("XX0000")));
    for id in ["", "two words", "\\n", &"X".repeat(65)] {
        let body =
            format!(r#"{{"status":"success","data":{{"access_token":"t","user_id":"{id}"}}}}"#);
        assert_eq!(session(&reply(200, body.as_bytes())).unwrap().1, None, "{id}");
    }
}

/// Our profit is on owned shares and exact; the broker's is on settled shares, in binary floats.
#[test]
fn the_official_holdings_and_their_totals() {
    let rows = holdings(&reply(200, HOLDINGS), 1).unwrap().held;
    let [aaron, sbin] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    assert_eq!((aaron.exchange.as_str(), sbin.exchange.as_str()), ("NSE", "BSE"));
    assert_eq!(aaron.isin.as_deref(), Some("INE721Z01010"));
    assert_eq!((aaron.quantity(), aaron.mtf_quantity), (number("1"), number("1000")));
    assert_eq!(sbin.cost, Some(Cost::PerShare(number("801.78125"))));
    let profit = |held: &Holding| {
        (held.last_price.unwrap() - held.average_price().unwrap()) * held.quantity()
    };
    // (352.95 - 161) x 1, and (762.45 - 801.78125) x 16: both without T1 shares, so the broker's
    // differ from ours only by float noise.
    assert_eq!(profit(aaron), number("191.95"));
    assert_eq!(aaron.broker_pnl, Some(number("191.95")));
    assert_eq!(profit(sbin), number("-629.3"));
    assert_eq!(sbin.broker_pnl, Some(number("-629.2999999999993")));
    // A T1 share in the same row changes our profit, but not the broker's.
    let mut delivered_late = sbin.clone();
    delivered_late.t1_quantity = number("4");
    assert_eq!(profit(&delivered_late), number("-786.625"));
    let value: Decimal = rows
        .iter()
        .map(|held| held.last_price.unwrap() * held.quantity())
        .sum();
    assert_eq!(value, number("12552.15"));
}

#[test]
fn the_official_positions_with_closed_rows_and_both_lists() {
    let rows = positions(&reply(200, POSITIONS)).unwrap();
    let of = |kind| rows.iter().filter(move |row| row.kind == kind);
    assert_eq!(of(PositionKind::Net).count(), 3);
    assert_eq!(of(PositionKind::Day).count(), 3);
    let gold = of(PositionKind::Net)
        .find(|row| row.quantity.is_zero())
        .unwrap();
    assert_eq!(gold.tradingsymbol, "GOLDGUINEA17DECFUT");
    assert_eq!((gold.pnl, gold.average_price), (Some(number("801")), None));
    let short = of(PositionKind::Day)
        .find(|row| row.quantity < Decimal::ZERO)
        .unwrap();
    assert_eq!((short.quantity, short.pnl), (number("-3"), Some(number("-93"))));
    let lead =
        of(PositionKind::Day).find(|row| row.exchange == "MCX" && row.quantity == Decimal::ONE);
    assert_eq!(lead.unwrap().multiplier, number("1000"));
    assert_eq!(lead.unwrap().close_price, None);
    let pnl: Decimal = of(PositionKind::Net).filter_map(|row| row.pnl).sum();
    assert_eq!(pnl, number("799"));
    // The samples have the whole profit in `unrealised`.
    let split = |row: &Position| (row.realised.unwrap(), row.unrealised.unwrap());
    assert_eq!(split(gold), (number("801"), Decimal::ZERO));
    // Four were sold at 23,340 and one bought back: 23,340 - 23,388, and 3 x (23,340 - 23,355).
    assert_eq!(split(short), (number("-48"), number("-45")));
    for row in &rows {
        let (realised, unrealised) = split(row);
        assert_eq!(Some(realised + unrealised), row.pnl, "{}", row.tradingsymbol);
        assert!(unrealised.is_zero() || !row.quantity.is_zero());
    }
}

#[test]
fn a_gain_is_split_only_where_the_row_tells_how() {
    let split = |members: &str| {
        let row = position_row(members);
        (row.realised, row.unrealised)
    };
    let some = |text| Some(number(text));
    for (members, expected) in [
        (r#""quantity":0,"pnl":-2.5"#, (some("-2.5"), some("0"))),
        (r#""quantity":0"#, (None, some("0"))),
        (r#""quantity":4,"pnl":7,PRICED"#, (None, None)),
        (
            r#""quantity":4,"pnl":7,"buy_quantity":4,"sell_quantity":0,PRICED"#,
            (some("0"), some("7")),
        ),
        (
            r#""quantity":-4,"pnl":7,"buy_quantity":0,"sell_quantity":4,PRICED"#,
            (some("0"), some("7")),
        ),
        (
            r#""quantity":4,"pnl":7,"buy_quantity":9,"sell_quantity":4,PRICED"#,
            (None, None),
        ),
        (r#""quantity":4,"pnl":7,"buy_quantity":5,"sell_quantity":1"#, (None, None)),
        (
            r#""quantity":4,"pnl":7,"buy_quantity":5,"sell_quantity":1,"multiplier":10,
            "average_price":100,"last_price":100.25"#,
            (some("-3"), some("10")),
        ),
    ] {
        let members = members.replace("PRICED", r#""average_price":10,"last_price":11"#);
        assert_eq!(split(&members), expected, "{members}");
    }
}

/// A row of broker A's net positions.
fn position_row(members: &str) -> Position {
    let body = format!(
        r#"{{"status":"success","data":{{"day":[],"net":[{{"tradingsymbol":"X",
        "exchange":"NSE","product":"MIS","realised":1,"unrealised":2,{members}}}]}}}}"#
    );
    positions(&reply(200, body.as_bytes())).unwrap().remove(0)
}

/// The broker computes the profit from 0 where it has no price.
#[test]
fn an_open_position_without_a_price_has_no_profit() {
    let known = |pnl: &str, realised: &str, unrealised: &str| {
        (Some(number(pnl)), Some(number(realised)), Some(number(unrealised)))
    };
    let none = (None, None, None);
    // Quantity, average, last price, profit, bought, sold; what is not given is left out.
    for (members, expected) in [
        (["-75", "55.25", "0", "4143.75", "0", "75"], none),
        (["40000", "8.05", "0", "-322000", "40000", "0"], none),
        (["5", "10", "null", "-50", "5", "0"], none),
        (["5", "10", "", "-50", "", ""], none),
        (["5", "10", "\"0.00\"", "\"-50\"", "5", "0"], none),
        (["5", "10", "-1", "-55", "5", "0"], none),
        // Partly closed: the realised part stands nowhere but in the profit.
        (["4", "100", "0", "-403", "5", "1"], none),
        // Without an average the shares cost nothing in the broker's figure.
        (["5", "0", "12", "60", "5", "0"], none),
        (["5", "null", "12", "60", "", ""], none),
        // Closed: no price is in it.
        (["0", "0", "0", "801", "5", "5"], known("801", "801", "0")),
        (["0", "", "", "-2.5", "", ""], known("-2.5", "-2.5", "0")),
        (["5", "1411", "1412.95", "9.75", "5", "0"], known("9.75", "0", "9.75")),
    ] {
        let names = [
            "quantity",
            "average_price",
            "last_price",
            "pnl",
            "buy_quantity",
            "sell_quantity",
        ];
        let given = names
            .iter()
            .zip(members)
            .filter(|(_, value)| !value.is_empty());
        let given: Vec<String> = given
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let row = position_row(&given.join(","));
        assert_eq!((row.pnl, row.realised, row.unrealised), expected, "{members:?}");
    }
}

#[test]
fn a_holding_without_a_price_or_a_cost_has_no_profit_of_the_brokers() {
    for (members, expected) in [
        (r#""average_price":100,"last_price":110,"pnl":50"#, Some("50")),
        (r#""average_price":100,"last_price":0,"pnl":-500"#, None),
        (r#""average_price":100,"last_price":null,"pnl":-500"#, None),
        (r#""average_price":100,"pnl":-500"#, None),
        (r#""average_price":0,"last_price":110,"pnl":550"#, None),
        (r#""average_price":null,"last_price":110,"pnl":550"#, None),
        (r#""last_price":110,"pnl":550"#, None),
        (r#""average_price":0,"last_price":0,"pnl":0"#, None),
    ] {
        let held = &row(&format!(r#""quantity":5,{members}"#)).unwrap()[0];
        assert_eq!(held.broker_pnl, expected.map(number), "{members}");
    }
}

#[test]
fn pledged_and_funded_shares_stand_beside_what_is_owned() {
    let rows = row(r#""quantity":3,"used_quantity":4,"t1_quantity":2,
           "collateral_quantity":5,"mtf":{"quantity":7},
           "average_price":0,"last_price":0,"close_price":null,"discrepancy":true,"isin":"""#)
    .unwrap();
    let held = &rows[0];
    assert_eq!(held.quantity(), number("5"));
    assert_eq!((held.pledged_quantity, held.mtf_quantity), (number("5"), number("7")));
    assert_eq!((held.quantity(), held.used_quantity), (number("5"), number("4")));
    assert_eq!((held.cost, held.last_price, held.close_price), (None, None, None));
    assert!(held.discrepancy && held.isin.is_none() && held.as_of_ms == 7);
}

#[test]
fn a_row_goes_only_when_nothing_is_left_of_it() {
    for nothing in [
        r#""quantity":0,"average_price":10"#,
        // Sold before delivery: what comes makes up for what went.
        r#""quantity":-10,"t1_quantity":10"#,
        r#""quantity":7,"t1_quantity":-7"#,
        r#""quantity":"-2.5","t1_quantity":"2.50""#,
    ] {
        assert_eq!(row(nothing).unwrap(), [], "{nothing}");
    }
    let kept = row(r#""quantity":-10,"t1_quantity":10,"collateral_quantity":3"#).unwrap();
    assert_eq!((kept[0].quantity(), kept[0].pledged_quantity), (number("0"), number("3")));
    assert_eq!(row(r#""quantity":-10,"t1_quantity":4"#).unwrap()[0].quantity(), number("-6"));
    for left in [
        r#""t1_quantity":1"#,
        r#""collateral_quantity":1"#,
        r#""mtf":{"quantity":1}"#,
    ] {
        assert_eq!(row(&format!(r#""quantity":0,{left}"#)).unwrap().len(), 1, "{left}");
    }
    assert_eq!(
        row(r#""quantity":"12","average_price":"1.50""#).unwrap()[0].quantity(),
        number("12")
    );
}

#[test]
fn what_was_wholly_sold_today_is_no_holding_and_is_not_forgotten() {
    let of = |members: &str| {
        let row = format!(r#"{{"tradingsymbol":"A","exchange":"NSE","isin":"I",{members}}}"#);
        rows(&row).unwrap()
    };
    for (members, sold) in [
        (r#""quantity":0,"used_quantity":10"#, Some("10")),
        (r#""quantity":"0","used_quantity":"2.5""#, Some("2.5")),
        (r#""quantity":-3,"t1_quantity":3,"used_quantity":7"#, Some("7")),
        (r#""quantity":0,"used_quantity":0"#, None),
        (r#""quantity":0,"used_quantity":null"#, None),
        (r#""quantity":0"#, None),
    ] {
        let rows = of(members);
        assert_eq!(rows.held, [], "{members}");
        let used = rows.sold.iter().map(|row| row.used_quantity);
        assert_eq!(used.collect::<Vec<_>>(), Vec::from_iter(sold.map(number)), "{members}");
    }
    for left in [
        r#""t1_quantity":1"#,
        r#""collateral_quantity":1"#,
        r#""mtf":{"quantity":1}"#,
    ] {
        let rows = of(&format!(r#""quantity":0,"used_quantity":4,{left}"#));
        assert_eq!((rows.held.len(), rows.sold.len()), (1, 0), "{left}");
    }
}

#[test]
fn a_row_that_cannot_be_read_spoils_the_whole_answer() {
    for bad in [
        r#""quantity":null"#,
        r#""quantity":"x""#,
        r#""quantity":false"#,
        r#""isin":5"#,
    ] {
        let error = row(bad).unwrap_err();
        assert_eq!(error.kind, Kind::Malformed, "{bad}: {error}");
    }
}

proptest::proptest! {
    #[test]
    fn nothing_panics_and_no_error_becomes_rows(
        status in 100_u16..600,
        kind in "[A-Za-z]{0,12}",
        rows in "(\\[\\]|null|\\{\\}|[a-z\"\\\\0-9{}:,]{0,40})",
    ) {
        let body = format!(r#"{{"status":"error","error_type":"{kind}","data":{rows}}}"#);
        let reply = reply(status, body.as_bytes());
        proptest::prop_assert!(holdings(&reply, 0).is_err());
        proptest::prop_assert!(positions(&reply).is_err());
        proptest::prop_assert!(session(&reply).is_err());
    }
}

/// Not every engine of the store accepts a zero byte in text.
#[test]
fn control_characters_in_the_names_of_a_row_refuse_the_list() {
    let holdings_with = |change: fn(&str) -> String| {
        let good = r#"{"status":"success","data":[{"tradingsymbol":"AAA","exchange":"NSE",
            "isin":"INE009A01021","quantity":1}]}"#;
        holdings(&reply(200, change(good).as_bytes()), 7)
    };
    assert_eq!(holdings_with(str::to_owned).unwrap().held.len(), 1);
    for change in [
        |text: &str| text.replace("AAA", "A\\u0000A"),
        |text: &str| text.replace("NSE", "N\\u0000E"),
        |text: &str| text.replace("INE009A01021", "INE009A0102\\u0000"),
    ] {
        assert!(holdings_with(change).is_err());
    }
    let product = String::from_utf8(POSITIONS.to_vec()).unwrap();
    assert!(positions(&reply(200, product.as_bytes())).is_ok());
    let product = product.replacen("\"NRML\"", "\"NR\\u0000L\"", 1);
    assert!(product.contains("u0000"));
    assert!(positions(&reply(200, product.as_bytes())).is_err());
}
