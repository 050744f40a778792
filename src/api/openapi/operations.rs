//! What the OpenAPI description says of each operation besides the table of routes: its
//! description, parameters, body and reply, and the refusals that only it has.

use crate::api::openapi::description::{
    ACTIVATION_BAD_GATEWAY, ACTIVATION_FORBIDDEN, ACTIVATION_UNAVAILABLE, BODY_INVALID,
    BROKER_LIMITED, BROKER_NOT_READY, BROKER_TIMEOUT, CANDLES_UNAVAILABLE, CODE_REFUSED,
    JOURNAL_FULL, LOGOUT_UNAVAILABLE, NO_CANDLES, NO_SUCH_ENTRY, NOT_THE_ADMINISTRATOR,
    PASSWORD_UNAUTHORIZED, PASSWORD_UNAVAILABLE, PORTFOLIO_UNAVAILABLE, QUERY_INVALID, Refusal,
    SIGNALS_NOT_READY, STORE_UNAVAILABLE, SYNC_BAD_GATEWAY, SYNC_CONFLICT, SYNC_FORBIDDEN,
    SYNC_UNAUTHORIZED, SYNC_UNAVAILABLE, TOO_MANY_ATTEMPTS, TOO_MANY_WRITES, own,
};
use crate::http::Method;
use crate::http::Method::{Delete, Get, Post, Put};

pub(super) struct Operation {
    pub(super) route: (Method, &'static str),
    pub(super) id: &'static str,
    pub(super) tag: &'static str,
    pub(super) description: &'static str,
    /// Names of parameters in `frame.json`.
    pub(super) parameters: &'static [&'static str],
    /// Schema of the request body.
    pub(super) body: Option<&'static str>,
    /// Meaning of a success.
    pub(super) success: &'static str,
    /// Status and schema of a success.
    pub(super) reply: (u16, &'static str),
    /// Headers of a success besides `Cache-Control`.
    pub(super) headers: &'static [&'static str],
    pub(super) refusals: &'static [Refusal],
}

