//! Two users at work at once, each trying everything to reach the other's data. Whatever one does,
//! the other's data stays as it was, and no answer to one contains a word of the other.

use std::collections::BTreeSet;

use bhav::api::{Access, ROUTES, Route};
use bhav::http::Method;
use fastrand::Rng;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use crate::portfolio::close::scene_by_hand;
use crate::support::upstream::{Asked, Said, Upstream};
use crate::support::{Answer, Scene, Service, TRADING, bearer, say};

/// In a round each user sends a request to each route.
const ROUNDS: usize = 6;
/// The variable that repeats a run's requests.
const SEED: &str = "BHAV_TEST_SEED";
/// A header takes precedence over a cookie, so this one refuses everybody.
const BAD: &str = "Authorization: Bearer no.such.token\r\n";
/// A word that occurs in all data of one user.
const MARKS: [&str; 2] = ["MARKONE7", "MARKTWO9"];

/// A user, and what the other may know of them.
struct Person {
    mark: &'static str,
    password: String,
    token: String,
    id: i64,
    entries: Vec<i64>,
    cursors: Vec<String>,
    etags: Vec<String>,
    /// Ids of API keys.
    keys: Vec<String>,
    /// Everything stored, at the last export.
    export: String,
}

/// A request ready to be sent.
struct Attempt {
    target: String,
    headers: String,
    body: String,
}

struct Stage {
    service: Service,
    people: [Person; 2],
    rng: Rng,
    seed: u64,
    /// Incremented, so that no API key or e-mail address is used twice.
    number: usize,
    requests: usize,
    scene: Scene,
    _upstream: Upstream,
}

/// Answers with the account of the user whose mark is in the API key.
fn broker(asked: &Asked) -> Said {
    let whole = format!("{}{}", asked.head, asked.body);
    let mark = MARKS.into_iter().find(|mark| whole.contains(mark)).unwrap();
    Said::json(match asked.target.as_str() {
        "/session/token" => r#"{"status":"success","data":{"access_token":"t"}}"#.to_owned(),
        "/portfolio/holdings" => format!(
            r#"{{"status":"success","data":[{{"tradingsymbol":"{mark}","exchange":"NSE",
            "isin":"","quantity":3,"t1_quantity":1,"average_price":10.5,"last_price":11.25,
            "close_price":11,"pnl":2.25,"product":"CNC","instrument_token":1}}]}}"#
        ),
        "/portfolio/positions" => format!(
            r#"{{"status":"success","data":{{"net":[{{"tradingsymbol":"{mark}","exchange":"NSE",
            "instrument_token":1,"product":"MIS","quantity":2,"overnight_quantity":0,
            "multiplier":1,"average_price":10,"close_price":11,"last_price":12,"value":-20,
            "pnl":4,"m2m":4,"unrealised":4,"realised":0}}],"day":[]}}}}"#
        ),
        "/customerdetails" => r#"{"Success":{"session_token":"dA=="},"Status":200}"#.to_owned(),
        "/portfolioholdings" => format!(
            r#"{{"Success":[{{"stock_code":"{mark}","exchange_code":"NSE","quantity":"5",
            "average_price":"231.40","current_market_price":"266"}}],"Status":200}}"#
        ),
        _ => r#"{"Success":null,"Status":200,"Error":"No Data Found"}"#.to_owned(),
    })
}

/// The queries of a read.
fn queries(path: &str) -> &'static [&'static str] {
    match path {
        "/api/portfolio/holdings" => &["", "?broker=a", "?broker=b", "?live=true", "?user_id=ID"],
        "/api/portfolio/positions" => &[
            "",
            "?type=net",
            "?type=day",
            "?include_closed=true",
            "?user_id=ID",
        ],
        "/api/portfolio/pnl" => &["", "?days=7", "?days=365", "?user_id=ID"],
        "/api/journal" => &[
            "?limit=1",
            "?limit=2",
            "?limit=1&cursor=CURSOR",
            "?cursor=CURSOR",
        ],
        "/api/journal/search" => &[
            "",
            "?symbol=NSE",
            "?limit=1&cursor=CURSOR",
            "?from=2026-11-01",
        ],
        _ => &["", "?user_id=ID"],
    }
}

