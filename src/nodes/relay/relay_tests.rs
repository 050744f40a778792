//! The relay over a real server: messages from one node to others, gaps, silence, restarts, and
//! forged bytes.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use rustix::process::Signal;

use super::*;
use crate::cache::l2::codec;
use crate::nodes::cluster::SendError;
use crate::nodes::relay::Publisher;
use crate::nodes::relay::encoding::{encode, encode_wanted};
use crate::nodes::relay::update::tests::{least, quote};
use crate::nodes::relay::update::{Aged, Evening};
use crate::nodes::valkey::installation::tests::{SECRET, installation, of};
use crate::nodes::valkey::testing::TestServer;

/// Messages that one follower received.
#[derive(Clone, Default)]
struct Ears {
    updates: Arc<Mutex<Vec<Update>>>,
    sealed: Arc<Mutex<Vec<Vec<u8>>>>,
    changes: Arc<AtomicBool>,
    deaf: Arc<AtomicBool>,
}

impl Ears {
    fn inbox(&self) -> Inbox {
        let updates = self.clone();
        let sealed = self.clone();
        let changes = self.clone();
        Inbox {
            update: Box::new(move |update| {
                if updates.deaf.load(SeqCst) {
                    return Err(update);
                }
                updates.updates.lock().push(*update);
                Ok(())
            }),
            sealed: Box::new(move |bytes| sealed.sealed.lock().push(bytes)),
            changed: Box::new(move || changes.changes.store(true, SeqCst)),
        }
    }

    /// The newest price of a symbol, in paise, and its age.
    fn price(&self, symbol: &str) -> Option<(i64, u64)> {
        self.updates.lock().iter().rev().find_map(|update| {
            let aged = update
                .quotes
                .iter()
                .find(|aged| aged.quote.symbol.as_str() == symbol)?;
            Some((i64::try_from(aged.quote.last_price.mantissa()).unwrap(), aged.age_ms))
        })
    }
}

struct Node {
    installation: Arc<Installation>,
    relay: Publisher,
    ears: Ears,
    follower: Follower,
}

fn node(server: &TestServer, name: &str) -> Node {
    node_of(server, name, &installation())
}

fn node_of(server: &TestServer, name: &str, installation: &Arc<Installation>) -> Node {
    let ears = Ears::default();
    let relay = Publisher::new(&server.server(), installation, name);
    let follower = Follower::start(&server.server(), installation, ears.inbox()).unwrap();
    let installation = Arc::clone(installation);
    Node {
        installation,
        relay,
        ears,
        follower,
    }
}

fn prices(prices: &[(&str, i64)], age_ms: u64) -> Update {
    let aged = |(symbol, paise): &(&str, i64)| Aged {
        quote: quote(symbol, *paise),
        age_ms,
    };
    Update {
        quotes: prices.iter().map(aged).collect(),
        ..least()
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let timer = Clock::system();
    while !holds() {
        assert!(timer.monotonic_ms() < 20_000, "{what}");
        std::thread::yield_now();
    }
}

/// Publishes as any client of the server can.
fn publish(server: &TestServer, channel: &str, payload: &[u8]) {
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    redis::cmd("PUBLISH")
        .arg(channel)
        .arg(payload)
        .exec(&mut connection)
        .unwrap();
}

fn subscribed(node: &Node) {
    eventually("subscribed", || node.follower.reading().loads > 0);
}

#[test]
fn what_the_leader_tells_all_nodes_hear_with_its_age() {
    let Some(server) = TestServer::start("what_the_leader_tells_all_nodes_hear_with_its_age")
    else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    let update = Update {
        unknown: vec![Symbol::parse("NSE:NONE").unwrap()],
        ..prices(&[("NSE:INFY", 150_000), ("NSE:TCS", 320_000)], 40)
    };
    leader.relay.publish(Epoch(3), update).unwrap();
    for node in [&leader, &follower] {
        eventually("heard", || node.ears.price("NSE:INFY").is_some());
        let (paise, age_ms) = node.ears.price("NSE:INFY").unwrap();
        assert!(paise == 150_000 && (40..5_000).contains(&age_ms), "{age_ms}");
    }
    let reading = follower.follower.reading();
    assert_eq!((reading.state.as_str(), reading.gaps), ("following", 0));
    assert_eq!(reading.leader, Some(("a".to_owned(), Epoch(3))));
    assert!(reading.age_ms.is_some());
}

#[test]
fn a_node_that_comes_later_reads_everything_that_was_told() {
    let name = "a_node_that_comes_later_reads_everything_that_was_told";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100), ("NSE:B", 200)], 1_000))
        .unwrap();
    let evening = Evening {
        signals: Some(jiff::civil::date(2026, 11, 20)),
        instruments: None,
    };
    let head = Update {
        evening,
        ..prices(&[("NSE:B", 201)], 0)
    };
    leader.relay.publish(Epoch(1), head).unwrap();
    let late = node(&server, "b");
    eventually("read", || late.ears.price("NSE:B").is_some());
    assert_eq!(late.ears.price("NSE:B").unwrap().0, 201);
    let (paise, age_ms) = late.ears.price("NSE:A").unwrap();
    assert!(paise == 100 && (1_000..30_000).contains(&age_ms), "{age_ms}");
    let updates = late.ears.updates.lock();
    let state = updates.first().unwrap();
    assert_eq!((state.epoch, state.seq, state.evening), (Epoch(1), 2, evening));
    assert_eq!(late.follower.reading().leader.unwrap().0, "a");
}

