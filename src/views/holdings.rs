//! `GET /api/portfolio/holdings`, and the totals that other documents have too.

use crate::base::{Broker, ByBroker, PositionKind, Source};
use crate::portfolio::PointSource;
use crate::views::values::{Day, Delay, Instant, Money, Percent, Quantity, Simulated, documents};

documents! {
    pub(crate) struct Holdings<'a> {
        /// The `since` of the request. Present if only the rows are listed, here and in the
        /// summary's `merged`, that are not as in that answer. Every row of it is still there.
        pub since?: Option<String>,
        pub holdings: Vec<Holding<'a>>,
        pub(crate) summary: HoldingsSummary<'a>,
    }

    pub(crate) struct Holding<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        /// Name of the company, as the list of sectors or that of instruments has it; null if
        /// neither has one.
        pub name: Option<&'a str>,
        pub isin: Option<&'a str>,
        /// Shares owned: settled, and T1 (bought and not yet delivered).
        pub(crate) quantity: Quantity,
        /// Shares bought and not yet delivered; part of `quantity`.
        pub(crate) t1_quantity: Quantity,
        /// Pledged shares; not part of `quantity`.
        pub(crate) pledged_quantity: Quantity,
        /// Shares funded by the broker; not part of `quantity`.
        pub(crate) mtf_quantity: Quantity,
        pub(crate) disputed_quantity: Quantity,
        /// Average cost of a share. Null if the broker does not know the cost of every owned share;
        /// then `invested`, `pnl` and `pnl_pct` are null too.
        pub average_price: Option<Money>,
        /// Present only if the broker knows the cost of some of the owned shares, as after a
        /// transfer or a bonus: how many, and what they cost. There is no average then, because it
        /// would be a guess.
        pub(crate) known_cost: Option<KnownCost>,
        pub last_price: Option<Money>,
        /// Close of the trading date before the one that `last_price` is of: the broker's, or that
        /// of another row of the same share. Null where a broker names the day's change in percent
        /// alone.
        pub close_price: Option<Money>,
        /// Cost of the owned shares, exact before it is rounded here.
        pub invested: Option<Money>,
        /// Value of the owned shares at `last_price`.
        pub current_value: Option<Money>,
        pub pnl: Option<Money>,
        pub pnl_pct: Option<Percent>,
        /// Change of `current_value` on the summary's `day`; null unless the price is of that day
        /// and the previous close, or the broker's own percentage, is known.
        pub day_pnl: Option<Money>,
        /// `day_pnl` in percent of the value before; null without it.
        pub day_change_pct: Option<Percent>,
        /// Part of the value of all rows above zero, in percent; null without a price, and for a
        /// row below zero.
        pub share_pct: Option<Percent>,
        /// The broker's own figure; null if the price or the average that it needs is not known.
        pub broker_pnl: Option<Money>,
        /// Time of the price: of the sync while the market trades, otherwise of the last close.
        /// Null without a price.
        pub as_of: Option<Instant>,
        pub synced_at: Option<Instant>,
        /// Only with `live=true`, if a fresher price replaced the broker's.
        pub source?: Option<Source>,
        /// Only beside `source`, if that source runs behind the exchange by its nature.
        pub delay_s?: Option<Delay>,
        /// Only beside `source`: as in quotes.
        pub stale?: Option<bool>,
        /// No instrument list has the broker's code, which is shown as it is.
        pub unresolved: bool,
        /// The broker itself marks its figures as doubtful.
        pub discrepancy: bool,
        /// A split, a bonus or another corporate action is suspected: the exchange adjusted the
        /// base price, or the price has leapt, and quantity or cost have not followed; or quantity
        /// and price have changed like that.
        pub corporate_action: bool,
        pub(crate) simulated?: Simulated,
    }

    /// Shares whose cost is known, and what they cost.
    pub(crate) struct KnownCost {
        pub(crate) quantity: Quantity,
        pub cost: Money,
    }

    /// Totals of the holdings that are listed.
    pub(crate) struct HoldingsSummary<'a> {
        #[serde(flatten)]
        pub totals: Totals,
        /// The same shares of both brokers as one, by ISIN.
        pub(crate) merged: Vec<MergedHolding<'a>>,
        pub allocation: Allocation<'a>,
    }

    /// Parts of `total_current_value`, which are the whole together. The largest comes first.
    pub(crate) struct Allocation<'a> {
        pub brokers: Vec<Slice<'a>>,
        /// The holdings whose sector is not known are the last part.
        pub sectors: Vec<Slice<'a>>,
        /// Date of the list of sectors.
        pub sectors_as_of: Day,
        /// The list of sectors: that of the NIFTY 50's shares, unless the operator has another.
        pub sectors_source: &'a str,
    }

    pub(crate) struct Slice<'a> {
        /// A broker or a sector; null for the holdings whose sector is not known.
        pub of: Option<&'a str>,
        pub current_value: Money,
        /// Part of the value of all rows above zero that its rows above zero are, in percent; null
        /// if it has none.
        pub share_pct: Option<Percent>,
    }

    /// Totals of both brokers.
    pub(crate) struct Totals {
        /// Cost of the holdings whose cost and price are known.
        pub total_invested: Money,
        /// Value of every holding that has a price, whether or not its cost is known.
        pub total_current_value: Money,
        /// Profit of the holdings in `total_invested`: `total_current_value` minus
        /// `value_without_cost` minus `total_invested`.
        pub total_pnl: Money,
        /// `total_pnl` in percent of `total_invested`; null if that is zero.
        pub total_pnl_pct: Option<Percent>,
        /// Gain on the date `day`, over the holdings whose price is of that date, compared with
        /// their previous close, or by the broker's percentage, which has two decimals, where that
        /// alone is known. Null if there are none.
        pub day_pnl: Option<Money>,
        /// `day_pnl` in percent of the value that its holdings had before; null without it.
        pub day_pnl_pct: Option<Percent>,
        /// The latest trading date that has begun; null where the calendar does not know it.
        pub day: Option<Day>,
        /// Holdings without a known cost, which `total_invested`, `total_pnl` and `total_pnl_pct`
        /// leave out.
        pub without_cost: u32,
        /// Holdings without a price, which all totals leave out.
        pub without_price: u32,
        /// Holdings that `day_pnl` leaves out because their price is of another date than `day`,
        /// which is an earlier one, or the coming one in its pre-open.
        pub without_day_price: u32,
        /// Holdings that `day_pnl` leaves out because they have no price, or its previous close is
        /// not known.
        pub without_close: u32,
        /// Value of the holdings without a known cost; part of `total_current_value`.
        pub value_without_cost: Money,
        /// Holdings of which every share is pledged. None is owned outright, so their value here is
        /// 0.
        pub pledged_only: u32,
        /// Holdings of which every share is funded by the broker. Their value here is 0.
        pub mtf_only: u32,
        /// Time of the last sync of the broker that was synced longest ago, among those shown; null
        /// before the first sync.
        pub synced_at: Option<Instant>,
        pub(crate) synced: SyncTimes,
        /// Time of the oldest price in the totals; null without any.
        pub priced_from: Option<Instant>,
        /// Time of the newest price in the totals; null without any.
        pub priced_to: Option<Instant>,
    }

    /// Time of the last sync of each broker, shown or not; null if it was never synced.
    pub(crate) struct SyncTimes {
        pub a: Option<Instant>,
        pub b: Option<Instant>,
    }

    pub(crate) struct MergedHolding<'a> {
        pub isin: &'a str,
        pub tradingsymbol: &'a str,
        /// As in holdings, of the first part.
        pub name: Option<&'a str>,
        pub(crate) quantity: Quantity,
        pub average_price: Option<Money>,
        /// Null if the cost of a part is not known; then average and profit are null too.
        pub invested: Option<Money>,
        /// Null if a part has no price.
        pub current_value: Option<Money>,
        pub pnl: Option<Money>,
        pub pnl_pct: Option<Percent>,
        /// As in holdings; null unless it is known of every part.
        pub day_pnl: Option<Money>,
        /// As in holdings; null unless it is known of every part.
        pub day_change_pct: Option<Percent>,
        /// As in holdings; null if a part has no price.
        pub share_pct: Option<Percent>,
        pub(crate) parts: Vec<MergedPart<'a>>,
    }

    pub(crate) struct MergedPart<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub(crate) quantity: Quantity,
        pub current_value: Option<Money>,
    }
}