/// In the order of the document.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        route: (Get, "/api/index/snapshot"),
        id: "readSnapshot",
        tag: "market",
        description: "\
            Answered from memory. Poll it with `If-None-Match`: an unchanged snapshot is a 304 \
            without a body. Before the first data has arrived the answer is 503. After a restart \
            the last snapshot is served at once, marked `stale` until it is refreshed.",
        parameters: &["IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "The snapshot as of its last refresh.",
        reply: (200, "Snapshot"),
        headers: &["ETag", "Vary"],
        refusals: &[own(503, &["snapshot_not_ready"])],
    },
    Operation {
        route: (Get, "/api/index/stream"),
        id: "streamSnapshot",
        tag: "market",
        description: "\
            Server-sent events, for `EventSource` and for any client that reads line by line. \
            `snapshot` carries the body of `/api/index/snapshot`, byte for byte: one at first and \
            one after each change, at most one in an interval. Each is the whole state, so a \
            client that reads slowly misses some and never gets an old one. The event's `id` is \
            the content hash in the snapshot's `ETag`; a client that sends the current one back \
            gets nothing until the next change. With `symbols` the event `quotes` comes beside it, \
            without an id: all of these symbols at first, then those whose price, staleness or \
            availability has changed, and all again for a client that has missed some. A symbol \
            is in the state in which it was named last. While the stream is open its symbols are \
            kept fresh. `beat` comes after 15 seconds without another event. Before the first \
            data no `snapshot` comes. gzip is supported, br is not. Streams end after about an \
            hour, and when the server stops: connect again.",
        parameters: &["stream_symbols", "last_event_header", "last_event_id", "AcceptEncoding"],
        body: None,
        success: "Events until the client or the server ends the stream.",
        reply: (200, "Snapshot"),
        headers: &["Vary", "X-Accel-Buffering"],
        refusals: &[
            own(
                400,
                &["symbols_missing", "symbol_malformed", "too_many_symbols", "malformed_request"],
            ),
            own(503, &["streams_full"]),
        ],
    },
    Operation {
        route: (Get, "/api/portfolio/live-prices"),
        id: "readQuotes",
        tag: "market",
        description: "\
            Symbols that are in memory are answered at once. The others are fetched in batches \
            shared by all clients, and the request waits for them for a bounded time. A symbol \
            that still has no quote then is named in `unavailable`.",
        parameters: &["symbols"],
        body: None,
        success: "Quotes of the symbols that have one; the others are named in `unavailable`.",
        reply: (200, "Quotes"),
        headers: &[],
        refusals: &[
            own(
                400,
                &["symbols_missing", "symbol_malformed", "too_many_symbols", "malformed_request"],
            ),
            own(503, &["quotes_unavailable"]),
        ],
    },
    Operation {
        route: (Get, "/api/market/candles"),
        id: "readCandles",
        tag: "market",
        description: "\
            Finished trading days, oldest first, as signals are found in them: prices are adjusted \
            for splits. Stored are the candles of the symbols that the operator watches (the \
            universe); a new one comes in the evening. Of other symbols, and before the first \
            candles have been fetched, the answer is 404.",
        parameters: &["candles_symbol", "candles_days", "IfNoneMatch"],
        body: None,
        success: "The newest candles.",
        reply: (200, "Candles"),
        headers: &["ETag", "Vary"],
        refusals: &[QUERY_INVALID, NO_CANDLES, CANDLES_UNAVAILABLE],
    },
    Operation {
        route: (Get, "/api/market/search"),
        id: "searchInstruments",
        tag: "market",
        description: "\
            At most 20 shares and indices that can be quoted, from memory. A query for a word that \
            more than a thousand names have may miss some.",
        parameters: &["q", "IfNoneMatch"],
        body: None,
        success: "What was found; the list may be empty.",
        reply: (200, "SearchResults"),
        headers: &["ETag"],
        refusals: &[QUERY_INVALID],
    },
    Operation {
        route: (Get, "/api/signals"),
        id: "listSignals",
        tag: "market",
        description: "\
            Signals of the last trading date that was published, highest confidence first; those \
            of one symbol and date stand together. With several filters, a signal is listed if \
            all of them keep it.",
        parameters: &[
            "direction",
            "symbol",
            "min_samples",
            "provisional",
            "IfNoneMatch",
            "AcceptEncoding",
        ],
        body: None,
        success: "The list, complete or filtered.",
        reply: (200, "SignalList"),
        headers: &["ETag", "May-Vary"],
        refusals: &[QUERY_INVALID, SIGNALS_NOT_READY],
    },
    Operation {
        route: (Get, "/api/signals/record"),
        id: "readSignalRecord",
        tag: "market",
        description: "\
            Counts, hit rates, same-day lift, reliability table and Brier scores of all signals \
            published so far, each with how sure it is.",
        parameters: &["IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "The record.",
        reply: (200, "SignalRecord"),
        headers: &["ETag", "Vary"],
        refusals: &[SIGNALS_NOT_READY],
    },
    Operation {
        route: (Post, "/api/auth/register"),
        id: "register",
        tag: "account",
        description: "\
            Creates an account and logs it in. Addresses are compared without regard to case. \
            Attempts are limited per address, apart from those of logging in; one that names an \
            e-mail that is taken counts. The operator can close registration, or leave it open \
            for the first account alone: 403 `registration_closed`.",
        parameters: &[],
        body: Some("Registration"),
        success: "The account has been created.",
        reply: (201, "LoggedIn"),
        headers: &["May-Set-Cookie"],
        refusals: &[
            own(
                400,
                &[
                    "malformed_json",
                    "validation_failed",
                    "email_taken",
                    "password_too_common",
                    "password_repetitive",
                    "malformed_request",
                ],
            ),
            own(403, &["registration_closed", "cross_site_request"]),
            TOO_MANY_ATTEMPTS,
            PASSWORD_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Post, "/api/auth/login"),
        id: "login",
        tag: "account",
        description: "\
            An unknown address and a wrong password get the same answer. Attempts are limited per \
            account and per client address. Networks from which the account was used lately have \
            attempts of their own, and so has whoever sends a token of the account along, by \
            header or cookie, even one that has ended. With `cookie` the token is set as a \
            cookie, which only a page of this site may ask for; a second cookie, \
            `earlier_login_cookie`, gives access to nothing and proves this login to later ones.",
        parameters: &[],
        body: Some("Login"),
        success: "A token for 7 days.",
        reply: (200, "LoggedIn"),
        headers: &["May-Set-Cookie"],
        refusals: &[
            BODY_INVALID,
            own(401, &["invalid_credentials"]),
            own(403, &["account_disabled", "cross_site_request"]),
            TOO_MANY_ATTEMPTS,
            PASSWORD_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Get, "/api/auth/session"),
        id: "readSession",
        tag: "account",
        description: "\
            Whether the request has a valid token, of whom, and until when. A guest gets nulls and \
            not a 401. Pages ask this first.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The state at this moment.",
        reply: (200, "SessionState"),
        headers: &["ETag"],
        refusals: &[STORE_UNAVAILABLE],
    },
    Operation {
        route: (Post, "/api/auth/logout"),
        id: "logout",
        tag: "account",
        description: "\
            Revokes the access token that came with this request. Other tokens of the account \
            stay valid, unless the body asks for `everywhere`. A 503 deletes the cookie too, and \
            refuses the token until the service restarts.",
        parameters: &[],
        body: Some("Logout"),
        success: "The token has been revoked, or all tokens of the account.",
        reply: (200, "Message"),
        headers: &["Set-Cookie"],
        refusals: &[BODY_INVALID, LOGOUT_UNAVAILABLE],
    },
    Operation {
        route: (Post, "/api/auth/password"),
        id: "changePassword",
        tag: "account",
        description: "\
            Needs the current password. Every access token issued before is refused from then on; \
            the answer carries a new one.",
        parameters: &[],
        body: Some("PasswordChange"),
        success: "A new token; all older ones are refused.",
        reply: (200, "LoggedIn"),
        headers: &["Set-Cookie"],
        refusals: &[
            own(
                400,
                &[
                    "malformed_json",
                    "validation_failed",
                    "password_too_common",
                    "password_repetitive",
                    "malformed_request",
                ],
            ),
            PASSWORD_UNAUTHORIZED,
            TOO_MANY_ATTEMPTS,
            PASSWORD_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Delete, "/api/auth/account"),
        id: "eraseAccount",
        tag: "account",
        description: "\
            Needs the password. Deletes the user, the portfolio and the journal for good, and \
            refuses every access token of the account. The account has no representation, so any \
            `If-Match` is 412.",
        parameters: &[],
        body: Some("PasswordProof"),
        success: "Deleted for good.",
        reply: (200, "AccountErased"),
        headers: &["Set-Cookie"],
        refusals: &[BODY_INVALID, PASSWORD_UNAUTHORIZED, TOO_MANY_ATTEMPTS, PASSWORD_UNAVAILABLE],
    },
    Operation {
        route: (Post, "/api/portfolio/sync"),
        id: "syncBrokerA",
        tag: "portfolio",
        description: "\
            Logs in at the broker with the credentials in the body, and replaces that broker's \
            holdings and positions in one transaction; a sync that fails changes nothing. \
            Credentials are held in memory for the length of the call and are never stored or \
            logged. Syncs of one user run one after the other. Codes that begin with `broker_` \
            repeat what the broker said: a 401 with one of them does not mean that your access \
            token is invalid. The reply says whose portfolio it is at the broker. A code of \
            another person there than the one of the sync before is 409 `broker_user_changed` and \
            changes nothing, unless `replace_broker_user` is true.",
        parameters: &[],
        body: Some("BrokerALogin"),
        success: "The sync has been stored.",
        reply: (200, "SyncedBrokerA"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            SYNC_UNAUTHORIZED,
            SYNC_FORBIDDEN,
            SYNC_CONFLICT,
            BROKER_LIMITED,
            SYNC_BAD_GATEWAY,
            SYNC_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Post, "/api/portfolio/brokerb-sync"),
        id: "syncBrokerB",
        tag: "portfolio",
        description: "\
            Logs in at the broker with the credentials in the body, and replaces that broker's \
            holdings and positions in one transaction; a sync that fails changes nothing. \
            Credentials are held in memory for the length of the call and are never stored or \
            logged. Syncs of one user run one after the other. Codes that begin with `broker_` \
            repeat what the broker said: a 401 with one of them does not mean that your access \
            token is invalid. The reply says whose portfolio it is at the broker. A code of \
            another person there than the one of the sync before is 409 `broker_user_changed` and \
            changes nothing, unless `replace_broker_user` is true.",
        parameters: &[],
        body: Some("BrokerBLogin"),
        success: "The sync has been stored.",
        reply: (200, "SyncedBrokerB"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            SYNC_UNAUTHORIZED,
            SYNC_FORBIDDEN,
            SYNC_CONFLICT,
            BROKER_LIMITED,
            SYNC_BAD_GATEWAY,
            SYNC_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Get, "/api/portfolio/holdings"),
        id: "readHoldings",
        tag: "portfolio",
        description: "\
            Holdings of both brokers with their totals, and the same instrument at both brokers \
            merged by ISIN. There is data only after a sync.",
        parameters: &["broker", "live", "IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "The holdings. Before the first sync the list is empty and the totals are zero.",
        reply: (200, "Holdings"),
        headers: &["ETag", "May-Vary"],
        refusals: &[QUERY_INVALID, PORTFOLIO_UNAVAILABLE],
    },
    Operation {
        route: (Get, "/api/portfolio/positions"),
        id: "readPositions",
        tag: "portfolio",
        description: "\
            Positions of both brokers. Without `type`, rows of both lists are returned, each with \
            its own `type`. They are as of the last sync: rows and totals name its trading date, \
            and say where that is over.",
        parameters: &["type", "include_closed", "IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "Open positions, or all of them with `include_closed=true`.",
        reply: (200, "Positions"),
        headers: &["ETag", "Vary"],
        refusals: &[QUERY_INVALID, PORTFOLIO_UNAVAILABLE],
    },
    Operation {
        route: (Get, "/api/portfolio/pnl"),
        id: "readPnl",
        tag: "portfolio",
        description: "\
            Totals of all holdings, and one point per date. Profit is the unrealised profit of \
            what is held: shares that were sold are in it no more. Each point says which brokers \
            and how many holdings it is of; where these change, two points do not continue each \
            other. A sync writes the point of its date. After each trading day's close, all \
            portfolios are revalued at closing prices, so the trend continues without a new sync.",
        parameters: &["days", "IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "Totals as of the last sync or close, and their trend.",
        reply: (200, "Pnl"),
        headers: &["ETag", "Vary"],
        refusals: &[QUERY_INVALID, PORTFOLIO_UNAVAILABLE],
    },
    Operation {
        route: (Delete, "/api/portfolio/data"),
        id: "deletePortfolio",
        tag: "portfolio",
        description: "\
            Deletes all holdings, positions and P&L snapshots of the user for good. The trade \
            journal is not touched. There is no representation at this path, so any `If-Match` is \
            412.",
        parameters: &[],
        body: None,
        success: "Deleted for good.",
        reply: (200, "PortfolioDeleted"),
        headers: &[],
        refusals: &[own(409, &["sync_in_progress"]), TOO_MANY_WRITES, STORE_UNAVAILABLE],
    },
    Operation {
        route: (Get, "/api/portfolio/export"),
        id: "exportAll",
        tag: "portfolio",
        description: "\
            The account, its syncs, holdings, positions, P&L snapshots and journal, with every \
            digit that is stored. A user may have one export in progress, and only a few long \
            ones are made at the same time.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The export.",
        reply: (200, "Export"),
        headers: &["ETag", "Content-Disposition"],
        refusals: &[
            own(409, &["export_in_progress", "export_too_long"]),
            own(
                503,
                &["store_unavailable", "store_busy", "store_late", "portfolio_busy", "export_busy"],
            ),
        ],
    },
    Operation {
        route: (Get, "/api/journal"),
        id: "listJournal",
        tag: "journal",
        description: "\
            Entries by trading date, newest first, then by id. `next_cursor` leads to the next \
            page.",
        parameters: &["PageLimit", "PageCursor", "IfNoneMatch"],
        body: None,
        success: "\
            A page. Long entries make it shorter than `limit`; only `next_cursor` says whether \
            there are more.",
        reply: (200, "JournalPage"),
        headers: &["ETag", "Vary"],
        refusals: &[
            own(400, &["validation_failed", "cursor_invalid", "malformed_request"]),
            STORE_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Post, "/api/journal"),
        id: "addEntry",
        tag: "journal",
        description: "\
            Adds an entry. A user may have 10,000 entries with 8 MiB of text in total (symbol, \
            strategy, notes and tags); beyond either limit the answer is 409 `limit_reached`. \
            Preconditions are compared with the page that a GET with the same query would return.",
        parameters: &["IfMatch", "IfNoneMatchOfChange"],
        body: Some("JournalFields"),
        success: "The entry has been added.",
        reply: (201, "JournalEntry"),
        headers: &["Location", "ETag"],
        refusals: &[BODY_INVALID, JOURNAL_FULL, TOO_MANY_WRITES, STORE_UNAVAILABLE],
    },
    Operation {
        route: (Get, "/api/journal/search"),
        id: "searchJournal",
        tag: "journal",
        description: "\
            Entries that fit every given filter, newest first, with the number of all that fit, \
            and what the closed pairs among them came to. Pairs are matched over the whole \
            journal, so a sale may close a purchase that does not fit.",
        parameters: &[
            "journal_symbol",
            "journal_strategy",
            "journal_tag",
            "journal_from",
            "journal_to",
            "PageLimit",
            "PageCursor",
            "IfNoneMatch",
        ],
        body: None,
        success: "A page of what fits, and the summary of all of it.",
        reply: (200, "FoundEntries"),
        headers: &["ETag", "Vary"],
        refusals: &[
            own(400, &["validation_failed", "cursor_invalid", "malformed_request"]),
            PORTFOLIO_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Get, "/api/journal/{id}"),
        id: "readEntry",
        tag: "journal",
        description: "\
            One entry of the user's own journal. To change it safely, send its `ETag` as \
            `If-Match`.",
        parameters: &["EntryId", "IfNoneMatch"],
        body: None,
        success: "The entry.",
        reply: (200, "JournalEntry"),
        headers: &["ETag", "Vary"],
        refusals: &[NO_SUCH_ENTRY, STORE_UNAVAILABLE],
    },
    Operation {
        route: (Put, "/api/journal/{id}"),
        id: "replaceEntry",
        tag: "journal",
        description: "\
            Replaces the whole entry; members that are left out are removed. With `If-Match`, the \
            entry is replaced only if nobody has changed it in between. The answer has no `ETag`: \
            read the entry for the new one. Limits are those of adding an entry.",
        parameters: &["EntryId", "IfMatch", "IfNoneMatchOfChange"],
        body: Some("JournalFields"),
        success: "The entry as it is stored now.",
        reply: (200, "JournalEntry"),
        headers: &[],
        refusals: &[
            own(
                400,
                &[
                    "malformed_json",
                    "validation_failed",
                    "content_range_not_supported",
                    "malformed_request",
                ],
            ),
            NO_SUCH_ENTRY,
            JOURNAL_FULL,
            TOO_MANY_WRITES,
            STORE_UNAVAILABLE,
        ],
    },
    Operation {
        route: (Delete, "/api/journal/{id}"),
        id: "deleteEntry",
        tag: "journal",
        description: "\
            Deletes the entry for good. With `If-Match`, only if nobody has changed it in \
            between.",
        parameters: &["EntryId", "IfMatch", "IfNoneMatchOfChange"],
        body: None,
        success: "The entry has been deleted.",
        reply: (200, "Message"),
        headers: &[],
        refusals: &[NO_SUCH_ENTRY, TOO_MANY_WRITES, STORE_UNAVAILABLE],
    },
];

// ---- Service operations
//
// What the OpenAPI description says of the operations on broker tokens and on the service itself.

/// After those of `operations.rs`, in the order of the document.
pub(super) const SERVICE_OPERATIONS: &[Operation] = &[
    Operation {
        route: (Get, "/brokera/status"),
        id: "readBrokerAStatus",
        tag: "tokens",
        description: "\
            Whether the server's shared token is set and valid, and until when. Validity follows \
            the broker's own rule and turns false as soon as the broker refuses the token.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The state at this moment.",
        reply: (200, "BrokerAStatus"),
        headers: &["ETag"],
        refusals: &[],
    },
    Operation {
        route: (Get, "/brokerb/status"),
        id: "readBrokerBStatus",
        tag: "tokens",
        description: "\
            Whether the server's shared session is set and valid, and until when. Validity \
            follows the broker's own rule and turns false as soon as the broker refuses the \
            session.",
        parameters: &["IfNoneMatch"],
        body: None,
        success: "The state at this moment.",
        reply: (200, "BrokerBStatus"),
        headers: &["ETag"],
        refusals: &[],
    },
    Operation {
        route: (Post, "/brokera/activate"),
        id: "activateBrokerA",
        tag: "tokens",
        description: "\
            For the administrator: whoever sends the secret that the operator has configured. \
            Without a configured secret, only a program that calls directly from the server's own \
            machine.",
        parameters: &[],
        body: Some("ActivationA"),
        success: "The new state.",
        reply: (200, "BrokerAStatus"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            CODE_REFUSED,
            ACTIVATION_FORBIDDEN,
            BROKER_NOT_READY,
            BROKER_LIMITED,
            ACTIVATION_BAD_GATEWAY,
            ACTIVATION_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Post, "/brokerb/activate"),
        id: "activateBrokerB",
        tag: "tokens",
        description: "\
            For the administrator: whoever sends the secret that the operator has configured. \
            Without a configured secret, only a program that calls directly from the server's own \
            machine.",
        parameters: &[],
        body: Some("ActivationB"),
        success: "The new state.",
        reply: (200, "BrokerBStatus"),
        headers: &[],
        refusals: &[
            BODY_INVALID,
            CODE_REFUSED,
            NOT_THE_ADMINISTRATOR,
            BROKER_NOT_READY,
            BROKER_LIMITED,
            ACTIVATION_BAD_GATEWAY,
            ACTIVATION_UNAVAILABLE,
            BROKER_TIMEOUT,
        ],
    },
    Operation {
        route: (Get, "/api/health"),
        id: "readHealth",
        tag: "system",
        description: "\
            State of the database, caches and warmers as last probed, at most a few seconds ago. \
            This route never waits for a part that is broken.",
        parameters: &[],
        body: None,
        success: "`ok` or `degraded`.",
        reply: (200, "Health"),
        headers: &[],
        refusals: &[own(503, &["starting"])],
    },
    Operation {
        route: (Get, "/api/openapi.json"),
        id: "readDocument",
        tag: "system",
        description: "The OpenAPI 3.1 description of this version of the API.",
        parameters: &["IfNoneMatch", "AcceptEncoding"],
        body: None,
        success: "The document.",
        reply: (200, "Document"),
        headers: &["ETag", "Vary"],
        refusals: &[],
    },
];
