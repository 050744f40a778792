//! Accounts from registration to erasure, according to the contract.

use bhav::auth::keys::Registration;

use crate::support::{Answer, Scene, Service, TRADING, bearer, members};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const REGISTER: &str = "/api/auth/register";
const LOGIN: &str = "/api/auth/login";
const PASSWORD: &str = "correct horse";

fn started() -> (Scene, Service) {
    let (scene, service) = Scene::trading();
    (scene, service)
}

fn login(service: &Service, email: &str, password: &str) -> Answer {
    service.account("login", email, password)
}

fn token(answer: &Answer) -> String {
    answer.field("access_token")
}

/// Whether a token is accepted. Changing a password with an empty body then gives a 400.
fn accepted(service: &Service, token: &str) -> bool {
    let answer = service.post("/api/auth/password", &bearer(token), "{}");
    match answer.status {
        400 => true,
        401 => {
            answer.expect_problem(401, "token_invalid");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, Some("Bearer error=\"invalid_token\""));
            false
        }
        other => panic!("{other}: {}", answer.text()),
    }
}

#[test]
fn a_user_registers_and_logs_in() {
    let (_scene, service) = started();
    let body =
        r#"{"email":" Asha@Mail.Example ","password":"correct horse","name":" Asha ","x":[1]}"#;
    let made = service.post(REGISTER, "", body).with_status(201);
    assert_eq!(made.header("cache-control"), Some("no-store"));
    assert_eq!(made.header("content-type"), Some("application/json"));
    assert_eq!(made.header("set-cookie"), None);
    let json = made.json();
    assert_eq!(members(&json), ["access_token", "token_type", "expires_in", "user"]);
    assert_eq!(json["token_type"], "Bearer");
    assert_eq!(json["expires_in"].as_u64(), Some(604_800));
    assert_eq!(members(&json["user"]), ["id", "email", "name"]);
    assert_eq!(json["user"]["email"], "asha@mail.example");
    assert_eq!(json["user"]["name"], "Asha");
    assert!(json["user"]["id"].as_i64().unwrap() > 0);
    assert!(accepted(&service, &token(&made)));

    let again = login(&service, "ASHA@mail.example", PASSWORD).with_status(200);
    assert_eq!(again.json()["user"]["id"], json["user"]["id"]);
    assert_eq!(members(&again.json()), members(&json));
    assert!(accepted(&service, &token(&again)));

    let taken = service.post(REGISTER, "", body);
    let problem = taken.expect_problem(400, "email_taken");
    assert_eq!(problem["errors"][0]["field"], "email");
    let nameless = service.register("b@mail.example", PASSWORD);
    assert!(accepted(&service, &nameless));
    assert!(login(&service, "b@mail.example", PASSWORD).json()["user"]["name"].is_null());
}

