//! Turns a request into its reply: finds the route, the faults that hit it, and the upstream that
//! answers. Connection threads run this; nothing here touches the socket.

use std::io;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::sim::broker_a::ticker;
use crate::sim::fault_kinds::{Kind, Upstream};
use crate::sim::faults::Instead;
use crate::sim::routes::{LOGIN_A, LOGIN_B, find, upstream_of};
use crate::sim::server::message::{Answer, Content, Delivery, Reply, Request};
use crate::sim::world::{Call, World};
use crate::sim::{broker_a, broker_b, control, login_page, public, trade_files};

/// Answers above this size are compressed for a client that accepts it, as broker A does.
const COMPRESS_BYTES_MIN: usize = 4 * 1024;

/// Answers one request.
pub(super) fn answer(world: &Arc<World>, request: &Request) -> Reply {
    if let Some(rest) = request.path.strip_prefix("/sim/control/") {
        return reply(request, control::answer(world, request, rest), Delivery::default());
    }
    if let Some(rest) = request.path.strip_prefix("/files/") {
        return reply(request, trade_files::answer(world, rest), Delivery::default());
    }
    let Some((route, rest)) = find(&request.path) else {
        let lost = Answer::text(404, "text/plain; charset=utf-8", "the simulator has no such path");
        return reply(request, lost, Delivery::default());
    };
    let upstream = upstream_of(route);
    let is_quote = matches!(route, "broker_a.quote" | "broker_a.ohlc" | "broker_a.ltp");
    world
        .stats
        .lock()
        .asked(route, is_quote, world.clock.monotonic_ms());
    let effects = world.faults.lock().hit(route, upstream);
    if let Some(instead) = effects.instead {
        return reply(request, in_place(instead, upstream, route), effects.delivery);
    }
    let now = world.clock.now();
    let shown = effects.muted_at.map_or(now, |muted| muted.min(now));
    let prices_at = shown.checked_sub(effects.lag).unwrap_or(shown);
    let call = Call {
        world,
        request,
        now,
        prices_at,
        ahead: effects.ahead,
    };
    let mut answer = match upstream {
        _ if [LOGIN_A, LOGIN_B].contains(&route) => login_page::answer(&call, route),
        Upstream::BrokerA if route == ticker::ROUTE => ticker::answer(&call, world),
        Upstream::BrokerA | Upstream::Ticker => broker_a::answer(&call, route, rest),
        Upstream::BrokerB => broker_b::answer(&call, route, rest),
        Upstream::Public => public::answer(&call, route, rest),
    };
    if answer.rejected {
        world.stats.lock().turned_away(route);
    }
    effects.rewrite(&mut answer);
    reply(request, answer, effects.delivery)
}

/// The answer of a fault in place of the route.
fn in_place(instead: Instead, upstream: Upstream, route: &str) -> Answer {
    let Instead {
        kind,
        status,
        location,
    } = instead;
    if let Some(location) = location {
        let content = Content::Moved(location);
        return Answer {
            status: status.unwrap_or(302),
            content,
            rejected: false,
        };
    }
    if kind == Kind::Html5xx {
        let page = "<!DOCTYPE html><html><head><title>Error</title></head>\
                    <body><h1>Will be right back</h1></body></html>";
        return Answer::text(status.unwrap_or(502), "text/html; charset=utf-8", page);
    }
    match upstream {
        Upstream::BrokerA | Upstream::Ticker => broker_a::fault(kind),
        Upstream::BrokerB => broker_b::fault(kind),
        Upstream::Public => public::fault(kind, route),
    }
}

fn reply(request: &Request, answer: Answer, delivery: Delivery) -> Reply {
    let mut headers = Vec::new();
    let mut upgrade = None;
    let (media_type, mut body, mut compress) = match answer.content {
        Content::Moved(location) => {
            headers.push(("Location", location));
            ("text/html", Vec::new(), false)
        }
        Content::Json(json) => ("application/json", json.to_string().into_bytes(), false),
        Content::Text(media_type, bytes) => (media_type, bytes, false),
        Content::Gzipped(media_type, bytes) => (media_type, bytes, true),
        Content::Upgrade(accept, upgraded) => {
            headers.push(("Upgrade", "websocket".to_owned()));
            headers.push(("Connection", "Upgrade".to_owned()));
            headers.push(("Sec-WebSocket-Accept", accept));
            upgrade = Some(upgraded);
            ("application/octet-stream", Vec::new(), false)
        }
    };
    let accepts = request
        .header("accept-encoding")
        .is_some_and(|codings| codings.contains("gzip"));
    let is_of_a = |(route, _): (&str, &str)| upstream_of(route) == Upstream::BrokerA;
    compress |=
        accepts && body.len() >= COMPRESS_BYTES_MIN && find(&request.path).is_some_and(is_of_a);
    headers.push(("Content-Type", media_type.to_owned()));
    if compress && let Ok(compressed) = gzipped(&body) {
        headers.push(("Content-Encoding", "gzip".to_owned()));
        body = compressed;
    }
    Reply {
        status: answer.status,
        headers,
        body,
        delivery,
        upgrade,
    }
}

fn gzipped(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}
