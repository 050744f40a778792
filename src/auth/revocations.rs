//! Tokens that are refused although correctly signed: logged-out ones, those from before a change
//! of password, and those of accounts that do not exist. In memory.
//!
//! Read on the edge for each authenticated request, without a lock. Its size is bounded by the
//! store's: a revoked token is dropped once it has certainly expired.

use std::sync::Arc;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use papaya::HashMap;

use crate::auth::token_epochs::Users;
use crate::auth::tokens;
use crate::auth::tokens::Verified;
use crate::store::{AccountId, AuthState, Change};

/// After this time a write that timed out has either happened or never will: the store's queue
/// drops late writes, and even a slow commit takes only seconds.
const UNCERTAIN_MS: u64 = 60_000;

/// The low bits of an epoch are random; the bits above count up (`CHANGE_PASSWORD` in
/// `store/accounts.rs`).
const EPOCH_CHANCE_BITS: u32 = 32;

/// Judgement of a correctly signed token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// Refused for good.
    Refused,
    /// The account or the epoch is not known here. Another node may have made it just now.
    Unknown,
}

/// The revocations. All are replaced if the database has another past than before.
#[derive(Default)]
pub(crate) struct Revocations(ArcSwap<Known>);

#[derive(Default)]
struct Known {
    users: Users,
    /// Revoked tokens by id, each with its expiry in Unix milliseconds.
    tokens: HashMap<u128, i64, RandomState>,
    /// The valid token epoch of each user. Users of an older program who never changed their
    /// password are missing and have epoch 0.
    epochs: HashMap<AccountId, i64, RandomState>,
    /// Users for whom it is not known whether a write raised their epoch, and since when
    /// (monotonic).
    uncertain: HashMap<AccountId, u64, RandomState>,
    /// Users who have ended all their tokens, which the store could not take yet: those that expire
    /// up to this time, Unix seconds, are refused.
    ended: HashMap<AccountId, i64, RandomState>,
}

impl Revocations {
    /// Never inlined, so that the compiler cannot keep the address of arc-swap's thread-local
    /// across a suspension point of the caller.
    #[inline(never)]
    fn known(&self) -> Arc<Known> {
        self.0.load_full()
    }

    /// Replaces everything by the state in the store.
    pub(crate) fn replace(&self, stored: &AuthState) {
        let fresh = Self::default();
        fresh.load(stored);
        self.0.store(fresh.known());
    }

    /// Adds the state in the store.
    pub(crate) fn load(&self, stored: &AuthState) {
        let known = self.known();
        known.users.load(&stored.users, stored.last_user);
        let tokens = known.tokens.pin();
        for (spelled, expires_ms) in &stored.revoked_tokens {
            // A text in another form than our ids cannot be a token's id.
            if let Some(id) = tokens::token_id(spelled) {
                tokens.insert(id, *expires_ms);
            }
        }
        for (id, epoch) in &stored.epochs {
            self.raise(*id, *epoch);
        }
    }

    /// Revokes one token.
    pub(crate) fn token(&self, id: u128, expires_ms: i64) {
        self.known().tokens.pin().insert(id, expires_ms);
    }

    /// Records that the store returned this account with this epoch.
    pub(crate) fn seen(&self, id: AccountId, epoch: i64) {
        self.known().users.add(id);
        if epoch > 0 {
            self.raise(id, epoch);
        }
    }

    /// Sets the user's valid epoch, unless a higher one is known.
    pub(crate) fn raise(&self, id: AccountId, epoch: i64) {
        self.known()
            .epochs
            .pin()
            .update_or_insert(id, |known| (*known).max(epoch), epoch);
    }

    /// Refuses tokens of `epoch`, because a write that raises it timed out and may still happen.
    pub(crate) fn mark_uncertain(&self, id: AccountId, epoch: i64, now_mono_ms: u64) {
        // Not above any epoch that the write may set.
        let next = ((epoch >> EPOCH_CHANCE_BITS) + 1) << EPOCH_CHANCE_BITS;
        self.raise(id, next);
        self.known().uncertain.pin().insert(id, now_mono_ms);
    }

    /// Takes the store's `epoch` as final, if it was uncertain for long enough. False while it is
    /// too early to know.
    pub(crate) fn resolve(&self, id: AccountId, epoch: i64, now_mono_ms: u64) -> bool {
        let known = self.known();
        let uncertain = known.uncertain.pin();
        match uncertain.get(&id) {
            None => true,
            Some(since_ms) if now_mono_ms < since_ms + UNCERTAIN_MS => false,
            Some(_) => {
                known.epochs.pin().insert(id, epoch);
                uncertain.remove(&id);
                true
            }
        }
    }

    /// Refuses the user's tokens that expire up to `expires_s`, until [`settle`](Self::settle).
    pub(crate) fn end_all(&self, id: AccountId, expires_s: i64) {
        self.known()
            .ended
            .pin()
            .update_or_insert(id, |known| (*known).max(expires_s), expires_s);
    }

