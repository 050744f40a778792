//! Maintenance of authentication state: loads it from the store, watches the signing key's file,
//! and drops revocations of expired tokens. Blocks, or parks on the edge.

use std::sync::atomic::Ordering;

use crate::auth::endings::Ending;
use crate::auth::identity::Auth;
use crate::auth::known_networks::FORGOTTEN_MS;
use crate::auth::{api_keys, keys, tokens};
use crate::store::{AccountId, Change, KeyUse, PAGE_DEADLINE_MS, StoreError};
use crate::views::states::KeyState;

/// Time between two readings of the networks that other nodes have written.
const NETWORKS_INTERVAL_MS: u64 = 60_000;
/// Overlap of such readings: other nodes' clocks differ, and their databases fail for a while.
const NETWORKS_REREAD_MS: i64 = 600_000;
/// Longest wait of the check for the networks that the edge has noted.
const NETWORKS_WRITE_MS: u64 = PAGE_DEADLINE_MS;

impl Auth {
    /// Checks that the file with the signing key is unchanged, and logs a change once. Blocks; for
    /// a lane.
    pub(crate) fn look_after_key(&self) {
        let found = self.key_file.lock().look();
        let before = std::mem::replace(&mut *self.key_state.lock(), found);
        match found {
            _ if found == before => {}
            KeyState::Missing | KeyState::Changed => tracing::error!(
                state = found.as_str(),
                "signing key file removed or changed: the next start or reload ends every login; \
                 put it back if that is not wanted"
            ),
            KeyState::Kept | KeyState::Given => tracing::info!("signing key is in place"),
        }
    }

    /// State of the signing key's file at the last check.
    pub(crate) fn key_state(&self) -> KeyState {
        *self.key_state.lock()
    }

    /// Drops changes that are no longer needed, and revocations of tokens that have certainly
    /// expired: by this machine's clock and by the time of the exchange's newest price
    /// (`exchange_ms`). This clock alone may be years ahead, and a token whose revocation was
    /// dropped too early would be valid again once the clock is right. So nothing is dropped before
    /// a price has told the time. Blocks; for a lane.
    pub(crate) fn forget_expired(&self, exchange_ms: Option<i64>) {
        let Some(exchange_ms) = exchange_ms else {
            return;
        };
        if self.removals.admit(self.clock.monotonic_ms()).is_err() {
            return;
        }
        let before_ms = exchange_ms.min(self.clock.now_ms());
        match self.store.forget_revocations(before_ms) {
            Ok(tokens) => {
                self.revoked.forget(before_ms);
                tracing::debug!(tokens, "revocations of expired tokens dropped");
            }
            // The store has logged why, here and below.
            Err(StoreError::Unavailable(_)) => return,
            Err(error) => tracing::warn!(%error, "cannot delete revocations of expired tokens"),
        }
        let networks = self
            .store
            .forget_login_networks(before_ms.saturating_sub(FORGOTTEN_MS));
        let changes = self.store.forget_changes();
        for (what, dropped) in [
            ("networks that were last used long ago", networks),
            ("changes that every node has read", changes),
        ] {
            match dropped {
                Ok(()) | Err(StoreError::Unavailable(_)) => {}
                Err(error) => tracing::warn!(%error, "cannot delete {what}"),
            }
        }
    }

    /// Writes what users have ended while the store could not take it. Blocks; for a lane.
    pub(crate) fn write_endings(&self) {
        let written = self.endings.write(|ending| match ending {
            Ending::Token { id, expires_ms } => {
                self.store.revoke_token(&tokens::spelled(*id), *expires_ms)
            }
            Ending::Key { user, id } => {
                self.store.remove_key(*user, id)?;
                self.refresh_keys(*user)
            }
            Ending::Account { user, keys } => {
                let epoch = self
                    .store
                    .end_tokens(*user, *keys)?
                    .ok_or(StoreError::NoSuchUser)?;
                self.revoked.settle(*user, epoch);
                if *keys {
                    self.refresh_keys(*user)
                } else {
                    Ok(())
                }
            }
        });
        if written > 0 {
            tracing::info!(written, "tokens and API keys that were ended before are written now");
            self.changed();
        }
    }

    /// Writes when API keys were last used and the networks from which accounts were used, and
    /// loads those networks that other nodes have written. Blocks; for a lane.
    pub(crate) fn keep_networks(&self) {
        self.keep_key_uses();
        let waiting = self.known_networks.take_waiting();
        let mut is_due = self.is_shared()
            && self.clock.monotonic_ms() >= self.next_networks_mono_ms.load(Ordering::Relaxed);
        if !waiting.is_empty() {
            match self
                .store
                .keep_login_networks(waiting.clone(), NETWORKS_WRITE_MS)
            {
                // A network seen by token gets its account's e-mail when it is read back.
                Ok(()) => is_due = true,
                Err(error) => {
                    tracing::debug!(%error, "networks of accounts not written; they wait");
                    self.known_networks.give_back(waiting);
                }
            }
        }
        if is_due {
            self.load_networks(self.clock.now_ms().saturating_sub(NETWORKS_REREAD_MS));
        }
    }

