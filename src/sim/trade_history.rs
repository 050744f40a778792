//! Three years of trades of a seeded account, which end at what it holds. Connection threads run
//! this.
//!
//! They depend on user, seed and half-year alone, and on shares that were set for the user, so that
//! a file and a sync of another day say the same. Of the twelve shares one had a bonus, one was
//! split with a new ISIN, and one was mostly moved in from elsewhere; one lacks its middle year in
//! the first file.

use jiff::ToSpan;
use jiff::civil::{Date, Time, date};

use crate::base::Broker;
use crate::sim::broker_a::portfolio::{Held, held, held_at_a};
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::Instrument;
use crate::sim::world::World;

/// Places of the shares that something happened to, in the order of the holdings. The broker knows
/// no average of the one that was moved in.
const MOVED_IN: usize = 6;
const GAP: usize = 8;
/// The first of these of which an even number is held, and more than a few: after a bonus of one
/// for one it shows, and is no trade of these days.
const BONUS: [usize; 5] = [9, 7, 5, 3, 0];
const BONUS_FROM: i64 = 24;
const SPLIT: usize = 10;
/// The share that is bought and sold on one day, then and today.
const IN_A_DAY: usize = 11;
/// Days from the beginning at which the middle year begins and ends.
const MIDDLE_YEAR: std::ops::Range<i64> = 365..730;
const ACTION_DAY: i64 = 545;

/// What happened to a share on a day.
pub(super) struct Event<'a> {
    pub(super) share: &'a Instrument,
    /// As the exchange names it, or broker B.
    pub(super) name: &'a str,
    /// That of the day.
    pub(super) isin: String,
    pub(super) date: Date,
    pub(super) time: Time,
    pub(super) kind: EventKind,
    /// Above zero.
    pub(super) quantity: i64,
    /// Of a share.
    pub(super) paise: i64,
    /// Unlike that of any other event of the account.
    pub(super) number: i64,
    /// Only the second file has it.
    pub(super) is_missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Buy,
    Sell,
    /// Bought and sold on the same day.
    BuyInADay,
    SellInADay,
    /// So many shares more, of a bonus of one for one.
    Bonus,
    /// Each of so many shares became two, under a new ISIN.
    Split,
}

impl EventKind {
    pub(super) fn is_trade(self) -> bool {
        !matches!(self, Self::Bonus | Self::Split)
    }

    pub(super) fn is_purchase(self) -> bool {
        matches!(self, Self::Buy | Self::BuyInADay)
    }

    /// By how much it changes what is held.
    #[cfg(test)]
    pub(super) fn signed(self, quantity: i64) -> i64 {
        match self {
            Self::Buy | Self::BuyInADay | Self::Bonus | Self::Split => quantity,
            Self::Sell | Self::SellInADay => -quantity,
        }
    }
}

/// The end of the last half-year before `today`: the day before 1 January or 1 July.
pub(super) fn last_day(today: Date) -> Date {
    let month = if today.month() >= 7 { 7 } else { 1 };
    date(today.year(), month, 1).yesterday().unwrap_or(today)
}

/// What an account holds by the end of its history: all that is its own, whatever its state.
pub(super) fn owned(broker: Broker, held: &Held<'_>) -> i64 {
    match broker {
        Broker::A => held.quantity + held.undelivered + held.funded,
        Broker::B => held.quantity + held.undelivered,
    }
}

/// Everything that happened to the shares of `user_id` at `broker`, by date.
pub(super) fn history<'a>(
    world: &'a World,
    broker: Broker,
    user_id: &str,
    today: Date,
) -> Vec<Event<'a>> {
    let last = last_day(today);
    let begin = last.checked_sub(3.years()).unwrap_or(last);
    let mut events = Vec::new();
    let all = match broker {
        Broker::A => held_at_a(world, user_id),
        Broker::B => held(world, user_id),
    };
    let shows = |place: &usize| {
        let owned = all.get(*place).map_or(0, |its| owned(broker, its));
        owned >= BONUS_FROM && owned % 2 == 0
    };
    let bonus = BONUS.into_iter().find(shows).unwrap_or(BONUS[0]);
    for (place, held) in all.into_iter().enumerate() {
        let key = universe::key(world.settings.seed, &format!("trades {user_id} {place}"));
        let steps = steps(place, bonus, owned(broker, &held), key);
        for (number, step) in (0..).zip(steps) {
            // Both sides of a day's round trip fall on one day.
            let noise = universe::pick(key, 1_000 + step.day, 60);
            let wanted = begin.saturating_add((step.day + noise).days());
            let traded = world.day.sessions.before(wanted.min(last));
            let is_before = step.day < ACTION_DAY;
            let doubles = (place == bonus || place == SPLIT) && is_before;
            let base = held.instrument.base_paise * if doubles { 2 } else { 1 };
            let part = 60 + 20 * step.day / 365 + universe::pick(key, 3_000 + step.day, 20);
            let tick = held.instrument.tick_paise.max(1);
            let later = step.kind == EventKind::SellInADay;
            let paise = base * part / 100 + if later { base / 100 } else { 0 };
            let is_old = place == SPLIT && is_before;
            let isin = match broker {
                Broker::A => held.instrument.isin.as_str(),
                Broker::B => held.isin_at_b(),
            };
            events.push(Event {
                share: held.instrument,
                name: match broker {
                    Broker::A => &held.instrument.symbol,
                    Broker::B => held.code_at_b(),
                },
                isin: if is_old {
                    earlier_isin(isin)
                } else {
                    isin.to_owned()
                },
                date: traded,
                time: time(key, number, step.kind),
                kind: step.kind,
                quantity: step.quantity,
                paise: (paise - paise % tick).max(tick),
                number: place as i64 * 100 + number,
                is_missing: place == GAP && MIDDLE_YEAR.contains(&step.day),
            });
        }
    }
    events.retain(|event| event.quantity > 0);
    events.sort_by_key(|event| (event.date, event.time, event.number));
    events
}

