//! `GET /api/portfolio/export`: everything the user has here, as one document with every digit.

use jiff::civil::Date;

use super::{Unmade, iso, on_lane};
use crate::api::json::{Object, write_object, write_text};
use crate::api::{Call, State};
use crate::base::{Holding, Position};
use crate::http::reply::JSON;
use crate::http::{Problem, Reply};
use crate::store::{AccountId, DayPoint, JournalEntry, Store, StoreError};

/// Entries read at once.
const PAGE: usize = 500;
/// Twenty pages of a full journal, written down.
const EXPORT_DEADLINE_MS: u64 = 15_000;

const HEADERS: [(&str, &str); 2] = [
    ("Cache-Control", "no-store"),
    ("Content-Disposition", "attachment; filename=\"bhav-export.json\""),
];

/// Parks for the portfolio lane. Bounded by what the store keeps of one user.
pub fn export(state: &State, call: &Call<'_>, reply: &mut Reply<'_>) -> Result<(), Problem> {
    let id = call.caller().id;
    let exported_at = iso(state.clock.now_ms());
    let body = on_lane(state, EXPORT_DEADLINE_MS, move |store| written(store, id, &exported_at))?;
    reply.body().extend_from_slice(&body);
    reply.send(200, JSON, &HEADERS);
    Ok(())
}

fn written(store: &dyn Store, id: AccountId, exported_at: &str) -> Result<Vec<u8>, Unmade> {
    let user = store.user_by_id(id)?.ok_or(StoreError::NoSuchUser)?.user;
    let portfolio = store.portfolio(id)?;
    let points = store.points(id, Date::MIN)?;
    let entries = entries(store, id)?;
    let mut out = Vec::new();
    write_object(&mut out, |object| {
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
        object.list("journal", &entries, |out, row| write_object(out, |o| entry(o, row)));
    });
    Ok(out)
}

/// All of them, page by page.
fn entries(store: &dyn Store, id: AccountId) -> Result<Vec<JournalEntry>, Unmade> {
    let mut all: Vec<JournalEntry> = Vec::new();
    let mut after = None;
    loop {
        let page = store.entries(id, after, PAGE)?;
        after = page.next();
        all.extend(page.entries);
        if after.is_none() {
            return Ok(all);
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
    object.exact("average_price", row.average_price).exact("last_price", row.last_price);
    object.exact("close_price", row.close_price).exact("broker_pnl", row.broker_pnl);
    object.text("as_of", &iso(row.as_of_ms)).flag("unresolved", row.unresolved);
    object.flag("discrepancy", row.discrepancy).flag("corporate_action", row.corporate_action);
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
    object.exact("total_pnl", row.total_pnl).text("source", row.source.as_str());
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
