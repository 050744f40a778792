//! What proves to broker B who asks: the body of the session exchange and the headers of every
//! signed read. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::brokers::signing;

/// An escaped character takes six bytes at most (`\u001f`).
const ESCAPED_BYTES_MAX: usize = 6;

/// `{"SessionToken":…,"AppKey":…}`, in memory that is wiped and never grew by copying. The key goes
/// raw: only the login page's URL wants it encoded.
pub(super) fn exchange_body(api_session: &str, api_key: &SecretString) -> Zeroizing<String> {
    const FRAME: [&str; 3] = ["{\"SessionToken\":\"", "\",\"AppKey\":\"", "\"}"];
    let key = api_key.expose_secret();
    let frame_bytes: usize = FRAME.iter().map(|part| part.len()).sum();
    let bytes = frame_bytes + ESCAPED_BYTES_MAX * (api_session.len() + key.len());
    let mut body = Zeroizing::new(String::with_capacity(bytes));
    body.push_str(FRAME[0]);
    push_escaped(&mut body, api_session);
    body.push_str(FRAME[1]);
    push_escaped(&mut body, key);
    body.push_str(FRAME[2]);
    body
}

fn push_escaped(body: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                body.push('\\');
                body.push(letter);
            }
            '\0'..='\u{1f}' => {
                body.push_str("\\u00");
                body.push(char::from(HEX[letter as usize >> 4]));
                body.push(char::from(HEX[letter as usize & 15]));
            }
            _ => body.push(letter),
        }
    }
}

/// The two headers that change with every attempt.
pub(super) struct Signature {
    pub(super) timestamp: String,
    /// `token `, then the hexadecimal SHA-256 of timestamp, body and secret.
    pub(super) checksum: Zeroizing<String>,
}

impl Signature {
    /// Signs exactly the bytes that will be sent, as of `now`.
    pub(super) fn of(now: Timestamp, body: &str, api_secret: &SecretString) -> Self {
        let timestamp = timestamp(now);
        let secret = api_secret.expose_secret();
        let parts = [timestamp.as_bytes(), body.as_bytes(), secret.as_bytes()];
        let checksum = signing::checksum("token ", &parts);
        Self { timestamp, checksum }
    }
}

/// True UTC in whole seconds; the milliseconds are always written `.000`.
fn timestamp(now: Timestamp) -> String {
    now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_the_check_vector_with_the_milliseconds_cut_off() {
        let now = "2026-10-01T10:23:56.987Z".parse().unwrap();
        let signature = Signature::of(now, "{}", &"EXAMPLE_SECRET".into());
        assert_eq!(signature.timestamp, "2026-10-01T10:23:56.000Z");
        assert_eq!(
            signature.checksum.as_str(),
            "token c6cd10b3ed73c49fb1ee40dc3137cc1026a2876526001a1617b4335152a937ae"
        );
    }

    #[test]
    fn the_body_of_the_exchange_is_json_whatever_the_key_holds() {
        let body = exchange_body("12345678", &"a+=!#^~&@$()*é".into());
        assert_eq!(body.as_str(), r#"{"SessionToken":"12345678","AppKey":"a+=!#^~&@$()*é"}"#);
        let given = "\"\\\u{1f}\n".repeat(20);
        let body = exchange_body(&given, &given.as_str().into());
        let read: std::collections::HashMap<String, String> = sonic_rs::from_str(&body).unwrap();
        assert_eq!(read["SessionToken"], given);
        assert_eq!(read["AppKey"], given);
        let bytes = 36 + ESCAPED_BYTES_MAX * 2 * given.len();
        assert!(body.capacity() <= bytes, "grown by copying: {}", body.capacity());
    }
}
