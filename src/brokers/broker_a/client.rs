//! Broker A's client: quotes, the daily token exchange, the instruments file, daily candles.
//!
//! Runs on upstream lanes and blocks up to each call's deadline. All callers of the process share
//! one quote slot a second. A caller that comes too early gets an error with the time to wait;
//! calls are never queued here.
//!
//! Quotes come from `/quote`, because `/quote/ohlc` has no price times and costs the same slot.
//! `/quote/ohlc`, whose rows are a tenth of the size and which always carries indices in full, is
//! the spare route while answers of `/quote` cannot be read.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::Deserialize;
use sonic_rs::LazyValue;

use crate::base::limiter::SharedCounts;
use crate::base::{Clock, Exchange, Source, Symbol, clock, wipe};
use crate::brokers::BrokerASettings;
use crate::brokers::broker_a::instruments::{DerivativesList, InstrumentList};
use crate::brokers::broker_a::open_session::{REQUEST_TOKEN_BYTES_MAX, exchange};
use crate::brokers::broker_a::portfolio::{Ending, Fetched, Portfolios};
use crate::brokers::broker_a::ticker::{KnownTokens, Ticker, TickerParts, TickerSettings};
use crate::brokers::broker_a::wire::{API_VERSION, NAME, QuoteRow, failed, malformed};
use crate::brokers::broker_a::{instruments, wire};
use crate::brokers::call::gate::{ClassReading, Gate};
use crate::brokers::call::pace::Penalty;
use crate::brokers::call::route_choice::RouteChoice;
use crate::brokers::call::transport::{
    BadUrl, CallLimits, Redirects, Reply, Transport, push_query,
};
use crate::brokers::feed::{Batch, MarketFeed, Push};
use crate::brokers::portfolio::{DailyCandles, Days};
use crate::brokers::quote_checks::CallTimes;
use crate::brokers::quote_checks::Kind;
use crate::brokers::readiness::Readiness;
use crate::brokers::session::token::{SharedToken, Token, TokenStatus, expiry};
use crate::brokers::settings::{AppKeys, UpstreamSettings};
use crate::brokers::{
    Attempt, BrokerError, BrokerErrorKind, Credentials, OpenSession, PortfolioClient, SyncCounts,
    portfolio,
};

/// Instruments per quote call: the broker's cap for `/quote`, and well below the URL length that
/// made trouble for others.
const BATCH_MAX: usize = 500;

/// Least time between two calls that are neither quotes nor candles: the broker allows ten a
/// second.
const OTHER_INTERVAL_MS: u64 = 100;

/// Pause after a 429. The broker counts by the second and documents no `Retry-After`.
const PENALTY: Penalty = Penalty {
    first: Duration::from_secs(2),
    max: Duration::from_secs(30),
};

/// The instruments file has megabytes and is read once a day. No request waits for it.
const INSTRUMENTS_TIMEOUT_MS: u64 = 30_000;

/// The real-time feed and the calls around it.
pub struct BrokerA {
    url: String,
    keys: ArcSwap<AppKeys>,
    clock: Clock,
    token: Arc<SharedToken>,
    transport: Transport,
    limits: CallLimits,
    instruments_limits: CallLimits,
    quotes: Gate,
    candles: Gate,
    other: Gate,
    route: RouteChoice,
    portfolios: Arc<Portfolios>,
    /// Instrument tokens from quote answers, for the ticker.
    tokens: Arc<KnownTokens>,
    ticker: Arc<ArcSwap<TickerSettings>>,
}

impl BrokerA {
    /// A client that takes its token from `token` at each call.
    ///
    /// # Errors
    /// [`BadUrl`].
    pub fn new(
        settings: &BrokerASettings,
        upstream: &UpstreamSettings,
        clock: Clock,
        token: Arc<SharedToken>,
    ) -> Result<Self, BadUrl> {
        let url = BadUrl::checked("broker_a.url", &settings.url)?;
        let user_agent = concat!("bhav/", env!("CARGO_PKG_VERSION"));
        let gate = |name, interval_ms| Gate::new(name, &clock, upstream, interval_ms, PENALTY);
        let portfolios = Arc::new(Portfolios::new(&url, upstream, &clock));
        Ok(Self {
            transport: Transport::new(upstream, &url, user_agent, Redirects::Never),
            url,
            keys: ArcSwap::from_pointee(AppKeys::of(&settings.api_key, &settings.api_secret)),
            token,
            limits: CallLimits::usual(upstream),
            instruments_limits: CallLimits {
                body_bytes_max: upstream.instruments_bytes_max,
                total_timeout_ms: INSTRUMENTS_TIMEOUT_MS.max(upstream.total_timeout_ms),
            },
            quotes: gate("broker A quotes", settings.quote_interval_ms).doubting_refusals(),
            candles: gate("broker A candles", INTERVAL_MS),
            other: gate("broker A", OTHER_INTERVAL_MS),
            route: RouteChoice::new("broker A /quote", clock.clone()),
            portfolios,
            tokens: Arc::default(),
            ticker: Arc::new(ArcSwap::from_pointee(TickerSettings::of(settings)?)),
            clock,
        })
    }

