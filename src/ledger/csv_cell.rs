//! A text as a cell of CSV (RFC 4180) that a spreadsheet can open without running it. Pure.

use std::borrow::Cow;

use rust_decimal::Decimal;

/// What a spreadsheet may take for the beginning of a formula, in full width too.
const BEGIN_FORMULAS: [char; 10] = [
    '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// The cell of a text. One that begins as a formula does, and is no number, gets an apostrophe
/// before it.
pub(crate) fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(BEGIN_FORMULAS) && text.parse::<Decimal>().is_err();
    let guard = if is_formula { "'" } else { "" };
    if text.contains(['"', ',', '\n', '\r']) {
        return Cow::Owned(format!("\"{guard}{}\"", text.replace('"', "\"\"")));
    }
    if is_formula {
        Cow::Owned(format!("{guard}{text}"))
    } else {
        Cow::Borrowed(text)
    }
}
