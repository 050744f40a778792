//! Tests of the output of `bhav status` for a node.

use std::io::{Read, Write};

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::world::{Node, World, leader_first, stop};
use crate::support::scrape::Scrape;
use crate::support::{TRADING, bhav, run, state_flag, until};

fn status(node: &Node, more: &[&str]) -> String {
    let state = tempfile::tempdir().unwrap();
    let url = format!("--url=http://{}", node.service.0.address());
    let args = [
        "status",
        &url,
        &state_flag(state.path()),
        &format!("--now={TRADING}"),
    ];
    run(bhav(&args).args(more)).out
}

#[test]
fn status_says_which_node_it_is_who_leads_and_what_it_hears() {
    let name = "status_says_which_node_it_is_who_leads_and_what_it_hears";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let settings = world.start("a");
    let nodes = leader_first(vec![
        settings,
        world.start_with("b", world.config_without_tokens()),
    ]);
    until("the leader's row", || {
        let text = status(&nodes[0], &[]);
        let row = text
            .lines()
            .find(|line| line.starts_with("node "))
            .unwrap_or_default();
        let is_said = row.contains("; leads, epoch 1; relay following, ");
        if is_said { Ok(()) } else { Err(text) }
    });
    let json = until("the follower's facts", || {
        let text = status(&nodes[1], &["--json"]);
        let json: sonic_rs::Value = sonic_rs::from_str(&text).unwrap();
        let node = &json["service"]["node"];
        let follows = node["role"] == "follower" && node["relay"]["state"] == "following";
        if follows { Ok(json) } else { Err(text) }
    });
    let node = &json["service"]["node"];
    assert_eq!(node["epoch"].as_u64(), Some(1), "{json}");
    assert_eq!(node["leader"], nodes[0].health()["node"], "{json}");
    // The node without settings of its own has its token from the other.
    let told = nodes
        .iter()
        .position(|node| node.health()["node"] == "b")
        .unwrap();
    until("where the token comes from", || {
        let text = status(&nodes[told], &[]);
        if text.contains("IST; from another node") {
            Ok(())
        } else {
            Err(text)
        }
    });
    stop(nodes);
}

/// Sends a line to the server, which must accept it.
fn say_to(world: &World, line: &str) {
    let mut stream = world.server.connect();
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut said = [0; 5];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"+OK\r\n", "{line}");
}

#[test]
fn what_the_shared_server_refuses_is_told() {
    let name = "what_the_shared_server_refuses_is_told";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let denied = "BHAV_CACHE_URL: the server refuses INFO to user default";
    say_to(&world, "ACL SETUSER default -info");
    let node = world.start("a");
    until("its word", || {
        let health = node.health();
        let told = health["shared_server"]["refused"][0] == denied && health["status"] != "ok";
        told.then_some(()).ok_or(health.to_string())
    });
    let health = node.health();
    assert_eq!(health["shared_server"]["refused"].as_array().unwrap().len(), 1, "{health}");
    let text = status(&node, &["--json"]);
    assert!(text.contains(&format!("The shared server says no: {denied}")), "{text}");
    assert!(!text.contains("\"unexplained\""), "{text}");
    say_to(&world, "ACL SETUSER default +info");
    until("it leads", || node.leads());
    let mut stream = world.server.connect();
    stream.write_all(b"CLIENT LIST\r\nQUIT\r\n").unwrap();
    let mut clients = String::new();
    stream.read_to_string(&mut clients).unwrap();
    assert!(clients.matches(" name=bhav/a ").count() >= 4, "{clients}");
    node.stop();
}

/// Health names the key, status says what to do, and the counter has its cause.
#[test]
fn what_somebody_else_wrote_on_the_shared_server_is_told() {
    let name = "what_somebody_else_wrote_on_the_shared_server_is_told";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let mut config = world.config();
    config.admin.listen = "127.0.0.1:0".into();
    let node = world.start_with("a", config);
    until("it leads", || node.leads());
    let distrusted = || {
        let scrape = Scrape::of(&node.service);
        scrape
            .find("bhav_distrusted_total{reason=\"forged\"}")
            .unwrap()
    };
    let sentence = "Somebody other than the nodes has written leader on the shared server";
    let text = status(&node, &["--json"]);
    assert!(!text.contains("Somebody other"), "{text}");
    let before = distrusted();
    // As long as a signed value, so that only a node can tell.
    say_to(&world, &format!("SET bhav:main:leader {}", "g".repeat(60)));
    until("the counter", || distrusted() > before);
    let said = until("the cure", || {
        let text = status(&node, &["--json"]);
        let cure = "give the server a user with a password, and no other";
        let is_told = text.contains(sentence) && text.contains(cure);
        if is_told { Ok(text) } else { Err(text) }
    });
    assert!(!said.contains("\"unexplained\""), "{said}");
    assert_eq!(node.health()["shared_server"]["foreign"][0], "leader");
    assert!(node.leads());
    node.stop();
}
