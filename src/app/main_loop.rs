//! What the main thread does while the service runs: says when it is ready, feeds the watchdog
//! while every part gets on, has it keep the tokens of the day, and keeps the line that `systemctl
//! status` shows. Waits for signals between.

use std::fmt::Write;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::start::App;
use super::watchdog::{Stuck, Watchdog};
use crate::base::ist;
use crate::brokers::session::token::TokenStatus;
use crate::health::Serving;
use crate::market::Age;
use crate::ops::notify;
use crate::rt::unix_signals::{Signal, Signals};

/// Longest wait for a first snapshot before the service calls itself ready without one: a morning
/// without any feed must not end in a start that never succeeds.
const READY_WAIT_MS: u64 = 10_000;

/// Between two rounds; less where the watchdog wants its pings sooner.
const ROUND_MS: u64 = 1_000;
/// The same until the service is ready.
const READY_ROUND_MS: u64 = 50;
/// Pings within the time that systemd waits for one.
const PINGS_PER_LIMIT: u32 = 3;

/// A status whose words stay the same, and only the age in it moves, is said again after this.
const STATUS_INTERVAL_MS: u64 = 10_000;

/// Older prices are told by their time, younger ones by their age.
const AGE_SHOWN_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Goes round until the process is asked to end; gives the signal's number.
pub fn until_end(app: &App, signals: &mut Signals, mut reload: impl FnMut()) -> i32 {
    let mut rounds = Rounds::new(app);
    loop {
        match signals.wait(rounds.pause()) {
            Some(Signal::End(signal)) => return signal,
            Some(Signal::Reload) => rounds.reload(&mut reload),
            None => {}
        }
        rounds.go();
    }
}

struct Rounds<'a> {
    app: &'a App,
    vitals: Watchdog,
    watchdog_limit: Option<Duration>,
    started_mono_ms: u64,
    ready: bool,
    stuck: Option<Stuck>,
    /// The lasting part of the status that was said last, and when.
    said: (String, u64),
}

impl<'a> Rounds<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            vitals: app.vitals(),
            watchdog_limit: notify::watchdog_limit(),
            started_mono_ms: app.clock().monotonic_ms(),
            ready: false,
            stuck: None,
            said: (String::new(), 0),
        }
    }

    fn pause(&self) -> Duration {
        let round = Duration::from_millis(if self.ready { ROUND_MS } else { READY_ROUND_MS });
        self.watchdog_limit.map_or(round, |limit| round.min(limit / PINGS_PER_LIMIT))
    }

    fn go(&mut self) {
        let now_mono_ms = self.app.clock().monotonic_ms();
        let facts = self.app.facts();
        if !self.ready {
            let waited = now_mono_ms.saturating_sub(self.started_mono_ms) >= READY_WAIT_MS;
            self.ready = facts.serving.is_some() || waited;
            if self.ready {
                tracing::info!(snapshot = facts.serving.is_some(), "ready");
                notify::ready(&facts.status());
                self.said = (facts.lasting(), now_mono_ms);
            }
        }
        self.feed_watchdog();
        self.app.state().refusal_lines.log_summaries(now_mono_ms);
        self.app.server().shared().stats.refusal_lines.log_summaries(now_mono_ms);
        self.app.handover().go(self.app.state());
        let due = now_mono_ms.saturating_sub(self.said.1) >= STATUS_INTERVAL_MS;
        let lasting = facts.lasting();
        if due || lasting != self.said.0 {
            notify::status(&facts.status());
            self.said = (lasting, now_mono_ms);
        }
    }

    fn feed_watchdog(&mut self) {
        let stuck = self.vitals.stuck();
        if stuck.is_none() && self.watchdog_limit.is_some() {
            notify::watchdog();
        }
        if stuck != self.stuck {
            match stuck {
                Some(part) => tracing::error!(%part, "stands still; no ping for the watchdog"),
                None => tracing::info!("every part gets on again"),
            }
            self.stuck = stuck;
        }
    }

    fn reload(&mut self, reload: &mut impl FnMut()) {
        // Who is not ready yet has nothing to leave.
        if self.ready {
            notify::reloading();
        }
        reload();
        if self.ready {
            let facts = self.app.facts();
            notify::ready(&facts.status());
            self.said = (facts.lasting(), self.app.clock().monotonic_ms());
        }
    }
}

/// What the status is made of.
#[derive(Clone, Debug)]
pub struct Facts {
    pub now: Timestamp,
    pub address: String,
    pub serving: Option<Serving>,
    pub broker_a: TokenStatus,
    pub broker_b: TokenStatus,
    /// As health names it.
    pub store: &'static str,
}

