//! The set of existing accounts, in memory; tokens of any other account are refused.
//!
//! Read on the edge for each authenticated request, without a lock. Takes two bits for each id ever
//! seen. Ids are given in order and never twice, so they are close together.

use foldhash::fast::RandomState;
use papaya::HashMap;

use crate::store::AccountId;

const IDS_PER_WORD: i64 = u64::BITS as i64;

/// 64 consecutive ids, a bit each.
#[derive(Clone, Copy, Default)]
struct Word {
    /// Registered.
    known: u64,
    /// Erased. Never cleared, so that a login that read the account before cannot bring it back.
    erased: u64,
}

/// The set of accounts.
#[derive(Default)]
pub(crate) struct Users(HashMap<i64, Word, RandomState>);

fn place(id: AccountId) -> (i64, u64) {
    (id.0.div_euclid(IDS_PER_WORD), 1 << id.0.rem_euclid(IDS_PER_WORD))
}

/// The bits of ids up to `last` in the word at `at`.
fn up_to(last: AccountId, at: i64) -> u64 {
    let (word, bit) = place(last);
    match at.cmp(&word) {
        std::cmp::Ordering::Less => u64::MAX,
        std::cmp::Ordering::Equal => bit | (bit - 1),
        std::cmp::Ordering::Greater => 0,
    }
}

impl Users {
    /// Takes over the store's accounts, read when `last` was the highest id ever given. Ids up to
    /// `last` that are not among them were erased.
    pub(crate) fn load(&self, users: &[AccountId], last: AccountId) {
        let mut stored = std::collections::HashMap::<i64, u64>::new();
        for id in users {
            let (at, bit) = place(*id);
            *stored.entry(at).or_default() |= bit;
        }
        if last.0 > 0 {
            stored.entry(place(last).0).or_default();
        }
        let words = self.0.pin();
        for at in words.keys() {
            stored.entry(*at).or_default();
        }
        for (at, known) in stored {
            let erased = up_to(last, at) & !known;
            self.change(at, |word| Word {
                known: word.known | known,
                erased: word.erased | erased,
            });
        }
    }

    /// Adds an account that was just registered or read; has no effect on an erased one.
    pub(crate) fn add(&self, id: AccountId) {
        let (at, bit) = place(id);
        self.change(at, |word| Word {
            known: word.known | bit,
            ..word
        });
    }

    /// Marks an account as erased.
    pub(crate) fn remove(&self, id: AccountId) {
        let (at, bit) = place(id);
        self.change(at, |word| Word {
            erased: word.erased | bit,
            ..word
        });
    }

    fn change(&self, at: i64, change: impl Fn(Word) -> Word) {
        self.0
            .pin()
            .update_or_insert_with(at, |word| change(*word), || change(Word::default()));
    }

    pub(crate) fn has(&self, id: AccountId) -> bool {
        let (at, bit) = place(id);
        self.0
            .pin()
            .get(&at)
            .is_some_and(|word| word.known & !word.erased & bit != 0)
    }

    /// Whether it was an account and is none any more.
    pub(crate) fn was_erased(&self, id: AccountId) -> bool {
        let (at, bit) = place(id);
        self.0
            .pin()
            .get(&at)
            .is_some_and(|word| word.erased & bit != 0)
    }

    /// Whether any account was ever known.
    pub(crate) fn knows_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Number of accounts.
    pub(crate) fn count(&self) -> u64 {
        let words = self.0.pin();
        words
            .values()
            .map(|word| u64::from((word.known & !word.erased).count_ones()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: impl IntoIterator<Item = i64>) -> Vec<AccountId> {
        ids.into_iter().map(AccountId).collect()
    }

    #[test]
    fn loaded_and_added_users_exist_until_they_are_removed() {
        let users = Users::default();
        assert!(!users.has(AccountId(1)));
        users.load(&ids([1, 63, 64, 65, 1_000]), AccountId(1_001));
        for id in [1, 63, 64, 65, 1_000] {
            assert!(users.has(AccountId(id)), "{id}");
        }
        for id in [-1, 0, 2, 62, 66, 999, 1_001, i64::MIN, i64::MAX] {
            assert!(!users.has(AccountId(id)), "{id}");
        }
        users.add(AccountId(1_002));
        users.remove(AccountId(64));
        assert!(users.has(AccountId(1_002)) && !users.has(AccountId(64)));
        assert_eq!(users.count(), 5);
    }

    #[test]
    fn an_erased_user_is_not_restored_by_a_login_that_began_before() {
        let users = Users::default();
        users.load(&ids([7]), AccountId(7));
        users.remove(AccountId(7));
        users.add(AccountId(7));
        assert!(!users.has(AccountId(7)));
        users.load(&ids([7]), AccountId(7));
        assert!(!users.has(AccountId(7)), "nor by a read of the store that began before");
    }

    /// The same as after a command has erased a user of the running service.
    #[test]
    fn a_reload_removes_users_missing_in_the_store_and_keeps_newer_ones() {
        let users = Users::default();
        users.load(&ids([1, 2, 3, 70]), AccountId(70));
        users.add(AccountId(71));
        users.add(AccountId(200));
        users.load(&ids([1, 3]), AccountId(70));
        let existing: Vec<i64> = (0..300).filter(|id| users.has(AccountId(*id))).collect();
        assert_eq!(existing, [1, 3, 71, 200]);
    }
}
