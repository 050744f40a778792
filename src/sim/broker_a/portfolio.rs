//! Broker A's holdings and positions of a seeded account. Connection threads run this.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::sim::accounts::RowA;
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::{Instrument, rupees};
use crate::sim::server::message::{number, price};
use crate::sim::world::{Call, World};

/// Shares held by a simulated account.
const HOLDINGS: usize = 12;
/// Shares traded today.
const POSITIONS: usize = 3;
/// Every account at either broker holds it, so that one person's two accounts have a share in
/// common.
const COMMON: &str = "NSE:RELIANCE";

/// One share of an account. Both brokers' accounts are made of these.
pub(crate) struct Held<'a> {
    pub(crate) instrument: &'a Instrument,
    pub(crate) quantity: i64,
    /// Of the shares that were delivered, those sold today, at broker A.
    pub(crate) sold: i64,
    /// Bought yesterday and not delivered.
    pub(crate) undelivered: i64,
    /// 0 where the broker does not know it: a gift, shares moved in from elsewhere.
    pub(crate) average_paise: i64,
    /// Pledged as margin. Broker A states it next to the quantity; broker B's depository list omits
    /// it.
    pub(crate) pledged: i64,
    /// Margin-funded, at broker A.
    pub(crate) funded: i64,
    /// Broker A says that its average is unreliable.
    pub(crate) discrepancy: bool,
    /// Broker B's code for it is in no list.
    pub(crate) uncharted: bool,
    /// The broker has no price for it and sends 0.
    pub(crate) unpriced: bool,
}

/// Code and ISIN of a share that neither the security master nor any other list contains.
const UNCHARTED: (&str, &str) = ("SIMUNK", "INE0SIM01019");

impl<'a> Held<'a> {
    /// Broker B's code for it.
    pub(crate) fn code_at_b(&self) -> &'a str {
        if self.uncharted {
            UNCHARTED.0
        } else {
            &self.instrument.short_code
        }
    }

    /// Its ISIN at broker B.
    pub(crate) fn isin_at_b(&self) -> &'a str {
        if self.uncharted {
            UNCHARTED.1
        } else {
            &self.instrument.isin
        }
    }
}

/// The shares of `user_id` at broker A: those set by a control route, or else the seeded ones.
pub(crate) fn held_at_a<'a>(world: &'a World, user_id: &str) -> Vec<Held<'a>> {
    let Some(rows) = world.accounts.lock().of_broker_a(user_id) else {
        return held(world, user_id);
    };
    let known = |row: &RowA| Some((world.universe.by_key(&row.symbol)?, row.clone()));
    let held = |(instrument, row): (&'a Instrument, RowA)| Held {
        instrument,
        quantity: row.quantity,
        sold: row.sold,
        undelivered: row.undelivered,
        average_paise: row.average_paise,
        pledged: row.pledged,
        funded: row.funded,
        discrepancy: false,
        uncharted: false,
        unpriced: row.unpriced,
    };
    rows.iter().filter_map(known).map(held).collect()
}

/// The seeded shares of `user_id`, which depend on user and seed alone.
pub(crate) fn held<'a>(world: &'a World, user_id: &str) -> Vec<Held<'a>> {
    let key = universe::key(world.settings.seed, &format!("account {user_id}"));
    let shares = world.universe.all().iter();
    let mut shares: Vec<&Instrument> = shares
        .filter(|i| i.exchange == "NSE" && !i.isin.is_empty())
        .collect();
    shares.retain(|share| !share.short_code.is_empty());
    shares.sort_by_key(|i| (i.key != COMMON, universe::draw(key, i.token)));
    let held = shares
        .into_iter()
        .take(HOLDINGS)
        .enumerate()
        .map(|(position, instrument)| {
            let draw = |number: i64, below| universe::pick(key, instrument.token + number, below);
            // The second row was bought yesterday, the third is mostly settled.
            let (quantity, undelivered) = match position {
                1 => (0, 1 + draw(1, 40)),
                2 => (5 + draw(1, 100), 1 + draw(2, 20)),
                _ => (1 + draw(1, 400), 0),
            };
            let average_paise = instrument.base_paise * (60 + draw(3, 61)) / 100 + draw(4, 100);
            // The rows contain each special case that a reader has to handle.
            Held {
                instrument,
                quantity,
                sold: 0,
                undelivered,
                average_paise: if position == 6 { 0 } else { average_paise },
                pledged: if position == 3 { quantity } else { 0 },
                funded: if position == 4 { 10 + draw(5, 90) } else { 0 },
                discrepancy: position == 5,
                uncharted: position == 7,
                unpriced: false,
            }
        });
    held.collect()
}

