//! Publishes finished documents, and provides the snapshot's part of them. Compresses, so it runs
//! in jobs of the lane `signals`.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::cache::CandleWork;
use crate::http::PublishedJson;
use crate::signals::{Reliability, SignalList};
use crate::store::{Store, StoreError};
use crate::views::signal_record::SignalRecord;
use crate::views::signals::ShownSignals;
use crate::views::{signals as views, values};

/// The published documents.
#[derive(Clone, Default)]
pub struct Publication {
    pub signals: Arc<PublishedJson>,
    pub record: Arc<PublishedJson>,
    pub list: Arc<ArcSwapOption<SignalList>>,
    /// What is being done about candles.
    pub(crate) candles: Arc<ArcSwap<CandleWork>>,
}

/// The published signals.
pub(crate) struct Shown {
    /// The signals in the snapshot.
    pub top: ShownSignals,
    pub signals: usize,
}

impl Shown {
    /// Nothing was published yet.
    pub(crate) fn nothing() -> Self {
        Self {
            top: ShownSignals::none(),
            signals: 0,
        }
    }
}

/// Publishes the record and the list of the last published date.
pub(crate) fn show(
    store: &Store,
    publication: &Publication,
    record: &Reliability,
) -> Result<Shown, StoreError> {
    let as_of = store.signal_dates()?.map(|(_, last)| last);
    publication
        .record
        .publish(values::to_vec(&SignalRecord::of(record, as_of)));
    let Some(as_of) = as_of else {
        return Ok(Shown::nothing());
    };
    let signals = store.signals_of(as_of)?;
    Ok(publication.put(SignalList::of(as_of, signals)))
}

impl Publication {
    fn put(&self, list: SignalList) -> Shown {
        let mut body = Vec::new();
        views::SignalList::of(&list, |_| true).write(&mut body);
        let shown = Shown {
            top: ShownSignals::of(&list),
            signals: list.signals.len(),
        };
        // Store the list for filters first, so that a client that has read the whole list finds
        // each part of it.
        self.list.store(Some(Arc::new(list)));
        self.signals.publish(body);
        shown
    }
}
