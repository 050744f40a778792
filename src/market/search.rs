//! Finds instruments by the beginning of their ticker or by words of their name.
//!
//! Built with the list of instruments on a lane; read on the edge. A search uses sorted tables and
//! checks no more than `CANDIDATES_MAX` rows, so its time does not grow with the list.
//!
//! Tickers that companies had before, by which people still look for them. Read once.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::base::{Exchange, Symbol};

/// Most rows that one search checks. Fewer names have a word as common as `FINANCE`.
const CANDIDATES_MAX: usize = 1_000;
/// Longest query, in bytes. Names of companies have up to some 60.
pub(crate) const QUERY_BYTES_MAX: usize = 64;
/// Most words of a query. Each is compared with each word of a candidate's name.
pub(crate) const WORDS_MAX: usize = 8;

/// An instrument that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub symbol: Symbol,
    /// Name of the company or index; may be empty.
    pub name: Box<str>,
}

/// The instruments in the orders that searches need.
#[derive(Debug, Clone, Default)]
pub(crate) struct SearchIndex {
    /// Rows by ticker, then NSE before BSE.
    rows: Vec<Named>,
    /// Every word of every name, sorted, as its row and its position in the name.
    words: Vec<(u32, u16)>,
}

/// A client's query, checked and in upper case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    text: String,
    exchange: Option<Exchange>,
}

impl Query {
    /// `None` if the text has no letter or digit, is too long, or has control characters.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = text.len() <= QUERY_BYTES_MAX && !text.chars().any(char::is_control);
        let upper = text.to_ascii_uppercase();
        let (exchange, rest) = match upper.split_once(':') {
            Some(("NSE", rest)) => (Some(Exchange::Nse), rest),
            Some(("BSE", rest)) => (Some(Exchange::Bse), rest),
            _ => (None, upper.as_str()),
        };
        let rest = rest.trim();
        let good = fits && rest.chars().any(char::is_alphanumeric);
        let few = words(rest).count() <= WORDS_MAX;
        (good && few).then(|| Self {
            text: rest.to_owned(),
            exchange,
        })
    }

    /// The query in upper case, without an exchange.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the query includes instruments on this exchange.
    pub(crate) fn is_on(&self, exchange: Exchange) -> bool {
        self.exchange.is_none_or(|wanted| wanted == exchange)
    }
}

impl SearchIndex {
    pub(crate) fn new(mut rows: Vec<Named>) -> Self {
        rows.sort_unstable_by(|one, other| order(&one.symbol).cmp(&order(&other.symbol)));
        rows.dedup_by(|one, other| one.symbol == other.symbol);
        let mut sorted: Vec<(u32, u16)> = Vec::new();
        for (at, row) in (0_u32..).zip(&rows) {
            sorted.extend(words(&row.name).filter_map(|start| Some((at, start.try_into().ok()?))));
        }
        let mut index = Self {
            rows,
            words: sorted,
        };
        let Self { rows, words } = &mut index;
        words.sort_unstable_by(|one, other| {
            let word = |(at, start): &(u32, u16)| &rows[*at as usize].name[usize::from(*start)..];
            folded(word(one), word(other)).then(one.cmp(other))
        });
        rows.shrink_to_fit();
        words.shrink_to_fit();
        index
    }

    /// All instruments, by ticker.
    pub(crate) fn rows(&self) -> &[Named] {
        &self.rows
    }

    /// The row of `symbol`.
    pub(crate) fn row(&self, symbol: &Symbol) -> Option<&Named> {
        let at = self
            .rows
            .binary_search_by(|row| order(&row.symbol).cmp(&order(symbol)))
            .ok()?;
        Some(&self.rows[at])
    }

    /// At most `max` instruments: first those whose ticker begins with the query, by ticker; then
    /// those whose former ticker does; then those whose name has, for each word of the query, a
    /// word that begins with it.
    pub(crate) fn find<'a>(&'a self, query: &'a Query, max: usize) -> Vec<&'a Named> {
        let mut found: Vec<&Named> = self.by_ticker(query).take(max).collect();
        for row in self.by_former_ticker(query).chain(self.by_name(query)) {
            if found.len() >= max {
                break;
            }
            if !found.iter().any(|earlier| std::ptr::eq(*earlier, row)) {
                found.push(row);
            }
        }
        found
    }

    fn by_ticker<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Named> {
        let from = self
            .rows
            .partition_point(|row| row.symbol.ticker() < query.text());
        let rest = self.rows[from..].iter().take(CANDIDATES_MAX);
        rest.take_while(|row| row.symbol.ticker().starts_with(query.text()))
            .filter(|row| query.is_on(row.symbol.exchange()))
    }

    fn by_former_ticker<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Named> {
        from_old(query.text()).flat_map(move |change| {
            let exchanges = [Exchange::Nse, Exchange::Bse].into_iter();
            exchanges
                .filter(|exchange| query.is_on(*exchange))
                .filter_map(|exchange| {
                    let symbol = Symbol::parse(&format!("{}:{}", exchange.as_str(), change.new))?;
                    self.row(&symbol)
                })
        })
    }

