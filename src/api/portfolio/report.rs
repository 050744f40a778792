//! What a sync tells: what changed, what stayed unresolved, what looks like a split, and how our
//! profit compares with the broker's own. Pure; runs on the store's writer, inside the transaction.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::api::json::{Object, write_exact, write_list, write_object, write_text};
use crate::base::{Broker, Holding, MarketDay, Position, PositionKind, Symbol, Synced, ist};
use crate::portfolio::{self, Diff, Point};
use crate::store::{Before, Counts, DayPoint, Derived, PointSource, Repriced};

/// Rows named of each kind; all are counted.
const LISTED_MAX: usize = 100;
/// Rounding of a broker's own figure, per row.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Marks the new rows, puts both brokers' rows at the last close while it stands, values the whole
/// portfolio of the date, and tells what changed.
pub fn derive(broker: Broker, day: &MarketDay, before: &Before, synced: &mut Synced) -> Derived {
    let Before { portfolio, closes } = before;
    let (stood, others): (Vec<&Holding>, Vec<&Holding>) =
        portfolio.holdings.iter().partition(|row| row.broker == broker);
    portfolio::mark(&stood, &mut synced.holdings, day.today);
    let mut repriced =
        Repriced { holdings: others.into_iter().cloned().collect(), changed: Vec::new() };
    let close_of = |symbol: &Symbol| closes.get(symbol).copied();
    if let Some(close) = day.last_close {
        let date = ist::zoned(close).date();
        portfolio::date_back(&mut synced.holdings, close, day.session);
        portfolio::reprice(&mut synced.holdings, date, close_of);
        repriced.changed = portfolio::reprice(&mut repriced.holdings, date, close_of);
    }
    let rows = repriced.holdings.iter().chain(&synced.holdings);
    let has_close = |row: &Holding| row.symbol().is_some_and(|held| close_of(&held).is_some());
    let point = portfolio::point(day, rows.clone(), has_close).unwrap_or_else(|overflow| {
        // What a sync brings was checked, so only a damaged row of the other broker can do this.
        tracing::error!(%overflow, "a portfolio could not be valued");
        unvalued(day.today, rows.count())
    });
    let counts = Counts {
        holdings: synced.holdings.len(),
        net_positions: open(&synced.positions, PositionKind::Net),
        day_positions: open(&synced.positions, PositionKind::Day),
    };
    let mut report = Vec::new();
    write_object(&mut report, |object| {
        let positions = portfolio.positions.iter().filter(|row| row.broker == broker);
        let positions: Vec<&Position> = positions.collect();
        let diff = portfolio::diff(&stood, &synced.holdings);
        object.object("changes", |object| changes(object, &diff, &positions, &counts));
        unresolved(object, synced);
        suspected(object, &synced.holdings);
        object.object("reconciliation", |object| reconciliation(object, &synced.holdings));
    });
    let report = String::from_utf8(report).unwrap_or_default();
    Derived { point: day_point(&point), repriced, counts, report }
}

/// Open positions of one list.
fn open<'a>(positions: impl IntoIterator<Item = &'a Position>, kind: PositionKind) -> usize {
    let open = |row: &&Position| row.kind == kind && !row.quantity.is_zero();
    positions.into_iter().filter(open).count()
}

fn day_point(point: &Point) -> DayPoint {
    DayPoint {
        date: point.date,
        total_invested: point.total_invested,
        total_current_value: point.total_current_value,
        total_pnl: point.total_pnl,
        value_without_cost: Some(point.value_without_cost),
        source: PointSource::Sync,
        left_out: point.left_out,
        carried: point.carried,
        suspect: point.suspect,
    }
}

fn unvalued(date: Date, holdings: usize) -> Point {
    Point {
        date,
        total_invested: Decimal::ZERO,
        total_current_value: Decimal::ZERO,
        total_pnl: Decimal::ZERO,
        value_without_cost: Decimal::ZERO,
        left_out: u32::try_from(holdings).unwrap_or(u32::MAX),
        carried: 0,
        suspect: true,
    }
}

