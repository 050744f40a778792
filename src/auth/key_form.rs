//! The form of an API key: its prefix, its id, its secret and its check digits. Pure.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::base::hex::hex;
use crate::store::StoreError;

/// The number of an id's digits; `None` if they are not [`ID_DIGITS`] of base62.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.len() != ID_DIGITS {
        return None;
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, digit| sum.checked_mul(62)?.checked_add(u64::from(value(*digit)?)))
}

/// Inverse of [`number`].
pub(crate) fn id_text(id: u64) -> String {
    spelled(&id.to_be_bytes(), ID_DIGITS)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        _ => None,
    }
}

/// A number as base62 of this many digits.
fn spelled(number: &[u8], digits: usize) -> String {
    let mut rest = Zeroizing::new(number.to_vec());
    let mut text = vec![0; digits];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0;
        for byte in rest.iter_mut() {
            let part = remainder << 8 | u32::from(*byte);
            *byte = (part / 62) as u8;
            remainder = part % 62;
        }
        *digit = DIGITS[remainder as usize];
    }
    String::from_utf8(text).expect("digits are ASCII")
}

pub(super) fn checksum(text: &[u8]) -> String {
    let mut check = flate2::Crc::new();
    check.update(text);
    spelled(&check.sum().to_be_bytes(), CHECK_DIGITS)
}

/// The secret in a key's text; `None` if the text is malformed or mistyped.
pub(super) fn secret_of(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    if !has_form(text) || text[CHECK_AT..] != *checksum(&text[..CHECK_AT]).as_bytes() {
        return None;
    }
    number(&text[ID_AT..SECRET_AT - 1])?;
    let mut secret = Zeroizing::new([0; 32]);
    for digit in &text[SECRET_AT..CHECK_AT] {
        let mut carry = u32::from(value(*digit)?);
        for byte in secret.iter_mut().rev() {
            carry += u32::from(*byte) * 62;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    Some(secret)
}

/// SHA-256 of a secret, in hexadecimal digits.
pub(super) fn hash_of(secret: &[u8; 32]) -> String {
    hex(&Sha256::digest(secret))
}

/// Whether the text is as long as a key and made of the same characters, right or not.
pub(super) fn has_form(text: &[u8]) -> bool {
    text.len() == KEY_BYTES
        && text.starts_with(PREFIX)
        && text[SECRET_AT - 1] == b'_'
        && text[ID_AT..]
            .iter()
            .enumerate()
            .all(|(at, digit)| at == ID_DIGITS || value(*digit).is_some())
}

/// Whether a text has a key's form somewhere in it.
pub(crate) fn holds_key(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, PREFIX)
        .any(|at| text.get(at..at + KEY_BYTES).is_some_and(has_form))
}

/// A new key's id, text and hash.
pub(super) fn generated() -> Result<(String, Zeroizing<String>, String), StoreError> {
    let random = |bytes: &mut [u8]| {
        getrandom::fill(bytes).map_err(|error| StoreError::Unavailable(error.to_string()))
    };
    let mut id = [0; 8];
    let mut secret = Zeroizing::new([0; 32]);
    random(&mut id)?;
    random(&mut *secret)?;
    let id = spelled(&id, ID_DIGITS);
    let digits = Zeroizing::new(spelled(&*secret, SECRET_DIGITS));
    let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES));
    for part in ["bhav_", &id, "_", &digits] {
        text.push_str(part);
    }
    let check = checksum(text.as_bytes());
    text.push_str(&check);
    Ok((id, text, hash_of(&secret)))
}

/// The beginning of every key.
pub(crate) const PREFIX: &[u8] = b"bhav_";

pub(super) const DIGITS: &[u8; 62] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) const ID_DIGITS: usize = 11;

pub(super) const SECRET_DIGITS: usize = 43;

pub(super) const CHECK_DIGITS: usize = 6;

pub(super) const ID_AT: usize = PREFIX.len();

pub(super) const SECRET_AT: usize = ID_AT + ID_DIGITS + 1;

pub(super) const CHECK_AT: usize = SECRET_AT + SECRET_DIGITS;

/// Length of a key's text.
pub(crate) const KEY_BYTES: usize = CHECK_AT + CHECK_DIGITS;
