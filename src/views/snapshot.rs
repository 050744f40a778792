//! `GET /api/index/snapshot`. Made when its data changes, not for each request.

use super::signals::{ShownSignals, Signal};
use super::values::{Day, Delay, Instant, Money, Percent, Simulated, documents};
use crate::base::{Source, Symbol};
use crate::market::snapshot::{Level, SectorChange};
use crate::market::{self, Age, Phase};
use crate::views::values;
use jiff::Timestamp;

documents! {
    /// The index snapshot.
    pub struct Snapshot<'a> {
        /// Last price of the primary large-cap index (NIFTY 50).
        pub index1_price: Money,
        /// Percent change of the primary large-cap index (NIFTY 50) from the previous close of the
        /// price's session; null where that is not known.
        pub index1_change: Option<Percent>,
        /// Delay of the source of the primary large-cap index; only beside `index1_source`, if that
        /// source runs behind.
        pub index1_delay_s?: Option<Delay>,
        /// Whether the price of the primary large-cap index is stale. Present only if its
        /// staleness, source or delay differs from that in `market`.
        pub index1_stale?: Option<bool>,
        /// Source of the price of the primary large-cap index; only beside `index1_stale`.
        pub index1_source?: Option<Source>,
        /// Last price of the bank index (NIFTY BANK).
        pub bankindex_price: Money,
        /// Percent change of the bank index (NIFTY BANK) from the previous close of the price's
        /// session; null where that is not known.
        pub bankindex_change: Option<Percent>,
        /// Time of the price of the bank index; only if it differs from `market.as_of_ist`.
        pub bankindex_as_of?: Option<Instant>,
        /// Delay of the source of the bank index; only beside `bankindex_source`, if that source
        /// runs behind.
        pub bankindex_delay_s?: Option<Delay>,
        /// Whether the price of the bank index is stale. Present only if its staleness, source or
        /// delay differs from that in `market`.
        pub bankindex_stale?: Option<bool>,
        /// Source of the price of the bank index; only beside `bankindex_stale`.
        pub bankindex_source?: Option<Source>,
        /// Last price of the second exchange's broad index (SENSEX).
        pub index2_price: Money,
        /// Percent change of the second exchange's broad index (SENSEX) from the previous close of
        /// the price's session; null where that is not known.
        pub index2_change: Option<Percent>,
        /// Time of the price of the second exchange's broad index; only if it differs from
        /// `market.as_of_ist`.
        pub index2_as_of?: Option<Instant>,
        /// Delay of the source of the second exchange's broad index; only beside `index2_source`,
        /// if that source runs behind.
        pub index2_delay_s?: Option<Delay>,
        /// Whether the price of the second exchange's broad index is stale. Present only if its
        /// staleness, source or delay differs from that in `market`.
        pub index2_stale?: Option<bool>,
        /// Source of the price of the second exchange's broad index; only beside `index2_stale`.
        pub index2_source?: Option<Source>,
        /// The best signal of each symbol, highest confidence first, at most 10; none below 0.5,
        /// and none of a symbol with signals of both directions.
        pub signals: &'a [Signal<'static>],
        /// Date of the list of signals; null until there is one. An empty list with a date means
        /// that the date has no signals.
        pub signals_as_of: Option<Day>,
        /// Sectors in a fixed order.
        pub sectors: Vec<Sector<'a>>,
        pub market: Market,
    }

    pub struct Sector<'a> {
        pub name: &'a str,
        pub symbol: &'a Symbol,
        /// Percent change from the previous close of the price's session. Null where that is not
        /// known, or if `market.source` has no fresh price of the sector beside fresh indices.
        pub change_pct: Option<Percent>,
        /// Time of the price; only if it differs from `market.as_of_ist`.
        pub as_of?: Option<Instant>,
    }

    pub struct Market {
        /// Whether some share is in continuous trading.
        pub is_open: bool,
        pub phase: Phase,
        /// When the phase changes next; null if the calendar does not cover that time.
        pub next_transition_at: Option<Instant>,
        /// Whether the calendar knows today's kind and hours. If not, `phase` and `is_open` are
        /// what weekday and hours say, and no close is official.
        pub calendar_known: bool,
        /// Time of the primary index's price. It never goes back.
        pub as_of_ist: Instant,
        pub delay_s?: Option<Delay>,
        /// One of the three indices is older than its source's interval and delay allow, or its
        /// feed has failed for longer, or it survived a restart and is not refreshed yet. Stale
        /// data is always marked.
        pub stale: bool,
        pub source: Source,
        pub(crate) simulated?: Simulated,
    }
}

