//! The files that a person exports at the brokers' websites, of the seeded accounts:
//! `/files/{a|b}/{user}/…` under the simulator's root. Connection threads run this.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use jiff::civil::{Date, date};
use rust_decimal::Decimal;
use zip::ZipWriter;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;

use crate::base::{Broker, clock};
use crate::sim::exchange::universe::rupees;
use crate::sim::server::message::Answer;
use crate::sim::server::message::Content;
use crate::sim::trade_history::{Event, EventKind, history};
use crate::sim::world::World;

const CSV: &str = "text/csv";
const TRADEBOOK: &str = "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,\
                         quantity,price,trade_id,order_id,order_execution_time";
const EXITS: &str = "Symbol,ISIN,Entry Date,Exit Date,Quantity,Buy Value,Sell Value,Profit,\
                     Period of Holding,Fair Market Value,Taxable Profit,Turnover,Brokerage,\
                     Exchange Transaction Charges,IPFT,SEBI Charges,CGST,SGST,IGST,Stamp Duty,STT";
const TRANSACTIONS: &str = "Stock Symbol, Company Name, ISIN Code, Action, Quantity, \
                            Transaction Price, Brokerage, Transaction Charges, StampDuty, \
                            Segment, STT Paid/Not Paid, Remarks, Transaction Date, Exchange,";
const GAINS: &str = "Stock Symbol\tISIN\tQty\tSale Date\tSale Rate\tSale Value\tSale Expenses\t\
                     Purchase Date\tPurchase Rate\tPrice as on 31st Jan 2018\t\
                     Purchase Price Considered\tPurchase Value\tPurchase Expenses\tProfit/Loss(-)";
/// Where the table of a workbook begins, below its preamble.
const SHEET_HEADER_ROW: usize = 9;
/// First and last day of the year of the reports.
const REPORT_YEAR: (Date, Date) = (date(2024, 4, 1), date(2025, 3, 31));
/// Day 0 of a workbook.
const SHEET_EPOCH: Date = date(1899, 12, 30);

/// Answers `/files/{path}`.
pub(super) fn answer(world: &World, path: &str) -> Answer {
    let missing = || Answer::text(404, "text/plain; charset=utf-8", "there is no such file");
    let mut parts = path.splitn(3, '/');
    let [Some(broker), Some(user), Some(name)] = [parts.next(), parts.next(), parts.next()] else {
        return missing();
    };
    let broker = match broker {
        "a" => Broker::A,
        "b" => Broker::B,
        _ => return missing(),
    };
    let today = clock::zoned(world.clock.now()).date();
    let events = history(world, broker, user, today);
    let (media_type, bytes) = match (broker, name) {
        (Broker::A, "tradebook.csv") => (CSV, tradebook(&events, false)),
        (Broker::A, "tradebook-middle-year.csv") => (CSV, tradebook(&events, true)),
        (Broker::A, "tradebook.xlsx") => {
            let kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
            (kind, workbook(user, &events).unwrap_or_default())
        }
        (Broker::A, "taxpnl-2024-25.zip") => {
            ("application/zip", tax_report(user, &events).unwrap_or_default())
        }
        (Broker::B, "all-transactions.csv") => (CSV, transactions(&events, false)),
        (Broker::B, "all-transactions-middle-year.csv") => (CSV, transactions(&events, true)),
        (Broker::B, "capital-gains-2024-25.xls") => {
            ("application/vnd.ms-excel", capital_gains(&events))
        }
        _ => return missing(),
    };
    Answer {
        status: 200,
        content: Content::Text(media_type, bytes),
        rejected: false,
    }
}

