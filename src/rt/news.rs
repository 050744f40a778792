//! The news that something has changed, from who changes it to the thread that acts on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// A bell. A second change before somebody has listened is the same news.
#[derive(Debug, Clone)]
pub struct News {
    sender: Sender<()>,
    receiver: Receiver<()>,
    gathered: Arc<Gathered>,
}

/// How many [`Gathering`]s have begun and ended.
#[derive(Debug, Default)]
struct Gathered {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Default for News {
    fn default() -> Self {
        let (sender, receiver) = bounded(1);
        Self { sender, receiver, gathered: Arc::default() }
    }
}

impl News {
    /// Says that something has changed. Never waits.
    pub(crate) fn tell(&self) {
        // Its end tells this as well.
        if !self.is_gathering() {
            self.ring();
        }
    }

    /// Holds back all news until the guard is dropped, and tells them then: for changes that belong
    /// together.
    pub(crate) fn gather(&self) -> Gathering<'_> {
        self.gathered.begun.fetch_add(1, Ordering::SeqCst);
        Gathering(self)
    }

    fn ring(&self) {
        // Full: the same is said already.
        let _ = self.sender.try_send(());
    }

    fn is_gathering(&self) -> bool {
        self.gathered.ended.load(Ordering::SeqCst) != self.begun()
    }

    /// How often changes were gathered. While it stays the same, no others have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.gathered.begun.load(Ordering::SeqCst)
    }

    /// Waits until changes that belong together are all there, at most for twice `limit`. Whoever
    /// listens looks afterwards, so it takes the news with it.
    pub(crate) fn settle(&self, limit: Duration) {
        for _ in 0..2 {
            if self.is_gathering() {
                // The first news may be from before.
                self.wait(limit);
            }
        }
    }

    /// Somebody has taken the last news.
    #[cfg(test)]
    pub(crate) fn is_heard(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Waits until something has changed, at most for `limit`; false if nothing has.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        // The only failure is that the time is over: this value keeps the other end.
        self.receiver.recv_timeout(limit).is_ok()
    }
}

/// Changes that belong together; see [`News::gather`].
#[derive(Debug)]
pub(crate) struct Gathering<'a>(&'a News);

impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        self.0.gathered.ended.fetch_add(1, Ordering::SeqCst);
        self.0.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_of_what_is_gathered_are_told_at_its_end_and_once() {
        let news = News::default();
        news.tell();
        news.tell();
        assert!(news.wait(Duration::ZERO) && !news.wait(Duration::ZERO));
        let gathering = news.gather();
        news.tell();
        assert!(!news.wait(Duration::ZERO), "more is to come");
        news.settle(Duration::from_millis(1));
        drop(gathering);
        assert!(news.wait(Duration::ZERO) && !news.wait(Duration::ZERO));
        news.settle(Duration::from_secs(3_600));
        assert_eq!(news.begun(), 1);
    }

    #[test]
    fn settling_waits_for_the_end_although_older_news_are_there() {
        let news = News::default();
        news.tell();
        let gathering = news.gather();
        let heard = news.clone();
        let waits = crate::rt::threads::spawn("settles", move || {
            heard.settle(Duration::from_secs(60));
            heard.is_gathering()
        });
        while !news.is_heard() {
            std::thread::yield_now();
        }
        drop(gathering);
        assert!(!waits.unwrap().join().unwrap());
    }
}
