//! Compares every price that the service shows with what the exchange itself had at the time that
//! the service gives, and remembers what was shown before.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::error::Error;
use crate::simulator::Simulator;

/// A price without a time of its own may be this much younger than the service says: it has the
/// time at which the index beside it last moved, and is marked as stale once that is longer ago.
const YOUNGER_S_MAX: i64 = 5;

/// Greatest age of a price of broker A that is shown as fresh: two polls of 1.05 s and 1.5 s of
/// grace, 1 s because times are in whole seconds, and 0.7 s for the sample itself.
const BROKER_A_FRESH: SignedDuration = SignedDuration::from_millis(3_600 + 1_000 + 700);

/// The same for the public provider, beside its delay: two polls of 15 s and 7 s of grace.
const PUBLIC_FRESH: SignedDuration = SignedDuration::from_millis(37_000 + 1_000 + 700);

/// The same while the chart route serves, with one symbol of three a call.
const CHART_FRESH: SignedDuration = SignedDuration::from_millis(97_000 + 1_000 + 700);

/// Most by which the delay that is shown may differ from the simulated one.
const DELAY_APART_S: u64 = 10;

/// Examples kept of each kind of violation.
const EXAMPLES_MAX: usize = 3;

/// The three indices: the snapshot's name and the symbol.
pub const LEADS: [(&str, &str); 3] =
    [("index1", "NSE:NIFTY 50"), ("bankindex", "NSE:NIFTY BANK"), ("index2", "BSE:SENSEX")];

/// One price as it was shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub symbol: String,
    /// `None` for a sector, of which only the change is shown.
    pub price: Option<f64>,
    /// Percent from the previous close.
    pub change_pct: Option<f64>,
    /// The time that it gives.
    pub as_of: Timestamp,
    pub source: String,
    pub delay_s: Option<u64>,
    pub stale: bool,
}

/// What the exchange had: price and previous close.
type Second = HashMap<String, (f64, f64)>;

/// What was found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// Prices that were checked.
    pub prices: u64,
    /// Of these, how many were marked as stale.
    pub stale: u64,
    /// By kind: how many, and some of them.
    pub violations: BTreeMap<&'static str, (u64, Vec<String>)>,
}

impl Findings {
    /// Violations of all kinds.
    pub fn total(&self) -> u64 {
        self.violations.values().map(|(count, _)| count).sum()
    }
}

/// Compares prices with the exchange and with what was shown before.
pub struct Checker {
    symbols: Vec<String>,
    delay_s: u64,
    /// Latest time that was shown of each symbol.
    latest: HashMap<String, Timestamp>,
    seconds: HashMap<i64, Second>,
    /// The chart route, with one symbol a call, has served lately.
    pub chart: bool,
    pub findings: Findings,
}

impl Checker {
    /// Checks these symbols, with a public provider that is `delay_s` behind.
    pub fn new(symbols: Vec<String>, delay_s: u64) -> Self {
        Self {
            symbols,
            delay_s,
            latest: HashMap::new(),
            seconds: HashMap::new(),
            chart: false,
            findings: Findings::default(),
        }
    }

    /// Records a violation.
    pub fn violated(&mut self, kind: &'static str, what: impl Into<String>) {
        let (count, examples) = self.findings.violations.entry(kind).or_default();
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            let what = what.into();
            eprintln!("honesty: {kind}: {what}");
            examples.push(what);
        }
    }

    /// Checks one price that was seen when the exchange's clock read `now`.
    pub fn check(
        &mut self,
        exchange: &Simulator,
        shown: &Shown,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.findings.prices += 1;
        self.findings.stale += u64::from(shown.stale);
        self.check_order(shown);
        self.check_age(shown, now);
        self.check_delay(shown);
        self.check_price(exchange, shown)
    }

    fn check_order(&mut self, shown: &Shown) {
        let latest = self.latest.entry(shown.symbol.clone()).or_insert(shown.as_of);
        let before = *latest;
        *latest = before.max(shown.as_of);
        if shown.as_of < before {
            self.violated("as_of went back", format!("{before} then {shown:?}"));
        }
    }

    /// What is shown as fresh is no older than its source's interval and delay allow.
    fn check_age(&mut self, shown: &Shown, now: Timestamp) {
        let allowed = match shown.source.as_str() {
            "broker_a" => BROKER_A_FRESH,
            _ if self.chart => CHART_FRESH,
            _ => PUBLIC_FRESH,
        };
        let delay = SignedDuration::from_secs(shown.delay_s.unwrap_or(0) as i64);
        let age = now.duration_since(shown.as_of);
        if !shown.stale && age > allowed + delay {
            self.violated("old and not marked", format!("{age:?} old: {shown:?}"));
        }
        if age < SignedDuration::from_secs(-2) {
            self.violated("of the future", format!("at {now}: {shown:?}"));
        }
    }

    fn check_delay(&mut self, shown: &Shown) {
        let right = match (shown.source.as_str(), shown.delay_s) {
            ("broker_a", None) => true,
            ("public", Some(delay_s)) => delay_s.abs_diff(self.delay_s) <= DELAY_APART_S,
            _ => false,
        };
        if !right {
            self.violated("a wrong delay", format!("{shown:?}"));
        }
    }

    /// The exchange had this price at that time, or, for one without a time of its own, soon after.
    fn check_price(&mut self, exchange: &Simulator, shown: &Shown) -> Result<(), Error> {
        let second = shown.as_of.as_second();
        for later_s in 0..=YOUNGER_S_MAX {
            if self.had_price(exchange, shown, second + later_s)? {
                return Ok(());
            }
        }
        let had = self.seconds.get(&second).and_then(|second| second.get(&shown.symbol)).copied();
        self.violated("not the price of its time", format!("{shown:?}, the exchange had {had:?}"));
        Ok(())
    }

    fn had_price(
        &mut self,
        exchange: &Simulator,
        shown: &Shown,
        second: i64,
    ) -> Result<bool, Error> {
        if !self.seconds.contains_key(&second) {
            let at = Timestamp::from_second(second)
                .map_err(|_| Error::invalid("a time outside all calendars"))?;
            let ticks = ticks(exchange, at, &self.symbols)?;
            let known = self.symbols.iter().filter_map(|symbol| {
                let tick = &ticks[symbol.as_str()];
                let price = tick["last_price"].as_f64()?;
                Some((symbol.clone(), (price, tick["previous_close"].as_f64()?)))
            });
            self.seconds.insert(second, known.collect());
        }
        let Some(&(price, close)) = self.seconds[&second].get(&shown.symbol) else {
            return Err(Error::Invalid(format!("the exchange does not know {}", shown.symbol)));
        };
        let same = |one: f64, other: f64| (one - other).abs() < 0.006;
        Ok(shown.price.is_none_or(|shown| same(shown, price))
            && shown.change_pct.is_none_or(|pct| same(pct, (price - close) / close * 100.0)))
    }
}

