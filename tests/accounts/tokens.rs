//! Tokens that are accepted, the places they may come from, and their end.

use crate::support::{Answer, Scene, Service, TRADING, bearer};
use bhav::base::Clock;
use bhav::sim::SimSettings;

const PASSWORD: &str = "correct horse";
const ROUTE: &str = "/api/auth/password";

fn ask(service: &Service, headers: &str) -> Answer {
    service.post(ROUTE, headers, "{}")
}

/// An accepted token gives a 400 here: the body lacks all fields.
#[track_caller]
fn expect_accepted(answer: &Answer) {
    answer.expect_problem(400, "validation_failed");
}

fn cookie(token: &str) -> String {
    format!("Cookie: theme=dark; access_token_cookie={token}; x=y\r\n")
}

#[test]
fn without_a_token_it_is_401_and_says_how() {
    let (_scene, service) = Scene::trading();
    for headers in [
        "",
        "Cookie: access_token=x; other_access_token_cookie=y\r\n",
    ] {
        let answer = ask(&service, headers);
        answer.expect_problem(401, "token_missing");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[test]
fn the_header_wins_and_what_is_malformed_is_refused() {
    let (_scene, service) = Scene::trading();
    let good = service.register("a@b.example", PASSWORD);
    expect_accepted(&ask(&service, &bearer(&good)));
    expect_accepted(&ask(&service, &format!("authorization: bEARER   {good}\r\n")));
    let same_site = "Sec-Fetch-Site: same-origin\r\n";
    expect_accepted(&ask(&service, &format!("{}{same_site}", cookie(&good))));
    expect_accepted(&ask(&service, &format!("{}{}", bearer(&good), cookie("bad"))));
    let beside = format!("{}Cookie: access_token_cookie=x\r\n{same_site}", cookie(&good));
    expect_accepted(&ask(&service, &beside));
    let (head, tag) = good.rsplit_once('.').unwrap();
    let other = if tag.starts_with('A') { 'B' } else { 'A' };
    let none = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let claims = good.split('.').nth(1).unwrap();
    for bad in [
        format!("{}{}{same_site}", bearer("bad"), cookie(&good)),
        format!("{}{}", bearer(&good), bearer(&good)),
        format!("Authorization: {good}\r\n"),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer \r\n".to_owned(),
        bearer(&format!("{good} {good}")),
        bearer(&format!("{good}{}", "x".repeat(2_000))),
        bearer(&format!("{head}.{other}{}", &tag[1..])),
        bearer(&format!("{none}.{claims}.")),
        bearer(&format!("{none}.{claims}.{tag}")),
        format!("Cookie: access_token_cookie=\r\n{same_site}"),
    ] {
        let answer = ask(&service, &bad);
        answer.expect_problem(401, "token_invalid");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    }
    // No token was sent.
    for none in [String::new(), format!("Authorization: Basic {good}\r\n")] {
        let answer = ask(&service, &none);
        answer.expect_problem(401, "token_missing");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

/// A proxy in front may ask for credentials of its own, or a browser remembers them.
#[test]
fn credentials_of_another_scheme_leave_the_cookie_its_word() {
    let (_scene, service) = Scene::trading();
    let good = service.register("a@b.example", PASSWORD);
    for other in [
        "Basic YTpi",
        "basic YTpi",
        "Digest username=\"a\", realm=\"b\"",
        "Negotiate YTpi",
    ] {
        let other = format!("Authorization: {other}\r\n");
        let read = format!("{other}{}", cookie(&good));
        assert_eq!(
            service
                .client()
                .request("GET", "/api/journal", &read)
                .status,
            200,
            "{other}"
        );
        expect_accepted(&ask(&service, &format!("{read}Sec-Fetch-Site: same-origin\r\n")));
        // The cookie counts, so the page has to be of this site.
        ask(&service, &read).expect_problem(403, "cross_site_request");
        let bad = format!("{other}{}Sec-Fetch-Site: same-origin\r\n", cookie("bad"));
        ask(&service, &bad).expect_problem(401, "token_invalid");
        ask(&service, &other).expect_problem(401, "token_missing");
    }
}

#[test]
fn a_cookie_acts_only_from_this_site_or_an_allowed_origin() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.http.allowed_origins = vec!["https://app.example".into()];
    });
    let token = service.register("a@b.example", PASSWORD);
    let site = |value: &str| format!("Sec-Fetch-Site: {value}\r\n");
    let origin = |value: &str| format!("Origin: {value}\r\n");
    let own = origin("http://localhost");
    let allowed = origin("https://app.example");
    let foreign = origin("https://evil.example");
    for trusted in [
        site("same-origin"),
        site("none"),
        own.clone(),
        origin("https://LOCALHOST"),
        allowed.clone(),
        site("cross-site") + &allowed,
        site("same-site") + &allowed,
    ] {
        expect_accepted(&ask(&service, &format!("{}{trusted}", cookie(&token))));
    }
    for refused in [
        String::new(),
        foreign.clone(),
        origin("null"),
        origin("http://localhost.evil.example"),
        origin("localhost"),
        origin("http://"),
        site("cross-site"),
        site("cross-site") + &own,
        site("same-site") + &own,
        site("cross-site") + &foreign,
        site("same-origin") + &site("cross-site"),
        site("SAME-ORIGIN"),
        "Referer: http://localhost/\r\n".to_owned(),
    ] {
        let answer = ask(&service, &format!("{}{refused}", cookie(&token)));
        answer.expect_problem(403, "cross_site_request");
        expect_accepted(&ask(&service, &format!("{}{refused}", bearer(&token))));
    }
    // A bad token is reported before anything else.
    ask(&service, &cookie("bad")).expect_problem(401, "token_invalid");
}

#[test]
fn a_token_ends_after_seven_days() {
    let clock = Clock::manual(TRADING.parse().unwrap());
    let scene = Scene::on(clock.clone(), SimSettings::default());
    let service = scene.start();
    let token = service.register("a@b.example", PASSWORD);
    clock.advance_ms(604_800_000 - 1_000);
    expect_accepted(&ask(&service, &bearer(&token)));
    clock.advance_ms(1_000);
    ask(&service, &bearer(&token)).expect_problem(401, "token_invalid");
}

#[test]
fn keys_rotate_and_a_forgotten_one_ends_its_tokens() {
    let scene = Scene::at(TRADING);
    let start = |current: &str, previous: Option<&str>| {
        let mut config = scene.config();
        config.auth.jwt_secret = Some(current.into());
        config.auth.jwt_previous_secrets = previous.map(Into::into);
        scene.start_with(&config)
    };
    let (one, two) = ("the first key of thirty-two bytes.", "the second key of thirty-two bytes");
    let service = start(one, None);
    let token = service.register("a@b.example", PASSWORD);
    expect_accepted(&ask(&service, &bearer(&token)));
    service.stop();
    let service = start(two, Some(one));
    expect_accepted(&ask(&service, &bearer(&token)));
    service.stop();
    let service = start(two, None);
    ask(&service, &bearer(&token)).expect_problem(401, "token_invalid");
}
