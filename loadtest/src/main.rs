//! Driver of the load test: starts bhav and its peers, runs them interleaved under load, and
//! writes `RESULTS.md`.
//!
//! ```text
//! main ── surroundings   build, find programs, describe the machine
//!      ── servers        start each one        (process: CPU time, memory, end; simulator)
//!      ── rounds         every server in turn  (generator: one slice under load)
//!      ── memory, feeds  idle connections, storm, quotes, coalescing, hanging upstreams
//!      ── accounts       logins, kept portfolio answers, many users, journal writes
//!      ── honesty        every price's age, while each feed breaks in each way
//!      ── results        medians and ratios as Markdown  (targets: met or missed; alone)
//! ```

mod accounts;
mod alone;
mod error;
mod feeds;
mod fetch;
mod generator;
mod honesty;
mod memory;
mod nginx;
mod process;
mod results;
mod rounds;
mod sections;
mod servers;
mod simulator;
mod stats;
mod surroundings;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use crate::accounts::Effort;
use crate::error::Error;
use crate::fetch::Snapshot;
use crate::generator::Generator;
use crate::results::Results;
use crate::rounds::Sizes;
use crate::servers::{Kind, Programs, Server};

/// Slice and client run of a full test, in milliseconds. Many short slices rather than few long
/// ones: the shorter a round, the less the machine drifts within a ratio.
const FULL_MS: (u64, u64) = (2_000, 20_000);

/// The same for `--quick`: enough to see that everything works, too short to quote.
const QUICK_MS: (u64, u64) = (1_000, 5_000);

/// Measures bhav and its peers in one interleaved run and writes RESULTS.md.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// One short round: to see that everything works
    #[arg(long)]
    quick: bool,

    /// Interleaved rounds
    #[arg(long, default_value_t = 8)]
    rounds: usize,

    /// bhav's program; otherwise it is built from the folder above
    #[arg(long)]
    bhav: Option<PathBuf>,

    /// Measure the peers alone, with a made-up snapshot
    #[arg(long, conflicts_with = "bhav")]
    without_bhav: bool,

    /// File with symbols, one a line; otherwise the simulator's instrument list
    #[arg(long)]
    symbols: Option<PathBuf>,

    /// Gather the requests of the CPU slices in bursts, one every so many microseconds; 0 spaces
    /// them evenly
    #[arg(long, default_value_t = 0)]
    tick_us: u64,

    /// Measure one part alone and replace its section of the results
    #[arg(long, conflicts_with = "without_bhav")]
    only: Option<Part>,

    /// With `--only honesty`: only what goes wrong under a name with this in it, to look into one
    /// finding; nothing is written
    #[arg(long, requires = "only")]
    faults: Option<String>,

    /// Where to write the results, instead of RESULTS.md
    #[arg(long)]
    output: Option<PathBuf>,
}

/// A part that can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Logins, kept portfolio answers, many users, journal writes
    Accounts,
    /// The age of every price, while each feed breaks in each way: an hour, or half with --quick
    Honesty,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loadtest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<(), Error> {
    openloop::sys::raise_open_files_limit().map_err(Error::io("raise the limit of open files"))?;
    let output = args.output.clone().unwrap_or_else(surroundings::results_file);
    if args.only == Some(Part::Honesty) {
        let programs = surroundings::prepare_bhav(args.bhav)?;
        let pace = if args.quick { honesty::Pace::SHORT } else { honesty::Pace::HOUR };
        return measure_honesty(&programs, pace, args.faults.as_deref(), &output);
    }
    let sizes = sizes(&args);
    let programs = surroundings::prepare(args.bhav, args.without_bhav)?;
    let generator = Generator::new(&programs.folder, surroundings::cores());
    if programs.bhav.is_some() {
        eprintln!("signals: found once in the simulator's candles");
        programs.find_signals()?;
    }
    if args.only.is_none() {
        measure_beside_peers(&programs, &generator, sizes, args.symbols, &output)?;
    }
    match programs.bhav.is_some() {
        true => measure_accounts(&programs, &generator, args.quick, &output),
        false => Ok(()),
    }
}

