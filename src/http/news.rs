//! The news that published content has changed, from who publishes to who wakes the streams.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

/// A bell. A second change before somebody has listened is the same news.
#[derive(Debug, Clone)]
pub struct News {
    sender: Sender<()>,
    receiver: Receiver<()>,
}

impl Default for News {
    fn default() -> Self {
        let (sender, receiver) = bounded(1);
        Self { sender, receiver }
    }
}

impl News {
    /// Says that something has changed. Never waits.
    pub fn tell(&self) {
        // Full: the same is said already.
        let _ = self.sender.try_send(());
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
