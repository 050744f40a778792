//! Keeps the state that decides about tokens equal to the database's: applies the changes that this
//! service, other nodes and operators' commands have made.
//!
//! A service that has the database to itself reads them with the store's checks. One node of
//! several reads them each second, on the thread `changes`, and at once when another node reports
//! one. A node that could not read them for [`UNREAD_MS_MAX`] does not know any more which tokens
//! are revoked, so it accepts none until it can.
//!
//! A database can go back in time: a copy of it is restored, or a standby takes over that lacks the
//! last commits. So each change has a random mark next to its number. If the last change read is
//! missing or has another mark, the reader gives the database a new incarnation, which ends every
//! login, and reloads everything. Of a database on a server the last change read is also kept in
//! the state directory, for the check at the next start; the store does so of a file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, select};

use crate::auth::changes_bell::ChangesBell;
use crate::auth::followed::{MARK_FILE, Mark};
use crate::auth::identity::Auth;
use crate::auth::upkeep::changed_account;
use crate::rt::threads::Stoppable;
use crate::store::{
    AccountId, CHANGES_KEPT, CHANGES_PAGE, Change, Changes, Continuity, KeysRead, LastRead,
    StoreError, small_file,
};

/// Longest time that a change goes unread while the database answers.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait of the service's end for a reading.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Age of the last reading after which no token is accepted.
const UNREAD_MS_MAX: u64 = 30_000;
/// Most pages of one reading: all that are kept, and as many again.
const PAGES_MAX: usize = 2 * CHANGES_KEPT / CHANGES_PAGE;

/// Figures for health and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangesReading {
    /// Number of the last change that was applied.
    pub applied: i64,
    /// Age of the last complete reading, from its beginning.
    pub age_ms: u64,
    /// Whether the reading is too old to accept tokens.
    pub is_outdated: bool,
}

/// Parts that the thread works with.
pub(crate) struct ChangesParts {
    pub bell: ChangesBell,
    pub woken: Receiver<()>,
    /// Notifies the other nodes of changes. Blocks, with a deadline of its own.
    pub tell: Box<dyn Fn() + Send>,
}

/// Starts the thread. From now on several nodes change the accounts. Dropping the value ends the
/// thread after the current reading.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start_changes(auth: &Arc<Auth>, parts: ChangesParts) -> io::Result<Stoppable> {
    let ChangesParts { bell, woken, tell } = parts;
    // Fails only for a second thread of one service.
    let _ = auth.followed.bell.set(bell.clone());
    let auth = Arc::clone(auth);
    Stoppable::spawn("changes", STOP_WAIT, move |stop| {
        loop {
            auth.read_and_log();
            select! {
                recv(stop.signal()) -> _ => return,
                recv(woken) -> _ => {
                    if bell.has_own.swap(false, Ordering::SeqCst) {
                        tell();
                    }
                }
                default(READ_INTERVAL) => {}
            }
        }
    })
}

impl Auth {
    /// Progress of reading the changes; `None` for a service that has the database to itself.
    pub(crate) fn changes(&self) -> Option<ChangesReading> {
        self.followed.bell.get()?;
        let age_ms = self.unread_ms();
        let is_outdated = age_ms > UNREAD_MS_MAX;
        Some(ChangesReading {
            applied: self.followed.read.lock().number,
            age_ms,
            is_outdated,
        })
    }

    /// Whether other nodes change the same accounts.
    pub(crate) fn is_shared(&self) -> bool {
        self.followed.bell.get().is_some()
    }

