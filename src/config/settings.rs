//! Every setting that is not a secret: its name, group, range, unit and meaning, in one list.
//!
//! Flags, help, the operator's template and `config check` are generated from it. Constant data.
//! Defaults are in the settings structs of the modules.

use std::fmt::Write as _;

use crate::base::words;
use crate::config::composed::Config;
use crate::config::refused::Refused;
use crate::config::secrets::{FILE_SUFFIX, SECRETS};
use crate::config::value::{self, Show};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// OWASP's minimum for argon2id with two passes and one lane.
const ARGON2_MEMORY_KIB_MIN: u64 = 19_456;
const HOUR_MS: u64 = 3_600_000;

/// One setting. Its flag is the variable without `BHAV_`, in lower case, with dashes.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The field of [`Config`], as in `http.listen`.
    pub field: &'static str,
    pub group: Group,
    /// Unit or kind of the value: `ms`, `bytes`, `url`.
    pub unit: &'static str,
    /// The meaning in one line.
    pub about: &'static str,
    /// Information for somebody who changes it: reasons, dangers, an example. May be empty.
    pub more: &'static str,
    /// Whether a reload puts it in force. All others take a restart. All secrets are live.
    pub(crate) is_live: bool,
    pub set: fn(&mut Config, &str) -> Result<(), Refused>,
    pub show: fn(&Config) -> String,
    /// Copies the value from one configuration to another.
    pub copy: fn(&Config, &mut Config),
}

impl Setting {
    /// The long flag without its dashes.
    pub(crate) fn flag(&self) -> String {
        let name = self.name.strip_prefix("BHAV_").unwrap_or(self.name);
        match name {
            "SIM_SEED" => "seed".into(),
            _ => name.to_ascii_lowercase().replace('_', "-"),
        }
    }

    /// Whether its value is the path of a file that the service reads.
    pub(crate) fn names_a_file(&self) -> bool {
        self.name.ends_with(FILE_SUFFIX)
    }

    /// Whether its value is a URL of a broker, to which tokens are sent.
    pub(crate) fn is_address_of_a_broker(&self) -> bool {
        matches!(self.group, Group::BrokerA | Group::BrokerB) && self.unit == "url"
    }

    /// The default as text.
    pub(crate) fn default_text(&self) -> String {
        (self.show)(&Config::default())
    }
}

words! {
    /// The headings in help and template, in this order.
    pub enum Group {
        Service = "Service",
        Http = "HTTP limits",
        BrokerA = "Broker A (Kite Connect v3)",
        BrokerB = "Broker B (Breeze API)",
        Public = "Public quote provider (Yahoo Finance)",
        Upstream = "Upstream calls",
        Cache = "Cache",
        Market = "Market data files",
        Accounts = "Accounts",
        Simulator = "Simulator (demo and sim only)",
        Log = "Log",
    }
}

macro_rules! setting {
    (@live) => { true };
    ($group:ident $($live:ident)? $name:literal,
     $($field:ident).+ = $kind:ident $(($low:expr, $high:expr))?,
     $unit:literal, $about:literal $(, $more:literal)?) => {
        Setting {
            name: $name,
            field: stringify!($($field).+),
            group: Group::$group,
            unit: $unit,
            about: $about,
            more: [$($more,)? ""][0],
            is_live: [$(setting!(@$live),)? false][0],
            set: |config, text| {
                config.$($field).+ = value::$kind(text $(, $low..=$high)?)?;
                Ok(())
            },
            show: |config| Show::show(&config.$($field).+),
            copy: |from, to| to.$($field).+.clone_from(&from.$($field).+),
        }
    };
}

