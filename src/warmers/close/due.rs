//! Decides which trading date's close is due to be revalued, and which prices are its closing
//! prices. Pure.
//!
//! A price is a date's closing price if its own time lies on that date, not before the auction's
//! earliest end, or the last minute of trading for a share without derivatives, which has no
//! auction. A share that did not trade until the end has an older time. Its last trade is its
//! close, as at the exchange, but counts only if the same feed's index has reached its close: a
//! feed that stopped in the afternoon proves nothing. Of a share with derivatives that traded in
//! the minutes before the auction the last trade is no close: without an auction's price it is
//! their average. A price of an earlier date is never this date's close. From the first phase of
//! the next trading date on nothing is valued any more, because prices and holdings may be that
//! date's.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::previous_close::{PreviousClose, Reason};
use crate::base::{ClosingPrice, MarketDay, Quote, Source, Symbol, clock};
use crate::market::calendar::FinalClose;
use crate::market::{Derivatives, LastClose, MarketCalendar, Trading};
use crate::store::PriceOfClose;
use crate::warmers::quotes::feed_state::CLOSE_MARGIN;

/// What closing prices are judged by.
pub(crate) struct Judges<'a> {
    /// Whether the index among quotes of one source did not move in its session.
    pub index_stands: &'a dyn Fn(&[Quote]) -> Option<bool>,
    /// Decides what the quote's previous close is, given that.
    pub judge: &'a dyn Fn(&mut Quote, Option<bool>) -> PreviousClose,
    /// Whether a share has derivatives. The closing auction then makes its close, and the last
    /// price after it is the official close; that of another share may be its last trade.
    pub derivatives_of: &'a dyn Fn(&Symbol) -> Derivatives,
}

/// A close that can be revalued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub date: Date,
    /// Time of the official close.
    pub close: Timestamp,
    /// The earliest time that its prices can have.
    prices_from: Timestamp,
    /// The close of shares without an auction.
    without_auction: FinalClose,
    /// From this time on a trade of a share with derivatives is no close.
    reference_from: Option<Timestamp>,
    /// The trading date before; `None` if the calendar does not know it.
    pub session_before: Option<Date>,
    /// From this time on prices may be the next session's.
    pub until: Timestamp,
    /// The date of that session, or the maximum date if the calendar does not know it.
    pub next_session: Date,
}

impl Due {
    /// The latest trading date, once its close has settled and until the next one begins, or until
    /// midnight if the calendar does not know the next one.
    pub(crate) fn at(calendar: &MarketCalendar, now: Timestamp) -> Option<Self> {
        let LastClose { date, at, until } = calendar.last_close(now)?;
        let prices_from = calendar.closing_prices_from(date)?;
        let without_auction = calendar.close_of(Trading::WithoutAuction, date)?;
        let next_session = calendar.next_trading_date(date).unwrap_or(Date::MAX);
        let has_settled = now.duration_since(at)
            >= CLOSE_MARGIN[Source::BrokerA].min(CLOSE_MARGIN[Source::Public]);
        let session_before = calendar.previous_trading_date(date);
        has_settled.then_some(Self {
            date,
            close: at,
            prices_from,
            without_auction,
            reference_from: calendar.reference_from(date),
            session_before,
            until,
            next_session,
        })
    }

    /// The market day of portfolios that are valued at this close.
    pub(crate) fn market_day(&self) -> MarketDay {
        let Self { date, close, .. } = *self;
        MarketDay {
            today: date,
            session: date,
            day: Some(date),
            last_close: Some(close),
            close_before_open: None,
            session_before: self.session_before,
            stood_at: None,
        }
    }

    /// Whether `source` can be expected to send the official close.
    pub(crate) fn has_settled(&self, source: Source, now: Timestamp) -> bool {
        now < self.until && now.duration_since(self.close) >= CLOSE_MARGIN[source]
    }

