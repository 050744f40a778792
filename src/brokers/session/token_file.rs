//! What one process leaves to the next of a token that a login gave: a small document, written to
//! wiped memory and read from there.
//!
//! Pure. Nothing here knows where the document is kept, and nothing of it is ever printed.

use std::fmt;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::Broker;

/// Far above what two tokens of the brokers take; a setting may have 4096 characters.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024;

const MAGIC: &[u8] = b"bhav-token";
const VERSION: u8 = 1;
/// Everything but the two texts and the fingerprint: magic, version, broker, time, whether there is
/// a fingerprint, two lengths.
const FIXED_BYTES: usize = MAGIC.len() + 1 + 1 + 16 + 1 + 2 + 2;

/// Tells whether a token of the settings is still the same, without being it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of a token with some hundred bits: nobody finds it by trying.
    pub fn of(token: &SecretString) -> Self {
        Self(Sha256::digest(token.expose_secret()).into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Fingerprint")
    }
}

/// A token and the circumstances in which it was kept. Its `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct KeptToken {
    pub broker: Broker,
    pub access_token: SecretString,
    pub api_key: SecretString,
    /// When it was set at first, however many processes ago.
    pub set_at: Timestamp,
    /// The settings' own access token at that time.
    pub settings_token: Option<Fingerprint>,
}

/// It would be longer than [`DOCUMENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than {DOCUMENT_BYTES_MAX} bytes")]
pub struct TooLong;

/// Why a document says nothing. Holds nothing of it but its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("not a document of ours")]
    Foreign,
    #[error("written in version {0}, which this program does not know")]
    Version(u8),
    #[error("damaged or cut short")]
    Damaged,
}

impl KeptToken {
    /// The document.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn encode(&self) -> Result<Zeroizing<Vec<u8>>, TooLong> {
        let texts = [self.access_token.expose_secret(), self.api_key.expose_secret()];
        let fingerprint = self.settings_token.as_ref().map_or(&[][..], |it| &it.0);
        let length = FIXED_BYTES + fingerprint.len() + texts[0].len() + texts[1].len();
        if length > DOCUMENT_BYTES_MAX {
            return Err(TooLong);
        }
        // Room for all from the start: growing would leave copies behind.
        let mut document = Zeroizing::new(Vec::with_capacity(length));
        document.extend_from_slice(MAGIC);
        document.push(VERSION);
        document.extend_from_slice(self.broker.as_str().as_bytes());
        document.extend_from_slice(&self.set_at.as_nanosecond().to_be_bytes());
        document.push(u8::from(self.settings_token.is_some()));
        document.extend_from_slice(fingerprint);
        for text in texts {
            let bytes = u16::try_from(text.len()).map_err(|_| TooLong)?;
            document.extend_from_slice(&bytes.to_be_bytes());
            document.extend_from_slice(text.as_bytes());
        }
        Ok(document)
    }

    /// Reads a document, every byte of it.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn decode(document: &[u8]) -> Result<Self, Unreadable> {
        let mut rest = document.strip_prefix(MAGIC).ok_or(Unreadable::Foreign)?;
        match take::<1>(&mut rest)? {
            [VERSION] => {}
            [other] => return Err(Unreadable::Version(other)),
        }
        let [letter] = take::<1>(&mut rest)?;
        let of_letter = |broker: &Broker| broker.as_str().as_bytes() == [letter];
        let broker = Broker::ALL.into_iter().find(of_letter).ok_or(Unreadable::Damaged)?;
        let nanosecond = i128::from_be_bytes(take(&mut rest)?);
        let set_at = Timestamp::from_nanosecond(nanosecond).map_err(|_| Unreadable::Damaged)?;
        let settings_token = match take::<1>(&mut rest)? {
            [0] => None,
            [1] => Some(Fingerprint(take(&mut rest)?)),
            _ => return Err(Unreadable::Damaged),
        };
        let access_token = secret(&mut rest)?;
        let api_key = secret(&mut rest)?;
        if !rest.is_empty() {
            return Err(Unreadable::Damaged);
        }
        Ok(Self { broker, access_token, api_key, set_at, settings_token })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Unreadable> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or(Unreadable::Damaged)?;
    *rest = after;
    Ok(*taken)
}

fn secret(rest: &mut &[u8]) -> Result<SecretString, Unreadable> {
    let length = usize::from(u16::from_be_bytes(take(rest)?));
    let (taken, after) = rest.split_at_checked(length).ok_or(Unreadable::Damaged)?;
    *rest = after;
    let text = std::str::from_utf8(taken).map_err(|_| Unreadable::Damaged)?;
    // An empty one is none.
    if text.is_empty() { Err(Unreadable::Damaged) } else { Ok(text.into()) }
}

#[cfg(test)]
#[path = "token_file_tests.rs"]
mod tests;
