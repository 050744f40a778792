//! Two nodes' threads, step by step, over a channel that a test may record, repeat and cut.

use std::io::Write;

use crossbeam_channel::{Sender, bounded};
use parking_lot::Mutex;

use super::*;
use crate::base::{ByBroker, ManualClock};
use crate::nodes::valkey::NodeSecret;

const SECRET: &str = "a key that all the nodes know, as they must";
const CANARY: &str = "canary-access-token-of-the-day";
const MORNING: &str = "2026-11-20T08:30:00+05:30";

/// All messages sent, in order. Messages sent while it is cut are lost.
#[derive(Default)]
struct Air {
    sent: Mutex<Vec<Vec<u8>>>,
    cut: Mutex<bool>,
}

impl Air {
    fn carry(&self, sealed: &[u8]) -> bool {
        let cut = *self.cut.lock();
        if !cut {
            self.sent.lock().push(sealed.to_vec());
        }
        !cut
    }
}

struct Node {
    worker: Worker,
    shared: Arc<SharedToken>,
    /// Number of messages that it has received.
    heard: usize,
    _sender: Sender<Vec<u8>>,
}

impl Node {
    fn new(node: &str, secret: &str, air: &Arc<Air>, clock: &Clock) -> Self {
        let ((_sender, heard), carrier) = (bounded(HEARD_MAX), Arc::clone(air));
        let shared = Arc::<SharedToken>::default();
        let tokens = SharedTokens {
            counts: Arc::default(),
            of: ByBroker([Arc::clone(&shared), Arc::default()]),
        };
        let parts = ExchangeParts {
            send: Box::new(move |sealed| carrier.carry(sealed)),
            heard,
            connects: Box::new(|| 1),
            installation: Arc::new(Installation::named(
                Namespace::parse("main").unwrap(),
                &Arc::new(NodeSecret::new(secret.into())),
            )),
            node: node.to_owned(),
            tokens,
            clock: clock.clone(),
        };
        Self {
            worker: Worker::new(parts),
            shared,
            heard: 0,
            _sender,
        }
    }

    /// Receives new messages, and sends this node's own.
    fn turn(&mut self, air: &Air) {
        let new: Vec<Vec<u8>> = air.sent.lock()[self.heard..].to_vec();
        self.heard += new.len();
        new.iter().for_each(|sealed| self.worker.hear(sealed));
        self.worker.tell_news();
    }

    fn count(&self, event: TokenEvent) -> u64 {
        self.worker.parts.tokens.counts.of(event)
    }

    fn has(&self, text: &str) -> bool {
        let now = self.worker.parts.clock.now();
        self.shared.valid(now).is_some_and(|token| {
            token.to_keep(Broker::A, None).access_token.expose_secret() == text
        })
    }

    fn log_in(&self, text: &str) {
        self.shared
            .activate(text.into(), "key".into(), self.worker.parts.clock.now());
    }
}

fn morning() -> (ManualClock, Arc<Air>) {
    (Clock::manual(MORNING.parse().unwrap()), Arc::default())
}

fn settle(nodes: &mut [Node], air: &Air) {
    for _ in 0..8 {
        nodes.iter_mut().for_each(|node| node.turn(air));
    }
}

fn two(air: &Arc<Air>, clock: &Clock) -> [Node; 2] {
    ["a", "b"].map(|name| Node::new(name, SECRET, air, clock))
}

#[test]
fn what_was_lost_on_its_way_is_told_again() {
    let (clock, air) = morning();
    let mut nodes = two(&air, &clock);
    settle(&mut nodes, &air);
    *air.cut.lock() = true;
    nodes[0].log_in("one");
    settle(&mut nodes, &air);
    assert!(!nodes[1].has("one") && nodes[0].count(TokenEvent::Untold) == 1, "it rests");
    *air.cut.lock() = false;
    clock.advance_ms(1_000);
    settle(&mut nodes, &air);
    assert!(nodes[1].has("one"));
    // The message is sent but not received; the next question brings the token. Reloaded settings
    // count as a login.
    clock.advance_ms(1_000);
    nodes[0].shared.set("two".into(), "key".into(), clock.now());
    nodes[0].turn(&air);
    nodes[1].heard = air.sent.lock().len();
    settle(&mut nodes, &air);
    assert!(!nodes[1].has("two"));
    clock.advance_ms(ASK_MS as i64);
    settle(&mut nodes, &air);
    assert!(nodes[1].has("two"));
}