    /// The closing price in `quote`, if it is one. `witness`: the same feed's quote of an index,
    /// which alone shows whether a quote without its own time is a close. `derivatives`: whether
    /// the share has any. `judge` decides what its previous close is.
    pub(crate) fn closing_price(
        &self,
        quote: &Quote,
        witness: Option<&Quote>,
        derivatives: Derivatives,
        judge: impl FnOnce(&mut Quote) -> PreviousClose,
    ) -> Option<PriceOfClose> {
        let own = match derivatives.trading() {
            Trading::WithAuction => FinalClose {
                at: self.close,
                prices_from: self.prices_from,
            },
            Trading::WithoutAuction => self.without_auction,
        };
        let is_after_trading = self.is_of_date(quote) && quote.as_of >= own.prices_from;
        let averaged_from = self
            .reference_from
            .filter(|_| derivatives == Derivatives::Some);
        let is_averaged = quote.timed && averaged_from.is_some_and(|from| quote.as_of >= from);
        let is_last_trade = || {
            let index_closed = witness.is_some_and(|index| self.is_after_trading(index));
            self.is_of_date(quote) && index_closed && !is_averaged
        };
        let believed = self.has_settled(quote.source, quote.asked)
            && (quote.timed && is_after_trading || is_last_trade());
        believed.then(|| {
            let judged = judge(&mut quote.clone());
            let close = ClosingPrice {
                price: quote.last_price,
                previous_close: judged.price,
                // Some feeds stamp it with the time of their answer.
                as_of_ms: quote.as_of.min(own.at).as_millisecond(),
                official: derivatives == Derivatives::Some
                    && quote.source == Source::BrokerA
                    && is_after_trading,
                base_ratio: match judged.reason {
                    Reason::Base(ratio) => Some(ratio),
                    _ => None,
                },
            };
            (quote.symbol.clone(), close)
        })
    }

    fn is_of_date(&self, quote: &Quote) -> bool {
        clock::zoned(quote.as_of).date() == self.date
    }

