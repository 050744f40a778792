//! Tokens sealed and opened, what does not open, and where none of them may lie.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::base::Clock;
use crate::nodes::relay::Publisher;
use crate::nodes::relay::follower::{Follower, Inbox};
use crate::nodes::valkey::installation::tests::installation;
use crate::nodes::valkey::testing::TestServer;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const CANARY: &str = "canary-access-token-of-the-day";

fn relay(secret: &[u8], namespace: &str, node: &str) -> TokenCipher {
    TokenCipher::new(secret, namespace, node)
}

fn word(relay: &TokenCipher, sealed: &[u8]) -> Option<TokenMessage> {
    relay.hear(sealed, 0).unwrap().map(|heard| heard.word)
}

fn token() -> GivenToken {
    GivenToken {
        access_token: CANARY.into(),
        api_key: "canary-api-key".into(),
        set_at: "2026-11-20T02:40:00.125Z".parse().unwrap(),
        dated: true,
    }
}

#[test]
fn what_one_node_tells_another_opens_and_it_ignores_itself() {
    let a = relay(SECRET, "main", "a");
    let b = relay(SECRET, "main", "b");
    let sealed = a.tell(Broker::A, &token()).unwrap();
    let heard = b.hear(&sealed, 0).unwrap().unwrap();
    assert_eq!(heard.node, "a");
    let TokenMessage::Has(broker, heard) = heard.word else {
        panic!("another word")
    };
    assert_eq!(heard.access_token.expose_secret(), CANARY);
    assert_eq!(heard.api_key.expose_secret(), "canary-api-key");
    assert_eq!((broker, heard.set_at, heard.dated), (Broker::A, token().set_at, true));
    let undated = a
        .tell(
            Broker::A,
            &GivenToken {
                dated: false,
                ..token()
            },
        )
        .unwrap();
    let Some(TokenMessage::Has(_, undated)) = word(&b, &undated) else {
        panic!("another word")
    };
    assert!(!undated.dated);
    assert!(a.hear(&sealed, 0).unwrap().is_none(), "its own");
    let print = print_of(&heard.access_token);
    let told = RefusedToken {
        broker: Broker::B,
        print,
        set_at: token().set_at,
    };
    let Some(TokenMessage::Refused(heard)) = word(&b, &a.refused(&told).unwrap()) else {
        panic!("another word");
    };
    assert_eq!(heard, told);
    assert_ne!(print, print_of(&"another".into()));
}

/// Nodes of other versions read and write the same bytes.
#[test]
fn words_have_these_bytes_before_they_are_sealed() {
    let mut a = relay(SECRET, "main", "a");
    a.instance = *b"INSTANCE";
    let refused = RefusedToken {
        broker: Broker::B,
        print: [7; 32],
        set_at: "2026-11-20T02:40:00Z".parse().unwrap(),
    };
    for (sealed, plain) in [
        (a.ask().unwrap(), &b"\x01\x00\x01aINSTANCE"[..]),
        (
            a.tell(Broker::A, &token()).unwrap(),
            b"\x02\x00\x01aINSTANCE\x00\x00\x00\x01\xa1\xf6\xd38}\x01\x00\x1ecanary-access-tok\
                en-of-the-day\x00\x0ecanary-api-key",
        ),
        (
            a.refused(&refused).unwrap(),
            b"\x03\x00\x01aINSTANCE\x01\x00\x00\x01\xa1\xf6\xd38\x00\x07\x07\x07\x07\x07\x07\
                \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
                \x07\x07\x07\x07\x07\x07",
        ),
    ] {
        assert_eq!(*a.open(&sealed).unwrap(), plain);
    }
    assert_eq!(a.purpose, b"\x01main");
    let recorded = BASE64_STANDARD
        .decode(
            "RB29OkoCat6L2T3qeRCzAjWUHCYPQF8BslWhlFn64SLKU4agsdK8J/d5J0qu3BxwIosS8ekGpSFCJewb\
        rTssilnC7tCyasH0gHA8UZV9rcd9AtqiMkcRs0kwQ/dY971JpHo=",
        )
        .unwrap();
    let heard = relay(SECRET, "main", "b")
        .hear(&recorded, 0)
        .unwrap()
        .unwrap();
    assert!(matches!(heard.word, TokenMessage::Has(_, told) if told.set_at == token().set_at));
}

#[test]
fn questions_are_answered_once_a_second() {
    let a = relay(SECRET, "main", "a");
    let b = relay(SECRET, "main", "b");
    let asked = |now_ms| b.hear(&a.ask().unwrap(), now_ms).unwrap().is_some();
    assert!(asked(0) && !asked(500) && asked(1_000));
}

