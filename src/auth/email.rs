//! Checks and normalises e-mail addresses. Pure.

/// Longest address allowed by SMTP (RFC 5321 4.5.3.1.3, without the angle brackets).
pub const EMAIL_BYTES_MAX: usize = 254;
const LOCAL_BYTES_MAX: usize = 64;
const LABEL_BYTES_MAX: usize = 63;

/// The address, trimmed and in lower case, so that spellings that differ in case are the same
/// account. `None` if it is not plausible. Required are one `@`, no characters that need quoting,
/// and a domain of labels. `me@localhost` is allowed, for services at home.
pub fn normalised(text: &str) -> Option<String> {
    let email = text.trim().to_lowercase();
    let (local, domain) = email.split_once('@')?;
    let plain = |letter: char| {
        !letter.is_control() && !letter.is_whitespace() && !"@\"(),:;<>[]\\".contains(letter)
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
    };
    let good = email.len() <= EMAIL_BYTES_MAX
        && (1..=LOCAL_BYTES_MAX).contains(&local.len())
        && local.chars().all(plain)
        && domain.split('.').all(label);
    good.then_some(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_trimmed_and_in_lower_case() {
        for (text, email) in [
            ("a@b.example", "a@b.example"),
            ("  Asha.Rao+Kite@Mail.Example.IN \n", "asha.rao+kite@mail.example.in"),
            ("me@localhost", "me@localhost"),
            ("o'brien_1/x=y@x-y.example", "o'brien_1/x=y@x-y.example"),
            ("ÄSHA@Bücher.example", "äsha@bücher.example"),
        ] {
            assert_eq!(normalised(text).as_deref(), Some(email), "{text}");
        }
    }

    #[test]
    fn implausible_addresses_are_refused() {
        let local = format!("{}@b.example", "a".repeat(65));
        let label = format!("a@{}.example", "b".repeat(64));
        let long = format!("a@{}example", "b.".repeat(130));
        for text in [
            "",
            "@",
            "a",
            "a@",
            "@b",
            "a@b@c",
            "a b@c",
            "a@b c",
            "a@b..c",
            "a@.b",
            "a@b.",
            "a@-b",
            "a@b-",
            "a@b_c",
            "a\u{0}@b",
            "a\t@b",
            "\"a\"@b",
            "<a@b>",
            "a@[127.0.0.1]",
            "a,b@c",
            "a@b\r\nBcc: c@d",
            &local,
            &label,
            &long,
        ] {
            assert_eq!(normalised(text), None, "{text:?}");
        }
    }
}
