//! Which rows of a user's live holdings have moved since an earlier answer, so that a page left
//! open is sent these alone. Of an answer a hash of each row is kept, and nothing that could be
//! read. Any thread; the lock is held for look-ups alone.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::base::{BoundedMap, Broker};
use crate::store::AccountId;

/// Users whose last answers are known. Each has some KiB for 300 rows; whoever is evicted gets
/// everything once more.
const USERS_MAX: usize = 500;
/// Answers that are known of each: two tabs, and one that was late.
const ANSWERS_KEPT: usize = 4;

/// The rows of which user, and of which broker alone.
pub(super) type Whose = (AccountId, Option<Broker>);

/// A row of an answer: what names it, and its bytes.
pub(super) struct Row {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The answers that were given.
#[derive(Debug, Default)]
pub(crate) struct MovedRows {
    users: Mutex<Option<BoundedMap<Whose, Answers>>>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Answers {
    /// The newest is the last.
    kept: VecDeque<Answer>,
    used: u64,
}

#[derive(Debug)]
struct Answer {
    tag: String,
    /// The hash of each row by that of its name.
    rows: HashMap<u64, u64>,
}

impl MovedRows {
    /// Notes an answer, and tells which of its rows, by place, are not as in the answer `since`.
    /// `None` if that is not known any more, or had a row that is gone: then all are sent.
    pub(super) fn note(
        &self,
        whose: Whose,
        tag: &str,
        rows: &[Row],
        since: Option<&str>,
        now_mono_ms: u64,
    ) -> Option<HashSet<usize>> {
        let hashed = rows
            .iter()
            .map(|row| (self.hasher.hash_one(&row.name), self.hasher.hash_one(&row.bytes)));
        let hashed: Vec<(u64, u64)> = hashed.collect();
        let now: HashMap<u64, u64> = hashed.iter().copied().collect();
        // Rows of one name cannot be told apart.
        let are_named = now.len() == rows.len();
        let mut users = self.users.lock();
        let users = users.get_or_insert_with(|| BoundedMap::evicting_in_batches(USERS_MAX));
        let answers = users.or_insert_with(whose, |its| Some(its.used), Answers::default);
        answers.used = now_mono_ms;
        let before = answers
            .kept
            .iter()
            .find(|answer| Some(answer.tag.as_str()) == since);
        let moved = before
            .filter(|_| are_named)
            .and_then(|before| before.moved(&hashed, &now));
        if answers.kept.iter().all(|answer| answer.tag != tag) {
            if answers.kept.len() >= ANSWERS_KEPT {
                answers.kept.pop_front();
            }
            answers.kept.push_back(Answer {
                tag: tag.to_owned(),
                rows: now,
            });
        }
        moved
    }
}

impl Answer {
    fn moved(&self, rows: &[(u64, u64)], now: &HashMap<u64, u64>) -> Option<HashSet<usize>> {
        if !self.rows.keys().all(|name| now.contains_key(name)) {
            return None;
        }
        let is_new = |(name, bytes): &(u64, u64)| self.rows.get(name) != Some(bytes);
        Some(
            rows.iter()
                .enumerate()
                .filter(|(_, row)| is_new(row))
                .map(|(at, _)| at)
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASHA: Whose = (AccountId(1), None);

    fn rows(prices: &[(&str, u32)]) -> Vec<Row> {
        let row = |(name, price): &(&str, u32)| Row {
            name: (*name).to_owned(),
            bytes: price.to_string().into_bytes(),
        };
        prices.iter().map(row).collect()
    }

    fn noted(
        moved: &MovedRows,
        whose: Whose,
        tag: &str,
        prices: &[(&str, u32)],
        since: Option<&str>,
    ) -> Option<Vec<usize>> {
        let mut found: Vec<usize> = moved
            .note(whose, tag, &rows(prices), since, 1)?
            .into_iter()
            .collect();
        found.sort_unstable();
        Some(found)
    }

    #[test]
    fn rows_that_moved_and_new_ones_are_told_and_all_where_one_is_gone() {
        let moved = MovedRows::default();
        assert_eq!(noted(&moved, ASHA, "1", &[("a", 1), ("b", 2)], None), None);
        assert_eq!(noted(&moved, ASHA, "2", &[("a", 1), ("b", 3)], Some("1")), Some(vec![1]));
        assert_eq!(noted(&moved, ASHA, "2", &[("a", 1), ("b", 3)], Some("2")), Some(vec![]));
        let more = [("c", 9), ("a", 1), ("b", 3)];
        assert_eq!(noted(&moved, ASHA, "3", &more, Some("2")), Some(vec![0]));
        assert_eq!(noted(&moved, ASHA, "4", &[("a", 1)], Some("3")), None, "two are gone");
        assert_eq!(noted(&moved, ASHA, "5", &[("a", 1), ("a", 2)], Some("4")), None, "one name");
        assert_eq!(noted(&moved, ASHA, "6", &[("a", 1)], Some("unknown")), None);
        let of_b = (AccountId(1), Some(Broker::B));
        let other = (AccountId(2), None);
        for whose in [of_b, other] {
            assert_eq!(noted(&moved, whose, "7", &[("a", 1)], Some("6")), None, "of others");
        }
    }

    #[test]
    fn only_some_answers_of_some_users_are_known() {
        let moved = MovedRows::default();
        for number in 0..10 {
            noted(&moved, ASHA, &number.to_string(), &[("a", number)], None);
        }
        assert_eq!(noted(&moved, ASHA, "x", &[("a", 0)], Some("0")), None);
        assert_eq!(noted(&moved, ASHA, "x", &[("a", 9)], Some("9")), Some(vec![]));
        for user in 0..2 * USERS_MAX as i64 {
            noted(&moved, (AccountId(user), None), "1", &[("a", 1)], None);
        }
        assert!(moved.users.lock().as_ref().unwrap().len() <= USERS_MAX);
    }
}
