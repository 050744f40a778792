//! Everything that `bhav status` shows, as one value. The screen and the JSON are both made from
//! it, so they cannot disagree. Pure.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use std::path::Path;

use crate::base::{Broker, ByBroker};
use crate::cli::status::report::{BackupFacts, ServiceReport, TokenFacts, backed_up};
use crate::cli::token;
use crate::config::Config;
use crate::config::composed::PACKAGE_STATE_DIR;
use crate::market::{MarketCalendar, Phase};
use crate::status::diagnoses::Trouble;
use crate::status::troubles;
use crate::status::troubles::{Beside, TokenSeen};
use crate::views::account::SessionStatus;
use crate::views::health::{Feed, Health, LaneReport};
use crate::views::states::{FeedState, ServiceState, Severity, TokenOrigin};
use crate::views::values::{Delay, Instant};

/// Everything that `bhav status` shows.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub status: ServiceState,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// The worst first.
    pub troubles: Vec<Trouble>,
}

/// A service that answered.
#[derive(Debug)]
pub(super) struct Service {
    pub health: Health,
    /// The service's clock.
    pub now: Option<Timestamp>,
    pub next: Option<(Timestamp, Phase)>,
    pub tokens: Vec<TokenFacts>,
    /// `None` where none was ever tried.
    pub backup: Option<BackupFacts>,
}

impl Facts {
    /// The facts about a service that does not answer.
    pub(super) fn without_service(url: String, trouble: Trouble) -> Self {
        Self {
            status: trouble.severity.into(),
            url,
            service: None,
            troubles: vec![trouble],
        }
    }

    /// The facts about a service that answered.
    pub(super) fn of(
        url: String,
        report: ServiceReport,
        config: &Config,
        calendar: &MarketCalendar,
    ) -> Self {
        let now = report.service_now.unwrap_or(report.here_now);
        let given = report
            .health
            .relay
            .as_ref()
            .and_then(|relay| relay.tokens.as_ref());
        let tokens = report.tokens.iter();
        let tokens: Vec<TokenFacts> = tokens
            .map(|(broker, status)| {
                token_facts(broker, status, given.map(|given| given.of(broker)), now)
            })
            .collect();
        let troubles = troubles_of(&report, now, config);
        let worst = troubles
            .iter()
            .map(|trouble| ServiceState::from(trouble.severity))
            .max();
        let ServiceReport {
            health,
            service_now,
            here_now,
            ..
        } = report;
        let status = worst.map_or(health.status, |worst| worst.max(health.status));
        let backup = health
            .backup
            .as_ref()
            .map(|backup| backed_up(backup, here_now));
        let next = next_phase(calendar, now);
        let service = Service {
            health,
            now: service_now,
            next,
            tokens,
            backup,
        };
        Self {
            status,
            url,
            service: Some(service),
            troubles,
        }
    }
}

impl From<Severity> for ServiceState {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Note => Self::Ok,
            Severity::Degraded => Self::Degraded,
            Severity::Down => Self::Down,
        }
    }
}

/// A value whose members are written in the order given.
macro_rules! object {
    ($($name:ident: $value:expr),+ $(,)?) => {{
        #[derive(Serialize)]
        struct Object<$($name),+> {
            $($name: $name,)+
        }
        Object { $($name: $value,)+ }
    }};
}

#[expect(
    non_camel_case_types,
    reason = "the type of a member of `object!` is named after it"
)]
impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let health = &self.health;
        let market = &health.market;
        let store = &health.store;
        let l1 = &health.cache_l1;
        let answers = &health.cache_answers;
        let l2 = &health.cache_l2;
        let node = health.node.as_ref().map(|name| {
            let relay = health.relay.clone().unwrap_or_default();
            let relay = object! { state: relay.state, age_ms: relay.age_ms, gaps: relay.gaps };
            let role = health.role;
            let epoch = health.epoch;
            let leader = &health.leader;
            object! { name: name, role: role, epoch: epoch, leader: leader, relay: relay }
        });
        let lanes = health.lanes.iter().filter(|lane| has_trouble(lane)).map(|lane| {
            let LaneReport { name, depth, refused, expired, panicked, .. } = lane;
            object! {
                name: name, depth: depth, refused: refused, expired: expired, panicked: panicked,
            }
        });
        let service = object! {
            version: &health.version,
            uptime_s: health.uptime_s,
            now_ist: self.now.map(Instant),
            node: node,
            market: object! {
                phase: market.phase,
                calendar_known: market.calendar_known,
                calendar_unknown: &market.calendar_unknown,
                as_of_ist: market.as_of_ist,
                delay_s: market.delay_s,
                stale: market.stale,
                source: market.source,
                next_transition_ist: self.next.map(|(at, _)| Instant(at)),
                next_phase: self.next.map(|(_, phase)| phase),
            },
            feeds: object! {
                broker_a: FeedFacts::of(&health.feeds.broker_a),
                public: FeedFacts::of(&health.feeds.public),
            },
            tokens: &self.tokens,
            store: object! {
                state: health.database, writes: store.writes, refused: store.refused,
            },
            backup: &self.backup,
            warmers: &health.warmers,
            caches: object! {
                l1: object! { size: l1.size, hits: l1.hits, misses: l1.misses },
                answers: object! {
                    users: answers.users, hits: answers.hits, misses: answers.misses,
                },
                l2: object! { backend: l2.backend, errors: l2.errors },
            },
            lanes: lanes.collect::<Vec<_>>(),
        };
        service.serialize(serializer)
    }
}

