//! The end of the service while work is in progress.

use crate::support::{Client, Scene, TRADING, until};
use bhav::cache::pending::Class;

/// Draining begins while a request waits for a quote that will not come in time.
#[test]
fn a_request_that_waits_is_answered_before_the_end() {
    let scene = Scene::at(TRADING);
    scene.fault("*", r#"{"kind":"delay","delay_ms":600000}"#);
    let mut config = scene.config();
    config.http.drain_timeout_ms = 20_000;
    config.cache.miss_wait_ms = 1_500;
    config.upstream.read_timeout_ms = 1_000;
    let service = scene.start_with(&config);
    let address = service.0.address().to_owned();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            Client::connect(&address).get("/api/portfolio/live-prices?symbols=NSE:INFY")
        });
        let pending = &service.0.server().shared().service.state().pending.clone();
        until("the request to wait", || {
            (pending.stats(Class::Listed).waiters == 1).then_some(())
        });
        assert_eq!(service.stop(), 0, "connections were cut off");
        waiting
            .join()
            .unwrap()
            .expect_problem(503, "quotes_unavailable");
    });
}
