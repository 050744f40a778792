//! What a user does with the trades ledger: files that are confirmed, left as previews and undone,
//! and what was acknowledged of them.

use std::collections::{BTreeMap, BTreeSet};

use sonic_rs::{JsonContainerTrait, JsonValueTrait};

use super::users::{Account, is_outage, number};

/// A demat account that no sync writes to.
const ACCOUNT: &str = "files";
const HEADER: &str = "symbol,isin,trade_date,exchange,segment,series,trade_type,auction,quantity,\
    price,trade_id,order_id,order_execution_time\n";
/// More files than this are not brought in a day: all their trades are in one page.
const FILES_MAX: usize = 60;
/// Rows of a file at most.
const ROWS_MAX: usize = 6;

/// What a ledger has to show.
#[derive(Default)]
pub struct Books {
    /// Rows of each file that was brought.
    files: Vec<usize>,
    /// The import of each file that is confirmed.
    live: BTreeMap<usize, i64>,
    /// Files of which a confirm or an undo was asked for and not acknowledged.
    doubtful: BTreeSet<usize>,
}

impl Account {
    /// One act of several.
    pub fn keep_books(&mut self) {
        match self.rng.u8(..4) {
            0 => self.undo(),
            1 => self.expect_books(),
            _ => self.bring(),
        }
    }

    /// Brings a file, and mostly confirms it.
    fn bring(&mut self) {
        let (file, rows) = {
            let rows = self.rng.usize(1..=ROWS_MAX);
            let files = &mut self.judge.borrow_mut().books.files;
            if files.len() >= FILES_MAX {
                return;
            }
            files.push(rows);
            (files.len() - 1, rows)
        };
        let line = |row: usize| {
            format!(
                "HDFCBANK,INE040A01034,2024-03-{:02},NSE,EQ,EQ,buy,false,{}.000000,1448.250000,\
                 {},1,2024-03-01T10:00:00\n",
                1 + row,
                1 + row,
                trade_id(file, row)
            )
        };
        let body: String = HEADER.to_owned() + &(0..rows).map(line).collect::<String>();
        let target = format!("/api/trades/imports?account={ACCOUNT}");
        let answer = self.ask_with("POST", &target, "text/csv", &body);
        if is_outage(answer.status) {
            return;
        }
        assert_eq!(answer.status, 201, "{}", answer.text());
        let json = answer.json();
        let counted = [&json["rows"], &json["new"]].map(JsonValueTrait::as_u64);
        assert_eq!(counted, [Some(rows as u64); 2], "{}", answer.text());
        if self.rng.u8(..4) == 0 {
            return;
        }
        let id = json["id"].as_i64().unwrap();
        let answer = self.ask("POST", &format!("/api/trades/imports/{id}/confirm"), "");
        let books = &mut self.judge.borrow_mut().books;
        match answer.status {
            200 => drop(books.live.insert(file, id)),
            status => {
                assert!(is_outage(status), "{status} {}", answer.text());
                books.doubtful.insert(file);
            }
        }
    }

    /// Undoes one of the files.
    fn undo(&mut self) {
        let files: Vec<usize> = self.judge.borrow().books.live.keys().copied().collect();
        let Some(file) = self.rng.choice(files) else {
            return;
        };
        let id = self.judge.borrow_mut().books.live.remove(&file).unwrap();
        let answer = self.ask("DELETE", &format!("/api/trades/imports/{id}"), "");
        if answer.status != 204 {
            assert!(is_outage(answer.status), "{} {}", answer.status, answer.text());
            self.judge.borrow_mut().books.doubtful.insert(file);
        }
    }

    /// Each file is whole or absent, as it was acknowledged, and the lots are those of its trades.
    pub fn expect_books(&mut self) {
        let target = format!("/api/trades?account={ACCOUNT}&limit=500");
        let answer = self.ask("GET", &target, "");
        if is_outage(answer.status) {
            return;
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let mut found = BTreeSet::new();
        for trade in json["trades"].as_array().unwrap() {
            found.insert(trade["trade_id"].as_str().unwrap().to_owned());
        }
        let mut held = 0;
        {
            let books = &self.judge.borrow().books;
            for (file, rows) in books.files.iter().enumerate() {
                let there = (0..*rows)
                    .filter(|row| found.contains(&trade_id(file, *row)))
                    .count();
                assert!(there == 0 || there == *rows, "file {file}: {there} of {rows} trades");
                let is_expected = books.live.contains_key(&file);
                let is_there = there > 0;
                assert!(
                    is_there == is_expected || books.doubtful.contains(&file),
                    "file {file}: is there {is_there}, was acknowledged {is_expected}"
                );
                held += there * (there + 1) / 2;
            }
            // What is not known may happen in between.
            if !books.doubtful.is_empty() {
                return;
            }
        }
        let target = format!("/api/trades/lots?account={ACCOUNT}");
        let answer = self.ask("GET", &target, "");
        if !is_outage(answer.status) {
            let json = answer.json();
            let lots = json["lots"].as_array().unwrap().iter();
            let sum: rust_decimal::Decimal = lots.map(|lot| number(&lot["quantity"])).sum();
            assert_eq!(sum, held.into(), "{}", answer.text());
        }
    }
}

fn trade_id(file: usize, row: usize) -> String {
    format!("{}", 77_000_000 + 100 * file + row)
}
