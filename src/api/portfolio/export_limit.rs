//! How many exports are made or sent at once.
//!
//! A permit is taken on the edge and weighed on the lane; the lock is held for a look-up. The
//! document holds it, and frees it when it is dropped, sent or not. So a client that reads slowly
//! keeps its own permit and has no second document.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use crate::ops::Counter;

/// Documents with more journal text than this are large. Nearly all users have less, so that few
/// have to wait if all permits for large ones are taken.
pub(super) const LARGE_BYTES: usize = 256 * 1024;

/// Most large documents being made or sent at once, of some ten MiB each. Limits their memory.
pub(super) const LARGE_AT_ONCE_MAX: usize = 4;

/// Longest wait for a document: four large ones ahead in the queue, and a slow disk.
const WAIT_MS: u64 = 15_000;

/// The user's last export is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Underway;

/// Too many large exports are not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

/// The exports that are being written or sent.
pub struct Exports {
    /// Whether each user's export is large.
    users: Mutex<HashMap<i64, bool>>,
    /// Exports refused since the start.
    pub refused: Counter,
    /// Longest wait for a document. Tests set a longer one: a busy machine makes the largest in
    /// half a minute.
    pub wait_ms: AtomicU64,
}

impl Default for Exports {
    fn default() -> Self {
        Self {
            users: Mutex::default(),
            refused: Counter::default(),
            wait_ms: AtomicU64::new(WAIT_MS),
        }
    }
}

/// One user's permit; dropping it gives it back.
pub(crate) struct ExportPermit {
    exports: Arc<Exports>,
    user: i64,
}

impl Exports {
    /// Takes the user's permit.
    ///
    /// # Errors
    /// [`Underway`].
    pub(crate) fn begin(self: &Arc<Self>, user: i64) -> Result<ExportPermit, Underway> {
        let mut users = self.users.lock();
        if users.contains_key(&user) {
            self.refused.increment();
            return Err(Underway);
        }
        users.insert(user, false);
        Ok(ExportPermit {
            exports: Arc::clone(self),
            user,
        })
    }

    /// Documents that are being made or written now.
    pub fn underway(&self) -> usize {
        self.users.lock().len()
    }
}

impl ExportPermit {
    /// Declares how much journal text the document will have.
    ///
    /// # Errors
    /// [`Crowded`] if the document is large and all permits for large ones are taken.
    pub(crate) fn weigh(&self, journal_bytes: usize) -> Result<(), Crowded> {
        if journal_bytes <= LARGE_BYTES {
            return Ok(());
        }
        let mut users = self.exports.users.lock();
        if users.values().filter(|large| **large).count() >= LARGE_AT_ONCE_MAX {
            self.exports.refused.increment();
            return Err(Crowded);
        }
        users.insert(self.user, true);
        Ok(())
    }
}

impl Drop for ExportPermit {
    fn drop(&mut self) {
        self.exports.users.lock().remove(&self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_one_permit() {
        let exports = Arc::new(Exports::default());
        let first = exports.begin(1).unwrap();
        assert_eq!(exports.begin(1).err(), Some(Underway));
        let other = exports.begin(2).unwrap();
        assert_eq!((exports.underway(), exports.refused.value()), (2, 1));
        drop(first);
        let again = exports.begin(1).unwrap();
        drop((other, again));
        assert_eq!(exports.underway(), 0);
    }

    #[test]
    fn large_ones_leave_room_for_small_ones() {
        let exports = Arc::new(Exports::default());
        let permit = |user: i64| exports.begin(user).unwrap();
        let mut large: Vec<ExportPermit> = (0..LARGE_AT_ONCE_MAX as i64).map(permit).collect();
        for permit in &large {
            permit.weigh(LARGE_BYTES + 1).unwrap();
        }
        let last = permit(99);
        assert_eq!(last.weigh(LARGE_BYTES + 1), Err(Crowded));
        assert_eq!((last.weigh(LARGE_BYTES), exports.refused.value()), (Ok(()), 1));
        drop(large.pop());
        assert_eq!(last.weigh(LARGE_BYTES + 1), Ok(()));
        drop((large, last));
        assert_eq!(exports.underway(), 0);
    }
}