/// All settings, by group.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting!(Service "BHAV_LISTEN", http.listen = listen, "ip:port or unix:path",
        "Address at which clients are served",
        "A socket passed by systemd takes precedence. Port 0 takes a free port. The default is \
         loopback on purpose: sharing live exchange prices in public is regulated in \
         India and needs the consent of the exchanges, so listening wider is your \
         explicit decision."),
    setting!(Service "BHAV_ADMIN_LISTEN", admin.listen = listen_or_off,
        "ip:port, unix:path or off",
        "Address of the operator's listener: /metrics, /livez and /readyz",
        "For Prometheus and supervisors on this machine, not for clients; never a socket passed by \
         systemd. If the default port is taken, as by a second instance, the service runs without \
         this listener and bhav status says so. If you give an address, the service refuses to \
         start without it. The demo takes a free port unless you give one."),
    setting!(Service "BHAV_STATE_DIR", state_dir = path, "path",
        "Directory of the databases and the signing key",
        "If not given, $STATE_DIRECTORY (set by systemd) is used. Keep it on a local \
         disk that survives a restart."),
    setting!(Service live "BHAV_ALLOWED_ORIGINS",
        http.allowed_origins = origins, "origins, comma-separated",
        "Web origins whose pages may call the service from a browser (CORS)",
        "Scheme, host and port, as in https://dash.example.com,http://localhost:3000; * is \
         refused. Also decides which requests with the login cookie are accepted. With none, only \
         pages served from this service's own address can use it. Danger: every page of a listed \
         origin can act as the users who visit it."),
    setting!(Service "BHAV_WEB", web.on = switch, "true or false",
        "Serve the dashboard's pages beside the API",
        "With false, or off, every page is 404: for an installation that only programs use."),
    setting!(Service live "BHAV_TRUSTED_PROXIES",
        http.trusted_proxies = networks, "IP addresses and networks, comma-separated",
        "Proxies whose X-Forwarded-For is trusted",
        "As in 127.0.0.1,::1 or, for containers, whose addresses change, 172.16.0.0/12,fd00::/8. \
         No names. The other side of a Unix socket is always trusted. Danger: a listed address can \
         claim to be any client, which defeats limits by client address."),
    setting!(Service "BHAV_EDGE_THREADS", http.edge_threads = number(0, 1_024), "threads",
        "Threads that serve clients; 0 is one for each core"),
    setting!(Service live "BHAV_MAX_CONNECTIONS",
        http.connections_max = number(1, 1_000_000), "connections",
        "Most open connections; further clients wait to be accepted",
        "Each needs a file descriptor: keep the limit of descriptors (LimitNOFILE) some \
         hundreds above."),
    setting!(Service "BHAV_DEBUGGABLE", debuggable = switch, "true or false",
        "Allow core files and debuggers, and log the full text of panics",
        "For gdb, perf and memory tests. Danger: programs of the same user can then read \
         credentials in memory, and core files and the log may contain some."),
    setting!(Service "BHAV_NOW", now = instant, "ISO 8601 instant",
        "Start the service's clock at this instant instead of now",
        "For demos and tests. Example: 2026-11-20T10:00:00+05:30. Danger: with real feeds \
         every price looks too old or too new."),
    setting!(Http live "BHAV_HTTP_CONNECTIONS_PER_ADDRESS_MAX",
        http.connections_per_address_max = number(0, 1_000_000), "connections",
        "Most open connections of one client address (IPv6: one /64); 0 is no limit",
        "Further connections are closed at once. One address never gets more than nine tenths of \
         BHAV_MAX_CONNECTIONS. Proxies in BHAV_TRUSTED_PROXIES and Unix sockets are not limited. \
         All clients behind a proxy that is not listed share one limit."),
    setting!(Http live "BHAV_HTTP_BODY_BYTES_MAX",
        http.body_bytes_max = number(KIB, 16 * MIB), "bytes",
        "Longest request body",
        "A longer one is answered 413. Memory: up to this much for each open request."),
    setting!(Http live "BHAV_IMPORT_BYTES_MAX",
        http.upload_bytes_max = number(KIB, 64 * MIB), "bytes",
        "Longest file of trades",
        "A longer one is answered 413. All files that arrive or are being read have 64 MiB \
         together."),
    setting!(Http live "BHAV_HTTP_HEAD_TIMEOUT_MS",
        http.head_timeout_ms = number(100, 600_000), "ms",
        "Longest time from the first byte of a request to the end of its head",
        "After it the request is answered 408. Guards against clients that send very slowly."),
    setting!(Http live "BHAV_HTTP_BODY_TIMEOUT_MS",
        http.body_timeout_ms = number(100, 600_000), "ms",
        "Longest time from the end of the head to the end of the body",
        "After it the request is answered 408."),
    setting!(Http live "BHAV_HTTP_IDLE_TIMEOUT_MS",
        http.idle_timeout_ms = number(1_000, HOUR_MS), "ms",
        "How long a connection may be idle between requests",
        "Keep it above the idle timeout of a proxy in front, or the proxy may send requests on \
         closed connections."),
    setting!(Http live "BHAV_HTTP_DRAIN_TIMEOUT_MS",
        http.drain_timeout_ms = number(100, 600_000), "ms",
        "How long open requests may take after SIGTERM",
        "Keep it below systemd's TimeoutStopSec."),
    setting!(Http live "BHAV_STREAMS_MAX", http.streams_max = number(0, 1_000_000), "streams",
        "Most open streams of events; further ones are answered 503",
        "A stream with quotes of chosen symbols counts as two. Streams never get more than nine \
         tenths of BHAV_MAX_CONNECTIONS."),
    setting!(Http live "BHAV_STREAMS_PER_ADDRESS_MAX",
        http.streams_per_address_max = number(0, 1_000_000), "streams",
        "Most open streams of one client address (IPv6: one /64); 0 is no limit",
        "Further ones are answered 503; one with quotes counts as two. Programs on this machine \
         and proxies in BHAV_TRUSTED_PROXIES are not limited."),
    setting!(Http live "BHAV_STREAM_INTERVAL_MS",
        http.stream_interval_ms = number(250, 60_000), "ms",
        "Shortest interval between two events of a stream",
        "Changes in between are sent together, as the newest state. An event that was late does \
         not delay the next one. Each event costs some 10 microseconds of CPU for each stream."),
    setting!(BrokerA "BHAV_BROKERA_URL", broker_a.url = root_url, "url",
        "Root URL of broker A's API, to which the documented paths are appended",
        "Danger: the access token is sent there. Change it only for the simulator."),
    setting!(BrokerA "BHAV_BROKERA_QUOTE_INTERVAL_MS",
        broker_a.quote_interval_ms = number(1_000, HOUR_MS), "ms",
        "Shortest interval between two quote calls",
        "The broker allows one call a second and penalises more; the default leaves room for \
         jitter."),
    setting!(BrokerA live "BHAV_BROKERA_TICKER", broker_a.ticker = switch, "true or false",
        "Whether prices are also taken from broker A's WebSocket",
        "It gives prices as they are made; quote calls then confirm them each 10 s. It uses one of \
         the three connections that the broker allows for each API key."),
    setting!(BrokerA live "BHAV_BROKERA_TICKER_URL", broker_a.ticker_url = socket_url, "url",
        "URL of broker A's WebSocket",
        "Danger: the access token is sent there. With another BHAV_BROKERA_URL the default is not \
         used: name the WebSocket of the same broker, or there is none."),
    setting!(BrokerA live "BHAV_BROKERA_TICKER_SYMBOLS_MAX",
        broker_a.ticker_symbols_max = number(32, 3_000), "symbols",
        "Most instruments subscribed on the WebSocket",
        "The broker allows 3,000 on one connection. Indices come first, then what clients ask \
         for."),
    setting!(BrokerA "BHAV_BROKERA_LANE_THREADS", broker_a.lane_threads = number(1, 64), "threads",
        "Users' syncs at broker A that may run at once"),
    setting!(BrokerB "BHAV_BROKERB_URL", broker_b.url = root_url, "url",
        "Root URL of broker B's API, to which the documented paths are appended",
        "Danger: session tokens are sent there. Change it only for the simulator."),
    setting!(BrokerB live "BHAV_BROKERB_MASTER_FILE", broker_b.master_file = path_if_any, "path",
        "Broker B's security master: its zip file, or the NSE or BSE list in it",
        "Maps the broker's short codes to tickers. Without it, shares that are not also held \
         at broker A keep the short code and have no live price. Download it daily \
         after 08:00 IST."),
    setting!(BrokerB "BHAV_BROKERB_LANE_THREADS", broker_b.lane_threads = number(1, 64), "threads",
        "Users' syncs at broker B that may run at once"),
    setting!(Public "BHAV_PUBLIC_ENABLED", public.enabled = switch, "true or false",
        "Whether the public quote provider is used",
        "If false, there are no fresh prices while broker A has no token."),
    setting!(Public "BHAV_PUBLIC_URL", public.url = root_url, "url",
        "Root URL of the public quote provider"),
    setting!(Public "BHAV_PUBLIC_USER_AGENT", public.user_agent = header_value, "text",
        "User-Agent sent to the public provider",
        "The provider refuses those of HTTP libraries. Which ones it accepts changes over time."),
    setting!(Public "BHAV_PUBLIC_BATCH_INTERVAL_MS",
        public.batch_interval_ms = number(1_000, HOUR_MS), "ms",
        "Shortest interval between two batches of 20 symbols",
        "Danger: with much less than the default the provider blocks this machine's address for \
         hours."),
    setting!(Upstream "BHAV_UPSTREAM_CONNECT_TIMEOUT_MS",
        upstream.connect_timeout_ms = number(50, 60_000), "ms",
        "Timeout of the TCP and TLS handshakes"),
    setting!(Upstream "BHAV_UPSTREAM_TOTAL_TIMEOUT_MS",
        upstream.total_timeout_ms = number(100, 120_000), "ms",
        "Timeout of a whole call, including redirects",
        "An upstream that hangs keeps one thread busy for this long."),
    setting!(Upstream "BHAV_SYNC_TIMEOUT_MS",
        upstream.sync_timeout_ms = number(100, 120_000), "ms",
        "Timeout of a user's sync at one broker, all its calls together",
        "A broker that hangs keeps one thread busy for this long."),
    setting!(Upstream live "BHAV_SYNC_ATTEMPTS_PER_MINUTE",
        upstream.sync_attempts_per_minute = number(0, 10_000), "attempts",
        "Syncs that one user may start a minute, at both brokers together; 0 is no limit",
        "Danger: the calls come from this server's address, which a broker may block for all \
         users."),
    setting!(Cache "BHAV_CACHE_L1_ENTRIES_MAX",
        cache.l1_entries_max = number(100, 10_000_000), "entries",
        "Most quotes and unknown symbols cached in memory",
        "About half a KiB each."),
    setting!(Cache "BHAV_CACHE_MISS_WAIT_MS", cache.miss_wait_ms = number(10, 30_000), "ms",
        "How long a request may wait for uncached symbols"),
    setting!(Cache "BHAV_CACHE_URL", valkey.url = cache_url, "url",
        "Valkey or Redis server that holds the second cache level, before the file on disk",
        "valkey://HOST:PORT, redis://HOST:PORT, rediss://HOST:PORT (TLS) or unix:PATH; USER@ \
         before the host and /NUMBER of a database after it may be given. The password goes into \
         BHAV_CACHE_PASSWORD: one in the URL is refused. Cluster and Sentinel are not supported. \
         Give the server maxmemory-policy noeviction, and a user that may use ~bhav:* and \
         &bhav:* alone; docs/operating.md names the rules."),
    setting!(Cache "BHAV_CACHE_CA_FILE", valkey.ca_file = path_if_any, "path",
        "PEM file of the authorities trusted for BHAV_CACHE_URL with rediss://",
        "If not given, those of the web are. Name and chain are always verified."),
    setting!(Cache "BHAV_CACHE_NAMESPACE", valkey.namespace = namespace, "name",
        "Keeps several installations apart on one server: all keys begin with bhav:NAME:",
        "Small letters, digits, -, _ and ., at most 64. If not given, it is the database's own id, \
         which all its nodes have in common and no other database has."),
    setting!(Cache live "BHAV_ANSWERS_BYTES_MAX",
        cache.answers_bytes_max = number(4 * MIB, 4_096 * MIB), "bytes",
        "Memory for cached responses of users' portfolios",
        "Beyond it the least recently used are evicted. About 50 KiB for 100 holdings."),
    setting!(Market live "BHAV_CALENDAR_FILE", market.calendar_file = path_if_any, "path",
        "Your entries for the trading calendar; they override the built-in ones",
        "For holidays and special sessions announced after this release."),
    setting!(Market "BHAV_INDICES_FILE", market.indices_file = path_if_any, "path",
        "Replaces the built-in list of indices and sectors"),
    setting!(Market live "BHAV_UNIVERSE_FILE", market.universe_file = path_if_any, "path",
        "The shares for which signals are computed, in place of the built-in NIFTY 50",
        "One EXCHANGE:TICKER a line, at most 500."),
    setting!(Market live "BHAV_SECTORS_FILE", market.sectors_file = path_if_any, "path",
        "The sectors of companies, in place of the built-in ones of the NIFTY 50",
        "An index provider's list of constituents as CSV, with the columns Industry and ISIN Code, \
         below a first line with its date and name, such as # 2026-09-30 NIFTY 500."),
    setting!(Market live "BHAV_FMV_FILE", market.fmv_file = path_if_any, "path",
        "The highest prices of 31 January 2018, for gains of shares bought until then",
        "CSV with the columns isin and price, of at most 12,000 securities, as the exchanges \
         printed them then. A correction of kind fmv comes before it. Without it such gains are \
         left out as fmv_missing."),
    setting!(Market "BHAV_CANDLES_BEYOND_MAX",
        market.candles_beyond_max = number(0, 2_000), "symbols",
        "Most symbols beyond BHAV_UNIVERSE_FILE whose daily candles are stored, for charts",
        "The indices and sectors first, then what users hold, by name. They are fetched after \
         everything of which signals are made: one call a day for each, and 60 KiB of disk. 0 \
         stores none."),
    setting!(Accounts live "BHAV_REGISTRATION",
        auth.registration = registration, "open, first or closed",
        "Whether anybody who reaches the service may create an account",
        "If open, strangers can slowly fill the disk: an account may store up to 8 MiB of journal \
         text. If first, the first account of a fresh database is the only one that can be made. \
         If closed, only bhav user add creates accounts; existing ones work as before."),
    setting!(Accounts live "BHAV_REGISTRATION_ATTEMPTS_PER_MINUTE",
        auth.registration_attempts_per_minute = number(0, 10_000), "attempts",
        "Registrations that one client address may try a minute; 0 is no limit",
        "Logins are counted separately. A try with an e-mail that is taken counts too, so that \
         nobody can quickly find out who has an account. For what counts as one address see \
         BHAV_LOGIN_ATTEMPTS_PER_MINUTE."),
    setting!(Accounts live "BHAV_LOGIN_ATTEMPTS_PER_MINUTE",
        auth.login_attempts_per_minute = number(0, 10_000), "attempts",
        "Login attempts a minute, by account and by client address; 0 is no limit",
        "Danger: without a limit, passwords can be guessed at the speed of the machine. All \
         clients behind a proxy that is not in BHAV_TRUSTED_PROXIES count as one address, as do \
         all clients of a Unix socket whose proxy sends no X-Forwarded-For. An IPv6 /64 network \
         counts as one address."),
    setting!(Accounts "BHAV_ARGON2_MEMORY_KIB",
        auth.argon2_memory_kib = number(ARGON2_MEMORY_KIB_MIN, 1_048_576), "KiB",
        "Memory to compute one password hash (argon2id)",
        "Each hashing thread uses this much. More makes stolen hashes harder to crack and logins \
         slower. Stored hashes are renewed at each user's next login."),
    setting!(Accounts "BHAV_ARGON2_PASSES", auth.argon2_passes = number(2, 16), "passes",
        "Passes over the memory of a password hash"),
    setting!(Accounts "BHAV_CRYPTO_THREADS", auth.crypto_threads = number(0, 256), "threads",
        "Threads that hash passwords; 0 is half of the cores",
        "They run at the lowest priority, so that logins do not slow down the market routes."),
    setting!(Accounts "BHAV_STORE_URL", store.url = store_url, "url",
        "PostgreSQL database that holds accounts, portfolios, journals and signals",
        "Without it they are in a file of BHAV_STATE_DIR. Example: \
         postgres://bhav@db.example.com/bhav. Connections to other machines are encrypted and \
         verified unless it says sslmode=disable. The password is BHAV_STORE_PASSWORD."),
    setting!(Accounts "BHAV_STORE_CA_FILE", store.ca_file = path_if_any, "path",
        "Certificates that sign the database server's, in PEM form",
        "Without it the public authorities are trusted."),
    setting!(Accounts "BHAV_NODE", nodes.name = node_name, "name",
        "What this node is called among those that share the database",
        "Each needs a name of its own. Without it the machine's name is taken."),
    setting!(Accounts "BHAV_LEASE_MS", nodes.lease_ms = number(4_000, 60_000), "ms",
        "How long a node leads after those who decide were last heard",
        "Where nodes share a database: a leader that dies is followed by another so much later. \
         All nodes need the same. Shorter than 4,000 leaves no time for a slow answer."),
    setting!(Accounts "BHAV_STORE_READERS", store.readers = number(0, 64), "threads",
        "Threads that read the database; 0 is two for the file and four for a server",
        "More help only if the disk or the network is slow. Each has a connection to a server."),
    setting!(Accounts "BHAV_STORE_WRITERS", store.writers = number(0, 64), "threads",
        "Threads that write to a database server; 0 is four",
        "Each has a connection. A file is always written by one thread."),
    setting!(Accounts live "BHAV_KEY_REQUESTS_PER_MINUTE",
        auth.key_requests_per_minute = number(0, 1_000_000), "requests",
        "Requests that may be made with one API key a minute; 0 is no limit",
        "All of them may come at once; after that they are allowed at even intervals. Further \
         ones are answered 429. Nodes that share a server count together. Danger: without a limit \
         a program that runs wild takes the edge's time from others."),
    setting!(Accounts live "BHAV_WRITES_PER_USER_PER_MINUTE",
        store.writes_per_user_per_minute = number(0, 1_000_000), "writes",
        "Journal changes and deletions that one user may make a minute; 0 is no limit",
        "All of them may come at once; after that they are allowed at even intervals. Further \
         ones are answered 429. Danger: without a limit one user can keep the disk busy for all."),
    setting!(Accounts live "BHAV_IMPORT_ATTEMPTS_PER_MINUTE",
        store.import_attempts_per_minute = number(0, 10_000), "files",
        "Files of trades that one user may send a minute; 0 is no limit",
        "Nodes that share a server count together. Danger: without a limit one user can keep the \
         thread busy that reads files for all."),
    setting!(Accounts live "BHAV_LEDGER_ROWS_MAX",
        store.ledger_rows_max = number(1_000, 10_000_000), "rows",
        "Rows that all imports of one user may have, previews included",
        "More are answered 409. A ledger is computed in memory: 300,000 rows take some 200 MB for \
         a few seconds."),
    setting!(Simulator "BHAV_SIM_LISTEN", sim.listen = address, "ip:port",
        "Address at which the simulator listens",
        "Port 0 takes a free port. By default it is another loopback address than the service's, \
         so that browsers do not send the login's cookie there. The simulator has no access \
         control: keep it on loopback."),
    setting!(Simulator "BHAV_SIM_SEED", sim.seed = number(0, u64::MAX), "seed",
        "Seed of the simulated exchange day; the same seed gives the same day"),
    setting!(Simulator "BHAV_SIM_PUBLIC_DELAY_S",
        sim.public_delay_s = number(0, 2_400), "seconds",
        "Delay of the simulated public provider behind the exchange",
        "A short delay lets it take over soon when broker A's faults are simulated."),
    setting!(Simulator "BHAV_SIM_MORE_SHARES", sim.more_shares = number(0, 9_000), "shares",
        "Made-up shares that the simulated exchange lists beside its 455 instruments",
        "With 2545 there are as many instruments as broker A's WebSocket takes on one connection."),
    setting!(Simulator "BHAV_SIM_PRICES_PER_S", sim.prices_per_s = number(1, 4), "prices",
        "How often a second each simulated price moves while the market trades",
        "Their times are whole seconds, as the exchange's are. Above 1 the WebSocket spreads what \
         it sends over the second."),
    setting!(Log live "BHAV_LOG", log.filter = filter, "tracing filter",
        "Which events are logged",
        "A level, or levels by module, as in info,bhav::http=debug."),
    setting!(Log "BHAV_LOG_FORMAT", log.format = log_format, "logfmt or json",
        "Format of the log on standard error"),
];

