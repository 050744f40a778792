//! Two nodes on a PostgreSQL server with a streaming standby, which is promoted.

use std::sync::atomic::{AtomicBool, Ordering};

use bhav::base::Clock;
use rustix::process::Signal;

use super::going_back::{PASSWORD, log_in, stay_closed};
use super::pair::{Pair, ask};
use crate::support::postgres::{self, Server};
use crate::support::{Scene, Service, SharedServer, TRADING, bearer, until};

/// Both nodes must write to the standby within this time of its promotion. A node retries after at
/// most five seconds, and other tests slow down the machine.
const WRITES_WITHIN_MS: u64 = 15_000;

/// A primary and its standby.
struct Servers {
    primary: Server,
    standby: Server,
}

impl Servers {
    fn start() -> Self {
        let primary = Server::start_at(5432, |_| (), &["listen_addresses="]);
        let standby = primary.start_standby();
        Self { primary, standby }
    }

    /// The URL that leads to the server that accepts writes.
    fn url(&self, role: &str) -> String {
        let place = |server: &Server| server.directory.display().to_string().replace('/', "%2F");
        let (one, two) = (place(&self.primary), place(&self.standby));
        format!("postgres://{role}@{one}:5432,{two}:5432/postgres?target_session_attrs=read-write")
    }

    /// From now on the primary acknowledges only commits that the standby has.
    fn synchronise(&self) {
        let set = |statement| self.primary.execute("bhav", statement).unwrap();
        set("ALTER SYSTEM SET synchronous_standby_names = '*'");
        set("SELECT pg_reload_conf()");
        until("a synchronous standby", || {
            set("SELECT sync_state FROM pg_stat_replication").trim() == "sync"
        });
    }

    /// From now on the standby gets no further changes.
    fn part(&self) {
        let at = self
            .primary
            .execute("bhav", "SELECT pg_current_wal_flush_lsn()")
            .unwrap();
        let has = format!("SELECT pg_last_wal_replay_lsn() >= '{}'", at.trim());
        until("the standby to have all", || {
            self.standby.execute("bhav", &has).unwrap().trim() == "t"
        });
        let on_standby = |statement| self.standby.execute("bhav", statement).unwrap();
        on_standby("ALTER SYSTEM SET primary_conninfo = ''");
        on_standby("SELECT pg_reload_conf()");
        until("the end of the replication", || {
            on_standby("SELECT count(*) FROM pg_stat_wal_receiver").trim() == "0"
        });
    }

    fn fail_over(&self) {
        self.primary.signal(Signal::KILL);
        self.standby.execute("bhav", "SELECT pg_promote()").unwrap();
    }
}

fn status(node: &Service, token: &str) -> u16 {
    node.client()
        .request("GET", "/api/journal", &bearer(token))
        .status
}

fn write(node: &Service, token: &str, note: &str) -> bool {
    let body = format!(
        r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,"price":9,
            "notes":"{note}"}}"#
    );
    ask(node, "POST", "/api/journal", token, &body).status == 201
}

