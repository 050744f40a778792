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

/// Most reads of [`News::read_whole`].
const READS_MAX: usize = 3;

/// Number of [`Gathering`]s begun and ended.
#[derive(Debug, Default)]
struct Gathered {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Default for News {
    fn default() -> Self {
        let (sender, receiver) = bounded(1);
        Self {
            sender,
            receiver,
            gathered: Arc::default(),
        }
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

    fn begun(&self) -> u64 {
        self.gathered.begun.load(Ordering::SeqCst)
    }

    /// Waits until changes that belong together are complete, at most for twice `limit`. The signal
    /// of their end stays.
    pub(crate) fn settle(&self, limit: Duration) {
        // The first signal may be older than the gathering.
        let waits = (0..2).filter(|_| self.is_gathering() && self.wait(limit));
        if waits.count() > 0 {
            self.ring();
        }
    }

    /// Reads a state that gatherings change, with all of a gathering or nothing of it. Reads again
    /// if another one began meanwhile; after [`READS_MAX`] reads the last one counts.
    pub(crate) fn read_whole<T>(&self, limit: Duration, mut read: impl FnMut() -> T) -> T {
        for _ in 1..READS_MAX {
            self.settle(limit);
            let begun = self.begun();
            let found = read();
            if self.begun() == begun {
                return found;
            }
        }
        self.settle(limit);
        read()
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
    fn a_read_in_whose_midst_a_gathering_began_is_done_again_and_its_end_is_still_told() {
        for (gatherings, reads) in [(0, 1), (1, 2), (2, 3), (9, READS_MAX)] {
            let news = News::default();
            let mut count = 0;
            let found = news.read_whole(Duration::from_millis(1), || {
                count += 1;
                if count <= gatherings {
                    drop(news.gather());
                }
                count
            });
            assert_eq!((found, count), (reads, reads), "{gatherings}");
            assert_eq!(news.wait(Duration::ZERO), gatherings > 0);
        }
        let news = News::default();
        let gathering = news.gather();
        let heard = news.clone();
        let reads = crate::rt::threads::spawn("reads", move || {
            heard.read_whole(Duration::from_secs(60), || heard.is_gathering())
        });
        drop(gathering);
        assert!(!reads.unwrap().join().unwrap());
        assert!(news.wait(Duration::ZERO), "the signal of its end is left");
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
