//! The login by cookie, and `GET /api/auth/session`.

use sonic_rs::JsonValueTrait;

use crate::support::{Answer, Scene, Service, bearer, members};

const LOGIN: &str = "/api/auth/login";
const SESSION: &str = "/api/auth/session";
const OWN: &str = "Origin: http://localhost\r\n";
const BY_TLS: &str = "Origin: https://localhost\r\nSec-Fetch-Site: same-origin\r\n";
const USER: &str = r#""email":"asha@mail.example","password":"correct horse""#;

fn started() -> (Scene, Service) {
    let (scene, service) = Scene::trading();
    let body = format!("{{{USER},\"name\":\"Asha\"}}");
    assert_eq!(service.post("/api/auth/register", "", &body).status, 201);
    (scene, service)
}

fn by_cookie(service: &Service, headers: &str) -> Answer {
    service.post(LOGIN, headers, &format!("{{{USER},\"cookie\":true}}"))
}

/// The header `Cookie` that a browser sends after this answer.
fn kept(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap();
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

fn attributes(answer: &Answer) -> Vec<&str> {
    answer
        .header("set-cookie")
        .unwrap()
        .split("; ")
        .skip(1)
        .collect()
}

#[test]
fn the_token_is_in_a_cookie_that_scripts_cannot_read_and_nowhere_else() {
    let (_scene, service) = started();
    let plain = ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"];
    let secure = [
        "HttpOnly",
        "SameSite=Strict",
        "Path=/",
        "Max-Age=604800",
        "Secure",
    ];
    for (headers, expected) in [
        (OWN, plain.as_slice()),
        ("Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n", &plain),
        (BY_TLS, &secure),
        ("Origin: https://localhost\r\n", &secure),
        ("Sec-Fetch-Site: same-origin\r\n", &plain),
    ] {
        let answer = by_cookie(&service, headers);
        assert_eq!(answer.status, 200, "{headers}: {}", answer.text());
        assert_eq!(attributes(&answer), expected, "{headers}");
        assert_eq!(members(&answer.json()), ["token_type", "expires_in", "user"]);
        let cookie = kept(&answer);
        let token = cookie
            .trim_start_matches("Cookie: access_token_cookie=")
            .trim_end();
        assert!(token.len() > 100 && !answer.text().contains(token));
        let holdings = service
            .client()
            .request("GET", "/api/portfolio/holdings", &cookie);
        assert_eq!(holdings.status, 200);
    }
    // Without the member, or with false, as ever.
    for more in ["", ",\"cookie\":false", ",\"cookie\":null"] {
        let answer = service.post(LOGIN, "", &format!("{{{USER}{more}}}"));
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
        assert!(answer.json()["access_token"].is_str());
    }
    let refused = service.post(LOGIN, OWN, &format!("{{{USER},\"cookie\":\"yes\"}}"));
    let json = refused.expect_problem(400, "validation_failed");
    assert_eq!(json["errors"][0]["field"], "cookie");
    let other = r#"{"email":"b@mail.example","password":"correct horse","cookie":true}"#;
    let made = service.post("/api/auth/register", OWN, other);
    assert_eq!((made.status, attributes(&made)), (201, plain.to_vec()));
    assert_eq!(members(&made.json()), ["token_type", "expires_in", "user"]);
}

#[test]
fn a_second_cookie_proves_the_login_to_later_ones_and_gives_access_to_nothing() {
    let (_scene, service) = started();
    let answer = by_cookie(&service, BY_TLS);
    let set = answer.headers("set-cookie");
    assert_eq!(set.len(), 2, "{set:?}");
    let (pair, attributes) = set[1].split_once("; ").unwrap();
    let expected = "HttpOnly; SameSite=Strict; Path=/api/auth/login; Max-Age=34560000; Secure";
    assert_eq!(attributes, expected);
    let proof = pair.strip_prefix("earlier_login_cookie=").unwrap();
    // The proof is refused in every place.
    for headers in [
        bearer(proof),
        format!("Cookie: access_token_cookie={proof}\r\n"),
        format!("Cookie: {pair}\r\n"),
    ] {
        assert_eq!(
            service
                .client()
                .request("GET", "/api/journal", &headers)
                .status,
            401
        );
        let json = service.client().request("GET", SESSION, &headers).json();
        assert!(json["user"].is_null());
    }
    // A logout keeps the cookie; deleting the account removes it.
    let cookie = kept(&answer);
    let out = service.post("/api/auth/logout", &format!("{cookie}{OWN}"), "");
    assert_eq!(out.headers("set-cookie").len(), 1);
    let cookie = kept(&by_cookie(&service, OWN));
    let body = r#"{"password":"correct horse"}"#;
    let lines = format!("{cookie}{OWN}");
    let erased = service
        .client()
        .send_json("DELETE", "/api/auth/account", &lines, body);
    let cleared =
        "earlier_login_cookie=; HttpOnly; SameSite=Strict; Path=/api/auth/login; Max-Age=0";
    assert_eq!(erased.headers("set-cookie")[1], cleared);
}

#[test]
fn a_page_of_another_site_gets_no_cookie() {
    let (_scene, service) = started();
    for headers in [
        "Origin: https://evil.example\r\n",
        "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: http://localhost.evil.example\r\n",
        "Origin: null\r\n",
        "Origin: null\r\nSec-Fetch-Site: same-origin\r\n",
        "Origin: http://localhost\r\nSec-Fetch-Site: same-site\r\n",
        "",
        // A proxy that terminates TLS and does not pass the Host.
        "Origin: https://dash.example\r\nSec-Fetch-Site: same-origin\r\n",
    ] {
        let answer = by_cookie(&service, headers);
        answer.expect_problem(403, "cross_site_request");
        assert_eq!(answer.header("set-cookie"), None, "{headers}");
        let body = r#"{"email":"c@mail.example","password":"correct horse","cookie":true}"#;
        let answer = service.post("/api/auth/register", headers, body);
        answer.expect_problem(403, "cross_site_request");
        assert_eq!(answer.header("set-cookie"), None, "{headers}");
    }
    let rewritten = "Origin: https://dash.example\r\nSec-Fetch-Site: same-origin\r\n";
    assert!(by_cookie(&service, rewritten).text().contains("Host"));
    // That request registered nobody.
    assert_eq!(
        service
            .account("login", "c@mail.example", "correct horse")
            .status,
        401
    );
}

#[test]
fn an_allowed_origin_may_log_in_by_cookie() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.http.allowed_origins = vec!["https://dash.example".into()];
    });
    service.register("asha@mail.example", "correct horse");
    let answer =
        by_cookie(&service, "Origin: https://dash.example\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!(answer.status, 200);
    assert!(attributes(&answer).contains(&"Secure"));
}

