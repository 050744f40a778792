//! Exports of journals from before their text was bounded, and many exports at once.

use crate::support::wait::PATIENCE_MS;
use crate::support::{Answer, Scene, Service, bearer, until};
use rusqlite::Connection;
use sonic_rs::JsonValueTrait;
use std::sync::atomic::Ordering::Relaxed;

const EXPORT: &str = "/api/portfolio/export";

/// A user, as the headers of their requests.
fn user(service: &Service, name: &str) -> String {
    bearer(&service.register(&format!("{name}@mail.example"), "correct horse"))
}

/// Writes `entries` entries of `bytes` bytes of text into the user's journal, beyond every bound.
fn write(scene: &Scene, name: &str, entries: usize, bytes: usize) {
    let file = Connection::open(scene.state.path().join(bhav::store::FILE_NAME)).unwrap();
    let email = format!("{name}@mail.example");
    let notes = "n".repeat(bytes);
    for _ in 0..entries {
        let entry = "INSERT INTO journal (user_id, traded_on, symbol, side, quantity, price, notes,
                tags, created_ms, updated_ms)
            SELECT id, '2026-11-20', 'X', 'buy', '1', '1', ?2, '[]', 1, 1
            FROM users WHERE email = ?1";
        assert_eq!(file.execute(entry, (&email, &notes)).unwrap(), 1);
    }
    let count = "UPDATE users SET journal_entries = journal_entries + ?2,
        journal_bytes = journal_bytes + ?2 * (?3 + 3) WHERE email = ?1";
    file.execute(count, (&email, entries as i64, bytes as i64))
        .unwrap();
}

/// A service that waits for an export, and for who reads it, for as long as a busy machine may need
/// for the largest.
pub fn patient() -> (Scene, Service) {
    let (scene, service) = Scene::trading_with(|config| {
        config.http.unread_output_timeout_ms = 600_000;
    });
    let state = service.0.server().shared().service.state();
    state.portfolio.exports.wait_ms.store(PATIENCE_MS, Relaxed);
    (scene, service)
}

fn export(service: &Service, auth: &str) -> Answer {
    service.client().request("GET", EXPORT, auth)
}

#[test]
fn a_journal_too_long_for_one_document_is_read_by_pages() {
    let (scene, service) = patient();
    let auth = user(&service, "asha");
    write(&scene, "asha", 47, 1024 * 1024);
    assert_eq!(export(&service, &auth).status, 200);
    write(&scene, "asha", 1, 1024 * 1024);
    // The one before counts as under way until the service has let go of what it sent.
    let answer = until("the refusal", || {
        let answer = export(&service, &auth);
        let over = answer.json()["code"].as_str() != Some("export_in_progress");
        over.then_some(answer)
    });
    let json = answer.expect_problem(409, "export_too_long");
    assert!(json["detail"].to_string().contains("/api/journal"));
    let page = service
        .client()
        .request("GET", "/api/journal?limit=200", &auth);
    assert!(
        page.status == 200 && page.body.len() < 1100 * 1024,
        "one entry over a page's bound"
    );
}

#[test]
fn few_long_exports_are_made_or_unread_at_once_and_short_ones_pass_them() {
    let (scene, service) = patient();
    let names = ["a", "b", "c", "d", "e"];
    let users = names.map(|name| user(&service, name));
    let brief = user(&service, "brief");
    for name in names {
        // More than the socket buffers hold.
        write(&scene, name, 2, 8 * 1024 * 1024);
    }
    let begun = |auth: &String| {
        let mut reader = service.client();
        let request = format!("GET {EXPORT} HTTP/1.1\r\nHost: bhav\r\n{auth}\r\n");
        assert!(reader.write(request).more());
        reader
    };
    let readers: Vec<_> = users[..4].iter().map(begun).collect();
    let answer = export(&service, &users[4]);
    answer.expect_problem(503, "export_busy");
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(export(&service, &brief).status, 200);
    let exports = &service
        .0
        .server()
        .shared()
        .service
        .state()
        .portfolio
        .exports;
    assert_eq!((exports.underway(), exports.refused.value()), (4, 1));
    drop(readers);
    until("the places of those who went away", || (exports.underway() == 0).then_some(()));
    assert_eq!(export(&service, &users[4]).status, 200);
}
