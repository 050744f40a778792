//! `GET /metrics` under traffic: its form, exact counts, and a number of series that clients cannot
//! raise.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::support::scrape::{SUCCEEDED, Scrape, labels};
use crate::support::{Client, Program, SNAPSHOT, Scene, bhav, until};
use bhav::api::ROUTES;

/// Every label. A new one must have a bounded number of values.
const LABELS: [&str; 19] = [
    "arch", "broker", "cache", "class", "kind", "lane", "le", "method", "outcome", "profile",
    "reason", "result", "route", "source", "state", "status", "symbols", "upstream", "where",
];
/// Labels of one series each.
const INFO_LABELS: [&str; 2] = ["version", "warmer"];

/// The part before the kind: the unit of a family.
const UNITS: [&str; 3] = ["_seconds", "_bytes", "_ratio"];

fn route_count(scrape: &Scrape, route: &str, status: &str) -> f64 {
    let method = if route == "other" { "other" } else { "GET" };
    let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
    scrape.value(&format!("bhav_http_request_duration_seconds_count{labels}"))
}

#[test]
fn every_family_is_well_formed() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    service.fresh_snapshot();
    let scrape = Scrape::complete(&service);
    assert!(scrape.0.len() > 50, "{} families", scrape.0.len());
    for (name, family) in &scrape.0 {
        assert!(name.starts_with("bhav_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name}");
        let base = name.trim_end_matches("_total");
        for (word, unit) in [
            ("time", UNITS[0]),
            ("age", UNITS[0]),
            ("duration", UNITS[0]),
        ] {
            let timed = base.split('_').any(|part| part == word);
            assert!(!timed || base.ends_with(unit) || base.ends_with("timed_out"), "{name}");
        }
        assert!(!base.ends_with("_ms") && !base.ends_with("_kib"), "{name} in a derived unit");
        assert!(!family.samples.is_empty(), "{name} has no samples");
        for series in family.samples.keys() {
            for (label, value) in labels(series) {
                let known = LABELS.contains(&&*label) || INFO_LABELS.contains(&&*label);
                assert!(known, "{series}");
                assert!(!value.is_empty() && !value.contains('@') && !value.contains("NSE"));
            }
        }
    }
}

#[test]
fn routes_are_those_of_the_table() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let scrape = Scrape::of(&service);
    let mut seen = BTreeSet::new();
    for series in scrape.0["bhav_http_request_duration_seconds"]
        .samples
        .keys()
    {
        let labels = labels(series);
        seen.insert((labels[0].1.clone(), labels[1].1.clone()));
    }
    let mut expected: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| (route.method.as_str().to_owned(), route.path.to_owned()))
        .collect();
    expected.insert(("other".into(), "other".into()));
    expected.insert(("GET".into(), "page".into()));
    assert_eq!(seen, expected);
}

#[test]
fn answers_are_counted_exactly_by_route_and_class() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let etag = service.fresh_snapshot().header("etag").unwrap().to_owned();
    let mut client = service.client();
    until("other requests to end", || {
        (Scrape::of(&service).value("bhav_http_requests_in_flight") == 0.0).then_some(())
    });
    let before = Scrape::of(&service);
    let mut unchanged = 0.0;
    for _ in 0..20 {
        let again = client.request("GET", SNAPSHOT, &format!("If-None-Match: {etag}\r\n"));
        unchanged += f64::from(u8::from(again.status == 304));
    }
    client.request("HEAD", SNAPSHOT, "");
    assert_eq!(client.get("/api/journal/17").status, 401);
    client.get("/no/such/path").expect_problem(404, "not_found");
    client
        .request("DELETE", SNAPSHOT, "")
        .expect_problem(405, "method_not_allowed");
    // Refused before a route is matched; the connection ends.
    service.client().request("GET", "/a b", "");
    let after = Scrape::of(&service);
    let grown = |route, status| {
        let was = before.samples().any(|(name, _)| {
            name.contains("_count{")
                && name.contains(&format!("route=\"{route}\""))
                && name.contains(status)
        });
        let was = if was {
            route_count(&before, route, status)
        } else {
            0.0
        };
        route_count(&after, route, status) - was
    };
    assert_eq!(grown(SNAPSHOT, "2xx"), 21.0 - unchanged);
    if unchanged > 0.0 {
        assert_eq!(grown(SNAPSHOT, "3xx"), unchanged);
    }
    assert_eq!((grown("/api/journal/{id}", "4xx"), grown("other", "4xx")), (1.0, 3.0));
    let errors = "bhav_http_errors_total{status=\"4xx\"}";
    assert_eq!(after.value(errors) - before.value(errors), 4.0);
}