#[derive(Serialize)]
struct FeedFacts<'a, T> {
    state: FeedState,
    age_ms: Option<u64>,
    delay_s: Option<Delay>,
    failure: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticker: Option<T>,
}

#[expect(
    non_camel_case_types,
    reason = "the type of a member of `object!` is named after it"
)]
impl FeedFacts<'_, ()> {
    fn of(feed: &Feed) -> FeedFacts<'_, impl Serialize> {
        FeedFacts {
            state: feed.state,
            age_ms: feed.age_ms,
            delay_s: feed.delay_s,
            failure: feed.failure.as_deref(),
            ticker: feed.ticker.as_ref().map(|ticker| {
                object! { state: ticker.state, live: ticker.live, failure: &ticker.failure }
            }),
        }
    }
}

/// Whether jobs wait now, or were not done since the start.
pub(super) fn has_trouble(lane: &LaneReport) -> bool {
    lane.depth > 0 || lane.refused + lane.expired + lane.panicked > 0
}

/// What the service says is wrong, and what only shows from here. A service of before says nothing.
fn troubles_of(report: &ServiceReport, now: Timestamp, config: &Config) -> Vec<Trouble> {
    let seen = |broker: Broker| {
        let SessionStatus {
            initialized,
            valid,
            expires_at,
            ..
        } = &report.tokens[broker];
        let expires = expires_at.filter(|_| *valid);
        let left_s = expires.map(|at| at.0.duration_since(now).as_secs());
        TokenSeen {
            is_set: *initialized,
            is_valid: *valid,
            left_s,
        }
    };
    let beside = Beside {
        tokens: ByBroker::of(seen),
        service_now: report.service_now,
        machine_now: report.here_now,
        has_backup_timer: config.state_dir == Path::new(PACKAGE_STATE_DIR),
    };
    let health = &report.health;
    let mut found = match &health.troubles {
        None => troubles::find_troubles(health, &beside),
        Some(told) => {
            let mut found: Vec<Trouble> = told.iter().map(Trouble::from).collect();
            troubles::by_tokens_of_now(&mut found, &beside.tokens);
            // Of a clock that was set the service says so itself.
            found.extend(troubles::clock_trouble(health, &beside).filter(|_| !health.clock.set.0));
            found
        }
    };
    for trouble in &mut found {
        trouble.login_url = login_page(&trouble.name, config);
    }
    troubles::sort(&mut found);
    found
}

/// The login page, if logging in is the cure of this trouble.
fn login_page(name: &str, config: &Config) -> Option<String> {
    let is_of = |broker: &Broker| {
        let ends = ["_token", "_session"];
        name.strip_prefix(broker.label())
            .is_some_and(|rest| ends.iter().any(|e| rest.starts_with(e)))
    };
    let broker = Broker::ALL.into_iter().find(is_of)?;
    let own = config.own_app(broker);
    Some(token::page(broker, own.url, own.api_key.as_ref()))
}

fn token_facts(
    broker: Broker,
    token: &SessionStatus,
    origin: Option<TokenOrigin>,
    now: Timestamp,
) -> TokenFacts {
    let state = match (token.initialized, token.valid) {
        (_, true) => "valid",
        (true, false) => "dead",
        (false, false) => "none",
    };
    let expires = token.expires_at.filter(|_| token.valid);
    TokenFacts {
        broker: broker.as_str(),
        state,
        expires_at: token.expires_at,
        left_s: expires.map(|at| at.0.duration_since(now).as_secs()),
        of_other_node: origin == Some(TokenOrigin::OtherNode),
    }
}

// ---- Next phase
//
// The next market phase that a person would wait for. Pure.

/// Most phase changes examined. Between two sessions there are a few for each day.
const CHANGES_MAX: usize = 64;

/// The next phase that differs from the current one, with its time. Closed and holiday count as the
/// same. `None` if the calendar ends before it.
fn next_phase(calendar: &MarketCalendar, now: Timestamp) -> Option<(Timestamp, Phase)> {
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
