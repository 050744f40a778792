//! What keeps memory in step with the store and the disk: what decides about tokens, the file with
//! the signing key, revocations that are past. Blocks, or parks on the edge.

use std::sync::atomic::Ordering;

use super::identity::Auth;
use super::keys::KeyState;
use crate::store::OutsideChanges;

/// Between two looks for revocations of tokens that have expired.
const FORGET_INTERVAL_MS: u64 = 3_600_000;
/// Where no feed says what time it is, revocations are kept for so long after their tokens have
/// expired: no clock that anybody works with is wrong by more.
const KEPT_MS_MAX: i64 = 400 * 24 * 3_600 * 1_000;

impl Auth {
    /// Takes up what an operator's command changed beside this service. Blocks; for a lane.
    pub fn notice_outside_changes(&self) {
        // Counted before it is loaded: a change that comes in between is taken up the next time.
        let Ok(OutsideChanges { made, noticed }) = self.store.outside_changes() else { return };
        if made == noticed || !self.load_state() {
            return;
        }
        if let Err(error) = self.store.notice_outside_changes(made) {
            tracing::warn!(%error, "changes of users were taken up, which could not be noted");
        }
    }

    /// Looks whether the file with the signing key is what the next start needs, and tells once
    /// where it is not. Blocks; for a lane.
    pub fn look_after_key(&self) {
        let found = self.key_file.lock().look();
        let before = std::mem::replace(&mut *self.key_state.lock(), found);
        match found {
            _ if found == before => {}
            KeyState::Missing | KeyState::Changed => tracing::error!(
                state = found.as_str(),
                "the file with the signing key was removed or changed: the next start or reload \
                 ends every login; put it back if that is not wanted"
            ),
            KeyState::Kept | KeyState::Given => tracing::info!("the signing key is kept"),
        }
    }

    /// As the last look found the file with the signing key.
    pub fn key_state(&self) -> KeyState {
        *self.key_state.lock()
    }

    /// Drops revocations of tokens that have expired for certain: by this clock, and by the time
    /// that the exchange's newest price has (`exchange_ms`). This clock alone may be days ahead,
    /// and what was dropped then would be good again once it is right. Blocks; for a lane.
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
                tracing::debug!(tokens, "revocations of expired tokens were dropped");
            }
            Err(error) => tracing::warn!(%error, "revocations that are past are kept for now"),
        }
    }

    /// False where the store does not say.
    pub(super) fn load_state(&self) -> bool {
        let known = self.tokens().is_some();
        match self.store.auth_state() {
            Ok(stored) => {
                self.revoked.load(&stored);
                if !known {
                    // A process never opens another file than the first.
                    let _ = self.database_id.set(stored.database_id);
                    self.put_in_force(&self.keys.lock());
                }
                let (users, changed, tokens) = self.revoked.sizes();
                tracing::info!(users, changed, tokens, "know which tokens are good");
                true
            }
            Err(error) if known => {
                tracing::warn!(%error, "what was changed by command cannot be read yet");
                false
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "what decides about tokens cannot be read, so none is accepted until it can"
                );
                false
            }
        }
    }
}

/// What lies before it is past by every clock that there is.
fn certainly_past_ms(now_ms: i64, exchange_ms: Option<i64>) -> i64 {
    let told_ms = exchange_ms.map_or(i64::MIN, |exchange_ms| exchange_ms.min(now_ms));
    told_ms.max(now_ms.saturating_sub(KEPT_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_clock_and_exchange_agree_on_is_past() {
        const DAY_MS: i64 = 24 * 3_600 * 1_000;
        let now_ms = 20_000 * DAY_MS;
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms - 5)), now_ms - 5);
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms - 8 * DAY_MS)), now_ms - 8 * DAY_MS);
        assert_eq!(certainly_past_ms(now_ms, Some(now_ms + 8 * DAY_MS)), now_ms);
        // Nobody says what time it is.
        assert_eq!(certainly_past_ms(now_ms, None), now_ms - 400 * DAY_MS);
    }
}
