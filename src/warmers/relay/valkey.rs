//! The wire over a Valkey or Redis server: turns news into updates of the relay, and back.

use std::io;
use std::sync::Arc;

use crossbeam_channel::{Sender, bounded};

use super::codec::{Calls, decode_evening, decode_rules, encode_evening, encode_rules};
use super::news::{News, Told};
use super::wire::{Wire, WireError, WireReading};
use crate::auth::ChangesBell;
use crate::base::{Clock, Epoch, Source, Symbol};
use crate::cache::nodes::relay::{
    self, Aged, Follower, FollowerParts, Published, Relay, Update, ValkeyRelay,
};
use crate::cache::valkey::{Installation, Server};
use crate::warmers::mailbox::RelayInbox;
use crate::warmers::tokens::{
    Exchange, ExchangeParts, HEARD_MAX, SharedTokens, TokenCounts, TokenEvent,
};

/// The other nodes, over one server.
pub struct ValkeyWire {
    relay: Arc<ValkeyRelay>,
    // Before the follower, from which it hears.
    _tokens: Exchange,
    follower: Arc<Follower>,
}

/// Who this node is among the others, and what it shares with them.
pub struct WireParts {
    pub server: Arc<Server>,
    /// What is told and kept is signed for it, and brokers' tokens of the day are sealed.
    pub installation: Arc<Installation>,
    pub node: String,
    /// Where prices go that the leader tells.
    pub inbox: RelayInbox,
    /// Rung when another node has changed accounts or tokens.
    pub bell: ChangesBell,
    pub tokens: SharedTokens,
    pub clock: Clock,
}

impl ValkeyWire {
    /// Starts to hear, and to tell of tokens.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(parts: WireParts) -> io::Result<Self> {
        let WireParts { server, installation, node, inbox, bell, tokens, clock } = parts;
        let (sealed, heard) = bounded(HEARD_MAX);
        let follower = Arc::new(Follower::start(FollowerParts {
            server: Arc::clone(&server),
            installation: Arc::clone(&installation),
            listener: Box::new(listener((inbox, bell), sealed, Arc::clone(&tokens.counts))),
        })?);
        let relay = Arc::new(ValkeyRelay::new(&server, &installation, &node));
        let hears = Arc::clone(&follower);
        let _tokens = Exchange::start(ExchangeParts {
            relay: relay.clone(),
            heard,
            connects: Box::new(move || hears.reading().connects),
            installation,
            node,
            tokens,
            clock,
        })?;
        Ok(Self { relay, _tokens, follower })
    }
}

/// Sealed words that find no room are dropped: they come again.
fn listener(
    (inbox, bell): (RelayInbox, ChangesBell),
    sealed: Sender<Vec<u8>>,
    counts: Arc<TokenCounts>,
) -> impl Fn(relay::Told) -> Result<(), relay::Told> + Send {
    move |told| match told {
        relay::Told::Update(update) => hear(&inbox, update).map_err(relay::Told::Update),
        relay::Told::State(update) => hear(&inbox, update).map_err(relay::Told::State),
        relay::Told::Sealed(bytes) => {
            if sealed.try_send(bytes).is_err() {
                counts.add(TokenEvent::Dropped);
            }
            Ok(())
        }
        relay::Told::Changes => {
            bell.ring();
            Ok(())
        }
    }
}

/// Gives the update back where the scheduler has not taken the one before. What another program
/// wrote is dropped.
fn hear(inbox: &RelayInbox, update: Box<Update>) -> Result<(), Box<Update>> {
    if !inbox.has_room() {
        return Err(update);
    }
    if let Some(news) = news(*update) {
        // Only this thread hears, so the room is still there; or the scheduler has ended.
        let _ = inbox.hear(Box::new(news));
    } else {
        tracing::debug!("news of another program dropped");
    }
    Ok(())
}

impl Wire for ValkeyWire {
    fn tell(&self, epoch: Epoch, news: News) -> Result<(), WireError> {
        match self.relay.publish(epoch, &update(news)) {
            Ok(Published::Told) => Ok(()),
            Ok(Published::Fenced) => Err(WireError::Deposed),
            Err(error) => Err(WireError::Unavailable(error.to_string())),
        }
    }

    fn want(&self, symbols: &[Symbol]) -> Result<(), WireError> {
        self.relay.want(symbols).map_err(|error| WireError::Unavailable(error.to_string()))
    }

    fn tell_of_changes(&self) -> Result<(), WireError> {
        self.relay.tell_of_changes().map_err(|error| WireError::Unavailable(error.to_string()))
    }

    fn wanted(&self) -> Vec<Symbol> {
        self.follower.wanted()
    }

    fn reading(&self) -> WireReading {
        let reading = self.follower.reading();
        WireReading {
            state: reading.state,
            leader: reading.leader.map(|leader| (leader, Epoch(reading.epoch))),
            age_ms: reading.age_ms,
            gaps: reading.gaps,
        }
    }
}

/// Number and epoch are set by who publishes.
fn update(news: News) -> Update {
    let News { quotes, unknown, rules, evening, running, age_ms } = news;
    let mut calls: Calls = [1; Source::ALL.len()];
    for told in &quotes {
        let of_source = &mut calls[told.quote.source as usize];
        *of_source = told.calls.max(*of_source);
    }
    let aged = |told: Told| {
        let never = u64::MAX;
        let age_ms = told.vouched_ago_ms.map_or(never, |ms| ms.max(0).unsigned_abs());
        Aged { quote: told.quote, age_ms }
    };
    Update {
        snapshot: encode_rules(&rules, calls),
        evening: encode_evening(evening, running.as_ref()),
        quotes: quotes.into_iter().map(aged).collect(),
        unknown,
        age_ms,
        ..Update::default()
    }
}

fn news(update: Update) -> Option<News> {
    let Update { snapshot, evening, quotes, unknown, age_ms, .. } = update;
    let (rules, calls) = decode_rules(&snapshot)?;
    let (evening, running) = decode_evening(&evening)?;
    let told = |Aged { quote, age_ms }| Told {
        calls: calls[quote.source as usize],
        vouched_ago_ms: i64::try_from(age_ms).ok(),
        quote,
    };
    let quotes = quotes.into_iter().map(told).collect();
    Some(News { quotes, unknown, rules, evening, running, age_ms })
}