#[test]
fn counters_only_grow_and_buckets_are_cumulative() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    service.fresh_snapshot();
    service.prices("NSE:INFY");
    let before = Scrape::of(&service);
    service.register("a@example.com", "correct horse battery");
    service.prices("NSE:INFY,NSE:TCS");
    let after = Scrape::of(&service);
    for (name, family) in before.0.iter().filter(|(_, family)| family.kind != "gauge") {
        for (series, value) in &family.samples {
            let now = after.0[name].samples[series];
            assert!(now >= *value, "{series} fell from {value} to {now}");
        }
    }
    assert!(after.value("bhav_store_writes_total{result=\"committed\"}") >= 1.0);
    assert!(after.value("bhav_lane_jobs_total{lane=\"crypto\",result=\"completed\"}") >= 1.0);
    let waits = |of: &str| after.value(&format!("bhav_lane_wait_seconds_{of}"));
    assert!(waits("count{lane=\"crypto\"}") >= 1.0);
    assert_eq!(waits("bucket{lane=\"crypto\",le=\"+Inf\"}"), waits("count{lane=\"crypto\"}"));
    for cache in ["l1", "l2"] {
        let of = |figure| after.value(&format!("bhav_cache_{figure}{{cache=\"{cache}\"}}"));
        assert!(of("bytes") > of("entries") * 50.0 && of("evictions_total") == 0.0, "{cache}");
    }
    assert!(after.value("bhav_cache_entries{cache=\"l1\"}") >= 2.0);
    assert!(after.value("bhav_cache_hits_total{cache=\"l1\"}") >= 1.0);
    let calls = "{upstream=\"broker_a\",class=\"quotes\",outcome=\"ok\"}";
    assert!(after.value(&format!("bhav_upstream_calls_total{calls}")) >= 1.0);
    assert_eq!(after.value("bhav_token_valid{broker=\"broker_a\"}"), 1.0);
    // From 11:00 to the token's end at 06:00.
    let left_s = after.value("bhav_token_time_left_seconds{broker=\"broker_a\"}");
    assert!((18.9 * 3_600.0..=19.0 * 3_600.0).contains(&left_s), "{left_s}");
    let mut histograms = 0;
    for family in after.0.values().filter(|family| family.kind == "histogram") {
        for (series, count) in family
            .samples
            .iter()
            .filter(|(name, _)| name.contains("_count"))
        {
            let plain = labels(series);
            let mut buckets: Vec<(f64, f64)> = Vec::new();
            for (bucket, value) in family
                .samples
                .iter()
                .filter(|(name, _)| name.contains("_bucket"))
            {
                let mut of = labels(bucket);
                let (le, bound) = of.pop().unwrap();
                if le == "le" && of == plain {
                    buckets.push((bound.parse().unwrap(), *value));
                }
            }
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.len() > 2 && buckets.is_sorted_by(|a, b| a.1 <= b.1), "{series}");
            assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, *count), "{series}");
            histograms += 1;
        }
    }
    assert!(histograms > ROUTES.len(), "only {histograms}");
}

