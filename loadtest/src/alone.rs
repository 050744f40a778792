//! Renders what bhav alone was asked: the storm of connections, quotes, many clients, hanging
//! upstreams.

use crate::feeds::{CLIENTS, Coalescing, Hang, QUOTES_RATE_PER_S, Quotes};
use crate::generator::Slice;
use crate::memory::STORM_CONNECTIONS;
use crate::results::{Results, line, number};
use crate::rounds::Sizes;
use crate::stats::median;

/// Appends the sections of these.
pub fn render(results: &Results, out: &mut String) {
    if let Some(storm) = &results.storm {
        let report = &storm.report;
        let recovery = storm.recovered_after_ms.map_or_else(
            || "a new connection was **not** answered".to_owned(),
            |ms| format!("a new connection was answered {ms} ms after they closed"),
        );
        line(
            out,
            &format!(
                "## bhav: {STORM_CONNECTIONS} connections\n\n{} attempted, {} connected, \
                 {} answered, {} with another status, {} failed; RSS {} MiB; {recovery}.\n",
                report.attempted,
                report.connected,
                report.answered,
                report.non_200,
                report.failed,
                storm.held_kib / 1_024,
            ),
        );
    }
    if let Some(quotes) = &results.quotes {
        render_quotes(out, quotes);
    }
    if let Some(coalescing) = &results.coalescing {
        render_coalescing(out, coalescing, results.sizes);
    }
    if let Some(hang) = &results.hang {
        render_hang(out, hang);
    }
}

fn render_quotes(out: &mut String, quotes: &Quotes) {
    let row = |name: &str, slices: &[Slice]| {
        let of = |f: fn(&Slice) -> f64| median(&slices.iter().map(f).collect::<Vec<_>>());
        let failed: u64 = slices.iter().map(|s| s.load.errors + s.load.other_status).sum();
        format!(
            "| {name} | {} | {} | {} | {failed} |",
            number(of(|slice| slice.cpu_us_per_request), 2),
            number(of(|slice| slice.load.latency.p50_us), 0),
            number(of(|slice| slice.load.latency.p999_us), 0),
        )
    };
    line(
        out,
        &format!(
            "## bhav: live-prices with {} cached symbols, {QUOTES_RATE_PER_S} req/s\n\n\
             | route | CPU µs/request | p50 µs | p99.9 µs | failed |\n|---|---|---|---|---|\n\
             {}\n{}\n\nCPU ratio to the snapshot: {}\n",
            quotes.cached,
            row("snapshot", &quotes.snapshot),
            row("live-prices", &quotes.live_prices),
            number(quotes.cpu_ratio(), 2),
        ),
    );
}

fn render_coalescing(out: &mut String, coalescing: &Coalescing, sizes: Sizes) {
    let load = &coalescing.load;
    line(
        out,
        &format!(
            "## bhav: {CLIENTS} clients, 50 of {} symbols each\n\n{} requests in {:.1} s from a \
             cold cache, {} errors, {} not 200, p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs; \
             {} of the symbols had a quote afterwards. Upstream calls:\n",
            coalescing.symbols,
            load.requests,
            load.elapsed_s,
            load.errors,
            load.other_status,
            load.latency.p50_us,
            load.latency.p99_us,
            load.latency.max_us,
            coalescing.quoted,
        ),
    );
    let seconds = sizes.clients_ms as f64 / 1_000.0;
    for (name, &count) in &coalescing.calls {
        let per_s = count as f64 / seconds;
        line(out, &format!("- {name}: {count} ({per_s:.2} a second)"));
    }
    line(
        out,
        &format!(
            "- most quote calls to broker A within any second: {}",
            coalescing.quote_calls_in_1s_max
        ),
    );
    for (reason, count) in &coalescing.rejected {
        line(out, &format!("- turned away, {reason}: {count}"));
    }
    line(out, "");
}

fn render_hang(out: &mut String, hang: &Hang) {
    let row = |name: &str, slices: &[Slice]| {
        let of = |f: fn(&Slice) -> f64| median(&slices.iter().map(f).collect::<Vec<_>>());
        format!(
            "| {name} | {} | {} | {} | {} |",
            number(of(|slice| slice.load.rate_per_s), 0),
            number(of(|slice| slice.load.latency.p50_us), 0),
            number(of(|slice| slice.load.latency.p99_us), 0),
            number(of(|slice| slice.load.latency.p999_us), 0),
        )
    };
    line(
        out,
        &format!(
            "## bhav: half of saturation while every upstream hangs\n\n\
             | upstreams | req/s | p50 µs | p99 µs | p99.9 µs |\n|---|---|---|---|---|\n\
             {}\n{}\n\np99.9 ratio: {}",
            row("healthy", &hang.healthy),
            row("hanging", &hang.hanging),
            number(hang.tail_ratio(), 2),
        ),
    );
}
