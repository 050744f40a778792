//! Prices far from their previous close, on each way that a price comes in: true ones are served,
//! and a single absurd answer is not.

use bhav::base::Clock;
use bhav::config::Config;
use bhav::sim::SimSettings;
use rust_decimal::Decimal;
use sonic_rs::{JsonValueTrait, Value};

use super::days::Days;
use super::figures::{number, raw};
use super::ticker;
use crate::portfolio::user::written;
use crate::support::scrape::Scrape;
use crate::support::wait::at_once;
use crate::support::{Scene, Service, TRADING, until};

/// Far more than any price moves in a test, and less than a lost decimal point moves it.
const ABSURD: Decimal = Decimal::TWO;

/// An instrument whose previous close is of something else, except for the last.
struct Far {
    what: &'static str,
    symbol: &'static str,
    previous_close: &'static str,
    open: &'static str,
    price: &'static str,
    /// The change in percent, where the previous close is comparable.
    change_pct: Option<&'static str>,
}

const FAR: [Far; 7] = [
    far("a first day", "NSE:INFY", "220", "470", "480"),
    far("a relisting", "NSE:ITC", "60", "11", "12"),
    far("a demerger", "NSE:SBIN", "1000", "400", "390"),
    far("a split", "NSE:TCS", "482", "48", "48.2"),
    far("a consolidation", "NSE:WIPRO", "48", "475", "482"),
    far("an index with a new base", "NSE:NIFTY%20IT", "36720", "18360", "18300"),
    Far {
        change_pct: Some("60"),
        ..far("a volatile day", "NSE:INDIA%20VIX", "13.8", "14.2", "22.08")
    },
];

const fn far(
    what: &'static str,
    symbol: &'static str,
    previous_close: &'static str,
    open: &'static str,
    price: &'static str,
) -> Far {
    Far {
        what,
        symbol,
        previous_close,
        open,
        price,
        change_pct: None,
    }
}

/// From now on the instrument trades at its price, which is its previous close's no more.
fn begin(scene: &Scene, far: &Far) {
    let Far {
        symbol,
        previous_close,
        open,
        price,
        ..
    } = far;
    let symbol = symbol.replace("%20", " ");
    let order = format!(
        r#"{{"symbol":"{symbol}","price":{price},"previous_close":{previous_close},"open":{open}}}"#
    );
    assert_eq!(scene.control("POST", "trading", &order).status, 200, "{symbol}");
}

/// A scene on a clock that the test advances, whose public provider is not behind.
fn scene_at(now: &str) -> Scene {
    let settings = SimSettings {
        rate_limits: false,
        public_delay_s: 0,
        ..SimSettings::default()
    };
    Scene::by_hand(Clock::manual(now.parse().unwrap()), settings)
}

fn settings(scene: &Scene) -> Config {
    let mut config = scene.watched();
    // The clock stands while a request waits.
    config.cache.miss_wait_ms = 50;
    config
}

/// The ways by which a poll brings a price.
#[derive(Clone, Copy, Debug)]
enum Way {
    BrokerA,
    SpareRoute,
    Public,
}

impl Way {
    const ALL: [Self; 3] = [Self::BrokerA, Self::SpareRoute, Self::Public];

