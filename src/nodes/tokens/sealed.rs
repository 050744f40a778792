//! The brokers' tokens of the day, from the node that exchanged them to all others.
//!
//! A login's `request_token` works once, so one node exchanges it and sends the token to the rest.
//! Messages go over pub/sub alone, encrypted under a key that only the nodes can derive; nothing is
//! stored on the server, whose memory may end on a disk. A node that starts asks, and any node that
//! has a token answers. A refusal by the broker is sent in the same way.
//!
//! Anyone who reaches the server can send a recorded message again. So the receiver takes a token
//! only if it was set later than its own, as it would take it from anywhere, and answers questions
//! once a second at most.

use jiff::Timestamp;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::limiter::{Limiter, Rate};
use crate::base::{Broker, rng, wipe};
use crate::brokers::session::token::GivenToken;
use crate::nodes::valkey::derive;

/// Purpose of the encryption key.
const PURPOSE: &str = "token relay";
/// The form of messages; nodes of another do not understand each other.
const VERSION: u8 = 1;
const NONCE_BYTES: usize = 12;
/// Longest token, key or name in a message.
const TEXT_BYTES_MAX: usize = 4_096;
/// Longest sealed message.
const SEALED_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX;
/// Interval of answers to questions.
const ANSWER_MS: u64 = 1_000;

/// The hash of a token, which identifies it without revealing it.
pub(crate) type TokenPrint = [u8; 32];

/// A message of another node.
#[derive(Debug)]
pub(crate) enum TokenMessage {
    /// A node that started asks for the tokens of the day: answer with [`TokenCipher::tell`].
    Asked,
    /// Another node has this one.
    Has(Broker, GivenToken),
    /// The broker refused a token.
    Refused(RefusedToken),
}

/// A token that a broker refused, so that no node tries it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusedToken {
    pub broker: Broker,
    pub print: TokenPrint,
    /// Time of the token. A later login that gave the same text gave another token.
    pub set_at: Timestamp,
}

/// A message, and the name of the node that sent it.
#[derive(Debug)]
pub(crate) struct Heard {
    pub node: String,
    pub word: TokenMessage,
}

/// Bytes that no node of ours encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sealed by a node with the same JWT_SECRET")]
pub(crate) struct NotOurs;

/// Encrypts messages of this node and decrypts received ones. The bytes go through
/// `Publisher::pass_on`.
pub(crate) struct TokenCipher {
    key: LessSafeKey,
    /// Authenticated with the bytes, so that those of another installation do not open.
    purpose: Vec<u8>,
    node: String,
    /// Id of this process, in case another node has the same name.
    instance: [u8; 8],
    answers: Limiter,
}

const ASKED: u8 = 1;
const HAS: u8 = 2;
const REFUSED: u8 = 3;

