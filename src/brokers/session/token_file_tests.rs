//! Tests of the document that a process leaves: it keeps everything, and other bytes are refused.

use proptest::prelude::*;

use super::*;

fn kept(access_token: &str, api_key: &str) -> KeptToken {
    KeptToken {
        broker: Broker::A,
        access_token: access_token.into(),
        api_key: api_key.into(),
        set_at: "2026-11-20T03:30:00.123456789Z".parse().unwrap(),
        settings_token: Some(Fingerprint::of(&"of the settings".into())),
    }
}

fn same(one: &KeptToken, other: &KeptToken) -> bool {
    one.broker == other.broker
        && one.access_token.expose_secret() == other.access_token.expose_secret()
        && one.api_key.expose_secret() == other.api_key.expose_secret()
        && one.set_at == other.set_at
        && one.settings_token == other.settings_token
}

fn fault(document: &[u8]) -> Unreadable {
    KeptToken::decode(document).unwrap_err()
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        broker in prop::sample::select(&Broker::ALL[..]),
        access_token in "\\PC{1,300}",
        api_key in "\\PC{1,40}",
        at in -377_705_023_201_000_000_000i128..253_402_207_200_000_000_000,
        settings in prop::option::of("\\PC{1,40}"),
    ) {
        let kept = KeptToken {
            broker,
            access_token: access_token.into(),
            api_key: api_key.into(),
            set_at: Timestamp::from_nanosecond(at).unwrap(),
            settings_token: settings.map(|token| Fingerprint::of(&token.into())),
        };
        let document = kept.encode().unwrap();
        prop_assert_eq!(document.capacity(), DOCUMENT_BYTES_MAX, "it never grew");
        prop_assert!(same(&KeptToken::decode(&document).unwrap(), &kept));
    }

    #[test]
    fn garbage_is_refused(garbage in prop::collection::vec(any::<u8>(), 0..400), led in 0..3) {
        let head: &[u8] = match led {
            0 => b"",
            1 => b"bhav-token",
            _ => b"bhav-token\x02{\"broker\":\"a\",",
        };
        prop_assert!(KeptToken::decode(&[head, &garbage].concat()).is_err());
    }
}

#[test]
fn a_part_of_a_document_is_none_nor_is_one_with_more_behind() {
    let document = kept("access token", "key").encode().unwrap();
    for end in 0..document.len() {
        let expected = if end < MAGIC.len() {
            Unreadable::Foreign
        } else {
            Unreadable::Damaged
        };
        assert_eq!(fault(&document[..end]), expected, "{end}");
    }
    assert_eq!(fault(&[document.as_slice(), b"\0"].concat()), Unreadable::Damaged);
}

#[test]
fn another_version_is_named() {
    let mut document = kept("access token", "key").encode().unwrap();
    document[MAGIC.len()] = 1;
    assert_eq!(fault(&document), Unreadable::Version(1));
}

#[test]
fn each_field_is_judged() {
    let good = kept("access token", "key").encode().unwrap();
    let good = std::str::from_utf8(&good).unwrap();
    let with = |old: &str, new: &str| {
        assert!(good.contains(old), "{old}");
        fault(good.replace(old, new).as_bytes())
    };
    for (old, new) in [
        ("\"broker\":\"a\"", "\"broker\":\"c\""),
        ("\"broker\":\"a\",", ""),
        ("2026-11-20T", "2026-13-20T"),
        ("\"settings_token\":[", "\"settings_token\":[1,"),
        ("\"settings_token\"", "\"other\""),
    ] {
        assert_eq!(with(old, new), Unreadable::Damaged, "{new}");
    }
    assert_eq!(fault(&kept("", "key").encode().unwrap()), Unreadable::Damaged);
    assert_eq!(fault(&kept("access token", "").encode().unwrap()), Unreadable::Damaged);
}

#[test]
fn the_longest_fits_and_one_more_byte_does_not() {
    let room = DOCUMENT_BYTES_MAX - kept("", "k").encode().unwrap().len();
    let longest = kept(&"x".repeat(room), "k");
    let document = longest.encode().unwrap();
    assert_eq!(document.len(), DOCUMENT_BYTES_MAX);
    assert!(same(&KeptToken::decode(&document).unwrap(), &longest));
    assert_eq!(kept(&"x".repeat(room + 1), "k").encode().unwrap_err(), TooLong);
}

#[test]
fn secrets_do_not_show() {
    let shown = format!("{:?}", kept("s3cret", "k3y"));
    assert!(!shown.contains("s3cret") && !shown.contains("k3y"), "{shown}");
    assert!(shown.ends_with("settings_token: Some(Fingerprint) }"), "{shown}");
}
