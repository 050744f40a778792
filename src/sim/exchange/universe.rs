//! The instruments of the simulated exchange, from the embedded `universe.csv`: real names, numbers
//! and codes for the indices and the fifty constituents, made-up shares (`SIM…`) for the rest.
//! Built once at start, read by every connection thread.

use std::collections::HashMap;

use serde::Deserialize;

use super::noise;

/// The embedded list. Prices in it are round figures for the noise to work on, not market data.
const EMBEDDED: &str = include_str!("universe.csv");

/// One tradable share or one index.
#[derive(Debug, Clone)]
pub(crate) struct Instrument {
    /// `NSE` or `BSE`.
    pub(crate) exchange: String,
    pub(crate) symbol: String,
    /// `NSE:INFY`, as broker A's quote calls name it.
    pub(crate) key: String,
    pub(crate) name: String,
    /// Exchange token times 256 plus the segment byte.
    pub(crate) token: i64,
    pub(crate) is_index: bool,
    pub(crate) tick_paise: i64,
    pub(crate) isin: String,
    /// Broker B's own short code; empty where none is known.
    pub(crate) short_code: String,
    /// Takes part in the closing auction.
    pub(crate) auction: bool,
    pub(crate) base_paise: i64,
    /// The public provider's name for it.
    pub(crate) public_symbol: Option<String>,
    /// What moves it: a noise key and a weight in percent each.
    pub(crate) factors: Vec<(u64, i64)>,
}

impl Instrument {
    /// The exchange's own number.
    pub(crate) fn exchange_token(&self) -> i64 {
        self.token / 256
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

#[derive(Deserialize)]
struct Row {
    exchange: String,
    symbol: String,
    name: String,
    token: i64,
    kind: String,
    tick_paise: i64,
    isin: String,
    short_code: String,
    sector: String,
    auction: u8,
    base_price: rust_decimal::Decimal,
    public_symbol: String,
}

impl Universe {
    /// The embedded list, moved by `seed`.
    pub(crate) fn embedded(seed: u64) -> Self {
        let mut reader = csv::Reader::from_reader(EMBEDDED.as_bytes());
        let instruments: Vec<Instrument> = reader
            .deserialize::<Row>()
            .map(|row| instrument(row.expect("the embedded list is checked by a test"), seed))
            .collect();
        let mut by_key = HashMap::new();
        let mut by_token = HashMap::new();
        let mut by_public = HashMap::new();
        for (position, instrument) in instruments.iter().enumerate() {
            by_key.insert(instrument.key.clone(), position);
            by_token.insert(instrument.token, position);
            if let Some(public) = &instrument.public_symbol {
                by_public.insert(public.clone(), position);
            }
        }
        Self { instruments, by_key, by_token, by_public }
    }

    pub(crate) fn all(&self) -> &[Instrument] {
        &self.instruments
    }

    /// By `NSE:INFY`.
    pub(crate) fn by_key(&self, key: &str) -> Option<&Instrument> {
        self.by_key.get(key).map(|&position| &self.instruments[position])
    }

    /// By broker A's instrument token.
    pub(crate) fn by_token(&self, token: i64) -> Option<&Instrument> {
        self.by_token.get(&token).map(|&position| &self.instruments[position])
    }

    /// By the public provider's symbol.
    pub(crate) fn by_public(&self, symbol: &str) -> Option<&Instrument> {
        self.by_public.get(symbol).map(|&position| &self.instruments[position])
    }
}

fn instrument(row: Row, seed: u64) -> Instrument {
    let is_index = row.kind == "index";
    let market = noise::key(seed, "market");
    let sector = noise::key(seed, &format!("sector {}", row.sector));
    // A share listed on both exchanges is one company: its own noise hangs on the ISIN.
    let identity = if row.isin.is_empty() { &row.symbol } else { &row.isin };
    let own = noise::key(seed, &format!("own {identity}"));
    let mut factors = Vec::with_capacity(3);
    match (is_index, row.symbol.as_str(), row.sector.is_empty()) {
        (true, "NIFTY 50" | "SENSEX", _) => factors.push((market, 100)),
        // Volatility goes up when the market goes down.
        (true, "INDIA VIX", _) => factors.extend([(market, -150), (own, 150)]),
        (true, _, true) => factors.extend([(market, 100), (own, 20)]),
        (true, _, false) => factors.extend([(market, 100), (sector, 100)]),
        (false, _, no_sector) => {
            let beta = 70 + noise::pick(own, 0, 61);
            factors.extend([(market, beta), (own, 80)]);
            if !no_sector {
                factors.push((sector, 100));
            }
        }
    }
    let suffix = if row.exchange == "BSE" { "BO" } else { "NS" };
    let public_symbol = match (row.public_symbol.is_empty(), is_index) {
        (false, _) => Some(row.public_symbol),
        (true, true) => None,
        (true, false) => Some(format!("{}.{suffix}", stripped_of_series(&row.symbol))),
    };
    Instrument {
        key: format!("{}:{}", row.exchange, row.symbol),
        exchange: row.exchange,
        symbol: row.symbol,
        name: row.name,
        token: row.token,
        is_index,
        tick_paise: row.tick_paise,
        isin: row.isin,
        short_code: row.short_code,
        auction: row.auction == 1,
        base_paise: noise::paise(row.base_price),
        public_symbol,
        factors,
    }
}

/// The public provider drops the trade-to-trade series from a ticker and keeps the SME ones.
fn stripped_of_series(symbol: &str) -> &str {
    ["-BE", "-BZ"].iter().find_map(|series| symbol.strip_suffix(series)).unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::symbol::well_formed;

    #[test]
    fn the_embedded_list_is_whole_and_its_tokens_follow_the_rule() {
        let universe = Universe::embedded(1);
        let nse = universe.all().iter().filter(|i| i.exchange == "NSE").count();
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
    fn known_numbers_and_names_are_the_documented_ones() {
        let universe = Universe::embedded(1);
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
