//! Notifications to systemd (sd_notify). Without `$NOTIFY_SOCKET` every call does nothing.
//!
//! Each call sends one datagram. Call from start-up, warmers and shutdown, never for a request.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use sd_notify::NotifyState;

/// The service answers requests from now on.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Sets the status line that `systemctl status` shows.
pub fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// Watchdog ping. Without one for `WatchdogSec`, systemd kills the process and starts another.
pub fn watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// How long systemd waits for the next watchdog ping; `None` without a watchdog.
pub fn watchdog_limit() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())
}

/// A reload of the settings has begun; call [`ready`] when it is done. systemd 253 and later
/// require the time in the same message.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now, NotifyState::Status("reloading")]),
        Err(error) => tracing::warn!(%error, "cannot notify systemd of a reload"),
    }
}

/// The service drains and takes no new requests.
pub fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// Asks systemd to wait at least `by` longer from now for the current start or stop, even beyond
/// the unit's own limit. For a start that makes progress and takes long.
pub fn extend_timeout(by: Duration) {
    let usec = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    send(&[NotifyState::ExtendTimeoutUsec(usec)]);
}

/// Whether the process was started by systemd (or another supervisor that listens).
pub fn supervised() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Puts `file` into systemd's file descriptor store, for the next process of this unit. `name` must
/// not be in the store yet. systemd sends no reply, so the caller cannot know whether the unit
/// allows a store at all.
///
/// # Errors
/// If the notification cannot be sent.
pub fn keep(name: &str, file: BorrowedFd<'_>) -> io::Result<()> {
    // systemd polls stored descriptors to drop closed connections. A file in memory needs none.
    let states = [NotifyState::FdStore, NotifyState::FdName(name), NotifyState::Custom("FDPOLL=0")];
    sd_notify::notify_with_fds(&states, &[file])
}

/// Removes the files with this name from systemd's file descriptor store.
///
/// # Errors
/// If the notification cannot be sent.
pub fn forget(name: &str) -> io::Result<()> {
    sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use crate::ops::child_test;

    #[test]
    fn each_notification_is_the_datagram_that_systemd_expects() {
        // In a child process, whose environment names the socket.
        if child_test::is_child() {
            super::ready("serving");
            super::status("token dead");
            super::watchdog();
            super::reloading();
            super::extend_timeout(super::Duration::from_secs(60));
            assert!(super::supervised());
            let file = crate::ops::memfd::sealed("test", b"kept").unwrap();
            super::forget("some-token").unwrap();
            super::keep("some-token", file.as_fd()).unwrap();
            super::stopping();
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let name = "each_notification_is_the_datagram_that_systemd_expects";
        child_test::run(module_path!(), name, |child| {
            child.env("NOTIFY_SOCKET", &path);
        });
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        for expected in [
            "READY=1\nSTATUS=serving\n",
            "STATUS=token dead\n",
            "WATCHDOG=1\n",
            "RELOADING=1\nMONOTONIC_USEC=<N>\nSTATUS=reloading\n",
            "EXTEND_TIMEOUT_USEC=60000000\n",
            "FDSTOREREMOVE=1\nFDNAME=some-token\n",
            "FDSTORE=1\nFDNAME=some-token\nFDPOLL=0\n",
            "STOPPING=1\nSTATUS=draining\n",
        ] {
            let length = socket.recv(&mut bytes).unwrap();
            let datagram = std::str::from_utf8(&bytes[..length]).unwrap();
            let (before, after) = expected.split_once("<N>").unwrap_or((expected, ""));
            assert!(datagram.starts_with(before) && datagram.ends_with(after), "{datagram}");
        }
    }
}
