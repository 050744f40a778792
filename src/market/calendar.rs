//! The trading calendar as data: hours by date, holidays and special sessions, each with its source
//! and confidence.
//!
//! Built on the main thread, at start and at each reload, from the embedded file and the
//! operator's. A calendar never changes once it is built, so any thread may read it. It never
//! guesses: in a year without a list of holidays no date is a trading date.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Span, Timestamp};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::base::{MarketDay, Quote, Words, clock, words};

/// Years that entries may have. Bounds the size of the timeline that is built from them.
pub(crate) const YEARS: RangeInclusive<i16> = 2000..=2100;

/// Most parts of one special session. The exchange's disaster recovery drills had two.
pub(crate) const SESSION_PARTS_MAX: usize = 8;

const EMBEDDED: &str = include_str!("data/calendar.toml");

words! {
    /// Reliability of an entry.
    pub(crate) enum Confidence {
        /// At least two independent sources, or price data.
        Confirmed = "confirmed",
        /// Published by the exchange, not yet seen in price data.
        Announced = "announced",
        /// One source, or sources that disagree.
        Unconfirmed = "unconfirmed",
        /// Computed by a library; has no effect once an operator's file covers the year.
        Estimate = "estimate",
    }
}

/// Origin of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provenance {
    pub source: String,
    pub(crate) confidence: Confidence,
}

/// The phases of one stretch of trading, IST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours {
    /// The part of `pre_open` in which orders are taken.
    pub(crate) orders: Option<DaySpan>,
    pub(crate) pre_open: Option<DaySpan>,
    /// Continuous trading of at least some shares.
    pub(crate) continuous: DaySpan,
    /// Closing auction of the constituents of the indices.
    pub(crate) closing: Option<DaySpan>,
    /// Trades at the closing price.
    pub(crate) post_close: Option<DaySpan>,
}

/// A weekday on which the market stays closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holiday {
    pub name: String,
    pub(crate) provenance: Provenance,
}

/// A trading date with hours of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub name: String,
    /// Ordered by time, not overlapping.
    pub parts: Vec<Hours>,
    /// False if the hours are a placeholder or sources disagree.
    pub hours_confirmed: bool,
    pub(crate) provenance: Provenance,
}

/// The hours of normal trading days, in force from a date on until the next regime begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Regime {
    pub hours: Hours,
    pub(crate) provenance: Provenance,
}

/// An entry of a calendar file for one date.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Holiday(Holiday),
    Session(Session),
    /// Normal hours, although an embedded entry or the weekend closes the market.
    TradingDay,
}

/// The kind of a date, after years, weekend and entries are considered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Day<'a> {
    /// No list of holidays covers this date.
    Unknown,
    Weekend,
    Holiday,
    Trading(&'a [Hours]),
}

/// The entries of one calendar file, or of the embedded file with the operator's on top.
#[derive(Debug, Default)]
pub(super) struct CalendarEntries {
    pub(super) years: BTreeSet<i16>,
    pub(super) regimes: BTreeMap<Date, Regime>,
    pub(super) days: BTreeMap<Date, Entry>,
}

/// Phases, trading dates and special sessions of the equity segment.
#[derive(Debug)]
pub struct MarketCalendar {
    entries: CalendarEntries,
    timeline: Timeline,
}

impl MarketCalendar {
    /// The calendar that is compiled in.
    pub fn embedded() -> Self {
        Self::of(embedded_entries())
    }

    /// The embedded calendar, with the entries of the operator's file on top.
    ///
    /// For a date that the file names, the file's entry counts. `years` adds covered years and
    /// drops the embedded estimates of these years. A regime replaces the one that begins on the
    /// same date, and is otherwise added to the others.
    ///
    /// # Errors
    /// The file cannot be read, or has faults: all of them, each with its line.
    pub fn load(operator_file: Option<&Path>) -> Result<Self, DataError> {
        operators(operator_file, Self::embedded, Self::with_operator_text)
    }

    /// Same as [`load`](Self::load), from text. `origin` is the name of the text in faults.
    ///
    /// # Errors
    /// The text has faults: all of them, each with its line.
    pub(crate) fn with_operator_text(text: &str, origin: &str) -> Result<Self, DataError> {
        let mut entries = embedded_entries();
        let operator = parse(text, origin, &entries)?;
        entries.overlay(operator);
        Ok(Self::of(entries))
    }

    fn of(entries: CalendarEntries) -> Self {
        let timeline = Timeline::build(&entries.years, |date| entries.day(date));
        Self { entries, timeline }
    }

    /// Phase and trading date at `at`. A binary search; any thread, never blocks.
    pub fn status(&self, at: Timestamp) -> MarketStatus {
        let Timeline { transitions, days } = &self.timeline;
        let now_s = floor_second(at);
        let after = transitions.partition_point(|transition| transition.at_s <= now_s);
        let current = after.checked_sub(1).map_or(UNKNOWN, |index| transitions[index].state);
        let next = transitions.get(after);
        let next = next.filter(|transition| current.known && transition.state.known);
        let begun = days.partition_point(|day| day.begin_s <= now_s);
        MarketStatus {
            is_open: current.is_open,
            phase: current.phase,
            next_transition_at: next
                .and_then(|transition| Timestamp::from_second(transition.at_s).ok()),
            trading_date: begun.checked_sub(1).map(|index| days[index].date),
            calendar_known: current.known,
        }
    }

