//! Access tokens: HS256 JSON web tokens, signed with the current key, verified with any known one.
//!
//! A token is good for one database alone, because another one gives the same ids to other people:
//! the key id in its header is made of the key and the database's id, and the header is compared as
//! a whole. Runs on the edge; pure. Which tokens are revoked stands elsewhere (`revoked`).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::hs256;
use super::keys::Key;
use crate::store::AccountId;

/// Seven days (contract, section 3). The clock that signs is the one that verifies, so an expired
/// token has no further seconds of grace.
pub const TOKEN_LIFE_S: i64 = 7 * 24 * 3_600;

/// Ours have about 340 bytes; nothing longer is looked at.
pub const TOKEN_BYTES_MAX: usize = 1_024;

const ISSUER: &str = "bhav";

/// What makes keys, and databases, tell themselves apart without telling anything of them.
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

/// What a good token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub id: AccountId,
    pub token_id: u128,
    /// Unix seconds.
    pub expires_s: i64,
    pub epoch: i64,
}

/// A token for its user.
#[derive(Debug)]
pub struct Signed {
    pub text: String,
    /// For tests of what becomes of it.
    #[cfg(test)]
    pub token_id: u128,
    #[cfg(test)]
    pub expires_s: i64,
}

/// No token can be made: no randomness, or no key.
#[derive(Debug, thiserror::Error)]
#[error("no token can be made: {0}")]
pub struct Unsigned(String);

struct VerifyingKey {
    /// The one header, base64, of every token of this key. Comparing it whole pins algorithm, type,
    /// key and database, and keeps a stranger's JSON from the library's parser, which nests by
    /// recursion.
    header: String,
    key: DecodingKey,
}

/// The keys, ready for use.
pub struct Tokens {
    header: Header,
    signing: EncodingKey,
    verifying: Vec<VerifyingKey>,
    validation: Validation,
}

impl Tokens {
    /// The first key signs; all verify, and all for this database alone.
    ///
    /// # Panics
    /// Without a key.
    pub fn new(keys: &[Key], database_id: &str) -> Self {
        hs256::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
        validation.set_issuer(&[ISSUER]);
        // Judged by the product's own clock instead.
        validation.validate_exp = false;
        let verifying = keys.iter().map(|key| VerifyingKey {
            header: encoded(&header_of(key, database_id)),
            key: DecodingKey::from_secret(key),
        });
        Self {
            header: header_of(&keys[0], database_id),
            signing: EncodingKey::from_secret(&keys[0]),
            verifying: verifying.collect(),
            validation,
        }
    }

    /// A new token of the user's present epoch.
    ///
    /// # Errors
    /// [`Unsigned`].
    pub fn sign(&self, id: AccountId, epoch: i64, now_ms: i64) -> Result<Signed, Unsigned> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| Unsigned(error.to_string()))?;
        let token_id = u128::from_be_bytes(bits);
        let now_s = now_ms.div_euclid(1_000);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            sub: id.0.to_string(),
            iat: now_s,
            exp: now_s + TOKEN_LIFE_S,
            jti: spelled(token_id),
            epoch,
        };
        let text = jsonwebtoken::encode(&self.header, &claims, &self.signing)
            .map_err(|error| Unsigned(error.to_string()))?;
        Ok(Signed {
            text,
            #[cfg(test)]
            token_id,
            #[cfg(test)]
            expires_s: claims.exp,
        })
    }

    /// What the token says, if one of our keys signed it for this database and it has not expired.
    pub fn verify(&self, token: &[u8], now_ms: i64) -> Option<Verified> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let header = &token[..memchr::memchr(b'.', token)?];
        let known = self.verifying.iter().find(|known| known.header.as_bytes() == header)?;
        let decoded = jsonwebtoken::decode::<Claims>(token, &known.key, &self.validation);
        let claims = decoded.ok()?.claims;
        if claims.exp.saturating_mul(1_000) <= now_ms {
            return None;
        }
        Some(Verified {
            id: AccountId(claims.sub.parse().ok().filter(|id| *id > 0)?),
            token_id: token_id(&claims.jti)?,
            expires_s: claims.exp,
            epoch: claims.epoch,
        })
    }
}

/// Whether one of these keys signed it, for whichever database.
pub fn signed_by_any(keys: &[Key], token: &[u8]) -> bool {
    if token.len() > TOKEN_BYTES_MAX {
        return false;
    }
    hs256::install();
    let Some((message, tag)) = std::str::from_utf8(token).ok().and_then(|t| t.rsplit_once('.'))
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
    // So that nothing can be taken from one and given to the other.
    hash.update((database_id.len() as u64).to_be_bytes());
    hash.update(database_id);
    hash.update(key);
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some(BASE64_URL_SAFE_NO_PAD.encode(&hash.finalize()[..KEY_ID_BYTES]));
    header
}

/// As the library writes it.
fn encoded(header: &Header) -> String {
    let any = EncodingKey::from_secret(b"any");
    let token = jsonwebtoken::encode(header, &(), &any).expect("a header and null serialise");
    token.split('.').next().unwrap_or_default().to_owned()
}

/// A token's id as the claim and the store spell it: 32 hexadecimal digits.
pub fn spelled(token_id: u128) -> String {
    format!("{token_id:032x}")
}

/// The id that [`spelled`] spells.
pub fn token_id(spelled: &str) -> Option<u128> {
    (spelled.len() == 32).then(|| u128::from_str_radix(spelled, 16).ok()).flatten()
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
