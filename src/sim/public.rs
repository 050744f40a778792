//! The public provider: user-agent strictness, throttling, the two batch calls and the chart call.
//! Connection threads run this.

use serde_json::{Value, json};

use crate::sim::chart::{Ask, GHOST, Series, chart_answer, delayed, error, ghost_meta, meta};
use crate::sim::exchange::day::Tick;
use crate::sim::exchange::universe;
use crate::sim::exchange::universe::rupees;
use crate::sim::fault_kinds::Kind;
use crate::sim::server::message::{Answer, decoded, map, number, price};
use crate::sim::world::Call;

/// Most symbols of one batch call.
const SPARK_SYMBOLS_MAX: usize = 20;
/// Prefixes of the default user-agents of libraries and tools.
const LIBRARY_AGENTS: &str = "ureq curl wget python go-http-client okhttp reqwest hyper java axios \
                              node libwww apache-httpclient bhav";

/// Answers a request at `route`; `rest` is the remainder of its path.
pub(super) fn answer(call: &Call<'_>, route: &str, rest: &str) -> Answer {
    if call.request.method != "GET" {
        return Answer::text(405, "text/plain", "Method Not Allowed");
    }
    let agent = call
        .request
        .header("user-agent")
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let library = LIBRARY_AGENTS
        .split(' ')
        .any(|library| agent.starts_with(library));
    if agent.is_empty() || library || !call.within_limit(|limits, at_ms| limits.public.admit(at_ms))
    {
        return throttled();
    }
    if route == "public.chart" {
        return chart_answer(call, &decoded(rest, false));
    }
    spark(call, route == "public.spark")
}

fn throttled() -> Answer {
    Answer::text(429, "text/plain", "Edge: Too Many Requests")
}

/// The answer of a fault in place of a route.
pub(super) fn fault(kind: Kind, route: &str) -> Answer {
    let root = if route == "public.chart" {
        "chart"
    } else {
        "spark"
    };
    match kind {
        Kind::RateLimit => throttled(),
        _ => error(200, root, "Internal Server Error", "Internal error, please try again"),
    }
}

fn spark(call: &Call<'_>, nested: bool) -> Answer {
    let symbols = call.request.query_value("symbols").unwrap_or_default();
    let mut symbols: Vec<&str> = symbols
        .split(',')
        .filter(|symbol| !symbol.is_empty())
        .collect();
    if symbols.is_empty() {
        return error(400, "spark", "Bad Request", "Missing required parameter: symbols");
    }
    if symbols.len() > SPARK_SYMBOLS_MAX {
        let text = "Number of symbols needs to be less than or equal to 20";
        return error(400, "spark", "Bad Request", text);
    }
    let ask = match Ask::of(call.request, "5m") {
        Ok(ask) => ask,
        Err(text) => return error(400, "spark", "Bad Request", &text),
    };
    // The answer has another order than the request.
    symbols.sort_by_key(|symbol| universe::key(call.world.settings.seed, symbol));
    symbols.dedup();
    let at = delayed(call);
    let mut results: Vec<(String, Value)> = Vec::new();
    for symbol in symbols {
        let result = if symbol == GHOST {
            if nested {
                json!({"meta": ghost_meta()})
            } else {
                continue;
            }
        } else if let Some(instrument) = call.world.universe.by_public(symbol) {
            let tick = call.world.day.tick(instrument, at);
            let series = Series::of(call.world, instrument, &ask, at);
            if nested {
                let quote = vec![map([("close", series.closes())])];
                map([
                    ("meta", meta(call, instrument, &tick, &ask, &series)),
                    ("timestamp", series.timestamps()),
                    ("indicators", map([("quote", quote.into())])),
                ])
            } else {
                flat(symbol, &tick, &series)
            }
        } else {
            continue;
        };
        results.push((symbol.to_owned(), result));
    }
    if results.is_empty() {
        return error(404, "spark", "Not Found", "No data found for spark symbols");
    }
    if !nested {
        return Answer::ok(map(results));
    }
    let result = results.into_iter().map(|(symbol, response)| {
        map([
            ("symbol", symbol.into()),
            ("response", vec![response].into()),
        ])
    });
    let spark = map([("result", result.collect()), ("error", Value::Null)]);
    Answer::ok(map([("spark", spark)]))
}

fn flat(symbol: &str, tick: &Tick, series: &Series) -> Value {
    let change = tick.last - tick.previous_close;
    let percent = rupees(change) * rust_decimal::Decimal::ONE_HUNDRED / rupees(tick.previous_close);
    json!({
        "symbol": symbol, "timestamp": series.timestamps(), "close": series.closes(),
        "previousClose": null, "chartPreviousClose": price(series.close_before),
        "fulldayPrice": price(tick.last), "fulldayChange": price(change),
        "fulldayChangePercent": number(percent.round_dp(3)),
        "dataGranularity": series.granularity_s, "start": null, "end": null,
    })
}

// ---- Envelope
//
// Shared by all calls to the public provider: its delay, its errors, and a renamed share.

#[cfg(test)]
#[path = "public_tests.rs"]
mod tests;
