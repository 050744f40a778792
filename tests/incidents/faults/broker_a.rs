//! Broker A has every fault of the simulator: the public provider takes over, health names the
//! cause, and broker A serves again once the fault is cleared.

use super::stage::{CACHED, Stage};

/// Checks what clients see from the fault on, and after it.
fn fail_over(stage: &Stage, fault: &str, states: &[&str]) {
    stage.break_with("broker_a", fault);
    // Waits until its prices are newer than broker A's last.
    stage.until("the public provider serves", || {
        let market = stage.market();
        market.source == "public" && !market.stale
    });
    stage.until("no quote of broker A passes as fresh", || {
        stage
            .quotes(CACHED)
            .iter()
            .all(|quote| quote.source == "public" || quote.stale)
    });
    stage.until("health names the cause", || {
        states.contains(&stage.feed_state("broker_a").as_str())
    });
    stage.until("a symbol nobody asked for before is served", || {
        let (status, answer) = stage.live_prices("NSE:TCS");
        status == 200 && answer["quotes"][0]["source"] == "public"
    });
    stage.until("health says who serves", || stage.feed_state("public") == "ok");
}

fn fail_over_and_back(fault: &str, states: &[&str]) {
    let stage = Stage::running(|_| {});
    fail_over(&stage, fault, states);
    stage.mend();
    stage.await_broker_a();
    stage.until("health is well again", || stage.feed_state("broker_a") == "ok");
}

/// Makes a test for each row: the fault, and the states of health that name its cause.
macro_rules! faults {
    ($($name:ident: $fault:literal => $states:expr;)*) => {
        $(#[test]
        fn $name() {
            fail_over_and_back($fault, &$states);
        })*
    };
}

faults! {
    refuse: r#"{"kind":"refuse"}"# => ["failing", "open"];
    delay: r#"{"kind":"delay","delay_ms":30000}"# => ["failing", "open"];
    drip: r#"{"kind":"drip","bytes_per_s":100}"# => ["failing", "open"];
    truncate: r#"{"kind":"truncate"}"# => ["failing", "open"];
    error_in_200: r#"{"kind":"error_in_200"}"# => ["failing", "open"];
    html_5xx: r#"{"kind":"html_5xx"}"# => ["failing", "open"];
    redirect: r#"{"kind":"redirect","location":"/elsewhere"}"# => ["failing", "open"];
    rate_limit: r#"{"kind":"rate_limit"}"# => ["rate_limited"];
    wrong_types: r#"{"kind":"wrong_types"}"# => ["failing", "open"];
    missing_fields: r#"{"kind":"missing_fields"}"# => ["failing", "open"];
    nulls: r#"{"kind":"nulls"}"# => ["failing", "open"];
    zero_price: r#"{"kind":"zero_price"}"# => ["failing"];
}

#[test]
fn an_expired_token_stays_dead_until_a_new_one_is_set() {
    let stage = Stage::running(|_| {});
    fail_over(&stage, r#"{"kind":"expired_token"}"#, &["token_dead"]);
    assert_eq!(stage.get("/brokera/status").1["valid"], false);
    stage.mend();
    let asked = stage.asked("public");
    stage.until("more rounds of the public provider", || {
        assert_eq!(stage.market().source, "public");
        stage.asked("public") > asked + 5
    });
    assert_eq!(stage.feed_state("broker_a"), "token_dead");
}

#[test]
fn a_plan_without_market_data_is_asked_again_after_a_while() {
    let stage = Stage::stepping(40);
    fail_over(&stage, r#"{"kind":"no_permission"}"#, &["no_permission"]);
    assert_eq!(stage.get("/brokera/status").1["valid"], true, "the token is good");
    stage.mend();
    stage.advance_ms(60_000);
    stage.await_broker_a();
}

#[test]
fn a_price_that_stands_still_is_not_shown_as_fresh() {
    let mut stage = Stage::stepping(160);
    stage.mute = true;
    fail_over(&stage, r#"{"kind":"mute_price"}"#, &["mute"]);
    stage.mend();
    stage.await_broker_a();
}

#[test]
fn who_waits_while_broker_a_hangs_is_served_by_the_other() {
    let hangs_ms = 8_000;
    let stage = Stage::running(|config| {
        config.upstream.read_timeout_ms = hangs_ms;
        config.upstream.total_timeout_ms = hangs_ms;
    });
    stage.break_with("broker_a", r#"{"kind":"delay","delay_ms":30000}"#);
    let ((status, answer), took_ms) = stage.timed(|| stage.live_prices("NSE:TCS,NSE:WIPRO"));
    assert_eq!((status, answer["quotes"][1]["source"].clone()), (200, "public".into()));
    assert!(took_ms < hangs_ms / 2, "{took_ms}");
    stage.until("health names the cause", || stage.feed_state("broker_a") == "hanging");
    stage.until("the public provider serves", || stage.market().source == "public");
    stage.mend();
    stage.await_broker_a();
}
