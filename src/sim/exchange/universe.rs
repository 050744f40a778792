//! The instruments of the simulated exchange, from the embedded `universe.csv`: real names, numbers
//! and codes for the indices and the fifty constituents, made-up shares (`SIM…`) for the rest. More
//! made-up shares can be added. The list is built once at start, read by every connection thread.

use std::collections::HashMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::{Deserialize, Deserializer};

/// The embedded list. Prices in it are round figures for the noise to work on, not market data.
const EMBEDDED: &str = include_str!("universe.csv");

/// Dearest base price of a share that is added, in rupees.
const MADE_UP_RUPEES_MAX: i64 = 5_000;

/// One tradable share or one index: a row of the list, and what follows from it and the seed.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Instrument {
    /// `NSE` or `BSE`.
    pub(crate) exchange: String,
    pub(crate) symbol: String,
    /// `NSE:INFY`, as broker A's quote calls name it.
    #[serde(skip)]
    pub(crate) key: String,
    pub(crate) name: String,
    /// Exchange token times 256 plus the segment byte.
    pub(crate) token: i64,
    #[serde(rename = "kind", deserialize_with = "is_index")]
    pub(crate) is_index: bool,
    pub(crate) tick_paise: i64,
    pub(crate) isin: String,
    /// Broker B's own short code; empty where none is known.
    pub(crate) short_code: String,
    /// Empty where it belongs to none.
    sector: String,
    /// 1 if it takes part in the closing auction.
    pub(crate) auction: u8,
    #[serde(rename = "base_price", deserialize_with = "in_paise")]
    pub(crate) base_paise: i64,
    /// The public provider's name for it.
    pub(crate) public_symbol: Option<String>,
    /// The factors that move its price, each a noise key and a weight in percent.
    #[serde(skip)]
    pub(crate) factors: Vec<(u64, i64)>,
}

fn is_index<'de, D: Deserializer<'de>>(kind: D) -> Result<bool, D::Error> {
    String::deserialize(kind).map(|kind| kind == "index")
}

fn in_paise<'de, D: Deserializer<'de>>(rupees: D) -> Result<i64, D::Error> {
    Deserialize::deserialize(rupees).map(paise)
}

impl Instrument {
    /// The exchange's own number.
    pub(crate) fn exchange_token(&self) -> i64 {
        self.token / 256
    }

    /// Adds what follows from the row and the seed.
    fn complete(&mut self, seed: u64) {
        let market = key(seed, "market");
        let sector = key(seed, &format!("sector {}", self.sector));
        // A share listed on both exchanges is one company: its own noise hangs on the ISIN.
        let identity = if self.isin.is_empty() {
            &self.symbol
        } else {
            &self.isin
        };
        let own = key(seed, &format!("own {identity}"));
        let beta = 70 + pick(own, 0, 61);
        self.factors = match (self.is_index, self.symbol.as_str(), self.sector.is_empty()) {
            (true, "NIFTY 50" | "SENSEX", _) => vec![(market, 100)],
            // Volatility goes up when the market goes down.
            (true, "INDIA VIX", _) => vec![(market, -150), (own, 150)],
            (true, _, true) => vec![(market, 100), (own, 20)],
            (true, _, false) => vec![(market, 100), (sector, 100)],
            (false, _, true) => vec![(market, beta), (own, 80)],
            (false, _, false) => vec![(market, beta), (own, 80), (sector, 100)],
        };
        if !self.is_index {
            let suffix = if self.exchange == "BSE" { "BO" } else { "NS" };
            let usual = || format!("{}.{suffix}", stripped_of_series(&self.symbol));
            self.public_symbol = Some(self.public_symbol.take().unwrap_or_else(usual));
        }
        self.key = format!("{}:{}", self.exchange, self.symbol);
    }
}

/// All instruments with their look-ups.
#[derive(Debug)]
pub(crate) struct Universe {
    instruments: Vec<Instrument>,
    by_key: HashMap<String, usize>,
    by_token: HashMap<i64, usize>,
    by_public: HashMap<String, usize>,
}

impl Universe {
    /// The embedded list, then `more_shares` made-up shares, all moved by `seed`.
    pub(crate) fn new(seed: u64, more_shares: usize) -> Self {
        let mut reader = csv::Reader::from_reader(EMBEDDED.as_bytes());
        let rows = reader.deserialize();
        let mut instruments: Vec<Instrument> = rows
            .map(|row| row.expect("the embedded list is checked by a test"))
            .collect();
        instruments.extend(made_up(&instruments, more_shares));
        let [mut by_key, mut by_public] = [HashMap::new(), HashMap::new()];
        let mut by_token = HashMap::new();
        for (position, instrument) in instruments.iter_mut().enumerate() {
            instrument.complete(seed);
            by_key.insert(instrument.key.clone(), position);
            by_token.insert(instrument.token, position);
            by_public.extend(
                instrument
                    .public_symbol
                    .clone()
                    .map(|symbol| (symbol, position)),
            );
        }
        Self {
            instruments,
            by_key,
            by_token,
            by_public,
        }
    }

