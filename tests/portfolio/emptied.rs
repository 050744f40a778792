//! A broker that answers with empty lists, where holdings of it are stored.

use super::user::written;
use crate::market::days::Days;

const MONDAY: &str = "2026-11-16T11:00:00+05:30";
const CONFIRMED: &str = r#""replace_with_none":true,"#;

#[test]
fn holdings_are_replaced_by_none_only_if_it_is_confirmed() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:TCS", "300");
    days.price_anew("NSE:INFY", "800");
    // Nothing in place of nothing asks nobody.
    days.holds_at_a("");
    days.sync("a");
    days.holds_at_a(
        r#"{"symbol":"NSE:TCS","quantity":10,"average_paise":25000},
           {"symbol":"NSE:INFY","quantity":1,"average_paise":70000}"#,
    );
    days.holds_at_b(&[("TCS", "INE467B01029", "5")], &[("TCS", "5", "250", "NSE:TCS")]);
    days.sync("a");
    days.sync("b");
    let before = days.summary();
    assert_eq!(written(&before["total_current_value"]), "5300");
    days.holds_at_a("");
    days.holds_at_b(&[], &[]);
    for (broker, count) in [("a", "2"), ("b", "1")] {
        for members in ["", r#""replace_with_none":false,"#] {
            let refused = days.try_sync(broker, members);
            refused.expect_problem(409, "no_holdings_sent");
            assert!(refused.text().contains(&format!("and {count} of it")), "{}", refused.text());
            assert_eq!(days.summary(), before);
        }
    }
    assert_eq!(days.try_sync("b", CONFIRMED).status, 200);
    assert_eq!(written(&days.summary()["total_current_value"]), "3800");
    let report = days.try_sync("a", CONFIRMED);
    assert_eq!(report.status, 200, "{}", report.text());
    assert_eq!(days.holdings().len(), 0);
    // And nothing again.
    days.sync("a");
}

/// Rows of which nothing is owned are no holdings, and some that go are no question.
#[test]
fn a_sale_of_some_is_no_question_and_a_list_of_nothing_is() {
    let days = Days::from(MONDAY);
    days.price_anew("NSE:TCS", "300");
    days.holds_at_a(
        r#"{"symbol":"NSE:TCS","quantity":10,"average_paise":25000},
           {"symbol":"NSE:INFY","quantity":1,"average_paise":70000}"#,
    );
    days.sync("a");
    days.holds_at_a(r#"{"symbol":"NSE:TCS","quantity":10,"average_paise":25000}"#);
    days.sync("a");
    days.holds_at_a(r#"{"symbol":"NSE:TCS","quantity":-10,"undelivered":10}"#);
    days.try_sync("a", "")
        .expect_problem(409, "no_holdings_sent");
    assert_eq!(days.holdings().len(), 1);
    // Who confirmed another person is not asked again.
    assert_eq!(days.try_sync("a", r#""replace_broker_user":true,"#).status, 200);
    assert_eq!(days.holdings().len(), 0);
}
