//! The state that handlers use: one value, made at the start and shared by all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::api::administration::Administration;
use crate::api::cors::CorsInForce;
use crate::api::errors;
use crate::api::event_streams::EventStreams;
use crate::api::kept_candles::KeptCandles;
use crate::api::portfolio::PortfolioState;
use crate::api::quote_source::QuoteSource;
use crate::api::trades::TradesState;
use crate::auth::throttle::{Key, Throttle};
use crate::auth::{Auth, Caller};
use crate::base::{ByBroker, Clock, MarketDay};
use crate::brokers::{BrokerA, PortfolioClient};
use crate::cache::{CandleWork, L1, Movers, Pending};
use crate::http::{Prepared, Problem, PublishedJson};
use crate::market::{IndexList, InstrumentList, MarketCalendar, Sectors, Universe};
use crate::ops::RefusalLines;
use crate::rt::Lane;
use crate::signals::SignalList;
use crate::store::Store;
use crate::web::{File, Site};

/// The state that handlers use: cheap handles, put together by `app`.
pub struct State {
    pub clock: Clock,
    pub calendar: ArcSwap<MarketCalendar>,
    /// The indices and sectors of the snapshot.
    pub indices: Arc<IndexList>,
    pub auth: Arc<Auth>,
    pub store: Arc<Store>,
    pub snapshot: Arc<PublishedJson>,
    pub event_streams: Arc<EventStreams>,
    /// The prepared documents of the list and of the record of signals, and the list itself for
    /// filters.
    pub signals: Arc<PublishedJson>,
    pub signals_record: Arc<PublishedJson>,
    pub signal_list: Arc<ArcSwapOption<SignalList>>,
    /// What is being done about candles.
    pub(crate) candle_work: Arc<ArcSwap<CandleWork>>,
    /// Daily candles that clients asked for.
    pub(crate) candles: KeptCandles,
    pub l1: Arc<L1>,
    pub(crate) movers: Arc<Movers>,
    /// Symbols missing from L1, and the requests that wait for them.
    pub pending: Pending,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    /// The shares of which signals are made.
    pub(crate) universe: ArcSwap<Universe>,
    /// The sectors of companies.
    pub(crate) sectors: Arc<ArcSwap<Sectors>>,
    pub health: Arc<ArcSwapOption<Prepared>>,
    /// The source of real-time quotes.
    pub broker_a: Arc<BrokerA>,
    pub brokers: ByBroker<BrokerAccess>,
    pub(crate) administration: Administration,
    /// Limits each user's changes to stored data.
    pub writes: Throttle,
    /// 0 while some feed can answer a miss within a request's wait. Otherwise the milliseconds
    /// until a feed may be asked again. Set by the scheduler.
    pub answer_in_ms: Arc<AtomicU64>,
    pub miss_wait_ms: u64,
    pub(crate) cors: CorsInForce,
    pub portfolio: PortfolioState,
    pub trades: TradesState,
    /// Limits the log lines about refused requests.
    pub refusal_lines: RefusalLines,
    /// Addresses of the brokers' login pages, to which the API key is appended. `None` in a public
    /// demo.
    pub login_pages: Option<ByBroker<String>>,
    /// The dashboard; `None` if it is switched off.
    pub site: Option<&'static Site>,
    /// Whether no request changes what is stored, as in a public demo.
    pub is_read_only: bool,
    /// The OpenAPI description.
    pub description: &'static File,
}

/// A broker as users' syncs and activations reach it.
pub struct BrokerAccess {
    pub client: Arc<dyn PortfolioClient>,
    /// Lane for users' syncs and activations. The shared feed has threads of its own.
    pub lane: Arc<Lane>,
    /// Lane that ends the sessions which syncs opened, separate from the syncs. `None` where no
    /// session outlives its sync.
    pub sessions_lane: Option<Arc<Lane>>,
}

impl State {
    /// The trading date and last close that prices are compared with at `now`.
    #[inline(never)]
    pub(super) fn market_day(&self, now: Timestamp) -> MarketDay {
        self.calendar.load().market_day(now)
    }

    /// The current calendar, for computations elsewhere. A reload may replace it.
    #[inline(never)]
    pub(super) fn calendar(&self) -> Arc<MarketCalendar> {
        self.calendar.load_full()
    }

    /// Wait for missing symbols. It is 0 if no feed can answer in time; the symbols are still
    /// registered for the next poll.
    pub(super) fn miss_wait_ms(&self) -> u64 {
        let answering = self.answer_in_ms.load(Ordering::Relaxed) == 0;
        if answering { self.miss_wait_ms } else { 0 }
    }

    /// Where quotes are looked up now.
    pub(super) fn quote_source(&self) -> QuoteSource<'_> {
        QuoteSource {
            l1: &self.l1,
            pending: &self.pending,
            instruments: &self.instruments,
            clock: &self.clock,
            wait_ms: self.miss_wait_ms(),
        }
    }

    /// Counts one change that `caller` is about to make.
    ///
    /// # Errors
    /// 429 if the caller has made too many changes lately.
    pub(super) fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.writes
            .admit(&[Key::User(caller.id.0)])
            .map_err(errors::too_many_writes)
    }
}
