//! The thread `tokens`: sends the tokens in force here to the other nodes, and puts theirs in
//! force.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use secrecy::{ExposeSecret, SecretString};

use crate::base::limiter::{Limiter, Rate};
use crate::base::{Broker, Clock};
use crate::brokers::SharedToken;
use crate::brokers::session::token::{GivenToken, Token};
use crate::nodes::cluster::{SharedTokens, TokenEvent};
use crate::nodes::tokens::judge::{Candidate, RefusedTokens, Verdict, concerns, judge};
use crate::nodes::tokens::sealed::{
    Heard, NotOurs, RefusedToken, TokenCipher, TokenMessage, print_of,
};
use crate::nodes::valkey::{Installation, Namespace};
use crate::rt::threads::{Stop, Stoppable};

/// Messages that wait to be read. A node sends a handful at once.
pub(crate) const HEARD_MAX: usize = 32;

/// Rate at which messages are opened, because anyone who reaches the server can send any number.
const OPENED: Rate = Rate::new(50, 40);

/// Interval at which the thread checks whether a token in force here has to be sent.
const LOOK: Duration = Duration::from_millis(100);

/// Interval of questions. A lost message is made up for within this time.
const ASK_MS: u64 = 30_000;

/// Pause after a message could not be sent.
const REST_MS: u64 = 1_000;

/// Tries to take a token, if another one was put in force at the same time.
const TAKES_MAX: usize = 3;

/// Interval of log lines about the same fault of another node.
const LINE_MS: u64 = 600_000;

/// Messages of this node's previous process, which had the same name, may arrive for this long
/// after the start.
const NAMESAKE_MS: u64 = 60_000;

/// Longest that the end of the service waits for the thread.
const STOP_WAIT: Duration = Duration::from_millis(250);

/// Sends encrypted bytes. Returns whether they were sent.
type SendSealed = Box<dyn Fn(&[u8]) -> bool + Send>;

/// The inputs of the thread.
pub(crate) struct ExchangeParts {
    pub send: SendSealed,
    /// Encrypted bytes of other nodes.
    pub heard: Receiver<Vec<u8>>,
    /// Number of times that this node began to receive from the others.
    pub connects: Box<dyn Fn() -> u64 + Send>,
    /// The installation of these nodes, whose secret encrypts the tokens.
    pub installation: Arc<Installation>,
    /// The name of this node.
    pub node: String,
    pub tokens: SharedTokens,
    pub clock: Clock,
}

/// Starts the thread. Dropping it sends what is new and ends it.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start_exchange(parts: ExchangeParts) -> io::Result<Stoppable> {
    let worker = Worker::new(parts);
    Stoppable::spawn("tokens", STOP_WAIT, move |stop| worker.run(&stop))
}

/// The token of one broker.
struct Slot {
    broker: Broker,
    shared: Arc<SharedToken>,
    /// The token that the others know, and whether it was sent as refused. The weak reference keeps
    /// its address from being used again.
    told: Option<(Weak<Token>, bool)>,
}

/// State of the thread.
struct Worker {
    parts: ExchangeParts,
    cipher: TokenCipher,
    /// The secret of `cipher`.
    secret: Arc<SecretString>,
    namespace: Option<Namespace>,
    slots: [Slot; Broker::ALL.len()],
    refused: RefusedTokens,
    connects: u64,
    asked_mono_ms: Option<u64>,
    rest_until_mono_ms: u64,
    is_failing: bool,
    opened: Limiter,
    foreign_lines: Limiter,
    namesake_lines: Limiter,
    started_mono_ms: u64,
}

impl Worker {
    fn new(parts: ExchangeParts) -> Self {
        let (secret, namespace) = in_force(&parts);
        let slots = Broker::ALL.map(|broker| {
            let shared = Arc::clone(&parts.tokens.of[broker]);
            Slot {
                broker,
                shared,
                told: None,
            }
        });
        Self {
            cipher: cipher(&parts.node, &secret, namespace.as_ref()),
            secret,
            namespace,
            slots,
            refused: RefusedTokens::default(),
            connects: 0,
            asked_mono_ms: None,
            rest_until_mono_ms: 0,
            is_failing: false,
            opened: Limiter::new(OPENED),
            foreign_lines: Limiter::new(Rate::every_ms(LINE_MS)),
            namesake_lines: Limiter::new(Rate::every_ms(LINE_MS)),
            started_mono_ms: parts.clock.monotonic_ms(),
            parts,
        }
    }