    /// Whether a list of holidays covers the year of `date`.
    pub(crate) fn covers(&self, date: Date) -> bool {
        self.entries.years.contains(&date.year())
    }

    /// The last covered date: the end of the last year before the first gap at or after `date`.
    /// `None` if the year of `date` is not covered. Operators are warned when it is near.
    pub(crate) fn covered_until(&self, date: Date) -> Option<Date> {
        let mut year = self.covers(date).then_some(date.year())?;
        while self.entries.years.contains(&(year + 1)) {
            year += 1;
        }
        Date::new(year, 12, 31).ok()
    }

    /// Whether the market has a session on `date`, special sessions included. False in a year that
    /// is not covered.
    pub fn is_trading_date(&self, date: Date) -> bool {
        self.timeline.find(date).is_some()
    }

    /// The trading date before `date`; `None` if a date in between is in a year that is not
    /// covered.
    pub fn previous_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let before = days.partition_point(|day| day.date < date).checked_sub(1)?;
        let found = days[before].date;
        self.covers_between(found, date).then_some(found)
    }

    /// The trading date after `date`; `None` if a date in between is in a year that is not covered.
    pub fn next_trading_date(&self, date: Date) -> Option<Date> {
        let days = &self.timeline.days;
        let found = days.get(days.partition_point(|day| day.date <= date))?.date;
        self.covers_between(date, found).then_some(found)
    }

    /// Whether every date strictly between `from` and `to` is in a covered year.
    fn covers_between(&self, from: Date, to: Date) -> bool {
        let (Ok(first), Ok(last)) = (from.tomorrow(), to.yesterday()) else { return false };
        first > last || (first.year()..=last.year()).all(|year| self.entries.years.contains(&year))
    }

    /// When the official close of `date` is final: at the end of its closing auction, or of
    /// continuous trading if it has none. `None` if `date` is no trading date.
    pub fn official_close(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.close_s).ok()
    }

    /// When the first phase of `date` begins. From then on prices may be of that date. `None` if
    /// `date` is no trading date.
    pub(crate) fn opens(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.opens_s).ok()
    }

    /// When the first continuous trading of `date` begins. `None` if `date` is no trading date.
    pub(crate) fn begins(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.begin_s).ok()
    }

    /// The earliest time that a closing price of `date` can have, if it was made by the last trade
    /// of all or by the auction. `None` if `date` is no trading date.
    pub(crate) fn closing_prices_from(&self, date: Date) -> Option<Timestamp> {
        Timestamp::from_second(self.timeline.find(date)?.closing_prices_from_s).ok()
    }

    /// The last official close that was final at `at`, and the earliest time that its prices can
    /// have. `None` before the first known session.
    pub(crate) fn final_close(&self, at: Timestamp) -> Option<FinalClose> {
        let days = &self.timeline.days;
        let closed = days.partition_point(|day| day.close_s * 1_000 <= at.as_millisecond());
        let day = &days[closed.checked_sub(1)?];
        Some(FinalClose {
            at: Timestamp::from_second(day.close_s).ok()?,
            prices_from: Timestamp::from_second(day.closing_prices_from_s).ok()?,
        })
    }

    /// The part of the time between `from` and `to` that was continuous trading of the indices, in
    /// which they move every second. Zero if `to` is before `from`.
    pub(crate) fn trading_between(&self, from: Timestamp, to: Timestamp) -> SignedDuration {
        let (from_ms, to_ms) = (from.as_millisecond(), to.as_millisecond());
        let spans = self.timeline.trading_before(to_ms).take_while(|(_, end_ms)| *end_ms > from_ms);
        let within =
            |(start_ms, end_ms): (i64, i64)| (end_ms.min(to_ms) - start_ms.max(from_ms)).max(0);
        SignedDuration::from_millis(spans.map(within).sum())
    }

    /// The start of the indices' continuous trading that is under way at `at`, or else of the last
    /// one before `at`. `None` before the first known session.
    pub(crate) fn trading_began(&self, at: Timestamp) -> Option<Timestamp> {
        let (start_ms, _) = self.timeline.trading_before(at.as_millisecond() + 1).next()?;
        Timestamp::from_millisecond(start_ms).ok()
    }

    /// The latest moment, at most `at`, at which an index can have got a new price. That is `at`
    /// itself during continuous trading, otherwise the end of trading, or the official close once
    /// it is final.
    pub(crate) fn last_move(&self, at: Timestamp) -> Option<Timestamp> {
        let at_ms = at.as_millisecond();
        let traded = self.timeline.trading_before(at_ms + 1).next();
        let traded_ms = traded.map(|(_, end_ms)| end_ms.min(at_ms));
        let days = &self.timeline.days;
        let closed = days.partition_point(|day| day.close_s * 1_000 <= at_ms);
        let closed_ms = closed.checked_sub(1).map(|index| days[index].close_s * 1_000);
        Timestamp::from_millisecond(traded_ms.max(closed_ms)?).ok()
    }

    /// The holiday listed for `date`.
    #[cfg(test)]
    pub(crate) fn holiday(&self, date: Date) -> Option<&Holiday> {
        match self.entries.days.get(&date)? {
            Entry::Holiday(holiday) => Some(holiday),
            Entry::Session(_) | Entry::TradingDay => None,
        }
    }

    /// Special sessions on or after `from` with unconfirmed hours, which the operator should check.
    pub(crate) fn unconfirmed_sessions(
        &self,
        from: Date,
    ) -> impl Iterator<Item = (Date, &Session)> {
        self.entries.days.range(from..).filter_map(|(date, entry)| match entry {
            Entry::Session(session) if !session.hours_confirmed => Some((*date, session)),
            _ => None,
        })
    }

    /// The regime in force on `date`: its hours if no special session is listed.
    #[cfg(test)]
    pub(crate) fn regime(&self, date: Date) -> Option<&Regime> {
        self.entries.regime(date)
    }

    #[cfg(test)]
    pub(super) fn day(&self, date: Date) -> Day<'_> {
        self.entries.day(date)
    }
}

