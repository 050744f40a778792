//! Tells systemd how far the service is. Without `$NOTIFY_SOCKET` every call does nothing.
//!
//! One datagram each; call from start-up, warmers and shutdown, never per request.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use sd_notify::NotifyState;

/// Serving: requests are answered from now on.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// One line for `systemctl status`.
pub fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// The process gets on. Left out for `WatchdogSec`, systemd ends it and starts another.
pub fn watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// How long systemd waits for the next ping of this process; `None` without a watchdog.
pub fn watchdog_limit() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())
}

/// Settings are read again; [`ready`] says that it is done. The time has to be in the same message
/// for systemd 253 and later.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now, NotifyState::Status("reloading")]),
        Err(error) => tracing::warn!(%error, "cannot notify systemd of a reload"),
    }
}

/// Draining: no new requests are taken.
pub fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// What takes long at start gets on: systemd waits for at least so much longer from now, also
/// beyond the unit's own limit.
pub fn extend_timeout(by: Duration) {
    let usec = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    send(&[NotifyState::ExtendTimeoutUsec(usec)]);
}

/// Whether anybody listens.
pub fn supervised() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Has systemd keep `file` for the next process of this unit, under a name that must stand for
/// nothing yet. Whether it does is not known: the unit may allow none.
///
/// # Errors
/// When it cannot be told.
pub fn keep(name: &str, file: BorrowedFd<'_>) -> io::Result<()> {
    // Only what says that it ended is dropped when it ends; a file in memory never says so.
    let states = [NotifyState::FdStore, NotifyState::FdName(name), NotifyState::Custom("FDPOLL=0")];
    sd_notify::notify_with_fds(&states, &[file])
}

/// Has systemd close what it keeps under that name.
///
/// # Errors
/// When it cannot be told.
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
    use std::process::Command;

    /// Set in the child process, whose environment names the socket.
    const CHILD: &str = "NOTIFY_CHILD";

    #[test]
    fn systemd_hears_ready_status_and_stopping() {
        if std::env::var_os(CHILD).is_some() {
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
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ops::notify::tests::systemd_hears_ready_status_and_stopping"])
            .env(CHILD, "1")
            .env("NOTIFY_SOCKET", &path)
            .output()
            .unwrap()
            .status;
        assert!(status.success());
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 256];
        for said in [
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
            let heard = std::str::from_utf8(&bytes[..length]).unwrap();
            let (before, after) = said.split_once("<N>").unwrap_or((said, ""));
            assert!(heard.starts_with(before) && heard.ends_with(after), "{heard}");
        }
    }
}
