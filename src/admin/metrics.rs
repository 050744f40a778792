//! One scrape: all metric families.
//!
//! Runs on the lane `admin`, since it reads `/proc` and sums thousands of counters. Labels are
//! names of routes, lanes, caches, upstreams and states, all fixed at build time. No label contains
//! a user, symbol or address, so the number of series is bounded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustix::time::ClockId;

use crate::admin::exposition::{Exposition, Kind, Seconds, seconds};
use crate::api::{Api, ROUTES, State};
use crate::base::{Clock, Source, clock};
use crate::brokers::broker_a::ticker::TickerReading;
use crate::brokers::{ClassReading, Public};
use crate::cache::l2::DISTRUSTED;
use crate::cache::pending::Class;
use crate::cache::{Responses, SecondLevel};
use crate::http::server::shared::{STATUS_CLASSES, Shared};
use crate::ops::{Counter, RefusalLines, exit, log, panic};
use crate::rt::{COMMIT_SIZES, Lane, LaneStats, WAIT_BOUNDS_MS};
use crate::status::{self, EdgeSeen, Report, Verdict};
use crate::store::StoreHealth;
use crate::views::states::Role;

/// Writes families in their order, each as: the method of [`Exposition`], the name, the help, and
/// the value.
macro_rules! families {
    ($text:expr; $($method:ident $name:literal $help:literal = $value:expr;)*) => {
        $($text.$method($name, $help, $value);)*
    };
}

/// Sources of metrics and probes, except the edge's own state.
pub struct MetricSources {
    pub clock: Clock,
    pub state_dir: PathBuf,
    /// Every lane that the composition root started.
    pub lanes: Vec<Arc<Lane>>,
    /// The latest report; empty until the first.
    pub report: Arc<ArcSwapOption<Report>>,
    pub responses: Arc<Responses>,
    pub l2: Arc<dyn SecondLevel>,
    /// The public provider; `None` if it is switched off.
    pub public: Option<Arc<Public>>,
}

/// Everything that metrics and probes read.
pub(super) struct Watched {
    pub(super) edge: Arc<Shared<Api>>,
    pub(super) sources: MetricSources,
    /// Address at which the watched service listens.
    pub(super) service_address: String,
    /// Start of the process in Unix seconds, by the machine's clock even under `BHAV_NOW`.
    pub(super) started_s: f64,
    /// How often the operator's own listener ended a silent connection for a new one.
    pub(super) made_room: Counter,
}

impl Watched {
    /// Time since the scheduler last reported; `None` before its first report.
    pub(super) fn heartbeat_age_ms(&self) -> Option<u64> {
        let seen_mono_ms = self.sources.report.load().as_ref()?.seen_mono_ms;
        Some(
            self.sources
                .clock
                .monotonic_ms()
                .saturating_sub(seen_mono_ms),
        )
    }

    /// Time since the thread that wakes streams was last seen.
    pub(super) fn fan_out_age_ms(&self) -> u64 {
        let seen_mono_ms = self.edge.streams.fan_out_mono_ms();
        self.sources
            .clock
            .monotonic_ms()
            .saturating_sub(seen_mono_ms)
    }

    pub(super) fn readiness(&self) -> Verdict {
        let state = self.edge.service.state();
        let edge = EdgeSeen {
            is_draining: self.edge.is_draining(),
            has_snapshot: state.snapshot.load().is_some(),
            store: state.store.health().state,
            fan_out_age_ms: self.fan_out_age_ms(),
        };
        let report = self.sources.report.load_full();
        status::ready(report.as_deref(), self.heartbeat_age_ms(), &edge)
    }
}

/// The text of one scrape. `own` are the counters of the lane `admin`.
pub(super) fn gather(watched: &Watched, own: LaneStats) -> String {
    let mut text = Exposition::default();
    let state = watched.edge.service.state();
    let report = watched.sources.report.load_full();
    requests(&mut text, watched);
    connections(&mut text, watched);
    streams(&mut text, watched);
    logins(&mut text, state);
    if let Some(report) = &report {
        operator(&mut text, report);
    }
    let health = state.store.health();
    lanes(&mut text, watched, &health, own);
    store(&mut text, state, &health);
    caches(&mut text, watched);
    waiting(&mut text, state);
    upstreams(&mut text, watched);
    tokens(&mut text, watched);
    if let Some(report) = &report {
        // Ages in the report are as of when it was made.
        let now_mono_ms = watched.sources.clock.monotonic_ms();
        let since_ms = now_mono_ms.saturating_sub(report.seen_mono_ms);
        nodes(&mut text, report, since_ms);
        feeds(&mut text, report, since_ms);
        ticker(&mut text, report, since_ms);
        warmers(&mut text, report);
        if let Some(age_ms) = watched.heartbeat_age_ms() {
            families! { text;
                gauge "bhav_scheduler_heartbeat_age_seconds"
                    "Time since the scheduler last reported, which it does every second."
                    = seconds(age_ms);
            }
        }
        snapshot(&mut text, watched, report);
    }
    process(&mut text, watched);
    text.finish()
}

