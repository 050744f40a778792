//! Maintenance of authentication state: loads it from the store, watches the signing key's file,
//! and drops revocations of expired tokens. Blocks, or parks on the edge.

use std::sync::atomic::Ordering;

use super::identity::Auth;
use super::keys::{self, KeyState};
use super::known_networks::FORGOTTEN_MS;
use crate::store::StoreError;

/// Time between two removals of revocations of expired tokens.
const FORGET_INTERVAL_MS: u64 = 3_600_000;
/// Time between two readings of the networks that other nodes have written.
const NETWORKS_INTERVAL_MS: u64 = 60_000;
/// How far back a reading goes: other nodes' clocks differ, and their databases fail for a while.
const NETWORKS_REREAD_MS: i64 = 600_000;
/// If no feed tells the exchange's time, revocations are kept for this long after their tokens have
/// expired. No clock is expected to be wrong by more.
const KEPT_MS_MAX: i64 = 400 * 24 * 3_600 * 1_000;

impl Auth {
    /// Checks that the file with the signing key is unchanged, and logs a change once. Blocks; for
    /// a lane.
    pub fn look_after_key(&self) {
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
    pub fn key_state(&self) -> KeyState {
        *self.key_state.lock()
    }

    /// Drops changes that are no longer needed, and revocations of tokens that have certainly
    /// expired: by this machine's clock and by the time of the exchange's newest price
    /// (`exchange_ms`). This clock alone may be days ahead, and a token whose revocation was
    /// dropped too early would be valid again once the clock is right. Blocks; for a lane.
    pub fn forget_expired(&self, exchange_ms: Option<i64>) {
        let (now_ms, now_mono_ms) = (self.clock.now_ms(), self.clock.monotonic_ms());
        if now_mono_ms < self.next_forget_mono_ms.load(Ordering::Relaxed) {
            return;
        }
        self.next_forget_mono_ms.store(now_mono_ms + FORGET_INTERVAL_MS, Ordering::Relaxed);
        let before_ms = certainly_past_ms(now_ms, exchange_ms);
        match self.store.forget_revocations(before_ms) {
            Ok(tokens) => {
                self.revoked.forget(before_ms);
                tracing::debug!(tokens, "revocations of expired tokens dropped");
            }
            // The store has said why, here and below.
            Err(StoreError::Unavailable(_)) => return,
            Err(error) => tracing::warn!(%error, "cannot drop revocations of expired tokens"),
        }
        let networks_before_ms = before_ms.saturating_sub(FORGOTTEN_MS);
        match self.store.forget_login_networks(networks_before_ms) {
            Ok(_) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot drop networks that were last used long ago");
            }
        }
        match self.store.forget_changes() {
            Ok(_) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => tracing::warn!(%error, "cannot drop changes that every node has read"),
        }
    }

    /// Writes the networks from which accounts were used, and takes up those that other nodes have
    /// written. Blocks; for a lane.
    pub fn keep_networks(&self) {
        let waiting = self.known_networks.take_waiting();
        let mut is_due = self.is_shared()
            && self.clock.monotonic_ms() >= self.next_networks_mono_ms.load(Ordering::Relaxed);
        if !waiting.is_empty() {
            match self.store.keep_login_networks(waiting.clone()) {
                // What a token told is known with its account's e-mail by reading it.
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

    /// Takes up the networks that were written since `since_ms`.
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

    /// Tells the database which secret this node signs with.
    ///
    /// # Errors
    /// Where the nodes of the database sign with another, which this one does not know.
    pub(super) fn claim_secret(&self) -> Result<(), StoreError> {
        let checks: Vec<String> = self.keys.lock().iter().map(keys::check_value).collect();
        let other = self.store.claim_secret(&checks[0], &checks[1..])?;
        other.map_or(Ok(()), |recorded| {
            self.note_other_secret(Some(recorded));
            Err(StoreError::Unavailable("JWT_SECRET is not that of the other nodes".to_owned()))
        })
    }

    /// Notes which secret the nodes of the database sign with, and logs it once where this node
    /// does not know it: it refuses tokens of theirs.
    pub(super) fn note_secret(&self, recorded: Option<&String>) {
        let Some(recorded) = recorded else { return };
        let is_known = self.keys.lock().iter().any(|key| keys::check_value(key) == *recorded);
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

    /// Loads accounts, epochs and revocations from the store, for the first time; what changes
    /// afterwards is followed.
    pub(super) fn load_state(&self) {
        match self.load_all() {
            Ok(_) => self.load_networks(self.clock.now_ms().saturating_sub(FORGOTTEN_MS)),
            // The store has said why.
            Err(StoreError::Unavailable(_)) => {
                tracing::warn!("no token is accepted until the store can be used");
            }
            Err(error) => tracing::error!(
                %error,
                "cannot read accounts and revocations, so no token is accepted until then"
            ),
        }
    }

    /// Loads them, whatever was read before. True where the database has another incarnation than
    /// was known, so that every login ends.
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
                // Another pass has taken up what is newer.
                return Ok(false);
            }
            match is_new {
                true => self.revoked.replace(&stored),
                false => self.revoked.load(&stored),
            }
            *read = stored.read;
            if is_new {
                *self.incarnation.lock() = Some(stored.incarnation);
                self.put_in_force(&self.keys.lock());
            }
        }
        self.loaded(began_mono_ms);
        let (users, changed, tokens) = self.revoked.sizes();
        tracing::info!(users, changed, tokens, "accounts and revocations loaded");
        Ok(is_new && known.is_some())
    }
}

/// The latest instant that is past by this clock and the exchange's.
fn certainly_past_ms(now_ms: i64, exchange_ms: Option<i64>) -> i64 {
    let told_ms = exchange_ms.map_or(i64::MIN, |exchange_ms| exchange_ms.min(now_ms));
    told_ms.max(now_ms.saturating_sub(KEPT_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_past_if_clock_and_exchange_agree() {
        const DAY_MS: i64 = 24 * 3_600 * 1_000;
        let now_ms = 20_000 * DAY_MS;
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms - 5)), now_ms - 5);
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms - 8 * DAY_MS)), now_ms - 8 * DAY_MS);
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms + 8 * DAY_MS)), now_ms);
        // Without the exchange's time.
        assert_eq!(certainly_past_ms(now_ms, None), now_ms - 400 * DAY_MS);
    }
}
