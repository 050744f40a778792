//! A simulator, both clients, and fresh logins for them.

use std::sync::Arc;

use crate::support::Client;
use bhav::base::Clock;
use bhav::brokers::{BrokerA, BrokerB, BrokerErrorKind, Credentials, SharedToken};
use bhav::config::Config;
use bhav::sim::{self, Sim, SimSettings};
use sonic_rs::{JsonValueTrait, Value};

/// A Friday in the middle of trading.
const OPEN: &str = "2026-11-20T11:00:00+05:30";

/// The login is over.
pub const EXPIRED: &str = r#"{"kind":"expired_token"}"#;

/// The simulator's faults, and the resulting error of a call.
pub const FAULTS: &[(&str, BrokerErrorKind)] = &[
    (r#"{"kind":"refuse"}"#, BrokerErrorKind::Unreachable),
    (r#"{"kind":"delay","delay_ms":30000}"#, BrokerErrorKind::TimedOut),
    (r#"{"kind":"drip","bytes_per_s":20}"#, BrokerErrorKind::TimedOut),
    (r#"{"kind":"truncate"}"#, BrokerErrorKind::Unreachable),
    (r#"{"kind":"rate_limit"}"#, BrokerErrorKind::RateLimited),
    (r#"{"kind":"error_in_200"}"#, BrokerErrorKind::Failed { status: 200 }),
    (r#"{"kind":"html_5xx"}"#, BrokerErrorKind::Failed { status: 502 }),
    (r#"{"kind":"html_5xx","status":503}"#, BrokerErrorKind::Failed { status: 503 }),
    (r#"{"kind":"redirect","location":"/elsewhere"}"#, BrokerErrorKind::Redirected),
    (EXPIRED, BrokerErrorKind::CodeRefused),
    (r#"{"kind":"no_permission"}"#, BrokerErrorKind::NotPermitted),
    (r#"{"kind":"wrong_types"}"#, BrokerErrorKind::Malformed),
    (r#"{"kind":"missing_fields"}"#, BrokerErrorKind::Malformed),
];

/// The simulated outside world and the two clients.
pub struct Bench {
    pub sim: Sim,
    pub settings: SimSettings,
    pub broker_a: BrokerA,
    pub broker_b: BrokerB,
}

impl Bench {
    /// A bench on a clock that runs, without the simulator's rate limits.
    pub fn running(adjust: impl FnOnce(&mut Config)) -> Self {
        let settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        Self::set(settings, &Clock::starting_at(OPEN.parse().unwrap()), adjust)
    }

    /// Short deadlines only if a timeout is expected: the machine may be busy.
    pub fn with_budget_for(answer: BrokerErrorKind) -> Self {
        Self::running(|config| {
            if answer == BrokerErrorKind::TimedOut {
                config.upstream.sync_timeout_ms = 400;
            }
        })
    }

    pub fn set(settings: SimSettings, clock: &Clock, adjust: impl FnOnce(&mut Config)) -> Self {
        let sim = sim::start(settings.clone(), clock.clone()).unwrap();
        let mut config = Config::default();
        config.broker_a.url = sim.broker_a_url();
        config.broker_b.url = sim.broker_b_url();
        config.broker_b.api_key = Some(settings.broker_b.api_key.as_str().into());
        config.broker_b.api_secret = Some(settings.broker_b.secret_key.as_str().into());
        adjust(&mut config);
        let token = Arc::new(SharedToken::default());
        let upstream = &config.upstream;
        let broker_a = BrokerA::new(&config.broker_a, upstream, clock.clone(), token).unwrap();
        let broker_b = BrokerB::new(&config.broker_b, upstream, clock).unwrap();
        Self {
            sim,
            settings,
            broker_a,
            broker_b,
        }
    }

    /// A user of broker A who has just logged in.
    pub fn user_of_a(&self, user_id: &str) -> Credentials {
        let code = self.minted("broker_a/request_token", "request_token", user_id);
        Credentials {
            user: 1,
            client: None,
            api_key: self.settings.broker_a.api_key.as_str().into(),
            api_secret: self.settings.broker_a.api_secret.as_str().into(),
            one_time_code: code.as_str().into(),
        }
    }

    /// A user of broker B who has just logged in.
    pub fn user_of_b(&self, user_id: &str) -> Credentials {
        Credentials {
            user: 1,
            client: None,
            api_key: self.settings.broker_b.api_key.as_str().into(),
            api_secret: self.settings.broker_b.secret_key.as_str().into(),
            one_time_code: self.api_session(user_id).as_str().into(),
        }
    }

    pub fn api_session(&self, user_id: &str) -> String {
        self.minted("broker_b/api_session", "api_session", user_id)
    }

    /// Switches a fault on for a route or a group of them.
    pub fn break_with(&self, route: &str, fault: &str) {
        self.control("POST", "faults", &format!(r#"{{"route":"{route}","fault":{fault}}}"#));
    }

    /// Gives an account at broker B these trades in place of the seeded ones.
    pub fn set_trades_of_b(&self, user_id: &str, rows: &str) {
        let order = format!(r#"{{"user_id":"{user_id}","net":{rows}}}"#);
        self.control("POST", "broker_b/trades", &order);
    }

    /// Number of requests to `route`.
    pub fn asked(&self, route: &str) -> i64 {
        self.control("GET", "stats", "")["requests"][route]
            .as_i64()
            .unwrap_or(0)
    }

    /// A file that the simulator serves.
    pub fn fetch(&self, target: &str) -> Vec<u8> {
        let mut wire = Client::connect(&self.sim.addr().to_string());
        let answer = wire.ask(format!("GET {target} HTTP/1.1\r\nHost: sim\r\n\r\n"));
        assert_eq!(answer.status, 200);
        answer.body
    }

    fn minted(&self, route: &str, name: &str, user_id: &str) -> String {
        let answer = self.control("POST", route, &format!(r#"{{"user_id":"{user_id}"}}"#));
        answer[name].as_str().unwrap().to_owned()
    }

    fn control(&self, method: &str, path: &str, body: &str) -> Value {
        let mut wire = Client::connect(&self.sim.addr().to_string());
        let length = body.len();
        let answer = wire.ask(format!(
            "{method} /sim/control/{path} HTTP/1.1\r\nHost: sim\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ));
        assert_eq!(answer.status, 200, "{path} {body}");
        answer.json()
    }
}