/// Writes a series for each route and status class that occurred. The class 2xx is always written,
/// so that a scraper sees every route from the start.
fn requests(text: &mut Exposition, watched: &Watched) {
    let stats = &watched.edge.stats;
    let mut family = text.family(
        Kind::Histogram,
        "bhav_http_request_duration_seconds",
        "Time from the complete request to the complete response in the output buffer, by route \
         and status class.",
    );
    let known = ROUTES
        .iter()
        .map(|route| (route.method.as_str(), route.path));
    // The HTTP layer numbers kinds of requests: 0 is no route, then ROUTES in their order, then the
    // dashboard's pages and files.
    let kinds = std::iter::once(("other", "other"))
        .chain(known)
        .chain([("GET", "page")]);
    for (kind, (method, route)) in kinds.enumerate() {
        for (class, counts) in STATUS_CLASSES.into_iter().zip(stats.durations(kind)) {
            if counts.count() > 0 || class == "2xx" {
                let labels = [("method", method), ("route", route), ("status", class)];
                family.durations(&labels, &counts);
            }
        }
    }
    let lines = [
        &stats.refusal_lines,
        &watched.edge.service.state().refusal_lines,
    ];
    let left_out = lines.map(RefusalLines::left_out);
    let clients: u64 = left_out.iter().map(|counts| counts.0).sum();
    let servers: u64 = left_out.iter().map(|counts| counts.1).sum();
    let errors = [
        ("4xx", stats.client_errors.value()),
        ("5xx", stats.server_errors.value()),
    ];
    families! { text;
        gauge "bhav_http_requests_in_flight"
            "Requests being handled, including those that wait for a lane." = stats.in_flight();
        counters "bhav_http_errors_total" "Responses with an error status." = ("status", errors);
        counters "bhav_http_errors_unlogged_total"
            "Error responses without a log line of their own, because there were too many at once."
            = ("status", [("4xx", clients), ("5xx", servers)]);
        counter "bhav_http_handler_panics_total"
            "Requests answered 500 because their handler panicked or sent nothing."
            = stats.handler_panics.value();
    }
}

fn connections(text: &mut Exposition, watched: &Watched) {
    let stats = &watched.edge.stats;
    let edge = &watched.edge;
    let refused = [
        ("address", stats.address_refusals.value()),
        ("system", stats.accept_errors.value()),
    ];
    let timed_out = [
        ("idle", stats.idle_closed.value()),
        ("read", stats.read_timeouts.value()),
        ("write", stats.write_timeouts.value()),
        ("crowded", stats.unread_cuts.value()),
    ];
    families! { text;
        gauge "bhav_http_connections_open" "Open client connections." = edge.slots.open();
        gauge "bhav_http_connections_limit" "Open connections at which accepting pauses."
            = edge.settings().connections_max;
        counter "bhav_http_connections_accepted_total" "Accepted connections."
            = stats.accepted.value();
        counters "bhav_http_connections_refused_total"
            "Connections refused: too many from one address, or an error of the system."
            = ("reason", refused);
        counter "bhav_http_accept_pauses_total"
            "How often accepting paused at the connection limit." = stats.accept_pauses.value();
        counters "bhav_http_connections_timed_out_total"
            "Connections closed because the client was idle, sent too slowly (read), read too \
             slowly (write), or was the slowest reader when the unread output of all clients \
             exceeded its limit (crowded)." = ("reason", timed_out);
        gauge "bhav_http_unread_output_bytes" "Output that clients have not read yet."
            = edge.unread.bytes();
        gauge "bhav_http_upload_bytes" "Files that arrive or are being read."
            = edge.uploads.bytes();
        counters "bhav_http_uploads_refused_total"
            "Files refused: the memory for files is used up, or the user has two others."
            = ("reason", [("memory", edge.uploads.crowded.value()),
                ("user", edge.uploads.of_busy_users.value())]);
        gauge "bhav_ledgers_kept_bytes" "Computed ledgers that are kept in memory."
            = edge.service.state().trades.kept_bytes();
        counter "bhav_imports_throttled_total"
            "Files refused because their user sent too many in a minute."
            = edge.service.state().trades.attempts.refused();
        counter "bhav_admin_connections_evicted_total"
            "Silent connections of the listener for metrics and probes that were ended for a new \
             one, because all were taken." = watched.made_room.value();
    }
}

