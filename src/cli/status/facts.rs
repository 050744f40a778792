//! Everything that `bhav status` shows, as one value. The screen and the JSON are both made from
//! it, so they cannot disagree. Pure.

use std::path::Path;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde::Serialize;

use crate::base::{Broker, clock};
use crate::cli::diagnoses::{Severity, Trouble};
use crate::cli::operator::{STATE_DIR, plain, span};
use crate::cli::status::screen::{
    Backup, CacheAnswers, CacheL1, CacheL2, Clock, Feed, Health, Lane, Log, Relay, Ticker, Token,
    Warmers,
};
use crate::cli::{diagnoses, token};
use crate::config::Config;
use crate::market::{MarketCalendar, Phase};

/// Everything that `bhav status` shows.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    /// `ok`, `degraded` or `down`.
    pub status: &'static str,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// The worst first.
    pub troubles: Vec<Trouble>,
}

/// A service that answered.
#[derive(Debug, Serialize)]
pub(super) struct Service {
    pub version: String,
    pub uptime_s: u64,
    /// Of the service's clock.
    pub now_ist: Option<String>,
    /// `None` for one that is alone.
    pub node: Option<NodeFacts>,
    pub market: Market,
    pub feeds: Feeds,
    pub tokens: Vec<TokenFacts>,
    pub store: Store,
    /// `None` where none was ever tried.
    pub backup: Option<BackupFacts>,
    pub warmers: Warmers,
    pub caches: Caches,
    /// Only those with something waiting or not done.
    pub lanes: Vec<Lane>,
}

/// This node among several.
#[derive(Debug, Serialize)]
pub(crate) struct NodeFacts {
    pub name: String,
    /// `leader` or `follower`.
    pub role: String,
    /// Of the leadership; `None` where a follower has heard no leader.
    pub epoch: Option<u64>,
    /// The node that leads.
    pub leader: Option<String>,
    pub relay: Relay,
}