#[test]
fn nothing_opens_under_another_secret_or_for_another_installation() {
    let a = relay(SECRET, "main", "a");
    let sealed = a.tell(Broker::A, &token()).unwrap();
    for other in [relay(&[9; 32], "main", "b"), relay(SECRET, "other", "b")] {
        assert_eq!(other.hear(&sealed, 0).unwrap_err(), NotOurs);
    }
    assert_ne!(*derive(SECRET, PURPOSE), *derive(SECRET, "rate limits"));
    assert_ne!(sealed, a.tell(Broker::A, &token()).unwrap(), "a nonce is never used again");
}

#[test]
fn neither_bytes_nor_words_show_a_secret() {
    let a = relay(SECRET, "main", "a");
    let b = relay(SECRET, "main", "b");
    let sealed = a.tell(Broker::A, &token()).unwrap();
    let shows = |bytes: &[u8]| bytes.windows(6).any(|part| part == b"canary");
    assert!(!shows(&sealed));
    let heard = b.hear(&sealed, 0);
    let words = format!("{heard:?} {:?}", token());
    assert!(!shows(words.as_bytes()), "{words}");
}

proptest! {
    #[test]
    fn a_damaged_or_cut_message_does_not_open(
        at in any::<prop::sample::Index>(), change in 1u8.., cut in any::<prop::sample::Index>(),
    ) {
        let a = relay(SECRET, "main", "a");
        let b = relay(SECRET, "main", "b");
        let mut sealed = a.tell(Broker::A, &token()).unwrap();
        prop_assert!(b.hear(&sealed[..cut.index(sealed.len())], 0).is_err());
        let at = at.index(sealed.len());
        sealed[at] ^= change;
        prop_assert!(b.hear(&sealed, 0).is_err());
    }

    /// A node that has the key may still run another version.
    #[test]
    fn sealed_bytes_that_are_no_words_are_refused(
        plain in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let a = relay(SECRET, "main", "a");
        let b = relay(SECRET, "main", "b");
        let heard = b.hear(&a.seal(&plain).unwrap(), 0);
        if let Ok(Some(Heard { word: TokenMessage::Has(_, token), .. })) = heard {
            prop_assert!(!token.access_token.expose_secret().is_empty());
        }
    }
}

/// The token that a node has heard.
type HeardToken = Arc<Mutex<Option<GivenToken>>>;

/// Starts the two directions of a node that tells the token that it `has` to whoever asks.
fn start_node(
    server: &TestServer,
    timer: &Clock,
    node: &'static str,
    has: Option<GivenToken>,
) -> (Follower, Arc<Publisher>, HeardToken) {
    let cipher = relay(SECRET, "main", node);
    let sender = Arc::new(Publisher::new(&server.server(), &installation(), node));
    let heard = Arc::new(Mutex::new(None::<GivenToken>));
    let slot = Arc::clone(&heard);
    let answers = Arc::clone(&sender);
    let now_ms = timer.clone();
    let sealed = move |sealed: Vec<u8>| {
        let heard = cipher.hear(&sealed, now_ms.monotonic_ms());
        match heard.ok().flatten().map(|heard| heard.word) {
            Some(TokenMessage::Asked) => {
                if let Some(token) = &has {
                    answers
                        .pass_on(&cipher.tell(Broker::A, token).unwrap())
                        .unwrap();
                }
            }
            Some(TokenMessage::Has(_, token)) => *slot.lock() = Some(token),
            _ => {}
        }
    };
    let update = Box::new(|_| Ok(()));
    let changed = Box::new(|| ());
    let inbox = Inbox {
        update,
        sealed: Box::new(sealed),
        changed,
    };
    let follower = Follower::start(&server.server(), &installation(), inbox).unwrap();
    (follower, sender, heard)
}

#[test]
fn a_node_that_starts_asks_and_the_token_comes_and_lies_nowhere() {
    let name = "a_node_that_starts_asks_and_the_token_comes_and_lies_nowhere";
    let Some(server) = TestServer::start(name) else {
        return;
    };
    let timer = Clock::system();
    let has = start_node(&server, &timer, "a", Some(token()));
    let starts = start_node(&server, &timer, "b", None);
    while has.0.reading().loads == 0 || starts.0.reading().loads == 0 {
        std::thread::yield_now();
    }
    let mut asked_ms = None;
    while starts.2.lock().is_none() {
        let now_ms = timer.monotonic_ms();
        assert!(now_ms < 20_000);
        if asked_ms.is_none_or(|at| now_ms - at > 1_500) {
            starts
                .1
                .pass_on(&relay(SECRET, "main", "b").ask().unwrap())
                .unwrap();
            asked_ms = Some(now_ms);
        }
        std::thread::yield_now();
    }
    assert_eq!(
        starts
            .2
            .lock()
            .as_ref()
            .unwrap()
            .access_token
            .expose_secret(),
        CANARY
    );
    let mut connection = server
        .server()
        .connect(timer.monotonic_ms() + 5_000)
        .unwrap();
    connection.end_by(timer.monotonic_ms() + 5_000);
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(keys.is_empty(), "nothing is stored: {keys:?}");
    assert!(!server.memory_contains(CANARY.as_bytes()));
}