fn streams(text: &mut Exposition, watched: &Watched) {
    let streams = &watched.edge.streams;
    let settings = watched.edge.settings();
    let choices = &watched.edge.service.state().event_streams.choices;
    let stats = &streams.stats;
    // A stream with quotes takes two places.
    let all = streams.open();
    let places = streams.taken();
    let with_quotes = places.saturating_sub(all).min(all);
    let cut = [
        ("write", stats.slow_cuts.value()),
        ("crowded", stats.crowded_cuts.value()),
        ("read", stats.input_cuts.value()),
    ];
    families! { text;
        gauges "bhav_streams_open"
            "Open streams of events: of the snapshot alone, and with quotes beside it."
            = ("kind", [("snapshot", all - with_quotes), ("quotes", with_quotes)]);
        gauge "bhav_streams_limit"
            "Open streams at which further ones are refused; one with quotes counts as two."
            = settings.streams_max;
        gauge "bhav_stream_choices"
            "Different choices of symbols that open streams show quotes of." = choices.count();
        gauge "bhav_stream_choices_limit"
            "Choices of symbols at which streams with another one are refused."
            = settings.stream_choices_max;
        counter "bhav_stream_choices_refused_total"
            "Streams refused at the limit of choices of symbols; they count as refused, too."
            = choices.refused.value();
        counter "bhav_stream_frames_total" "Events sent to streams, without heartbeats."
            = stats.frames.value();
        counter "bhav_stream_heartbeats_total" "Heartbeats sent." = stats.heartbeats.value();
        counter "bhav_stream_sent_bytes_total" "Bytes of events and heartbeats sent."
            = stats.bytes.value();
        counter "bhav_stream_conflated_total"
            "Events that a stream skipped because a newer one was there when it could send."
            = stats.conflated.value();
        counter "bhav_streams_refused_total"
            "Streams refused at the limit of all, of their address, or of choices of symbols."
            = stats.refused.value();
        counters "bhav_stream_cut_total"
            "Streams cut off because the client read too slowly (write), was the slowest reader \
             when the unread output of all clients exceeded its limit (crowded), or sent too much \
             (read)." = ("reason", cut);
        durations "bhav_stream_fan_out_seconds"
            "Time from the beginning of a walk over streams to its last write."
            = &stats.fan_out.read(0);
    }
}

fn logins(text: &mut Exposition, state: &State) {
    let auth = &state.auth;
    let keys = &state.auth.api_keys;
    let logins = [
        ("ok", auth.logins.value()),
        ("wrong_password", auth.wrong_passwords.value()),
    ];
    families! { text;
        counters "bhav_logins_total" "Logins whose password was checked, by result."
            = ("result", logins);
        counter "bhav_login_throttled_total" "Password attempts refused by the rate limit."
            = auth.throttle.refused();
        counter "bhav_registration_throttled_total" "Registrations refused by the rate limit."
            = auth.registrations.refused();
        counter "bhav_login_strangers_refused_total"
            "Password attempts from unknown networks refused because their share of the hashing \
             queue was full." = auth.passwords.strangers_refused();
        counter "bhav_login_cookies_crowded_total"
            "Requests with more login cookies than are checked." = auth.crowded_cookies.value();
        counter "bhav_api_key_requests_total" "Requests with a good API key."
            = keys.admitted.value();
        counters "bhav_api_key_refused_total"
            "Requests that were refused because of their API key, by error code."
            = ("reason", keys.refused.by_word());
    }
}

