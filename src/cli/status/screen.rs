//! Formats the facts for a terminal of 24 lines and 80 columns: first the state, then what is wrong
//! and what to do. Pure.

use std::fmt::Write as _;

use crate::base::span::span;
use crate::cli::operator::plain;
use crate::cli::status::facts::{Facts, Service, has_trouble};
use crate::cli::status::report::{BackupFacts, TokenFacts};
use crate::status::diagnoses::Trouble;
use crate::status::troubles::{in_words, minute};
use crate::views::health::{Feed, Health, HealthTicker, HealthWarmers};
use crate::views::states::{
    RelayState, Role, ServiceState, Severity, TickerState, Warmer, WarmerState,
};
use crate::views::values::Instant;

/// A classic terminal, less the line of the next prompt.
pub(super) const LINES_MAX: usize = 23;
pub(super) const COLUMNS_MAX: usize = 80;

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
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
    // Text from outside must not manipulate the terminal.
    for (number, line) in lines.iter().map(|line| plain(line)).enumerate() {
        if number == 0 && colours == Colours::On {
            let colour = match facts.status {
                ServiceState::Ok => "32",
                ServiceState::Degraded => "33",
                ServiceState::Down => "31",
            };
            let _ = writeln!(text, "\x1b[1;{colour}m{line}\x1b[0m");
        } else {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn first_line(facts: &Facts) -> String {
    let version = facts.service.as_ref().map(|service| {
        let Health {
            version, uptime_s, ..
        } = &service.health;
        format!(", version {version}, up {}", span(*uptime_s))
    });
    cut(&format!(
        "bhav is {}{} ({})",
        facts.status,
        version.unwrap_or_default(),
        facts.url
    ))
}

fn rows(service: &Service) -> Vec<String> {
    let row = |name: &str, text: &str| cut(&format!("{name:<10}{text}"));
    let health = &service.health;
    let mut lines: Vec<String> = health
        .node
        .iter()
        .map(|name| row("node", &node(name, health)))
        .collect();
    lines.extend([
        row("market", &market(service)),
        row("broker A", &feed(&health.feeds.broker_a)),
        row("public", &feed(&health.feeds.public)),
    ]);
    for token in &service.tokens {
        lines.push(row(&format!("token {}", token.broker), &token_text(token)));
    }
    let writes = health.store.writes;
    let refused = health.store.refused;
    lines.push(row(
        "store",
        &format!("{}; {writes} writes, {refused} refused", health.database),
    ));
    if let Some(backup) = &service.backup {
        lines.push(row("backup", &backed_up(backup)));
    }
    lines.push(row("warmers", &warmers(&health.warmers)));
    let l1 = &health.cache_l1;
    let answers = &health.cache_answers;
    let l2 = &health.cache_l2;
    lines.push(row(
        "caches",
        &format!(
            "{} quotes, {} hits; {} users, {} hits; level 2 {}, {} errors",
            l1.size,
            share(l1.hits, l1.misses),
            answers.users,
            share(answers.hits, answers.misses),
            l2.backend,
            l2.errors
        ),
    ));
    let lanes = health
        .lanes
        .iter()
        .filter(|lane| has_trouble(lane))
        .map(|lane| {
            let lost = lane.refused + lane.expired + lane.panicked;
            format!("{} {} waiting, {lost} not done", lane.name, lane.depth)
        });
    let lanes: Vec<String> = lanes.collect();
    if !lanes.is_empty() {
        lines.push(row("lanes", &lanes.join("; ")));
    }
    lines
}

/// `delhi-1; leads, epoch 3`, or what a follower hears of the leader.
fn node(name: &str, health: &Health) -> String {
    let relay = health.relay.clone().unwrap_or_default();
    let mut text = match (health.role, health.epoch, &health.leader) {
        (Role::Follower, Some(epoch), Some(leader)) => {
            format!("{name}; follows {leader}, epoch {epoch}; relay ")
        }
        (Role::Leader, Some(epoch), _) => format!("{name}; leads, epoch {epoch}; relay "),
        (role, ..) => format!("{name}; {role}; relay "),
    };
    match relay.state {
        RelayState::Off => text.push_str("off: no BHAV_CACHE_URL"),
        state => text.push_str(state.as_str()),
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
fn warmers(warmers: &HealthWarmers) -> String {
    let mut states = WarmerState::ALL;
    states.sort_by_key(|state| (*state == WarmerState::Ok, state.as_str()));
    let of_state = |state: WarmerState| {
        let there = Warmer::ALL
            .into_iter()
            .filter(|warmer| warmers.of(*warmer) == state);
        let names: Vec<&str> = there.map(Warmer::as_str).collect();
        (!names.is_empty()).then(|| format!("{state}: {}", names.join(", ")))
    };
    states
        .into_iter()
        .filter_map(of_state)
        .collect::<Vec<_>>()
        .join("; ")
}

fn market(service: &Service) -> String {
    let market = &service.health.market;
    let mut text = market.phase.to_string();
    if let Some((at, phase)) = service.next {
        let _ = write!(text, "; {phase} at {}", minute(Instant(at)));
    }
    match market.as_of_ist {
        Some(at) => {
            let old = if market.stale == Some(true) {
                "OLD prices"
            } else {
                "prices"
            };
            let _ = write!(text, "; {old} of {}", minute(at));
        }
        None => text.push_str("; no prices yet"),
    }
    text
}

fn feed(feed: &Feed) -> String {
    let mut text = in_words(feed.state).to_owned();
    if let Some(age_ms) = feed.age_ms {
        let _ = match age_ms {
            0..10_000 => write!(text, "; asked {}.{} s ago", age_ms / 1_000, age_ms % 1_000 / 100),
            _ => write!(text, "; asked {} ago", span(age_ms / 1_000)),
        };
    }
    if let Some(delay) = feed.delay_s {
        let _ = write!(text, "; {} min behind the exchange", (delay.0 + 30) / 60);
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
fn ticker_text(ticker: &HealthTicker) -> String {
    match (ticker.live, ticker.state, &ticker.failure) {
        (true, ..) => "live by ticker".to_owned(),
        (false, TickerState::Off, _) => "ticker: off".to_owned(),
        (false, TickerState::Refused, _) => "by calls, ticker: refused (403)".to_owned(),
        (false, state, None) => format!("by calls, ticker: {state}"),
        (false, state, Some(failure)) => format!("by calls, ticker: {state} ({failure})"),
    }
}

fn backed_up(backup: &BackupFacts) -> String {
    let mut text = match (backup.age_s, backup.succeeded_ist) {
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
    match (token.state, token.left_s, token.expires_at) {
        ("valid", Some(left_s), Some(until)) => {
            let left = span(left_s.max(0).unsigned_abs());
            let from = if token.of_other_node {
                "; from another node"
            } else {
                ""
            };
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
        let mark = if trouble.severity == Severity::Note {
            "-"
        } else {
            "!"
        };
        let mut block = wrapped(mark, &trouble.cause);
        let dated = wrapped(mark, &format!("{}{}", trouble.cause, since(trouble)));
        // The lines are few: the beginning stands where it needs none of its own.
        if dated.len() == block.len() {
            block = dated;
        }
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

/// ` (since 2026-11-20 15:30)`, where the service has said it.
fn since(trouble: &Trouble) -> String {
    trouble
        .since_ist
        .map(|at| format!(" (since {})", minute(at)))
        .unwrap_or_default()
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
