//! `GET /api/trades/lots`: the open lots at the end of a day.

use jiff::civil::Date;

use crate::api::call::{Call, Handled};
use crate::api::query::parameter;
use crate::api::state::State;
use crate::api::trades::answer::{Document, answer};
use crate::api::trades::book::Book;
use crate::api::trades::list::{DATE, date};
use crate::api::trades::paging::page_of;
use crate::api::trades::refusals::ledger_too_complex;
use crate::base::Isin;
use crate::http::Response;
use crate::ledger::amount::Amount;
use crate::ledger::lots::{Ledger, replay};
use crate::ledger::positions::{Lot, LotSource, Position};
use crate::ledger::row::AccountName;
use crate::ledger::rules::long_from;
use crate::views::trades::lots::{LotView, Lots as LotsView};
use crate::views::values::{Day, Instant, Money, Quantity, Simulated};

/// Rows on a page of a computed list.
pub(super) const LIMIT_DEFAULT: usize = 500;
pub(super) const LIMIT_MAX: usize = 1_000;

/// A lot, and what holds it.
#[derive(Clone, Copy)]
struct Item<'a> {
    position: &'a Position,
    lot: &'a Lot,
    /// Its place among those of the position.
    place: usize,
}

impl Item<'_> {
    fn name(&self) -> String {
        let Self {
            position,
            lot,
            place,
        } = self;
        let account = position.account.as_str();
        format!("{account} {:?} {} {} {place}", position.security, lot.entered, lot.acquired_on)
    }
}

/// `GET /api/trades/lots`.
pub(crate) fn lots(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let query = call.query();
    let as_of = parameter(query, "as_of", DATE, date)?;
    let account = parameter(query, "account", "An account's name.", AccountName::parse)?;
    let isin = parameter(query, "isin", "An ISIN as INE002A01018.", Isin::parse)?;
    let page = page_of(query, call.caller().id, LIMIT_DEFAULT, LIMIT_MAX)?;
    answer(state, call, response, move |book: &Book| {
        let as_of = as_of.unwrap_or(book.today);
        let earlier;
        let ledger = match as_of == book.today {
            true => &book.ledger,
            false => {
                earlier = replay(&book.trades, &book.corrections, as_of);
                if let Some(why) = earlier.too_complex {
                    return Err(ledger_too_complex(why));
                }
                &earlier
            }
        };
        let found = found(ledger, account.as_ref(), isin);
        let (shown, next_cursor) = page.of(&found, Item::name);
        let lots = shown.iter().map(|item| view(book, as_of, *item)).collect();
        Ok(Document::json(&LotsView { lots, next_cursor }))
    })
}

fn found<'a>(
    ledger: &'a Ledger,
    account: Option<&AccountName>,
    isin: Option<Isin>,
) -> Vec<Item<'a>> {
    let security = isin.map(|isin| ledger.securities.newest(isin));
    let positions = ledger.positions.iter().filter(|position| {
        account.is_none_or(|account| position.account == *account)
            && security.is_none_or(|isin| position.isin() == Some(isin))
    });
    let lots = positions.flat_map(|position| {
        let lots = position.lots.iter().enumerate();
        lots.map(move |(place, lot)| Item {
            position,
            lot,
            place,
        })
    });
    lots.collect()
}

fn view<'a>(book: &'a Book, as_of: Date, Item { position, lot, .. }: Item<'a>) -> LotView<'a> {
    let long_from = long_from(lot.acquired_on);
    let price = position
        .isin()
        .and_then(|isin| book.price(&position.account, isin));
    let value = price.and_then(|price| price.last_price.checked_mul(lot.quantity));
    let cost = lot.cost.rounded();
    let unrealised = value.and_then(|value| Amount::from(value).minus(&lot.cost).rounded());
    let days = as_of.until(long_from).map_or(0, |span| span.get_days());
    LotView {
        account: position.account.as_str(),
        isin: position.security.isin_text(),
        symbol: position.symbol.as_deref(),
        acquired_on: Day(lot.acquired_on),
        entered: Day(lot.entered),
        how: lot.how.as_str(),
        quantity: Quantity(lot.quantity),
        cost: cost.map(Money),
        charges: lot.charges.as_ref().and_then(Amount::rounded).map(Money),
        term: if as_of >= long_from { "long" } else { "short" },
        long_from: Day(long_from),
        days_to_long: days.max(0).unsigned_abs(),
        source: match lot.source {
            LotSource::Trade(_) => "trade",
            LotSource::Correction(_) => "correction",
        },
        price: price.map(|price| Money(price.last_price)),
        value: value.map(Money),
        unrealised: unrealised.map(Money),
        as_of: price.map(|price| Instant::of_ms(price.as_of_ms)),
        stale: price.map(|price| price.is_stale),
        simulated: Simulated(book.is_simulated(&position.account)),
    }
}