#[test]
fn a_leader_that_was_replaced_is_refused_and_not_heard() {
    let name = "a_leader_that_was_replaced_is_refused_and_not_heard";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let old = node(&server, "a");
    let new = node(&server, "b");
    let follower = node(&server, "c");
    subscribed(&follower);
    let told = |node: &Node, epoch, paise| {
        node.relay
            .publish(Epoch(epoch), prices(&[("NSE:A", paise)], 0))
    };
    assert_eq!(told(&old, 1, 100), Ok(()));
    assert_eq!(told(&new, 2, 200), Ok(()));
    assert_eq!(told(&old, 1, 101), Err(SendError::Deposed));
    assert_eq!(told(&new, 2, 201), Ok(()));
    eventually("heard", || {
        follower
            .ears
            .price("NSE:A")
            .is_some_and(|(paise, _)| paise == 201)
    });
    assert_eq!(follower.follower.reading().gaps, 0);
    // The claim of a third leader, which has published nothing yet, fences the second off too.
    let fence =
        installation()
            .namespace_keys()
            .unwrap()
            .sign(Signed::Fence, "", (Epoch(3), 0), b"");
    command(&server, &[b"SET", b"bhav:main:epoch", &fence]);
    assert_eq!(told(&new, 2, 202), Err(SendError::Deposed));
}

#[test]
fn a_message_that_was_missed_is_made_up_for_by_reading_everything() {
    let name = "a_message_that_was_missed_is_made_up_for_by_reading_everything";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    eventually("heard", || follower.ears.price("NSE:A").is_some());
    let loads = follower.follower.reading().loads;
    // The quote is kept but not published, as if the message had been lost.
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    let bytes = codec::encode(&quote("NSE:B", 555));
    let namespace_keys = installation().namespace_keys().unwrap();
    let value = namespace_keys.sign(Signed::Quote, "NSE:B", (Epoch(1), 1), &bytes);
    redis::cmd("HSET")
        .arg("bhav:main:relay:quote")
        .arg("NSE:B")
        .arg(value)
        .exec(&mut connection)
        .unwrap();
    leader.relay.next_seq(Epoch(1));
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 102)], 0))
        .unwrap();
    eventually("read", || follower.ears.price("NSE:B").is_some());
    assert!(follower.follower.reading().loads > loads);
    assert_eq!(follower.follower.reading().gaps, 1);
    assert_eq!(follower.ears.price("NSE:A").unwrap().0, 102);
}

#[test]
fn an_update_that_is_not_taken_waits_grows_older_and_is_joined_with_the_next() {
    let name = "an_update_that_is_not_taken_waits_grows_older_and_is_joined_with_the_next";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    follower.ears.deaf.store(true, SeqCst);
    for paise in [100, 101, 102] {
        leader
            .relay
            .publish(Epoch(1), prices(&[("NSE:A", paise)], 0))
            .unwrap();
    }
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:B", 200)], 0))
        .unwrap();
    eventually("waits", || follower.follower.reading().messages == 4);
    assert!(follower.ears.updates.lock().is_empty());
    follower.ears.deaf.store(false, SeqCst);
    eventually("taken", || follower.ears.price("NSE:B").is_some());
    assert_eq!(follower.ears.updates.lock().len(), 1, "as one");
    assert_eq!(follower.ears.price("NSE:A").unwrap().0, 102);
    assert_eq!(follower.follower.reading().merged, 3);
}

