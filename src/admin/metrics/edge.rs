//! Metric families of the HTTP layer and of accounts. Runs on the lane `admin`.

use crate::admin::exposition::{Exposition, Kind};
use crate::admin::listener::Watched;
use crate::api::ROUTES;
use crate::http::server::shared::STATUS_CLASSES;
use crate::ops::RefusalLines;

pub(super) fn write(text: &mut Exposition, watched: &Watched) {
    requests(text, watched);
    connections(text, watched);
    streams(text, watched);
    let auth = watched.edge.service.state().auth.counts();
    let mut logins = text.family(
        Kind::Counter,
        "bhav_logins_total",
        "Logins whose password was checked, by result.",
    );
    logins.sample(&[("result", "ok")], auth.logins);
    logins.sample(&[("result", "wrong_password")], auth.wrong_passwords);
    text.counter(
        "bhav_login_throttled_total",
        "Password attempts refused by the rate limit.",
        auth.throttled,
    );
    text.counter(
        "bhav_registration_throttled_total",
        "Registrations refused by the rate limit.",
        auth.registrations_throttled,
    );
    text.counter(
        "bhav_login_strangers_refused_total",
        "Password attempts from unknown networks refused because their share of the hashing queue \
         was full.",
        auth.strangers_refused,
    );
}

/// Writes a series for each route and status class that occurred. The class 2xx is always written,
/// so that a scraper sees every route from the start.
fn requests(text: &mut Exposition, watched: &Watched) {
    let stats = &watched.edge.stats;
    let mut family = text.family(
        Kind::Histogram,
        "bhav_http_request_duration_seconds",
        "Time from the complete request to the complete response in the output buffer, by route \
         and status class.",
    );
    let known = ROUTES.iter().map(|route| (route.method.as_str(), route.path));
    // The HTTP layer numbers kinds of requests: 0 is no route, then ROUTES in their order, then the
    // dashboard's pages and files.
    let kinds = std::iter::once(("other", "other")).chain(known).chain([("GET", "page")]);
    for (kind, (method, route)) in kinds.enumerate() {
        for (class, counts) in STATUS_CLASSES.into_iter().zip(stats.durations(kind)) {
            if counts.count() > 0 || class == "2xx" {
                let labels = [("method", method), ("route", route), ("status", class)];
                family.durations(&labels, &counts);
            }
        }
    }
    text.gauge(
        "bhav_http_requests_in_flight",
        "Requests being handled, including those that wait for a lane.",
        stats.in_flight(),
    );
    let mut errors =
        text.family(Kind::Counter, "bhav_http_errors_total", "Responses with an error status.");
    errors.sample(&[("status", "4xx")], stats.client_errors.value());
    errors.sample(&[("status", "5xx")], stats.server_errors.value());
    let lines = [&stats.refusal_lines, &watched.edge.service.state().refusal_lines];
    let left_out = lines.map(RefusalLines::left_out);
    let mut unlogged = text.family(
        Kind::Counter,
        "bhav_http_errors_unlogged_total",
        "Error responses without a log line of their own, because there were too many at once.",
    );
    unlogged.sample(&[("status", "4xx")], left_out.iter().map(|counts| counts.0).sum::<u64>());
    unlogged.sample(&[("status", "5xx")], left_out.iter().map(|counts| counts.1).sum::<u64>());
    text.counter(
        "bhav_http_handler_panics_total",
        "Requests answered 500 because their handler panicked or sent nothing.",
        stats.handler_panics.value(),
    );
}