    /// Takes the `epoch` that the store has given the user when it ended all their tokens.
    pub(crate) fn settle(&self, id: AccountId, epoch: i64) {
        self.seen(id, epoch);
        let known = self.known();
        known.ended.pin().remove(&id);
        known.uncertain.pin().remove(&id);
    }

    /// Refuses every token of an erased user.
    pub(crate) fn erased(&self, id: AccountId) {
        let known = self.known();
        known.users.remove(id);
        known.epochs.pin().remove(&id);
    }

    /// Judges a correctly signed token.
    pub(crate) fn judge(&self, token: &Verified) -> Verdict {
        let known = self.known();
        let epoch = known.epochs.pin().get(&token.id).copied().unwrap_or(0);
        if known.users.was_erased(token.id)
            || token.epoch < epoch
            || known
                .ended
                .pin()
                .get(&token.id)
                .is_some_and(|end_s| token.expires_s <= *end_s)
            || known.tokens.pin().contains_key(&token.token_id)
        {
            Verdict::Refused
        } else if !known.users.has(token.id) || token.epoch > epoch {
            Verdict::Unknown
        } else {
            Verdict::Good
        }
    }

    /// Applies a change. The order and repetitions do not matter. False if this program does not
    /// know the change.
    pub(crate) fn apply(&self, change: &Change) -> bool {
        match change {
            Change::Account { id, epoch } => self.seen(*id, *epoch),
            Change::Erased { id } => self.erased(*id),
            Change::Revoked {
                token_id,
                expires_ms,
            } => {
                if let Some(id) = tokens::token_id(token_id) {
                    self.token(id, *expires_ms);
                }
            }
            Change::Unknown => return false,
        }
        true
    }

    /// Drops revoked tokens that expired at or before this time.
    pub(crate) fn forget(&self, before_ms: i64) {
        self.known()
            .tokens
            .pin()
            .retain(|_, expires_ms| *expires_ms > before_ms);
    }

    /// Whether there is or was any user.
    pub(crate) fn knows_any(&self) -> bool {
        self.known().users.knows_any()
    }

