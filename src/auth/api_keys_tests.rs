//! The form of keys, and the keys in memory.

use super::*;
use crate::auth::key_form::{checksum, generated, has_form, holds_key, id_text};
use crate::base::Scope;

fn stored(user: i64, id: &str, hash: &str) -> StoredKey {
    StoredKey {
        id: id.to_owned(),
        user: AccountId(user),
        name: "a widget".into(),
        scopes: [Scope::MarketRead].into_iter().collect(),
        hash: hash.to_owned(),
        created_ms: 1,
        expires_ms: None,
        used_ms: None,
        used_from: None,
    }
}

#[test]
fn a_key_has_its_form_and_checksum() {
    for _ in 0..200 {
        let (id, text, hash) = generated().unwrap();
        assert_eq!((text.len(), text.as_bytes().starts_with(PREFIX)), (66, true));
        assert_eq!(&text[5..16], id);
        assert_eq!(id_text(number(id.as_bytes()).unwrap()), id);
        let secret = secret_of(text.as_bytes()).unwrap();
        assert_eq!(hash_of(&secret), hash);
        // No mistyped character goes unnoticed.
        for at in 0..text.len() {
            let mut wrong = text.as_bytes().to_vec();
            wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
            assert!(secret_of(&wrong).is_none(), "{at}");
        }
    }
}

/// The checksum is that of zlib, so that others can compute it.
#[test]
fn a_known_key_is_read_as_others_would() {
    let mut text = b"bhav_00000000001_".to_vec();
    text.extend([b'0'; 42]);
    text.push(b'z');
    // zlib.crc32 of the text before is 0xB0C784FA, in base62.
    let check = checksum(&text);
    text.extend(check.as_bytes());
    let mut secret = [0; 32];
    secret[31] = 61;
    assert_eq!(*secret_of(&text).unwrap(), secret);
    assert_eq!(number(b"00000000001"), Some(1));
    assert_eq!(check, KNOWN_CHECK);
}

const KNOWN_CHECK: &str = "3EiT9u";

#[test]
fn numbers_above_their_range_are_no_key() {
    assert_eq!(number(b"LygHa16AHYF"), Some(u64::MAX));
    assert_eq!(number(b"LygHa16AHYG"), None);
    assert_eq!(number(b"zzzzzzzzzzz"), None);
    let mut text = [b"bhav_00000000001_".as_slice(), &[b'z'; 43]].concat();
    let check = checksum(&text);
    text.extend(check.as_bytes());
    assert!(has_form(&text) && secret_of(&text).is_none());
}

#[test]
fn a_key_is_found_anywhere_in_a_text() {
    let (_, text, _) = generated().unwrap();
    for around in ["KEY", "xKEY", "a=1&key=KEY&b", "bhav_KEY", "KEYz"] {
        assert!(holds_key(around.replace("KEY", &text).as_bytes()), "{around}");
    }
    for not in [
        &text[1..],
        &text[..65],
        "bhav_",
        "",
        &text.replace('_', "-"),
    ] {
        assert!(!holds_key(not.as_bytes()), "{not}");
    }
}

#[test]
fn only_the_right_text_finds_its_key_and_only_while_it_is_there() {
    let keys = ApiKeys::new(0);
    let (id, text, hash) = generated().unwrap();
    let (_, other, _) = generated().unwrap();
    keys.load(Some(&[AccountId(1)]), 5, &[stored(1, &id, &hash)]);
    // The same id with another secret.
    let mut forged = format!("{}{}", &text[..17], &other[17..60]);
    forged.push_str(&checksum(forged.as_bytes()));
    assert!(secret_of(forged.as_bytes()).is_some());
    for _ in 0..2 {
        assert!(keys.matching(forged.as_bytes()).is_none());
        assert_eq!(keys.matching(text.as_bytes()).unwrap().user, AccountId(1));
    }
    let known = keys.matching(text.as_bytes()).unwrap();
    // A reading that began before the last one.
    keys.load(Some(&[AccountId(1)]), 4, &[]);
    assert!(keys.matching(text.as_bytes()).is_some() && !known.has_ended(0));
    keys.load(Some(&[AccountId(1)]), 6, &[]);
    assert!(keys.matching(text.as_bytes()).is_none() && known.has_ended(0));
    keys.load(Some(&[AccountId(1)]), 5, &[stored(1, &id, &hash)]);
    assert!(keys.matching(text.as_bytes()).is_none(), "it was revoked by change 6");
    keys.clear();
    keys.load(None, 1, &[stored(1, &id, &hash)]);
    assert!(keys.matching(text.as_bytes()).is_some(), "in another past it was not");
    keys.load(None, 2, &[]);
    assert!(keys.matching(text.as_bytes()).is_none());
    assert_eq!(keys.kept(), 0);
}

