//! The public provider's client.
//!
//! Runs on an upstream lane and blocks up to the call's deadline. All callers share one call per
//! interval; a refusal for too many requests stops calls for a minute to a quarter of an hour.
//!
//! The client asks spark, with up to twenty symbols. When spark has failed as a route twice in a
//! row (gone, refused, another shape), it asks the chart for a while, with one symbol per call,
//! within the same budget.

use std::collections::HashMap;
use std::time::Duration;

use jiff::civil::Date;

use crate::base::{Clock, Source, Symbol};
use crate::brokers::call::gate::{ClassReading, Gate};
use crate::brokers::call::pace::Penalty;
use crate::brokers::call::route_choice::RouteChoice;
use crate::brokers::call::transport::{
    BadUrl, CallLimits, Redirects, Reply, Transport, push_encoded,
};
use crate::brokers::feed::{Batch, MarketFeed};
use crate::brokers::portfolio::{DailyCandles, Days};
use crate::brokers::public::candles::{parse, query};
use crate::brokers::public::symbols::SymbolMap;
use crate::brokers::public::wire;
use crate::brokers::public::wire::{NAME, RANGE, Said, Spark, malformed};
use crate::brokers::quote_checks::CallTimes;
use crate::brokers::quote_checks::Kind;
use crate::brokers::readiness::Readiness;
use crate::brokers::settings::{PublicSettings, UpstreamSettings};
use crate::brokers::{BrokerError, BrokerErrorKind};

/// Maximum number of symbols per spark call; more are refused.
const BATCH_MAX: usize = 20;

/// Observed blocks last from 3 to more than 15 minutes, and go on while calls continue.
const PENALTY: Penalty = Penalty {
    first: Duration::from_secs(60),
    max: Duration::from_secs(15 * 60),
};

/// Bars are not used. Five minutes keeps them few, and the answer has `previousClose`, which it
/// lacks with `1d`.
const INTERVAL: &str = "5m";

/// Without these headers an answer may come from a cache, with an old price.
const HEADERS: [(&str, &str); 2] = [
    ("accept", "application/json"),
    ("cache-control", "no-cache"),
];

/// The delayed feed.
pub struct Public {
    enabled: bool,
    url: String,
    clock: Clock,
    symbols: SymbolMap,
    /// Indices that always have a price.
    leads: Vec<Symbol>,
    transport: Transport,
    limits: CallLimits,
    gate: Gate,
    route: RouteChoice,
}

/// A symbol with the provider's spelling of it.
type Spelled<'a> = (&'a Symbol, String);

impl Public {
    /// `index_symbols` has the provider's spelling of each index. An answer without a price of one
    /// of `leads` counts as a failed call.
    ///
    /// # Errors
    /// [`BadUrl`].
    pub fn new(
        settings: &PublicSettings,
        upstream: &UpstreamSettings,
        clock: Clock,
        index_symbols: HashMap<Symbol, String>,
        leads: Vec<Symbol>,
    ) -> Result<Self, BadUrl> {
        let url = BadUrl::checked("public.url", &settings.url)?;
        Ok(Self {
            enabled: settings.enabled,
            transport: {
                let redirects = Redirects::WithinOrigin;
                Transport::new(upstream, &url, &settings.user_agent, redirects)
            },
            url,
            symbols: SymbolMap::new(index_symbols),
            leads,
            limits: CallLimits::usual(upstream),
            gate: Gate::new(NAME, &clock, upstream, settings.batch_interval_ms, PENALTY),
            route: RouteChoice::new("public spark", clock.clone()),
            clock,
        })
    }

    /// Readings of every class of calls, for metrics.
    pub(crate) fn readings(&self) -> Vec<ClassReading> {
        vec![self.gate.reading("quotes")]
    }

