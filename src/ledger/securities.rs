//! Which ISINs are one security, what kind of security it is, and what a trade is a trade of.
//!
//! A split may give a share a new ISIN. Rows, holdings and prices under the old and the new one are
//! of one security, whose name here is its newest ISIN.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;

use crate::base::Isin;
use crate::ledger::corrections::{Change, ClassWord, Correction};
use crate::ledger::reasons::Reason;

/// What was traded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Security {
    /// A security by its newest ISIN.
    Known(Isin),
    /// A symbol whose ISIN nothing tells.
    Unknown(Arc<str>),
    /// A contract of derivatives.
    Contract(Arc<str>),
}

impl Security {
    pub(crate) fn isin(&self) -> Option<Isin> {
        self.isin_ref().copied()
    }

    /// Its newest ISIN as text.
    pub(crate) fn isin_text(&self) -> Option<&str> {
        self.isin_ref().map(Isin::as_str)
    }

    fn isin_ref(&self) -> Option<&Isin> {
        match self {
            Self::Known(isin) => Some(isin),
            Self::Unknown(_) | Self::Contract(_) => None,
        }
    }
}

/// The ISINs that splits join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Securities {
    /// The newest ISIN of each joined one.
    newest: BTreeMap<Isin, Isin>,
}

impl Securities {
    /// The securities that these corrections make.
    pub(crate) fn of<'a>(corrections: impl IntoIterator<Item = &'a Correction>) -> Self {
        let mut joins: Vec<(Date, Isin, Isin)> =
            corrections.into_iter().filter_map(joined).collect();
        // The newest name is given last.
        joins.sort_unstable_by_key(|(date, from, to)| (*date, *to, *from));
        let mut newest: BTreeMap<Isin, Isin> = BTreeMap::new();
        for (_, from, to) in joins {
            let name = |isin: Isin| newest.get(&isin).copied().unwrap_or(isin);
            let names = [name(from), name(to)];
            newest.entry(from).or_insert(from);
            newest.entry(to).or_insert(to);
            for of in newest.values_mut().filter(|of| names.contains(of)) {
                *of = to;
            }
        }
        Self { newest }
    }

    /// The newest ISIN of the security of `isin`.
    pub(crate) fn newest(&self, isin: Isin) -> Isin {
        self.newest.get(&isin).copied().unwrap_or(isin)
    }

    /// Every ISIN of a security that is named by any of them, in order.
    pub(crate) fn isins(&self, isin: Isin) -> Vec<Isin> {
        let name = self.newest(isin);
        let of = self.newest.iter().filter(|(_, newest)| **newest == name);
        let joined: Vec<Isin> = of.map(|(isin, _)| *isin).collect();
        if joined.is_empty() {
            vec![isin]
        } else {
            joined
        }
    }
}

fn joined(correction: &Correction) -> Option<(Date, Isin, Isin)> {
    let Correction::Action(action) = correction else {
        return None;
    };
    match action.change {
        Change::Split {
            new_isin: Some(new_isin),
            ..
        } => Some((action.ex_date, action.isin, new_isin)),
        _ => None,
    }
}

/// What the person says securities are, by their newest ISIN.
#[derive(Debug, Default)]
pub(crate) struct Classes(BTreeMap<Isin, ClassWord>);

impl Classes {
    pub(crate) fn of(corrections: &[(String, Correction)], securities: &Securities) -> Self {
        let mut said = BTreeMap::new();
        for (_, correction) in corrections {
            if let Correction::Class { isin, class } = correction {
                let of = said.entry(securities.newest(*isin)).or_insert(*class);
                // Of two words that differ the one that computes nothing counts.
                if *class == ClassWord::Other {
                    *of = *class;
                }
            }
        }
        Self(said)
    }

    /// Why gains of a security are not computed; `None` of shares and what is taxed like them.
    pub(crate) fn cut(&self, newest: Isin) -> Option<Reason> {
        match self.0.get(&newest) {
            Some(ClassWord::Equity | ClassWord::EquityFund) => None,
            Some(ClassWord::Other) => Some(Reason::ClassOther),
            None => by_isin(newest),
        }
    }
}