/// Results of an operator's reloads and backups.
fn operator(text: &mut Exposition, report: &Report) {
    let reload = &report.health.reload;
    let backup = report.health.backup.as_ref();
    families! { text;
        gauge "bhav_reload_refused"
            "Whether the last reload was refused, so that older settings are in force."
            = u8::from(reload.is_some());
        gauge "bhav_backup_failed" "Whether the last backup failed."
            = u8::from(backup.is_some_and(|backup| backup.failed));
    }
    if let Some(at) = backup.and_then(|backup| backup.succeeded_ist) {
        families! { text;
            gauge "bhav_backup_last_success_timestamp_seconds"
                "Time of the last successful backup, in seconds since the Unix epoch; absent \
                 before the first." = seconds(at.0.as_millisecond().unsigned_abs());
        }
    }
}

fn lanes(text: &mut Exposition, watched: &Watched, store: &StoreHealth, own: LaneStats) {
    let mut lanes: Vec<(&str, LaneStats)> = watched
        .sources
        .lanes
        .iter()
        .map(|lane| (lane.name(), lane.stats()))
        .collect();
    lanes.push(("store-reader", store.readers));
    lanes.push(("admin", own));
    let waiting = lanes.iter().map(|(lane, stats)| (lane, stats.depth));
    let running = lanes.iter().map(|(lane, stats)| (lane, stats.running));
    families! { text;
        gauges "bhav_lane_waiting_jobs" "Jobs in the lane's queue." = ("lane", waiting);
        gauges "bhav_lane_running_jobs" "Jobs running on the lane's threads." = ("lane", running);
    }
    let help = "Jobs by result; expired: not begun by their deadline.";
    let mut jobs = text.family(Kind::Counter, "bhav_lane_jobs_total", help);
    for (lane, stats) in &lanes {
        for (result, count) in [
            ("completed", stats.completed),
            ("refused", stats.refused),
            ("expired", stats.expired),
            ("panicked", stats.panicked),
        ] {
            jobs.sample(&[("lane", lane), ("result", result)], count);
        }
    }
    let help = "Time that jobs waited in the queue, measured in whole milliseconds.";
    let mut waits = text.family(Kind::Histogram, "bhav_lane_wait_seconds", help);
    for (lane, stats) in &lanes {
        let bounds = WAIT_BOUNDS_MS.iter().map(|bound_ms| seconds(*bound_ms));
        waits.histogram(&[("lane", lane)], bounds, &stats.waits, seconds(stats.wait_ms_total));
    }
}

fn store(text: &mut Exposition, state: &State, store: &StoreHealth) {
    let writer = &store.writer;
    let exports = &state.portfolio.exports;
    let writes = [
        ("committed", writer.committed),
        ("failed", writer.failed),
        ("refused", writer.refused),
        ("expired", writer.expired),
        ("panicked", writer.panicked),
    ];
    families! { text;
        state "bhav_store_state" "State of the database: 1 for the current state." = store.state;
        gauge "bhav_store_waiting_writes" "Writes queued for the store's writer thread."
            = writer.depth;
        counters "bhav_store_writes_total" "Writes by result." = ("result", writes);
        counter "bhav_store_refused_total"
            "Reads and writes that failed because the database was not available in time."
            = store.refused;
        counter "bhav_writes_throttled_total"
            "Changes refused by the per-minute limit of their user." = state.writes.refused();
        durations "bhav_store_roundtrip_seconds"
            "Time from a request to the answer of a database on a server: a statement alone, or a \
             transaction; empty for a file." = &store.roundtrips;
        gauge "bhav_exports_underway" "Exports being made or sent to their clients."
            = exports.underway();
        counter "bhav_exports_refused_total"
            "Exports refused because the user's previous one, or too many large ones, were under \
             way." = exports.refused.value();
    }
    let help = "Writes in one commit; the count is the number of commits.";
    let mut commits = text.family(Kind::Histogram, "bhav_store_commit_writes", help);
    let bounds = COMMIT_SIZES.iter().map(|bound| *bound as f64);
    commits.histogram(&[], bounds, &writer.sizes, writer.committed as f64);
}

