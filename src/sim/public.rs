//! The public provider: user-agent strictness, throttling and the two batch calls. The chart call
//! stands in a file of its own. Connection threads run this.

pub(crate) mod chart;
mod envelope;

use super::exchange::noise::{self, rupees};
use super::faults::kind::Kind;
use super::server::answer::Answer;
use super::server::json::{Json, map};
use super::server::message::decoded;
use super::world::Call;
use chart::{Ask, Series};
use envelope::{GHOST, delayed, error};

/// Most symbols of one batch call.
const SPARK_SYMBOLS_MAX: usize = 20;
/// How default user-agents of libraries and tools begin.
const LIBRARY_AGENTS: [&str; 14] = [
    "ureq",
    "curl",
    "wget",
    "python",
    "go-http-client",
    "okhttp",
    "reqwest",
    "hyper",
    "java",
    "axios",
    "node",
    "libwww",
    "apache-httpclient",
    "bhav",
];

/// Answers a request at `route`; `rest` is what stands after the route's path.
pub(super) fn answer(call: &Call<'_>, route: &str, rest: &str) -> Answer {
    if call.request.method != "GET" {
        return Answer::text(405, "text/plain", "Method Not Allowed");
    }
    let agent = call.request.header("user-agent").unwrap_or_default().trim().to_ascii_lowercase();
    let library = LIBRARY_AGENTS.iter().any(|library| agent.starts_with(library));
    if agent.is_empty() || library || !call.within_limit(|limits, at_ms| limits.public.admit(at_ms))
    {
        return throttled();
    }
    if route == "public.chart" {
        return chart::answer(call, &decoded(rest, false));
    }
    spark(call, route == "public.spark")
}

fn throttled() -> Answer {
    Answer::text(429, "text/plain", "Edge: Too Many Requests")
}

/// What a fault answers in place of a route.
pub(super) fn fault(kind: Kind, route: &str) -> Answer {
    let root = if route == "public.chart" { "chart" } else { "spark" };
    match kind {
        Kind::RateLimit => throttled(),
        _ => error(200, root, "Internal Server Error", "Internal error, please try again"),
    }
}

fn spark(call: &Call<'_>, nested: bool) -> Answer {
    let symbols = call.request.query_value("symbols").unwrap_or_default();
    let mut symbols: Vec<&str> = symbols.split(',').filter(|symbol| !symbol.is_empty()).collect();
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
    // The order of the answer is not the order asked for.
    symbols.sort_by_key(|symbol| noise::key(call.world.settings.seed, symbol));
    symbols.dedup();
    let at = delayed(call);
    let mut results: Vec<(String, Json)> = Vec::new();
    for symbol in symbols {
        let result = if symbol == GHOST {
            let response = map([("meta", chart::ghost_meta())]);
            if nested { response } else { continue }
        } else if let Some(instrument) = call.world.universe.by_public(symbol) {
            let tick = call.world.day.tick(instrument, at);
            let series = Series::of(call.world, instrument, &ask, at);
            if nested {
                map([
                    ("meta", chart::meta(call, instrument, &tick, &ask, &series)),
                    ("timestamp", series.timestamps()),
                    (
                        "indicators",
                        map([("quote", vec![map([("close", series.closes())])].into())]),
                    ),
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
        return Answer::ok(Json::Map(results));
    }
    let result = results.into_iter().map(|(symbol, response)| {
        map([("symbol", symbol.into()), ("response", vec![response].into())])
    });
    let spark = map([("result", Json::List(result.collect())), ("error", Json::Null)]);
    Answer::ok(map([("spark", spark)]))
}

fn flat(symbol: &str, tick: &super::exchange::day::Tick, series: &Series) -> Json {
    let change = tick.last - tick.previous_close;
    let percent = rupees(change) * rust_decimal::Decimal::ONE_HUNDRED / rupees(tick.previous_close);
    map([
        ("symbol", symbol.into()),
        ("timestamp", series.timestamps()),
        ("close", series.closes()),
        ("previousClose", Json::Null),
        ("chartPreviousClose", rupees(series.close_before).into()),
        ("fulldayPrice", rupees(tick.last).into()),
        ("fulldayChange", rupees(change).into()),
        ("fulldayChangePercent", percent.round_dp(3).into()),
        ("dataGranularity", series.granularity_s.into()),
        ("start", Json::Null),
        ("end", Json::Null),
    ])
}

#[cfg(test)]
#[path = "public_tests.rs"]
mod tests;