fn by_isin(isin: Isin) -> Option<Reason> {
    let text = isin.as_str();
    match (&text[..3], &text[7..9]) {
        ("IN0", _) => Some(Reason::ClassGovernment),
        ("INF", _) => Some(Reason::ClassFund),
        ("INE", "01") => None,
        ("IN9", "01") => Some(Reason::DifferentRights),
        ("INE" | "IN9", "20") => Some(Reason::ClassEntitlement),
        ("INE" | "IN9", "07" | "08") => Some(Reason::ClassBond),
        ("INE" | "IN9", "23" | "25") => Some(Reason::ClassTrust),
        _ => Some(Reason::ClassOther),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::testing::{corrections, isin};

    fn split(isin: &str, new_isin: &str, ex_date: &str) -> Correction {
        let json = format!(
            r#"{{"kind":"split","isin":"{isin}","new_isin":"{new_isin}","ex_date":"{ex_date}",
            "numerator":1,"denominator":1}}"#
        );
        Correction::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_chain_of_splits_in_any_order_is_one_security_by_its_newest_isin() {
        let isins = ["INE000A01011", "INE000A01029", "INE000A01037"];
        let [oldest, middle, newest] = isins.map(|isin| Isin::parse(isin).unwrap());
        let splits = [
            split(isins[0], isins[1], "2020-01-01"),
            split(isins[1], isins[2], "2024-01-01"),
        ];
        let reversed: Vec<Correction> = splits.iter().rev().cloned().collect();
        for securities in [Securities::of(&splits), Securities::of(&reversed)] {
            for isin in [oldest, middle, newest] {
                assert_eq!(securities.newest(isin), newest);
                assert_eq!(securities.isins(isin), [oldest, middle, newest]);
            }
        }
        let other = Isin::parse("INE002A01018").unwrap();
        let alone = Securities::of(&splits[..1]);
        assert_eq!((alone.newest(other), alone.isins(other)), (other, vec![other]));
        assert_eq!((alone.newest(oldest), alone.newest(newest)), (middle, newest));
    }

    #[test]
    fn the_characters_of_an_isin_tell_its_kind() {
        for (text, expected) in [
            ("INE002A01018", None),
            ("IN9155A01020", Some(Reason::DifferentRights)),
            ("INE0EXN20010", Some(Reason::ClassEntitlement)),
            ("INE002A07018", Some(Reason::ClassBond)),
            ("INE002A08014", Some(Reason::ClassBond)),
            ("INE041025011", Some(Reason::ClassTrust)),
            ("INE0EXR23011", Some(Reason::ClassTrust)),
            ("IN0020150085", Some(Reason::ClassGovernment)),
            ("INF204KB17I5", Some(Reason::ClassFund)),
            ("INE002A14018", Some(Reason::ClassOther)),
            ("US0378331005", Some(Reason::ClassOther)),
        ] {
            let isin = isin(text);
            assert_eq!(Classes::default().cut(isin), expected, "{text}");
        }
    }

    #[test]
    fn the_persons_word_counts_before_the_isin() {
        let said = corrections(&[
            r#"{"kind":"class","isin":"INF204KB17I5","class":"equity_fund"}"#,
            r#"{"kind":"class","isin":"IN9155A01020","class":"equity"}"#,
            r#"{"kind":"class","isin":"INE002A01018","class":"other"}"#,
            r#"{"kind":"class","isin":"INE002A01018","class":"equity"}"#,
        ]);
        let classes = Classes::of(&said, &Securities::default());
        for (text, expected) in [
            ("INF204KB17I5", None),
            ("IN9155A01020", None),
            ("INE002A01018", Some(Reason::ClassOther)),
            ("INE009A01021", None),
        ] {
            assert_eq!(classes.cut(isin(text)), expected, "{text}");
        }
    }
}
