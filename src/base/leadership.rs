//! Whether this node leads: asks the brokers and writes what all nodes share, or follows.
//!
//! A value that is read, never a lock. One thread writes it, and whoever is about to act reads it
//! with the time of that moment. It ends by itself: past its deadline a node does not lead,
//! whatever it could or could not learn since. A node that is alone leads for ever, with epoch 0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret, SecretString};

/// What a node is among the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There are no others.
    Alone,
    Leader,
    Follower,
}

impl Role {
    /// The text in API documents.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Leader => "leader",
            Self::Follower => "follower",
        }
    }
}

/// A leadership, with times of this node's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    pub epoch: Epoch,
    /// First moment at which upstreams may be asked: the leader before may have asked right up to
    /// its own end.
    pub asks_from_mono_ms: u64,
    /// First moment at which it is over.
    pub until_mono_ms: u64,
}

/// What is known of this node's leadership.
#[derive(Debug)]
pub struct Leadership {
    is_alone: bool,
    /// Of the running term, or of the last one.
    epoch: AtomicU64,
    asks_from_mono_ms: AtomicU64,
    until_mono_ms: AtomicU64,
    /// The epoch in which this node was refused as a leader of the past; 0 for none.
    refused: AtomicU64,
}

impl Leadership {
    /// Of a node that is alone: nothing ends it.
    pub(crate) fn alone() -> Self {
        Self {
            is_alone: true,
            epoch: AtomicU64::new(Epoch::ALONE.0),
            asks_from_mono_ms: AtomicU64::new(0),
            until_mono_ms: AtomicU64::new(u64::MAX),
            refused: AtomicU64::new(0),
        }
    }

    /// Of one node of several, which does not lead yet.
    pub fn follower() -> Self {
        Self { is_alone: false, until_mono_ms: AtomicU64::new(0), ..Self::alone() }
    }

    /// This node leads now, or goes on to. For the one thread that knows.
    pub fn grant(&self, term: Term) {
        if self.epoch.load(SeqCst) != term.epoch.0 {
            // Nobody may see the new epoch with the old deadline.
            self.end();
            self.epoch.store(term.epoch.0, SeqCst);
        }
        self.asks_from_mono_ms.store(term.asks_from_mono_ms, SeqCst);
        self.until_mono_ms.store(term.until_mono_ms, SeqCst);
    }

    /// This node does not lead any more.
    pub fn end(&self) {
        self.until_mono_ms.store(0, SeqCst);
    }

    /// Something refused this node because it knows of a later leadership. For whoever was refused;
    /// the one thread that grants hears of it by [`take_refused`](Self::take_refused).
    pub(crate) fn refused(&self) {
        if !self.is_alone {
            self.refused.store(self.epoch.load(SeqCst), SeqCst);
            self.end();
        }
    }

    /// The epoch of the leadership that was refused since this was last asked.
    pub(crate) fn take_refused(&self) -> Option<Epoch> {
        match self.refused.swap(0, SeqCst) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// The epoch in which this node leads at this moment; `None` where it does not.
    pub(crate) fn epoch(&self, now_mono_ms: u64) -> Option<Epoch> {
        let epoch = self.epoch.load(SeqCst);
        let leads = now_mono_ms < self.until_mono_ms.load(SeqCst);
        // The deadline may be another term's.
        (leads && epoch == self.epoch.load(SeqCst)).then_some(Epoch(epoch))
    }

    /// Whether this node may ask a shared upstream at this moment.
    pub(crate) fn may_ask(&self, now_mono_ms: u64) -> bool {
        self.epoch(now_mono_ms).is_some() && now_mono_ms >= self.asks_from_mono_ms.load(SeqCst)
    }

    /// What this node is at this moment.
    pub(crate) fn role(&self, now_mono_ms: u64) -> Role {
        match self.epoch(now_mono_ms) {
            Some(_) if self.is_alone => Role::Alone,
            Some(_) => Role::Leader,
            None => Role::Follower,
        }
    }
}

// ---- Epoch
//
// The number of a leadership: each new leader has a higher one than all before it.

/// What fences a leader off that has been replaced: whoever sees a higher epoch refuses what comes
/// with a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Of a node that is alone, which nobody can replace.
    pub const ALONE: Self = Self(0);
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// ---- Node secret
//
// The secret that all nodes of a cluster have, `JWT_SECRET`, for what they derive keys from beside
// tokens, and those before it, `JWT_PREVIOUS_SECRETS`. A reload may change them.

/// Those in force. Their `Debug` does not show them.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub current: Arc<SecretString>,
    /// What was made with one of these is still known for ours.
    pub previous: Vec<SecretString>,
}