    fn by_name<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a Named> {
        let text = query.text();
        let wanted: Vec<&str> = words(text).map(|start| word_at(text, start)).collect();
        // The query's word that the fewest names have gives the candidates.
        let ranges = wanted.iter().map(|word| self.range(word));
        let fewest = ranges.min_by_key(|range| range.len()).unwrap_or_default();
        fewest
            .iter()
            .take(CANDIDATES_MAX)
            .filter_map(move |(at, _)| {
                let row = &self.rows[*at as usize];
                let has = |word: &&str| {
                    words(&row.name)
                        .any(|start| begins(&row.name.as_bytes()[start..], word.as_bytes()))
                };
                (query.is_on(row.symbol.exchange()) && wanted.iter().all(has)).then_some(row)
            })
    }

    /// The places where a word begins with `prefix`.
    fn range(&self, prefix: &str) -> &[(u32, u16)] {
        let text = |(at, start): &(u32, u16)| &self.rows[*at as usize].name[usize::from(*start)..];
        let from = self
            .words
            .partition_point(|place| folded(text(place), prefix).is_lt());
        let rest = &self.words[from..];
        let count = rest.partition_point(|place| begins(text(place).as_bytes(), prefix.as_bytes()));
        &rest[..count]
    }
}

fn order(symbol: &Symbol) -> (&str, Exchange) {
    (symbol.ticker(), symbol.exchange())
}

/// Positions at which the words of `text` begin. A word is a run of letters and digits; `M&M` is
/// one, too.
fn words(text: &str) -> impl Iterator<Item = usize> {
    let mut inside = false;
    text.char_indices().filter_map(move |(at, letter)| {
        let is_first = is_of_word(letter) && !inside;
        inside = is_of_word(letter);
        is_first.then_some(at)
    })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '&'
}

fn word_at(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    &rest[..rest
        .find(|letter: char| !is_of_word(letter))
        .unwrap_or(rest.len())]
}

/// Compares without regard to the case of ASCII letters; names have no others.
fn folded(one: &str, other: &str) -> Ordering {
    one.bytes()
        .map(|byte| byte.to_ascii_uppercase())
        .cmp(other.bytes().map(|byte| byte.to_ascii_uppercase()))
}

