//! What is shown once the market has closed, while a source without times shows older prices.

use sonic_rs::{JsonValueTrait, Value};

use crate::support::{Scene, Service, until};

/// Longest step of the clock, so that no call is under way over a long jump.
const STEP_MS: i64 = 30_000;

/// Advances the clock to `at`, then in small steps until a quote for which `holds` is true.
fn quote_at(
    scene: &Scene,
    service: &Service,
    symbol: &str,
    at: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    let at: jiff::Timestamp = format!("2026-11-20T{at}+05:30").parse().unwrap();
    loop {
        let left_ms = at.as_millisecond() - scene.clock.now_ms();
        if left_ms <= 0 {
            break;
        }
        scene.advance_ms(left_ms.min(STEP_MS));
        service.prices(symbol);
    }
    until(at.to_string().as_str(), || {
        scene.advance_ms(500);
        let answer = service.prices(symbol);
        let quote = (answer.status == 200).then(|| answer.json()["quotes"][0].clone())?;
        holds(&quote).then_some(quote)
    })
}

fn is_fresh(quote: &Value) -> bool {
    quote["stale"] == false
}

/// Broker A's spare route has no times. A lag of a quarter of an hour that begins after the close
/// shows prices of before the auction.
#[test]
fn a_source_without_times_that_falls_behind_after_the_close_leaves_the_close() {
    let scene = Scene::still_at("2026-11-20T15:13:00+05:30");
    scene.fault("broker_a.quote", r#"{"kind":"nulls"}"#);
    scene.fault("public", r#"{"kind":"refuse"}"#);
    let mut config = scene.config();
    // The clock stands while a request waits.
    config.cache.miss_wait_ms = 50;
    let service = scene.start_with(&config);
    for symbol in ["NSE:NIFTY%2050", "NSE:INFY"] {
        quote_at(&scene, &service, symbol, "15:14:00", is_fresh);
    }
    let closes = ["NSE:NIFTY%2050", "BSE:SENSEX", "NSE:NIFTY%20IT", "NSE:INFY"].map(|symbol| {
        let quote = quote_at(&scene, &service, symbol, "15:46:00", |quote| {
            is_fresh(quote)
                && quote["as_of"]
                    .as_str()
                    .is_some_and(|at| at.contains("T15:35:00"))
        });
        (symbol, quote["last_price"].clone())
    });
    scene.fault("broker_a", r#"{"kind":"lag","by_s":1800}"#);
    let keeps = |service: &Service, at: &str, stale: bool| {
        for (symbol, close) in &closes {
            let quote = quote_at(&scene, service, symbol, at, |quote| quote["stale"] == stale);
            assert_eq!(quote["last_price"], *close, "{symbol} {at}");
        }
    };
    keeps(&service, "15:48:00", true);
    service.stop();
    let service = scene.start_with(&config);
    keeps(&service, "15:55:00", true);
    // Half an hour later the source has come to the close itself.
    keeps(&service, "16:06:00", false);
}
