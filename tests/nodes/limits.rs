//! Tests of limits over all nodes together.

use std::io::{Read, Write};

use bhav::base::Clock;

use super::world::{Node, World, stop};
use crate::support::scrape::Scrape;
use crate::support::{Answer, TRADING, bearer, until};

const PASSWORD: &str = "correct horse";
/// A login waits no longer than this for the shared server.
const BOUND_MS: u64 = 50;
/// Allowance for a hash and the machine's other work.
const SLACK_MS: u64 = 1_500;

fn start(world: &World, name: &str, logins_per_minute: u32) -> Node {
    let mut config = world.config();
    config.admin.listen = "127.0.0.1:0".into();
    config.auth.login_attempts_per_minute = logins_per_minute;
    config.upstream.sync_attempts_per_minute = 2;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    world.start_with(name, config)
}

fn log_in(node: &Node, client: &str, email: &str, password: &str) -> Answer {
    let body = format!(r#"{{"email":"{email}","password":"{password}"}}"#);
    node.service
        .post("/api/auth/login", &format!("X-Forwarded-For: {client}\r\n"), &body)
}

fn shared(node: &Node, outcome: &str) -> u64 {
    let sample = format!("bhav_shared_limits_total{{outcome=\"{outcome}\"}}");
    Scrape::of(&node.service).find(&sample).unwrap_or_default() as u64
}

fn hashed(node: &Node) -> u64 {
    node.service
        .0
        .server()
        .shared()
        .service
        .state()
        .auth
        .lane()
        .stats()
        .completed
}

/// All keys of the shared server, with their values.
fn kept(world: &World) -> String {
    let mut stream = world.server.connect();
    let script = "local all = {} for _, key in ipairs(redis.call('KEYS', '*')) do \
                  all[#all + 1] = key .. '=' .. (redis.pcall('GET', key).err or \
                  redis.call('GET', key) or '') end return table.concat(all, ' ')";
    let command = format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{script}\r\n$1\r\n0\r\n", script.len());
    stream.write_all(command.as_bytes()).unwrap();
    let mut said = Vec::new();
    let mut part = [0; 65_536];
    loop {
        let read = stream.read(&mut part).unwrap();
        said.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&said).into_owned();
        let Some((head, body)) = text.split_once("\r\n") else {
            continue;
        };
        let length: usize = head
            .strip_prefix('$')
            .unwrap_or_else(|| panic!("{text}"))
            .parse()
            .unwrap();
        if body.len() >= length {
            return body.to_owned();
        }
    }
}

#[test]
fn attempts_at_one_node_count_at_all() {
    let Some(world) = World::at("attempts_at_one_node_count_at_all", TRADING) else {
        return;
    };
    let [a, b] = ["a", "b"].map(|name| start(&world, name, 5));
    // On a busy machine the server may not answer in time, and the node counts alone. So the test
    // retries with other accounts and clients until all were counted.
    let mut round = 0;
    let (before, mut admitted) = (hashed(&b), 0);
    let refused = until("a refusal", || {
        round += 1;
        let email = format!("canary.person.{round}@example.com");
        for number in 0..5 {
            let client = format!("192.0.{round}.{number}");
            let answer = log_in(&a, &client, &email, "wrong horse");
            answer.expect_problem(401, "invalid_credentials");
        }
        // Account and client are new to the node's own limit.
        let answer = log_in(&b, &format!("203.0.113.{round}"), &email, "wrong horse");
        admitted += u64::from(answer.status == 401);
        (answer.status == 429).then_some(answer)
    });
    refused.expect_problem(429, "too_many_attempts");
    let retry_after: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=12).contains(&retry_after), "{retry_after}");
    assert!(hashed(&b) > before, "asked on the lane that hashes");
    until("a refusal in the metrics", || (shared(&b, "refused") > 0).then_some(()));
    let unknown = shared(&a, "unknown") + shared(&b, "unknown");
    assert!(admitted <= unknown, "{admitted} of {unknown} that nobody counted");
    let state = b.service.0.server().shared().service.state();
    assert!(state.auth.refused_attempts() > 0);
    let kept = kept(&world);
    assert!(kept.contains("bhav:main:limit:"), "{kept}");
    for secret in ["canary", "example.com", "203.0.113", "192.0.2"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    stop(vec![a, b]);
}

#[test]
fn without_the_shared_server_each_node_counts_alone_and_hardly_waits() {
    let name = "without_the_shared_server_each_node_counts_alone_and_hardly_waits";
    let Some(mut world) = World::at(name, TRADING) else {
        return;
    };
    let [a, b] = ["a", "b"].map(|name| start(&world, name, 3));
    world.server.kill();
    for node in [&a, &b] {
        for round in 0..3 {
            let client = format!("192.0.2.{round}");
            let answer = log_in(node, &client, "a@b.example", "wrong horse");
            answer.expect_problem(401, "invalid_credentials");
        }
        let refused = log_in(node, "192.0.2.9", "a@b.example", "wrong horse");
        refused.expect_problem(429, "too_many_attempts");
        // Jobs on the lane waited for the server no longer than the bound.
        let lane = node
            .service
            .0
            .server()
            .shared()
            .service
            .state()
            .auth
            .lane()
            .stats();
        assert_eq!((lane.expired, lane.panicked), (0, 0));
    }
    until("what was not counted", || (shared(&a, "unknown") >= 3).then_some(()));
    // A stopped server costs each attempt the bound and no more.
    world.server.restart();
    let c = start(&world, "c", 1_000);
    log_in(&c, "192.0.2.1", "a@b.example", "wrong horse");
    world.server.signal(rustix::process::Signal::STOP);
    let timer = Clock::system();
    for _ in 0..5 {
        let begun_ms = timer.monotonic_ms();
        let answer = log_in(&c, "192.0.2.1", "a@b.example", "wrong horse");
        answer.expect_problem(401, "invalid_credentials");
        let took_ms = timer.monotonic_ms() - begun_ms;
        assert!(took_ms < BOUND_MS + SLACK_MS, "{took_ms}");
    }
    world.server.signal(rustix::process::Signal::CONT);
    stop(vec![a, b, c]);
}

#[test]
fn syncs_of_a_user_are_counted_at_all_nodes_before_the_code_is_used() {
    let name = "syncs_of_a_user_are_counted_at_all_nodes_before_the_code_is_used";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let [a, b] = ["a", "b"].map(|name| start(&world, name, 0));
    // Each node has a store of its own here, so the same user is the first of each.
    let [at_a, at_b] = [&a, &b].map(|node| bearer(&node.service.register("a@b.example", PASSWORD)));
    let sync = |node: &Node, auth: &str| {
        let code = world.scene.request_token();
        let body = format!(
            r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{code}"}}"#
        );
        node.service.post("/api/portfolio/sync", auth, &body)
    };
    let mut admitted = 0;
    let refused = until("a refusal", || {
        let (node, auth) = if admitted % 2 == 0 {
            (&a, &at_a)
        } else {
            (&b, &at_b)
        };
        let answer = sync(node, auth);
        if answer.status == 429 && answer.json()["code"] == "too_many_attempts" {
            return Some(answer);
        }
        // Sent to the broker, or held back by its own limits.
        admitted += 1;
        None
    });
    assert!(refused.header("retry-after").is_some());
    let unknown = shared(&a, "unknown") + shared(&b, "unknown");
    assert!((2..=2 + unknown).contains(&admitted), "{admitted} with {unknown} uncounted");
    stop(vec![a, b]);
}
