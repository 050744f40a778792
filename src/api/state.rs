//! The state that handlers use: one value, made at the start and shared by all workers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::api::activation::Administration;
use crate::api::candles::KeptCandles;
use crate::api::cors::Cors;
use crate::api::errors;
use crate::api::openapi::Document;
use crate::api::portfolio::PortfolioState;
use crate::api::stream::EventStreams;
use crate::auth::{Auth, Caller};
use crate::base::{Clock, MarketDay};
use crate::brokers::{BrokerA, BrokerB, SharedToken};
use crate::cache::{L1, Pending};
use crate::http::PublishedJson;
use crate::http::{Prepared, Problem};
use crate::limits::throttle::{Key, Throttle};
use crate::market::{InstrumentList, MarketCalendar};
use crate::ops::RefusalLines;
use crate::rt::Lane;
use crate::signals::SignalList;
use crate::store::{SignalStore, Store};
use crate::web::Site;

/// The state that handlers use: cheap handles, put together by `app`.
pub struct State {
    pub clock: Clock,
    pub calendar: ArcSwap<MarketCalendar>,
    pub auth: Arc<Auth>,
    pub store: Arc<dyn Store>,
    pub snapshot: Arc<PublishedJson>,
    pub event_streams: Arc<EventStreams>,
    /// The prepared documents of the list and of the record of signals, and the list itself for
    /// filters.
    pub signals: Arc<PublishedJson>,
    pub signals_record: Arc<PublishedJson>,
    pub signal_list: Arc<ArcSwapOption<SignalList>>,
    /// Daily candles, and those of them that clients asked for.
    pub signal_store: Arc<dyn SignalStore>,
    pub candles: KeptCandles,
    pub l1: Arc<L1>,
    /// Symbols that L1 lacks, and the requests that wait for them.
    pub pending: Pending,
    pub instruments: Arc<ArcSwap<InstrumentList>>,
    pub health: Arc<ArcSwapOption<Prepared>>,
    pub broker_a: Arc<BrokerA>,
    /// Lane for users' syncs and activations. The shared feed has threads of its own.
    pub broker_a_lane: Arc<Lane>,
    /// Lane that ends the broker sessions which syncs opened, separate from the syncs.
    pub broker_a_sessions_lane: Arc<Lane>,
    pub broker_a_token: Arc<SharedToken>,
    pub broker_b: Arc<BrokerB>,
    pub broker_b_lane: Arc<Lane>,
    pub administration: Administration,
    /// Limits each user's changes to stored data.
    pub writes: Throttle,
    /// 0 while some feed can answer a miss within a request's wait. Otherwise the milliseconds
    /// until a feed may be asked again. Set by the scheduler.
    pub answer_in_ms: Arc<AtomicU64>,
    pub miss_wait_ms: u64,
    pub cors: ArcSwap<Cors>,
    pub portfolio: PortfolioState,
    /// Limits the log lines about refused requests.
    pub refusal_lines: RefusalLines,
    /// Addresses of broker A's and broker B's login pages, to which the API key is appended.
    pub login_pages: [String; 2],
    /// The dashboard; `None` if it is switched off.
    pub site: Option<&'static Site>,
    /// The OpenAPI description.
    pub document: Document,
}

impl State {
    /// The trading date and last close that prices are compared with at `now`.
    #[inline(never)]
    pub(super) fn market_day(&self, now: Timestamp) -> MarketDay {
        self.calendar.load().market_day(now)
    }

    /// The calendar of now, for what computes with it elsewhere; a reload may bring another.
    #[inline(never)]
    pub(super) fn calendar(&self) -> Arc<MarketCalendar> {
        self.calendar.load_full()
    }

    /// The origins allowed now; a reload may change them.
    #[inline(never)]
    pub(super) fn cors(&self) -> Arc<Cors> {
        self.cors.load_full()
    }

    /// A function of its own, because the load takes the address of a thread-local and the caller
    /// may park.
    #[inline(never)]
    pub(super) fn cors_lines(&self, origin: Option<&[u8]>) -> Option<Arc<[u8]>> {
        self.cors.load().lines(origin)
    }
}

impl State {
    /// Counts one change that `caller` is about to make.
    ///
    /// # Errors
    /// 429 if the caller has made too many changes lately.
    pub(super) fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.writes.admit(&[Key::User(caller.id.0)]).map_err(errors::too_many_writes)
    }
}
