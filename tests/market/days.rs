//! One user with accounts at both simulated brokers, on days that a test advances by hand.

use bhav::base::Clock;
use bhav::sim::SimSettings;
use rust_decimal::Decimal;
use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

use crate::portfolio::user::{decimal, rows};
use crate::support::{Answer, Scene, Service, bearer, until};

const ACCOUNT: &str = "PF0001";
/// Advance of the clock per check.
const STEP_MS: i64 = 500;
/// Pause between two syncs, since each takes some of a key's calls.
const SYNC_REST_MS: i64 = 61_000;

pub struct Days {
    pub service: Service,
    pub scene: Scene,
    /// The header line with the token.
    pub auth: String,
}

impl Days {
    /// A user's days from `now`, an instant with its offset.
    pub fn from(now: &str) -> Self {
        Self::with(now, |_| {})
    }

    pub fn with(now: &str, set: impl FnOnce(&mut bhav::config::Config)) -> Self {
        let clock = Clock::manual(now.parse().unwrap());
        let settings = SimSettings {
            rate_limits: false,
            ..SimSettings::default()
        };
        let scene = Scene::by_hand(clock, settings);
        let mut config = scene.config();
        config.broker_b.url = scene.sim.broker_b_url();
        // The clock stands while a request waits, so that no call can be due meanwhile.
        config.cache.miss_wait_ms = 50;
        set(&mut config);
        Self::on(scene, &config)
    }

    /// The days of a scene, with these settings of the service.
    pub fn on(scene: Scene, config: &bhav::config::Config) -> Self {
        let service = scene.start_with(config);
        let auth = bearer(&service.register("days@example.com", "a long enough secret"));
        Self {
            scene,
            service,
            auth,
        }
    }

