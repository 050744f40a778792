//! The ledgers that were computed last, so that pages of one and its several views are computed
//! once.
//!
//! Used on the lane `ledger`, and by the main thread, which forgets large ones that nobody asks for
//! any more. The lock is held for a look-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::civil::Date;
use parking_lot::Mutex;

use crate::rt::arenas;
use crate::store::{AccountId, LedgerVersions};

/// Memory of all that are kept: one of the largest that is usual, or a hundred of 1,000 trades.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// A ledger that is large: its memory is worth giving back to the system.
const LARGE_BYTES: usize = 8 * 1024 * 1024;
/// A large ledger is forgotten after this time without use: who looks at pages of one asks within
/// seconds, and computing it anew takes half a second.
const UNUSED_MS: u64 = 60_000;

/// What a ledger was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BookKey {
    pub(super) user: AccountId,
    pub(super) versions: LedgerVersions,
    pub(super) today: Date,
    /// Of the prices of 31 January 2018.
    pub(super) fair_values: u64,
}

/// Computed ledgers.
pub(super) struct KeptBooks<B> {
    /// The one that was used last stands last.
    kept: Mutex<Vec<Kept<B>>>,
    bytes: AtomicUsize,
}

struct Kept<B> {
    key: BookKey,
    book: Arc<B>,
    bytes: usize,
    used_mono_ms: u64,
}

impl<B> Default for KeptBooks<B> {
    fn default() -> Self {
        Self {
            kept: Mutex::new(Vec::new()),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl<B> KeptBooks<B> {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn find(&self, key: BookKey, now_mono_ms: u64) -> Option<Arc<B>> {
        let mut kept = self.kept.lock();
        let at = kept.iter().position(|one| one.key == key)?;
        let mut found = kept.remove(at);
        found.used_mono_ms = now_mono_ms;
        let book = Arc::clone(&found.book);
        kept.push(found);
        Some(book)
    }

    /// Keeps a ledger of so many bytes in the place of others of its user, and of those unused for
    /// longest.
    pub(super) fn keep(&self, key: BookKey, book: &Arc<B>, bytes: usize, now_mono_ms: u64) {
        let mut kept = self.kept.lock();
        kept.retain(|one| one.key.user != key.user);
        kept.push(Kept {
            key,
            book: Arc::clone(book),
            bytes,
            used_mono_ms: now_mono_ms,
        });
        let mut all_bytes = kept.iter().map(|one| one.bytes).sum();
        while all_bytes > BYTES_MAX {
            all_bytes -= kept.remove(0).bytes;
        }
        self.bytes.store(all_bytes, Ordering::Relaxed);
        drop(kept);
        if bytes >= LARGE_BYTES {
            // What computing it took beside.
            arenas::give_back();
        }
    }

    /// Forgets large ledgers that were not used for a while, and gives their memory back.
    pub(super) fn forget_unused(&self, now_mono_ms: u64) {
        self.forget_large(|one| now_mono_ms.saturating_sub(one.used_mono_ms) >= UNUSED_MS);
    }

    /// Forgets a user's large ledger, before work that takes as much memory and after which it
    /// serves nobody: an import, or computing it of other versions.
    pub(super) fn make_room(&self, user: AccountId) {
        self.forget_large(|one| one.key.user == user);
    }

    fn forget_large(&self, is_asked_for: impl Fn(&Kept<B>) -> bool) {
        let forgotten: Vec<Kept<B>> = {
            let mut kept = self.kept.lock();
            let is_forgotten = |one: &mut Kept<B>| one.bytes >= LARGE_BYTES && is_asked_for(one);
            let forgotten = kept.extract_if(.., is_forgotten).collect();
            self.bytes
                .store(kept.iter().map(|one| one.bytes).sum(), Ordering::Relaxed);
            forgotten
        };
        if !forgotten.is_empty() {
            drop(forgotten);
            arenas::give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(user: i64) -> BookKey {
        let today = Date::constant(2026, 11, 20);
        let user = AccountId(user);
        BookKey {
            user,
            versions: LedgerVersions::default(),
            today,
            fair_values: 0,
        }
    }

    #[test]
    fn large_ledgers_are_forgotten_once_nobody_asks_for_them() {
        let kept = KeptBooks::default();
        let [small, large, newer] = [1, 2, 3].map(key);
        kept.keep(small, &Arc::new(()), LARGE_BYTES - 1, 0);
        kept.keep(large, &Arc::new(()), LARGE_BYTES, 0);
        kept.keep(newer, &Arc::new(()), LARGE_BYTES, 1);
        kept.forget_unused(UNUSED_MS - 1);
        assert!(kept.find(newer, UNUSED_MS - 1).is_some());
        kept.forget_unused(UNUSED_MS);
        assert_eq!(kept.bytes(), 2 * LARGE_BYTES - 1);
        let left = [small, large, newer].map(|key| kept.find(key, UNUSED_MS).is_some());
        assert_eq!(left, [true, false, true]);
    }

    #[test]
    fn a_users_large_ledger_makes_room_for_what_takes_its_place() {
        let kept = KeptBooks::default();
        let [own, others] = [1, 2].map(key);
        kept.keep(own, &Arc::new(()), LARGE_BYTES, 0);
        kept.keep(others, &Arc::new(()), LARGE_BYTES, 0);
        kept.make_room(own.user);
        assert_eq!((kept.find(own, 0).is_some(), kept.bytes()), (false, LARGE_BYTES));
        kept.keep(own, &Arc::new(()), LARGE_BYTES - 1, 0);
        kept.make_room(own.user);
        assert!(kept.find(own, 0).is_some() && kept.find(others, 0).is_some());
    }

    #[test]
    fn the_ones_unused_for_longest_make_room() {
        let kept = KeptBooks::default();
        let third = BYTES_MAX / 3;
        for user in 0..3 {
            kept.keep(key(user), &Arc::new(()), third, 0);
        }
        assert!(kept.find(key(0), 0).is_some());
        kept.keep(key(3), &Arc::new(()), third, 0);
        let left = [0, 1, 2, 3].map(|user| kept.find(key(user), 0).is_some());
        assert_eq!((left, kept.bytes()), ([true, false, true, true], 3 * third));
    }
}
