//! E-mail addresses and names, compared as people see them; passwords in each form of their
//! letters.

use bhav::store::FILE_NAME;
use rusqlite::Connection;
use sonic_rs::JsonValueTrait;

use super::keys::PASSWORD;
use crate::support::{Scene, Service, bearer};

fn register(service: &Service, email: &str) -> crate::support::Answer {
    service.account("register", email, PASSWORD)
}

#[test]
fn an_address_is_one_account_however_it_is_written() {
    let (_scene, service) = Scene::trading();
    let first = register(&service, "user@xn--bcher-kva.example").with_status(201);
    assert_eq!(first.json()["user"]["email"].as_str(), Some("user@bücher.example"));
    for email in [
        "user@bücher.example",
        "USER@bu\u{308}cher.example",
        " user@BÜCHER.EXAMPLE ",
    ] {
        register(&service, email).expect_problem(400, "email_taken");
        let answer = service.account("login", email, PASSWORD);
        assert_eq!(answer.status, 200, "{email}: {}", answer.text());
    }
    register(&service, "z\u{e4}@example.in").with_status(201);
    register(&service, "za\u{308}@example.in").expect_problem(400, "email_taken");
}

#[test]
fn what_nobody_sees_is_refused_by_its_place() {
    let (_scene, service) = Scene::trading();
    for email in [
        "\u{200b}ash@example.in",
        "ash\u{ad}a@example.in",
        "asha@exam\u{200d}ple.in",
        "asha\u{2060}@example.in",
        "asha\u{202e}@example.in",
        "a\u{a0}sha@example.in",
        "asha\u{3164}@example.in",
    ] {
        let answer = register(&service, email);
        answer.expect_problem(400, "validation_failed");
        let fault = &answer.json()["errors"][0];
        assert_eq!(fault["field"].as_str(), Some("email"));
        assert!(
            fault["message"].as_str().unwrap().starts_with("Character "),
            "{}",
            answer.text()
        );
        service
            .account("login", email, PASSWORD)
            .expect_problem(401, "invalid_credentials");
    }
}

/// Accounts of earlier versions are stored as they were typed. Each stays its owner's.
#[test]
fn accounts_of_earlier_versions_stay_their_owners() {
    let scene = Scene::at(crate::support::TRADING);
    let stored = [
        "user@xn--bcher-kva.example",
        "user@bücher.example",
        "nfd\u{65}\u{301}@example.in",
        "\u{200b}ash@example.in",
    ];
    let passwords = [
        "first green parrot",
        "second green parrot",
        "third green parrot",
        "4th parrot",
    ];
    {
        let service = scene.start();
        for (at, password) in passwords.iter().enumerate() {
            let email = format!("a{at}@example.com");
            service
                .account("register", &email, password)
                .with_status(201);
        }
        service.stop();
    }
    let file = Connection::open(scene.state.path().join(FILE_NAME)).unwrap();
    for (at, email) in stored.iter().enumerate() {
        let change = "UPDATE users SET email = ?1 WHERE email = ?2";
        assert_eq!(
            file.execute(change, [*email, &format!("a{at}@example.com")])
                .unwrap(),
            1
        );
    }
    drop(file);
    let service = scene.start();
    for (email, at) in [
        (stored[0], 0),
        (stored[1], 1),
        ("USER@bu\u{308}cher.example", 1),
        (stored[2], 2),
        ("nfd\u{e9}@example.in", 2),
        (stored[3], 3),
    ] {
        for (other, password) in passwords.iter().enumerate() {
            let status = service.account("login", email, password).status;
            assert_eq!(status == 200, other == at, "{email:?} with password {other}: {status}");
        }
    }
    for taken in ["nfd\u{e9}@example.in", "user@Bücher.example"] {
        register(&service, taken).expect_problem(400, "email_taken");
    }
}

#[test]
fn a_password_is_typed_on_any_system() {
    let (_scene, service) = Scene::trading();
    let (composed, loose) = ("grünes Äffchen", "gru\u{308}nes A\u{308}ffchen");
    for (email, chosen) in [("a@example.com", composed), ("b@example.com", loose)] {
        service.account("register", email, chosen).with_status(201);
        for typed in [composed, loose] {
            assert_eq!(service.account("login", email, typed).status, 200, "{chosen} {typed}");
        }
        assert_eq!(service.account("login", email, "grunes Affchen").status, 401);
    }
    // Counted as people count: seven letters are too few in either form.
    for short in ["ä\u{65}bcdéf", "a\u{308}ebcde\u{301}f"] {
        let answer = service.account("register", "c@example.com", short);
        answer.expect_problem(400, "validation_failed");
        assert!(answer.text().contains("At least 8 characters."), "{}", answer.text());
    }
    let longest = "e\u{301}q".repeat(128);
    service
        .account("register", "d@example.com", &format!("{longest}x"))
        .with_status(400);
}

#[test]
fn names_are_seen_and_composed() {
    let (_scene, service) = Scene::trading();
    let auth = bearer(&service.register("asha@example.com", PASSWORD));
    let lists = |name: &str| {
        let body = format!(r#"{{"watchlists":[{{"name":"{name}","symbols":[]}}]}}"#);
        service
            .client()
            .send_json("PUT", "/api/watchlists", &auth, &body)
    };
    let key = |name: &str| {
        let body = format!(
            r#"{{"name":"{name}","scopes":["market:read"],"current_password":"{PASSWORD}"}}"#
        );
        service.post("/api/keys", &auth, &body)
    };
    let entry = |tag: &str| {
        let body = format!(
            r#"{{"traded_on":"2026-11-20","symbol":"NSE:INFY","side":"buy","quantity":1,
            "price":1,"tags":["{tag}"]}}"#
        );
        service.post("/api/journal", &auth, &body)
    };
    for hidden in [
        "\u{200b}",
        "a\u{200b}b",
        "\u{feff}",
        "\u{3164}",
        "a\u{202e}b",
        "\u{200d}",
        "a\u{ad}",
    ] {
        for answer in [lists(hidden), key(hidden), entry(hidden)] {
            answer.expect_problem(400, "validation_failed");
            assert!(answer.text().contains("Character "), "{hidden:?}: {}", answer.text());
        }
    }
    for (given, stored) in [
        ("Cafe\u{301}", "Café"),
        ("My\u{a0}list", "My list"),
        ("क्\u{200d}ष", "क्\u{200d}ष"),
        ("❤\u{fe0f}", "❤\u{fe0f}"),
    ] {
        for answer in [lists(given), key(given), entry(given)] {
            assert!(answer.status < 300, "{given:?}: {}", answer.text());
            assert!(answer.text().contains(&format!("\"{stored}\"")), "{}", answer.text());
        }
    }
}
