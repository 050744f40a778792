//! The command `calendar`: prints what the trading calendar knows, or checks a calendar file
//! against what is in force.
//!
//! Main thread of a command. Reads files only; asks no service.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use jiff::civil::Date;
use jiff::{Span, Timestamp};

use crate::base::{Clock, clock};
use crate::cli::operator::{Done, print, refuse, settings, with_env_file};
use crate::config::cli::{Scope, with_flags};
use crate::market::MarketCalendar;
use crate::market::calendar_entries::{Day, Entry, Hours, Provenance};
use crate::market::data_file::DaySpan;
use crate::ops::{Exit, exit};

/// Transitions that are shown.
const TRANSITIONS_SHOWN: usize = 6;

/// The definition of the command.
pub(crate) fn command() -> Command {
    let check = Arg::new("check")
        .long("check")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Check this calendar file and say what it would change, and change nothing");
    let year = Arg::new("year")
        .long("year")
        .value_name("YEAR")
        .value_parser(value_parser!(i16).range(2000..=2100))
        .conflicts_with("check")
        .help("Show the holidays of this year [default: the running one]");
    let about = "Show the trading calendar: hours, holidays, sources, and where it ends";
    let command = Command::new("calendar").about(about).arg(check).arg(year);
    let command = with_env_file(with_flags(command, Scope::Check));
    command.after_help(format!(
        "The calendar is the embedded one with the entries of BHAV_CALENDAR_FILE on top. A file \
         that was checked is put in force by a reload.\n\n{}",
        exit::HELP
    ))
}

/// Prints the calendar in force, or what a file would change in it.
pub(crate) fn run(matches: &ArgMatches) -> Done {
    let config = settings(matches)?;
    let read =
        |path| MarketCalendar::load(path).map_err(|error| refuse(&error.to_string(), Exit::Usage));
    let in_force = read(config.market.calendar_file.as_deref())?;
    if let Some(path) = matches.get_one::<PathBuf>("check") {
        let checked = read(Some(path))?;
        return Ok(print(&differences(&in_force, &checked)));
    }
    let now = config.now.unwrap_or_else(|| Clock::system().now());
    let year = matches.get_one::<i16>("year").copied();
    let year = year.unwrap_or_else(|| clock::zoned(now).date().year());
    Ok(print(&shown(&in_force, now, year)))
}

fn shown(calendar: &MarketCalendar, now: Timestamp, year: i16) -> String {
    let mut text = String::new();
    write_today(&mut text, calendar, now);
    write_regimes(&mut text, calendar);
    write_year(&mut text, calendar, year);
    write_unknown(&mut text, calendar, clock::zoned(now).date());
    text
}

/// A line of text. Writing to a string cannot fail.
fn line(text: &mut String, line: impl std::fmt::Display) {
    let _ = writeln!(text, "{line}");
}

fn write_today(text: &mut String, calendar: &MarketCalendar, now: Timestamp) {
    let today = clock::zoned(now).date();
    let status = calendar.status(now);
    let known = if status.calendar_known {
        ""
    } else {
        ", which the calendar does not know"
    };
    line(text, format_args!("Today {today}{known}: {}", kind(calendar, today)));
    line(text, format_args!("Phase now: {}", status.phase.as_str()));
    let mut next = status.next_transition_at;
    for _ in 0..TRANSITIONS_SHOWN {
        let Some(at) = next else { break };
        let then = calendar.status(at);
        let when = clock::zoned(at).strftime("%Y-%m-%d %H:%M");
        line(text, format_args!("  {when}  {}", then.phase.as_str()));
        next = then.next_transition_at;
    }
}

fn write_regimes(text: &mut String, calendar: &MarketCalendar) {
    line(text, "\nTrading hours (IST)");
    for (from, regime) in &calendar.entries().regimes {
        let until = regime
            .known_until
            .map(|until| format!(", known until {until}"));
        line(text, format_args!("  from {from}{}", until.unwrap_or_default()));
        line(text, format_args!("    {}", hours(&regime.hours)));
        line(text, format_args!("    {}", source(&regime.provenance)));
    }
}

