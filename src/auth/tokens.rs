//! Access tokens: JSON web tokens (HS256), signed with the current key and verified with any known
//! key.
//!
//! A token is valid for one database only, because another database gives the same ids to other
//! users. So the key id in its header is computed from the key and the database's id, and the
//! header is compared as a whole. Runs on the edge; pure. Revoked tokens: see `revocations`.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::auth::keys::Key;
use crate::store::AccountId;

/// Lifetime of a token: seven days. There is no leeway after it, because the same clock signs and
/// verifies.
pub(crate) const TOKEN_LIFE_S: i64 = 7 * 24 * 3_600;

/// Longest token accepted; ours have about 340 bytes.
pub(crate) const TOKEN_BYTES_MAX: usize = 1_024;

const ISSUER: &str = "bhav";

/// Issuer of the proof of an earlier login, which is no access token.
const PROOF_ISSUER: &str = "bhav earlier login";

/// Time for which a login can be proven: as long as browsers keep a cookie.
pub(crate) const PROOF_LIFE_S: i64 = 400 * 24 * 3_600;

/// Prefix of the data from which key ids are hashed. A key id reveals neither key nor database.
const KEY_ID_LABEL: &[u8] = b"bhav token key id of a database\0";
const KEY_ID_BYTES: usize = 16;

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    exp: i64,
    jti: String,
    epoch: i64,
}

/// The content of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verified {
    pub id: AccountId,
    pub token_id: u128,
    /// Unix seconds.
    pub expires_s: i64,
    pub epoch: i64,
}

/// An earlier login, proven by a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub id: AccountId,
    /// The token's id, different for each.
    pub token_id: u128,
}

/// A token could not be made: no randomness, or an error of the library.
#[derive(Debug, thiserror::Error)]
#[error("no token can be made: {0}")]
pub struct Unsigned(String);

struct VerifyingKey {
    /// The header, in base64, of every token of this key. Comparing it as a whole checks algorithm,
    /// type, key and database. It also keeps a client's JSON from the library's recursive parser.
    header: String,
    key: DecodingKey,
}

/// Signs and verifies tokens.
pub(super) struct Tokens {
    header: Header,
    signing: EncodingKey,
    verifying: Vec<VerifyingKey>,
    validation: Validation,
    /// Also accepts the proof of an earlier login.
    earlier: Validation,
}

impl Tokens {
    /// The first key signs, and all keys verify, for this database only.
    ///
    /// # Panics
    /// If `keys` is empty.
    pub(super) fn new(keys: &[Key], database_id: &str) -> Self {
        install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        validation.set_issuer(&[ISSUER]);
        // `verify` checks the expiry, by the service's own clock.
        validation.validate_exp = false;
        let mut earlier = validation.clone();
        earlier.set_issuer(&[ISSUER, PROOF_ISSUER]);
        let verifying = keys.iter().map(|key| VerifyingKey {
            header: encoded(&header_of(key, database_id)),
            key: DecodingKey::from_secret(key),
        });
        Self {
            header: header_of(&keys[0], database_id),
            signing: EncodingKey::from_secret(&keys[0]),
            verifying: verifying.collect(),
            validation,
            earlier,
        }
    }

    /// A new token of the user's current epoch.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub(crate) fn sign(&self, id: AccountId, epoch: i64, now_ms: i64) -> Result<String, Unsigned> {
        self.signed(&claims(ISSUER, id, epoch, now_ms, TOKEN_LIFE_S)?)
    }

    /// The proof, for a later login, that the user has logged in now. It is no access token.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub(crate) fn sign_proof(&self, id: AccountId, now_ms: i64) -> Result<String, Unsigned> {
        self.signed(&claims(PROOF_ISSUER, id, 0, now_ms, PROOF_LIFE_S)?)
    }

    fn signed(&self, claims: &Claims) -> Result<String, Unsigned> {
        jsonwebtoken::encode(&self.header, claims, &self.signing)
            .map_err(|error| Unsigned(error.to_string()))
    }

    /// The content of the token, if one of our keys signed it for this database and it has not
    /// expired.
    pub(crate) fn verify(&self, token: &[u8], now_ms: i64) -> Option<Verified> {
        let claims = self.decoded(token, &self.validation)?;
        if claims.exp.saturating_mul(1_000) <= now_ms {
            return None;
        }
        Some(Verified {
            id: account_id(&claims)?,
            token_id: token_id(&claims.jti)?,
            expires_s: claims.exp,
            epoch: claims.epoch,
        })
    }

    /// The login that a token proves, also if it no longer gives access. One of our keys must have
    /// signed it for this database within [`PROOF_LIFE_S`].
    pub(super) fn earlier(&self, token: &[u8], now_ms: i64) -> Option<Earlier> {
        let claims = self.decoded(token, &self.earlier)?;
        if claims
            .iat
            .saturating_add(PROOF_LIFE_S)
            .saturating_mul(1_000)
            <= now_ms
        {
            return None;
        }
        Some(Earlier {
            id: account_id(&claims)?,
            token_id: token_id(&claims.jti)?,
        })
    }

    /// Whether the token has the header of one of our keys. Its signature is not looked at.
    pub(super) fn may_be_ours(&self, token: &[u8]) -> bool {
        self.key_of(token).is_some()
    }

    fn key_of(&self, token: &[u8]) -> Option<&VerifyingKey> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let header = &token[..memchr::memchr(b'.', token)?];
        self.verifying
            .iter()
            .find(|known| known.header.as_bytes() == header)
    }

    fn decoded(&self, token: &[u8], validation: &Validation) -> Option<Claims> {
        let known = self.key_of(token)?;
        let decoded = jsonwebtoken::decode::<Claims>(token, &known.key, validation);
        Some(decoded.ok()?.claims)
    }
}

