//! From what the service said to what is shown: one value, from which the screen and the JSON are
//! made, so that they cannot disagree. Pure.

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Serialize;

use super::health::{
    CacheAnswers, CacheL1, CacheL2, Clock, Feed, Health, Lane, Log, Token, Warmers,
};
use crate::base::{Broker, ist};
use crate::cli::cures::{self, Severity, Trouble};
use crate::cli::login;
use crate::cli::operator::{plain, span};
use crate::config::Config;
use crate::market::MarketCalendar;

/// A token with less left than this is told of.
const ENDING_S: i64 = 3_600;
/// The `Date` header is whole seconds and takes a moment to come.
const CLOCK_OFF_MAX_S: i64 = 3;

/// Everything that `bhav status` shows.
#[derive(Debug, Serialize)]
pub struct Facts {
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
pub struct Service {
    pub version: String,
    pub uptime_s: u64,
    /// Of the service's clock.
    pub now_ist: Option<String>,
    pub market: Market,
    pub feeds: Feeds,
    pub tokens: Vec<TokenFacts>,
    pub store: Store,
    pub warmers: Warmers,
    pub caches: Caches,
    /// Only those with something waiting or not done.
    pub lanes: Vec<Lane>,
}

#[derive(Debug, Serialize)]
pub struct Market {
    pub phase: String,
    pub calendar_known: bool,
    pub as_of_ist: Option<String>,
    pub next_transition_ist: Option<String>,
    pub next_phase: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct Feeds {
    pub broker_a: Feed,
    pub public: Feed,
}

#[derive(Debug, Serialize)]
pub struct TokenFacts {
    pub broker: &'static str,
    /// `valid`, `dead` or `none`.
    pub state: &'static str,
    pub expires_at: Option<String>,
    pub left_s: Option<i64>,
}

#[derive(Debug, Serialize)]
pub struct Store {
    pub state: String,
    pub writes: u64,
    pub refused: u64,
}

#[derive(Debug, Serialize)]
pub struct Caches {
    pub l1: CacheL1,
    pub answers: CacheAnswers,
    pub l2: CacheL2,
}

/// What the service said, and when by which clock.
pub struct Said {
    pub health: Health,
    pub token_a: Token,
    pub token_b: Token,
    /// The service's clock and this machine's at the same moment.
    pub service_now: Option<Timestamp>,
    pub here_now: Timestamp,
}

impl Facts {
    /// Of a service that cannot be asked.
    pub fn without_service(url: String, trouble: Trouble) -> Self {
        Self { status: word(trouble.severity), url, service: None, troubles: vec![trouble] }
    }

    /// Of one that answered.
    pub fn of(url: String, said: Said, config: &Config, calendar: &MarketCalendar) -> Self {
        let now = said.service_now.unwrap_or(said.here_now);
        let tokens =
            vec![token(Broker::A, &said.token_a, now), token(Broker::B, &said.token_b, now)];
        let troubles = judged(&said, &tokens, config);
        let worst = troubles.iter().map(|trouble| trouble.severity).max();
        let Health { status, version, uptime_s, database, store, warmers, market, .. } =
            said.health;
        let reported = severity(&status);
        let feeds = said.health.feeds;
        let next = calendar.status(now).next_transition_at;
        let service = Service {
            version: plain(&version),
            uptime_s,
            now_ist: said.service_now.map(ist::iso),
            market: Market {
                phase: plain(&market.phase),
                calendar_known: market.calendar_known,
                as_of_ist: market.as_of_ist.as_deref().map(plain),
                next_transition_ist: next.map(ist::iso),
                next_phase: next.map(|at| calendar.status(at).phase.as_str()),
            },
            feeds: Feeds { broker_a: told(&feeds.broker_a), public: told(&feeds.public) },
            tokens,
            store: Store { state: plain(&database), writes: store.writes, refused: store.refused },
            warmers,
            caches: Caches {
                l1: said.health.cache_l1,
                answers: said.health.cache_answers,
                l2: said.health.cache_l2,
            },
            lanes: said.health.lanes.into_iter().filter(Lane::has_trouble).collect(),
        };
        let status = word(worst.unwrap_or(Severity::Note).max(reported));
        Self { status, url, service: Some(service), troubles }
    }

