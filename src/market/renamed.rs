//! Tickers that companies had before, by which people still look for them. Pure; read once.

use std::sync::LazyLock;

use serde::Deserialize;

const TEXT: &str = include_str!("data/renamed.csv");

/// A change of a ticker.
#[derive(Debug, Deserialize)]
pub(crate) struct Renamed {
    pub(crate) old: String,
    pub(crate) new: String,
}

static ALL: LazyLock<Vec<Renamed>> = LazyLock::new(|| {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(TEXT.as_bytes());
    let rows = reader.deserialize();
    rows.map(|row| row.expect("the changes of tickers are well-formed: a test reads them"))
        .collect()
});

/// The changes whose old ticker begins with `text`, which is in upper case.
pub(crate) fn from_old(text: &str) -> impl Iterator<Item = &'static Renamed> {
    ALL.iter().filter(move |renamed| renamed.old.starts_with(text))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::base::Symbol;
    use crate::market::InstrumentList;

    #[test]
    fn each_old_ticker_is_there_once_and_leads_to_a_ticker_that_is_new() {
        let olds: HashSet<&str> = ALL.iter().map(|renamed| renamed.old.as_str()).collect();
        assert_eq!(olds.len(), ALL.len());
        let list = InstrumentList::embedded();
        for Renamed { old, new } in ALL.iter() {
            for ticker in [old, new] {
                assert!(Symbol::parse(&format!("NSE:{ticker}")).is_some(), "{ticker}");
            }
            // A chain of changes is one row for each old ticker, with the newest.
            assert!(!olds.contains(new.as_str()), "{new} was changed too");
            assert!(!list.contains(&format!("NSE:{old}")), "{old} is listed");
        }
        assert_eq!(
            from_old("ZOM").map(|renamed| renamed.new.as_str()).collect::<Vec<_>>(),
            ["ETERNAL"]
        );
    }
}
