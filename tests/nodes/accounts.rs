//! Users' accounts on two nodes that share a database.

use bhav::app::App;
use bhav::base::{Clock, ManualClock};
use bhav::config::Config;
use bhav::sim::SimSettings;
use bhav::store::url::StoreUrl;
use bhav::store::{self, UserChange};
use rustix::process::Signal;
use sonic_rs::JsonValueTrait;

use crate::support::postgres::{self, Server};
use crate::support::{Answer, SNAPSHOT, Scene, Service, SharedServer, TRADING, bearer, until};

const PASSWORD: &str = "a password for nodes";
const OTHER_PASSWORD: &str = "another one for nodes";

/// Two nodes on one database of a server.
struct Pair {
    a: Service,
    b: Service,
    scene: Scene,
    config: Config,
    /// Lets the nodes tell each other.
    _shared: Option<SharedServer>,
    _states: [tempfile::TempDir; 2],
}

impl Pair {
    fn on(scene: Scene, server: &Server, shared: Option<SharedServer>) -> Self {
        let mut config = scene.config();
        let role = server.fresh_role();
        config.store.url = Some(StoreUrl::parse(&server.url(&role)).unwrap());
        config.auth.jwt_secret = Some("a key that all the nodes know, as they must".into());
        config.valkey.url = shared.as_ref().map(SharedServer::address);
        let states = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let start = |at: usize, name: &str| {
            let mut config = config.clone();
            config.state_dir = states[at].path().into();
            config.nodes.name = Some(name.into());
            Service::of(App::start(&config, &scene.clock).unwrap())
        };
        let (a, b) = (start(0, "a"), start(1, "b"));
        Self { a, b, scene, config, _shared: shared, _states: states }
    }

    /// `None` where the engines are not there; says then which test is left out.
    fn start(test: &str, tells: bool) -> Option<Self> {
        let server = postgres::server()?;
        let shared = if tells { Some(SharedServer::start(test)?) } else { None };
        Some(Self::on(Scene::at(TRADING), server, shared))
    }

    fn stop(self) {
        self.a.stop();
        self.b.stop();
    }
}

fn ask(node: &Service, method: &str, target: &str, token: &str, body: &str) -> Answer {
    node.client().send_json(method, target, &bearer(token), body)
}

/// How the node takes the token.
fn status(node: &Service, token: &str) -> u16 {
    node.client().request("GET", "/api/journal", &bearer(token)).status
}

fn change_password(node: &Service, token: &str, old: &str, new: &str) -> String {
    let body = format!(r#"{{"current_password":"{old}","new_password":"{new}"}}"#);
    let answer = ask(node, "POST", "/api/auth/password", token, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.field("access_token")
}

/// Everything that can happen to a token, with or without a way to tell the other node.
fn what_one_node_changes_holds_on_the_other(pair: &Pair) {
    let Pair { a, b, .. } = pair;
    // A node that has never heard of a user looks before it refuses.
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

    // Where the newer token is used, the older ones are known to be over.
    let third = change_password(a, &second, PASSWORD, OTHER_PASSWORD);
    assert_eq!((status(b, &third), status(b, &second)), (200, 401));
    let fourth = change_password(b, &third, OTHER_PASSWORD, PASSWORD);
    until("the new password at the other", || status(a, &third) == 401);
    assert_eq!((status(a, &fourth), status(b, &fourth)), (200, 200));

    let password = format!(r#"{{"password":"{PASSWORD}"}}"#);
    assert_eq!(ask(a, "DELETE", "/api/auth/account", &fourth, &password).status, 200);
    until("the erasure at the other", || status(b, &fourth) == 401);
    assert_eq!((status(a, &on_b), status(b, &on_b)), (200, 200));

    // An operator's command changes the database beside both.
    let mut users = store::open_users("".as_ref(), &pair.config.store).unwrap();
    let id = users.find("b@example.com").unwrap().unwrap().id;
    let number = users.change(id, UserChange::Disable { now_ms: 1 }).unwrap().unwrap();
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
fn what_one_node_changes_of_an_account_holds_on_the_other() {
    let name = "what_one_node_changes_of_an_account_holds_on_the_other";
    let Some(pair) = Pair::start(name, true) else { return };
    what_one_node_changes_holds_on_the_other(&pair);
    pair.stop();
}

#[test]
fn what_one_node_changes_of_an_account_holds_on_the_other_without_a_word() {
    let name = "what_one_node_changes_of_an_account_holds_on_the_other_without_a_word";
    let Some(pair) = Pair::start(name, false) else { return };
    what_one_node_changes_holds_on_the_other(&pair);
    pair.stop();
}

#[test]
fn a_node_that_starts_later_refuses_what_was_revoked_before() {
    let Some(pair) = Pair::start("a_node_that_starts_later", false) else { return };
    let (kept, over) = (pair.a.register("a@x.in", PASSWORD), pair.a.register("b@x.in", PASSWORD));
    assert_eq!(ask(&pair.a, "POST", "/api/auth/logout", &over, "").status, 200);
    let mut config = pair.config.clone();
    let state = tempfile::tempdir().unwrap();
    config.state_dir = state.path().into();
    let third = Service::of(App::start(&config, &pair.scene.clock).unwrap());
    assert_eq!((status(&third, &kept), status(&third, &over)), (200, 401));
    third.stop();
    pair.stop();
}

/// Goes on where it is dropped, so that the server can be ended.
struct Stopped<'a>(&'a Server);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}

#[test]
fn a_node_that_cannot_read_changes_for_long_accepts_no_token_and_serves_prices() {
    let Some(_) = postgres::server() else { return };
    let own = Server::start_at(5432, |_| (), &["listen_addresses="]);
    let clock: ManualClock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock, SimSettings { rate_limits: false, ..SimSettings::default() });
    let pair = Pair::on(scene, &own, None);
    let (kept, over) = (pair.a.register("a@x.in", PASSWORD), pair.a.register("b@x.in", PASSWORD));
    assert_eq!(ask(&pair.a, "POST", "/api/auth/logout", &over, "").status, 200);
    until("the logout at the other", || status(&pair.b, &over) == 401);
    assert_eq!(status(&pair.b, &kept), 200);
    let code = |token: &str| {
        let answer = pair.b.client().request("GET", "/api/journal", &bearer(token));
        (answer.status, answer.field("code"))
    };
    let stopped = Stopped(&own);
    own.signal(Signal::STOP);
    let (late, away) = ("store_late".to_owned(), "store_unavailable".to_owned());
    // The token is accepted, and the database is asked for the journal.
    assert_eq!(code(&kept), (503, late));
    pair.scene.advance_ms(31_000);
    assert_eq!(code(&kept), (503, away.clone()));
    // Nobody waits for the database any more.
    let watch = Clock::system();
    assert_eq!(code(&kept), (503, away));
    assert!(watch.monotonic_ms() < 1_000, "it was asked again: {} ms", watch.monotonic_ms());
    assert_eq!(code(&over).0, 401, "what is known to be over stays so");
    let health = pair.b.health();
    assert!(health["changes"]["age_ms"].as_u64().is_some_and(|age_ms| age_ms > 30_000), "{health}");
    assert_eq!(health["status"], "degraded", "{health}");
    assert_eq!(pair.b.get(SNAPSHOT).status, 200, "prices need no account");
    drop(stopped);
    until("the database again", || {
        pair.scene.advance_ms(1_000);
        status(&pair.b, &kept) == 200
    });
    assert_eq!(status(&pair.b, &over), 401);
    pair.stop();
}
