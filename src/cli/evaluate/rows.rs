//! One row of a file: its fields, dates and numbers in the forms of vendors and of the exchange,
//! and the reasons for leaving it out. Pure.

use jiff::civil::Date;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::base::candle::{CandleFault, price_e4};
use crate::base::{Candle, json};

/// Most characters of a field shown when it is wrong.
const SHOWN_CHARS_MAX: usize = 24;

/// Lengths of `2026-11-20`, and of the exchange's form `20-Nov-2026`.
const DATE_BYTES: usize = 10;
const LONG_DATE_BYTES: usize = 11;

pub(super) const COLUMNS: [&str; 6] = ["date", "open", "high", "low", "close", "volume"];

/// The fields of a line, separated by commas outside quotes.
pub(super) fn fields(line: &[u8]) -> Vec<&[u8]> {
    let mut quoted = false;
    let parts = line.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    });
    parts.collect()
}

/// Why a row is left out.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RowFault {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{column} `{shown}` {why}")]
    Field { column: &'static str, shown: String, why: &'static str },
    #[error("{0}")]
    Candle(#[from] CandleFault),
    #[error("another row has this date")]
    Again,
    #[error("rows of {0} contradict each other")]
    Contradicts(Date),
    #[error("more fields than line 1 has; are there decimal commas?")]
    TooManyFields,
    #[error("the date is out of order")]
    OutOfOrder,
}

impl RowFault {
    /// Whether the row contradicts another row of this candle's date.
    pub(super) fn contradicts(&self, candle: &Candle) -> bool {
        matches!(self, Self::Contradicts(date) if *date == candle.date)
    }
}

pub(super) fn row(fields: &[&[u8]], columns: usize, at: &[usize; 6]) -> Result<Candle, RowFault> {
    // A comma at the end is common.
    if fields.iter().skip(columns).any(|field| !bare(field).is_empty()) {
        return Err(RowFault::TooManyFields);
    }
    let field = |column: usize| Field::of(fields, at[column], COLUMNS[column]);
    let candle = Candle {
        date: field(0)?.date()?,
        open_e4: field(1)?.price()?,
        high_e4: field(2)?.price()?,
        low_e4: field(3)?.price()?,
        close_e4: field(4)?.price()?,
        volume: field(5)?.shares()?,
    };
    candle.check()?;
    Ok(candle)
}

struct Field<'a> {
    column: &'static str,
    text: &'a str,
}

impl<'a> Field<'a> {
    fn of(fields: &[&'a [u8]], at: usize, column: &'static str) -> Result<Self, RowFault> {
        let bytes = fields.get(at).map(|field| bare(field)).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or(RowFault::Missing(column))?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { column, text }),
            Err(_) => Err(Self { column, text: "..." }.fault("is not UTF-8 text")),
        }
    }

    fn date(&self) -> Result<Date, RowFault> {
        // The parsers also accept other forms, and times.
        let date = match self.text.len() {
            LONG_DATE_BYTES => Date::strptime("%d-%b-%Y", self.text).ok(),
            DATE_BYTES => self.text.parse().ok(),
            _ => None,
        };
        date.ok_or_else(|| self.fault("is not a date such as 2026-11-20"))
    }

    fn number(&self) -> Result<Decimal, RowFault> {
        let number = match self.text.contains(',') {
            true => ungrouped(self.text).as_deref().and_then(json::parse_decimal),
            false => json::parse_decimal(self.text),
        };
        number.ok_or_else(|| {
            let why = if has_decimal_comma(self.text) {
                "has a decimal comma; a point is expected"
            } else {
                "is not a finite number"
            };
            self.fault(why)
        })
    }

    fn price(&self) -> Result<i64, RowFault> {
        price_e4(self.number()?).ok_or_else(|| self.fault("is out of range"))
    }

    fn shares(&self) -> Result<i64, RowFault> {
        let whole = Some(self.number()?).filter(Decimal::is_integer);
        whole.and_then(|n| n.to_i64()).ok_or_else(|| self.fault("is not a number of shares"))
    }

    fn fault(&self, why: &'static str) -> RowFault {
        let shown = self.text.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
        RowFault::Field { column: self.column, shown, why }
    }
}

/// `1,05,000.50` or `105,000.50` without its commas; `None` if they do not separate thousands.
fn ungrouped(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut groups = whole.rsplit(',');
    let last_is_whole = groups.next().is_some_and(|group| group.len() == 3);
    let good = last_is_whole && !fraction.contains(',') && {
        let mut above: Vec<&str> = groups.collect();
        let first = above.pop();
        first.is_some_and(|group| (1..=3).contains(&group.len()))
            && above.iter().all(|group| matches!(group.len(), 2 | 3))
    };
    good.then(|| text.replace(',', ""))
}

/// Whether the text looks like `1234,5` or `1.234,50`.
fn has_decimal_comma(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((whole, fraction)) = text.split_once(',') else { return false };
    let mut groups = whole.split('.');
    digits(fraction)
        && groups.next().is_some_and(digits)
        && groups.all(|group| group.len() == 3 && digits(group))
}

/// A field without its quotes, and without blanks outside or inside them.
pub(super) fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    let inner = field.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inner.map_or(field, <[u8]>::trim_ascii)
}
