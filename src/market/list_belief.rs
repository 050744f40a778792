//! Whether a day's list of instruments is to be believed, by the list before it. Pure.
//!
//! A file that was cut off, or of which half the rows are missing, still is a list. If it took the
//! place of a whole one, shares that people hold would have no price for a day.

use std::fmt;

use crate::base::{Exchange, Symbol};
use crate::market::instruments::{InstrumentList, Origin};
use crate::market::list_limits::{NAMED_MAX, is_cut_short, is_much_unread};

/// Largest part of the needed symbols, in percent, that may be missing against the compiled-in
/// list. Months old, it has names that were changed since.
const RENAMED_PCT_MAX: usize = 10;

/// Why a list is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    Shorter {
        exchange: Exchange,
        listed: usize,
        before: usize,
    },
    Lacks {
        count: usize,
        first: Vec<Symbol>,
    },
    Unread {
        rows: u64,
        listed: usize,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shorter {
                exchange,
                listed,
                before,
            } => {
                let exchange = exchange.as_str();
                write!(to, "it has {listed} instruments of {exchange}; the last had {before}")
            }
            Self::Lacks { count, first } => {
                let first: Vec<&str> = first.iter().map(Symbol::as_str).collect();
                let first = first.join(", ");
                write!(to, "it lacks {count} symbols that are held or in the universe: {first}")
            }
            Self::Unread { rows, listed } => {
                write!(to, "{rows} of its rows cannot be read, beside {listed} that can")
            }
        }
    }
}

/// The doubt about `list`, which came after `last` and of which `unread` rows could not be read.
/// `needed`: symbols that are held or in the universe.
pub(crate) fn doubt<'a>(
    list: &InstrumentList,
    last: &InstrumentList,
    needed: impl IntoIterator<Item = &'a Symbol>,
    unread: u64,
) -> Option<Doubt> {
    for exchange in [Exchange::Nse, Exchange::Bse] {
        let listed = list.count_on(exchange);
        let before = last.count_on(exchange);
        if is_cut_short(listed, before) {
            return Some(Doubt::Shorter {
                exchange,
                listed,
                before,
            });
        }
    }
    let known = needed
        .into_iter()
        .filter(|symbol| last.contains(symbol.as_str()));
    let known: Vec<&Symbol> = known.collect();
    let lacking = known
        .iter()
        .filter(|symbol| !list.contains(symbol.as_str()));
    let count = lacking.clone().count();
    let of_compiled_in = last.origin() == Origin::Embedded && unread == 0;
    let is_much = !of_compiled_in || count * 100 > known.len() * RENAMED_PCT_MAX;
    if count > 0 && is_much {
        let first = lacking
            .take(NAMED_MAX)
            .map(|symbol| (*symbol).clone())
            .collect();
        return Some(Doubt::Lacks { count, first });
    }
    // That nothing needed is among the unread rows was judged above.
    let listed = list.len();
    is_much_unread(unread, listed as u64 + unread).then_some(Doubt::Unread {
        rows: unread,
        listed,
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::market::Universe;
    use crate::market::search::Named;

    fn symbol(name: &str) -> Symbol {
        Symbol::parse(name).unwrap()
    }

    fn list(names: impl IntoIterator<Item = String>) -> InstrumentList {
        let named = names.into_iter().map(|name| Named {
            symbol: symbol(&name),
            name: "".into(),
        });
        InstrumentList::from_rows(named, Origin::BrokerA, date(2026, 11, 20)).unwrap()
    }

    /// Numbers of shares on each exchange; those of NSE from `from` on.
    fn shares(from: usize, nse: usize, bse: usize) -> impl Iterator<Item = String> {
        let of_nse = (from..nse).map(|number| format!("NSE:S{number}"));
        of_nse.chain((0..bse).map(|number| format!("BSE:S{number}")))
    }

    #[test]
    fn a_list_is_judged_by_the_one_before_it() {
        let last = list(shares(0, 1_000, 2_000));
        let needed = [
            symbol("NSE:S3"),
            symbol("NSE:S900"),
            symbol("NSE:NEVER"),
            symbol("BSE:S9"),
        ];
        let shorter = |exchange, listed, before| Doubt::Shorter {
            exchange,
            listed,
            before,
        };
        let lacks = |names: &[&str]| Doubt::Lacks {
            count: names.len(),
            first: names.iter().map(|name| symbol(name)).collect(),
        };
        for (from, nse, bse, unread, expected) in [
            (0, 1_000, 2_000, 0, None),
            (0, 1_400, 2_500, 0, None),
            // One row in three thousand is broken.
            (0, 1_000, 2_000, 1, None),
            (0, 950, 1_900, 0, None),
            (0, 902, 2_000, 30, None),
            (0, 899, 2_000, 0, Some(shorter(Exchange::Nse, 899, 1_000))),
            (0, 453, 2_000, 3, Some(shorter(Exchange::Nse, 453, 1_000))),
            (0, 1_000, 1_799, 0, Some(shorter(Exchange::Bse, 1_799, 2_000))),
            (0, 1_000, 0, 0, Some(shorter(Exchange::Bse, 0, 2_000))),
            (4, 1_000, 2_000, 0, Some(lacks(&["NSE:S3"]))),
            (0, 900, 2_000, 0, Some(lacks(&["NSE:S900"]))),
            (0, 1_000, 2_000, 333, None),
            (
                0,
                1_000,
                2_000,
                334,
                Some(Doubt::Unread {
                    rows: 334,
                    listed: 3_000,
                }),
            ),
        ] {
            let found = doubt(&list(shares(from, nse, bse)), &last, &needed, unread);
            assert_eq!(found, expected, "{from} {nse} {bse} {unread}");
        }
    }

    #[test]
    fn against_the_compiled_in_list_some_names_may_have_changed() {
        let last = InstrumentList::embedded();
        let universe = Universe::embedded();
        let whole: Vec<String> = last
            .search_rows()
            .map(|symbol| symbol.as_str().to_owned())
            .collect();
        let without = |count: usize| {
            let left = universe.symbols()[..count].to_vec();
            list(
                whole
                    .iter()
                    .filter(|name| !left.contains(&symbol(name)))
                    .cloned(),
            )
        };
        let judged = |list: &InstrumentList, unread| {
            doubt(list, &last, universe.symbols(), unread).is_some()
        };
        assert!(!judged(&without(0), 0) && !judged(&without(5), 0));
        assert!(judged(&without(6), 0), "more than a tenth");
        assert!(judged(&without(1), 1), "its row may be the one that is broken");
        assert!(judged(&list(shares(0, 143, 40)), 0), "none of them");
        let told = doubt(&without(6), &last, universe.symbols(), 0)
            .unwrap()
            .to_string();
        assert!(told.starts_with("it lacks 6 symbols") && told.contains("NSE:"), "{told}");
    }
}
