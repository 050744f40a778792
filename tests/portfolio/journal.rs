//! The trade journal over HTTP: exact numbers, pages, and users who cannot see each other.

use super::exports;
use crate::market::figures::raw;
use crate::support::{Answer, Client, Scene, Service, TRADING, bearer, members, until};
use bhav::base::Clock;
use bhav::sim::SimSettings;
use bhav::store::settings::StoreSettings;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

const JOURNAL: &str = "/api/journal";
const ENTRY: &str = r#"{"traded_on":"2026-11-20","symbol":"NSE:M&M","side":"buy","quantity":10,
    "price":3012.05}"#;

struct User {
    client: Client,
    headers: String,
}

impl User {
    fn new(service: &Service, email: &str) -> Self {
        let headers = bearer(&service.register(email, "correct horse"));
        Self {
            client: service.client(),
            headers,
        }
    }

    fn get(&mut self, target: &str) -> Answer {
        self.client.request("GET", target, &self.headers)
    }

    fn delete(&mut self, target: &str) -> Answer {
        self.client.request("DELETE", target, &self.headers)
    }

    fn send(&mut self, method: &str, target: &str, body: &str) -> Answer {
        self.client.send_json(method, target, &self.headers, body)
    }

    /// Writes an entry and gives its id.
    #[track_caller]
    fn write(&mut self, date: &str, symbol: &str) -> i64 {
        let body = ENTRY.replace("2026-11-20", date).replace("NSE:M&M", symbol);
        let answer = self.send("POST", JOURNAL, &body).with_status(201);
        answer.json()["id"].as_i64().unwrap()
    }

    /// Ids of a page, and the cursor of the next.
    fn page(&mut self, query: &str) -> (Vec<i64>, Option<String>) {
        let answer = self.get(&format!("{JOURNAL}?{query}")).with_status(200);
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
        assert_eq!(answer.header("vary"), Some("Authorization, Cookie"));
        let json = answer.json();
        assert_eq!(members(&json), ["entries", "next_cursor"]);
        let id = |entry: &Value| entry["id"].as_i64().unwrap();
        let ids = json["entries"].as_array().unwrap().iter().map(id).collect();
        (ids, json["next_cursor"].as_str().map(str::to_owned))
    }
}

#[test]
fn one_user_may_change_so_much_a_minute() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    assert_eq!(StoreSettings::default().writes_per_user_per_minute, 600, "by default");
    config.store.writes_per_user_per_minute = 6;
    let service = scene.start_with(&config);
    let mut user = User::new(&service, "much@example.com");
    let mut other = User::new(&service, "little@example.com");
    let id = user.write("2026-11-20", "NSE:INFY");
    let entry = format!("{JOURNAL}/{id}");
    for _ in 0..2 {
        assert_eq!(user.send("PUT", &entry, ENTRY).status, 200);
    }
    // A refused entry takes nothing from the limit.
    for _ in 0..9 {
        user.send("POST", JOURNAL, "{}")
            .expect_problem(400, "validation_failed");
    }
    assert_eq!(user.delete(&format!("{JOURNAL}/999")).status, 404);
    assert_eq!(user.delete("/api/portfolio/data").status, 200);
    user.write("2026-11-20", "NSE:TCS");
    let before = user.get(&entry).json();
    for refused in [
        user.send("POST", JOURNAL, ENTRY),
        user.send("PUT", &entry, &ENTRY.replace("NSE:M&M", "NSE:SBIN")),
        user.delete(&entry),
        user.delete("/api/portfolio/data"),
    ] {
        refused.expect_problem(429, "too_many_writes");
        assert_eq!(refused.header("retry-after"), Some("10"));
    }
    assert_eq!(user.get(&entry).json(), before, "reading goes on, and nothing was changed");
    other.write("2026-11-20", "NSE:INFY");
    assert_eq!(service.0.server().shared().service.state().writes.refused(), 4);
    clock.advance_ms(9_999);
    user.send("POST", JOURNAL, ENTRY)
        .expect_problem(429, "too_many_writes");
    clock.advance_ms(1);
    user.write("2026-11-20", "NSE:INFY");
    // On this clock no drain ends by its deadline.
    drop((user, other));
}