#[test]
fn every_fault_of_a_registration_is_told_at_once() {
    let (_scene, service) = started();
    let long = "x".repeat(257);
    for (body, fields) in [
        ("{}".to_owned(), &["email", "password"][..]),
        (r#"{"email":"","password":null}"#.to_owned(), &["email", "password"]),
        (r#"{"email":"a@b","password":"seven 7"}"#.to_owned(), &["password"]),
        (r#"{"email":"a@b","password":"ünïcö7"}"#.to_owned(), &["password"]),
        (format!(r#"{{"email":"a@b","password":"{long}"}}"#), &["password"]),
        (r#"{"email":"nobody","password":"correct horse"}"#.to_owned(), &["email"]),
        (
            r#"{"email":7,"password":["correct horse"],"name":{}}"#.to_owned(),
            &["email", "password", "name"],
        ),
        (
            r#"{"email":"a@b","password":"correct horse","name":"a\u0000b"}"#.to_owned(),
            &["name"],
        ),
        (
            format!(r#"{{"email":"a@b","password":"correct horse","name":"{long}"}}"#),
            &["name"],
        ),
        (r#"{"email":"a@b","password":"\ud800 half a pair"}"#.to_owned(), &["password"]),
    ] {
        let problem = service
            .post(REGISTER, "", &body)
            .expect_problem(400, "validation_failed");
        let errors = problem["errors"].as_array().unwrap();
        let told: Vec<_> = errors
            .iter()
            .map(|error| error["field"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(told, fields, "{body}");
        assert!(errors.iter().all(|error| error["message"].is_str()));
    }
    for (weak, why) in [
        ("password", "one of the most common"),
        ("iloveyou", "one of the most common"),
        ("Krishna@2024", "a common word with a common ending"),
        ("India#1234", "a common word with a common ending"),
        ("xqzxqzxqz", "one short piece again and again"),
        ("Ab3-Ab3-Ab3-Ab3-Ab3-", "one short piece again and again"),
        ("mnbvcxzlkj", "keys or letters in their order"),
    ] {
        let body = format!(r#"{{"email":"a@b","password":"{weak}"}}"#);
        // One code covers everything in the lists.
        let is_listed = !why.contains("again and again");
        let code = if is_listed {
            "password_too_common"
        } else {
            "password_repetitive"
        };
        let problem = service.post(REGISTER, "", &body).expect_problem(400, code);
        let error = &problem["errors"][0];
        assert_eq!(error["field"], "password");
        assert_eq!(error["message"].as_str().unwrap(), format!("This is {why}."), "{weak}");
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(detail, format!("This password is {why}; choose another."));
    }
    // Characters are counted, not bytes, and none is changed.
    let widest: String = ('\u{900}'..).take(256).collect();
    service.register("wide@b", &widest);
    assert_eq!(login(&service, "wide@b", &widest).status, 200);
}

#[test]
fn bodies_that_are_not_one_json_object_are_refused() {
    let (_scene, service) = started();
    let raw = |headers: &str, body: &str| {
        let length = body.len();
        let text = format!(
            "POST {LOGIN} HTTP/1.1\r\nHost: bhav\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        service.client().ask(&text)
    };
    let good = r#"{"email":"a@b","password":"correct horse"}"#;
    for headers in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: application/json; charset=latin1\r\n",
    ] {
        raw(headers, good).expect_problem(415, "unsupported_media_type");
    }
    let json = "Content-Type: Application/JSON; charset=\"UTF-8\"\r\n";
    for coding in ["gzip", "br", "identity", "gzip, identity"] {
        let answer = raw(&format!("{json}Content-Encoding: {coding}\r\n"), good);
        answer.expect_problem(415, "unsupported_media_type");
        assert_eq!(answer.header("accept-encoding"), Some("identity"));
    }
    raw(json, good).expect_problem(401, "invalid_credentials");
    let bomb = format!(r#"{{"email":{}"#, "[".repeat(30_000));
    let deep = format!(r#"{{"x":{}{}}}"#, r#"{"a":"#.repeat(9_000), "}".repeat(9_000));
    let members: Vec<String> = (0..300).map(|at| format!("\"m{at}\":1")).collect();
    let many = format!("{{{}}}", members.join(","));
    let twice = r#"{"email":"a@b","password":"correct horse","email":"a@c"}"#;
    for bad in [
        "",
        "null",
        "[]",
        "{",
        "{\"email\":}",
        "\"email\"",
        good.trim_end_matches('}'),
        &bomb,
        &deep,
        &many,
        twice,
    ] {
        raw(json, bad).expect_problem(400, "malformed_json");
    }
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(64 * 1024));
    raw(json, &large).expect_problem(413, "body_too_large");
}

#[test]
fn escapes_mean_what_they_stand_for() {
    let (_scene, service) = started();
    service.register("a@b.example", "tea \\ud83c\\udf75 \\u0026 \\\"samosa\\\"");
    let body = "{\"email\":\"\\u0061@b.example\",\
                \"password\":\"tea 🍵 & \\\"samosa\\\"\"}";
    assert_eq!(service.post(LOGIN, "", body).status, 200);
}

#[test]
fn an_unknown_account_and_a_wrong_password_are_the_same_answer_and_work() {
    let (_scene, service) = started();
    service.register("a@b.example", PASSWORD);
    let lane = || {
        let auth = &service.0.server().shared().service.state().auth;
        auth.lane().stats().completed
    };
    let same = |answer: &Answer| {
        let own = ["date:", "x-request-id:"];
        let head = answer.head();
        let lines = head.lines().filter(|line| {
            let lower = line.to_ascii_lowercase();
            !own.iter().any(|name| lower.starts_with(name))
        });
        (lines.map(str::to_owned).collect::<Vec<_>>(), answer.body.clone())
    };
    let before = lane();
    let wrong = login(&service, "a@b.example", "wrong horse");
    assert_eq!(lane(), before + 1);
    for unknown in ["nobody@b.example", "no address"] {
        let before = lane();
        let answer = login(&service, unknown, PASSWORD);
        answer.expect_problem(401, "invalid_credentials");
        assert_eq!(lane(), before + 1, "an unknown account costs a hash as well");
        assert_eq!(same(&answer), same(&wrong));
    }
    assert_eq!(wrong.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn logging_out_ends_one_token_over_a_restart() {
    let (scene, service) = Scene::trading();
    let one = service.register("a@b.example", PASSWORD);
    let other = token(&login(&service, "a@b.example", PASSWORD));
    let out = service
        .post("/api/auth/logout", &bearer(&one), "")
        .with_status(200);
    assert!(out.json()["message"].is_str());
    assert!(!accepted(&service, &one) && accepted(&service, &other));
    service
        .post("/api/auth/logout", &bearer(&one), "")
        .expect_problem(401, "token_invalid");
    service.stop();

    let service = scene.start();
    assert!(!accepted(&service, &one), "a restart does not bring it back");
    assert!(accepted(&service, &other), "nor does it end the others: the key was kept");
}

#[test]
fn logging_out_everywhere_ends_all_tokens_of_the_account() {
    let (scene, service) = Scene::trading();
    let one = service.register("a@b.example", PASSWORD);
    let other = token(&login(&service, "a@b.example", PASSWORD));
    let bystander = service.register("c@b.example", PASSWORD);
    let out = |token: &str, body: &str| service.post("/api/auth/logout", &bearer(token), body);
    let fault = out(&one, r#"{"everywhere":"yes"}"#).expect_problem(400, "validation_failed");
    assert_eq!(fault["errors"][0]["field"], "everywhere");
    assert!(accepted(&service, &one), "nothing was done");
    let third = token(&login(&service, "a@b.example", PASSWORD));
    assert_eq!(out(&third, r#"{"everywhere":false}"#).status, 200);
    assert_eq!(
        [&one, &other, &third].map(|token| accepted(&service, token)),
        [true, true, false]
    );

    let everywhere = out(&one, r#"{"everywhere":true}"#).with_status(200);
    assert!(
        everywhere.json()["message"]
            .as_str()
            .unwrap()
            .contains("everywhere")
    );
    assert!(
        everywhere
            .header("set-cookie")
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!([&one, &other].map(|token| accepted(&service, token)), [false, false]);
    out(&one, r#"{"everywhere":true}"#).expect_problem(401, "token_invalid");
    assert!(accepted(&service, &bystander));
    // The password has not changed.
    let again = token(&login(&service, "a@b.example", PASSWORD));
    assert!(accepted(&service, &again));
    service.stop();

    let service = scene.start();
    let tokens = [&one, &other, &again, &bystander];
    assert_eq!(tokens.map(|token| accepted(&service, token)), [false, false, true, true]);
}

#[test]
fn the_first_account_of_a_database_can_be_the_only_one() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.auth.registration = Registration::First;
    let service = scene.start_with(&config);
    let registration = || service.get("/api/auth/session").field("registration");
    assert_eq!(registration(), "open");
    // Of many simultaneous registrations, one is the first.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let service = &service;
        let ask = |number: u32| {
            scope.spawn(move || {
                service
                    .account("register", &format!("u{number}@b.in"), PASSWORD)
                    .status
            })
        };
        let asks: Vec<_> = (0..8).map(ask).collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 403).count(), 7, "{statuses:?}");
    assert_eq!(registration(), "closed");
    let refused = |service: &Service| {
        let body = format!(r#"{{"email":"later@b.in","password":"{PASSWORD}"}}"#);
        service
            .post(REGISTER, "", &body)
            .expect_problem(403, "registration_closed");
    };
    refused(&service);
    // Registration does not reopen when that account is gone.
    let first =
        (0..8).find(|number| login(&service, &format!("u{number}@b.in"), PASSWORD).status == 200);
    let first = token(&login(&service, &format!("u{}@b.in", first.unwrap()), PASSWORD));
    let body = format!(r#"{{"password":"{PASSWORD}"}}"#);
    let erased = service
        .client()
        .send_json("DELETE", "/api/auth/account", &bearer(&first), &body);
    assert_eq!(erased.status, 200);
    refused(&service);
    service.stop();
    let service = scene.start_with(&config);
    assert_eq!(service.get("/api/auth/session").field("registration"), "closed");
    refused(&service);
}

#[test]
fn a_new_password_ends_older_tokens_and_not_the_new_one() {
    let (scene, service) = Scene::trading();
    let old = service.register("a@b.example", PASSWORD);
    let bystander = service.register("c@b.example", PASSWORD);
    let change = |token: &str, current: &str, new: &str| {
        let body = format!(r#"{{"current_password":"{current}","new_password":"{new}"}}"#);
        service.post("/api/auth/password", &bearer(token), &body)
    };
    let wrong = change(&old, "wrong horse", "battery staple");
    wrong.expect_problem(401, "invalid_credentials");
    assert_eq!(wrong.header("www-authenticate"), Some("Bearer"));
    change(&old, PASSWORD, "short").expect_problem(400, "validation_failed");
    let common = change(&old, PASSWORD, "password1").expect_problem(400, "password_too_common");
    assert_eq!(common["errors"][0]["field"], "new_password");
    assert!(accepted(&service, &old));
    let changed = change(&old, PASSWORD, "battery staple").with_status(200);
    let new = token(&changed);
    assert!(!accepted(&service, &old) && accepted(&service, &new));
    assert!(accepted(&service, &bystander));
    login(&service, "a@b.example", PASSWORD).expect_problem(401, "invalid_credentials");
    let again = token(&login(&service, "a@b.example", "battery staple"));
    assert!(accepted(&service, &again));
    service.stop();

    let service = scene.start();
    assert!(!accepted(&service, &old));
    assert!(accepted(&service, &new) && accepted(&service, &again));
}

#[test]
fn an_erased_account_is_gone_with_its_tokens() {
    let (scene, service) = Scene::trading();
    let gone = service.register("a@b.example", PASSWORD);
    let erase = |token: &str, password: &str| {
        let body = format!(r#"{{"password":"{password}"}}"#);
        service
            .client()
            .send_json("DELETE", "/api/auth/account", &bearer(token), &body)
    };
    erase(&gone, "wrong horse").expect_problem(401, "invalid_credentials");
    let answer = erase(&gone, PASSWORD).with_status(200);
    let json = answer.json();
    assert!(json["message"].is_str());
    assert_eq!(
        members(&json["deleted"]),
        ["holdings", "positions", "pnl_snapshots", "journal_entries",]
    );
    assert!(!accepted(&service, &gone));
    login(&service, "a@b.example", PASSWORD).expect_problem(401, "invalid_credentials");
    let new = service.register("a@b.example", "battery staple");
    assert!(accepted(&service, &new), "the address is free, and its new user another");
    service.stop();

    let service = scene.start();
    assert!(!accepted(&service, &gone) && accepted(&service, &new));
}

#[test]
fn a_hash_grows_with_the_settings_at_the_next_login() {
    let (scene, service) = Scene::trading();
    let first = service.register("a@b.example", PASSWORD);
    service.stop();
    let mut config = scene.config();
    config.auth.argon2_passes = 3;
    let service = scene.start_with(&config);
    let hash = || {
        let store = &service.0.server().shared().service.state().store;
        store
            .user_by_email("a@b.example")
            .unwrap()
            .unwrap()
            .password_hash
    };
    assert!(hash().contains("t=2"));
    login(&service, "a@b.example", "wrong horse").expect_problem(401, "invalid_credentials");
    assert!(hash().contains("t=2"));
    assert_eq!(login(&service, "a@b.example", PASSWORD).status, 200);
    assert!(hash().contains("t=3"), "{}", hash());
    assert_eq!(login(&service, "a@b.example", PASSWORD).status, 200);
    assert!(accepted(&service, &first), "no reason to end a session");
}
