//! Descriptors that a supervisor passed at start: the listening socket of a socket unit, and what
//! an earlier process of this unit had it keep.
//!
//! Main thread, once, before anything else is opened. What each of them is shows in its name or in
//! its kind, never in its place.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// The descriptors belong to whoever takes them first.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// What was passed and not claimed yet. Closed when dropped.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(Option<String>, OwnedFd)>);

impl Inherited {
    /// All of them, closed in programs that this one starts. Nothing where this process was passed
    /// nothing, and nothing the second time.
    pub fn take() -> Self {
        if TAKEN.swap(true, Ordering::AcqRel) {
            return Self::default();
        }
        let passed = sd_listen_fds::get().unwrap_or_else(|error| {
            tracing::warn!(%error, "descriptors of the supervisor are not used");
            Vec::new()
        });
        let owned = passed.into_iter().map(|(name, descriptor)| (name, descriptor.into_std()));
        let mut inherited: Vec<_> = owned.collect();
        inherited.extend(nameless().into_iter().map(|socket| (None, socket)));
        for (_, descriptor) in &inherited {
            if let Err(error) = fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
                tracing::warn!(%error, "a descriptor of the supervisor stays open in children");
            }
        }
        Self(inherited)
    }

    /// Takes the one of this name out; of several the last, which was given last.
    pub fn claim(&mut self, name: &str) -> Option<OwnedFd> {
        let named = |(given, _): &mut (Option<String>, OwnedFd)| given.as_deref() == Some(name);
        self.0.extract_if(.., named).last().map(|(_, descriptor)| descriptor)
    }

    /// What nobody claimed by its name, in the order in which it was passed.
    pub fn rest(self) -> Vec<OwnedFd> {
        self.0.into_iter().map(|(_, descriptor)| descriptor).collect()
    }
}

/// Listening sockets of a supervisor that does not say whom they are for, as one that cannot know
/// this process's number before it starts it.
fn nameless() -> Vec<OwnedFd> {
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

    fn holding(text: &str) -> OwnedFd {
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
    fn each_is_found_by_its_name_wherever_it_stands() {
        let passed = [
            (Some("kept"), "first"),
            (None, "nameless"),
            (Some("bhav.socket"), "socket"),
            (Some("kept"), "second"),
        ];
        let passed = passed.map(|(name, text)| (name.map(str::to_owned), holding(text)));
        let mut inherited = Inherited(passed.into());
        assert!(inherited.claim("other").is_none());
        assert_eq!(inherited.claim("kept").map(read).as_deref(), Some("second"));
        assert!(inherited.claim("kept").is_none(), "the older one is closed");
        let rest: Vec<_> = inherited.rest().into_iter().map(read).collect();
        assert_eq!(rest, ["nameless", "socket"]);
    }
}
