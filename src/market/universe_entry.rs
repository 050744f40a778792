//! One entry of a universe as people write it: the symbol, or why no price can ever come under that
//! name, and what to write instead. Pure.
//!
//! | written | because | cure |
//! |---|---|---|
//! | `INFY` | other programs know one exchange | the exchange before it |
//! | `nse:infy`, `INFY:NSE`, `NSE: INFY`, `NSE|INFY` | so other programs write it | `NSE:INFY` |
//! | `INFY.NS`, `INFY.BO` | the public provider writes so | `NSE:INFY`, `BSE:INFY` |
//! | `NSE:INFY-EQ` | exchanges' files write the series after the ticker | `NSE:INFY` |
//! | `NFO:INFY26NOVFUT`, `NASDAQ:INFY` | an exchange that is not quoted | a share of NSE or BSE |
//! | `NSE:NIFTY 50`, `BSE:SENSEX`, `^NSEI` | an index | a share |
//! | `INE009A01021` | the share's ISIN | its ticker |

use std::sync::LazyLock;

use crate::base::{Exchange, Symbol, Words, visible};
use crate::market::IndexList;

/// What the public provider writes after a ticker of each exchange.
const PROVIDER_ENDINGS: [(&str, Exchange); 2] = [(".NS", Exchange::Nse), (".BO", Exchange::Bse)];
/// The series of ordinary shares, which broker A's tickers never end with. It does write the other
/// series: `NSE:TICKER-BE` is a symbol.
const PLAIN_SERIES: &str = "-EQ";
/// Characters between exchange and ticker in other programs' symbols.
const SEPARATORS: [char; 3] = [':', '|', '/'];

static INDICES: LazyLock<IndexList> = LazyLock::new(IndexList::embedded);

/// Reads the symbol of a share.
///
/// # Errors
/// What the entry is, and what to write instead.
pub(super) fn read(entry: &str) -> Result<Symbol, String> {
    if let Some(unseen) = visible::unseen(entry) {
        return Err(format!("has what nobody sees: {unseen}; type the symbol anew"));
    }
    if is_isin(entry) {
        return Err(format!("{entry} is an ISIN; write exchange and ticker, such as NSE:INFY"));
    }
    if entry.starts_with('^') {
        return Err(format!("{entry} is an index of the public provider; signals are of shares"));
    }
    let Some(meant) = meant(entry) else {
        return Err(match exchange_beyond(entry) {
            Some(other) => format!("{other} is not quoted; write a share of NSE: or BSE:"),
            None => "not EXCHANGE:TICKER, such as NSE:INFY".to_owned(),
        });
    };
    if is_index(&meant) {
        return Err(format!("{meant} is an index; signals are of shares"));
    }
    if !entry.contains(SEPARATORS) && !has_ending(entry) {
        let ticker = meant.ticker();
        return Err(format!("{ticker} without an exchange; write NSE:{ticker} or BSE:{ticker}"));
    }
    if meant.as_str() != entry {
        return Err(format!("{} is no symbol here; write {meant}", shortened(entry)));
    }
    Ok(meant)
}

/// The symbol that the entry means, written as it should be.
fn meant(entry: &str) -> Option<Symbol> {
    let capitals = entry.to_ascii_uppercase();
    let parts = capitals.split_once(SEPARATORS);
    let (exchange, ticker) = match parts {
        Some((before, after)) => {
            match (Exchange::parse(before.trim()), Exchange::parse(after.trim())) {
                (Some(exchange), _) => (exchange, after.trim()),
                (None, Some(exchange)) => (exchange, before.trim()),
                (None, None) => return None,
            }
        }
        // Without an exchange the provider's ending says it; most shares are traded at NSE.
        None => (Exchange::Nse, capitals.as_str()),
    };
    let ending = PROVIDER_ENDINGS
        .iter()
        .find(|(ending, _)| ticker.ends_with(ending));
    let (ticker, exchange) = match ending {
        Some((ending, of)) => (ticker.strip_suffix(ending)?, *of),
        None => (ticker, exchange),
    };
    let ticker = ticker.strip_suffix(PLAIN_SERIES).unwrap_or(ticker);
    Symbol::parse(&format!("{}:{ticker}", exchange.as_str()))
}

