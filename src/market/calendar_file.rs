//! Reads the text of a calendar file into [`CalendarEntries`].
//!
//! Runs on the main thread. Reports all faults of the file at once, not only the first.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::base::Words;
use crate::market::calendar_entries::{
    CalendarEntries, Confidence, Entry, Holiday, Hours, Provenance, Regime, Session,
};
use crate::market::data_file::{DataError, Faults, Row, document};

/// Most parts of one special session. The exchange's disaster recovery drills had two.
pub(crate) const SESSION_PARTS_MAX: usize = 8;

/// Reads one file. `below` holds the entries that the file will be laid over; years and regimes
/// that it has need not be repeated.
pub(super) fn parse(
    text: &str,
    origin: &str,
    below: &CalendarEntries,
) -> Result<CalendarEntries, DataError> {
    let mut faults = Faults::of(text);
    let table = document(text, &mut faults);
    let root = Row::whole(&table);
    root.expect_only(&["years", "regime", "holiday", "session", "trading_day"], &mut faults);

    let mut book = CalendarEntries::default();
    book.years.extend(root.years("years", &mut faults));
    for row in root.rows("regime", &mut faults) {
        row.expect_only(&REGIME_KEYS, &mut faults);
        let provenance = provenance(&row, &mut faults);
        let (from, hours) = (row.date("from", &mut faults), hours(&row, &mut faults));
        let (Some(from), Some(hours)) = (from, hours) else { continue };
        if book.regimes.insert(from, Regime { hours, provenance }).is_some() {
            faults.add(row.offset, format!("a second regime from {from}: remove one"));
        }
    }
    let known = |year: i16| book.years.contains(&year) || below.years.contains(&year);
    for row in root.rows("holiday", &mut faults) {
        row.expect_only(&["date", "name", "source", "confidence"], &mut faults);
        let provenance = provenance(&row, &mut faults);
        let (date, name) = (row.date("date", &mut faults), row.required("name", &mut faults));
        let (Some(date), Some(name)) = (date, name) else { continue };
        let entry = Entry::Holiday(Holiday { name: name.into(), provenance });
        insert_day(&mut book.days, &row, date, entry, &mut faults);
    }
    for row in root.rows("session", &mut faults) {
        let Some((date, session)) = session(&row, &mut faults) else { continue };
        expect_covered(&row, date, known(date.year()), &mut faults);
        insert_day(&mut book.days, &row, date, Entry::Session(session), &mut faults);
    }
    for row in root.rows("trading_day", &mut faults) {
        row.expect_only(&["date", "name", "source", "confidence"], &mut faults);
        provenance(&row, &mut faults);
        row.text("name", &mut faults);
        let Some(date) = row.date("date", &mut faults) else { continue };
        expect_covered(&row, date, known(date.year()), &mut faults);
        insert_day(&mut book.days, &row, date, Entry::TradingDay, &mut faults);
    }
    for year in &book.years {
        let start = Date::constant(*year, 1, 1);
        if book.regime(start).or_else(|| below.regime(start)).is_none() {
            faults.add(
                root.offset_of("years"),
                format!("no [[regime]] says the hours of {start}: add one or drop {year}"),
            );
        }
    }
    faults.into_result(origin, book)
}

const REGIME_KEYS: [&str; 8] =
    ["from", "orders", "pre_open", "continuous", "closing", "post_close", "source", "confidence"];

fn expect_covered(row: &Row<'_, '_>, date: Date, covered: bool, faults: &mut Faults<'_>) {
    if !covered {
        let year = date.year();
        faults.add(
            row.offset,
            format!("{date} has no effect: list the holidays of {year} and add {year} to `years`"),
        );
    }
}

fn insert_day(
    days: &mut BTreeMap<Date, Entry>,
    row: &Row<'_, '_>,
    date: Date,
    entry: Entry,
    faults: &mut Faults<'_>,
) {
    if days.insert(date, entry).is_some() {
        faults.add(row.offset, format!("a second entry for {date}: remove one"));
    }
}

fn session(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Option<(Date, Session)> {
    row.expect_only(&["date", "name", "source", "confidence", "hours_confirmed", "part"], faults);
    let provenance = provenance(row, faults);
    let hours_confirmed = row.boolean("hours_confirmed", true, faults);
    let (date, name) = (row.date("date", faults), row.required("name", faults));
    let rows = row.rows("part", faults);
    if rows.is_empty() || rows.len() > SESSION_PARTS_MAX {
        faults.add(
            row.offset,
            format!("a session needs 1 to {SESSION_PARTS_MAX} [[session.part]] with its hours"),
        );
    }
    let mut parts: Vec<Hours> = Vec::with_capacity(rows.len());
    for part in rows {
        part.expect_only(&REGIME_KEYS[1..6], faults);
        let Some(hours) = hours(&part, faults) else { continue };
        if parts.last().is_some_and(|before| before.end_s() > hours.start_s()) {
            faults
                .add(part.offset, "this part begins before the one above ends: put them in order");
        }
        parts.push(hours);
    }
    Some((date?, Session { name: name?.into(), parts, hours_confirmed, provenance }))
}

/// Source and confidence of an entry. The operator's entries may leave both out; they count as
/// confirmed.
fn provenance(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Provenance {
    let source = row.text("source", faults).unwrap_or("operator").to_owned();
    let word = row.text("confidence", faults).unwrap_or(Confidence::Confirmed.as_str());
    let confidence = Confidence::parse(word).unwrap_or_else(|| {
        let known = Confidence::ALL.map(Confidence::as_str).join(", ");
        faults.add(row.offset_of("confidence"), format!("`confidence` is one of {known}"));
        Confidence::Unconfirmed
    });
    Provenance { source, confidence }
}

/// Reads the five intervals of a regime or of a part of a session. They must be in order. Only the
/// closing auction may begin while other shares still trade.
fn hours(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Option<Hours> {
    row.required("continuous", faults)?;
    let hours = Hours {
        orders: row.span("orders", faults),
        pre_open: row.span("pre_open", faults),
        continuous: row.span("continuous", faults)?,
        closing: row.span("closing", faults),
        post_close: row.span("post_close", faults),
    };
    let mut wrong = |key: &str, cure: &str| {
        faults.add(row.offset_of(key), format!("`{key}` {cure}"));
    };
    if let Some(orders) = hours.orders
        && !hours.pre_open.is_some_and(|p| p.start_s <= orders.start_s && orders.end_s <= p.end_s)
    {
        wrong("orders", "must lie inside `pre_open`");
    }
    if hours.pre_open.is_some_and(|span| span.end_s > hours.continuous.start_s) {
        wrong("pre_open", "must end before `continuous` begins");
    }
    if let Some(closing) = hours.closing
        && (closing.start_s <= hours.continuous.start_s || closing.end_s < hours.continuous.end_s)
    {
        wrong("closing", "must begin after `continuous` begins and not end before it ends");
    }
    let close_s = hours.closing.unwrap_or(hours.continuous).end_s;
    if hours.post_close.is_some_and(|span| span.start_s < close_s) {
        wrong("post_close", "must begin after `continuous` and `closing` end");
    }
    Some(hours)
}
