//! `GET /api/market/movers`: copies the prepared response out.
//!
//! Runs on the edge. Never waits.

use crate::api::call::{Call, Handled};
use crate::api::query::switch;
use crate::api::replies::OF_ALL_CODINGS;
use crate::api::replies::{send_published, send_tagged};
use crate::api::state::State;
use crate::cache::movers::{Listing, Moment};
use crate::http::Response;
use crate::http::document::coding::etag;

/// Never waits: prices that are missing are asked for and come later. The first request in a minute
/// makes its own document.
pub(crate) fn read(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let listing = if switch(call.query(), "all")? {
        Listing::All
    } else {
        Listing::Most
    };
    if send_published(state.movers.of(listing).asked_for(), call, response)? {
        return Ok(());
    }
    let universe = state.universe.load_full();
    let instruments = state.instruments.load_full();
    let sectors = state.sectors.load_full();
    let moment = Moment {
        l1: &state.l1,
        pending: &state.pending,
        universe: &universe,
        instruments: &instruments,
        sectors: &sectors,
        listing,
        day: state.market_day(state.clock.now()).day,
        mono_ms: state.clock.monotonic_ms(),
    };
    let (json, _) = moment.document(true);
    let tag = etag(&json);
    response.body().extend_from_slice(&json);
    send_tagged(call, &tag, &OF_ALL_CODINGS, response)
}
