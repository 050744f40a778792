//! `GET /api/health`: the state of each part of the service, and the words for every state.
//!
//! The service writes the document and `bhav status` reads it. What another version does not send
//! has its default, and a word of another version is read as the enum's fallback.

use std::borrow::Cow;

use crate::base::{Broker, ByBroker, Source};
use crate::market::{Origin, Phase};
use crate::views::states::{
    CacheBackend, ExposedReason, FeedState, KeyState, RelayState, Role, ServiceState, Severity,
    StoreState, TickerState, TokenOrigin, Warmer, WarmerState,
};
use crate::views::values::{Day, Delay, Instant, Mark, read_documents};

/// A text of the program in the document that it writes.
type Text = Cow<'static, str>;

read_documents! {
    /// State as last probed, at most a few seconds ago.
    pub(crate) struct Health {
        /// `down` comes with status 503.
        pub status: ServiceState,
        pub version: Text,
        pub uptime_s: u64,
        /// What this node is called among several; absent where it is alone.
        pub node?: Option<String>,
        /// `leader`: it asks the brokers for all nodes. `follower`: it shows what
        /// the leader got.
        pub role: Role,
        /// The number of the leadership, which grows with each change of the leader: this node's,
        /// or that of the leader whose message came last. Absent where it is alone, or none came.
        pub epoch?: Option<u64>,
        /// The node that leads in this epoch, as `node` names it.
        pub leader?: Option<String>,
        pub relay?: Option<HealthRelay>,
        pub changes?: Option<HealthChanges>,
        /// The store of accounts and portfolios.
        pub database: StoreState,
        /// The key that signs access tokens: kept in its file, or given by a setting. Where the
        /// file is missing or has been changed, the next start ends every login.
        pub signing_key: KeyState,
        pub keys: HealthKeys,
        pub store: HealthStore,
        pub cache_l1: HealthCacheL1,
        pub cache_answers: HealthCacheAnswers,
        pub cache_l2: HealthCacheL2,
        pub warmers: HealthWarmers,
        pub feeds: HealthFeeds,
        pub market: HealthMarket,
        pub close: HealthClose,
        pub signals: HealthSignals,
        pub lanes: Vec<LaneReport>,
        pub log: HealthLog,
        pub clock: HealthClock,
        pub backup?: Option<HealthBackup>,
        pub reload?: Option<HealthReload>,
        pub admin_listener?: Option<HealthAdminListener>,
        pub shared_server?: Option<HealthSharedServer>,
        /// Settings by which others on the network can read what is sent, or use the shared server;
        /// absent where there is none.
        pub exposed?: Vec<HealthExposed>,
        /// What is wrong and what to do, the worst first.
        pub troubles?: Option<Vec<HealthTrouble>>,
        pub day?: Option<HealthDay>,
        pub disclaimer: Text,
    }

    /// Something that is wrong, or worth knowing.
    pub(crate) struct HealthTrouble {
        /// Stable, for programs.
        pub name: Text,
        /// `note`: nothing is missing now.
        pub severity: Severity,
        pub cause: String,
        /// What to do.
        pub cure: Text,
        /// The command of the cure, if one is enough.
        pub command?: Option<Text>,
        /// Since when it has been seen, at the earliest since the start.
        pub since_ist: Instant,
        /// When it will probably be over; absent where that is not known.
        pub until_ist?: Option<Instant>,
    }

    /// The worst state of each part in each piece of the last 24 hours, as far as this process has
    /// run. A piece is a letter, the oldest first: `o` good, `d` with restrictions, `x` down, `-`
    /// not known or not in use.
    pub(crate) struct HealthDay {
        /// Length of a piece.
        pub piece_s: u64,
        /// End of the last piece.
        pub ends_ist: Instant,
        pub service: String,
        /// The snapshot.
        pub prices: String,
        pub broker_a: String,
        pub public: String,
        pub database: String,
    }

    /// The prices that the leading node sends to the others, as they arrive here.
    pub(crate) struct HealthRelay {
        pub state: RelayState,
        /// Milliseconds since the leader's last message; absent before the first.
        pub age_ms?: Option<u64>,
        /// Messages that did not arrive since the start.
        pub gaps: u64,
        /// The brokers' tokens of the day; absent without a server that the nodes share.
        pub tokens?: Option<HealthTokens>,
    }

    /// Where the brokers' tokens of the day came from, and the messages of nodes about them since
    /// the start.
    pub(crate) struct HealthTokens {
        /// `login` is one that this node, or the process before it, was given. `none` has also one
        /// that expired or was refused.
        pub broker_a: TokenOrigin,
        pub broker_b: TokenOrigin,
        /// Messages sent to the other nodes: a token, or that a broker refused one.
        pub told: u64,
        /// Tokens that came from another node and are used here.
        pub taken: u64,
        /// Messages of nodes with another `JWT_SECRET`, which are not used.
        pub foreign: u64,
    }

    /// What this node knows of accounts and tokens that other nodes changed; absent where it is
    /// alone.
    pub(crate) struct HealthChanges {
        /// Number of the last change that this node has applied.
        pub applied: i64,
        /// Milliseconds since it last read them. Above 30,000 it accepts no token.
        pub age_ms: u64,
    }

    /// Changes of the database since the start.
    pub(crate) struct HealthStore {
        pub writes: u64,
        /// Transactions, each with one change or several.
        pub commits: u64,
        pub refused: u64,
    }

    /// API keys, and requests with one since the start.
    pub(crate) struct HealthKeys {
        /// Keys that are good or have expired within 30 days.
        pub kept: usize,
        /// Requests with a good key.
        pub used: u64,
        /// Requests that were refused because of their key, by error code.
        pub refused: HealthKeysRefused,
    }

    pub(crate) struct HealthKeysRefused {
        pub key_invalid: u64,
        pub key_expired: u64,
        pub scope_missing: u64,
        pub login_required: u64,
        pub too_many_requests: u64,
        pub key_in_query: u64,
    }

    /// Quotes in memory.
    pub(crate) struct HealthCacheL1 {
        /// Entries.
        pub size: usize,
        pub hits: u64,
        pub misses: u64,
        pub evictions: u64,
        /// Requests that wait for a quote.
        pub waiting: usize,
    }

    /// Responses about users' portfolios that are kept in memory.
    pub struct HealthCacheAnswers {
        pub users: usize,
        pub bytes: usize,
        pub hits: u64,
        pub misses: u64,
        pub evictions: u64,
        pub refused: u64,
    }

    /// The last prices, kept for a restart in a file or on a server that nodes share.
    pub(crate) struct HealthCacheL2 {
        pub backend: CacheBackend,
        pub hits: u64,
        pub misses: u64,
        pub errors: u64,
    }

    /// Background tasks that keep data fresh.
    pub(crate) struct HealthWarmers {
        pub index: WarmerState,
        pub quotes: WarmerState,
        pub instruments: WarmerState,
        pub persist: WarmerState,
        pub close: WarmerState,
        pub signals: WarmerState,
    }

    pub(crate) struct HealthFeeds {
        pub broker_a: Feed,
        pub public: Feed,
    }

    pub(crate) struct Feed {
        pub state: FeedState,
        /// Milliseconds since the last successful call was sent; absent before the first.
        pub age_ms?: Option<u64>,
        pub delay_s?: Option<Delay>,
        pub rounds: u64,
        pub failures: u64,
        /// Cause of the last failure; absent once a call succeeds.
        pub failure?: Option<String>,
        /// Broker A's WebSocket; absent at the public provider and when switched off.
        pub ticker?: Option<HealthTicker>,
    }

    /// Prices that are pushed.
    pub(crate) struct HealthTicker {
        pub state: TickerState,
        /// Whether each index of the snapshot has come over it within seconds and passed the
        /// checks, so that calls only confirm prices.
        pub live: bool,
        /// Milliseconds since the last tick; absent before the first.
        pub age_ms?: Option<u64>,
        /// Instruments subscribed now.
        pub subscribed: usize,
        pub ticks: u64,
        /// Connections that ended or could not be opened.
        pub reconnects: u64,
        /// Why the last one ended or could not be opened; absent once prices flow.
        pub failure?: Option<Text>,
    }

    pub(crate) struct HealthMarket {
        pub phase: Phase,
        /// Whether the calendar knows today's kind and hours.
        pub calendar_known: bool,
        /// Last date that the calendar's lists of holidays cover without a gap.
        pub calendar_until?: Option<Day>,
        /// What the calendar does not know of today or of the next 30 days, in words with its date.
        /// Of such a date the phase is what weekday and hours say, and nothing is official.
        pub calendar_unknown: Vec<Text>,
        /// As in the snapshot, like the three that follow.
        pub as_of_ist: Option<Instant>,
        pub delay_s?: Option<Delay>,
        pub stale: Option<bool>,
        pub source: Option<Source>,
        /// Instruments in the list that is used.
        pub instruments: usize,
        pub instruments_origin: Origin,
        /// Date of that list.
        pub instruments_as_of: Day,
        /// Rows of it that could not be read.
        pub instruments_unread: u64,
        /// Why a newer list is not used, or a newer list of derivatives: it could not be fetched,
        /// or differs too much from the last one. Absent once one is used.
        pub instruments_failure?: Option<Text>,
    }

    /// The last evening's valuation of all portfolios at closing prices in which this process took
    /// part.
    pub(crate) struct HealthClose {
        pub date?: Option<Day>,
        /// Symbols with a closing price.
        pub priced: usize,
        /// Symbols without a closing price.
        pub missing: usize,
        /// How many of these had none on the trading date before either. The valuation does not
        /// wait for them.
        pub suspended: usize,
        /// Whether users hold more symbols than the closing prices of one evening are fetched for.
        pub cut_off: bool,
        /// Transactions, each with the portfolios of some users.
        pub pages: u64,
        /// Portfolios with their final point of the date.
        pub points: u64,
        /// Holdings in these points that had no closing price.
        pub carried: u64,
    }

    pub(crate) struct HealthSignals {
        /// Date of the list that is shown.
        pub as_of: Option<Day>,
        /// Shares for which signals are made.
        pub symbols: usize,
        /// Shares whose candles look wrong, as after a split, and are fetched again.
        pub silenced: usize,
        /// Symbols whose latest candle is not available, or that have none since their history
        /// could not be had or was refused.
        pub failed: usize,
        /// Signals in the list.
        pub signals: usize,
    }

    /// Threads for work that may block, behind a bounded queue.
    pub(crate) struct LaneReport {
        pub name: Text,
        /// Jobs in the queue.
        pub depth: usize,
        pub running: u64,
        pub completed: u64,
        /// Jobs refused because the queue was full.
        pub refused: u64,
        /// Jobs whose deadline passed before they ran.
        pub expired: u64,
        pub panicked: u64,
        /// Longest wait in the queue.
        pub wait_ms_max: u64,
    }

    /// What the log has lost since the start.
    pub(crate) struct HealthLog {
        pub lines_dropped: u64,
        pub writes_failed: u64,
    }

    /// This machine's clock compared with the exchange's.
    pub(crate) struct HealthClock {
        /// Present if the difference is too large for delays to be correct; negative: behind.
        pub ahead_of_exchange_ms?: Option<i64>,
        /// Present, and true, if the clock was set to another time on purpose.
        pub set?: Mark,
    }

    /// The last backup made by a command; absent before the first.
    pub(crate) struct HealthBackup {
        /// When the last good backup was made.
        pub succeeded_ist?: Option<Instant>,
        /// Whether the last attempt failed.
        pub failed: bool,
    }

    /// The last reload of the settings; present only if it was refused.
    pub(crate) struct HealthReload {
        pub refused_ist: Instant,
    }

    /// The listener of metrics and probes; present only if its default address was not available.
    pub(crate) struct HealthAdminListener {
        pub failure: String,
    }

    /// A connection to another machine that is not protected.
    pub(crate) struct HealthExposed {
        pub setting: Text,
        /// `clear_text`: others can read it. `no_password`: others can use the server.
        pub reason: ExposedReason,
    }

    /// The server that nodes share; present only while there is something to set right on it.
    pub(crate) struct HealthSharedServer {
        /// Each cause, with the setting to look at.
        pub refused: Vec<String>,
        /// Keys of the nodes that somebody else wrote within ten minutes, without the namespace.
        /// The nodes replace them; absent where there is none.
        pub foreign?: Vec<String>,
    }
}

impl HealthWarmers {
    pub(crate) fn of(&self, warmer: Warmer) -> WarmerState {
        match warmer {
            Warmer::Index => self.index,
            Warmer::Quotes => self.quotes,
            Warmer::Instruments => self.instruments,
            Warmer::Persist => self.persist,
            Warmer::Close => self.close,
            Warmer::Signals => self.signals,
        }
    }
}

impl HealthFeeds {
    pub(crate) fn of(&self, source: Source) -> &Feed {
        match source {
            Source::BrokerA => &self.broker_a,
            Source::Public => &self.public,
        }
    }
}

impl HealthTokens {
    /// Who gave the tokens, with all counts at zero.
    pub(crate) fn given_by(origins: ByBroker<TokenOrigin>) -> Self {
        let ByBroker([broker_a, broker_b]) = origins;
        Self {
            broker_a,
            broker_b,
            ..Self::default()
        }
    }

    pub(crate) fn of(&self, broker: Broker) -> TokenOrigin {
        match broker {
            Broker::A => self.broker_a,
            Broker::B => self.broker_b,
        }
    }
}
