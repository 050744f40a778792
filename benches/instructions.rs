//! Snapshot requests through the edge, as many as the first argument says, to be counted in
//! instructions by callgrind: `.ci/instructions` takes the difference of two runs.
//!
//! Without the kernel and the scheduler of coroutines, which are the same for every server on may.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bhav::api::Api;
use bhav::app::assemble;
use bhav::base::Clock;
use bhav::config::Config;
use bhav::http::message::offline::Offline;
use bhav::http::settings::HttpSettings;
use bhav::ops::state_lock::InstanceLock;

/// What wrk and oha send, with the coding that browsers accept.
const REQUEST: &[u8] = b"GET /api/index/snapshot HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
    User-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\n\r\n";

fn main() {
    // Cargo adds its own `--bench`.
    let requests = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(1_000);
    let clock = Clock::starting_at("2026-11-20T05:30:00Z".parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let config = Config { state_dir: dir.path().into(), ..Config::default() };
    let lock = Arc::new(InstanceLock::of(&config.state_dir));
    let state = assemble(&config, &lock, &clock).unwrap().state;
    let body = format!("{{\"index1_price\":25012.35,\"filler\":\"{}\"}}", "x".repeat(1_150));
    state.snapshot.publish(body.into_bytes());
    let mut offline = Offline::new(&HttpSettings::default(), &clock, Api::new(state));
    for _ in 0..requests {
        let answer = offline.exchange(REQUEST);
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}