/// What the exchange itself has of these symbols at a moment.
fn ticks(exchange: &Simulator, at: Timestamp, symbols: &[String]) -> Result<Value, Error> {
    let mut path = format!("exchange?at={at}");
    for symbol in symbols {
        path.push_str("&i=");
        path.push_str(&encoded(symbol));
    }
    Ok(exchange.control("GET", &path, None)?["ticks"].take())
}

/// A symbol as a query has it.
fn encoded(symbol: &str) -> String {
    symbol.replace(' ', "%20").replace('&', "%26")
}

/// The prices of a snapshot, each with its own age where it has one.
pub fn of_snapshot(snapshot: &Value) -> Option<Vec<Shown>> {
    let market = &snapshot["market"];
    let mut all = Vec::new();
    for (name, symbol) in LEADS {
        let own = |what: &str| &snapshot[format!("{name}_{what}")];
        // `_source` and `_stale` stand together, and `_delay_s` with them or nowhere.
        let provenance = own("source").is_string();
        let said = |what: &str| if provenance { own(what) } else { &market[what] };
        all.push(Shown {
            symbol: symbol.to_owned(),
            price: Some(own("price").as_f64()?),
            change_pct: own("change").as_f64(),
            as_of: time(own("as_of")).or_else(|| time(&market["as_of_ist"]))?,
            source: said("source").as_str()?.to_owned(),
            delay_s: said("delay_s").as_u64(),
            stale: said("stale").as_bool()?,
        });
    }
    for sector in snapshot["sectors"].as_array()? {
        let Some(change_pct) = sector["change_pct"].as_f64() else { continue };
        all.push(Shown {
            symbol: sector["symbol"].as_str()?.to_owned(),
            price: None,
            change_pct: Some(change_pct),
            as_of: time(&sector["as_of"]).or_else(|| time(&market["as_of_ist"]))?,
            source: market["source"].as_str()?.to_owned(),
            delay_s: market["delay_s"].as_u64(),
            // Beside fresh indices no old sector is shown.
            stale: all[0].stale,
        });
    }
    Some(all)
}

/// The prices of a quotes answer.
pub fn of_quotes(quotes: &Value) -> Option<Vec<Shown>> {
    let shown = |quote: &Value| {
        Some(Shown {
            symbol: quote["symbol"].as_str()?.to_owned(),
            price: Some(quote["last_price"].as_f64()?),
            change_pct: quote["change_pct"].as_f64(),
            as_of: time(&quote["as_of"])?,
            source: quote["source"].as_str()?.to_owned(),
            delay_s: quote["delay_s"].as_u64(),
            stale: quote["stale"].as_bool()?,
        })
    };
    quotes["quotes"].as_array()?.iter().map(shown).collect()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_index_has_the_age_of_the_market_unless_it_says_its_own() {
        let snapshot = json!({
            "index1_price": 1.5, "index1_change": 0.1,
            "bankindex_price": 2, "bankindex_change": null,
            "bankindex_as_of": "2026-10-14T11:00:15+05:30",
            "index2_price": 3, "index2_change": 0.3, "index2_stale": true,
            "index2_source": "broker_a",
            "sectors": [{"symbol": "NSE:NIFTY IT", "change_pct": null}],
            "market": {"as_of_ist": "2026-10-14T11:00:00+05:30", "delay_s": 900, "stale": false,
                "source": "public"},
        });
        let all = of_snapshot(&snapshot).expect("all three are there");
        let ages = all.iter().map(|shown| {
            (shown.as_of.as_second() % 60, shown.source.as_str(), shown.delay_s, shown.stale)
        });
        let expected = [
            (0, "public", Some(900), false),
            (15, "public", Some(900), false),
            (0, "broker_a", None, true),
        ];
        assert_eq!(ages.collect::<Vec<_>>(), expected);
    }
}