impl CalendarEntries {
    pub(super) fn regime(&self, date: Date) -> Option<&Regime> {
        self.regimes.range(..=date).next_back().map(|(_, regime)| regime)
    }

    fn day(&self, date: Date) -> Day<'_> {
        if !self.years.contains(&date.year()) {
            return Day::Unknown;
        }
        let normal = || match self.regime(date) {
            Some(regime) => Day::Trading(std::slice::from_ref(&regime.hours)),
            None => Day::Unknown,
        };
        let weekend = matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
        match self.days.get(&date) {
            Some(Entry::Session(session)) => Day::Trading(&session.parts),
            Some(Entry::TradingDay) => normal(),
            _ if weekend => Day::Weekend,
            Some(Entry::Holiday(_)) => Day::Holiday,
            None => normal(),
        }
    }

    /// Lays the entries of `upper` over these. If both have an entry for a date, `upper` wins.
    fn overlay(&mut self, upper: Self) {
        self.days.retain(|date, entry| {
            let estimate = matches!(entry, Entry::Holiday(holiday)
                if holiday.provenance.confidence == Confidence::Estimate);
            !(estimate && upper.years.contains(&date.year()))
        });
        self.years.extend(upper.years);
        self.regimes.extend(upper.regimes);
        self.days.extend(upper.days);
    }
}

fn embedded_entries() -> CalendarEntries {
    parse(EMBEDDED, "the embedded calendar", &CalendarEntries::default())
        .expect("the embedded calendar has no faults: a test reads it")
}

impl Hours {
    /// First second of the day that has a phase.
    pub(super) fn start_s(&self) -> u32 {
        self.pre_open.unwrap_or(self.continuous).start_s
    }

    /// First second of the day after the last phase.
    pub(super) fn end_s(&self) -> u32 {
        self.post_close.or(self.closing).unwrap_or(self.continuous).end_s
    }
}

// ---- Calendar file
//
// Reads the text of a calendar file into [`CalendarEntries`].
//
// Runs on the main thread. Reports all faults of the file at once, not only the first.

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

// ---- Data file
//
// Reads the operator's data files (calendar, indices, universe), most of them TOML. Every fault is
// reported with its line; one fault does not stop the reading.
//
// Runs on the main thread. Reads no other file.

/// Largest operator file read. The embedded calendar of four years is under 20 KiB.
pub(crate) const DATA_FILE_BYTES_MAX: u64 = 256 * 1024;

/// Most entries of one kind in a file; a hundred years of holidays are under 2,000.
pub(crate) const ENTRIES_MAX: usize = 4_000;

/// Longest name or note.
pub(crate) const TEXT_BYTES_MAX: usize = 200;

/// One fault of a data file: its line, and what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

/// Why a data file was not used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("cannot read {path}: {cause}", path = path.display())]
    Unreadable { path: PathBuf, cause: std::io::Error },
    #[error("{path} is over {DATA_FILE_BYTES_MAX} bytes, too many", path = path.display())]
    TooLarge { path: PathBuf },
    #[error("{}", Listing { origin, faults })]
    Faulty { origin: String, faults: Vec<Fault> },
}

/// Most faults printed. A file with more of them is probably not a data file at all; the rest is
/// counted.
const FAULTS_SHOWN: usize = 12;

struct Listing<'a> {
    origin: &'a str,
    faults: &'a [Fault],
}

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.faults.iter().take(FAULTS_SHOWN).enumerate() {
            let break_before = if position == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:{}: {}", self.origin, fault.line, fault.message)?;
        }
        match self.faults.len().saturating_sub(FAULTS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more", self.origin),
        }
    }
}

