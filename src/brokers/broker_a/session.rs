//! The checksum of the daily login. Pure.

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::brokers::signing;

/// Longest request token that is passed on; real ones have 32 characters.
pub(super) const REQUEST_TOKEN_BYTES_MAX: usize = 256;

/// Lower-case hexadecimal SHA-256 of `api_key ++ request_token ++ api_secret`, which proves the
/// secret without sending it.
pub(super) fn checksum(
    api_key: &SecretString,
    request_token: &str,
    api_secret: &SecretString,
) -> Zeroizing<String> {
    let parts = [api_key.expose_secret(), request_token, api_secret.expose_secret()];
    signing::checksum("", &parts.map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_vector() {
        let sum = checksum(&"api_key".into(), "request_token", &"api_secret".into());
        assert_eq!(
            sum.as_str(),
            "ff6a6d3d60c9d974df906ba6f787ac38300cfa68b41801b486ea1007e52e8942"
        );
    }
}