#[test]
fn a_server_that_dies_or_stops_is_found_again_and_everything_is_read() {
    let name = "a_server_that_dies_or_stops_is_found_again_and_everything_is_read";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    let heard = |paise| {
        eventually("published", || {
            let update = prices(&[("NSE:A", paise)], 0);
            leader.relay.publish(Epoch(1), update).is_ok()
        });
        eventually("heard", || {
            follower
                .ears
                .price("NSE:A")
                .is_some_and(|(heard, _)| heard == paise)
        });
    };
    heard(100);
    server.restart();
    heard(101);
    assert!(follower.follower.reading().connects >= 2);
    server.signal(Signal::STOP);
    // Only silence shows the failure: the read misses its deadline.
    let failures = follower.follower.reading().failures;
    eventually("noticed", || follower.follower.reading().failures > failures);
    server.signal(Signal::CONT);
    heard(102);
}

#[test]
fn a_silent_leader_shows_as_one_and_costs_a_read_each_three_seconds() {
    let name = "a_silent_leader_shows_as_one_and_costs_a_read_each_three_seconds";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    eventually("follows", || follower.follower.reading().state.as_str() == "following");
    let loads = follower.follower.reading().loads;
    let timer = Clock::system();
    eventually("silent", || follower.follower.reading().state.as_str() == "silent");
    assert!(timer.monotonic_ms() > 2_000);
    assert_eq!(follower.follower.reading().loads, loads + 1);
    assert_eq!(follower.follower.reading().failures, 0);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 101)], 0))
        .unwrap();
    eventually("follows again", || follower.follower.reading().state.as_str() == "following");
}

/// Sends a command as any client of the server can.
fn command(server: &TestServer, words: &[&[u8]]) -> redis::Value {
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    let mut command = redis::cmd(std::str::from_utf8(words[0]).unwrap());
    for word in &words[1..] {
        command.arg(word);
    }
    command.query(&mut connection).unwrap()
}

/// Receives the next message of a channel, as any client can.
fn overheard(server: &TestServer, channel: &str, tell: impl FnOnce()) -> Vec<u8> {
    let timer = Clock::system();
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 10_000);
    connection.subscribe(&[channel.to_owned()]).unwrap();
    tell();
    connection.hear().unwrap().expect("a message").1
}

impl Node {
    /// Counts of distrusted values: forged, unreadable, replayed.
    fn distrusted(&self) -> [u64; 3] {
        self.installation.distrusted()
    }

    fn paise(&self, symbol: &str) -> Option<i64> {
        self.ears.price(symbol).map(|(paise, _)| paise)
    }
}

#[test]
fn bytes_that_are_no_messages_are_counted_and_change_nothing() {
    let name = "bytes_that_are_no_messages_are_counted_and_change_nothing";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    let namespace_keys = installation().namespace_keys().unwrap();
    let good = namespace_keys.sign(Signed::Message, "", (Epoch(9), 1), &encode(&least()));
    let large = [&good[..], &vec![0; 5 * 1024 * 1024][..]].concat();
    let hostile: [&[u8]; 5] = [b"", b"x", b"1700000000000", &good[..60], &large];
    for payload in hostile {
        for channel in ["relay", "wanted", "changes"] {
            publish(&server, &format!("bhav:main:{channel}"), payload);
        }
    }
    publish(&server, "bhav:main:sealed", &vec![0; 17 * 1024]);
    // The body is of another version of this program.
    let other = namespace_keys.sign(Signed::Message, "", (Epoch(9), 1), b"\xff");
    publish(&server, "bhav:main:relay", &other);
    eventually("distrusted", || follower.distrusted() == [16, 1, 0]);
    assert!(follower.ears.updates.lock().is_empty());
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    eventually("still hears", || follower.ears.price("NSE:A").is_some());
    assert_eq!(follower.follower.reading().connects, 1);
}

