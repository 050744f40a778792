//! Finds what is wrong in the health document, each with its row of the table of diagnoses. The
//! service does so for its own document, once a second on the thread `warm`, and `bhav status` for
//! that of an older service. Pure.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use crate::base::span::span;
use crate::base::{Broker, ByBroker, Source, clock};
use crate::status::diagnoses;
use crate::status::diagnoses::Trouble;
use crate::views::health::{
    Feed, Health, HealthClock, HealthLog, HealthTrouble, HealthWarmers, LaneReport,
};
use crate::views::states::{
    CacheBackend, ExposedReason, FeedState, KeyState, ServiceState, Severity, WarmerState,
};
use crate::views::values::Instant;

/// A token that expires within this time is reported.
const ENDING_S: i64 = 3_600;
/// An older backup is reported. The timer makes one each day, and may start late.
const BACKUP_OLD_S: i64 = 26 * 3_600;
/// A larger difference of the clocks is reported. The `Date` header has whole seconds, and the
/// response takes a moment.
const CLOCK_OFF_MAX_S: i64 = 3;

/// A broker's token of the day.
#[derive(Clone, Copy, Default)]
pub(crate) struct TokenSeen {
    pub is_set: bool,
    pub is_valid: bool,
    /// Of a valid one.
    pub left_s: Option<i64>,
}

impl TokenSeen {
    /// Whether one was set that is no longer good.
    fn is_dead(self) -> bool {
        self.is_set && !self.is_valid
    }
}

/// What is known beside the health document.
pub(crate) struct Beside {
    pub tokens: ByBroker<TokenSeen>,
    /// By the service's clock and by the machine's, at the same moment.
    pub service_now: Option<Timestamp>,
    pub machine_now: Timestamp,
    /// Whether a timer makes backups, as that of the package does.
    pub has_backup_timer: bool,
}

/// Everything that is wrong, the worst first.
pub(crate) fn find_troubles(health: &Health, beside: &Beside) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = time_apart(&health.clock).into_iter().collect();
    let clock_explains = !found.is_empty();
    found.extend(
        feeds(&health.feeds.broker_a, &health.feeds.public)
            .into_iter()
            .filter(|trouble| {
                // A wrong clock explains these, and their cures would mislead.
                let silent = [
                    "feeds_dead",
                    "broker_a_fails",
                    "broker_a_mute",
                    "public_fails",
                ];
                !(clock_explains && silent.contains(&&*trouble.name))
            }),
    );
    let database = health.database;
    let key = health.signing_key;
    found.extend(diagnoses::of_store(database).map(|row| row.trouble(database.as_str())));
    if matches!(key, KeyState::Missing | KeyState::Changed) {
        found.push(diagnoses::SIGNING_KEY_LOST.trouble(key.as_str()));
    }
    found.extend(logins(&beside.tokens));
    by_tokens_of_now(&mut found, &beside.tokens);
    found.extend(caches(health));
    if !health.market.calendar_known {
        found.push(diagnoses::CALENDAR_UNKNOWN.trouble(""));
    }
    let unknown = &health.market.calendar_unknown;
    found.extend(
        unknown
            .iter()
            .map(|what| diagnoses::CALENDAR_ENDS.trouble(what)),
    );
    found.extend(
        health
            .reload
            .as_ref()
            .map(|reload| diagnoses::RELOAD_REFUSED.trouble(&minute(reload.refused_ist))),
    );
    found.extend(backup_trouble(health, beside));
    found.extend(health.admin_listener.as_ref().map(|listener| {
        // Show the cause only; the diagnosis says what to do.
        let cause = listener.failure.split([',', ';']).next();
        diagnoses::NO_METRICS.trouble(cause.unwrap_or_default())
    }));
    found.extend(servers(health));
    found.extend(daily_tasks(&health.warmers));
    found.extend(health.lanes.iter().filter_map(lane));
    found.extend(log(&health.log));
    found.extend(clock_trouble(health, beside));
    let explained = found
        .iter()
        .any(|trouble| trouble.severity >= Severity::Degraded);
    if health.status != ServiceState::Ok && !explained {
        let is_down = health.status == ServiceState::Down;
        let severity = if is_down {
            Severity::Down
        } else {
            Severity::Degraded
        };
        let row = diagnoses::UNEXPLAINED.trouble(health.status.as_str());
        found.push(Trouble { severity, ..row });
    }
    sort(&mut found);
    found
}

