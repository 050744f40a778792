//! An authority that gives a lease to one holder at a time.

use std::fmt;

use crate::base::Epoch;

/// Who asks for a lease: a node's name and random bits of one attempt.
///
/// Another attempt is another holder. A request of an attempt that was given up may still be on its
/// way and take effect later; it must neither renew nor release the lease of the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder(String);

impl Holder {
    /// Longest name of a node.
    pub const NODE_BYTES_MAX: usize = 64;

    /// A holder like no other. `attempt` is random. Of a longer name only the beginning counts.
    pub fn new(node: &str, attempt: u64) -> Self {
        let plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
        let node: String = node.chars().filter(plain).take(Self::NODE_BYTES_MAX).collect();
        Self(format!("{node}/{attempt:016x}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of a request for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The holder has the lease, for its full length from the moment of the answer at the
    /// authority.
    Granted(Epoch),
    /// Somebody else has it, or it cannot be given yet.
    Refused,
}

/// Whether a lease could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Free,
    Taken,
}

/// What a look at an authority shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub presence: Presence,
    /// The highest epoch that this authority has seen; 0 where it counts none.
    pub highest: Epoch,
}

/// An authority did not answer. A request may take effect all the same, even later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthorityError(pub String);

/// Gives one lease. Calls block, each for less than the margin between lease and local deadline.
pub trait Authority: Send + Sync {
    /// Whether the lease could be had now. Changes nothing.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn look(&self) -> Result<Look, AuthorityError>;

    /// Takes the lease if nobody has it. The authority that counts epochs gives one above its last
    /// and above `epoch`, the highest that is known of: it may have gone back. Another keeps the
    /// `epoch` that is given, unless it has seen it or a higher one.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn take(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError>;

    /// Extends the lease of `holder`. One that has run out is given again unless somebody else took
    /// it meanwhile.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn renew(&self, holder: &Holder, epoch: Epoch) -> Result<Grant, AuthorityError>;

    /// Gives the lease back, if `holder` has it.
    ///
    /// # Errors
    /// [`AuthorityError`].
    fn release(&self, holder: &Holder) -> Result<(), AuthorityError>;
}
