//! From a request to its reply: which route it is, which faults hit it, who answers it.
//! Connection threads run this; nothing here touches the socket.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Instead, Kind, Upstream};
use crate::sim::server::message::{Delivery, Reply, Request};
use crate::sim::world::{Answer, Call, Content, World};
use crate::sim::{broker_a, broker_b, public, server::control};

/// Answers above this size are compressed for a client that accepts it, as broker A does.
const COMPRESS_BYTES_MIN: usize = 4 * 1024;

/// A route's name and where it is; a path that ends in a slash stands for everything below it.
const ROUTES: [(&str, &str); 18] = [
    ("broker_a.session", "/a/session/token"),
    ("broker_a.profile", "/a/user/profile"),
    ("broker_a.quote", "/a/quote"),
    ("broker_a.ohlc", "/a/quote/ohlc"),
    ("broker_a.ltp", "/a/quote/ltp"),
    ("broker_a.historical", "/a/instruments/historical/"),
    ("broker_a.instruments", "/a/instruments"),
    ("broker_a.instruments", "/a/instruments/"),
    ("broker_a.holdings", "/a/portfolio/holdings"),
    ("broker_a.positions", "/a/portfolio/positions"),
    ("broker_b.customerdetails", "/b/customerdetails"),
    ("broker_b.dematholdings", "/b/dematholdings"),
    ("broker_b.portfolioholdings", "/b/portfolioholdings"),
    ("broker_b.portfoliopositions", "/b/portfoliopositions"),
    ("broker_b.master", "/b-master/"),
    ("public.spark", "/p/v7/finance/spark"),
    ("public.spark_v8", "/p/v8/finance/spark"),
    ("public.chart", "/p/v8/finance/chart/"),
];

const GROUPS: [&str; 3] = ["broker_a", "broker_b", "public"];

/// Every name a fault can be set for, apart from `*`.
pub(crate) fn names_and_groups() -> Vec<&'static str> {
    let mut names: Vec<_> = GROUPS.into_iter().chain(ROUTES.map(|(name, _)| name)).collect();
    names.dedup();
    names
}

/// Whether faults can be set for `name`.
pub(crate) fn is_route_or_group(name: &str) -> bool {
    name == "*" || names_and_groups().contains(&name)
}

/// Whether a fault set for `pattern` concerns `route`.
pub(crate) fn covers(pattern: &str, route: &str) -> bool {
    pattern == "*"
        || pattern == route
        || route.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// The route at `path` and what stands after its path.
fn find(path: &str) -> Option<(&'static str, &str)> {
    ROUTES.iter().find_map(|&(name, at)| {
        let rest = path.strip_prefix(at)?;
        (rest.is_empty() != at.ends_with('/')).then_some((name, rest))
    })
}

fn upstream_of(route: &str) -> Upstream {
    match route.split('.').next() {
        Some("broker_a") => Upstream::BrokerA,
        Some("broker_b") => Upstream::BrokerB,
        _ => Upstream::Public,
    }
}

/// Answers one request.
pub(crate) fn answer(world: &World, request: &Request) -> Reply {
    if let Some(rest) = request.path.strip_prefix("/sim/control/") {
        return reply(request, control::answer(world, request, rest), Delivery::default());
    }
    let Some((route, rest)) = find(&request.path) else {
        let lost = Answer::text(404, "text/plain; charset=utf-8", "the simulator has no such path");
        return reply(request, lost, Delivery::default());
    };
    let upstream = upstream_of(route);
    let is_quote = matches!(route, "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp");
    world.stats.lock().asked(route, is_quote, world.clock.monotonic_ms());
    let effects = world.faults.lock().hit(route, upstream);
    if let Some(instead) = effects.instead {
        return reply(request, in_place(instead, upstream, route), effects.delivery);
    }
    let now = world.clock.now();
    let shown = effects.muted_at.map_or(now, |muted| muted.min(now));
    let prices_at = shown.checked_sub(effects.lag).unwrap_or(shown);
    let call = Call { world, request, now, prices_at, ahead: effects.ahead };
    let mut answer = match upstream {
        Upstream::BrokerA => broker_a::answer(&call, route, rest),
        Upstream::BrokerB => broker_b::answer(&call, route, rest),
        Upstream::Public => public::answer(&call, route, rest),
    };
    if answer.rejected {
        world.stats.lock().turned_away(route);
    }
    effects.rewrite(&mut answer);
    reply(request, answer, effects.delivery)
}

/// What a fault answers in place of the route.
fn in_place(instead: Instead, upstream: Upstream, route: &str) -> Answer {
    let Instead { kind, status, location } = instead;
    if let Some(location) = location {
        let content = Content::Moved(location);
        return Answer { status: status.unwrap_or(302), content, rejected: false };
    }
    if kind == Kind::Html5xx {
        let page = "<!DOCTYPE html><html><head><title>Error</title></head>\
                    <body><h1>Will be right back</h1></body></html>";
        return Answer::text(status.unwrap_or(502), "text/html; charset=utf-8", page);
    }
    match upstream {
        Upstream::BrokerA => broker_a::fault(kind),
        Upstream::BrokerB => broker_b::fault(kind),
        Upstream::Public => public::fault(kind, route),
    }
}

fn reply(request: &Request, answer: Answer, delivery: Delivery) -> Reply {
    let mut headers = Vec::new();
    let (media_type, mut body, mut compress) = match answer.content {
        Content::Moved(location) => {
            headers.push(("Location", location));
            ("text/html", Vec::new(), false)
        }
        Content::Json(json) => ("application/json", json.to_bytes(), false),
        Content::Text(media_type, bytes) => (media_type, bytes, false),
        Content::Gzipped(media_type, bytes) => (media_type, bytes, true),
    };
    let accepts = request.header("accept-encoding").is_some_and(|codings| codings.contains("gzip"));
    compress |= accepts && body.len() >= COMPRESS_BYTES_MIN && request.path.starts_with("/a/");
    headers.push(("Content-Type", media_type.to_owned()));
    if compress && let Ok(compressed) = gzipped(&body) {
        headers.push(("Content-Encoding", "gzip".to_owned()));
        body = compressed;
    }
    Reply { status: answer.status, headers, body, delivery }
}

fn gzipped(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_routes_by_their_whole_path() {
        for (path, expected) in [
            ("/a/quote", Some(("broker_a.quote", ""))),
            ("/a/quote/ohlc", Some(("broker_a.ohlc", ""))),
            ("/a/quotes", None),
            ("/a/instruments", Some(("broker_a.instruments", ""))),
            ("/a/instruments/NSE", Some(("broker_a.instruments", "NSE"))),
            ("/a/instruments/historical/1/day", Some(("broker_a.historical", "1/day"))),
            ("/p/v8/finance/chart/%5ENSEI", Some(("public.chart", "%5ENSEI"))),
            ("/b/", None),
        ] {
            assert_eq!(find(path), expected, "{path}");
        }
        assert!(covers("broker_a", "broker_a.quote") && covers("*", "public.spark"));
        assert!(
            !covers("broker_a.quote", "broker_a.ohlc")
                && !covers("public.spark", "public.spark_v8")
        );
    }
}