impl TokenCipher {
    /// The cipher of the node of this name. All nodes have the same `secret` and namespace.
    pub(crate) fn new(secret: &[u8], namespace: &str, node: &str) -> Self {
        let key = derive(secret, PURPOSE);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*key).expect("the key has its length");
        wipe::scrub();
        Self {
            key: LessSafeKey::new(key),
            purpose: [&[VERSION][..], namespace.as_bytes()].concat(),
            node: node.to_owned(),
            instance: rng::bits().to_be_bytes(),
            answers: Limiter::new(Rate::every_ms(ANSWER_MS)),
        }
    }

    /// The message that asks other nodes for their tokens.
    pub(crate) fn ask(&self) -> Option<Vec<u8>> {
        self.seal(&self.begin(ASKED))
    }

    /// The message with a token.
    pub(crate) fn tell(&self, broker: Broker, token: &GivenToken) -> Option<Vec<u8>> {
        let mut plain = self.begin(HAS);
        plain.push(broker as u8);
        plain.extend_from_slice(&token.set_at.as_millisecond().to_be_bytes());
        plain.push(u8::from(token.dated));
        put(&mut plain, token.access_token.expose_secret().as_bytes());
        put(&mut plain, token.api_key.expose_secret().as_bytes());
        self.seal(&plain)
    }

    /// The message that the broker refused a token.
    pub(crate) fn refused(&self, token: &RefusedToken) -> Option<Vec<u8>> {
        let mut plain = self.begin(REFUSED);
        plain.push(token.broker as u8);
        plain.extend_from_slice(&token.set_at.as_millisecond().to_be_bytes());
        plain.extend_from_slice(&token.print);
        self.seal(&plain)
    }

    /// Opens a received message. `None` for this node's own, and for questions that are too
    /// frequent.
    ///
    /// # Errors
    /// [`NotOurs`].
    pub(crate) fn hear(&self, sealed: &[u8], now_mono_ms: u64) -> Result<Option<Heard>, NotOurs> {
        let plain = self.open(sealed)?;
        let heard = self.read(&plain);
        wipe::scrub();
        Ok(heard?.filter(|heard| {
            !matches!(heard.word, TokenMessage::Asked) || self.answers.admit(now_mono_ms).is_ok()
        }))
    }

    /// Begins a message of this node, with room for all of it: memory that grows leaves copies.
    fn begin(&self, kind: u8) -> Zeroizing<Vec<u8>> {
        let mut plain = Zeroizing::new(Vec::with_capacity(SEALED_BYTES_MAX));
        plain.push(kind);
        put(&mut plain, self.node.as_bytes());
        plain.extend_from_slice(&self.instance);
        plain
    }

    /// The encrypted message; `None` if the system gives no randomness.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let mut sealed = Zeroizing::new(plain.to_vec());
        let aad = Aad::from(&self.purpose[..]);
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce_used, aad, &mut sealed);
        let tag = tag.expect("the message is far below the cipher's limit");
        wipe::scrub();
        Some([&nonce[..], &sealed, tag.as_ref()].concat())
    }

    fn open(&self, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, NotOurs> {
        if sealed.len() > SEALED_BYTES_MAX + NONCE_BYTES + CHACHA20_POLY1305.tag_len() {
            return Err(NotOurs);
        }
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(NotOurs)?;
        let mut plain = Zeroizing::new(rest.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let aad = Aad::from(&self.purpose[..]);
        let bytes = self
            .key
            .open_in_place(nonce, aad, &mut plain)
            .map_err(|_| NotOurs)?
            .len();
        plain.truncate(bytes);
        Ok(plain)
    }

    fn read(&self, plain: &[u8]) -> Result<Option<Heard>, NotOurs> {
        let (&kind, rest) = plain.split_first().ok_or(NotOurs)?;
        let (node, rest) = text(rest)?;
        let (instance, rest) = rest.split_first_chunk::<8>().ok_or(NotOurs)?;
        if *instance == self.instance {
            return Ok(None);
        }
        let word = match kind {
            ASKED if rest.is_empty() => TokenMessage::Asked,
            HAS => token(rest)?,
            REFUSED => TokenMessage::Refused(refused(rest)?),
            _ => return Err(NotOurs),
        };
        Ok(Some(Heard {
            node: node.to_owned(),
            word,
        }))
    }
}

/// The beginning of both kinds of messages about a token.
fn about(rest: &[u8]) -> Result<(Broker, Timestamp, &[u8]), NotOurs> {
    let (&broker, rest) = rest.split_first().ok_or(NotOurs)?;
    let broker = Broker::ALL
        .into_iter()
        .find(|known| *known as u8 == broker)
        .ok_or(NotOurs)?;
    let (at_ms, rest) = rest.split_first_chunk::<8>().ok_or(NotOurs)?;
    let set_at = Timestamp::from_millisecond(i64::from_be_bytes(*at_ms)).map_err(|_| NotOurs)?;
    Ok((broker, set_at, rest))
}

fn token(rest: &[u8]) -> Result<TokenMessage, NotOurs> {
    let (broker, set_at, rest) = about(rest)?;
    let (&dated, rest) = rest.split_first().ok_or(NotOurs)?;
    let (access_token, rest) = text(rest)?;
    let (api_key, rest) = text(rest)?;
    if dated > 1 || !rest.is_empty() || access_token.is_empty() || api_key.is_empty() {
        return Err(NotOurs);
    }
    let access_token = access_token.into();
    let api_key = api_key.into();
    let token = GivenToken {
        access_token,
        api_key,
        set_at,
        dated: dated == 1,
    };
    Ok(TokenMessage::Has(broker, token))
}

fn refused(rest: &[u8]) -> Result<RefusedToken, NotOurs> {
    let (broker, set_at, rest) = about(rest)?;
    let print = rest.try_into().map_err(|_| NotOurs)?;
    Ok(RefusedToken {
        broker,
        print,
        set_at,
    })
}

/// The print of a token.
pub(crate) fn print_of(access_token: &SecretString) -> TokenPrint {
    let print = Sha256::digest(access_token.expose_secret()).into();
    wipe::scrub();
    print
}

/// Appends a text after its length. A text longer than all secrets of the settings is cut.
fn put(plain: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(TEXT_BYTES_MAX)];
    plain.extend_from_slice(&(text.len() as u16).to_be_bytes());
    plain.extend_from_slice(text);
}

fn text(plain: &[u8]) -> Result<(&str, &[u8]), NotOurs> {
    let (length, rest) = plain.split_first_chunk::<2>().ok_or(NotOurs)?;
    let length = usize::from(u16::from_be_bytes(*length));
    let (text, rest) = rest.split_at_checked(length).ok_or(NotOurs)?;
    Ok((std::str::from_utf8(text).map_err(|_| NotOurs)?, rest))
}

#[cfg(test)]
#[path = "sealed_tests.rs"]
mod tests;