/// Settings of released versions that are constants now. An upgrade must not keep the service from
/// starting, so one that is still set gives a warning and changes nothing.
pub const REMOVED: [&str; 23] = [
    "BHAV_CACHE_DEMAND_TTL_MS",
    "BHAV_CACHE_L2_RECORDS_MAX",
    "BHAV_CACHE_NEGATIVE_TTL_MS",
    "BHAV_CACHE_WAITERS_MAX",
    "BHAV_CLOSE_PAGE_USERS",
    "BHAV_CLOSE_SYMBOLS_MAX",
    "BHAV_CRYPTO_QUEUE_MAX",
    "BHAV_HTTP_HEADERS_MAX",
    "BHAV_HTTP_HEAD_BYTES_MAX",
    "BHAV_HTTP_UNREAD_OUTPUT_BYTES_MAX",
    "BHAV_HTTP_UNREAD_OUTPUT_TIMEOUT_MS",
    "BHAV_PUBLIC_LANE_THREADS",
    "BHAV_SIGNALS_PROVISIONAL",
    "BHAV_STORE_WRITES_PER_COMMIT_MAX",
    "BHAV_STREAM_CHOICES_MAX",
    "BHAV_STREAM_LIFE_MS",
    "BHAV_UPSTREAM_BREAKER_FAILURES",
    "BHAV_UPSTREAM_BREAKER_OPEN_MAX_MS",
    "BHAV_UPSTREAM_BREAKER_OPEN_MS",
    "BHAV_UPSTREAM_INSTRUMENTS_BYTES_MAX",
    "BHAV_UPSTREAM_READ_TIMEOUT_MS",
    "BHAV_UPSTREAM_REDIRECTS_MAX",
    "BHAV_UPSTREAM_RESPONSE_BYTES_MAX",
];

