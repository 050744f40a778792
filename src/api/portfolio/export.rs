//! `GET /api/portfolio/export`: everything the user has here, as one document with every digit.
//!
//! Made on a lane of its own, whose one thread the system runs after all others: it takes a core
//! for a tenth of a second. The edge hands the document on without copying it.

use jiff::civil::Date;

use super::answer::Unmade;
use super::answer::iso;
use super::answer::on;
use super::errors;
use super::export_limit::ExportPermit;
use crate::api::call::Call;
use crate::api::json::{Object, write_object, write_text};
use crate::api::state::State;
use crate::base::{Cost, Holding, Position};
use crate::http::document::coding::etag;
use crate::http::message::response::JSON;
use crate::http::{OwnedBody, Problem, Response, Verdict};
use crate::portfolio::DayPoint;
use crate::store::{AccountId, JournalEntry, Store, StoreError};

/// Entries read at once, where they are short; the store bounds their bytes.
const PAGE: usize = 500;
/// Four large documents ahead in the queue, and a slow disk.
const EXPORT_DEADLINE_MS: u64 = 15_000;
/// The longest document. A full journal of line ends and quotation marks, each of which is two
/// bytes in JSON, is 16 MiB, all that is not text in 10,000 entries 3 MiB, and as many holdings and
/// positions as a user may have some 10 MiB. Only a journal written before its text was bounded is
/// longer.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What an entry has beside its text, in JSON.
const ENTRY_BYTES: usize = 320;

const NO_STORE: (&str, &str) = ("Cache-Control", "no-store");
const DISPOSITION: (&str, &str) =
    ("Content-Disposition", "attachment; filename=\"bhav-export.json\"");

/// Parks for the lane. A HEAD takes the same place and the same work, for the length.
pub fn export(state: &State, call: &Call<'_>, reply: &mut Response<'_>) -> Result<(), Problem> {
    let id = call.caller().id;
    let desk = &state.portfolio;
    let place = desk.exports.begin(id.0).map_err(|_| errors::export_in_progress())?;
    let exported_at = iso(state.clock.now_ms());
    let made = on(&desk.export_lane, state, EXPORT_DEADLINE_MS, move |store| {
        let document = written(store, id, &exported_at, &place)?;
        Ok((etag(&document), document, place))
    });
    let (etag, document, place) = made?;
    let verdict = call.request.preconditions().judge(Some(etag.as_bytes()))?;
    if verdict == Verdict::NotModified {
        reply.send(verdict.status(), "", &[("ETag", &etag), NO_STORE]);
        return Ok(());
    }
    let headers = [("ETag", &*etag), NO_STORE, DISPOSITION];
    reply.send_owned(verdict.status(), JSON, &headers, OwnedBody::holding(document, place));
    Ok(())
}

fn written(
    store: &dyn Store,
    id: AccountId,
    exported_at: &str,
    place: &ExportPermit,
) -> Result<Vec<u8>, Unmade> {
    let size = store.journal_size(id)?;
    place.weigh(size.text_bytes)?;
    let user = store.user_by_id(id)?.ok_or(StoreError::NoSuchUser)?.user;
    let portfolio = store.portfolio(id)?;
    let points = store.points(id, Date::MIN)?;
    let rows = portfolio.holdings.len() + portfolio.positions.len() + points.len();
    // Nearly always enough, so that it does not grow by copying. What is too much is never touched.
    let room = size.text_bytes / 4 * 5 + (size.entries + rows + 4) * ENTRY_BYTES;
    let mut out = Vec::with_capacity(room.min(DOCUMENT_BYTES_MAX));
    let mut object = Object::open(&mut out);
    object.text("exported_at", exported_at);
    object.object("user", |object| {
        object.integer("id", user.id.0).text("email", &user.email);
        object.text_or_null("name", user.name.as_deref());
        object.text("created_at", &iso(user.created_ms));
    });
    object.list("syncs", &portfolio.syncs, |out, sync| {
        write_object(out, |object| {
            object.text("broker", sync.broker.as_str());
            object.text("synced_at", &iso(sync.synced_ms));
            object.mark("simulated", sync.simulated);
        });
    });
    object.list("holdings", &portfolio.holdings, |out, row| {
        write_object(out, |object| holding(object, row));
    });
    object.list("positions", &portfolio.positions, |out, row| {
        write_object(out, |object| position(object, row));
    });
    object.list("pnl_snapshots", &points, |out, row| write_object(out, |o| point(o, row)));
    entries(store, id, object.member("journal"))?;
    object.close();
    Ok(out)
}

