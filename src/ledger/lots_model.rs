//! The replay of random histories, and what an independent ledger of single shares says of them.

use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use proptest::prelude::*;

use super::tests::{ledger_of, uncovered};
use super::*;
use crate::ledger::testing::{date, isin};

/// What a random history is made of. Days count from 1 June 2024.
#[derive(Clone, Debug)]
enum Step {
    Trade {
        account: usize,
        isin: usize,
        bse: bool,
        buys: bool,
        quantity: u32,
        price: u32,
        charge: u32,
    },
    Split {
        isin: usize,
        into: u32,
    },
    Bonus {
        isin: usize,
        numerator: u32,
        denominator: u32,
        later: bool,
    },
    Demerger {
        isin: usize,
        percent: u32,
    },
    Merger {
        isin: usize,
        each: u32,
    },
    Opening {
        account: usize,
        isin: usize,
        age: u32,
        quantity: u32,
        cost: u32,
    },
    Rights {
        account: usize,
        isin: usize,
        quantity: u32,
        price: u32,
    },
    Transfer {
        account: usize,
        isin: usize,
        quantity: u32,
    },
    Buyback {
        account: usize,
        isin: usize,
        quantity: u32,
    },
}

const ACCOUNTS: [&str; 2] = ["a", "b"];
const ISINS: [&str; 3] = ["INE0EXA01011", "INE0EXB01019", "INE0EXC01017"];

fn step() -> impl Strategy<Value = Step> {
    let place = (0..2_usize, 0..2_usize);
    prop_oneof![
        30 => (place.clone(), any::<bool>(), 0..5_u32, 1..20_u32, 1..9999_u32, 0..50_u32).prop_map(
            |((account, isin), bse, side, quantity, price, charge)| {
                let buys = side < 3;
                Step::Trade { account, isin, bse, buys, quantity, price, charge }
            }
        ),
        1 => (0..2_usize, 2..6_u32).prop_map(|(isin, into)| Step::Split { isin, into }),
        1 => (0..2_usize, 1..4_u32, 1..4_u32, any::<bool>()).prop_map(
            |(isin, numerator, denominator, later)| {
                Step::Bonus { isin, numerator, denominator, later }
            }
        ),
        1 => (0..2_usize, 1..99_u32).prop_map(|(isin, percent)| Step::Demerger { isin, percent }),
        1 => (0..2_usize, 1..4_u32).prop_map(|(isin, each)| Step::Merger { isin, each }),
        3 => (place.clone(), 1..3000_u32, 1..20_u32, 0..9999_u32).prop_map(
            |((account, isin), age, quantity, cost)| {
                Step::Opening { account, isin, age, quantity, cost }
            }
        ),
        1 => (place.clone(), 1..9_u32, 1..99_u32).prop_map(
            |((account, isin), quantity, price)| Step::Rights { account, isin, quantity, price }
        ),
        2 => (place.clone(), 1..30_u32).prop_map(|((account, isin), quantity)| {
            Step::Transfer { account, isin, quantity }
        }),
        1 => (place, 1..9_u32).prop_map(|((account, isin), quantity)| {
            Step::Buyback { account, isin, quantity }
        }),
    ]
}

fn history() -> impl Strategy<Value = Vec<(u32, Step)>> {
    prop::collection::vec((0..30_u32, step()), 1..60).prop_map(|mut steps| {
        steps.sort_by_key(|(day, _)| *day);
        steps
    })
}

fn on(day: u32) -> Date {
    date("2024-06-01").saturating_add(jiff::Span::new().days(day))
}

/// The history as trades and corrections.
fn written(steps: &[(u32, Step)]) -> (Vec<String>, Vec<String>) {
    let mut trades = Vec::new();
    let mut said = Vec::new();
    for (at, (day, step)) in steps.iter().enumerate() {
        match step {
            Step::Trade {
                account,
                isin,
                bse,
                buys,
                quantity,
                price,
                charge,
            } => {
                let date = on(*day);
                let side = if *buys { "buy" } else { "sell" };
                let exchange = if *bse { "BSE" } else { "NSE" };
                let time = format!("{:02}:{:02}:00", 9 + at / 60, at % 60);
                let name = ACCOUNTS[*account];
                let isin = ISINS[*isin];
                trades.push(format!(
                    "{name} {date} {side} {quantity} X {price} {isin} #{at} {exchange} {time} \
                     brokerage={charge}"
                ));
            }
            Step::Opening { .. }
            | Step::Rights { .. }
            | Step::Transfer { .. }
            | Step::Buyback { .. } => said.push(written_arrival(on(*day), step)),
            _ => said.push(written_action(*day, step)),
        }
    }
    (trades, said)
}