#[test]
fn a_message_of_a_stranger_changes_nothing_whatever_it_copies() {
    let name = "a_message_of_a_stranger_changes_nothing_whatever_it_copies";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    let tell = |paise| {
        leader
            .relay
            .publish(Epoch(1), prices(&[("NSE:A", paise)], 0))
            .unwrap();
    };
    let recorded = overheard(&server, "bhav:main:relay", || tell(100));
    eventually("heard", || follower.paise("NSE:A") == Some(100));
    // The stranger changes the price, takes the next number, or signs with another secret.
    let price = recorded
        .windows(6)
        .position(|bytes| bytes == b"\"1.00\"")
        .unwrap();
    let mut own_price = recorded.clone();
    own_price[price + 1] = b'9';
    let mut next = recorded.clone();
    next[47] += 1;
    let other = of("main", "the secret of a stranger of 32 bytes", None)
        .namespace_keys()
        .unwrap();
    let with_own_secret = other.sign(Signed::Message, "", (Epoch(1), 2), &recorded[48..]);
    for forged in [own_price, next, with_own_secret] {
        publish(&server, "bhav:main:relay", &forged);
    }
    eventually("counted", || follower.distrusted() == [3, 0, 0]);
    tell(101);
    eventually("the next is heard", || follower.paise("NSE:A") == Some(101));
    // The recording itself is old: its number was received before.
    let old = follower.follower.reading().old;
    publish(&server, "bhav:main:relay", &recorded);
    eventually("old", || follower.follower.reading().old == old + 1);
    assert_eq!(follower.paise("NSE:A"), Some(101));
    assert_eq!(follower.follower.reading().gaps, 0);
}

#[test]
fn a_recording_of_long_ago_is_no_news_to_a_node_that_has_heard_nothing() {
    let name = "a_recording_of_long_ago_is_no_news_to_a_node_that_has_heard_nothing";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let follower = node(&server, "b");
    subscribed(&follower);
    let namespace_keys = installation().namespace_keys().unwrap();
    // A message of another day, with an epoch of that day.
    let long_ago = Update {
        sent_ms: 1_700_000_000_000,
        ..prices(&[("NSE:A", 100)], 0)
    };
    let body = encode(&long_ago);
    publish(
        &server,
        "bhav:main:relay",
        &namespace_keys.sign(Signed::Message, "", (Epoch(900), 1), &body),
    );
    let wanted = encode_wanted("a", &[Symbol::parse("NSE:A").unwrap()]);
    let place = (Epoch(0), 1_700_000_000_000);
    publish(
        &server,
        "bhav:main:wanted",
        &namespace_keys.sign(Signed::Wanted, "", place, &wanted),
    );
    publish(
        &server,
        "bhav:main:changes",
        &namespace_keys.sign(Signed::Changes, "", place, b""),
    );
    eventually("replayed", || follower.distrusted() == [0, 0, 3]);
    assert!(follower.ears.updates.lock().is_empty() && follower.follower.wanted().is_empty());
    // Its epoch does not keep out a leader of today either.
    let leader = node(&server, "a");
    leader
        .relay
        .publish(Epoch(2), prices(&[("NSE:A", 101)], 0))
        .unwrap();
    eventually("heard", || follower.paise("NSE:A") == Some(101));
}

#[test]
fn what_the_server_keeps_is_believed_where_it_was_signed_for_and_not_if_it_is_put_back() {
    let name = "what_the_server_keeps_is_believed_where_it_was_signed_for";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    let kept =
        |words: &[&[u8]]| -> Vec<u8> { redis::from_redis_value(command(&server, words)).unwrap() };
    let head = kept(&[b"HGET", b"bhav:main:relay", b"head"]);
    let quote = kept(&[b"HGET", b"bhav:main:relay:quote", b"NSE:A"]);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:B", 200)], 0))
        .unwrap();
    for (symbol, value) in [
        (&b"NSE:B"[..], &quote[..]),
        (b"NSE:C", &quote),
        (b"NSE:D", b"x"),
    ] {
        command(&server, &[b"HSET", b"bhav:main:relay:quote", symbol, value]);
    }
    let follower = node(&server, "b");
    eventually("read", || follower.paise("NSE:A") == Some(100));
    assert_eq!((follower.paise("NSE:B"), follower.paise("NSE:C")), (None, None));
    assert_eq!(follower.distrusted(), [3, 0, 0]);
    // An earlier state is put back, after the node has received later ones.
    command(&server, &[b"HSET", b"bhav:main:relay", b"head", &head]);
    eventually("replayed", || follower.distrusted()[2] > 0);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:B", 201)], 0))
        .unwrap();
    eventually("goes on", || follower.paise("NSE:B") == Some(201));
    assert_eq!(follower.follower.reading().gaps, 0);
}

