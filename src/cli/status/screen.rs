//! Formats the facts for a terminal of 24 lines and 80 columns: first the state, then what is wrong
//! and what to do. Pure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::cli::diagnoses::{Severity, Trouble};
use crate::cli::operator::span;
use crate::cli::status::facts::{BackupFacts, Facts, NodeFacts, Service, TokenFacts, in_words};

/// A classic terminal, less the line of the next prompt.
pub(crate) const LINES_MAX: usize = 23;
pub(crate) const COLUMNS_MAX: usize = 80;

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

/// The whole text. Lines with a login URL are never cut and may be longer.
pub(super) fn screen(facts: &Facts, colours: Colours) -> String {
    let mut lines = vec![first_line(facts)];
    if let Some(service) = &facts.service {
        lines.extend(rows(service));
    }
    let room = LINES_MAX - lines.len();
    lines.extend(troubles(&facts.troubles, room));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        if number == 0 && colours == Colours::On {
            let colour = match facts.severity() {
                Severity::Note => "32",
                Severity::Degraded => "33",
                Severity::Down => "31",
            };
            let _ = writeln!(text, "\x1b[1;{colour}m{line}\x1b[0m");
        } else {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn first_line(facts: &Facts) -> String {
    let version = facts
        .service
        .as_ref()
        .map(|service| format!(", version {}, up {}", service.version, span(service.uptime_s)));
    cut(&format!("bhav is {}{} ({})", facts.status, version.unwrap_or_default(), facts.url))
}

fn rows(service: &Service) -> Vec<String> {
    let row = |name: &str, text: &str| cut(&format!("{name:<10}{text}"));
    let mut lines: Vec<String> =
        service.node.iter().map(|facts| row("node", &node(facts))).collect();
    lines.extend([
        row("market", &market(service)),
        row("broker A", &feed(&service.feeds.broker_a)),
        row("public", &feed(&service.feeds.public)),
    ]);
    for token in &service.tokens {
        lines.push(row(&format!("token {}", token.broker), &token_text(token)));
    }
    let store = &service.store;
    lines.push(row(
        "store",
        &format!("{}; {} writes, {} refused", store.state, store.writes, store.refused),
    ));
    if let Some(backup) = &service.backup {
        lines.push(row("backup", &backed_up(backup)));
    }
    lines.push(row("warmers", &warmers(&service.warmers)));
    let caches = &service.caches;
    lines.push(row(
        "caches",
        &format!(
            "{} quotes, {} hits; {} users, {} hits; level 2 {}, {} errors",
            caches.l1.size,
            share(caches.l1.hits, caches.l1.misses),
            caches.answers.users,
            share(caches.answers.hits, caches.answers.misses),
            caches.l2.backend,
            caches.l2.errors
        ),
    ));
    if !service.lanes.is_empty() {
        let lanes = service.lanes.iter().map(|lane| {
            let lost = lane.refused + lane.expired + lane.panicked;
            format!("{} {} waiting, {lost} not done", lane.name, lane.depth)
        });
        lines.push(row("lanes", &lanes.collect::<Vec<_>>().join("; ")));
    }
    lines
}

/// `delhi-1; leads, epoch 3`, or what a follower hears of the leader.
fn node(node: &NodeFacts) -> String {
    let NodeFacts { name, role, epoch, leader, relay } = node;
    let mut text = match (epoch, leader) {
        (Some(epoch), Some(leader)) if role == "follower" => {
            format!("{name}; follows {leader}, epoch {epoch}; relay ")
        }
        (Some(epoch), _) if role == "leader" => format!("{name}; leads, epoch {epoch}; relay "),
        _ => format!("{name}; {role}; relay "),
    };
    match relay.state.as_str() {
        "off" => text.push_str("off: no BHAV_CACHE_URL"),
        state => text.push_str(state),
    }
    if let Some(age_ms) = relay.age_ms {
        let _ = write!(text, ", {}.{} s ago", age_ms / 1_000, age_ms % 1_000 / 100);
    }
    if relay.gaps > 0 {
        let _ = write!(text, ", {} gaps", relay.gaps);
    }
    text
}

/// The warmers grouped by state, `ok` last: `paused: close; ok: index, quotes`.
fn warmers(warmers: &Warmers) -> String {
    let Warmers { index, quotes, instruments, persist, close, signals } = warmers;
    let all = [
        ("index", index),
        ("quotes", quotes),
        ("instruments", instruments),
        ("persist", persist),
        ("close", close),
        ("signals", signals),
    ];
    let mut states: Vec<&str> = all.iter().map(|(_, state)| state.as_str()).collect();
    states.sort_by_key(|state| (*state == "ok", *state));
    states.dedup();
    let in_state = |state: &str| {
        let names = all.iter().filter(|(_, is)| *is == state).map(|(name, _)| *name);
        format!("{state}: {}", names.collect::<Vec<_>>().join(", "))
    };
    states.into_iter().map(in_state).collect::<Vec<_>>().join("; ")
}

fn market(service: &Service) -> String {
    let market = &service.market;
    let mut text = market.phase.clone();
    if let (Some(at), Some(phase)) = (&market.next_transition_ist, market.next_phase) {
        let _ = write!(text, "; {phase} at {}", minute(at));
    }
    match &market.as_of_ist {
        Some(at) => {
            let old = if market.stale == Some(true) { "OLD prices" } else { "prices" };
            let _ = write!(text, "; {old} of {}", minute(at));
        }
        None => text.push_str("; no prices yet"),
    }
    text
}

/// `2026-11-20T15:30:00+05:30` as `2026-11-20 15:30`.
fn minute(iso: &str) -> String {
    iso.chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

fn feed(feed: &Feed) -> String {
    let mut text = in_words(feed).to_owned();
    if let Some(age_ms) = feed.age_ms {
        let _ = match age_ms {
            0..10_000 => write!(text, "; asked {}.{} s ago", age_ms / 1_000, age_ms % 1_000 / 100),
            _ => write!(text, "; asked {} ago", span(age_ms / 1_000)),
        };
    }
    if let Some(delay_s) = feed.delay_s {
        let _ = write!(text, "; {} min behind the exchange", (delay_s + 30) / 60);
    }
    if let Some(failure) = &feed.failure {
        let _ = write!(text, "; {failure}");
    }
    if let Some(ticker) = &feed.ticker {
        let _ = write!(text, "; {}", ticker_text(ticker));
    }
    text
}

/// How prices come: by ticks, or by calls and why.
fn ticker_text(ticker: &Ticker) -> String {
    match (ticker.live, ticker.state.as_str(), &ticker.failure) {
        (true, ..) => "live by ticker".to_owned(),
        (false, "off", _) => "ticker: off".to_owned(),
        (false, "refused", _) => "by calls, ticker: refused (403)".to_owned(),
        (false, state, None) => format!("by calls, ticker: {state}"),
        (false, state, Some(failure)) => format!("by calls, ticker: {state} ({failure})"),
    }
}

fn backed_up(backup: &BackupFacts) -> String {
    let mut text = match (backup.age_s, &backup.succeeded_ist) {
        (Some(age_s), Some(at)) => {
            format!("{} old, of {}", span(age_s.unsigned_abs()), minute(at))
        }
        _ => "none".to_owned(),
    };
    if backup.failed {
        text.push_str("; the last attempt failed");
    }
    text
}

fn token_text(token: &TokenFacts) -> String {
    match (token.state, token.left_s, &token.expires_at) {
        ("valid", Some(left_s), Some(until)) => {
            let left = span(left_s.max(0).unsigned_abs());
            let from = if token.of_other_node { "; from another node" } else { "" };
            format!("valid; {left} left, until {} IST{from}", minute(until))
        }
        ("dead", _, Some(until)) => format!("dead; was good until {} IST", minute(until)),
        (state, ..) => state.to_owned(),
    }
}

fn share(hits: u64, misses: u64) -> String {
    match (hits + misses) as u128 {
        0 => "no".to_owned(),
        all => format!("{} %", u128::from(hits) * 100 / all),
    }
}

fn troubles(troubles: &[Trouble], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if !troubles.is_empty() {
        lines.push(String::new());
    }
    for (number, trouble) in troubles.iter().enumerate() {
        let mark = if trouble.severity == Severity::Note { "-" } else { "!" };
        let mut block = wrapped(mark, &trouble.cause);
        block.extend(wrapped(" ", &format!("-> {}", trouble.cure)));
        block.extend(trouble.login_url.iter().map(|url| format!("  {url}")));
        let left = troubles.len() - number;
        // Keep a line to say how many do not fit, unless this is the last.
        let kept = usize::from(left > 1);
        if lines.len() + block.len() + kept > room {
            lines.push(format!("... and {left} more: bhav status --json"));
            return lines;
        }
        lines.extend(block);
    }
    lines
}

/// `mark` and the text, wrapped at spaces and indented from the second line on.
fn wrapped(mark: &str, text: &str) -> Vec<String> {
    let mut lines = vec![mark.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("starts with one line");
        if line.chars().count() + 1 + word.chars().count() > COLUMNS_MAX {
            lines.push(format!("  {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    // An upstream's error text may be long. The JSON contains all of it.
    lines.truncate(3);
    lines.iter().map(|line| cut(line)).collect()
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(COLUMNS_MAX) {
        None => line.to_owned(),
        Some(_) => {
            let mut short: String = line.chars().take(COLUMNS_MAX - 3).collect();
            short.push_str("...");
            short
        }
    }
}

// ---- Health
//
// The documents that `bhav status` reads, as far as it shows them. A missing field (from another
// version of the service) has its default; an unknown field is ignored.

/// `GET /api/health`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    pub status: String,
    pub version: String,
    pub uptime_s: u64,
    pub node: Option<String>,
    pub role: String,
    pub epoch: Option<u64>,
    pub leader: Option<String>,
    pub relay: Option<Relay>,
    pub database: String,
    pub signing_key: String,
    pub store: Store,
    pub cache_l1: CacheL1,
    pub cache_answers: CacheAnswers,
    pub cache_l2: CacheL2,
    pub warmers: Warmers,
    pub feeds: Feeds,
    pub market: Market,
    pub lanes: Vec<Lane>,
    pub log: Log,
    pub clock: Clock,
    pub backup: Option<Backup>,
    pub reload: Option<Reload>,
    pub admin_listener: Option<AdminListener>,
    pub exposed: Vec<Exposed>,
    pub shared_server: Option<SharedServer>,
}

/// A connection that is not protected.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Exposed {
    pub setting: String,
    pub reason: String,
}

/// What the server that nodes share refuses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SharedServer {
    pub refused: Vec<String>,
}

/// What this node hears of the others.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Relay {
    pub state: String,
    pub age_ms: Option<u64>,
    pub gaps: u64,
    #[serde(skip_serializing)]
    pub tokens: Option<RelayTokens>,
}

/// Who gave the brokers' tokens.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct RelayTokens {
    pub broker_a: String,
    pub broker_b: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Store {
    pub writes: u64,
    pub refused: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CacheL1 {
    pub size: u64,
    pub hits: u64,
    pub misses: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CacheAnswers {
    pub users: u64,
    pub hits: u64,
    pub misses: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CacheL2 {
    pub backend: String,
    pub errors: u64,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Warmers {
    pub index: String,
    pub quotes: String,
    pub instruments: String,
    pub persist: String,
    pub close: String,
    pub signals: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Feeds {
    pub broker_a: Feed,
    pub public: Feed,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Feed {
    pub state: String,
    pub age_ms: Option<u64>,
    pub delay_s: Option<u64>,
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticker: Option<Ticker>,
}

/// Broker A's WebSocket.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Ticker {
    pub state: String,
    pub live: bool,
    pub failure: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Market {
    pub phase: String,
    pub calendar_known: bool,
    pub calendar_until: Option<String>,
    pub as_of_ist: Option<String>,
    pub delay_s: Option<u64>,
    pub stale: Option<bool>,
    pub source: Option<String>,
}

#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Lane {
    pub name: String,
    pub depth: u64,
    pub refused: u64,
    pub expired: u64,
    pub panicked: u64,
}

impl Lane {
    /// Whether jobs wait now, or were not done since the start.
    pub(crate) fn has_trouble(&self) -> bool {
        self.depth + self.refused + self.expired + self.panicked > 0
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Log {
    pub lines_dropped: u64,
    pub writes_failed: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Clock {
    pub ahead_of_exchange_ms: Option<i64>,
    pub set: bool,
}

/// The last backup that a command made or tried.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(crate) struct Backup {
    pub succeeded_ist: Option<String>,
    pub failed: bool,
}

/// The last reload, where it was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reload {
    pub refused_ist: String,
}

/// The listener of metrics and probes, where it could not be had.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AdminListener {
    pub failure: String,
}

/// `GET /brokera/status`, `GET /brokerb/status`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Token {
    pub initialized: bool,
    pub valid: bool,
    #[serde(default)]
    pub expires_at: Option<String>,
}
