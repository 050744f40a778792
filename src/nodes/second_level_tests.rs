//! L2 on a real server: what is kept, what is refused, and how long calls take when it is away.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::process::Signal;

use super::*;
use crate::base::Clock;
use crate::nodes::valkey::Address;
use crate::nodes::valkey::installation::tests::{SECRET, installation, of};
use crate::nodes::valkey::testing::TestServer;
use crate::rt::outbound::BackOff;

/// Time that a busy machine may add to a deadline.
const SLACK_MS: u64 = 1_500;

fn level(server: &TestServer, records_max: usize) -> ValkeyL2 {
    ValkeyL2::new(&server.server(), &installation(), records_max)
}

fn item(key: &str, text: &str) -> (String, Vec<u8>) {
    (key.to_owned(), text.as_bytes().to_vec())
}

fn keys_of(l2: &ValkeyL2, kind: Kind) -> Vec<String> {
    let mut keys: Vec<String> = l2
        .load_all(kind)
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    keys.sort();
    keys
}

/// Runs a command as an operator would.
fn command(server: &TestServer, words: &[&str]) -> redis::Value {
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    redis::cmd(words[0])
        .arg(&words[1..])
        .query(&mut connection)
        .unwrap()
}

#[test]
fn what_one_node_stored_another_reads() {
    let Some(server) = TestServer::start("what_one_node_stored_another_reads") else {
        return;
    };
    let one = level(&server, 100);
    one.store(Kind::Quote, &[item("NSE:INFY", "one"), item("NSE:TCS", "two")], 1_000)
        .unwrap();
    one.store(Kind::Quote, &[item("NSE:INFY", "three")], 2_000)
        .unwrap();
    one.store(Kind::Instruments, &[item("list", "another kind")], 3_000)
        .unwrap();
    let other = level(&server, 100);
    let record = other.load(Kind::Quote, "NSE:INFY").unwrap().unwrap();
    assert_eq!(
        record,
        Record {
            bytes: b"three".to_vec(),
            stored_ms: 2_000
        }
    );
    assert_eq!(keys_of(&other, Kind::Quote), ["NSE:INFY", "NSE:TCS"]);
    assert_eq!(other.load(Kind::Instruments, "NSE:TCS").unwrap(), None);
    let stats = other.stats();
    assert_eq!((stats.hits, stats.misses, stats.errors), (3, 1, 0));
    let stats = one.stats();
    assert_eq!(stats.entries, 3);
    assert!(
        ["redis", "valkey"].contains(&stats.backend.as_str()) && stats.bytes > 50,
        "{stats:?}"
    );
}

#[test]
fn installations_on_one_server_do_not_see_each_other() {
    let name = "installations_on_one_server_do_not_see_each_other";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let other = of("other", SECRET, None);
    level(&server, 100)
        .store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    let other = ValkeyL2::new(&server.server(), &other, 100);
    assert!(other.load_all(Kind::Quote).unwrap().is_empty());
}

#[test]
fn over_the_bound_the_records_stored_longest_ago_are_dropped() {
    let name = "over_the_bound_the_records_stored_longest_ago_are_dropped";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 3);
    let items: Vec<_> = ["A", "B", "C"].map(|key| item(key, "x")).into();
    l2.store(Kind::Quote, &items, 1_000).unwrap();
    l2.store(Kind::Quote, &[item("A", "again"), item("D", "new")], 2_000)
        .unwrap();
    assert_eq!(keys_of(&l2, Kind::Quote).len(), 3);
    assert!(l2.load(Kind::Quote, "A").unwrap().is_some(), "stored again");
    l2.store(Kind::Quote, &[item("E", "x"), item("F", "x")], 3_000)
        .unwrap();
    let kept = keys_of(&l2, Kind::Quote);
    assert!(kept.contains(&"E".to_owned()) && kept.contains(&"F".to_owned()), "{kept:?}");
    assert_eq!((l2.stats().evictions, l2.stats().entries), (3, 3));
    // The ages are trimmed with the records.
    let ages = command(&server, &["ZCARD", "bhav:main:quote:age"]);
    assert_eq!(ages, redis::Value::Int(3));
}

#[test]
fn thousands_of_quotes_are_stored_and_read_in_pages() {
    let name = "thousands_of_quotes_are_stored_and_read_in_pages";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 10_000);
    let items: Vec<_> = (0..7_000)
        .map(|n| item(&format!("NSE:S{n}"), &"q".repeat(180)))
        .collect();
    l2.store(Kind::Quote, &items, 1_000).unwrap();
    assert_eq!(l2.load_all(Kind::Quote).unwrap().len(), 7_000);
    // A smaller node takes no more than it may hold.
    assert_eq!(level(&server, 600).load_all(Kind::Quote).unwrap().len(), 600);
}