fn write_year(text: &mut String, calendar: &MarketCalendar, year: i16) {
    let entries = calendar.entries();
    match entries.years.get(&year) {
        Some(list) => {
            line(text, format_args!("\nHolidays of {year}, known until {}", list.known_until));
            line(text, format_args!("  {}", source(&list.provenance)));
        }
        None => line(text, format_args!("\nHolidays of {year}: no complete list")),
    }
    let of_year = |date: &Date| date.year() == year;
    for (date, entry) in entries.days.iter().filter(|(date, _)| of_year(date)) {
        let Entry::Holiday(holiday) = entry else {
            continue;
        };
        let day = date.strftime("%Y-%m-%d %a");
        let confidence = holiday.provenance.confidence.as_str();
        line(text, format_args!("  {day}  {} ({confidence})", holiday.name));
    }
    line(text, format_args!("\nSpecial sessions and trading days of {year}"));
    for (date, entry) in entries.days.iter().filter(|(date, _)| of_year(date)) {
        match entry {
            Entry::Session(session) => {
                let doubt = if session.hours_confirmed {
                    ""
                } else {
                    ", HOURS NOT CONFIRMED"
                };
                line(text, format_args!("  {date}  {}{doubt}", session.name));
                for part in &session.parts {
                    line(text, format_args!("    {}", hours(part)));
                }
                line(text, format_args!("    {}", source(&session.provenance)));
            }
            Entry::TradingDay => line(text, format_args!("  {date}  normal hours")),
            Entry::Holiday(_) => {}
        }
    }
    line(text, format_args!("\nSettlement holidays of {year} (they change no price)"));
    for (date, holiday) in entries
        .settlement_holidays
        .iter()
        .filter(|(date, _)| of_year(date))
    {
        let from = source(&holiday.provenance);
        line(text, format_args!("  {date}  {}; {from}", holiday.name));
    }
}

fn write_unknown(text: &mut String, calendar: &MarketCalendar, today: Date) {
    line(text, "\nWhere it ends");
    match calendar.covered_until(today) {
        Some(until) => line(text, format_args!("  trading holidays are known until {until}")),
        None => line(text, "  trading holidays of today are not known"),
    }
    let last = calendar.entries().regimes.values().next_back();
    if let Some(until) = last.and_then(|regime| regime.known_until) {
        line(text, format_args!("  trading hours are known until {until}"));
    }
    for unknown in calendar.unknown_ahead(today) {
        line(text, format_args!("  NOT KNOWN: {unknown}"));
    }
}

fn source(provenance: &Provenance) -> String {
    format!("{}: {}", provenance.confidence.as_str(), provenance.source)
}

fn hours(hours: &Hours) -> String {
    let mut parts = Vec::new();
    parts.extend(
        hours
            .pre_open
            .map(|pre_open| format!("pre-open {}", span(pre_open))),
    );
    parts.push(format!("continuous {}", span(hours.continuous)));
    if let Some(auction) = hours.closing {
        let earliest = time(auction.earliest_end_s);
        parts.push(format!("closing {} (price from {earliest})", span(auction.span)));
    }
    parts.extend(
        hours
            .post_close
            .map(|post_close| format!("post-close {}", span(post_close))),
    );
    parts.join(", ")
}

fn span(span: DaySpan) -> String {
    format!("{}-{}", time(span.start_s), time(span.end_s))
}

fn time(second: u32) -> String {
    format!("{:02}:{:02}", second / 3_600, second / 60 % 60)
}

/// What a date is, in words.
fn kind(calendar: &MarketCalendar, date: Date) -> String {
    let entries = calendar.entries();
    match entries.day(date) {
        Day::Unknown => "unknown".to_owned(),
        Day::Weekend => "weekend".to_owned(),
        Day::Holiday => match entries.days.get(&date) {
            Some(Entry::Holiday(holiday)) => format!("holiday, {}", holiday.name),
            _ => "holiday".to_owned(),
        },
        Day::Trading(parts) => {
            let parts: Vec<String> = parts.iter().map(hours).collect();
            let trades = format!("trading, {}", parts.join("; "));
            match calendar.knows(date) {
                true => trades,
                false => format!("not known, as if {trades}"),
            }
        }
    }
}

/// One change, which may be the same on several dates that follow each other.
struct Change {
    from: Date,
    to: Date,
    before: String,
    after: String,
}

