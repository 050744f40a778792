//! What is refused although its signature is good, in memory: logged-out tokens, tokens of before a
//! password's change, tokens of users that are not there.
//!
//! Read on the edge for each authenticated request, without a lock. Its size is what the store
//! keeps: records of tokens go when these have expired for certain.

use foldhash::fast::RandomState;
use papaya::HashMap;

use super::tokens::{self, Verified};
use super::users::Users;
use crate::store::{AccountId, AuthState};

/// A write that the store gave up has happened by then, or never will: its queue drops what is
/// late, and a commit under way is a matter of a disk's worst second.
const DOUBT_MS: u64 = 60_000;

/// An epoch counts up above as many bits of chance (`sql/store/change_password.sql`).
const EPOCH_CHANCE_BITS: u32 = 32;

/// The sets.
#[derive(Default)]
pub struct Revocations {
    users: Users,
    /// By token id: when it expires anyway, Unix milliseconds.
    tokens: HashMap<u128, i64, RandomState>,
    /// The one epoch that is good; users not here have not changed their password, which is epoch
    /// zero.
    epochs: HashMap<AccountId, i64, RandomState>,
    /// Users of whom it is not known whether their epoch was raised, since when (monotonic).
    doubts: HashMap<AccountId, u64, RandomState>,
}

impl Revocations {
    /// Takes what the store has.
    pub fn load(&self, stored: &AuthState) {
        self.users.load(&stored.users, stored.last_user);
        let tokens = self.tokens.pin();
        for (spelled, expires_ms) in &stored.revoked_tokens {
            // What is not spelled like our ids can be no token's.
            if let Some(id) = tokens::token_id(spelled) {
                tokens.insert(id, *expires_ms);
            }
        }
        for (id, epoch) in &stored.epochs {
            self.raise(*id, *epoch);
        }
    }

    /// Refuses one token from now on.
    pub fn token(&self, id: u128, expires_ms: i64) {
        self.tokens.pin().insert(id, expires_ms);
    }

    /// A user whose account the store has just shown, with this epoch.
    pub fn seen(&self, id: AccountId, epoch: i64) {
        self.users.add(id);
        if epoch > 0 {
            self.raise(id, epoch);
        }
    }

    /// Refuses the user's tokens of other epochs, unless a higher one is known.
    pub fn raise(&self, id: AccountId, epoch: i64) {
        self.epochs.pin().update_or_insert(id, |known| (*known).max(epoch), epoch);
    }

    /// Refuses tokens of `epoch`, though it may turn out that it is still the user's.
    pub fn doubt(&self, id: AccountId, epoch: i64, now_mono_ms: u64) {
        // At most as high as any that the store may have given.
        let next = ((epoch >> EPOCH_CHANCE_BITS) + 1) << EPOCH_CHANCE_BITS;
        self.raise(id, next);
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
    pub fn erased(&self, id: AccountId) {
        self.users.remove(id);
        self.epochs.pin().remove(&id);
    }

    /// Whether a token with a good signature is refused.
    pub fn refuses(&self, token: &Verified) -> bool {
        !self.users.has(token.id)
            || self.epochs.pin().get(&token.id).copied().unwrap_or(0) != token.epoch
            || self.tokens.pin().contains_key(&token.token_id)
    }

    /// Drops tokens that had expired before.
    pub fn forget(&self, before_ms: i64) {
        self.tokens.pin().retain(|_, expires_ms| *expires_ms > before_ms);
    }

    /// Users, those with an epoch, revoked tokens.
    pub fn sizes(&self) -> (u64, usize, usize) {
        (self.users.count(), self.epochs.len(), self.tokens.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: i64, token_id: u128, epoch: i64) -> Verified {
        Verified { id: AccountId(id), token_id, expires_s: 100, epoch }
    }

    fn loaded() -> Revocations {
        let revoked = Revocations::default();
        revoked.load(&AuthState {
            database_id: String::new(),
            users: vec![AccountId(1), AccountId(2)],
            last_user: AccountId(3),
            epochs: vec![(AccountId(2), 3)],
            revoked_tokens: vec![(tokens::spelled(5), 100_000), ("garbage".into(), 1)],
        });
        revoked
    }

    #[test]
    fn tokens_epochs_and_users_are_refused() {
        let revoked = loaded();
        assert_eq!(revoked.sizes(), (2, 1, 1));
        assert!(revoked.refuses(&token(1, 5, 0)) && !revoked.refuses(&token(1, 6, 0)));
        assert!(revoked.refuses(&token(2, 1, 2)) && !revoked.refuses(&token(2, 1, 3)));
        assert!(revoked.refuses(&token(3, 1, 0)), "gone");
        assert!(revoked.refuses(&token(4, 1, 0)), "never there");
        revoked.token(6, 100_000);
        assert!(revoked.refuses(&token(1, 6, 0)));
        revoked.seen(AccountId(4), 0);
        assert!(!revoked.refuses(&token(4, 1, 0)));
        revoked.erased(AccountId(4));
        revoked.seen(AccountId(4), 0);
        assert!(revoked.refuses(&token(4, 1, 0)));
    }

    #[test]
    fn one_epoch_is_good_and_no_other_whatever_came_before() {
        let revoked = loaded();
        revoked.raise(AccountId(2), 1);
        assert!(!revoked.refuses(&token(2, 1, 3)), "an epoch never sinks");
        revoked.raise(AccountId(2), 7);
        assert!(revoked.refuses(&token(2, 1, 3)) && !revoked.refuses(&token(2, 1, 7)));
        // Of a past that the database does not know any more.
        assert!(revoked.refuses(&token(2, 1, 8)) && revoked.refuses(&token(1, 1, 1)));
        // A login that read the store before the change.
        revoked.seen(AccountId(2), 3);
        assert!(revoked.refuses(&token(2, 1, 3)) && !revoked.refuses(&token(2, 1, 7)));
    }

    #[test]
    fn a_doubt_refuses_until_the_store_can_be_believed() {
        let revoked = loaded();
        assert!(revoked.settle(AccountId(1), 0, 0));
        revoked.doubt(AccountId(1), 0, 1_000);
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(!revoked.settle(AccountId(1), 0, 1_000 + DOUBT_MS - 1));
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(revoked.settle(AccountId(1), 0, 1_000 + DOUBT_MS));
        assert!(!revoked.refuses(&token(1, 1, 0)), "the write never happened");
        assert!(revoked.settle(AccountId(1), 0, 0));
        // Or it did.
        revoked.doubt(AccountId(1), 0, 1_000);
        let given = (1 << EPOCH_CHANCE_BITS) + 77;
        assert!(revoked.settle(AccountId(1), given, 1_000 + DOUBT_MS));
        assert!(revoked.refuses(&token(1, 1, 0)) && !revoked.refuses(&token(1, 1, given)));
    }

    #[test]
    fn what_has_expired_is_dropped_and_nothing_else() {
        let revoked = loaded();
        revoked.token(6, 100_001);
        revoked.forget(100_000);
        assert!(!revoked.refuses(&token(1, 5, 0)) && revoked.refuses(&token(1, 6, 0)));
        assert_eq!(revoked.sizes().2, 1);
    }
}
