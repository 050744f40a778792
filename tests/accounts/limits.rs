//! Guessing, crowds, and an absent database.

use std::sync::mpsc;

use bhav::base::{Clock, ManualClock};
use bhav::sim::SimSettings;

use crate::support::scrape::Scrape;
use crate::support::{Answer, Program, SNAPSHOT, Scene, Service, TRADING, bearer, serve, until};
use sonic_rs::{JsonContainerTrait, JsonValueTrait};

const LOGIN: &str = "/api/auth/login";
const PASSWORD: &str = "correct horse";

fn login_from(service: &Service, client: &str, email: &str, password: &str) -> Answer {
    let body = format!(r#"{{"email":"{email}","password":"{password}"}}"#);
    service.post(LOGIN, &format!("X-Forwarded-For: {client}\r\n"), &body)
}

#[test]
fn attempts_are_limited_per_account_and_per_address() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let mut config = scene.config();
    config.auth.login_attempts_per_minute = 3;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let lane = || {
        let auth = &service.0.server().shared().service.state().auth;
        auth.lane().stats().completed
    };
    // One account, from networks that it does not know.
    for client in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let answer = login_from(&service, client, "a@b.example", "wrong horse");
        answer.expect_problem(401, "invalid_credentials");
    }
    let hashed = lane();
    let refused = login_from(&service, "192.0.2.4", "A@B.example", "wrong horse");
    refused.expect_problem(429, "too_many_attempts");
    assert_eq!(refused.header("retry-after"), Some("20"));
    assert_eq!(lane(), hashed, "nothing was hashed for it");
    clock.advance_ms(19_999);
    let refused = login_from(&service, "192.0.2.4", "a@b.example", "wrong horse");
    assert_eq!(refused.header("retry-after"), Some("1"));
    clock.advance_ms(1);
    login_from(&service, "192.0.2.4", "a@b.example", "wrong horse")
        .expect_problem(401, "invalid_credentials");

    // One address, for many accounts. A success does not restore its attempts.
    for email in ["c@b.example", "d@b.example", "e@b.example"] {
        let answer = login_from(&service, "198.51.100.7", email, "wrong horse");
        answer.expect_problem(401, "invalid_credentials");
    }
    service.register("u1@b.example", PASSWORD);
    login_from(&service, "198.51.100.7", "u1@b.example", PASSWORD)
        .expect_problem(429, "too_many_attempts");
    // Elsewhere the account's own success restores its attempts.
    for round in 0..4 {
        let client = format!("203.0.113.{round}");
        let wrong = login_from(&service, &client, "u1@b.example", "wrong horse");
        wrong.expect_problem(401, "invalid_credentials");
        assert_eq!(login_from(&service, &client, "u1@b.example", PASSWORD).status, 200);
    }
}

#[test]
fn registering_and_logging_in_have_limits_of_their_own() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let mut config = scene.watched();
    config.auth.login_attempts_per_minute = 4;
    config.auth.registration_attempts_per_minute = 2;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let register = |client: &str, email: &str| {
        let body = format!(r#"{{"email":"{email}","password":"{PASSWORD}"}}"#);
        let headers = format!("X-Forwarded-For: {client}\r\n");
        service.post("/api/auth/register", &headers, &body)
    };
    let (home, cafe) = ("192.0.2.1", "192.0.2.2");
    assert_eq!(register(home, "a@b.example").status, 201);
    // A registered address counts as well: many attempts would show who has an account.
    register(home, "a@b.example").expect_problem(400, "email_taken");
    let refused = register(home, "c@b.example");
    refused.expect_problem(429, "too_many_attempts");
    assert_eq!(refused.header("retry-after"), Some("30"));
    assert_eq!(register(cafe, "c@b.example").status, 201, "of an address, not of all");
    // A client that may not register any more still logs in, up to the other limit.
    let log_in = |password: &str| login_from(&service, home, "a@b.example", password).status;
    assert_eq!([PASSWORD, PASSWORD, PASSWORD, PASSWORD].map(log_in), [200; 4]);
    assert_eq!(log_in(PASSWORD), 429);
    // The converse holds too.
    clock.advance_ms(30_000);
    while log_in("wrong horse") != 429 {}
    assert_eq!(register(home, "d@b.example").status, 201);
    register(home, "e@b.example").expect_problem(429, "too_many_attempts");
    let scrape = Scrape::of(&service);
    assert_eq!(scrape.value("bhav_registration_throttled_total"), 2.0);
    assert_eq!(scrape.value("bhav_login_throttled_total"), 2.0);
}