/// `/portfolio/holdings`.
pub(crate) fn holdings(call: &Call<'_>, user_id: &str) -> Value {
    let row = |held: Held<'_>| {
        let share = held.instrument;
        let quantity = held.quantity;
        let tick = call.tick(held.instrument);
        let [last_paise, close_paise] =
            [tick.last, tick.previous_close].map(|paise| if held.unpriced { 0 } else { paise });
        let last = rupees(last_paise);
        let close = rupees(close_paise);
        let average = rupees(held.average_paise);
        let change = last - close;
        let change_part = change.checked_div(close).unwrap_or_default();
        json!({
            "tradingsymbol": share.symbol, "exchange": share.exchange,
            "instrument_token": share.token, "isin": share.isin, "product": "CNC", "price": 0,
            "quantity": quantity, "used_quantity": held.sold, "t1_quantity": held.undelivered,
            "realised_quantity": quantity, "authorised_quantity": 0,
            "authorised_date": format!("{} 00:00:00", tick.date), "authorisation": {},
            "opening_quantity": quantity + held.sold, "short_quantity": 0,
            "collateral_quantity": held.pledged,
            "collateral_type": if held.pledged > 0 { "margin" } else { "" },
            "discrepancy": held.discrepancy, "average_price": price(held.average_paise),
            "last_price": price(last_paise), "close_price": price(close_paise),
            "pnl": number((last - average) * Decimal::from(quantity)),
            "day_change": number(change),
            "day_change_percentage": number(change_part * Decimal::ONE_HUNDRED),
            "mtf": {
                "quantity": held.funded, "used_quantity": 0,
                "average_price": price(if held.funded > 0 { held.average_paise } else { 0 }),
                "value": number(average * Decimal::from(held.funded)), "initial_margin": 0,
            },
        })
    };
    held_at_a(call.world, user_id)
        .into_iter()
        .map(row)
        .collect()
}

/// `/portfolio/positions`: those set by a control route, or else bought today, one of them sold
/// again.
pub(crate) fn positions(call: &Call<'_>, user_id: &str) -> Value {
    if let Some(set) = call.world.accounts.lock().positions_a(user_id) {
        return json!({"net": set.net, "day": set.day});
    }
    let held = held(call.world, user_id);
    let rows = held
        .iter()
        .rev()
        .take(POSITIONS)
        .enumerate()
        .map(|(number, held)| {
            let tick = call.tick(held.instrument);
            let bought = 1 + held.quantity / 4;
            let sold = if number == 0 { bought } else { 0 };
            position(held.instrument, &tick, bought, sold)
        });
    let rows: Vec<Value> = if call.tick(held[0].instrument).open > 0 {
        rows.collect()
    } else {
        vec![]
    };
    json!({"net": rows, "day": rows})
}

fn position(share: &Instrument, tick: &Tick, bought: i64, sold: i64) -> Value {
    let quantity = bought - sold;
    let buy_price = rupees(tick.open);
    let sell_price = rupees(if sold > 0 { tick.high } else { 0 });
    let buy_value = buy_price * Decimal::from(bought);
    let sell_value = sell_price * Decimal::from(sold);
    let value = sell_value - buy_value;
    let pnl = value + rupees(tick.last) * Decimal::from(quantity);
    let average = if quantity == 0 {
        Decimal::ZERO
    } else {
        buy_price
    };
    json!({
        "tradingsymbol": share.symbol, "exchange": share.exchange,
        "instrument_token": share.token, "product": if sold > 0 { "MIS" } else { "CNC" },
        "quantity": quantity, "overnight_quantity": 0, "multiplier": 1,
        "average_price": number(average), "close_price": 0, "last_price": price(tick.last),
        "value": number(value), "pnl": number(pnl), "m2m": number(pnl),
        "unrealised": number(pnl), "realised": 0,
        "buy_quantity": bought, "buy_price": number(buy_price),
        "buy_value": number(buy_value), "buy_m2m": number(buy_value),
        "sell_quantity": sold, "sell_price": number(sell_price),
        "sell_value": number(sell_value), "sell_m2m": number(sell_value),
        "day_buy_quantity": bought, "day_buy_price": number(buy_price),
        "day_buy_value": number(buy_value),
        "day_sell_quantity": sold, "day_sell_price": number(sell_price),
        "day_sell_value": number(sell_value),
    })
}
