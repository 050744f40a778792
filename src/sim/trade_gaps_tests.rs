//! The ledger finds what lacks in the files of a thousand seeded people, and nothing else.
//!
//! Each has twelve shares at each broker, of which one lacks a middle year, one had a bonus, one
//! was mostly moved in and one was split with a new ISIN. Beside them stand the states that only
//! look like a lack: undelivered, pledged and margin-funded shares, and trades around the sync that
//! the broker shows or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use jiff::civil::{Date, date};
use rust_decimal::Decimal;

use crate::base::{Broker, Clock};
use crate::ledger::corrections::Correction;
use crate::ledger::file::read_file;
use crate::ledger::lots::replay;
use crate::ledger::reasons::Cause;
use crate::ledger::reconciliation::{
    Compared, Persons, Reconciliation, Settlement, SyncedAccount, SyncedHolding, reconcile,
};
use crate::ledger::row::Row;
use crate::ledger::securities::Securities;
use crate::ledger::testing::{Told, account, corrections, isin, row};
use crate::ledger::trades::{Choices, ImportedRows, Known, trades};
use crate::market::MarketCalendar;
use crate::sim::broker_a::portfolio::{Held, held};
use crate::sim::exchange::universe;
use crate::sim::server::message::Content;
use crate::sim::trade_files::answer;
use crate::sim::trade_history::{Event, EventKind, bought_of_moved_in, history, last_day, owned};
use crate::sim::world::{SimSettings, World};

const TODAY: Date = date(2026, 11, 20);
const PEOPLE: usize = 1_000;
/// The place of the share that was mostly moved in from elsewhere.
const MOVED_IN: usize = 6;
/// Days of a sync: an ordinary one, one on which nothing settles, the day after it, a Monday.
const SYNCED: [Date; 4] = [
    date(2026, 11, 19),
    date(2026, 8, 26),
    date(2026, 8, 27),
    date(2026, 11, 16),
];

/// One person's account at one broker, as its files and its sync tell of it.
struct Person<'a> {
    world: &'a World,
    calendar: &'a MarketCalendar,
    broker: Broker,
    user: String,
    key: u64,
    synced: Date,
}

