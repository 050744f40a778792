//! Tests of a broker's token of the day that one node received.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bhav::base::Broker;
use bhav::brokers::SharedToken;
use secrecy::ExposeSecret;
use sonic_rs::{JsonValueTrait, Value};

use super::world::{Node, World, await_same, leader_first, stop};
use crate::support::{TRADING, until};

fn fresh(json: &Value) -> bool {
    json["market"]["stale"] == false && json["market"]["source"] == "broker_a"
}

fn activate_a(world: &World, node: &Node) {
    let body = format!(r#"{{"request_token":"{}"}}"#, world.scene.request_token());
    node.service
        .post("/brokera/activate", "", &body)
        .with_status(200);
}

fn activate_b(world: &World, node: &Node) {
    let body = format!(r#"{{"api_session":"{}"}}"#, world.scene.api_session());
    node.service
        .post("/brokerb/activate", "", &body)
        .with_status(200);
}

fn status(node: &Node, letter: char) -> Value {
    node.service.get(&format!("/broker{letter}/status")).json()
}

fn await_valid(what: &str, node: &Node, letter: char, valid: bool) {
    until(what, || (status(node, letter)["valid"] == valid).then_some(()));
}

fn tokens(node: &Node) -> Value {
    node.health()["relay"]["tokens"].clone()
}

fn await_origin(node: &Node, broker: &str, origin: &str) {
    until(origin, || {
        let tokens = tokens(node);
        if tokens[broker] == origin {
            Ok(())
        } else {
            Err(tokens.to_string())
        }
    });
}

/// The token's text.
fn text(node: &Node, of: impl Fn(&bhav::api::State) -> &SharedToken) -> String {
    let state = node.service.0.server().shared().service.state();
    let token = of(state).current().expect("a token");
    token
        .to_keep(Broker::A, None)
        .access_token
        .expose_secret()
        .to_owned()
}

fn text_a(node: &Node) -> String {
    text(node, |state| state.brokers[Broker::A].client.token())
}

#[test]
fn what_one_node_was_given_all_lead_with_after_it_has_gone() {
    let name = "what_one_node_was_given_all_lead_with_after_it_has_gone";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let start = |name| world.start_with(name, world.config_without_tokens());
    let mut nodes = leader_first(["a", "b"].map(start).into());
    // The follower receives it, and the leader begins to call with it.
    activate_a(&world, &nodes[1]);
    activate_b(&world, &nodes[1]);
    await_same("prices of broker A", &[&nodes[0], &nodes[1]], fresh);
    await_valid("broker B's session", &nodes[0], 'b', true);
    await_origin(&nodes[0], "broker_a", "other_node");
    await_origin(&nodes[0], "broker_b", "other_node");
    await_origin(&nodes[1], "broker_a", "login");
    assert_eq!(status(&nodes[0], 'a'), status(&nodes[1], 'a'));
    let given = text_a(&nodes[1]);
    assert_eq!(text_a(&nodes[0]), given);
    nodes.remove(1).service.stop();
    // A node that starts later gets it from the others, and can lead with it.
    nodes.push(start("c"));
    await_valid("the token at the new node", &nodes[1], 'a', true);
    await_valid("the session at the new node", &nodes[1], 'b', true);
    assert_eq!(text_a(&nodes[1]), given);
    await_same("prices of broker A again", &[&nodes[0], &nodes[1]], fresh);
    let before = nodes[1].snapshot().json()["market"]["as_of_ist"]
        .as_str()
        .unwrap()
        .to_owned();
    nodes.remove(0).service.stop();
    let last = leader_first(nodes);
    until("newer prices with the same token", || {
        let json = last[0].snapshot().json();
        fresh(&json) && json["market"]["as_of_ist"].as_str() > Some(&before)
    });
    assert_eq!(
        world.scene.stats()["rejected"]["broker_a.quote"]
            .as_u64()
            .unwrap_or(0),
        0
    );
    assert_eq!(world.calls_in_a_second(), 1);
    stop(last);
}

#[test]
fn a_token_that_the_broker_refused_is_dead_on_all_nodes_until_one_is_given_another() {
    let name = "a_token_that_the_broker_refused_is_dead_on_all_nodes";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let start = |name| world.start_with(name, world.config_without_tokens());
    let nodes = leader_first(["a", "b", "c"].map(start).into());
    let [leader, one, other] = &nodes[..] else {
        unreachable!()
    };
    activate_a(&world, leader);
    await_same("prices of broker A", &[leader, one, other], fresh);
    assert_eq!(world.scene.control("POST", "broker_a/expire", "").status, 200);
    for node in [leader, one, other] {
        await_valid("a dead token", node, 'a', false);
        assert_eq!(status(node, 'a')["initialized"], true);
    }
    activate_a(&world, other);
    for node in [leader, one, other] {
        await_valid("another token", node, 'a', true);
        assert_eq!(text_a(node), text_a(other));
    }
    await_same("prices of broker A again", &[leader, one, other], fresh);
    stop(nodes);
}

#[test]
fn a_token_of_the_settings_serves_nodes_that_have_none_and_no_valid_ones_place() {
    let name = "a_token_of_the_settings_serves_nodes_that_have_none";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let settings = world.start("a");
    let without = world.start_with("b", world.config_without_tokens());
    await_valid("the token of the settings", &without, 'a', true);
    await_origin(&without, "broker_a", "other_node");
    assert_eq!(text_a(&without), text_a(&settings));
    activate_a(&world, &without);
    await_origin(&settings, "broker_a", "other_node");
    assert_eq!(text_a(&settings), text_a(&without));
    // A node that starts with a token of its settings does not share it.
    let late = world.start("c");
    await_origin(&late, "broker_a", "settings");
    until("its question", || tokens(&settings)["told"].as_u64() > Some(1));
    assert_eq!(text_a(&settings), text_a(&without));
    assert_ne!(text_a(&late), text_a(&without));
    stop(vec![settings, without, late]);
}

#[test]
fn a_node_with_another_secret_takes_no_token() {
    let name = "a_node_with_another_secret_takes_no_token";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let a = world.start_with("a", world.config_without_tokens());
    let mut config = world.config_without_tokens();
    config.auth.jwt_secret = Some("a key that no other node has, by mistake".into());
    let b = world.start_with("b", config);
    activate_a(&world, &a);
    until("a word that does not open", || tokens(&b)["foreign"].as_u64() > Some(0));
    until("a question that does not open", || tokens(&a)["foreign"].as_u64() > Some(0));
    assert_eq!(status(&b, 'a')["initialized"], false);
    assert_eq!(tokens(&b)["taken"].as_u64(), Some(0));
    stop(vec![a, b]);
}

/// All commands of the shared server's clients, as the server reads them.
struct Monitor(UnixStream, Vec<u8>);

impl Monitor {
    fn of(world: &World) -> Self {
        let mut stream = world.server.connect();
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        Self(stream, Vec::new())
    }

    fn seen(&mut self, text: &str) -> bool {
        let mut part = [0; 65_536];
        loop {
            match self.0.read(&mut part) {
                Ok(0) => break,
                Ok(bytes) => self.1.extend_from_slice(&part[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        memchr::memmem::find(&self.1, text.as_bytes()).is_some()
    }
}

#[test]
fn the_shared_server_sees_and_keeps_no_token() {
    let name = "the_shared_server_sees_and_keeps_no_token";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let mut monitor = Monitor::of(&world);
    let start = |name| world.start_with(name, world.config_without_tokens());
    let nodes = leader_first(["a", "b"].map(start).into());
    activate_a(&world, &nodes[1]);
    activate_b(&world, &nodes[1]);
    await_same("prices of broker A", &[&nodes[0], &nodes[1]], fresh);
    await_valid("broker B's session", &nodes[0], 'b', true);
    assert!(monitor.seen("\"PUBLISH\" \"bhav:main:sealed\""), "words went by");
    let secrets = [
        text_a(&nodes[0]),
        text(&nodes[0], |state| state.brokers[Broker::B].client.token()),
        "a key that all the nodes know".to_owned(),
    ];
    let dump = world.server.dump();
    assert!(memchr::memmem::find(&dump, b"bhav:main:").is_some(), "something is kept");
    for secret in &secrets {
        assert!(!monitor.seen(secret), "sent in the clear");
        assert!(memchr::memmem::find(&dump, secret.as_bytes()).is_none(), "kept");
    }
    stop(nodes);
}
