//! `kill -9` at any moment: an answered change is complete after the next start. An unanswered one
//! is complete or absent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Client, Program, Scene, TRADING, bearer, say, serve, until};
use fastrand::Rng;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

const ROUNDS: u64 = 32;
/// With the rounds that follow while something has not been answered yet.
const ROUNDS_MAX: u64 = ROUNDS + 8;
/// Journals written at the same time, one per user.
const WRITERS: usize = 6;
/// A round ends after a number of answers in this range, or a few more.
const ANSWERS_MIN: u64 = 5;
const ANSWERS_MAX: u64 = 300;
/// Rows of the simulated account.
const HOLDINGS: usize = 12;

/// A client's request whose answer may be missing in the end.
#[derive(Clone)]
enum Act {
    Add(String),
    Replace(i64, String),
    Remove(i64),
}

/// One user's journal as its client knows it: notes by entry.
#[derive(Default)]
struct Writer {
    token: String,
    entries: BTreeMap<i64, String>,
    /// The request without an answer.
    open: Option<Act>,
    number: u64,
}

/// One user's portfolio: stored with this time of sync, or deleted.
#[derive(Default)]
struct Owner {
    token: String,
    synced_at: Option<String>,
    open: Option<bool>,
    keys: u64,
}

#[derive(Default)]
struct Tally {
    registered: u64,
    erased: u64,
    written: u64,
    synced: u64,
    deleted: u64,
    unanswered: u64,
    kept: u64,
}

/// Status and body of the answer; `None` if the server died.
fn ask(
    client: &mut Client,
    method: &str,
    target: &str,
    token: &str,
    body: &str,
) -> Option<(u16, String)> {
    let length = body.len();
    let auth = if token.is_empty() {
        String::new()
    } else {
        bearer(token)
    };
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: bhav\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{auth}\r\n{body}"
    );
    client.try_write(text.as_bytes()).ok()?;
    let answer = client.try_answer().ok()?;
    Some((answer.status, String::from_utf8(answer.body).ok()?))
}

fn json(text: &str) -> Value {
    sonic_rs::from_str(text).unwrap()
}

fn entry(note: &str) -> String {
    format!(
        r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,"price":2,
        "notes":"{note}"}}"#
    )
}

fn start(scene: &Scene) -> Program {
    let unlimited =
        ["login", "registration", "sync"].map(|what| format!("--{what}-attempts-per-minute=0"));
    Program::of(serve(scene, scene.state.path()).args(unlimited))
}