impl Person<'_> {
    fn letter(&self) -> &'static str {
        match self.broker {
            Broker::A => "a",
            Broker::B => "b",
        }
    }

    fn draw(&self, number: i64, below: i64) -> i64 {
        universe::pick(self.key, number, below)
    }

    fn isin_of(&self, held: &Held<'_>) -> String {
        match self.broker {
            Broker::A => held.instrument.isin.clone(),
            Broker::B => held.isin_at_b().to_owned(),
        }
    }

    fn rows(&self, is_middle_year: bool) -> Vec<Row> {
        let name = match (self.broker, is_middle_year) {
            (Broker::A, false) => "tradebook.csv",
            (Broker::A, true) => "tradebook-middle-year.csv",
            (Broker::B, false) => "all-transactions.csv",
            (Broker::B, true) => "all-transactions-middle-year.csv",
        };
        let path = format!("{}/{}/{name}", self.letter(), self.user);
        let Content::Text(_, bytes) = answer(self.world, &path).content else {
            panic!("{path}")
        };
        let account = account(self.letter());
        read_file(Cursor::new(bytes), &account, TODAY, &|| false)
            .unwrap()
            .rows
    }

    /// Whether anything happened to a share of which the first file says nothing.
    fn is_special(&self, place: usize, held: &Held<'_>) -> bool {
        let events = history(self.world, self.broker, &self.user, TODAY);
        let mut of_share = events
            .iter()
            .filter(|event| event.share.key == held.instrument.key);
        place == MOVED_IN || of_share.any(|event| event.is_missing || !event.kind.is_trade())
    }

    /// A trade of an ordinary share of which the sync may say either, and whether it shows it.
    fn pending(&self, place: usize, held: &Held<'_>) -> Option<(Row, i64)> {
        let number = 10 * place as i64;
        let quantity = 1 + self.draw(number, 5);
        let day = match self.broker {
            Broker::A => self.synced,
            Broker::B => self.calendar.previous_trading_date(self.synced)?,
        };
        // What of the day before settles before the sync is shown for certain.
        let is_open = self.broker == Broker::A
            || self
                .calendar
                .settlement_day(day)
                .is_some_and(|settles| settles >= self.synced);
        let is_bought = self.draw(number + 1, 2) == 0;
        let is_shown = !is_open || self.draw(number + 2, 2) == 0;
        if self.is_special(place, held) || owned(self.broker, held) <= quantity {
            return None;
        }
        let side = if is_bought { "buy" } else { "sell" };
        let change = if is_bought { quantity } else { -quantity };
        let text = format!("{day} {side} {quantity} X{place} 100 {} #9{place}", self.isin_of(held));
        Some((row(9_000 + place as u32, &text), if is_shown { change } else { 0 }))
    }

    /// What the sync says, with the trades around it.
    fn sync(&self) -> (SyncedAccount, Vec<Row>) {
        let mut around = Vec::new();
        let mut holdings = Vec::new();
        for (place, held) in held(self.world, &self.user).iter().enumerate() {
            let mut shares = owned(self.broker, held);
            if let Some((trade, change)) = self.pending(place, held) {
                shares += change;
                around.push(trade);
            }
            // Pledged shares stand among the owned ones or beside them.
            let beside = if self.draw(place as i64 + 500, 2) == 0 {
                held.pledged
            } else {
                0
            };
            holdings.push(SyncedHolding {
                isin: Some(isin(&self.isin_of(held))),
                symbol: held.instrument.symbol.clone(),
                owned: Decimal::from(shares - beside.min(shares)),
                pledged: Decimal::from(held.pledged),
                action_seen: None,
            });
        }
        let synced = SyncedAccount {
            account: account(self.letter()),
            by: self.broker,
            at_ms: 1,
            on: self.synced,
            trading_date: self.synced,
            holdings,
        };
        (synced, around)
    }

    fn reconciled(&self, with_middle_year: bool, said: &[(String, Correction)]) -> Reconciliation {
        let (synced, around) = self.sync();
        let mut files = vec![self.rows(false), around];
        if with_middle_year {
            files.push(self.rows(true));
        }
        let account = account(self.letter());
        let names = ["1", "2", "3"];
        let imports: Vec<ImportedRows<'_>> = names
            .into_iter()
            .zip(&files)
            .map(|(import, rows)| ImportedRows {
                import,
                account: &account,
                format: "zerodha_tradebook",
                rows,
            })
            .collect();
        let securities = Securities::of(said.iter().map(|(_, correction)| correction));
        let isins = Told::default();
        let choices = Choices::new();
        let known = Known {
            securities: &securities,
            choices: &choices,
            isins: &isins,
        };
        let trades = trades(&imports, known);
        let ledger = replay(&trades, said, TODAY);
        let persons = Persons::new();
        let compared = Compared {
            trades: &trades,
            corrections: said,
            ledger: &ledger,
            persons: &persons,
        };
        reconcile(compared, &[synced], self.calendar).unwrap()
    }

    /// The ISINs of which something lacks, with the cause that the seed gave them.
    fn lacks(&self, events: &[Event<'_>]) -> BTreeMap<String, Cause> {
        let mut lacks = BTreeMap::new();
        for event in events {
            match event.kind {
                EventKind::Bonus => lacks.insert(event.isin.clone(), Cause::Bonus),
                EventKind::Split => lacks.insert(event.isin.clone(), Cause::Split),
                // Without it more was sold than bought.
                _ if event.is_missing => lacks.insert(event.isin.clone(), Cause::OlderFile),
                _ => None,
            };
        }
        let held = held(self.world, &self.user);
        if owned(self.broker, &held[MOVED_IN]) > 0 {
            lacks.insert(self.isin_of(&held[MOVED_IN]), Cause::TransferIn);
        }
        // The earlier ISIN of what was split.
        let old = events.iter().filter(|event| event.kind == EventKind::Split);
        let old: Vec<String> = old
            .flat_map(|split| {
                let of_share = events
                    .iter()
                    .filter(|event| event.share.key == split.share.key);
                of_share
                    .map(|event| event.isin.clone())
                    .filter(|isin| *isin != split.isin)
            })
            .collect();
        lacks.extend(old.into_iter().map(|isin| (isin, Cause::Split)));
        lacks
    }

    /// What a person says of what no file has.
    fn corrections(&self, events: &[Event<'_>]) -> Vec<(String, Correction)> {
        let mut said = Vec::new();
        for event in events {
            let day = event.date;
            let isin = &event.isin;
            let of_share = events
                .iter()
                .filter(|other| other.share.key == event.share.key);
            match event.kind {
                EventKind::Bonus => said.push(format!(
                    r#"{{"kind":"bonus","isin":"{isin}","ex_date":"{day}",
                        "numerator":1,"denominator":1}}"#
                )),
                EventKind::Split => {
                    let old = of_share
                        .map(|other| &other.isin)
                        .find(|other| *other != isin);
                    let Some(old) = old else { continue };
                    said.push(format!(
                        r#"{{"kind":"split","isin":"{old}","new_isin":"{isin}","ex_date":"{day}",
                            "numerator":2,"denominator":1}}"#
                    ));
                }
                _ => {}
            }
        }
        let held = held(self.world, &self.user);
        let shares = owned(self.broker, &held[MOVED_IN]);
        let moved = shares - bought_of_moved_in(shares);
        if moved > 0 {
            let isin = self.isin_of(&held[MOVED_IN]);
            let account = self.letter();
            said.push(format!(
                r#"{{"kind":"opening_lot","account":"{account}","isin":"{isin}",
                    "date":"2019-03-04","quantity":{moved},"cost":1000}}"#
            ));
        }
        let lines: Vec<&str> = said.iter().map(String::as_str).collect();
        corrections(&lines)
    }
}