#[test]
fn recordings_bring_no_old_token_back() {
    let (clock, air) = morning();
    let mut nodes = two(&air, &clock);
    nodes[0].log_in("one");
    settle(&mut nodes, &air);
    let recorded = air.sent.lock().clone();
    clock.advance_ms(1_000);
    nodes[0].log_in("two");
    settle(&mut nodes, &air);
    assert!(nodes[1].has("two"));
    let replay = |nodes: &mut [Node; 2]| {
        clock.advance_ms(60_000);
        recorded
            .iter()
            .for_each(|sealed| nodes[1].worker.hear(sealed));
    };
    replay(&mut nodes);
    assert!(nodes[1].has("two") && nodes[1].count(TokenEvent::Old) > 0);
    // The broker refused the first one too.
    assert!(nodes[0].shared.current().unwrap().mark_dead());
    settle(&mut nodes, &air);
    assert!(!nodes[1].has("two"));
    nodes[1].worker.refused.add(RefusedToken {
        broker: Broker::A,
        print: print_of(&"one".into()),
        set_at: clock.now(),
    });
    replay(&mut nodes);
    assert!(!nodes[1].has("one") && nodes[1].count(TokenEvent::Refused) > 0);
    // Nor after six in the morning.
    let mut fresh = Node::new("c", SECRET, &air, &clock);
    clock.advance_ms(22 * 3_600 * 1_000);
    recorded.iter().for_each(|sealed| fresh.worker.hear(sealed));
    assert!(fresh.shared.current().is_none() && fresh.count(TokenEvent::Late) > 0);
}

#[test]
fn nodes_with_a_dead_token_say_so_once_and_a_new_one_revives_them() {
    let (clock, air) = morning();
    let mut nodes = two(&air, &clock);
    nodes[0].log_in("one");
    settle(&mut nodes, &air);
    nodes[1].shared.current().unwrap().mark_dead();
    settle(&mut nodes, &air);
    assert!(!nodes[0].has("one") && nodes[0].count(TokenEvent::Dead) == 1);
    clock.advance_ms(2_000);
    settle(&mut nodes, &air);
    let said = air.sent.lock().len();
    for _ in 0..20 {
        clock.advance_ms(1_000);
        settle(&mut nodes, &air);
    }
    assert_eq!(air.sent.lock().len(), said, "nothing is new");
    // The broker may give the same text again.
    nodes[0].log_in("one");
    settle(&mut nodes, &air);
    assert!(nodes[1].has("one"));
}

#[test]
fn a_start_with_a_dead_token_of_the_settings_learns_that_it_is_dead() {
    let (clock, air) = morning();
    let mut nodes = two(&air, &clock);
    nodes[0].log_in("one");
    settle(&mut nodes, &air);
    nodes[0].shared.current().unwrap().mark_dead();
    settle(&mut nodes, &air);
    clock.advance_ms(60_000);
    let mut late = Node::new("c", SECRET, &air, &clock);
    late.heard = air.sent.lock().len();
    let settings = crate::brokers::BrokerASettings {
        access_token: Some("one".into()),
        api_key: Some("key".into()),
        ..Default::default()
    };
    let started = SharedToken::from_settings(&settings, clock.now());
    let token = started.current().unwrap();
    let told = token.given.clone();
    assert!(!told.dated && late.shared.replace(None, told).is_some());
    for _ in 0..8 {
        late.turn(&air);
        nodes.iter_mut().for_each(|node| node.turn(&air));
    }
    assert!(late.shared.current().unwrap().is_refused());
    assert!(
        nodes
            .iter()
            .all(|node| node.shared.current().unwrap().is_refused())
    );
}

#[test]
fn another_secret_is_counted_and_said_once_without_what_it_hid() {
    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (clock, air) = morning();
    let lines = Lines::default();
    let to = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || to.clone())
        .finish();
    // With a single subscriber a line that another test's thread reaches first is off for all.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let mut nodes = [
        ("a", SECRET),
        ("b", "a key that no other node has, by mistake"),
    ]
    .map(|(name, secret)| Node::new(name, secret, &air, &clock));
    tracing::subscriber::with_default(subscriber, || {
        nodes[0].log_in(CANARY);
        settle(&mut nodes, &air);
        assert!(nodes[1].shared.current().is_none());
        assert!(nodes[1].count(TokenEvent::Foreign) > 1, "a question and a token");
        // The same secret at last, by a reload.
        nodes[1]
            .worker
            .parts
            .installation
            .secret
            .set(&SECRET.into(), None);
        clock.advance_ms(1_000);
        settle(&mut nodes, &air);
    });
    assert!(nodes[1].has(CANARY));
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    let of_one = text.matches("sealed with another JWT_SECRET").count();
    assert!((1..=2).contains(&of_one), "once a node: {text}");
    assert!(text.contains("token of the day taken") && text.contains("from=\"a\""), "{text}");
    for secret in [CANARY, SECRET, "\"key\"", "by mistake"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_flood_is_dropped_unread() {
    let (clock, air) = morning();
    let mut node = Node::new("a", SECRET, &air, &clock);
    (0..1_000).for_each(|_| node.worker.hear(&[0; 64]));
    let foreign = node.count(TokenEvent::Foreign);
    let dropped = node.count(TokenEvent::Dropped);
    assert_eq!((foreign, foreign + dropped), (40, 1_000));
}
