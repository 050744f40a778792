//! Writes CSV that a spreadsheet can open without running anything of it. Pure.

use rust_decimal::Decimal;

use crate::base::json;
use crate::ledger::csv_cell::csv_cell;

/// `Content-Type` of the documents.
pub(super) const CSV_TYPE: &str = "text/csv; charset=utf-8";

/// A document of rows (RFC 4180).
pub(super) struct Csv {
    out: Vec<u8>,
    is_row_begun: bool,
}

impl Csv {
    pub(super) fn with_columns(names: &[&str]) -> Self {
        let mut csv = Self {
            out: Vec::new(),
            is_row_begun: false,
        };
        for name in names {
            csv.text(name);
        }
        csv.end_row();
        csv
    }

    /// Adds a cell of text, which no spreadsheet runs.
    pub(super) fn text(&mut self, text: &str) {
        self.separate();
        self.out.extend_from_slice(csv_cell(text).as_bytes());
    }

    /// Adds a cell of a number, with every digit; empty if it is not known.
    pub(super) fn number(&mut self, number: Option<Decimal>) {
        self.separate();
        if let Some(number) = number {
            self.out
                .extend_from_slice(json::shortest(number).to_string().as_bytes());
        }
    }

    pub(super) fn end_row(&mut self) {
        self.out.extend_from_slice(b"\r\n");
        self.is_row_begun = false;
    }

    pub(super) fn finished(self) -> Vec<u8> {
        self.out
    }

    fn separate(&mut self) {
        if self.is_row_begun {
            self.out.push(b',');
        }
        self.is_row_begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_a_spreadsheet_would_run_is_text() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd", "'+cmd"),
            ("-x", "'-x"),
            ("\tx", "'\tx"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("=A,\"B\"", "\"'=A,\"\"B\"\"\""),
            ("\r=1", "\"'\r=1\""),
            ("-12.5", "-12.5"),
            ("M&M", "M&M"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            let mut csv = Csv::with_columns(&["a"]);
            csv.text(text);
            csv.text("b");
            csv.end_row();
            let written = String::from_utf8(csv.finished()).unwrap();
            assert_eq!(written, format!("a\r\n{cell},b\r\n"), "{text:?}");
        }
    }
}
