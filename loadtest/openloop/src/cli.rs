//! The command line, and the small protocol by which the driver attends a run.
//!
//! Attended, the generator prints `ready` when its connections are warm, starts at the next line
//! of standard input, prints its figures, and holds the connections until standard input ends: so
//! the driver can read the server's CPU time around the measured part and nothing else.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use crate::engine::{Engine, Pace};
use crate::idle::{IdleConnections, Plan};
use crate::readers::{Command, Readers, ReadersPlan};
use crate::request::{mixed_requests, read_requests, read_symbols, render_get};
use crate::schedule::{NS_PER_S, Schedule};
use crate::sys;

/// Arguments of the generator.
#[derive(Debug, Parser)]
#[command(about = "Open-loop HTTP/1.1 load generator", version)]
pub struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Requests at a fixed rate; latency from the due time
    Open {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        what: What,
        /// Keep-alive connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
        /// Requests a second, over all connections
        #[arg(long)]
        rate: u64,
    },
    /// The next request as soon as the last is answered: saturation
    Closed {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        what: What,
        /// Keep-alive connections
        #[arg(long, default_value_t = 64)]
        connections: usize,
    },
    /// Clients that each poll live-prices for their own choice of symbols
    Mixed {
        #[command(flatten)]
        common: Common,
        /// File with one symbol a line
        #[arg(long)]
        symbols: PathBuf,
        /// Clients, one connection each
        #[arg(long, default_value_t = 1_000)]
        clients: usize,
        /// Symbols per client
        #[arg(long, default_value_t = 50)]
        per_client: usize,
        /// Polling period of a client, in milliseconds
        #[arg(long, default_value_t = 1_000)]
        interval_ms: u64,
        /// Seed of the choices
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Open connections, one request on each, and hold them until standard input ends
    Idle {
        #[command(flatten)]
        many: Many,
        /// Path to request
        #[arg(long)]
        path: String,
        /// Connections to open
        #[arg(long)]
        connections: usize,
    },
    /// Readers of a stream of events. Prints how many are open, then its figures at each line
    /// "report" of standard input; "go" forgets what was counted; ends with it
    Readers {
        #[command(flatten)]
        many: Many,
        /// Path of the stream
        #[arg(long, default_value = "/api/index/stream")]
        path: String,
        /// Path of the document that the stream sends
        #[arg(long, default_value = "/api/index/snapshot")]
        document: String,
        /// Streams to open
        #[arg(long, default_value_t = 500)]
        readers: usize,
        /// Ask and never read
        #[arg(long)]
        never_read: bool,
        /// Receive buffer of a reader's socket, in bytes; 0 leaves the system's
        #[arg(long, default_value_t = 0)]
        receive_buffer_bytes: usize,
    },
}

