//! Searches running candles for signals: jobs of the lane `signals`. No candle is stored here.
//! Signals are recorded in the store before they are published.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::base::{Candle, Source, Symbol};
use crate::brokers::DailyCandles;
use crate::http::PublishedJson;
use crate::signals::backtest::{History, Universe};
use crate::signals::confidence::Weight;
use crate::signals::history::{newest, running, tail};
use crate::signals::list::by_rank;
use crate::signals::patterns::{Detector, Key};
use crate::signals::{ListedSignal, Look, Reliability, SignalList};
use crate::store::{PricedSignal, Store, StoreError};
use crate::views::signals::{ShownSignals, SignalRecord};
use crate::views::{signals as views, values};
use crate::warmers::signals::outcomes::{Closes, Expected, walk};

/// The data of earlier sessions that the searches of a session need, prepared once.
pub(crate) struct Prepared {
    /// The previous session.
    pub settled: Date,
    /// By the symbols' positions; `None` if the candles are not trusted or end earlier.
    pub tails: Vec<Option<Tail>>,
    /// The weight of every key while the session runs.
    pub weights: HashMap<Key, Weight>,
}

/// The end of a symbol's stored candles.
pub(crate) struct Tail {
    pub symbol: Symbol,
    pub source: Source,
    pub simulated: bool,
    pub candles: Vec<Candle>,
}

/// Reads all candles, weighs every key, and keeps the data that a search needs. `settled`: the
/// session before the current one. `symbols`: by position, `None` if the candles are not trusted.
pub(crate) fn prepare(
    store: &Store,
    settled: Date,
    symbols: Vec<Option<(Symbol, Source, bool)>>,
) -> Result<Prepared, StoreError> {
    let mut histories = Vec::with_capacity(symbols.len());
    let mut tails = Vec::with_capacity(symbols.len());
    for wanted in symbols {
        let Some((symbol, source, simulated)) = wanted else {
            tails.push(None);
            continue;
        };
        let candles = store.candles(&symbol)?;
        let reaches = candles.last().is_some_and(|last| last.date == settled);
        let candles_kept = tail(&candles).to_vec();
        histories.push(History { symbol: symbol.as_str().to_owned(), candles });
        tails.push(reaches.then_some(Tail { symbol, source, simulated, candles: candles_kept }));
    }
    let universe = Universe::examine(&histories);
    let next = universe.dates().len();
    let weights = Key::all().map(|key| (key, universe.weigh(key, next))).collect();
    Ok(Prepared { settled, tails, weights })
}

/// Input of a search.
pub(crate) struct LookOrder {
    pub look: Look,
    pub prepared: Arc<Prepared>,
    /// The last answer of each symbol's source, by position.
    pub answers: Vec<(usize, Arc<DailyCandles>)>,
    pub expected: Expected,
    pub until_mono_ms: u64,
    pub now_ms: i64,
    pub publication: Publication,
}

/// Finds the patterns of running candles, records them in the store, and publishes them with the
/// complete signals. An error: they could not be recorded, so they are not published.
pub(crate) fn look(store: &Store, order: &LookOrder) -> (Shown, Option<StoreError>) {
    let LookOrder { look, until_mono_ms, publication, .. } = order;
    let Some(complete) = publication.complete() else { return (Shown::nothing(), None) };
    let found = found(order);
    let listed = found.iter().map(|(signal, _)| signal.clone()).collect();
    if let Err(error) = put_on_record(store, order, found) {
        return (publication.put(complete, None), Some(error));
    }
    let list = complete.with_provisional(*look, listed);
    (publication.put(list, Some(*until_mono_ms)), None)
}

/// Publishes signals that another node has found and recorded.
pub(crate) fn adopt(
    store: &Store,
    (look, signals): (Look, Vec<ListedSignal>),
    until_mono_ms: u64,
    expected: &Expected,
    publication: &Publication,
) -> Result<Shown, StoreError> {
    let Some(complete) = publication.complete() else { return Ok(Shown::nothing()) };
    let is_shown = |found: &ListedSignal| {
        let list = publication.list.load();
        list.as_ref().is_some_and(|list| {
            list.signals.iter().any(|s| s.is_of_candle(found) && s.pattern == found.pattern)
        })
    };
    // The record has entries for the new ones.
    if !signals.iter().all(is_shown) {
        show_record(store, publication, &walk(store, &Closes::new(), expected)?)?;
    }
    let list = complete.with_provisional(look, signals);
    Ok(publication.put(list, Some(until_mono_ms)))
}

/// Publishes the signals of finished candles alone. Needs no store.
pub(crate) fn withdraw(publication: &Publication) -> Shown {
    let shown = publication.complete().map(|complete| publication.put(complete, None));
    shown.unwrap_or_else(Shown::nothing)
}