/// All of them, page by page, as one array.
fn entries(store: &dyn Store, id: AccountId, out: &mut Vec<u8>) -> Result<(), Unmade> {
    out.push(b'[');
    let mut after = None;
    let mut first = true;
    loop {
        let page = store.entries(id, after, PAGE)?;
        for row in &page.entries {
            if !first {
                out.push(b',');
            }
            first = false;
            write_object(out, |object| entry(object, row));
        }
        if out.len() > DOCUMENT_BYTES_MAX {
            return Err(Unmade::TooLong);
        }
        after = page.next();
        if after.is_none() {
            out.push(b']');
            return Ok(());
        }
    }
}

fn holding(object: &mut Object<'_>, row: &Holding) {
    object.text("broker", row.broker.as_str()).text("exchange", &row.exchange);
    object.text("tradingsymbol", &row.tradingsymbol);
    object.text_or_null("isin", row.isin.as_deref());
    object.exact("settled_quantity", row.settled_quantity).exact("t1_quantity", row.t1_quantity);
    object.exact("pledged_quantity", row.pledged_quantity).exact("mtf_quantity", row.mtf_quantity);
    object.exact("disputed_quantity", row.disputed_quantity);
    cost(object, row);
    object.exact("last_price", row.last_price).exact("close_price", row.close_price);
    object.exact("broker_pnl", row.broker_pnl);
    object.text("as_of", &iso(row.as_of_ms)).flag("unresolved", row.unresolved);
    object.flag("discrepancy", row.discrepancy).flag("corporate_action", row.mark.is_some());
}

/// The cost as it is stored: of one share, or of `costed_quantity` shares together.
fn cost(object: &mut Object<'_>, row: &Holding) {
    let (cost, costed) = match row.cost {
        Some(Cost::PerShare(average)) => {
            (row.quantity().checked_mul(average), Some(row.quantity()))
        }
        Some(Cost::Total(cost)) => (Some(cost), Some(row.quantity())),
        Some(Cost::Part { quantity, cost }) => (Some(cost), Some(quantity)),
        None => (None, None),
    };
    object.exact("average_price", row.average_price());
    object.exact("cost", cost).exact("costed_quantity", costed);
}

fn position(object: &mut Object<'_>, row: &Position) {
    object.text("broker", row.broker.as_str()).text("exchange", &row.exchange);
    object.text("tradingsymbol", &row.tradingsymbol).text("product", &row.product);
    object.text("type", row.kind.as_str()).exact("quantity", row.quantity);
    object.exact("multiplier", row.multiplier).exact("average_price", row.average_price);
    object.exact("last_price", row.last_price).exact("close_price", row.close_price);
    object.exact("pnl", row.pnl).exact("realised", row.realised);
    object.exact("unrealised", row.unrealised).flag("unresolved", row.unresolved);
}

fn point(object: &mut Object<'_>, row: &DayPoint) {
    object.text("date", &row.date.to_string()).exact("total_invested", row.total_invested);
    object.exact("total_current_value", row.total_current_value);
    object.exact("total_pnl", row.total_pnl);
    object.exact("value_without_cost", row.value_without_cost);
    object.text("source", row.source.as_str());
    object.count("left_out", row.left_out as usize).count("carried", row.carried as usize);
    object.flag("suspect", row.suspect);
}

fn entry(object: &mut Object<'_>, row: &JournalEntry) {
    let fields = &row.fields;
    object.integer("id", row.id).text("traded_on", &fields.traded_on.to_string());
    object.text("symbol", &fields.symbol).text("side", fields.side.as_str());
    object.exact("quantity", fields.quantity).exact("price", fields.price);
    object.exact("fees", fields.fees).text_or_null("strategy", fields.strategy.as_deref());
    object.text_or_null("notes", fields.notes.as_deref());
    object.list("tags", &fields.tags, |out, tag| write_text(out, tag));
    object.text("created_at", &iso(row.created_ms)).text("updated_at", &iso(row.updated_ms));
}