#[test]
fn strangers_cannot_use_up_the_attempts_of_an_accounts_owner() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let mut config = scene.config();
    config.auth.login_attempts_per_minute = 3;
    config.auth.registration_attempts_per_minute = 3;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let from = |client: &str| format!("X-Forwarded-For: {client}\r\n");
    let register = |client: &str, password: &str| {
        let body = format!(r#"{{"email":"v@b.example","password":"{password}"}}"#);
        service.post("/api/auth/register", &from(client), &body)
    };
    let (home, cafe) = ("192.0.2.1", "192.0.2.2");
    let registered = register(home, PASSWORD).json();
    let token = bearer(registered["access_token"].as_str().unwrap());
    let sign_in = |client: &str| login_from(&service, client, "v@b.example", PASSWORD);
    // Registering names an e-mail address without trying a password.
    for stranger in 0..2 {
        for _ in 0..3 {
            register(&format!("198.51.100.{stranger}"), "any other horse")
                .expect_problem(400, "email_taken");
        }
    }
    register("198.51.100.0", "any other horse").expect_problem(429, "too_many_attempts");
    assert_eq!(sign_in(cafe).status, 200);
    // Strangers guess as often as allowed, for minutes.
    for round in 0..5 {
        let guess = |number: u32| {
            let client = format!("198.51.{}.{number}", 101 + round);
            login_from(&service, &client, "v@b.example", "wrong horse").status
        };
        while guess(1) != 429 {}
        while guess(2) != 429 {}
        let elsewhere = sign_in(&format!("203.0.113.{round}"));
        elsewhere.expect_problem(429, "too_many_attempts");
        assert_eq!((sign_in(home).status, sign_in(cafe).status), (200, 200), "{round}");
        let headers = format!("{token}{}", from("203.0.113.77"));
        let wrong = r#"{"current_password":"not my horse","new_password":"another horse"}"#;
        let change = || service.post("/api/auth/password", &headers, wrong);
        change().expect_problem(401, "invalid_credentials");
        clock.advance_ms(20_000);
    }
    // A success at home does not give strangers another round of guesses.
    while login_from(&service, "198.51.120.1", "v@b.example", "wrong horse").status != 429 {}
    assert_eq!(sign_in(home).status, 200);
    login_from(&service, "198.51.120.2", "v@b.example", "wrong horse")
        .expect_problem(429, "too_many_attempts");
    // The limit also holds for the owner's network, and with a token.
    clock.advance_ms(60_000);
    let wrong = || login_from(&service, home, "v@b.example", "wrong horse").status;
    assert_eq!([wrong(), wrong(), wrong(), wrong()], [401, 401, 401, 429]);
    let erase = |number: u32| {
        let headers = format!("{token}{}", from(&format!("203.0.113.{number}")));
        let body = r#"{"password":"not my horse"}"#;
        let target = "/api/auth/account";
        service
            .client()
            .send_json("DELETE", target, &headers, body)
            .status
    };
    assert_eq!([81, 82, 83, 84].map(erase), [401, 401, 401, 429]);
}

