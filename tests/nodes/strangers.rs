//! Tests of messages from strangers on the shared server: no node shows them or is delayed by them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use bhav::base::Quote;
use bhav::cache::{FreshnessRules, Limits, SourceRules, Vouched};
use bhav::nodes::authorities::ValkeyClaim;
use bhav::nodes::lease::{Authority, Holder};
use bhav::nodes::relay::{Evening, Publisher, Update};
use bhav::nodes::valkey::Server;
use bhav::store::Epoch;
use jiff::SignedDuration;
use sonic_rs::JsonValueTrait;

use super::pair::{self, Pair};
use super::world::{LEASE_MS, Node, World, await_same, installation, leader_first, stop};
use crate::support::scrape::Scrape;
use crate::support::{TRADING, postgres, samples, until};

/// Sends a command as any client of the server can.
fn send(stream: &mut UnixStream, words: &[&[u8]]) {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).bytes());
        command.extend_from_slice(word);
        command.extend_from_slice(b"\r\n");
    }
    stream.write_all(&command).unwrap();
}

fn line(stream: &mut UnixStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.extend_from_slice(&byte);
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

/// The next message of the leader, which any client of the server can record.
fn record(world: &World) -> Vec<u8> {
    let mut stream = world.server.connect();
    send(&mut stream, &[b"SUBSCRIBE", b"bhav:main:relay"]);
    loop {
        if line(&mut stream) != "$7" || line(&mut stream) != "message" {
            continue;
        }
        (0..2).for_each(|_| drop(line(&mut stream)));
        let length: usize = line(&mut stream)[1..].parse().unwrap();
        let mut message = vec![0; length];
        stream.read_exact(&mut message).unwrap();
        return message;
    }
}

fn publish(world: &World, message: &[u8]) {
    let mut stream = world.server.connect();
    send(&mut stream, &[b"PUBLISH", b"bhav:main:relay", message]);
    assert!(line(&mut stream).starts_with(':'));
}

/// A node whose metrics can be read.
fn watched(world: &World, name: &str) -> Node {
    let mut config = world.config();
    config.admin.listen = "127.0.0.1:0".into();
    world.start_with(name, config)
}

fn distrusted(node: &Node, cause: &str) -> u64 {
    let sample = format!("bhav_distrusted_total{{reason=\"{cause}\"}}");
    Scrape::of(&node.service).find(&sample).unwrap_or_default() as u64
}

fn fresh(json: &sonic_rs::Value) -> bool {
    json["market"]["stale"] == false && json["market"]["source"] == "broker_a"
}

#[test]
fn a_price_of_a_stranger_is_counted_and_shown_by_nobody() {
    let name = "a_price_of_a_stranger_is_counted_and_shown_by_nobody";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    let nodes = leader_first(["a", "b"].map(|name| watched(&world, name)).into());
    let [leader, follower] = &nodes[..] else {
        unreachable!()
    };
    await_same("the same fresh snapshot", &[leader, follower], fresh);
    let recorded = record(&world);
    let at = memchr::memmem::find(&recorded, b"\"last_price\":\"").unwrap() + 14;
    let mut forged = recorded.clone();
    forged[at] = if recorded[at] == b'9' { b'8' } else { b'9' };
    // One of the next numbers, so that it is not an old one in any case.
    let mut next = forged.clone();
    next[46] += 1;
    for message in [&forged, &next, &recorded[..recorded.len() / 2].to_vec()] {
        publish(&world, message);
    }
    until("three forged ones", || distrusted(follower, "forged") == 3);
    assert_eq!(distrusted(follower, "unreadable") + distrusted(follower, "replayed"), 0);
    publish(&world, &recorded);
    await_same("the leader's prices", &[leader, follower], fresh);
    let health = follower.health();
    assert_eq!(health["relay"]["gaps"].as_u64(), Some(0), "{health}");
    stop(nodes);
}

/// The rules of a leader.
fn rules() -> FreshnessRules {
    let limits = |period_ms| Limits {
        period_ms,
        grace_ms: 3_000,
    };
    let (moving, resting) = (limits(1_000), limits(60_000));
    let of = SourceRules {
        moving,
        resting,
        rests_for_ms: None,
        round: 0,
    };
    FreshnessRules {
        sources: [of, of],
        spoken_for_ms: None,
    }
}

#[test]
fn a_price_of_tomorrow_is_refused_also_from_a_leader() {
    let name = "a_price_of_tomorrow_is_refused_also_from_a_leader";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    world.rows.set_away(true);
    let follower = watched(&world, "b");
    let server = std::sync::Arc::new(Server::new(world.server.address(), None, None).unwrap());
    let leader = Publisher::new(&server, &installation(), "a");
    let tell = |price: &str, ahead: SignedDuration| {
        let now = world.scene.clock.now();
        let quote = Quote {
            asked: now,
            ..samples::quote("NSE:INFY", price, now + ahead)
        };
        let mut update = Update::new(rules(), Evening::default());
        update.add_quote(
            quote,
            Vouched {
                mono_ms: 0,
                calls: 1,
            },
            0,
        );
        assert_eq!(leader.publish(Epoch(1), update), Ok(()));
    };
    tell("8765.5", SignedDuration::from_hours(20));
    until("refused", || distrusted(&follower, "ahead") > 0);
    until("the price of today", || {
        tell("1500.25", SignedDuration::ZERO);
        let shown = follower.service.prices("NSE:INFY").text().to_owned();
        assert!(!shown.contains("8765.5"), "{shown}");
        shown.contains("1500.25").then_some(()).ok_or(shown)
    });
    stop(vec![follower]);
}

#[test]
fn a_database_behind_the_fence_is_raised_above_it_at_once() {
    let name = "a_database_behind_the_fence_is_raised_above_it_at_once";
    let Some(world) = World::at(name, TRADING) else {
        return;
    };
    // The last leader had epoch 51, and the row counts from 0 again.
    let server = std::sync::Arc::new(Server::new(world.server.address(), None, None).unwrap());
    let claim = ValkeyClaim::new(&server, &installation(), LEASE_MS);
    let holder = Holder::new("before", 1);
    claim.take(&holder, Epoch(51)).unwrap();
    claim.release(&holder).unwrap();
    let nodes = leader_first(["a", "b"].map(|name| watched(&world, name)).into());
    await_same("the same fresh snapshot", &[&nodes[0], &nodes[1]], fresh);
    for node in &nodes {
        assert_eq!(node.health()["epoch"].as_u64(), Some(52), "{}", node.health());
        let refused = Scrape::of(&node.service).find("bhav_fenced_total{where=\"relay\"}");
        assert_eq!(refused, Some(0.0), "no leadership was dropped");
    }
    // The row goes back once more, below the leader's epoch. The leader then has only its claim.
    world.rows.go_back(3);
    until("a new epoch", || nodes[0].health()["epoch"].as_u64() == Some(53));
    await_same("the next snapshot", &[&nodes[0], &nodes[1]], fresh);
    assert!(nodes[0].leads());
    stop(nodes);
}

#[test]
fn two_databases_on_one_shared_server_neither_hear_nor_block_each_other() {
    let name = "two_databases_on_one_shared_server_neither_hear_nor_block_each_other";
    let Some(pair) = Pair::start(name, true) else {
        return;
    };
    let state = tempfile::tempdir().unwrap();
    let mut config = pair.config.clone();
    let server = postgres::server().unwrap();
    let url = server.url(&server.fresh_role());
    config.store.url = Some(bhav::store::settings::StoreUrl::parse(&url).unwrap());
    config.admin.listen = "127.0.0.1:0".into();
    config.auth.jwt_secret = Some("the key of another installation of these".into());
    let staging = pair::start(&pair.scene, &config, "staging", state.path());
    let role = |node: &crate::support::Service| node.health()["role"].as_str().unwrap().to_owned();
    until("a leader of each", || {
        let roles = [&pair.a, &pair.b, &staging].map(role);
        let leaders = roles[..2].iter().filter(|role| *role == "leader").count();
        (leaders == 1 && roles[2] == "leader")
            .then_some(())
            .ok_or(format!("{roles:?}"))
    });
    let distrusted = Scrape::of(&staging).find("bhav_distrusted_total{reason=\"forged\"}");
    assert_eq!(distrusted, Some(0.0), "it heard nothing of theirs");
    staging.stop();
    pair.stop();
}
