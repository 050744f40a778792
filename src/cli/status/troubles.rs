//! From what the service said to what is wrong, each with its row of the table of cures. Pure.

use std::path::Path;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use super::facts::{BackupFacts, Said, TokenFacts, backed_up, severity};
use super::health::{Clock, Feed, Health, Lane, Log};
use crate::base::{Broker, ist};
use crate::cli::diagnoses::{self, Severity, Trouble};
use crate::cli::login;
use crate::cli::operator::{STATE_DIR, plain, span};
use crate::config::Config;

/// A token with less left than this is told of.
const ENDING_S: i64 = 3_600;
/// The timer makes one each day; it may start late and take a while.
const BACKUP_OLD_S: i64 = 26 * 3_600;
/// Exchanges publish the next year's holidays in December.
const CALENDAR_ENDING_DAYS: i32 = 30;
/// The `Date` header is whole seconds and takes a moment to come.
const CLOCK_OFF_MAX_S: i64 = 3;

/// Everything that is wrong, the worst first.
pub fn judged(said: &Said, tokens: &[TokenFacts], config: &Config) -> Vec<Trouble> {
    let health = &said.health;
    let mut found: Vec<Trouble> = time_apart(&health.clock).into_iter().collect();
    let clock_explains = !found.is_empty();
    let mut feeds = feeds(&health.feeds.broker_a, &health.feeds.public);
    if tokens.iter().any(|token| token.broker == "a" && token.state == "valid") {
        // Given since health was made, a second ago at most.
        let old = ["broker_a_token_missing", "broker_a_token_dead"];
        for trouble in feeds.iter_mut().filter(|trouble| old.contains(&trouble.name)) {
            *trouble = diagnoses::TOKEN_TAKEN_A.told("");
        }
    }
    found.extend(feeds.into_iter().filter(|trouble| {
        // Their cures would send the operator the wrong way.
        let silent = ["feeds_dead", "broker_a_fails", "broker_a_mute", "public_fails"];
        !(clock_explains && silent.contains(&trouble.name))
    }));
    found.extend(diagnoses::of_store(&health.database).map(|row| row.told(&health.database)));
    if matches!(health.signing_key.as_str(), "missing" | "changed") {
        found.push(diagnoses::SIGNING_KEY_LOST.told(&health.signing_key));
    }
    found.extend(logins(tokens, &found));
    found.extend(caches(health));
    if !health.market.calendar_known {
        found.push(diagnoses::CALENDAR_UNKNOWN.told(""));
    }
    found.extend(calendar_ending(said));
    found.extend(health.reload.as_ref().map(|reload| {
        let minute: String = plain(&reload.refused_ist).chars().take(16).collect();
        diagnoses::RELOAD_REFUSED.told(&minute.replace('T', " "))
    }));
    found.extend(backup_trouble(said, config));
    found.extend(health.admin_listener.as_ref().map(|listener| {
        let failure = plain(&listener.failure);
        // What else may help is said by the row.
        diagnoses::NO_METRICS.told(failure.split([',', ';']).next().unwrap_or_default())
    }));
    if health.warmers.instruments == "failing" {
        found.push(diagnoses::INSTRUMENTS_FAIL.told(""));
    }
    if health.warmers.close == "failing" {
        found.push(diagnoses::CLOSE_FAILS.told(""));
    }
    if matches!(health.warmers.signals.as_str(), "failing" | "stale") {
        found.push(diagnoses::SIGNALS_FAIL.told(""));
    }
    found.extend(health.lanes.iter().filter_map(lane));
    found.extend(log(&health.log));
    found.extend(clock(said));
    let explained = found.iter().any(|trouble| trouble.severity >= Severity::Degraded);
    if health.status != "ok" && !explained {
        let row = diagnoses::UNEXPLAINED.told(&plain(&health.status));
        found.push(Trouble { severity: severity(&health.status), ..row });
    }
    for trouble in &mut found {
        trouble.login_url = link(trouble.name, config);
    }
    // Stable, so that equals keep the order above: feeds before the rest.
    found.sort_by_key(|trouble| std::cmp::Reverse(trouble.severity));
    found
}

/// What is not served, is served too old, or would not outlive a restart.
fn caches(health: &Health) -> impl Iterator<Item = Trouble> {
    let starting = health.status == "down" && health.warmers.index == "starting";
    let stale = health.warmers.index == "stale";
    let kept = match health.cache_l2.backend.as_str() {
        "none" => Some(&diagnoses::L2_OFF),
        _ if health.warmers.persist == "failing" => Some(&diagnoses::PERSIST_FAILS),
        _ => None,
    };
    let starting = starting.then(|| diagnoses::STARTING.told(""));
    let stale = stale.then(|| snapshot_old(health));
    starting.into_iter().chain(stale).chain(kept.map(|row| row.told("")))
}