// ---- Template
//
// The operator's template (`systemd/bhav.env`): every setting, commented out at its default.
//
// `bhav config template` prints it; a test holds the file in the repository against it.

const OPENING: &str = "\
# Settings of bhav. The program reads this file itself if BHAV_ENV_FILE names it, at start and at
# each reload (systemctl reload bhav). A variable of the environment overrides this file.
# Each setting is commented out at its default: remove the # to change it.
# A variable that is set but empty counts as not set. An unknown name is refused, here and among
# names of the environment that begin with BHAV_ or with BROKER and a letter.
# Check with: bhav config check
";

const SECRETS_OPENING: &str = "
# ==== Secrets ====
# Do not put secrets into this file, which is easily copied and shown to others.
# With systemd: put each into a file /etc/credstore/bhav.NAME, the name in lower case, which the
# unit loads as a credential; a new value needs a restart. Without systemd, or to change it by a
# reload: set NAME_FILE=PATH to a file with mode 600 that the service can read.
";

/// Width at which explanations wrap.
const WIDTH: usize = 96;

/// The whole template.
pub(crate) fn template() -> String {
    let mut text = OPENING.to_owned();
    let mut group: Option<Group> = None;
    for setting in SETTINGS {
        if group != Some(setting.group) {
            group = Some(setting.group);
            let _ = writeln!(text, "\n# ==== {} ====", setting.group);
        }
        let about = format!("{} ({}).", setting.about, setting.unit);
        let _ = writeln!(text, "\n{}", wrapped("# ", &about, WIDTH));
        if !setting.more.is_empty() {
            let _ = writeln!(text, "{}", wrapped("# ", setting.more, WIDTH));
        }
        let _ = writeln!(text, "#{}={}", setting.name, setting.default_text());
    }
    text.push_str(SECRETS_OPENING);
    for secret in SECRETS {
        let _ = writeln!(text, "\n# {}.\n#{}_FILE=", secret.about, secret.name);
    }
    text
}