#[test]
fn the_session_says_who_is_logged_in_and_is_always_200() {
    let (_scene, service) = started();
    let guest = service.get(SESSION);
    assert_eq!((guest.status, guest.header("cache-control")), (200, Some("no-store")));
    let json = guest.json();
    let expected = [
        "user",
        "expires_at",
        "registration",
        "version",
        "web",
        "login_pages",
    ];
    assert_eq!(members(&json), expected);
    assert!(json["user"].is_null() && json["expires_at"].is_null());
    assert_eq!(json["registration"], "open");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    let page = service.get("/");
    assert!(
        page.text()
            .contains(&format!("/assets/{}/app.js", json["web"].as_str().unwrap()))
    );

    let cookie = kept(&by_cookie(&service, OWN));
    let mut client = service.client();
    let json = client.request("GET", SESSION, &cookie).json();
    assert_eq!(json["user"]["email"], "asha@mail.example");
    assert_eq!(json["user"]["name"], "Asha");
    assert!(
        json["expires_at"]
            .as_str()
            .unwrap()
            .starts_with("2026-11-27T"),
        "{json}"
    );
    for bad in ["Cookie: access_token_cookie=x.y.z\r\n", &bearer("nonsense")] {
        let answer = client.request("GET", SESSION, bad);
        assert!(answer.status == 200 && answer.json()["user"].is_null(), "{bad}");
    }
}

#[test]
fn a_closed_registration_and_a_switched_off_dashboard_are_said() {
    let (_scene, service) = Scene::trading_with(|config| {
        config.web.on = false;
        config.auth.registration = bhav::auth::keys::Registration::Closed;
    });
    let json = service.get(SESSION).json();
    assert_eq!(json["registration"], "closed");
    assert!(json["web"].is_null());
}

#[test]
fn what_ends_a_login_deletes_the_cookie() {
    let (_scene, service) = started();
    let cleared = |answer: &Answer, secure: bool| {
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with("access_token_cookie=; "), "{set}");
        assert!(set.contains("; Max-Age=0") && set.contains("; HttpOnly"), "{set}");
        assert_eq!(set.contains("; Secure"), secure, "{set}");
    };
    let headers = |cookie: &str, origin: &str| format!("{cookie}{origin}");
    let cookie = kept(&by_cookie(&service, OWN));
    let out = service.post("/api/auth/logout", &headers(&cookie, BY_TLS), "");
    assert_eq!(out.status, 200);
    cleared(&out, true);
    let json = service.client().request("GET", SESSION, &cookie).json();
    assert!(json["user"].is_null(), "the token is refused from now on");
    service
        .client()
        .request("GET", "/api/journal", &cookie)
        .expect_problem(401, "token_invalid");

    // A new password ends every other login, and gives this one a new cookie.
    let (cookie, other) = (kept(&by_cookie(&service, OWN)), kept(&by_cookie(&service, OWN)));
    let body =
        r#"{"current_password":"correct horse","new_password":"battery staple 9","cookie":true}"#;
    let changed = service
        .post("/api/auth/password", &headers(&cookie, OWN), body)
        .with_status(200);
    assert!(!members(&changed.json()).contains(&"access_token".to_owned()));
    let renewed = kept(&changed);
    let user =
        |cookie: &str| service.client().request("GET", SESSION, cookie).json()["user"].is_object();
    assert_eq!((user(&cookie), user(&other), user(&renewed)), (false, false, true));
    let body = r#"{"current_password":"battery staple 9","new_password":"correct horse"}"#;
    let changed = service.post("/api/auth/password", &headers(&renewed, OWN), body);
    assert!(changed.json()["access_token"].is_str());
    cleared(&changed, false);

    let cookie = kept(&by_cookie(&service, OWN));
    let body = r#"{"password":"correct horse"}"#;
    let lines = headers(&cookie, OWN);
    let erased = service
        .client()
        .send_json("DELETE", "/api/auth/account", &lines, body);
    assert_eq!(erased.status, 200, "{}", erased.text());
    cleared(&erased, false);
    assert!(!user(&cookie));
}

