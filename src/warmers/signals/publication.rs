//! Publishes finished documents, and provides the snapshot's part of them. Compresses, so it runs
//! in jobs of the lane `signals`.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::civil::Date;

use crate::http::PublishedJson;
use crate::signals::{Reliability, ScanTime, SignalList};
use crate::store::{Store, StoreError};
use crate::views::signals::{ShownSignals, SignalRecord};
use crate::views::{signals as views, values};

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
    pub look: ScanTime,
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