fn caches(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let sources = &watched.sources;
    let l1 = state.l1.stats();
    let l2 = sources.l2.stats();
    let responses = sources.responses.stats();
    let [candles, documents] = state.candles.stats();
    let look_ups = [
        ("l1", l1.hits, l1.misses, l1.evictions),
        ("l2", l2.hits, l2.misses, l2.evictions),
        ("answers", responses.hits, responses.misses, responses.evictions),
        ("candles", candles.hits, candles.misses, candles.evictions),
        ("candles_compressed", documents.hits, documents.misses, documents.evictions),
    ];
    let entries = [
        ("l1", l1.size as u64),
        ("l2", l2.entries),
        ("answers", responses.users as u64),
        ("candles", candles.entries as u64),
        ("candles_compressed", documents.entries as u64),
    ];
    let bytes = [
        ("l1", l1.bytes as u64),
        ("l2", l2.bytes),
        ("answers", responses.bytes as u64),
    ];
    let distrusted = DISTRUSTED
        .into_iter()
        .zip(l2.distrusted)
        .chain([("ahead", l1.ahead)]);
    families! { text;
        counters "bhav_cache_hits_total" "Look-ups that found an entry."
            = ("cache", look_ups.map(|(cache, hits, ..)| (cache, hits)));
        counters "bhav_cache_misses_total" "Look-ups that found no entry."
            = ("cache", look_ups.map(|(cache, _, misses, _)| (cache, misses)));
        counters "bhav_cache_evictions_total" "Entries evicted to make room."
            = ("cache", look_ups.map(|(cache, .., evictions)| (cache, evictions)));
        gauges "bhav_cache_entries"
            "Entries: quotes and unknown symbols (l1), records (l2), users (answers), symbols \
             (candles), documents (candles_compressed)." = ("cache", entries);
        gauges "bhav_cache_bytes"
            "Size of the entries: approximate memory (l1, answers), or the file and its \
             write-ahead log (l2)." = ("cache", bytes);
        counter "bhav_cache_l2_errors_total" "Failed calls of the second cache level." = l2.errors;
        counters "bhav_distrusted_total"
            "What was not believed: on the server that nodes share, what was not signed with this \
             JWT_SECRET, is of another version, or was told again; and quotes of any source that \
             are ahead of this node's clock." = ("reason", distrusted);
        counter "bhav_quotes_outdated_total"
            "Received quotes that were dropped because a newer one is cached." = l1.refused;
    }
}

/// Requests that wait for uncached quotes.
fn waiting(text: &mut Exposition, state: &State) {
    let classes = Class::ALL.map(|class| (class.as_str(), state.pending.stats(class)));
    families! { text;
        gauges "bhav_quote_waiting_requests" "Requests that wait for uncached quotes."
            = ("symbols", classes.iter().map(|(symbols, stats)| (symbols, stats.waiters)));
        counters "bhav_quote_symbols_expired_total"
            "Pending symbols dropped because no request waited for them, or to make room."
            = ("symbols", classes.iter().map(|(symbols, stats)| (symbols, stats.expired)));
    }
    let help = "Requests whose uncached quotes did not arrive.";
    let mut failed = text.family(Kind::Counter, "bhav_quote_waits_failed_total", help);
    for (symbols, stats) in &classes {
        failed.sample(&[("symbols", symbols), ("reason", "refused")], stats.refused);
        failed.sample(&[("symbols", symbols), ("reason", "timed_out")], stats.timed_out);
    }
}

fn upstreams(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let brokers = state.brokers.iter();
    let mut upstreams: Vec<_> = brokers
        .map(|(broker, access)| (broker.label(), access.client.readings()))
        .collect();
    upstreams.extend(
        watched
            .sources
            .public
            .iter()
            .map(|public| ("public", public.readings())),
    );
    let labelled = |(upstream, classes): (&'static str, Vec<ClassReading>)| {
        let labels = move |class: &ClassReading| [("upstream", upstream), ("class", class.class)];
        classes
            .into_iter()
            .map(move |class| (labels(&class), class))
    };
    let classes: Vec<_> = upstreams.into_iter().flat_map(labelled).collect();
    let help = "Requests sent to upstreams, by outcome.";
    let mut calls = text.family(Kind::Counter, "bhav_upstream_calls_total", help);
    for ([upstream, class], reading) in &classes {
        for (outcome, count) in &reading.outcomes {
            calls.sample(&[*upstream, *class, ("outcome", *outcome)], count);
        }
    }
    let help = "Requests not sent because of pacing, a penalty, an open circuit breaker, a missing \
                token, or a limit of a key or of all syncs.";
    let mut held = text.family(Kind::Counter, "bhav_upstream_held_back_total", help);
    for (labels, reading) in &classes {
        held.sample(labels, reading.held_back);
    }
    let help = "State of the circuit breaker: 1 for the current state.";
    let mut circuits = text.family(Kind::Gauge, "bhav_upstream_circuit_state", help);
    for (labels, reading) in &classes {
        circuits.state(labels, reading.circuit);
    }
    families! { text;
        counter "bhav_sync_throttled_total" "Syncs refused by the rate limit of their user."
            = state.portfolio.attempts.refused();
        counters "bhav_sync_sessions_total"
            "Sessions that syncs opened at broker A: ended by a logout, logout failed, left \
             because no logout could be sent, kept because they belong to the server's own app."
            = ("outcome", state.broker_a.session_ends());
    }
}

