//! What cells say: numbers, dates and times, as brokers and spreadsheets write them.
//!
//! A date whose day and month could be meant the other way round is not understood: it would be a
//! guess.

use compact_str::CompactString;
use jiff::civil::{Date, Time};
use rust_decimal::{Decimal, RoundingStrategy};

use crate::base::Isin;
use crate::ledger::refusals::RefusedReason;
use crate::ledger::table::{Cell, CellKind, TableRow};

/// Quantities and prices are at most so many.
const LARGEST: i64 = 1_000_000_000_000;
const DECIMALS_MAX: u32 = 9;
/// Digits before the point beyond which a number is too large, whatever they are.
const WHOLE_DIGITS_MAX: u32 = 15;
/// Amounts of a report are floats of which these places are meant.
const AMOUNT_PLACES: u32 = 6;
/// No demat account and no electronic exchange is older.
const EARLIEST_YEAR: i16 = 1990;
/// Letters of a name or an id.
const NAME_BYTES_MAX: usize = 64;
/// Digits that a workbook's number keeps.
const EXACT_DIGITS: usize = 15;
const SECONDS_A_DAY: f64 = 86_400.0;
/// Days between the two calendars of workbooks.
const FROM_1904_DAYS: i64 = 1_462;

/// What is wrong with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFault {
    Unreadable,
    TooLarge,
    TooPrecise,
}

/// A number in plain digits, with or without a sign and thousands separators.
pub(crate) fn decimal(text: &str) -> Result<Decimal, NumberFault> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || !grouped_well(whole) {
        return Err(NumberFault::Unreadable);
    }
    let mut value: i128 = 0;
    let mut count: u32 = 0;
    for byte in whole.bytes().filter(|byte| *byte != b',') {
        let digit = digit(byte)?;
        if count > 0 || digit > 0 {
            count += 1;
        }
        if count <= WHOLE_DIGITS_MAX {
            value = value * 10 + digit;
        }
    }
    let mut scale: u32 = 0;
    let mut is_precise = false;
    for (at, byte) in (1_u32..).zip(fraction.bytes()) {
        let digit = digit(byte)?;
        if digit > 0 && at > DECIMALS_MAX {
            is_precise = true;
        } else if digit > 0 && count <= WHOLE_DIGITS_MAX {
            value = value * 10_i128.pow(at - scale) + digit;
            scale = at;
        }
    }
    if count > WHOLE_DIGITS_MAX {
        return Err(NumberFault::TooLarge);
    }
    if is_precise {
        return Err(NumberFault::TooPrecise);
    }
    let value = if text.starts_with('-') { -value } else { value };
    Ok(Decimal::from_i128_with_scale(value, scale))
}

fn digit(byte: u8) -> Result<i128, NumberFault> {
    if byte.is_ascii_digit() {
        Ok(i128::from(byte - b'0'))
    } else {
        Err(NumberFault::Unreadable)
    }
}

/// `1,234`, `12,34,567` and `1234`, but neither `12,5` nor `,5`.
fn grouped_well(whole: &str) -> bool {
    let Some((first, rest)) = whole.split_once(',') else {
        return true;
    };
    let last = rest.rsplit(',').next().unwrap_or_default();
    let is_group = |group: &str| matches!(group.len(), 2 | 3);
    (1..=3).contains(&first.len()) && rest.split(',').all(is_group) && last.len() == 3
}

/// What no cell may be, whatever its column.
fn readable<'a>(cell: Cell<'a>) -> Result<&'a str, RefusedReason> {
    match cell.kind {
        CellKind::Formula => Err(RefusedReason::Formula),
        CellKind::Error => Err(RefusedReason::CellError),
        _ if cell.text.starts_with('=') => Err(RefusedReason::Formula),
        _ => Ok(cell.text),
    }
}

/// The text of a column; `None` where it has nothing.
pub(crate) fn text(row: &TableRow, column: Option<u32>) -> Result<Option<&str>, RefusedReason> {
    row.at(column).map(readable).transpose()
}

/// The text of a column that says `-` or `NA` where it has nothing.
pub(crate) fn stated(row: &TableRow, column: Option<u32>) -> Result<Option<&str>, RefusedReason> {
    let nothing = |text: &&str| !matches!(*text, "-" | "NA" | "N/A" | "N.A.");
    Ok(text(row, column)?.filter(nothing))
}

fn above_zero(
    row: &TableRow,
    column: Option<u32>,
    faults: [RefusedReason; 4],
) -> Result<Decimal, RefusedReason> {
    let [unreadable, not_positive, too_large, too_precise] = faults;
    let number = decimal(text(row, column)?.unwrap_or_default()).map_err(|fault| match fault {
        NumberFault::Unreadable => unreadable,
        NumberFault::TooLarge => too_large,
        NumberFault::TooPrecise => too_precise,
    })?;
    if number <= Decimal::ZERO {
        return Err(not_positive);
    }
    if number > Decimal::from(LARGEST) {
        Err(too_large)
    } else {
        Ok(number)
    }
}

