//! What `bhav status` says of a node.

use sonic_rs::JsonValueTrait;

use super::world::{Node, World, leader_first, stop};
use crate::support::{TRADING, bhav, run, state_flag, until};

fn status(node: &Node, more: &[&str]) -> String {
    let state = tempfile::tempdir().unwrap();
    let url = format!("--url=http://{}", node.service.0.address());
    let args = ["status", &url, &state_flag(state.path()), &format!("--now={TRADING}")];
    run(bhav(&args).args(more)).out
}

#[test]
fn status_says_which_node_it_is_who_leads_and_what_it_hears() {
    let name = "status_says_which_node_it_is_who_leads_and_what_it_hears";
    let Some(world) = World::at(name, TRADING) else { return };
    let settings = world.start("a");
    let nodes = leader_first(vec![settings, world.start_with("b", world.config_without_tokens())]);
    until("the leader's row", || {
        let text = status(&nodes[0], &[]);
        let row = text.lines().find(|line| line.starts_with("node ")).unwrap_or_default();
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
    // The one without settings of its own has its token from the other.
    let told = nodes.iter().position(|node| node.health()["node"] == "b").unwrap();
    until("where the token comes from", || {
        let text = status(&nodes[told], &[]);
        if text.contains("IST; from another node") { Ok(()) } else { Err(text) }
    });
    stop(nodes);
}
