//! The relay over one server: both directions, and the exchange of tokens.

use std::io;
use std::sync::Arc;

use crossbeam_channel::bounded;

use crate::base::{Clock, Symbol};
use crate::nodes::cluster::{Relay, RelayReading, SendError, SharedTokens, TokenEvent};
use crate::nodes::relay::follower::{Follower, Inbox, Put};
use crate::nodes::relay::publisher::Publisher;
use crate::nodes::relay::update::Update;
use crate::nodes::tokens::{ExchangeParts, HEARD_MAX, start_exchange};
use crate::nodes::valkey::{Installation, Server};
use crate::rt::threads::Stoppable;
use crate::store::Epoch;

/// The other nodes, over one server.
pub(crate) struct ValkeyRelay {
    publisher: Arc<Publisher>,
    // Dropped before the follower, from which it receives.
    _tokens: Stoppable,
    follower: Arc<Follower>,
}

/// The parts of the relay.
pub(crate) struct RelayParts {
    pub server: Arc<Server>,
    /// Messages and kept values are signed for it, and brokers' tokens of the day are encrypted.
    pub installation: Arc<Installation>,
    pub node: String,
    /// Takes updates of the leader.
    pub update: Put,
    /// Called when another node has changed accounts or tokens.
    pub changed: Box<dyn Fn() + Send>,
    pub tokens: SharedTokens,
    pub clock: Clock,
}

impl ValkeyRelay {
    /// Starts to receive, and to exchange tokens.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(parts: RelayParts) -> io::Result<Self> {
        let RelayParts {
            server,
            installation,
            node,
            update,
            changed,
            tokens,
            clock,
        } = parts;
        let (send, heard) = bounded(HEARD_MAX);
        let counts = Arc::clone(&tokens.counts);
        // Encrypted token messages are dropped when the queue is full. The sender repeats them.
        let sealed = Box::new(move |bytes| {
            if send.try_send(bytes).is_err() {
                counts.increment(TokenEvent::Dropped);
            }
        });
        let inbox = Inbox {
            update,
            sealed,
            changed,
        };
        let follower = Arc::new(Follower::start(&server, &installation, inbox)?);
        let publisher = Arc::new(Publisher::new(&server, &installation, &node));
        let sends = Arc::clone(&publisher);
        let receives = Arc::clone(&follower);
        let _tokens = start_exchange(ExchangeParts {
            send: Box::new(move |sealed| sends.pass_on(sealed).is_ok()),
            heard,
            connects: Box::new(move || receives.reading().connects),
            installation,
            node,
            tokens,
            clock,
        })?;
        Ok(Self {
            publisher,
            _tokens,
            follower,
        })
    }
}

impl Relay for ValkeyRelay {
    fn send(&self, epoch: Epoch, update: Update) -> Result<(), SendError> {
        self.publisher.publish(epoch, update)
    }

    fn want(&self, symbols: &[Symbol]) -> Result<(), SendError> {
        self.publisher.want(symbols)
    }

    fn notify_changes(&self) -> Result<(), SendError> {
        self.publisher.notify_changes()
    }

    fn wanted(&self) -> Vec<Symbol> {
        self.follower.wanted()
    }

    fn reading(&self) -> RelayReading {
        self.follower.reading()
    }
}
