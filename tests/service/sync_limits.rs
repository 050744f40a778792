//! How often a user may try to sync, and what becomes of a broker that wants to be left alone.

use bhav::base::Clock;
use bhav::sim::SimSettings;

use super::support::{Answer, Scene, Service, TRADING, bearer};

fn sync(service: &Service, auth: &str, broker: &str, key: &str) -> Answer {
    let (route, code) = match broker {
        "a" => ("sync", "request_token"),
        _ => ("brokerb-sync", "api_session"),
    };
    let body = format!(r#"{{"api_key":"{key}","api_secret":"x","{code}":"y"}}"#);
    service.post(&format!("/api/portfolio/{route}"), auth, &body)
}

#[test]
fn a_user_has_ten_tries_a_minute_at_both_brokers_together() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let mut config = scene.config();
    config.broker_b.url = scene.config_without_tokens().broker_b.url;
    config.upstream.sync_attempts_per_minute = 10;
    let service = scene.start_with(&config);
    let one = bearer(&service.register("one@example.com", "a long enough secret"));
    let two = bearer(&service.register("two@example.com", "a long enough secret"));
    let state = service.0.server().shared().service.state();
    for number in 0..10 {
        let broker = if number % 2 == 0 { "a" } else { "b" };
        let answer = sync(&service, &one, broker, &format!("key{number}"));
        assert_ne!(answer.status, 429, "{}", answer.text());
    }
    let calls = || state.broker_a.sync_counts().calls + state.broker_b.sync_counts().calls;
    let before = calls();
    for broker in ["a", "b"] {
        let refused = sync(&service, &one, broker, "another");
        refused.expect_problem(429, "too_many_attempts");
        assert_eq!(refused.header("retry-after"), Some("6"));
    }
    assert_eq!((calls(), state.portfolio.attempts.refused()), (before, 2));
    assert_eq!(sync(&service, &two, "a", "another").status, 401, "others have their own");
    clock.advance_ms(6_000);
    assert_eq!(sync(&service, &one, "a", "another").status, 401);
    sync(&service, &one, "a", "another").expect_problem(429, "too_many_attempts");
    service.0.stop();
}

#[test]
fn a_broker_that_refuses_one_is_not_asked_for_others() {
    let scene = Scene::on(Clock::manual(TRADING.parse().unwrap()), SimSettings::default());
    let service = scene.start();
    let one = bearer(&service.register("one@example.com", "a long enough secret"));
    let two = bearer(&service.register("two@example.com", "a long enough secret"));
    scene.fault("broker_a.session", r#"{"kind":"rate_limit"}"#);
    let state = service.0.server().shared().service.state();
    sync(&service, &one, "a", "key1").expect_problem(429, "broker_rate_limited");
    for number in 0..20 {
        let refused = sync(&service, &two, "a", &format!("other{number}"));
        refused.expect_problem(429, "broker_rate_limited");
        assert!(refused.header("retry-after").is_some());
    }
    let counts = state.broker_a.sync_counts();
    assert_eq!((counts.calls, counts.held_back), (1, 20));
    service.0.stop();
}
