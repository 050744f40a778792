//! Watch lists of an account over HTTP: replaced together, never another's, and never one client's
//! change undone by another.

use std::sync::Barrier;

use bhav::store::FILE_NAME;
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::keys::{ALL, made};
use crate::support::{Answer, Client, Scene, Service, bearer, members};

const LISTS: &str = "/api/watchlists";

struct User<'a> {
    service: &'a Service,
    auth: String,
}

impl<'a> User<'a> {
    fn new(service: &'a Service, name: &str) -> Self {
        let token = service.register(&format!("{name}@example.com"), "nine green parrots");
        Self {
            service,
            auth: bearer(&token),
        }
    }

    fn get(&self, target: &str) -> Answer {
        self.service.client().request("GET", target, &self.auth)
    }

    fn put(&self, lists: &str, lines: &str) -> Answer {
        let body = format!(r#"{{"watchlists":{lists}}}"#);
        let headers = format!("{}{lines}", self.auth);
        self.service
            .client()
            .send_json("PUT", LISTS, &headers, &body)
    }

    /// Replaces the lists, and gives those that are answered.
    #[track_caller]
    fn replaced(&self, lists: &str, lines: &str) -> String {
        let answer = self.put(lists, lines).with_status(200);
        assert_eq!(
            (answer.header("etag"), answer.header("cache-control")),
            (None, Some("no-store"))
        );
        lists_of(&answer)
    }

    /// The present lists.
    fn lists(&self) -> String {
        lists_of(&self.get(LISTS))
    }

    /// The header line that expects the present lists.
    fn as_seen(&self) -> String {
        format!("If-Match: {}\r\n", self.get(LISTS).header("etag").unwrap())
    }
}

fn lists_of(answer: &Answer) -> String {
    assert_eq!(members(&answer.json()), ["watchlists", "revision"], "{}", answer.text());
    let (_, lists) = answer.text().split_once("{\"watchlists\":").unwrap();
    lists.rsplit_once(",\"revision\":").unwrap().0.to_owned()
}

#[test]
fn lists_keep_their_order_their_ids_and_their_owner() {
    let (scene, service) = Scene::trading();
    let (asha, ravi) = (User::new(&service, "asha"), User::new(&service, "ravi"));
    service.get(LISTS).expect_problem(401, "token_missing");
    let before = asha.get(LISTS);
    assert_eq!((before.status, &*lists_of(&before)), (200, "[]"));
    assert_eq!(before.header("cache-control"), Some("private, no-cache"));
    assert_eq!(before.header("vary"), Some("Authorization, Cookie"));

    let new = r#"[{"name":" Shares ₹ ","symbols":["NSE:M&M","NSE:INFY","NSE:NOSUCH"],"x":1},
        {"id":null,"name":"Indices","symbols":["BSE:SENSEX","NSE:NIFTY 50"]}]"#;
    let shares = r#"{"id":1,"name":"Shares ₹","symbols":["NSE:M&M","NSE:INFY","NSE:NOSUCH"]}"#;
    let indices = r#"{"id":2,"name":"Indices","symbols":["BSE:SENSEX","NSE:NIFTY 50"]}"#;
    let both = format!("[{shares},{indices}]");
    assert_eq!(asha.replaced(new, ""), both);
    assert_eq!(asha.lists(), both);
    assert_eq!(ravi.lists(), "[]");
    // Lists and symbols in another order, one renamed, one new, then one deleted.
    let moved = indices.replace(r#""BSE:SENSEX","NSE:NIFTY 50""#, r#""NSE:NIFTY 50","BSE:SENSEX""#);
    let renamed = shares.replace("Shares ₹", "Mine");
    let new = r#"{"name":"Later","symbols":[]}"#;
    let with_id = r#"{"id":3,"name":"Later","symbols":[]}"#;
    let all = format!("[{moved},{new},{renamed}]");
    let stored = format!("[{moved},{with_id},{renamed}]");
    assert_eq!(asha.replaced(&all, ""), stored);
    assert_eq!(asha.replaced(&format!("[{renamed}]"), ""), format!("[{renamed}]"));

    // Ids of lists that are gone, never were, or are another's: nothing is stored.
    ravi.replaced(&format!("[{new}]"), "");
    for (user, id) in [(&asha, 2), (&asha, 99), (&ravi, 3)] {
        let lists =
            format!(r#"[{{"name":"New","symbols":[]}},{{"id":{id},"name":"a","symbols":[]}}]"#);
        user.put(&lists, "")
            .expect_problem(404, "watchlist_not_found");
    }
    assert_eq!(asha.lists(), format!("[{renamed}]"));
    assert_eq!(ravi.lists(), r#"[{"id":1,"name":"Later","symbols":[]}]"#);
    // An id is not given again, and all survives a restart and the portfolio's deletion.
    assert_eq!(
        asha.replaced(r#"[{"name":"B","symbols":[]}]"#, ""),
        r#"[{"id":4,"name":"B","symbols":[]}]"#
    );
    let export = asha.get("/api/portfolio/export");
    assert!(
        export
            .text()
            .contains(r#""watchlists":[{"id":4,"name":"B","symbols":[]}],"api_keys":"#)
    );
    assert_eq!(
        service
            .client()
            .request("DELETE", "/api/portfolio/data", &asha.auth)
            .status,
        200
    );
    let auth = asha.auth.clone();
    service.stop();
    let service = scene.start();
    let asha = User {
        service: &service,
        auth,
    };
    assert_eq!(asha.lists(), r#"[{"id":4,"name":"B","symbols":[]}]"#);
}

#[test]
fn a_key_reads_lists_with_the_portfolio_s_scope_and_never_writes() {
    let (_scene, service) = Scene::trading();
    let asha = User::new(&service, "asha");
    asha.replaced(r#"[{"name":"B","symbols":[]}]"#, "");
    let (_, key) = made(&service, &asha.auth, ALL, "");
    let by_key = User {
        service: &service,
        auth: bearer(&key),
    };
    assert_eq!(by_key.lists(), asha.lists());
    by_key.put("[]", "").expect_problem(403, "login_required");
}

/// Lists that are refused, and what is said of each.
fn refused_lists() -> Vec<(String, &'static str)> {
    let list = |more: &str| format!(r#"[{{"name":"a","symbols":[]{more}}}]"#);
    let named = |name: &str| format!(r#"[{{"name":"{name}","symbols":[]}}]"#);
    let with = |symbols: &str| format!(r#"[{{"name":"a","symbols":[{symbols}]}}]"#);
    let over = (0..11)
        .map(|n| format!(r#"{{"name":"{n}","symbols":[]}}"#))
        .collect::<Vec<_>>();
    let many = (0..51)
        .map(|n| format!("\"NSE:X{n}\""))
        .collect::<Vec<_>>()
        .join(",");
    vec![
        ("null".to_owned(), "required"),
        ("7".to_owned(), "a short list of objects"),
        (r#"["a"]"#.to_owned(), "a short list of objects"),
        (list(r#","name":"b""#), "a short list of objects"),
        (format!("[{}]", over.join(",")), "At most 10"),
        (r#"[{"name":"a"}]"#.to_owned(), "Number 1, symbols: This field is required."),
        (r#"[{"symbols":[]}]"#.to_owned(), "Number 1, name: This field is required."),
        (named("   "), "Number 1, name: This field is required."),
        (
            named("a\\u0000b"),
            "Number 1, name: Character 2 is a control character (U+0000)",
        ),
        (named(&"n".repeat(41)), "Number 1, name: At most 40 characters."),
        (
            list(r#","id":0"#),
            "Number 1, id: This field must be a whole number above zero.",
        ),
        (list(r#","id":1.5"#), "Number 1, id"),
        (list(r#","id":"1""#), "Number 1, id"),
        (with(r#""INFY""#), "Number 1, symbols: Each is NSE: or BSE:"),
        (with(r#""NSE:infy""#), "Number 1, symbols: Each is NSE: or BSE:"),
        (with("7"), "Number 1, symbols: This field must be a short list of strings."),
        (with(&many), "Number 1, symbols: At most 50 of them."),
        (with(r#""NSE:INFY","NSE:INFY""#), "Number 1, symbols: Each once."),
        (
            r#"[{"name":"ÄRA","symbols":[]},{"name":"ära ","symbols":[]}]"#.to_owned(),
            "Each name once, in capitals or not.",
        ),
        (
            r#"[{"id":1,"name":"A","symbols":[]},{"id":1,"name":"B","symbols":[]}]"#.to_owned(),
            "Each id once.",
        ),
    ]
}

#[test]
fn what_is_no_list_is_refused_with_every_fault() {
    let (_scene, service) = Scene::trading();
    let user = User::new(&service, "asha");
    let first = user.replaced(r#"[{"name":"A","symbols":["NSE:INFY"]}]"#, "");
    for (lists, said) in refused_lists() {
        let json = user
            .put(&lists, "")
            .expect_problem(400, "validation_failed");
        let errors = json["errors"].as_array().unwrap();
        let is_said = |error: &sonic_rs::Value| {
            error["field"] == "watchlists" && error["message"].as_str().unwrap().contains(said)
        };
        assert!(errors.iter().any(is_said), "{lists}: {json}");
    }
    let bad = r#"[{"name":"","symbols":["x"]},{"name":"b","symbols":[],"id":-1}]"#;
    let json = user.put(bad, "").expect_problem(400, "validation_failed");
    assert_eq!(json["errors"].as_array().unwrap().len(), 3, "{json}");
    assert_eq!(user.lists(), first, "nothing was stored");
    // As much as there may be, with the longest symbols, is stored and comes back.
    let symbols = |list: usize| {
        (0..50)
            .map(move |n| format!("\"NSE:{list}{n:02}{}\"", "&".repeat(41)))
            .collect::<Vec<_>>()
    };
    let lists: Vec<String> = (0..10)
        .map(|n| {
            format!(r#"{{"name":"{}{n}","symbols":[{}]}}"#, "₹".repeat(39), symbols(n).join(","))
        })
        .collect();
    let stored = user.replaced(&format!("[{}]", lists.join(",")), "");
    assert_eq!(user.lists(), stored);
    assert!(stored.len() > 25_000, "{}", stored.len());
}

#[test]
fn a_change_of_what_somebody_else_has_changed_is_refused() {
    let (_scene, service) = Scene::trading();
    let user = User::new(&service, "asha");
    let list = |name: &str| format!(r#"[{{"name":"{name}","symbols":[]}}]"#);
    let first = user.as_seen();
    let answer = user.put(&list("one"), &first);
    // The revision is the next tag, so a client goes on without reading.
    let next = format!("If-Match: \"{}\"\r\n", answer.field("revision"));
    assert_eq!(next, user.as_seen());
    user.put(&list("other"), &first)
        .expect_problem(412, "precondition_failed");
    // The precondition comes before an unknown id, so that a client has one case to treat.
    let unknown = r#"[{"id":9,"name":"a","symbols":[]}]"#;
    user.put(unknown, &first)
        .expect_problem(412, "precondition_failed");
    user.put(unknown, &next)
        .expect_problem(404, "watchlist_not_found");
    user.put("[]", "If-None-Match: *\r\n")
        .expect_problem(412, "precondition_failed");
    assert_eq!(user.lists(), r#"[{"id":1,"name":"one","symbols":[]}]"#);
    assert_eq!(user.put(&list("two"), &next).status, 200);
    assert_eq!(user.put(&list("three"), "If-Match: *\r\n").status, 200);
    assert_eq!(user.put(&list("four"), "").status, 200);

    const CLIENTS: usize = 8;
    for round in 0..5 {
        let lines = format!("{}{}", user.auth, user.as_seen());
        let together = Barrier::new(CLIENTS);
        let change = |number: usize| {
            let body = format!(r#"{{"watchlists":{}}}"#, list(&format!("{round} {number}")));
            let mut client = Client::connect(service.0.address());
            together.wait();
            client.send_json("PUT", LISTS, &lines, &body).status
        };
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let change = &change;
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| scope.spawn(move || change(number)))
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let count = |status: u16| statuses.iter().filter(|one| **one == status).count();
        assert_eq!((count(200), count(412)), (1, CLIENTS - 1), "{statuses:?}");
    }
}

#[test]
fn changes_of_lists_count_among_all_changes() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.store.writes_per_user_per_minute = 6;
    });
    let user = User::new(&service, "asha");
    for _ in 0..6 {
        assert_eq!(user.put("[]", "").status, 200);
        user.put("7", "").expect_problem(400, "validation_failed");
    }
    let refused = user.put("[]", "");
    refused.expect_problem(429, "too_many_writes");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(user.get(LISTS).status, 200);
}

/// As after a downgrade to this program.
#[test]
fn lists_of_a_newer_program_are_refused_in_words_and_stay() {
    let (scene, service) = Scene::trading();
    let user = User::new(&service, "asha");
    let other = User::new(&service, "ravi");
    user.replaced(r#"[{"name":"a","symbols":[]}]"#, "");
    let file = rusqlite::Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    let newer = "UPDATE watchlists SET version = 2, lists = '{\"sorted\":true}'";
    assert_eq!(file.execute(newer, []).unwrap(), 1);
    let words = "Your watch lists were stored by a newer version of this service; this one leaves \
                 them as they are.";
    for answer in [
        user.get(LISTS),
        user.put("[]", ""),
        user.get("/api/portfolio/export"),
    ] {
        answer.expect_problem(500, "internal_error");
        assert_eq!(answer.field("detail"), words);
    }
    let stands =
        "SELECT count(*) FROM watchlists WHERE version = 2 AND lists = '{\"sorted\":true}'";
    assert_eq!(
        file.query_row(stands, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        1
    );
    other.replaced(r#"[{"name":"b","symbols":[]}]"#, "");
    assert_eq!(service.health()["database"].as_str(), Some("ok"));
}