fn written_arrival(date: Date, step: &Step) -> String {
    let dated = format!(r#""date":"{date}","quantity""#);
    let of = |account: &usize, isin: &usize| {
        format!(r#""account":"{}","isin":"{}""#, ACCOUNTS[*account], ISINS[*isin])
    };
    match step {
        Step::Opening {
            account,
            isin,
            age,
            quantity,
            cost,
        } => {
            let bought = date.saturating_sub(jiff::Span::new().days(*age));
            let place = of(account, isin);
            format!(
                r#"{{"kind":"opening_lot",{place},"date":"{bought}","entered":"{date}",
                "quantity":{quantity},"cost":{cost}}}"#
            )
        }
        Step::Rights {
            account,
            isin,
            quantity,
            price,
        } => format!(
            r#"{{"kind":"rights",{},{dated}:{quantity},"price":{price}}}"#,
            of(account, isin)
        ),
        Step::Transfer {
            account,
            isin,
            quantity,
        } => format!(
            r#"{{"kind":"transfer",{},"to":"{}",{dated}:{quantity}}}"#,
            of(account, isin),
            ACCOUNTS[1 - account]
        ),
        Step::Buyback {
            account,
            isin,
            quantity,
        } => {
            format!(r#"{{"kind":"buyback",{},{dated}:{quantity},"price":77}}"#, of(account, isin))
        }
        other => panic!("{other:?}"),
    }
}

fn written_action(day: u32, step: &Step) -> String {
    let date = on(day);
    let new = |isin: &usize, kind: &str| {
        let names = format!(r#""isin":"{}","new_isin":"{}""#, ISINS[*isin], ISINS[2]);
        format!(r#"{{"kind":"{kind}",{names},"ex_date":"{date}""#)
    };
    match step {
        Step::Split { isin, into } => format!(
            r#"{{"kind":"split","isin":"{}","ex_date":"{date}","numerator":{into},
            "denominator":1}}"#,
            ISINS[*isin]
        ),
        Step::Bonus {
            isin,
            numerator,
            denominator,
            later,
        } => format!(
            r#"{{"kind":"bonus","isin":"{}","ex_date":"{date}","numerator":{numerator},
            "denominator":{denominator},"allotment_date":"{}"}}"#,
            ISINS[*isin],
            on(day + u32::from(*later) * 3)
        ),
        Step::Demerger { isin, percent } => format!(
            r#"{},"numerator":1,"denominator":1,"cost_percent":{percent}}}"#,
            new(isin, "demerger")
        ),
        Step::Merger { isin, each } => {
            format!(r#"{},"numerator":{each},"denominator":1}}"#, new(isin, "merger"))
        }
        other => panic!("{other:?}"),
    }
}

type Fraction = BigRational;

fn fraction(value: u32) -> Fraction {
    Fraction::from_integer(value.into())
}

/// One share.
#[derive(Clone)]
struct Unit {
    acquired: Date,
    cost: Fraction,
}

