//! Nodes as the programs that they are, on a database and a server that they really share, ended
//! and stopped as the system does it. `loadtest` does the same for ten minutes.

use sonic_rs::{JsonValueTrait, Value};

use super::programs::{Node, Shared};
use crate::support::{SNAPSHOT, Signal, until};

impl Node {
    fn leads_in(&self) -> Option<u64> {
        let health = self.health();
        // A follower says the epoch that it follows.
        health["epoch"].as_u64().filter(|_| health["role"] == "leader")
    }

    fn market(&self) -> Value {
        self.program.client().get(SNAPSHOT).json()["market"].clone()
    }

    fn as_of(&self) -> String {
        self.market()["as_of_ist"].as_str().unwrap().to_owned()
    }

    fn journal(&self, auth: &str) -> String {
        let answer = self.program.client().request("GET", "/api/journal", auth);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.text().to_owned()
    }
}

/// Takes out the one that leads in a higher epoch than `after`; the epoch.
fn leader(nodes: &mut Vec<Node>, after: u64) -> (Node, u64) {
    let (at, epoch) = until("a leader", || {
        let epochs = nodes.iter().map(Node::leads_in).enumerate();
        let leads = |(at, epoch): (usize, Option<u64>)| Some((at, epoch.filter(|it| *it > after)?));
        epochs.filter_map(leads).max_by_key(|(_, epoch)| *epoch)
    });
    (nodes.remove(at), epoch)
}

fn await_fresh(nodes: &[Node]) {
    for node in nodes {
        until("fresh prices", || {
            let market = node.market();
            let fresh = market["stale"] == false && market["source"] == "broker_a";
            if fresh { Ok(()) } else { Err(market.to_string()) }
        });
    }
}

#[test]
fn leaders_that_are_killed_or_stopped_are_followed_and_nothing_acknowledged_is_lost() {
    let name = "leaders_that_are_killed_or_stopped_are_followed";
    let Some(shared) = Shared::start(name) else { return };
    let first = shared.node("a");
    let auth = first.register("nine green parrots");
    let mut nodes = vec![first, shared.node("b"), shared.node("c")];
    await_fresh(&nodes);

    let (mut killed, epoch) = leader(&mut nodes, 0);
    killed.write(&auth, "before the kill");
    let before: Vec<String> = nodes.iter().map(Node::as_of).collect();
    killed.program.kill();
    let (next, epoch) = leader(&mut nodes, epoch);
    nodes.push(next);
    await_fresh(&nodes);
    assert_eq!(shared.calls_in_a_second(), 1, "the next leader waits its turn");
    assert!(nodes.iter().all(|node| node.journal(&auth).contains("before the kill")));
    assert!(nodes.iter().map(Node::as_of).max() >= before.into_iter().max());
    killed.program = shared.program(killed.name, killed.state.path());
    nodes.push(killed);
    await_fresh(&nodes);

    let (stopped, epoch) = leader(&mut nodes, epoch.saturating_sub(1));
    stopped.write(&auth, "before the stop");
    let before = stopped.as_of();
    stopped.program.signal(Signal::STOP);
    let (next, _) = leader(&mut nodes, epoch);
    nodes.push(next);
    await_fresh(&nodes);
    assert!(nodes.iter().all(|node| node.journal(&auth).contains("before the stop")));
    stopped.program.signal(Signal::CONT);
    until("the one of before to follow", || stopped.health()["role"] == "follower");
    nodes.push(stopped);
    await_fresh(&nodes);
    assert!(nodes.iter().all(|node| node.as_of() >= before));
    // Stopped between its last look at the deadline and the call, it makes that one call too many.
    assert!(shared.calls_in_a_second() <= 2, "{}", shared.calls_in_a_second());
}