/// Parses the operator's file with `parse`, or calls `embedded` if there is none. `parse` takes the
/// text and the name by which faults refer to it.
pub(crate) fn operators<T>(
    file: Option<&Path>,
    embedded: fn() -> T,
    parse: fn(&str, &str) -> Result<T, DataError>,
) -> Result<T, DataError> {
    match file {
        None => Ok(embedded()),
        Some(path) => parse(&read_file(path)?, &path.display().to_string()),
    }
}

/// Reads an operator's file, up to [`DATA_FILE_BYTES_MAX`].
fn read_file(path: &Path) -> Result<String, DataError> {
    let unreadable = |cause| DataError::Unreadable { path: path.into(), cause };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(DATA_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > DATA_FILE_BYTES_MAX {
        return Err(DataError::TooLarge { path: path.into() });
    }
    Ok(text)
}

/// The faults found so far in one text.
pub(crate) struct Faults<'t> {
    text: &'t str,
    found: Vec<Fault>,
}

impl<'t> Faults<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        self.found.push(Fault { line, message: message.into() });
    }

    /// `value` if there are no faults, otherwise all of them as an error.
    pub(crate) fn into_result<T>(mut self, origin: &str, value: T) -> Result<T, DataError> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|fault| fault.line);
        Err(DataError::Faulty { origin: origin.into(), faults: self.found })
    }
}

/// An interval within a day in IST, in seconds since midnight. `start_s` belongs to it, `end_s`
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DaySpan {
    pub start_s: u32,
    pub end_s: u32,
}

impl DaySpan {
    /// Parses `09:15-15:30`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        let span = Self { start_s: second_of_day(start)?, end_s: second_of_day(end)? };
        (span.start_s < span.end_s).then_some(span)
    }

    pub(crate) fn contains(self, second: u32) -> bool {
        (self.start_s..self.end_s).contains(&second)
    }
}

fn second_of_day(text: &str) -> Option<u32> {
    let bytes = text.trim().as_bytes();
    let [h1, h2, b':', m1, m2] = bytes else { return None };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let (hour, minute) = (digit(h1)? * 10 + digit(h2)?, digit(m1)? * 10 + digit(m2)?);
    (hour < 24 && minute < 60).then_some((hour * 60 + minute) * 60)
}

type Key<'t> = Spanned<Cow<'t, str>>;

/// Parses the text as TOML. Syntax errors become faults.
pub(crate) fn document<'t>(text: &'t str, faults: &mut Faults<'t>) -> DeTable<'t> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let offset = error.span().map_or(0, |span| span.start);
        faults.add(offset, format!("not valid TOML: {}", error.message()));
    }
    table.into_inner()
}

/// One table of the document, read key by key.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, 't> {
    table: &'a DeTable<'t>,
    /// Byte offset of the table, for faults that concern all of it.
    pub(crate) offset: usize,
}

impl<'a, 't> Row<'a, 't> {
    pub(crate) fn whole(table: &'a DeTable<'t>) -> Self {
        Self { table, offset: 0 }
    }

