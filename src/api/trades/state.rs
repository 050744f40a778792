//! State of the ledger's handlers: its lane, its limits, and the ledgers that are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;

use crate::api::trades::book::Book;
use crate::api::trades::kept_books::KeptBooks;
use crate::auth::throttle::Throttle;
use crate::base::Clock;
use crate::market::FairValues;
use crate::rt::Lane;
use crate::store::settings::StoreSettings;

/// The state of the routes of the ledger.
pub struct TradesState {
    /// Reads files and computes ledgers.
    pub lane: Arc<Lane>,
    /// Limits each user's imports.
    pub attempts: Throttle,
    /// Prices of 31 January 2018. A reload may replace them.
    pub(crate) fair_values: ArcSwap<FairValues>,
    pub(super) books: Arc<KeptBooks<Book>>,
    rows_max: AtomicUsize,
}

impl TradesState {
    pub(crate) fn new(
        lane: Arc<Lane>,
        fair_values: FairValues,
        settings: &StoreSettings,
        clock: &Clock,
    ) -> Self {
        Self {
            lane,
            fair_values: ArcSwap::from_pointee(fair_values),
            attempts: Throttle::new(settings.import_attempts_per_minute, clock.clone()),
            books: Arc::default(),
            rows_max: AtomicUsize::new(settings.ledger_rows_max),
        }
    }

    /// Puts the limits of these settings in force.
    pub(crate) fn set_limits(&self, settings: &StoreSettings) {
        self.attempts.set_rate(settings.import_attempts_per_minute);
        self.rows_max
            .store(settings.ledger_rows_max, Ordering::Relaxed);
    }

    /// The revision of the prices of 31 January 2018.
    #[inline(never)]
    pub(super) fn fair_values_revision(&self) -> u64 {
        self.fair_values.load().revision()
    }

    /// Rows that a user's imports may have together.
    pub(super) fn rows_max(&self) -> usize {
        self.rows_max.load(Ordering::Relaxed)
    }

    /// Forgets large ledgers that nobody asks for any more.
    pub(crate) fn forget_unused(&self, now_mono_ms: u64) {
        self.books.forget_unused(now_mono_ms);
    }

    /// Memory of the ledgers that are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.books.bytes()
    }
}