fn tokens(text: &mut Exposition, watched: &Watched) {
    let state = watched.edge.service.state();
    let now = watched.sources.clock.now();
    let brokers = state.brokers.iter();
    let tokens: Vec<_> = brokers
        .map(|(broker, access)| (broker.label(), access.client.token().status(now)))
        .collect();
    let left = tokens.iter().map(|(broker, status)| {
        let until = status.expires_at.filter(|_| status.valid);
        let left_s = until.map_or(0.0, |until| now.duration_until(until).as_secs_f64());
        (broker, left_s.max(0.0))
    });
    families! { text;
        gauges "bhav_token_valid"
            "Whether the server's own session at the broker is usable: set, not expired, not \
             refused." = ("broker", tokens.iter().map(|(broker, it)| (broker, u8::from(it.valid))));
        gauges "bhav_token_time_left_seconds"
            "Time until the session expires; 0 if it is not valid." = ("broker", left);
    }
}

/// This node among several.
fn nodes(text: &mut Exposition, report: &Report, since_ms: u64) {
    let relay = report.health.relay.as_ref();
    let relay_age_ms = relay.map(|relay| relay.age_ms.unwrap_or(report.uptime_ms));
    let changes_age_ms = report.health.changes.as_ref().map(|changes| changes.age_ms);
    let age = |age_ms: Option<u64>| seconds(age_ms.map_or(0, |age_ms| age_ms + since_ms));
    let fenced = report.fenced.map(|(fence, count)| (fence.as_str(), count));
    let outcomes = report.tokens.map(|(event, count)| (event.as_str(), count));
    let limits = [
        ("refused", report.limits.refused),
        ("unknown", report.limits.unknown),
    ];
    families! { text;
        gauge "bhav_leader"
            "Whether this node asks the brokers: 1 for a leader and for a node that is alone."
            = u8::from(report.health.role != Role::Follower);
        gauge "bhav_epoch" "The number of this node's leadership; 0 where it follows or is alone."
            = report.leads_in.unwrap_or_default();
        counters "bhav_fenced_total" "What was refused because this node did not lead any more."
            = ("where", fenced);
        counters "bhav_token_words_total"
            "What became of what nodes told each other about brokers' tokens of the day."
            = ("outcome", outcomes);
        counters "bhav_shared_limits_total"
            "Attempts that this node admitted and all nodes together refused, or for which there \
             was no answer in time, so that this node's own limit decided alone."
            = ("outcome", limits);
        counter "bhav_relay_gaps_total" "Gaps in what the leader told the other nodes."
            = relay.map_or(0, |relay| relay.gaps);
        gauge "bhav_relay_age_seconds"
            "Time since this node heard what the leader tells, or started; 0 where it is alone."
            = age(relay_age_ms);
        gauge "bhav_changes_lag_seconds"
            "Time since this node read what changed of accounts and tokens; 0 where it is alone."
            = age(changes_age_ms);
    }
}

fn feeds(text: &mut Exposition, report: &Report, since_ms: u64) {
    let feeds = Source::ALL.map(|source| (source.as_str(), report.health.feeds.of(source)));
    let ages = feeds.map(|(source, feed)| {
        (source, Seconds(feed.age_ms.map(|age_ms| seconds(age_ms + since_ms))))
    });
    let delays = feeds.map(|(source, feed)| (source, feed.delay_s.map_or(0, |delay| delay.0)));
    families! { text;
        gauges "bhav_feed_age_seconds"
            "Time since the last successful call of the feed was sent; +Inf before the first."
            = ("source", ages);
        gauges "bhav_feed_delay_seconds"
            "The feed's usual delay behind the exchange, as measured; 0 for a real-time feed."
            = ("source", delays);
        counters "bhav_feed_rounds_total" "Polls of the feed."
            = ("source", feeds.map(|(source, feed)| (source, feed.rounds)));
        counters "bhav_feed_failures_total" "Polls that did not return every requested index."
            = ("source", feeds.map(|(source, feed)| (source, feed.failures)));
        counters "bhav_far_prices_total"
            "Prices far from their previous close, by what decided about them: believed for their \
             row, the price shown, the other source or repetition; refused as contradicted by \
             their row or as unproven."
            = ("reason", report.far_prices.map(|(reason, count)| (reason.as_str(), count)));
    }
    let help = "State of the feed: 1 for the current state.";
    let mut states = text.family(Kind::Gauge, "bhav_feed_state", help);
    for (source, feed) in feeds {
        states.state(&[("source", source)], feed.state);
    }
}

