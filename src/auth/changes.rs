//! Keeps what decides about tokens as the database has it: applies the changes that this service,
//! other nodes and operators' commands have made.
//!
//! A service that has the database to itself reads them with the store's checks. One node of
//! several reads them each second, on the thread `changes`, and at once when another node says that
//! it has made one. A node that could not read them for [`UNREAD_MS_MAX`] does not know any more
//! who is revoked, so it accepts no token until it can.
//!
//! A database can go back in time: a copy of it is put back, or a standby takes over that lacks the
//! last commits. So each change has a random mark beside its number. Where the last change that was
//! read is not there any more, or has another mark, the reader gives the database a new
//! incarnation, which ends every login, and loads everything anew. What was read last is kept in
//! the state directory, so that a start sees it too.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::identity::Auth;
use crate::rt::threads;
use crate::store::limits::{CHANGES_KEPT, CHANGES_PAGE};
use crate::store::{Changes, Continuity, LastRead, StoreError, small_file};

/// How long a change may go unread while the database answers.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// After so long without having read, no token is accepted.
const UNREAD_MS_MAX: u64 = 30_000;
/// Most pages that are read at once: all that is kept, and as much again.
const PAGES_MAX: usize = 2 * CHANGES_KEPT / CHANGES_PAGE;

/// The file in the state directory that says what was read last.
const MARK_FILE: &str = "changes.mark";

/// Content of that file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    incarnation: String,
    number: i64,
    mark: Option<i64>,
}

/// How far the changes were read.
#[derive(Default)]
pub(super) struct Followed {
    /// The last change that was applied. Locked while changes are applied, never while something
    /// parks.
    pub(super) read: Mutex<LastRead>,
    /// What the file says.
    kept: Mutex<Option<Mark>>,
    /// When the last complete reading began; monotonic.
    read_mono_ms: AtomicU64,
    /// Set for one node of several.
    bell: OnceLock<ChangesBell>,
    is_failing: AtomicBool,
}

/// What health and metrics show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesReading {
    /// Number of the last change that was applied.
    pub applied: i64,
    /// Since the last complete reading began.
    pub age_ms: u64,
    /// Whether that is too long ago to accept tokens.
    pub is_outdated: bool,
}

/// Wakes the thread `changes`. Never blocks.
#[derive(Clone)]
pub struct ChangesBell {
    has_own: Arc<AtomicBool>,
    wake: Sender<()>,
}

impl ChangesBell {
    /// A bell, and what hears it.
    pub fn new() -> (Self, Receiver<()>) {
        // A reading that is due takes up everything that was made before it.
        let (wake, woken) = bounded(1);
        (Self { has_own: Arc::default(), wake }, woken)
    }

    /// Another node has made a change.
    pub fn ring(&self) {
        let _ = self.wake.try_send(());
    }

    /// This node has made one, which the others are to be told.
    fn ring_own(&self) {
        self.has_own.store(true, Ordering::SeqCst);
        self.ring();
    }
}

/// What the thread works with.
pub struct ChangesParts {
    pub bell: ChangesBell,
    pub woken: Receiver<()>,
    /// Tells the other nodes that there are changes. Blocks, by a deadline of its own.
    pub tell: Box<dyn Fn() + Send>,
}