/// The age of an index, as far as it differs from that in `market`.
struct OwnAge {
    as_of: Option<Instant>,
    delay_s: Option<Delay>,
    stale: Option<bool>,
    source: Option<Source>,
}

impl OwnAge {
    fn of(level: &Level, market: &Age) -> Self {
        let Age {
            as_of,
            delay_s,
            stale,
            source,
        } = level.age;
        let differs = (delay_s, stale, source) != (market.delay_s, market.stale, market.source);
        Self {
            as_of: (!is_same_second(as_of, market.as_of)).then_some(Instant(as_of)),
            delay_s: delay_s.filter(|_| differs).map(Delay),
            stale: differs.then_some(stale),
            source: differs.then_some(source),
        }
    }
}

impl<'a> Snapshot<'a> {
    /// The document of `snapshot` with the signals `shown`.
    pub fn of(snapshot: &'a market::Snapshot, shown: &'a ShownSignals) -> Self {
        let market = &snapshot.market.age;
        let [index1, bankindex, index2] = [&snapshot.index1, &snapshot.bankindex, &snapshot.index2];
        let own = |level| OwnAge::of(level, market);
        let of_index1 = own(index1);
        let of_bankindex = own(bankindex);
        let of_index2 = own(index2);
        let sector = |sector: &'a SectorChange| Sector {
            name: &sector.name,
            symbol: &sector.symbol,
            change_pct: sector.change_pct.map(Percent),
            as_of: sector
                .as_of
                .filter(|as_of| !is_same_second(*as_of, market.as_of))
                .map(Instant),
        };
        Self {
            index1_price: Money(index1.price),
            index1_change: index1.change_pct.map(Percent),
            index1_delay_s: of_index1.delay_s,
            index1_stale: of_index1.stale,
            index1_source: of_index1.source,
            bankindex_price: Money(bankindex.price),
            bankindex_change: bankindex.change_pct.map(Percent),
            bankindex_as_of: of_bankindex.as_of,
            bankindex_delay_s: of_bankindex.delay_s,
            bankindex_stale: of_bankindex.stale,
            bankindex_source: of_bankindex.source,
            index2_price: Money(index2.price),
            index2_change: index2.change_pct.map(Percent),
            index2_as_of: of_index2.as_of,
            index2_delay_s: of_index2.delay_s,
            index2_stale: of_index2.stale,
            index2_source: of_index2.source,
            signals: &shown.top,
            signals_as_of: shown.as_of.map(Day),
            sectors: snapshot.sectors.iter().map(sector).collect(),
            market: Market::of(&snapshot.market),
        }
    }

    /// The body of the response.
    pub fn to_json(&self) -> Vec<u8> {
        values::to_vec(self)
    }
}

impl Market {
    fn of(view: &market::snapshot::MarketView) -> Self {
        let Age {
            as_of,
            delay_s,
            stale,
            source,
        } = view.age;
        Self {
            is_open: view.is_open,
            phase: view.phase,
            next_transition_at: view.next_transition_at.map(Instant),
            calendar_known: view.calendar_known,
            as_of_ist: Instant(as_of),
            delay_s: delay_s.map(Delay),
            stale,
            source,
            simulated: Simulated(view.simulated),
        }
    }
}

/// Times are shown in whole seconds.
fn is_same_second(one: Timestamp, other: Timestamp) -> bool {
    one.as_second() == other.as_second()
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