fn ticker(text: &mut Exposition, report: &Report, since_ms: u64) {
    let TickerReading {
        state,
        live,
        age_ms,
        subscribed,
        published,
        ended,
        bad,
        ..
    } = &report.ticker;
    let TickerReading {
        ticks,
        frames,
        bytes,
        merged,
        ..
    } = report.ticker;
    families! { text;
        state "bhav_ticker_state" "State of broker A's WebSocket: 1 for the current state."
            = *state;
        gauge "bhav_ticker_up"
            "Whether every leading index has ticked within seconds and the ticks are believed."
            = u8::from(*live);
        gauge "bhav_ticker_age_seconds" "Time since the last tick; +Inf before the first."
            = Seconds(age_ms.map(|age_ms| seconds(age_ms + since_ms)));
        gauge "bhav_ticker_subscribed" "Instruments subscribed on broker A's WebSocket."
            = subscribed;
        counter "bhav_ticker_ticks_total" "Ticks received." = ticks;
        counter "bhav_ticker_frames_total" "Messages received." = frames;
        counter "bhav_ticker_bytes_total" "Bytes of binary messages received." = bytes;
        counter "bhav_ticker_windows_merged_total"
            "Batches of ticks that waited because the scheduler had not taken the one before."
            = merged;
        durations "bhav_ticker_publish_seconds"
            "Time from the first tick of a batch to when requests can read its prices."
            = published;
        counters "bhav_ticker_reconnects_total"
            "Connections that ended or could not be opened, by reason."
            = ("reason", ended.iter().copied());
        counters "bhav_ticker_bad_total" "Messages and packets that were not taken, by fault."
            = ("reason", bad.iter().copied());
        counter "bhav_ticker_disagrees_total"
            "Prices of which a tick and a quote call of the same second differed by more than \
             0.5 %."
            = report.ticker_disagreements;
    }
}

fn warmers(text: &mut Exposition, report: &Report) {
    let help = "State of the warmer (background task): 1 for the current state.";
    let mut states = text.family(Kind::Gauge, "bhav_warmer_state", help);
    for (warmer, _) in report.runs {
        states.state(&[("warmer", warmer.as_str())], report.health.warmers.of(warmer));
    }
    let runs = report.runs.map(|(warmer, runs)| (warmer.as_str(), runs));
    let succeeded: Vec<_> = runs
        .iter()
        .filter_map(|(warmer, runs)| Some((warmer, seconds(runs.succeeded_ms?.unsigned_abs()))))
        .collect();
    families! { text;
        counters "bhav_warmer_runs_total"
            "Finished runs of the warmer: polls, downloads, calls, writes, steps."
            = ("warmer", runs.map(|(warmer, runs)| (warmer, runs.runs)));
        counters "bhav_warmer_failures_total" "Failed runs of the warmer."
            = ("warmer", runs.map(|(warmer, runs)| (warmer, runs.failures)));
    }
    // Write no family without samples.
    if !succeeded.is_empty() {
        families! { text;
            gauges "bhav_warmer_last_success_timestamp_seconds"
                "Time of the last successful run, in seconds since the Unix epoch; absent before \
                 the first." = ("warmer", succeeded);
        }
    }
}