/// The tasks of each day that fail: the instrument list, the close, the signals.
fn daily_tasks(warmers: &HealthWarmers) -> Vec<Trouble> {
    let mut found = Vec::new();
    if warmers.instruments == WarmerState::Failing {
        found.push(diagnoses::INSTRUMENTS_FAIL.trouble(""));
    }
    if warmers.close == WarmerState::Failing {
        found.push(diagnoses::CLOSE_FAILS.trouble(""));
    }
    if matches!(warmers.signals, WarmerState::Failing | WarmerState::Stale) {
        found.push(diagnoses::SIGNALS_FAIL.trouble(""));
    }
    found
}

/// The worst first. A stable sort keeps the order of equals, which is feeds first.
pub(crate) fn sort(found: &mut [Trouble]) {
    found.sort_by_key(|trouble| std::cmp::Reverse(trouble.severity));
}

/// Puts right what a token tells that was given or refused after the report was made, at most a
/// second ago.
pub(crate) fn by_tokens_of_now(found: &mut Vec<Trouble>, tokens: &ByBroker<TokenSeen>) {
    let token = tokens[Broker::A];
    let old = ["broker_a_token_missing", "broker_a_token_dead"];
    let is_old = |trouble: &Trouble| old.contains(&&*trouble.name);
    if token.is_valid {
        for trouble in found.iter_mut().filter(|trouble| is_old(trouble)) {
            *trouble = diagnoses::TOKEN_TAKEN_A.trouble("");
        }
    }
    if token.is_dead()
        && !found
            .iter()
            .any(|trouble| trouble.name == "broker_a_token_dead")
    {
        found.push(diagnoses::TOKEN_DEAD_A.trouble(""));
    }
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
    let refused = health
        .shared_server
        .iter()
        .flat_map(|server| &server.refused);
    let foreign = health
        .shared_server
        .iter()
        .filter(|server| !server.foreign.is_empty());
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
    starting
        .into_iter()
        .chain(stale)
        .chain(kept.map(|row| row.trouble("")))
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
            let detail = format!("it is {minutes} min behind, so at about {clock}");
            let until_ist = Some(Instant(at));
            Trouble {
                until_ist,
                ..diagnoses::SNAPSHOT_WAITS.trouble(&detail)
            }
        }
        _ => diagnoses::SNAPSHOT_OLD.trouble(""),
    }
}

