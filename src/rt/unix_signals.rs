//! Unix signals. The main thread waits for them with a timeout and does its periodic work in
//! between.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// The effect of SIGHUP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// Reloads the settings: for the service.
    Reloads,
    /// Ends the process: for a command in a terminal, which was closed.
    Ends,
}

/// The request that a signal makes to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// End the process; holds the signal's number.
    End(i32),
    /// Reload the settings.
    Reload,
}

/// The handled signals. Created before anything else starts, so that none is missed.
pub(crate) struct Signals {
    /// Becomes readable with each signal.
    wake: UnixStream,
    /// Number of the last signal that asked the process to end; 0 if none did.
    end: Arc<AtomicUsize>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Installs handlers for SIGTERM, SIGINT and SIGHUP.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub(crate) fn arm(hangup: Hangup) -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        let end = Arc::new(AtomicUsize::new(0));
        let reload = Arc::new(AtomicBool::new(false));
        // Handlers run in this order: the flag is set before the waiting thread is woken.
        for signal in [SIGTERM, SIGINT] {
            flag::register_usize(signal, Arc::clone(&end), signal as usize)?;
        }
        match hangup {
            Hangup::Reloads => flag::register(SIGHUP, Arc::clone(&reload))?,
            Hangup::Ends => flag::register_usize(SIGHUP, Arc::clone(&end), SIGHUP as usize)?,
        };
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(Self { wake, end, reload })
    }

    /// Blocks the calling OS thread until a signal arrives, at most `within`. [`Signal::End`] takes
    /// precedence over a reload and is returned by every later call too. Several SIGHUPs between
    /// two calls are one reload.
    pub(crate) fn wait(&mut self, within: Duration) -> Option<Signal> {
        if let Some(signal) = self.pending() {
            return Some(signal);
        }
        // A timeout of zero would be refused. An error of either call is ignored: it ends the wait
        // early, and the caller waits again.
        let _ = self
            .wake
            .set_read_timeout(Some(within.max(Duration::from_millis(1))));
        let _ = self.wake.read(&mut [0; 64]);
        self.pending()
    }

    /// Blocks until a signal asks the process to end; returns the signal's number.
    pub(crate) fn wait_for_end(&mut self) -> i32 {
        const LONG: Duration = Duration::from_secs(3_600);
        loop {
            if let Some(Signal::End(signal)) = self.wait(LONG) {
                return signal;
            }
        }
    }

    fn pending(&self) -> Option<Signal> {
        match self.end.load(Ordering::SeqCst) {
            0 => self
                .reload
                .swap(false, Ordering::SeqCst)
                .then_some(Signal::Reload),
            signal => Some(Signal::End(signal as i32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::low_level::raise;

    use super::*;
    use crate::ops::child_test;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn reloads_are_returned_once_and_an_end_takes_precedence() {
        // Runs in a child process, because signal handlers belong to the whole process.
        if child_test::is_child() {
            let mut signals = Signals::arm(Hangup::Reloads).unwrap();
            assert_eq!(signals.wait(Duration::from_millis(1)), None);
            raise(SIGHUP).unwrap();
            raise(SIGHUP).unwrap();
            assert_eq!(signals.wait(LONG), Some(Signal::Reload));
            // Both SIGHUPs woke the thread, but they are one reload.
            assert_eq!(signals.wait(Duration::from_millis(1)), None);
            raise(SIGHUP).unwrap();
            raise(SIGTERM).unwrap();
            assert_eq!(signals.wait(LONG), Some(Signal::End(SIGTERM)));
            assert_eq!(signals.wait_for_end(), SIGTERM);
            return;
        }
        child_test::run(
            module_path!(),
            "reloads_are_returned_once_and_an_end_takes_precedence",
            |_| {},
        );
    }
}
