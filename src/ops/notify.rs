//! Notifications to systemd (sd_notify). Without `$NOTIFY_SOCKET` every call does nothing.
//!
//! Each call sends one datagram. Call from start-up, warmers and shutdown, never for a request.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use listenfd::ListenFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use sd_notify::NotifyState;
use zeroize::Zeroizing;

/// The service answers requests from now on.
pub(crate) fn ready(status: &str) {
    send(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Sets the status line that `systemctl status` shows.
pub(crate) fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// Watchdog ping. Without one for `WatchdogSec`, systemd kills the process and starts another.
pub(crate) fn watchdog() {
    send(&[NotifyState::Watchdog]);
}

/// Time that systemd waits for the next watchdog ping; `None` without a watchdog.
pub(crate) fn watchdog_limit() -> Option<Duration> {
    sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero())
}

/// A reload of the settings has begun; call [`ready`] when it is done. systemd 253 and later
/// require the time in the same message.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[
            NotifyState::Reloading,
            now,
            NotifyState::Status("reloading"),
        ]),
        Err(error) => tracing::warn!(%error, "cannot notify systemd of a reload"),
    }
}

/// The service drains and takes no new requests.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

/// Asks systemd to wait at least `by` longer from now for the current start or stop, even beyond
/// the unit's own limit. For a start that makes progress and takes long.
pub(crate) fn extend_timeout(by: Duration) {
    let usec = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
    send(&[NotifyState::ExtendTimeoutUsec(usec)]);
}

/// Whether the process was started by systemd (or another supervisor that listens).
pub(crate) fn supervised() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Whether systemd passed sockets or files that nobody has taken yet.
pub(crate) fn has_passed() -> bool {
    std::env::var_os("LISTEN_FDS").is_some()
}

/// Puts `file` into systemd's file descriptor store, for the next process of this unit. `name` must
/// not be in the store yet. systemd sends no reply, so the caller cannot know whether the unit
/// allows a store at all.
///
/// # Errors
/// If the notification cannot be sent.
pub(crate) fn keep(name: &str, file: BorrowedFd<'_>) -> io::Result<()> {
    // systemd polls stored descriptors to drop closed connections. A file in memory needs none.
    let states = [
        NotifyState::FdStore,
        NotifyState::FdName(name),
        NotifyState::Custom("FDPOLL=0"),
    ];
    sd_notify::notify_with_fds(&states, &[file])
}

/// Removes the files with this name from systemd's file descriptor store.
///
/// # Errors
/// If the notification cannot be sent.
pub(crate) fn forget(name: &str) -> io::Result<()> {
    sd_notify::notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)])
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}

// ---- Memfd
//
// Files in memory (memfd), in which a process leaves data to its successor. They have no name in
// any file system, are close-on-exec, and are sealed after writing.
//
// Any thread; each call takes a few microseconds. The bytes are read into memory that is wiped on
// drop, and never logged.

/// Creates a file in memory with these bytes and seals it, so that no process can change it. `name`
/// shows in `/proc` only.
///
/// # Errors
/// When the system refuses the file or a seal.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::INVAL) => memfd_create(name, flags),
        created => created,
    };
    let mut file = File::from(created?);
    file.write_all(bytes)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Reads all bytes of the file, whatever its offset, and closes it.
///
/// # Errors
/// If it is not a regular file, is longer than `bytes_max`, or cannot be read.
pub fn read(descriptor: OwnedFd, bytes_max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::from(descriptor);
    let metadata = file.metadata()?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if !metadata.is_file() || length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

// ---- Listen fds
//
// File descriptors that systemd passed at start: the listening socket of a socket unit, and files
// that an earlier process of this unit put into systemd's file descriptor store.
//
// Taken once, on the main thread, before anything else is opened. A descriptor is identified by
// its name or its type, never by its position.

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
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names
            .split(':')
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        // Accepts descriptors without `LISTEN_PID` too, for supervisors that do not know the
        // process id before they start the process.
        let mut passed = ListenFd::from_env();
        let numbers = (0..passed.len()).filter_map(|at| passed.take_raw_fd(at).ok().flatten());
        #[expect(
            unsafe_code,
            reason = "only the protocol says that these descriptors are ours"
        )]
        // SAFETY: The supervisor opened them for this process, and each is taken once.
        let own = |number| unsafe { OwnedFd::from_raw_fd(number) };
        let inherited: Vec<_> = numbers.map(|number| (names.next(), own(number))).collect();
        for (_, descriptor) in &inherited {
            if let Err(error) = fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
                tracing::warn!(%error, "a file descriptor from systemd stays open in children");
            }
        }
        Self(inherited)
    }

    /// Takes the descriptor with this name. If several have it, returns the newest, which is passed
    /// last, and closes the others.
    pub(crate) fn claim(&mut self, name: &str) -> Option<OwnedFd> {
        let named = |(given, _): &mut (Option<String>, OwnedFd)| given.as_deref() == Some(name);
        self.0
            .extract_if(.., named)
            .last()
            .map(|(_, descriptor)| descriptor)
    }

    /// The unclaimed descriptors with their names, in the order in which they were passed.
    pub fn rest(self) -> Vec<(Option<String>, OwnedFd)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use crate::ops::child_test;

    #[test]
    fn each_notification_is_the_datagram_that_systemd_expects() {
        // Runs in a child process, whose environment names the socket.
        if child_test::is_child() {
            super::ready("serving");
            super::status("token dead");
            super::watchdog();
            super::reloading();
            super::extend_timeout(super::Duration::from_secs(60));
            assert!(super::supervised());
            let file = crate::ops::notify::sealed("test", b"kept").unwrap();
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

#[cfg(test)]
mod memfd_tests {
    use std::os::unix::net::UnixStream;

    use rustix::fs::{fcntl_get_seals, ftruncate};
    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn a_sealed_file_is_read_whole_and_cannot_be_changed() {
        let descriptor = sealed("test", b"some bytes").unwrap();
        assert!(fcntl_getfd(&descriptor).unwrap().contains(FdFlags::CLOEXEC));
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        assert!(fcntl_get_seals(&descriptor).unwrap().contains(seals));
        let file = File::from(descriptor.try_clone().unwrap());
        assert!(file.write_at(b"x", 0).is_err() && file.write_at(b"x", 10).is_err());
        assert!(ftruncate(&file, 3).is_err() && ftruncate(&file, 30).is_err());
        // Neither the offset at the end nor an earlier read matters.
        for _ in 0..2 {
            let read = read(descriptor.try_clone().unwrap(), 10).unwrap();
            assert_eq!(read.as_slice(), b"some bytes");
        }
    }

    #[test]
    fn a_file_that_is_too_long_and_a_socket_are_refused() {
        let ten = sealed("test", b"some bytes").unwrap();
        assert_eq!(read(ten, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(read(one.into(), 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(sealed("test", b"").unwrap(), 10).unwrap().len(), 0);
    }
}

#[cfg(test)]
mod listen_fds_tests {
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
        let rest: Vec<_> = inherited
            .rest()
            .into_iter()
            .map(|(_, file)| read(file))
            .collect();
        assert_eq!(rest, ["nameless", "socket"]);
    }
}