/// Day of the sale, account, ISIN, what it was and date of the purchase.
type SoldKey<D> = (D, usize, usize, &'static str, Date);

/// An independent ledger of single shares: each has its own cost, and the first is sold first.
#[derive(Default)]
struct Units {
    held: BTreeMap<(usize, usize), Vec<Unit>>,
    awaited: Vec<(u32, usize, usize, u32)>,
    /// Number of shares and their cost.
    sold: BTreeMap<SoldKey<u32>, (u32, Fraction)>,
    missing: u32,
}

impl Units {
    fn of(steps: &[(u32, Step)]) -> Self {
        let mut units = Self::default();
        for day in 0..40 {
            let today: Vec<&Step> = steps
                .iter()
                .filter(|(of, _)| *of == day)
                .map(|(_, step)| step)
                .collect();
            units.actions(day, &today);
            units.arrivals(day, &today);
            for (account, isin) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                units.trades(day, account, isin, &today);
            }
            for (account, isin) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for step in &today {
                    if let Step::Buyback {
                        account: of,
                        isin: at,
                        quantity,
                    } = step
                        && (*of, *at) == (account, isin)
                    {
                        units.sell(day, (account, isin), *quantity, "buyback");
                    }
                }
            }
        }
        units
    }

    fn all(&mut self, account: usize, isin: usize) -> &mut Vec<Unit> {
        self.held.entry((account, isin)).or_default()
    }

    fn actions(&mut self, day: u32, today: &[&Step]) {
        for account in 0..2 {
            for isin in 0..2 {
                self.splits(account, isin, today);
            }
        }
        // A bonus does not count what another action of the day gives, nor what one takes away.
        let before =
            [0, 1].map(|account| [0, 1, 2].map(|isin| self.all(account, isin).len() as u32));
        self.mergers_and_demergers(today);
        self.bonuses(day, today, before);
    }

    fn mergers_and_demergers(&mut self, today: &[&Step]) {
        let mut carried: Vec<(u32, usize, usize, u32, bool)> = Vec::new();
        for step in today {
            match step {
                Step::Merger { isin, each } => carried.push((0, *isin, 0, *each, true)),
                Step::Demerger { isin, percent } => carried.push((1, *isin, 1, *percent, false)),
                _ => {}
            }
        }
        carried.sort_by_key(|(kind, isin, _, value, _)| (*kind, *isin, *value));
        for (_, isin, _, value, merges) in carried {
            for account in 0..2 {
                let old = std::mem::take(self.all(account, isin));
                for unit in old {
                    if merges {
                        let cost = unit.cost / fraction(value);
                        let new = Unit {
                            acquired: unit.acquired,
                            cost,
                        };
                        self.all(account, 2).extend(vec![new; value as usize]);
                    } else {
                        let moved = &unit.cost * fraction(value) / fraction(100);
                        let rest = Unit {
                            acquired: unit.acquired,
                            cost: &unit.cost - &moved,
                        };
                        self.all(account, isin).push(rest);
                        let new = Unit {
                            acquired: unit.acquired,
                            cost: moved,
                        };
                        self.all(account, 2).push(new);
                    }
                }
            }
        }
    }

    /// `before` is what each account held of each ISIN before the day's other actions.
    fn bonuses(&mut self, day: u32, today: &[&Step], before: [[u32; 3]; 2]) {
        // Of one day the bonus with the smaller ratio comes first.
        let mut bonuses: Vec<(usize, u32, u32, u32)> = Vec::new();
        for step in today {
            if let Step::Bonus {
                isin,
                numerator,
                denominator,
                later,
            } = step
            {
                bonuses.push((*isin, *numerator, *denominator, day + u32::from(*later) * 3));
            }
        }
        bonuses.sort_unstable();
        let left = [0, 1].map(|account| [0, 1, 2].map(|isin| self.all(account, isin).len() as u32));
        for (isin, numerator, denominator, allotted) in bonuses {
            for account in 0..2 {
                let held = before[account][isin].min(left[account][isin]);
                let new = (account, isin, held * numerator / denominator);
                if allotted == day {
                    self.give(day, new);
                } else {
                    self.awaited.push((allotted, new.0, new.1, new.2));
                }
            }
        }
        for (allotted, account, isin, count) in self.awaited.clone() {
            if allotted == day {
                self.give(day, (account, isin, count));
            }
        }
    }

    fn splits(&mut self, account: usize, isin: usize, today: &[&Step]) {
        for step in today {
            let Step::Split { isin: of, into } = step else {
                continue;
            };
            if *of == isin {
                let old = std::mem::take(self.all(account, isin));
                for unit in old {
                    let piece = Unit {
                        acquired: unit.acquired,
                        cost: unit.cost / fraction(*into),
                    };
                    self.all(account, isin).extend(vec![piece; *into as usize]);
                }
            }
        }
    }

    fn give(&mut self, day: u32, (account, isin, count): (usize, usize, u32)) {
        let free = Unit {
            acquired: on(day),
            cost: Fraction::zero(),
        };
        self.all(account, isin).extend(vec![free; count as usize]);
    }

    fn arrivals(&mut self, day: u32, today: &[&Step]) {
        let mut rights: Vec<(u32, u32, usize, usize)> = Vec::new();
        let mut opening: Vec<(Date, Fraction, u32, usize, usize)> = Vec::new();
        let mut transfers: Vec<(usize, u32, usize)> = Vec::new();
        for step in today {
            match step {
                Step::Rights {
                    account,
                    isin,
                    quantity,
                    price,
                } => {
                    rights.push((*price, *quantity, *account, *isin));
                }
                Step::Opening {
                    account,
                    isin,
                    age,
                    quantity,
                    cost,
                } => {
                    let bought = on(day).saturating_sub(jiff::Span::new().days(*age));
                    let each = fraction(*cost) / fraction(*quantity);
                    opening.push((bought, each, *quantity, *account, *isin));
                }
                Step::Transfer {
                    account,
                    isin,
                    quantity,
                } => {
                    transfers.push((*account, *quantity, *isin));
                }
                _ => {}
            }
        }
        rights.sort_unstable();
        for (price, quantity, account, isin) in rights {
            let unit = Unit {
                acquired: on(day),
                cost: fraction(price),
            };
            self.all(account, isin)
                .extend(vec![unit; quantity as usize]);
        }
        opening.sort();
        for (acquired, cost, quantity, account, isin) in opening {
            let unit = Unit { acquired, cost };
            self.all(account, isin)
                .extend(vec![unit; quantity as usize]);
        }
        transfers.sort_unstable();
        // What moves out of an account leaves after what has moved into it.
        let mut moving: BTreeMap<(usize, usize), Vec<Unit>> = BTreeMap::new();
        while !transfers.is_empty() {
            let next = transfers.iter().position(|(account, quantity, isin)| {
                let coming = moving.get(&(*account, *isin)).map_or(0, Vec::len);
                self.all(*account, *isin).len() + coming >= *quantity as usize
            });
            let (account, quantity, isin) = transfers.remove(next.unwrap_or_default());
            self.settle(&mut moving, account, isin);
            let count = self.all(account, isin).len().min(quantity as usize);
            self.missing += quantity - count as u32;
            let moved: Vec<Unit> = self.all(account, isin).drain(..count).collect();
            moving.entry((1 - account, isin)).or_default().extend(moved);
        }
        for (account, isin) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            self.settle(&mut moving, account, isin);
        }
    }

    fn settle(
        &mut self,
        moving: &mut BTreeMap<(usize, usize), Vec<Unit>>,
        account: usize,
        isin: usize,
    ) {
        let mut moved = moving.remove(&(account, isin)).unwrap_or_default();
        moved
            .sort_by(|left, right| (left.acquired, &left.cost).cmp(&(right.acquired, &right.cost)));
        self.all(account, isin).extend(moved);
    }

    fn trades(&mut self, day: u32, account: usize, isin: usize, today: &[&Step]) {
        let mut bought: Vec<Unit> = Vec::new();
        let mut to_sell = 0;
        // All purchases of the day in the order of time, less what its exchange sold as well.
        let mut sold_on = [0_u32; 2];
        for step in today {
            if let Step::Trade {
                account: of,
                isin: at,
                bse,
                buys: false,
                quantity,
                ..
            } = step
                && (*of, *at) == (account, isin)
            {
                sold_on[usize::from(*bse)] += quantity;
            }
        }
        for step in today {
            let Step::Trade {
                account: of,
                isin: at,
                bse,
                buys: true,
                quantity,
                price,
                charge,
            } = step
            else {
                continue;
            };
            if (*of, *at) != (account, isin) {
                continue;
            }
            for _ in 0..*quantity {
                let cost = fraction(*price) + fraction(*charge) / fraction(*quantity);
                let unit = Unit {
                    acquired: on(day),
                    cost,
                };
                if sold_on[usize::from(*bse)] > 0 {
                    sold_on[usize::from(*bse)] -= 1;
                    self.record(day, (account, isin), "intraday", &unit);
                } else {
                    bought.push(unit);
                }
            }
        }
        to_sell += sold_on[0] + sold_on[1];
        self.all(account, isin).extend(bought);
        self.sell(day, (account, isin), to_sell, "delivery");
    }

    fn sell(&mut self, day: u32, place: (usize, usize), count: u32, what: &'static str) {
        for _ in 0..count {
            let held = self.all(place.0, place.1);
            if held.is_empty() {
                self.missing += 1;
            } else {
                let unit = held.remove(0);
                self.record(day, place, what, &unit);
            }
        }
    }

    fn record(&mut self, day: u32, place: (usize, usize), what: &'static str, unit: &Unit) {
        let key = (day, place.0, place.1, what, unit.acquired);
        let (count, cost) = self.sold.entry(key).or_insert((0, Fraction::zero()));
        *count += 1;
        *cost += &unit.cost;
    }
}