    /// Reports keys that are not in `known`. Otherwise a misspelled key would have no effect and
    /// nobody would notice.
    pub(crate) fn expect_only(&self, known: &[&str], faults: &mut Faults<'_>) {
        for key in self.table.keys() {
            let key: &Key<'_> = key;
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let list = known.join(", ");
                faults.add(key.span().start, format!("unknown key `{name}`; known here: {list}"));
            }
        }
    }

    fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Byte offset of `key`, or of the table if the key is missing.
    pub(crate) fn offset_of(&self, key: &str) -> usize {
        self.value(key).map_or(self.offset, |value| value.span().start)
    }

    /// The string at `key`. `None` if it is absent; also `None`, with a fault, if it has another
    /// type or is too long.
    pub(crate) fn text(&self, key: &str, faults: &mut Faults<'_>) -> Option<&'a str> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() && text.len() <= TEXT_BYTES_MAX => {
                if text.chars().all(|c| !c.is_control() && c != '"' && c != '\\') {
                    return Some(text);
                }
                faults.add(
                    value.span().start,
                    format!("`{key}` holds a quote, backslash or control character: remove it"),
                );
            }
            _ => faults.add(
                value.span().start,
                format!("`{key}` must be a string of 1 to {TEXT_BYTES_MAX} bytes in quotes"),
            ),
        }
        None
    }

    /// The string at `key`; reports a fault if it is missing.
    pub(crate) fn required(&self, key: &str, faults: &mut Faults<'_>) -> Option<&'a str> {
        if self.value(key).is_none() {
            faults.add(self.offset, format!("`{key}` is missing: add it to this entry"));
        }
        self.text(key, faults)
    }

    /// The date at `key`; reports a fault if it is missing or not a date.
    pub(crate) fn date(&self, key: &str, faults: &mut Faults<'_>) -> Option<Date> {
        let text = self.required(key, faults)?;
        let date: Option<Date> = text.parse().ok();
        let date = date.filter(|date| text.len() == 10 && YEARS.contains(&date.year()));
        if date.is_none() {
            let (first, last) = (YEARS.start(), YEARS.end());
            faults.add(
                self.offset_of(key),
                format!("`{key}` is not a date: write \"YYYY-MM-DD\", years {first} to {last}"),
            );
        }
        date
    }

    /// The interval at `key`. `None` if it is absent; also `None`, with a fault, if it is
    /// malformed.
    pub(crate) fn span(&self, key: &str, faults: &mut Faults<'_>) -> Option<DaySpan> {
        let text = self.text(key, faults)?;
        let span = DaySpan::parse(text);
        if span.is_none() {
            faults.add(
                self.offset_of(key),
                format!("`{key}` is not an interval: write \"HH:MM-HH:MM\", IST, start before end"),
            );
        }
        span
    }

    /// The boolean at `key`, or `absent` if the key is missing.
    pub(crate) fn boolean(&self, key: &str, absent: bool, faults: &mut Faults<'_>) -> bool {
        match self.value(key).map(|value| (value.get_ref(), value.span())) {
            None => absent,
            Some((DeValue::Boolean(value), _)) => *value,
            Some((_, span)) => {
                faults.add(span.start, format!("`{key}` must be true or false"));
                absent
            }
        }
    }

    /// The years listed at `key`; empty if the key is missing.
    pub(crate) fn years(&self, key: &str, faults: &mut Faults<'_>) -> Vec<i16> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let mut years = Vec::new();
        let DeValue::Array(items) = value.get_ref() else {
            faults.add(value.span().start, format!("`{key}` must be a list, like [2027]"));
            return years;
        };
        for item in items.iter() {
            let year = match item.get_ref() {
                DeValue::Integer(integer) => integer.as_str().parse::<i16>().ok(),
                _ => None,
            };
            match year.filter(|year| YEARS.contains(year)) {
                Some(year) => years.push(year),
                None => {
                    let (first, last) = (YEARS.start(), YEARS.end());
                    faults.add(
                        item.span().start,
                        format!("`{key}` takes whole numbers from {first} to {last}"),
                    );
                }
            }
        }
        years
    }

    /// The tables of `[[key]]`; empty if the key is missing.
    pub(crate) fn rows(&self, key: &str, faults: &mut Faults<'_>) -> Vec<Row<'a, 't>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let mut rows = Vec::new();
        let DeValue::Array(items) = value.get_ref() else {
            faults.add(value.span().start, format!("`{key}` must be a list: write [[{key}]]"));
            return rows;
        };
        if items.len() > ENTRIES_MAX {
            faults.add(value.span().start, format!("more than {ENTRIES_MAX} entries of `{key}`"));
            return rows;
        }
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => rows.push(Row { table, offset: item.span().start }),
                _ => faults.add(item.span().start, format!("`{key}` must hold tables")),
            }
        }
        rows
    }
}

// ---- Phase
//
// The phase of the market at an instant.
//
// When a calendar is built it is unrolled into a sorted list of transitions: the instants at which
// the phase changes. A query is a binary search in that list and may come from any thread. Nothing
// here reads a clock; callers pass the instant.

words! {
    /// The phase, as the API names it.
    ///
    /// `closed` covers everything outside the hours of a trading date, and the gaps within its
    /// hours: between the two parts of a drill, from 15:30 to 15:40 before August 2026, and from
    /// 15:35 to 15:50 since. A weekend is `closed`. A weekday holiday is `holiday` from midnight to
    /// midnight. A holiday with a muhurat session is a trading date, so it is `closed` outside that
    /// session.
    #[derive(Hash)]
    pub enum Phase else Closed {
        /// Pre-open: orders, matching and the buffer before continuous trading.
        PreOpen = "pre_open",
        /// Continuous trading of the constituents of the indices.
        Open = "open",
        /// Closing auction of the constituents. An index that does not move is normal in it. Other
        /// shares trade on until 15:30.
        Closing = "closing",
        /// Trades at the closing price.
        PostClose = "post_close",
        /// None of the others.
        Closed = "closed",
        /// A weekday on which the market does not trade.
        Holiday = "holiday",
    }
}

/// The market at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketStatus {
    /// Whether some share is in continuous trading. True from the first second of trading, false
    /// from the end on.
    pub is_open: bool,
    pub phase: Phase,
    /// The next instant at which `phase` or `is_open` changes. `None` if that is beyond the covered
    /// years.
    pub next_transition_at: Option<Timestamp>,
    /// The trading date that prices belong to: the last one whose continuous trading has begun.
    /// `None` before the first known one.
    pub trading_date: Option<Date>,
    /// Whether the year has a list of holidays. If not, the market counts as closed.
    pub calendar_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    phase: Phase,
    is_open: bool,
    known: bool,
}

const UNKNOWN: State = State { phase: Phase::Closed, is_open: false, known: false };

#[derive(Debug, Clone, Copy)]
struct Transition {
    /// Seconds since the Unix epoch.
    at_s: i64,
    state: State,
}

#[derive(Debug, Clone, Copy)]
struct TradingDay {
    date: Date,
    /// Continuous trading begins, seconds since the Unix epoch.
    begin_s: i64,
    /// The first phase, pre-open or continuous trading, begins.
    opens_s: i64,
    /// No closing price has an earlier time.
    closing_prices_from_s: i64,
    /// The official close is final.
    close_s: i64,
}