fn begins(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

const RENAMED: &str = include_str!("data/renamed.csv");

/// A change of a ticker.
#[derive(Debug, Deserialize)]
struct Renamed {
    old: String,
    new: String,
}

static RENAMES: LazyLock<Vec<Renamed>> = LazyLock::new(|| {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(RENAMED.as_bytes());
    let rows = reader.deserialize();
    rows.map(|row| row.expect("the changes of tickers are well-formed: a test reads them"))
        .collect()
});

/// The changes whose old ticker begins with `text`, which is in upper case.
fn from_old(text: &str) -> impl Iterator<Item = &'static Renamed> {
    RENAMES
        .iter()
        .filter(move |renamed| renamed.old.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::instruments::InstrumentList;
    use std::collections::HashSet;

    fn index(rows: &[(&str, &str)]) -> SearchIndex {
        let named = |(symbol, name): &(&str, &str)| Named {
            symbol: Symbol::parse(symbol).unwrap(),
            name: (*name).into(),
        };
        SearchIndex::new(rows.iter().map(named).collect())
    }

    fn some() -> SearchIndex {
        index(&[
            ("BSE:INFY", "INFOSYS LTD."),
            ("NSE:INFY", "Infosys"),
            ("NSE:INFIBEAM", "INFIBEAM AVENUES"),
            ("NSE:M&M", "MAHINDRA & MAHINDRA"),
            ("NSE:M&MFIN", "M&M FIN. SERVICES"),
            ("NSE:TECHM", "TECH MAHINDRA"),
            ("NSE:NIFTY 50", "NIFTY 50"),
            ("NSE:MAHLIFE", "MAHINDRA LIFESPACE DEVELOPERS"),
            ("NSE:NAMELESS", ""),
        ])
    }

    fn found(index: &SearchIndex, text: &str, max: usize) -> Vec<String> {
        let query = Query::parse(text).unwrap();
        index
            .find(&query, max)
            .into_iter()
            .map(|row| row.symbol.as_str().to_owned())
            .collect()
    }

    #[test]
    fn tickers_come_before_names_and_case_does_not_matter() {
        let index = some();
        for (text, expected) in [
            ("inf", &["NSE:INFIBEAM", "NSE:INFY", "BSE:INFY"][..]),
            ("INFY", &["NSE:INFY", "BSE:INFY"]),
            ("bse:inf", &["BSE:INFY"]),
            ("infosys", &["NSE:INFY", "BSE:INFY"]),
            ("infosys ltd", &["BSE:INFY"]),
            ("mah", &["NSE:MAHLIFE", "NSE:M&M", "NSE:TECHM"]),
            ("mahindra tech", &["NSE:TECHM"]),
            ("life mah", &["NSE:MAHLIFE"]),
            ("m&m", &["NSE:M&M", "NSE:M&MFIN"]),
            ("nifty 5", &["NSE:NIFTY 50"]),
            ("50", &["NSE:NIFTY 50"]),
            ("nameless", &["NSE:NAMELESS"]),
            ("indra", &[]),
            ("zz", &[]),
        ] {
            assert_eq!(found(&index, text, 20), expected, "{text}");
        }
        assert_eq!(found(&index, "inf", 2), ["NSE:INFIBEAM", "NSE:INFY"]);
    }

    #[test]
    fn a_share_is_found_by_the_ticker_that_it_had() {
        let index = index(&[
            ("NSE:ETERNAL", "ETERNAL"),
            ("BSE:ETERNAL", "ETERNAL LTD"),
            ("NSE:TMPV", "TATA MOTORS PASS VEH"),
            ("NSE:TATAMTR", "TATAMOTORS OF ANOTHER NAME"),
            ("NSE:LTM", "LTM"),
            ("NSE:UNITDSPR", "UNITED SPIRITS"),
            ("NSE:ZOMBIE", ""),
        ]);
        for (text, expected) in [
            ("ZOMATO", &["NSE:ETERNAL", "BSE:ETERNAL"][..]),
            ("zomat", &["NSE:ETERNAL", "BSE:ETERNAL"]),
            ("bse:zomato", &["BSE:ETERNAL"]),
            // Tickers of today first, names last, each once.
            ("zom", &["NSE:ZOMBIE", "NSE:ETERNAL", "BSE:ETERNAL"]),
            ("tatamotors", &["NSE:TMPV", "NSE:TATAMTR"]),
            ("ltim", &["NSE:LTM"]),
            ("mcdowell-n", &["NSE:UNITDSPR"]),
            ("mcdowell", &["NSE:UNITDSPR"]),
            // Not in this list.
            ("pvr", &[]),
            ("zomatoes", &[]),
        ] {
            assert_eq!(found(&index, text, 20), expected, "{text}");
        }
        assert_eq!(found(&index, "zomato", 1), ["NSE:ETERNAL"]);
    }

    #[test]
    fn each_old_ticker_is_there_once_and_leads_to_a_ticker_that_is_new() {
        let olds: HashSet<&str> = RENAMES.iter().map(|renamed| renamed.old.as_str()).collect();
        assert_eq!(olds.len(), RENAMES.len());
        let list = InstrumentList::embedded();
        for Renamed { old, new } in RENAMES.iter() {
            for ticker in [old, new] {
                assert!(Symbol::parse(&format!("NSE:{ticker}")).is_some(), "{ticker}");
            }
            // A chain of changes is one row for each old ticker, with the newest.
            assert!(!olds.contains(new.as_str()), "{new} was changed too");
            assert!(!list.contains(&format!("NSE:{old}")), "{old} is listed");
        }
        assert_eq!(
            from_old("ZOM")
                .map(|renamed| renamed.new.as_str())
                .collect::<Vec<_>>(),
            ["ETERNAL"]
        );
    }

    #[test]
    fn queries_that_are_empty_or_too_long_are_refused() {
        let long = "A".repeat(QUERY_BYTES_MAX + 1);
        let many = "A ".repeat(WORDS_MAX + 1);
        for bad in ["", " ", "&", "NSE:", "nse: ", "a\nb", &long, &many] {
            assert_eq!(Query::parse(bad), None, "{bad}");
        }
        assert_eq!(Query::parse(" nse: in ").unwrap().text(), "IN");
        assert!(Query::parse(&"A".repeat(QUERY_BYTES_MAX)).is_some());
        // Not ASCII: no fault, and nothing is found.
        assert!(found(&some(), "रिलायंस", 20).is_empty());
    }

    /// As many rows as the exchanges list, with names made of few words.
    fn full() -> SearchIndex {
        let words = [
            "INDIA", "FINANCE", "LIMITED", "STEEL", "POWER", "MAHINDRA", "TECH", "AGRO",
        ];
        let word = |n: usize| words[n % words.len()];
        let row = |n: usize| Named {
            symbol: Symbol::parse(&format!("{}:S{}", ["NSE", "BSE"][n % 2], n / 2)).unwrap(),
            name: format!("{} {} {} LIMITED", word(n), word(n / 8), n).into(),
        };
        SearchIndex::new((0..25_000).map(row).collect())
    }

    #[test]
    fn a_search_of_a_full_list_looks_at_few_rows() {
        let index = full();
        assert_eq!(index.rows().len(), 25_000);
        for text in [
            "S",
            "LIMITED",
            "INDIA LIMITED",
            "LIMITED NOWHERE",
            "BSE:S1",
            "L L L L L L L X",
        ] {
            let query = Query::parse(text).unwrap();
            let looked = index
                .by_name(&query)
                .count()
                .max(index.by_ticker(&query).count());
            assert!(looked <= CANDIDATES_MAX, "{text}: {looked}");
            assert!(index.find(&query, 20).len() <= 20);
        }
        assert_eq!(found(&index, "india 24960", 20), ["NSE:S12480"]);
    }
}
