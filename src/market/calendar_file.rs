//! Reads the text of a calendar file into [`CalendarEntries`].
//!
//! Runs on the main thread. Reports all faults of the file at once, not only the first.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::base::Words;
use crate::market::calendar_entries::{
    Auction, CalendarEntries, Confidence, Entry, Holiday, Hours, Provenance, Regime, Session,
    SettlementHoliday, YearList,
};
use crate::market::data_file::{DataError, DaySpan, Faults, Row, document};

/// Most parts of one special session. The exchange's disaster recovery drills had two.
pub(crate) const SESSION_PARTS_MAX: usize = 8;

/// Keys of the hours in a regime or in a part of a session.
const HOURS_KEYS: [&str; 9] = [
    "orders",
    "pre_open",
    "continuous",
    "closing",
    "closing_reference",
    "closing_orders",
    "closing_limit_orders",
    "closing_earliest_end",
    "post_close",
];

/// Keys of an entry for one date.
const DAY_KEYS: [&str; 4] = ["date", "name", "source", "confidence"];

const ROOT_KEYS: [&str; 7] = [
    "years",
    "year",
    "regime",
    "holiday",
    "session",
    "trading_day",
    "settlement_holiday",
];

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
    root.expect_only(&ROOT_KEYS, &mut faults);

    let mut book = CalendarEntries::default();
    read_years(&root, &mut book, &mut faults);
    read_regimes(&root, &mut book, &mut faults);
    read_days(&root, &mut book, below, &mut faults);
    for row in root.rows("settlement_holiday", &mut faults) {
        row.expect_only(&DAY_KEYS, &mut faults);
        let provenance = provenance(&row, &mut faults);
        let date = row.date("date", &mut faults);
        let name = row.required("name", &mut faults);
        let (Some(date), Some(name)) = (date, name) else {
            continue;
        };
        let entry = SettlementHoliday {
            name: name.into(),
            provenance,
        };
        if book.settlement_holidays.insert(date, entry).is_some() {
            faults.add(row.offset, format!("a second settlement holiday on {date}: remove one"));
        }
    }
    for year in book.years.keys() {
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

/// Reads `years` and `[[year]]`, which adds a source and an end.
fn read_years(root: &Row<'_, '_>, book: &mut CalendarEntries, faults: &mut Faults<'_>) {
    for year in root.years("years", faults) {
        let provenance = Provenance {
            source: OPERATOR.to_owned(),
            confidence: Confidence::Confirmed,
        };
        book.years.insert(
            year,
            YearList {
                known_until: last_date(year),
                provenance,
            },
        );
    }
    for row in root.rows("year", faults) {
        row.expect_only(&["year", "known_until", "source", "confidence"], faults);
        let provenance = provenance(&row, faults);
        let Some(year) = row.year("year", faults) else {
            continue;
        };
        let known_until = known_until(&row, faults).unwrap_or_else(|| last_date(year));
        if known_until.year() != year {
            let cure = format!("`known_until` must be a date of {year}");
            faults.add(row.offset_of("known_until"), cure);
        }
        if book
            .years
            .insert(
                year,
                YearList {
                    known_until,
                    provenance,
                },
            )
            .is_some()
        {
            faults.add(row.offset, format!("{year} is listed twice: remove one"));
        }
    }
}

fn read_regimes(root: &Row<'_, '_>, book: &mut CalendarEntries, faults: &mut Faults<'_>) {
    for row in root.rows("regime", faults) {
        let keys = ["from", "known_until", "source", "confidence"];
        row.expect_only(&[&keys[..], &HOURS_KEYS].concat(), faults);
        let provenance = provenance(&row, faults);
        let known_until = known_until(&row, faults);
        let from = row.date("from", faults);
        let hours = hours(&row, faults);
        let (Some(from), Some(hours)) = (from, hours) else {
            continue;
        };
        if known_until.is_some_and(|until| until < from) {
            faults.add(row.offset_of("known_until"), "`known_until` must not be before `from`");
        }
        if book
            .regimes
            .insert(
                from,
                Regime {
                    hours,
                    known_until,
                    provenance,
                },
            )
            .is_some()
        {
            faults.add(row.offset, format!("a second regime from {from}: remove one"));
        }
    }
}

/// Reads the entries for single dates.
fn read_days(
    root: &Row<'_, '_>,
    book: &mut CalendarEntries,
    below: &CalendarEntries,
    faults: &mut Faults<'_>,
) {
    for row in root.rows("holiday", faults) {
        row.expect_only(&DAY_KEYS, faults);
        let provenance = provenance(&row, faults);
        let date = row.date("date", faults);
        let name = row.required("name", faults);
        let (Some(date), Some(name)) = (date, name) else {
            continue;
        };
        let entry = Entry::Holiday(Holiday {
            name: name.into(),
            provenance,
        });
        insert_day(&mut book.days, &row, date, entry, faults);
    }
    let CalendarEntries { years, days, .. } = book;
    let known = |year: i16| years.contains_key(&year) || below.years.contains_key(&year);
    for row in root.rows("session", faults) {
        let Some((date, session)) = session(&row, faults) else {
            continue;
        };
        expect_covered(&row, date, known(date.year()), faults);
        insert_day(days, &row, date, Entry::Session(session), faults);
    }
    for row in root.rows("trading_day", faults) {
        row.expect_only(&DAY_KEYS, faults);
        provenance(&row, faults);
        row.text("name", faults);
        let Some(date) = row.date("date", faults) else {
            continue;
        };
        expect_covered(&row, date, known(date.year()), faults);
        insert_day(days, &row, date, Entry::TradingDay, faults);
    }
}

fn last_date(year: i16) -> Date {
    Date::constant(year, 12, 31)
}

/// The optional end of what an entry says.
fn known_until(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Option<Date> {
    if row.has("known_until") {
        row.date("known_until", faults)
    } else {
        None
    }
}

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
    row.expect_only(
        &[
            "date",
            "name",
            "source",
            "confidence",
            "hours_confirmed",
            "part",
        ],
        faults,
    );
    let provenance = provenance(row, faults);
    let hours_confirmed = row.boolean("hours_confirmed", true, faults);
    let date = row.date("date", faults);
    let name = row.required("name", faults);
    let rows = row.rows("part", faults);
    if rows.is_empty() || rows.len() > SESSION_PARTS_MAX {
        faults.add(
            row.offset,
            format!("a session needs 1 to {SESSION_PARTS_MAX} [[session.part]] with its hours"),
        );
    }
    let mut parts: Vec<Hours> = Vec::with_capacity(rows.len());
    for part in rows {
        part.expect_only(&HOURS_KEYS, faults);
        let Some(hours) = hours(&part, faults) else {
            continue;
        };
        if parts
            .last()
            .is_some_and(|before| before.end_s() > hours.start_s())
        {
            faults
                .add(part.offset, "this part begins before the one above ends: put them in order");
        }
        parts.push(hours);
    }
    Some((
        date?,
        Session {
            name: name?.into(),
            parts,
            hours_confirmed,
            provenance,
        },
    ))
}

/// Source of an entry that names none.
const OPERATOR: &str = "operator";

/// Source and confidence of an entry. The operator's entries may leave both out; they count as
/// confirmed.
fn provenance(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Provenance {
    let source = row.text("source", faults).unwrap_or(OPERATOR).to_owned();
    let word = row
        .text("confidence", faults)
        .unwrap_or(Confidence::Confirmed.as_str());
    let confidence = Confidence::parse(word).unwrap_or_else(|| {
        let known = Confidence::ALL.map(Confidence::as_str).join(", ");
        faults.add(row.offset_of("confidence"), format!("`confidence` is one of {known}"));
        Confidence::Unconfirmed
    });
    Provenance { source, confidence }
}

/// Reads the hours of a regime or of a part of a session. They must be in order. Only the closing
/// auction may begin while other shares still trade.
fn hours(row: &Row<'_, '_>, faults: &mut Faults<'_>) -> Option<Hours> {
    row.required("continuous", faults)?;
    let continuous = row.span("continuous", faults)?;
    let hours = Hours {
        orders: row.span("orders", faults),
        pre_open: row.span("pre_open", faults),
        continuous,
        closing: auction(row, continuous, faults),
        post_close: row.span("post_close", faults),
    };
    let mut wrong = |key: &str, cure: &str| {
        faults.add(row.offset_of(key), format!("`{key}` {cure}"));
    };
    if let Some(orders) = hours.orders
        && !hours
            .pre_open
            .is_some_and(|p| p.start_s <= orders.start_s && orders.end_s <= p.end_s)
    {
        wrong("orders", "must lie inside `pre_open`");
    }
    if hours
        .pre_open
        .is_some_and(|span| span.end_s > continuous.start_s)
    {
        wrong("pre_open", "must end before `continuous` begins");
    }
    if hours
        .post_close
        .is_some_and(|span| span.start_s < hours.close_s())
    {
        wrong("post_close", "must begin after `continuous` and `closing` end");
    }
    Some(hours)
}

/// An auction takes orders until a random second of its last minutes, this long before its end, if
/// the file does not say from when on its price can exist.
const RANDOM_END_S: u32 = 120;

/// Reads the times of the closing auction. `continuous` is the trading of shares without one.
fn auction(row: &Row<'_, '_>, continuous: DaySpan, faults: &mut Faults<'_>) -> Option<Auction> {
    const PARTS: [&str; 3] = [
        "closing_reference",
        "closing_orders",
        "closing_limit_orders",
    ];
    let span = row.span("closing", faults);
    let parts = PARTS.map(|key| row.span(key, faults));
    let earliest_end = row.second("closing_earliest_end", faults);
    let Some(span) = span else {
        for key in PARTS
            .iter()
            .chain(&["closing_earliest_end"])
            .filter(|key| row.has(key))
        {
            faults.add(row.offset_of(key), format!("`{key}` goes with `closing`: add it"));
        }
        return None;
    };
    if span.start_s <= continuous.start_s || span.end_s < continuous.end_s {
        let cure = "`closing` must begin after `continuous` begins and not end before it ends";
        faults.add(row.offset_of("closing"), cure);
    }
    let mut from_s = span.start_s;
    for (key, part) in PARTS.iter().zip(parts) {
        let Some(part) = part else { continue };
        if part.start_s < from_s || part.end_s > span.end_s {
            let cure = format!("`{key}` must lie inside `closing`, after what comes before it");
            faults.add(row.offset_of(key), cure);
        }
        from_s = part.end_s;
    }
    // An auction beside the trading of other shares may match its orders from the end of that on.
    let usual_s = if span.start_s < continuous.end_s {
        continuous.end_s
    } else {
        span.end_s
    };
    let earliest_end_s =
        earliest_end.unwrap_or_else(|| usual_s.saturating_sub(RANDOM_END_S).max(span.start_s));
    if earliest_end.is_some_and(|second| !(span.start_s..=span.end_s).contains(&second)) {
        let cure = "`closing_earliest_end` must lie inside `closing`";
        faults.add(row.offset_of("closing_earliest_end"), cure);
    }
    let [reference, orders, limit_orders] = parts;
    Some(Auction {
        span,
        reference,
        orders,
        limit_orders,
        earliest_end_s,
    })
}