    /// Stores when API keys were last used.
    fn keep_key_uses(&self) {
        let used = self.api_keys.take_used();
        let uses: Vec<KeyUse> = used
            .iter()
            .filter_map(|key| api_keys::use_of(key))
            .collect();
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.note_key_uses(uses) {
            tracing::debug!(%error, "the last uses of API keys not written; they wait");
            self.api_keys.give_back(used);
        }
    }

    /// Reads an account's API keys after a change of this node.
    pub(super) fn refresh_keys(&self, user: AccountId) -> Result<(), StoreError> {
        let read = self.store.keys_of(vec![user])?;
        let incarnation = self.incarnation.lock();
        if incarnation.as_ref() == Some(&read.incarnation) {
            self.api_keys.load(Some(&[user]), read.number, &read.keys);
        }
        Ok(())
    }

    /// Loads the networks written since `since_ms`.
    fn load_networks(&self, since_ms: i64) {
        let next = self.clock.monotonic_ms() + NETWORKS_INTERVAL_MS;
        self.next_networks_mono_ms.store(next, Ordering::Relaxed);
        match self.store.login_networks(since_ms) {
            Ok(stored) => {
                for (email, network) in stored.iter().rev() {
                    self.known_networks.load(email, network);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot read the networks of accounts"),
        }
    }

    /// Records in the database which secret this node signs with.
    ///
    /// # Errors
    /// The nodes of the database sign with another secret, which this one does not know.
    pub(super) fn claim_secret(&self) -> Result<(), StoreError> {
        let checks: Vec<String> = self.keys.lock().iter().map(keys::check_value).collect();
        let other = self.store.claim_secret(&checks[0], &checks[1..])?;
        other.map_or(Ok(()), |recorded| {
            self.note_other_secret(Some(recorded));
            Err(StoreError::Unavailable("JWT_SECRET is not that of the other nodes".to_owned()))
        })
    }

    /// Records which secret the nodes of the database sign with. Logs once if this node does not
    /// know it, since it then refuses their tokens.
    pub(super) fn note_secret(&self, recorded: Option<&String>) {
        let Some(recorded) = recorded else { return };
        let is_known = self
            .keys
            .lock()
            .iter()
            .any(|key| keys::check_value(key) == *recorded);
        self.note_other_secret((!is_known).then(|| recorded.clone()));
    }

    fn note_other_secret(&self, found: Option<String>) {
        let mut known = self.other_secret.lock();
        if *known == found {
            return;
        }
        if let Some(recorded) = &found {
            tracing::error!(
                fingerprint = keys::fingerprint(recorded),
                "other nodes of this database sign with another JWT_SECRET, so their tokens are \
                 refused here: add it to JWT_PREVIOUS_SECRETS, or give this node the same one"
            );
        }
        *known = found;
    }

    /// Loads accounts, epochs and revocations from the store for the first time. Later changes are
    /// followed.
    pub(super) fn load_state(&self) {
        match self.load_all() {
            Ok(_) => self.load_networks(self.clock.now_ms().saturating_sub(FORGOTTEN_MS)),
            // The store has logged why.
            Err(StoreError::Unavailable(_)) => {
                tracing::warn!("no token is accepted until the store can be used");
            }
            Err(error) => tracing::error!(
                %error,
                "cannot read accounts and revocations, so no token is accepted until then"
            ),
        }
    }

    /// Loads everything, whatever was read before. True if the database has another incarnation
    /// than before, which ends every login.
    pub(super) fn load_all(&self) -> Result<bool, StoreError> {
        let began_mono_ms = self.clock.monotonic_ms();
        let known = self.incarnation.lock().clone();
        if known.is_none() {
            self.claim_secret()?;
            self.expect_continuity_since_last_run()?;
        }
        let stored = self.store.auth_state()?;
        let is_new = known.as_ref() != Some(&stored.incarnation);
        {
            let mut read = self.followed.read.lock();
            if *self.incarnation.lock() != known {
                // Another pass has loaded a newer state.
                return Ok(false);
            }
            match is_new {
                true => self.revoked.replace(&stored),
                false => self.revoked.load(&stored),
            }
            if is_new {
                self.api_keys.clear();
            }
            self.api_keys.load(None, stored.read.number, &stored.keys);
            *read = stored.read;
            if is_new {
                *self.incarnation.lock() = Some(stored.incarnation);
                self.put_in_force(&self.keys.lock());
            }
        }
        self.followed
            .read_mono_ms
            .fetch_max(began_mono_ms, Ordering::SeqCst);
        let (users, changed, tokens) = self.revoked.sizes();
        tracing::info!(users, changed, tokens, "accounts and revocations loaded");
        Ok(is_new && known.is_some())
    }
}

pub(super) fn changed_account((_, change): &(i64, Change)) -> Option<AccountId> {
    match change {
        Change::Account { id, .. } => Some(*id),
        _ => None,
    }
}