impl Stage {
    fn set() -> Self {
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| fastrand::u64(..));
        let upstream = Upstream::start(broker);
        let scene = scene_by_hand(TRADING);
        let mut config = scene.config();
        config.broker_a.url = upstream.url();
        config.broker_a.access_token = None;
        config.broker_b.url = upstream.url();
        let service = scene.start_with(&config);
        let people = MARKS.map(|mark| Person {
            mark,
            password: String::new(),
            token: String::new(),
            id: 0,
            entries: Vec::new(),
            cursors: Vec::new(),
            etags: Vec::new(),
            keys: Vec::new(),
            export: String::new(),
        });
        let rng = Rng::with_seed(seed);
        let mut stage = Self {
            service,
            people,
            rng,
            seed,
            number: 0,
            requests: 0,
            scene,
            _upstream: upstream,
        };
        for who in 0..2 {
            stage.join(who);
        }
        stage
    }

    /// Registers, syncs both brokers, and writes into the journal.
    fn join(&mut self, who: usize) {
        self.number += 1;
        let (number, mark) = (self.number, self.people[who].mark);
        let password = format!("{mark} password {number}");
        let body = format!(
            r#"{{"email":"{mark}-{number}@example.com","name":"{mark}","password":"{password}"}}"#
        );
        let answer = self
            .service
            .post("/api/auth/register", "", &body)
            .with_status(201);
        let json = answer.json();
        let person = &mut self.people[who];
        person.token = json["access_token"].as_str().unwrap().to_owned();
        person.id = json["user"]["id"].as_i64().unwrap();
        person.password = password;
        for path in ["/api/portfolio/sync", "/api/portfolio/brokerb-sync"] {
            let body = self.order(who);
            let answer = self.service.post(path, &self.auth(who), &body);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
        for _ in 0..3 {
            self.service
                .post("/api/journal", &self.auth(who), &entry(mark))
                .with_status(201);
        }
        let (headers, new) = (self.auth(who), lists(mark, "null"));
        self.service
            .client()
            .send_json("PUT", "/api/watchlists", &headers, &new)
            .with_status(200);
        let page = self
            .service
            .client()
            .request("GET", "/api/journal?limit=1", &headers)
            .json();
        self.people[who]
            .cursors
            .push(page["next_cursor"].as_str().unwrap().to_owned());
        self.look(who);
    }

    fn auth(&self, who: usize) -> String {
        bearer(&self.people[who].token)
    }

    /// The body of a sync at either broker, some time after the last: one network has half of all
    /// calls within a minute, and one user a third.
    fn order(&mut self, who: usize) -> String {
        self.scene.advance_ms(10_000);
        self.number += 1;
        let (number, mark) = (self.number, self.people[who].mark);
        format!(
            r#"{{"api_key":"{mark}-{number}","api_secret":"s","request_token":"c",
            "api_session":"c","user_id":{}}}"#,
            self.people[1 - who].id
        )
    }

    fn export(&self, who: usize) -> Answer {
        self.service
            .client()
            .request("GET", "/api/portfolio/export", &self.auth(who))
    }

    /// Records the user's present data.
    fn look(&mut self, who: usize) {
        let answer = self.export(who);
        let json = answer.json();
        let entries = json["journal"].as_array().unwrap();
        let person = &mut self.people[who];
        person.entries = entries
            .iter()
            .map(|entry| entry["id"].as_i64().unwrap())
            .collect();
        person.export = stored(&answer);
    }

    fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> Option<T> {
        rng.choice(from).cloned()
    }

    /// An entry of either user, or one that never existed.
    fn entry_id(&mut self) -> (usize, i64) {
        let owner = self.rng.usize(..2);
        let found = Self::pick(&mut self.rng, &self.people[owner].entries);
        (owner, found.unwrap_or(999_999))
    }

    fn password(&mut self) -> String {
        let owner = self.rng.usize(..2);
        self.people[owner].password.clone()
    }

    /// Watch lists with an id that either user may have, or none.
    fn lists(&mut self, mark: &str) -> String {
        lists(mark, Self::pick(&mut self.rng, &["1", "2", "99", "null"]).unwrap())
    }

    fn query(&mut self, choices: &[&str]) -> String {
        let cursors = &self.people[self.rng.usize(..2)].cursors;
        let cursor = Self::pick(&mut self.rng, cursors).unwrap_or_default();
        let id = self.people[self.rng.usize(..2)].id;
        let query = Self::pick(&mut self.rng, choices).unwrap_or_default();
        query
            .replace("CURSOR", &cursor)
            .replace("ID", &id.to_string())
    }

    /// A request to `route` by `who`; every route that needs a user has one. A read that needs more
    /// than its path has an arm of its own or in `queries`, which `contract/routes.rs` demands.
    fn attempt(&mut self, who: usize, route: &Route) -> Attempt {
        let mark = self.people[who].mark;
        if route.path.starts_with("/api/trades") && route.method != Method::Get {
            return self.attempt_at_ledger(who, route);
        }
        let (mut target, mut body) = (route.path.to_owned(), String::new());
        match (route.method, route.path) {
            (Method::Post, "/api/portfolio/sync" | "/api/portfolio/brokerb-sync") => {
                body = self.order(who);
            }
            (Method::Get, "/api/trades/tax/{id}/112a.csv") => {
                target = target.replace("{id}", "2024-25");
            }
            (Method::Post, "/api/journal") => {
                let (_, id) = self.entry_id();
                let other = self.people[1 - who].id;
                body = entry(mark).replacen('{', &format!("{{\"id\":{id},\"user_id\":{other},"), 1);
            }
            (method, "/api/journal/{id}") => {
                let (_, id) = self.entry_id();
                target = target.replace("{id}", &id.to_string());
                if method == Method::Put {
                    body = entry(mark);
                }
            }
            (Method::Put, "/api/watchlists") => body = self.lists(mark),
            (Method::Post, "/api/keys") => {
                let password = self.password();
                body = format!(
                    r#"{{"name":"{mark}","scopes":["market:read"],
                    "current_password":"{password}"}}"#
                );
            }
            (Method::Delete, "/api/keys/{id}") => {
                let all = [self.people[0].keys.clone(), self.people[1].keys.clone()].concat();
                let id = Self::pick(&mut self.rng, &all).unwrap_or_else(|| "0".repeat(11));
                target = target.replace("{id}", &id);
            }
            (Method::Post, "/api/auth/logout") => {}
            (Method::Post, "/api/auth/password") => body = self.new_password(mark),
            (Method::Delete, "/api/auth/account") => {
                body = format!(r#"{{"password":"{}"}}"#, self.password());
            }
            (Method::Delete, "/api/portfolio/data") | (Method::Get, _) => {
                target += &self.query(queries(route.path));
            }
            _ => panic!("{} {} needs its requests here", route.method.as_str(), route.path),
        }
        let headers = self.headers(who);
        Attempt {
            target,
            headers,
            body,
        }
    }

    /// A change of the password.
    fn new_password(&mut self, mark: &str) -> String {
        self.number += 1;
        let (current, number) = (self.password(), self.number);
        format!(r#"{{"current_password":"{current}","new_password":"{mark} new {number}"}}"#)
    }

    /// A change of the ledger.
    fn attempt_at_ledger(&mut self, who: usize, route: &Route) -> Attempt {
        let mark = self.people[who].mark;
        let (mut target, mut body) = (route.path.to_owned(), String::new());
        match (route.method, route.path) {
            (Method::Post, "/api/trades/imports") => target += "?account=a",
            (_, "/api/trades/imports/{id}/confirm" | "/api/trades/imports/{id}") => {
                target = target.replace("{id}", &self.rng.u8(1..4).to_string());
            }
            (Method::Put, "/api/trades/accounts/{id}") => {
                target = target.replace("{id}", "a");
                body = format!(r#"{{"person":"{}"}}"#, mark.to_lowercase());
            }
            // Both have one of the same id.
            (method, "/api/trades/corrections/{id}") => {
                target = target.replace("{id}", "one");
                if method == Method::Put {
                    body = format!(
                        r#"{{"kind":"unproved","isin":"INE040A01034","date":"2020-05-14",
                        "what":"other","note":"{mark}"}}"#
                    );
                }
            }
            (Method::Put, "/api/trades/conflicts/{id}") => {
                target = target.replace("{id}", "one");
                body = r#"{"keep":"first"}"#.to_owned();
            }
            (Method::Delete, "/api/trades") => {
                body = r#"{"confirm":"delete all trades"}"#.to_owned();
            }
            _ => panic!("{} {} needs its requests here", route.method.as_str(), route.path),
        }
        let headers = self.headers(who);
        Attempt {
            target,
            headers,
            body,
        }
    }

    /// The token in the header or in the cookie, together with the other's token where it must not
    /// count, and the other's ETag.
    fn headers(&mut self, who: usize) -> String {
        let (own, other) = (&self.people[who].token, &self.people[1 - who].token);
        let cookie = |token: &str| {
            format!("Cookie: access_token_cookie={token}\r\nSec-Fetch-Site: same-origin\r\n")
        };
        let mut headers = match self.rng.u8(..8) {
            0 => format!("{BAD}{}", cookie(own)),
            1 | 2 => bearer(own),
            3 | 4 => cookie(own),
            _ => format!("{}{}", bearer(own), cookie(other)),
        };
        let etags = &self.people[1 - who].etags;
        if let Some(etag) = Self::pick(&mut self.rng, etags) {
            headers += &format!("If-None-Match: {etag}\r\n");
        }
        headers
    }

    fn step(&mut self, who: usize, route: &Route) {
        let Attempt {
            target,
            headers,
            body,
        } = self.attempt(who, route);
        let method = route.method.as_str();
        let answer = if body.is_empty() {
            self.service.client().request(method, &target, &headers)
        } else {
            self.service
                .client()
                .send_json(method, &target, &headers, &body)
        };
        self.requests += 1;
        let about = format!("{SEED}={}: {method} {target} {body}: {}", self.seed, answer.head());
        let other = 1 - who;
        let foreign = self.people[other].mark;
        let said = format!("{}{}", answer.head(), String::from_utf8_lossy(&answer.body));
        assert!(!said.contains(foreign), "{about}{said}");
        assert!(answer.status < 500, "{about}{said}");
        assert_eq!(headers.starts_with(BAD), said.contains("\"token_invalid\""), "{about}");
        // Equal bytes have equal tags. The two users have no bytes in common except empty answers.
        if answer.status == 304 {
            let own = self
                .service
                .client()
                .request("GET", &target, &self.auth(who));
            assert_eq!(own.header("etag"), answer.header("etag"), "{about}");
            assert!(!own.text().contains("MARK"), "{about}");
        }
        assert_eq!(stored(&self.export(other)), self.people[other].export, "{about}");
        self.note(who, route, &answer, &body);
    }

    /// Records the effect of the user's request.
    fn note(&mut self, who: usize, route: &Route, answer: &Answer, body: &str) {
        let person = &mut self.people[who];
        person
            .etags
            .extend(answer.header("etag").map(str::to_owned));
        if answer.status == 200 && route.path == "/api/journal" && route.method == Method::Get {
            let json = answer.json();
            person
                .cursors
                .extend(json["next_cursor"].as_str().map(str::to_owned));
        }
        if (answer.status, route.path) == (201, "/api/keys") {
            person.keys.push(answer.field("id"));
        }
        match (answer.status, route.path) {
            (200, "/api/auth/account") => return self.join(who),
            (200, "/api/auth/password") => {
                let new = body.split("\"new_password\":\"").nth(1).unwrap();
                person.password = new.trim_end_matches("\"}").to_owned();
                self.enter(who);
            }
            (200 | 204, "/api/auth/logout") => self.enter(who),
            _ => {}
        }
        self.look(who);
    }

    /// Logs in again.
    fn enter(&mut self, who: usize) {
        let json = self.export_email(who);
        let body = format!(r#"{{"email":"{json}","password":"{}"}}"#, self.people[who].password);
        let answer = self
            .service
            .post("/api/auth/login", "", &body)
            .with_status(200);
        self.people[who].token = answer.field("access_token");
    }

    /// The address, from the last export.
    fn export_email(&self, who: usize) -> String {
        let (_, rest) = self.people[who].export.split_once("\"email\":\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

/// An export without the instant at which it was made.
fn stored(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text().split_once(',').unwrap().1.to_owned()
}

fn entry(mark: &str) -> String {
    format!(
        r#"{{"traded_on":"2026-11-20","symbol":"NSE:{mark}","side":"buy","quantity":1,"price":2,
        "notes":"{mark}","tags":["{mark}"],"strategy":"{mark}"}}"#
    )
}

/// A list with the id, and a new one.
fn lists(mark: &str, id: &str) -> String {
    format!(
        r#"{{"watchlists":[{{"id":{id},"name":"{mark}","symbols":["NSE:{mark}"]}},
        {{"name":"other {mark}","symbols":[]}}]}}"#
    )
}

#[test]
fn no_request_of_one_user_reaches_what_is_the_others() {
    let mut stage = Stage::set();
    let routes: Vec<&Route> = ROUTES
        .iter()
        .filter(|route| route.access == Access::User)
        .collect();
    for _ in 0..ROUNDS {
        let mut steps: Vec<(usize, &Route)> = routes
            .iter()
            .flat_map(|route| [(0, *route), (1, *route)])
            .collect();
        stage.rng.shuffle(&mut steps);
        for (who, route) in steps {
            stage.step(who, route);
        }
    }
    for person in &stage.people {
        assert!(!person.etags.is_empty() && !person.cursors.is_empty(), "nothing was tried");
        assert!(person.export.contains(person.mark));
    }
    let named: BTreeSet<String> = routes
        .iter()
        .map(|route| format!("{} {}", route.method.as_str(), route.path))
        .collect();
    assert_eq!(named.len(), routes.len());
    let said = format!(
        "isolation: {} requests by two users, {SEED}={}, nothing of the other's seen or changed; \
         {} routes: {}\n",
        stage.requests,
        stage.seed,
        routes.len(),
        named.into_iter().collect::<Vec<_>>().join(", ")
    );
    say(&said);
}
