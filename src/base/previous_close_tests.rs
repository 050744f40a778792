//! What a previous close is, case by case, with the right value of each.

use super::*;
use crate::base::base_ratio::{BASE_DAYS, SHARES_DAYS};

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

/// An official close, and the close before it.
fn close(price: &str, before: Option<&str>) -> ClosingPrice {
    ClosingPrice {
        price: decimal(price),
        previous_close: before.map(decimal),
        as_of_ms: 0,
        official: true,
        base_ratio: None,
    }
}

fn last_trade(price: &str) -> ClosingPrice {
    ClosingPrice {
        official: false,
        ..close(price, None)
    }
}

fn said(last: &str, previous: Option<&str>) -> Said {
    Said {
        last_price: decimal(last),
        previous_close: previous.map(decimal),
    }
}

fn ratio(previous: &str, before: &ClosingPrice) -> Option<String> {
    let ratio = base_ratio(decimal(previous), before)?;
    Some(ratio.0.round_dp(4).normalize().to_string())
}

#[test]
fn a_base_price_is_seen_whatever_its_size() {
    let before = close("264.50", Some("262.10"));
    for (action, base, expected) in [
        ("bonus of one for three", "198.37", "0.75"),
        ("bonus of one for two", "176.33", "0.6667"),
        ("bonus of one for ten", "240.45", "0.9091"),
        ("bonus of one for five", "220.42", "0.8333"),
        ("bonus of two for five", "188.93", "0.7143"),
        ("bonus of three for five", "165.31", "0.625"),
        ("split of one into two", "132.25", "0.5"),
        ("split of one into ten", "26.45", "0.1"),
        ("consolidation of five into one", "1322.50", "5"),
        ("rights issue", "251.30", "0.9501"),
        ("demerger", "185.15", "0.7"),
        ("special dividend of 3", "261.50", "0.9887"),
        ("special dividend of 10", "254.50", "0.9622"),
    ] {
        assert_eq!(ratio(base, &before).as_deref(), Some(expected), "{action}");
    }
}

#[test]
fn rounding_a_late_roll_over_and_a_last_trade_are_no_base_price() {
    let before = close("264.50", Some("262.10"));
    for previous in ["264.50", "264.55", "264.45", "262.10", "262.15"] {
        assert_eq!(ratio(previous, &before), None, "{previous}");
    }
    assert_eq!(ratio("264.60", &before).as_deref(), Some("1.0004"), "two ticks");
    // The ticks of dearer shares are larger.
    for (price, same, other) in [
        ("3012.40", "3012.50", "3012.55"),
        ("8100", "8100.50", "8101"),
        ("25000", "25005", "25006"),
    ] {
        let before = close(price, None);
        assert_eq!(ratio(same, &before), None, "{price}");
        assert!(ratio(other, &before).is_some(), "{price}");
    }
    // What may be a last trade is evidence only beyond what it and the close can be apart.
    for (previous, expected) in [
        ("262", None),
        ("258", None),
        ("272.40", None),
        ("251.30", Some("0.9501")),
    ] {
        assert_eq!(ratio(previous, &last_trade("264.50")).as_deref(), expected, "{previous}");
    }
    // From a change with two decimals.
    let of = |last: &str, percent: &str| {
        base_ratio_of_percent(decimal(last), decimal(percent), &before).is_some()
    };
    assert!(!of("270", "2.08") && !of("264.50", "0.00") && of("198.40", "0.02"));
}

#[test]
fn while_its_session_runs_the_source_counts() {
    let known = Known {
        close_before: Some(close("100", None)),
        ..Known::default()
    };
    let judged = |said: Said, known: Known| previous_close(said, SessionOfPrice::Running, known);
    let own = PreviousClose {
        price: Some(decimal("100")),
        reason: Reason::Own,
    };
    assert_eq!(judged(said("103", Some("100")), known), own);
    assert_eq!(judged(said("100", Some("100")), known), own, "unchanged");
    assert_eq!(judged(said("103", Some("100")), Known::default()), own);
    let unknown = PreviousClose {
        price: None,
        reason: Reason::Unknown,
    };
    assert_eq!(judged(said("103", None), known), unknown);
    let base = judged(said("76", Some("75")), known);
    let ratio = BaseRatio(decimal("0.75"));
    assert_eq!(
        base,
        PreviousClose {
            price: Some(decimal("75")),
            reason: Reason::Base(ratio)
        }
    );
    // It rolls over before the close is final.
    let shown = Known {
        shown: Some(decimal("100")),
        ..known
    };
    let early = judged(said("103", Some("103")), shown);
    assert_eq!(
        early,
        PreviousClose {
            reason: Reason::RolledOver,
            ..own
        }
    );
}