// ---- Pnl
//
// `GET /api/portfolio/pnl`.

documents! {
    pub(crate) struct Pnl {
        /// The `days` of the request.
        pub days: u16,
        pub summary: Totals,
        /// The change over the last week, from the date `from` to the date `to`; null until two
        /// points are at least seven days apart.
        pub week: Option<Week>,
        /// One point for each date, oldest first.
        pub trend: Vec<TrendPoint>,
    }

    /// The newest point compared with the newest of those that are at least seven days older.
    pub(crate) struct Week {
        /// Date of the older point: seven days before `to`, or more where there is no point nearer.
        pub from: Day,
        /// Date of the newest point.
        pub to: Day,
        /// Change of `total_pnl` from the end of `from` to the end of `to`.
        pub pnl_change: Money,
        /// Whether brokers, holdings or cost differ between the two points. Then the change is not
        /// all gain: what was gained on shares that were sold is in it no more.
        pub changed: bool,
    }

    pub(crate) struct TrendPoint {
        pub date: Day,
        pub total_invested: Money,
        pub total_current_value: Money,
        /// Unrealised profit of what is held on the date. What was gained on shares that are sold
        /// is not in it.
        pub total_pnl: Money,
        /// The part of `total_current_value` whose cost is not known. Null in points that an older
        /// version wrote, whose value leaves it out.
        pub value_without_cost: Option<Money>,
        /// `close` if every price is the date's closing price, as after the revaluation; else
        /// `sync`.
        pub source: PointSource,
        /// The brokers whose holdings are in it. Null in points that an older version wrote.
        pub brokers: Option<Vec<Broker>>,
        /// How many holdings it is of. Null in points that an older version wrote.
        pub holdings: Option<u32>,
        /// Holdings without cost or price, which cost and profit leave out.
        pub left_out: u32,
        /// Holdings valued at a price that is older than the date's trading and than the last close
        /// before the date's end.
        pub carried: u32,
        /// The value may be wrong because of a split or the like: a price has leapt and the
        /// quantity has not followed. In points that an older version wrote also true where a
        /// broker called an average unreliable.
        pub suspect: bool,
        /// Holdings whose average the broker calls unreliable: their cost and profit may be wrong,
        /// and their value is not. Null in points that an older version wrote.
        pub discrepancies: Option<u32>,
    }
}