    /// Applies new settings of the ticker. It may close, connect elsewhere, or carry fewer symbols.
    pub(crate) fn set_ticker(&self, settings: TickerSettings) {
        self.ticker.store(Arc::new(settings));
        self.token.news().tell();
    }

    /// Starts the ticker of the same source, which pushes quotes to `push`. `leads` are the indices
    /// whose ticks prove that prices flow.
    ///
    /// # Errors
    /// Its thread cannot be started.
    pub(crate) fn start_ticker(&self, leads: Vec<Symbol>, push: Push) -> io::Result<Ticker> {
        Ticker::start(TickerParts {
            settings: Arc::clone(&self.ticker),
            leads,
            clock: self.clock.clone(),
            token: Arc::clone(&self.token),
            tokens: Arc::clone(&self.tokens),
            push,
        })
    }

    /// Whether the settings have the key and the secret that a login needs.
    pub(crate) fn has_app(&self) -> bool {
        let keys = self.keys.load_full();
        keys.api_key.is_some() && keys.api_secret.is_some()
    }

    /// Counts of the sessions that syncs opened, by the word of their end.
    pub fn session_ends(&self) -> Vec<(&'static str, u64)> {
        self.portfolios.session_ends.by_word()
    }

    /// Fetches one exchange's instruments file, which the broker rebuilds about 08:30 IST each day.
    /// Calls within a tenth of a second of another are refused. A plan without market data may
    /// fetch it.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub(crate) fn instruments(&self, exchange: Exchange) -> Result<InstrumentList, BrokerError> {
        self.instruments_file(exchange.as_str(), |body, bytes_max| {
            instruments::parse(body, exchange, bytes_max)
        })
    }

    /// Fetches the file of the NSE's derivatives. Otherwise as [`instruments`](Self::instruments).
    ///
    /// # Errors
    /// [`BrokerError`].
    pub(crate) fn derivatives(&self) -> Result<DerivativesList, BrokerError> {
        self.instruments_file("NFO", instruments::parse_derivatives)
    }

    fn instruments_file<T>(
        &self,
        name: &str,
        parse: impl Fn(&[u8], u64) -> Result<T, BrokerError>,
    ) -> Result<T, BrokerError> {
        let token = self.token.valid(self.clock.now());
        let token = token.ok_or_else(|| self.other.hold(Readiness::NoToken))?;
        let url = format!("{}/instruments/{name}", self.url);
        self.other.call(|| {
            let reply = self.get(&url, &token, self.instruments_limits)?;
            if reply.status != 200 || reply.body.starts_with(b"{") {
                let error = wire::data(&reply).err();
                let error = error.unwrap_or_else(|| wire::not_an_envelope(&reply));
                note_dead(&error, &token);
                return Err(error);
            }
            parse(&reply.body, self.instruments_limits.body_bytes_max)
        })
    }

    /// Whether a call for candles could be made now. Never blocks.
    pub(crate) fn candles_readiness(&self) -> Readiness {
        self.readiness_of(&self.candles)
    }

    fn readiness_of(&self, gate: &Gate) -> Readiness {
        self.token
            .usable(self.clock.now())
            .map_or_else(|held| held, |_| gate.readiness())
    }

    /// Daily candles of one instrument from `from` to `to`, both included, at most
    /// [`SPAN_DAYS_MAX`](crate::brokers::portfolio::SPAN_DAYS_MAX) days. Days without trading have
    /// none; a running day has one that is not finished. Three calls a second at most.
    ///
    /// # Errors
    /// [`BrokerError`]; [`BrokerErrorKind::Refused`] when the broker does not know the token.
    pub fn daily_candles(
        &self,
        instrument_token: u32,
        from: Date,
        to: Date,
    ) -> Result<DailyCandles, BrokerError> {
        let days = Days::checked(NAME, from, to)?;
        let token = self.token.usable(self.clock.now());
        let token = token.map_err(|readiness| self.candles.hold(readiness))?;
        let url = format!("{}{}", self.url, target(instrument_token, days));
        self.candles.call(|| {
            let answer = self.get(&url, &token, self.limits);
            let answer = answer.and_then(|reply| parse(&reply, days));
            match &answer {
                Ok(_) => token.mark_works(),
                Err(error) => self.note_refusal(error, &token),
            }
            answer
        })
    }

    fn get(&self, url: &str, token: &Token, limits: CallLimits) -> Result<Reply, BrokerError> {
        let authorization = token.authorization();
        let headers = [API_VERSION, ("authorization", authorization.as_str())];
        self.transport
            .get(url, &headers, limits)
            .map_err(|error| error.of(NAME))
    }

    fn ask_quotes(&self, symbols: &[Symbol], token: &Token) -> Result<Batch, BrokerError> {
        let spare = self.route.spare();
        let mut url = format!("{}/quote{}", self.url, if spare { "/ohlc" } else { "" });
        for symbol in symbols {
            push_query(&mut url, "i", symbol.as_str());
        }
        let times = CallTimes::begin(&self.clock);
        let answer = self
            .get(&url, token, self.limits)
            .and_then(|reply| Ok((wire::quotes(&reply)?, reply.simulated)));
        match answer {
            Ok((rows, simulated)) => {
                token.mark_works();
                self.learn_tokens(symbols, &rows);
                if !spare {
                    self.route.worked();
                }
                Ok(batch(symbols, &rows, simulated, times.end(&self.clock)))
            }
            Err(error) => {
                if let BrokerErrorKind::Malformed | BrokerErrorKind::Redirected = error.kind {
                    if spare {
                        self.route.spare_failed();
                    } else {
                        self.route.failed();
                    }
                }
                self.note_refusal(&error, token);
                Err(error)
            }
        }
    }

    fn learn_tokens(&self, symbols: &[Symbol], rows: &HashMap<String, Option<QuoteRow>>) {
        self.tokens.learn(symbols.iter().filter_map(|symbol| {
            let row = rows.get(symbol.as_str())?.as_ref()?;
            Some((symbol.clone(), u32::try_from(row.instrument_token).ok()?))
        }));
    }

    /// Records on the token that the broker refused it, or refused market data.
    fn note_refusal(&self, error: &BrokerError, token: &Token) {
        note_dead(error, token);
        if error.kind == BrokerErrorKind::NotPermitted && token.mark_no_permission(self.clock.now())
        {
            tracing::warn!("broker A's plan has no market data");
        }
    }
}