#[test]
fn clients_cannot_raise_the_number_of_series() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    service.fresh_snapshot();
    let names = |scrape: &Scrape| -> BTreeSet<String> {
        // A warmer's first success adds its series, whatever clients do.
        let names = scrape.samples().map(|(name, _)| name.to_owned());
        names.filter(|name| !name.starts_with(SUCCEEDED)).collect()
    };
    let provoke = |from: usize, to: usize| {
        let mut client = service.client();
        for number in from..to {
            client.get(&format!("/nothing/{number}"));
            client.get(&format!("/api/journal/{}", number + 1));
            client.request("GET", SNAPSHOT, &format!("X-Request-Id: r{number}\r\n"));
            client.request(
                ["POST", "PUT", "PATCH", "DELETE"][number % 4],
                "/x",
                "Content-Length: 0\r\n",
            );
        }
    };
    provoke(0, 4);
    let few = names(&Scrape::of(&service));
    provoke(4, 200);
    assert_eq!(names(&Scrape::of(&service)), few);
    // All routes in all classes together stay below this, so a scraper's storage is bounded.
    // The three routes of API keys raised it from 3,400, movers, `/mcp` and the two of watch lists
    // from 3,700, those of the ledger from 3,900.
    let others = few.iter().filter(|name| !name.contains("route=")).count();
    let most = others + (ROUTES.len() + 2) * 4 * 19;
    assert!(most < 5_500, "{most} series");
}

#[test]
fn a_full_lane_refuses_a_scrape_at_once() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let lane = service.0.admin().unwrap().shared().service.lane();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let mut held = Vec::new();
    // The thread takes one job and the queue holds some. The next one is refused.
    let full = until("a full lane", || {
        let gate = std::sync::Arc::clone(&gate);
        match lane.submit(60_000, move || gate.lock().unwrap().recv().is_err()) {
            Ok(ticket) => {
                held.push(ticket);
                None
            }
            Err(refused) => {
                (lane.stats().running == 1 && lane.stats().depth == 4).then_some(refused)
            }
        }
    });
    assert_eq!(full.lane, "admin");
    service.admin().get("/metrics").expect_problem(503, "busy");
    assert_eq!(service.admin().get("/livez").status, 200, "probes need no lane");
    drop(release);
    held.into_iter()
        .for_each(|ticket| assert_eq!(ticket.wait(), Ok(true)));
    let refused = "bhav_lane_jobs_total{lane=\"admin\",result=\"refused\"}";
    assert!(Scrape::of(&service).value(refused) >= 1.0);
}

#[test]
fn the_listener_takes_few_connections_and_no_bodies() {
    let (_scene, service) = Scene::trading_on(Scene::watched);
    let address = service.0.admin().unwrap().address();
    let mut open: Vec<Client> = (0..65).map(|_| Client::connect(address)).collect();
    let stats = &service.0.admin().unwrap().shared().stats;
    until("accepting to pause", || (stats.accept_pauses.value() > 0).then_some(()));
    let mut last = open.pop().unwrap();
    open.clear();
    assert_eq!(last.get("/livez").status, 200);
    last.get("/nothing").expect_problem(404, "not_found");
    let refused = last.request("POST", "/livez", "");
    refused.expect_problem(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    last.send_json("POST", "/livez", "", "{}")
        .expect_problem(413, "body_too_large");
    // The service's own listener serves none of these.
    for path in ["/metrics", "/livez", "/readyz"] {
        service.get(path).expect_problem(404, "not_found");
    }
}

/// The port lets a demo run next to a service.
#[test]
fn the_demo_serves_metrics_on_a_port_of_its_own() {
    let state = tempfile::tempdir().unwrap();
    let mut command = bhav(&["demo", "--listen=127.0.0.1:0"]);
    command.arg(format!("--state-dir={}", state.path().display()));
    command
        .arg("--now=2026-11-20T11:00:00+05:30")
        .stderr(Stdio::null());
    let program = Program::of(&mut command);
    let url = program
        .printed
        .lines()
        .find_map(|line| line.strip_prefix("metrics on http://"));
    let address = url.unwrap().strip_suffix("/metrics").unwrap().to_owned();
    let mut client = program.client();
    until("data", || (client.get(SNAPSHOT).status == 200).then_some(()));
    until("the scheduler's report of it", || {
        let scrape = Scrape::parse(Client::connect(&address).get("/metrics").text());
        (scrape.value("bhav_snapshot_simulated") == 1.0).then_some(())
    });
    assert_eq!(Client::connect(&address).get("/readyz").status, 200);
}