fn changes(object: &mut Object<'_>, diff: &Diff<'_>, stood: &[&Position], counts: &Counts) {
    for (name, rows) in [("added", &diff.added), ("removed", &diff.removed)] {
        object.count(&format!("{name}_count"), rows.len());
        object.list(name, rows.iter().take(LISTED_MAX), |out, row| {
            write_object(out, |object| {
                named(object, row).exact("quantity", row.quantity());
            });
        });
    }
    object.count("changed_count", diff.changed.len());
    object.list("changed", diff.changed.iter().take(LISTED_MAX), |out, change| {
        write_object(out, |object| {
            named(object, change.after);
            if let Some((from, to)) = change.quantity() {
                object.list("quantity", [from, to], write_exact);
            }
            if let Some((from, to)) = change.average_price() {
                object.list("average_price", [from, to], |out, price| match price {
                    Some(price) => write_exact(out, price),
                    None => out.extend_from_slice(b"null"),
                });
            }
        });
    });
    let of = |kind| open(stood.iter().copied(), kind);
    object.object("positions", |object| {
        let now =
            [(PositionKind::Day, counts.day_positions), (PositionKind::Net, counts.net_positions)];
        for (kind, now) in now {
            object.list(kind.as_str(), [of(kind), now], |out, count| {
                out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
            });
        }
    });
}

/// What tells one row from another.
fn named<'o, 'a>(object: &'o mut Object<'a>, row: &Holding) -> &'o mut Object<'a> {
    object.text("exchange", &row.exchange);
    object.text("tradingsymbol", &row.tradingsymbol);
    object.text_or_null("isin", row.isin.as_deref())
}

/// The codes that no list knows, each once.
fn unresolved(object: &mut Object<'_>, synced: &Synced) {
    let holdings = synced.holdings.iter().filter(|row| row.unresolved);
    let positions = synced.positions.iter().filter(|row| row.unresolved);
    let mut codes: Vec<&str> = holdings
        .map(|row| row.tradingsymbol.as_str())
        .chain(positions.map(|row| row.tradingsymbol.as_str()))
        .collect();
    codes.sort_unstable();
    codes.dedup();
    object.count("unresolved_count", codes.len());
    object.list("unresolved", codes.into_iter().take(LISTED_MAX), write_text);
}

fn suspected(object: &mut Object<'_>, holdings: &[Holding]) {
    let suspicions = portfolio::suspicions(holdings);
    let listed = suspicions.iter().take(LISTED_MAX);
    object.list("suspected_corporate_actions", listed, |out, suspicion| {
        write_object(out, |object| {
            named(object, suspicion.holding).text("reason", suspicion.why.as_str());
        });
    });
}

/// Our profit beside the broker's, over the rows for which it names one. A broker counts settled
/// shares alone, we count those of yesterday too.
fn reconciliation(object: &mut Object<'_>, holdings: &[Holding]) {
    let sums = sums(holdings);
    let Some(Sums { broker, ours, undelivered, rows }) = sums.filter(|sums| sums.rows > 0) else {
        object.null("broker_pnl").null("our_pnl").null("difference");
        object.text("reason", "no_broker_figure");
        return;
    };
    let difference = ours.saturating_sub(broker);
    let tolerance = ROUNDING.saturating_mul(Decimal::from(rows));
    let small = |value: Decimal| value.abs() <= tolerance;
    let reason = match () {
        () if difference.is_zero() => None,
        () if small(difference) => Some("rounding"),
        () if small(difference.saturating_sub(undelivered)) => Some("t1_quantity"),
        () => Some("unexplained"),
    };
    object.money("broker_pnl", broker).money("our_pnl", ours).money("difference", difference);
    object.text_or_null("reason", reason);
}

struct Sums {
    broker: Decimal,
    ours: Decimal,
    /// The part of ours that T1 shares make.
    undelivered: Decimal,
    rows: u32,
}

fn sums(holdings: &[Holding]) -> Option<Sums> {
    let mut sums =
        Sums { broker: Decimal::ZERO, ours: Decimal::ZERO, undelivered: Decimal::ZERO, rows: 0 };
    for row in holdings {
        let (Some(theirs), Some(pnl)) = (row.broker_pnl, portfolio::valuation(row).ok()?.pnl)
        else {
            continue;
        };
        let per_share = row.last_price?.checked_sub(row.average_price()?)?;
        sums.broker = sums.broker.checked_add(theirs)?;
        sums.ours = sums.ours.checked_add(pnl)?;
        let undelivered = row.t1_quantity.checked_mul(per_share)?;
        sums.undelivered = sums.undelivered.checked_add(undelivered)?;
        sums.rows += 1;
    }
    Some(sums)
}

/// The members of a report, to be put among others: without its braces.
pub fn members(report: &str) -> &str {
    report.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or_default()
}

/// A warning of the reply.
pub fn warnings(object: &mut Object<'_>, warnings: &[(&str, &str)]) {
    if warnings.is_empty() {
        return;
    }
    write_list(object.member("warnings"), warnings, |out, (code, detail)| {
        write_object(out, |object| {
            object.text("code", code).text("detail", detail);
        });
    });
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
