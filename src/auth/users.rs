//! Which accounts there are, in memory: a token of any other is refused.
//!
//! Read on the edge for each authenticated request, without a lock. Two bits for each id that was
//! ever seen: ids are given in order and never twice, so they lie close together.

use foldhash::fast::RandomState;
use papaya::HashMap;

use crate::store::AccountId;

const IDS_PER_WORD: i64 = u64::BITS as i64;

/// 64 ids in a row, a bit each.
#[derive(Clone, Copy, Default)]
struct Word {
    /// They were registered.
    known: u64,
    /// They were erased since, which is for good: a login that read the account before that cannot
    /// bring it back.
    gone: u64,
}

/// The set.
#[derive(Default)]
pub struct Users(HashMap<i64, Word, RandomState>);

fn place(id: AccountId) -> (i64, u64) {
    (id.0.div_euclid(IDS_PER_WORD), 1 << id.0.rem_euclid(IDS_PER_WORD))
}

/// Of the word at `at`, the bits of ids up to `last`.
fn up_to(last: AccountId, at: i64) -> u64 {
    let (word, bit) = place(last);
    match at.cmp(&word) {
        std::cmp::Ordering::Less => u64::MAX,
        std::cmp::Ordering::Equal => bit | (bit - 1),
        std::cmp::Ordering::Greater => 0,
    }
}

impl Users {
    /// Takes what the store has: all that there are, when `last` was the highest id ever given. Who
    /// is not among them is gone, but for ids that were given since.
    pub fn load(&self, users: &[AccountId], last: AccountId) {
        let mut there = std::collections::HashMap::<i64, u64>::new();
        for id in users {
            let (at, bit) = place(*id);
            *there.entry(at).or_default() |= bit;
        }
        let words = self.0.pin();
        for at in words.keys() {
            there.entry(*at).or_default();
        }
        for (at, known) in there {
            let gone = up_to(last, at) & !known;
            self.change(at, |word| Word { known: word.known | known, gone: word.gone | gone });
        }
    }

    /// One who has just been registered or read, unless they were erased meanwhile.
    pub fn add(&self, id: AccountId) {
        let (at, bit) = place(id);
        self.change(at, |word| Word { known: word.known | bit, ..word });
    }

    /// One who is gone.
    pub fn remove(&self, id: AccountId) {
        let (at, bit) = place(id);
        self.change(at, |word| Word { gone: word.gone | bit, ..word });
    }

    fn change(&self, at: i64, change: impl Fn(Word) -> Word) {
        self.0.pin().update_or_insert_with(at, |word| change(*word), || change(Word::default()));
    }

    pub fn has(&self, id: AccountId) -> bool {
        let (at, bit) = place(id);
        self.0.pin().get(&at).is_some_and(|word| word.known & !word.gone & bit != 0)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        let words = self.0.pin();
        words.values().map(|word| u64::from((word.known & !word.gone).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: impl IntoIterator<Item = i64>) -> Vec<AccountId> {
        ids.into_iter().map(AccountId).collect()
    }

    #[test]
    fn who_was_loaded_or_added_is_there_until_they_are_removed() {
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
    fn who_is_gone_does_not_come_back_by_a_login_that_began_before() {
        let users = Users::default();
        users.load(&ids([7]), AccountId(7));
        users.remove(AccountId(7));
        users.add(AccountId(7));
        assert!(!users.has(AccountId(7)));
        users.load(&ids([7]), AccountId(7));
        assert!(!users.has(AccountId(7)), "nor by a look at the store that began before");
    }

    /// As when a command has erased somebody beside the service.
    #[test]
    fn a_second_look_removes_who_is_not_there_any_more_and_nobody_who_came_since() {
        let users = Users::default();
        users.load(&ids([1, 2, 3, 70]), AccountId(70));
        users.add(AccountId(71));
        users.add(AccountId(200));
        users.load(&ids([1, 3]), AccountId(70));
        let there: Vec<i64> = (0..300).filter(|id| users.has(AccountId(*id))).collect();
        assert_eq!(there, [1, 3, 71, 200]);
    }
}