#[test]
fn in_the_evening_a_previous_close_that_rolled_over_is_not_shown() {
    let shown = |price| Known {
        shown: Some(decimal(price)),
        ..Known::default()
    };
    let of_close = |close| Known {
        close: Some(close),
        ..Known::default()
    };
    let of_before = |close| Known {
        close_before: Some(close),
        ..Known::default()
    };
    let index = |stands| Known {
        index_stands: Some(stands),
        ..Known::default()
    };
    let before = close("100", Some("98"));
    let nothing = Known::default();
    let rolled = said("103", Some("103"));
    for (given, known, expected) in [
        // What was shown in the session stays, whatever the source says.
        (rolled, shown("100"), Some("100")),
        (said("103", None), shown("100"), Some("100")),
        // After a restart a stored close of the session, or of the one before it, tells.
        (rolled, of_close(close("103", Some("100"))), Some("100")),
        (rolled, of_before(before), Some("100")),
        (rolled, of_before(last_trade("100")), Some("100")),
        // Nothing is known: no change rather than none at all.
        (rolled, nothing, None),
        (said("103.1", Some("103")), of_close(close("103", None)), None),
        (said("103.1", Some("103")), index(true), None),
        // A change that a base price may explain is not made of a stored close.
        (rolled, of_before(close("140", None)), None),
        // It did not roll over: the share is unchanged.
        (rolled, index(false), Some("103")),
        (said("103", Some("100")), nothing, Some("100")),
        (said("103", Some("100")), of_before(before), Some("100")),
        (said("100", Some("100")), of_before(before), Some("100")),
        (said("76", Some("75")), of_before(before), Some("75")),
    ] {
        let judged = previous_close(given, SessionOfPrice::Over, known);
        assert_eq!(judged.price, expected.map(decimal), "{given:?} {known:?}");
    }
}

#[test]
fn beside_a_price_of_an_earlier_session_nothing_is_believed() {
    let judged =
        |known| previous_close(said("103", Some("103")), SessionOfPrice::Earlier, known).price;
    assert_eq!(judged(Known::default()), None);
    let shown = Known {
        shown: Some(decimal("99")),
        ..Known::default()
    };
    assert_eq!(judged(shown), Some(decimal("99")));
    let stored = Known {
        close: Some(close("103", Some("101"))),
        ..Known::default()
    };
    assert_eq!(judged(stored), Some(decimal("101")));
    let before = Known {
        close_before: Some(close("102", None)),
        ..Known::default()
    };
    assert_eq!(judged(before), Some(decimal("102")));
}

#[test]
fn a_price_that_is_still_the_close_is_recognised() {
    let tuesday = close("1400", Some("1380"));
    for (last, previous, percent, expected) in [
        ("1400", Some("1380"), None, true),
        ("1400", Some("1380.10"), None, true),
        // A session has begun, and its price is the close by chance.
        ("1400", Some("1400"), None, false),
        ("1400.10", Some("1380"), None, false),
        ("1405", Some("1400"), None, false),
        ("1400", Some("1390"), None, false),
        ("1400", None, Some("1.45"), true),
        ("1400", None, Some("0.00"), false),
        ("1400", None, Some("-1.45"), false),
        ("1400", None, None, false),
    ] {
        let percent = percent.map(decimal);
        let is = is_close_before(said(last, previous), percent, &tuesday);
        assert_eq!(is, expected, "{last} {previous:?} {percent:?}");
    }
    // A share that did not move on Tuesday either.
    let stood = close("1400", Some("1400"));
    assert!(!is_close_before(said("1400", Some("1400")), None, &stood));
    // Of the close alone: a session that has begun would have it for its previous close.
    let alone = close("1400", None);
    assert!(is_close_before(said("1400", Some("1380")), None, &alone));
    assert!(!is_close_before(said("1400", Some("1400")), None, &alone));
}

#[test]
fn shares_are_waited_for_longer_than_money() {
    for (ratio, days) in [
        ("0.75", SHARES_DAYS),
        ("0.9091", SHARES_DAYS),
        ("0.5", SHARES_DAYS),
        ("5", SHARES_DAYS),
        ("0.7", BASE_DAYS),
        ("0.9887", BASE_DAYS),
        ("0.95", BASE_DAYS),
    ] {
        assert_eq!(BaseRatio(decimal(ratio)).awaited_days(), days, "{ratio}");
    }
}
