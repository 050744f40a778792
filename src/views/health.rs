//! `GET /api/health`: the state of each part of the service, and the words for every state.
//!
//! The service writes the document and `bhav status` reads it. What another version does not send
//! has its default, and a word of another version is read as the enum's fallback.

use std::borrow::Cow;

use super::values::{Day, Delay, Instant, Mark, read_documents};
use crate::base::{Source, words};
use crate::market::{Origin, Phase};

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
        /// `leader`: it asks the brokers for all nodes. `follower`: it is told what another asked.
        pub role: Role,
        /// The number of the leadership: this node's, or of the leader that a follower last heard.
        /// Absent where it is alone, or has heard none.
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
        pub disclaimer: Text,
    }

    /// What the leader tells the other nodes, as this node hears it.
    pub(crate) struct HealthRelay {
        pub state: RelayState,
        /// Milliseconds since the leader was last heard; absent before the first time.
        pub age_ms?: Option<u64>,
        /// Messages that were missed since the start.
        pub gaps: u64,
        /// The brokers' tokens of the day; absent where nodes have no way to tell each other.
        pub tokens?: Option<HealthTokens>,
    }

    /// Who gave the brokers' tokens, and what was told of them since the start.
    pub(crate) struct HealthTokens {
        /// `login` is one that this node, or the process before it, was given. `none` has also one
        /// that expired or was refused.
        pub broker_a: TokenOrigin,
        pub broker_b: TokenOrigin,
        /// Told to the other nodes: tokens, and that one was refused.
        pub told: u64,
        /// Told by another node and put in force here.
        pub taken: u64,
        /// Sealed with another `JWT_SECRET`.
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

    pub(crate) struct HealthStore {
        pub writes: u64,
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

    /// Responses kept for users.
    pub struct HealthCacheAnswers {
        pub users: usize,
        pub bytes: usize,
        pub hits: u64,
        pub misses: u64,
        pub evictions: u64,
        pub refused: u64,
    }

    /// The second level, on disk or on a server that nodes share.
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
        /// Whether every leading index has ticked within seconds and is believed, so that calls
        /// only confirm prices.
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
        pub instruments: usize,
        pub instruments_origin: Origin,
        /// Date of the list in force.
        pub instruments_as_of: Day,
        /// Rows of it that could not be read.
        pub instruments_unread: u64,
        /// Why a newer list is not in force, or a newer list of derivatives: it could not be
        /// fetched, or it is not believed. Absent once one is.
        pub instruments_failure?: Option<Text>,
    }

    /// The last revaluation at the close in which this process took part.
    pub(crate) struct HealthClose {
        pub date?: Option<Day>,
        pub priced: usize,
        /// Symbols without a closing price.
        pub missing: usize,
        /// How many of these had none on the trading date before either. The revaluation does not
        /// wait for them.
        pub suspended: usize,
        /// Whether more symbols are held than `BHAV_CLOSE_SYMBOLS_MAX`.
        pub cut_off: bool,
        pub pages: u64,
        /// Portfolios with their final point of the date.
        pub points: u64,
        /// Holdings in these points that had no closing price.
        pub carried: u64,
    }

    pub(crate) struct HealthSignals {
        pub as_of: Option<Day>,
        pub symbols: usize,
        /// Symbols whose candles are suspect and fetched again.
        pub silenced: usize,
        /// Symbols whose latest candle is not available.
        pub failed: usize,
        pub signals: usize,
        /// Only where provisional signals are wanted.
        pub provisional?: Option<usize>,
        /// When unfinished candles were last evaluated; absent before the first time.
        pub provisional_at?: Option<Instant>,
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

// ---- States
//
// The states of the parts of the service, each with its word.

words! {
    /// State of the service as a whole, the worst last.
    #[derive(PartialOrd, Ord)]
    pub(crate) enum ServiceState else Degraded {
        Ok = "ok",
        Degraded = "degraded",
        Down = "down",
    }

    /// What a node is among the nodes.
    pub enum Role else Alone {
        /// There are no others.
        Alone = "alone",
        Leader = "leader",
        Follower = "follower",
    }

    /// State of the store.
    pub enum StoreState else Unavailable {
        Ok = "ok",
        /// The file, its directory, the medium or the server takes no writes.
        ReadOnly = "read_only",
        Full = "full",
        /// The data is damaged. An operator has to replace it.
        Corrupt = "corrupt",
        /// Another process holds a lock.
        Busy = "busy",
        /// Reads are answered, and writes do not end in time.
        Stuck = "stuck",
        Unavailable = "unavailable",
    }

    /// State of the file with the signing key.
    pub(crate) enum KeyState else Kept {
        /// The file contains the key.
        Kept = "kept",
        /// There is no file: settings give the key.
        Given = "given",
        /// The file is missing: the next start generates another key, which ends every login.
        Missing = "missing",
        /// The file contains something else: the next start is refused, or ends every login.
        Changed = "changed",
    }

    /// State of the subscription to the leader's messages.
    pub enum RelayState else Connecting {
        Connecting = "connecting",
        /// Subscribed; the leader publishes.
        Following = "following",
        /// Subscribed, and nobody publishes.
        Silent = "silent",
        /// After a failure, before the next try.
        Waiting = "waiting",
        /// There is no server between the nodes.
        Off = "off",
    }

    /// Who gave a broker's token.
    pub enum TokenOrigin else None {
        /// There is none, or it expired or was refused.
        None = "none",
        /// The settings, which the next process reads too.
        Settings = "settings",
        /// A login: this process, or one before it, is the only one on this machine that has it.
        Login = "login",
        /// Another node sent it.
        OtherNode = "other_node",
    }

    /// What keeps the second cache level.
    pub enum CacheBackend else Sqlite {
        Sqlite = "sqlite",
        Valkey = "valkey",
        Redis = "redis",
        None = "none",
    }

    /// A warmer (background task).
    ///
    /// A run is one attempt, counted when the scheduler hears of its end:
    ///
    /// | warmer | a run is | and succeeds when |
    /// |---|---|---|
    /// | index | making the snapshot after a poll has ended | there is one, and it is not stale |
    /// | quotes | a poll, of either feed | it brought every index asked for |
    /// | instruments | a download of broker A's lists | both were read |
    /// | persist | a write to the second level | it was stored |
    /// | close | a call for closing prices, or a step on the store | it was answered, or done |
    /// | signals | a call for candles, or a step on the store | it was answered, or done |
    ///
    /// A poll or call that rate limit, circuit or token held back is none, nor is a write where
    /// there is no second level. A job that was lost is a failure. Work at the start, before the
    /// scheduler runs, is not counted.
    pub(crate) enum Warmer {
        Index = "index",
        Quotes = "quotes",
        Instruments = "instruments",
        Persist = "persist",
        Close = "close",
        Signals = "signals",
    }

    /// State of a warmer: `ok`, or the name of its fault.
    pub(crate) enum WarmerState else Starting {
        Starting = "starting",
        Ok = "ok",
        Stale = "stale",
        Failing = "failing",
        Paused = "paused",
    }

    /// State of a feed. The cause comes first where one is known, since an operator mends causes.
    pub(crate) enum FeedState else Failing {
        Off = "off",
        NoPermission = "no_permission",
        TokenDead = "token_dead",
        NoToken = "no_token",
        /// The circuit breaker holds calls back after failures.
        Open = "open",
        /// The call under way takes longer than a healthy one.
        Hanging = "hanging",
        Ok = "ok",
        Failing = "failing",
        /// Nobody has asked it for a while, or ever.
        Standby = "standby",
        /// It answers, and its prices do not move.
        Mute = "mute",
        Starting = "starting",
        Stale = "stale",
        /// Another node asks it.
        Relayed = "relayed",
    }

    /// State of broker A's WebSocket.
    pub(crate) enum TickerState else Waiting {
        /// Without a token, or while the market rests.
        Off = "off",
        Connecting = "connecting",
        /// Some leading index has not ticked yet.
        Subscribing = "subscribing",
        Speaking = "speaking",
        /// Until the next try.
        Waiting = "waiting",
        /// The broker refused the connection; waits for another token, or for a call that succeeds.
        Refused = "refused",
    }

    /// How a connection is not protected.
    pub(crate) enum ExposedReason else ClearText {
        ClearText = "clear_text",
        NoPassword = "no_password",
    }
}