    /// The route that brings prices.
    fn route(self) -> &'static str {
        match self {
            Self::BrokerA => "broker_a.quote",
            Self::SpareRoute => "broker_a.ohlc",
            Self::Public => "public.spark",
        }
    }

    fn source(self) -> &'static str {
        if let Self::Public = self {
            "public"
        } else {
            "broker_a"
        }
    }

    /// Leaves this way alone.
    fn only(self, scene: &Scene, config: &mut Config) {
        match self {
            Self::BrokerA => scene.fault("public", r#"{"kind":"refuse"}"#),
            Self::SpareRoute => {
                scene.fault("public", r#"{"kind":"refuse"}"#);
                scene.fault("broker_a.quote", r#"{"kind":"nulls"}"#);
            }
            Self::Public => {
                config.broker_a.access_token = None;
                config.broker_a.api_key = None;
            }
        }
    }
}

/// The quote of a symbol, if there is one, as a document and as text.
fn quote(service: &Service, symbol: &str) -> Option<(Value, String)> {
    let answer = service.prices(symbol);
    let is_there = answer.status == 200 && !answer.quoted().is_empty();
    is_there.then(|| (answer.json()["quotes"][0].clone(), answer.text().to_owned()))
}

/// The name of the spare route, where an index without a time that stands is stale.
const SPARE: &str = "SpareRoute";

/// Waits until the price is served, while the clock advances by `step_ms` at each look.
#[track_caller]
fn await_served(scene: &Scene, service: &Service, far: &Far, way: &str, step_ms: i64) -> Value {
    let what = format!("{} by {way}", far.what);
    until(&what, || {
        scene.advance_ms(step_ms);
        let (quote, text) = quote(service, far.symbol).ok_or_else(|| "no quote".to_owned())?;
        let price = number(&text, "last_price").normalize().to_string();
        let may_stand = way == SPARE && far.symbol.contains('%');
        let is_served = price == far.price && (quote["stale"] == false || may_stand);
        if is_served { Ok(quote) } else { Err(text) }
    })
}

#[test]
fn a_true_price_is_served_by_each_way_alone() {
    at_once(Way::ALL, |way| {
        let scene = scene_at(TRADING);
        FAR.iter().for_each(|far| begin(&scene, far));
        let mut config = settings(&scene);
        way.only(&scene, &mut config);
        let service = scene.start_with(&config);
        for far in &FAR {
            let quote = await_served(&scene, &service, far, &format!("{way:?}"), 250);
            assert_eq!(quote["source"], way.source(), "{quote}");
            let change = quote["change_pct"]
                .is_number()
                .then(|| written(&quote["change_pct"]));
            assert_eq!(change.as_deref(), far.change_pct, "{}: {quote}", far.what);
        }
    });
}

/// A previous close that is of something else: the issue price of a first day, or the price of
/// before a split. Broker A's limits follow that close, so its own row does not prove the price,
/// and the public provider is asked.
#[test]
fn a_price_far_from_its_previous_close_is_shown_without_a_change_once_both_sources_say_it() {
    let settings = SimSettings {
        rate_limits: false,
        public_delay_s: 0,
        ..SimSettings::default()
    };
    let scene = Scene::with(TRADING, settings);
    let cases = [
        ("NSE:INFY", "480", "220"),
        ("NSE:TCS", "48.2", "482"),
        ("NSE:SBIN", "4820", "482"),
    ];
    for (symbol, price, close) in cases {
        let order = format!(r#"{{"symbol":"{symbol}","price":{price},"previous_close":{close}}}"#);
        assert_eq!(scene.control("POST", "trading", &order).status, 200);
    }
    let service = scene.start();
    for (symbol, price, _) in cases {
        let answer = until("the price", || {
            let answer = service.prices(symbol);
            let is_there = answer.status == 200 && !answer.quoted().is_empty();
            // Before the order both sources said another price of the same previous close.
            (is_there && raw(answer.text(), "last_price") == price).then_some(answer)
        });
        let quote = &answer.json()["quotes"][0];
        assert!(quote["change"].is_null() && quote["change_pct"].is_null(), "{quote}");
        assert_eq!(quote["stale"], false, "{quote}");
    }
}

/// The calls bring the ordinary prices, and only ticks those that are far from their close.
#[test]
fn a_true_price_is_served_by_ticks_alone() {
    let stage = ticker::Stage::with(Scene::at(TRADING), |_| {});
    stage.live();
    let symbols = FAR.map(|far| far.symbol).join(",");
    let subscribed = FAR.len() as u64;
    stage.seen_where("subscriptions", |seen| {
        let answer = stage.service.prices(&symbols);
        answer.quoted().len() == FAR.len() && seen.subscribed() > subscribed
    });
    for route in ["broker_a.quote", "broker_a.ohlc", "public"] {
        stage.scene.fault(route, r#"{"kind":"refuse"}"#);
    }
    FAR.iter().for_each(|far| begin(&stage.scene, far));
    for far in &FAR {
        let what = format!("{} by a tick", far.what);
        until(&what, || {
            let (quote, text) =
                quote(&stage.service, far.symbol).ok_or_else(|| "no quote".to_owned())?;
            let price = number(&text, "last_price").normalize().to_string();
            let is_served = price == far.price && quote["stale"] == false;
            if is_served { Ok(()) } else { Err(text) }
        });
    }
}

/// Waits until the holding is valued at this price.
#[track_caller]
fn await_close(days: &Days, symbol: &str, price: &str) {
    let (_, ticker) = symbol.split_once(':').unwrap();
    until(&format!("the close of {symbol}"), || {
        days.scene.advance_ms(500);
        let held = days.holdings();
        let row = held
            .iter()
            .find(|row| row["tradingsymbol"] == ticker)
            .ok_or_else(|| "no row".to_owned())?;
        let is_close = written(&row["last_price"]) == price;
        if is_close {
            Ok(())
        } else {
            Err(row.to_string())
        }
    });
}

/// The service starts in the evening, so nothing was shown before.
#[test]
fn a_true_price_is_the_close_of_the_evening() {
    at_once([Way::BrokerA, Way::SpareRoute], |way| {
        let scene = scene_at("2026-11-20T11:00:00+05:30");
        FAR.iter().for_each(|far| begin(&scene, far));
        scene.advance_ms(5 * 3_600_000);
        let mut config = settings(&scene);
        way.only(&scene, &mut config);
        // The broker's own rows are those of before the first trade.
        scene.fault("broker_a.holdings", r#"{"kind":"lag","by_s":19800}"#);
        let days = Days::on(scene, &config);
        let shares = FAR.iter().filter(|far| !far.symbol.contains('%'));
        let rows = shares.clone().map(|far| {
            let symbol = far.symbol;
            format!(r#"{{"symbol":"{symbol}","quantity":10,"average_paise":30000}}"#)
        });
        days.holds_at_a(&rows.collect::<Vec<_>>().join(","));
        days.sync("a");
        for far in shares {
            await_close(&days, far.symbol, far.price);
        }
        for far in FAR.iter().filter(|far| far.symbol.contains('%')) {
            await_served(&days.scene, &days.service, far, "the evening", 1_000);
        }
    });
}

/// Number of prices that were refused as contradicted by their own rows.
fn contradicted(service: &Service) -> f64 {
    Scrape::of(service)
        .find(r#"bhav_far_prices_total{reason="contradicted"}"#)
        .unwrap_or(0.0)
}

/// Instruments that trade as usual.
const USUAL: [&str; 3] = ["NSE:INFY", "NSE:NIFTY%20IT", "NSE:INDIA%20VIX"];

/// Looks at instruments that trade as usual.
struct Looks<'a> {
    service: &'a Service,
    /// Their prices at first.
    usual: Vec<(&'static str, Decimal)>,
}

impl<'a> Looks<'a> {
    /// Waits for fresh prices. `pass` lets time pass.
    fn begin(service: &'a Service, pass: impl Fn()) -> Self {
        let usual = USUAL.into_iter().map(|symbol| {
            let price = until("a price", || {
                pass();
                let (quote, text) = quote(service, symbol)?;
                (quote["stale"] == false).then(|| number(&text, "last_price"))
            });
            (symbol, price)
        });
        Self {
            service,
            usual: usual.collect(),
        }
    }

    /// No price may be absurd.
    #[track_caller]
    fn check(&self, way: &str) {
        for (symbol, price) in &self.usual {
            let (_, text) = quote(self.service, symbol).expect("the price before stays");
            assert!(number(&text, "last_price") < *price * ABSURD, "{way}: {text}");
        }
    }

    /// Waits for a refusal of an absurd answer, and for later prices.
    fn until_later(&self, way: &str, refused_before: f64, now: impl Fn() -> jiff::Timestamp) {
        until(&format!("a refusal by {way}"), || {
            self.check(way);
            let refused = contradicted(self.service) > refused_before;
            now();
            refused
        });
        let refused_at = now();
        until(&format!("later prices by {way}"), || {
            now();
            self.check(way);
            let (quote, _) = quote(self.service, USUAL[0])?;
            let as_of: jiff::Timestamp = quote["as_of"].as_str().unwrap().parse().unwrap();
            (as_of > refused_at && quote["stale"] == false).then_some(())
        });
    }
}

#[test]
fn a_single_absurd_answer_is_refused_on_each_way() {
    at_once(Way::ALL, |way| {
        let scene = scene_at(TRADING);
        let mut config = settings(&scene);
        way.only(&scene, &mut config);
        let service = scene.start_with(&config);
        let looks = Looks::begin(&service, || scene.advance_ms(250));
        let before = contradicted(&service);
        scene.fault(way.route(), r#"{"kind":"tenfold_price","count":1}"#);
        looks.until_later(&format!("{way:?}"), before, || {
            scene.advance_ms(250);
            scene.clock.now()
        });
    });
}

#[test]
fn a_single_absurd_tick_is_refused() {
    let stage = ticker::Stage::with(Scene::at(TRADING), |config| {
        config.admin.listen = "127.0.0.1:0".into();
    });
    stage.live();
    let looks = Looks::begin(&stage.service, || {});
    let subscribed = stage
        .seen_where("subscriptions", |seen| seen.subscribed() > 3)
        .subscribed();
    stage.seen_where("ticks of them", |seen| seen.ticks() > 4 * subscribed);
    let before = contradicted(&stage.service);
    stage
        .scene
        .fault(ticker::ROUTE, r#"{"kind":"tenfold_price","count":1}"#);
    looks.until_later("a tick", before, || stage.scene.clock.now());
}

/// Broker A is wrong all evening, and the public provider has the close.
#[test]
fn absurd_answers_of_the_evening_are_no_close() {
    let scene = scene_at("2026-11-20T16:00:00+05:30");
    let (close, _) = scene.said("NSE:INFY");
    let config = settings(&scene);
    for route in ["broker_a.quote", "broker_a.ohlc"] {
        scene.fault(route, r#"{"kind":"tenfold_price"}"#);
    }
    // The broker's own row is of before the auction.
    scene.fault("broker_a.holdings", r#"{"kind":"lag","by_s":7200}"#);
    let days = Days::on(scene, &config);
    days.holds_at_a(r#"{"symbol":"NSE:INFY","quantity":10,"average_paise":30000}"#);
    days.sync("a");
    await_close(&days, "NSE:INFY", &close.normalize().to_string());
    assert!(contradicted(&days.service) > 0.0);
}
