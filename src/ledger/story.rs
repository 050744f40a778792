//! Whole ledgers for tests: what was traded, what the person says, and what brokers report.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::Broker;
use crate::base::words::Words;
use crate::ledger::amount::Amount;
use crate::ledger::corrections::Correction;
use crate::ledger::file_format::FileFormat;
use crate::ledger::financial_year::FinancialYear;
use crate::ledger::gains::{Gains, PartGain, Sources, gains};
use crate::ledger::grandfathering::FmvList;
use crate::ledger::lots::{Ledger, replay};
use crate::ledger::positions::Position;
use crate::ledger::reconciliation::{
    Compared, Persons, Settlement, SyncedAccount, SyncedHolding, reconcile,
};
use crate::ledger::report_charges::add_charges;
use crate::ledger::report_line::{ReportLine, ReportSection};
use crate::ledger::reported::AccountReport;
use crate::ledger::row::Charges;
use crate::ledger::testing::{account, corrections, date, decimal, isin, trades_of};
use crate::ledger::trades::Trades;

const TODAY: &str = "2027-06-30";

struct NextDay;

impl Settlement for NextDay {
    fn settlement_day(&self, traded: Date) -> Option<Date> {
        traded.tomorrow().ok()
    }
}

/// A story: its trades, what the person says, and whose accounts are synced with the quantities
/// that the ledger has.
pub(crate) struct Story<'a> {
    pub trades: &'a [&'a str],
    pub said: &'a [&'a str],
    pub synced: &'a [&'a str],
    pub persons: Persons,
    pub fmv: FmvList<'a>,
    pub reports: Vec<AccountReport>,
}

