//! API keys: what each scope reaches, how keys are made, listed and revoked, when they end, and
//! that none is written anywhere.

use std::cell::Cell;
use std::collections::BTreeMap;

use bhav::base::Scope;
use bhav::config::Config;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::contract::openapi::{document, operations};
use crate::portfolio::close::scene_by_hand;
use crate::support::{
    Answer, EventReader, Program, STREAM, Scene, Service, TRADING, bearer, bhav, few_candles, run,
    say, until, without_admin,
};

pub const PASSWORD: &str = "nine green parrots";
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
    "price":2}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
pub const ALL: &str = r#""market:read","portfolio:read","trades:read","trades:write","journal:read",
    "journal:write","signals:read""#;

/// The body that makes a key; `scopes` as in JSON.
pub fn order(name: &str, scopes: &str, more: &str) -> String {
    format!(r#"{{"name":"{name}","scopes":[{scopes}],"current_password":"{PASSWORD}"{more}}}"#)
}

/// A new key of the login's account: its id and text.
#[track_caller]
pub fn made(service: &Service, login: &str, scopes: &str, more: &str) -> (String, String) {
    let answer = service.post("/api/keys", login, &order("a widget", scopes, more));
    assert_eq!(answer.status, 201, "{}", answer.text());
    (answer.field("id"), answer.field("key"))
}

fn get(service: &Service, target: &str, headers: &str) -> Answer {
    service.client().request("GET", target, headers)
}

#[track_caller]
fn revoke(service: &Service, login: &str, id: &str) {
    let answer = service
        .client()
        .request("DELETE", &format!("/api/keys/{id}"), login);
    assert_eq!((answer.status, &*answer.body), (204, &b""[..]), "{}", answer.head());
}

/// The service on a clock by hand, without a limit on keys' requests, and the login of its user.
pub(crate) fn scene(change: impl FnOnce(&mut Config)) -> (Scene, Service, String) {
    let scene = scene_by_hand(TRADING);
    let mut config = scene.config();
    config.auth.key_requests_per_minute = 0;
    change(&mut config);
    let service = scene.start_with(&config);
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    (scene, service, login)
}

/// A request to an operation, whose `{id}` is an entry or a key of the user.
struct Attempt {
    method: String,
    target: String,
    body: &'static str,
}

impl Attempt {
    fn at(service: &Service, login: &str, method: &str, path: &str) -> Self {
        let target = match path {
            "/api/portfolio/live-prices" => format!("{path}?symbols=NSE:INFY"),
            "/api/market/candles" => format!("{path}?symbol=NSE:NOSUCH"),
            "/api/market/search" => format!("{path}?q=infy"),
            "/api/journal/{id}" => {
                let added = service.post("/api/journal", login, ENTRY);
                added.header("location").unwrap().to_owned()
            }
            "/api/trades/imports/{id}" | "/api/trades/imports/{id}/confirm" => {
                path.replace("{id}", "1")
            }
            _ if path.starts_with("/api/trades/") => path.replace("{id}", "x"),
            "/api/keys/{id}" => {
                path.replace("{id}", &made(service, login, r#""market:read""#, "").0)
            }
            path => path.to_owned(),
        };
        if path == "/mcp" {
            return Self {
                method: method.to_owned(),
                target,
                body: PING,
            };
        }
        // A stream never ends, so its head is requested.
        let method = if path == STREAM { "HEAD" } else { method };
        let body = if path.starts_with("/api/journal") && matches!(method, "POST" | "PUT") {
            ENTRY
        } else {
            ""
        };
        Self {
            method: method.to_owned(),
            target,
            body,
        }
    }

    fn send(&self, service: &Service, headers: &str) -> Answer {
        let mut client = service.client();
        match self.body {
            "" => client.request(&self.method, &self.target, headers),
            body => client.send_json(&self.method, &self.target, headers, body),
        }
    }
}

/// Status and code; a bare head has no code.
fn told(answer: &Answer) -> (u16, String) {
    let code = sonic_rs::from_slice::<Value>(&answer.body).ok();
    let code = code.and_then(|json| json.get("code")?.as_str().map(str::to_owned));
    (answer.status, code.unwrap_or_default())
}

/// What a key with the scope is told: the same as a login, except where no login is taken.
fn as_by_login(attempt: &Attempt, service: &Service, login: &str) -> (u16, String) {
    let by_login = told(&attempt.send(service, login));
    if attempt.target != "/mcp" {
        return by_login;
    }
    assert_eq!(by_login, (401, "key_missing".to_owned()));
    (200, String::new())
}

/// Header lines of everybody who tries an operation.
struct Cast {
    login: String,
    /// A key with each scope alone.
    of_scope: Vec<(Scope, String)>,
    whole: String,
    /// Another user's key, with all scopes.
    others: String,
    expired: String,
    revoked: String,
}

impl Cast {
    fn on(scene: &Scene, service: &Service, login: String) -> Self {
        let other = bearer(&service.register("ravi@example.com", PASSWORD));
        let of_scope = Scope::ALL
            .into_iter()
            .map(|scope| (scope, bearer(&made(service, &login, &format!("\"{scope}\""), "").1)));
        let of_scope = of_scope.collect();
        let (id, revoked) = made(service, &login, ALL, "");
        revoke(service, &login, &id);
        let soon = r#","expires_at":"2026-11-20T11:01:00+05:30""#;
        let expired = bearer(&made(service, &login, ALL, soon).1);
        scene.advance_ms(61_000);
        Self {
            of_scope,
            whole: bearer(&made(service, &login, ALL, "").1),
            others: bearer(&made(service, &other, ALL, "").1),
            expired,
            revoked: bearer(&revoked),
            login,
        }
    }
}

/// An operation, and the key that the table says it takes.
struct Operation<'a> {
    service: &'a Service,
    cast: &'a Cast,
    method: &'a str,
    path: &'a str,
    key: &'a str,
    /// Counts the attempts at all operations.
    cells: &'a Cell<usize>,
}

impl Operation<'_> {
    /// Every attempt meets the same state.
    fn fresh(&self) -> Attempt {
        Attempt::at(self.service, &self.cast.login, self.method, self.path)
    }

    fn expect(&self, who: &str, headers: &str, (status, word): (u16, &str)) -> Answer {
        self.cells.set(self.cells.get() + 1);
        let answer = self.fresh().send(self.service, headers);
        // A bare head has no code.
        let word = if self.path == STREAM { "" } else { word };
        let Self {
            method, path, key, ..
        } = self;
        assert_eq!(told(&answer), (status, word.to_owned()), "{method} {path} {key}: {who}");
        answer
    }

    fn expect_login_required(&self) {
        let Cast {
            of_scope,
            whole,
            others,
            ..
        } = self.cast;
        for (scope, headers) in of_scope {
            self.expect(scope.as_str(), headers, (403, "login_required"));
        }
        self.expect("all scopes", whole, (403, "login_required"));
        self.expect("another's", others, (403, "login_required"));
        self.cells.set(self.cells.get() + 1);
        let again = self
            .service
            .client()
            .account("login", "ravi@example.com", PASSWORD);
        let login = bearer(&again.field("access_token"));
        let by_login = told(&self.fresh().send(self.service, &login));
        assert_ne!(by_login.1, "login_required", "{} {}", self.method, self.path);
    }

    fn expect_scope_required(&self) {
        let Self {
            service, key, path, ..
        } = *self;
        let Cast {
            login,
            of_scope,
            whole,
            others,
            ..
        } = self.cast;
        let by_login = as_by_login(&self.fresh(), service, login);
        self.cells.set(self.cells.get() + 1);
        for (scope, headers) in of_scope {
            if key == "any" || key == scope.as_str() {
                self.expect(scope.as_str(), headers, (by_login.0, &by_login.1));
                continue;
            }
            let answer = self.expect(scope.as_str(), headers, (403, "scope_missing"));
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{key}\"");
            assert_eq!(answer.header("www-authenticate"), Some(&*challenge));
        }
        self.expect("all scopes", whole, (by_login.0, &by_login.1));
        // Another's key reaches that user's own records alone.
        let of_other = match path {
            "/api/journal/{id}" => (404, "entry_not_found"),
            _ => (by_login.0, &*by_login.1),
        };
        self.expect("another's", others, of_other);
    }
}