    pub(crate) fn all(&self) -> &[Instrument] {
        &self.instruments
    }

    /// The instrument with this key, such as `NSE:INFY`.
    pub(crate) fn by_key(&self, key: &str) -> Option<&Instrument> {
        self.by_key
            .get(key)
            .map(|&position| &self.instruments[position])
    }

    /// The instrument with this instrument token of broker A.
    pub(crate) fn by_token(&self, token: i64) -> Option<&Instrument> {
        self.by_token
            .get(&token)
            .map(|&position| &self.instruments[position])
    }

    /// The instrument with this symbol of the public provider.
    pub(crate) fn by_public(&self, symbol: &str) -> Option<&Instrument> {
        self.by_public
            .get(symbol)
            .map(|&position| &self.instruments[position])
    }
}

/// Made-up shares, numbered on from the embedded ones, with tokens above all others of the
/// exchange. They take the embedded sectors in turn.
fn made_up(embedded: &[Instrument], count: usize) -> Vec<Instrument> {
    let listed = embedded
        .iter()
        .filter(|row| row.exchange == "NSE" && !row.is_index);
    let numbers = listed
        .clone()
        .filter_map(|row| row.symbol.strip_prefix("SIM")?.parse().ok());
    let last_number: i64 = numbers.max().unwrap_or(0);
    let last_token = listed.clone().map(|row| row.token).max().unwrap_or(1);
    let mut sectors: Vec<&str> = listed.map(|row| row.sector.as_str()).collect();
    sectors.sort_unstable();
    sectors.dedup();
    let share = |(more, sector): (i64, &&str)| {
        let symbol = format!("SIM{}", last_number + more);
        let rupees = 50 + pick(key(0, &symbol), 0, MADE_UP_RUPEES_MAX - 50);
        Instrument {
            name: format!("SIMULATED SHARE {}", last_number + more),
            short_code: format!("SM{:04}", last_number + more),
            symbol,
            key: String::new(),
            exchange: "NSE".to_owned(),
            token: last_token + more * 256,
            is_index: false,
            tick_paise: 5,
            isin: String::new(),
            sector: (*sector).to_owned(),
            auction: 0,
            base_paise: rupees * 100,
            public_symbol: None,
            factors: Vec::new(),
        }
    };
    (1..)
        .zip(sectors.iter().cycle())
        .take(count)
        .map(share)
        .collect()
}

/// The public provider drops the trade-to-trade series from a ticker and keeps the SME ones.
fn stripped_of_series(symbol: &str) -> &str {
    ["-BE", "-BZ"]
        .iter()
        .find_map(|series| symbol.strip_suffix(series))
        .unwrap_or(symbol)
}

// ---- Noise
//
// Seeded noise in whole numbers: the same on every machine, with no state and no binary floats.
// Pure functions; any thread.

