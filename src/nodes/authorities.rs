//! The authorities of the lease: the row, in the database, and the claim, on the shared server.
//!
//! The claim is a key that lives as long as its holder renews it, and the fence is the highest
//! epoch that anybody claimed or wrote in. The server may lose all keys when it restarts, so it
//! gives no claim to a new holder before it has been up for the length of a lease: a claim that it
//! forgot has run out by then. In the same way a node waits where a stranger has written over a
//! claim, or where one that it saw is gone before its time and was not given back. Both authorities
//! are asked on threads of their own.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use redis::{RedisResult, Script};

use crate::base::Clock;
use crate::nodes::lease::{Authority, AuthorityError, Grant, Holder, LeaseTimes, Look};
use crate::nodes::valkey::keys::{FENCE, FENCE_MS, LEADER};
use crate::nodes::valkey::{
    Client, Connection, Deadlines, Distrust, Installation, KeptKey, Key, NamespaceKeys, Server,
    Signed, looking_script, script,
};
use crate::store::{Epoch, PostgresLease};

/// Deadlines below the margin between a lease and the local deadline.
const DEADLINES: Deadlines = Deadlines {
    connect_ms: 300,
    call_ms: 600,
};
/// The rows of the scripts' keys.
const ROWS: [&KeptKey; 2] = [LEADER, FENCE];

#[expect(clippy::needless_pass_by_value, reason = "as the end of a result")]
fn not_asked(error: impl ToString) -> AuthorityError {
    AuthorityError(error.to_string())
}

impl Authority for PostgresLease {
    fn look(&self) -> Result<Look, AuthorityError> {
        let (is_free, highest) = self.look().map_err(not_asked)?;
        Ok(Look { is_free, highest })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        let taken = self.take(holder.as_str(), epoch).map_err(not_asked)?;
        Ok(taken.map_or(Grant::Refused, Grant::Granted))
    }

    fn renew(&self, holder: &Holder, _: Epoch) -> Result<Grant, AuthorityError> {
        let renewed = self.renew(holder.as_str()).map_err(not_asked)?;
        Ok(renewed.map_or(Grant::Refused, Grant::Granted))
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        self.release(holder.as_str()).map_err(not_asked)
    }
}

/// Answers of the claiming script.
const GRANTED: u64 = 1;
const TOO_YOUNG: u64 = 0;
const IN_THE_WAY: u64 = 2;
/// Tries of a request: one for a wrong idea of the server's clock, and some for forged values,
/// which somebody may write as fast as they are replaced.
const TRIES_MAX: usize = 5;
/// How far this node's idea of the server's clock may be off (`scripts/common.lua`).
const CLOCK_MS: u64 = 1_000;

/// Code or flag, the server's time, claim, fence, and what no node has written.
type Told = (u64, u64, Vec<u8>, Vec<u8>, Vec<usize>);

/// The claim on one server.
///
/// Claim and fence are signed, the claim with the time at which it was sent. So one that a stranger
/// wrote, put back or gave a longer life stands in nobody's way. Only a node can verify a
/// signature: a script replies with what it found, and is called again with what was found to be
/// forged.
pub struct ValkeyClaim {
    client: Client,
    installation: Arc<Installation>,
    lease_ms: u64,
    look: Script,
    claim: Script,
    release: Script,
    timer: Clock,
    /// The server's time at the zero of our clock.
    server_zero_ms: AtomicU64,
    seen: Mutex<Seen>,
}

/// What was seen of the claim, by our clock. A stranger may have written over the claim of a leader
/// who has nothing else left, and may act for the rest of his lease.
#[derive(Debug, Default)]
struct Seen {
    /// When the last claim of a node was sent, by the server's clock.
    claimed_ms: u64,
    /// That claim lasts until then.
    claimed_until_mono_ms: u64,
    /// Since then there was nothing that a node had written.
    foreign_since_mono_ms: Option<u64>,
}

/// What stands under the key of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Nothing,
    /// The last holder has given it back.
    GivenBack,
    /// A node sent it at this time, this long ago, which is less than a lease.
    Claimed {
        sent_ms: u64,
        age_ms: u64,
    },
    /// A node sent it at this time, and it has run out. Somebody gave it a longer life, or put it
    /// back over a later one.
    RunOut {
        sent_ms: u64,
    },
    /// No node has written it.
    Foreign,
}