/// The ISINs that are not proved, with their causes.
fn unproved(found: &Reconciliation) -> BTreeMap<String, Option<Cause>> {
    let rows = found.rows.iter().filter(|row| !row.is_proved());
    rows.map(|row| (row.isins[0].as_str().to_owned(), row.cause))
        .collect()
}

#[test]
fn what_lacks_of_a_thousand_people_is_found_and_nothing_else() {
    let clock = Clock::manual("2026-11-20T11:42:17+05:30".parse().unwrap());
    let world = World::new(SimSettings::default(), clock.clone());
    let calendar = MarketCalendar::embedded();
    assert!(
        SYNCED.iter().all(|day| *day > last_day(TODAY)),
        "the files end before each sync"
    );
    let mut causes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for number in 0..PEOPLE {
        let broker = if number % 2 == 0 {
            Broker::A
        } else {
            Broker::B
        };
        let user = format!("U{number}");
        let key = universe::key(number as u64, "gaps");
        let synced = SYNCED[number / 2 % SYNCED.len()];
        let person = Person {
            world: &world,
            calendar: &calendar,
            broker,
            user,
            key,
            synced,
        };
        let events = history(&world, broker, &person.user, TODAY);
        let lacks = person.lacks(&events);
        let found = unproved(&person.reconciled(false, &[]));
        let expected: BTreeSet<&String> = lacks.keys().collect();
        assert_eq!(found.keys().collect::<BTreeSet<_>>(), expected, "{broker:?} {}", person.user);
        for (isin, cause) in &lacks {
            let told = found[isin].expect("a cause of each lack");
            *causes.entry((cause.as_str(), told.as_str())).or_default() += 1;
        }

        // With the second file and what the person says, all is proved.
        let said = person.corrections(&events);
        let rest = unproved(&person.reconciled(true, &said));
        assert_eq!(rest, BTreeMap::new(), "{broker:?} {}", person.user);
    }
    let seeded: usize = causes.values().sum();
    let right = causes
        .iter()
        .filter(|((seed, told), _)| seed == told)
        .map(|(_, count)| count);
    let right: usize = right.sum();
    // What a cause is cannot always be seen: a bonus of few shares looks like shares moved in.
    assert!(
        seeded > 4 * PEOPLE && 10 * right > 9 * seeded,
        "{right} of {seeded}: {causes:?}"
    );
}
