//! No redirect carries data elsewhere: a broker's never, at any call with credentials, and the
//! public provider's never out of its own host.

use std::sync::Arc;

use parking_lot::Mutex;
use sonic_rs::JsonValueTrait;

use crate::support::upstream::{Said, Upstream};
use crate::support::{Answer, Scene, Service, TRADING, bearer, until};

/// Another origin, which accepts and records all requests.
struct Elsewhere {
    upstream: Upstream,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Elsewhere {
    fn start() -> Self {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&taken);
        let upstream = Upstream::start(move |asked| {
            keep.lock().push(format!("{}{}", asked.head, asked.body));
            Said::json(r#"{"status":"success","Success":[],"Status":200,"data":[]}"#)
        });
        Self { upstream, taken }
    }

    fn expect_nothing(&self) {
        let taken = self.taken.lock();
        assert!(taken.is_empty(), "{}", taken.join("\n"));
    }
}

fn sync(scene: &Scene, service: &Service, user: &str, broker: &str) -> Answer {
    let (target, body) = if broker == "a" {
        let code = scene.request_token();
        let key = r#""api_key":"simkeya-1","api_secret":"simsecreta""#;
        ("/api/portfolio/sync", format!(r#"{{{key},"request_token":"{code}"}}"#))
    } else {
        let code = scene.api_session();
        let key = r#""api_key":"sim+key=b&1-1","api_secret":"simsecretb""#;
        ("/api/portfolio/brokerb-sync", format!(r#"{{{key},"api_session":"{code}"}}"#))
    };
    service.post(target, user, &body)
}

/// Sets the fault at `route` for one request, to another origin and to the simulator itself.
fn redirect(scene: &Scene, route: &str, status: u16, to: &str) {
    let fault = format!(r#"{{"kind":"redirect","status":{status},"location":"{to}","count":1}}"#);
    scene.fault(route, &fault);
}

#[test]
fn a_brokers_redirect_is_not_followed_with_anybodys_session() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config_without_tokens();
    config.upstream.breaker_failures = 1_000;
    let service = scene.start_with(&config);
    let user = bearer(&service.register("redirects@example.com", "a long enough secret"));
    let elsewhere = Elsewhere::start();
    let to = elsewhere.upstream.url();
    for (broker, route, path) in [
        ("a", "broker_a.session", "/session/token"),
        ("a", "broker_a.holdings", "/portfolio/holdings"),
        ("a", "broker_a.positions", "/portfolio/positions"),
        ("b", "broker_b.customerdetails", "/customerdetails"),
        ("b", "broker_b.dematholdings", "/dematholdings"),
        ("b", "broker_b.portfolioholdings", "/portfolioholdings"),
        ("b", "broker_b.portfoliopositions", "/portfoliopositions"),
    ] {
        for (status, to) in [
            (302, format!("{to}{path}")),
            (307, format!("{to}{path}")),
            (308, format!("http://{}/{broker}{path}", scene.sim.addr())),
        ] {
            redirect(&scene, route, status, &to);
            let answer = until("a turn under the key's limit", || {
                let answer = sync(&scene, &service, &user, broker);
                (answer.status != 429).then_some(answer)
            });
            answer.expect_problem(502, "broker_redirected");
            let set = scene
                .control("GET", "faults", "")
                .text()
                .contains("redirect");
            assert!(!set, "{route} was not asked");
        }
    }
    let holdings = service
        .client()
        .request("GET", "/api/portfolio/holdings", &user)
        .json();
    assert!(holdings["summary"]["synced_at"].is_null(), "a failed sync changes nothing");
    elsewhere.expect_nothing();
    for broker in ["a", "b"] {
        until("a sync that works again", || {
            (sync(&scene, &service, &user, broker).status == 200).then_some(())
        });
    }
}

#[test]
fn an_activation_is_not_redirected_either() {
    let (scene, service) = Scene::trading_on(Scene::config_without_tokens);
    let elsewhere = Elsewhere::start();
    let to = elsewhere.upstream.url();
    for (route, target, body) in [
        ("broker_a.session", "/brokera/activate", r#"{"request_token":"x"}"#),
        ("broker_b.customerdetails", "/brokerb/activate", r#"{"api_session":"x"}"#),
    ] {
        redirect(&scene, route, 307, &to);
        let answer = service.client().send_json("POST", target, "", body);
        answer.expect_problem(502, "broker_redirected");
    }
    elsewhere.expect_nothing();
}

#[test]
fn a_feed_that_redirects_has_failed() {
    let (scene, service) = Scene::trading();
    service.snapshot_where("broker A", |json| json["market"]["source"] == "broker_a");
    let failed = |feed: &str| {
        until("the failure", || {
            let feed = service.health()["feeds"][feed].clone();
            let redirected = feed["failure"].as_str()?.contains("redirect");
            (redirected && feed["state"] != "ok").then_some(())
        });
    };
    let elsewhere = Elsewhere::start();
    let to = elsewhere.upstream.url();
    // Calls with the shared token's header.
    scene.fault("broker_a", &format!(r#"{{"kind":"redirect","location":"{to}/quote"}}"#));
    failed("broker_a");
    scene.fault("public", &format!(r#"{{"kind":"redirect","location":"{to}/spark"}}"#));
    failed("public");
    service.snapshot_where("its age", |json| json["market"]["stale"] == true);
    elsewhere.expect_nothing();
}

#[test]
fn the_public_provider_may_within_its_own_host() {
    let scene = Scene::at(TRADING);
    let mut config = scene.config();
    config.broker_a.access_token = None;
    let moved = format!("http://{}/p/v8/finance/spark?symbols=%5ENSEI", scene.sim.addr());
    redirect(&scene, "public.spark", 302, &moved);
    let service = scene.start_with(&config);
    until("the redirect to be followed", || {
        let followed = scene.stats()["requests"]["public.spark_v8"].as_u64();
        (followed == Some(1)).then_some(())
    });
    service.fresh_snapshot();
}