fn put_on_record(
    store: &Store,
    order: &LookOrder,
    found: Vec<PricedSignal>,
) -> Result<(), StoreError> {
    let LookOrder { look, now_ms, publication, expected, .. } = order;
    if found.is_empty() || store.keep_provisional(expected.epoch, look.date, *now_ms, found)? == 0 {
        return Ok(());
    }
    show_record(store, publication, &walk(store, &Closes::new(), expected)?).map(drop)
}

/// The found signals by rank, with the last prices of their candles.
fn found(order: &LookOrder) -> Vec<PricedSignal> {
    let LookOrder { look, prepared, answers, expected, .. } = order;
    let detector = Detector::default();
    let mut found = Vec::new();
    for (at, answer) in answers {
        let Some(Some(tail)) = prepared.tails.get(*at) else { continue };
        if answer.simulated != tail.simulated {
            continue;
        }
        let trades_on = |date: Date| expected.calendar.is_trading_date(date);
        let candle = match running(&tail.candles, &answer.candles, look.date, &trades_on) {
            Ok(candle) => candle,
            Err(fault) => {
                tracing::debug!(symbol = %tail.symbol, %fault, "running candle left out");
                continue;
            }
        };
        let keys = newest(&detector, &tail.candles, &candle);
        found.extend(keys.into_iter().filter_map(|key| {
            let listed = ListedSignal::of(tail.symbol.clone(), key, prepared.weights.get(&key)?);
            let simulated = tail.simulated;
            Some((ListedSignal { simulated, provisional: true, ..listed }, candle.close_e4))
        }));
    }
    found.sort_by(|one, other| by_rank(&one.0, &other.0));
    found
}

// ---- Provisional
//
// Signals of running candles, if the operator wants them.
//
// During a session the running candle of each trusted symbol is fetched in rotation, from the
// source of its stored candles, and searched for patterns. It is kept here only: it never joins the
// stored candles, and its signals have a ledger of their own. Belongs to the scheduler's thread,
// and is pure: `fetch` makes the calls, `look` has the jobs.

/// Interval between the starts of two rotations. A day's candle changes little in a minute, and
/// every symbol costs a call. A rotation ends after this time at the latest. The symbols that it
/// did not reach come first in the next.
pub(crate) const ROTATION_MS: u64 = 5 * 60_000;
/// A running candle is searched, and its signals are published, for this long after it arrived. Two
/// rotations may fail.
pub(crate) const FRESH_MS: u64 = 15 * 60_000;

/// The state of the current session.
#[derive(Default)]
pub(crate) struct Provisional {
    /// The operator's switch.
    pub on: bool,
    /// The current session; `None` outside of one, and while switched off.
    pub date: Option<Date>,
    /// `None` also after the stored candles have changed.
    pub prepared: Option<Arc<Prepared>>,
    /// By the symbols' positions.
    running: Vec<Running>,
    /// Start of the last rotation.
    began_mono_ms: Option<u64>,
    rotating: bool,
    /// A search is due: not once one has begun, again if its outcome was lost.
    pub to_look: bool,
    pub looked_at: Option<Timestamp>,
}

/// One symbol's running candle.
#[derive(Default, Clone)]
struct Running {
    asked_mono_ms: Option<u64>,
    /// Arrival time and answer, which includes some earlier days.
    answer: Option<(u64, Arc<DailyCandles>)>,
}

impl Provisional {
    /// Starts without a session, for `symbols` symbols.
    pub(crate) fn new(symbols: usize) -> Self {
        Self { running: vec![Running::default(); symbols], ..Self::default() }
    }

    /// Switches to another session, or to none. The state of the last one is dropped.
    pub(crate) fn follow(&mut self, on: bool, date: Option<Date>) {
        if (on, date) != (self.on, self.date) {
            *self = Self { on, date, ..Self::new(self.running.len()) };
        }
    }

    /// Whether the current session is not prepared yet.
    pub(crate) fn wants_preparing(&self) -> bool {
        self.date.is_some() && self.prepared.is_none()
    }

    /// Begins a rotation that is due. Ends one that has asked for every symbol whose source
    /// `serves`, or took too long. `under_way`: some call has not ended.
    pub(crate) fn rotate(
        &mut self,
        serves: impl Fn(Source) -> bool,
        under_way: bool,
        now_mono_ms: u64,
    ) {
        if self.prepared.is_none() {
            return;
        }
        let since = |began: u64| now_mono_ms.saturating_sub(began);
        let due = self.began_mono_ms.is_none_or(|began| since(began) >= ROTATION_MS);
        if self.rotating {
            let left = |source| serves(source) && self.next(source).is_some();
            let done = !under_way && !left(Source::BrokerA) && !left(Source::Public);
            if due || done {
                self.rotating = false;
                self.to_look = true;
            }
        }
        if due && !self.rotating {
            self.rotating = true;
            self.began_mono_ms = Some(now_mono_ms);
        }
    }

