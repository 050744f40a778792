//! Keeps the brokers' tokens of the day over a restart. The supervisor holds them in memory, in its
//! descriptor store, for the next process of the unit. They never touch a disk. Without a
//! supervisor nothing is kept.
//!
//! Main thread. Each pass of the main loop compares the kept tokens with those in force. So an
//! activation never waits for the supervisor, and succeeds even if a token cannot be kept.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use secrecy::SecretString;

use crate::api::State;
use crate::base::{Broker, ByBroker};
use crate::brokers::SharedToken;
use crate::brokers::session::token::{
    DOCUMENT_BYTES_MAX, Fingerprint, KeptToken, Outdated, Token, Unreadable,
};
use crate::config::Config;
use crate::ops::{Inherited, notify};

/// Name of a broker's token in the descriptor store.
fn name(broker: Broker) -> String {
    format!("broker-{broker}-token")
}

fn shared(state: &State, broker: Broker) -> &SharedToken {
    state.brokers[broker].client.token()
}

/// The descriptor that the supervisor has for a broker.
#[derive(Debug)]
enum Stored {
    Nothing,
    /// The token that the previous process left.
    OfBefore,
    /// This token, or none because storing it failed, which was logged.
    Of(Weak<Token>),
}

/// A broker's token in the settings now.
struct InForce<'a> {
    api_key: Option<&'a SecretString>,
    token: Option<Fingerprint>,
}

impl<'a> InForce<'a> {
    fn of(config: &'a Config, broker: Broker) -> Self {
        let own = config.own_app(broker);
        let token = own.access_token.map(Fingerprint::of);
        Self {
            api_key: own.api_key.as_ref(),
            token,
        }
    }
}

/// Why a kept token is not used. Contains no part of it.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("it is of another broker")]
    OtherBroker,
    #[error("{0}")]
    Outdated(#[from] Outdated),
}

/// The tokens that the previous process left, still unread.
pub(crate) struct InheritedTokens([(Broker, Option<OwnedFd>); Broker::ALL.len()]);

impl InheritedTokens {
    /// Takes the tokens out of the passed descriptors.
    pub(super) fn claim(inherited: &mut Inherited) -> Self {
        Self(Broker::ALL.map(|broker| (broker, inherited.claim(&name(broker)))))
    }
}

/// Keeps tokens for the next process.
#[derive(Debug)]
pub(crate) struct Handover {
    slots: [(Broker, Stored); Broker::ALL.len()],
    supervised: bool,
    /// The tokens in the settings.
    settings_tokens: ByBroker<Option<Fingerprint>>,
}

impl Handover {
    /// Puts the left tokens in force, as far as the settings allow. Called before anything needs a
    /// token.
    pub(crate) fn take_over(left: InheritedTokens, config: &Config, state: &State) -> Self {
        let slots = left.0.map(|(broker, file)| {
            let Some(file) = file else {
                return (broker, Stored::Nothing);
            };
            match taken_over(broker, file, config, state) {
                Ok(()) => {
                    tracing::info!(
                        broker = broker.name(),
                        "token of the day kept over the restart"
                    );
                }
                Err(reason) => {
                    tracing::warn!(
                        broker = broker.name(),
                        %reason,
                        "token of the day that was kept is not used"
                    );
                }
            }
            (broker, Stored::OfBefore)
        });
        let settings_tokens = tokens_of(config);
        Self {
            slots,
            supervised: notify::supervised(),
            settings_tokens,
        }
    }

    /// Takes over settings that were put in force by a reload.
    pub(crate) fn note_settings(&mut self, config: &Config) {
        self.settings_tokens = tokens_of(config);
    }

    /// Stores the tokens in force with the supervisor, and removes others.
    ///
    /// A token that the previous process left is stored again: pages belong to the memory group of
    /// the process that wrote them, and only the running one's is known to stay out of swap.
    pub(crate) fn go(&mut self, state: &State) {
        if !self.supervised {
            return;
        }
        let now = state.clock.now();
        for (broker, stored) in &mut self.slots {
            let token = shared(state, *broker).valid(now);
            let token = token.filter(|token| token.is_to_keep());
            let same = match (&token, &stored) {
                (Some(token), Stored::Of(kept)) => kept.as_ptr() == Arc::as_ptr(token),
                (None, Stored::Nothing) => true,
                _ => false,
            };
            if same {
                continue;
            }
            if !matches!(stored, Stored::Nothing)
                && let Err(error) = notify::forget(&name(*broker))
            {
                tracing::warn!(
                    %error,
                    broker = broker.name(),
                    "an earlier token of the day stays kept for a restart"
                );
            }
            *stored = token.as_ref().map_or(Stored::Nothing, |token| {
                if let Err(error) = keep(*broker, token, self.settings_tokens[*broker]) {
                    tracing::warn!(
                        %error,
                        broker = broker.name(),
                        "token of the day not kept for a restart"
                    );
                }
                Stored::Of(Arc::downgrade(token))
            });
        }
    }
}

fn tokens_of(config: &Config) -> ByBroker<Option<Fingerprint>> {
    ByBroker::of(|broker| InForce::of(config, broker).token)
}

fn taken_over(
    broker: Broker,
    file: OwnedFd,
    config: &Config,
    state: &State,
) -> Result<(), NotTaken> {
    let document = notify::read(file, DOCUMENT_BYTES_MAX)?;
    let kept = KeptToken::decode(&document)?;
    if kept.broker != broker {
        return Err(NotTaken::OtherBroker);
    }
    let InForce { api_key, token } = InForce::of(config, broker);
    shared(state, broker).take_over(kept, state.clock.now(), api_key, token)?;
    Ok(())
}

fn keep(broker: Broker, token: &Token, settings: Option<Fingerprint>) -> io::Result<()> {
    let document = token
        .to_keep(broker, settings)
        .encode()
        .map_err(io::Error::other)?;
    let name = name(broker);
    let file = notify::sealed(&name, &document)?;
    notify::keep(&name, file.as_fd())
}