/// Lets an attacker guess at regular intervals, and returns after how many seconds the owner got in
/// from each place; `None` after more than ten.
fn seconds_until_let_in(
    service: &Service,
    clock: &ManualClock,
    guesses_a_second: i64,
    attacker: impl Fn(i64) -> String,
    owner: &[(&str, &str)],
) -> Vec<Option<i64>> {
    let mut waited = vec![None; owner.len()];
    let step_ms = 1_000 / guesses_a_second;
    // The strangers use up their burst before the owner comes.
    for step in 0..guesses_a_second * 20 {
        login_from(service, &attacker(step), "v@b.example", "wrong horse");
        clock.advance_ms(step_ms);
        let since = step - guesses_a_second * 10;
        if since < 0 || since % guesses_a_second != 0 {
            continue;
        }
        for (at, (client, headers)) in owner.iter().enumerate() {
            if waited[at].is_some() {
                continue;
            }
            let body = format!(r#"{{"email":"v@b.example","password":"{PASSWORD}"}}"#);
            let headers = format!("{headers}X-Forwarded-For: {client}\r\n");
            if service.post(LOGIN, &headers, &body).status == 200 {
                waited[at] = Some(since / guesses_a_second);
            }
        }
    }
    waited
}

/// The header `Cookie` with one of the cookies that an answer sets.
fn kept(answer: &Answer, name: &str) -> String {
    let all = answer.headers("set-cookie");
    let set = all
        .iter()
        .find(|set| set.starts_with(name))
        .expect("the cookie");
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

const OWN: &str = "Origin: http://localhost\r\n";

#[test]
fn the_owner_gets_in_after_a_restart_whatever_strangers_guess() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    config.auth.login_attempts_per_minute = 10;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let token = service.register("v@b.example", PASSWORD);
    let home = "X-Forwarded-For: 192.0.2.1\r\n";
    let login = format!(r#"{{"email":"v@b.example","password":"{PASSWORD}","cookie":true}}"#);
    let by_cookie = service.post(LOGIN, &format!("{home}{OWN}"), &login);
    assert_eq!(by_cookie.status, 200);
    // Other services of the domain have set cookies of both names.
    let foreign = "earlier_login_cookie=x; access_token_cookie=other.apps.jwt; ".repeat(10);
    let proof = kept(&by_cookie, "earlier_login_cookie");
    let proof = proof.replace("Cookie: ", &format!("Cookie: {foreign}"));
    // Any request with a token teaches its network.
    let office = format!("{}X-Forwarded-For: 192.0.2.2\r\n", bearer(&token));
    assert_eq!(
        service
            .client()
            .request("GET", "/api/journal", &office)
            .status,
        200
    );
    // The token has ended when it proves the login.
    let ended = format!("{}{home}", bearer(&token));
    assert_eq!(service.post("/api/auth/logout", &ended, "").status, 200);
    service.stop();

    let service = scene.start_with(&config);
    let ended = bearer(&token);
    let owner = |number: u32| {
        let new = |place: u32| format!("203.0.{number}.{place}");
        [
            ("192.0.2.1".to_owned(), String::new()),
            ("192.0.2.2".to_owned(), String::new()),
            (new(1), proof.clone()),
            (new(2), ended.clone()),
            (new(3), String::new()),
        ]
    };
    // One stranger at one address leaves room even for a client that proves nothing.
    let places = owner(1);
    let places: Vec<_> = places
        .iter()
        .map(|(at, with)| (at.as_str(), with.as_str()))
        .collect();
    let one = |_| "198.51.100.7".to_owned();
    let waited = seconds_until_let_in(&service, &clock, 3, one, &places);
    assert_eq!(waited, [Some(0); 5]);
    service.stop();

    // Strangers from ever new addresses keep out clients that prove nothing, and nobody else.
    let service = scene.start_with(&config);
    let places = owner(2);
    let places: Vec<_> = places
        .iter()
        .map(|(at, with)| (at.as_str(), with.as_str()))
        .collect();
    let many = |step: i64| format!("198.{}.{}.{}", 18 + step % 2, step / 250 % 250, step % 250);
    // The owner's success restores no attempts that strangers made.
    let waited = seconds_until_let_in(&service, &clock, 20, many, &places);
    assert_eq!(waited[..4], [Some(0); 4]);
    assert_eq!(waited[4], None, "a new network and a new browser");
}

#[test]
fn a_network_is_learnt_from_a_request_with_a_good_token() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    config.auth.login_attempts_per_minute = 10;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let token = service.register("v@b.example", PASSWORD);
    let ask = |token: &str, client: &str| {
        let headers = format!("{}X-Forwarded-For: {client}\r\n", bearer(token));
        service
            .client()
            .request("GET", "/api/journal", &headers)
            .status
    };
    assert_eq!(ask(&token, "192.0.2.2"), 200);
    assert_eq!(ask("no token", "192.0.2.3"), 401);
    let attack = || {
        for stranger in ["198.51.100.1", "198.51.100.2"] {
            while login_from(&service, stranger, "v@b.example", "wrong horse").status != 429 {}
        }
    };
    until("the network to be written and read", || {
        clock.advance_ms(5_000);
        attack();
        let answer = login_from(&service, "192.0.2.2", "v@b.example", PASSWORD);
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer.text().to_owned())
        }
    });
    attack();
    login_from(&service, "192.0.2.3", "v@b.example", PASSWORD)
        .expect_problem(429, "too_many_attempts");
}

