//! Several cookies of the login's name: those of other services of the domain change nothing.

use sonic_rs::JsonValueTrait;

use crate::support::{Answer, Scene, Service, bearer};

const JOURNAL: &str = "/api/journal";
const SESSION: &str = "/api/auth/session";
const OWN: &str = "Origin: http://localhost\r\n";
const PASSWORD: &str = "correct horse";

/// What other libraries put into a cookie of this name, and what is left of old ones.
fn foreign(good: &str) -> Vec<String> {
    let (head, tag) = good.rsplit_once('.').unwrap();
    let reversed: String = tag.chars().rev().collect();
    vec![
        "other.apps.jwt".into(),
        String::new(),
        "\"\"".into(),
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl".into(),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.".into(),
        format!("{head}.{reversed}"),
        good[..good.len() - 1].into(),
        "x".repeat(3_000),
        "a=b==".into(),
        "%22quoted%22".into(),
        "null".into(),
        "\u{e9}".into(),
    ]
}

fn cookie(values: &[&str]) -> String {
    let pairs: Vec<String> = values
        .iter()
        .map(|value| format!("access_token_cookie={value}"))
        .collect();
    format!("Cookie: {}\r\n", pairs.join("; "))
}

fn get(service: &Service, target: &str, headers: &str) -> Answer {
    service.client().request("GET", target, headers)
}

#[test]
fn a_foreign_cookie_beside_a_good_one_changes_nothing() {
    let (_scene, service) = Scene::trading();
    let good = service.register("asha@mail.example", PASSWORD);
    let quoted = format!("\"{good}\"");
    for other in foreign(&good) {
        for headers in [
            cookie(&[&other, &good]),
            cookie(&[&good, &other]),
            cookie(&[&other, &other, &good, &other]),
            cookie(&[&other, &quoted]),
            format!("{}{}", cookie(&[&other]), cookie(&[&good])),
            format!("Cookie: a=b;access_token_cookie={other} ;  access_token_cookie = {good}\r\n"),
        ] {
            assert_eq!(get(&service, JOURNAL, &headers).status, 200, "{headers}");
            let session = get(&service, SESSION, &headers).json();
            assert_eq!(session["user"]["email"], "asha@mail.example", "{headers}");
            assert!(session.get("refused").is_none());
        }
        // Alone it is no login.
        let answer = get(&service, JOURNAL, &cookie(&[&other]));
        answer.expect_problem(401, "token_invalid");
        let session = get(&service, SESSION, &cookie(&[&other, &other])).json();
        assert!(session["user"].is_null() && session.get("refused").is_none());
    }
    // The page's origin is asked for as ever.
    let both = cookie(&["other.apps.jwt", &good]);
    service
        .post("/api/auth/logout", &both, "")
        .expect_problem(403, "cross_site_request");
    // A header counts alone, good or bad.
    let headers = format!("{}{}", bearer("bad"), cookie(&[&good]));
    get(&service, JOURNAL, &headers).expect_problem(401, "token_invalid");
    let headers = format!("{}{}", bearer(&good), cookie(&["bad", "worse"]));
    assert_eq!(get(&service, JOURNAL, &headers).status, 200);
}