    fn run(mut self, stop: &Stop) {
        loop {
            match self.parts.heard.recv_timeout(LOOK) {
                Ok(sealed) => self.hear(&sealed),
                Err(RecvTimeoutError::Timeout) => {}
                // The follower has ended. The service ends too, or goes on without other nodes.
                Err(RecvTimeoutError::Disconnected) => {
                    stop.wait(LOOK);
                }
            }
            let stops = stop.is_set();
            self.tell_news();
            if stops {
                return;
            }
        }
    }

    fn now_mono_ms(&self) -> u64 {
        self.parts.clock.monotonic_ms()
    }

    /// Sends tokens and refusals that the others do not know, and asks for their tokens.
    fn tell_news(&mut self) {
        self.follow_secret();
        let connects = (self.parts.connects)();
        let now_mono_ms = self.now_mono_ms();
        if connects != self.connects {
            self.connects = connects;
            self.begin();
        }
        if connects == 0 || now_mono_ms < self.rest_until_mono_ms {
            return;
        }
        for at in 0..self.slots.len() {
            self.tell_slot(at);
        }
        let since = self
            .asked_mono_ms
            .map_or(u64::MAX, |at| now_mono_ms.saturating_sub(at));
        if since >= ASK_MS && self.send(self.cipher.ask()) {
            self.asked_mono_ms = Some(now_mono_ms);
        }
    }

    /// Starts anew if a reload changed the secret.
    fn follow_secret(&mut self) {
        let (secret, namespace) = in_force(&self.parts);
        if !Arc::ptr_eq(&secret, &self.secret) || namespace != self.namespace {
            self.cipher = cipher(&self.parts.node, &secret, namespace.as_ref());
            (self.secret, self.namespace) = (secret, namespace);
            self.begin();
        }
    }

    /// Makes this node send its tokens and ask for those of the others again.
    fn begin(&mut self) {
        self.asked_mono_ms = None;
        self.slots.iter_mut().for_each(|slot| slot.told = None);
    }

    fn tell_slot(&mut self, at: usize) {
        let slot = &self.slots[at];
        let Some(token) = slot.shared.current() else {
            return;
        };
        let refused = token.is_refused();
        let told = |(told, was_refused): &(Weak<Token>, bool)| {
            told.as_ptr() == Arc::as_ptr(&token) && *was_refused == refused
        };
        if slot.told.as_ref().is_some_and(told) {
            return;
        }
        let sealed = if refused {
            let candidate = slot.candidate(&token.given);
            let Candidate { print, set_at, .. } = candidate;
            let refused = RefusedToken {
                broker: slot.broker,
                print,
                set_at,
            };
            if self.refused.of(slot.broker, &candidate).is_none() {
                self.refused.add(refused);
                // Another node may have a better token, so it asks at once.
                self.asked_mono_ms = None;
            }
            self.cipher.refused(&refused)
        } else if token.is_valid(self.parts.clock.now()) {
            self.cipher.tell(slot.broker, &token.given)
        } else {
            return;
        };
        if self.send(sealed) {
            self.parts.tokens.counts.increment(TokenEvent::Told);
            self.slots[at].told = Some((Arc::downgrade(&token), refused));
        }
    }

    /// Sends encrypted bytes, `None` if they could not be encrypted. Returns whether they were
    /// sent.
    fn send(&mut self, sealed: Option<Vec<u8>>) -> bool {
        if self.now_mono_ms() < self.rest_until_mono_ms {
            return false;
        }
        let sent = sealed.is_some_and(|sealed| (self.parts.send)(&sealed));
        if !sent {
            self.rest_until_mono_ms = self.now_mono_ms() + REST_MS;
            self.parts.tokens.counts.increment(TokenEvent::Untold);
        }
        if sent == self.is_failing {
            self.is_failing = !sent;
            match sent {
                true => tracing::info!("tokens can be sent to other nodes again"),
                false => tracing::warn!("tokens cannot be sent to other nodes; trying again"),
            }
        }
        sent
    }

