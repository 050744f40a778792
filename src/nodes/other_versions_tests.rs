//! What nodes of another version send and keep, as during an upgrade: signed with the same secret,
//! in a form that this version does not know. It is counted, changes nothing, and this node goes
//! on. docs/nodes.md promises it.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

use super::foreign_writes_tests::{eventually, follower, update};
use crate::base::Clock;
use crate::cache::l2::{Kind, SecondLevel, codec};
use crate::nodes::authorities::ValkeyClaim;
use crate::nodes::lease::{Authority, Grant, Holder};
use crate::nodes::relay::Publisher;
use crate::nodes::relay::encoding::{encode, encode_wanted};
use crate::nodes::relay::follower::Follower;
use crate::nodes::relay::update::Aged;
use crate::nodes::relay::update::tests::{least, quote};
use crate::nodes::second_level::ValkeyL2;
use crate::nodes::valkey::installation::tests::{SECRET, of};
use crate::nodes::valkey::testing::TestServer;
use crate::nodes::valkey::{Installation, Key, Signed};
use crate::store::Epoch;

/// The first byte of messages, before and after this version.
const OTHERS: [u8; 2] = [2, 4];
const LEASE_MS: u64 = 1_500;

/// A body as another version writes it. Before the third it began with the version's byte.
fn of_version(version: u8, body: &[u8]) -> Vec<u8> {
    if version < 3 {
        return [&[version], body].concat();
    }
    let text = std::str::from_utf8(body).unwrap();
    let of_this = "\"version\":3";
    assert!(text.contains(of_this), "{text}");
    text.replace(of_this, &format!("\"version\":{version}"))
        .into_bytes()
}

/// A server, this node and its leader.
struct Scene {
    server: TestServer,
    installation: Arc<Installation>,
    leader: Publisher,
    node: Follower,
    heard: Arc<AtomicI64>,
    paise: i64,
}

impl Scene {
    fn start(name: &str) -> Option<Self> {
        let server = TestServer::start(name)?;
        let installation = of("main", SECRET, None);
        let leader = Publisher::new(&server.server(), &installation, "a");
        let (node, heard) = follower(&server.server(), &installation);
        eventually("subscribed", || node.reading().loads > 0);
        Some(Self {
            server,
            installation,
            leader,
            node,
            heard,
            paise: 100,
        })
    }

    fn command(&self, words: &[&[u8]]) -> redis::Value {
        let timer = Clock::system();
        let mut connection = self
            .server
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

    fn key(&self, key: Key) -> String {
        self.installation.namespace_keys().unwrap().keys.key(key)
    }

    /// The server's time, as messages name it.
    fn now_ms(&self) -> u64 {
        let timer = Clock::system();
        let mut connection = self
            .server
            .server()
            .connect(timer.monotonic_ms() + 5_000)
            .unwrap();
        connection.end_by(timer.monotonic_ms() + 5_000);
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut connection).unwrap();
        seconds * 1_000 + micros / 1_000
    }

    fn publish(&self, channel: Key, signed: Signed, place: (Epoch, u64), body: &[u8]) {
        let message = self
            .installation
            .namespace_keys()
            .unwrap()
            .sign(signed, "", place, body);
        self.command(&[b"PUBLISH", self.key(channel).as_bytes(), &message]);
    }

    /// Counts of what is forged, unreadable and told again.
    fn distrusted(&self) -> [u64; 3] {
        self.installation.distrusted()
    }

    /// The leader of this version is heard with its next price.
    fn goes_on(&mut self, what: &str) {
        self.paise += 1;
        let aged = Aged {
            quote: quote("NSE:A", self.paise),
            age_ms: 0,
        };
        assert_eq!(self.leader.publish(Epoch(1), update(aged)), Ok(()), "{what}");
        eventually(what, || self.heard.load(SeqCst) == self.paise);
    }
}

#[test]
fn messages_of_another_version_are_counted_and_this_node_goes_on() {
    let name = "messages_of_another_version_are_counted_and_this_node_goes_on";
    let Some(mut scene) = Scene::start(name) else {
        return;
    };
    scene.goes_on("the first price");
    let mut unreadable = 0;
    for version in OTHERS {
        let mut body = encode(&update(Aged {
            quote: quote("NSE:A", 999),
            age_ms: 0,
        }));
        body = of_version(version, &body);
        let longer = [&body[..], b"and a part that only that version has"].concat();
        let mut wanted = encode_wanted("other", &[quote("NSE:NEW", 1).symbol]);
        wanted = of_version(version, &wanted);
        for body in [&body, &longer] {
            scene.publish(Key::Relay, Signed::Message, (Epoch(1), 900), body);
        }
        scene.publish(Key::Wanted, Signed::Wanted, (Epoch(0), scene.now_ms()), &wanted);
        unreadable += 3;
        eventually("counted", || scene.distrusted() == [0, unreadable, 0]);
        assert_eq!(scene.heard.load(SeqCst), scene.paise, "version {version}");
        assert!(scene.node.wanted().is_empty(), "version {version}");
        scene.goes_on("the next price");
    }
    assert_eq!((scene.node.reading().gaps, scene.node.reading().connects), (0, 1));
}

