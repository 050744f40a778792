//! What is refused although its signature is good, in memory: logged-out tokens, users whose
//! password changed since, users that are gone.
//!
//! Read on the edge for each authenticated request, without a lock. Its size is what the store
//! keeps: records of tokens and erased users go when the last such token has expired.

use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use papaya::HashMap;

use super::tokens::{self, Verified};
use crate::store::{AccountId, Revocations};

/// Additions between two sweeps of what has expired: a sweep looks at every record, and so costs
/// each addition little.
const ADDITIONS_PER_SWEEP: usize = 1_024;

/// A write that the store gave up has happened by then, or never will: its queue drops what is
/// late, and a commit under way is a matter of a disk's worst second.
const DOUBT_MS: u64 = 60_000;

/// The sets.
#[derive(Default)]
pub struct Revoked {
    /// By token id: when it expires anyway, Unix milliseconds.
    tokens: HashMap<u128, i64, RandomState>,
    /// The least epoch that is good; users not here have not changed their password.
    epochs: HashMap<AccountId, i64, RandomState>,
    /// When the user's last token has expired, Unix milliseconds.
    erased: HashMap<AccountId, i64, RandomState>,
    /// Users of whom it is not known whether their epoch was raised, since when (monotonic).
    doubts: HashMap<AccountId, u64, RandomState>,
    additions: AtomicUsize,
}

impl Revoked {
    /// Adds what the store has.
    pub fn load(&self, stored: &Revocations) {
        let tokens = self.tokens.pin();
        for (spelled, expires_ms) in &stored.tokens {
            // What is not spelled like our ids can be no token's.
            if let Some(id) = tokens::token_id(spelled) {
                tokens.insert(id, *expires_ms);
            }
        }
        for (id, epoch) in &stored.epochs {
            self.raise(*id, *epoch);
        }
        let erased = self.erased.pin();
        for (id, forget_ms) in &stored.erased {
            erased.insert(*id, *forget_ms);
        }
    }

    /// Refuses one token from now on.
    pub fn token(&self, id: u128, expires_ms: i64, now_ms: i64) {
        self.tokens.pin().insert(id, expires_ms);
        self.sweep_now_and_then(now_ms);
    }

    /// Refuses the user's tokens of lower epochs; never lowers.
    pub fn raise(&self, id: AccountId, epoch: i64) {
        self.epochs.pin().update_or_insert(id, |known| (*known).max(epoch), epoch);
    }

    /// Refuses tokens below `epoch`, though it may turn out that the user's epoch is lower.
    pub fn doubt(&self, id: AccountId, epoch: i64, now_mono_ms: u64) {
        self.raise(id, epoch);
        self.doubts.pin().insert(id, now_mono_ms);
    }

    /// Takes the epoch that the store has for the truth, if there was a doubt and it is old enough.
    /// False while it is too early to know.
    pub fn settle(&self, id: AccountId, epoch: i64, now_mono_ms: u64) -> bool {
        let doubts = self.doubts.pin();
        match doubts.get(&id) {
            None => true,
            Some(since_ms) if now_mono_ms < since_ms + DOUBT_MS => false,
            Some(_) => {
                self.epochs.pin().insert(id, epoch);
                doubts.remove(&id);
                true
            }
        }
    }

    /// Refuses every token of a user that is gone.
    pub fn erased(&self, id: AccountId, forget_ms: i64, now_ms: i64) {
        self.erased.pin().insert(id, forget_ms);
        self.epochs.pin().remove(&id);
        self.sweep_now_and_then(now_ms);
    }

    /// Whether a token with a good signature is refused.
    pub fn refuses(&self, token: &Verified) -> bool {
        self.tokens.pin().contains_key(&token.token_id)
            || self.epochs.pin().get(&token.id).is_some_and(|least| token.epoch < *least)
            || self.erased.pin().contains_key(&token.id)
    }

    fn sweep_now_and_then(&self, now_ms: i64) {
        let before = self.additions.fetch_add(1, Ordering::Relaxed);
        if (before + 1).is_multiple_of(ADDITIONS_PER_SWEEP) {
            self.tokens.pin().retain(|_, expires_ms| *expires_ms > now_ms);
            self.erased.pin().retain(|_, forget_ms| *forget_ms > now_ms);
        }
    }

    /// Revoked tokens, users with an epoch, erased users.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.tokens.len(), self.epochs.len(), self.erased.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: i64, token_id: u128, epoch: i64) -> Verified {
        Verified { id: AccountId(id), token_id, expires_s: 100, epoch }
    }

    #[test]
    fn tokens_epochs_and_users_are_refused() {
        let revoked = Revoked::default();
        revoked.load(&Revocations {
            tokens: vec![(tokens::spelled(5), 100_000), ("garbage".into(), 1)],
            epochs: vec![(AccountId(2), 3)],
            erased: vec![(AccountId(3), 100_000)],
        });
        assert_eq!(revoked.sizes(), (1, 1, 1));
        assert!(revoked.refuses(&token(1, 5, 0)) && !revoked.refuses(&token(1, 6, 0)));
        assert!(revoked.refuses(&token(2, 1, 2)) && !revoked.refuses(&token(2, 1, 3)));
        assert!(revoked.refuses(&token(3, 1, 9)));
        revoked.token(6, 100_000, 0);
        assert!(revoked.refuses(&token(1, 6, 0)));
        revoked.raise(AccountId(2), 1);
        assert!(revoked.refuses(&token(2, 1, 2)), "an epoch never sinks");
        revoked.raise(AccountId(2), 4);
        assert!(revoked.refuses(&token(2, 1, 3)));
        revoked.erased(AccountId(1), 100_000, 0);
        assert!(revoked.refuses(&token(1, 7, 0)));
    }

    #[test]
    fn a_doubt_refuses_until_the_store_can_be_believed() {
        let revoked = Revoked::default();
        assert!(revoked.settle(AccountId(1), 0, 0));
        revoked.doubt(AccountId(1), 1, 1_000);
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(!revoked.settle(AccountId(1), 0, 1_000 + DOUBT_MS - 1));
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(revoked.settle(AccountId(1), 0, 1_000 + DOUBT_MS));
        assert!(!revoked.refuses(&token(1, 1, 0)), "the write never happened");
        assert!(revoked.settle(AccountId(1), 0, 0));
    }

    #[test]
    fn what_has_expired_is_dropped_and_nothing_else() {
        let revoked = Revoked::default();
        for at in 0..ADDITIONS_PER_SWEEP - 1 {
            revoked.token(at as u128, 1_000, 0);
        }
        assert_eq!(revoked.sizes().0, ADDITIONS_PER_SWEEP - 1);
        revoked.token(u128::MAX, 5_000, 1_000);
        assert_eq!(revoked.sizes().0, 1);
        assert!(revoked.refuses(&token(1, u128::MAX, 0)));
    }
}
