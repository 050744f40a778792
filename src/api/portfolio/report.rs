//! The report of a sync: what changed, what stayed unresolved, what looks like a split, and how our
//! profit compares with the broker's own. Pure; made on the edge once the sync is stored.

use rust_decimal::Decimal;

use crate::api::json::{Object, write_exact, write_list, write_object, write_text};
use crate::base::{Broker, Holding, Position, PositionKind};
use crate::portfolio::{self, Counts, Diff};
use crate::store::Replaced;

/// Rows named of each kind; all are counted.
const LISTED_MAX: usize = 100;
/// Rounding of a broker's own figure, per row.
const ROUNDING: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Tells what `broker`'s sync changed, as members of the reply.
pub fn report(object: &mut Object<'_>, broker: Broker, replaced: &Replaced) {
    let Replaced { before, synced, derived } = replaced;
    let stood: Vec<&Holding> = before.holdings.iter().filter(|row| row.broker == broker).collect();
    let positions: Vec<&Position> =
        before.positions.iter().filter(|row| row.broker == broker).collect();
    let diff = portfolio::diff(&stood, &derived.holdings);
    object.object("changes", |object| changes(object, &diff, &positions, &derived.counts));
    unresolved(object, &derived.holdings, &synced.positions);
    suspected(object, &derived.holdings);
    object.object("reconciliation", |object| reconciliation(object, &derived.holdings));
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
    let of = |kind| portfolio::open_positions(stood.iter().copied(), kind);
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
fn unresolved(object: &mut Object<'_>, holdings: &[Holding], positions: &[Position]) {
    let holdings = holdings.iter().filter(|row| row.unresolved);
    let positions = positions.iter().filter(|row| row.unresolved);
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