#[test]
fn an_instrument_list_of_megabytes_gets_through_and_one_over_the_limit_does_not() {
    let name = "an_instrument_list_of_megabytes_gets_through_and_one_over_the_limit_does_not";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 100);
    let list = vec![7; 12 * 1024 * 1024];
    l2.store(Kind::Instruments, &[("list".to_owned(), list.clone())], 1_000)
        .unwrap();
    assert_eq!(l2.load(Kind::Instruments, "list").unwrap().unwrap().bytes, list);
    let over = ("list".to_owned(), vec![0; crate::cache::l2::RECORD_BYTES_MAX + 1]);
    let refused = l2.store(Kind::Instruments, &[over], 2_000);
    assert!(matches!(refused, Err(L2Error::TooLarge { .. })), "{refused:?}");
}

#[test]
fn a_leader_that_was_replaced_stores_nothing() {
    let Some(server) = TestServer::start("a_leader_that_was_replaced_stores_nothing") else {
        return;
    };
    let old = level(&server, 100);
    let new = level(&server, 100);
    old.set_epoch(Epoch(4));
    old.store(Kind::Quote, &[item("NSE:INFY", "old")], 1_000)
        .unwrap();
    // The claim of the new leader writes this.
    let fence =
        installation()
            .namespace_keys()
            .unwrap()
            .sign(Signed::Fence, "", (Epoch(5), 0), b"");
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    redis::cmd("SET")
        .arg("bhav:main:epoch")
        .arg(fence)
        .exec(&mut connection)
        .unwrap();
    new.set_epoch(Epoch(5));
    new.store(Kind::Quote, &[item("NSE:INFY", "new")], 2_000)
        .unwrap();
    let refused = old.store(Kind::Quote, &[item("NSE:INFY", "late"), item("NSE:X", "y")], 3_000);
    assert!(matches!(refused, Err(L2Error::Deposed)), "{refused:?}");
    let record = old.load(Kind::Quote, "NSE:INFY").unwrap().unwrap();
    assert_eq!(record.bytes, b"new");
    assert_eq!(keys_of(&new, Kind::Quote), ["NSE:INFY"]);
}

#[test]
fn what_another_program_wrote_is_no_record() {
    let Some(server) = TestServer::start("what_another_program_wrote_is_no_record") else {
        return;
    };
    let l2 = level(&server, 100);
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    command(
        &server,
        &[
            "HSET",
            "bhav:main:quote",
            "NSE:TCS",
            "short",
            &"k".repeat(65),
            "12345678x",
        ],
    );
    assert_eq!(keys_of(&l2, Kind::Quote), ["NSE:INFY"]);
    assert_eq!(l2.load(Kind::Quote, "NSE:TCS").unwrap(), None);
    assert_eq!(l2.stats().distrusted, [3, 0, 0]);
    // A key of another type holds nothing, and goes.
    command(&server, &["SET", "bhav:main:instruments", "x"]);
    assert!(l2.load_all(Kind::Instruments).unwrap().is_empty());
    assert!(l2.load(Kind::Quote, "NSE:INFY").unwrap().is_some());
    assert_eq!((l2.client.stats().connects, l2.stats().errors), (1, 0));
}

