//! Endings that the store could not take: tokens, API keys and logins that a user has ended while
//! the disk was full or the database away.
//!
//! They are refused in memory from the moment of the request. The check of the store writes them as
//! soon as it can, and from then on the other nodes and a restarted service refuse them too. The
//! edge adds under a lock that is held only for that; the check's lane writes.

use parking_lot::Mutex;

use crate::ops::Counter;
use crate::store::{AccountId, StoreError};

/// Most endings that wait, in about a megabyte. What does not fit is refused until a restart.
const WAITING_MAX: usize = 10_000;

/// What a user has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Token {
        id: u128,
        expires_ms: i64,
    },
    Key {
        user: AccountId,
        id: String,
    },
    /// Every token of an account and, with `keys`, every API key.
    Account {
        user: AccountId,
        keys: bool,
    },
}

/// The endings that wait for the store.
#[derive(Default)]
pub(crate) struct Endings {
    waiting: Mutex<Vec<Ending>>,
    /// Endings that did not fit.
    pub(crate) dropped: Counter,
}

impl Endings {
    /// Adds an ending, unless it waits already.
    pub(super) fn add(&self, ending: Ending) {
        let mut waiting = self.waiting.lock();
        if waiting.contains(&ending) {
            return;
        }
        if waiting.len() >= WAITING_MAX {
            self.dropped.increment();
            return;
        }
        waiting.push(ending);
    }

    /// Writes what waits, in order, until one fails. Returns how many were written.
    pub(super) fn write(&self, mut write: impl FnMut(&Ending) -> Result<(), StoreError>) -> usize {
        let mut written = 0;
        loop {
            let Some(next) = self.waiting.lock().first().cloned() else {
                return written;
            };
            match write(&next) {
                // Erased meanwhile, and with it everything that was to be ended.
                Ok(()) | Err(StoreError::NoSuchUser) => written += 1,
                Err(error) => {
                    tracing::debug!(%error, "ended tokens and keys not written; they wait");
                    return written;
                }
            }
            self.waiting.lock().retain(|waits| *waits != next);
        }
    }
}

/// Whether the store may not have made a change that it was asked for.
pub(super) fn is_unwritten(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy | StoreError::Late | StoreError::Unavailable(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Ending {
        Ending::Key {
            user: AccountId(1),
            id: number.to_string(),
        }
    }

    #[test]
    fn endings_wait_in_order_once_each_until_they_are_written() {
        let endings = Endings::default();
        [1, 2, 1, 3]
            .into_iter()
            .for_each(|number| endings.add(key(number)));
        let unavailable = || Err(StoreError::Unavailable("full".into()));
        assert_eq!(endings.write(|_| unavailable()), 0);
        let mut seen = Vec::new();
        let some = |ending: &Ending| {
            seen.push(ending.clone());
            if *ending == key(3) {
                unavailable()
            } else {
                Ok(())
            }
        };
        assert_eq!(endings.write(some), 2);
        assert_eq!(seen, [key(1), key(2), key(3)]);
        assert_eq!(endings.write(|_| Err(StoreError::NoSuchUser)), 1);
        assert_eq!(endings.write(|_| unreachable!("none is left")), 0);
    }

    #[test]
    fn their_number_is_bounded() {
        let endings = Endings::default();
        (0..WAITING_MAX + 2).for_each(|number| endings.add(key(number)));
        assert_eq!(endings.dropped.value(), 2);
        assert_eq!(endings.write(|_| Ok(())), WAITING_MAX);
    }
}
