//! Finds what is wrong in what the service reported, each with its row of the table of diagnoses.
//! Pure.

use std::path::Path;

use jiff::SignedDuration;

use crate::base::{Broker, Source, clock};
use crate::cli::diagnoses::{Severity, Trouble};
use crate::cli::operator::{STATE_DIR, span};
use crate::cli::status::report::{BackupFacts, ServiceReport, TokenFacts, backed_up};
use crate::cli::{diagnoses, token};
use crate::config::Config;
use crate::views::health::{Feed, Health, HealthClock, HealthLog, LaneReport};
use crate::views::states::{
    CacheBackend, ExposedReason, FeedState, KeyState, ServiceState, WarmerState,
};
use crate::views::values::Instant;

/// A token that expires within this time is reported.
const ENDING_S: i64 = 3_600;
/// An older backup is reported. The timer makes one each day, and may start late.
const BACKUP_OLD_S: i64 = 26 * 3_600;
/// A larger difference of the clocks is reported. The `Date` header has whole seconds, and the
/// response takes a moment.
const CLOCK_OFF_MAX_S: i64 = 3;

/// Everything that is wrong, the worst first.
pub(super) fn find_troubles(
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
    let database = health.database;
    let key = health.signing_key;
    found.extend(diagnoses::of_store(database).map(|row| row.trouble(database.as_str())));
    if matches!(key, KeyState::Missing | KeyState::Changed) {
        found.push(diagnoses::SIGNING_KEY_LOST.trouble(key.as_str()));
    }
    found.extend(logins(tokens, &found));
    found.extend(caches(health));
    if !health.market.calendar_known {
        found.push(diagnoses::CALENDAR_UNKNOWN.trouble(""));
    }
    let unknown = &health.market.calendar_unknown;
    found.extend(unknown.iter().map(|what| diagnoses::CALENDAR_ENDS.trouble(what)));
    found.extend(
        health
            .reload
            .as_ref()
            .map(|reload| diagnoses::RELOAD_REFUSED.trouble(&minute(reload.refused_ist))),
    );
    found.extend(backup_trouble(report, config));
    found.extend(health.admin_listener.as_ref().map(|listener| {
        // Show the cause only; the diagnosis says what to do.
        let cause = listener.failure.split([',', ';']).next();
        diagnoses::NO_METRICS.trouble(cause.unwrap_or_default())
    }));
    found.extend(servers(health));
    if health.warmers.instruments == WarmerState::Failing {
        found.push(diagnoses::INSTRUMENTS_FAIL.trouble(""));
    }
    if health.warmers.close == WarmerState::Failing {
        found.push(diagnoses::CLOSE_FAILS.trouble(""));
    }
    if matches!(health.warmers.signals, WarmerState::Failing | WarmerState::Stale) {
        found.push(diagnoses::SIGNALS_FAIL.trouble(""));
    }
    found.extend(health.lanes.iter().filter_map(lane));
    found.extend(log(&health.log));
    found.extend(clock(report));
    let explained = found.iter().any(|trouble| trouble.severity >= Severity::Degraded);
    if health.status != ServiceState::Ok && !explained {
        let is_down = health.status == ServiceState::Down;
        let severity = if is_down { Severity::Down } else { Severity::Degraded };
        let row = diagnoses::UNEXPLAINED.trouble(health.status.as_str());
        found.push(Trouble { severity, ..row });
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
        let row = match exposed.reason {
            ExposedReason::NoPassword => &diagnoses::SHARED_SERVER_OPEN,
            ExposedReason::ClearText => &diagnoses::CLEAR_TEXT,
        };
        row.trouble(&exposed.setting)
    });
    let refused = health.shared_server.iter().flat_map(|server| &server.refused);
    let foreign = health.shared_server.iter().filter(|server| !server.foreign.is_empty());
    let foreign = foreign.map(|server| server.foreign.join(", "));
    exposed
        .chain(refused.map(|cause| diagnoses::SHARED_SERVER_REFUSES.trouble(cause)))
        .chain(foreign.map(|keys| diagnoses::SHARED_SERVER_FOREIGN.trouble(&keys)))
}

/// Troubles of the snapshot and of the second cache level.
fn caches(health: &Health) -> impl Iterator<Item = Trouble> {
    let index = health.warmers.index;
    let starting = health.status == ServiceState::Down && index == WarmerState::Starting;
    let stale = index == WarmerState::Stale;
    let kept = match (health.cache_l2.backend, health.warmers.persist) {
        (CacheBackend::None, _) => Some(&diagnoses::L2_OFF),
        (_, WarmerState::Failing) => Some(&diagnoses::PERSIST_FAILS),
        _ => None,
    };
    let starting = starting.then(|| diagnoses::STARTING.trouble(""));
    let stale = stale.then(|| snapshot_old(health));
    starting.into_iter().chain(stale).chain(kept.map(|row| row.trouble("")))
}

