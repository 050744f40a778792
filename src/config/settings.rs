//! Every setting that is not a secret: its name, group, range, unit and meaning, in one list.
//!
//! Flags, help, the operator's template and `config check` are made from it. Constant data; the
//! defaults are not here but in the structs beside this file.

use super::composed::Config;
use super::value::{self, Refused, Show};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
/// The parser's table has a fixed size (`http::head::HEADERS_MAX`, a higher row).
const HEADERS_HARD_MAX: u64 = 128;
/// Positions in a head are kept in sixteen bits (`http::head::Span`).
const HEAD_BYTES_HARD_MAX: u64 = 64 * KIB;
/// The least that OWASP recommends for argon2id with two passes and one lane.
const ARGON2_MEMORY_KIB_MIN: u64 = 19_456;
const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// One setting. The flag is its variable without `BHAV_`, in lower case with dashes.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The field of [`Config`], as in `http.listen`.
    pub field: &'static str,
    pub group: Group,
    /// What the value is counted in or what it is: `ms`, `bytes`, `url`.
    pub unit: &'static str,
    /// One line.
    pub about: &'static str,
    /// What to know before changing it: reason, danger, example. May be empty.
    pub more: &'static str,
    pub set: fn(&mut Config, &str) -> Result<(), Refused>,
    pub show: fn(&Config) -> String,
}

impl Setting {
    /// The long flag without its dashes.
    pub fn flag(&self) -> String {
        let name = self.name.strip_prefix("BHAV_").unwrap_or(self.name);
        match name {
            "SIM_SEED" => "seed".into(),
            _ => name.to_ascii_lowercase().replace('_', "-"),
        }
    }

    /// What an empty environment gives, as text.
    pub fn default_text(&self) -> String {
        (self.show)(&Config::default())
    }
}

/// The headings of help and template, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Service,
    Http,
    BrokerA,
    BrokerB,
    Public,
    Upstream,
    Cache,
    Market,
    Close,
    Accounts,
    Simulator,
    Log,
}

impl Group {
    pub fn title(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Http => "HTTP limits",
            Self::BrokerA => "Broker A (Kite Connect v3)",
            Self::BrokerB => "Broker B (Breeze API)",
            Self::Public => "Public quote provider (Yahoo Finance)",
            Self::Upstream => "Upstream calls",
            Self::Cache => "Cache",
            Self::Market => "Market data files",
            Self::Close => "Revaluation at the close",
            Self::Accounts => "Accounts",
            Self::Simulator => "Simulator (demo and sim only)",
            Self::Log => "Log",
        }
    }
}

macro_rules! setting {
    ($group:ident $name:literal, $($field:ident).+ = $kind:ident $(($low:expr, $high:expr))?,
     $unit:literal, $about:literal, $more:literal) => {
        Setting {
            name: $name,
            field: stringify!($($field).+),
            group: Group::$group,
            unit: $unit,
            about: $about,
            more: $more,
            set: |config, text| {
                config.$($field).+ = value::$kind(text $(, $low..=$high)?)?;
                Ok(())
            },
            show: |config| Show::show(&config.$($field).+),
        }
    };
}