fn has_ending(entry: &str) -> bool {
    let capitals = entry.to_ascii_uppercase();
    PROVIDER_ENDINGS
        .iter()
        .any(|(ending, _)| capitals.ends_with(ending))
}

/// The name before the separator that is no exchange of ours.
fn exchange_beyond(entry: &str) -> Option<&str> {
    let (before, after) = entry.split_once(SEPARATORS)?;
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic());
    let is_ours = Exchange::parse(&before.to_ascii_uppercase()).is_some();
    (is_name(before) && !is_ours && !after.is_empty()).then_some(before)
}

/// Broker A's names of indices have a space, but for some.
fn is_index(symbol: &Symbol) -> bool {
    symbol.ticker().contains(' ') || INDICES.all().any(|index| index.symbol == *symbol)
}

/// Two letters of the country, nine letters or digits, a digit.
fn is_isin(entry: &str) -> bool {
    let bytes = entry.as_bytes();
    bytes.len() == 12
        && bytes.starts_with(b"IN")
        && bytes.iter().all(u8::is_ascii_alphanumeric)
        && bytes[11].is_ascii_digit()
}

/// Longest part of a wrong entry that is repeated.
const SHOWN_CHARS_MAX: usize = 60;

fn shortened(entry: &str) -> String {
    entry.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_as_broker_a_writes_them_are_taken() {
        for good in [
            "NSE:INFY",
            "NSE:M&M",
            "NSE:BAJAJ-AUTO",
            "BSE:SBIN",
            "NSE:BSE",
            "NSE:SMALL-SM",
            "BSE:500325",
        ] {
            assert_eq!(read(good).as_ref().map(Symbol::as_str), Ok(good));
        }
    }

    #[test]
    fn what_never_matches_is_refused_with_what_to_write() {
        for (entry, said) in [
            ("INFY", "write NSE:INFY or BSE:INFY"),
            ("m&m", "write NSE:M&M or BSE:M&M"),
            ("nse:infy", "write NSE:INFY"),
            ("NSE:infy", "write NSE:INFY"),
            ("NSE: INFY", "write NSE:INFY"),
            ("INFY:NSE", "write NSE:INFY"),
            ("NSE|M&M", "write NSE:M&M"),
            ("NSE/INFY", "write NSE:INFY"),
            ("INFY.NS", "write NSE:INFY"),
            ("infy.ns", "write NSE:INFY"),
            ("SBIN.BO", "write BSE:SBIN"),
            ("NSE:INFY.NS", "write NSE:INFY"),
            ("NSE:SBIN.BO", "write BSE:SBIN"),
            ("NSE:INFY-EQ", "write NSE:INFY"),
            ("INFY-EQ", "write NSE:INFY or BSE:INFY"),
            ("BAJAJ-AUTO-EQ", "write NSE:BAJAJ-AUTO or"),
            ("NFO:INFY26NOVFUT", "NFO is not quoted"),
            ("NASDAQ:INFY", "NASDAQ is not quoted"),
            ("MCX:GOLD", "MCX is not quoted"),
            ("NSE:NIFTY 50", "is an index"),
            ("nse:nifty bank", "is an index"),
            ("BSE:SENSEX", "is an index"),
            ("^NSEI", "is an index"),
            ("INE009A01021", "is an ISIN"),
            ("NSE:INF\u{200b}Y", "Character 8 is a zero-width space"),
            ("\u{201c}NSE:INFY\u{201d}", "not EXCHANGE:TICKER"),
            ("NSE:INFY; NSE:TCS", "not EXCHANGE:TICKER"),
            ("", "not EXCHANGE:TICKER"),
            ("NSE:", "not EXCHANGE:TICKER"),
        ] {
            let why = read(entry).unwrap_err();
            assert!(why.contains(said), "{entry}: {why}");
        }
    }
}
