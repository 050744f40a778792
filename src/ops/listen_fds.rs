//! File descriptors that systemd passed at start: the listening socket of a socket unit, and files
//! that an earlier process of this unit put into systemd's file descriptor store.
//!
//! Taken once, on the main thread, before anything else is opened. A descriptor is identified by
//! its name or its type, never by its position.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// Whether [`Inherited::take`] was called.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The passed descriptors, each with its name, that nobody claimed yet. Closed on drop.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(Option<String>, OwnedFd)>);

impl Inherited {
    /// Takes all passed descriptors and marks them close-on-exec. Empty if none were passed, and on
    /// every call but the first.
    pub fn take() -> Self {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Self::default();
        }
        let passed = sd_listen_fds::get().unwrap_or_else(|error| {
            tracing::warn!(%error, "file descriptors from systemd cannot be used");
            Vec::new()
        });
        let owned = passed.into_iter().map(|(name, descriptor)| (name, descriptor.into_std()));
        let mut inherited: Vec<_> = owned.collect();
        inherited.extend(sockets_without_pid().into_iter().map(|socket| (None, socket)));
        for (_, descriptor) in &inherited {
            if let Err(error) = fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
                tracing::warn!(%error, "a file descriptor from systemd stays open in children");
            }
        }
        Self(inherited)
    }

    /// Takes the descriptor with this name. If several have it, returns the newest, which is passed
    /// last, and closes the others.
    pub fn claim(&mut self, name: &str) -> Option<OwnedFd> {
        let named = |(given, _): &mut (Option<String>, OwnedFd)| given.as_deref() == Some(name);
        self.0.extract_if(.., named).last().map(|(_, descriptor)| descriptor)
    }

    /// The unclaimed descriptors, in the order in which they were passed.
    pub fn rest(self) -> Vec<OwnedFd> {
        self.0.into_iter().map(|(_, descriptor)| descriptor).collect()
    }
}

/// Listening sockets passed without `LISTEN_PID`, by supervisors that do not know the process id
/// before they start the process.
fn sockets_without_pid() -> Vec<OwnedFd> {
    if std::env::var_os("LISTEN_PID").is_some() {
        return Vec::new();
    }
    let mut passed = listenfd::ListenFd::from_env();
    let sockets = (0..passed.len()).filter_map(|at| match passed.take_tcp_listener(at) {
        Ok(tcp) => tcp.map(OwnedFd::from),
        Err(_) => passed.take_unix_listener(at).ok()?.map(OwnedFd::from),
    });
    sockets.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    fn file_containing(text: &str) -> OwnedFd {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, text).unwrap();
        File::open(path).unwrap().into()
    }

    fn read(descriptor: OwnedFd) -> String {
        let mut text = String::new();
        File::from(descriptor).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_descriptor_is_claimed_by_its_name_and_the_newest_wins() {
        let passed = [
            (Some("kept"), "first"),
            (None, "nameless"),
            (Some("bhav.socket"), "socket"),
            (Some("kept"), "second"),
        ];
        let passed = passed.map(|(name, text)| (name.map(str::to_owned), file_containing(text)));
        let mut inherited = Inherited(passed.into());
        assert!(inherited.claim("other").is_none());
        assert_eq!(inherited.claim("kept").map(read).as_deref(), Some("second"));
        assert!(inherited.claim("kept").is_none(), "the older one is closed");
        let rest: Vec<_> = inherited.rest().into_iter().map(read).collect();
        assert_eq!(rest, ["nameless", "socket"]);
    }
}