/// Calls until one succeeds: tries are spaced while the server is away.
fn works_again(l2: &ValkeyL2, timer: &Clock) {
    let begun_ms = timer.monotonic_ms();
    while let Err(error) = l2.store(Kind::Quote, &[item("NSE:INFY", "back")], 9_000) {
        assert!(timer.monotonic_ms() - begun_ms < 20_000, "{error}");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_dies_fails_calls_at_once_and_is_found_again() {
    let name = "a_server_that_dies_fails_calls_at_once_and_is_found_again";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 100);
    let timer = Clock::system();
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    server.kill();
    for _ in 0..200 {
        assert!(l2.load(Kind::Quote, "NSE:INFY").is_err());
    }
    assert!(timer.monotonic_ms() < SLACK_MS, "{}", timer.monotonic_ms());
    let stats = l2.stats();
    assert_eq!((stats.errors, stats.hits), (200, 0));
    assert_eq!(stats.backend, l2.client.server_name());
    server.restart();
    works_again(&l2, &timer);
    assert_eq!(l2.client.stats().connects, 2);
}

#[test]
fn a_server_that_stops_answering_costs_a_call_its_deadline() {
    let name = "a_server_that_stops_answering_costs_a_call_its_deadline";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let deadlines = Deadlines {
        connect_ms: 300,
        call_ms: 600,
    };
    let client = Client::new(&server.server(), deadlines);
    let timer = Clock::system();
    let ping = |to: &mut Connection| redis::cmd("PING").exec(to);
    client.call(ping).unwrap();
    server.signal(Signal::STOP);
    let mut took_ms = Vec::new();
    // The first meets the open connection, the second opens one, the third is not even tried.
    for _ in 0..3 {
        let begun_ms = timer.monotonic_ms();
        assert!(client.call(ping).is_err());
        took_ms.push(timer.monotonic_ms() - begun_ms);
    }
    assert!((600..600 + SLACK_MS).contains(&took_ms[0]), "{took_ms:?}");
    assert!((300..300 + SLACK_MS).contains(&took_ms[1]), "{took_ms:?}");
    assert!(took_ms[2] < 100, "{took_ms:?}");
    server.signal(Signal::CONT);
    let begun_ms = timer.monotonic_ms();
    while client.call(ping).is_err() {
        assert!(timer.monotonic_ms() - begun_ms < 10_000);
        std::thread::yield_now();
    }
}

#[test]
fn every_call_ends_by_its_deadline_whenever_the_server_stops_or_dies() {
    let name = "every_call_ends_by_its_deadline_whenever_the_server_stops_or_dies";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let deadlines = Deadlines {
        connect_ms: 100,
        call_ms: 200,
    };
    let client = Client::new(&server.server(), deadlines);
    let timer = Clock::system();
    let done = std::sync::atomic::AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let answered = AtomicU64::new(0);
    let longest_ms = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for caller in 0..3 {
            let client = &client;
            let timer = &timer;
            let done = &done;
            let calls = &calls;
            let answered = &answered;
            let longest_ms = &longest_ms;
            scope.spawn(move || {
                let value = vec![caller; 200_000];
                while !done.load(Relaxed) {
                    let begun_ms = timer.monotonic_ms();
                    let called = client.call(|to| {
                        redis::cmd("SET").arg("k").arg(&value).exec(to)?;
                        let read: Vec<u8> = redis::cmd("GET").arg("k").query(to)?;
                        assert_eq!(read, value, "the answer to another call");
                        Ok(())
                    });
                    longest_ms.fetch_max(timer.monotonic_ms() - begun_ms, Relaxed);
                    calls.fetch_add(1, Relaxed);
                    answered.fetch_add(u64::from(called.is_ok()), Relaxed);
                }
            });
        }
        let mut random = fastrand::Rng::with_seed(14);
        for _ in 0..12 {
            let until = calls.load(Relaxed) + random.u64(1..200);
            let patience_ms = timer.monotonic_ms() + 1_000;
            while calls.load(Relaxed) < until && timer.monotonic_ms() < patience_ms {
                std::thread::yield_now();
            }
            if random.bool() {
                server.restart();
            } else {
                server.signal(Signal::STOP);
                let until_ms = timer.monotonic_ms() + random.u64(10..500);
                while timer.monotonic_ms() < until_ms {
                    std::thread::yield_now();
                }
                server.signal(Signal::CONT);
            }
        }
        done.store(true, Relaxed);
    });
    let longest_ms = longest_ms.into_inner();
    assert!(longest_ms < 200 + SLACK_MS, "{longest_ms}");
    assert!(answered.into_inner() > 10);
}

#[test]
fn a_password_and_a_user_limited_to_our_keys_are_enough() {
    let name = "a_password_and_a_user_limited_to_our_keys_are_enough";
    let rules = [
        "--user", "bhav", "on", ">hunter2", "~bhav:*", "&bhav:*", "+@all", "-@admin",
    ];
    let rules = [
        &rules[..],
        &["-@dangerous", "-client", "--requirepass", "other"],
    ]
    .concat();
    let Some(server) = TestServer::with(name, &rules) else {
        return;
    };
    let with = |password: Option<&str>| {
        let password = password.map(secrecy::SecretString::from);
        let mut address = server.address();
        address.user = Some("bhav".to_owned());
        let server = Server::new(address, password, None).unwrap();
        // A name that may not be given is done without.
        let server = server.named("bhav/a".to_owned());
        ValkeyL2::new(&Arc::new(server), &installation(), 100)
    };
    let l2 = with(Some("hunter2"));
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    assert_eq!(keys_of(&l2, Kind::Quote), ["NSE:INFY"]);
    for wrong in [None, Some("hunter3")] {
        let refused = with(wrong)
            .load(Kind::Quote, "NSE:INFY")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("the server refuses"), "{refused}");
        assert!(!refused.contains("hunter"), "{refused}");
    }
}

