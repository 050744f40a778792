//! A share whose price stands while its market trades.

use sonic_rs::{JsonValueTrait, Value};

use super::settings;
use crate::support::{SNAPSHOT, Scene, Service, TRADING, until};
use bhav::base::Clock;

fn quote(service: &Service, symbol: &str) -> Option<Value> {
    let answer = service.prices(symbol);
    (answer.status == 200).then(|| answer.json()["quotes"][0].clone())
}

/// The price of the share stands at each source, and the index moves each second.
#[test]
fn a_share_that_stands_for_minutes_is_stale_wherever_it_is_shown() {
    for broker_a in [true, false] {
        let scene = Scene::by_hand(Clock::manual(TRADING.parse().unwrap()), settings(900));
        let mut config = scene.config();
        config.cache.miss_wait_ms = 50;
        if !broker_a {
            (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
        }
        let service = scene.start_with(&config);
        let seen = |what: &str, symbol: &str, stale: bool| {
            until(what, || {
                scene.advance_ms(250);
                let other = quote(&service, "NSE:TCS").filter(|other| other["stale"] == false)?;
                let quote = quote(&service, symbol).filter(|quote| quote["stale"] == stale)?;
                Some((quote, other))
            })
        };
        let (before, _) = seen("a fresh price", "NSE:INFY", false);
        scene.halt("NSE:INFY", true);
        // The public provider shows the halt a quarter of an hour later.
        scene.advance_ms(if broker_a { 0 } else { 900_000 });
        scene.advance_ms(120_000);
        let (still, _) = seen("two minutes later", "NSE:INFY", false);
        scene.advance_ms(240_000);
        let (stands, other) = seen("six minutes later", "NSE:INFY", true);
        assert!(still["as_of"].as_str() >= before["as_of"].as_str());
        assert_eq!((&stands["as_of"], &stands["source"]), (&still["as_of"], &other["source"]));
        assert_eq!(service.get(SNAPSHOT).json()["market"]["stale"], false);
        let movers = service.get("/api/market/movers").json();
        assert!(!movers.to_string().contains("NSE:INFY"), "{movers}");
        scene.halt("NSE:INFY", false);
        scene.advance_ms(if broker_a { 0 } else { 900_000 });
        seen("trading again", "NSE:INFY", false);
    }
}
