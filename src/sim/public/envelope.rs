//! What all calls to the public provider have in common: its delay, its errors, and a share that
//! was renamed.

use jiff::{SignedDuration, Timestamp};

use crate::sim::server::answer::Answer;
use crate::sim::server::json::{Json, map};
use crate::sim::world::Call;

/// Still answered, with a shell of an answer: a share that was renamed.
pub(crate) const GHOST: &str = "TATAMOTORS.NS";

/// The instant whose prices this provider shows: it is behind the exchange.
pub(crate) fn delayed(call: &Call<'_>) -> Timestamp {
    let behind = SignedDuration::from_secs(call.world.settings.public_delay_s);
    call.prices_at.checked_sub(behind).unwrap_or(call.prices_at)
}

/// `{"<root>":{"result":null,"error":{…}}}`.
pub(crate) fn error(status: u16, root: &str, code: &str, description: &str) -> Answer {
    let error = map([("code", code.into()), ("description", description.into())]);
    Answer::rejected(status, map([(root, map([("result", Json::Null), ("error", error)]))]))
}