#[test]
fn a_token_that_ended_gives_its_holder_as_few_guesses_as_anybody() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::by_hand(clock.share(), SimSettings::default());
    let mut config = scene.config();
    config.auth.login_attempts_per_minute = 4;
    config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let service = scene.start_with(&config);
    let stolen = service.register("v@b.example", PASSWORD);
    let other = service.register("thief@b.example", PASSWORD);
    let mut asked = 0;
    let mut guess = |token: &str, email: &str| {
        asked += 1;
        let headers =
            format!("{}X-Forwarded-For: 198.51.{}.{}\r\n", bearer(token), asked / 250, asked % 250);
        let body = format!(r#"{{"email":"{email}","password":"wrong horse"}}"#);
        service.post(LOGIN, &headers, &body).status
    };
    // Guesses come from ever new addresses, over ten minutes.
    let admitted: Vec<usize> = (0..10)
        .map(|_| {
            let admitted = (0..20)
                .filter(|_| guess(&stolen, "v@b.example") == 401)
                .count();
            clock.advance_ms(60_000);
            admitted
        })
        .collect();
    assert_eq!(admitted, [4; 10], "as many as an account has");
    // Another account's token proves nothing for this account, and a forged one nothing at all.
    let forged = format!("{}A", &other[..other.len() - 1]);
    let tokens = [other.as_str(), forged.as_str()];
    let strangers = (0..40)
        .filter(|n| guess(tokens[n % 2], "v@b.example") == 401)
        .count();
    assert_eq!(strangers, 4, "the account's own");
    let unknown = (0..20)
        .filter(|_| guess(&other, "nobody@b.example") == 401)
        .count();
    assert_eq!(unknown, 4, "an account that is not there is like one that is");
    // After 400 days the token proves nothing any more.
    clock.advance_ms(400 * 24 * 3_600_000);
    while login_from(&service, "192.0.2.9", "v@b.example", "wrong horse").status != 429 {}
    while login_from(&service, "192.0.2.10", "v@b.example", "wrong horse").status != 429 {}
    assert_eq!(guess(&stolen, "v@b.example"), 429);
}

#[test]
fn a_full_queue_is_503_and_the_snapshot_answers() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.auth.crypto_threads = 1;
        config.auth.crypto_queue_max = 1;
    });
    service.fresh_snapshot();
    let auth = &service.0.server().shared().service.state().auth;
    // Holds the one thread and the one place in the queue until released.
    let (release, gate) = mpsc::channel::<()>();
    let held = auth
        .lane()
        .submit(60_000, move || gate.recv().is_ok())
        .unwrap();
    until("the thread to be taken", || (auth.lane().stats().running == 1).then_some(()));
    let queued = auth.lane().submit(60_000, || ()).unwrap();
    let refused = login_from(&service, "192.0.2.1", "a@b.example", PASSWORD);
    refused.expect_problem(503, "login_busy");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(auth.lane().stats().refused, 1);
    assert_eq!(service.get(SNAPSHOT).status, 200);
    let lanes = until("health to count it", || {
        let health = service.health();
        let lanes = health["lanes"].as_array().unwrap();
        let crypto = lanes.iter().find(|lane| lane["name"] == "crypto").unwrap();
        (crypto["refused"].as_u64() == Some(1)).then(|| crypto.clone())
    });
    assert_eq!(lanes["depth"].as_u64(), Some(1));
    release.send(()).unwrap();
    assert_eq!((held.wait(), queued.wait()), (Ok(true), Ok(())));
    login_from(&service, "192.0.2.1", "a@b.example", PASSWORD)
        .expect_problem(401, "invalid_credentials");
}