/// The running thread.
pub struct ChangesReader {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl ChangesReader {
    /// Starts the thread. From now on the accounts are those of several nodes.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(auth: &Arc<Auth>, parts: ChangesParts) -> io::Result<Self> {
        let (stop, stopped) = bounded(0);
        let ChangesParts { bell, woken, tell } = parts;
        // Fails only for a second thread of one service.
        let _ = auth.followed.bell.set(bell.clone());
        let auth = Arc::clone(auth);
        let thread = threads::spawn("changes", move || {
            loop {
                auth.read_and_log();
                select! {
                    recv(stopped) -> _ => return,
                    recv(woken) -> _ => {
                        if bell.has_own.swap(false, Ordering::SeqCst) {
                            tell();
                        }
                    }
                    default(READ_INTERVAL) => {}
                }
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread, after the reading under way.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

impl Auth {
    /// How far the changes were read; `None` for a service that has the database to itself.
    pub fn changes(&self) -> Option<ChangesReading> {
        self.followed.bell.get()?;
        let age_ms = self.unread_ms();
        let is_outdated = age_ms > UNREAD_MS_MAX;
        Some(ChangesReading { applied: self.followed.read.lock().number, age_ms, is_outdated })
    }

    /// Whether other nodes change the same accounts.
    pub fn is_shared(&self) -> bool {
        self.followed.bell.get().is_some()
    }

    /// Whether this node does not know any more who is revoked.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_shared() && self.unread_ms() > UNREAD_MS_MAX
    }

    fn unread_ms(&self) -> u64 {
        let read_mono_ms = self.followed.read_mono_ms.load(Ordering::SeqCst);
        self.clock.monotonic_ms().saturating_sub(read_mono_ms)
    }

    /// A change of this node is in the database.
    pub(super) fn changed(&self) {
        if let Some(bell) = self.followed.bell.get() {
            bell.ring_own();
        }
    }

    /// Everything was loaded.
    pub(super) fn loaded(&self, began_mono_ms: u64) {
        self.followed.read_mono_ms.fetch_max(began_mono_ms, Ordering::SeqCst);
    }

    /// Takes up what operators' commands changed in the database of this service alone. Blocks; for
    /// a lane.
    pub fn take_up_changes(&self) {
        if self.is_shared() || self.tokens().is_none() {
            return;
        }
        let Ok(noticed) = self.read_changes() else { return };
        self.keep_mark();
        let applied = self.followed.read.lock().number;
        if applied == noticed {
            return;
        }
        if let Err(error) = self.store.notice_changes(applied) {
            tracing::warn!(%error, "cannot confirm that changed accounts were taken up");
        }
    }

    /// Applies all changes that were made by now; what was noticed before comes with it. Blocks or
    /// parks.
    pub(super) fn read_changes(&self) -> Result<i64, StoreError> {
        let mut noticed = 0;
        for _ in 0..PAGES_MAX {
            let began_mono_ms = self.clock.monotonic_ms();
            let after = *self.followed.read.lock();
            let page = self.store.changes_after(after.number)?;
            noticed = page.noticed;
            self.note_secret(page.secret_check.as_ref());
            if self.incarnation.lock().as_ref() != Some(&page.incarnation) {
                if self.load_all()? {
                    tracing::warn!(
                        "the database has a new identity, by another node or by an operator: \
                         every login ends"
                    );
                }
                break;
            }
            match page.continuity(after) {
                Continuity::Follows if self.apply(after, &page) => {}
                Continuity::WentBack => {
                    self.went_back(&page, after)?;
                    self.load_all()?;
                    break;
                }
                // Some were forgotten, or are a newer program's.
                Continuity::Follows | Continuity::Missed => {
                    self.load_all()?;
                    break;
                }
            }
            if page.rows.len() < CHANGES_PAGE {
                self.followed.read_mono_ms.fetch_max(began_mono_ms, Ordering::SeqCst);
                break;
            }
        }
        Ok(noticed)
    }

    /// False where the page does not say all that has changed.
    fn apply(&self, after: LastRead, page: &Changes) -> bool {
        let mut read = self.followed.read.lock();
        if *read != after {
            // Another reader was faster. What is left is read with the next page.
            return true;
        }
        if !page.rows.iter().all(|(_, change)| self.revoked.apply(change)) {
            return false;
        }
        *read = page.last(after);
        true
    }

    /// Gives a database that has gone back a new incarnation, unless another node was faster.
    fn went_back(&self, page: &Changes, read: LastRead) -> Result<(), StoreError> {
        self.store.renew_incarnation(&page.incarnation)?;
        tracing::warn!(
            read = read.number,
            found = page.made,
            "the database went back in time: the last change of accounts that was read here is \
             not in it; acknowledged changes may be missing, and every login ends"
        );
        Ok(())
    }

    /// Compares the database with what the last run has read of it, so that one that was put back
    /// meanwhile is seen.
    pub(super) fn expect_continuity_since_last_run(&self) -> Result<(), StoreError> {
        let bytes = small_file::read(&self.state_dir.join(MARK_FILE)).ok().flatten();
        // An unreadable one says nothing.
        let mark = bytes.and_then(|bytes| sonic_rs::from_slice::<Mark>(&bytes).ok());
        self.followed.kept.lock().clone_from(&mark);
        let Some(Mark { incarnation, number, mark }) = mark else { return Ok(()) };
        let page = self.store.changes_after(number)?;
        let read = LastRead { number, mark };
        if page.incarnation == incarnation && page.continuity(read) == Continuity::WentBack {
            self.went_back(&page, read)?;
        }
        Ok(())
    }

    /// Writes what was read last into the state directory, where that has changed. Blocks.
    fn keep_mark(&self) {
        let LastRead { number, mark } = *self.followed.read.lock();
        let Some(incarnation) = self.incarnation.lock().clone() else { return };
        let found = Mark { incarnation, number, mark };
        let mut kept = self.followed.kept.lock();
        if kept.as_ref() == Some(&found) {
            return;
        }
        let bytes = sonic_rs::to_vec(&found).unwrap_or_default();
        match small_file::replace(&self.state_dir.join(MARK_FILE), &bytes) {
            Ok(()) => *kept = Some(found),
            Err(error) => tracing::debug!(%error, "what was read of the changes was not kept"),
        }
    }

    /// A pass of the thread. Until everything was loaded for the first time there is nothing to
    /// follow.
    fn read_and_log(&self) {
        if self.tokens().is_none() {
            return;
        }
        if self.claim_is_due.swap(false, Ordering::Relaxed) && self.claim_secret().is_err() {
            self.claim_is_due.store(true, Ordering::Relaxed);
        }
        let failed = self.read_changes();
        if failed.is_ok() {
            self.keep_mark();
        }
        let was_failing = self.followed.is_failing.swap(failed.is_err(), Ordering::SeqCst);
        match failed {
            Err(error) if !was_failing => tracing::warn!(
                %error,
                "cannot read what changed of accounts; no token is accepted after 30 s of this"
            ),
            Ok(_) if was_failing => tracing::info!("changes of accounts can be read again"),
            _ => {}
        }
    }
}
