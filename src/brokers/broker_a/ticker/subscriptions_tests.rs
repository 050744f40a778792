//! Tests of the requests that follow a change of the wanted symbols.

use super::*;

const MAX: usize = 3_000;

fn symbol(number: u32) -> Symbol {
    Symbol::parse(&format!("NSE:S{number}")).unwrap()
}

fn symbols(numbers: impl IntoIterator<Item = u32>) -> Vec<Symbol> {
    numbers.into_iter().map(symbol).collect()
}

/// The token of each is its number.
fn known(numbers: std::ops::Range<u32>) -> KnownTokens {
    let known = KnownTokens::default();
    known.learn(numbers.map(|number| (symbol(number), number)));
    known
}

fn wanted(indices: &[u32], shares: &[u32]) -> Wanted {
    let indices = indices.iter().copied();
    let shares = shares.iter().copied();
    Wanted {
        indices: symbols(indices),
        shares: symbols(shares),
        ..Wanted::default()
    }
}

#[test]
fn only_differences_are_asked_for_and_what_nobody_wants_leaves_after_minutes() {
    let known = known(0..10);
    let mut subscriptions = Subscriptions::default();
    let first = subscriptions.follow(&wanted(&[1], &[2, 3, 99]), &known, MAX, 0);
    assert_eq!(
        first,
        Changes {
            add: vec![1, 2, 3],
            drop: vec![]
        },
        "99 has no token"
    );
    let nothing = Changes::default();
    assert_eq!(subscriptions.follow(&wanted(&[1], &[2, 3]), &known, MAX, 1_000), nothing);
    let later = subscriptions.follow(&wanted(&[1], &[3, 4]), &known, MAX, 2_000);
    assert_eq!(
        later,
        Changes {
            add: vec![4],
            drop: vec![]
        }
    );
    let at_ms = 1_000 + UNWANTED_MS;
    assert_eq!(subscriptions.follow(&wanted(&[1], &[3, 4]), &known, MAX, at_ms - 1), nothing);
    let left = subscriptions.follow(&wanted(&[1], &[3, 4]), &known, MAX, at_ms);
    assert_eq!(
        left,
        Changes {
            add: vec![],
            drop: vec![2]
        }
    );
    assert_eq!(subscriptions.all().add.len(), 3);
    assert_eq!(subscriptions.symbol(4), Some(&symbol(4)));
}

#[test]
fn the_cap_keeps_indices_then_what_is_wanted_then_what_was() {
    let known = known(0..5_000);
    let mut subscriptions = Subscriptions::default();
    let shares: Vec<u32> = (100..4_000).collect();
    subscriptions.follow(&wanted(&[], &shares), &known, MAX, 0);
    assert_eq!(subscriptions.len(), 3_000);
    let changes = subscriptions.follow(&wanted(&[1, 2], &[4_500]), &known, MAX, 1_000);
    assert_eq!(subscriptions.len(), 3_000);
    assert_eq!((changes.add, changes.drop.len()), (vec![1, 2, 4_500], 3));
    let full: Vec<u32> = (1_000..4_900).collect();
    subscriptions.follow(&wanted(&[1, 2], &full), &known, MAX, 2_000);
    assert!(subscriptions.symbol(1).is_some() && subscriptions.symbol(2).is_some());
    assert_eq!(subscriptions.len(), 3_000);
}

#[test]
fn a_token_given_to_another_moves_the_subscription() {
    let known = known(0..10);
    let mut subscriptions = Subscriptions::default();
    subscriptions.follow(&wanted(&[], &[1, 2]), &known, MAX, 0);
    known.learn([(symbol(1), 11), (symbol(5), 1)]);
    let changes = subscriptions.follow(&wanted(&[], &[1, 2]), &known, MAX, 1_000);
    assert_eq!(
        changes,
        Changes {
            add: vec![11],
            drop: vec![1]
        }
    );
    assert_eq!(subscriptions.symbol(11), Some(&symbol(1)));
    assert_eq!(subscriptions.symbol(1), None);
}

#[test]
fn one_whose_ticks_have_stopped_is_asked_for_again_at_most_once_a_minute() {
    let known = known(0..10);
    let mut subscriptions = Subscriptions::default();
    let standing = |numbers: &[u32]| {
        let standing = symbols(numbers.iter().copied());
        Wanted {
            standing,
            ..wanted(&[1], &[2, 3])
        }
    };
    subscriptions.follow(&standing(&[]), &known, MAX, 0);
    let again = |numbers: &[u32]| Changes {
        add: numbers.to_vec(),
        drop: vec![],
    };
    for (at_ms, stands, expected) in [
        (59_999, &[2, 7][..], &[][..]),
        (60_000, &[2, 7], &[2]),
        (61_000, &[2], &[]),
        (119_999, &[2], &[]),
        (120_000, &[2, 3], &[2, 3]),
        (121_000, &[], &[]),
    ] {
        let changes = subscriptions.follow(&standing(stands), &known, MAX, at_ms);
        assert_eq!(changes, again(expected), "{at_ms}");
    }
    assert_eq!(subscriptions.len(), 3);
}

#[test]
fn a_lower_limit_takes_effect_at_once() {
    let known = known(0..10);
    let mut subscriptions = Subscriptions::default();
    subscriptions.follow(&wanted(&[1], &[2, 3, 4]), &known, MAX, 0);
    let changes = subscriptions.follow(&wanted(&[1], &[2, 3, 4]), &known, 2, 1_000);
    assert_eq!(
        changes,
        Changes {
            add: vec![],
            drop: vec![3, 4]
        }
    );
}

#[test]
fn requests_are_json_of_at_most_five_hundred_tokens_and_each_asks_for_full_packets() {
    let changes = Changes {
        add: vec![408_065, 884_737],
        drop: vec![7],
    };
    let requests = changes.requests();
    assert_eq!(
        requests,
        [
            r#"{"a":"unsubscribe","v":[7]}"#,
            r#"{"a":"subscribe","v":[408065,884737]}"#,
            r#"{"a":"mode","v":["full",[408065,884737]]}"#,
        ]
    );
    let many = Changes {
        add: (0..3_000).collect(),
        drop: vec![],
    };
    assert_eq!(many.requests().len(), 12);
    assert!(Changes::default().requests().is_empty());
}
