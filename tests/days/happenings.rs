//! What happens to shares and lists on a day, beside what fails: a first day of trading, a halt, a
//! list that is cut short, positions without a price, previous closes that roll over in the
//! evening, and a base price that the exchange adjusts overnight.

use std::rc::Rc;

use super::users::SHARES;
use super::world::World;

/// Prices of a first day of trading, as tenths of the price that the exchange states as the close
/// before it. All are beyond what a day can bring.
const LISTED_AT_TENTHS: [u32; 5] = [3, 4, 16, 22, 45];
/// Shares after a corporate action, and before it: bonuses from 1:10 to 1:1, splits, and a
/// consolidation.
const RATIOS: [(u32, u32); 8] = [
    (11, 10),
    (6, 5),
    (5, 4),
    (4, 3),
    (3, 2),
    (2, 1),
    (10, 1),
    (1, 10),
];
/// A row of broker A's instruments whose quotation mark is never closed.
const OPEN_QUOTE: &str = r#"138371,540,QUOTED,\"INDIAN METALS,0.0,,0.0,0.05,1,EQ,NSE,NSE"#;

pub struct Happenings {
    world: Rc<World>,
    rng: fastrand::Rng,
    /// The share that is traded for the first time.
    pub listed: Option<&'static str>,
    /// The share whose trading is halted.
    halted: Option<&'static str>,
}

impl Happenings {
    pub fn new(world: &Rc<World>, seed: u64) -> Self {
        let rng = fastrand::Rng::with_seed(seed);
        Self {
            world: Rc::clone(world),
            rng,
            listed: None,
            halted: None,
        }
    }

    fn order(&self, route: &str, order: &str) {
        self.world.note(&format!("{route} {order}"));
        self.world.control("POST", route, order);
    }

    /// Of the shares that are listed once. The other listing of RELIANCE would stay.
    fn share(&mut self) -> &'static str {
        let once = [SHARES[0], SHARES[1], SHARES[3], SHARES[4]];
        once[self.rng.usize(..once.len())]
    }

    /// Before the first process of a date.
    pub fn morning(&mut self) {
        if self.rng.u8(..4) == 0 {
            let symbol = self.share();
            let before = self.rng.u32(100..2_000);
            let tenths = LISTED_AT_TENTHS[self.rng.usize(..LISTED_AT_TENTHS.len())];
            let price = before * tenths / 10;
            let order =
                format!(r#"{{"symbol":"{symbol}","price":{price},"previous_close":{before}}}"#);
            self.order("trading", &order);
            self.listed = Some(symbol);
        }
        match self.rng.u8(..6) {
            0 => {
                let rows_max = self.rng.u32(..200);
                self.order("broker_a/instruments", &format!(r#"{{"rows_max":{rows_max}}}"#));
            }
            1 => {
                let at = self.rng.u32(..400);
                let insert = format!(r#"{{"insert":[[{at},"{OPEN_QUOTE}"]]}}"#);
                self.order("broker_a/instruments", &insert);
            }
            _ => {}
        }
        if self.rng.u8(..4) == 0 {
            self.order("rollover", r#"{"after_close":true}"#);
        }
    }

    /// Now and then in continuous trading, a share is halted or resumes.
    pub fn step(&mut self) -> Option<&'static str> {
        match self.halted {
            Some(_) if self.rng.u8(..20) == 0 => self.resume(),
            None if self.rng.u8(..60) == 0 => {
                let symbol = self.share();
                self.order("trading", &format!(r#"{{"symbol":"{symbol}","halted":true}}"#));
                self.halted = Some(symbol);
            }
            _ => {}
        }
        self.halted
    }

    /// Ends a halt.
    pub fn resume(&mut self) {
        if let Some(symbol) = self.halted.take() {
            self.order("trading", &format!(r#"{{"symbol":"{symbol}","halted":false}}"#));
        }
    }

    /// Positions of a person at broker A, of which one has no price. Its profit is what the broker
    /// made of a price of 0.
    pub fn positions(rng: &mut fastrand::Rng, person: &str) -> String {
        let quantity = rng.i32(1..500) * if rng.bool() { 1 } else { -1 };
        let row = |ticker: &str, quantity: i32, average: i32, last: i32| {
            let profit = (last - average) * quantity;
            format!(
                r#"{{"tradingsymbol":"{ticker}","exchange":"NFO","instrument_token":1,
                "product":"NRML","quantity":{quantity},"overnight_quantity":{quantity},
                "multiplier":1,"average_price":{average},"close_price":0,"last_price":{last},
                "value":0,"pnl":{profit},"m2m":{profit},"unrealised":{profit},"realised":0,
                "buy_quantity":0,"buy_price":0,"buy_value":0,"buy_m2m":0,
                "sell_quantity":0,"sell_price":0,"sell_value":0,"sell_m2m":0,
                "day_buy_quantity":0,"day_buy_price":0,"day_buy_value":0,
                "day_sell_quantity":0,"day_sell_price":0,"day_sell_value":0}}"#
            )
        };
        let unknown = row("NIFTY26DEC24000PE", quantity, 55, 0);
        let known = row("INFY26DECFUT", 400, 1_411, 1_412);
        format!(r#"{{"user_id":"{person}","net":[{unknown},{known}],"day":[]}}"#)
    }

    /// Before the next session: the base price of a share is not its close any more. Also the share
    /// that was listed, whose own marks are not told apart.
    pub fn night(&mut self) -> (&'static str, Option<&'static str>) {
        let symbol = loop {
            let symbol = self.share();
            if self.listed != Some(symbol) {
                break symbol;
            }
        };
        let (new, old) = RATIOS[self.rng.usize(..RATIOS.len())];
        self.order("split", &format!(r#"{{"symbol":"{symbol}","new":{new},"old":{old}}}"#));
        (symbol, self.listed)
    }
}