/// The trouble of an old snapshot. If it only waits for the delayed public provider, it says when
/// that will have passed broker A's last prices.
fn snapshot_old(health: &Health) -> Trouble {
    let market = &health.market;
    let public = &health.feeds.public;
    let waits = market.source == Some(Source::BrokerA) && public.state == FeedState::Ok;
    match (market.as_of_ist, public.delay_s) {
        (Some(as_of), Some(delay)) if waits => {
            let at = as_of.0 + SignedDuration::from_secs(delay.0.into());
            let clock = clock::zoned(at).strftime("%H:%M");
            let minutes = (delay.0 + 30) / 60;
            diagnoses::SNAPSHOT_WAITS
                .trouble(&format!("it is {minutes} min behind, so at about {clock}"))
        }
        _ => diagnoses::SNAPSHOT_OLD.trouble(""),
    }
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
    use FeedState::{Ok, Relayed, Standby, Starting};
    !matches!(feed.state, Ok | Standby | Starting | Relayed)
}

/// A feed's state in words.
pub(super) fn in_words(state: FeedState) -> &'static str {
    match state {
        FeedState::Mute => "prices stand still",
        FeedState::Stale => "prices are old",
        FeedState::Hanging => "does not answer in time",
        FeedState::Open => "held back after failures",
        FeedState::RateLimited => "refuses because of too many requests",
        FeedState::NoToken => "no token",
        FeedState::TokenDead => "token is dead",
        FeedState::NoPermission => "no market data in the plan",
        state => state.as_str(),
    }
}

fn feeds(broker_a: &Feed, public: &Feed) -> Vec<Trouble> {
    let mut found = Vec::new();
    if fails(broker_a) && fails(public) {
        let states = (in_words(broker_a.state), in_words(public.state));
        let seen = format!("broker A: {}, public: {}", states.0, states.1);
        found.push(diagnoses::FEEDS_DEAD.trouble(&seen));
    }
    let broker_a_row = match broker_a.state {
        FeedState::NoToken => &diagnoses::TOKEN_MISSING_A,
        FeedState::TokenDead => &diagnoses::TOKEN_DEAD_A,
        FeedState::NoPermission => &diagnoses::NO_MARKET_DATA,
        FeedState::Off => &diagnoses::BROKER_A_OFF,
        FeedState::Mute => &diagnoses::BROKER_A_MUTE,
        FeedState::RateLimited => &diagnoses::RATE_LIMITED,
        _ => &diagnoses::BROKER_A_FAILS,
    };
    let public_row = match public.state {
        FeedState::RateLimited => &diagnoses::RATE_LIMITED,
        _ => &diagnoses::PUBLIC_FAILS,
    };
    let public = (public.state != FeedState::Off).then_some((public, public_row));
    let rows = std::iter::once((broker_a, broker_a_row)).chain(public);
    found.extend(
        rows.filter(|(feed, _)| fails(feed)).map(|(feed, row)| {
            row.trouble(feed.failure.as_deref().unwrap_or(in_words(feed.state)))
        }),
    );
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

fn lane(lane: &LaneReport) -> Option<Trouble> {
    let LaneReport { name, refused, expired, panicked, .. } = lane;
    if *panicked > 0 {
        return Some(diagnoses::LANE_PANICKED.trouble(&format!("lane {name}: {panicked}")));
    }
    let lost = refused + expired;
    (lost > 0).then(|| diagnoses::LANE_REFUSED.trouble(&format!("lane {name}: {lost}")))
}

fn log(log: &HealthLog) -> Option<Trouble> {
    let HealthLog { lines_dropped, writes_failed } = log;
    let seen = format!("{lines_dropped} lines dropped, {writes_failed} writes failed");
    (lines_dropped + writes_failed > 0).then(|| diagnoses::LOG_LOST.trouble(&seen))
}

fn time_apart(clock: &HealthClock) -> Option<Trouble> {
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
    let set = report.health.clock.set.0;
    let row = if set { &diagnoses::CLOCK_SET } else { &diagnoses::CLOCK_OFF };
    let sign = if off_s < 0 { "-" } else { "+" };
    Some(row.trouble(&format!("{sign}{}", span(off_s.unsigned_abs()))))
}

/// `2026-11-20 15:30`.
pub(super) fn minute(at: Instant) -> String {
    clock::zoned(at.0).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The login page, if logging in is the cure of this trouble.
fn link(name: &str, config: &Config) -> Option<String> {
    let is_of = |broker: &Broker| {
        let ends = ["_token", "_session"];
        name.strip_prefix(broker.label())
            .is_some_and(|rest| ends.iter().any(|e| rest.starts_with(e)))
    };
    let broker = Broker::ALL.into_iter().find(is_of)?;
    let own = config.own_app(broker);
    Some(token::page(broker, own.url, own.api_key.as_ref()))
}
