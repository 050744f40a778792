//! Tests that one user's syncs and deletions run one after the other on two nodes with one
//! database.

use bhav::base::{Clock, ManualClock};
use bhav::sim::SimSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use super::pair::{Pair, ask};
use crate::support::{Answer, Scene, Service, TRADING, postgres, until};

const PASSWORD: &str = "a password for nodes";
const DATA: &str = "/api/portfolio/data";
/// Longer than anything that happens while broker A answers.
const DELAY: &str = r#"{"kind":"delay","delay_ms":3000,"count":1}"#;
/// Longer than a sync may wait for its turn.
const WAIT_MS: i64 = 26_000;

fn sync_a(scene: &Scene, node: &Service, token: &str) -> Answer {
    let code = scene.request_token();
    let body =
        format!(r#"{{"api_key":"simkeya","api_secret":"simsecreta","request_token":"{code}"}}"#);
    ask(node, "POST", "/api/portfolio/sync", token, &body)
}

fn sync_b(scene: &Scene, node: &Service, token: &str) -> Answer {
    let code = scene.api_session();
    let body =
        format!(r#"{{"api_key":"sim+key=b&1","api_secret":"simsecretb","api_session":"{code}"}}"#);
    ask(node, "POST", "/api/portfolio/brokerb-sync", token, &body)
}

fn holdings(node: &Service, token: &str) -> usize {
    let answer = ask(node, "GET", "/api/portfolio/holdings", token, "").with_status(200);
    answer.json()["holdings"].as_array().unwrap().len()
}

/// Number of calls of these routes that the simulator received.
fn calls(stats: &Value, routes: &[&str]) -> u64 {
    routes
        .iter()
        .map(|route| stats["requests"][*route].as_u64().unwrap_or(0))
        .sum()
}

/// Runs a statement in the database, to change rows as time or another node would.
fn execute(pair: &Pair, statement: &str) -> String {
    let server = postgres::server().unwrap();
    server
        .execute(&pair.role, statement)
        .unwrap()
        .trim()
        .to_owned()
}

/// Waits until the node has asked for a turn a few times.
fn until_asked(node: &Service) {
    let state = node.0.server().shared().service.state();
    let writes = || state.store.health().writer.committed;
    let before = writes();
    until("a node that asks for a turn", || writes() >= before + 3);
}

/// Adds a turn of the first user, as left by a dead node.
fn leave_turn(pair: &Pair, ends: &str) {
    let row = "INSERT INTO turns (user_id, holder, number, until) SELECT min(id), 'gone', 7,";
    execute(pair, &format!("{row} {ends} FROM users"));
}

#[test]
fn two_syncs_of_one_user_on_two_nodes_take_turns() {
    let Some(pair) = Pair::start("two_syncs_on_two_nodes", false) else {
        return;
    };
    let Pair { a, b, scene, .. } = &pair;
    let token = a.register("a@example.com", PASSWORD);
    assert_eq!(holdings(b, &token), 0);
    scene.fault("broker_a.holdings", DELAY);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| sync_a(scene, a, &token));
        until("broker A to be asked", || calls(&scene.stats(), &["broker_a.holdings"]) == 1);
        let second = scope.spawn(|| sync_b(scene, b, &token));
        until_asked(b);
        let mut seen = 0;
        while !(first.is_finished() && second.is_finished()) {
            let stats = scene.stats();
            if calls(&stats, &["broker_a.positions"]) == 0 {
                let broker_b = ["broker_b.customerdetails", "broker_b.dematholdings"];
                assert_eq!(calls(&stats, &broker_b), 0, "{stats}");
                seen += 1;
            }
        }
        assert!(seen > 0, "the second waited while the first one's broker answered");
        for answer in [first, second].map(|sync| sync.join().unwrap()) {
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    let count = holdings(a, &token);
    assert!(count > 0);
    assert_eq!(holdings(b, &token), count);
    assert_eq!(execute(&pair, "SELECT number, holder FROM turns"), "2|", "two turns, both over");
    pair.stop();
}

#[test]
fn a_node_that_is_gone_blocks_its_user_until_the_turn_runs_out_and_nobody_else() {
    let Some(pair) = Pair::start("a_node_that_is_gone_in_its_turn", false) else {
        return;
    };
    let Pair { a, b, scene, .. } = &pair;
    let (token, other) = (a.register("a@x.in", PASSWORD), a.register("b@x.in", PASSWORD));
    leave_turn(&pair, "'infinity'");
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| sync_b(scene, b, &token));
        until_asked(b);
        for node in [a, b] {
            sync_a(scene, node, &other).with_status(200);
        }
        assert!(!blocked.is_finished());
        execute(&pair, "UPDATE turns SET until = clock_timestamp() WHERE holder = 'gone'");
        blocked.join().unwrap().with_status(200);
    });
    assert_eq!(execute(&pair, "SELECT max(number) FROM turns"), "8", "taken over");
    pair.stop();
}

#[test]
fn a_sync_that_lost_its_turn_stores_nothing_and_says_so() {
    let Some(pair) = Pair::start("a_sync_that_lost_its_turn", false) else {
        return;
    };
    let Pair { a, b, scene, .. } = &pair;
    let token = a.register("a@example.com", PASSWORD);
    scene.fault("broker_a.holdings", DELAY);
    let answer = std::thread::scope(|scope| {
        let late = scope.spawn(|| sync_a(scene, a, &token));
        until("broker A to be asked", || calls(&scene.stats(), &["broker_a.holdings"]) == 1);
        execute(&pair, "UPDATE turns SET until = clock_timestamp()");
        assert_eq!(ask(b, "DELETE", DATA, &token, "").status, 200, "another change comes first");
        late.join().unwrap()
    });
    answer.expect_problem(503, "store_busy");
    assert!(answer.header("retry-after").is_some());
    assert_eq!((holdings(a, &token), holdings(b, &token)), (0, 0));
    assert_eq!(sync_a(scene, a, &token).status, 200, "with another code");
    pair.stop();
}

#[test]
fn who_waits_too_long_for_another_node_is_refused_as_on_one_node() {
    if postgres::server().is_none() {
        return;
    }
    let clock: ManualClock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(
        clock,
        SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        },
    );
    let pair = Pair::on(scene, postgres::server().unwrap(), None);
    let token = pair.a.register("a@example.com", PASSWORD);
    leave_turn(&pair, "'infinity'");
    let refused = std::thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&pair.b, "DELETE", DATA, &token, ""));
        until_asked(&pair.b);
        pair.scene.advance_ms(WAIT_MS);
        waits.join().unwrap()
    });
    refused.expect_problem(409, "sync_in_progress");
    assert!(refused.header("retry-after").is_some());
    let state = pair.b.0.server().shared().service.state();
    assert_eq!(state.portfolio.locks.refused.value(), 1);
    pair.stop();
}
