//! Signals, heard on the main thread, which waits for them with a limit and does its own rounds
//! between them.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

/// What SIGHUP means to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    /// Read the settings again.
    Reloads,
    /// The terminal is gone, and with it whoever looked at it.
    Ends,
}

/// What was asked of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To end, by the signal of this number.
    End(i32),
    Reload,
}

/// The signals that the process answers to, armed before anything starts so that none is missed.
pub struct Signals {
    /// Readable after each signal.
    wake: UnixStream,
    /// The last signal that asks for the end; 0 is none.
    end: Arc<AtomicUsize>,
    reload: Arc<AtomicBool>,
}

impl Signals {
    /// Takes over SIGTERM, SIGINT and SIGHUP.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn arm(hangup: Hangup) -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        let (end, reload) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        // The flag before the wake: whoever is woken finds it.
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

    /// Blocks the calling OS thread until a signal arrives, at most `within`. An end that was asked
    /// for wins over a reload and stays asked for; reloads asked for meanwhile are one.
    pub fn wait(&mut self, within: Duration) -> Option<Signal> {
        if let Some(signal) = self.pending() {
            return Some(signal);
        }
        // Zero would mean no limit. Neither call fails on a socket of our own; if one did, the
        // caller's rounds would go on all the same.
        let _ = self.wake.set_read_timeout(Some(within.max(Duration::from_millis(1))));
        let _ = self.wake.read(&mut [0; 64]);
        self.pending()
    }

    /// Blocks until the process is asked to end; gives the signal's number.
    pub fn wait_for_end(&mut self) -> i32 {
        const LONG: Duration = Duration::from_secs(3_600);
        loop {
            if let Some(Signal::End(signal)) = self.wait(LONG) {
                return signal;
            }
        }
    }

    fn pending(&self) -> Option<Signal> {
        match self.end.load(Ordering::SeqCst) {
            0 => self.reload.swap(false, Ordering::SeqCst).then_some(Signal::Reload),
            signal => Some(Signal::End(signal as i32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use signal_hook::low_level::raise;

    use super::*;

    /// Set in the child process, which may be signalled.
    const CHILD: &str = "SIGNALS_CHILD";
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn signals_are_heard_once_each_and_the_end_wins() {
        if std::env::var_os(CHILD).is_some() {
            let mut signals = Signals::arm(Hangup::Reloads).unwrap();
            assert_eq!(signals.wait(Duration::from_millis(1)), None);
            raise(SIGHUP).unwrap();
            raise(SIGHUP).unwrap();
            assert_eq!(signals.wait(LONG), Some(Signal::Reload));
            // The second wrote a wake as well, which finds nothing to do.
            assert_eq!(signals.wait(Duration::from_millis(1)), None);
            raise(SIGHUP).unwrap();
            raise(SIGTERM).unwrap();
            assert_eq!(signals.wait(LONG), Some(Signal::End(SIGTERM)));
            assert_eq!(signals.wait_for_end(), SIGTERM);
            return;
        }
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rt::signals::tests::signals_are_heard_once_each_and_the_end_wins"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
    }
}
