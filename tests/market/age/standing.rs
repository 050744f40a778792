//! A share whose price stands while its market trades: at each source, or at broker A alone.

use sonic_rs::{JsonValueTrait, Value};

use super::{QUARTER_S, settings, time};
use crate::market::days::Days;
use crate::market::ticker;
use crate::portfolio::user::rows;
use crate::support::{EventReader, SNAPSHOT, STREAM, Scene, Service, TRADING, until};
use bhav::base::Clock;
use jiff::SignedDuration;

/// The clock's advance between two looks. Slow enough for polls, streams and ticks to keep up.
const STEP_MS: i64 = 250;
/// Time after which a share of the universe that stood is stale, and more.
const STANDS_MS: i64 = 6 * 60_000;
/// A longer step, within which prices stay fresh.
const PASSING_MS: i64 = 2_000;
/// Looks for an answer for which the clock stands: some half a second, far more than it takes.
const LOOKS: u32 = 25;
/// The clock's advance at each later look. A call of a busy machine may wait for the clock.
const WAITING_MS: i64 = 10;
/// Least time between two questions to the public provider about a share.
const QUESTION_MS: i64 = 30_000;

fn quote(service: &Service, symbol: &str) -> Option<Value> {
    let answer = service.prices(symbol);
    (answer.status == 200).then(|| answer.json()["quotes"][0].clone())
}

/// The price of the share stands at each source, and the index moves each second.
#[test]
fn a_share_that_stands_for_minutes_is_stale_wherever_it_is_shown() {
    for broker_a in [true, false] {
        let scene = Scene::by_hand(Clock::manual(TRADING.parse().unwrap()), settings(900));
        let mut config = scene.config();
        config.cache.miss_wait_ms = 50;
        if !broker_a {
            (config.broker_a.access_token, config.broker_a.api_key) = (None, None);
        }
        let service = scene.start_with(&config);
        let seen = |what: &str, symbol: &str, stale: bool| {
            until(what, || {
                scene.advance_ms(250);
                let other = quote(&service, "NSE:TCS").filter(|other| other["stale"] == false)?;
                let quote = quote(&service, symbol).filter(|quote| quote["stale"] == stale)?;
                Some((quote, other))
            })
        };
        let (before, _) = seen("a fresh price", "NSE:INFY", false);
        scene.halt("NSE:INFY", true);
        // The public provider shows the halt a quarter of an hour later.
        scene.advance_ms(if broker_a { 0 } else { 900_000 });
        scene.advance_ms(120_000);
        let (still, _) = seen("two minutes later", "NSE:INFY", false);
        scene.advance_ms(240_000);
        let (stands, other) = seen("six minutes later", "NSE:INFY", true);
        assert!(still["as_of"].as_str() >= before["as_of"].as_str());
        assert_eq!((&stands["as_of"], &stands["source"]), (&still["as_of"], &other["source"]));
        assert_eq!(service.get(SNAPSHOT).json()["market"]["stale"], false);
        let movers = service.get("/api/market/movers").json();
        assert!(!movers.to_string().contains("NSE:INFY"), "{movers}");
        scene.halt("NSE:INFY", false);
        scene.advance_ms(if broker_a { 0 } else { 900_000 });
        seen("trading again", "NSE:INFY", false);
    }
}

/// A user who holds two shares, and a stream that shows them.
struct Shown {
    days: Days,
    stream: EventReader,
    /// The stream's newest quotes of the two.
    told: [Option<Value>; 2],
    /// Looks at which broker A's answer was late, so that its prices may have been stale.
    late_looks: i64,
}

const TWO: [&str; 2] = ["NSE:INFY", "NSE:TCS"];

impl Shown {
    fn new(public_delay_s: i64) -> Self {
        let clock = Clock::manual(TRADING.parse().unwrap());
        let scene = Scene::by_hand(clock, settings(public_delay_s));
        let mut config = scene.config();
        // The clock stands while a request waits.
        config.cache.miss_wait_ms = 50;
        let days = Days::on(scene, &config);
        let held = TWO.map(|symbol| {
            format!(r#"{{"symbol":"{symbol}","quantity":10,"average_paise":30000}}"#)
        });
        days.holds_at_a(&held.join(","));
        days.sync("a");
        let target = format!("{STREAM}?symbols={}", TWO.join(","));
        let stream = EventReader::open(&days.service, &target, "");
        Self {
            days,
            stream,
            told: [None, None],
            late_looks: 0,
        }
    }

    /// What the stream says of the two now, and what live holdings and live prices do.
    fn look(&mut self) -> Option<[[Value; 2]; 3]> {
        self.days.scene.advance_ms(STEP_MS);
        self.stream.look();
        while let Some(event) = self.stream.ready() {
            if event.name != "quotes" {
                continue;
            }
            let json: Value = sonic_rs::from_str(&event.data).unwrap();
            for quote in rows(&json, "quotes") {
                let at = TWO
                    .iter()
                    .position(|symbol| quote["symbol"] == *symbol)
                    .unwrap();
                self.told[at] = Some(quote.clone());
            }
        }
        let [Some(infy), Some(tcs)] = &self.told else {
            return None;
        };
        let held = self.days.get("/api/portfolio/holdings?live=true");
        let live = TWO.map(|symbol| {
            let of = |row: &&Value| symbol.ends_with(row["tradingsymbol"].as_str().unwrap());
            rows(&held, "holdings").iter().find(of).unwrap().clone()
        });
        let [one, other] = TWO.map(|symbol| quote(&self.days.service, symbol));
        Some([[infy.clone(), tcs.clone()], live, [one?, other?]])
    }

    /// Waits until `holds` is true of the share that stands and of the other one, in the stream, in
    /// live holdings and in live prices.
    fn until(&mut self, what: &str, holds: impl Fn(&Value, &Value) -> bool) {
        until(what, || {
            let seen = self.look().ok_or_else(String::new)?;
            match seen.iter().all(|[stands, other]| holds(stands, other)) {
                true => Ok(()),
                false => Err(format!("{seen:?}")),
            }
        });
    }

    /// Lets time pass in steps within which prices stay fresh, and waits at each for broker A's
    /// answer. So it is healthy all the time, and the stream stays.
    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / PASSING_MS {
            self.days.scene.advance_ms(PASSING_MS);
            let newest = self.days.scene.clock.now() - SignedDuration::from_millis(PASSING_MS);
            let mut looks = 0;
            until("broker A's answer", || {
                looks += 1;
                if looks > LOOKS {
                    self.days.scene.advance_ms(WAITING_MS);
                    self.late_looks += 1;
                }
                self.stream.look();
                let other = quote(&self.days.service, TWO[1])?;
                (time(&other["as_of"]) > newest).then_some(())
            });
        }
    }
}