    /// Daily candles of one share from `from` to `to`, both included, at most
    /// [`SPAN_DAYS_MAX`](crate::brokers::portfolio::SPAN_DAYS_MAX) days; `None` if the provider
    /// does not have it. Takes the same slot as a batch of quotes, so
    /// [`readiness`](MarketFeed::readiness) applies to it too.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub fn daily_candles(
        &self,
        symbol: &Symbol,
        from: Date,
        to: Date,
    ) -> Result<Option<DailyCandles>, BrokerError> {
        let days = Days::checked(NAME, from, to)?;
        if !self.enabled {
            return Err(self.gate.hold(Readiness::Off));
        }
        let Some(name) = self.symbols.spelled(symbol) else {
            return Ok(None);
        };
        let mut url = format!("{}/v8/finance/chart/", self.url);
        push_encoded(&mut url, &name);
        url.push('?');
        url.push_str(&query(days, self.clock.now_ms()));
        self.gate
            .call(|| self.get(&url).and_then(|reply| parse(&reply, days)))
    }

    fn ask_spark(&self, spelled: &[Spelled<'_>]) -> Result<Batch, BrokerError> {
        let mut names: Vec<&str> = spelled.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut url = format!("{}/v7/finance/spark?symbols=", self.url);
        for (at, name) in names.into_iter().enumerate() {
            if at > 0 {
                url.push(',');
            }
            push_encoded(&mut url, name);
        }
        url.push('&');
        self.push_range(&mut url);
        let times = CallTimes::begin(&self.clock);
        let answer = self
            .get(&url)
            .and_then(|reply| Ok((self.spark(&reply, spelled)?, reply)));
        let times = times.end(&self.clock);
        match &answer {
            Ok(_) => self.route.worked(),
            Err(error) if blames_route(error) => self.route.failed(),
            Err(_) => {}
        }
        let (rows, reply) = answer?;
        let batch = Batch {
            times,
            symbols_max: BATCH_MAX,
            ..Batch::default()
        };
        Ok(self.filled(batch, spelled, |name| rows.get(name), reply.simulated))
    }

    fn spark(
        &self,
        reply: &Reply,
        spelled: &[Spelled<'_>],
    ) -> Result<HashMap<String, Said>, BrokerError> {
        match wire::spark(reply)? {
            Spark::Rows(rows) => {
                spelled
                    .iter()
                    .try_for_each(|spelled| self.priced(spelled, rows.get(&spelled.1)))?;
                Ok(rows)
            }
            // An index of the list always has data. Symbols that clients invented may have none.
            Spark::Empty
                if spelled
                    .iter()
                    .any(|(symbol, _)| self.symbols.is_of_list(symbol)) =>
            {
                Err(malformed("empty spark"))
            }
            Spark::Empty | Spark::NoneKnown => Ok(HashMap::new()),
        }
    }

    /// Refuses an answer in which a leading index has no price. Such an index always has one, so
    /// the provider's whole answer is wrong.
    fn priced(&self, (symbol, name): &Spelled<'_>, said: Option<&Said>) -> Result<(), BrokerError> {
        let empty = matches!(said, Some(Said::Ghost | Said::Nonsense));
        if empty && self.leads.contains(symbol) {
            return Err(malformed(&format!("{name} without a price")));
        }
        Ok(())
    }

    fn ask_chart(&self, spelled: &Spelled<'_>) -> Result<Batch, BrokerError> {
        let mut url = format!("{}/v8/finance/chart/", self.url);
        push_encoded(&mut url, &spelled.1);
        url.push('?');
        self.push_range(&mut url);
        let times = CallTimes::begin(&self.clock);
        let answer = self.get(&url).and_then(|reply| {
            let said = wire::chart(&reply)?;
            self.priced(spelled, said.as_ref())?;
            Ok((said, reply.simulated))
        });
        let times = times.end(&self.clock);
        if answer.as_ref().is_err_and(blames_route) {
            self.route.spare_failed();
        }
        let (said, simulated) = answer?;
        let batch = Batch {
            times,
            symbols_max: 1,
            ..Batch::default()
        };
        Ok(self.filled(batch, std::slice::from_ref(spelled), |_| said.as_ref(), simulated))
    }

    /// The range, and a parameter that changes with every call.
    fn push_range(&self, url: &mut String) {
        use std::fmt::Write;
        // Writing to a String cannot fail.
        let _ = write!(url, "range={RANGE}&interval={INTERVAL}&_={}", self.clock.now_ms());
    }

    fn get(&self, url: &str) -> Result<Reply, BrokerError> {
        self.transport
            .get(url, &HEADERS, self.limits)
            .map_err(|error| error.of(NAME))
    }

    /// `batch` with the provider's answer about each symbol.
    fn filled<'s>(
        &self,
        mut batch: Batch,
        spelled: &[Spelled<'_>],
        said_of: impl Fn(&str) -> Option<&'s Said>,
        simulated: bool,
    ) -> Batch {
        batch.simulated = simulated;
        for (symbol, name) in spelled {
            match said_of(name) {
                None | Some(Said::Ghost) => batch.unknown.push((*symbol).clone()),
                Some(Said::Nonsense) => batch.disbelieve((*symbol).clone(), None),
                Some(Said::Price(claim)) => {
                    let kind = Kind::of(symbol, self.symbols.is_index(symbol));
                    batch.add(kind, symbol, Source::Public, claim);
                }
            }
        }
        batch
    }
}

/// Whether the route fails although the host works: refused, gone, or another shape.
fn blames_route(error: &BrokerError) -> bool {
    matches!(
        error.kind,
        BrokerErrorKind::Refused
            | BrokerErrorKind::Malformed
            | BrokerErrorKind::Redirected
            | BrokerErrorKind::Failed { status: 400..500 }
    )
}

impl MarketFeed for Public {
    fn source(&self) -> Source {
        Source::Public
    }

    /// 20, or 1 while the chart is used.
    fn batch_max(&self) -> usize {
        if self.route.spare() { 1 } else { BATCH_MAX }
    }

    fn readiness(&self) -> Readiness {
        if self.enabled {
            self.gate.readiness()
        } else {
            Readiness::Off
        }
    }

    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError> {
        if !self.enabled {
            return Err(self.gate.hold(Readiness::Off));
        }
        if symbols.len() > BATCH_MAX {
            let detail = "more symbols than one call carries";
            return Err(BrokerError::new(NAME, BrokerErrorKind::Refused, detail));
        }
        let mut impossible = Vec::new();
        let mut spelled: Vec<Spelled<'_>> = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            match self.symbols.spelled(symbol) {
                Some(name) => spelled.push((symbol, name)),
                None => impossible.push(symbol.clone()),
            }
        }
        let mut batch = match spelled.first() {
            None => Batch::default(), // nothing to spend a call on
            Some(first) => self.gate.call(|| {
                if self.route.spare() {
                    self.ask_chart(first)
                } else {
                    self.ask_spark(&spelled)
                }
            })?,
        };
        batch.unknown.append(&mut impossible);
        Ok(batch)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
