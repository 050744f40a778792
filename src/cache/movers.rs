//! How the shares move of which signals are made: the document of `GET /api/market/movers`, and
//! the longer one with every share.
//!
//! The scheduler makes each once a second, and as soon as a price in it becomes stale, while
//! clients ask for it. A minute after the last request it is withdrawn, and the feeds are not asked
//! for its shares any more. A request that finds none makes one for itself from the same function,
//! which takes a tenth of a millisecond; the scheduler has the next one ready in its next turn.
//! Reads memory only and never waits.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::base::{Quote, Symbol, clock};
use crate::cache::demand::Demand;
use crate::cache::{L1, Peek, Pending};
use crate::http::PublishedJson;
use crate::http::document::published::LastAsked;
use crate::market::{InstrumentList, Sectors, Universe};
use crate::views::quotes as views;
use crate::views::values;
use crate::views::values::{Day, Delay, Instant, Mark, Money, Percent, Simulated};

/// Most shares in each of the two lists.
pub(crate) const LISTED_MAX: usize = 5;

/// Time after which the published document is made anew.
const RENEWED_MS: u64 = 1_000;

/// Which document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// The shares that moved most.
    Most,
    /// Besides them every share, each with its sector.
    All,
}

impl Listing {
    pub(crate) const ALL: [Self; 2] = [Self::Most, Self::All];
}

/// Both documents.
#[derive(Debug, Default)]
pub(crate) struct Movers([Renewed; Listing::ALL.len()]);

impl Movers {
    pub(crate) fn of(&self, listing: Listing) -> &Renewed {
        &self.0[listing as usize]
    }

    /// Milliseconds until one of them is to be made anew.
    pub(crate) fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        self.0
            .iter()
            .map(|each| each.wait_ms(now_mono_ms))
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// A published document. The scheduler alone calls what replaces it.
#[derive(Debug, Default)]
pub(crate) struct Renewed {
    document: PublishedJson,
    asked: LastAsked,
    made_mono_ms: AtomicU64,
    /// When it is to be made anew.
    due_mono_ms: AtomicU64,
}

impl Renewed {
    /// The document, for a request, which counts as having asked for it. There is none if nobody
    /// has asked in the last minute.
    pub(crate) fn asked_for(&self) -> &PublishedJson {
        self.asked.note();
        &self.document
    }

    /// Whether the document is to be made anew. Withdraws one that nobody asks for.
    pub(crate) fn is_due(&self, now_mono_ms: u64) -> bool {
        self.asked.look(now_mono_ms);
        self.document.make_asked(now_mono_ms);
        // At 0 nobody has asked yet.
        if self.asked.at_mono_ms() == 0 || !self.asked.is_recent(now_mono_ms) {
            self.document.withdraw();
            self.due_mono_ms.store(0, Relaxed);
            return false;
        }
        now_mono_ms >= self.due_mono_ms.load(Relaxed)
    }

    /// Makes the document anew and publishes it.
    pub(crate) fn publish(&self, now: &Moment<'_>) {
        let is_asked_since = self.asked.at_mono_ms() > self.made_mono_ms.load(Relaxed);
        let (json, stands_until_mono_ms) = now.document(is_asked_since);
        self.document.publish_asked(&json);
        let renewed_mono_ms = now.mono_ms.saturating_add(RENEWED_MS);
        let stale_mono_ms = stands_until_mono_ms.saturating_add(1);
        self.made_mono_ms.store(now.mono_ms, Relaxed);
        self.due_mono_ms
            .store(renewed_mono_ms.min(stale_mono_ms), Relaxed);
    }

    /// Milliseconds until the document is to be made anew.
    fn wait_ms(&self, now_mono_ms: u64) -> u64 {
        match self.due_mono_ms.load(Relaxed) {
            0 => u64::MAX,
            due_mono_ms => due_mono_ms.saturating_sub(now_mono_ms),
        }
    }
}

/// What the document is made of.
pub(crate) struct Moment<'a> {
    pub l1: &'a L1,
    pub pending: &'a Pending,
    pub universe: &'a Universe,
    pub instruments: &'a InstrumentList,
    pub sectors: &'a Sectors,
    pub listing: Listing,
    /// The latest trading date that has begun; `None` where the calendar does not know it.
    pub day: Option<Date>,
    pub mono_ms: u64,
}

