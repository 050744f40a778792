//! A signal that something has changed, from the thread that changes it to the thread that acts on
//! it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// A signal without content. Several changes before it is received count as one.
#[derive(Debug, Clone)]
pub struct News {
    sender: Sender<()>,
    receiver: Receiver<()>,
    gathered: Arc<Gathered>,
}

/// Number of [`Gathering`]s begun and ended.
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
    /// Signals a change. Never waits.
    pub(crate) fn tell(&self) {
        // The end of the gathering signals it too.
        if !self.is_gathering() {
            self.ring();
        }
    }

    /// Holds back all signals until the guard is dropped, and sends one then: for changes that
    /// belong together.
    pub(crate) fn gather(&self) -> Gathering<'_> {
        self.gathered.begun.fetch_add(1, Ordering::SeqCst);
        Gathering(self)
    }

    fn ring(&self) {
        // If the channel is full, a signal is pending already.
        let _ = self.sender.try_send(());
    }

    fn is_gathering(&self) -> bool {
        self.gathered.ended.load(Ordering::SeqCst) != self.begun()
    }

    /// Number of gatherings begun. If it has not changed, no other has begun.
    pub(crate) fn begun(&self) -> u64 {
        self.gathered.begun.load(Ordering::SeqCst)
    }

    /// Waits until changes that belong together are complete, at most for twice `limit`. Consumes
    /// the signal: the caller checks the state afterwards.
    pub(crate) fn settle(&self, limit: Duration) {
        for _ in 0..2 {
            if self.is_gathering() {
                // The first signal may be older than the gathering.
                self.wait(limit);
            }
        }
    }

    /// Whether the last signal was received.
    #[cfg(test)]
    pub(crate) fn is_heard(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Waits for a signal, at most for `limit`; false if none came.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        // The only failure is the timeout: this value keeps the other end.
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
