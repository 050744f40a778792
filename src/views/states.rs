//! The states of the parts of the service, each with its word.

use crate::base::words;

words! {
    /// State of the service as a whole, the worst last.
    #[derive(PartialOrd, Ord)]
    pub(crate) enum ServiceState else Degraded {
        Ok = "ok",
        Degraded = "degraded",
        Down = "down",
    }

    /// Severity of a trouble, the worst last; decides the exit code of `bhav status`.
    #[derive(PartialOrd, Ord)]
    pub(crate) enum Severity else Degraded {
        /// Worth knowing; nothing is missing now.
        Note = "note",
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
        /// As `failing`; the last call was refused because there were too many.
        RateLimited = "rate_limited",
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

    /// Whether what was asked for is there.
    pub enum DataState else Loading {
        Ready = "ready",
        /// It is being made and comes by itself.
        Loading = "loading",
        /// It cannot be made now; `detail` says why, and it is tried again.
        Unreachable = "unreachable",
        /// There is none, and none is on its way.
        None = "none",
    }

    /// How a connection is not protected.
    pub(crate) enum ExposedReason else ClearText {
        ClearText = "clear_text",
        NoPassword = "no_password",
    }
}