/// Spreads the bits of `x` (the finaliser of the splitmix64 generator).
fn spread(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of noise of its own for `name` under `seed`.
pub(crate) fn key(seed: u64, name: &str) -> u64 {
    // FNV-1a, then mixed with the seed.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    spread(hash ^ spread(seed))
}

/// The stream's value number `at`.
pub(crate) fn draw(key: u64, at: i64) -> u64 {
    spread(key ^ spread(at as u64))
}

/// The stream's value number `at`, in `0..below`.
pub(crate) fn pick(key: u64, at: i64, below: i64) -> i64 {
    (draw(key, at) % below.unsigned_abs().max(1)) as i64
}

/// A continuous line through random points in `-amplitude..=amplitude`, `period` steps apart.
pub(crate) fn line(key: u64, at: i64, period: i64, amplitude: i64) -> i64 {
    // Each scale draws from a stream of its own.
    let stream = key ^ (period as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let cell = at.div_euclid(period);
    let within = at.rem_euclid(period);
    let from = pick(stream, cell, 2 * amplitude + 1) - amplitude;
    if within == 0 {
        return from;
    }
    let to = pick(stream, cell + 1, 2 * amplitude + 1) - amplitude;
    from + (to - from) * within / period
}

/// Adds [`line()`] at `at` and the steps after it to `out`, at two draws per `period`.
pub(crate) fn add_line(key: u64, at: i64, period: i64, amplitude: i64, out: &mut [i64]) {
    let stream = key ^ (period as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let end = |cell| pick(stream, cell, 2 * amplitude + 1) - amplitude;
    let mut cell = at.div_euclid(period);
    let mut within = at.rem_euclid(period);
    let mut from = end(cell);
    let mut to = end(cell + 1);
    for value in out {
        *value += from + (to - from) * within / period;
        within += 1;
        if within == period {
            (cell, within, from) = (cell + 1, 0, to);
            to = end(cell + 1);
        }
    }
}

/// Rupees as whole paise; 0 if it does not fit.
pub(crate) fn paise(rupees: Decimal) -> i64 {
    (rupees * Decimal::ONE_HUNDRED).to_i64().unwrap_or(0)
}

/// Paise as rupees, exact.
pub(crate) fn rupees(paise: i64) -> Decimal {
    Decimal::new(paise, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::symbol::well_formed;

    #[test]
    fn the_embedded_list_is_whole_and_its_tokens_follow_the_rule() {
        let universe = Universe::new(1, 0);
        let nse = universe
            .all()
            .iter()
            .filter(|i| i.exchange == "NSE")
            .count();
        assert!(nse >= 420, "only {nse} on NSE");
        assert_eq!(universe.by_key.len(), universe.all().len(), "a key twice");
        assert_eq!(universe.by_token.len(), universe.all().len(), "a token twice");
        for instrument in universe.all() {
            let segment = match (instrument.is_index, instrument.exchange.as_str()) {
                (true, _) => 9,
                (false, "NSE") => 1,
                (false, _) => 4,
            };
            assert_eq!(instrument.token % 256, segment, "{}", instrument.key);
            assert!(well_formed(instrument.key.as_bytes()), "{}", instrument.key);
            assert!(instrument.base_paise > 0, "{}", instrument.key);
        }
    }

    #[test]
    fn added_shares_have_names_tokens_and_prices_of_their_own_and_change_no_other() {
        let usual = Universe::new(1, 0);
        let larger = Universe::new(1, 2_545);
        assert_eq!((usual.all().len(), larger.all().len()), (455, 3_000));
        assert_eq!(larger.by_key.len(), 3_000, "a key twice");
        assert_eq!(larger.by_token.len(), 3_000, "a token twice");
        for (before, after) in usual.all().iter().zip(larger.all()) {
            assert_eq!((&before.key, before.token), (&after.key, after.token));
        }
        for added in &larger.all()[455..] {
            assert!(well_formed(added.key.as_bytes()), "{}", added.key);
            assert!(added.name.starts_with("SIMULATED SHARE "), "{}", added.name);
            assert_eq!(added.token % 256, 1, "{}", added.key);
            assert!(u32::try_from(added.token).is_ok(), "{}", added.key);
            assert!((5_000..500_000).contains(&added.base_paise), "{}", added.key);
        }
        let mut codes: Vec<&str> = larger.all().iter().map(|i| i.short_code.as_str()).collect();
        codes.retain(|code| code.starts_with("SM"));
        let all = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all, "a short code twice");
    }

    #[test]
    fn known_numbers_and_names_are_the_documented_ones() {
        let universe = Universe::new(1, 0);
        for (key, token, public) in [
            ("NSE:INFY", 408_065, "INFY.NS"),
            ("NSE:NIFTY 50", 256_265, "^NSEI"),
            ("NSE:M&M", 519_937, "M&M.NS"),
            ("BSE:SBIN", 128_028_676, "SBIN.BO"),
            ("BSE:SENSEX", 265, "^BSESN"),
            ("NSE:NIFTY NEXT 50", 2001 * 256 + 9, "^NSMIDCP"),
        ] {
            let instrument = universe.by_key(key).unwrap();
            assert_eq!(instrument.token, token, "{key}");
            assert_eq!(universe.by_public(public).unwrap().key, key);
            assert_eq!(universe.by_token(token).unwrap().key, key);
        }
        assert_eq!(universe.by_key("NSE:ETERNAL").unwrap().short_code, "ZOMLIM");
        assert!(universe.by_key("NSE:TATAMOTORS").is_none());
    }
}

#[cfg(test)]
mod noise_tests {
    use super::*;

    #[test]
    fn a_line_stays_in_its_band_and_is_continuous() {
        let key = key(7, "test");
        let mut last = line(key, -500, 20, 900);
        for at in -499..500 {
            let next = line(key, at, 20, 900);
            assert!(next.abs() <= 900);
            assert!((next - last).abs() <= 91, "jump at {at}");
            last = next;
        }
    }

    #[test]
    fn a_run_of_a_line_is_the_line() {
        for (at, period) in [(-37, 5), (0, 1), (1_234, 75), (7, 20)] {
            let mut run = [3; 200];
            add_line(key(7, "test"), at, period, 900, &mut run);
            let one = |step| 3 + line(key(7, "test"), step, period, 900);
            assert!((at..).zip(run).all(|(step, value)| value == one(step)), "{at} {period}");
        }
    }

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let draws = |key| (0..4).map(|at| draw(key, at)).collect::<Vec<_>>();
        assert_ne!(draws(key(1, "a")), draws(key(1, "b")));
        assert_ne!(draws(key(1, "a")), draws(key(2, "a")));
        assert_eq!(draws(key(1, "a")), draws(key(1, "a")));
    }
}
