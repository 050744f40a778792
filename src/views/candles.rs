//! `GET /api/market/candles`.

use rust_decimal::Decimal;

use crate::base;
use crate::base::candle::PRICE_DIGITS;
use crate::base::{Source, Symbol};
use crate::http::document::coding::content_tag;
use crate::views::signals::Progress;
use crate::views::states::DataState;
use crate::views::values;
use crate::views::values::{Day, Exact, Mark, Simulated, documents};

documents! {
    /// A finished trading day of a symbol.
    #[derive(Copy)]
    pub(crate) struct Candle {
        pub date: Day,
        pub open: Exact,
        pub high: Exact,
        pub low: Exact,
        pub close: Exact,
        /// Shares traded.
        pub volume: i64,
    }

    /// What all candles of a symbol have in common.
    pub(crate) struct CandlesHead<'a> {
        pub symbol: &'a Symbol,
        /// `ready` if candles are listed. Without any: `loading` while they are fetched,
        /// `unreachable` while they cannot be, `none` if none are kept of the symbol.
        pub state: DataState,
        /// Why there are none; present with `unreachable`.
        pub detail?: Option<&'a str>,
        /// Shares whose candles are there, of those of which signals are made; present with
        /// `loading`, while it is known.
        pub progress?: Option<Progress>,
        /// Null without candles.
        pub source: Option<Source>,
        pub(crate) simulated?: Simulated,
        /// Present, and true, while no signals are made of the candles: prices look as if they were
        /// not adjusted for a split or another corporate action, all are to be fetched again, or
        /// more than the last session is missing.
        pub suspect?: Mark,
    }
}

impl Candle {
    fn of(candle: &base::Candle) -> Self {
        let price = |price_e4: i64| Exact(Decimal::new(price_e4, PRICE_DIGITS));
        Self {
            date: Day(candle.date),
            open: price(candle.open_e4),
            high: price(candle.high_e4),
            low: price(candle.low_e4),
            close: price(candle.close_e4),
            volume: candle.volume,
        }
    }
}

/// A symbol's candles as JSON, from which a request copies the newest.
#[derive(Debug)]
pub(crate) struct CandlesDocument {
    /// The object up to the member `count`.
    head: Vec<u8>,
    /// The candles, separated by commas.
    rows: Vec<u8>,
    /// Where each candle begins in `rows`.
    starts: Vec<usize>,
    /// A hash of head and rows.
    tag: String,
}

impl<'a> CandlesHead<'a> {
    /// Of a symbol without candles.
    pub(crate) fn without(
        symbol: &'a Symbol,
        state: DataState,
        detail: Option<&'a str>,
        progress: Option<Progress>,
    ) -> Self {
        Self {
            symbol,
            state,
            detail,
            progress,
            source: None,
            simulated: Simulated(false),
            suspect: Mark(false),
        }
    }
}

impl CandlesDocument {
    /// `candles` come oldest first. Takes about a millisecond for 600 of them, so it belongs on an
    /// OS thread.
    pub(crate) fn of(head: &CandlesHead<'_>, candles: &[base::Candle]) -> Self {
        let mut head = values::to_vec(head);
        // Further members follow.
        head.pop();
        let mut rows = Vec::new();
        let mut starts = Vec::with_capacity(candles.len());
        for candle in candles {
            if !rows.is_empty() {
                rows.push(b',');
            }
            starts.push(rows.len());
            values::write(&mut rows, &Candle::of(candle));
        }
        let tag = content_tag(&[head.as_slice(), &rows].concat());
        Self {
            head,
            rows,
            starts,
            tag,
        }
    }

    /// How many candles the document with the newest `max` has.
    pub(crate) fn count(&self, max: usize) -> usize {
        max.min(self.starts.len())
    }

    /// Names the content of the document with the newest `max` candles.
    pub(crate) fn tag(&self, max: usize) -> String {
        format!("{}-{}", self.tag, self.count(max))
    }

    /// Memory of the newest `max` candles.
    pub(crate) fn bytes(&self, max: usize) -> usize {
        self.rows(max).len()
    }

    fn rows(&self, max: usize) -> &[u8] {
        let from = self.starts.len() - self.count(max);
        self.starts
            .get(from)
            .map_or(&[], |start| &self.rows[*start..])
    }

    /// Appends the document with the newest `max` candles.
    pub(crate) fn write(&self, max: usize, out: &mut Vec<u8>) {
        let count = self.count(max);
        let rows = self.rows(max);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(format!(",\"count\":{count},\"candles\":[").as_bytes());
        out.extend_from_slice(rows);
        out.extend_from_slice(b"]}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::quotes::joined::Candles;

    fn candle(day: i8, close_e4: i64) -> base::Candle {
        let date = jiff::civil::date(2026, 11, day);
        base::Candle {
            date,
            open_e4: 1,
            high_e4: 15_141_500,
            low_e4: 10_000,
            close_e4,
            volume: 1 << 40,
        }
    }

    #[test]
    fn a_joined_document_is_the_described_one() {
        let symbol = Symbol::parse("NSE:M&M").unwrap();
        let head = CandlesHead {
            symbol: &symbol,
            state: DataState::Ready,
            detail: None,
            progress: None,
            source: Some(Source::Public),
            simulated: Simulated(true),
            suspect: Mark(false),
        };
        let candles: Vec<_> = (1..=5)
            .map(|day| candle(day, i64::from(day) * 15_005))
            .collect();
        let document = CandlesDocument::of(&head, &candles);
        let mut tags = Vec::new();
        for max in [0, 1, 3, 5, 600] {
            let mut joined = Vec::new();
            document.write(max, &mut joined);
            tags.push(document.tag(max));
            let shown = &candles[5 - max.min(5)..];
            let whole = Candles {
                head: head.clone(),
                count: shown.len(),
                candles: shown.iter().map(Candle::of).collect(),
            };
            let expected = values::to_vec(&whole);
            assert_eq!(String::from_utf8(joined).unwrap(), String::from_utf8(expected).unwrap());
        }
        assert_eq!(tags[3], tags[4], "the same bytes");
        tags.dedup();
        assert_eq!(tags.len(), 4);
    }

    #[test]
    fn prices_have_every_digit_and_no_other() {
        let written =
            String::from_utf8(values::to_vec(&Candle::of(&candle(2, 14_129_505)))).unwrap();
        let expected = concat!(
            r#"{"date":"2026-11-02","open":0.0001,"high":1514.15,"low":1,"close":1412.9505,"#,
            r#""volume":1099511627776}"#
        );
        assert_eq!(written, expected);
    }
}