    /// The next symbol of `source` in this rotation: the one asked for longest ago.
    pub(crate) fn next(&self, source: Source) -> Option<usize> {
        let (prepared, began) = (self.prepared.as_ref()?, self.began_mono_ms?);
        let of_source = |at: &usize| {
            let tail = prepared.tails.get(*at).and_then(Option::as_ref);
            tail.is_some_and(|tail| tail.source == source)
        };
        let asked = |at: &usize| self.running[*at].asked_mono_ms;
        let places = (0..self.running.len()).filter(|_| self.rotating).filter(of_source);
        places.filter(|at| asked(at).is_none_or(|asked| asked < began)).min_by_key(asked)
    }

    /// Notes when the symbol was asked for; `None` if the call was not made.
    pub(crate) fn asked(&mut self, at: usize, asked_mono_ms: Option<u64>) {
        self.running[at].asked_mono_ms = asked_mono_ms;
    }

    /// Takes the source's answer for a symbol; `None`: it has no candle.
    pub(crate) fn answered(&mut self, at: usize, read: Option<DailyCandles>, now_mono_ms: u64) {
        self.running[at].answer = read.map(|read| (now_mono_ms, Arc::new(read)));
    }

    /// The recent answers, and until when all of them are valid.
    pub(crate) fn fresh(&self, now_mono_ms: u64) -> (Vec<(usize, Arc<DailyCandles>)>, u64) {
        let mut until_mono_ms = u64::MAX;
        let mut fresh = Vec::new();
        for (at, running) in self.running.iter().enumerate() {
            let Some((came_mono_ms, answer)) = &running.answer else { continue };
            let good_until = came_mono_ms + FRESH_MS;
            if now_mono_ms < good_until {
                until_mono_ms = until_mono_ms.min(good_until);
                fresh.push((at, Arc::clone(answer)));
            }
        }
        (fresh, until_mono_ms)
    }

    /// The preparation for a search, if one is due.
    pub(crate) fn to_look(&self) -> Option<Arc<Prepared>> {
        self.prepared.as_ref().filter(|_| self.to_look).cloned()
    }
}

// ---- Publication
//
// Publishes finished documents, and provides the snapshot's part of them. Compresses, so it runs in
// jobs of the lane `signals`.

/// The published documents.
#[derive(Clone, Default)]
pub struct Publication {
    pub signals: Arc<PublishedJson>,
    pub record: Arc<PublishedJson>,
    pub list: Arc<ArcSwapOption<SignalList>>,
}

/// The published signals.
pub(crate) struct Shown {
    /// The signals in the snapshot.
    pub top: ShownSignals,
    /// Number of signals of finished candles.
    pub signals: usize,
    /// `None` if no provisional signal is published.
    pub provisional: Option<ShownProvisional>,
}

/// The published signals of running candles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownProvisional {
    pub look: Look,
    pub signals: usize,
    /// Monotonic time after which the oldest of the candles is too old.
    pub until_mono_ms: u64,
}

impl Shown {
    /// Nothing was published yet.
    pub(crate) fn nothing() -> Self {
        Self { top: ShownSignals::none(), signals: 0, provisional: None }
    }
}

/// Publishes the record and the list of the last published date.
pub(crate) fn show(
    store: &Store,
    publication: &Publication,
    record: &Reliability,
) -> Result<Shown, StoreError> {
    let Some(as_of) = show_record(store, publication, record)? else { return Ok(Shown::nothing()) };
    let signals = store.signals_of(as_of)?;
    Ok(publication.put(SignalList::complete(as_of, signals), None))
}

/// Publishes the record, and returns the last published date.
pub(crate) fn show_record(
    store: &Store,
    publication: &Publication,
    record: &Reliability,
) -> Result<Option<Date>, StoreError> {
    let as_of = store.signal_dates()?.map(|(_, last)| last);
    publication.record.publish(values::to_vec(&SignalRecord::of(record, as_of)));
    Ok(as_of)
}

impl Publication {
    /// The list of the last published date, without provisional signals.
    pub(crate) fn complete(&self) -> Option<SignalList> {
        self.list.load().as_ref().map(|list| list.without_provisional())
    }

    /// Publishes `list`, whose provisional signals are valid until `until_mono_ms`.
    pub(crate) fn put(&self, list: SignalList, until_mono_ms: Option<u64>) -> Shown {
        let mut body = Vec::new();
        views::SignalList::of(&list, |_| true).write(&mut body);
        let provisional = list.signals.iter().filter(|signal| signal.provisional).count();
        let shown = Shown {
            top: ShownSignals::of(&list),
            signals: list.signals.len() - provisional,
            provisional: list.look.zip(until_mono_ms).map(|(look, until_mono_ms)| {
                ShownProvisional { look, signals: provisional, until_mono_ms }
            }),
        };
        // Store the list for filters first, so that a client that has read the whole list finds
        // each part of it.
        self.list.store(Some(Arc::new(list)));
        self.signals.publish(body);
        shown
    }
}

#[cfg(test)]
#[path = "provisional_tests.rs"]
mod provisional_tests;