#[test]
fn logins_from_ever_new_networks_leave_room_for_who_is_known() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.auth.login_attempts_per_minute = 10;
        config.auth.crypto_threads = 1;
        config.auth.crypto_queue_max = 12;
        config.http.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    let home = "X-Forwarded-For: 192.0.2.1\r\n";
    let body = format!(r#"{{"email":"home@b.example","password":"{PASSWORD}"}}"#);
    let registered = service.post("/api/auth/register", home, &body);
    let token = bearer(registered.json()["access_token"].as_str().unwrap());
    let auth = &service.0.server().shared().service.state().auth;
    let (release, gate) = mpsc::channel::<()>();
    let held = auth
        .lane()
        .submit(60_000, move || gate.recv().is_ok())
        .unwrap();
    until("the thread to be taken", || (auth.lane().stats().running == 1).then_some(()));
    std::thread::scope(|scope| {
        let service = &service;
        let ask = |client: String, email: &'static str| {
            scope.spawn(move || login_from(service, &client, email, PASSWORD).status)
        };
        // A crowd, each from a network of its own, tries an existing account.
        let strangers: Vec<_> = (0..40)
            .map(|number| ask(format!("198.51.100.{number}"), "home@b.example"))
            .collect();
        until("the crowd to have taken its part", || {
            (auth.refused_attempts() == 31).then_some(())
        });
        assert_eq!(auth.lane().stats().depth, 9);
        let owner = ask("192.0.2.1".into(), "home@b.example");
        let headers = format!("{token}X-Forwarded-For: 203.0.113.9\r\n");
        let change = scope.spawn(move || {
            let body = r#"{"current_password":"wrong horse","new_password":"another horse"}"#;
            service.post("/api/auth/password", &headers, body).status
        });
        // A login from a new network with an earlier token.
        let elsewhere = format!("{token}X-Forwarded-For: 203.0.113.10\r\n");
        let proven = scope.spawn(move || {
            let body = format!(r#"{{"email":"home@b.example","password":"{PASSWORD}"}}"#);
            service.post(LOGIN, &elsewhere, &body).status
        });
        until("all three to be let in", || (auth.lane().stats().depth == 12).then_some(()));
        release.send(()).unwrap();
        assert_eq!((owner.join().unwrap(), change.join().unwrap()), (200, 401));
        assert_eq!(proven.join().unwrap(), 200);
        let statuses: Vec<u16> = strangers
            .into_iter()
            .map(|asks| asks.join().unwrap())
            .collect();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 9, "{statuses:?}");
    });
    assert_eq!(held.wait(), Ok(true));
}

#[test]
fn a_store_that_cannot_be_read_identifies_nobody_until_it_can() {
    let (scene, service) = Scene::trading();
    let good = service.register("a@b.example", PASSWORD);
    let revoked = service.register("c@b.example", PASSWORD);
    assert_eq!(
        service
            .post("/api/auth/logout", &bearer(&revoked), "")
            .status,
        200
    );
    service.stop();
    // A directory replaces the file.
    let file = scene.state.path().join(bhav::store::FILE_NAME);
    let aside = scene.state.path().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    std::fs::create_dir(&file).unwrap();
    let service = scene.start();
    service.fresh_snapshot();
    for token in [&good, &revoked] {
        let answer = service.post("/api/auth/password", &bearer(token), "{}");
        answer.expect_problem(503, "store_unavailable");
        assert!(answer.header("retry-after").is_some());
    }
    service
        .post("/api/auth/password", &bearer("bad"), "{}")
        .expect_problem(401, "token_invalid");
    let answer = login_from(&service, "192.0.2.1", "a@b.example", PASSWORD);
    answer.expect_problem(503, "store_unavailable");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    until("the store to be read again", || {
        let answer = service.post("/api/auth/password", &bearer(&good), "{}");
        (answer.status != 503).then(|| answer.expect_problem(400, "validation_failed"))
    });
    service
        .post("/api/auth/password", &bearer(&revoked), "{}")
        .expect_problem(401, "token_invalid");
}

/// Killed before any check of the store.
#[test]
fn the_network_of_a_login_is_stored_with_the_login() {
    let scene = Scene::at(TRADING);
    let networks = || {
        let file = scene.state.path().join(bhav::store::FILE_NAME);
        let file = rusqlite::Connection::open(file).unwrap();
        let count = "SELECT count(*) FROM login_networks";
        file.query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    let start =
        || Program::of(serve(&scene, scene.state.path()).arg("--trusted-proxies=127.0.0.1"));
    let from = |program: &Program, action: &str, client: &str| {
        let body = format!(r#"{{"email":"a@b.example","password":"{PASSWORD}"}}"#);
        let headers = format!("X-Forwarded-For: {client}\r\n");
        program
            .client()
            .send_json("POST", &format!("/api/auth/{action}"), &headers, &body)
            .status
    };
    let mut program = start();
    assert_eq!(from(&program, "register", "192.0.2.1"), 201);
    program.kill();
    assert_eq!(networks(), 1);
    let mut program = start();
    assert_eq!(from(&program, "login", "192.0.2.2"), 200);
    program.kill();
    assert_eq!(networks(), 2);
}