    fn is_after_trading(&self, quote: &Quote) -> bool {
        self.is_of_date(quote) && quote.as_of >= self.prices_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing;
    use jiff::SignedDuration;

    fn due(now: &str) -> Option<Due> {
        Due::at(&MarketCalendar::embedded(), now.parse().unwrap())
    }

    fn date_due(now: &str) -> Option<String> {
        due(now).map(|due| due.date.to_string())
    }

    #[test]
    fn a_date_is_due_from_its_settled_close_until_the_next_pre_open() {
        for (now, expected) in [
            // A Friday with a closing auction until 15:35.
            ("2026-11-20T08:59:59+05:30", Some("2026-11-19")),
            ("2026-11-20T09:00:00+05:30", None),
            ("2026-11-20T15:44:59+05:30", None),
            ("2026-11-20T15:45:00+05:30", Some("2026-11-20")),
            ("2026-11-20T23:59:59+05:30", Some("2026-11-20")),
            // The weekend, until Monday's pre-open.
            ("2026-11-22T12:00:00+05:30", Some("2026-11-20")),
            ("2026-11-23T08:59:59+05:30", Some("2026-11-20")),
            ("2026-11-23T09:00:00+05:30", None),
            // No auction before August 2026: the official close is at 15:30.
            ("2026-07-30T15:39:59+05:30", None),
            ("2026-07-30T15:40:00+05:30", Some("2026-07-30")),
            // From 7 December 2026 the auction ends at 15:40.
            ("2026-12-04T15:44:59+05:30", None),
            ("2026-12-04T15:45:00+05:30", Some("2026-12-04")),
            ("2026-12-07T15:49:59+05:30", None),
            ("2026-12-07T15:50:00+05:30", Some("2026-12-07")),
            // The last date after which the calendar knows anything.
            ("2026-12-31T15:50:00+05:30", Some("2026-12-31")),
            ("2027-01-01T01:00:00+05:30", None),
            ("2027-01-01T20:00:00+05:30", None),
            ("2027-01-04T20:00:00+05:30", None),
        ] {
            assert_eq!(date_due(now).as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_muhurat_session_is_a_close_of_its_own_and_a_holiday_is_none() {
        let calendar = MarketCalendar::embedded();
        let session: Date = "2025-10-21".parse().unwrap();
        let close = calendar.official_close(session).unwrap();
        let settled = close.checked_add(CLOSE_MARGIN[Source::BrokerA]).unwrap();
        assert_eq!(Due::at(&calendar, settled).unwrap().date, session);
        let opens = calendar.opens(session).unwrap();
        let before = opens.checked_sub(SignedDuration::from_secs(1)).unwrap();
        assert_eq!(Due::at(&calendar, before).unwrap().date.to_string(), "2025-10-20");
        assert_eq!(Due::at(&calendar, opens), None);
        // Nothing is official of a session whose hours are a placeholder.
        assert_eq!(date_due("2026-11-08T23:00:00+05:30"), None);
        // Republic Day, a Monday.
        assert_eq!(date_due("2026-01-26T18:00:00+05:30").as_deref(), Some("2026-01-23"));
    }

    fn unjudged(quote: &Quote) -> PreviousClose {
        PreviousClose {
            price: quote.previous_close,
            reason: Reason::Own,
        }
    }

    fn quote(source: Source, as_of: &str, received: &str) -> Quote {
        let quote = testing::quote("NSE:INFY", "100", as_of.parse().unwrap());
        Quote {
            asked: received.parse().unwrap(),
            source,
            ..quote
        }
    }

    #[test]
    fn only_prices_of_the_date_are_its_closing_prices() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        let evening = "2026-11-20T18:00:00+05:30";
        for (as_of, received, witness_as_of, expected) in [
            ("2026-11-20T15:35:00+05:30", evening, None, true),
            ("2026-11-20T15:29:59+05:30", evening, None, true),
            // The auction's orders may be matched from 15:28 on.
            ("2026-11-20T15:28:00+05:30", evening, None, true),
            ("2026-11-20T15:27:59+05:30", evening, None, false),
            // An illiquid share counts only with an index that has closed.
            ("2026-11-20T14:50:00+05:30", evening, None, false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:14:59+05:30"), false),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), true),
            ("2026-11-20T14:50:00+05:30", evening, Some("2026-11-20T15:28:30+05:30"), true),
            ("2026-11-19T15:35:00+05:30", evening, Some("2026-11-20T15:35:00+05:30"), false),
            // Received before the close had settled, and after the next session began.
            ("2026-11-20T15:35:00+05:30", "2026-11-20T15:44:00+05:30", None, false),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T08:59:00+05:30", None, true),
            ("2026-11-20T15:35:00+05:30", "2026-11-23T09:00:00+05:30", None, false),
            ("2026-11-23T09:00:01+05:30", "2026-11-23T09:00:02+05:30", None, false),
            // A weekend price is not Friday's close.
            ("2026-11-21T12:00:00+05:30", "2026-11-21T12:00:00+05:30", None, false),
        ] {
            let witness = witness_as_of.map(|at| quote(Source::BrokerA, at, received));
            let quote = quote(Source::BrokerA, as_of, received);
            let some = Derivatives::Some;
            let got = friday.closing_price(&quote, witness.as_ref(), some, |quote| unjudged(quote));
            assert_eq!(got.is_some(), expected, "{as_of} {received} {witness_as_of:?}");
        }
    }

    /// Which prices of a day are closes: time, the index's time, and the answer for a share with
    /// derivatives, one without, and one of which it is not known.
    fn closes_of(date: &str, rows: &[(&str, Option<&str>, [bool; 3])]) {
        let evening = format!("{date}T18:00:00+05:30");
        let day = due(&evening).unwrap();
        for (time, witness_time, expected) in rows {
            let at = |time: &str| format!("{date}T{time}+05:30");
            let witness = witness_time.map(|time| quote(Source::BrokerA, &at(time), &evening));
            let given = quote(Source::BrokerA, &at(time), &evening);
            let got = [Derivatives::Some, Derivatives::None, Derivatives::Unknown]
                .map(|of| day.closing_price(&given, witness.as_ref(), of, |quote| unjudged(quote)));
            let found = got.each_ref().map(Option::is_some);
            assert_eq!(&found, expected, "{date} {time} {witness_time:?}");
            let official = got.map(|close| close.is_some_and(|(_, close)| close.official));
            assert_eq!(&official[1..], [false, false], "{date} {time}: not an auction's");
        }
    }

    #[test]
    fn a_trade_before_the_auctions_earliest_end_is_no_closing_price_of_a_share_in_it() {
        let index = Some("15:40:00");
        closes_of(
            "2026-12-07",
            &[
                ("15:28:59", None, [false, false, false]),
                ("15:29:00", None, [false, true, false]),
                ("15:29:59", None, [false, true, false]),
                ("15:37:59", None, [false, true, false]),
                ("15:38:00", None, [true, true, true]),
                ("15:40:00", None, [true, true, true]),
                // The last trade of a share that stood, with an index that has closed. In the
                // quarter of an hour before the auction it is one of those that are averaged.
                ("11:00:00", Some("15:37:59"), [false, false, false]),
                ("11:00:00", index, [true, true, true]),
                ("15:14:59", index, [true, true, true]),
                ("15:15:00", index, [false, true, true]),
                ("15:29:59", index, [false, true, true]),
                ("15:37:59", index, [false, true, true]),
            ],
        );
        let index = Some("15:35:00");
        closes_of(
            "2026-12-04",
            &[
                ("15:14:59", None, [false, false, false]),
                ("15:27:59", None, [false, false, false]),
                ("15:28:00", None, [true, false, true]),
                ("15:29:00", None, [true, true, true]),
                ("14:59:59", index, [true, true, true]),
                ("15:00:00", index, [false, true, true]),
                ("15:14:59", index, [false, true, true]),
                ("15:20:00", index, [false, true, true]),
            ],
        );
        // No auction yet.
        closes_of(
            "2026-07-30",
            &[
                ("15:28:59", None, [false, false, false]),
                ("15:29:00", None, [true, true, true]),
                ("15:20:00", Some("15:30:00"), [true, true, true]),
            ],
        );
    }

    #[test]
    fn a_close_has_the_time_of_its_own_hours() {
        for (date, with, without) in [
            ("2026-12-04", "15:35:00", "15:30:00"),
            ("2026-12-07", "15:40:00", "15:30:00"),
        ] {
            let evening = format!("{date}T18:00:00+05:30");
            let given = quote(Source::BrokerA, &evening, &evening);
            for (of, time) in [(Derivatives::Some, with), (Derivatives::None, without)] {
                let day = due(&evening).unwrap();
                let close = day.closing_price(&given, None, of, |quote| unjudged(quote));
                let at: Timestamp = format!("{date}T{time}+05:30").parse().unwrap();
                assert_eq!(close.unwrap().1.as_of_ms, at.as_millisecond(), "{date} {of:?}");
            }
        }
    }

    #[test]
    fn the_late_provider_is_given_more_time() {
        let friday = due("2026-11-20T18:00:00+05:30").unwrap();
        for (now, broker_a, public) in [
            ("2026-11-20T15:44:59+05:30", false, false),
            ("2026-11-20T15:45:00+05:30", true, false),
            ("2026-11-20T16:05:00+05:30", true, true),
        ] {
            let now = now.parse().unwrap();
            assert_eq!(friday.has_settled(Source::BrokerA, now), broker_a, "{now}");
            assert_eq!(friday.has_settled(Source::Public, now), public, "{now}");
        }
    }
}