    /// What the exit code says.
    pub fn severity(&self) -> Severity {
        severity(self.status)
    }
}

fn severity(status: &str) -> Severity {
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
    let Feed { state, age_ms, failure } = feed;
    Feed { state: plain(state), age_ms: *age_ms, failure: failure.as_deref().map(plain) }
}

fn token(broker: Broker, token: &Token, now: Timestamp) -> TokenFacts {
    let state = match (token.initialized, token.valid) {
        (_, true) => "valid",
        (true, false) => "dead",
        (false, false) => "none",
    };
    let expires: Option<Timestamp> = token.expires_at.as_deref().and_then(|text| text.parse().ok());
    let left_s = expires.filter(|_| token.valid).map(|at| at.duration_since(now).as_secs());
    TokenFacts { broker: broker.as_str(), state, expires_at: expires.map(ist::iso), left_s }
}

/// Everything that is wrong, the worst first.
fn judged(said: &Said, tokens: &[TokenFacts], config: &Config) -> Vec<Trouble> {
    let health = &said.health;
    let mut found: Vec<Trouble> = time_apart(&health.clock).into_iter().collect();
    let clock_explains = !found.is_empty();
    let mut feeds = feeds(&health.feeds.broker_a, &health.feeds.public);
    if tokens.iter().any(|token| token.broker == "a" && token.state == "valid") {
        // Given since health was made, a second ago at most.
        let old = ["broker_a_token_missing", "broker_a_token_dead"];
        for trouble in feeds.iter_mut().filter(|trouble| old.contains(&trouble.name)) {
            *trouble = cures::TOKEN_TAKEN_A.told("");
        }
    }
    found.extend(feeds.into_iter().filter(|trouble| {
        // Their cures would send the operator the wrong way.
        let silent = ["feeds_dead", "broker_a_fails", "public_fails"];
        !(clock_explains && silent.contains(&trouble.name))
    }));
    found.extend(cures::of_store(&health.database).map(|row| row.told(&health.database)));
    found.extend(logins(tokens, &found));
    if health.status == "down" && health.warmers.index == "starting" {
        found.push(cures::STARTING.told(""));
    }
    if health.warmers.index == "stale" {
        found.push(cures::SNAPSHOT_OLD.told(""));
    }
    if health.cache_l2.backend == "none" {
        found.push(cures::L2_OFF.told(""));
    } else if health.warmers.persist == "failing" {
        found.push(cures::PERSIST_FAILS.told(""));
    }
    if !health.market.calendar_known {
        found.push(cures::CALENDAR_UNKNOWN.told(""));
    }
    if health.warmers.instruments == "failing" {
        found.push(cures::INSTRUMENTS_FAIL.told(""));
    }
    if health.warmers.close == "failing" {
        found.push(cures::CLOSE_FAILS.told(""));
    }
    if matches!(health.warmers.signals.as_str(), "failing" | "stale") {
        found.push(cures::SIGNALS_FAIL.told(""));
    }
    found.extend(health.lanes.iter().filter_map(lane));
    found.extend(log(&health.log));
    found.extend(clock(said));
    let explained = found.iter().any(|trouble| trouble.severity >= Severity::Degraded);
    if health.status != "ok" && !explained {
        let row = cures::UNEXPLAINED.told(&plain(&health.status));
        found.push(Trouble { severity: severity(&health.status), ..row });
    }
    for trouble in &mut found {
        trouble.login_url = link(trouble.name, config);
    }
    // Stable, so that equals keep the order above: feeds before the rest.
    found.sort_by_key(|trouble| std::cmp::Reverse(trouble.severity));
    found
}

/// Neither speaking nor about to.
fn fails(feed: &Feed) -> bool {
    !matches!(feed.state.as_str(), "ok" | "standby" | "starting")
}

fn feeds(broker_a: &Feed, public: &Feed) -> Vec<Trouble> {
    let mut found = Vec::new();
    if fails(broker_a) && fails(public) {
        let seen = format!("broker A: {}, public: {}", broker_a.state, public.state);
        found.push(cures::FEEDS_DEAD.told(&plain(&seen)));
    }
    let cause = |feed: &Feed| plain(feed.failure.as_deref().unwrap_or(&feed.state));
    let limited = |feed: &Feed| fails(feed) && cause(feed).contains("too many requests");
    found.extend(match broker_a.state.as_str() {
        _ if limited(broker_a) => Some(cures::RATE_LIMITED.told(&cause(broker_a))),
        "no_token" => Some(cures::TOKEN_MISSING_A.told("")),
        "token_dead" => Some(cures::TOKEN_DEAD_A.told("")),
        "no_permission" => Some(cures::NO_MARKET_DATA.told("")),
        "off" => Some(cures::BROKER_A_OFF.told("")),
        _ if fails(broker_a) => Some(cures::BROKER_A_FAILS.told(&cause(broker_a))),
        _ => None,
    });
    found.extend(match public.state.as_str() {
        "off" => None,
        _ if limited(public) => Some(cures::RATE_LIMITED.told(&cause(public))),
        _ if fails(public) => Some(cures::PUBLIC_FAILS.told(&cause(public))),
        _ => None,
    });
    found
}

/// Tokens that are about to end, and the session that nothing in health tells of.
fn logins(tokens: &[TokenFacts], found: &[Trouble]) -> Vec<Trouble> {
    let mut more = Vec::new();
    for token in tokens {
        let ending = token.left_s.is_some_and(|left_s| left_s < ENDING_S);
        more.extend(match (token.broker, token.state) {
            ("a", "valid") if ending => Some(cures::TOKEN_ENDING_A.told("")),
            ("b", "valid") if ending => Some(cures::SESSION_ENDING_B.told("")),
            ("b", "dead") => Some(cures::SESSION_ENDED_B.told("")),
            // Refused since health was made, a second ago at most.
            ("a", "dead") if found.iter().all(|known| known.name != "broker_a_token_dead") => {
                Some(cures::TOKEN_DEAD_A.told(""))
            }
            _ => None,
        });
    }
    more
}

fn lane(lane: &Lane) -> Option<Trouble> {
    let name = plain(&lane.name);
    if lane.panicked > 0 {
        return Some(cures::LANE_PANICKED.told(&format!("lane {name}: {}", lane.panicked)));
    }
    let lost = lane.refused + lane.expired;
    (lost > 0).then(|| cures::LANE_REFUSED.told(&format!("lane {name}: {lost}")))
}

fn log(log: &Log) -> Option<Trouble> {
    let Log { lines_dropped, writes_failed } = log;
    let seen = format!("{lines_dropped} lines dropped, {writes_failed} writes failed");
    (lines_dropped + writes_failed > 0).then(|| cures::LOG_LOST.told(&seen))
}

fn time_apart(clock: &Clock) -> Option<Trouble> {
    let ahead_ms = clock.ahead_of_exchange_ms?;
    let which = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let seen = format!("{} {which}", span(ahead_ms.unsigned_abs() / 1_000));
    Some(cures::TIME_APART.told(&seen))
}

fn clock(said: &Said) -> Option<Trouble> {
    let off_s = said.service_now?.duration_since(said.here_now).as_secs();
    if off_s.abs() <= CLOCK_OFF_MAX_S {
        return None;
    }
    let set = said.health.clock.set;
    let row = if set { &cures::CLOCK_SET } else { &cures::CLOCK_OFF };
    let sign = if off_s < 0 { "-" } else { "+" };
    Some(row.told(&format!("{sign}{}", span(off_s.unsigned_abs()))))
}

/// The login page, for a trouble that a login ends.
fn link(name: &str, config: &Config) -> Option<String> {
    let key = |key: &Option<SecretString>, broker| login::page(broker, key.as_ref());
    if name.starts_with("broker_a_token") {
        return Some(key(&config.broker_a.api_key, Broker::A));
    }
    name.starts_with("broker_b_session").then(|| key(&config.broker_b.api_key, Broker::B))
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