#[test]
fn every_operation_takes_the_keys_that_the_table_says_and_no_other() {
    let (scene, service, login) = scene(|_| ());
    until("instruments, a snapshot, and health", || {
        scene.advance_ms(250);
        let are_there = ["/api/index/snapshot", "/api/health"].map(|path| service.get(path).status);
        (are_there == [200, 200] && service.has_instruments()).then_some(())
    });
    let cast = Cast::on(&scene, &service, login);
    let document = document();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let cells = Cell::new(0);
    for (method, path, operation) in operations(&document) {
        let key = operation["x-key"].as_str().unwrap();
        let is_scope = Scope::ALL.iter().any(|scope| scope.as_str() == key);
        *counts
            .entry(if is_scope { "scope" } else { key })
            .or_default() += 1;
        let operation = Operation {
            service: &service,
            cast: &cast,
            method: &method,
            path,
            key,
            cells: &cells,
        };
        operation.expect("expired", &cast.expired, (401, "key_expired"));
        operation.expect("revoked", &cast.revoked, (401, "key_invalid"));
        match key {
            "never" => operation.expect_login_required(),
            _ => operation.expect_scope_required(),
        }
    }
    let cells = cells.get();
    say(&format!(
        "API keys: {cells} cells of path, scope and owner; by key: {counts:?}\n"
    ));
    assert!(cells > 450 && counts["never"] >= 14 && counts["any"] == 6, "{counts:?}");
    // Another's entries are another's.
    service.post("/api/journal", &cast.whole, &ENTRY.replace("INFY", "MINE"));
    assert!(
        get(&service, "/api/journal", &cast.whole)
            .text()
            .contains("MINE")
    );
    assert!(
        !get(&service, "/api/journal", &cast.others)
            .text()
            .contains("MINE")
    );
}

