//! Short forms of rows and imports for tests.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Isin;
use crate::base::symbol::Exchange;
use crate::base::words::Words;
use crate::ledger::corrections::Correction;
use crate::ledger::row::{AccountName, Mark, Row, RowCharges, Segment, Side};
use crate::ledger::securities::Securities;
use crate::ledger::trades::{self, Choices, ImportedRows, IsinLookup, Known, Trades};

pub(crate) fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub(crate) fn date(text: &str) -> Date {
    text.parse().unwrap()
}

pub(crate) fn isin(text: &str) -> Isin {
    Isin::parse(text).unwrap()
}

pub(crate) fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

pub(crate) fn correction(json: &str) -> Correction {
    Correction::parse(json.as_bytes()).unwrap()
}

/// Corrections of lines of JSON, with `c1`, `c2` as ids.
pub(crate) fn corrections(lines: &[&str]) -> Vec<(String, Correction)> {
    let numbered = lines.iter().enumerate();
    numbered
        .map(|(at, json)| (format!("c{at}"), correction(json)))
        .collect()
}

/// A row as `2023-05-11 buy 12 RELIANCE 2311.40`, and what follows in any order: a time, `BSE`,
/// an ISIN, `#` and a trade id, `o` and an order id, a segment, `auction`, `mtf`, `unpaid`,
/// `stt=`, `brokerage=` or `stamp=` and an amount, `exp=` and a date.
pub(crate) fn row(line: u32, text: &str) -> Row {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap();
    let mut row = Row {
        line,
        date: date(next()),
        side: Side::parse(next()).unwrap(),
        quantity: decimal(next()),
        symbol: next().into(),
        price: decimal(next()),
        isin: None,
        exchange: Exchange::Nse,
        segment: Segment::Equity,
        series: None,
        time: None,
        trade_id: None,
        order_id: None,
        product: None,
        auction: false,
        expiry: None,
        charges: RowCharges::default(),
        stt_paid: None,
        mark: None,
    };
    for word in words {
        add(&mut row, word);
    }
    row
}

fn add(row: &mut Row, word: &str) {
    if let Some((name, value)) = word.split_once('=') {
        let mut charges = *row.charges;
        match name {
            "stt" => charges.stt = Some(decimal(value)),
            "brokerage" => charges.brokerage = Some(decimal(value)),
            "stamp" => charges.stamp_duty = Some(decimal(value)),
            "exp" => row.expiry = Some(date(value)),
            _ => panic!("{word}"),
        }
        row.charges = charges.into();
        return;
    }
    match word {
        "NSE" => row.exchange = Exchange::Nse,
        "BSE" => row.exchange = Exchange::Bse,
        "auction" => row.auction = true,
        "unpaid" => row.stt_paid = Some(false),
        "mtf" => row.mark = Some(Mark::MarginFunded),
        _ if Segment::parse(word).is_some() => row.segment = Segment::parse(word).unwrap(),
        _ if word.contains(':') => row.time = Some(word.parse().unwrap()),
        _ if word.starts_with('#') => row.trade_id = Some(word[1..].into()),
        _ if word.starts_with('o') => row.order_id = Some(word[1..].into()),
        _ => row.isin = Some(isin(word)),
    }
}

pub(crate) fn rows(lines: &[&str]) -> Vec<Row> {
    lines
        .iter()
        .enumerate()
        .map(|(at, text)| row(at as u32 + 1, text))
        .collect()
}

/// What is known beside the rows: nothing, unless a test says it.
#[derive(Default)]
pub(crate) struct Told {
    pub held: Vec<(&'static str, &'static str)>,
    pub listed: Vec<(&'static str, &'static str)>,
    pub said: Vec<(&'static str, &'static str)>,
}

fn of_symbol(all: &[(&str, &str)], symbol: &str) -> Vec<Isin> {
    let of = all.iter().filter(|(known, _)| *known == symbol);
    of.map(|(_, text)| isin(text)).collect()
}

impl IsinLookup for Told {
    fn held(&self, _: &AccountName, _: Exchange, symbol: &str) -> Vec<Isin> {
        of_symbol(&self.held, symbol)
    }

    fn listed(&self, _: &AccountName, _: Exchange, symbol: &str) -> Vec<Isin> {
        of_symbol(&self.listed, symbol)
    }

    fn said(&self, _: &AccountName, symbol: &str) -> Vec<Isin> {
        of_symbol(&self.said, symbol)
    }
}

/// The trades of one import an account, each line headed by the account, and its corrections.
pub(crate) fn trades_of(lines: &[&str], corrections: &[(String, Correction)]) -> Trades {
    let mut by_account: std::collections::BTreeMap<AccountName, Vec<Row>> = Default::default();
    for (at, line) in lines.iter().enumerate() {
        let (name, text) = line.split_once(' ').unwrap();
        by_account
            .entry(account(name))
            .or_default()
            .push(row(at as u32 + 1, text));
    }
    let imports: Vec<ImportedRows<'_>> = by_account
        .iter()
        .map(|(account, rows)| ImportedRows {
            import: account.as_str(),
            account,
            format: "zerodha_tradebook",
            rows,
        })
        .collect();
    let securities = Securities::of(corrections.iter().map(|(_, correction)| correction));
    let known = Known {
        securities: &securities,
        choices: &Choices::new(),
        isins: &Told::default(),
    };
    trades::trades(&imports, known)
}
