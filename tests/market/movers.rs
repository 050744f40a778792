//! `GET /api/market/movers`: how the shares move of which signals are made.

use sonic_rs::{JsonValueTrait, Value};

use super::days::Days;
use crate::portfolio::user::{rows, written};
use crate::support::until;

const MOVERS: &str = "/api/market/movers";
/// Six that gain 1 to 6 %, one that loses, one that stands, and one that no source has.
const SHARES: [(&str, &str); 9] = [
    ("NSE:INFY", "101"),
    ("NSE:TCS", "106"),
    ("NSE:ITC", "102"),
    ("NSE:SBIN", "105"),
    ("NSE:RELIANCE", "103"),
    ("NSE:MARUTI", "104"),
    ("NSE:NTPC", "98.5"),
    ("NSE:ONGC", "100"),
    ("NSE:NOSUCH", ""),
];

fn symbols(json: &Value, list: &str) -> Vec<String> {
    rows(json, list)
        .iter()
        .map(|row| row["symbol"].as_str().unwrap().to_owned())
        .collect()
}

/// Each share named has the figures that live prices give it. Time and age may be those of the
/// second before; the unit tests of the document compare them too.
fn assert_as_live(days: &Days, movers: &Value) {
    let live = days
        .service
        .prices(&SHARES.map(|(symbol, _)| symbol).join(","))
        .json();
    let live = rows(&live, "quotes");
    for row in rows(movers, "gainers").iter().chain(rows(movers, "losers")) {
        let quote = live
            .iter()
            .find(|quote| quote["symbol"] == row["symbol"])
            .unwrap();
        for name in [
            "last_price",
            "change",
            "change_pct",
            "day_low",
            "day_high",
            "source",
        ] {
            assert_eq!(row[name], quote[name], "{name} of {row:?}");
        }
    }
}

#[test]
fn what_rises_and_falls_is_counted_and_the_most_moved_are_named() {
    let days = Days::with("2026-11-20T11:00:00+05:30", |config| {
        let path = config.state_dir.join("nine.txt");
        std::fs::write(&path, SHARES.map(|(symbol, _)| symbol).join("\n")).unwrap();
        config.market.universe_file = Some(path);
    });
    let listed = SHARES.iter().filter(|(_, price)| !price.is_empty());
    listed
        .clone()
        .for_each(|(symbol, _)| days.price_anew(symbol, "100"));
    days.scene.advance_ms(1_000);
    listed.for_each(|(symbol, price)| days.price(symbol, price));
    let once = |what: &str, holds: &dyn Fn(&Value) -> bool| {
        until(what, || {
            days.scene.advance_ms(1_000);
            let answer = days.service.get(MOVERS).with_status(200);
            holds(&answer.json()).then_some(answer)
        })
    };
    // The public provider, which is behind, may have earlier prices first.
    let answer = once("the prices", &|json| {
        let moved = rows(json, "gainers").iter().chain(rows(json, "losers"));
        let here = moved.filter(|row| row["source"] == "broker_a").count();
        json["priced"].as_u64() == Some(8) && here == 6 && json["stale"].is_null()
    });
    assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
    let json = answer.json();
    assert_eq!((json["shares"].as_u64(), json["day"].as_str()), (Some(9), Some("2026-11-20")));
    let counts = ["advances", "declines", "unchanged"].map(|name| json[name].as_u64().unwrap());
    assert_eq!(counts, [6, 1, 1], "{json:?}");
    let best = [
        "NSE:TCS",
        "NSE:SBIN",
        "NSE:MARUTI",
        "NSE:RELIANCE",
        "NSE:ITC",
    ];
    assert_eq!(symbols(&json, "gainers"), best, "five of six");
    assert_eq!(symbols(&json, "losers"), ["NSE:NTPC"]);
    let worst = &json["losers"][0];
    let figures = ["last_price", "change", "change_pct"].map(|name| written(&worst[name]));
    assert_eq!(figures, ["98.5", "-1.5", "-1.5"]);
    assert_eq!((&worst["stale"], &worst["simulated"]), (&false.into(), &true.into()));
    assert_eq!(worst["name"].as_str(), Some("NTPC"));
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    let tag = format!("If-None-Match: {}\r\n", answer.header("etag").unwrap());
    assert_eq!(days.service.client().request("GET", MOVERS, &tag).status, 304);
    let gzip = "Accept-Encoding: gzip\r\n";
    let coded = days.service.client().request("GET", MOVERS, gzip);
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_as_live(&days, &json);

    // What no source confirms any more is no price of now: the list stands, and says so.
    assert!(json["stale"].is_null(), "{json:?}");
    days.scene.refuse_all();
    let json = once("nothing fresh", &|json| json["stale"] == true).json();
    assert_eq!((json["shares"].as_u64(), json["priced"].as_u64()), (Some(9), Some(8)));
    assert_eq!(symbols(&json, "gainers"), best, "the last ones of the day");
    for row in rows(&json, "gainers").iter().chain(rows(&json, "losers")) {
        assert_eq!(row["stale"], true, "{row:?}");
    }
}