    fn hear(&mut self, sealed: &[u8]) {
        let now_mono_ms = self.now_mono_ms();
        if self.opened.admit(now_mono_ms).is_err() {
            return self.parts.tokens.counts.increment(TokenEvent::Dropped);
        }
        let Heard { node, word } = match self.cipher.hear(sealed, now_mono_ms) {
            Ok(Some(heard)) => heard,
            Ok(None) => return,
            Err(NotOurs) => {
                self.parts.tokens.counts.increment(TokenEvent::Foreign);
                if self.foreign_lines.admit(now_mono_ms).is_ok() {
                    tracing::warn!(
                        "a message about tokens was sealed with another JWT_SECRET and is \
                         dropped; all nodes need the same"
                    );
                }
                return;
            }
        };
        let runs_ms = now_mono_ms.saturating_sub(self.started_mono_ms);
        let is_namesake = node == self.parts.node && runs_ms >= NAMESAKE_MS;
        if is_namesake && self.namesake_lines.admit(now_mono_ms).is_ok() {
            tracing::warn!(node, "another node has this one's name; give each its own BHAV_NODE");
        }
        match word {
            TokenMessage::Asked => self.slots.iter_mut().for_each(|slot| slot.told = None),
            TokenMessage::Has(broker, token) => self.take(&node, broker, &token),
            TokenMessage::Refused(refused) => self.take_refusal(&node, refused),
        }
    }

    /// Puts another node's token in force, if it is better than the one in force here.
    fn take(&mut self, node: &str, broker: Broker, token: &GivenToken) {
        for _ in 0..TAKES_MAX {
            let now = self.parts.clock.now();
            let slot = &mut self.slots[broker as usize];
            let told = slot.candidate(token);
            let seen = slot.shared.current();
            let valid = seen.as_ref().filter(|seen| seen.is_valid(now));
            let ours = valid.map(|seen| slot.candidate(&seen.given));
            let refused = self.refused.of(broker, &told).copied();
            match judge(&told, ours.as_ref(), refused.is_some(), now) {
                Verdict::Same => return,
                Verdict::Not(why) => return self.leave(why, node, broker, refused),
                Verdict::Take => {}
            }
            if let Some(token) = slot.shared.replace(seen.as_ref(), token.clone()) {
                slot.told = Some((Arc::downgrade(&token), false));
                self.parts.tokens.counts.increment(TokenEvent::Taken);
                tracing::info!(
                    broker = broker.name(),
                    from = node,
                    "token of the day taken from another node"
                );
                return;
            }
        }
    }

    /// Counts a token that is not taken. If it is known to be refused, sends the refusal to the
    /// nodes that still have it.
    fn leave(
        &mut self,
        why: TokenEvent,
        node: &str,
        broker: Broker,
        refused: Option<RefusedToken>,
    ) {
        self.parts.tokens.counts.increment(why);
        let broker = broker.name();
        let reason = why.as_str();
        tracing::debug!(broker, from = node, reason, "token not taken");
        if why == TokenEvent::Ahead && self.foreign_lines.admit(self.now_mono_ms()).is_ok() {
            tracing::warn!(broker, from = node, "token not taken: the nodes' clocks differ");
        }
        if let (TokenEvent::Refused, Some(refused)) = (why, refused) {
            self.send(self.cipher.refused(&refused));
        }
    }

    /// Processes a refusal. A token that the broker refused to another node is refused here too.
    fn take_refusal(&mut self, node: &str, refused: RefusedToken) {
        self.refused.add(refused);
        let slot = &mut self.slots[refused.broker as usize];
        let Some(token) = slot.shared.current() else {
            return;
        };
        if concerns(&refused, &slot.candidate(&token.given)) && token.mark_dead() {
            slot.told = Some((Arc::downgrade(&token), true));
            self.parts.tokens.counts.increment(TokenEvent::Dead);
            self.asked_mono_ms = None;
            let broker = refused.broker.name();
            tracing::warn!(
                broker,
                from = node,
                "another node reports that the broker refused the shared token"
            );
        }
    }
}

impl Slot {
    fn candidate(&self, token: &GivenToken) -> Candidate {
        let GivenToken {
            ref access_token,
            set_at,
            dated,
            ..
        } = *token;
        let expires_at = (self.shared.expiry)(set_at);
        Candidate {
            print: print_of(access_token),
            set_at,
            dated,
            expires_at,
        }
    }
}

/// The secret and the namespace by which messages are encrypted now.
fn in_force(parts: &ExchangeParts) -> (Arc<SecretString>, Option<Namespace>) {
    (parts.installation.secret.load(), parts.installation.namespace())
}

/// The cipher of messages. No message is sent before the namespace is known.
fn cipher(node: &str, secret: &SecretString, namespace: Option<&Namespace>) -> TokenCipher {
    let namespace = namespace.map_or("", Namespace::as_str);
    TokenCipher::new(secret.expose_secret().as_bytes(), namespace, node)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