#[test]
fn numbers_that_no_leader_gave_do_not_silence_the_relay() {
    let Some(server) = TestServer::start("numbers_that_no_leader_gave_do_not_silence_the_relay")
    else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    let mut paise = 100;
    // In the form of a signed value, without a good tag.
    let place = |epoch: u64, number: u64| {
        [&[7; 32][..], &epoch.to_be_bytes(), &number.to_be_bytes()].concat()
    };
    for words in [
        [&b"SET"[..], b"bhav:main:epoch", b"1000000000000000"].to_vec(),
        [&b"SET"[..], b"bhav:main:epoch", b"rumour"].to_vec(),
        [
            &b"HSET"[..],
            b"bhav:main:relay",
            b"epoch",
            b"1",
            b"seq",
            b"1000000000000000",
        ]
        .to_vec(),
        [
            &b"HSET"[..],
            b"bhav:main:relay",
            b"epoch",
            b"x",
            b"seq",
            b"y",
        ]
        .to_vec(),
        [&b"HSET"[..], b"bhav:main:relay", b"head", b"x"].to_vec(),
        [&b"HSET"[..], b"bhav:main:relay", b"place", &place(1, 1_000)].to_vec(),
        [&b"HSET"[..], b"bhav:main:relay", b"place", b"short"].to_vec(),
        [&b"SET"[..], b"bhav:main:epoch", &place(2, 0)].to_vec(),
        [&b"SET"[..], b"bhav:main:epoch", &place(u64::MAX, 0)].to_vec(),
    ] {
        command(&server, &words);
        paise += 1;
        let update = prices(&[("NSE:A", paise)], 0);
        assert_eq!(leader.relay.publish(Epoch(1), update), Ok(()), "{words:?}");
        eventually("heard", || follower.paise("NSE:A") == Some(paise));
    }
}

#[test]
fn after_a_server_that_forgot_and_a_database_that_went_back_lower_numbers_are_heard() {
    let name = "after_a_server_that_forgot_and_a_database_that_went_back_lower_numbers_are_heard";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&follower);
    leader
        .relay
        .publish(Epoch(51), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    eventually("heard", || follower.paise("NSE:A") == Some(100));
    server.restart();
    let mut paise = 100;
    eventually("heard again", || {
        paise += 1;
        drop(
            leader
                .relay
                .publish(Epoch(4), prices(&[("NSE:A", paise)], 0)),
        );
        follower.paise("NSE:A").is_some_and(|heard| heard > 100)
    });
}

#[test]
fn a_secret_may_be_changed_on_one_node_after_the_other() {
    let Some(server) = TestServer::start("a_secret_may_be_changed_on_one_node_after_the_other")
    else {
        return;
    };
    let before = of("main", "the secret of yesterday of 32 bytes", None);
    let after = of("main", SECRET, Some("the secret of yesterday of 32 bytes"));
    let leader = node_of(&server, "a", &before);
    let follower = node_of(&server, "b", &after);
    subscribed(&follower);
    leader
        .relay
        .publish(Epoch(1), prices(&[("NSE:A", 100)], 0))
        .unwrap();
    eventually("heard", || follower.paise("NSE:A") == Some(100));
    assert_eq!(follower.distrusted(), [0; 3]);
}

#[test]
fn what_nodes_want_reaches_all_and_sealed_bytes_are_passed_on() {
    let name = "what_nodes_want_reaches_all_and_sealed_bytes_are_passed_on";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let leader = node(&server, "a");
    let follower = node(&server, "b");
    subscribed(&leader);
    let symbols = |names: &[&str]| -> Vec<Symbol> {
        names
            .iter()
            .map(|name| Symbol::parse(name).unwrap())
            .collect()
    };
    follower.relay.want(&symbols(&["NSE:A", "NSE:B"])).unwrap();
    leader.relay.want(&symbols(&["NSE:B", "NSE:C"])).unwrap();
    eventually("wanted", || leader.follower.wanted().len() == 3);
    follower.relay.pass_on(b"sealed").unwrap();
    eventually("passed on", || *leader.ears.sealed.lock() == [b"sealed"]);
    assert!(!leader.ears.changes.load(SeqCst));
    follower.relay.notify_changes().unwrap();
    eventually("word of changes", || leader.ears.changes.load(SeqCst));
    eventually("forgotten", || leader.follower.wanted().is_empty());
}

#[test]
fn the_thread_ends_with_its_owner_whatever_the_server_does() {
    let name = "the_thread_ends_with_its_owner_whatever_the_server_does";
    let Some(mut server) = TestServer::start(name) else {
        return;
    };
    let timer = Clock::system();
    let drop_in_ms = |node: Node| {
        let begun_ms = timer.monotonic_ms();
        drop(node);
        timer.monotonic_ms() - begun_ms
    };
    let one = node(&server, "a");
    let two = node(&server, "b");
    subscribed(&one);
    subscribed(&two);
    assert!(drop_in_ms(one) < 1_500);
    server.kill();
    assert!(drop_in_ms(two) < 1_500);
}