/// One thing that happens, so many days after the beginning.
struct Step {
    day: i64,
    kind: EventKind,
    quantity: i64,
}

/// Of the share that was moved in: its bought part, which is in no ratio of a split or a bonus.
pub(super) fn bought_of_moved_in(owned: i64) -> i64 {
    owned * 2 / 7
}

/// What happens to the share at `place` so that `owned` are left; that at `bonus` has a bonus.
fn steps(place: usize, bonus: usize, owned: i64, key: u64) -> Vec<Step> {
    let draw = |number, below| 1 + universe::pick(key, number, below);
    let step = |day, kind, quantity| Step {
        day,
        kind,
        quantity,
    };
    let buy = |day, quantity| step(day, EventKind::Buy, quantity);
    let sell = |day, quantity| step(day, EventKind::Sell, quantity);
    let third = owned / 3;
    let half = owned / 2;
    // Some are sold within a year, others after one. The account is never still for half a year.
    let first_day = [20, 160, 300][place % 3];
    match place {
        MOVED_IN => vec![buy(600, bought_of_moved_in(owned))],
        place if place == bonus || place == SPLIT => {
            let early = draw(1, 20);
            let late = draw(2, 20).min(half);
            let kind = if place == bonus {
                EventKind::Bonus
            } else {
                EventKind::Split
            };
            vec![
                buy(first_day, half + early),
                sell(400, early),
                step(ACTION_DAY, kind, half),
                sell(760, late),
                buy(930, owned - 2 * half + late),
            ]
        }
        // Without the middle year more is sold than was bought.
        GAP => {
            let early = draw(1, 20);
            let late = draw(2, 20);
            vec![
                buy(first_day, early),
                buy(400, third + late),
                sell(780, early + late),
                buy(930, owned - third),
            ]
        }
        _ => {
            let early = draw(1, 20) + owned / 8;
            let late = draw(2, 20);
            let last = draw(4, 20);
            let mut steps = vec![
                buy(first_day, early + late + third),
                sell(400, early),
                buy(600, third),
                sell(780, late),
                buy(930, owned - 2 * third + last),
                sell(1_070, last),
            ];
            if place == IN_A_DAY {
                let quantity = draw(3, 50);
                steps.insert(2, step(500, EventKind::BuyInADay, quantity));
                steps.insert(3, step(500, EventKind::SellInADay, quantity));
            }
            steps
        }
    }
}

/// Purchases are made in the morning.
fn time(key: u64, number: i64, kind: EventKind) -> Time {
    let part = |at, below| universe::pick(key, at + number, below) as i8;
    let hour = if kind.is_purchase() { 10 } else { 14 };
    Time::new(hour, part(300, 60), part(400, 60), 0).unwrap_or_default()
}

/// An ISIN of the same company, of shares of another face value.
fn earlier_isin(isin: &str) -> String {
    let Some((company, number)) = isin.get(..9).zip(isin.get(9..11)) else {
        return isin.to_owned();
    };
    let number: u32 = number.parse().unwrap_or_default();
    let body = format!("{company}{:02}", (number + 90) % 100);
    format!("{body}{}", check_digit(&body))
}

/// The last digit of an ISIN: letters are the numbers 10 to 35, and each second digit from the
/// right is doubled.
fn check_digit(body: &str) -> u32 {
    let values = body.chars().filter_map(|letter| letter.to_digit(36));
    let digits: Vec<u32> = values
        .flat_map(|value| {
            if value > 9 {
                vec![value / 10, value % 10]
            } else {
                vec![value]
            }
        })
        .collect();
    let doubled = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 if 2 * digit > 9 => 2 * digit - 9,
            0 => 2 * digit,
            _ => *digit,
        });
    (10 - doubled.sum::<u32>() % 10) % 10
}