/// Of connections from several loopback addresses.
#[derive(Debug, Args)]
struct Many {
    /// Server, as ADDRESS:PORT
    #[arg(long)]
    target: SocketAddr,
    /// First source address is 127.0.0.N
    #[arg(long, default_value_t = 2)]
    source_first: u8,
    /// Number of source addresses
    #[arg(long, default_value_t = 8)]
    source_count: u8,
    /// Longest wait for all of them to be open or to have failed, in milliseconds
    #[arg(long, default_value_t = 60_000)]
    deadline_ms: u64,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Path to request
    #[arg(long)]
    path: Option<String>,
    /// File with whole requests, a JSON list of texts; connection n sends the n-th, and the list
    /// begins again where it is shorter
    #[arg(long)]
    requests: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Common {
    /// Server, as ADDRESS:PORT
    #[arg(long)]
    target: SocketAddr,
    /// Length of the measured part, in milliseconds
    #[arg(long, default_value_t = 4_000)]
    duration_ms: u64,
    /// Status that an answer is expected to have; others are counted apart
    #[arg(long, default_value_t = 200)]
    status: u16,
    /// Print "ready", start at a line of standard input, end with it
    #[arg(long)]
    attended: bool,
}

impl Cli {
    /// Runs the mode and prints its figures as one line of JSON (`idle`: two).
    ///
    /// # Errors
    /// The server cannot be reached, the arguments make no sense, or a system call failed.
    pub fn execute(self) -> Result<(), Box<dyn Error>> {
        sys::raise_open_files_limit()?;
        match self.mode {
            Mode::Open { common, what, connections, rate } => {
                let requests = what.rendered(common.target, connections)?;
                common.measure(&requests, Some(rate), true)
            }
            Mode::Closed { common, what, connections } => {
                let requests = what.rendered(common.target, connections)?;
                common.measure(&requests, None, true)
            }
            Mode::Mixed { common, symbols, clients, per_client, interval_ms, seed } => {
                let symbols = read_symbols(&symbols)?;
                let rendered = mixed_requests(common.target, &symbols, clients, per_client, seed);
                let requests: Vec<_> = rendered.into_iter().map(Arc::from).collect();
                let rate_per_s = clients as u64 * 1_000 / interval_ms.max(1);
                // The first poll of every client is part of what is asked here: no warm-up.
                common.measure(&requests, Some(rate_per_s), false)
            }
            Mode::Idle { many, path, connections } => hold(&many.plan(&path, connections)),
            Mode::Readers { many, path, document, readers, never_read, receive_buffer_bytes } => {
                let crowd = many.plan(&path, readers);
                attend(ReadersPlan { crowd, document, never_read, receive_buffer_bytes })
            }
        }
    }
}

impl Many {
    fn plan(&self, path: &str, connections: usize) -> Plan {
        let first = self.source_first;
        let sources = (first..first.saturating_add(self.source_count.max(1)))
            .map(|last| Ipv4Addr::new(127, 0, 0, last));
        Plan {
            target: self.target,
            request: render_get(self.target, path),
            connections,
            sources: sources.collect(),
            deadline: Duration::from_millis(self.deadline_ms),
        }
    }
}

impl Common {
    /// Opens the connections and, once all are warm and the word is given, asks at a rate or as
    /// fast as the answers come.
    fn measure(
        self,
        requests: &[Arc<[u8]>],
        rate_per_s: Option<u64>,
        warm_up: bool,
    ) -> Result<(), Box<dyn Error>> {
        if requests.is_empty() {
            return Err("at least one connection is needed".into());
        }
        let pace = match rate_per_s {
            Some(rate) => Pace::Open(Schedule::new(rate, self.duration_ms, requests.len())),
            None => Pace::Closed { duration_ns: self.duration_ms * (NS_PER_S / 1_000) },
        };
        sys::tighten_timers();
        let mut engine = Engine::connect(self.target, requests, self.status)?;
        if warm_up {
            let lost = engine.run(Pace::Once)?.errors;
            if lost > 0 {
                let what = format!("{lost} connections did not answer their first request");
                return Err(what.into());
            }
        }
        if self.attended {
            println!("ready");
            wait_for_line();
        }
        let cpu_before_ns = sys::own_cpu_ns();
        let tally = engine.run(pace)?;
        print_json(&tally.report(sys::own_cpu_ns() - cpu_before_ns))?;
        if self.attended {
            // Closing the connections is not load.
            wait_for_end();
        }
        Ok(())
    }
}

impl What {
    /// One request for each connection.
    fn rendered(
        &self,
        target: SocketAddr,
        connections: usize,
    ) -> Result<Vec<Arc<[u8]>>, Box<dyn Error>> {
        let whole: Vec<Vec<u8>> = match &self.requests {
            Some(file) => read_requests(file)?,
            None => vec![render_get(target, self.path.as_deref().unwrap_or("/"))],
        };
        let shared: Vec<Arc<[u8]>> = whole.into_iter().map(Arc::from).collect();
        Ok(shared.iter().cycle().take(connections).cloned().collect())
    }
}

fn hold(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let connections = IdleConnections::open(plan)?;
    print_json(&connections.report())?;
    wait_for_end();
    Ok(print_json(&connections.held())?)
}

/// The first line is the number of open streams.
fn attend(plan: ReadersPlan) -> Result<(), Box<dyn Error>> {
    sys::tighten_timers();
    let mut readers = Readers::open(plan)?;
    print_json(&readers.open_now())?;
    let (sender, commands) = mpsc::channel();
    // Ends with standard input.
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let command = if line == "go" { Command::Go } else { Command::Report };
            if sender.send(command).is_err() {
                return;
            }
        }
    });
    readers.run(&commands, |report| print_json(report).map_err(io::Error::other))?;
    Ok(())
}

fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Standard input that ends early means the driver is gone; the run then ends by itself.
fn wait_for_line() {
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
}

fn wait_for_end() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}
