//! Both feeds fail at once, or only the one that is not needed.

use super::stage::{CACHED, Stage};

fn both_and_back(fault: &str) {
    let stage = Stage::running(|_| {});
    stage.break_with("broker_a", fault);
    stage.break_with("public", fault);
    stage.until("the snapshot says that it is old", || stage.market().stale);
    stage.until("so do the quotes", || stage.quotes(CACHED).iter().all(|quote| quote.stale));
    stage.until("whoever asks for something new is told at once", || {
        let ((status, answer), took_ms) = stage.timed(|| stage.live_prices("NSE:TCS"));
        status == 503 && answer["code"] == "quotes_unavailable" && took_ms < 500
    });
    stage.until("health says so", || {
        let (status, health) = stage.get("/api/health");
        status == 200 && health["status"] == "degraded" && health["warmers"]["index"] == "stale"
    });
    assert!(stage.market().stale);
    stage.mend();
    stage.await_broker_a();
    stage.until("what was asked for in vain is there now", || {
        stage.live_prices("NSE:TCS").0 == 200
    });
}

/// Makes a test for each row.
macro_rules! faults {
    ($($name:ident: $fault:literal;)*) => {
        $(#[test]
        fn $name() {
            both_and_back($fault);
        })*
    };
}

faults! {
    refuse: r#"{"kind":"refuse"}"#;
    delay: r#"{"kind":"delay","delay_ms":30000}"#;
    rate_limit: r#"{"kind":"rate_limit"}"#;
    error_in_200: r#"{"kind":"error_in_200"}"#;
    html_5xx: r#"{"kind":"html_5xx"}"#;
    wrong_types: r#"{"kind":"wrong_types"}"#;
    missing_fields: r#"{"kind":"missing_fields"}"#;
    nulls: r#"{"kind":"nulls"}"#;
    zero_price: r#"{"kind":"zero_price"}"#;
}

#[test]
fn the_public_provider_alone_does_not_matter() {
    // Longer intervals, so that a busy machine does not make broker A look slow.
    let stage = Stage::running(|config| config.broker_a.quote_interval_ms = 1_000);
    stage.break_with("public", r#"{"kind":"refuse"}"#);
    stage.until("broker A has served for some rounds", || {
        let market = stage.market();
        assert_eq!((market.source.as_str(), market.stale), ("broker_a", false));
        stage.asked("broker_a.quote") >= 4
    });
    // Health is made once a second; the last document may be from the start.
    stage.until("health is well", || stage.get("/api/health").1["status"] == "ok");
    assert_eq!(stage.asked("public"), 0, "nobody needed it");
    assert_eq!(stage.feed_state("public"), "standby");
}
