//! Authorities made by the grammar are taken apart as they were put together, and of any text it is
//! said what a slow reading of the grammar says. Over connections: `tests/http/hosts.rs`.

use proptest::prelude::*;

use super::*;

/// `1*4HEXDIG`
fn is_h16(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Four `dec-octet`, which have no leading zeros.
fn is_ipv4(text: &str) -> bool {
    let octets: Vec<&str> = text.split('.').collect();
    octets.len() == 4
        && octets
            .iter()
            .all(|octet| octet.parse::<u8>().is_ok_and(|number| number.to_string() == *octet))
}

/// How many groups of 16 bits it is; `ls32` may stand where it ends the address.
fn groups(text: &str, ends: bool) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let (last, before) = parts.split_last().unwrap();
    let of_last = match *last {
        last if is_h16(last) => 1,
        last if ends && is_ipv4(last) => 2,
        _ => return None,
    };
    before.iter().all(|part| is_h16(part)).then_some(before.len() + of_last)
}

fn is_ipv6(text: &str) -> bool {
    match text.split_once("::") {
        None => groups(text, true) == Some(8),
        Some((before, after)) => {
            let both = groups(before, false).zip(groups(after, true));
            both.is_some_and(|(before, after)| before + after <= 7)
        }
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c)
}

fn is_future(text: &str) -> bool {
    let version = text.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.'));
    version.is_some_and(|(version, address)| {
        let hex = version.chars().all(|c| c.is_ascii_hexdigit());
        let in_address = address.chars().all(|c| c == ':' || is_name_char(c));
        hex && in_address && !version.is_empty() && !address.is_empty()
    })
}

fn is_name(text: &str) -> bool {
    let mut parts = text.split('%');
    let first = parts.next().unwrap();
    let encoded = |part: &str| {
        part.is_char_boundary(2)
            && part.len() >= 2
            && part[..2].chars().all(|c| c.is_ascii_hexdigit())
            && part[2..].chars().all(is_name_char)
    };
    !text.is_empty() && first.chars().all(is_name_char) && parts.all(encoded)
}

/// Host and port by RFC 3986, tried at every colon.
fn slow(text: &str) -> Option<(&str, Option<&str>)> {
    let is_host = |host: &str| {
        let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        literal.map_or_else(|| is_name(host), |inner| is_ipv6(inner) || is_future(inner))
    };
    let whole = is_host(text).then_some((text, None));
    whole.or_else(|| {
        text.match_indices(':').find_map(|(at, _)| {
            let (host, port) = (&text[..at], &text[at + 1..]);
            let digits = port.chars().all(|c| c.is_ascii_digit());
            (digits && is_host(host)).then_some((host, Some(port)))
        })
    })
}

fn quick(text: &str) -> Option<(&str, Option<&str>)> {
    let shown = |bytes| std::str::from_utf8(bytes).unwrap();
    Authority::parse(text.as_bytes()).map(|found| (shown(found.host), found.port.map(shown)))
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "([a-zA-Z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2}){1,20}",
        any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
        any::<Ipv6Addr>().prop_map(|address| format!("[{address}]")),
        any::<std::net::Ipv4Addr>().prop_map(|address| format!("[::ffff:{address}]")),
        "\\[([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}\\]",
        "\\[(([0-9a-f]{1,4}:){1,3}|:):([0-9a-f]{1,4}:){0,3}[0-9a-f]{1,4}\\]",
        "\\[[vV][0-9a-fA-F]{1,3}\\.[a-z0-9:~!$&'()*+,;=-]{1,9}\\]",
    ]
}

proptest! {
    #[test]
    fn what_the_grammar_makes_is_taken_apart(
        host in host(),
        port in prop::option::of("[0-9]{0,9}"),
    ) {
        let text = port.as_ref().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        prop_assert_eq!(quick(&text), Some((&*host, port.as_deref())));
    }

    #[test]
    fn it_agrees_with_the_slow_reading(text in "[a1fv:\\[\\].%~+@/ é]{0,12}") {
        prop_assert_eq!(quick(&text), slow(&text), "{:?}", text);
    }

    #[test]
    fn it_agrees_of_literals_and_ports_too(text in "\\[[1f:.v]{0,20}\\]?:?[0-9x]{0,3}") {
        prop_assert_eq!(quick(&text), slow(&text), "{:?}", text);
    }

    #[test]
    fn one_changed_character_is_judged_alike(
        host in host(),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(":[]%.0g~ @/\u{e9}".chars().collect::<Vec<_>>()),
    ) {
        let mut text: Vec<char> = host.chars().collect();
        let at = at.index(text.len());
        text[at] = with;
        let text: String = text.into_iter().collect();
        prop_assert_eq!(quick(&text), slow(&text), "{:?}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Some(found) = Authority::parse(&bytes) {
            prop_assert!(bytes.starts_with(found.host) && bytes.is_ascii());
        }
    }
}