/// The trades of broker A's tradebook, as its cells. A large purchase is two executions.
fn executions(events: &[Event<'_>], missing: bool) -> Vec<[String; 13]> {
    let mut rows = Vec::new();
    let asked = |event: &&Event<'_>| event.kind.is_trade() && event.is_missing == missing;
    for event in events.iter().filter(asked) {
        let is_split_up = event.kind == EventKind::Buy && event.quantity > 20;
        let first = if is_split_up {
            event.quantity / 3
        } else {
            event.quantity
        };
        let side = if event.kind.is_purchase() {
            "buy"
        } else {
            "sell"
        };
        for (part, quantity) in [first, event.quantity - first].into_iter().enumerate() {
            if quantity == 0 {
                continue;
            }
            rows.push([
                event.share.symbol.clone(),
                event.isin.clone(),
                event.date.to_string(),
                event.share.exchange.clone(),
                "EQ".into(),
                "EQ".into(),
                side.into(),
                "false".into(),
                format!("{quantity}.000000"),
                format!("{}0000", rupees(event.paise)),
                (40_000_000 + 10 * event.number + part as i64).to_string(),
                (1_300_000_000_000_000 + event.number).to_string(),
                format!("{}T{}", event.date, event.time),
            ]);
        }
    }
    rows
}

fn tradebook(events: &[Event<'_>], missing: bool) -> Vec<u8> {
    let mut text = format!("{TRADEBOOK}\n");
    for row in executions(events, missing) {
        text.push_str(&row.join(","));
        text.push('\n');
    }
    text.into_bytes()
}

/// The tradebook as broker A's website makes a workbook of it: dates and times are numbers of days.
fn workbook(user: &str, events: &[Event<'_>]) -> ZipResult<Vec<u8>> {
    let title = |name: &str| {
        let words = name.split('_').map(|word| match word {
            "isin" => "ISIN".into(),
            "id" => "ID".into(),
            word => word[..1].to_uppercase() + &word[1..],
        });
        words.collect::<Vec<String>>().join(" ")
    };
    let mut sheet = String::from("<worksheet><sheetData>");
    let _ = write!(sheet, "<row r=\"1\">{}{}</row>", text(0, 1, "Client ID"), text(1, 1, user));
    let _ = write!(sheet, "<row r=\"{SHEET_HEADER_ROW}\">");
    for (column, name) in TRADEBOOK.split(',').enumerate() {
        sheet.push_str(&text(column, SHEET_HEADER_ROW, &title(name)));
    }
    sheet.push_str("</row>");
    for (row, cells) in (SHEET_HEADER_ROW + 1..).zip(executions(events, false)) {
        let _ = write!(sheet, "<row r=\"{row}\">");
        for (column, cell) in cells.iter().enumerate() {
            let written = match column {
                2 => figure(column, row, &days(cell).to_string()),
                12 => figure(column, row, &format!("{:.12}", days(cell) as f64 + day_part(cell))),
                7 => format!("<c r=\"H{row}\" t=\"b\"><v>0</v></c>"),
                8..=10 => figure(column, row, &cell.parse::<f64>().unwrap_or_default().to_string()),
                _ => text(column, row, cell),
            };
            sheet.push_str(&written);
        }
        sheet.push_str("</row>");
    }
    sheet.push_str("</sheetData></worksheet>");
    let names =
        "<workbook><sheets><sheet name=\"Equity\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>";
    let relations = "<Relationships><Relationship Id=\"r1\" Target=\"worksheets/sheet1.xml\"/>\
                     </Relationships>";
    zipped(&[
        ("xl/workbook.xml".into(), names.into()),
        ("xl/_rels/workbook.xml.rels".into(), relations.into()),
        ("xl/worksheets/sheet1.xml".into(), sheet),
    ])
}

fn letter(column: usize) -> char {
    ('A'..='Z').nth(column).unwrap_or('Z')
}

fn text(column: usize, row: usize, text: &str) -> String {
    let text = text.replace('&', "&amp;");
    format!("<c r=\"{}{row}\" t=\"str\"><v>{text}</v></c>", letter(column))
}

fn figure(column: usize, row: usize, figure: &str) -> String {
    format!("<c r=\"{}{row}\"><v>{figure}</v></c>", letter(column))
}

/// The days from a workbook's day 0 to a date that a cell begins with.
fn days(cell: &str) -> i32 {
    let date = cell
        .get(..10)
        .and_then(|day| day.parse::<Date>().ok())
        .unwrap_or(SHEET_EPOCH);
    (date - SHEET_EPOCH).get_days()
}

/// The part of a day that a cell's time is.
fn day_part(cell: &str) -> f64 {
    let time = cell.get(11..).unwrap_or_default();
    let parts = time
        .split(':')
        .map(|part| part.parse::<u32>().unwrap_or_default());
    f64::from(parts.fold(0, |sum, part| sum * 60 + part)) / 86_400.0
}

fn zipped(members: &[(String, String)]) -> ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in members {
        archive.start_file(name.as_str(), SimpleFileOptions::default())?;
        archive.write_all(text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

/// A sale against one purchase, as the brokers match them: the oldest first.
struct Exit<'a> {
    event: &'a Event<'a>,
    acquired: Date,
    quantity: i64,
    cost_paise: i64,
    is_in_a_day: bool,
}

impl Exit<'_> {
    fn proceeds_paise(&self) -> i64 {
        self.event.paise * self.quantity
    }

    fn gain_paise(&self) -> i64 {
        self.proceeds_paise() - self.cost_paise
    }

    fn is_long(&self) -> bool {
        self.acquired
            .checked_add(jiff::Span::new().years(1))
            .is_ok_and(|day| self.event.date > day)
    }

    /// The part of the report that has it.
    fn section(&self) -> &'static str {
        if self.is_in_a_day {
            "Intraday"
        } else if self.is_long() {
            "Long Term"
        } else {
            "Short Term"
        }
    }
}

struct Lot {
    acquired: Date,
    quantity: i64,
    cost_paise: i64,
}

/// The exits of the reports' year.
fn exits<'a>(events: &'a [Event<'a>]) -> Vec<Exit<'a>> {
    let mut lots: HashMap<&str, VecDeque<Lot>> = HashMap::new();
    let mut exits = Vec::new();
    let mut bought_today = 0;
    for event in events {
        let Event {
            date,
            quantity,
            paise,
            ..
        } = *event;
        let of_share = lots.entry(event.share.key.as_str()).or_default();
        match event.kind {
            EventKind::Buy => {
                let cost_paise = quantity * paise;
                of_share.push_back(Lot {
                    acquired: date,
                    quantity,
                    cost_paise,
                });
            }
            EventKind::Bonus => {
                of_share.push_back(Lot {
                    acquired: date,
                    quantity,
                    cost_paise: 0,
                });
            }
            EventKind::Split => of_share.iter_mut().for_each(|lot| lot.quantity *= 2),
            EventKind::BuyInADay => bought_today = paise,
            EventKind::SellInADay => {
                let cost_paise = bought_today * quantity;
                exits.push(Exit {
                    event,
                    acquired: date,
                    quantity,
                    cost_paise,
                    is_in_a_day: true,
                });
            }
            EventKind::Sell => {
                let mut left = quantity;
                while let Some(lot) = of_share.front_mut().filter(|_| left > 0) {
                    let taken = left.min(lot.quantity);
                    let cost_paise = lot.cost_paise * taken / lot.quantity;
                    let acquired = lot.acquired;
                    exits.push(Exit {
                        event,
                        acquired,
                        quantity: taken,
                        cost_paise,
                        is_in_a_day: false,
                    });
                    lot.quantity -= taken;
                    lot.cost_paise -= cost_paise;
                    left -= taken;
                    if lot.quantity == 0 {
                        of_share.pop_front();
                    }
                }
            }
        }
    }
    exits.retain(|exit| (REPORT_YEAR.0..=REPORT_YEAR.1).contains(&exit.event.date));
    exits
}

fn tax_report(user: &str, events: &[Event<'_>]) -> ZipResult<Vec<u8>> {
    let exits = exits(events);
    let folder = format!("taxpnl-{user}-2024_2025-Q1-Q4");
    let (from, to) = REPORT_YEAR;
    let mut members = Vec::new();
    for section in ["Long Term", "Short Term", "Intraday"] {
        let mut text = format!("{EXITS}\n");
        for exit in exits.iter().filter(|exit| exit.section() == section) {
            let gain = rupees(exit.gain_paise()).normalize();
            let held = (exit.event.date - exit.acquired).get_days();
            let turnover = if exit.is_in_a_day {
                gain.abs()
            } else {
                Decimal::ZERO
            };
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{gain},{held},0,{gain},{turnover},0,0,0,0,0,0,0,0,0",
                exit.event.share.symbol,
                exit.event.isin,
                exit.acquired,
                exit.event.date,
                exit.quantity,
                rupees(exit.cost_paise).normalize(),
                rupees(exit.proceeds_paise()).normalize(),
            );
        }
        let name = format!("{folder}/Tradewise Exits from {from} to {to}-Equity - {section}.csv");
        members.push((name, text));
    }
    zipped(&members)
}

/// Broker B's list of all transactions. A bonus stands in it without a price; a split does not.
fn transactions(events: &[Event<'_>], missing: bool) -> Vec<u8> {
    let mut text = format!("{TRANSACTIONS}\r\n");
    for event in events.iter().filter(|event| event.is_missing == missing) {
        let is_bonus = event.kind == EventKind::Bonus;
        if !is_bonus && !event.kind.is_trade() {
            continue;
        }
        let is_bought = is_bonus || event.kind.is_purchase();
        let value = if is_bonus {
            Decimal::ZERO
        } else {
            rupees(event.paise * event.quantity)
        };
        let part = |divisor: i64| (value / Decimal::from(divisor)).round_dp(2);
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{},Rolling,{},{},{},NSE,\r\n",
            event.name,
            event.share.name.replace(',', ""),
            event.isin,
            if is_bought { "Buy" } else { "Sell" },
            event.quantity,
            if is_bonus {
                Decimal::ZERO
            } else {
                rupees(event.paise)
            },
            part(400),
            part(30_000),
            if is_bought {
                part(6_667)
            } else {
                Decimal::ZERO
            },
            if is_bonus { "STT Not Paid" } else { "STT Paid" },
            if is_bonus { "BONUS 1:1" } else { "" },
            event.date.strftime("%d-%b-%Y"),
        );
    }
    text.into_bytes()
}

/// Broker B's capital gains: text by tabs, named as a workbook.
fn capital_gains(events: &[Event<'_>]) -> Vec<u8> {
    let exits = exits(events);
    let mut text = format!(
        "Account\t8500000000\r\nName\tSIMULATED INVESTOR\r\nCapital Gain\t2024-2025\r\n{GAINS}\r\n"
    );
    let mut all = Decimal::ZERO;
    for (title, is_long) in [("Long", true), ("Short", false)] {
        let _ = write!(text, "{title} Term Capital Gain (STT paid)\r\n");
        let mut sum = Decimal::ZERO;
        let of_term = |exit: &&Exit<'_>| !exit.is_in_a_day && exit.is_long() == is_long;
        for exit in exits.iter().filter(of_term) {
            let quantity = Decimal::from(exit.quantity);
            let gain = rupees(exit.gain_paise());
            let rate = (rupees(exit.cost_paise) / quantity).round_dp(4).normalize();
            let day = |day: Date| day.strftime("%d-%b-%y").to_string();
            let _ = write!(
                text,
                "{}\t{}\t{}\t{}\t{}\t{}\t0\t{}\t{rate}\tNA\tNA\t{}\t0\t{gain}\r\n",
                exit.event.name,
                exit.event.isin,
                exit.quantity,
                day(exit.event.date),
                rupees(exit.event.paise),
                rupees(exit.proceeds_paise()),
                day(exit.acquired),
                rupees(exit.cost_paise),
            );
            sum += gain;
        }
        let _ = write!(text, "Sub Total{}{sum}\t\r\n", "\t".repeat(12));
        all += sum;
    }
    let _ = write!(text, "Grand Total{}{all}\t\r\n", "\t".repeat(12));
    text.into_bytes()
}

#[cfg(test)]
#[path = "trade_files_tests.rs"]
mod tests;
