//! Users' accounts on two nodes that share a database.

use bhav::base::{Clock, ManualClock};
use bhav::sim::SimSettings;
use bhav::store::{self, UserChange};
use sonic_rs::JsonValueTrait;

use super::pair::{Pair, Stopped, ask};
use crate::support::postgres::{self, Server};
use crate::support::{SNAPSHOT, Scene, Service, TRADING, bearer, until};

const PASSWORD: &str = "a password for nodes";
const OTHER_PASSWORD: &str = "another one for nodes";

/// The status of a request with the token at the node.
fn status(node: &Service, token: &str) -> u16 {
    node.client()
        .request("GET", "/api/journal", &bearer(token))
        .status
}

fn change_password(node: &Service, token: &str, old: &str, new: &str) -> String {
    let body = format!(r#"{{"current_password":"{old}","new_password":"{new}"}}"#);
    ask(node, "POST", "/api/auth/password", token, &body)
        .with_status(200)
        .field("access_token")
}

/// Runs through all changes of a token, with or without messages between the nodes.
fn what_one_node_changes_holds_on_the_other(pair: &Pair) {
    let Pair { a, b, .. } = pair;
    // A node that does not know a user checks the database before it refuses.
    let first = a.register("a@example.com", PASSWORD);
    assert_eq!((status(a, &first), status(b, &first)), (200, 200));
    let on_b = b.register("b@example.com", PASSWORD);
    assert_eq!((status(a, &on_b), status(b, &on_b)), (200, 200));

    let login = r#"{"email":"a@example.com","password":"a password for nodes"}"#;
    let second = b.post("/api/auth/login", "", login).field("access_token");
    assert_eq!(ask(a, "POST", "/api/auth/logout", &first, "").status, 200);
    assert_eq!(status(a, &first), 401);
    until("the logout at the other", || status(b, &first) == 401);
    assert_eq!((status(a, &second), status(b, &second)), (200, 200), "that token alone");

    // A node that has seen the newer token refuses the older ones.
    let third = change_password(a, &second, PASSWORD, OTHER_PASSWORD);
    assert_eq!((status(b, &third), status(b, &second)), (200, 401));
    let fourth = change_password(b, &third, OTHER_PASSWORD, PASSWORD);
    until("the new password at the other", || status(a, &third) == 401);
    assert_eq!((status(a, &fourth), status(b, &fourth)), (200, 200));

    let everywhere = r#"{"everywhere":true}"#;
    assert_eq!(ask(b, "POST", "/api/auth/logout", &fourth, everywhere).status, 200);
    assert_eq!(status(b, &fourth), 401);
    until("the logout everywhere at the other", || status(a, &fourth) == 401);
    let fourth = a.post("/api/auth/login", "", login).field("access_token");
    assert_eq!((status(a, &fourth), status(b, &fourth)), (200, 200));

    let password = format!(r#"{{"password":"{PASSWORD}"}}"#);
    assert_eq!(ask(a, "DELETE", "/api/auth/account", &fourth, &password).status, 200);
    until("the erasure at the other", || status(b, &fourth) == 401);
    assert_eq!((status(a, &on_b), status(b, &on_b)), (200, 200));

    // An operator's command changes the database while both run.
    let mut users = store::UserDirectory::open("".as_ref(), &pair.config.store).unwrap();
    let id = users.find("b@example.com").unwrap().unwrap().id;
    let number = users
        .change(id, UserChange::Disable { now_ms: 1 })
        .unwrap()
        .unwrap();
    assert_eq!(users.noticed(number).unwrap(), None, "any number of nodes may run");
    until("the command at one", || status(a, &on_b) == 401);
    until("the command at the other", || status(b, &on_b) == 401);
    for node in [a, b] {
        let applied = until("everything applied", || node.health()["changes"]["applied"].as_i64());
        assert!(applied <= number, "{applied} of {number}");
        until("the last one", || node.health()["changes"]["applied"].as_i64() == Some(number));
    }
}

#[test]
fn watch_lists_are_the_same_on_both_and_neither_undoes_the_other_s_change() {
    let name = "watch_lists_are_the_same_on_both_and_neither_undoes_the_other_s_change";
    let Some(pair) = Pair::start(name, false) else {
        return;
    };
    let Pair { a, b, .. } = &pair;
    let token = a.register("a@example.com", PASSWORD);
    let seen = |node: &Service| {
        let answer = ask(node, "GET", "/api/watchlists", &token, "").with_status(200);
        (answer.header("etag").unwrap().to_owned(), answer.text().to_owned())
    };
    let put = |node: &Service, tag: &str, name: &str| {
        let headers = format!("{}If-Match: {tag}\r\n", bearer(&token));
        let body = format!(r#"{{"watchlists":[{{"name":"{name}","symbols":["NSE:INFY"]}}]}}"#);
        node.client()
            .send_json("PUT", "/api/watchlists", &headers, &body)
            .status
    };
    let (tag, _) = seen(a);
    assert_eq!(seen(b).0, tag, "one state has one tag on every node");
    assert_eq!((put(a, &tag, "of a"), put(b, &tag, "of b")), (200, 412));
    let (tag, lists) = seen(b);
    assert!(lists.contains("of a"), "{lists}");
    assert_eq!(put(b, &tag, "of b"), 200);
    assert!(seen(a).1.contains("of b"));
    pair.stop();
}

#[test]
fn what_one_node_changes_of_an_account_holds_on_the_other() {
    let name = "what_one_node_changes_of_an_account_holds_on_the_other";
    let Some(pair) = Pair::start(name, true) else {
        return;
    };
    what_one_node_changes_holds_on_the_other(&pair);
    pair.stop();
}

#[test]
fn what_one_node_changes_of_an_account_holds_on_the_other_without_a_word() {
    let name = "what_one_node_changes_of_an_account_holds_on_the_other_without_a_word";
    let Some(pair) = Pair::start(name, false) else {
        return;
    };
    what_one_node_changes_holds_on_the_other(&pair);
    pair.stop();
}

#[test]
fn a_node_that_starts_later_refuses_what_was_revoked_before() {
    let Some(pair) = Pair::start("a_node_that_starts_later", false) else {
        return;
    };
    let (kept, over) = (pair.a.register("a@x.in", PASSWORD), pair.a.register("b@x.in", PASSWORD));
    assert_eq!(ask(&pair.a, "POST", "/api/auth/logout", &over, "").status, 200);
    let state = tempfile::tempdir().unwrap();
    let third = pair.start_third(state.path());
    assert_eq!((status(&third, &kept), status(&third, &over)), (200, 401));
    third.stop();
    pair.stop();
}

#[test]
fn a_node_that_cannot_read_changes_for_long_accepts_no_token_and_serves_prices() {
    let Some(_) = postgres::server() else { return };
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let clock: ManualClock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(
        clock,
        SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        },
    );
    let pair = Pair::on(scene, &own, None);
    let (kept, over) = (pair.a.register("a@x.in", PASSWORD), pair.a.register("b@x.in", PASSWORD));
    assert_eq!(ask(&pair.a, "POST", "/api/auth/logout", &over, "").status, 200);
    until("the logout at the other", || status(&pair.b, &over) == 401);
    assert_eq!(status(&pair.b, &kept), 200);
    until("prices", || {
        pair.scene.advance_ms(250);
        pair.b.get(SNAPSHOT).status == 200
    });
    let code = |token: &str| {
        let answer = pair
            .b
            .client()
            .request("GET", "/api/journal", &bearer(token));
        (answer.status, answer.field("code"))
    };
    let stopped = Stopped::now(&own);
    let (late, away) = ("store_late".to_owned(), "store_unavailable".to_owned());
    // The token is accepted, and the journal read waits for the database.
    assert_eq!(code(&kept), (503, late));
    pair.scene.advance_ms(31_000);
    assert_eq!(code(&kept), (503, away.clone()));
    // Requests no longer wait for the database.
    let watch = Clock::system();
    assert_eq!(code(&kept), (503, away));
    assert!(watch.monotonic_ms() < 1_000, "it was asked again: {} ms", watch.monotonic_ms());
    assert_eq!(code(&over).0, 401, "what is known to be over stays so");
    until("its own word of it", || {
        let health = pair.b.health();
        let age_ms = health["changes"]["age_ms"].as_u64();
        let told = age_ms > Some(30_000) && health["status"] == "degraded";
        told.then_some(()).ok_or(health.to_string())
    });
    assert_eq!(pair.b.get(SNAPSHOT).status, 200, "prices need no account");
    drop(stopped);
    until("the database again", || {
        pair.scene.advance_ms(1_000);
        status(&pair.b, &kept) == 200
    });
    assert_eq!(status(&pair.b, &over), 401);
    pair.stop();
}