/// The journal has each of these entries once.
fn expect_entries(node: &Service, token: &str, entries: &[(String, u64)]) {
    let journal = node
        .client()
        .request("GET", "/api/journal?limit=100", &bearer(token));
    assert_eq!(journal.status, 200, "{}", journal.text());
    for (note, _) in entries {
        let found = journal.text().matches(note.as_str()).count();
        assert_eq!(found, 1, "{note} in {}", journal.text());
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over() {
    let Some(_) = postgres::server() else { return };
    let name = "nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over";
    let Some(shared) = SharedServer::start(name) else {
        return;
    };
    let servers = Servers::start();
    servers.synchronise();
    let role = servers.primary.fresh_role();
    let url = servers.url(&role);
    let pair = Pair::at(Scene::at(TRADING), &url, role, Some(shared));
    let users = ["a@x.in", "b@x.in"].map(|email| pair.a.register(email, PASSWORD));
    let over = pair.b.register("c@x.in", PASSWORD);
    assert_eq!(ask(&pair.a, "POST", "/api/auth/logout", &over, "").status, 200);
    until("the logout at the other", || status(&pair.b, &over) == 401);

    let (timer, goes_on) = (Clock::system(), AtomicBool::new(true));
    // Writes until the test ends it; returns the acknowledged entries and their times.
    let writer = |node: &Service, token: &str| {
        let mut acknowledged = Vec::new();
        for number in 0.. {
            if !goes_on.load(Ordering::Relaxed) {
                break;
            }
            let note = format!("entry {number}.");
            if acknowledged.len() < 90 && write(node, token, &note) {
                acknowledged.push((note, timer.monotonic_ms()));
            }
        }
        acknowledged
    };
    let (promoted_ms, acknowledged) = std::thread::scope(|scope| {
        let nodes = [&pair.a, &pair.b];
        let writers: Vec<_> = (0..2)
            .map(|at| {
                let (node, token, writer) = (nodes[at], &users[at], &writer);
                scope.spawn(move || writer(node, token))
            })
            .collect();
        let entries = |node: &Service, token: &str| {
            let journal = node.client().request("GET", "/api/journal", &bearer(token));
            journal.text().matches("\"notes\"").count()
        };
        until("writes at both", || (0..2).all(|at| entries(nodes[at], &users[at]) >= 5));
        servers.fail_over();
        let promoted_ms = timer.monotonic_ms();
        let later = |at: usize| write(nodes[at], &users[at], "after the promotion");
        until("writes at one", || later(0));
        until("writes at the other", || later(1));
        let took_ms = timer.monotonic_ms() - promoted_ms;
        assert!(took_ms < WRITES_WITHIN_MS, "{took_ms} ms");
        goes_on.store(false, Ordering::Relaxed);
        let written = writers.into_iter().map(|writer| writer.join().unwrap());
        (promoted_ms, written.collect::<Vec<_>>())
    });
    for (token, acknowledged) in users.iter().zip(&acknowledged) {
        assert!(acknowledged.iter().any(|(_, at_ms)| *at_ms < promoted_ms));
        expect_entries(&pair.a, token, acknowledged);
    }
    for node in [&pair.a, &pair.b] {
        assert!(users.iter().all(|token| status(node, token) == 200), "nothing was lost");
        assert_eq!(status(node, &over), 401);
        until("its own word of it", || node.health()["database"] == "ok");
    }
    pair.b.register("d@x.in", PASSWORD);
    pair.stop();
}

#[test]
fn an_asynchronous_standby_ends_the_tokens_of_accounts_that_it_lacks() {
    let Some(_) = postgres::server() else { return };
    let name = "an_asynchronous_standby_ends_the_tokens_of_accounts_that_it_lacks";
    let Some(shared) = SharedServer::start(name) else {
        return;
    };
    let servers = Servers::start();
    let role = servers.primary.fresh_role();
    let url = servers.url(&role);
    let pair = Pair::at(Scene::at(TRADING), &url, role, Some(shared));
    let nodes = [&pair.a, &pair.b];
    let kept = pair.a.register("kept@example.com", PASSWORD);
    until("it at both", || nodes.iter().all(|node| status(node, &kept) == 200));
    servers.part();
    let lost = ["a@x.in", "b@x.in"].map(|email| pair.a.register(email, PASSWORD));
    let over = log_in(&pair.b, "kept");
    assert_eq!(ask(&pair.b, "POST", "/api/auth/logout", &over, "").status, 200);
    until("the logout at both", || nodes.iter().all(|node| status(node, &over) == 401));
    let is_known = |node: &&Service| lost.iter().all(|token| status(node, token) == 200);
    until("the lost ones at both", || nodes.iter().all(is_known));
    servers.fail_over();
    // Who registers before anybody has read that the database went back keeps the login, and it is
    // good on the other node at once.
    let early = until("a registration", || {
        let body = format!(r#"{{"email":"early@x.in","password":"{PASSWORD}"}}"#);
        let answer = pair.a.post("/api/auth/register", "", &body);
        (answer.status == 201).then(|| answer.field("access_token"))
    });
    until("no 503 at the other", || status(&pair.b, &early) != 503);
    assert_eq!(status(&pair.b, &early), 200);
    // The tokens must be refused once a node reads the database again.
    let timer = Clock::system();
    stay_closed(&nodes, &lost);
    let took_ms = timer.monotonic_ms();
    assert!(took_ms < 2 * WRITES_WITHIN_MS, "{took_ms} ms");
    assert!(nodes.iter().all(|node| status(node, &over) == 401), "nobody opens it again");
    assert!(
        nodes.iter().all(|node| status(node, &early) == 200),
        "what was issued since stays"
    );
    pair.stop();
}
