//! Users' portfolios on two nodes that share a database.

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::pair::{Pair, Stopped, ask};
use crate::support::postgres::{self, Server};
use crate::support::{Answer, Scene, Service, TRADING, bearer};

const HOLDINGS: &str = "/api/portfolio/holdings";
const PASSWORD: &str = "a password for nodes";
/// Number of requests for a cached response, above all other reads from the store meanwhile.
const LOOKS: u64 = 200;

fn holdings(node: &Service, token: &str) -> Answer {
    node.client().request("GET", HOLDINGS, &bearer(token))
}

fn rows(node: &Service, token: &str) -> usize {
    let answer = holdings(node, token).with_status(200);
    answer.json()["holdings"].as_array().unwrap().len()
}

fn sync(scene: &Scene, node: &Service, token: &str) -> Answer {
    let code = scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{code}"}}"#);
    ask(node, "POST", "/api/portfolio/sync", token, &body)
}

/// Number of store reads during `work`; may include a few others.
fn reads(node: &Service, work: impl FnOnce()) -> u64 {
    let state = node.0.server().shared().service.state();
    let before = state.store.health().readers.completed;
    work();
    state.store.health().readers.completed - before
}

#[test]
fn what_one_node_writes_of_a_portfolio_the_other_shows_at_once() {
    let Some(pair) = Pair::start("what_one_node_writes_of_a_portfolio", false) else {
        return;
    };
    let Pair { a, b, scene, .. } = &pair;
    let token = a.register("a@example.com", PASSWORD);
    assert_eq!((rows(a, &token), rows(b, &token)), (0, 0));
    sync(scene, a, &token).with_status(200);
    let count = rows(a, &token);
    assert!(count > 0);
    assert_eq!(rows(b, &token), count, "nothing old is shown");
    assert_eq!(holdings(a, &token).header("etag"), holdings(b, &token).header("etag"));
    // The cached response is used once the store has confirmed it.
    let hits = |node: &Service| {
        let state = node.0.server().shared().service.state();
        state.portfolio.responses.stats().hits
    };
    let before = hits(b);
    let asked = reads(b, || (0..LOOKS).for_each(|_| assert_eq!(rows(b, &token), count)));
    assert_eq!(hits(b) - before, LOOKS);
    assert!(asked >= LOOKS, "{asked}");
    assert_eq!(ask(b, "DELETE", "/api/portfolio/data", &token, "").status, 200);
    assert_eq!((rows(a, &token), rows(b, &token)), (0, 0));
    pair.stop();
}

#[test]
fn a_node_that_is_alone_asks_nobody_about_what_it_has_kept() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.store.url = None;
    let service = scene.start_with(&config);
    let token = service.register("a@example.com", PASSWORD);
    assert_eq!(rows(&service, &token), 0);
    let asked = reads(&service, || (0..LOOKS).for_each(|_| assert_eq!(rows(&service, &token), 0)));
    assert!(asked < LOOKS, "{asked}");
}

#[test]
fn a_response_that_nobody_can_vouch_for_is_not_sent() {
    if postgres::server().is_none() {
        return;
    }
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let pair = Pair::on(Scene::at(TRADING), &own, None);
    let token = pair.a.register("a@example.com", PASSWORD);
    assert_eq!((rows(&pair.b, &token), rows(&pair.b, &token)), (0, 0));
    let stopped = Stopped::now(&own);
    let answer = holdings(&pair.b, &token).with_status(503);
    assert!(answer.header("retry-after").is_some());
    let code = answer.json()["code"].as_str().unwrap().to_owned();
    assert!(["store_late", "store_unavailable"].contains(&code.as_str()), "{code}");
    drop(stopped);
    pair.stop();
}
