//! The checksums that prove a secret without sending it. Pure; runs on upstream lanes.
//!
//! Nothing that was hashed may stay behind: the hasher is used in place and wiped when dropped
//! (sha2's `zeroize`), and [`wipe::scrub`] overwrites what its rounds left on the stack.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::wipe;

/// Lower-case hexadecimal characters of a SHA-256.
const HEX_CHARS: usize = 64;

/// `prefix`, then the lower-case hexadecimal SHA-256 of `parts` one after the other.
pub(super) fn checksum(prefix: &str, parts: &[&[u8]]) -> Zeroizing<String> {
    let sum = hashed(prefix, parts);
    wipe::scrub();
    sum
}

/// Never inlined: its frame has to lie where [`wipe::scrub`]'s will.
#[inline(never)]
fn hashed(prefix: &str, parts: &[&[u8]]) -> Zeroizing<String> {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut sum = sha2::digest::Output::<Sha256>::default();
    // Through a reference: a hasher that is moved leaves a copy of its last block.
    Digest::finalize_into_reset(&mut hasher, &mut sum);
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + HEX_CHARS));
    text.push_str(prefix);
    for byte in sum {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_vectors_of_both_brokers() {
        assert_eq!(
            checksum("", &[b"api_key", b"request_token", b"api_secret"]).as_str(),
            "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
        );
        let signed = checksum("token ", &[b"2026-10-01T10:23:56.000Z", b"{}", b"EXAMPLE_SECRET"]);
        assert_eq!(
            signed.as_str(),
            "token c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae"
        );
        assert_eq!(signed.capacity(), 70, "never grown by copying");
    }
}