/// What `checked` changes against `in_force`, a line for each run of dates.
fn differences(in_force: &MarketCalendar, checked: &MarketCalendar) -> String {
    let years = || {
        in_force
            .entries()
            .years
            .keys()
            .chain(checked.entries().years.keys())
    };
    let (Some(first), Some(last)) = (years().min(), years().max()) else {
        return String::new();
    };
    let end = Date::constant(*last, 12, 31);
    let dates = Date::constant(*first, 1, 1).series(Span::new().days(1));
    let mut changes: Vec<Change> = Vec::new();
    let mut is_adjacent = false;
    for date in dates.take_while(|date| *date <= end) {
        let before = kind(in_force, date);
        let after = kind(checked, date);
        if before == after {
            // A weekend between two dates that change alike does not part them.
            is_adjacent &= before == "weekend";
            continue;
        }
        match changes.last_mut() {
            Some(run) if is_adjacent && run.before == before && run.after == after => run.to = date,
            _ => changes.push(Change {
                from: date,
                to: date,
                before,
                after,
            }),
        }
        is_adjacent = true;
    }
    let mut text = String::from("The file has no faults.\n");
    if changes.is_empty() {
        text.push_str("It changes no date of the calendar in force.\n");
    }
    for Change {
        from,
        to,
        before,
        after,
    } in changes
    {
        let dates = if from == to {
            from.to_string()
        } else {
            format!("{from} to {to}")
        };
        line(&mut text, format_args!("{dates}\n  now:  {before}\n  then: {after}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> MarketCalendar {
        MarketCalendar::with_operator_text(text, "mine.toml").unwrap()
    }

    #[test]
    fn a_file_is_compared_date_by_date_with_what_is_in_force() {
        let embedded = MarketCalendar::embedded();
        let same = differences(&embedded, &of(""));
        assert!(same.contains("changes no date"), "{same}");
        let polling = "[[holiday]]\ndate = \"2026-12-01\"\nname = \"Polling\"\n\
                       [[trading_day]]\ndate = \"2026-12-25\"\n";
        let said = differences(&embedded, &of(polling));
        let expected = "2026-12-01\n  now:  trading, pre-open 09:00-09:15, continuous 09:15-15:30, \
                        closing 15:15-15:35 (price from 15:28), post-close 15:50-16:00\n  \
                        then: holiday, Polling\n2026-12-25\n  now:  holiday, Christmas\n  \
                        then: trading";
        assert!(said.contains(expected), "{said}");
        // A regime differs on each of its dates and is one run from holiday to holiday.
        let hours = "[[regime]]\nfrom = \"2026-12-07\"\ncontinuous = \"09:15-15:30\"\n\
                     closing = \"15:30-15:45\"\nclosing_earliest_end = \"15:43\"";
        let said = differences(&embedded, &of(hours));
        assert!(said.contains("2026-12-07 to 2026-12-24\n"), "{said}");
        assert!(said.contains("closing 15:30-15:45 (price from 15:43)"), "{said}");
        assert_eq!(said.matches("then:").count(), 2, "{said}");
        // Back to the embedded one.
        assert!(differences(&of(polling), &embedded).contains("then: holiday, Christmas"));
        let year = differences(&embedded, &of("years = [2027]"));
        assert!(year.contains("now:  not known, as if trading"), "{year}");
    }

    #[test]
    fn everything_that_is_known_is_shown_with_its_source_and_its_end() {
        let now = "2026-12-07T15:20:00+05:30".parse().unwrap();
        let text = shown(&MarketCalendar::embedded(), now, 2026);
        for part in [
            "Today 2026-12-07: trading, pre-open 09:00-09:15",
            "Phase now: open",
            "  2026-12-07 15:30  closing\n  2026-12-07 15:40  closed\n",
            "from 2026-12-07, known until 2027-12-31",
            "unconfirmed: SEBI circular HO/47/11/11(3)2025-MRD-POD2/I/23843/2026",
            "2026-12-25 Fri  Christmas (announced)",
            "2026-11-08  Muhurat, HOURS NOT CONFIRMED",
            "2026-04-01  Settlement holiday",
            "NOT KNOWN: trading holidays from 2027-01-01 on",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let now = "2027-01-04T11:00:00+05:30".parse().unwrap();
        let text = shown(&MarketCalendar::embedded(), now, 2027);
        assert!(text.contains("which the calendar does not know: not known, as if trading"));
        assert!(text.contains("Holidays of 2027: no complete list"), "{text}");
    }
}
