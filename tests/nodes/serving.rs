//! Tests of the answers to clients of any node.

use sonic_rs::JsonValueTrait;

use super::world::{World, await_same, leader_first, stop};
use crate::support::{TRADING, until};

const EVENING: &str = "2026-11-20T20:00:00+05:30";

#[test]
fn one_node_asks_and_all_serve_the_same_bytes() {
    let name = "one_node_asks_and_all_serve_the_same_bytes";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let nodes = leader_first(["a", "b", "c"].map(|name| world.start(name)).into());
    let [leader, one, other] = &nodes[..] else {
        unreachable!()
    };
    let fresh = |json: &sonic_rs::Value| {
        json["market"]["stale"] == false && json["market"]["source"] == "broker_a"
    };
    await_same("the same fresh snapshot", &[leader, one, other], fresh);
    // Prices change, and all nodes follow.
    let first = leader.snapshot();
    until("another price", || leader.snapshot().body != first.body);
    await_same("the next snapshot", &[leader, one, other], fresh);
    for follower in [one, other] {
        let health = until("health of a follower", || {
            Some(follower.health()).filter(|health| health["relay"]["state"] == "following")
        });
        assert_eq!(health["role"], "follower", "{health}");
        assert_eq!(health["feeds"]["broker_a"]["state"], "relayed", "{health}");
        assert_eq!(health["epoch"].as_u64(), Some(1), "{health}");
        assert_eq!(health["leader"], leader.health()["node"], "{health}");
        assert_eq!(follower.rounds(), 0, "{health}");
    }
    assert_eq!(leader.health()["epoch"].as_u64(), Some(1));
    assert_eq!(world.calls_in_a_second(), 1);
    stop(nodes);
}

#[test]
fn a_symbol_that_a_follower_is_asked_for_comes_over_the_leader() {
    let name = "a_symbol_that_a_follower_is_asked_for_comes_over_the_leader";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let nodes = leader_first(["a", "b"].map(|name| world.start(name)).into());
    let [leader, follower] = &nodes[..] else {
        unreachable!()
    };
    follower.service.fresh_snapshot();
    let prices = until("a price at the follower", || {
        let answer = follower.service.prices("NSE:INFY");
        Some(answer)
            .filter(|answer| answer.status == 200 && answer.text().contains("\"stale\":false"))
    });
    assert_eq!(prices.quoted(), ["NSE:INFY"]);
    assert_eq!(follower.rounds(), 0);
    // The price stays fresh there, and unknown symbols are known to be unknown.
    until("the same price at both", || {
        follower.service.prices("NSE:INFY").body == leader.service.prices("NSE:INFY").body
    });
    until("an answer about a symbol that does not exist", || {
        let answer = follower.service.prices("NSE:NOSUCHSHARE");
        (answer.status == 200 || answer.status == 404)
            .then_some(())
            .ok_or(answer.text().to_owned())
    });
    assert_eq!(follower.rounds(), 0);
    stop(nodes);
}

#[test]
fn at_rest_a_node_that_starts_later_serves_what_the_others_serve() {
    let name = "at_rest_a_node_that_starts_later_serves_what_the_others_serve";
    let Some(world) = World::at(name, EVENING) else {
        return;
    };
    let mut nodes = leader_first(["a", "b"].map(|name| world.start(name)).into());
    let fresh = |json: &sonic_rs::Value| json["market"]["stale"] == false;
    await_same("the close", &[&nodes[0], &nodes[1]], fresh);
    nodes.push(world.start("c"));
    await_same("the close at all", &[&nodes[0], &nodes[1], &nodes[2]], fresh);
    let last = nodes[2].snapshot();
    for node in &nodes {
        assert_eq!(node.snapshot().body, last.body, "nothing moves any more");
    }
    assert_eq!(nodes[2].rounds(), 0);
    stop(nodes);
}