/// The unrolled calendar: about 2,000 transitions and 250 trading dates a year.
#[derive(Debug)]
pub(super) struct Timeline {
    transitions: Vec<Transition>,
    days: Vec<TradingDay>,
}

impl Timeline {
    /// Unrolls the years from the first to the last of `years`.
    pub(super) fn build<'a>(years: &BTreeSet<i16>, day: impl Fn(Date) -> Day<'a>) -> Self {
        let mut timeline = Self { transitions: Vec::new(), days: Vec::new() };
        let (Some(first), Some(last)) = (years.first(), years.last()) else { return timeline };
        let end = Date::constant(*last, 12, 31);
        let dates = Date::constant(*first, 1, 1).series(Span::new().days(1));
        dates.take_while(|date| *date <= end).for_each(|date| timeline.push_day(date, &day(date)));
        timeline.push(midnight_s(end) + DAY_S, UNKNOWN);
        timeline
    }

    fn push(&mut self, at_s: i64, state: State) {
        if self.transitions.last().map_or(UNKNOWN, |transition| transition.state) != state {
            self.transitions.push(Transition { at_s, state });
        }
    }

    fn push_day(&mut self, date: Date, day: &Day<'_>) {
        let base_s = midnight_s(date);
        let plain = |phase| State { phase, is_open: false, known: true };
        let parts = match day {
            Day::Unknown => return self.push(base_s, UNKNOWN),
            Day::Weekend => return self.push(base_s, plain(Phase::Closed)),
            Day::Holiday => return self.push(base_s, plain(Phase::Holiday)),
            Day::Trading(parts) => *parts,
        };
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return self.push(base_s, plain(Phase::Closed));
        };
        self.days.push(TradingDay {
            date,
            begin_s: base_s + i64::from(first.continuous.start_s),
            opens_s: base_s + i64::from(first.start_s()),
            closing_prices_from_s: base_s + closing_prices_from_s(last),
            close_s: base_s + i64::from(last.closing.unwrap_or(last.continuous).end_s),
        });
        let mut seconds: BTreeSet<u32> = parts.iter().flat_map(transition_seconds).collect();
        seconds.insert(0);
        for second in seconds {
            self.push(base_s + i64::from(second), state_within(parts, second));
        }
    }

    /// The spans of continuous trading that begin before `at_ms`, the latest one first. Each is a
    /// pair of its first millisecond and the first one after it, since the Unix epoch.
    fn trading_before(&self, at_ms: i64) -> impl Iterator<Item = (i64, i64)> {
        let begun = self.transitions.partition_point(|transition| transition.at_s * 1_000 < at_ms);
        let open = |at: &usize| self.transitions[*at].state.phase == Phase::Open;
        (0..begun).rev().filter(open).map(|at| {
            let end_ms = self.transitions.get(at + 1).map_or(i64::MAX, |next| next.at_s * 1_000);
            (self.transitions[at].at_s * 1_000, end_ms)
        })
    }

    fn find(&self, date: Date) -> Option<&TradingDay> {
        self.days.binary_search_by_key(&date, |day| day.date).ok().map(|index| &self.days[index])
    }
}

const DAY_S: i64 = 86_400;

/// Some sources stamp the last price with one of the last seconds of trading.
const LAST_TRADE_S: i64 = 60;

/// The auction takes orders until a random second of the last two minutes of other shares'
/// continuous trading, and may match them from then on.
const AUCTION_S: i64 = 120;

/// The earliest second of the day that a closing price can have.
fn closing_prices_from_s(last: &Hours) -> i64 {
    let before_s = if last.closing.is_some() { AUCTION_S } else { LAST_TRADE_S };
    i64::from(last.continuous.end_s) - before_s
}

/// Midnight in IST, seconds since the Unix epoch.
fn midnight_s(date: Date) -> i64 {
    clock::instant(date.at(0, 0, 0, 0)).as_second()
}

/// Whole seconds since the Unix epoch, rounded down also before 1970.
fn floor_second(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(1_000)
}

fn transition_seconds(hours: &Hours) -> impl Iterator<Item = u32> {
    [hours.pre_open, Some(hours.continuous), hours.closing, hours.post_close]
        .into_iter()
        .flatten()
        .flat_map(|span| [span.start_s, span.end_s])
}

/// The phase at `second` of a trading date with these hours. The closing auction takes precedence
/// over the continuous trading of other shares.
fn state_within(parts: &[Hours], second: u32) -> State {
    let within = |span: Option<DaySpan>| span.is_some_and(|s| s.contains(second));
    let is_open = parts.iter().any(|hours| hours.continuous.contains(second));
    let phase = if parts.iter().any(|hours| within(hours.closing)) {
        Phase::Closing
    } else if is_open {
        Phase::Open
    } else if parts.iter().any(|hours| within(hours.pre_open)) {
        Phase::PreOpen
    } else if parts.iter().any(|hours| within(hours.post_close)) {
        Phase::PostClose
    } else {
        Phase::Closed
    };
    State { phase, is_open, known: true }
}