impl PortfolioClient for BrokerA {
    fn sync(&self, credentials: &Credentials) -> Attempt {
        let Fetched { result, session } = self.portfolios.sync(credentials);
        let session = session.map(|session| -> Box<dyn OpenSession> {
            Box::new(Ending {
                portfolios: Arc::clone(&self.portfolios),
                session,
            })
        });
        Attempt { result, session }
    }

    fn activate(&self, request_token: &str) -> Result<TokenStatus, BrokerError> {
        let keys = self.keys.load_full();
        let (Some(key), Some(secret)) = (&keys.api_key, &keys.api_secret) else {
            return Err(self.other.hold(Readiness::Off));
        };
        if request_token.is_empty() || request_token.len() > REQUEST_TOKEN_BYTES_MAX {
            return Err(failed(BrokerErrorKind::CodeRefused, "wrong length"));
        }
        let app = (key, secret);
        let login = self.other.call(|| {
            // A connection of its own, because the feed's stay open and hold what was sent.
            let connection = self.transport.apart();
            let exchanged =
                exchange(&connection, &self.url, app, request_token, self.limits, wire::login);
            let (login, _) = exchanged.map_err(|error| error.of(NAME))?;
            login.map_err(|error| match error.kind {
                // Here the "token" is the request token or the checksum.
                BrokerErrorKind::TokenDead | BrokerErrorKind::Refused => {
                    failed(BrokerErrorKind::CodeRefused, "not accepted")
                }
                _ => error,
            })
        });
        // The parser leaves pieces of the token on the stack.
        wipe::scrub();
        let login = login?;
        let now = self.clock.now();
        // A login time with which a fresh token would already be expired comes from a wrong clock.
        let login_at = login.login_at.filter(|at| expiry(*at) > now).unwrap_or(now);
        self.token
            .activate(login.access_token, key.clone(), login_at);
        tracing::info!("broker A token activated");
        Ok(self.token.status(now))
    }

    fn token(&self) -> &Arc<SharedToken> {
        &self.token
    }

    fn set_app(&self, keys: AppKeys) {
        self.keys.store(Arc::new(keys));
    }

    fn join(&self, counts: &Arc<dyn SharedCounts>) {
        self.portfolios.gate.join("broker-a", counts);
    }