/// `prose` in lines of at most `width` bytes, each of which begins with `prefix`.
pub(crate) fn wrapped(prefix: &str, prose: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in prose.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{prefix}{word}")),
        }
    }
    lines.join("\n")
}

/// Whether a setting or a secret has this name.
pub(super) fn is_known(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name) || {
        let bare = name.strip_suffix(FILE_SUFFIX).unwrap_or(name);
        SECRETS.iter().any(|secret| secret.name == bare)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::admin::listener::AdminSettings;
    use crate::auth::keys::AuthSettings;
    use crate::brokers::settings::{PublicSettings, UpstreamSettings};
    use crate::brokers::{BrokerASettings, BrokerBSettings};
    use crate::cache::freshness::CacheSettings;
    use crate::config::composed::SimSettings;
    use crate::http::settings::HttpSettings;
    use crate::market::indices::MarketSettings;
    use crate::nodes::cluster::NodeSettings;
    use crate::nodes::valkey::ValkeySettings;
    use crate::ops::log::LogSettings;
    use crate::store::settings::StoreSettings;
    use crate::warmers::context::CloseSettings;
    use crate::web::site::WebSettings;

    /// The sections of [`Config`], each with the fields of its struct.
    const SECTIONS: [(&str, &[(&str, &str)]); 16] = [
        ("http", HttpSettings::FIELDS),
        ("admin", AdminSettings::FIELDS),
        ("broker_a", BrokerASettings::FIELDS),
        ("broker_b", BrokerBSettings::FIELDS),
        ("public", PublicSettings::FIELDS),
        ("upstream", UpstreamSettings::FIELDS),
        ("cache", CacheSettings::FIELDS),
        ("valkey", ValkeySettings::FIELDS),
        ("store", StoreSettings::FIELDS),
        ("market", MarketSettings::FIELDS),
        ("close", CloseSettings::FIELDS),
        ("nodes", NodeSettings::FIELDS),
        ("auth", AuthSettings::FIELDS),
        ("web", WebSettings::FIELDS),
        ("sim", SimSettings::FIELDS),
        ("log", LogSettings::FIELDS),
    ];

    /// Fields that only tests and the measurements of this repository turn.
    const WITHOUT_A_SETTING: [&str; 20] = [
        "auth.crypto_queue_max",
        "cache.demand_ttl_ms",
        "cache.l2_records_max",
        "cache.waiters_max",
        "close.page_users",
        "close.symbols_max",
        "http.head_bytes_max",
        "http.headers_max",
        "http.stream_choices_max",
        "http.stream_life_ms",
        "http.unread_output_bytes_max",
        "http.unread_output_timeout_ms",
        // Derived from the node's name.
        "store.connection_name",
        "store.writes_per_commit_max",
        "upstream.breaker_failures",
        "upstream.breaker_open_max_ms",
        "upstream.breaker_open_ms",
        "upstream.instruments_bytes_max",
        "upstream.read_timeout_ms",
        "upstream.response_bytes_max",
    ];

    /// `section.field` of each field, except secrets.
    fn fields_of_the_structs() -> BTreeSet<String> {
        let is_section = |field: &str| SECTIONS.iter().any(|(section, _)| *section == field);
        let own = Config::FIELDS.iter().map(|(field, _)| *field);
        assert_eq!(own.clone().filter(|field| is_section(field)).count(), SECTIONS.len());
        let of_config = own.filter(|field| !is_section(field)).map(str::to_owned);
        let of_sections = SECTIONS.iter().flat_map(|(section, fields)| {
            let settings = fields
                .iter()
                .filter(|(_, kind)| !kind.contains("SecretString"));
            settings.map(move |(field, _)| format!("{section}.{field}"))
        });
        of_config.chain(of_sections).collect()
    }

    #[test]
    fn every_field_has_one_setting_or_is_listed_as_without() {
        let listed: Vec<String> = SETTINGS.iter().map(|s| s.field.replace(' ', "")).collect();
        let set: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(set.len(), listed.len(), "a field has two settings");
        let without: BTreeSet<String> = WITHOUT_A_SETTING.map(str::to_owned).into();
        assert_eq!(without.len(), WITHOUT_A_SETTING.len(), "a field is listed twice");
        assert!(set.is_disjoint(&without), "a field has a setting and is listed as without");
        let all: BTreeSet<String> = set.union(&without).cloned().collect();
        assert_eq!(all, fields_of_the_structs());
    }

    #[test]
    fn every_default_is_accepted_by_its_own_setting() {
        for setting in SETTINGS {
            let text = setting.default_text();
            if text.is_empty() {
                continue;
            }
            let mut config = Config::default();
            (setting.set)(&mut config, &text)
                .unwrap_or_else(|why| panic!("{}: {why:?}", setting.name));
            assert_eq!((setting.show)(&config), text, "{}", setting.name);
        }
    }

    #[test]
    fn names_and_flags_are_unique_and_groups_contiguous() {
        let names: BTreeSet<_> = SETTINGS.iter().map(|s| s.name).collect();
        assert!(REMOVED.iter().all(|name| !names.contains(name)), "removed, and a setting");
        let flags: BTreeSet<_> = SETTINGS.iter().map(Setting::flag).collect();
        assert_eq!((names.len(), flags.len()), (SETTINGS.len(), SETTINGS.len()));
        let mut seen = Vec::new();
        for setting in SETTINGS {
            if seen.last() != Some(&setting.group) {
                assert!(!seen.contains(&setting.group), "{} stands apart", setting.name);
                seen.push(setting.group);
            }
        }
    }
}