#[test]
fn what_no_key_may_do_is_kept_back_in_the_table() {
    let document = document();
    for (method, path, operation) in operations(&document) {
        let is_kept_back = path.starts_with("/api/keys")
            || path.contains("sync")
            || path.contains("activate")
            || path.contains("export")
            || path.contains("portfolio/data")
            || (path == "/api/watchlists" && method == "PUT")
            || (path == "/api/trades" && method == "DELETE")
            || (path.starts_with("/api/auth") && path != "/api/auth/session");
        assert_eq!(operation["x-key"] == "never", is_kept_back, "{method} {path}");
        // Its tools read alone, each by the scope of its route.
        let writes = method != "GET" && path != "/mcp";
        let scope = operation["x-key"].as_str().unwrap();
        assert!(!writes || is_kept_back || scope.ends_with(":write"), "{method} {path}");
    }
}

#[test]
fn a_key_is_shown_once_and_listed_without_its_secret() {
    let (scene, service, login) = scene(|_| ());
    let more = r#","expires_at":"2026-11-20T12:00:00+05:30""#;
    let answer = service.post("/api/keys", &login, &order(" grafana ", r#""market:read""#, more));
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let (id, key) = (answer.field("id"), answer.field("key"));
    assert!(key.starts_with(&format!("bhav_{id}_")) && key.len() == 66, "{key}");
    let listed = |service: &Service| get(service, "/api/keys", &login);
    let json = listed(&service).json();
    let one = &json["keys"][0];
    assert_eq!((one["id"].as_str(), one["name"].as_str()), (Some(&*id), Some("grafana")));
    assert_eq!(one["scopes"].to_string(), r#"["market:read"]"#);
    assert_eq!(one["created_at"], "2026-11-20T11:00:00+05:30");
    assert_eq!(one["expires_at"], "2026-11-20T12:00:00+05:30");
    assert!(one["last_used_at"].is_null() && one["last_used_from"].is_null());
    assert!(!listed(&service).text().contains(&key[17..]));

    scene.advance_ms(95_000);
    let session = get(&service, "/api/auth/session", &bearer(&key));
    let json = session.json();
    assert_eq!(
        (json["user"]["id"].as_i64(), json["key"]["name"].as_str()),
        (Some(1), Some("grafana"))
    );
    assert_eq!(json["expires_at"], "2026-11-20T12:00:00+05:30");
    assert!(!session.text().contains("asha@example.com"), "{}", session.text());
    let json = listed(&service).json();
    assert_eq!(json["keys"][0]["last_used_at"], "2026-11-20T11:01:00+05:30");
    assert_eq!(json["keys"][0]["last_used_from"], "127.0.0.0/24");
    // Kept over a restart, and so is the key.
    service.stop();
    let service = scene.start();
    let json = listed(&service).json();
    assert_eq!(json["keys"][0]["last_used_at"], "2026-11-20T11:01:00+05:30");
    assert_eq!(
        get(&service, "/api/auth/session", &bearer(&key)).json()["key"]["id"],
        id.as_str()
    );

    revoke(&service, &login, &id);
    get(&service, "/api/health", &bearer(&key)).expect_problem(401, "key_invalid");
    assert_eq!(listed(&service).json()["keys"].as_array().unwrap().len(), 0);
    let again = service
        .client()
        .request("DELETE", &format!("/api/keys/{id}"), &login);
    again.expect_problem(404, "key_not_found");
    for malformed in [
        "1",
        "0000000000",
        "000000000000",
        "zzzzzzzzzzz",
        "0000000000-",
    ] {
        let gone = service
            .client()
            .request("DELETE", &format!("/api/keys/{malformed}"), &login);
        gone.expect_problem(404, "not_found");
    }
}

#[test]
fn what_a_key_may_be_made_with_is_checked() {
    let (_scene, service, login) = scene(|config| config.auth.login_attempts_per_minute = 5);
    let refused = |body: &str, field: &str| {
        let answer = service.post("/api/keys", &login, body);
        let json = answer.expect_problem(400, "validation_failed");
        assert_eq!(json["errors"][0]["field"].as_str(), Some(field), "{body}");
    };
    let scope = r#""market:read""#;
    let long = "n".repeat(61);
    for name in ["", "   ", "a\\u0007b", long.as_str()] {
        refused(&order(name, scope, ""), "name");
    }
    for scopes in [
        "",
        r#""market:read","market:read""#,
        r#""orders:write""#,
        r#""""#,
        "1",
    ] {
        refused(&order("a", scopes, ""), "scopes");
    }
    for time in [
        "\"2026-11-20T11:00:00+05:30\"",
        "\"tomorrow\"",
        "\"2026-11-21\"",
        "5",
    ] {
        refused(&order("a", scope, &format!(",\"expires_at\":{time}")), "expires_at");
    }
    // A wrong password counts as an attempt to log in.
    let wrong = order("a", scope, "").replace(PASSWORD, "another password");
    for _ in 0..5 {
        service
            .post("/api/keys", &login, &wrong)
            .expect_problem(401, "invalid_credentials");
    }
    service
        .post("/api/keys", &login, &wrong)
        .expect_problem(429, "too_many_attempts");
}

#[test]
fn an_account_has_twenty_keys_and_expired_ones_do_not_count() {
    let (scene, service, login) = scene(|_| ());
    let soon = r#","expires_at":"2026-11-20T11:30:00+05:30""#;
    let (_, short) = made(&service, &login, ALL, soon);
    for _ in 1..20 {
        made(&service, &login, ALL, "");
    }
    let more = service.post("/api/keys", &login, &order("a", ALL, ""));
    let json = more.expect_problem(409, "limit_reached");
    assert!(json["detail"].as_str().unwrap().contains("20 API keys"), "{json:?}");
    scene.advance_ms(31 * 60_000);
    get(&service, "/api/health", &bearer(&short)).expect_problem(401, "key_expired");
    made(&service, &login, ALL, "");
    let count = || {
        get(&service, "/api/keys", &login).json()["keys"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count(), 21);
    // Thirty days later it is not listed any more, and nobody can tell that it was one.
    scene.advance_ms(30 * 24 * 3_600_000);
    let token = service
        .client()
        .account("login", "asha@example.com", PASSWORD);
    let login = bearer(&token.field("access_token"));
    let keys = get(&service, "/api/keys", &login).json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 20);
    service.stop();
    let service = scene.start();
    get(&service, "/api/health", &bearer(&short)).expect_problem(401, "key_invalid");
}

/// A key in a query is refused however it is written, on pages too, and is not repeated.
fn expect_refused_in_a_query(service: &Service, key: &str, mistyped: &str) {
    let encoded: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for value in [key, &encoded, mistyped, &key.replace('_', "%5f")] {
        for target in [
            "/api/health",
            "/api/index/snapshot",
            "/",
            "/nowhere",
            "/api/journal",
        ] {
            for query in [
                "key=KEY",
                "a=1&api_key=KEY&b=2",
                "KEY",
                "symbols=NSE:INFY,KEY",
            ] {
                let target = format!("{target}?{}", query.replace("KEY", value));
                let answer = get(service, &target, "");
                answer.expect_problem(400, "key_in_query");
                assert!(!answer.text().contains(&key[17..60]));
            }
        }
    }
}

/// A key that is none is refused on public paths and pages too.
fn expect_refused_everywhere(service: &Service, bad: &str) {
    for target in [
        "/api/health",
        "/api/index/snapshot",
        "/",
        "/api/journal",
        "/api/keys",
    ] {
        let answer = get(service, target, &bearer(bad));
        answer.expect_problem(401, "key_invalid");
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, Some("Bearer error=\"invalid_token\""));
    }
}

#[test]
fn a_key_in_the_wrong_place_is_refused_or_not_looked_at() {
    let (scene, service, login) = scene(|_| ());
    let (_, key) = made(&service, &login, ALL, "");
    let (_, narrow) = made(&service, &login, r#""market:read""#, "");
    let mistyped = format!("{}{}", &key[..65], if key.ends_with('0') { '1' } else { '0' });
    expect_refused_in_a_query(&service, &key, &mistyped);
    for query in ["a=bhav_1_2", "a=bhav_", "a=%5f%5F%", "symbols=NSE:M%26M"] {
        assert_ne!(told(&get(&service, &format!("/api/health?{query}"), "")).0, 400, "{query}");
    }
    // In a path or a cookie or as another scheme it is nobody's.
    get(&service, &format!("/api/journal/{key}"), "").expect_problem(404, "not_found");
    let cookie = format!("Cookie: access_token_cookie={key}\r\n");
    get(&service, "/api/journal", &cookie).expect_problem(401, "token_invalid");
    let basic = format!("Authorization: Basic {key}\r\n");
    get(&service, "/api/journal", &basic).expect_problem(401, "token_missing");
    // With a key and a cookie the key alone counts.
    let token = login
        .trim_start_matches("Authorization: Bearer ")
        .trim_end();
    let both = format!("{}Cookie: access_token_cookie={token}\r\n", bearer(&narrow));
    get(&service, "/api/journal", &both).expect_problem(403, "scope_missing");
    for two in [
        format!("{}{}", bearer(&key), login),
        format!("{login}{}", bearer(&key)),
    ] {
        for target in ["/api/journal", "/api/health", "/"] {
            get(&service, target, &two).expect_problem(400, "malformed_request");
        }
    }
    get(&service, "/api/journal", &format!("{login}{login}")).expect_problem(401, "token_invalid");
    // Mistyped, too short, of no account: one answer, on public paths and pages too.
    let unknown = format!("bhav_00000000001_{}z3EiT9u", "0".repeat(42));
    let other_letter = key.replace('_', "-").replacen('-', "_", 1);
    for bad in [&*mistyped, &key[..65], "bhav_", &unknown, &other_letter] {
        expect_refused_everywhere(&service, bad);
    }
    let health = until("the counts", || {
        scene.advance_ms(250);
        let health = service.health();
        (health["keys"]["refused"]["key_in_query"].as_u64() == Some(80)).then_some(health)
    });
    let keys = &health["keys"];
    assert_eq!(keys["kept"].as_u64(), Some(2));
    assert_eq!(keys["refused"]["key_invalid"].as_u64(), Some(25));
    assert_eq!(keys["refused"]["scope_missing"].as_u64(), Some(1));
}

#[test]
fn a_key_makes_its_requests_a_minute_and_refusals_for_scope_count() {
    let (scene, service, login) = scene(|config| config.auth.key_requests_per_minute = 6);
    let (_, key) = made(&service, &login, r#""market:read""#, "");
    let (_, other) = made(&service, &login, r#""market:read""#, "");
    let (key, other) = (bearer(&key), bearer(&other));
    for target in [
        "/api/auth/session",
        "/brokera/status",
        "/api/openapi.json",
        "/",
    ] {
        assert_eq!(get(&service, target, &key).status, 200, "{target}");
    }
    get(&service, "/api/journal", &key).expect_problem(403, "scope_missing");
    // A bad key counts for nobody.
    get(&service, "/api/health", &bearer(&key[22..80])).expect_problem(401, "key_invalid");
    get(&service, "/api/keys", &key).expect_problem(403, "login_required");
    let answer = get(&service, "/api/health", &key);
    answer.expect_problem(429, "too_many_requests");
    assert_eq!(answer.header("retry-after"), Some("10"));
    assert_eq!(get(&service, "/brokera/status", &other).status, 200, "each has its own");
    scene.advance_ms(10_000);
    assert_eq!(get(&service, "/brokera/status", &key).status, 200);
    get(&service, "/api/health", &key).expect_problem(429, "too_many_requests");
}

#[test]
fn keys_outlive_logins_until_they_are_meant_and_end_with_their_account() {
    let (_scene, service, login) = scene(|_| ());
    let key = bearer(&made(&service, &login, ALL, "").1);
    let journal = || get(&service, "/api/journal", &key);
    let enter = |password: &str| {
        let answer = service
            .client()
            .account("login", "asha@example.com", password);
        bearer(&answer.field("access_token"))
    };
    let changed = format!(r#"{{"current_password":"{PASSWORD}","new_password":"ten red ones"}}"#);
    assert_eq!(service.post("/api/auth/password", &login, &changed).status, 200);
    assert_eq!(journal().status, 200);
    let login = enter("ten red ones");
    let keys_alone = service.post("/api/auth/logout", &login, r#"{"keys":true}"#);
    keys_alone.expect_problem(400, "validation_failed");
    assert_eq!(
        service
            .post("/api/auth/logout", &login, r#"{"everywhere":true}"#)
            .status,
        200
    );
    assert_eq!(journal().status, 200);
    let login = enter("ten red ones");
    let both = r#"{"everywhere":true,"keys":true}"#;
    assert_eq!(service.post("/api/auth/logout", &login, both).status, 200);
    journal().expect_problem(401, "key_invalid");
    let login = enter("ten red ones");
    let again = order("a", ALL, "").replace(PASSWORD, "ten red ones");
    let made = service.post("/api/keys", &login, &again);
    let key = bearer(&made.field("key"));
    assert_eq!(get(&service, "/api/journal", &key).status, 200);
    let proof = r#"{"password":"ten red ones"}"#;
    assert_eq!(
        service
            .client()
            .send_json("DELETE", "/api/auth/account", &login, proof)
            .status,
        200
    );
    get(&service, "/api/health", &key).expect_problem(401, "key_invalid");
}

#[test]
fn open_streams_end_with_their_key() {
    let (_scene, service) = Scene::trading();
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    service.fresh_snapshot();
    let opened = ["", "?symbols=NSE:INFY"].map(|query| {
        let (id, key) = made(&service, &login, r#""market:read""#, "");
        (id, EventReader::open(&service, &format!("{STREAM}{query}"), &bearer(&key)))
    });
    for (id, mut reader) in opened {
        assert!(reader.event_named("snapshot").data.contains("index1_price"));
        let clock = bhav::base::Clock::system();
        revoke(&service, &login, &id);
        reader.end();
        assert!(reader.is_complete);
        say(&format!(
            "a stream ended {} ms after its key was revoked\n",
            clock.monotonic_ms()
        ));
    }
}

/// Every file below the folder holds none of these texts. Returns how many were searched.
fn searched(folder: &std::path::Path, texts: &[String]) -> usize {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let count = |path: std::path::PathBuf| {
        if path.is_dir() {
            return searched(&path, texts);
        }
        let bytes = std::fs::read(&path).unwrap();
        for text in texts {
            let found = memchr::memmem::find(&bytes, text.as_bytes());
            assert_eq!(found, None, "a key is in {}", path.display());
        }
        1
    };
    entries.map(count).sum()
}

/// Requests with a key in every place: method, target, header lines.
fn places(key: &str, login: &str) -> Vec<(&'static str, String, String)> {
    let encoded: String = key.bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        ("GET", "/api/portfolio/holdings".to_owned(), bearer(key)),
        ("GET", "/api/auth/session".to_owned(), bearer(key)),
        ("GET", "/api/keys".to_owned(), login.to_owned()),
        ("GET", "/api/keys".to_owned(), bearer(key)),
        ("GET", format!("/api/health?key={key}"), String::new()),
        ("GET", format!("/api/health?key={encoded}"), String::new()),
        ("GET", format!("/api/{key}"), String::new()),
        ("GET", format!("/api/{encoded}"), String::new()),
        (
            "GET",
            format!("/{key}?x={key}"),
            format!("Referer: http://localhost/?key={key}\r\n"),
        ),
        ("DELETE", format!("/api/journal/{key}"), bearer(key)),
        (
            "GET",
            "/api/journal".to_owned(),
            format!("Cookie: access_token_cookie={key}\r\n"),
        ),
        ("GET", "/api/journal".to_owned(), format!("Authorization: Basic {key}\r\n")),
        ("GET", "/api/journal".to_owned(), format!("{}{}", bearer(key), bearer(key))),
        ("GET", "/api/health".to_owned(), bearer(&format!("{key}0"))),
        ("GET", "/api/health".to_owned(), format!("X-Request-Id: {}\r\n", &key[..60])),
        ("PATCH", format!("/api/{key}"), String::new()),
        ("OPTIONS", format!("/api/{key}"), String::new()),
    ]
}

#[test]
fn no_file_no_log_and_no_answer_but_the_first_holds_a_key() {
    let scene = Scene::at(TRADING);
    let outside = tempfile::tempdir().unwrap();
    let log = outside.path().join("log");
    let mut command = without_admin(&["serve", "--listen=127.0.0.1:0", &few_candles()]);
    command
        .args(scene.flags(scene.state.path()))
        .env("BHAV_LOG", "trace");
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut program = Program::of(&mut command);
    let registered = program
        .client()
        .account("register", "asha@example.com", PASSWORD);
    let login = bearer(&registered.field("access_token"));
    let make = |scopes: &str| {
        let answer =
            program
                .client()
                .send_json("POST", "/api/keys", &login, &order("a", scopes, ""));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.field("key")
    };
    let keys = [make(ALL), make(r#""market:read""#)];
    // What identifies a key is its secret; parts of it must be nowhere either.
    let secrets: Vec<String> = keys
        .iter()
        .flat_map(|key| [&key[17..60], &key[17..38], &key[39..60]])
        .map(str::to_owned)
        .collect();
    let mut answers = 0;
    for key in &keys {
        for (method, target, headers) in places(key, &login) {
            let answer = program.client().request(method, &target, &headers);
            let whole = format!("{}{}", answer.head(), String::from_utf8_lossy(&answer.body));
            assert!(!secrets.iter().any(|text| whole.contains(text)), "{method} {whole}");
            answers += 1;
        }
        // A head that is no HTTP.
        let answer = program
            .client()
            .ask(format!("GET /{key} HTTP/9.9 x\r\n\r\n"));
        assert!(answer.status >= 400 && !answer.text().contains(&key[17..60]));
    }
    program.terminate();
    program.exit();
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(
        written.contains("key_in_query") && written.contains("scope_missing"),
        "{written}"
    );
    let files = searched(scene.state.path(), &secrets) + searched(outside.path(), &secrets);
    say(&format!(
        "API keys: canaries of {} keys in 0 of {files} files and 0 of {answers} answers\n",
        keys.len()
    ));
}

#[test]
fn a_restored_database_has_no_good_key() {
    let (scene, service) = Scene::trading();
    let state = format!("--state-dir={}", scene.state.path().display());
    let login = bearer(&service.register("asha@example.com", PASSWORD));
    let key = bearer(&made(&service, &login, ALL, "").1);
    let aside = tempfile::tempdir().unwrap();
    let copy = aside.path().join("copy");
    let copy = copy.to_str().unwrap();
    assert_eq!(run(&mut bhav(&["backup", copy, &state])).code, Some(0));
    service.stop();
    run(&mut bhav(&["restore", copy, "--yes", &state])).with_code(0);
    let service = scene.start();
    get(&service, "/api/journal", &key).expect_problem(401, "key_invalid");
    let again = service
        .client()
        .account("login", "asha@example.com", PASSWORD);
    let login = bearer(&again.field("access_token"));
    assert_eq!(get(&service, "/api/keys", &login).text(), r#"{"keys":[]}"#);
    assert!(run(&mut bhav(&["key", "list", &state])).out.contains("old"));
}