    /// Number of users, of users with an epoch, and of revoked tokens.
    pub(crate) fn sizes(&self) -> (u64, usize, usize) {
        let known = self.known();
        (known.users.count(), known.epochs.len(), known.tokens.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Revocations {
        fn refuses(&self, token: &Verified) -> bool {
            self.judge(token) != Verdict::Good
        }
    }

    fn token(id: i64, token_id: u128, epoch: i64) -> Verified {
        Verified {
            id: AccountId(id),
            token_id,
            expires_s: 100,
            epoch,
        }
    }

    fn loaded() -> Revocations {
        let revoked = Revocations::default();
        revoked.load(&AuthState {
            users: vec![AccountId(1), AccountId(2)],
            last_user: AccountId(3),
            epochs: vec![(AccountId(2), 3)],
            revoked_tokens: vec![(tokens::spelled(5), 100_000), ("garbage".into(), 1)],
            ..AuthState::default()
        });
        revoked
    }

    #[test]
    fn revoked_tokens_old_epochs_and_unknown_users_are_refused() {
        let revoked = loaded();
        assert_eq!(revoked.sizes(), (2, 1, 1));
        assert!(revoked.refuses(&token(1, 5, 0)) && !revoked.refuses(&token(1, 6, 0)));
        assert!(revoked.refuses(&token(2, 1, 2)) && !revoked.refuses(&token(2, 1, 3)));
        assert!(revoked.refuses(&token(3, 1, 0)), "erased");
        assert!(revoked.refuses(&token(4, 1, 0)), "never registered");
        revoked.token(6, 100_000);
        assert!(revoked.refuses(&token(1, 6, 0)));
        revoked.seen(AccountId(4), 0);
        assert!(!revoked.refuses(&token(4, 1, 0)));
        revoked.erased(AccountId(4));
        revoked.seen(AccountId(4), 0);
        assert!(revoked.refuses(&token(4, 1, 0)));
    }

    #[test]
    fn exactly_one_epoch_is_valid_and_it_never_decreases() {
        let revoked = loaded();
        revoked.raise(AccountId(2), 1);
        assert!(!revoked.refuses(&token(2, 1, 3)), "an epoch never sinks");
        revoked.raise(AccountId(2), 7);
        assert!(revoked.refuses(&token(2, 1, 3)) && !revoked.refuses(&token(2, 1, 7)));
        // Epochs that a restored database does not know.
        assert!(revoked.refuses(&token(2, 1, 8)) && revoked.refuses(&token(1, 1, 1)));
        // A login that read the store before the change.
        revoked.seen(AccountId(2), 3);
        assert!(revoked.refuses(&token(2, 1, 3)) && !revoked.refuses(&token(2, 1, 7)));
    }

    #[test]
    fn an_uncertain_epoch_refuses_tokens_until_it_is_resolved() {
        let revoked = loaded();
        assert!(revoked.resolve(AccountId(1), 0, 0));
        revoked.mark_uncertain(AccountId(1), 0, 1_000);
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(!revoked.resolve(AccountId(1), 0, 1_000 + UNCERTAIN_MS - 1));
        assert!(revoked.refuses(&token(1, 1, 0)));
        assert!(revoked.resolve(AccountId(1), 0, 1_000 + UNCERTAIN_MS));
        assert!(!revoked.refuses(&token(1, 1, 0)), "the write never happened");
        assert!(revoked.resolve(AccountId(1), 0, 0));
        // The write has happened.
        revoked.mark_uncertain(AccountId(1), 0, 1_000);
        let given = (1 << EPOCH_CHANCE_BITS) + 77;
        assert!(revoked.resolve(AccountId(1), given, 1_000 + UNCERTAIN_MS));
        assert!(revoked.refuses(&token(1, 1, 0)) && !revoked.refuses(&token(1, 1, given)));
    }

    #[test]
    fn tokens_of_before_are_refused_until_the_store_has_ended_them() {
        let revoked = loaded();
        revoked.end_all(AccountId(1), 100);
        assert!(revoked.refuses(&token(1, 1, 0)) && !revoked.refuses(&token(2, 1, 3)));
        let later = Verified {
            expires_s: 101,
            ..token(1, 1, 0)
        };
        assert!(!revoked.refuses(&later), "a login of afterwards");
        revoked.end_all(AccountId(1), 90);
        assert!(revoked.refuses(&token(1, 1, 0)));
        revoked.mark_uncertain(AccountId(1), 0, 1_000);
        let given = (1 << EPOCH_CHANCE_BITS) + 77;
        revoked.settle(AccountId(1), given);
        assert!(revoked.refuses(&token(1, 1, 0)) && revoked.refuses(&later));
        assert!(!revoked.refuses(&token(1, 1, given)));
        assert!(revoked.resolve(AccountId(1), given, 1_001), "nothing is uncertain any more");
    }

    #[test]
    fn what_another_node_may_have_made_is_not_refused_for_good() {
        let revoked = loaded();
        for (id, epoch, expected) in [
            (1, 0, Verdict::Good),
            (1, 1, Verdict::Unknown),
            (2, 2, Verdict::Refused),
            (2, 4, Verdict::Unknown),
            (3, 0, Verdict::Refused),
            (3, 9, Verdict::Refused),
            (4, 0, Verdict::Unknown),
            (4, 7, Verdict::Unknown),
        ] {
            assert_eq!(revoked.judge(&token(id, 6, epoch)), expected, "{id} {epoch}");
        }
        assert_eq!(revoked.judge(&token(4, 5, 0)), Verdict::Refused, "it is revoked");
    }

    #[test]
    fn changes_have_the_same_effect_in_any_order_and_twice() {
        let two = AccountId(2);
        let four = AccountId(4);
        let changes = [
            Change::Account { id: four, epoch: 0 },
            Change::Account { id: two, epoch: 7 },
            Change::Account { id: two, epoch: 8 },
            Change::Revoked {
                token_id: tokens::spelled(6),
                expires_ms: 100_000,
            },
            Change::Revoked {
                token_id: "garbage".into(),
                expires_ms: 100_000,
            },
            Change::Erased { id: four },
        ];
        for backwards in [false, true] {
            let revoked = loaded();
            for _ in 0..2 {
                let all: Vec<&Change> = match backwards {
                    false => changes.iter().collect(),
                    true => changes.iter().rev().collect(),
                };
                assert!(all.into_iter().all(|change| revoked.apply(change)));
                assert_eq!(revoked.judge(&token(4, 1, 0)), Verdict::Refused);
                assert_eq!(revoked.judge(&token(2, 1, 7)), Verdict::Refused);
                assert_eq!(revoked.judge(&token(2, 1, 8)), Verdict::Good);
                assert_eq!(revoked.judge(&token(1, 6, 0)), Verdict::Refused);
            }
        }
        assert!(!loaded().apply(&Change::Unknown));
    }

    #[test]
    fn what_is_replaced_knows_nothing_of_another_past() {
        let revoked = loaded();
        revoked.seen(AccountId(4), 9);
        revoked.erased(AccountId(1));
        let users = vec![AccountId(1), AccountId(4)];
        let epochs = vec![(AccountId(1), 5), (AccountId(4), 6)];
        let stored = AuthState {
            users,
            epochs,
            last_user: AccountId(4),
            ..AuthState::default()
        };
        revoked.replace(&stored);
        assert_eq!(revoked.judge(&token(1, 5, 5)), Verdict::Good, "erased in the other past");
        assert_eq!(revoked.judge(&token(4, 1, 6)), Verdict::Good, "with a lower epoch");
        assert_eq!(revoked.judge(&token(2, 1, 3)), Verdict::Refused);
        assert_eq!(revoked.sizes(), (2, 2, 0));
    }

    #[test]
    fn only_expired_revocations_are_dropped() {
        let revoked = loaded();
        revoked.token(6, 100_001);
        revoked.forget(100_000);
        assert!(!revoked.refuses(&token(1, 5, 0)) && revoked.refuses(&token(1, 6, 0)));
        assert_eq!(revoked.sizes().2, 1);
    }
}