impl Writer {
    /// Writes until the server is gone.
    fn run(&mut self, address: &str, answers: &AtomicU64, rng: &mut Rng) -> Option<()> {
        let mut client = Client::try_connect(address).ok()?;
        loop {
            self.number += 1;
            let note = format!("note {}", self.number);
            let ids: Vec<i64> = self.entries.keys().copied().collect();
            let act = match (rng.u8(..10), rng.choice(&ids)) {
                (0..=1, Some(id)) => Act::Remove(*id),
                (2..=4, Some(id)) => Act::Replace(*id, note),
                _ => Act::Add(note),
            };
            self.open = Some(act.clone());
            let path = |id: &i64| format!("/api/journal/{id}");
            let (method, target, body, expected) = match &act {
                Act::Add(note) => ("POST", "/api/journal".to_owned(), entry(note), 201),
                Act::Replace(id, note) => ("PUT", path(id), entry(note), 200),
                Act::Remove(id) => ("DELETE", path(id), String::new(), 200),
            };
            let (status, said) = ask(&mut client, method, &target, &self.token, &body)?;
            assert_eq!(status, expected, "{method} {target}: {said}");
            self.open = None;
            let id = json(&said)["id"].as_i64();
            apply(&mut self.entries, act, id.unwrap_or_default());
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Compares the answered requests with the stored data. True if the open request is stored too.
    fn check(&mut self, found: &Value) -> bool {
        let entries = found["journal"].as_array().unwrap().iter();
        let there: BTreeMap<i64, String> = entries
            .map(|entry| {
                (entry["id"].as_i64().unwrap(), entry["notes"].as_str().unwrap().to_owned())
            })
            .collect();
        let before = std::mem::replace(&mut self.entries, there.clone());
        let Some(act) = self.open.take() else {
            assert_eq!(there, before);
            return false;
        };
        if there == before {
            return false;
        }
        let mut after = before;
        let newest = there.keys().last().copied().unwrap_or_default();
        apply(&mut after, act, newest);
        assert_eq!(there, after, "neither as answered nor with the open write");
        true
    }
}

fn apply(entries: &mut BTreeMap<i64, String>, act: Act, id: i64) {
    match act {
        Act::Add(note) => entries.insert(id, note),
        Act::Replace(id, note) => entries.insert(id, note),
        Act::Remove(id) => entries.remove(&id),
    };
}

impl Owner {
    /// Syncs and deletes alternately until the server is gone. Returns how many of each were
    /// answered.
    fn run(
        &mut self,
        scene: &Scene,
        address: &str,
        answers: &AtomicU64,
        tally: &mut Tally,
    ) -> Option<()> {
        let mut client = Client::try_connect(address).ok()?;
        loop {
            let sync = self.synced_at.is_none() || !self.keys.is_multiple_of(3);
            self.keys += 1;
            let (method, target, body) = if sync {
                let minted = scene.control("POST", "broker_a/request_token", "{}").json();
                let token = minted["request_token"].as_str().unwrap().to_owned();
                let body = format!(
                    r#"{{"api_key":"simkeya-{}","api_secret":"simsecreta",
                    "request_token":"{token}"}}"#,
                    self.keys
                );
                ("POST", "/api/portfolio/sync", body)
            } else {
                ("DELETE", "/api/portfolio/data", String::new())
            };
            self.open = Some(sync);
            let (status, said) = ask(&mut client, method, target, &self.token, &body)?;
            self.open = None;
            if sync && status == 429 {
                // One user has a share of the broker's calls. Nothing was changed.
                assert_eq!(json(&said)["code"], "calls_held_back", "{said}");
                continue;
            }
            assert_eq!(status, 200, "{target}: {said}");
            let synced_at = json(&said)["synced_at"].as_str().map(str::to_owned);
            *(if sync {
                &mut tally.synced
            } else {
                &mut tally.deleted
            }) += 1;
            self.synced_at = synced_at;
            answers.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn check(&mut self, found: &Value) -> bool {
        let count = |name: &str| found[name].as_array().unwrap().len();
        let synced_at = found["syncs"][0]["synced_at"].as_str().map(str::to_owned);
        let whole = match synced_at {
            Some(_) => (1, HOLDINGS, 1),
            None => (0, 0, 0),
        };
        let there = (count("syncs"), count("holdings"), count("pnl_snapshots"));
        assert_eq!(there, whole, "a part of a sync or of a deletion");
        assert_eq!(count("positions") > 0, synced_at.is_some());
        let before = std::mem::replace(&mut self.synced_at, synced_at.clone());
        match self.open.take() {
            _ if synced_at == before => false,
            Some(true) => {
                assert!(synced_at > before, "{before:?} became {synced_at:?}");
                true
            }
            Some(false) => {
                assert_eq!(synced_at, None, "neither as answered nor deleted");
                true
            }
            None => panic!("{before:?} was answered, {synced_at:?} is there"),
        }
    }
}

/// An account whose registration was answered.
struct Account {
    email: String,
    token: String,
    /// Whether its erasure was answered.
    erased: bool,
}

/// Registers accounts until the server is gone, and erases every third one.
fn register(address: &str, round: u64, answers: &AtomicU64) -> Vec<Account> {
    let mut accounts = Vec::new();
    let Ok(mut client) = Client::try_connect(address) else {
        return accounts;
    };
    let password = r#""password":"a long enough secret"}"#;
    for number in 0_u64.. {
        let email = format!("r{round}-{number}@example.com");
        let body = format!(r#"{{"email":"{email}",{password}"#);
        let Some((status, said)) = ask(&mut client, "POST", "/api/auth/register", "", &body) else {
            break;
        };
        assert_eq!(status, 201, "{said}");
        let token = json(&said)["access_token"].as_str().unwrap().to_owned();
        let mut account = Account {
            email,
            token,
            erased: false,
        };
        answers.fetch_add(1, Ordering::SeqCst);
        if number % 3 == 2 {
            let body = format!("{{{password}");
            let target = "/api/auth/account";
            let Some((status, said)) = ask(&mut client, "DELETE", target, &account.token, &body)
            else {
                // The account may exist or not.
                break;
            };
            assert_eq!(status, 200, "{said}");
            account.erased = true;
            answers.fetch_add(1, Ordering::SeqCst);
        }
        accounts.push(account);
    }
    accounts
}

impl Account {
    fn check(&self, client: &mut Client) {
        let answer = client.request("GET", "/api/portfolio/export", &bearer(&self.token));
        if self.erased {
            assert_eq!(answer.status, 401, "{} is back: {}", self.email, answer.text());
        } else {
            assert_eq!(answer.status, 200, "{}: {}", self.email, answer.text());
            assert_eq!(answer.json()["user"]["email"].as_str(), Some(self.email.as_str()));
        }
    }
}

/// Everything stored of a user.
fn export(client: &mut Client, token: &str) -> Value {
    let answer = client
        .request("GET", "/api/portfolio/export", &bearer(token))
        .with_status(200);
    answer.json()
}

fn new_user(client: &mut Client, name: &str) -> String {
    let answer = client.account("register", &format!("{name}@example.com"), "a long enough secret");
    answer.field("access_token")
}

impl Tally {
    /// Whether an answer of each kind came before a kill. On a busy machine a registration, whose
    /// password is hashed, takes longer than all else.
    fn has_all_kinds(&self) -> bool {
        [self.registered, self.erased, self.synced, self.deleted]
            .iter()
            .all(|count| *count > 0)
    }

    fn say(&self, rounds: u64) {
        assert!(self.has_all_kinds(), "too little happened in {rounds} rounds");
        let Self {
            registered,
            erased,
            written,
            synced,
            deleted,
            unanswered,
            kept,
        } = self;
        say(&format!(
            "kill -9 over HTTP: {rounds} times, {written} answered writes ({registered} accounts, \
             {erased} of them erased, {synced} syncs, {deleted} deletions, the rest journal), \
             0 lost, 0 in part; {unanswered} not answered, of which {kept} were kept, whole\n"
        ));
    }
}

#[test]
fn what_was_answered_survives_kill_9_at_any_moment_and_nothing_is_half_there() {
    let scene = Scene::at(TRADING);
    let mut program = start(&scene);
    let mut client = program.client();
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|n| Writer {
            token: new_user(&mut client, &format!("w{n}")),
            ..Writer::default()
        })
        .collect();
    let mut owner = Owner {
        token: new_user(&mut client, "owner"),
        ..Owner::default()
    };
    let mut tally = Tally::default();
    let mut accounts: Vec<Account> = Vec::new();
    let mut rounds = 0;
    while rounds < ROUNDS || !tally.has_all_kinds() && rounds < ROUNDS_MAX {
        rounds += 1;
        let answers = AtomicU64::new(0);
        let address = program.address.clone();
        let new = std::thread::scope(|scope| {
            let (answers, address, scene) = (&answers, address.as_str(), &scene);
            for writer in &mut writers {
                scope.spawn(move || writer.run(address, answers, &mut Rng::new()));
            }
            let (owner, tally) = (&mut owner, &mut tally);
            scope.spawn(move || owner.run(scene, address, answers, tally));
            let accounts = scope.spawn(move || register(address, rounds, answers));
            let end = if rounds <= ROUNDS {
                fastrand::u64(ANSWERS_MIN..ANSWERS_MAX)
            } else {
                10 * ANSWERS_MAX
            };
            // Any moment after that will do.
            until("so many answers", || {
                answers.load(Ordering::SeqCst) >= end || accounts.is_finished()
            });
            program.kill();
            accounts.join().unwrap()
        });
        tally.registered += new.len() as u64;
        tally.erased += new.iter().filter(|account| account.erased).count() as u64;
        tally.written += answers.load(Ordering::SeqCst);
        program = start(&scene);
        let mut client = program.client();
        for writer in &mut writers {
            tally.unanswered += u64::from(writer.open.is_some());
            let found = export(&mut client, &writer.token);
            tally.kept += u64::from(writer.check(&found));
        }
        tally.unanswered += u64::from(owner.open.is_some());
        let found = export(&mut client, &owner.token);
        tally.kept += u64::from(owner.check(&found));
        accounts.extend(new);
        // The accounts of this round and some before it.
        for account in &accounts[accounts.len().saturating_sub(20)..] {
            account.check(&mut client);
        }
    }
    let mut client = program.client();
    for account in &accounts {
        account.check(&mut client);
    }
    tally.say(rounds);
}