#[test]
fn logins_of_different_accounts_are_refused_by_the_cookies_name() {
    let (_scene, service) = Scene::trading();
    let asha = service.register("asha@mail.example", PASSWORD);
    let ravi = service.register("ravi@mail.example", PASSWORD);
    let again = service
        .account("login", "asha@mail.example", PASSWORD)
        .field("access_token");
    for values in [
        vec![&*asha, &ravi],
        vec![&ravi, &asha],
        vec!["other.apps.jwt", &asha, "x", &ravi],
        vec![&asha, &again, &ravi],
    ] {
        let headers = cookie(&values);
        let answer = get(&service, JOURNAL, &headers);
        let json = answer.expect_problem(401, "token_invalid");
        let detail = json["detail"].as_str().unwrap();
        assert!(detail.contains("access_token_cookie"), "{detail}");
        assert!(detail.contains("different accounts"), "{detail}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
        let session = get(&service, SESSION, &headers).json();
        assert!(session["user"].is_null());
        assert_eq!(session["refused"].as_str(), Some(detail));
        let out = service.post("/api/auth/logout", &format!("{headers}{OWN}"), "");
        out.expect_problem(401, "token_invalid");
    }
    // Nobody was logged out by that, and two logins of one account are one.
    for (values, email) in [
        (vec![&*asha, &again], "asha@mail.example"),
        (vec![&ravi, &ravi], "ravi@mail.example"),
    ] {
        let session = get(&service, SESSION, &cookie(&values)).json();
        assert_eq!(session["user"]["email"].as_str(), Some(email));
    }
}

#[test]
fn a_logout_ends_every_login_that_the_browser_sent() {
    let (_scene, service) = Scene::trading();
    let first = service.register("asha@mail.example", PASSWORD);
    let login = || {
        service
            .account("login", "asha@mail.example", PASSWORD)
            .field("access_token")
    };
    let second = login();
    let third = login();
    let elsewhere = login();
    let headers = format!("{}{OWN}", cookie(&["other.apps.jwt", &first, &second, "x", &third]));
    let out = service
        .post("/api/auth/logout", &headers, "")
        .with_status(200);
    assert!(
        out.header("set-cookie")
            .unwrap()
            .starts_with("access_token_cookie=; ")
    );
    for ended in [&first, &second, &third] {
        get(&service, JOURNAL, &bearer(ended)).expect_problem(401, "token_invalid");
    }
    assert_eq!(get(&service, JOURNAL, &bearer(&elsewhere)).status, 200);
    // One that has ended is as a foreign one.
    let headers = cookie(&[&first, &elsewhere]);
    assert_eq!(get(&service, JOURNAL, &headers).status, 200);
    // By header only that one ends, whatever the cookies are.
    let other = login();
    let headers = format!("{}{}", bearer(&other), cookie(&[&elsewhere]));
    service
        .post("/api/auth/logout", &headers, "")
        .with_status(200);
    assert_eq!(get(&service, JOURNAL, &bearer(&elsewhere)).status, 200);
    get(&service, JOURNAL, &bearer(&other)).expect_problem(401, "token_invalid");
}

#[test]
fn so_many_cookies_are_checked_and_more_are_counted() {
    let scene = Scene::at(crate::support::TRADING);
    let service = scene.start_with(&scene.watched());
    let good = service.register("asha@mail.example", PASSWORD);
    let (head, tag) = good.rsplit_once('.').unwrap();
    // The signature of another token.
    let forged = format!("{head}.{}", tag.chars().rev().collect::<String>());
    let crowded = || {
        let metrics = service.admin().get("/metrics");
        let name = "bhav_login_cookies_crowded_total ";
        let line = metrics
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.parse::<u64>().unwrap()
    };
    // Others' cookies have another header, and their number does not matter.
    let mut values = vec!["other.apps.jwt"; 300];
    values.push(&good);
    assert_eq!(get(&service, JOURNAL, &cookie(&values)).status, 200);
    let mut values = vec![&*forged; 15];
    values.push(&good);
    assert_eq!(get(&service, JOURNAL, &cookie(&values)).status, 200, "the sixteenth");
    assert_eq!(crowded(), 0);
    values.insert(0, &forged);
    let answer = get(&service, JOURNAL, &cookie(&values));
    let json = answer.expect_problem(401, "token_invalid");
    let detail = json["detail"].as_str().unwrap();
    assert!(detail.contains("more cookies access_token_cookie"), "{detail}");
    assert_eq!(crowded(), 1);
    let session = get(&service, SESSION, &cookie(&values)).json();
    assert_eq!(session["refused"].as_str(), Some(detail));
    assert!(session["user"].is_null());
}