/// Where the public provider is well and merely behind, the operator is told when it will have
/// caught up.
fn snapshot_old(health: &Health) -> Trouble {
    let (market, public) = (&health.market, &health.feeds.public);
    let as_of: Option<Timestamp> = market.as_of_ist.as_deref().and_then(|text| text.parse().ok());
    let waits = market.source.as_deref() == Some("broker_a") && public.state == "ok";
    match (as_of, public.delay_s.and_then(|delay_s| i64::try_from(delay_s).ok())) {
        (Some(as_of), Some(delay_s)) if waits => {
            let at = as_of + SignedDuration::from_secs(delay_s);
            let clock = ist::zoned(at).strftime("%H:%M");
            let minutes = (delay_s + 30) / 60;
            diagnoses::SNAPSHOT_WAITS
                .told(&format!("it is {minutes} min behind, so at about {clock}"))
        }
        _ => diagnoses::SNAPSHOT_OLD.told(""),
    }
}

fn calendar_ending(said: &Said) -> Option<Trouble> {
    let until: Date = said.health.market.calendar_until.as_deref()?.parse().ok()?;
    let today = ist::zoned(said.service_now.unwrap_or(said.here_now)).date();
    let left = today.until(until).ok()?.get_days();
    (left <= CALENDAR_ENDING_DAYS).then(|| diagnoses::CALENDAR_ENDS.told(&until.to_string()))
}

/// Where none was ever made, nothing is said but of the package's installation, which has a timer.
fn backup_trouble(said: &Said, config: &Config) -> Option<Trouble> {
    let Some(backup) = &said.health.backup else {
        let expected = config.state_dir == Path::new(STATE_DIR);
        return expected.then(|| diagnoses::BACKUP_NONE.told(""));
    };
    let BackupFacts { age_s, failed, .. } = backed_up(backup, said.here_now);
    let when = match age_s {
        Some(age_s) => format!("{} ago", span(age_s.unsigned_abs())),
        None => "never".to_owned(),
    };
    if failed {
        return Some(diagnoses::BACKUP_FAILED.told(&when));
    }
    (age_s? > BACKUP_OLD_S).then(|| diagnoses::BACKUP_OLD.told(&when))
}

/// Neither speaking nor about to.
fn fails(feed: &Feed) -> bool {
    !matches!(feed.state.as_str(), "ok" | "standby" | "starting")
}

/// A feed's state as a person would say it.
pub fn in_words(feed: &Feed) -> &str {
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
        found.push(diagnoses::FEEDS_DEAD.told(&plain(&seen)));
    }
    let cause = |feed: &Feed| plain(feed.failure.as_deref().unwrap_or(in_words(feed)));
    let limited = |feed: &Feed| fails(feed) && cause(feed).contains("too many requests");
    found.extend(match broker_a.state.as_str() {
        _ if limited(broker_a) => Some(diagnoses::RATE_LIMITED.told(&cause(broker_a))),
        "no_token" => Some(diagnoses::TOKEN_MISSING_A.told("")),
        "token_dead" => Some(diagnoses::TOKEN_DEAD_A.told("")),
        "no_permission" => Some(diagnoses::NO_MARKET_DATA.told("")),
        "off" => Some(diagnoses::BROKER_A_OFF.told("")),
        "mute" => Some(diagnoses::BROKER_A_MUTE.told("")),
        _ if fails(broker_a) => Some(diagnoses::BROKER_A_FAILS.told(&cause(broker_a))),
        _ => None,
    });
    found.extend(match public.state.as_str() {
        "off" => None,
        _ if limited(public) => Some(diagnoses::RATE_LIMITED.told(&cause(public))),
        _ if fails(public) => Some(diagnoses::PUBLIC_FAILS.told(&cause(public))),
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
            ("a", "valid") if ending => Some(diagnoses::TOKEN_ENDING_A.told("")),
            ("b", "valid") if ending => Some(diagnoses::SESSION_ENDING_B.told("")),
            ("b", "dead") => Some(diagnoses::SESSION_ENDED_B.told("")),
            // Refused since health was made, a second ago at most.
            ("a", "dead") if found.iter().all(|known| known.name != "broker_a_token_dead") => {
                Some(diagnoses::TOKEN_DEAD_A.told(""))
            }
            _ => None,
        });
    }
    more
}

fn lane(lane: &Lane) -> Option<Trouble> {
    let name = plain(&lane.name);
    if lane.panicked > 0 {
        return Some(diagnoses::LANE_PANICKED.told(&format!("lane {name}: {}", lane.panicked)));
    }
    let lost = lane.refused + lane.expired;
    (lost > 0).then(|| diagnoses::LANE_REFUSED.told(&format!("lane {name}: {lost}")))
}

fn log(log: &Log) -> Option<Trouble> {
    let Log { lines_dropped, writes_failed } = log;
    let seen = format!("{lines_dropped} lines dropped, {writes_failed} writes failed");
    (lines_dropped + writes_failed > 0).then(|| diagnoses::LOG_LOST.told(&seen))
}

fn time_apart(clock: &Clock) -> Option<Trouble> {
    let ahead_ms = clock.ahead_of_exchange_ms?;
    let which = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let seen = format!("{} {which}", span(ahead_ms.unsigned_abs() / 1_000));
    Some(diagnoses::TIME_APART.told(&seen))
}

fn clock(said: &Said) -> Option<Trouble> {
    let off_s = said.service_now?.duration_since(said.here_now).as_secs();
    if off_s.abs() <= CLOCK_OFF_MAX_S {
        return None;
    }
    let set = said.health.clock.set;
    let row = if set { &diagnoses::CLOCK_SET } else { &diagnoses::CLOCK_OFF };
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
