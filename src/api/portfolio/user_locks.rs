//! One change at a time per user: a sync or a deletion waits, parked, for the one before it.
//!
//! Runs on the edge. The lock is held for a look-up, never over a wait. A user may have few
//! requests waiting, each until its deadline; the user's lock is released when its handler ends.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::base::Clock;
use crate::ops::Counter;
use crate::rt::moving::Parker;

/// Requests of one user that may wait: both brokers' syncs pressed twice.
const WAITING_PER_USER_MAX: usize = 3;

/// Another request of the user is under way, and too many wait or this one waited too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded;

/// The locks of all users.
pub struct UserLocks {
    clock: Clock,
    /// Users whose lock is taken, with the requests that wait for it, oldest first.
    users: Mutex<HashMap<i64, VecDeque<Waiter>>>,
    /// Requests refused since the start, also those that waited for another node.
    pub refused: Counter,
}

struct Waiter {
    parker: Parker,
    /// Set under the lock.
    granted: Arc<AtomicBool>,
}

/// A user's lock. Dropping it passes it to the request that has waited longest.
pub struct UserLock<'a> {
    locks: &'a UserLocks,
    user: i64,
}

impl UserLocks {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            users: Mutex::default(),
            refused: Counter::new(),
        }
    }

    /// Takes the user's lock. Parks while another request has it, for at most `wait_ms`.
    ///
    /// # Errors
    /// [`Crowded`].
    pub fn take(&self, user: i64, wait_ms: u64) -> Result<UserLock<'_>, Crowded> {
        let Some((parker, granted)) = self.queue(user).inspect_err(|_| self.refused.increment())?
        else {
            return Ok(UserLock { locks: self, user });
        };
        let until_ms = self.clock.monotonic_ms().saturating_add(wait_ms);
        while !granted.load(Ordering::SeqCst) {
            let left_ms = until_ms.saturating_sub(self.clock.monotonic_ms());
            let in_time = left_ms > 0 && parker.park(left_ms);
            if !in_time && self.leave(user, &granted) {
                self.refused.increment();
                return Err(Crowded);
            }
        }
        Ok(UserLock { locks: self, user })
    }

    /// `None` if the lock was free and is now taken.
    fn queue(&self, user: i64) -> Result<Option<(Parker, Arc<AtomicBool>)>, Crowded> {
        let mut users = self.users.lock();
        let Some(waiting) = users.get_mut(&user) else {
            users.insert(user, VecDeque::new());
            return Ok(None);
        };
        if waiting.len() >= WAITING_PER_USER_MAX {
            return Err(Crowded);
        }
        let parker = Parker::current();
        let granted = Arc::new(AtomicBool::new(false));
        waiting.push_back(Waiter {
            parker: parker.clone(),
            granted: Arc::clone(&granted),
        });
        Ok(Some((parker, granted)))
    }

    /// Stops waiting; false if the lock was granted meanwhile.
    fn leave(&self, user: i64, granted: &Arc<AtomicBool>) -> bool {
        let mut users = self.users.lock();
        if granted.load(Ordering::SeqCst) {
            return false;
        }
        if let Some(waiting) = users.get_mut(&user) {
            waiting.retain(|waiter| !Arc::ptr_eq(&waiter.granted, granted));
        }
        true
    }

    /// Requests of all users that wait now.
    pub fn waiting(&self) -> usize {
        self.users.lock().values().map(VecDeque::len).sum()
    }
}

impl Drop for UserLock<'_> {
    fn drop(&mut self) {
        let mut users = self.locks.users.lock();
        let next = users.get_mut(&self.user).and_then(VecDeque::pop_front);
        match next {
            Some(waiter) => {
                waiter.granted.store(true, Ordering::SeqCst);
                drop(users);
                waiter.parker.unpark();
            }
            None => {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::rt::threads::spawn;

    #[test]
    fn a_lock_is_taken_by_one_request_after_the_other_per_user() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let first = locks.take(1, 0).unwrap();
        let other_user = locks.take(2, 0).unwrap();
        let (send, receive) = mpsc::channel();
        let inner = Arc::clone(&locks);
        crate::rt::coroutines::spawn(move || {
            let lock = inner.take(1, 60_000);
            send.send(lock.is_ok()).unwrap();
        })
        .unwrap();
        while locks.waiting() == 0 {
            std::thread::yield_now();
        }
        assert!(receive.try_recv().is_err());
        drop(first);
        assert!(receive.recv().unwrap());
        drop(other_user);
        while !locks.users.lock().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn waiting_ends_and_is_bounded() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let first = locks.take(1, 0).unwrap();
        assert!(locks.take(1, 0).is_err());
        assert!(locks.take(1, 20).is_err());
        assert_eq!((locks.waiting(), locks.refused.value()), (0, 2));
        let waiters: Vec<_> = (0..WAITING_PER_USER_MAX)
            .map(|_| {
                let locks = Arc::clone(&locks);
                spawn("waits", move || locks.take(1, 60_000).is_ok()).unwrap()
            })
            .collect();
        while locks.waiting() < WAITING_PER_USER_MAX {
            std::thread::yield_now();
        }
        assert!(locks.take(1, 60_000).is_err(), "one more than may wait");
        drop(first);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        assert!(locks.take(1, 0).is_ok());
    }

    #[test]
    fn no_two_hold_a_lock() {
        let locks = Arc::new(UserLocks::new(Clock::system()));
        let inside = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let locks = Arc::clone(&locks);
                let inside = Arc::clone(&inside);
                spawn("takes", move || {
                    let mut taken = 0;
                    while taken < 300 {
                        let Ok(_lock) = locks.take(1, 60_000) else {
                            continue;
                        };
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        assert!(inside.swap(false, Ordering::SeqCst));
                        taken += 1;
                    }
                })
                .unwrap()
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
}