    fn readings(&self) -> Vec<ClassReading> {
        vec![
            self.quotes.reading("quotes"),
            self.candles.reading("candles"),
            self.other.reading("other"),
            self.portfolios.gate.reading(),
        ]
    }

    fn sync_counts(&self) -> &SyncCounts {
        &self.portfolios.gate.counts
    }
}

impl MarketFeed for BrokerA {
    fn source(&self) -> Source {
        Source::BrokerA
    }

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    fn readiness(&self) -> Readiness {
        self.readiness_of(&self.quotes)
    }

    fn quotes(&self, symbols: &[Symbol]) -> Result<Batch, BrokerError> {
        if symbols.is_empty() {
            return Ok(Batch::default());
        }
        if symbols.len() > BATCH_MAX {
            return Err(failed(BrokerErrorKind::Refused, "more symbols than one call carries"));
        }
        let token = self
            .token
            .usable(self.clock.now())
            .map_err(|readiness| self.quotes.hold(readiness))?;
        self.quotes.call(|| self.ask_quotes(symbols, &token))
    }
}

/// Records on the token that the broker refused it.
fn note_dead(error: &BrokerError, token: &Token) {
    if error.kind == BrokerErrorKind::TokenDead && token.mark_dead() {
        tracing::warn!("broker A refused the shared token; a new login is needed");
    }
}

/// Iterates over the request, not the answer, because the broker leaves out unknown symbols.
fn batch(
    symbols: &[Symbol],
    rows: &HashMap<String, Option<QuoteRow>>,
    simulated: bool,
    times: CallTimes,
) -> Batch {
    let mut batch = Batch {
        simulated,
        times,
        symbols_max: BATCH_MAX,
        ..Batch::default()
    };
    for symbol in symbols {
        let Some(row) = rows.get(symbol.as_str()) else {
            batch.unknown.push(symbol.clone());
            continue;
        };
        match row {
            Some(row) => {
                let kind = Kind::of(symbol, row.is_index());
                batch.add(kind, symbol, Source::BrokerA, &row.claim);
            }
            None => batch.disbelieve(symbol.clone(), None),
        }
    }
    batch
}

// ---- Candles
//
// Broker A's daily candles of one instrument, by its token. Pure parsing; the client makes the call
// on an upstream lane.

/// Least time between two calls for candles: the broker allows three a second, and a call that is
/// slow to connect must not meet the one before it.
pub(super) const INTERVAL_MS: u64 = 350;

/// Longest timestamp, which is text in quotes. A longer one is malformed.
const STAMP_BYTES_MAX: usize = 40;

/// Path and query of a call for whole days, the last one included.
pub(super) fn target(instrument_token: u32, days: Days) -> String {
    let Days { from, to } = days;
    format!("/instruments/historical/{instrument_token}/day?from={from}+00:00:00&to={to}+23:59:59")
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    candles: Vec<LazyValue<'a>>,
}

/// The candles of `days`; others are dropped.
///
/// # Errors
/// As [`wire::data`], and [`BrokerErrorKind::Malformed`] if the list of candles is missing or the
/// day of one cannot be read.
pub(super) fn parse(reply: &Reply, days: Days) -> Result<DailyCandles, BrokerError> {
    let data = wire::data(reply)?;
    let Ok(Wire { candles }) = sonic_rs::from_str(data) else {
        return Err(malformed("candles that are no list"));
    };
    let mut read = DailyCandles {
        simulated: reply.simulated,
        ..DailyCandles::default()
    };
    for candle in &candles {
        let row: Vec<LazyValue<'_>> = sonic_rs::from_str(candle.as_raw_str()).unwrap_or_default();
        let day = row.first().and_then(|stamp| day(stamp.as_raw_str()));
        let Some(day) = day else {
            return Err(malformed("a candle without its day"));
        };
        if !days.contains(day) {
            continue;
        }
        // A seventh value, open interest, is sent only on request.
        let values: Option<[&str; 5]> = row.get(1..6).and_then(|values| {
            let texts: Vec<&str> = values.iter().map(LazyValue::as_raw_str).collect();
            texts.try_into().ok()
        });
        match values.and_then(|values| portfolio::candle(day, values, |price| price)) {
            Some(candle) => read.candles.push(candle),
            None => read.unreadable.push(day),
        }
    }
    Ok(read)
}

/// The day of `"2017-12-15T00:00:00+0530"` in IST. The offset has no colon, which RFC 3339 asks
/// for; one with a colon is read too.
fn day(quoted: &str) -> Option<Date> {
    let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if text.len() > STAMP_BYTES_MAX {
        return None;
    }
    let without_colon = Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text);
    let at = without_colon.or_else(|_| text.parse::<Timestamp>()).ok()?;
    Some(clock::zoned(at).date())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