pub(crate) fn story<'a>(trades: &'a [&'a str], said: &'a [&'a str]) -> Story<'a> {
    Story {
        trades,
        said,
        synced: &["a", "b"],
        persons: Persons::new(),
        fmv: &|_| None,
        reports: Vec::new(),
    }
}

/// A sync that has what the ledger has.
fn sync(ledger: &Ledger, name: &str) -> SyncedAccount {
    let of = ledger
        .positions
        .iter()
        .filter(|position| position.account.as_str() == name);
    let holding = |position: &Position| {
        Some(SyncedHolding {
            isin: Some(position.isin()?),
            symbol: "?".into(),
            owned: position.quantity(),
            pledged: Decimal::ZERO,
            action_seen: None,
        })
    };
    SyncedAccount {
        account: account(name),
        by: Broker::A,
        at_ms: 0,
        on: date(TODAY),
        trading_date: date(TODAY),
        holdings: of.filter_map(holding).collect(),
    }
}

impl Story<'_> {
    /// Hands over what gains are computed of.
    pub(crate) fn with_sources<T>(&self, work: impl FnOnce(Sources<'_>) -> T) -> T {
        let corrections = corrections(self.said);
        let trades = trades_of(self.trades, &corrections);
        self.with_trades(&trades, &corrections, work)
    }

    /// The same of other trades than those of the story.
    pub(crate) fn with_trades<T>(
        &self,
        trades: &Trades,
        corrections: &[(String, Correction)],
        work: impl FnOnce(Sources<'_>) -> T,
    ) -> T {
        let mut ledger = replay(trades, corrections, date(TODAY));
        add_charges(&mut ledger, &self.reports);
        let synced: Vec<SyncedAccount> =
            self.synced.iter().map(|name| sync(&ledger, name)).collect();
        let compared = Compared {
            trades,
            corrections,
            ledger: &ledger,
            persons: &self.persons,
        };
        let proof = reconcile(compared, &synced, &NextDay).unwrap();
        let sources = Sources {
            trades,
            corrections,
            ledger: &ledger,
            proof: &proof,
            persons: &self.persons,
            fmv: self.fmv,
        };
        work(sources)
    }

    pub(crate) fn gains(&self, fy: &str, person: &str) -> Gains {
        self.with_sources(|sources| gains(sources, FinancialYear::parse(fy).unwrap(), person))
    }

    /// The only part of a year.
    pub(crate) fn part(&self, fy: &str) -> PartGain {
        let gains = self.gains(fy, "self");
        let mut parts: Vec<PartGain> = gains
            .sales
            .into_iter()
            .flat_map(|sale| sale.parts)
            .collect();
        assert_eq!(parts.len(), 1, "{parts:?}");
        parts.remove(0)
    }
}

/// The trades of the shared samples.
pub(crate) const SAMPLE: &[&str] = &[
    "a 2023-05-11 buy 12 RELIANCE 2311.400000 INE002A01018 #40417733 10:41:09",
    "a 2023-08-02 buy 6 RELIANCE 2498.750000 INE002A01018 #2093 13:03:27 BSE",
    "a 2024-06-13 sell 9 RELIANCE 2877.150000 INE002A01018 #51440918 12:17:44",
    "a 2024-08-21 sell 9 RELIANCE 3012.600000 INE002A01018 #51770263 10:58:30",
    "a 2024-09-03 buy 15 INFY 1893.200000 INE009A01021 #61440017 09:31:02",
    "a 2024-09-03 sell 15 INFY 1901.850000 INE009A01021 #61449120 14:46:55",
    "a 2018-10-04 sell 450 SUZLON 6.350000 INE040H01021 #25770318 11:02:13",
    "a 2024-04-16 buy 90 GOLDBEES 60.850000 INF204KB17I5 #40880127 10:20:00",
    "a 2025-05-21 sell 90 GOLDBEES 79.120000 INF204KB17I5 #51820331 10:20:01",
    "a 2025-02-07 sell 4 EXAMPLERE 7.100000 INE0EXN20010 #300016 11:11:15",
    "a 2024-08-06 buy 7 EXAMPLEFILL 452.350000 INE0EXQ01013 #778800 12:40:35",
    "a 2024-09-11 buy 25 NIFTY24SEP25100CE 118.40 FO #82000001 10:00:00 exp=2024-09-26",
    "a 2024-09-13 sell 25 NIFTY24SEP25100CE 161.20 FO #82000902 14:00:00 exp=2024-09-26",
    "a 2024-09-11 sell 25 NIFTY24SEP24700PE 88.15 FO #82000003 10:00:05 exp=2024-09-26",
];

/// A line of a report as `long X INE0EXA01011 2023-05-11 2024-06-13 9 20802.6 25894.35`: section,
/// symbol, ISIN, both dates, quantity, cost and proceeds, `-` for none; then `fmv=`, `considered=`,
/// `gain=`, `brokerage=`, `stamp=`, `other=`, `stt=` or `expenses=` and an amount.
pub(crate) fn exit(line: u32, text: &str) -> ReportLine {
    let words: Vec<&str> = text.split_whitespace().collect();
    let stated = |at: usize| Some(words[at]).filter(|word| *word != "-");
    let cost = stated(6).map(decimal);
    let proceeds = decimal(words[7]);
    let mut exit = ReportLine {
        line,
        section: ReportSection::parse(words[0]).unwrap(),
        symbol: words[1].to_owned(),
        isin: stated(2).map(isin),
        acquired_on: stated(3).map(date),
        sold: stated(4).map(date),
        quantity: decimal(words[5]),
        cost,
        cost_considered: None,
        proceeds,
        gain: proceeds - cost.unwrap_or_default(),
        taxable: None,
        fmv: None,
        turnover: None,
        charges: Charges::default(),
        purchase_expenses: None,
        stt_paid: None,
    };
    for word in &words[8..] {
        let (name, value) = word.split_once('=').unwrap();
        let value = decimal(value);
        match name {
            "fmv" => exit.fmv = Some(value),
            "considered" => exit.cost_considered = Some(value),
            "gain" => exit.gain = value,
            "brokerage" => exit.charges.brokerage = Some(value),
            "stamp" => exit.charges.stamp_duty = Some(value),
            "other" => exit.charges.other = Some(value),
            "stt" => exit.charges.stt = Some(value),
            "expenses" => exit.purchase_expenses = Some(value),
            _ => panic!("{word}"),
        }
    }
    exit
}

/// A report of an account.
pub(crate) fn report(name: &str, format: FileFormat, lines: &[&str]) -> AccountReport {
    let lines = lines
        .iter()
        .enumerate()
        .map(|(at, text)| exit(at as u32 + 2, text))
        .collect();
    AccountReport {
        account: account(name),
        format,
        lines,
        income: Vec::new(),
    }
}

pub(crate) fn rupees(amount: &Amount) -> String {
    amount.rounded().unwrap().to_string()
}

pub(crate) fn known(amount: Option<&Amount>) -> String {
    amount.map_or("-".into(), rupees)
}
