//! What users' portfolio syncs go through: the guard, limits of keys, shares of a broker,
//! cooldowns.

pub(crate) mod cooldown;
pub(crate) mod guard;
pub(crate) mod key_limiter;
pub(crate) mod shares;
