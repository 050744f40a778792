//! E-mail addresses, compared as people see them. Pure.
//!
//! An address has one spelling: no spaces around it, in lower case, letters composed (NFC), the
//! domain in its own letters (`bücher.example`, not `xn--bcher-kva.example`). Characters that
//! cannot be seen are refused. Accounts of earlier versions may be stored in another spelling: they
//! are found under each that the same address could have had.

use icu_normalizer::DecomposingNormalizerBorrowed;
use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::base::visible;
use crate::store::SPELLINGS_MAX;

/// Longest address allowed by SMTP (RFC 5321 4.5.3.1.3, without the angle brackets).
pub(crate) const EMAIL_BYTES_MAX: usize = 254;
const LOCAL_BYTES_MAX: usize = 64;

/// An address as it was given and as it is compared.
#[derive(Clone, Debug)]
pub(crate) struct Email {
    /// The one spelling; what was given, if that is no address.
    pub normal: String,
    /// Spellings under which an account may be stored, the one that was typed first: whoever has an
    /// account of it must not get into another's.
    pub spellings: Vec<String>,
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadEmail {
    Unreadable,
    Unseen(visible::Unseen),
}

impl std::fmt::Display for BadEmail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable => f.write_str("This is not an e-mail address."),
            Self::Unseen(unseen) => write!(f, "{unseen}: an address has none of these."),
        }
    }
}

impl Email {
    /// An address that somebody has or wants.
    ///
    /// # Errors
    /// It is no plausible address.
    pub(crate) fn parse(text: &str) -> Result<Self, BadEmail> {
        let text = text.trim();
        let (local, ascii) = parts(text)?;
        let (domain, _) = Uts46::new().to_unicode(ascii.as_bytes(), DENIED, HYPHENS);
        let normal = format!("{local}@{domain}");
        if normal.len() > EMAIL_BYTES_MAX || !(1..=LOCAL_BYTES_MAX).contains(&local.len()) {
            return Err(BadEmail::Unreadable);
        }
        let decomposed = DecomposingNormalizerBorrowed::new_nfd();
        let [loose, far] = [&local, &*domain].map(|part| decomposed.normalize(part));
        let mut spellings = vec![typed(text), normal.clone()];
        let others = [
            format!("{local}@{ascii}"),
            format!("{loose}@{far}"),
            format!("{loose}@{ascii}"),
        ];
        for other in others {
            if !spellings.contains(&other) {
                spellings.push(other);
            }
        }
        spellings.dedup();
        spellings.truncate(SPELLINGS_MAX);
        Ok(Self { normal, spellings })
    }

    /// What somebody logs in with. A text that is no address is looked for as it is: an earlier
    /// version may have taken it.
    pub(crate) fn given(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| {
            let typed = typed(text);
            Self {
                normal: typed.clone(),
                spellings: vec![typed],
            }
        })
    }
}

const DENIED: AsciiDenyList = AsciiDenyList::STD3;
const HYPHENS: Hyphens = Hyphens::CheckFirstLast;

/// What versions before stored of an address.
fn typed(text: &str) -> String {
    text.trim().to_lowercase()
}

