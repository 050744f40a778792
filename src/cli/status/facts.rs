//! Everything that `bhav status` shows, as one value. The screen and the JSON are both made from
//! it, so they cannot disagree. Pure.

use jiff::Timestamp;
use serde::Serialize;

use super::health::{
    Backup, CacheAnswers, CacheL1, CacheL2, Feed, Health, Lane, Relay, Ticker, Token, Warmers,
};
use super::next_phase::next_phase;
use super::troubles::find_troubles;
use crate::base::{Broker, ist};
use crate::cli::diagnoses::{Severity, Trouble};
use crate::cli::operator::plain;
use crate::config::Config;
use crate::market::MarketCalendar;

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
pub struct NodeFacts {
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
pub struct Market {
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
    /// Another node was given it.
    pub of_other_node: bool,
}

#[derive(Debug, Serialize)]
pub struct Store {
    pub state: String,
    pub writes: u64,
    pub refused: u64,
}

#[derive(Debug, Serialize)]
pub struct BackupFacts {
    /// Of the last good one.
    pub succeeded_ist: Option<String>,
    pub age_s: Option<i64>,
    /// The last attempt came to nothing.
    pub failed: bool,
}

#[derive(Debug, Serialize)]
pub struct Caches {
    pub l1: CacheL1,
    pub answers: CacheAnswers,
    pub l2: CacheL2,
}

/// What the service reported, and the time by its clock and ours.
pub struct ServiceReport {
    pub health: Health,
    pub token_a: Token,
    pub token_b: Token,
    /// The service's clock and this machine's at the same moment.
    pub service_now: Option<Timestamp>,
    pub here_now: Timestamp,
}

impl Facts {
    /// The facts about a service that does not answer.
    pub fn without_service(url: String, trouble: Trouble) -> Self {
        Self { status: word(trouble.severity), url, service: None, troubles: vec![trouble] }
    }

    /// The facts about a service that answered.
    pub fn of(
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
            now_ist: report.service_now.map(ist::iso),
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
                next_transition_ist: next.map(|(at, _)| ist::iso(at)),
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
    pub fn severity(&self) -> Severity {
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
        expires_at: expires.map(ist::iso),
        left_s,
        of_other_node: origin == "other_node",
    }
}

/// Backups are dated by the machine's clock, whatever the service's reads.
pub(super) fn backed_up(backup: &Backup, here_now: Timestamp) -> BackupFacts {
    let at: Option<Timestamp> = backup.succeeded_ist.as_deref().and_then(|text| text.parse().ok());
    BackupFacts {
        succeeded_ist: at.map(ist::iso),
        age_s: at.map(|at| here_now.duration_since(at).as_secs().max(0)),
        failed: backup.failed,
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