// ---- Market day
//
// The calendar's part in the age of prices: the last official close, and the trading date that has
// begun.

/// The last official close, while no newer session has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastClose {
    pub date: Date,
    /// When the close became final.
    pub at: Timestamp,
    /// From this moment on prices may be of the next session. Midnight if the calendar does not
    /// know the next session.
    pub until: Timestamp,
}

/// An official close that is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinalClose {
    /// When it became final.
    pub at: Timestamp,
    /// The earliest time that its prices can have.
    pub prices_from: Timestamp,
}

impl MarketCalendar {
    /// The last official close. `None` while a session is under way, its pre-open included.
    pub(crate) fn last_close(&self, now: Timestamp) -> Option<LastClose> {
        let today = clock::zoned(now).date();
        let date = match self.official_close(today) {
            Some(close) if close <= now => today,
            _ => self.previous_trading_date(today)?,
        };
        let next = self.next_trading_date(date).and_then(|next| self.opens(next));
        let midnight = clock::instant(date.tomorrow().ok()?.at(0, 0, 0, 0));
        let until = next.unwrap_or(midnight);
        let at = self.official_close(date)?;
        (now < until).then_some(LastClose { date, at, until })
    }

    /// Keeps to what `quote`, received by `now`, says of its own session: the previous close that
    /// it may be compared with, and the day's range.
    ///
    /// On the morning of a trading date a source replaces its previous close by the last session's,
    /// at some time of its own, while its last price is still of that session. The two are then the
    /// same close. It empties its range then, or later. So what is sent beside a price of an
    /// earlier session is ignored, and that of the quote `held` before stays. An answer that was
    /// under way at midnight counts as one of the new date.
    pub(crate) fn keep_to_session(&self, quote: &mut Quote, held: Option<&Quote>, now: Timestamp) {
        let date_of = |at: Timestamp| clock::zoned(at).date();
        let of = date_of(quote.as_of);
        if of >= self.market_day(now).session {
            return;
        }
        let held = held.filter(|held| date_of(held.as_of) == of);
        quote.previous_close = held.and_then(|held| held.previous_close);
        quote.day = held.and_then(|held| held.day).filter(|day| day.contains(quote.last_price));
    }

    /// The trading date and the last close that prices are compared with at `now`.
    pub(crate) fn market_day(&self, now: Timestamp) -> MarketDay {
        let today = clock::zoned(now).date();
        let status = self.status(now);
        let session = match self.is_trading_date(today) {
            true => today,
            false => self.previous_trading_date(today).unwrap_or(today),
        };
        MarketDay {
            today,
            session,
            day: status.trading_date.filter(|_| status.calendar_known),
            last_close: self.last_close(now).map(|last| last.at),
            close_before_open: self.close_before_open(now),
        }
    }