// ---- Positions
//
// `GET /api/portfolio/positions`.

documents! {
    pub(crate) struct Positions<'a> {
        pub positions: Vec<Position<'a>>,
        pub summary: PositionsSummary,
    }

    pub(crate) struct Position<'a> {
        pub broker: Broker,
        pub exchange: &'a str,
        pub tradingsymbol: &'a str,
        pub product: &'a str,
        /// Which of the broker's lists the position is from.
        pub r#type: PositionKind,
        /// Negative if sold short.
        pub(crate) quantity: Quantity,
        pub average_price: Option<Money>,
        pub last_price: Option<Money>,
        pub close_price: Option<Money>,
        /// The broker's profit, or computed from both prices. Null, as are `realised` and
        /// `unrealised`, if the position is open and its last or its average price is not known.
        pub pnl: Option<Money>,
        pub realised: Option<Money>,
        pub unrealised: Option<Money>,
        pub(crate) multiplier: Quantity,
        pub synced_at: Option<Instant>,
        /// The trading date of the sync, of which prices and profit are.
        pub date: Option<Day>,
        /// Whether `date` is over and a later trading date has begun. Then a position of the `day`
        /// list is none of today.
        pub earlier: bool,
        /// No instrument list has the broker's code, which is shown as it is.
        pub unresolved: bool,
        pub(crate) simulated?: Simulated,
    }

    /// Totals of each list, whatever `type` asks for; closed positions are included as
    /// `include_closed` says. The same trades are in both lists, so the two must not be added.
    pub(crate) struct PositionsSummary {
        pub day: PositionTotals,
        pub net: PositionTotals,
    }

    pub(crate) struct PositionTotals {
        pub count: usize,
        /// Sum over the positions whose profit is known; null if there are none.
        pub pnl: Option<Money>,
        /// Positions whose profit is not known.
        pub without_pnl: usize,
        /// Positions of a trading date that is over, as `earlier` in their rows.
        pub earlier: usize,
        /// The trading date of `synced_at`: the oldest that is in the sum. Null before the first
        /// sync.
        pub date: Option<Day>,
        /// Time of the last sync of the broker that was synced longest ago, among those that have
        /// such a list; null before the first sync.
        pub synced_at: Option<Instant>,
        /// Each broker's. Null if it was never synced or has no such list: broker B has none of the
        /// day.
        pub(crate) synced: SyncTimes,
    }
}

impl SyncTimes {
    pub(crate) fn of(synced_at: impl Fn(Broker) -> Option<Instant>) -> Self {
        let ByBroker([a, b]) = ByBroker::of(synced_at);
        Self { a, b }
    }
}

// ---- Portfolio deleted
//
// `DELETE /api/portfolio/data`.

documents! {
    pub(crate) struct PortfolioDeleted {
        pub message: &'static str,
        pub deleted: DeletedRows,
    }

    #[derive(Copy, Default, Eq)]
    pub struct DeletedRows {
        pub holdings: u64,
        pub positions: u64,
        pub pnl_snapshots: u64,
    }
}