#[test]
fn a_change_by_cookie_from_another_site_is_refused() {
    let (_scene, service) = started();
    let cookie = kept(&by_cookie(&service, OWN));
    for origin in ["", "Origin: https://evil.example\r\n", "Origin: null\r\n"] {
        let answer = service.post("/api/auth/logout", &format!("{cookie}{origin}"), "");
        answer.expect_problem(403, "cross_site_request");
    }
    let json = service.client().request("GET", SESSION, &cookie).json();
    assert!(json["user"].is_object());
}

/// A proxy that does not pass `Host` on as the browser sent it looks like another site.
#[test]
fn a_host_that_differs_from_the_page_is_named_and_a_default_port_is_no_difference() {
    let (_scene, service) = started();
    let token = service
        .account("login", "asha@mail.example", "correct horse")
        .field("access_token");
    let cookie = format!("Cookie: access_token_cookie={token}\r\n");
    let body = format!("{{{USER},\"cookie\":true}}");
    let ask = |path: &str, host: &str, lines: &str, body: &str| {
        let length = body.len();
        service.client().ask(format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{lines}\r\n{body}"
        ))
    };
    for (host, origin) in [
        ("bhav.lan", "http://bhav.lan"),
        ("bhav.lan:80", "http://bhav.lan"),
        ("bhav.lan", "http://bhav.lan:80"),
        ("bhav.lan:443", "https://bhav.lan"),
        ("bhav.lan:", "http://bhav.lan"),
        ("BHAV.lan:80", "http://bhav.LAN"),
        ("bhav.lan:8443", "http://bhav.lan:8443"),
        ("[fd00::1]:80", "http://[fd00::1]"),
        ("[fd00::1]:443", "https://[fd00::1]"),
        ("192.168.1.10:80", "http://192.168.1.10"),
    ] {
        let origin = format!("Origin: {origin}\r\n");
        let changed = ask("/api/auth/password", host, &format!("{cookie}{origin}"), "{}");
        changed.expect_problem(400, "validation_failed");
        assert_eq!(ask(LOGIN, host, &origin, &body).status, 200, "{host} {origin}");
    }
    for (host, origin) in [
        ("bhav.lan", "http://bhav.lan:8443"),
        ("bhav.lan:8080", "http://bhav.lan"),
        ("bhav.lan:443", "http://bhav.lan"),
        ("bhav.lan:80", "https://bhav.lan"),
        ("127.0.0.1:8080", "https://bhav.lan"),
        ("bhav", "https://bhav.example"),
        ("bhav.lan", "https://evil.example"),
        ("bhav.lan.evil.example", "http://bhav.lan"),
        ("xbhav.lan", "http://bhav.lan"),
        ("[fd00::1]:8080", "http://[fd00::1]"),
    ] {
        let origin_line = format!("Origin: {origin}\r\n");
        let lines = format!("{cookie}{origin_line}");
        for answer in [
            ask("/api/auth/password", host, &lines, "{}"),
            ask("/api/auth/logout", host, &lines, ""),
            ask(LOGIN, host, &origin_line, &body),
        ] {
            let json = answer.expect_problem(403, "cross_site_request");
            let detail = json["detail"].as_str().unwrap();
            for part in [origin, &format!("its Host is {host}."), "$http_host"] {
                assert!(detail.contains(part), "{host} {origin}: {detail}");
            }
        }
    }
}

#[test]
fn a_refused_origin_is_told_by_what_is_wrong_with_it() {
    let (_scene, service) = started();
    let token = service
        .account("login", "asha@mail.example", "correct horse")
        .field("access_token");
    let ask = |lines: &str| {
        let cookie = format!("Cookie: access_token_cookie={token}\r\n");
        service.post("/api/auth/logout", &format!("{cookie}{lines}"), "")
    };
    for (lines, part) in [
        ("", "Authorization: Bearer"),
        ("Origin: null\r\n", "names no site"),
        ("Origin: http://a\r\nOrigin: http://a\r\n", "names no site"),
        (
            "Origin: http://bhav.lan\r\nSec-Fetch-Site: cross-site\r\n",
            "BHAV_ALLOWED_ORIGINS",
        ),
    ] {
        let json = ask(lines).expect_problem(403, "cross_site_request");
        assert!(json["detail"].as_str().unwrap().contains(part), "{lines}: {json}");
    }
    let long = format!("Origin: http://{}.example\r\n", "x".repeat(5_000));
    let json = ask(&long).expect_problem(403, "cross_site_request");
    assert!(json["detail"].as_str().unwrap().len() < 700, "{json}");
}