pub(crate) fn quantity(row: &TableRow, column: Option<u32>) -> Result<Decimal, RefusedReason> {
    let faults = [
        RefusedReason::QuantityUnreadable,
        RefusedReason::QuantityNotPositive,
        RefusedReason::QuantityTooLarge,
        RefusedReason::QuantityTooPrecise,
    ];
    above_zero(row, column, faults)
}

pub(crate) fn price(row: &TableRow, column: Option<u32>) -> Result<Decimal, RefusedReason> {
    let faults = [
        RefusedReason::PriceUnreadable,
        RefusedReason::PriceNotPositive,
        RefusedReason::PriceTooLarge,
        RefusedReason::PriceTooPrecise,
    ];
    above_zero(row, column, faults)
}

/// An ISIN that the row may lack.
pub(crate) fn isin(row: &TableRow, column: Option<u32>) -> Result<Option<Isin>, RefusedReason> {
    let Some(text) = stated(row, column)? else {
        return Ok(None);
    };
    Isin::parse(text)
        .map(Some)
        .ok_or(RefusedReason::IsinMalformed)
}

/// An amount in rupees, of any sign, to six places. Nothing and `NA` are `None`.
pub(crate) fn amount(
    row: &TableRow,
    column: Option<u32>,
) -> Result<Option<Decimal>, RefusedReason> {
    let Some(text) = stated(row, column)? else {
        return Ok(None);
    };
    let read = match decimal(text) {
        Ok(number) => Some(number),
        Err(NumberFault::TooPrecise) => text.replace(',', "").parse().ok(),
        Err(_) if text.contains(['e', 'E']) => Decimal::from_scientific(text).ok(),
        Err(_) => None,
    };
    let read = read.filter(|number| number.abs() <= Decimal::from(LARGEST));
    let rounded = |number: Decimal| {
        let places = RoundingStrategy::MidpointAwayFromZero;
        number
            .round_dp_with_strategy(AMOUNT_PLACES, places)
            .normalize()
    };
    read.map(|number| Some(rounded(number)))
        .ok_or(RefusedReason::AmountUnreadable)
}

/// A day that a trade can have.
pub(crate) fn date(
    row: &TableRow,
    column: Option<u32>,
    today: Date,
) -> Result<Date, RefusedReason> {
    let date = any_date(row, column)?.ok_or(RefusedReason::DateMissing)?;
    if date.year() < EARLIEST_YEAR {
        return Err(RefusedReason::DateTooEarly);
    }
    if date > today {
        Err(RefusedReason::DateInFuture)
    } else {
        Ok(date)
    }
}

/// A day of any time, or nothing.
pub(crate) fn any_date(row: &TableRow, column: Option<u32>) -> Result<Option<Date>, RefusedReason> {
    if let Some(cell) = row.at(column).filter(|cell| cell.kind == CellKind::Number) {
        let (date, _) = serial(cell.text, row.from_1904).ok_or(RefusedReason::DateImpossible)?;
        return Ok(Some(date));
    }
    let Some(text) = stated(row, column)? else {
        return Ok(None);
    };
    written_date(text).map(|(date, _)| Some(date))
}

/// The time of day in IST, from a time or from a date with one.
pub(crate) fn time(row: &TableRow, column: Option<u32>) -> Result<Option<Time>, RefusedReason> {
    if let Some(cell) = row.at(column).filter(|cell| cell.kind == CellKind::Number) {
        let (_, time) = serial(cell.text, row.from_1904).ok_or(RefusedReason::TimeUnreadable)?;
        return Ok(Some(time));
    }
    let Some(text) = stated(row, column)? else {
        return Ok(None);
    };
    let rest = written_date(text).map_or(text, |(_, rest)| rest);
    if rest.is_empty() {
        return Ok(None);
    }
    written_time(rest)
        .map(Some)
        .ok_or(RefusedReason::TimeUnreadable)
}

/// A workbook's day, counted from the end of 1899 or from 1904, with the time as its fraction.
fn serial(text: &str, from_1904: bool) -> Option<(Date, Time)> {
    let number: f64 = text.parse().ok()?;
    if !(0.0..3_000_000.0).contains(&number) {
        return None;
    }
    let seconds = (number * SECONDS_A_DAY).round() as i64;
    let days = seconds / 86_400 + if from_1904 { FROM_1904_DAYS } else { 0 };
    let start = Date::constant(1899, 12, 30);
    let date = start
        .checked_add(jiff::Span::new().try_days(days).ok()?)
        .ok()?;
    let second = i32::try_from(seconds % 86_400).ok()?;
    let part = |value: i32| i8::try_from(value).ok();
    let time = Time::new(part(second / 3600)?, part(second / 60 % 60)?, part(second % 60)?, 0);
    Some((date, time.ok()?))
}

