//! Judges the previous close of an arriving quote by what is known of its symbol, its session and
//! its index.

use jiff::Timestamp;

use crate::base::Quote;
use crate::base::previous_close::{PreviousClose, SessionOfPrice};
use crate::cache::Peek;
use crate::market::Seen;
use crate::warmers::context::WarmerContext;

/// Decides what the previous close of a quote is, and puts it into the quote.
pub(crate) fn judge(
    context: &WarmerContext,
    quote: &mut Quote,
    index_stands: Option<bool>,
    now_mono_ms: u64,
) -> PreviousClose {
    let held = context.l1.peek(quote.symbol.as_str(), now_mono_ms);
    let held = if let Peek::Known { quote, .. } = &held {
        Some(quote)
    } else {
        None
    };
    let symbol = quote.symbol.clone();
    let close_of = |date| context.known_closes.of(&symbol, date);
    let seen = Seen {
        held,
        close_of: &close_of,
        index_stands,
    };
    context
        .calendar
        .keep_to_session(quote, &seen, context.clock.now())
}

/// Whether the source's index among `quotes` did not move at all in a session that is over; `None`
/// if none is among them.
pub(crate) fn index_stands<'a>(
    context: &WarmerContext,
    quotes: impl IntoIterator<Item = &'a Quote>,
    now: Timestamp,
) -> Option<bool> {
    let leads = context.indices.leads();
    let is_over = |quote: &&Quote| {
        leads.iter().any(|lead| lead.symbol == quote.symbol)
            && context.calendar.session_of(quote.as_of, now) == SessionOfPrice::Over
    };
    let mut of_leads = quotes
        .into_iter()
        .filter(is_over)
        .filter_map(|quote| Some(quote.previous_close? == quote.last_price));
    let first = of_leads.next()?;
    Some(first || of_leads.any(|stands| stands))
}