impl Moment<'_> {
    /// The document, and the last moment at which all its prices are fresh. With `is_wanted` the
    /// feeds are asked for prices that are missing, and for the oldest.
    pub(crate) fn document(&self, is_wanted: bool) -> (Vec<u8>, u64) {
        let mut demand = Demand::default();
        let mut moves = Vec::new();
        let mut old = Vec::new();
        let mut listed = Vec::new();
        let mut stands_until_mono_ms = u64::MAX;
        for symbol in self.universe.symbols() {
            let seen = self.l1.peek(symbol.as_str(), self.mono_ms);
            if is_wanted {
                demand.note(symbol.clone(), &seen);
            }
            let Peek::Known {
                quote,
                stale,
                fresh_until_mono_ms,
                ..
            } = seen
            else {
                listed.push((symbol, None));
                continue;
            };
            if self.listing == Listing::All {
                listed.push((symbol, Some((quote.clone(), stale))));
            }
            let is_of_day = Some(clock::zoned(quote.as_of).date()) == self.day;
            let Some(change_pct) = quote.change_pct().filter(|_| is_of_day) else {
                continue;
            };
            if stale {
                old.push((change_pct, quote));
            } else {
                let until_mono_ms = u64::try_from(fresh_until_mono_ms).unwrap_or_default();
                stands_until_mono_ms = stands_until_mono_ms.min(until_mono_ms);
                moves.push((change_pct, quote));
            }
        }
        demand.want(self.l1, self.pending, self.mono_ms);
        // While no feed answers, the last list of the day is better than none.
        let is_stale = moves.is_empty() && !old.is_empty();
        if is_stale {
            moves = old;
        }
        moves.sort_by(|(one, of_one), (other, of_other)| {
            one.cmp(other)
                .then_with(|| of_one.symbol.cmp(&of_other.symbol))
        });
        let mut view = self.view(&moves, is_stale);
        if self.listing == Listing::All {
            view.list = Some(
                listed
                    .iter()
                    .map(|(symbol, quote)| self.share(symbol, quote))
                    .collect(),
            );
        }
        (values::to_vec(&view), stands_until_mono_ms)
    }

    /// `moves` come by their change in percent, the lowest first.
    fn view<'a>(&'a self, moves: &'a [(Decimal, Quote)], is_stale: bool) -> views::Movers<'a> {
        let declines = moves.partition_point(|(change, _)| *change < Decimal::ZERO);
        let advances = moves.len() - moves.partition_point(|(change, _)| *change <= Decimal::ZERO);
        let mover = |(_, quote): &'a (Decimal, Quote)| views::Mover {
            name: self.instruments.name_of(&quote.symbol),
            quote: views::Quote::of(quote, is_stale),
        };
        views::Movers {
            day: self.day.map(Day),
            shares: self.universe.symbols().len(),
            priced: moves.len(),
            stale: Mark(is_stale),
            advances,
            declines,
            unchanged: moves.len() - advances - declines,
            gainers: moves
                .iter()
                .rev()
                .take(advances.min(LISTED_MAX))
                .map(mover)
                .collect(),
            losers: moves
                .iter()
                .take(declines.min(LISTED_MAX))
                .map(mover)
                .collect(),
            list: None,
        }
    }

    /// A share of the whole list, with its quote and whether that is stale, if there is one.
    fn share<'a>(
        &'a self,
        symbol: &'a Symbol,
        quote: &'a Option<(Quote, bool)>,
    ) -> views::ListedShare<'a> {
        let of = quote.as_ref().map(|(quote, _)| quote);
        views::ListedShare {
            symbol,
            name: self.instruments.name_of(symbol),
            sector: self.sectors.of_ticker(symbol.ticker()),
            last_price: of.map(|quote| Money(quote.last_price)),
            change: of.and_then(Quote::change).map(Money),
            change_pct: of.and_then(Quote::change_pct).map(Percent),
            as_of: of.map(|quote| Instant(quote.as_of)),
            delay_s: of.and_then(|quote| quote.delay_s).map(Delay),
            simulated: Simulated(of.is_some_and(|quote| quote.simulated)),
            stale: Mark(quote.as_ref().is_some_and(|(_, stale)| *stale)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::{Clock, Source, testing};
    use crate::cache::pending::{CallCapacity, Class};
    use crate::cache::{Limits, Vouched};
    use crate::http::Preconditions;

    const SHARES: &str = "NSE:INFY\nNSE:TCS\nNSE:ITC\nNSE:SBIN\n";

    struct Scene {
        l1: L1,
        pending: Pending,
        universe: Universe,
        instruments: InstrumentList,
        sectors: Sectors,
        listing: Listing,
        movers: Movers,
    }

    impl Scene {
        fn new() -> Self {
            let clock = Clock::manual("2026-11-20T11:00:00+05:30".parse().unwrap());
            let limits = Limits {
                period_ms: 1_000,
                grace_ms: 1_500,
            };
            let l1 = L1::new(10);
            l1.freshness().set_limits(Source::BrokerA, limits, limits);
            let kick: Arc<dyn Fn() + Send + Sync> = Arc::new(|| {});
            Self {
                l1,
                pending: Pending::new(10, &clock, &kick),
                universe: Universe::parse(SHARES, "a test's list").unwrap(),
                instruments: InstrumentList::embedded(),
                sectors: Sectors::embedded(),
                listing: Listing::Most,
                movers: Movers::default(),
            }
        }

        /// A price that its source vouches for as of `mono_ms`, with a previous close of 100.
        fn price(&self, symbol: &str, price: i64, mono_ms: u64) {
            let as_of: jiff::Timestamp = "2026-11-20T11:00:00+05:30".parse().unwrap();
            let as_of = as_of + jiff::SignedDuration::from_millis(mono_ms as i64);
            let quote = testing::quote(symbol, &price.to_string(), as_of);
            let quote = Quote {
                previous_close: Some(100.into()),
                ..quote
            };
            let vouched = Vouched {
                mono_ms: mono_ms as i64,
                calls: 1,
            };
            self.l1.insert(quote, vouched, mono_ms);
        }

        fn moment(&self, mono_ms: u64) -> Moment<'_> {
            Moment {
                l1: &self.l1,
                pending: &self.pending,
                universe: &self.universe,
                instruments: &self.instruments,
                sectors: &self.sectors,
                listing: self.listing,
                day: Some(jiff::civil::date(2026, 11, 20)),
                mono_ms,
            }
        }

        /// A turn of the scheduler. Returns whether it made the document.
        fn turn(&self, mono_ms: u64) -> bool {
            let movers = self.movers.of(self.listing);
            let is_due = movers.is_due(mono_ms);
            if is_due {
                movers.publish(&self.moment(mono_ms));
            }
            is_due
        }

        /// What a request is answered with; `None` if it has to make its own.
        fn answer(&self) -> Option<(String, String)> {
            let published = self.movers.of(self.listing).asked_for().load();
            let answer = published
                .as_ref()?
                .select(None, Preconditions::NONE)
                .unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            Some((text(answer.headers()), text(answer.body())))
        }

        /// The quote as `GET /api/portfolio/live-prices` shows it, without its first brace.
        fn live(&self, symbol: &str, mono_ms: u64) -> String {
            let mut json = Vec::new();
            let view = self.l1.view(mono_ms);
            assert!(view.get(symbol).unwrap().write(&mut json));
            String::from_utf8(json).unwrap()[1..].to_owned()
        }
    }

    #[test]
    fn it_is_made_once_a_second_of_the_live_prices_and_as_soon_as_one_is_stale() {
        let scene = Scene::new();
        scene.price("NSE:INFY", 101, 0);
        scene.price("NSE:TCS", 98, 0);
        assert!(scene.answer().is_none());
        assert!(scene.turn(1));
        let first = scene.answer().unwrap();
        for symbol in ["NSE:INFY", "NSE:TCS"] {
            assert!(first.1.contains(&scene.live(symbol, 1)), "{symbol}: {}", first.1);
        }
        scene.price("NSE:INFY", 102, 500);
        assert!(!scene.turn(1_000));
        assert_eq!(scene.answer().unwrap(), first, "the same bytes within the second");
        assert!(scene.turn(1_001));
        let second = scene.answer().unwrap();
        assert!(second.1.contains(&scene.live("NSE:INFY", 1_001)), "{}", second.1);
        assert_ne!(second, first);
        // TCS is stale after two calls and the grace period, INFY half a second later.
        assert!(scene.turn(3_000) && scene.answer().unwrap().1.contains("\"priced\":2,"));
        assert_eq!(scene.movers.wait_ms(3_000), 501);
        assert!(!scene.turn(3_500) && scene.turn(3_501));
        let without = scene.answer().unwrap().1;
        assert!(without.contains("\"priced\":1,") && !without.contains("NSE:TCS"), "{without}");
        assert!(scene.live("NSE:TCS", 3_501).ends_with("\"stale\":true}"));
        // A price of another day is none of this one.
        let day = Some(jiff::civil::date(2026, 11, 23));
        let next = Moment {
            day,
            ..scene.moment(3_501)
        };
        assert!(
            String::from_utf8(next.document(false).0)
                .unwrap()
                .contains("\"priced\":0,")
        );
    }

    #[test]
    fn the_whole_list_has_each_share_with_its_sector_and_what_is_known_of_its_price() {
        let scene = Scene {
            listing: Listing::All,
            ..Scene::new()
        };
        scene.price("NSE:INFY", 101, 3_900);
        scene.price("NSE:SBIN", 99, 0);
        assert!(scene.answer().is_none() && scene.turn(4_000));
        let text = scene.answer().unwrap().1;
        let list = &text[text.find("\"list\":").unwrap()..];
        let infy = "{\"symbol\":\"NSE:INFY\",\"name\":\"Infosys\",\
                    \"sector\":\"Information Technology\",\"last_price\":101,\"change\":1,\
                    \"change_pct\":1,";
        assert!(list.contains(infy), "{list}");
        assert_eq!(list.matches("\"stale\":true").count(), 1, "{list}");
        let itc = "\"sector\":\"Fast Moving Consumer Goods\",\"last_price\":null,";
        assert!(list.contains(itc) && text.contains("\"priced\":1,"), "{text}");
        // The short document is another one, for which nobody has asked.
        assert!(scene.movers.of(Listing::Most).asked_for().load().is_none());
    }

    #[test]
    fn nobody_asks_for_a_minute_and_neither_it_nor_the_feeds_are_troubled() {
        let scene = Scene::new();
        let room = CallCapacity {
            symbols: 10,
            unlisted: 0,
            held: 10,
        };
        let missing = || {
            let taken = scene.pending.take(room);
            taken.symbols().count()
        };
        assert!(!scene.turn(0), "nobody has asked yet");
        assert!(scene.answer().is_none());
        assert!(scene.turn(1_000));
        assert_eq!((missing(), scene.pending.stats(Class::Held).symbols), (4, 0));
        assert!(scene.turn(2_000) && missing() == 0, "nobody has asked since");
        assert!(scene.turn(60_999));
        assert!(!scene.turn(61_000) && scene.movers.of(Listing::Most).asked_for().load().is_none());
        assert_eq!(scene.movers.wait_ms(61_000), u64::MAX);
        // That was a request, so the next turn has the document again.
        scene.price("NSE:ITC", 103, 61_100);
        assert!(scene.turn(61_200));
        assert!(
            scene
                .answer()
                .unwrap()
                .1
                .contains(&scene.live("NSE:ITC", 61_200))
        );
        assert_eq!(missing(), 3);
    }
}