#[derive(Debug, Serialize)]
pub(super) struct Market {
    pub phase: String,
    pub calendar_known: bool,
    pub as_of_ist: Option<String>,
    pub delay_s: Option<u64>,
    pub stale: Option<bool>,
    pub source: Option<String>,
    pub next_transition_ist: Option<String>,
    pub next_phase: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Feeds {
    pub broker_a: Feed,
    pub public: Feed,
}

#[derive(Debug, Serialize)]
pub(crate) struct TokenFacts {
    pub broker: &'static str,
    /// `valid`, `dead` or `none`.
    pub state: &'static str,
    pub expires_at: Option<String>,
    pub left_s: Option<i64>,
    /// Another node was given it.
    pub of_other_node: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Store {
    pub state: String,
    pub writes: u64,
    pub refused: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct BackupFacts {
    /// Of the last good one.
    pub succeeded_ist: Option<String>,
    pub age_s: Option<i64>,
    /// The last attempt came to nothing.
    pub failed: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Caches {
    pub l1: CacheL1,
    pub answers: CacheAnswers,
    pub l2: CacheL2,
}

/// What the service reported, and the time by its clock and ours.
pub(crate) struct ServiceReport {
    pub health: Health,
    pub token_a: Token,
    pub token_b: Token,
    /// The service's clock and this machine's at the same moment.
    pub service_now: Option<Timestamp>,
    pub here_now: Timestamp,
}

impl Facts {
    /// The facts about a service that does not answer.
    pub(crate) fn without_service(url: String, trouble: Trouble) -> Self {
        Self { status: word(trouble.severity), url, service: None, troubles: vec![trouble] }
    }

    /// The facts about a service that answered.
    pub(super) fn of(
        url: String,
        report: ServiceReport,
        config: &Config,
        calendar: &MarketCalendar,
    ) -> Self {
        let now = report.service_now.unwrap_or(report.here_now);
        let relay = report.health.relay.clone().unwrap_or_default();
        let given = relay.tokens.clone().unwrap_or_default();
        let tokens = vec![
            token(Broker::A, &report.token_a, &given.broker_a, now),
            token(Broker::B, &report.token_b, &given.broker_b, now),
        ];
        let troubles = find_troubles(&report, &tokens, config);
        let worst = troubles.iter().map(|trouble| trouble.severity).max();
        let Health { status, version, uptime_s, database, store, warmers, market, .. } =
            report.health;
        let reported = severity(&status);
        let feeds = report.health.feeds;
        let next = next_phase(calendar, now);
        let backup = report.health.backup.as_ref().map(|backup| backed_up(backup, report.here_now));
        let service = Service {
            version: plain(&version),
            uptime_s,
            now_ist: report.service_now.map(clock::iso),
            node: report.health.node.as_deref().map(|name| NodeFacts {
                name: plain(name),
                role: plain(&report.health.role),
                epoch: report.health.epoch,
                leader: report.health.leader.as_deref().map(plain),
                relay: Relay { state: plain(&relay.state), tokens: None, ..relay },
            }),
            market: Market {
                phase: plain(&market.phase),
                calendar_known: market.calendar_known,
                as_of_ist: market.as_of_ist.as_deref().map(plain),
                delay_s: market.delay_s,
                stale: market.stale,
                source: market.source.as_deref().map(plain),
                next_transition_ist: next.map(|(at, _)| clock::iso(at)),
                next_phase: next.map(|(_, phase)| phase.as_str()),
            },
            feeds: Feeds { broker_a: told(&feeds.broker_a), public: told(&feeds.public) },
            tokens,
            store: Store { state: plain(&database), writes: store.writes, refused: store.refused },
            backup,
            warmers,
            caches: Caches {
                l1: report.health.cache_l1,
                answers: report.health.cache_answers,
                l2: report.health.cache_l2,
            },
            lanes: report.health.lanes.into_iter().filter(Lane::has_trouble).collect(),
        };
        let status = word(worst.unwrap_or(Severity::Note).max(reported));
        Self { status, url, service: Some(service), troubles }
    }

    /// What the exit code says.
    pub(crate) fn severity(&self) -> Severity {
        severity(self.status)
    }
}

pub(super) fn severity(status: &str) -> Severity {
    match status {
        "ok" => Severity::Note,
        "down" => Severity::Down,
        _ => Severity::Degraded,
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "ok",
        Severity::Degraded => "degraded",
        Severity::Down => "down",
    }
}

fn told(feed: &Feed) -> Feed {
    let Feed { state, age_ms, delay_s, failure, ticker } = feed;
    let (state, failure) = (plain(state), failure.as_deref().map(plain));
    let ticker = ticker.as_ref().map(|ticker| Ticker {
        state: plain(&ticker.state),
        live: ticker.live,
        failure: ticker.failure.as_deref().map(plain),
    });
    Feed { state, age_ms: *age_ms, delay_s: *delay_s, failure, ticker }
}

fn token(broker: Broker, token: &Token, origin: &str, now: Timestamp) -> TokenFacts {
    let state = match (token.initialized, token.valid) {
        (_, true) => "valid",
        (true, false) => "dead",
        (false, false) => "none",
    };
    let expires: Option<Timestamp> = token.expires_at.as_deref().and_then(|text| text.parse().ok());
    let left_s = expires.filter(|_| token.valid).map(|at| at.duration_since(now).as_secs());
    TokenFacts {
        broker: broker.as_str(),
        state,
        expires_at: expires.map(clock::iso),
        left_s,
        of_other_node: origin == "other_node",
    }
}

/// Backups are dated by the machine's clock, whatever the service's reads.
pub(super) fn backed_up(backup: &Backup, here_now: Timestamp) -> BackupFacts {
    let at: Option<Timestamp> = backup.succeeded_ist.as_deref().and_then(|text| text.parse().ok());
    BackupFacts {
        succeeded_ist: at.map(clock::iso),
        age_s: at.map(|at| here_now.duration_since(at).as_secs().max(0)),
        failed: backup.failed,
    }
}

// ---- Troubles
//
// Finds what is wrong in what the service reported, each with its row of the table of diagnoses.
// Pure.

/// A token that expires within this time is reported.
const ENDING_S: i64 = 3_600;
/// An older backup is reported. The timer makes one each day, and may start late.
const BACKUP_OLD_S: i64 = 26 * 3_600;
/// A calendar that ends within this time is reported. Exchanges publish the next year's holidays in
/// December.
const CALENDAR_ENDING_DAYS: i32 = 30;
/// A larger difference of the clocks is reported. The `Date` header has whole seconds, and the
/// response takes a moment.
const CLOCK_OFF_MAX_S: i64 = 3;

/// Everything that is wrong, the worst first.
pub(crate) fn find_troubles(
    report: &ServiceReport,
    tokens: &[TokenFacts],
    config: &Config,
) -> Vec<Trouble> {
    let health = &report.health;
    let mut found: Vec<Trouble> = time_apart(&health.clock).into_iter().collect();
    let clock_explains = !found.is_empty();
    let mut feeds = feeds(&health.feeds.broker_a, &health.feeds.public);
    if tokens.iter().any(|token| token.broker == "a" && token.state == "valid") {
        // The token was given after the health report was made, at most a second ago.
        let old = ["broker_a_token_missing", "broker_a_token_dead"];
        for trouble in feeds.iter_mut().filter(|trouble| old.contains(&trouble.name)) {
            *trouble = diagnoses::TOKEN_TAKEN_A.trouble("");
        }
    }
    found.extend(feeds.into_iter().filter(|trouble| {
        // A wrong clock explains these, and their cures would mislead.
        let silent = ["feeds_dead", "broker_a_fails", "broker_a_mute", "public_fails"];
        !(clock_explains && silent.contains(&trouble.name))
    }));
    found.extend(diagnoses::of_store(&health.database).map(|row| row.trouble(&health.database)));
    if matches!(health.signing_key.as_str(), "missing" | "changed") {
        found.push(diagnoses::SIGNING_KEY_LOST.trouble(&health.signing_key));
    }
    found.extend(logins(tokens, &found));
    found.extend(caches(health));
    if !health.market.calendar_known {
        found.push(diagnoses::CALENDAR_UNKNOWN.trouble(""));
    }
    found.extend(calendar_ending(report));
    found.extend(health.reload.as_ref().map(|reload| {
        let minute: String = plain(&reload.refused_ist).chars().take(16).collect();
        diagnoses::RELOAD_REFUSED.trouble(&minute.replace('T', " "))
    }));
    found.extend(backup_trouble(report, config));
    found.extend(health.admin_listener.as_ref().map(|listener| {
        let failure = plain(&listener.failure);
        // Show the cause only; the diagnosis says what to do.
        diagnoses::NO_METRICS.trouble(failure.split([',', ';']).next().unwrap_or_default())
    }));
    found.extend(servers(health));
    if health.warmers.instruments == "failing" {
        found.push(diagnoses::INSTRUMENTS_FAIL.trouble(""));
    }
    if health.warmers.close == "failing" {
        found.push(diagnoses::CLOSE_FAILS.trouble(""));
    }
    if matches!(health.warmers.signals.as_str(), "failing" | "stale") {
        found.push(diagnoses::SIGNALS_FAIL.trouble(""));
    }
    found.extend(health.lanes.iter().filter_map(lane));
    found.extend(log(&health.log));
    found.extend(clock(report));
    let explained = found.iter().any(|trouble| trouble.severity >= Severity::Degraded);
    if health.status != "ok" && !explained {
        let row = diagnoses::UNEXPLAINED.trouble(&plain(&health.status));
        found.push(Trouble { severity: severity(&health.status), ..row });
    }
    for trouble in &mut found {
        trouble.login_url = link(trouble.name, config);
    }
    // A stable sort keeps the order above among equals: feeds first.
    found.sort_by_key(|trouble| std::cmp::Reverse(trouble.severity));
    found
}

/// Connections to other machines that are not protected, and what the shared server refuses.
fn servers(health: &Health) -> impl Iterator<Item = Trouble> {
    let exposed = health.exposed.iter().map(|exposed| {
        let row = match exposed.reason.as_str() {
            "no_password" => &diagnoses::SHARED_SERVER_OPEN,
            _ => &diagnoses::CLEAR_TEXT,
        };
        row.trouble(&plain(&exposed.setting))
    });
    let refused = health.shared_server.iter().flat_map(|server| &server.refused);
    exposed.chain(refused.map(|cause| diagnoses::SHARED_SERVER_REFUSES.trouble(&plain(cause))))
}

/// Troubles of the snapshot and of the second cache level.
fn caches(health: &Health) -> impl Iterator<Item = Trouble> {
    let starting = health.status == "down" && health.warmers.index == "starting";
    let stale = health.warmers.index == "stale";
    let kept = match health.cache_l2.backend.as_str() {
        "none" => Some(&diagnoses::L2_OFF),
        _ if health.warmers.persist == "failing" => Some(&diagnoses::PERSIST_FAILS),
        _ => None,
    };
    let starting = starting.then(|| diagnoses::STARTING.trouble(""));
    let stale = stale.then(|| snapshot_old(health));
    starting.into_iter().chain(stale).chain(kept.map(|row| row.trouble("")))
}

/// The trouble of an old snapshot. If it only waits for the delayed public provider, it says when
/// that will have passed broker A's last prices.
fn snapshot_old(health: &Health) -> Trouble {
    let (market, public) = (&health.market, &health.feeds.public);
    let as_of: Option<Timestamp> = market.as_of_ist.as_deref().and_then(|text| text.parse().ok());
    let waits = market.source.as_deref() == Some("broker_a") && public.state == "ok";
    match (as_of, public.delay_s.and_then(|delay_s| i64::try_from(delay_s).ok())) {
        (Some(as_of), Some(delay_s)) if waits => {
            let at = as_of + SignedDuration::from_secs(delay_s);
            let clock = clock::zoned(at).strftime("%H:%M");
            let minutes = (delay_s + 30) / 60;
            diagnoses::SNAPSHOT_WAITS
                .trouble(&format!("it is {minutes} min behind, so at about {clock}"))
        }
        _ => diagnoses::SNAPSHOT_OLD.trouble(""),
    }
}

fn calendar_ending(report: &ServiceReport) -> Option<Trouble> {
    let until: Date = report.health.market.calendar_until.as_deref()?.parse().ok()?;
    let today = clock::zoned(report.service_now.unwrap_or(report.here_now)).date();
    let left = today.until(until).ok()?.get_days();
    (left <= CALENDAR_ENDING_DAYS).then(|| diagnoses::CALENDAR_ENDS.trouble(&until.to_string()))
}

/// The trouble of an old, failed or missing backup. A missing one is reported only for the
/// package's installation, which has a timer.
fn backup_trouble(report: &ServiceReport, config: &Config) -> Option<Trouble> {
    let Some(backup) = &report.health.backup else {
        let expected = config.state_dir == Path::new(STATE_DIR);
        return expected.then(|| diagnoses::BACKUP_NONE.trouble(""));
    };
    let BackupFacts { age_s, failed, .. } = backed_up(backup, report.here_now);
    let when = match age_s {
        Some(age_s) => format!("{} ago", span(age_s.unsigned_abs())),
        None => "never".to_owned(),
    };
    if failed {
        return Some(diagnoses::BACKUP_FAILED.trouble(&when));
    }
    (age_s? > BACKUP_OLD_S).then(|| diagnoses::BACKUP_OLD.trouble(&when))
}

/// Whether the feed neither works nor is starting.
fn fails(feed: &Feed) -> bool {
    !matches!(feed.state.as_str(), "ok" | "standby" | "starting" | "relayed")
}

/// A feed's state in words.
pub(crate) fn in_words(feed: &Feed) -> &str {
    match feed.state.as_str() {
        "mute" => "prices stand still",
        "stale" => "prices are old",
        "hanging" => "does not answer in time",
        "open" => "held back after failures",
        "no_token" => "no token",
        "token_dead" => "token is dead",
        "no_permission" => "no market data in the plan",
        word => word,
    }
}

fn feeds(broker_a: &Feed, public: &Feed) -> Vec<Trouble> {
    let mut found = Vec::new();
    if fails(broker_a) && fails(public) {
        let seen = format!("broker A: {}, public: {}", in_words(broker_a), in_words(public));
        found.push(diagnoses::FEEDS_DEAD.trouble(&plain(&seen)));
    }
    let cause = |feed: &Feed| plain(feed.failure.as_deref().unwrap_or(in_words(feed)));
    let limited = |feed: &Feed| fails(feed) && cause(feed).contains("too many requests");
    found.extend(match broker_a.state.as_str() {
        _ if limited(broker_a) => Some(diagnoses::RATE_LIMITED.trouble(&cause(broker_a))),
        "no_token" => Some(diagnoses::TOKEN_MISSING_A.trouble("")),
        "token_dead" => Some(diagnoses::TOKEN_DEAD_A.trouble("")),
        "no_permission" => Some(diagnoses::NO_MARKET_DATA.trouble("")),
        "off" => Some(diagnoses::BROKER_A_OFF.trouble("")),
        "mute" => Some(diagnoses::BROKER_A_MUTE.trouble("")),
        _ if fails(broker_a) => Some(diagnoses::BROKER_A_FAILS.trouble(&cause(broker_a))),
        _ => None,
    });
    found.extend(match public.state.as_str() {
        "off" => None,
        _ if limited(public) => Some(diagnoses::RATE_LIMITED.trouble(&cause(public))),
        _ if fails(public) => Some(diagnoses::PUBLIC_FAILS.trouble(&cause(public))),
        _ => None,
    });
    found
}

/// Tokens about to expire, and ended sessions, which the health report does not contain.
fn logins(tokens: &[TokenFacts], found: &[Trouble]) -> Vec<Trouble> {
    let mut more = Vec::new();
    for token in tokens {
        let ending = token.left_s.is_some_and(|left_s| left_s < ENDING_S);
        more.extend(match (token.broker, token.state) {
            ("a", "valid") if ending => Some(diagnoses::TOKEN_ENDING_A.trouble("")),
            ("b", "valid") if ending => Some(diagnoses::SESSION_ENDING_B.trouble("")),
            ("b", "dead") => Some(diagnoses::SESSION_ENDED_B.trouble("")),
            // The token was refused after the health report was made, at most a second ago.
            ("a", "dead") if found.iter().all(|known| known.name != "broker_a_token_dead") => {
                Some(diagnoses::TOKEN_DEAD_A.trouble(""))
            }
            _ => None,
        });
    }
    more
}

fn lane(lane: &Lane) -> Option<Trouble> {
    let name = plain(&lane.name);
    if lane.panicked > 0 {
        return Some(diagnoses::LANE_PANICKED.trouble(&format!("lane {name}: {}", lane.panicked)));
    }
    let lost = lane.refused + lane.expired;
    (lost > 0).then(|| diagnoses::LANE_REFUSED.trouble(&format!("lane {name}: {lost}")))
}

fn log(log: &Log) -> Option<Trouble> {
    let Log { lines_dropped, writes_failed } = log;
    let seen = format!("{lines_dropped} lines dropped, {writes_failed} writes failed");
    (lines_dropped + writes_failed > 0).then(|| diagnoses::LOG_LOST.trouble(&seen))
}

fn time_apart(clock: &Clock) -> Option<Trouble> {
    let ahead_ms = clock.ahead_of_exchange_ms?;
    let which = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let seen = format!("{} {which}", span(ahead_ms.unsigned_abs() / 1_000));
    Some(diagnoses::TIME_APART.trouble(&seen))
}

fn clock(report: &ServiceReport) -> Option<Trouble> {
    let off_s = report.service_now?.duration_since(report.here_now).as_secs();
    if off_s.abs() <= CLOCK_OFF_MAX_S {
        return None;
    }
    let set = report.health.clock.set;
    let row = if set { &diagnoses::CLOCK_SET } else { &diagnoses::CLOCK_OFF };
    let sign = if off_s < 0 { "-" } else { "+" };
    Some(row.trouble(&format!("{sign}{}", span(off_s.unsigned_abs()))))
}

/// The login page, if logging in is the cure of this trouble.
fn link(name: &str, config: &Config) -> Option<String> {
    let page = |broker, url: &str, key: &Option<SecretString>| {
        Some(token::page(broker, url, key.as_ref()))
    };
    let (a, b) = (&config.broker_a, &config.broker_b);
    if name.starts_with("broker_a_token") {
        return page(Broker::A, &a.url, &a.api_key);
    }
    if name.starts_with("broker_b_session") {
        return page(Broker::B, &b.url, &b.api_key);
    }
    None
}

// ---- Next phase
//
// The next market phase that a person would wait for. Pure.

/// Most phase changes examined. Between two sessions there are a few for each day.
const CHANGES_MAX: usize = 64;

/// The next phase that differs from the current one, with its time. Closed and holiday count as the
/// same. `None` if the calendar ends before it.
pub(crate) fn next_phase(calendar: &MarketCalendar, now: Timestamp) -> Option<(Timestamp, Phase)> {
    let rests = |phase: Phase| matches!(phase, Phase::Closed | Phase::Holiday);
    let status = calendar.status(now);
    let mut next = status.next_transition_at;
    for _ in 0..CHANGES_MAX {
        let at = next?;
        let then = calendar.status(at);
        let same = then.phase == status.phase || (rests(then.phase) && rests(status.phase));
        if !same {
            return Some((at, then.phase));
        }
        next = then.next_transition_at;
    }
    None
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;

#[cfg(test)]
mod next_phase_tests {
    use super::*;
    use crate::base::clock;

    #[test]
    fn the_next_phase_differs_and_skips_days_without_a_session() {
        let calendar = MarketCalendar::embedded();
        for (now, at, phase) in [
            ("2026-11-20T11:00:00+05:30", "2026-11-20T15:15:00+05:30", "closing"),
            ("2026-11-20T15:29:00+05:30", "2026-11-20T15:35:00+05:30", "closed"),
            ("2026-11-20T20:00:00+05:30", "2026-11-23T09:00:00+05:30", "pre_open"),
            ("2026-11-21T10:00:00+05:30", "2026-11-23T09:00:00+05:30", "pre_open"),
            ("2026-11-24T10:00:00+05:30", "2026-11-25T09:00:00+05:30", "pre_open"),
        ] {
            let (next, then) = next_phase(&calendar, now.parse().unwrap()).unwrap();
            assert_eq!((clock::iso(next).as_str(), then.as_str()), (at, phase), "{now}");
        }
        assert!(next_phase(&calendar, "2099-01-01T00:00:00Z".parse().unwrap()).is_none());
    }
}