fn paise(cost: &Fraction) -> Decimal {
    let doubled = cost * Fraction::from_integer(200.into()) + Fraction::from_integer(1.into());
    let paise = (doubled / Fraction::from_integer(2.into()))
        .floor()
        .to_integer();
    Decimal::from_i128_with_scale(paise.to_i128().unwrap(), 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn single_shares_agree_to_the_paisa(steps in history()) {
        let (trades, said) = written(&steps);
        let trades: Vec<&str> = trades.iter().map(String::as_str).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let ledger = ledger_of(&trades, &said);
        let units = Units::of(&steps);

let mut sold: BTreeMap<SoldKey<Date>, (Decimal, Amount)> = BTreeMap::new();
        for sale in &ledger.sales {
            let position = &ledger.positions[sale.position as usize];
            let account = ACCOUNTS.iter().position(|of| *of == position.account.as_str());
            let at = ISINS.iter().position(|of| Some(isin(of)) == position.isin());
            for part in &sale.parts {
                let acquired = part.lot.acquired_on;
                let key =
                    (sale.sold, account.unwrap(), at.unwrap(), part.kind.as_str(), acquired);
                let sum = sold.entry(key).or_default();
                sum.0 += part.lot.quantity;
                sum.1 = sum.1.plus(&part.lot.cost);
            }
        }
        let ours: Vec<_> = sold
            .into_iter()
            .map(|(key, (count, cost))| (key, count.normalize(), cost.rounded().unwrap()))
            .collect();
        let theirs: Vec<_> = units
            .sold
            .iter()
            .map(|((day, account, isin, what, acquired), (count, cost))| {
                let key = (on(*day), *account, *isin, *what, *acquired);
                (key, Decimal::from(*count), paise(cost))
            })
            .collect();
        prop_assert_eq!(ours, theirs);
        prop_assert_eq!(uncovered(&ledger), Decimal::from(units.missing));
        for (account, name) in ACCOUNTS.iter().enumerate() {
            for (at, text) in ISINS.iter().enumerate() {
                let held = units.held.get(&(account, at)).map(Vec::as_slice).unwrap_or_default();
                let name = AccountName::parse(name).unwrap();
                let place = ledger.position(&name, &Security::Known(isin(text)));
                let open = place.map(|place| &ledger.positions[place]);
                let quantity = open.map(Position::quantity).unwrap_or_default();
                prop_assert_eq!(quantity, Decimal::from(held.len()));
                let cost = held.iter().fold(Fraction::zero(), |sum, unit| sum + &unit.cost);
                let lots = open.into_iter().flat_map(|position| &position.lots);
                let ours = lots.fold(Amount::ZERO, |sum, lot| sum.plus(&lot.cost));
                prop_assert_eq!(ours.rounded().unwrap(), paise(&cost));
            }
        }
    }

    /// What came in is what is held, what was sold, what moved out and what fractions took.
    #[test]
    fn cost_is_conserved(steps in history()) {
        let (trades, said) = written(&steps);
        let trades: Vec<&str> = trades.iter().map(String::as_str).collect();
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let ledger = ledger_of(&trades, &said);
        let sum = |amounts: Vec<&Amount>| {
            amounts.into_iter().fold(Amount::ZERO, |sum, amount| sum.plus(amount))
        };
        let paid = sum(ledger.purchases.iter().map(|purchase| &purchase.paid).collect());
        let parts = ledger.sales.iter().flat_map(|sale| &sale.parts);
        let delivered = parts.filter(|part| part.kind != PartKind::Intraday);
        let sold = sum(delivered.map(|part| &part.lot.cost).collect());
        let open = ledger.positions.iter().flat_map(|position| &position.lots);
        let held = sum(open.map(|lot| &lot.cost).collect());
        let fractions =
            sum(ledger.positions.iter().map(|position| &position.cost_of_fractions).collect());
        prop_assert_eq!(paid, sold.plus(&held).plus(&fractions));
    }
}