fn is_fresh(quote: &Value) -> bool {
    quote["stale"] == false && quote["source"] == "broker_a"
}

#[test]
fn streams_and_live_holdings_say_that_a_share_stands() {
    let mut shown = Shown::new(QUARTER_S as i64);
    shown.until("fresh prices", |infy, tcs| is_fresh(infy) && is_fresh(tcs));
    shown.days.scene.halt(TWO[0], true);
    shown.pass(STANDS_MS / 3);
    shown.until("two minutes later", |infy, tcs| is_fresh(infy) && is_fresh(tcs));
    shown.pass(STANDS_MS);
    shown.until("six minutes later", |infy, tcs| infy["stale"] == true && is_fresh(tcs));
    shown.days.scene.halt(TWO[0], false);
    shown.until("trading again", |infy, tcs| is_fresh(infy) && is_fresh(tcs));
}

fn stands_at_broker_a(scene: &Scene, symbols: &[&str]) {
    let body = format!(r#"{{"symbols":{}}}"#, sonic_rs::to_string(symbols).unwrap());
    assert_eq!(scene.control("POST", "broker_a/stand", &body).status, 200);
}

/// Broker A is healthy, but for one share.
#[test]
fn of_a_share_that_stands_at_broker_a_alone_the_public_providers_later_price_is_shown() {
    const DELAY_S: i64 = 60;
    let mut shown = Shown::new(DELAY_S);
    shown.until("fresh prices", |infy, tcs| is_fresh(infy) && is_fresh(tcs));
    let asked = |shown: &Shown| {
        let stats = shown.days.scene.stats();
        stats["requests"]["public.spark"].as_i64().unwrap_or(0)
    };
    let before = asked(&shown);
    let began_ms = shown.days.scene.clock.now_ms();
    stands_at_broker_a(&shown.days.scene, &TWO[..1]);
    shown.pass(STANDS_MS);
    shown.until("the later price", |infy, tcs| {
        infy["source"] == "public" && infy["stale"] == false && is_fresh(tcs)
    });
    let questions = asked(&shown) - before;
    let took_ms = shown.days.scene.clock.now_ms() - began_ms;
    let most = took_ms / QUESTION_MS + shown.late_looks;
    assert!((1..=most).contains(&questions), "{questions} in {took_ms} ms");
    let health = shown.days.service.health();
    assert_eq!(health["feeds"]["broker_a"]["state"], "ok", "{health}");
    stands_at_broker_a(&shown.days.scene, &[]);
    shown.until("broker A again", |infy, tcs| is_fresh(infy) && is_fresh(tcs));
}

/// Ticks of all else go on.
#[test]
fn a_share_that_stands_is_stale_while_ticks_are_live() {
    let stage = ticker::Stage::with(Scene::still_at(TRADING), |config| {
        config.cache.miss_wait_ms = 50;
    });
    let seen = |what: &str, holds: &dyn Fn(&Value, &Value) -> bool| {
        until(what, || {
            // Not much faster than the second between two ticks.
            stage.scene.advance_ms(STEP_MS / 5);
            let [infy, tcs] = TWO.map(|symbol| quote(&stage.service, symbol));
            let infy = infy.ok_or_else(|| "no INFY".to_owned())?;
            let tcs = tcs.ok_or_else(|| "no TCS".to_owned())?;
            match stage.seen().is_live() && holds(&infy, &tcs) {
                true => Ok(()),
                false => Err(format!("{infy} {tcs} {}", stage.service.health()["feeds"])),
            }
        });
    };
    seen("fresh prices", &|infy, tcs| is_fresh(infy) && is_fresh(tcs));
    stage.scene.halt(TWO[0], true);
    stage.scene.advance_ms(STANDS_MS / 3);
    seen("two minutes later", &|infy, tcs| is_fresh(infy) && is_fresh(tcs));
    stage.scene.advance_ms(STANDS_MS);
    seen("six minutes later", &|infy, tcs| infy["stale"] == true && is_fresh(tcs));
    stage.scene.halt(TWO[0], false);
    // The halt was everywhere; from here on broker A's ticks and calls alone stand.
    seen("trading again", &|infy, tcs| is_fresh(infy) && is_fresh(tcs));
    stands_at_broker_a(&stage.scene, &TWO[..1]);
    for _ in 0..4 {
        stage.scene.advance_ms(STANDS_MS);
        seen("some ticks", &|_, tcs| is_fresh(tcs));
    }
    seen("the later price", &|infy, tcs| {
        infy["source"] == "public" && infy["stale"] == false && is_fresh(tcs)
    });
}
