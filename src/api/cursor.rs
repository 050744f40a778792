//! A position in a user's list as text for the client, and back. Pure.
//!
//! A cursor is valid for one user and one kind of list, and contains nothing that its page did not,
//! so it needs no secret and no key. It stays valid over restarts, key rotation and a move to
//! another machine. Its checksum covers the user too, so that another user's cursor or a changed
//! one is refused. A forged cursor reaches only the user's own list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::store::AccountId;

/// A position in a list.
pub(super) type Position = [u8; POSITION_BYTES];

const POSITION_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 8;
const BYTES: usize = POSITION_BYTES + CHECKSUM_BYTES;

/// The position as text for a URL. `list` names the kind of list.
pub(super) fn seal(list: &str, user: AccountId, position: &Position) -> String {
    let mut bytes = [0; BYTES];
    bytes[..POSITION_BYTES].copy_from_slice(position);
    bytes[POSITION_BYTES..].copy_from_slice(&checksum(list, user, position));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The position of the user's own cursor of such a list; `None` for any other text.
pub(super) fn open(list: &str, user: AccountId, text: &str) -> Option<Position> {
    let mut bytes = [0; BYTES];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (position, sum) = bytes.split_first_chunk::<POSITION_BYTES>()?;
    (length == BYTES && *sum == checksum(list, user, position)).then_some(*position)
}

fn checksum(list: &str, user: AccountId, position: &Position) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new_with_prefix(list);
    hash.update(user.0.to_be_bytes());
    hash.update(position);
    let sum = hash.finalize();
    std::array::from_fn(|at| sum[at])
}