#[cfg(test)]
mod template_tests {
    use super::super::load::load;
    use super::*;
    use crate::config::environment::{Environment, Flags};

    const FILE: &str = include_str!("../../systemd/bhav.env");

    /// `NAME=value` of each setting line, the leading `#` removed.
    fn uncommented() -> Vec<(&'static str, &'static str)> {
        FILE.lines()
            .filter_map(|line| {
                line.strip_prefix('#')
                    .filter(|rest| !rest.starts_with([' ', '#']))
            })
            .filter_map(|line| line.split_once('='))
            .collect()
    }

    #[test]
    fn the_file_in_the_repository_is_this_template() {
        assert!(FILE == template(), "run: bhav config template > systemd/bhav.env");
    }

    #[test]
    fn every_line_of_the_file_set_gives_the_defaults() {
        let pairs = uncommented();
        let loaded = load(&Flags::new(), &Environment::from_pairs(pairs.iter().copied())).unwrap();
        let defaults = Config::default();
        for setting in SETTINGS {
            assert_eq!((setting.show)(&loaded.config), (setting.show)(&defaults));
            let lines = pairs
                .iter()
                .filter(|(name, _)| *name == setting.name)
                .count();
            assert_eq!(lines, 1, "{} stands {lines} times in the file", setting.name);
        }
        for secret in SECRETS {
            assert!(pairs.contains(&(&*format!("{}_FILE", secret.name), "")), "{}", secret.name);
        }
        assert_eq!(pairs.len(), SETTINGS.len() + SECRETS.len());
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }
}
