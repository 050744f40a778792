//! Money and percentages in answers, read and rounded without a binary float.

use bhav::base::json;
use rust_decimal::Decimal;

/// The digits of the first member called `name`.
#[track_caller]
pub fn raw<'t>(text: &'t str, name: &str) -> &'t str {
    let member = format!("\"{name}\":");
    let start = text
        .find(&member)
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    let rest = &text[start + member.len()..];
    &rest[..rest.find([',', '}', ']']).unwrap()]
}

/// The same number, exactly.
#[track_caller]
pub fn number(text: &str, name: &str) -> Decimal {
    json::parse_decimal(raw(text, name)).unwrap()
}

/// Percent change in the contract's form: two places, half away from zero, shortest.
pub fn percent(last: Decimal, previous: Decimal) -> String {
    shortest((last - previous) * Decimal::ONE_HUNDRED / previous)
}

/// Two places, half away from zero, no trailing zeros.
pub fn shortest(value: Decimal) -> String {
    let hundredths = value * Decimal::ONE_HUNDRED;
    let half = Decimal::new(5, 1);
    let whole = if hundredths.is_sign_negative() {
        (hundredths - half).ceil()
    } else {
        (hundredths + half).floor()
    };
    let text = (whole / Decimal::ONE_HUNDRED).normalize().to_string();
    if text == "-0" { "0".into() } else { text }
}