fn snapshot(text: &mut Exposition, watched: &Watched, report: &Report) {
    let market = &report.health.market;
    let age = market.as_of_ist.map(|as_of| {
        as_of
            .0
            .duration_until(watched.sources.clock.now())
            .as_secs_f64()
            .max(0.0)
    });
    families! { text;
        gauge "bhav_snapshot_age_seconds"
            "Age of the primary index's price; +Inf before the first. Grows while the market is \
             closed." = Seconds(age);
        gauge "bhav_snapshot_simulated"
            "Whether any value of the snapshot came from the simulator."
            = u8::from(report.simulated);
        gauge "bhav_snapshot_published" "Whether there is a snapshot to serve."
            = u8::from(market.as_of_ist.is_some());
        gauge "bhav_snapshot_stale"
            "Whether the snapshot is marked as stale; 1 before the first."
            = u8::from(market.stale.unwrap_or(true));
        state "bhav_market_phase" "Market phase: 1 for the current phase." = market.phase;
        gauge "bhav_market_calendar_known"
            "Whether the calendar knows today; if not, no close is official."
            = u8::from(market.calendar_known);
    }
    if let Some(after) = market
        .calendar_until
        .and_then(|until| until.0.tomorrow().ok())
    {
        families! { text;
            gauge "bhav_market_calendar_end_timestamp_seconds"
                "End of the last year that the holiday calendar covers, in seconds since the Unix \
                 epoch; absent if it does not cover this year."
                = clock::instant(after.at(0, 0, 0, 0)).as_second();
        }
    }
}

fn process(text: &mut Exposition, watched: &Watched) {
    let labels = [
        ("version", exit::VERSION),
        ("profile", exit::PROFILE),
        ("arch", std::env::consts::ARCH),
    ];
    text.family(Kind::Gauge, "bhav_build_info", "Version and build; always 1.")
        .sample(&labels, 1);
    families! { text;
        counter "bhav_log_lines_dropped_total"
            "Log lines dropped because standard error was read too slowly." = log::lines_dropped();
        counter "bhav_log_writes_failed_total"
            "Failed writes to the log, usually because its reader closed it."
            = log::writes_failed();
        counter "bhav_panics_total" "Panics in any thread or coroutine." = panic::PANICS.value();
        gauge "process_start_time_seconds"
            "Start time of the process, in seconds since the Unix epoch." = watched.started_s;
    }
    text.family(Kind::Counter, "process_cpu_seconds_total", "User and system CPU time.")
        .sample(&[], cpu_seconds());
    let mut optional = |name, help, value: Option<u64>| {
        if let Some(value) = value {
            text.gauge(name, help, value);
        }
    };
    optional(
        "bhav_state_dir_available_bytes",
        "Free space on the file system of the state directory.",
        available_bytes(&watched.sources.state_dir),
    );
    let status = Status::read();
    let resident = status.as_ref().and_then(Status::resident_bytes);
    optional("process_resident_memory_bytes", "Resident memory.", resident);
    let threads = status.as_ref().and_then(Status::threads);
    optional("process_threads", "OS threads of the process.", threads);
    let (open, max) = descriptors().unzip();
    optional("process_open_fds", "Open file descriptors.", open);
    optional("process_max_fds", "Limit on open file descriptors.", max);
}

// ---- Process
//
// CPU time, memory, threads and descriptors of this process, from `/proc/self`. Values that cannot
// be read are `None`.

/// User and system CPU time used so far, in seconds.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The text of `/proc/self/status`, in which sizes are in KiB.
struct Status(String);

impl Status {
    fn read() -> Option<Self> {
        fs::read_to_string("/proc/self/status").ok().map(Self)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse().ok()
    }

    fn resident_bytes(&self) -> Option<u64> {
        self.number("VmRSS")?.checked_mul(1_024)
    }

    fn threads(&self) -> Option<u64> {
        self.number("Threads")
    }
}

/// Open file descriptors, and the limit on them.
fn descriptors() -> Option<(u64, u64)> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    let (max, _) = rlimit::getrlimit(rlimit::Resource::NOFILE).ok()?;
    // One of the entries is the descriptor by which the directory is read.
    Some((open.saturating_sub(1), max))
}

/// Bytes that this user may still write on the file system of `path`.
fn available_bytes(path: &Path) -> Option<u64> {
    let filesystem = rustix::fs::statvfs(path).ok()?;
    filesystem.f_bavail.checked_mul(filesystem.f_frsize)
}

#[cfg(test)]
mod process_tests {
    use super::*;

    #[test]
    fn every_value_of_the_running_process_is_read() {
        let status = Status::read().unwrap();
        assert!(status.resident_bytes().unwrap() > 1_000_000);
        assert!(status.threads().unwrap() >= 1);
        let (open, max) = descriptors().unwrap();
        assert!(open >= 3 && max >= open, "{open} of {max}");
        assert!(cpu_seconds() > 0.0);
        assert!(available_bytes(Path::new(".")).is_some());
        assert_eq!(available_bytes(Path::new("no/such/path")), None);
    }
}