#[test]
fn an_entry_is_written_shown_replaced_and_deleted() {
    let (_scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    let body = r#"{"traded_on":"2026-11-19","symbol":"NIFTY 26NOV 25000 CE","side":"sell",
        "quantity":1.5e2,"price":0.05,"fees":20.123456,"strategy":"Straddle é",
        "notes":"line\nline \"two\"","tags":["weekly","₹"],"unknown":1}"#;
    let made = asha.send("POST", JOURNAL, body).with_status(201);
    let json = made.json();
    let expected = [
        "id",
        "traded_on",
        "symbol",
        "side",
        "quantity",
        "price",
        "fees",
        "strategy",
        "notes",
        "tags",
        "created_at",
        "updated_at",
        "revision",
    ];
    assert_eq!(members(&json), expected);
    let id = json["id"].as_i64().unwrap();
    let path = format!("{JOURNAL}/{id}");
    assert_eq!(made.header("location"), Some(&*path));
    for (name, number) in [
        ("quantity", "150"),
        ("price", "0.05"),
        ("fees", "20.123456"),
    ] {
        assert_eq!(raw(made.text(), name), number);
    }
    assert_eq!(json["notes"], "line\nline \"two\"");
    assert_eq!(json["tags"][1], "₹");
    assert!(
        json["created_at"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-20T11:00:")
    );
    let shown = asha.get(&path);
    assert_eq!((shown.status, shown.text()), (200, made.text()));
    assert_eq!(shown.header("cache-control"), Some("private, no-cache"));

    let replaced = asha.send("PUT", &path, ENTRY).with_status(200);
    let now = replaced.json();
    assert!(now["notes"].is_null() && now["fees"].is_null() && now["strategy"].is_null());
    assert_eq!(now["tags"].as_array().unwrap().len(), 0);
    assert_eq!(
        (&now["created_at"], &now["symbol"].as_str()),
        (&json["created_at"], &Some("NSE:M&M"))
    );
    assert_eq!(asha.get(&path).text(), replaced.text());

    let gone = asha.delete(&path);
    assert_eq!(gone.status, 200);
    assert_eq!(members(&gone.json()), ["message"]);
    for answer in [
        asha.get(&path),
        asha.delete(&path),
        asha.send("PUT", &path, ENTRY),
    ] {
        answer.expect_problem(404, "entry_not_found");
    }
}

#[test]
fn pages_lead_through_everything_newest_first() {
    let (_scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    assert_eq!(asha.page(""), (Vec::new(), None));
    let mut ids = Vec::new();
    for (date, symbol) in [
        ("2026-11-18", "A"),
        ("2026-11-20", "B"),
        ("2026-11-18", "C"),
        ("2026-11-19", "D"),
        ("2026-11-20", "E"),
    ] {
        ids.push(asha.write(date, symbol));
    }
    let expected = [ids[4], ids[1], ids[3], ids[2], ids[0]];
    assert_eq!(asha.page(""), (expected.to_vec(), None));
    assert_eq!(asha.page("limit=5"), (expected.to_vec(), None));
    for limit in 1..=4 {
        let (mut seen, mut cursor) = asha.page(&format!("limit={limit}"));
        while let Some(next) = cursor {
            let (page, after) = asha.page(&format!("limit={limit}&cursor={next}"));
            assert!(!page.is_empty() && page.len() <= limit);
            seen.extend(page);
            cursor = after;
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
    // The position of a deleted entry still separates earlier entries from later ones.
    let (_, cursor) = asha.page("limit=2");
    assert_eq!(asha.delete(&format!("{JOURNAL}/{}", ids[1])).status, 200);
    let rest = asha.page(&format!("cursor={}", cursor.unwrap())).0;
    assert_eq!(rest, &expected[2..]);
}

#[test]
fn another_users_entries_are_as_if_they_were_not() {
    let (_scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    let mut binod = User::new(&service, "b@mail.example");
    let id = asha.write("2026-11-20", "SECRET");
    asha.write("2026-11-19", "SECRET");
    let path = format!("{JOURNAL}/{id}");
    let mine = asha.get(&path);
    let never = format!("{JOURNAL}/999999");
    let text = |answer: Answer| {
        answer.expect_problem(404, "entry_not_found");
        answer.text().to_owned()
    };
    for target in [&path, &never] {
        let told = [
            text(binod.get(target)),
            text(binod.send("PUT", target, ENTRY)),
            text(binod.delete(target)),
        ];
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0], told[2]);
        assert_eq!(told[0], text(binod.get(&never)), "the same words for both");
    }
    assert_eq!(asha.get(&path).text(), mine.text(), "untouched");
    // Her cursor shows him nothing.
    let cursor = asha.page("limit=1").1.unwrap();
    binod.write("2026-11-01", "HIS");
    let stolen = binod.get(&format!("{JOURNAL}?cursor={cursor}"));
    stolen.expect_problem(400, "cursor_invalid");
    assert_eq!(asha.page(&format!("cursor={cursor}")).0.len(), 1, "hers still works");
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let (_scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    for query in [
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=-1",
        "limit=%2B5",
        "limit=1&limit=1",
    ] {
        let json = asha
            .get(&format!("{JOURNAL}?{query}"))
            .expect_problem(400, "validation_failed");
        assert_eq!(json["errors"][0]["field"], "limit", "{query}");
    }
    assert_eq!(asha.get(&format!("{JOURNAL}?limit=200")).status, 200);
    for cursor in ["", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAA", "%00", "%20"] {
        let answer = asha.get(&format!("{JOURNAL}?cursor={cursor}"));
        answer.expect_problem(400, "cursor_invalid");
    }
    asha.get(&format!("{JOURNAL}?cursor=%zz"))
        .expect_problem(400, "validation_failed");
    let json = asha.send("POST", JOURNAL, r#"{"side":"hold","price":"1"}"#);
    let json = json.expect_problem(400, "validation_failed");
    let fields: Vec<_> = json["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["field"].as_str().unwrap())
        .collect();
    for field in ["traded_on", "symbol", "side", "quantity", "price"] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }
    let twice = ENTRY.replace("{", "{\"side\":\"sell\",");
    asha.send("POST", JOURNAL, &twice)
        .expect_problem(400, "malformed_json");
    for id in ["0", "-1", "01", "x", "99999999999999999999", ""] {
        asha.get(&format!("{JOURNAL}/{id}"))
            .expect_problem(404, "not_found");
    }
    let answer = asha.client.request("PATCH", JOURNAL, &asha.headers);
    answer.expect_problem(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS, POST"));
}

#[test]
fn nobody_comes_in_without_a_token() {
    let (_scene, service) = Scene::trading();
    let mut client = service.client();
    for (method, path) in [
        ("GET", JOURNAL),
        ("POST", JOURNAL),
        ("GET", "/api/journal/1"),
        ("PUT", "/api/journal/1"),
        ("DELETE", "/api/journal/1"),
    ] {
        let answer = client.send_json(method, path, "", ENTRY);
        answer.expect_problem(401, "token_missing");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[test]
fn entries_outlive_a_restart_and_end_with_the_account() {
    let (scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    let id = asha.write("2026-11-20", "INFY");
    let headers = asha.headers.clone();
    let before = asha.get(&format!("{JOURNAL}/{id}"));
    drop(asha);
    service.stop();
    let service = scene.start();
    let mut asha = User {
        client: service.client(),
        headers,
    };
    assert_eq!(asha.get(&format!("{JOURNAL}/{id}")).text(), before.text());
    asha.send("DELETE", "/api/auth/account", r#"{"password":"correct horse"}"#)
        .with_status(200);
    assert_eq!(asha.get(JOURNAL).status, 401);
}

#[test]
fn a_cursor_outlives_a_restart() {
    let (scene, service) = Scene::trading();
    let mut asha = User::new(&service, "a@mail.example");
    let ids: Vec<i64> = (16..=20)
        .map(|day| asha.write(&format!("2026-11-{day}"), "INFY"))
        .collect();
    let (first, cursor) = asha.page("limit=2");
    assert_eq!(first, [ids[4], ids[3]]);
    let headers = asha.headers.clone();
    drop(asha);
    service.stop();
    let service = scene.start();
    let mut asha = User {
        client: service.client(),
        headers,
    };
    let cursor = cursor.unwrap();
    let (second, next) = asha.page(&format!("limit=2&cursor={cursor}"));
    assert_eq!(second, [ids[2], ids[1]]);
    assert_eq!(asha.page(&format!("cursor={}", next.unwrap())).0, [ids[0]]);
    // A cursor is still one user's, and only issued text is accepted.
    let mut binod = User::new(&service, "b@mail.example");
    binod
        .get(&format!("{JOURNAL}?cursor={cursor}"))
        .expect_problem(400, "cursor_invalid");
    let other = if cursor.starts_with('A') { "B" } else { "A" };
    let changed = format!("{JOURNAL}?cursor={other}{}", &cursor[1..]);
    asha.get(&changed).expect_problem(400, "cursor_invalid");
}

/// Entries with the longest note, whose characters have four bytes each.
const LONG: usize = 16_000;

impl User {
    /// Fills the journal with long entries, and returns their number.
    fn fill(&mut self) -> usize {
        let note = "😀".repeat(LONG / 4);
        let body = ENTRY.replace("}", &format!(",\"notes\":\"{note}\"}}"));
        for count in 0.. {
            let answer = self.send("POST", JOURNAL, &body);
            if answer.status != 201 {
                let json = answer.expect_problem(409, "limit_reached");
                assert!(
                    json["detail"]
                        .as_str()
                        .unwrap()
                        .contains("8388608 bytes of journal text")
                );
                return count;
            }
        }
        unreachable!("the journal is bounded")
    }
}

#[test]
fn a_full_journal_is_paged_by_size_and_exported_once_at_a_time() {
    let (_scene, service) = exports::patient();
    let mut asha = User::new(&service, "a@mail.example");
    let entries = asha.fill();
    // Connected only now: a connection that waits for long is closed.
    let mut binod = User::new(&service, "b@mail.example");
    assert_eq!(entries, 8 * 1024 * 1024 / (LONG + "NSE:M&M[]".len()));
    binod.write("2026-11-20", "INFY");

    let (mut seen, mut cursor) = asha.page("limit=200");
    while let Some(next) = cursor {
        assert!(seen.len() % 16 == 0, "each page has what 256 KiB take");
        let (page, after) = asha.page(&format!("limit=200&cursor={next}"));
        seen.extend(page);
        cursor = after;
    }
    assert_eq!(seen.len(), entries);

    const EXPORT: &str = "/api/portfolio/export";
    let whole = asha.get(EXPORT);
    assert_eq!(whole.status, 200);
    assert_eq!(whole.json()["journal"].as_array().unwrap().len(), entries);
    let head = asha.client.request("HEAD", EXPORT, &asha.headers);
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, whole.header("content-length"))
    );

    // Begun and not read on: more than the socket buffers hold.
    let mut reader = service.client();
    let request = format!("GET {EXPORT} HTTP/1.1\r\nHost: bhav\r\n{}\r\n", asha.headers);
    assert!(reader.write(request).more());
    for method in ["GET", "HEAD"] {
        let answer = asha.client.request(method, EXPORT, &asha.headers);
        assert_eq!((answer.status, answer.header("retry-after")), (409, Some("5")), "{method}");
    }
    asha.get(EXPORT).expect_problem(409, "export_in_progress");
    assert_eq!(asha.get(&format!("{JOURNAL}?limit=1")).status, 200);
    assert_eq!(binod.get(EXPORT).status, 200, "others have theirs");
    let exports = &service
        .0
        .server()
        .shared()
        .service
        .state()
        .portfolio
        .exports;
    assert_eq!((exports.underway(), exports.refused.value()), (1, 3));
    drop(reader);
    until("the place of who went away", || (exports.underway() == 0).then_some(()));
    let again = until("another export", || {
        Some(asha.get(EXPORT)).filter(|answer| answer.status == 200)
    });
    assert_eq!(again.body.len(), whole.body.len());

    let erased = asha.send("DELETE", "/api/auth/account", r#"{"password":"correct horse"}"#);
    assert_eq!(erased.json()["deleted"]["journal_entries"].as_u64(), Some(entries as u64));
}
