//! API keys on several nodes: what one makes or revokes holds on the others, and their requests
//! are counted together.

use bhav::base::Clock;
use sonic_rs::JsonValueTrait;

use super::pair::{Pair, start};
use crate::accounts::keys::{PASSWORD, made};
use crate::support::wait::PATIENCE_MS;
use crate::support::{Client, Service, bearer, say, until};

const SCOPE: &str = r#""market:read""#;

fn status(node: &Service, key: &str) -> u16 {
    node.client()
        .request("GET", "/api/auth/session", &bearer(key))
        .status
}

/// Asks a node again and again until it refuses, and returns the time at which it did.
fn refused_ms(mut client: Client, asked: &str, clock: &Clock) -> u64 {
    let end_ms = clock.monotonic_ms() + PATIENCE_MS;
    while client.request("GET", "/api/auth/session", asked).status == 200 {
        assert!(clock.monotonic_ms() < end_ms, "never refused");
    }
    clock.monotonic_ms()
}

/// Keys that are made and revoked to measure: enough for a middle of what takes milliseconds, and
/// few where each takes up to a second.
const ROUNDS: [usize; 2] = [5, 50];

/// Revokes keys at the first node, and measures the milliseconds from that answer until the others
/// refuse, each asked without a pause.
fn revoked_on_three(test: &str, tells: bool) {
    let Some(mut pair) = Pair::start(test, tells) else {
        return;
    };
    pair.config.auth.key_requests_per_minute = 0;
    let state = tempfile::tempdir().unwrap();
    let third = start(&pair.scene, &pair.config, "c", state.path());
    let login = bearer(&pair.a.register("asha@example.com", PASSWORD));
    let clock = Clock::system();
    let mut took: [Vec<u64>; 2] = Default::default();
    for round in 0..ROUNDS[usize::from(tells)] {
        let (id, key) = made(&pair.a, &login, SCOPE, "");
        // A node that does not know a key looks for it before it refuses.
        for node in [&pair.a, &pair.b, &third] {
            until("the key at a node", || status(node, &key) == 200);
        }
        let (others, asked) = ([&pair.b, &third].map(Service::client), bearer(&key));
        std::thread::scope(|scope| {
            let refused = others.map(|client| scope.spawn(|| refused_ms(client, &asked, &clock)));
            let answer = pair
                .a
                .client()
                .request("DELETE", &format!("/api/keys/{id}"), &login);
            let answered_ms = clock.monotonic_ms();
            assert_eq!(answer.status, 204);
            assert_eq!(status(&pair.a, &key), 401, "{round}");
            for (took, refused) in took.iter_mut().zip(refused) {
                took.push(refused.join().unwrap().saturating_sub(answered_ms));
            }
        });
    }
    for (node, took) in ["the second", "the third"].iter().zip(&mut took) {
        took.sort_unstable();
        let (middle, most) = (took[took.len() / 2], took[took.len() - 1]);
        say(&format!(
            "{test}: {node} node refused {middle} ms (middle of {}) and at most {most} ms after \
             the revocation was answered\n",
            took.len(),
        ));
        // What is promised, and at most what a busy machine takes for the requests beside.
        assert!(middle < 1_000 && most < 4_000, "{took:?}");
    }
    // A key made at another node, and everything ended there.
    let elsewhere = bearer(
        &pair
            .b
            .client()
            .account("login", "asha@example.com", PASSWORD)
            .field("access_token"),
    );
    let (_, key) = made(&pair.b, &elsewhere, SCOPE, "");
    until("the key at the first", || status(&pair.a, &key) == 200);
    let everywhere = r#"{"everywhere":true,"keys":true}"#;
    assert_eq!(
        pair.b
            .post("/api/auth/logout", &elsewhere, everywhere)
            .status,
        200
    );
    for node in [&pair.a, &pair.b, &third] {
        until("the end of all keys", || status(node, &key) == 401);
    }
    third.stop();
    pair.stop();
}

#[test]
fn a_revoked_key_is_refused_on_every_node() {
    revoked_on_three("a_revoked_key_is_refused_on_every_node", true);
}

#[test]
fn a_revoked_key_is_refused_on_every_node_without_a_word() {
    revoked_on_three("a_revoked_key_is_refused_on_every_node_without_a_word", false);
}

#[test]
fn requests_with_a_key_are_counted_at_all_nodes() {
    let test = "requests_with_a_key_are_counted_at_all_nodes";
    let Some(pair) = Pair::start(test, true) else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let mut config = pair.config.clone();
    config.auth.key_requests_per_minute = 8;
    let nodes = ["c", "d"].map(|name| {
        let folder = state.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        start(&pair.scene, &config, name, &folder)
    });
    let login = bearer(&nodes[0].register("asha@example.com", PASSWORD));
    // On a busy machine the shared server may not answer in time, and the node counts alone. Then
    // another key is tried.
    until("eight requests at both nodes together", || {
        let (_, key) = made(&nodes[0], &login, SCOPE, "");
        let asked: Vec<u16> = (0..10).map(|at| status(&nodes[at % 2], &key)).collect();
        let admitted = asked.iter().filter(|status| **status == 200).count();
        assert!(admitted >= 8 || asked.contains(&401), "{asked:?}");
        (admitted == 8).then_some(())
    });
    assert!(nodes[0].health()["keys"]["used"].as_u64().is_some());
    let [c, d] = nodes;
    c.stop();
    d.stop();
    pair.stop();
}