/// A node that starts in the middle of an upgrade reads what the leader of the other version kept.
#[test]
fn what_a_leader_of_another_version_kept_is_counted_and_this_node_goes_on() {
    let name = "what_a_leader_of_another_version_kept_is_counted_and_this_node_goes_on";
    let Some(mut scene) = Scene::start(name) else {
        return;
    };
    let namespace_keys = scene.installation.namespace_keys().unwrap();
    let relay = scene.key(Key::Relay);
    let quotes = scene.key(Key::RelayQuotes);
    let mut unreadable = 0;
    for version in OTHERS {
        scene.goes_on("a price before");
        let mut head = encode(&least());
        head = of_version(version, &head);
        let head = namespace_keys.sign(Signed::Head, "", (Epoch(1), 900), &head);
        scene.command(&[b"HSET", relay.as_bytes(), b"head", &head]);
        let (late, heard) = follower(&scene.server.server(), &scene.installation);
        eventually("read", || late.reading().loads > 0);
        unreadable += 1;
        eventually("counted", || scene.distrusted() == [0, unreadable, 0]);
        assert_eq!(heard.load(SeqCst), 0, "version {version}");
        scene.goes_on("a price after");
        eventually("heard by who came late", || heard.load(SeqCst) == scene.paise);
        drop(late);
        // One quote of another form beside those that are known.
        let other =
            namespace_keys.sign(Signed::Quote, "NSE:B", (Epoch(1), 1), &[version, b'{', b'}']);
        scene.command(&[b"HSET", quotes.as_bytes(), b"NSE:B", &other]);
        let (late, heard) = follower(&scene.server.server(), &scene.installation);
        unreadable += 1;
        eventually("the others are read", || heard.load(SeqCst) == scene.paise);
        eventually("counted", || scene.distrusted() == [0, unreadable, 0]);
        scene.command(&[b"HDEL", quotes.as_bytes(), b"NSE:B"]);
        drop(late);
    }
    // A place of another length is nobody's: the leader goes on with its numbers.
    let place = namespace_keys.sign(Signed::Place, "", (Epoch(1), 900), b"of another version");
    scene.command(&[b"HSET", relay.as_bytes(), b"place", &place]);
    scene.goes_on("after a place of another form");
}

/// Who holds the claim is that version's affair: it is waited for, and it ends with its lease.
#[test]
fn a_claim_of_another_version_is_waited_for_and_then_taken() {
    let name = "a_claim_of_another_version_is_waited_for_and_then_taken";
    let Some(scene) = Scene::start(name) else {
        return;
    };
    let server = scene.server.server();
    let claim = ValkeyClaim::new(&server, &scene.installation, LEASE_MS);
    eventually("a claim is free", || claim.look().is_ok_and(|look| look.is_free));
    let namespace_keys = scene.installation.namespace_keys().unwrap();
    let leader = scene.key(Key::Leader);
    let other =
        namespace_keys.sign(Signed::Claim, "", (Epoch(7), scene.now_ms()), b"\x03node=b;started=9");
    let lease = LEASE_MS.to_string();
    scene.command(&[b"SET", leader.as_bytes(), &other, b"PX", lease.as_bytes()]);
    assert!(!claim.look().unwrap().is_free);
    let holder = Holder::new("a", 1);
    assert_eq!(claim.take(&holder, Epoch(8)), Ok(Grant::Refused));
    eventually("free after its lease", || claim.look().is_ok_and(|look| look.is_free));
    assert_eq!(claim.take(&holder, Epoch(8)), Ok(Grant::Granted(Epoch(8))));
    // In its last milliseconds it may have run out and be there still, which counts as told again.
    assert_eq!(scene.distrusted()[..2], [0, 0]);
    // A fence with more in it than this version's is none of ours: it stops nobody, and is shown.
    let fence =
        namespace_keys.sign(Signed::Fence, "", (Epoch(9), scene.now_ms()), b"of another version");
    scene.command(&[
        b"SET",
        scene.key(Key::Fence).as_bytes(),
        &fence,
        b"PX",
        lease.as_bytes(),
    ]);
    assert_eq!(claim.renew(&holder, Epoch(8)), Ok(Grant::Granted(Epoch(8))));
    assert!(server.refusals.foreign().contains(&"epoch"));
}

#[test]
fn records_of_another_version_are_left_out_and_the_others_are_read() {
    let name = "records_of_another_version_are_left_out_and_the_others_are_read";
    let Some(scene) = Scene::start(name) else {
        return;
    };
    let l2 = ValkeyL2::new(&scene.server.server(), &scene.installation, 100);
    l2.set_epoch(Epoch(1));
    let known = codec::encode(&quote("NSE:A", 150));
    let text = std::str::from_utf8(&known).unwrap();
    let later = text.replacen('{', "{\"of_the_next_version\":[1,{}],", 1);
    let items = [
        ("NSE:A".to_owned(), known.clone()),
        ("NSE:B".to_owned(), later.into_bytes()),
        ("NSE:C".to_owned(), b"\x03 another form".to_vec()),
        ("NSE:D".to_owned(), text.replace("last_price", "last").into_bytes()),
    ];
    l2.store(Kind::Quote, &items, 1_000).unwrap();
    let mut read: Vec<String> = l2
        .load_all(Kind::Quote)
        .unwrap()
        .iter()
        .filter_map(|(key, record)| codec::decode(key, &record.bytes))
        .map(|quote| quote.symbol.to_string())
        .collect();
    read.sort();
    assert_eq!(read, ["NSE:A", "NSE:B"], "members that are not known are passed over");
    assert_eq!(scene.distrusted(), [0; 3]);
}