fn connections(text: &mut Exposition, watched: &Watched) {
    let (stats, edge) = (&watched.edge.stats, &watched.edge);
    text.gauge("bhav_http_connections_open", "Open client connections.", edge.slots.open());
    text.gauge(
        "bhav_http_connections_limit",
        "Open connections at which accepting pauses.",
        edge.settings().connections_max,
    );
    text.counter(
        "bhav_http_connections_accepted_total",
        "Accepted connections.",
        stats.accepted.value(),
    );
    let mut refused = text.family(
        Kind::Counter,
        "bhav_http_connections_refused_total",
        "Connections refused: too many from one address, or an error of the system.",
    );
    refused.sample(&[("reason", "address")], stats.address_refusals.value());
    refused.sample(&[("reason", "system")], stats.accept_errors.value());
    text.counter(
        "bhav_http_accept_pauses_total",
        "How often accepting paused at the connection limit.",
        stats.accept_pauses.value(),
    );
    let mut closed = text.family(
        Kind::Counter,
        "bhav_http_connections_timed_out_total",
        "Connections closed because the client was idle, sent too slowly (read), read too slowly \
         (write), or was the slowest reader when the unread output of all clients exceeded its \
         limit (crowded).",
    );
    closed.sample(&[("reason", "idle")], stats.idle_closed.value());
    closed.sample(&[("reason", "read")], stats.read_timeouts.value());
    closed.sample(&[("reason", "write")], stats.write_timeouts.value());
    closed.sample(&[("reason", "crowded")], stats.unread_cuts.value());
    let unread = edge.unread.bytes();
    text.gauge("bhav_http_unread_output_bytes", "Output that clients have not read yet.", unread);
}

fn streams(text: &mut Exposition, watched: &Watched) {
    let stats = &watched.edge.streams.stats;
    open_streams(text, watched);
    text.counter(
        "bhav_stream_frames_total",
        "Events sent to streams, without heartbeats.",
        stats.frames.value(),
    );
    text.counter("bhav_stream_heartbeats_total", "Heartbeats sent.", stats.heartbeats.value());
    text.counter(
        "bhav_stream_sent_bytes_total",
        "Bytes of events and heartbeats sent.",
        stats.bytes.value(),
    );
    text.counter(
        "bhav_stream_conflated_total",
        "Events that a stream skipped because a newer one was there when it could send.",
        stats.conflated.value(),
    );
    text.counter(
        "bhav_streams_refused_total",
        "Streams refused at the limit of all, of their address, or of choices of symbols.",
        stats.refused.value(),
    );
    let mut cut = text.family(
        Kind::Counter,
        "bhav_stream_cut_total",
        "Streams cut off because the client read too slowly (write), was the slowest reader when \
         the unread output of all clients exceeded its limit (crowded), or sent too much (read).",
    );
    cut.sample(&[("reason", "write")], stats.slow_cuts.value());
    cut.sample(&[("reason", "crowded")], stats.crowded_cuts.value());
    cut.sample(&[("reason", "read")], stats.input_cuts.value());
    text.family(
        Kind::Histogram,
        "bhav_stream_fan_out_seconds",
        "Time from a change's news to the last stream's wake-up.",
    )
    .durations(&[], &stats.fan_out.read(0));
}

fn open_streams(text: &mut Exposition, watched: &Watched) {
    let streams = &watched.edge.streams;
    // A stream with quotes takes two places.
    let (all, places) = (streams.open(), streams.taken());
    let with_quotes = places.saturating_sub(all).min(all);
    let mut open = text.family(
        Kind::Gauge,
        "bhav_streams_open",
        "Open streams of events: of the snapshot alone, and with quotes beside it.",
    );
    open.sample(&[("kind", "snapshot")], all - with_quotes);
    open.sample(&[("kind", "quotes")], with_quotes);
    let settings = watched.edge.settings();
    text.gauge(
        "bhav_streams_limit",
        "Open streams at which further ones are refused; one with quotes counts as two.",
        settings.streams_max,
    );
    let choices = watched.edge.service.state().event_streams.choices();
    text.gauge(
        "bhav_stream_choices",
        "Different choices of symbols that open streams show quotes of.",
        choices.count(),
    );
    text.gauge(
        "bhav_stream_choices_limit",
        "Choices of symbols at which streams with another one are refused.",
        settings.stream_choices_max,
    );
    text.counter(
        "bhav_stream_choices_refused_total",
        "Streams refused at the limit of choices of symbols; they count as refused, too.",
        choices.refused(),
    );
}
