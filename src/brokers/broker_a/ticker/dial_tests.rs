//! Tests of endpoints and names, and the dialer for the tests of TLS.

use crossbeam_channel::bounded;
use rustls::RootCertStore;

use super::*;
use crate::rt::moving::Parker;
use crate::rt::outbound::NAMES_QUEUE_MAX;

/// Dials with these root certificates instead of the web's.
pub(in crate::brokers::broker_a::ticker) fn dialer_trusting(roots: RootCertStore) -> Dialer {
    Dialer {
        tls: Arc::new(trusting(roots)),
        ..Dialer::start().unwrap()
    }
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

#[test]
fn an_endpoint_is_a_websocket_url_without_query() {
    let endpoint = Endpoint::parse("wss://ws.kite.trade").unwrap();
    assert_eq!(
        (endpoint.host.as_str(), endpoint.port, endpoint.tls),
        ("ws.kite.trade", 443, true)
    );
    let local = Endpoint::parse("ws://[::1]:9000/a/ticker/").unwrap();
    assert_eq!((local.host.as_str(), local.port, local.tls), ("::1", 9_000, false));
    assert_eq!(local.url, "ws://[::1]:9000/a/ticker");
    for bad in [
        "https://ws.kite.trade",
        "ws://",
        "ws://a/?q=1",
        "ws://u@a/",
        "ws://a/#f",
        "a",
    ] {
        assert!(Endpoint::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_name_that_hangs_ends_by_its_deadline_and_holds_no_more_than_one_thread() {
    let (release, held) = bounded::<()>(0);
    let resolve = move |_: &str, _: u16| {
        let _ = held.recv();
        Ok(Vec::new())
    };
    let names = Names::with("test-name", Arc::new(resolve)).unwrap();
    let named = endpoint("ws://ticker.example:9");
    for _ in 0..4 {
        assert_eq!(addresses(&names, &named, 50), Err(Reason::TimedOut));
    }
    let stats = names.lane.stats();
    assert_eq!((stats.running, stats.depth, stats.refused), (1, NAMES_QUEUE_MAX, 2));
    drop(release);
    let parker = Parker::current();
    let found = (0..2_000).any(|_| {
        parker.park(5);
        addresses(&names, &named, 50) == Ok(Vec::new())
    });
    assert!(found, "the thread comes back");
}

#[test]
fn an_address_is_not_resolved_and_a_name_without_one_is_unreachable() {
    let fails = |_: &str, _: u16| Err(io::ErrorKind::NotFound.into());
    let names = Names::with("test-name", Arc::new(fails)).unwrap();
    for (url, address) in [
        ("ws://127.0.0.1:9000/a", "127.0.0.1:9000"),
        ("wss://[::1]", "[::1]:443"),
    ] {
        assert_eq!(addresses(&names, &endpoint(url), 60_000), Ok(vec![address.parse().unwrap()]));
    }
    let unknown = endpoint("ws://ticker.example");
    assert_eq!(addresses(&names, &unknown, 60_000), Err(Reason::Unreachable));
    assert_eq!(connect(&[]).err(), Some(Reason::Unreachable));
}
