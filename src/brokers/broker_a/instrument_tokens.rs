//! Broker A's instrument tokens of the few symbols whose candles are asked for. Plain values.

use std::collections::HashMap;

use super::instruments::InstrumentList;
use crate::base::{Exchange, Symbol};

/// The token of each wanted symbol, as far as known. Never holds a symbol that was not wanted, so
/// its size is the universe's.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    known: HashMap<Symbol, Option<u32>>,
}

impl Tokens {
    /// `wanted`, each with the token to use until the day's file is read; `None` where there is
    /// none.
    pub fn new(wanted: impl IntoIterator<Item = (Symbol, Option<u32>)>) -> Self {
        Self { known: wanted.into_iter().collect() }
    }

    /// Takes over what the day's file of `exchange` says. It wins: tokens of what left the exchange
    /// are given to others, so a wanted symbol that it does not list has none from then on.
    pub fn learn(&mut self, exchange: Exchange, list: &InstrumentList) {
        let of_exchange = self.known.iter_mut().filter(|(symbol, _)| symbol.exchange() == exchange);
        of_exchange.for_each(|(_, token)| *token = None);
        for listed in &list.listed {
            if let Some(token) = self.known.get_mut(&listed.symbol) {
                *token = Some(listed.instrument_token);
            }
        }
    }

    /// The token of `symbol`.
    pub fn of(&self, symbol: &Symbol) -> Option<u32> {
        self.known.get(symbol).copied().flatten()
    }

    /// Wanted symbols without a token, in order: renamed, delisted or never listed.
    pub fn lacking(&self) -> Vec<&Symbol> {
        let without = self.known.iter().filter(|(_, token)| token.is_none());
        let mut lacking: Vec<&Symbol> = without.map(|(symbol, _)| symbol).collect();
        lacking.sort_unstable_by_key(|symbol| symbol.as_str());
        lacking
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokers::broker_a::instruments::parse;

    const FILE: &[u8] = include_bytes!("../../../tests/fixtures/broker_a/instruments_nse.csv");

    fn symbol(name: &str) -> Symbol {
        Symbol::parse(name).unwrap()
    }

    #[test]
    fn the_days_file_wins_for_its_exchange_and_teaches_nothing_unwanted() {
        let wanted = [
            ("NSE:ADANIPORTS", Some(1)),
            ("NSE:RENAMED", Some(7)),
            ("NSE:UNKNOWN", None),
            ("BSE:SBIN", Some(128_028_676)),
        ];
        let mut tokens = Tokens::new(wanted.map(|(name, token)| (symbol(name), token)));
        assert_eq!(tokens.of(&symbol("NSE:ADANIPORTS")), Some(1));
        assert_eq!(tokens.lacking(), [&symbol("NSE:UNKNOWN")]);
        tokens.learn(Exchange::Nse, &parse(FILE, Exchange::Nse, 1 << 20).unwrap());
        assert_eq!(tokens.of(&symbol("NSE:ADANIPORTS")), Some(3_861_249));
        assert_eq!(tokens.of(&symbol("BSE:SBIN")), Some(128_028_676), "another file's");
        assert_eq!(tokens.lacking(), [&symbol("NSE:RENAMED"), &symbol("NSE:UNKNOWN")]);
        assert_eq!(tokens.known.len(), wanted.len());
    }
}