/// All of them, grouped.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting!(Service "BHAV_LISTEN", http.listen = listen, "ip:port or unix:path",
        "Where to serve",
        "A socket handed over by systemd wins. Port 0 takes a free port. The default is \
         loopback on purpose: sharing live exchange prices in public is regulated in \
         India and needs the consent of the exchanges, so listening wider is your \
         explicit decision."),
    setting!(Service "BHAV_ADMIN_LISTEN", admin.listen = listen_or_off,
        "ip:port, unix:path or off",
        "Where to serve /metrics, /livez and /readyz",
        "For Prometheus and supervisors on this machine; not for clients, and never passed by \
         systemd. Where the default's port is taken, as by a second instance, the service runs \
         without and bhav status says so; an address that is given must be had. The demo takes a \
         free port unless one is given."),
    setting!(Service "BHAV_STATE_DIR", state_dir = path, "path",
        "Databases and the signing key live here",
        "When not given, $STATE_DIRECTORY (set by systemd) is taken. Keep it on a local \
         disk that survives a restart."),
    setting!(Service "BHAV_ALLOWED_ORIGINS",
        http.allowed_origins = origins, "origins, comma-separated",
        "Web origins that may call from a browser",
        "Scheme, host and port, as in https://dash.example.com,http://localhost:3000; * is refused. \
         For CORS and for requests that carry the cookie. With none, only pages of this service's \
         own address read its answers. Danger: every page of a listed origin acts with its \
         visitors' logins."),
    setting!(Service "BHAV_TRUSTED_PROXIES",
        http.trusted_proxies = ip_addresses, "IP addresses, comma-separated",
        "Proxies whose X-Forwarded-For is believed",
        "Danger: a listed address can claim to be any client, which defeats limits per \
         address."),
    setting!(Service "BHAV_EDGE_THREADS", http.edge_threads = number(0, 1_024), "threads",
        "Threads that serve the edge; 0 is one per core",
        ""),
    setting!(Service "BHAV_MAX_CONNECTIONS",
        http.connections_max = number(1, 1_000_000), "connections",
        "Open connections at which accepting pauses",
        "Each needs a file descriptor: keep the descriptor limit (LimitNOFILE) some \
         hundreds above."),
    setting!(Service "BHAV_DEBUGGABLE", debuggable = switch, "true or false",
        "Leave core files and debuggers on, and quote data in the log of a panic",
        "For gdb, perf and memory tests. Danger: credentials in flight can then be read by \
         the same user, and may land in a core file."),
    setting!(Service "BHAV_NOW", now = instant, "ISO 8601 instant",
        "Start the clock here instead of now; it then runs on",
        "For demos and tests. Example: 2026-11-20T10:00:00+05:30. Danger: with live feeds \
         every price looks too old or too new."),
    setting!(Http "BHAV_HTTP_CONNECTIONS_PER_ADDRESS_MAX",
        http.connections_per_address_max = number(0, 1_000_000), "connections",
        "Open connections of one client address, of IPv6 one /64; 0 is no limit",
        "More are closed at once. One address never has more than nine tenths of \
         BHAV_MAX_CONNECTIONS. Proxies in BHAV_TRUSTED_PROXIES and Unix sockets have no such \
         limit; a proxy that is not listed shares it among all its clients."),
    setting!(Http "BHAV_HTTP_HEAD_BYTES_MAX",
        http.head_bytes_max = number(KIB, HEAD_BYTES_HARD_MAX), "bytes",
        "Longest request line and headers",
        "More is answered 431 (414 for the request line)."),
    setting!(Http "BHAV_HTTP_HEADERS_MAX",
        http.headers_max = number(16, HEADERS_HARD_MAX), "headers",
        "Most headers of a request",
        "Browsers behind proxies send more than 16."),
    setting!(Http "BHAV_HTTP_BODY_BYTES_MAX", http.body_bytes_max = number(KIB, 16 * MIB), "bytes",
        "Longest request body",
        "More is answered 413. Memory: this much per request in flight."),
    setting!(Http "BHAV_HTTP_HEAD_TIMEOUT_MS", http.head_timeout_ms = number(100, 600_000), "ms",
        "From the first byte of a request to the end of its head",
        "Then 408. Guards against clients that drip."),
    setting!(Http "BHAV_HTTP_BODY_TIMEOUT_MS", http.body_timeout_ms = number(100, 600_000), "ms",
        "From the end of the head to the end of the body",
        "Then 408."),
    setting!(Http "BHAV_HTTP_IDLE_TIMEOUT_MS", http.idle_timeout_ms = number(1_000, HOUR_MS), "ms",
        "How long a connection may wait between requests",
        "Keep it above the idle time of a proxy in front, or the proxy meets closed \
         connections."),
    setting!(Http "BHAV_HTTP_UNREAD_OUTPUT_BYTES_MAX",
        http.unread_output_bytes_max = number(16 * KIB, 64 * MIB), "bytes",
        "Answers a client may leave unread before its requests wait",
        ""),
    setting!(Http "BHAV_HTTP_UNREAD_OUTPUT_TIMEOUT_MS",
        http.unread_output_timeout_ms = number(100, 600_000), "ms",
        "How long a client may take for each 64 KiB of its answers",
        "A connection that reads less is cut off, and the log says so; one that reads on is \
         not, however long the whole takes."),
    setting!(Http "BHAV_HTTP_DRAIN_TIMEOUT_MS", http.drain_timeout_ms = number(100, 600_000), "ms",
        "How long open requests may take to finish after SIGTERM",
        "Keep it below systemd's TimeoutStopSec."),
    setting!(BrokerA "BHAV_BROKERA_URL", broker_a.url = root_url, "url",
        "Root of broker A's API; documented paths are appended",
        "Danger: the access token goes there. Point it elsewhere only for the simulator."),
    setting!(BrokerA "BHAV_BROKERA_QUOTE_INTERVAL_MS",
        broker_a.quote_interval_ms = number(1_000, HOUR_MS), "ms",
        "Least time between two quote calls",
        "The broker allows one a second and punishes more; the default leaves room for \
         jitter."),
    setting!(BrokerA "BHAV_BROKERA_LANE_THREADS", broker_a.lane_threads = number(1, 64), "threads",
        "Users' calls to broker A that may run at once",
        ""),
    setting!(BrokerB "BHAV_BROKERB_URL", broker_b.url = root_url, "url",
        "Root of broker B's API; documented paths are appended",
        "Danger: session tokens go there. Point it elsewhere only for the simulator."),
    setting!(BrokerB "BHAV_BROKERB_MASTER_FILE", broker_b.master_file = path_if_any, "path",
        "Broker B's security master: its zip, or the NSE or BSE list out of it",
        "Turns the broker's short codes into tickers. Without it, shares that are not held \
         at broker A too keep the short code and have no live price. Download it daily \
         after 08:00 IST."),
    setting!(BrokerB "BHAV_BROKERB_LANE_THREADS", broker_b.lane_threads = number(1, 64), "threads",
        "Users' calls to broker B that may run at once",
        ""),
    setting!(Public "BHAV_PUBLIC_ENABLED", public.enabled = switch, "true or false",
        "Whether the public quote provider is asked at all",
        "When false and broker A has no token, no fresh prices come."),
    setting!(Public "BHAV_PUBLIC_URL", public.url = root_url, "url",
        "Root of the public quote provider",
        ""),
    setting!(Public "BHAV_PUBLIC_USER_AGENT", public.user_agent = header_value, "text",
        "User-Agent sent to the public provider",
        "It refuses those of libraries; which ones it accepts changes."),
    setting!(Public "BHAV_PUBLIC_BATCH_INTERVAL_MS",
        public.batch_interval_ms = number(1_000, HOUR_MS), "ms",
        "Least time between two batches of 20 symbols",
        "Danger: much less than the default gets the address blocked for hours."),
    setting!(Public "BHAV_PUBLIC_LANE_THREADS", public.lane_threads = number(1, 64), "threads",
        "Calls to the public provider that may run at once",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_CONNECT_TIMEOUT_MS",
        upstream.connect_timeout_ms = number(50, 60_000), "ms",
        "Longest TCP and TLS connect",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_READ_TIMEOUT_MS",
        upstream.read_timeout_ms = number(50, 120_000), "ms",
        "Longest wait for the head of an answer, and for its body",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_TOTAL_TIMEOUT_MS",
        upstream.total_timeout_ms = number(100, 120_000), "ms",
        "Longest call, redirects included",
        "A hanging upstream holds one lane thread this long."),
    setting!(Upstream "BHAV_SYNC_TIMEOUT_MS",
        upstream.sync_timeout_ms = number(100, 120_000), "ms",
        "Longest sync of one user at one broker, all its calls together",
        "A hanging broker holds one lane thread this long."),
    setting!(Upstream "BHAV_SYNC_ATTEMPTS_PER_MINUTE",
        upstream.sync_attempts_per_minute = number(0, 10_000), "attempts",
        "Syncs that one user may try, at both brokers together; 0 is no limit",
        "Danger: each try is a call from this server's address, which a broker may block for all."),
    setting!(Upstream "BHAV_UPSTREAM_RESPONSE_BYTES_MAX",
        upstream.response_bytes_max = number(64 * KIB, 256 * MIB), "bytes",
        "Largest answer that is read",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_INSTRUMENTS_BYTES_MAX",
        upstream.instruments_bytes_max = number(MIB, 1_024 * MIB), "bytes",
        "Largest daily instrument list that is read",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_REDIRECTS_MAX",
        upstream.redirects_max = number(0, 10), "redirects",
        "Redirects of the public provider that are followed in one call",
        "Within its own scheme, host and port alone. Those of a broker are never followed."),
    setting!(Upstream "BHAV_UPSTREAM_BREAKER_FAILURES",
        upstream.breaker_failures = number(1, 1_000), "failures",
        "Failures in a row after which an upstream is left alone",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_BREAKER_OPEN_MS",
        upstream.breaker_open_ms = number(100, HOUR_MS), "ms",
        "How long it is left alone at first; doubles each time",
        ""),
    setting!(Upstream "BHAV_UPSTREAM_BREAKER_OPEN_MAX_MS",
        upstream.breaker_open_max_ms = number(100, DAY_MS), "ms",
        "The longest that it is left alone",
        ""),
    setting!(Cache "BHAV_CACHE_L1_ENTRIES_MAX",
        cache.l1_entries_max = number(100, 10_000_000), "entries",
        "Quotes and unknown symbols held in memory",
        "About half a KiB each."),
    setting!(Cache "BHAV_CACHE_NEGATIVE_TTL_MS",
        cache.negative_ttl_ms = number(1_000, DAY_MS), "ms",
        "How long a symbol that no source knows is remembered",
        ""),
    setting!(Cache "BHAV_CACHE_MISS_WAIT_MS", cache.miss_wait_ms = number(10, 30_000), "ms",
        "How long a request may wait for symbols not in memory",
        ""),
    setting!(Cache "BHAV_CACHE_WAITERS_MAX", cache.waiters_max = number(1, 100_000), "requests",
        "Requests that may wait for symbols at once",
        "More are answered at once with what is in memory."),
    setting!(Cache "BHAV_CACHE_DEMAND_TTL_MS", cache.demand_ttl_ms = number(1_000, DAY_MS), "ms",
        "How long a symbol is kept fresh after it was last asked for",
        ""),
    setting!(Cache "BHAV_CACHE_L2_RECORDS_MAX",
        cache.l2_records_max = number(100, 10_000_000), "records",
        "Records of one kind kept in the cache file on disk",
        ""),
    setting!(Cache "BHAV_ANSWERS_BYTES_MAX",
        cache.answers_bytes_max = number(4 * MIB, 4_096 * MIB), "bytes",
        "Users' finished portfolio answers held in memory",
        "Those asked for longest ago make room. About 50 KiB for 100 holdings."),
    setting!(Market "BHAV_CALENDAR_FILE", market.calendar_file = path_if_any, "path",
        "Your entries to the trading calendar; they win over the built-in ones",
        "For holidays and special sessions announced after this release."),
    setting!(Market "BHAV_INDICES_FILE", market.indices_file = path_if_any, "path",
        "Replaces the built-in list of indices and sectors",
        ""),
    setting!(Market "BHAV_UNIVERSE_FILE", market.universe_file = path_if_any, "path",
        "The shares that signals are made of, in place of the built-in NIFTY 50",
        "EXCHANGE:TICKER a line, at most 500."),
    setting!(Market "BHAV_SIGNALS_PROVISIONAL", market.signals_provisional = switch,
        "true or false",
        "Signals of the running day's candles too, before the official close",
        "Until then such a pattern can appear and vanish, and the closing auction moves prices \
         once more. Each is marked provisional, kept in a record of its own, and gone when the \
         date's complete list comes. Costs a call for each share every five minutes."),
    setting!(Close "BHAV_CLOSE_PAGE_USERS", close.page_users = number(1, 10_000), "users",
        "Users revalued in one transaction after the close",
        "Memory: their holdings, for a moment."),
    setting!(Close "BHAV_CLOSE_SYMBOLS_MAX", close.symbols_max = number(1, 100_000), "symbols",
        "Held symbols whose closing price one evening asks for",
        "Holdings beyond it keep their last known price and are counted as carried."),
    setting!(Accounts "BHAV_REGISTRATION", auth.registration = registration, "open or closed",
        "Whether anybody who reaches the service may make an account",
        "An open one lets strangers fill the disk, slowly: an account keeps up to 8 MiB of journal \
         text. Accounts there are go on either way; on a closed one, bhav user add makes more."),
    setting!(Accounts "BHAV_REGISTRATION_ATTEMPTS_PER_MINUTE",
        auth.registration_attempts_per_minute = number(0, 10_000), "attempts",
        "Accounts that one client address may try to make; 0 is no limit",
        "Apart from its logins: who used these up still logs in. An e-mail that is taken counts, \
         so that nobody learns quickly who has an account. What counts as one address is said at \
         BHAV_LOGIN_ATTEMPTS_PER_MINUTE."),
    setting!(Accounts "BHAV_LOGIN_ATTEMPTS_PER_MINUTE",
        auth.login_attempts_per_minute = number(0, 10_000), "attempts",
        "Login attempts per account and per client address; 0 is no limit",
        "Danger: without a limit passwords can be guessed at the speed of the machine. Clients \
         behind a proxy that is not in BHAV_TRUSTED_PROXIES share one address, as do all of a \
         Unix socket whose proxy sends no X-Forwarded-For. An IPv6 network of 64 bits is one."),
    setting!(Accounts "BHAV_ARGON2_MEMORY_KIB",
        auth.argon2_memory_kib = number(ARGON2_MEMORY_KIB_MIN, 1_048_576), "KiB",
        "Memory of one password hash (argon2id)",
        "Each hashing thread keeps this much. Raising it makes stolen hashes dearer to guess and \
         logins slower; stored hashes follow at each user's next login."),
    setting!(Accounts "BHAV_ARGON2_PASSES", auth.argon2_passes = number(2, 16), "passes",
        "Passes over that memory",
        ""),
    setting!(Accounts "BHAV_CRYPTO_THREADS", auth.crypto_threads = number(0, 256), "threads",
        "Threads that hash passwords; 0 is half of the cores",
        "They run at the lowest priority, so that logins do not slow down the market routes."),
    setting!(Accounts "BHAV_CRYPTO_QUEUE_MAX",
        auth.crypto_queue_max = number(1, 10_000), "hashes",
        "Password hashes that may wait for a thread",
        "One more is answered 503 at once."),
    setting!(Accounts "BHAV_STORE_READERS", store.readers = number(1, 64), "threads",
        "Threads that read the database, beside the one that writes",
        "More help only where reads come from a slow disk."),
    setting!(Accounts "BHAV_STORE_WRITES_PER_COMMIT_MAX",
        store.writes_per_commit_max = number(1, 10_000), "writes",
        "Waiting writes that one commit to disk carries at most",
        "1 gives each its own, which costs one wait for the disk per write."),
    setting!(Accounts "BHAV_WRITES_PER_USER_PER_MINUTE",
        store.writes_per_user_per_minute = number(0, 1_000_000), "writes",
        "Changes that one user may make to the journal, and deletions; 0 is no limit",
        "As many at once, then one each time its share of the minute has passed; more are answered \
         429. Danger: without a limit one user can keep the disk busy for all."),
    setting!(Simulator "BHAV_SIM_LISTEN", sim.listen = address, "ip:port",
        "Where the simulator listens",
        "Port 0 takes a free port. It has no protection: keep it on loopback."),
    setting!(Simulator "BHAV_SIM_SEED", sim.seed = number(0, u64::MAX), "seed",
        "The same seed gives the same exchange day",
        ""),
    setting!(Simulator "BHAV_SIM_PUBLIC_DELAY_S",
        sim.public_delay_s = number(0, 2_400), "seconds",
        "How far the simulated public provider is behind the exchange",
        "With a short delay it soon takes over where broker A is broken on purpose."),
    setting!(Log "BHAV_LOG", log.filter = filter, "tracing filter",
        "What is logged",
        "A level, or a list such as info,bhav::http=debug."),
    setting!(Log "BHAV_LOG_FORMAT", log.format = log_format, "logfmt or json",
        "Form of a log line, on standard error",
        ""),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Where the structs are; the one that holds the others stands first.
    const STRUCTS: [&str; 11] = [
        include_str!("composed.rs"),
        include_str!("sim.rs"),
        include_str!("../admin/settings.rs"),
        include_str!("../auth/settings.rs"),
        include_str!("../brokers/settings.rs"),
        include_str!("../cache/settings.rs"),
        include_str!("../http/settings.rs"),
        include_str!("../market/settings.rs"),
        include_str!("../ops/log_settings.rs"),
        include_str!("../store/settings.rs"),
        include_str!("../warmers/settings.rs"),
    ];

    /// `section.field` of each public field in the structs, secrets left out.
    fn fields_of_the_structs() -> BTreeSet<String> {
        let mut sections = std::collections::BTreeMap::new();
        let mut fields = BTreeSet::new();
        let mut owner = String::new();
        for line in STRUCTS.iter().flat_map(|text| text.lines()) {
            if let Some(rest) = line.strip_prefix("pub struct ") {
                owner = rest.trim_end_matches(" {").to_owned();
            }
            let Some((name, kind)) = line
                .strip_prefix("    pub ")
                .and_then(|l| l.trim_end_matches(',').split_once(": "))
                .filter(|(name, _)| !name.contains(' '))
            else {
                continue;
            };
            if kind.ends_with("Settings") {
                sections.insert(kind.to_owned(), name.to_owned());
            } else if owner == "Config" {
                fields.insert(name.to_owned());
            } else if !kind.contains("SecretString") {
                fields.insert(format!("{}.{name}", sections[&owner]));
            }
        }
        fields
    }

    #[test]
    fn each_field_has_one_setting_and_each_setting_a_field() {
        let listed: Vec<String> = SETTINGS.iter().map(|s| s.field.replace(' ', "")).collect();
        let set: BTreeSet<String> = listed.iter().cloned().collect();
        assert_eq!(set.len(), listed.len(), "a field has two settings");
        assert_eq!(set, fields_of_the_structs());
    }

    #[test]
    fn each_default_is_a_value_its_own_setting_accepts() {
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
    fn names_are_unique_and_groups_stand_together() {
        let names: BTreeSet<_> = SETTINGS.iter().map(|s| s.name).collect();
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