fn pem(kind: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
}

#[test]
fn tls_is_verified_against_the_operators_authority() {
    let name = "tls_is_verified_against_the_operators_authority";
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = directory.path().join("cert");
    let key = directory.path().join("key");
    std::fs::write(&certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
    std::fs::write(&key, pem("PRIVATE KEY", &made.key_pair.serialize_der())).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let port = port.to_string();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let cert = text(&certificate);
    let key = text(&key);
    let options = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
    ];
    let options = [&options[..], &["--tls-auth-clients", "no"]].concat();
    let Some(_server) = TestServer::with(name, &options) else {
        return;
    };
    let to = |host: &str, ca: Option<&Path>| {
        let address = Address::parse(&format!("rediss://{host}:{port}")).unwrap();
        let server = Server::new(address, None, ca).unwrap();
        let l2 = ValkeyL2::new(&Arc::new(server), &installation(), 100);
        l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
    };
    to("localhost", Some(&certificate)).unwrap();
    to("localhost", None).unwrap_err();
    let address = Address::parse(&format!("rediss://localhost:{port}")).unwrap();
    let stranger = Server::new(address, None, None).unwrap();
    let told = stranger.check(None);
    assert!(told.len() == 1 && told[0].starts_with("BHAV_CACHE_CA_FILE: "), "{told:?}");
    assert_eq!(stranger.refusals.in_force(), [Arc::<str>::from(told[0].as_str())]);
    to("127.0.0.1", Some(&certificate)).unwrap_err();
    let missing = Server::new(Address::parse("rediss://h").unwrap(), None, Some(Path::new("no")));
    assert!(missing.is_err());
}

#[test]
fn tries_are_spaced_while_nobody_listens() {
    let address = Address::parse("unix:/nonexistent/s").unwrap();
    let server = Arc::new(Server::new(address, None, None).unwrap());
    let l2 = ValkeyL2::new(&server, &installation(), 100);
    let first = l2.load(Kind::Quote, "A").unwrap_err().to_string();
    assert!(first.contains("cannot connect"), "{first}");
    let second = l2.load(Kind::Quote, "A").unwrap_err().to_string();
    assert!(second.contains("next try in"), "{second}");
    assert_eq!(l2.stats().errors, 2);
    assert_eq!(BackOff::new().wait_ms(0), 0);
}

#[test]
fn a_record_of_ours_is_none_under_another_key_or_kind() {
    let name = "a_record_of_ours_is_none_under_another_key_or_kind";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 100);
    l2.store(Kind::Quote, &[item("NSE:INFY", "one")], 1_000)
        .unwrap();
    let copy =
        "redis.call('HSET', KEYS[2], ARGV[2], redis.call('HGET', KEYS[1], ARGV[1])) return 1";
    for (to, key) in [
        ("bhav:main:quote", "NSE:TCS"),
        ("bhav:main:instruments", "NSE:INFY"),
    ] {
        command(&server, &["EVAL", copy, "2", "bhav:main:quote", to, "NSE:INFY", key]);
    }
    assert_eq!(keys_of(&l2, Kind::Quote), ["NSE:INFY"]);
    assert_eq!(l2.load(Kind::Instruments, "NSE:INFY").unwrap(), None);
    assert_eq!(l2.stats().distrusted, [2, 0, 0]);
}

#[test]
fn what_nobody_stores_any_more_is_dropped_in_the_end() {
    let name = "what_nobody_stores_any_more_is_dropped_in_the_end";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let l2 = level(&server, 100);
    for kind in [Kind::Quote, Kind::Instruments] {
        l2.store(kind, &[item("NSE:INFY", "one")], 1_000).unwrap();
    }
    for key in ["quote", "quote:age", "instruments", "instruments:age"] {
        let left = command(&server, &["PTTL", &format!("bhav:main:{key}")]);
        let redis::Value::Int(left_ms) = left else {
            panic!("{left:?}")
        };
        assert!(left_ms > 13 * 24 * 3_600_000, "{key} {left_ms}");
    }
}