fn claims(
    issuer: &str,
    id: AccountId,
    epoch: i64,
    now_ms: i64,
    life_s: i64,
) -> Result<Claims, Unsigned> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| Unsigned(error.to_string()))?;
    let iat = now_ms.div_euclid(1_000);
    Ok(Claims {
        iss: issuer.to_owned(),
        sub: id.0.to_string(),
        iat,
        exp: iat + life_s,
        jti: spelled(u128::from_be_bytes(bits)),
        epoch,
    })
}

fn account_id(claims: &Claims) -> Option<AccountId> {
    claims.sub.parse().ok().filter(|id| *id > 0).map(AccountId)
}

/// Whether one of these keys signed the token, for any database.
pub(crate) fn signed_by_any(keys: &[Key], token: &[u8]) -> bool {
    if token.len() > TOKEN_BYTES_MAX {
        return false;
    }
    install();
    let Some((message, tag)) = std::str::from_utf8(token)
        .ok()
        .and_then(|t| t.rsplit_once('.'))
    else {
        return false;
    };
    keys.iter().any(|key| {
        let key = DecodingKey::from_secret(key);
        jsonwebtoken::crypto::verify(tag, message.as_bytes(), &key, Algorithm::HS256)
            .unwrap_or(false)
    })
}

fn header_of(key: &[u8], database_id: &str) -> Header {
    let mut hash = Sha256::new();
    hash.update(KEY_ID_LABEL);
    // Hash the length first, so that the boundary between id and key is unambiguous.
    hash.update((database_id.len() as u64).to_be_bytes());
    hash.update(database_id);
    hash.update(key);
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(BASE64_URL_SAFE_NO_PAD.encode(&hash.finalize()[..KEY_ID_BYTES]));
    header
}

/// The header in base64, as the library encodes it.
fn encoded(header: &Header) -> String {
    let any = EncodingKey::from_secret(b"any");
    let token = jsonwebtoken::encode(header, &(), &any).expect("a header and null serialise");
    token.split('.').next().unwrap_or_default().to_owned()
}

/// A token id as text, in the claim and in the store: 32 hexadecimal digits.
pub(super) fn spelled(token_id: u128) -> String {
    format!("{token_id:032x}")
}

/// Inverse of [`spelled`]; `None` for any other text.
pub(crate) fn token_id(spelled: &str) -> Option<u128> {
    (spelled.len() == 32)
        .then(|| u128::from_str_radix(spelled, 16).ok())
        .flatten()
}

// ---- Hs256
//
// HMAC-SHA-256 as cryptography provider of the `jsonwebtoken` library. Pure.
//
// Of the library's two own providers one compiles a C library, and the other adds RSA and elliptic
// curves. Tokens here are HS256 only, and the program contains that hash already.

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs the provider for the process. May be called more than once.
pub(crate) fn install() {
    // Fails only if a provider is installed already, and that is this one.
    let _ = PROVIDER.install_default();
}

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> jsonwebtoken::errors::Result<Self> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::UnsupportedAlgorithm.into());
        }
        let mac = Hmac::new_from_slice(key).map_err(|_| ErrorKind::InvalidKeyFormat)?;
        Ok(Self(mac))
    }
}

fn signer(
    algorithm: &Algorithm,
    key: &EncodingKey,
) -> jsonwebtoken::errors::Result<Box<dyn JwtSigner>> {
    Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?))
}

fn verifier(
    algorithm: &Algorithm,
    key: &DecodingKey,
) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Compares in constant time.
    fn verify(&self, message: &[u8], tag: &Vec<u8>) -> Result<(), Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(tag).map_err(|_| Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;

#[cfg(test)]
mod hs256_tests {
    use super::*;
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    /// RFC 7515, appendix A.1.
    #[test]
    fn the_example_of_rfc_7515_is_signed_and_verified() {
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS\
                   0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = BASE64_URL_SAFE_NO_PAD.decode(key).unwrap();
        let message = b"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
            eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
            cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
        let tag = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        install();
        install();
        let encoding = EncodingKey::from_secret(&key);
        let decoding = DecodingKey::from_secret(&key);
        let made = jsonwebtoken::crypto::sign(message, &encoding, Algorithm::HS256).unwrap();
        assert_eq!(made, tag);
        let verify = |tag| jsonwebtoken::crypto::verify(tag, message, &decoding, Algorithm::HS256);
        assert!(verify(tag).unwrap());
        assert!(!verify(&tag.replace('d', "e")).unwrap());
        assert!(jsonwebtoken::crypto::sign(message, &encoding, Algorithm::HS384).is_err());
    }
}