/// The local part composed and in lower case, and the domain in ASCII. It must have one `@`, no
/// characters that need quoting, and a domain of labels. `me@localhost` is allowed, for services at
/// home.
fn parts(text: &str) -> Result<(String, String), BadEmail> {
    if let Some(unseen) = visible::unseen(text) {
        return Err(BadEmail::Unseen(unseen));
    }
    let (local, domain) = text.split_once('@').ok_or(BadEmail::Unreadable)?;
    let local = visible::composed(&local.to_lowercase()).into_owned();
    let plain = |letter: char| letter != ' ' && !"@\"(),:;<>[]\\".contains(letter);
    let ascii = Uts46::new().to_ascii(domain.as_bytes(), DENIED, HYPHENS, DnsLength::Verify);
    match ascii {
        Ok(ascii) if !local.is_empty() && local.chars().all(plain) => {
            Ok((local, ascii.into_owned()))
        }
        _ => Err(BadEmail::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn normal(text: &str) -> Result<String, String> {
        Email::parse(text)
            .map(|email| email.normal)
            .map_err(|bad| bad.to_string())
    }

    #[test]
    fn an_address_has_one_spelling() {
        for (text, email) in [
            ("a@b.example", "a@b.example"),
            ("  Asha.Rao+Kite@Mail.Example.IN \n", "asha.rao+kite@mail.example.in"),
            ("me@localhost", "me@localhost"),
            ("o'brien_1/x=y@x-y.example", "o'brien_1/x=y@x-y.example"),
            ("ÄSHA@Bücher.example", "äsha@bücher.example"),
            ("a\u{308}sha@bu\u{308}cher.example", "äsha@bücher.example"),
            ("user@xn--bcher-kva.example", "user@bücher.example"),
            ("user@XN--BCHER-KVA.EXAMPLE", "user@bücher.example"),
            ("user@ｅxample．in", "user@example.in"),
            ("user@भारत.भारत", "user@भारत.भारत"),
            ("user@xn--h2brj9c.xn--h2brj9c", "user@भारत.भारत"),
            ("उपयोगकर्ता@example.in", "उपयोगकर्ता@example.in"),
            ("user@straße.example", "user@straße.example"),
        ] {
            assert_eq!(normal(text).as_deref(), Ok(email), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_refused_by_its_place() {
        for (text, part) in [
            ("\u{200b}ash@example.in", "Character 1 is a zero-width space (U+200B)"),
            ("ash\u{ad}a@example.in", "Character 4 is a soft hyphen"),
            ("asha@exam\u{200d}ple.in", "Character 10 is a joiner"),
            ("asha\u{202e}@example.in", "Character 5 is a mark of writing direction"),
            ("as\u{a0}ha@example.in", "Character 3 is a space that is not the plain one"),
            ("asha@example.in\u{2060}", "Character 16 is an invisible character"),
            ("asha\u{fe0f}@example.in", "Character 5 is an invisible character"),
            ("\u{feff}asha@example.in", "Character 1 is a byte-order mark"),
            ("a\u{0}@b", "Character 2 is a control character"),
            ("a\t@b", "Character 2 is a tab"),
            ("a@b\r\nBcc: c@d", "Character 4 is a line break"),
        ] {
            assert!(normal(text).unwrap_err().contains(part), "{text:?}: {:?}", normal(text));
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
            "\"a\"@b",
            "<a@b>",
            "a@[127.0.0.1]",
            "a,b@c",
            "a@xn--zzzzzzzz",
            "a@xn--a",
            &local,
            &label,
            &long,
        ] {
            let told = normal(text).unwrap_err();
            assert_eq!(told, "This is not an e-mail address.", "{text:?}");
        }
    }

    #[test]
    fn an_account_is_found_under_each_spelling_that_it_may_have() {
        let typed_as = [
            "user@bücher.example",
            "user@xn--bcher-kva.example",
            "üser@x.example",
        ];
        for (at, (text, stored)) in [
            ("User@BÜCHER.example ", typed_as[0]),
            ("user@xn--bcher-kva.example", typed_as[0]),
            ("user@bücher.example", typed_as[1]),
            ("user@bu\u{308}cher.example", typed_as[1]),
            ("u\u{308}ser@x.example", typed_as[2]),
            ("üser@x.example", "u\u{308}ser@x.example"),
            ("\u{200b}ash@example.in", "\u{200b}ash@example.in"),
        ]
        .into_iter()
        .enumerate()
        {
            let spellings = Email::given(text).spellings;
            assert!(spellings.iter().any(|known| known == stored), "{at}: {spellings:?}");
            assert_eq!(spellings[0], text.trim().to_lowercase(), "what was typed comes first");
        }
        assert_eq!(Email::given("asha@example.in").spellings, ["asha@example.in"]);
    }

    proptest! {
        #[test]
        fn the_one_spelling_is_its_own(text in any::<String>()) {
            let text = format!("{text}@bu\u{308}cher.example");
            if let Ok(email) = Email::parse(&text) {
                let again = Email::parse(&email.normal).unwrap();
                prop_assert_eq!(&again.normal, &email.normal);
                prop_assert!(email.spellings.len() <= SPELLINGS_MAX);
                prop_assert!(email.spellings.contains(&email.normal));
            }
        }
    }
}