/// `2023-05-11`, `11-May-2023` or `11-May-23`, and what follows after a `T` or a space.
fn written_date(text: &str) -> Result<(Date, &str), RefusedReason> {
    let is_iso = text.len() >= 10 && text.as_bytes()[4] == b'-';
    let (year, month, day, rest) = if is_iso {
        let parts = (text.get(..4), text.get(5..7), text.get(8..10), text.get(10..));
        let (Some(year), Some(month), Some(day), Some(rest)) = parts else {
            return Err(RefusedReason::DateUnreadable);
        };
        let is_apart = text.as_bytes()[7] == b'-';
        let month = number(month).filter(|_| is_apart);
        (number(year), month, number(day), rest)
    } else {
        let mut parts = text.splitn(3, ['-', '/', ' ']);
        let day = parts.next().unwrap_or_default();
        let month = parts.next().unwrap_or_default();
        let rest = parts.next().unwrap_or_default();
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (year, rest) = rest.split_at(end);
        let year = match (year.len(), number(year)) {
            (4, year) => year,
            (2, Some(year)) if year >= 90 => Some(1900 + year),
            (2, Some(year)) => Some(2000 + year),
            _ => None,
        };
        (year, month_of(month), number(day), rest)
    };
    let (Some(year), Some(month), Some(day)) = (year, month, day) else {
        return Err(RefusedReason::DateUnreadable);
    };
    let rest = match rest.as_bytes() {
        [] => rest,
        [b'T' | b' ', ..] => rest[1..].trim_start(),
        _ => return Err(RefusedReason::DateUnreadable),
    };
    let small = |part: i16| i8::try_from(part).map_err(|_| RefusedReason::DateImpossible);
    let date = Date::new(year, small(month)?, small(day)?);
    date.map(|date| (date, rest))
        .map_err(|_| RefusedReason::DateImpossible)
}

/// One to four digits.
fn number(text: &str) -> Option<i16> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn month_of(name: &str) -> Option<i16> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let at = MONTHS
        .iter()
        .position(|month| name.eq_ignore_ascii_case(month))?;
    i16::try_from(at + 1).ok()
}

/// `10:41:09` or `10:41`. A fraction of a second is dropped, and IST's own offset may follow.
fn written_time(text: &str) -> Option<Time> {
    let text = text.strip_suffix("+05:30").unwrap_or(text);
    let whole = match text.split_once('.') {
        Some((whole, fraction)) => whole.get(..).filter(|_| number_like(fraction))?,
        None => text,
    };
    let mut parts = whole.split(':').map(|part| {
        part.parse::<i8>()
            .ok()
            .filter(|_| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let hour = parts.next()??;
    let minute = parts.next()??;
    let second = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() {
        None
    } else {
        Time::new(hour, minute, second, 0).ok()
    }
}

fn number_like(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of a share or a contract.
pub(crate) fn symbol(row: &TableRow, column: Option<u32>) -> Result<CompactString, RefusedReason> {
    let symbol = text(row, column)?.ok_or(RefusedReason::SymbolMissing)?;
    let is_short = symbol.len() <= NAME_BYTES_MAX && !symbol.contains(char::is_control);
    is_short
        .then(|| symbol.into())
        .ok_or(RefusedReason::SymbolTooLong)
}

/// A word that decides nothing, such as a series. One that is too long is left out.
pub(crate) fn word(
    row: &TableRow,
    column: Option<u32>,
) -> Result<Option<CompactString>, RefusedReason> {
    let is_short = |text: &&str| text.len() <= NAME_BYTES_MAX && !text.contains(char::is_control);
    Ok(stated(row, column)?
        .filter(is_short)
        .map(CompactString::from))
}

/// An id. A number beyond the digits that a workbook keeps has lost some, and is none.
pub(crate) fn id(
    row: &TableRow,
    column: Option<u32>,
) -> Result<Option<CompactString>, RefusedReason> {
    let Some(id) = stated(row, column)? else {
        return Ok(None);
    };
    let is_number = row
        .at(column)
        .is_some_and(|cell| cell.kind == CellKind::Number);
    let is_exact = id.len() <= EXACT_DIGITS && id.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !is_exact || is_scientific(id) {
        return Ok(None);
    }
    let is_short = id.len() <= NAME_BYTES_MAX && !id.contains(char::is_control);
    is_short
        .then(|| Some(id.into()))
        .ok_or(RefusedReason::IdTooLong)
}

/// `1.3E+15`, as a spreadsheet writes a long number into text.
fn is_scientific(text: &str) -> bool {
    let Some((number, power)) = text.split_once(['e', 'E']) else {
        return false;
    };
    let has_point = number.contains('.') || power.starts_with('+');
    has_point && number.parse::<f64>().is_ok() && power.parse::<i32>().is_ok()
}