impl Seen {
    /// Notes what stands there. Returns whether no node can have the claim any more.
    fn note(&mut self, standing: Standing, lease_ms: u64, now_mono_ms: u64) -> bool {
        match standing {
            Standing::GivenBack => *self = Self::default(),
            Standing::Claimed { sent_ms, age_ms } => {
                *self = Self {
                    claimed_ms: sent_ms,
                    claimed_until_mono_ms: now_mono_ms + lease_ms.saturating_sub(age_ms),
                    foreign_since_mono_ms: None,
                };
                return false;
            }
            Standing::RunOut { sent_ms } if sent_ms == self.claimed_ms => {}
            Standing::Foreign | Standing::RunOut { .. } => {
                self.foreign_since_mono_ms.get_or_insert(now_mono_ms);
            }
            Standing::Nothing => {}
        }
        // A leader renews several times within this, and has stopped by the end of it.
        let acts_ms = LeaseTimes::of(lease_ms).acts_ms();
        let acted = |since_ms| now_mono_ms.saturating_sub(since_ms) >= acts_ms;
        now_mono_ms >= self.claimed_until_mono_ms && self.foreign_since_mono_ms.is_none_or(acted)
    }
}

impl ValkeyClaim {
    /// Gives leases of `lease_ms`.
    pub fn new(server: &Arc<Server>, installation: &Arc<Installation>, lease_ms: u64) -> Self {
        Self {
            client: Client::new(server, DEADLINES),
            installation: Arc::clone(installation),
            lease_ms,
            look: looking_script(include_str!("scripts/look.lua"), &ROWS),
            claim: script(include_str!("scripts/claim.lua"), &ROWS),
            release: script(include_str!("scripts/release.lua"), &ROWS[..1]),
            timer: server.timer.clone(),
            server_zero_ms: AtomicU64::new(0),
            seen: Mutex::default(),
        }
    }

    fn call<T>(
        &self,
        work: impl FnOnce(&NamespaceKeys, &mut Connection) -> RedisResult<T>,
    ) -> Result<T, AuthorityError> {
        let namespace_keys = self.installation.sure_namespace_keys().map_err(not_asked)?;
        self.client
            .call(|to| work(&namespace_keys, to))
            .map_err(not_asked)
    }

    fn claim(&self, holder: &Holder, epoch: Epoch, takes: bool) -> Result<Grant, AuthorityError> {
        let namespace_keys = self.installation.sure_namespace_keys().map_err(not_asked)?;
        let mut forged_claim = Vec::new();
        let mut forged_fence = Vec::new();
        for _ in 0..TRIES_MAX {
            let sent_ms = self.server_zero_ms.load(Relaxed) + self.timer.monotonic_ms();
            let place = (epoch, sent_ms);
            let told: Told = self.call(|_, to| {
                let mut script = self.claim.prepare_invoke();
                script
                    .key(namespace_keys.keys.key(Key::Leader))
                    .key(namespace_keys.keys.key(Key::Fence));
                script
                    .arg(namespace_keys.sign(Signed::Claim, "", place, holder.as_str().as_bytes()))
                    .arg(namespace_keys.sign(Signed::Fence, "", place, b""))
                    .arg(self.lease_ms)
                    .arg(FENCE_MS)
                    .arg(u8::from(takes))
                    .arg(&forged_claim)
                    .arg(&forged_fence)
                    .invoke(to)
            })?;
            let (code, now_ms, claim, fence, foreign) = told;
            self.note(now_ms, &foreign);
            match code {
                GRANTED => return Ok(Grant::Granted(epoch)),
                TOO_YOUNG => return Ok(Grant::Refused),
                IN_THE_WAY => {
                    let standing = self.standing(&namespace_keys, &claim, now_ms);
                    let is_claimed =
                        !matches!(standing, Standing::Foreign | Standing::RunOut { .. });
                    let is_fenced =
                        fence.is_empty() || self.fenced(&namespace_keys, &fence).is_some();
                    if is_claimed && is_fenced {
                        return Ok(Grant::Refused);
                    }
                    if !is_claimed {
                        forged_claim = claim;
                    }
                    if !is_fenced {
                        forged_fence = fence;
                    }
                }
                // The server's time is known now.
                _ => {}
            }
        }
        Err(AuthorityError("somebody writes on the server as fast as this node".to_owned()))
    }