    /// Whether this node does not know any more which tokens are revoked.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_shared() && self.unread_ms() > UNREAD_MS_MAX
    }

    fn unread_ms(&self) -> u64 {
        let read_mono_ms = self.followed.read_mono_ms.load(Ordering::SeqCst);
        self.clock.monotonic_ms().saturating_sub(read_mono_ms)
    }

    /// Called after a change of this node is in the database.
    pub(super) fn changed(&self) {
        if let Some(bell) = self.followed.bell.get() {
            bell.ring_own();
        }
    }

    /// Applies the changes that operators' commands made, in a service that has the database to
    /// itself. Blocks; for a lane.
    pub(crate) fn take_up_changes(&self) {
        if self.is_shared() || self.tokens().is_none() {
            return;
        }
        let Ok(noticed) = self.read_changes() else {
            return;
        };
        let applied = self.followed.read.lock().number;
        if applied == noticed {
            return;
        }
        if let Err(error) = self.store.notice_changes(applied) {
            tracing::warn!(%error, "cannot record that changes of accounts were applied");
        }
    }

    /// Finds out whether another server has taken the database's place and lacks what was read of
    /// it, which ends every login. A token that is issued after that is not ended by it. One that
    /// is issued where this cannot be read may be. Blocks or parks.
    pub(super) fn settle_incarnation(&self) {
        if self.is_shared()
            && let Err(error) = self.read_changes()
        {
            tracing::debug!(%error, "a token is issued without a reading of the changes");
        }
    }

    /// Applies all changes made so far, and returns the number of the last one recorded as applied.
    /// Blocks or parks.
    pub(super) fn read_changes(&self) -> Result<i64, StoreError> {
        let mut noticed = 0;
        for _ in 0..PAGES_MAX {
            let began_mono_ms = self.clock.monotonic_ms();
            let (known, after) = self.position();
            let page = self.store.changes_after(after.number)?;
            noticed = page.noticed;
            self.note_secret(page.secret_check.as_ref());
            if known.as_ref() != Some(&page.incarnation) {
                if self.load_all()? {
                    tracing::warn!(
                        "the database has a new identity, by another node or by an operator: \
                         every login ends"
                    );
                }
                break;
            }
            match page.continuity(after) {
                Continuity::Follows if self.apply(after, &page)? => {}
                Continuity::WentBack => {
                    self.went_back(&page, after)?;
                    self.load_all()?;
                    break;
                }
                // Some changes were deleted, or were made by a newer program.
                Continuity::Follows | Continuity::Missed => {
                    self.load_all()?;
                    break;
                }
            }
            if page.rows.len() < CHANGES_PAGE {
                self.followed
                    .read_mono_ms
                    .fetch_max(began_mono_ms, Ordering::SeqCst);
                break;
            }
        }
        Ok(noticed)
    }

    /// The incarnation that is known and the last change that was read of it. Taken together:
    /// another reader loads both anew, and the numbers of one incarnation say nothing of another.
    fn position(&self) -> (Option<String>, LastRead) {
        let read = self.followed.read.lock();
        (self.incarnation.lock().clone(), *read)
    }

    /// Applies a page, with the API keys of the accounts that have changed. False if it contains a
    /// change that this program does not know.
    fn apply(&self, after: LastRead, page: &Changes) -> Result<bool, StoreError> {
        let mut accounts: Vec<AccountId> = page.rows.iter().filter_map(changed_account).collect();
        accounts.sort_unstable();
        accounts.dedup();
        let mut keys = KeysRead::default();
        if !accounts.is_empty() {
            keys = self.store.keys_of(accounts.clone())?;
            let is_of_before = keys.number < page.last(after).number;
            if is_of_before || keys.incarnation != page.incarnation {
                let why = "the database answered from before a change that it had told";
                return Err(StoreError::Unavailable(why.to_owned()));
            }
        }
        let mut read = self.followed.read.lock();
        if *read != after {
            // Another reader was faster. The next page has the rest.
            return Ok(true);
        }
        if !page
            .rows
            .iter()
            .all(|(_, change)| self.revoked.apply(change))
        {
            return Ok(false);
        }
        self.api_keys.load(Some(&accounts), keys.number, &keys.keys);
        for (_, change) in &page.rows {
            if let Change::Erased { id } = change {
                self.api_keys.forget(*id);
            }
        }
        *read = page.last(after);
        Ok(true)
    }

    /// Gives a database that has gone back a new incarnation, unless another node was faster.
    fn went_back(&self, page: &Changes, read: LastRead) -> Result<(), StoreError> {
        let now = self.store.renew_incarnation(&page.incarnation, read)?;
        if now.incarnation == page.incarnation {
            // The server only lagged.
            return Ok(());
        }
        tracing::warn!(
            read = read.number,
            found = page.made,
            "the database went back in time: the last change of accounts that was read here is \
             not in it; acknowledged changes may be missing, and every login ends"
        );
        Ok(())
    }

    /// Compares the database with the mark of the last run, to detect that it was restored
    /// meanwhile.
    pub(super) fn expect_continuity_since_last_run(&self) -> Result<(), StoreError> {
        let kept = self.followed.kept.lock().clone();
        let Some(Mark {
            incarnation,
            number,
            mark,
        }) = kept
        else {
            return Ok(());
        };
        let page = self.store.changes_after(number)?;
        let read = LastRead { number, mark };
        if page.incarnation == incarnation && page.continuity(read) == Continuity::WentBack {
            self.went_back(&page, read)?;
        }
        Ok(())
    }

    /// Writes the last change read into the state directory, if it is new. Blocks.
    fn keep_mark(&self) {
        let (Some(incarnation), LastRead { number, mark }) = self.position() else {
            return;
        };
        let found = Mark {
            incarnation,
            number,
            mark,
        };
        let mut kept = self.followed.kept.lock();
        if kept.as_ref() == Some(&found) {
            return;
        }
        let bytes = sonic_rs::to_vec(&found).unwrap_or_default();
        match small_file::replace(&self.state_dir.join(MARK_FILE), &bytes) {
            Ok(()) => *kept = Some(found),
            Err(error) => tracing::debug!(%error, "the mark of the changes was not written"),
        }
    }

    /// Keeps the last change in the state directory before the service ends. Blocks.
    pub(crate) fn keep_last_change(&self) {
        if self.is_shared() && self.tokens().is_some() && self.read_changes().is_ok() {
            self.keep_mark();
        }
    }

    /// A pass of the thread. Does nothing until everything was loaded for the first time.
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
        let was_failing = self
            .followed
            .is_failing
            .swap(failed.is_err(), Ordering::SeqCst);
        match failed {
            Err(error) if !was_failing => tracing::warn!(
                %error,
                "cannot read changes of accounts; no token is accepted after 30 s of this"
            ),
            Ok(_) if was_failing => tracing::info!("changes of accounts can be read again"),
            _ => {}
        }
    }
}