/// The trouble of an old, failed or missing backup. A missing one is reported only for the
/// package's installation, which has a timer.
fn backup_trouble(health: &Health, beside: &Beside) -> Option<Trouble> {
    let Some(backup) = &health.backup else {
        return beside
            .has_backup_timer
            .then(|| diagnoses::BACKUP_NONE.trouble(""));
    };
    // Backups are dated by the machine's clock, whatever the service's reads.
    let age_s = |at: Instant| beside.machine_now.duration_since(at.0).as_secs().max(0);
    let age_s = backup.succeeded_ist.map(age_s);
    let when = match age_s {
        Some(age_s) => format!("{} ago", span(age_s.unsigned_abs())),
        None => "never".to_owned(),
    };
    if backup.failed {
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
pub(crate) fn in_words(state: FeedState) -> &'static str {
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

/// Tokens about to expire, and ended ones that no feed needs.
fn logins(tokens: &ByBroker<TokenSeen>) -> Vec<Trouble> {
    let mut found = Vec::new();
    for (broker, token) in tokens.iter() {
        let ending = token.left_s.is_some_and(|left_s| left_s < ENDING_S);
        let row = if ending {
            Some(diagnoses::token_ending(broker))
        } else if token.is_dead() {
            diagnoses::token_ended(broker)
        } else {
            None
        };
        found.extend(row.map(|row| row.trouble("")));
    }
    found
}

fn lane(lane: &LaneReport) -> Option<Trouble> {
    let LaneReport {
        name,
        refused,
        expired,
        panicked,
        ..
    } = lane;
    if *panicked > 0 {
        return Some(diagnoses::LANE_PANICKED.trouble(&format!("lane {name}: {panicked}")));
    }
    let lost = refused + expired;
    (lost > 0).then(|| diagnoses::LANE_REFUSED.trouble(&format!("lane {name}: {lost}")))
}

fn log(log: &HealthLog) -> Option<Trouble> {
    let HealthLog {
        lines_dropped,
        writes_failed,
    } = log;
    let seen = format!("{lines_dropped} lines dropped, {writes_failed} writes failed");
    (lines_dropped + writes_failed > 0).then(|| diagnoses::LOG_LOST.trouble(&seen))
}

fn time_apart(clock: &HealthClock) -> Option<Trouble> {
    let ahead_ms = clock.ahead_of_exchange_ms?;
    let which = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let seen = format!("{} {which}", span(ahead_ms.unsigned_abs() / 1_000));
    Some(diagnoses::TIME_APART.trouble(&seen))
}

/// The service's clock beside the machine's.
pub(crate) fn clock_trouble(health: &Health, beside: &Beside) -> Option<Trouble> {
    let off_s = beside
        .service_now?
        .duration_since(beside.machine_now)
        .as_secs();
    if off_s.abs() <= CLOCK_OFF_MAX_S {
        return None;
    }
    let set = health.clock.set.0;
    let row = if set {
        &diagnoses::CLOCK_SET
    } else {
        &diagnoses::CLOCK_OFF
    };
    let sign = if off_s < 0 { "-" } else { "+" };
    Some(row.trouble(&format!("{sign}{}", span(off_s.unsigned_abs()))))
}

/// `2026-11-20 15:30`.
pub(crate) fn minute(at: Instant) -> String {
    clock::zoned(at.0).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Since when each trouble lasts, by its name.
#[derive(Default)]
pub(super) struct Since(HashMap<Cow<'static, str>, Timestamp>);

impl Since {
    /// The troubles of now with their beginnings. What is over is forgotten.
    pub(super) fn dated(&mut self, found: Vec<Trouble>, now: Timestamp) -> Vec<HealthTrouble> {
        let begins = |trouble: &Trouble| {
            let begin = self.0.get(&trouble.name).copied().unwrap_or(now);
            (trouble.name.clone(), begin)
        };
        self.0 = found.iter().map(begins).collect();
        let dated = found.into_iter().map(|trouble| HealthTrouble {
            since_ist: Instant(self.0.get(&trouble.name).copied().unwrap_or(now)),
            until_ist: trouble.until_ist,
            name: trouble.name,
            severity: trouble.severity,
            cause: trouble.cause,
            cure: trouble.cure,
            command: trouble.command,
        });
        dated.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::diagnoses::Diagnosis;

    #[test]
    fn a_trouble_that_lasts_keeps_its_beginning_and_one_that_comes_again_begins_anew() {
        let at = |minute: i64| Timestamp::from_second(1_795_000_000 + 60 * minute).unwrap();
        let mut since = Since::default();
        let mut begins = |minute: i64, rows: &[&Diagnosis]| -> Vec<Timestamp> {
            let found = rows.iter().map(|row| row.trouble("x")).collect();
            since
                .dated(found, at(minute))
                .iter()
                .map(|told| told.since_ist.0)
                .collect()
        };
        let rows = [&diagnoses::FEEDS_DEAD, &diagnoses::STORE_FULL];
        assert_eq!(begins(0, &rows[..1]), [at(0)]);
        assert_eq!(begins(1, &rows), [at(0), at(1)]);
        assert_eq!(begins(2, &rows[1..]), [at(1)]);
        assert_eq!(begins(3, &rows), [at(3), at(1)]);
    }
}