#[cfg(test)]
mod candles_tests {
    use super::*;

    const MINUTES: &[u8] =
        include_bytes!("../../../tests/fixtures/broker_a/historical_minute.json");

    fn days(from: &str, to: &str) -> Days {
        Days {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
        }
    }

    fn reply(body: &[u8]) -> Reply {
        Reply {
            status: 200,
            retry_after: None,
            content_type: Some("application/json".into()),
            simulated: false,
            body: body.to_vec(),
        }
    }

    fn rows(rows: &str) -> Result<DailyCandles, BrokerError> {
        let body = format!(r#"{{"status":"success","data":{{"candles":[{rows}]}}}}"#);
        parse(&reply(body.as_bytes()), days("2026-11-01", "2026-11-20"))
    }

    #[test]
    fn reads_the_official_sample() {
        let read = parse(&reply(MINUTES), days("2017-12-15", "2017-12-15")).unwrap();
        assert_eq!((read.candles.len(), read.unreadable.len()), (6, 0));
        let first = read.candles[0];
        let prices = (first.open_e4, first.high_e4, first.low_e4, first.close_e4);
        assert_eq!(prices, (17_045_000, 17_050_000, 16_992_500, 17_028_000));
        assert_eq!((first.date.to_string().as_str(), first.volume), ("2017-12-15", 2_499));
        let elsewhere = parse(&reply(MINUTES), days("2017-12-16", "2017-12-31")).unwrap();
        assert_eq!(elsewhere, DailyCandles::default(), "other days are dropped");
    }

    #[test]
    fn the_day_is_read_in_ist_with_and_without_a_colon() {
        for (stamp, expected) in [
            ("2026-11-20T00:00:00+0530", Some("2026-11-20")),
            ("2026-11-20T00:00:00+05:30", Some("2026-11-20")),
            ("2026-11-19T18:30:00+0000", Some("2026-11-20")),
            ("2026-11-19T18:30:00Z", Some("2026-11-20")),
            ("2026-11-20", None),
            ("2026-11-31T00:00:00+0530", None),
            ("", None),
        ] {
            let day = day(&format!("\"{stamp}\"")).map(|day| day.to_string());
            assert_eq!(day.as_deref(), expected, "{stamp}");
        }
        assert_eq!(day("20261120"), None);
    }

    #[test]
    fn no_data_is_no_candle() {
        assert_eq!(rows("").unwrap(), DailyCandles::default());
        assert_eq!(rows("").unwrap().covers(), None);
    }

    #[test]
    fn a_bad_row_costs_its_day_and_no_other() {
        let good = r#"["2026-11-20T00:00:00+0530",10,11.5,9,10,7]"#;
        for bad in [
            r#"["2026-11-19T00:00:00+0530",10,"NaN",9,10,7]"#,
            r#"["2026-11-19T00:00:00+0530",10,null,9,10,7]"#,
            r#"["2026-11-19T00:00:00+0530",10,11]"#,
            r#"["2026-11-19T00:00:00+0530",10,11,9,10,1e40]"#,
        ] {
            let read = rows(&format!("{bad},{good}")).unwrap();
            assert_eq!(read.candles.len(), 1, "{bad}");
            assert_eq!(read.unreadable, [jiff::civil::date(2026, 11, 19)], "{bad}");
            assert_eq!(read.covers().unwrap().0, read.candles[0].date);
        }
        let oi = rows(r#"["2026-11-20T00:00:00+0530",10,11.5,9,10,7,0]"#).unwrap();
        assert_eq!(oi, rows(good).unwrap(), "open interest is not ours");
    }

    #[test]
    fn what_is_no_history_is_refused() {
        for bad in [r#"["x",1,2,3,4,5]"#, "7", "[]", "{}", r#"[NaN,1,1,1,1,1]"#] {
            let error = rows(bad).unwrap_err();
            assert_eq!(error.kind, BrokerErrorKind::Malformed, "{bad}: {error}");
        }
        // A bare NaN is not JSON, so the whole answer is refused.
        rows(r#"["2026-11-19T00:00:00+0530",10,NaN,9,10,7]"#).unwrap_err();
        for body in [
            r#"{"status":"success","data":{}}"#,
            r#"{"status":"success"}"#,
            "<html>",
        ] {
            parse(&reply(body.as_bytes()), days("2026-11-01", "2026-11-20")).unwrap_err();
        }
    }
}
