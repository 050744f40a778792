//! What only bhav is asked: cached quotes, many clients with few upstream calls, hanging upstreams.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use openloop::report::LoadReport;
use openloop::request::live_prices_path;

use crate::error::Error;
use crate::fetch::{self, SNAPSHOT_PATH, SYMBOLS_PER_REQUEST};
use crate::generator::{Ask, Generator, Slice};
use crate::rounds::{Sizes, half_of_saturation};
use crate::servers::Programs;

/// Symbols in play in the run with many clients.
pub const SYMBOLS: usize = 400;

/// Clients of that run, each polling once a second.
pub const CLIENTS: usize = 1_000;

/// Rate at which quotes are compared with the snapshot, in requests a second.
pub const QUOTES_RATE_PER_S: u64 = 5_000;

/// Connections of that comparison.
const QUOTES_CONNECTIONS: usize = 64;

/// How long the quotes may take to be all cached.
const WARM_DEADLINE: Duration = Duration::from_secs(60);

/// How long every upstream call hangs.
const HANG_MS: u64 = 30_000;

/// Time until every feed is waiting in a call that hangs.
const HANG_SETTLES: Duration = Duration::from_secs(3);

/// Cached quotes against the snapshot, one pair per round.
#[derive(Debug, Default)]
pub struct Quotes {
    /// Snapshot slices.
    pub snapshot: Vec<Slice>,
    /// Live-prices slices of the same rounds.
    pub live_prices: Vec<Slice>,
    /// How many of the symbols had a quote when the measurement began.
    pub cached: usize,
}

/// Measures both routes in turn on a fresh bhav, with symbols that are all cached.
///
/// # Errors
/// bhav does not start or the generator failed.
pub fn compare_quotes(
    programs: &Programs,
    generator: &Generator,
    symbols: &[String],
    sizes: Sizes,
) -> Result<Quotes, Error> {
    let server = programs.start_bhav()?;
    let asked = &symbols[..SYMBOLS_PER_REQUEST.min(symbols.len())];
    let mut quotes = Quotes {
        cached: fetch::wait_for_quotes(server.address, asked, WARM_DEADLINE)?,
        ..Quotes::default()
    };
    let ask = |path: String| Ask::Open {
        path,
        connections: QUOTES_CONNECTIONS,
        rate_per_s: QUOTES_RATE_PER_S,
        tick_us: sizes.tick_us,
    };
    let snapshot = ask(SNAPSHOT_PATH.to_owned());
    let live_prices = ask(live_prices_path(asked.iter().map(String::as_str)));
    for _ in 0..sizes.rounds {
        let slice = generator.measure(&server, &snapshot, sizes.slice_ms)?;
        quotes.snapshot.push(slice);
        let slice = generator.measure(&server, &live_prices, sizes.slice_ms)?;
        quotes.live_prices.push(slice);
    }
    Ok(quotes)
}

/// What many clients cost the upstreams.
#[derive(Debug)]
pub struct Coalescing {
    /// The clients' figures.
    pub load: LoadReport,
    /// Upstream calls during the run, by endpoint.
    pub calls: BTreeMap<String, u64>,
    /// Upstream calls that were turned away, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Most calls to broker A's quote endpoints within any second.
    pub quote_calls_in_1s_max: u64,
    /// Symbols in play.
    pub symbols: usize,
    /// Of these, with a quote after the run.
    pub quoted: usize,
}

/// Runs the clients against a fresh bhav, with nothing cached, and counts the upstream calls.
///
/// # Errors
/// bhav does not start, has no simulator, or the generator failed.
pub fn coalesce(
    programs: &Programs,
    generator: &Generator,
    symbols: &[String],
    sizes: Sizes,
) -> Result<Coalescing, Error> {
    let server = programs.start_bhav()?;
    let simulator = server.simulator()?;
    let file: PathBuf = programs.work_folder.join("symbols.txt");
    std::fs::write(&file, symbols.join("\n")).map_err(Error::io("write the symbols"))?;
    let ask = Ask::Mixed { symbols: file, clients: CLIENTS };
    let before = fetch::simulator_stats(simulator)?;
    let slice = generator.measure(&server, &ask, sizes.clients_ms)?;
    let after = fetch::simulator_stats(simulator)?;
    Ok(Coalescing {
        load: slice.load,
        calls: grown(&after.requests, &before.requests),
        rejected: grown(&after.rejected, &before.rejected),
        quote_calls_in_1s_max: after.max_quote_calls_in_1s,
        symbols: symbols.len(),
        quoted: fetch::quotes_served(server.address, symbols)?,
    })
}

fn grown(after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    after
        .iter()
        .map(|(name, &count)| {
            let earlier = before.get(name).copied().unwrap_or(0);
            (name.clone(), count.saturating_sub(earlier))
        })
        .filter(|&(_, count)| count > 0)
        .collect()
}

/// The snapshot at half of saturation, in turn with healthy and with hanging upstreams.
#[derive(Debug, Default)]
pub struct Hang {
    /// Healthy slices.
    pub healthy: Vec<Slice>,
    /// Slices of the same rounds while every upstream hangs.
    pub hanging: Vec<Slice>,
}

/// Measures on a fresh bhav.
///
/// # Errors
/// bhav does not start, has no simulator, or the generator failed.
pub fn hang(programs: &Programs, generator: &Generator, sizes: Sizes) -> Result<Hang, Error> {
    let server = programs.start_bhav()?;
    let simulator = server.simulator()?;
    let ask = half_of_saturation(&server, generator, sizes)?;
    let mut hang = Hang::default();
    for _ in 0..sizes.rounds {
        let slice = generator.measure(&server, &ask, sizes.slice_ms)?;
        hang.healthy.push(slice);
        fetch::hang_upstreams(simulator, HANG_MS)?;
        thread::sleep(HANG_SETTLES);
        let slice = generator.measure(&server, &ask, sizes.slice_ms);
        fetch::clear_faults(simulator)?;
        hang.hanging.push(slice?);
    }
    Ok(hang)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::grown;

    #[test]
    fn counts_are_those_of_the_run() {
        let count = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            pairs.iter().map(|&(n, c)| (n.to_owned(), c)).collect()
        };
        let before = count(&[("broker_a.quote", 5), ("public.spark", 2)]);
        let after = count(&[("broker_a.quote", 25), ("public.spark", 2), ("new", 1)]);
        let expected = count(&[("broker_a.quote", 20), ("new", 1)]);
        assert_eq!(grown(&after, &before), expected);
    }
}
