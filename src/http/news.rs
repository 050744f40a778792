//! The news that published content has changed, from who publishes to who wakes the streams.

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

    /// Waits until something has changed.
    pub(crate) fn wait(&self) {
        // Cannot fail: this value keeps the other end.
        let _ = self.receiver.recv();
    }
}
