//! The schedule of faults: each feed breaks in each way in turn. While a fault of the public
//! provider is on, broker A is away, so that the public provider is in use.

use std::time::Duration;

use serde_json::{Value, json};

/// A part of the session with the same faults.
#[derive(Debug, Clone)]
pub struct Episode {
    /// In the table.
    pub name: String,
    /// Faults as the simulator takes them.
    pub faults: Vec<Value>,
    /// Its length.
    pub lasts: Duration,
    /// The service is stopped and started again in the middle of it.
    pub restarts: bool,
    /// Broker A's token is dead afterwards, so that a login follows.
    pub ends_token: bool,
}

/// Kinds that both feeds know, and what goes with them.
const KINDS: [(&str, &str, u64); 12] = [
    ("refuse", "", 0),
    ("delay", "delay_ms", 30_000),
    ("drip", "bytes_per_s", 100),
    ("truncate", "", 0),
    ("error_in_200", "", 0),
    ("html_5xx", "", 0),
    ("wrong_types", "", 0),
    ("missing_fields", "", 0),
    ("nulls", "", 0),
    ("zero_price", "", 0),
    ("mute_price", "", 0),
    ("lag", "by_s", 30),
];

/// Time without a fault at the beginning, until both feeds are healthy.
const WARM_UP: Duration = Duration::from_secs(20);

/// How long each fault lasts. Between two faults every feed has the time to become healthy again.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// One fault of broker A.
    pub broker_a: Duration,
    /// One fault of the public provider, which is asked four times a minute.
    pub public: Duration,
    /// After each of them, until the feed is healthy again.
    pub broker_a_mended: Duration,
    pub public_mended: Duration,
    /// How far the simulated public provider is behind the exchange.
    pub public_delay: Duration,
}

impl Pace {
    /// About an hour, with the provider's real delay.
    pub const HOUR: Self = Self {
        broker_a: Duration::from_secs(35),
        public: Duration::from_secs(60),
        broker_a_mended: Duration::from_secs(20),
        public_mended: Duration::from_secs(45),
        public_delay: Duration::from_secs(900),
    };

    /// Half of that.
    pub const SHORT: Self = Self {
        broker_a: Duration::from_secs(15),
        public: Duration::from_secs(45),
        broker_a_mended: Duration::from_secs(10),
        public_mended: Duration::from_secs(30),
        public_delay: Duration::from_secs(75),
    };
}

/// All episodes, in order.
pub fn episodes(pace: Pace) -> Vec<Episode> {
    let mut all = vec![without_faults("both feeds well", WARM_UP)];
    let broker_a =
        KINDS.map(|(kind, name, value)| fault("broker_a", kind, name, value)).into_iter().chain([
            fault("broker_a", "delay", "delay_ms", 2_500),
            fault("broker_a", "rate_limit", "", 0),
            fault("broker_a", "no_permission", "", 0),
            fault("broker_a", "expired_token", "", 0),
            fault("broker_a", "future_time", "by_s", 30),
            fault("broker_a", "future_time", "by_s", 240),
        ]);
    for (number, fault) in broker_a.enumerate() {
        let name = format!("broker A: {}", description(&fault));
        let restarts = number % 4 == 2;
        let ends_token = fault["fault"]["kind"] == "expired_token";
        let (faults, lasts) = (vec![fault], pace.broker_a);
        all.push(Episode { name, faults, lasts, restarts, ends_token });
        all.push(without_faults("mended", pace.broker_a_mended));
    }
    // The fallback route, whose rows have no time; then the same with prices that do not change.
    let spare = fault("broker_a.quote", "wrong_types", "", 0);
    let stands = fault("broker_a.ohlc", "mute_price", "", 0);
    for (name, faults) in [
        ("broker A: /quote unreadable, /quote/ohlc serves", vec![spare.clone()]),
        ("broker A: /quote/ohlc serves and stands still", vec![spare, stands]),
    ] {
        all.push(episode(name, faults, pace.broker_a));
    }
    all.push(without_faults("mended", pace.broker_a_mended));
    all.extend(public_leads(pace));
    all.push(without_faults("both mended", pace.public));
    all
}

/// Broker A is away; once the public provider has passed its last prices, that one breaks too.
fn public_leads(pace: Pace) -> Vec<Episode> {
    let away = fault("broker_a", "refuse", "", 0);
    let passing = pace.public_delay + Duration::from_secs(40);
    let leads = |name: &str, lasts| episode(name, vec![away.clone()], lasts);
    let catches_up = leads("broker A away, the public provider catches up", passing);
    let mut all = vec![Episode { restarts: true, ..catches_up }];
    let kinds = KINDS.map(|(kind, name, value)| fault("public", kind, name, value));
    let ahead = fault("public", "future_time", "by_s", 600);
    // One symbol a call from here on, and at last a refusal that keeps the provider away for long.
    let chart = fault("public.spark", "error_in_200", "", 0);
    let limited = fault("public", "rate_limit", "", 0);
    for (number, fault) in kinds.into_iter().chain([ahead, chart, limited]).enumerate() {
        let name = format!("public: {}", description(&fault));
        let faults = vec![away.clone(), fault];
        let restarts = number % 5 == 3;
        all.push(Episode { restarts, ..episode(&name, faults, pace.public) });
        all.push(leads("broker A away, public mended", pace.public_mended));
    }
    all
}

fn without_faults(name: &str, lasts: Duration) -> Episode {
    episode(name, Vec::new(), lasts)
}

fn episode(name: &str, faults: Vec<Value>, lasts: Duration) -> Episode {
    Episode { name: name.to_owned(), faults, lasts, restarts: false, ends_token: false }
}

fn fault(route: &str, kind: &str, name: &str, value: u64) -> Value {
    let mut fault = json!({"kind": kind});
    if !name.is_empty() {
        fault[name] = value.into();
    }
    json!({"route": route, "fault": fault})
}

/// `delay 30000 ms` and the like.
fn description(order: &Value) -> String {
    let fault = &order["fault"];
    let kind = fault["kind"].as_str().unwrap_or_default();
    let route = order["route"].as_str().unwrap_or_default();
    let part = route.split_once('.').map_or(String::new(), |(_, part)| format!("{part}: "));
    let number = |name: &str, unit: &str| {
        fault[name].as_u64().map(|value| format!(" {value} {unit}")).unwrap_or_default()
    };
    let numbers =
        [number("delay_ms", "ms"), number("bytes_per_s", "bytes/s"), number("by_s", "s")].concat();
    format!("{part}{kind}{numbers}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_is_about_an_hour_and_a_short_one_half_of_it() {
        let minutes = |pace| {
            let all = episodes(pace);
            all.iter().map(|episode| episode.lasts.as_secs()).sum::<u64>() / 60
        };
        assert!((55..=65).contains(&minutes(Pace::HOUR)), "{}", minutes(Pace::HOUR));
        assert!((25..=35).contains(&minutes(Pace::SHORT)), "{}", minutes(Pace::SHORT));
        assert!(episodes(Pace::HOUR).iter().filter(|episode| episode.restarts).count() >= 5);
    }
}