    /// Judges what stands under the key of the claim.
    fn standing(&self, namespace_keys: &NamespaceKeys, claim: &[u8], now_ms: u64) -> Standing {
        if claim.is_empty() {
            return Standing::Nothing;
        }
        let Some(opened) = namespace_keys.open(Signed::Claim, b"", claim) else {
            self.distrust(Distrust::Forged, Signed::Claim, LEADER);
            return Standing::Foreign;
        };
        let age_ms = now_ms.saturating_sub(opened.number);
        let is_ahead = opened.number.saturating_sub(now_ms) > CLOCK_MS;
        if age_ms >= self.lease_ms || is_ahead {
            self.distrust(Distrust::Replayed, Signed::Claim, LEADER);
            return Standing::RunOut {
                sent_ms: opened.number,
            };
        }
        match opened.body {
            [] => Standing::GivenBack,
            _ => Standing::Claimed {
                sent_ms: opened.number,
                age_ms,
            },
        }
    }

    /// The highest epoch that a node has written in.
    fn fenced(&self, namespace_keys: &NamespaceKeys, fence: &[u8]) -> Option<Epoch> {
        let epoch = namespace_keys
            .open(Signed::Fence, b"", fence)
            .map(|opened| opened.epoch);
        if epoch.is_none() {
            self.distrust(Distrust::Forged, Signed::Fence, FENCE);
        }
        epoch
    }

    fn distrust(&self, cause: Distrust, what: Signed, row: &'static KeptKey) {
        self.installation.distrust(cause, what);
        self.client.note_foreign(&[row], &[1]);
    }

    fn note(&self, now_ms: u64, foreign: &[usize]) {
        self.client.note_foreign(&ROWS, foreign);
        self.server_zero_ms
            .store(now_ms.saturating_sub(self.timer.monotonic_ms()), Relaxed);
    }
}

impl Authority for ValkeyClaim {
    fn look(&self) -> Result<Look, AuthorityError> {
        let namespace_keys = self.installation.sure_namespace_keys().map_err(not_asked)?;
        let told: Told = self.call(|_, to| {
            let mut script = self.look.prepare_invoke();
            script
                .key(namespace_keys.keys.key(Key::Leader))
                .key(namespace_keys.keys.key(Key::Fence))
                .arg(self.lease_ms)
                .invoke(to)
        })?;
        let (gives, now_ms, claim, fence, foreign) = told;
        self.note(now_ms, &foreign);
        let standing = match foreign.contains(&1) {
            true => Standing::Foreign,
            false => self.standing(&namespace_keys, &claim, now_ms),
        };
        let now_mono_ms = self.timer.monotonic_ms();
        let is_over = self.seen.lock().note(standing, self.lease_ms, now_mono_ms);
        let highest = (!fence.is_empty())
            .then(|| self.fenced(&namespace_keys, &fence))
            .flatten();
        Ok(Look {
            is_free: gives == 1 && is_over,
            highest: highest.unwrap_or_default(),
        })
    }

    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, true)
    }

    fn renew(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError> {
        self.claim(holder, epoch, false)
    }

    fn release(&self, holder: &Holder) -> Result<(), AuthorityError> {
        // Somebody's deletion is no release: a node believes what is signed.
        let sent_ms = self.server_zero_ms.load(Relaxed) + self.timer.monotonic_ms();
        let foreign: Vec<usize> = self.call(|namespace_keys, to| {
            let given_back =
                namespace_keys.sign(Signed::Claim, "", (Epoch::default(), sent_ms), b"");
            let mut script = self.release.prepare_invoke();
            script
                .key(namespace_keys.keys.key(Key::Leader))
                .arg(holder.as_str());
            script.arg(given_back).arg(self.lease_ms).invoke(to)
        })?;
        self.client.note_foreign(&ROWS, &foreign);
        Ok(())
    }
}

#[cfg(test)]
#[path = "authorities_tests.rs"]
mod tests;
