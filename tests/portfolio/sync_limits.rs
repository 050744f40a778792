//! Limits on a user's syncs, and a broker's cooldown.

use crate::support::{Answer, Scene, Service, TRADING, bearer, until};
use bhav::base::{Broker, Clock};
use bhav::sim::SimSettings;

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
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
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
    let calls = || -> u64 {
        let each = Broker::ALL.map(|broker| state.brokers[broker].client.sync_counts());
        each.iter().map(|counts| counts.calls.value()).sum()
    };
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
}

#[test]
fn a_key_that_is_refused_rests_and_stops_no_other_key() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let user = |number: u32| {
        let token = service.register(&format!("u{number}@example.com"), "a long enough secret");
        format!("{}X-Forwarded-For: 192.0.2.{number}\r\n", bearer(&token))
    };
    let synced = |user: &str, number: u32| {
        let code = scene.request_token();
        let body = format!(
            r#"{{"api_key":"simkeya-{number}","api_secret":"simsecreta","request_token":"{code}"}}"#
        );
        service.post("/api/portfolio/sync", user, &body).status
    };
    let (one, two) = (user(1), user(2));
    scene.fault("broker_a.session", r#"{"kind":"rate_limit","count":1}"#);
    sync(&service, &one, "a", "key1").expect_problem(429, "broker_rate_limited");
    let held = sync(&service, &two, "a", "key1");
    held.expect_problem(429, "calls_held_back");
    assert_eq!(held.header("retry-after"), Some("1"), "the key rests, whoever has it");
    let state = service.0.server().shared().service.state();
    let counts = state.brokers[Broker::A].client.sync_counts();
    assert_eq!((counts.calls.value(), counts.held_back.value()), (1, 1));

    // Strangers with spent keys, from networks of their own, delay nobody.
    scene.fault("broker_a.session", r#"{"kind":"rate_limit"}"#);
    for number in 3..9 {
        let refused = sync(&service, &user(number), "a", &format!("key{number}"));
        refused.expect_problem(429, "broker_rate_limited");
    }
    assert_eq!(counts.calls.value(), 7, "each was asked");
    scene.control("DELETE", "faults", "");
    let owners: Vec<String> = (11..14).map(user).collect();
    for (number, owner) in (11..).zip(&owners) {
        assert_eq!(synced(owner, number), 200, "at once");
    }
    until("their sessions to end", || {
        (state.broker_a.session_ends()[0] == ("ended", 3)).then_some(())
    });

    // Three users who synced before delay nobody either: each key has its own cooldown.
    clock.advance_ms(60_000);
    scene.fault("broker_a.session", r#"{"kind":"rate_limit"}"#);
    for (number, owner) in (11..).zip(&owners) {
        let refused = sync(&service, owner, "a", &format!("simkeya-{number}"));
        refused.expect_problem(429, "broker_rate_limited");
    }
    let before = counts.calls.value();
    for (number, owner) in (11..).zip(&owners) {
        let held = sync(&service, owner, "a", &format!("simkeya-{number}"));
        held.expect_problem(429, "calls_held_back");
    }
    assert_eq!(counts.calls.value(), before, "each rests");
    scene.control("DELETE", "faults", "");
    assert_eq!(synced(&user(98), 98), 200, "at once");
}

#[test]
fn retry_after_is_the_time_that_the_service_holds() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let service = scene.start();
    let user = bearer(&service.register("one@example.com", "a long enough secret"));
    let state = service.0.server().shared().service.state();
    let counts = state.brokers[Broker::A].client.sync_counts();
    let calls = || counts.calls.value();
    let try_it = || {
        let answer = sync(&service, &user, "a", "simkeya-1");
        let wait_s = answer
            .header("retry-after")
            .map(|text| text.parse::<i64>().unwrap());
        (answer.status, wait_s)
    };
    scene.fault("broker_a.session", r#"{"kind":"rate_limit"}"#);
    for round in 0..3 {
        assert_eq!(try_it(), (429, Some(1)));
        clock.advance_ms(999);
        assert_eq!(try_it(), (429, Some(1)));
        assert_eq!(calls(), round + 1, "held to the end of what was told");
        clock.advance_ms(1);
    }
    scene.control("DELETE", "faults", "");
    let code = scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya-1","api_secret":"simsecreta","request_token":"{code}"}}"#);
    service
        .post("/api/portfolio/sync", &user, &body)
        .with_status(200);
}

/// A sync from `client`, behind a trusted proxy.
fn sync_from(service: &Service, auth: &str, client: &str, broker: &str, key: &str) -> Answer {
    let headers = format!("{auth}X-Forwarded-For: {client}\r\n");
    sync(service, &headers, broker, key)
}

#[test]
fn one_stranger_with_ten_accounts_and_invented_keys_stops_nobodys_syncs() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    config.broker_b.url = scene.config_without_tokens().broker_b.url;
    config.upstream.sync_attempts_per_minute = 30;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let user = |name: &str| {
        bearer(&service.register(&format!("{name}@example.com"), "a long enough secret"))
    };
    let victim = user("victim");
    let strangers: Vec<String> = (0..10).map(|number| user(&format!("s{number}"))).collect();
    let of_victim = |broker: &str| {
        let key = if broker == "a" {
            "simkeya-1"
        } else {
            "sim+key=b&1-1"
        };
        let (route, secret, code) = match broker {
            "a" => ("sync", "simsecreta", ("request_token", scene.request_token())),
            _ => ("brokerb-sync", "simsecretb", ("api_session", scene.api_session())),
        };
        let body =
            format!(r#"{{"api_key":"{key}","api_secret":"{secret}","{}":"{}"}}"#, code.0, code.1);
        let headers = format!("{victim}X-Forwarded-For: 192.0.2.1\r\n");
        service.post(&format!("/api/portfolio/{route}"), &headers, &body)
    };
    let mut asked = 0;
    for minute in 0..2 {
        // Ten accounts may make this many attempts within a minute.
        for number in 0..300 {
            for broker in ["a", "b"] {
                let key = format!("invented {minute} {number}");
                let stranger = &strangers[number % 10];
                let answer = sync_from(&service, stranger, "198.51.100.7", broker, &key);
                asked += usize::from(answer.status == 401);
                assert!(matches!(answer.status, 401 | 429), "{}", answer.text());
            }
            if number % 25 == 0 {
                for broker in ["a", "b"] {
                    let synced = of_victim(broker);
                    assert_eq!(synced.status, 200, "{minute} {number} {}", synced.text());
                }
                clock.advance_ms(5_000);
            }
        }
    }
    // Twenty a minute at each broker. The rest was held back before a call.
    assert!(asked <= 2 * 2 * 20 + 2 * 20, "{asked}");
}