    fn order(&self, path: &str, body: &str) -> Answer {
        let answer = self.scene.control("POST", path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer
    }

    /// From now on the share trades at this price.
    pub fn price(&self, symbol: &str, price: &str) {
        self.order("trading", &format!(r#"{{"symbol":"{symbol}","price":"{price}"}}"#));
    }

    /// Same as [`price`](Self::price), also as the exchange's previous close: for a first price,
    /// and on an ex-date.
    pub fn price_anew(&self, symbol: &str, price: &str) {
        self.order(
            "trading",
            &format!(r#"{{"symbol":"{symbol}","price":"{price}","previous_close":"{price}"}}"#),
        );
    }

    /// Holdings at broker A: `rows` in the simulator's format, without the brackets.
    pub fn holds_at_a(&self, rows: &str) {
        let body = format!(r#"{{"user_id":"{ACCOUNT}","rows":[{rows}]}}"#);
        self.order("broker_a/holdings", &body);
    }

    /// Holdings at broker B. Rows of the depository have code, ISIN, quantity; rows of the cost
    /// list have code, quantity, average, and the symbol that trades.
    pub fn holds_at_b(&self, demat: &[(&str, &str, &str)], costs: &[(&str, &str, &str, &str)]) {
        let demat = demat.iter().map(|(code, isin, quantity)| {
            format!(r#"{{"stock_code":"{code}","isin":"{isin}","quantity":"{quantity}"}}"#)
        });
        let costs = costs.iter().map(|(code, quantity, average, symbol)| {
            format!(
                r#"{{"stock_code":"{code}","quantity":"{quantity}","average_price":"{average}",
                "symbol":"{symbol}"}}"#
            )
        });
        let (demat, costs): (Vec<_>, Vec<_>) = (demat.collect(), costs.collect());
        let (demat, costs) = (demat.join(","), costs.join(","));
        let body = format!(r#"{{"user_id":"{ACCOUNT}","demat":[{demat}],"portfolio":[{costs}]}}"#);
        self.order("broker_b/holdings", &body);
    }

    /// Positions at a broker: the rows of its lists as it sends them, without the brackets.
    pub fn positions_at(&self, broker: &str, net: &str, day: &str) {
        let body = format!(r#"{{"user_id":"{ACCOUNT}","net":[{net}],"day":[{day}]}}"#);
        self.order(&format!("broker_{broker}/positions"), &body);
    }

    /// Advances the clock, and logs the server in at broker A, as each day needs.
    pub fn go_to(&self, at: &str) {
        let at: jiff::Timestamp = at.parse().unwrap();
        let by_ms = at.as_millisecond() - self.scene.clock.now_ms();
        assert!(by_ms > 0, "back to {at}");
        self.scene.advance_ms(by_ms);
        self.order("broker_a/token", r#"{"access_token":"simtokena"}"#);
    }

    /// Syncs one broker, and returns the service's reply.
    pub fn sync(&self, broker: &str) -> Value {
        let answer = self.try_sync(broker, "");
        assert_eq!(answer.status, 200, "{}{}", answer.head(), answer.text());
        answer.json()
    }

    /// Same as [`sync`](Self::sync), with these members at the front of the body, whatever the
    /// reply.
    pub fn try_sync(&self, broker: &str, members: &str) -> Answer {
        let minted = |route: &str, name: &str| {
            let said = self
                .order(route, &format!(r#"{{"user_id":"{ACCOUNT}"}}"#))
                .json();
            said[name].as_str().unwrap().to_owned()
        };
        let (route, body) = match broker {
            "a" => {
                let code = minted("broker_a/request_token", "request_token");
                let keys = r#""api_key":"simkeya-1","api_secret":"simsecreta""#;
                ("/api/portfolio/sync", format!(r#"{{{keys},"request_token":"{code}"}}"#))
            }
            _ => {
                let code = minted("broker_b/api_session", "api_session");
                let keys = r#""api_key":"sim+key=b&1","api_secret":"simsecretb""#;
                ("/api/portfolio/brokerb-sync", format!(r#"{{{keys},"api_session":"{code}"}}"#))
            }
        };
        let body = body.replacen('{', &format!("{{{members}"), 1);
        let answer = self.service.post(route, &self.auth, &body);
        self.scene.advance_ms(SYNC_REST_MS);
        answer
    }

    pub fn get(&self, target: &str) -> Value {
        let answer = self
            .service
            .client()
            .request("GET", target, &self.auth)
            .with_status(200);
        answer.json()
    }

    /// Waits until the close of `date` has been revalued for all users.
    pub fn await_close(&self, date: &str) {
        until(&format!("the close of {date}"), || {
            self.scene.advance_ms(STEP_MS);
            let health = self.service.health();
            let done = health["close"]["date"] == date && health["warmers"]["close"] == "paused";
            done.then_some(())
        });
    }

    /// The rows of holdings.
    pub fn holdings(&self) -> Vec<Value> {
        rows(&self.get("/api/portfolio/holdings"), "holdings").to_vec()
    }

    /// The summary, after a check that every view of the portfolio agrees.
    #[track_caller]
    pub fn summary(&self) -> Value {
        let (holdings, pnl) =
            (self.get("/api/portfolio/holdings"), self.get("/api/portfolio/pnl?days=365"));
        let (rows, summary) = (rows(&holdings, "holdings"), &holdings["summary"]);
        for (name, value) in pnl["summary"].as_object().unwrap().iter() {
            assert_eq!(summary[name], *value, "{name}");
        }
        let sum = |of: &dyn Fn(&Value) -> Option<Decimal>| rows.iter().filter_map(of).sum();
        let value: Decimal = sum(&|row| amount(row, "last_price"));
        let cost: Decimal = sum(&|row| amount(row, "pnl").and_then(|_| invested(row)));
        let gain: Decimal = sum(&|row| known(row, "pnl"));
        assert_eq!(decimal(summary, "total_current_value"), value, "the rows add up");
        assert_eq!(decimal(summary, "total_invested"), cost, "the rows add up");
        assert_eq!(decimal(summary, "total_pnl"), gain, "the rows add up");
        // Each is rounded when it is written.
        let near = |one: Decimal, other: Decimal, parts: usize| {
            assert!((one - other).abs() <= Decimal::new(parts as i64, 2), "{one} {other}");
        };
        if let Some(day_pnl) = known(summary, "day_pnl") {
            near(sum(&|row| known(row, "day_pnl")), day_pnl, rows.len());
        } else {
            assert!(rows.iter().all(|row| row["day_pnl"].is_null()), "{rows:?}");
        }
        for of in ["brokers", "sectors"] {
            let slices = summary["allocation"][of].as_array().unwrap();
            let whole: Decimal = slices
                .iter()
                .map(|slice| decimal(slice, "current_value"))
                .sum();
            near(whole, value, slices.len());
        }
        let apart = decimal(summary, "value_without_cost");
        assert_eq!(value - apart, cost + gain, "value_without_cost is the difference");
        let trend = pnl["trend"].as_array().unwrap();
        if let Some(last) = trend.last() {
            let names = ["total_invested", "total_current_value", "total_pnl"];
            for name in names.into_iter().chain(["value_without_cost"]) {
                assert_eq!(last[name], summary[name], "{name} of the last point");
            }
        }
        summary.clone()
    }

    /// The point of `date`.
    #[track_caller]
    pub fn point(&self, date: &str) -> Value {
        let pnl = self.get("/api/portfolio/pnl?days=365");
        let found = pnl["trend"]
            .as_array()
            .unwrap()
            .iter()
            .find(|point| point["date"] == date);
        found
            .unwrap_or_else(|| panic!("no point of {date}: {pnl:?}"))
            .clone()
    }
}

/// A number that may be null.
pub fn known(row: &Value, name: &str) -> Option<Decimal> {
    row[name].is_number().then(|| decimal(row, name))
}

/// Value of the row's shares at one of its prices.
fn amount(row: &Value, price: &str) -> Option<Decimal> {
    known(row, price).map(|price| price * decimal(row, "quantity"))
}

fn invested(row: &Value) -> Option<Decimal> {
    known(row, "invested").or_else(|| amount(row, "average_price"))
}