    fn close_before_open(&self, now: Timestamp) -> Option<Timestamp> {
        let today = clock::zoned(now).date();
        let is_pre_open = self.opens(today)? <= now && now < self.begins(today)?;
        self.official_close(self.previous_trading_date(today)?).filter(|_| is_pre_open)
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;

#[cfg(test)]
mod data_file_tests {
    use super::*;

    #[test]
    fn day_spans_are_read_strictly() {
        let span = DaySpan::parse("09:15-15:30").unwrap();
        assert_eq!((span.start_s, span.end_s), (33_300, 55_800));
        assert!(span.contains(33_300) && !span.contains(33_299));
        assert!(span.contains(55_799) && !span.contains(55_800));
        for bad in
            ["", "09:15", "9:15-15:30", "15:30-09:15", "09:15-09:15", "24:00-24:30", "09:60-10:00"]
        {
            assert_eq!(DaySpan::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large.toml");
        std::fs::write(&path, "#".repeat(DATA_FILE_BYTES_MAX as usize + 1)).unwrap();
        assert!(matches!(read_file(&path), Err(DataError::TooLarge { .. })));
        assert!(matches!(
            read_file(&dir.path().join("missing")),
            Err(DataError::Unreadable { .. })
        ));
    }
}

#[cfg(test)]
#[path = "phase_tests.rs"]
mod phase_tests;

#[cfg(test)]
mod market_day_tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::base::{DayRange, testing};

    #[test]
    fn the_last_close_holds_until_the_next_pre_open() {
        let calendar = MarketCalendar::embedded();
        for (now, expected) in [
            // A Friday with a closing auction until 15:35; the Tuesday after it is a holiday.
            ("2026-11-20T08:59:59+05:30", Some("2026-11-19")),
            ("2026-11-20T09:00:00+05:30", None),
            ("2026-11-20T15:34:59+05:30", None),
            ("2026-11-20T15:35:00+05:30", Some("2026-11-20")),
            ("2026-11-22T12:00:00+05:30", Some("2026-11-20")),
            ("2026-11-24T12:00:00+05:30", Some("2026-11-23")),
            // A special session on a Sunday.
            ("2026-11-08T12:00:00+05:30", Some("2026-11-06")),
            ("2026-11-08T23:00:00+05:30", Some("2026-11-08")),
            // The last date for which the calendar knows the next one.
            ("2026-12-31T23:00:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
        ] {
            let last = calendar.last_close(now.parse().unwrap());
            assert_eq!(last.map(|last| last.date.to_string()).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_price_of_an_earlier_session_keeps_its_own_previous_close_and_range() {
        let calendar = MarketCalendar::embedded();
        // The high is the previous close, so that each tells of which session it is.
        let range = |high: i64| DayRange::around(90.into(), Some(80.into()), Some(high.into()));
        let quote = |as_of: &str, asked: &str, close: Option<i64>| Quote {
            previous_close: close.map(Into::into),
            day: close.and_then(range),
            asked: format!("{asked}+05:30").parse().unwrap(),
            ..testing::quote("NSE:INFY", "90", format!("{as_of}+05:30").parse().unwrap())
        };
        let friday = quote("2026-11-20T15:30:00", "2026-11-20T16:00:00", Some(99));
        let thursday = quote("2026-11-19T15:30:00", "2026-11-19T16:00:00", Some(90));
        for (as_of, now, held, expected) in [
            // In its session, and until the next one's date, the source's value counts.
            ("2026-11-20T11:00:00", "2026-11-20T11:00:01", Some(&thursday), Some(100)),
            ("2026-11-20T15:30:00", "2026-11-20T23:59:59", None, Some(100)),
            ("2026-11-20T15:30:00", "2026-11-22T12:00:00", Some(&friday), Some(100)),
            // On Monday before the first price, Friday's value counts, or nothing.
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", Some(&friday), Some(99)),
            ("2026-11-20T15:30:00", "2026-11-23T09:14:59", Some(&friday), Some(99)),
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", Some(&thursday), None),
            ("2026-11-20T15:30:00", "2026-11-23T00:00:00", None, None),
            ("2026-11-23T09:15:00", "2026-11-23T09:15:01", Some(&friday), Some(100)),
            // A share that has not traded on Monday yet.
            ("2026-11-20T14:10:00", "2026-11-23T11:00:00", Some(&friday), Some(99)),
            // The Tuesday is a holiday.
            ("2026-11-23T15:30:00", "2026-11-24T12:00:00", None, Some(100)),
        ] {
            // It was asked for five seconds before, at midnight on the date before.
            let mut given = quote(as_of, now, Some(100));
            let now = given.asked;
            given.asked -= SignedDuration::from_secs(5);
            calendar.keep_to_session(&mut given, held, now);
            let expected = (expected.map(Decimal::from), expected.and_then(range));
            assert_eq!((given.previous_close, given.day), expected, "{as_of} received {now}");
        }
        // A price that was corrected after the session leaves its range.
        let mut given = quote("2026-11-20T15:30:00", "2026-11-23T09:00:00", Some(100));
        given.last_price = 120.into();
        let now = given.asked;
        calendar.keep_to_session(&mut given, Some(&friday), now);
        assert_eq!((given.previous_close, given.day), (Some(99.into()), None));
    }

    #[test]
    fn in_a_pre_open_the_close_before_it_is_known_and_what_is_said_is_of_the_session() {
        let calendar = MarketCalendar::embedded();
        for (now, close, date) in [
            ("2026-11-25T08:59:59+05:30", None, "2026-11-23"),
            // The day before is a holiday.
            ("2026-11-25T09:00:00+05:30", Some("2026-11-23T15:35:00+05:30"), "2026-11-25"),
            ("2026-11-25T09:14:59+05:30", Some("2026-11-23T15:35:00+05:30"), "2026-11-25"),
            ("2026-11-25T09:15:00+05:30", None, "2026-11-25"),
            ("2026-11-25T20:00:00+05:30", None, "2026-11-25"),
            ("2026-11-28T12:00:00+05:30", None, "2026-11-27"),
        ] {
            let day = calendar.market_day(now.parse().unwrap());
            let close = close.map(|close| close.parse::<Timestamp>().unwrap());
            assert_eq!(day.close_before_open, close, "{now}");
            assert_eq!(day.trading_date().to_string(), date, "{now}");
        }
    }

    #[test]
    fn a_trading_date_has_begun_once_continuous_trading_has() {
        let calendar = MarketCalendar::embedded();
        for (now, session, day) in [
            ("2026-11-20T08:00:00+05:30", "2026-11-20", Some("2026-11-19")),
            ("2026-11-20T09:14:59+05:30", "2026-11-20", Some("2026-11-19")),
            ("2026-11-20T09:15:00+05:30", "2026-11-20", Some("2026-11-20")),
            ("2026-11-21T09:15:00+05:30", "2026-11-20", Some("2026-11-20")),
            ("2026-11-24T12:00:00+05:30", "2026-11-23", Some("2026-11-23")),
            ("2027-02-01T12:00:00+05:30", "2027-02-01", None),
        ] {
            let found = calendar.market_day(now.parse().unwrap());
            assert_eq!(found.session.to_string(), session, "{now}");
            assert_eq!(found.day.map(|day| day.to_string()).as_deref(), day, "{now}");
        }
    }
}