fn measure_beside_peers(
    programs: &Programs,
    generator: &Generator,
    sizes: Sizes,
    symbols_file: Option<PathBuf>,
    output: &Path,
) -> Result<(), Error> {
    let mut notes = Vec::new();
    if programs.nginx.is_none() {
        notes.push("nginx, which is not installed (package nginx-light)".to_owned());
    }
    let busy_at_rest = rounds::machine_share_at_rest(surroundings::cores())?;

    let bhav = programs.bhav.as_ref().map(|_| programs.start_bhav()).transpose()?;
    let snapshot = snapshot_of(bhav.as_ref())?;
    let symbols = symbols(symbols_file, bhav.as_ref(), &mut notes)?;
    let kinds = programs.available();
    let figures = {
        let servers = start_all(programs, bhav, &kinds, &snapshot)?;
        rounds::run(&servers, generator, sizes)?
    };
    figures.expect_equal_bytes(&kinds)?;

    let mut results = Results {
        surroundings: surroundings::describe(programs),
        sizes,
        busy_at_rest,
        snapshot,
        kinds,
        figures,
        idle: Vec::new(),
        storm: None,
        quotes: None,
        coalescing: None,
        hang: None,
        notes,
    };
    // Pinned or not, the memory is the same.
    for &kind in results.kinds.iter().filter(|&&kind| kind != Kind::MayPinned) {
        eprintln!("idle connections: {}", kind.name());
        let idle = memory::measure_idle(programs, generator, kind, &results.snapshot)?;
        results.idle.push(idle);
    }
    if programs.bhav.is_some() {
        measure_bhav(programs, generator, &symbols, &mut results)?;
    }
    let mut document = results.render();
    // The sections that are there stand until they are measured again.
    let before = std::fs::read_to_string(output).unwrap_or_default();
    for section in sections::ALL {
        if let Some(found) = section.found(&before) {
            document = section.placed(&document, found);
        }
    }
    write_results(output, &document)
}

fn measure_accounts(
    programs: &Programs,
    generator: &Generator,
    quick: bool,
    output: &Path,
) -> Result<(), Error> {
    let effort = if quick { Effort::QUICK } else { Effort::FULL };
    let surroundings = surroundings::describe_in_short();
    let accounts = accounts::measure(programs, generator, effort, surroundings)?;
    let before = std::fs::read_to_string(output).unwrap_or_default();
    write_results(output, &sections::ACCOUNTS.placed(&before, &accounts.render()))
}

fn measure_honesty(
    programs: &Programs,
    pace: honesty::Pace,
    faults: Option<&str>,
    output: &Path,
) -> Result<(), Error> {
    let honesty = honesty::measure(programs, pace, faults, surroundings::describe_in_short())?;
    if faults.is_some() {
        println!("{}", honesty.render());
        return Ok(());
    }
    let before = std::fs::read_to_string(output).unwrap_or_default();
    write_results(output, &sections::HONESTY.placed(&before, &honesty.render()))
}

fn write_results(output: &Path, document: &str) -> Result<(), Error> {
    std::fs::write(output, document).map_err(Error::io("write the results"))?;
    println!("{document}\nwritten to {}", output.display());
    Ok(())
}

fn sizes(args: &Args) -> Sizes {
    let (slice_ms, clients_ms) = if args.quick { QUICK_MS } else { FULL_MS };
    Sizes {
        rounds: if args.quick { 1 } else { args.rounds.max(1) },
        slice_ms,
        clients_ms,
        tick_us: args.tick_us,
    }
}

fn snapshot_of(bhav: Option<&Server>) -> Result<Snapshot, Error> {
    match bhav {
        Some(server) => {
            fetch::snapshot(server.address)?.ok_or(Error::Unexpected("bhav's snapshot went away"))
        }
        None => Ok(fetch::made_up_snapshot()),
    }
}

fn symbols(
    file: Option<PathBuf>,
    bhav: Option<&Server>,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    if let Some(file) = file {
        return openloop::request::read_symbols(&file).map_err(Error::io("read the symbols"));
    }
    let Some(bhav) = bhav else { return Ok(Vec::new()) };
    match fetch::listed_symbols(bhav.simulator()?, feeds::SYMBOLS) {
        Ok(symbols) => Ok(symbols),
        Err(error) => {
            notes.push(format!("the simulator's instrument list ({error})"));
            Ok(Vec::new())
        }
    }
}

fn start_all(
    programs: &Programs,
    bhav: Option<Server>,
    kinds: &[Kind],
    snapshot: &Snapshot,
) -> Result<Vec<Server>, Error> {
    let mut servers: Vec<Server> = bhav.into_iter().collect();
    for &kind in kinds.iter().filter(|&&kind| kind != Kind::Bhav) {
        let server = programs.start(kind, snapshot)?;
        snapshot.expect_from(kind.name(), server.address)?;
        servers.push(server);
    }
    Ok(servers)
}

fn measure_bhav(
    programs: &Programs,
    generator: &Generator,
    symbols: &[String],
    results: &mut Results,
) -> Result<(), Error> {
    let sizes = results.sizes;
    eprintln!("bhav: more connections than its cap");
    results.storm = Some(memory::storm(programs, generator)?);
    if symbols.len() < fetch::SYMBOLS_PER_REQUEST {
        let note = format!("quotes, for want of symbols ({} known)", symbols.len());
        results.notes.push(note);
    } else {
        eprintln!("bhav: cached quotes");
        results.quotes = Some(feeds::compare_quotes(programs, generator, symbols, sizes)?);
        eprintln!("bhav: many clients");
        results.coalescing = Some(feeds::coalesce(programs, generator, symbols, sizes)?);
    }
    eprintln!("bhav: hanging upstreams");
    results.hang = Some(feeds::hang(programs, generator, sizes)?);
    Ok(())
}
