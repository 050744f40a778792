//! Tests of which node leads after a leader stops, or after the database or the shared server
//! fails.

use sonic_rs::{JsonValueTrait, Value};

use super::world::{Node, World, await_same, leader_first, stop};
use crate::support::{TRADING, until};

fn as_of(node: &Node) -> String {
    node.snapshot().json()["market"]["as_of_ist"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn fresh(json: &Value) -> bool {
    json["market"]["stale"] == false && json["market"]["source"] == "broker_a"
}

#[test]
fn a_leader_that_stops_is_followed_by_another_and_nobody_asks_in_between() {
    let name = "a_leader_that_stops_is_followed_by_another_and_nobody_asks_in_between";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let mut nodes = leader_first(["a", "b", "c"].map(|name| world.start(name)).into());
    for epoch in [1_u64, 2] {
        let all: Vec<&Node> = nodes.iter().collect();
        await_same("the same snapshot", &all, fresh);
        assert_eq!(nodes[0].health()["epoch"].as_u64(), Some(epoch));
        let before = as_of(&nodes[1]);
        nodes.remove(0).service.stop();
        assert!(as_of(&nodes[0]) >= before);
        nodes = leader_first(nodes);
        until("newer prices", || as_of(&nodes[0]) > before);
    }
    assert_eq!(nodes[0].health()["epoch"].as_u64(), Some(3));
    assert_eq!(world.calls_in_a_second(), 1, "each waited its turn");
    stop(nodes);
}

#[test]
fn while_the_shared_server_is_away_the_leader_goes_on_and_followers_ask_the_public_provider() {
    let name = "while_the_shared_server_is_away_the_leader_goes_on";
    let Some(mut world) = World::at(name, TRADING) else {
        return;
    };
    let nodes = leader_first(["a", "b"].map(|name| world.start(name)).into());
    let [leader, follower] = &nodes[..] else {
        unreachable!()
    };
    await_same("the same snapshot", &[leader, follower], fresh);
    let before = as_of(follower);
    world.server.kill();
    follower
        .service
        .snapshot_where("stale", |json| json["market"]["stale"] == true);
    // Its own prices are a quarter of an hour late, so the last ones stay in the snapshot.
    until("calls to the public provider", || follower.rounds() > 0);
    assert!(as_of(follower) >= before);
    assert_eq!(follower.health()["feeds"]["broker_a"]["rounds"].as_u64(), Some(0));
    leader.service.fresh_snapshot();
    assert!(leader.leads(), "the row keeps it");
    world.server.restart();
    await_same("the same snapshot again", &[leader, follower], fresh);
    assert_eq!(leader.health()["epoch"].as_u64(), Some(1));
    assert_eq!(world.calls_in_a_second(), 1);
    stop(nodes);
}

/// The follower then asks the public provider, whose prices are a quarter of an hour late.
#[test]
fn a_follower_that_starts_while_the_shared_server_is_away_has_its_prices_of_before() {
    let name = "a_follower_that_starts_while_the_shared_server_is_away_has_its_prices_of_before";
    let Some(mut world) = World::at(name, TRADING) else {
        return;
    };
    let mut nodes = leader_first(["a", "b"].map(|name| world.start(name)).into());
    await_same("the same snapshot", &[&nodes[0], &nodes[1]], fresh);
    let follower = nodes.pop().unwrap();
    let (before, state) = (as_of(&follower), follower.stop());
    world.server.kill();
    let follower = world.start_in(state, "b", world.config());
    assert!(as_of(&follower) >= before);
    until("calls to the public provider", || follower.rounds() > 0);
    assert!(as_of(&follower) >= before);
    nodes.push(follower);
    stop(nodes);
}

#[test]
fn a_leader_that_hears_neither_authority_stops_asking_and_another_takes_over() {
    let name = "a_leader_that_hears_neither_authority_stops_asking_and_another_takes_over";
    let Some(mut world) = World::at(name, TRADING) else {
        return;
    };
    let nodes = leader_first(["a", "b"].map(|name| world.start(name)).into());
    let [leader, follower] = &nodes[..] else {
        unreachable!()
    };
    await_same("the same snapshot", &[leader, follower], fresh);
    world.rows.set_away(true);
    world.server.kill();
    until("no leader", || !leader.leads() && !follower.leads());
    let asked = leader.health()["feeds"]["broker_a"]["rounds"].as_u64();
    leader
        .service
        .snapshot_where("stale", |json| json["market"]["stale"] == true);
    assert_eq!(leader.health()["feeds"]["broker_a"]["rounds"].as_u64(), asked);
    world.rows.set_away(false);
    world.server.restart();
    let nodes = leader_first(nodes);
    await_same("the same snapshot again", &[&nodes[0], &nodes[1]], fresh);
    assert_eq!(nodes[0].health()["epoch"].as_u64(), Some(2));
    assert_eq!(world.calls_in_a_second(), 1);
    stop(nodes);
}
