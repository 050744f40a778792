//! `GET /api/signals` and `GET /api/signals/record`: prepared documents that are copied out. A
//! filtered list, of some dozen rows, is made from memory.

use super::state::State;
use crate::api::call::{Call, Handled};
use crate::api::query::{ONCE, invalid, once, whole};
use crate::api::replies::{OF_ALL_CODINGS, send_published, send_tagged};
use crate::base::{Symbol, Words};
use crate::http::document::coding::etag;
use crate::http::document::variants::PUBLIC;
use crate::http::{Problem, Response};
use crate::signals::{Direction, ListedSignal};
use crate::views::signals::SignalList;
use crate::views::states::DataState;

/// Until the store of a node that begins was read.
const RETRY_AFTER_S: u64 = 2;

/// Conditions on the signals to list.
#[derive(Default)]
struct Filter {
    direction: Option<Direction>,
    symbol: Option<Symbol>,
    samples_min: u32,
}

impl Filter {
    fn keeps(&self, signal: &ListedSignal) -> bool {
        self.direction
            .is_none_or(|direction| signal.direction == direction)
            && self
                .symbol
                .as_ref()
                .is_none_or(|symbol| signal.symbol == *symbol)
            && signal.samples >= self.samples_min
    }
}

/// Every signal of the last published date. Never waits.
pub(super) fn list(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let Some(filter) = filter(call.query())? else {
        if send_published(&state.signals, call, response)? {
            return Ok(());
        }
        return awaited(state, call, response);
    };
    let list = state.signal_list.load();
    let Some(list) = list.as_deref() else {
        return awaited(state, call, response);
    };
    SignalList::of(list, |signal| filter.keeps(signal)).write(response.body());
    send_tagged(call, &etag(response.written()), &[("Cache-Control", PUBLIC)], response)
}

/// The record of published signals. Never waits.
pub(super) fn record(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    if send_published(&state.signals_record, call, response)? {
        return Ok(());
    }
    let detail = "The record has not been read from the database yet.";
    Err(Problem::unavailable("signals_not_ready", detail, RETRY_AFTER_S))
}

/// Answers before the first list: whether it is being made.
fn awaited(state: &State, call: &Call<'_>, response: &mut Response<'_>) -> Handled {
    let work = state.candle_work.load();
    // The list may have come between two looks.
    let its = match work.state {
        DataState::Ready => DataState::Loading,
        its => its,
    };
    let detail = work.detail.as_deref().filter(|_| its != DataState::Loading);
    SignalList::awaited(its, detail, work.progress).write(response.body());
    send_tagged(call, &etag(response.written()), &OF_ALL_CODINGS, response)
}

/// The filter of the query; `None` if there is none. All faults are reported.
fn filter(query: &[u8]) -> Result<Option<Filter>, Problem> {
    let mut filter = Filter::default();
    let mut given = false;
    let mut faults: Vec<(&'static str, &'static str)> = Vec::new();
    for name in ["direction", "symbol", "min_samples"] {
        let text = match once(query, name.as_bytes()) {
            Ok(None) => continue,
            Ok(Some(text)) => text,
            Err(_) => {
                faults.push((name, ONCE));
                continue;
            }
        };
        given = true;
        let (good, wanted) = match name {
            "direction" => {
                filter.direction = Direction::parse(&text);
                (filter.direction.is_some(), "Either bullish or bearish.")
            }
            "symbol" => {
                filter.symbol = Symbol::parse(&text);
                (filter.symbol.is_some(), "EXCHANGE:TICKER, such as NSE:INFY.")
            }
            _ => {
                let samples = whole(0..=u32::MAX)(&text);
                filter.samples_min = samples.unwrap_or_default();
                (samples.is_some(), "A whole number, not negative.")
            }
        };
        if !good {
            faults.push((name, wanted));
        }
    }
    let mut faults = faults.into_iter();
    let Some((name, message)) = faults.next() else {
        return Ok(given.then_some(filter));
    };
    let first = invalid(name, message);
    Err(faults.fold(first, |problem, (name, message)| problem.field(name, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(query: &str) -> Vec<String> {
        let problem = filter(query.as_bytes()).err().unwrap();
        assert_eq!((problem.status, problem.code), (400, "validation_failed"));
        problem
            .errors
            .iter()
            .map(|error| error.field.to_string())
            .collect()
    }

    #[test]
    fn filters_are_read_and_all_faults_are_reported() {
        assert!(filter(b"").unwrap().is_none());
        assert!(filter(b"other=1").unwrap().is_none());
        let read = filter(b"direction=bearish&symbol=NSE%3AM%26M&min_samples=30")
            .unwrap()
            .unwrap();
        assert_eq!(read.direction, Some(Direction::Bearish));
        assert_eq!(read.symbol.unwrap().as_str(), "NSE:M&M");
        assert_eq!(read.samples_min, 30);
        let all = "direction=up&symbol=INFY&min_samples=-1";
        assert_eq!(fields(all), ["direction", "symbol", "min_samples"]);
        for bad in [
            "min_samples=+3",
            "min_samples=9999999999",
            "min_samples=",
            "min_samples=%",
        ] {
            assert_eq!(fields(bad), ["min_samples"], "{bad}");
        }
        assert_eq!(fields("direction=bullish&direction=bullish"), ["direction"]);
    }
}
