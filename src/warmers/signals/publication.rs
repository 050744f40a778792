//! Where finished documents go, and what of them the snapshot takes. Compresses, so it runs in jobs
//! of the lane `signals`.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::civil::Date;

use crate::http::PublishedJson;
use crate::signals::{Direction, ListedSignal, Look, Reliability, SignalList};
use crate::store::{PublishedSignal, SignalStore, StoreError};
use crate::views::json;
use crate::views::signal_record::SignalRecord;
use crate::views::signals::{self as views, ShownSignals};

/// Where finished documents go.
#[derive(Clone, Default)]
pub struct Publication {
    pub signals: Arc<PublishedJson>,
    pub record: Arc<PublishedJson>,
    pub list: Arc<ArcSwapOption<SignalList>>,
}

/// What clients see now.
pub struct Shown {
    /// What the snapshot shows.
    pub top: ShownSignals,
    /// Of finished candles.
    pub signals: usize,
    /// `None` where no provisional signal is shown.
    pub provisional: Option<ShownProvisional>,
}

/// What of it comes from running candles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownProvisional {
    pub look: Look,
    pub signals: usize,
    /// The oldest of the candles is too old from then on.
    pub until_mono_ms: u64,
}

impl Shown {
    /// Before anything was published.
    pub fn nothing() -> Self {
        Self { top: ShownSignals::none(), signals: 0, provisional: None }
    }
}

/// Publishes the record and the list of the last published date.
pub fn show(
    store: &dyn SignalStore,
    publication: &Publication,
    record: &Reliability,
) -> Result<Shown, StoreError> {
    let Some(as_of) = show_record(store, publication, record)? else { return Ok(Shown::nothing()) };
    let signals = store.signals_of(as_of)?.into_iter().map(listed).collect();
    Ok(publication.put(SignalList::complete(as_of, signals), None))
}

/// Publishes the record, and returns the last published date.
pub fn show_record(
    store: &dyn SignalStore,
    publication: &Publication,
    record: &Reliability,
) -> Result<Option<Date>, StoreError> {
    let as_of = store.signal_dates()?.map(|(_, last)| last);
    publication.record.publish(json::to_vec(&SignalRecord::of(record, as_of)));
    Ok(as_of)
}

impl Publication {
    /// The list of the last published date, without what is provisional.
    pub fn complete(&self) -> Option<SignalList> {
        self.list.load().as_ref().map(|list| list.without_provisional())
    }

    /// Shows `list`, the provisional ones of which stand for `until_mono_ms`.
    pub fn put(&self, list: SignalList, until_mono_ms: Option<u64>) -> Shown {
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
        // What filters read comes first: who has seen the whole list finds a part of it.
        self.list.store(Some(Arc::new(list)));
        self.signals.publish(body);
        shown
    }
}

fn listed(signal: PublishedSignal) -> ListedSignal {
    ListedSignal {
        symbol: signal.symbol,
        pattern: signal.pattern,
        direction: if signal.bullish { Direction::Bullish } else { Direction::Bearish },
        confidence: signal.confidence,
        prior_dates: signal.basis.prior_dates,
        samples: signal.basis.dates,
        date_hit_rate: signal.basis.date_hit_rate,
        past: signal.basis.signals_and_hits,
        base_rate: signal.basis.base_rate,
        simulated: signal.simulated,
        provisional: false,
    }
}