impl Facts {
    /// One line for an operator.
    fn status(&self) -> String {
        let age = match self.serving.map(|serving| self.now.duration_since(serving.age.as_of)) {
            None => String::new(),
            Some(age) if age > AGE_SHOWN_MAX => String::new(),
            Some(age) => format!(", {} s old", age.as_secs().max(0)),
        };
        self.line(&age)
    }

    /// The same without what changes by itself all the time.
    fn lasting(&self) -> String {
        self.line("")
    }

    fn line(&self, age: &str) -> String {
        format!(
            "{}; {}{age}; broker A {}; broker B {}; store {}",
            self.address,
            self.prices(),
            token(&self.broker_a, self.now),
            token(&self.broker_b, self.now),
            self.store
        )
    }

    fn prices(&self) -> String {
        let Some(serving) = self.serving else { return "no prices yet".to_owned() };
        let Serving { age: Age { as_of, delay_s, stale, source }, phase } = serving;
        let stale = if stale { "STALE " } else { "" };
        let mut text = format!("market {}, {stale}prices of {}", phase.as_str(), source.as_str());
        if let Some(delay_s) = delay_s {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {} min behind by nature", (delay_s + 30) / 60);
        }
        if self.now.duration_since(as_of) > AGE_SHOWN_MAX {
            let _ = write!(text, ", as of {}", moment(as_of));
        }
        text
    }
}

fn token(status: &TokenStatus, now: Timestamp) -> String {
    let expiry = status.expires_at.map(moment).unwrap_or_default();
    match status.expires_at {
        None => "has no token".to_owned(),
        Some(at) if at <= now => format!("token EXPIRED at {expiry}"),
        Some(_) if !status.valid => "token REFUSED".to_owned(),
        Some(_) if status.no_permission => format!("token until {expiry}, WITHOUT market data"),
        Some(_) => format!("token until {expiry}"),
    }
}

fn moment(at: Timestamp) -> String {
    ist::zoned(at).strftime("%d %b %H:%M IST").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Source;
    use crate::market::Phase;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn facts() -> Facts {
        let none = TokenStatus {
            initialized: false,
            valid: false,
            token_type: "access_token",
            set_at: None,
            expires_at: None,
            no_permission: false,
        };
        let set = TokenStatus {
            initialized: true,
            valid: true,
            expires_at: Some(at("2026-11-21T00:30:00Z")),
            ..none
        };
        Facts {
            now: at("2026-11-20T05:30:07Z"),
            address: "127.0.0.1:8080".into(),
            serving: Some(Serving {
                age: Age {
                    as_of: at("2026-11-20T05:30:05Z"),
                    delay_s: None,
                    stale: false,
                    source: Source::BrokerA,
                },
                phase: Phase::Open,
            }),
            broker_a: set,
            broker_b: none,
            store: "ok",
        }
    }

    #[test]
    fn the_status_tells_the_age_of_the_data_and_the_tokens() {
        let mut facts = facts();
        assert_eq!(
            facts.status(),
            "127.0.0.1:8080; market open, prices of broker_a, 2 s old; broker A token until \
             21 Nov 06:00 IST; broker B has no token; store ok"
        );
        let before = facts.lasting();
        facts.now = at("2026-11-20T05:30:09Z");
        assert!(facts.status().contains("4 s old"));
        assert_eq!(facts.lasting(), before, "the age alone is no news");
        if let Some(serving) = &mut facts.serving {
            serving.age.stale = true;
        }
        assert_ne!(facts.lasting(), before);
        facts.now = at("2026-11-20T12:00:00Z");
        assert!(facts.status().contains("STALE prices of broker_a, as of 20 Nov 11:00 IST;"));
        if let Some(serving) = &mut facts.serving {
            serving.age = Age { delay_s: Some(902), stale: false, ..serving.age };
        }
        assert!(
            facts
                .status()
                .contains("prices of broker_a, 15 min behind by nature, as of 20 Nov 11:00 IST;")
        );
        facts.serving = None;
        assert!(facts.status().starts_with("127.0.0.1:8080; no prices yet; broker A token"));
    }

    #[test]
    fn a_token_is_told_by_what_is_wrong_with_it() {
        let facts = facts();
        let good = facts.broker_a;
        let expiry = good.expires_at.unwrap();
        assert_eq!(token(&good, expiry), "token EXPIRED at 21 Nov 06:00 IST");
        let refused = TokenStatus { valid: false, ..good };
        assert_eq!(token(&refused, facts.now), "token REFUSED");
        let poor = TokenStatus { no_permission: true, ..good };
        assert_eq!(token(&poor, facts.now), "token until 21 Nov 06:00 IST, WITHOUT market data");
        assert_eq!(token(&facts.broker_b, facts.now), "has no token");
    }
}