/// The secret in force, and those before it.
#[derive(Debug)]
pub struct NodeSecret(ArcSwap<Secrets>);

impl NodeSecret {
    /// Without one before it.
    pub fn new(current: SecretString) -> Self {
        Self::with(current, None)
    }

    /// `previous` as the settings have it: separated by commas.
    pub(crate) fn with(current: SecretString, previous: Option<&SecretString>) -> Self {
        let (current, previous) = (Arc::new(current), split(previous));
        Self(ArcSwap::from_pointee(Secrets { current, previous }))
    }

    /// Another allocation than before if and only if it was changed.
    pub(crate) fn load(&self) -> Arc<SecretString> {
        Arc::clone(&self.0.load().current)
    }

    /// The same with those before it: another allocation if any of them was changed.
    pub(crate) fn load_all(&self) -> Arc<Secrets> {
        self.0.load_full()
    }

    /// Puts others in their place.
    pub(crate) fn set(&self, current: &SecretString, previous: Option<&SecretString>) {
        let (held, previous) = (self.load_all(), split(previous));
        let is_same = held.current.expose_secret() == current.expose_secret();
        let texts = |secrets: &[SecretString]| -> Vec<String> {
            secrets.iter().map(|secret| secret.expose_secret().to_owned()).collect()
        };
        if is_same && texts(&held.previous) == texts(&previous) {
            return;
        }
        let current = if is_same { Arc::clone(&held.current) } else { Arc::new(current.clone()) };
        self.0.store(Arc::new(Secrets { current, previous }));
    }
}

fn split(previous: Option<&SecretString>) -> Vec<SecretString> {
    let text = previous.map_or("", |secrets| secrets.expose_secret());
    let each = text.split(',').map(str::trim).filter(|secret| !secret.is_empty());
    each.map(SecretString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_alone_leads_for_ever() {
        let alone = Leadership::alone();
        for now_mono_ms in [0, 1, u64::MAX - 1] {
            assert_eq!(alone.epoch(now_mono_ms), Some(Epoch::ALONE));
            assert!(alone.may_ask(now_mono_ms));
            assert_eq!(alone.role(now_mono_ms), Role::Alone);
        }
    }

    #[test]
    fn a_term_begins_with_a_wait_and_ends_by_itself() {
        let node = Leadership::follower();
        assert_eq!((node.epoch(0), node.role(0)), (None, Role::Follower));
        let term = Term { epoch: Epoch(7), asks_from_mono_ms: 150, until_mono_ms: 500 };
        node.grant(term);
        assert_eq!((node.epoch(100), node.may_ask(100)), (Some(Epoch(7)), false));
        assert!(node.may_ask(150) && node.may_ask(499));
        assert_eq!(node.role(499), Role::Leader);
        assert_eq!((node.epoch(500), node.may_ask(500)), (None, false));
        node.grant(Term { until_mono_ms: 900, ..term });
        assert!(node.may_ask(899));
        node.end();
        assert_eq!(node.epoch(500), None);
    }

    #[test]
    fn no_reader_sees_one_terms_epoch_with_anothers_deadline() {
        // Each term ends at a time that only its epoch explains.
        const TERMS: u64 = 20_000;
        let until_of = |epoch: u64| epoch * 10;
        let node = Leadership::follower();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for epoch in 1..=TERMS {
                    let until_mono_ms = until_of(epoch);
                    node.grant(Term { epoch: Epoch(epoch), asks_from_mono_ms: 0, until_mono_ms });
                }
            });
            let mut seen = 0;
            while seen < TERMS {
                let now_mono_ms = until_of(seen + 1) - 1;
                if let Some(Epoch(epoch)) = node.epoch(now_mono_ms) {
                    assert!(now_mono_ms < until_of(epoch), "epoch {epoch} at {now_mono_ms}");
                    seen = epoch;
                }
                std::hint::spin_loop();
            }
        });
    }
}

#[cfg(test)]
mod node_secret_tests {
    use super::*;

    #[test]
    fn only_another_secret_is_a_change() {
        let secret = NodeSecret::new("one".into());
        let (before, all) = (secret.load(), secret.load_all());
        secret.set(&"one".into(), None);
        assert!(Arc::ptr_eq(&before, &secret.load()) && Arc::ptr_eq(&all, &secret.load_all()));
        secret.set(&"one".into(), Some(&" zero, ,nought".into()));
        assert!(Arc::ptr_eq(&before, &secret.load()) && !Arc::ptr_eq(&all, &secret.load_all()));
        assert_eq!(secret.load_all().previous[1].expose_secret(), "nought");
        secret.set(&"two".into(), Some(&"one".into()));
        assert_eq!(secret.load().expose_secret(), "two");
        assert!(!format!("{secret:?}").contains("two"));
    }
}
