//! The brokers' login pages, and extraction of the one-time code from what a person pastes. Pure.

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::base::Broker;
use crate::brokers::call::transport::push_encoded;
use crate::brokers::login_page;

/// In the place of an API key that is not known to the command.
const PLACEHOLDER: &str = "YOUR_API_KEY";

/// The URL of the page where a person logs in to get a code from the broker at `api_url`.
pub fn page(broker: Broker, api_url: &str, api_key: Option<&SecretString>) -> String {
    let mut url = login_page(broker, api_url);
    match api_key {
        Some(key) => push_encoded(&mut url, key.expose_secret()),
        None => url.push_str(PLACEHOLDER),
    }
    url
}

/// The code in pasted text: the bare code, or the whole address to which the browser was
/// redirected. Parameter names are matched in any case. `None` if there is no code.
pub fn code(broker: Broker, pasted: &str) -> Option<Zeroizing<String>> {
    let pasted = pasted.trim();
    let found = match pasted.split_once('?') {
        Some((_, query)) => {
            let query = query.split('#').next().unwrap_or_default();
            query.split('&').filter_map(|pair| pair.split_once('=')).find_map(|(name, value)| {
                names(broker).iter().any(|known| name.eq_ignore_ascii_case(known)).then_some(value)
            })?
        }
        None => pasted,
    };
    // Codes of both brokers are letters and digits, so an address without a code is refused here.
    let good = !found.is_empty()
        && found.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte));
    good.then(|| Zeroizing::new(found.to_owned()))
}

fn names(broker: Broker) -> &'static [&'static str] {
    match broker {
        Broker::A => &["request_token"],
        Broker::B => &["apisession", "api_session"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_encoded_as_a_component() {
        let key = SecretString::from("a+b=c&d/e");
        let page_b = page(Broker::B, "http://sim/b", Some(&key));
        assert_eq!(page_b, "http://sim/b/apiuser/login?api_key=a%2Bb%3Dc%26d%2Fe");
        assert!(page(Broker::A, "http://sim/a", None).ends_with("v=3&api_key=YOUR_API_KEY"));
    }

    #[test]
    fn a_code_is_found_bare_or_in_the_whole_address() {
        for (broker, pasted, expected) in [
            (Broker::A, " abc123\n", Some("abc123")),
            (
                Broker::A,
                "https://127.0.0.1/cb?action=login&Request_Token=abc&status=success#x",
                Some("abc"),
            ),
            (Broker::A, "https://127.0.0.1/cb?status=cancelled", None),
            (Broker::A, "https://127.0.0.1/cb", None),
            (Broker::A, "", None),
            (Broker::B, "https://x/?apisession=12345678", Some("12345678")),
            (Broker::B, "https://x/?a=b&API_Session=87654321", Some("87654321")),
            (Broker::B, "12 34", None),
        ] {
            let found = code(broker, pasted);
            assert_eq!(found.as_ref().map(|code| code.as_str()), expected, "{pasted}");
        }
    }
}