/// Three keys for each place of recent ones, so that some displace each other.
#[test]
fn each_of_many_keys_is_found_by_its_own_text_until_it_is_revoked() {
    let keys = ApiKeys::new(0);
    let made: Vec<_> = (0..3 * RECENT).map(|_| generated().unwrap()).collect();
    let rows: Vec<_> = made
        .iter()
        .map(|(id, _, hash)| stored(1, id, hash))
        .collect();
    keys.load(Some(&[AccountId(1)]), 1, &rows);
    for _ in 0..2 {
        for (id, text, _) in &made {
            for at in [0, 4, 5, 16, 17, 59, 60, 65] {
                let mut wrong = text.as_bytes().to_vec();
                wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
                assert!(keys.matching(&wrong).is_none(), "{at}");
            }
            assert_eq!(keys.matching(text.as_bytes()).unwrap().id, *id);
        }
    }
    let (gone, left) = rows.split_at(RECENT);
    keys.load(Some(&[AccountId(1)]), 2, left);
    let found = |rows: &[StoredKey]| {
        let of_row = |row: &&StoredKey| {
            made.iter()
                .any(|(id, text, _)| *id == row.id && keys.matching(text.as_bytes()).is_some())
        };
        rows.iter().filter(of_row).count()
    };
    assert_eq!((found(gone), found(left)), (0, 2 * RECENT));
}

#[test]
fn every_character_of_a_key_changes_both_halves_of_its_mark() {
    let marker = Marker::seeded();
    let (_, text, _) = generated().unwrap();
    let text: [u8; KEY_BYTES] = text.as_bytes().try_into().unwrap();
    for at in ID_AT..KEY_BYTES {
        let mut other = text;
        other[at] ^= 1;
        let one = marker.of(&text);
        let two = marker.of(&other);
        assert!(one[0] != two[0] && one[1] != two[1], "{at}");
    }
    assert_ne!(marker.of(&text), Marker::seeded().of(&text));
    assert_ne!(marker.of(&text)[0], marker.of(&text)[1]);
}

#[test]
fn a_bucket_is_the_minute_s_requests() {
    let keys = ApiKeys::new(3);
    let key = in_memory(&stored(1, "00000000001", ""));
    for _ in 0..3 {
        assert_eq!(keys.admit(&key, 1_000), Ok(()));
    }
    assert_eq!(
        keys.admit(&key, 1_000),
        Err(TooEarly {
            retry_after_ms: 20_000
        })
    );
    assert_eq!(keys.admit(&key, 21_000), Ok(()));
    keys.set_rate(0);
    assert_eq!(keys.admit(&key, 21_000), Ok(()));
}

#[test]
fn a_use_is_judged_for_a_second_and_not_past_the_minute_or_the_end() {
    let keys = ApiKeys::new(0);
    let judged_ms = |expires_ms, now_ms| {
        let row = StoredKey {
            expires_ms,
            ..stored(1, "00000000001", "")
        };
        let key = Arc::new(in_memory(&row));
        assert!(!key.is_judged(500));
        keys.note(&key, (now_ms, 500), None);
        (0..).find(|ms| !key.is_judged(500 + ms)).unwrap()
    };
    assert_eq!(judged_ms(None, 120_000), 1_000);
    assert_eq!(judged_ms(None, 179_400), 600);
    assert_eq!(judged_ms(Some(120_250), 120_000), 250);
    assert_eq!(judged_ms(Some(120_000), 120_000), 0);
    assert_eq!(keys.take_used().len(), 4);
}
