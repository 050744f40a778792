//! Tells systemd how far the service is. Without `$NOTIFY_SOCKET` every call does nothing.
//!
//! One datagram each; call from start-up, warmers and shutdown, never per request.

use sd_notify::NotifyState;

/// Serving: requests are answered from now on.
pub fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// One line for `systemctl status`.
pub fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// Draining: no new requests are taken.
pub fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}
